//! The grammar of a configuration: types of keys, and keys of tables.
//!
//! Every table is declared in it once (see [`super::table`]); unknown keys, wrong types, the JSON Schema and the
//! reference page all come from there.

use std::borrow::Cow;
use std::fmt;

use crate::gate::Policy;
use crate::model::Metric;

use super::problems::shown;
use super::view::ConfigView;

/// The type of a key's value.
#[derive(Debug, Clone, Copy)]
pub(super) enum ValueKind {
    /// One line of text.
    Line,
    /// Safe in paths, tables and Markdown.
    Name,
    Version,
    /// 40 hexadecimal digits.
    Commit,
    /// 64 hexadecimal digits.
    Sha256,
    Url,
    /// The address of a history in an object store.
    StoreUrl,
    /// A path that stays inside the folder it starts at.
    Inside,
    /// A relative path that may start with `..`.
    Relative,
    /// Any path.
    AnyPath,
    Bool,
    Integer {
        min: i64,
        max: i64,
    },
    /// Finite, from `min`.
    Number {
        min: f64,
        max: f64,
    },
    Duration,
    /// `"1%"` or 0.01.
    Fraction,
    /// A fraction that is not zero: how much processes differ.
    Spread,
    /// A duration for metrics of time, otherwise a number in the metric's unit.
    Magnitude,
    Date,
    Glob,
    Choice(&'static [&'static str]),
    List(&'static ValueKind),
    /// One value, or a list of at least one.
    OneOrMore(&'static ValueKind),
    /// A table of text by free names.
    Texts,
    /// A table of flags by other names of the same flags.
    Renames,
    /// A table of text, numbers and booleans by free names.
    Scalars,
    Table(&'static Section),
    /// `[[…]]`.
    Tables(&'static Section),
    /// A table of tables by free names.
    Named(&'static Section),
}

impl ValueKind {
    /// The table that it holds, or several of.
    pub(super) fn section(&self) -> Option<&'static Section> {
        match self {
            Self::Table(section) | Self::Tables(section) | Self::Named(section) => Some(section),
            _ => None,
        }
    }
}

pub(super) const COUNT: ValueKind = ValueKind::Integer { min: 1, max: 100_000 };
pub(super) const LINES: ValueKind = ValueKind::List(&ValueKind::Line);
pub(super) const NAMES: ValueKind = ValueKind::List(&ValueKind::Name);

/// The side that chooses a key on a pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChosenBy {
    /// The base: the default.
    Base,
    /// The head, and the report shows its choice.
    Head,
    /// Each key of its table determines it.
    Each,
}

impl ChosenBy {
    pub(super) fn take<T: Clone>(self, own: &mut T, base: &T) {
        if self == Self::Base {
            own.clone_from(base);
        }
    }

    /// A key that differs: `timeout: 300s → 1s`.
    pub(super) fn change<T: PartialEq + fmt::Debug>(
        self,
        key: &str,
        base: &T,
        head: &T,
    ) -> Option<(Self, String)> {
        let text = |value: &T| shown(&as_in_toml(&format!("{value:?}")));
        (base != head).then(|| (self, format!("{key}: {} → {}", text(base), text(head))))
    }
}

/// A value as a configuration would have it: without the names of Rust's types around values, and with words in its case.
fn as_in_toml(debug: &str) -> String {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut text = String::with_capacity(debug.len());
    // Whether each open parenthesis was one of a type.
    let mut of_type = Vec::new();
    let mut rest = debug;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => {
                let mut is_escaped = false;
                let end = rest[1..].find(|c: char| {
                    let ends = c == '"' && !is_escaped;
                    is_escaped = c == '\\' && !is_escaped;
                    ends
                });
                end.map_or(rest.len(), |end| end + 2)
            }
            _ if is_name(first) => rest.find(|c| !is_name(c)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        match first {
            '(' => {
                of_type.push(false);
                text.push('(');
            }
            ')' if of_type.pop() == Some(true) => {}
            _ if !first.is_ascii_alphabetic() => text.push_str(token),
            _ if after.starts_with('(') => {
                of_type.push(true);
                rest = &after[1..];
            }
            _ if after.starts_with(" {") => rest = &after[1..],
            _ if token == "None" => text.push_str("not set"),
            _ => {
                for (at, c) in token.char_indices() {
                    if at > 0 && c.is_ascii_uppercase() {
                        text.push('-');
                    }
                    text.push(if c == '_' { '-' } else { c.to_ascii_lowercase() });
                }
                if let Some(value) = after.strip_prefix(": ") {
                    text.push_str(" = ");
                    rest = value;
                }
            }
        }
    }
    text
}

/// One key.
#[derive(Debug)]
pub(super) struct Field {
    pub key: &'static str,
    pub kind: ValueKind,
    pub by: ChosenBy,
    pub presence: KeyPresence,
    /// Sentences for the reference page and the editor.
    pub doc: &'static str,
}

/// Whether a key is required, and its default.
#[derive(Debug, Clone, Copy)]
pub(super) enum KeyPresence {
    Required,
    Optional,
    /// A default, as TOML.
    Text(&'static str),
    /// A default that is computed.
    Made(fn() -> String),
    /// The default of the policy.
    Policy(fn(&Policy) -> String),
    /// The same, and how the policy takes its value.
    Judged(fn(&Policy) -> String, ReadPolicy),
}

impl Field {
    /// Whether it describes every key that the table does not name.
    pub(super) fn is_any_name(&self) -> bool {
        self.key.starts_with('<')
    }

    /// This field, but not chosen by the base on a pull request.
    pub(super) const fn by(self, by: ChosenBy) -> Self {
        Self { by, ..self }
    }

    pub(super) fn is_required(&self) -> bool {
        matches!(self.presence, KeyPresence::Required)
    }

    /// The default as TOML, if it is one value.
    pub(super) fn default(&self) -> Option<Cow<'static, str>> {
        Some(match self.presence {
            KeyPresence::Required | KeyPresence::Optional => return None,
            KeyPresence::Text(text) => Cow::Borrowed(text),
            KeyPresence::Made(make) => Cow::Owned(make()),
            KeyPresence::Policy(read) | KeyPresence::Judged(read, _) => Cow::Owned(read(&Policy::default())),
        })
    }
}

/// One table.
#[derive(Debug)]
pub(super) struct Section {
    /// As written in messages: `[measure]`, `[[model]]`.
    pub title: &'static str,
    pub doc: &'static str,
    pub fields: &'static [Field],
}

impl Section {
    /// The documentation; `{metrics}` stands for the names of the metrics that a suite measures.
    pub(super) fn about(&self) -> String {
        let names = Metric::BUILT_IN.map(|metric| format!("`{}`", metric.name)).join(", ");
        self.doc.replace("{metrics}", &names)
    }

    /// The field of this key: its own, or the one that stands for every other name (`<type>`).
    pub(super) fn field(&self, key: &str) -> Option<&'static Field> {
        let own = self.fields.iter().find(|field| field.key == key);
        own.or_else(|| self.fields.iter().find(|field| field.is_any_name()))
    }
}

/// An optional key.
pub(super) const fn optional(key: &'static str, kind: ValueKind, doc: &'static str) -> Field {
    Field { key, kind, by: ChosenBy::Base, presence: KeyPresence::Optional, doc }
}

/// An optional key with one default.
pub(super) const fn defaulted(
    key: &'static str,
    kind: ValueKind,
    default: &'static str,
    doc: &'static str,
) -> Field {
    Field { key, kind, by: ChosenBy::Base, presence: KeyPresence::Text(default), doc }
}

/// Puts a key's value into a policy.
pub(super) type ReadPolicy = fn(&mut Policy, ConfigView<'_, '_>);

/// A key of the policy: the text of its value, which is that of the default policy if the key is absent, and its reading.
pub(super) const fn of_policy(
    key: &'static str,
    kind: ValueKind,
    written: fn(&Policy) -> String,
    read: ReadPolicy,
    doc: &'static str,
) -> Field {
    Field { key, kind, by: ChosenBy::Base, presence: KeyPresence::Judged(written, read), doc }
}

/// A key that must be there.
pub(super) const fn required(key: &'static str, kind: ValueKind, doc: &'static str) -> Field {
    Field { key, kind, by: ChosenBy::Base, presence: KeyPresence::Required, doc }
}

#[cfg(test)]
mod tests {
    use super::as_in_toml;

    #[test]
    fn a_value_is_shown_as_a_configuration_has_it() {
        for (debug, toml) in [
            ("Some(300s)", "300s"),
            ("None", "not set"),
            ("Some(OnChange)", "on-change"),
            (r#"Words(["a (b)", "Some(\"x\")"])"#, r#"["a (b)", "Some(\"x\")"]"#),
            (
                r#"Pin { version: "3.1.0", commit: "1a", source: Path("b") }"#,
                r#"{ version = "3.1.0", commit = "1a", source = "b" }"#,
            ),
            (r#"{"A_B": "c"}"#, r#"{"A_B": "c"}"#),
            (r#"[Url { compiler: ("u", "s") }]"#, r#"[{ compiler = ("u", "s") }]"#),
        ] {
            assert_eq!(as_in_toml(debug), toml);
        }
    }
}
