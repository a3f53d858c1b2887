//! Typed JSON for formats whose files are small: serde_json, plus the extensions that Python and JavaScript
//! write.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{LineFault, build, line_fault, line_of};

/// Parses one document. Bare `NaN` and `Infinity`, which Python's json module writes, are read as null;
/// readers turn a null that stands for a number into a lint.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, LineFault> {
    build::check_values(text)?;
    match serde_json::from_str(text) {
        Ok(value) => Ok(value),
        Err(first) => match replace_bare_words(text, |_| Cow::Borrowed("null")) {
            Cow::Borrowed(_) => Err(explain(&first)),
            Cow::Owned(text) => serde_json::from_str(&text).map_err(|error| explain(&error)),
        },
    }
}

/// Parses one document in which NaN and null have different meanings: bare words become text, `"NaN"`.
pub(super) fn parse_with_words<T: DeserializeOwned>(text: &str) -> Result<T, LineFault> {
    build::check_values(text)?;
    let text = replace_bare_words(text, |word| Cow::Owned(format!("\"{word}\"")));
    serde_json::from_str(&text).map_err(|error| explain(&error))
}

/// Parses the documents of a JSON Lines file and passes each one on; a document may also span several lines.
pub(super) fn parse_stream<T: DeserializeOwned>(
    text: &str,
    mut take: impl FnMut(T) -> Result<(), String>,
) -> Result<(), LineFault> {
    let text = replace_bare_words(text, |_| Cow::Borrowed("null"));
    let mut stream = serde_json::Deserializer::from_str(&text).into_iter::<T>();
    loop {
        let before = stream.byte_offset();
        let Some(value) = stream.next() else { return Ok(()) };
        let value = value.map_err(|error| explain(&error))?;
        take(value).map_err(|what| {
            let start = text[before..].find('{').map_or(before, |at| before + at);
            line_fault(line_of(text.as_bytes(), start), what)
        })?;
    }
}

fn explain(error: &serde_json::Error) -> LineFault {
    let text = error.to_string();
    // The line has its own field, but serde_json repeats it at the end of its message.
    let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    line_fault(error.line().max(1) as u64, what.to_owned())
}

/// Returns the text with `NaN`, `Infinity` and `-Infinity` outside strings replaced.
fn replace_bare_words(text: &str, replacement: impl Fn(&str) -> Cow<'static, str>) -> Cow<'_, str> {
    if !text.contains("NaN") && !text.contains("Infinity") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let (mut in_string, mut escaped) = (false, false);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if in_string {
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
        } else if let Some(word) =
            ["NaN", "-NaN", "Infinity", "-Infinity"].iter().find(|word| rest.starts_with(**word))
        {
            out.push_str(&replacement(word));
            rest = &rest[word.len()..];
            continue;
        } else {
            in_string = c == '"';
        }
        out.push(c);
        rest = &rest[c.len_utf8()..];
    }
    Cow::Owned(out)
}

/// A number that may be null, or a word that some tools write as a string (`"NaN"`).
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(from = "Loose<'_>")]
pub(super) struct Value(pub f64);

#[derive(Deserialize)]
#[serde(untagged)]
enum Loose<'a> {
    Number(f64),
    Word(#[serde(borrow)] Cow<'a, str>),
    Null(()),
}

impl From<Loose<'_>> for Value {
    fn from(loose: Loose<'_>) -> Self {
        Self(match loose {
            Loose::Number(value) => value,
            Loose::Word(word) => word.trim().parse().unwrap_or(f64::NAN),
            Loose::Null(()) => f64::NAN,
        })
    }
}

/// Reads the entries of an object in their order; a repeated key is an error, whereas serde would use the
/// last value.
pub(super) fn unique_entries<'de, D, V>(deserializer: D) -> Result<Vec<(String, V)>, D::Error>
where
    D: Deserializer<'de>,
    V: Deserialize<'de>,
{
    struct Entries<V>(PhantomData<V>);
    impl<'de, V: Deserialize<'de>> Visitor<'de> for Entries<V> {
        type Value = Vec<(String, V)>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let (mut entries, mut seen) = (Vec::new(), HashSet::new());
            while let Some((key, value)) = map.next_entry::<String, V>()? {
                if !seen.insert(key.clone()) {
                    return Err(A::Error::custom("an object has a duplicate key"));
                }
                entries.push((key, value));
            }
            Ok(entries)
        }
    }
    deserializer.deserialize_map(Entries(PhantomData))
}

/// Reads entries by name; a repeated name is an error.
pub(super) fn unique_map<'de, D, V>(deserializer: D) -> Result<BTreeMap<String, V>, D::Error>
where
    D: Deserializer<'de>,
    V: Deserialize<'de>,
{
    Ok(unique_entries(deserializer)?.into_iter().collect())
}
