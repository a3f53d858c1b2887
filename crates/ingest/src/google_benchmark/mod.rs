//! Google Benchmark's output, from every version of iree-benchmark-module.

mod console;
mod counters;
mod csv;
mod json;
mod pieces;
mod preamble;
mod rows;
mod stated;
mod summaries;

pub(super) use console::{is_header as is_console_header, read as read_console, without_colors};
pub(super) use counters::counter_metric;
pub(super) use csv::{HEADER as CSV_HEADER, read as read_csv};
pub(super) use json::{AXES, Axes, TESTBED, read as read_json};
pub(super) use pieces::read as read_pieces;

use std::borrow::Cow;

/// The unit of a row's two time columns.
#[derive(Debug, Clone, PartialEq)]
enum TimeUnit<'a> {
    /// Nanoseconds in one unit.
    Known(f64),
    /// The columns hold a ratio (`_cv`, `_RMS`) and not a time; the number is the ratio that a value of 1 in
    /// this unit represents.
    Ratio(f64),
    Unknown(Cow<'a, str>),
}

impl<'a> TimeUnit<'a> {
    fn parse(name: Cow<'a, str>) -> Self {
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
