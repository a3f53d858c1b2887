//! Parsers for options whose values are an enum of a lower layer, which does not know clap.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use strum::{EnumMessage, VariantArray};

/// Parses the name of one of these values.
pub fn named<T>(all: &'static [T], name: fn(T) -> &'static str) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    described(all, name, |_| None)
}

/// Parses the name of one of these values; `--help` describes each of them.
pub fn described<T>(
    all: &'static [T],
    name: fn(T) -> &'static str,
    meaning: fn(T) -> Option<&'static str>,
) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let values = all.iter().map(|value| PossibleValue::new(name(*value)).help(meaning(*value)));
    // The word is always found, because clap has already checked it against the same names.
    PossibleValuesParser::new(values)
        .try_map(move |word| all.iter().copied().find(|value| name(*value) == word).ok_or("no such value"))
}

/// Parses an enum's variant, whose documentation becomes its description in `--help`.
pub fn documented<T>() -> impl TypedValueParser<Value = T>
where
    T: Copy + EnumMessage + Into<&'static str> + VariantArray + Send + Sync + 'static,
{
    described(T::VARIANTS, Into::into, |kind| kind.get_documentation())
}
