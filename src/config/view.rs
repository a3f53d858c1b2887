//! Reads values from a document that has been checked. Absent values and values of the wrong type are read as
//! empty. Wrong types were reported by the first pass, after which no configuration is returned.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use toml_span::Value;
use toml_span::value::ValueInner;

use super::{fraction, values};

/// A value that may be absent.
#[derive(Clone, Copy)]
pub(super) struct ConfigView<'a, 'de> {
    given: Option<&'a Value<'de>>,
}

impl<'a, 'de> ConfigView<'a, 'de> {
    /// A key that is absent, or an empty table.
    pub(super) const ABSENT: Self = Self { given: None };

    /// The view of a whole document.
    pub(super) fn new(value: &'a Value<'de>) -> Self {
        Self { given: Some(value) }
    }

    pub(super) fn get(self, key: &str) -> Self {
        Self { given: self.given.and_then(|value| value.as_table()).and_then(|table| table.get(key)) }
    }

    /// Returns true if the document has the value.
    pub(super) fn is_present(self) -> bool {
        self.given.is_some()
    }

    /// Byte offset of the value.
    pub(super) fn at(self) -> usize {
        self.given.map_or(0, |value| value.span.start)
    }

    pub(super) fn text(self) -> Option<&'a str> {
        self.given.and_then(|value| value.as_str())
    }

    pub(super) fn owned(self) -> String {
        self.text().unwrap_or_default().to_owned()
    }

    pub(super) fn bool(self) -> Option<bool> {
        self.given.and_then(|value| value.as_bool())
    }

    pub(super) fn integer<T: TryFrom<i64>>(self) -> Option<T> {
        self.given.and_then(|value| value.as_integer()).and_then(|n| T::try_from(n).ok())
    }

    /// The value of an enum, if the text is one of its words.
    pub(super) fn word<T: FromStr>(self) -> Option<T> {
        self.text()?.parse().ok()
    }

    pub(super) fn number(self) -> Option<f64> {
        self.given.and_then(values::number)
    }

    pub(super) fn fraction(self) -> Option<f64> {
        self.given.and_then(|value| fraction::fraction_of(value).ok())
    }

    pub(super) fn duration(self) -> Option<Duration> {
        self.text().and_then(values::duration)
    }

    /// The elements of a list.
    pub(super) fn items(self) -> impl Iterator<Item = Self> {
        self.given.and_then(|value| value.as_array()).into_iter().flatten().map(Self::new)
    }

    /// The elements of a list, or the value itself if it is a text.
    pub(super) fn one_or_more(self) -> Vec<Self> {
        if self.text().is_some() { vec![self] } else { self.items().collect() }
    }

    /// The entries of a table, with the offset of each key.
    pub(super) fn entries(self) -> impl Iterator<Item = (&'a str, usize, Self)> {
        self.given
            .and_then(|value| value.as_table())
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.name.as_ref(), key.span.start, Self::new(value)))
    }

    /// A text, number or boolean as text.
    pub(super) fn scalar(self) -> Option<String> {
        match self.given?.as_ref() {
            ValueInner::String(text) => Some(text.to_string()),
            ValueInner::Integer(n) => Some(n.to_string()),
            // `{:?}` writes 1.0 with its decimal point, so that Python reads it as a float.
            ValueInner::Float(n) => Some(format!("{n:?}")),
            ValueInner::Boolean(b) => Some(b.to_string()),
            ValueInner::Array(_) | ValueInner::Table(_) => None,
        }
    }

    /// The entries of a table, with their values as text.
    pub(super) fn scalars(self) -> BTreeMap<String, String> {
        self.entries().filter_map(|(name, _, value)| Some((name.to_owned(), value.scalar()?))).collect()
    }
}
