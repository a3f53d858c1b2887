//! A JSON definition. Each key is removed when it is read, so that the keys that were not read can
//! be reported.

use std::fmt;

use serde_json::{Map, Value};

use super::suite::{TOLERANCE_FACTOR, allowed_time};

/// Folder names of the test suites.
const FAMILIES: [&str; 5] = ["torch_models", "sharktank_models", "torch_ops", "onnx_ops", "onnx_models"];

/// A part of a definition that could not be translated into the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Untranslated {
    pub file: String,
    /// The key, list entry or line that was not translated; empty for the whole file.
    pub what: String,
    pub why: String,
}

impl fmt::Display for Untranslated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, what, why } = self;
        if what.is_empty() { write!(f, "{file}: {why}") } else { write!(f, "{file}: {what}: {why}") }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Definition {
    pub(super) file: String,
    keys: Map<String, Value>,
}

impl Definition {
    pub(super) fn parse(file: &str, text: &str) -> Result<Self, Untranslated> {
        let failed = |why: String| Untranslated { file: file.to_owned(), what: String::new(), why };
        match serde_json::from_str(text) {
            Ok(Value::Object(keys)) => Ok(Self { file: file.to_owned(), keys }),
            Ok(_) => Err(failed("expected a table".to_owned())),
            Err(error) => Err(failed(format!("not valid JSON: {error}"))),
        }
    }

    /// The name of the suite that the file belongs to, which is one of its parent folders.
    pub(super) fn family(&self) -> Option<&'static str> {
        FAMILIES.into_iter().find(|family| self.file.split('/').any(|folder| folder == *family))
    }

    /// The file's path below its suite's folder. `configs/`, where a suite keeps its example lists, is left
    /// out, so that a list in iree-org/iree gets the same path as the example that it replaces.
    pub(super) fn place_in(&self, family: &str) -> String {
        let below =
            self.file.split_once(&format!("{family}/")).map_or(self.file.as_str(), |(_, below)| below);
        below.strip_prefix("configs/").unwrap_or(below).to_owned()
    }

    /// The file name without its extension.
    pub(super) fn stem(&self) -> &str {
        let name = self.file.rsplit('/').next().unwrap_or_default();
        name.strip_suffix(".json").unwrap_or(name)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.keys.contains_key(key)
    }

    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.keys.get(key)
    }

    /// Removes and returns a string. A value of another type stays, and is later reported as unread.
    pub(super) fn text(&mut self, key: &str) -> Option<String> {
        let text = self.get(key)?.as_str()?.to_owned();
        self.keys.remove(key);
        Some(text)
    }

    pub(super) fn untranslated(&self, what: &str, why: impl Into<String>) -> Untranslated {
        Untranslated { file: self.file.clone(), what: what.to_owned(), why: why.into() }
    }

    /// Removes and returns a list of strings. A value of another type is reported instead of being
    /// silently read as an empty list.
    pub(super) fn texts(&mut self, key: &str, untranslated: &mut Vec<Untranslated>) -> Vec<String> {
        let Some(value) = self.keys.remove(key) else { return Vec::new() };
        let Value::Array(items) = value else {
            untranslated.push(self.untranslated(key, "expected a list"));
            return Vec::new();
        };
        let mut texts = Vec::new();
        for item in items {
            match item {
                Value::String(text) => texts.push(text),
                other => untranslated.push(self.untranslated(key, format!("expected a text, found {other}"))),
            }
        }
        texts
    }

    /// The entries of a list; none if the key is absent.
    pub(super) fn entries(&self, key: &str) -> Result<&[Value], String> {
        self.get(key).map_or(Ok(&[]), |list| {
            list.as_array().map(Vec::as_slice).ok_or_else(|| format!("`{key}` is not a list"))
        })
    }

    /// Removes a table of golden times in milliseconds and returns the longest allowed time of each test as
    /// TOML: its golden time multiplied by the tolerance factor.
    pub(super) fn times(&mut self, key: &str, untranslated: &mut Vec<Untranslated>) -> Vec<(String, String)> {
        let Some(value) = self.keys.remove(key) else { return Vec::new() };
        let factor = match self.keys.remove("tolerance_factor") {
            None => TOLERANCE_FACTOR,
            Some(factor) => factor.as_f64().unwrap_or_else(|| {
                untranslated.push(self.untranslated("tolerance_factor", "expected a number"));
                TOLERANCE_FACTOR
            }),
        };
        let Value::Object(times) = value else {
            untranslated.push(self.untranslated(key, "expected a table"));
            return Vec::new();
        };
        let mut allowed = Vec::new();
        for (name, time) in times {
            match time.as_f64() {
                Some(time) => allowed.push((name, allowed_time(time, factor))),
                None => untranslated.push(self.untranslated(&format!("{key} {name}"), "expected a number")),
            }
        }
        allowed
    }

    /// Removes a key whose value the configuration does not need.
    pub(super) fn drop_key(&mut self, key: &str) {
        self.keys.remove(key);
    }

    /// Reports the remaining keys, which no code has read.
    pub(super) fn unread(&self, untranslated: &mut Vec<Untranslated>) {
        untranslated
            .extend(self.keys.keys().map(|key| self.untranslated(key, "not a key of a test configuration")));
    }

    /// Reports every key, and every entry of a list or table, as not translated. `reason` returns the reason
    /// for a key.
    pub(super) fn listed(&self, reason: impl Fn(&str) -> String, untranslated: &mut Vec<Untranslated>) {
        for (key, value) in &self.keys {
            let entries: Vec<String> = match value {
                Value::Array(items) => items
                    .iter()
                    .enumerate()
                    .map(|(at, item)| format!("{key}[{at}] {}", short(item)))
                    .collect(),
                Value::Object(entries) => {
                    entries.iter().map(|(name, item)| format!("{key}.{name} {}", short(item))).collect()
                }
                _ => vec![format!("{key} {}", short(value))],
            };
            untranslated.extend(entries.iter().map(|entry| self.untranslated(entry, reason(key))));
        }
    }
}

/// The value on one line, cut off if it is long.
fn short(value: &Value) -> String {
    const LONGEST: usize = 120;
    let text = value.to_string();
    if text.chars().count() <= LONGEST { text } else { text.chars().take(LONGEST).chain(['…']).collect() }
}
