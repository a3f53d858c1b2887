//! The units of time in the tool's rows.

use std::borrow::Cow;

/// The unit of a row's two time columns.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TimeUnit<'a> {
    /// Nanoseconds in one unit.
    Known(f64),
    /// The columns hold a ratio (`_cv`, `_RMS`) and not a time; the number is the ratio that a value of 1 in
    /// this unit represents.
    Ratio(f64),
    Unknown(Cow<'a, str>),
}

impl<'a> TimeUnit<'a> {
    pub(super) fn parse(name: Cow<'a, str>) -> Self {
        match name.as_ref() {
            "ns" => Self::Known(1.0),
            "us" => Self::Known(1e3),
            "ms" => Self::Known(1e6),
            "s" => Self::Known(1e9),
            "%" => Self::Ratio(0.01),
            _ => Self::Unknown(name),
        }
    }
}
