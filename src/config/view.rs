//! Reads values out of a checked document. An absent key reads as the default that [`super::sections`] declares for
//! it. What is required and absent, or of the wrong type, reads as nothing: the first pass has already reported it,
//! and the configuration is not handed out then.

use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;
use std::sync::LazyLock;
use std::time::Duration;

use toml_span::Value;
use toml_span::value::ValueInner;

use super::fields::Section;
use super::{fraction, sections, values};

/// A value that may be absent.
#[derive(Clone, Copy)]
pub(super) struct ConfigView<'a, 'de> {
    /// As it stands in the document.
    given: Option<&'a Value<'de>>,
    /// What holds where nothing is given.
    default: Option<&'a Value<'de>>,
    /// The grammar of a table.
    section: Option<&'static Section>,
}

/// Documents with every default of the grammar, by its text.
static DEFAULTS: LazyLock<HashMap<String, Value<'static>>> = LazyLock::new(|| {
    fn collect(section: &'static Section, documents: &mut HashMap<String, Value<'static>>) {
        for field in section.fields {
            // Kept as long as the program runs: there is one for each key.
            if let Some(text) = field.default()
                && let Ok(document) =
                    toml_span::parse(Box::leak(format!("default = {text}").into_boxed_str()))
            {
                documents.insert(text.into_owned(), document);
            }
            if let Some(inner) = field.kind.section() {
                collect(inner, documents);
            }
        }
    }
    let mut documents = HashMap::new();
    collect(&sections::ROOT, &mut documents);
    documents
});

fn default_value(text: &str) -> Option<&'static Value<'static>> {
    DEFAULTS.get(text)?.as_table()?.get("default")
}

impl<'a, 'de> ConfigView<'a, 'de> {
    /// A whole document under the grammar of its top level.
    pub(super) fn new(value: &'a Value<'de>, section: &'static Section) -> Self {
        Self { given: Some(value), default: None, section: Some(section) }
    }

    /// A table that gives nothing.
    pub(super) fn empty(section: &'static Section) -> Self {
        Self { given: None, default: None, section: Some(section) }
    }

    fn value(self) -> Option<&'a Value<'de>> {
        self.given.or(self.default)
    }

    fn inside(self, value: &'a Value<'de>) -> Self {
        Self { given: Some(value), ..self }
    }

    pub(super) fn get(self, key: &str) -> Self {
        let field = self.section.and_then(|section| section.field(key));
        Self {
            given: self.given.and_then(|value| value.as_table()).and_then(|table| table.get(key)),
            default: field.and_then(|field| default_value(&field.default()?)),
            section: field.and_then(|field| field.kind.section()),
        }
    }

    /// Whether the document gives it.
    pub(super) fn is_present(self) -> bool {
        self.given.is_some()
    }

    /// Byte offset of the value.
    pub(super) fn at(self) -> usize {
        self.given.map_or(0, |value| value.span.start)
    }

    pub(super) fn text(self) -> Option<&'a str> {
        self.value().and_then(|value| value.as_str())
    }

    pub(super) fn owned(self) -> String {
        self.text().unwrap_or_default().to_owned()
    }

    pub(super) fn bool(self) -> Option<bool> {
        self.value().and_then(|value| value.as_bool())
    }

    pub(super) fn integer<T: TryFrom<i64>>(self) -> Option<T> {
        self.value().and_then(|value| value.as_integer()).and_then(|n| T::try_from(n).ok())
    }

    /// An integer whose key has a default.
    pub(super) fn integer_or_default<T: TryFrom<i64> + Default>(self) -> T {
        self.integer().unwrap_or_default()
    }

    /// One of the words of an enum.
    pub(super) fn word<T: FromStr>(self) -> Option<T> {
        self.text()?.parse().ok()
    }

    pub(super) fn number(self) -> Option<f64> {
        self.value().and_then(values::number)
    }

    pub(super) fn fraction(self) -> Option<f64> {
        self.value().and_then(|value| fraction::fraction_of(value).ok())
    }

    pub(super) fn duration(self) -> Option<Duration> {
        self.text().and_then(values::duration)
    }

    /// Elements of a list.
    pub(super) fn items(self) -> impl Iterator<Item = Self> {
        self.value()
            .and_then(|value| value.as_array())
            .into_iter()
            .flatten()
            .map(move |value| self.inside(value))
    }

    /// Elements of a list, or the one value.
    pub(super) fn one_or_more(self) -> Vec<Self> {
        if self.text().is_some() { vec![self] } else { self.items().collect() }
    }

    /// Texts of a list.
    pub(super) fn texts(self) -> Vec<String> {
        self.items().filter_map(Self::text).map(str::to_owned).collect()
    }

    /// Entries of a table, with the offset of each key.
    pub(super) fn entries(self) -> impl Iterator<Item = (&'a str, usize, Self)> {
        self.value()
            .and_then(|value| value.as_table())
            .into_iter()
            .flatten()
            .map(move |(key, value)| (key.name.as_ref(), key.span.start, self.inside(value)))
    }

    /// Text, number or boolean as text.
    pub(super) fn scalar(self) -> Option<String> {
        match self.value()?.as_ref() {
            ValueInner::String(text) => Some(text.to_string()),
            ValueInner::Integer(n) => Some(n.to_string()),
            // `{:?}` keeps the point of 1.0, so that Python reads a float again.
            ValueInner::Float(n) => Some(format!("{n:?}")),
            ValueInner::Boolean(b) => Some(b.to_string()),
            ValueInner::Array(_) | ValueInner::Table(_) => None,
        }
    }

    /// Entries of a table as text.
    pub(super) fn scalars(self) -> BTreeMap<String, String> {
        self.entries().filter_map(|(name, _, value)| Some((name.to_owned(), value.scalar()?))).collect()
    }
}
