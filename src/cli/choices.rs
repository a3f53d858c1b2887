//! Options whose values are an enum of a lower room, which does not know clap.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use strum::{EnumMessage, VariantArray};

/// One of these values, by its name.
pub fn named<T>(all: &'static [T], name: fn(T) -> &'static str) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    described(all, name, |_| None)
}

/// One of these values, by its name; `--help` describes each.
pub fn described<T>(
    all: &'static [T],
    name: fn(T) -> &'static str,
    meaning: fn(T) -> Option<&'static str>,
) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let values = all.iter().map(|value| PossibleValue::new(name(*value)).help(meaning(*value)));
    // Every possible value is the name of one.
    PossibleValuesParser::new(values)
        .try_map(move |word| all.iter().copied().find(|value| name(*value) == word).ok_or("no such value"))
}

/// One variant of an enum, described by its documentation.
pub fn documented<T>() -> impl TypedValueParser<Value = T>
where
    T: Copy + EnumMessage + Into<&'static str> + VariantArray + Send + Sync + 'static,
{
    described(T::VARIANTS, Into::into, |kind| kind.get_documentation())
}
