//! The types of keys, and the keys of tables.
//!
//! Every table is declared once in these terms (see [`super::table`]). The checks for unknown keys and wrong
//! types, the JSON Schema and the reference page all use that declaration.

use std::borrow::Cow;
use std::fmt;

use benchgate_core::model::Metric;
use benchgate_gate::Policy;

use super::values::ConfigView;
use super::values::shown;

/// The type of a key's value.
#[derive(Debug, Clone, Copy)]
pub(super) enum ValueKind {
    /// One line of text.
    Line,
    /// A name that is safe in paths, tables and Markdown.
    Name,
    Version,
    /// A commit, as 40 hexadecimal digits.
    Commit,
    /// A SHA-256, as 64 hexadecimal digits.
    Sha256,
    Url,
    /// The URL of a baseline history in an object store.
    StoreUrl,
    /// A path that does not leave the folder in which it starts.
    Inside,
    /// A relative path that may start with `..`.
    Relative,
    AnyPath,
    Bool,
    Integer {
        min: i64,
        max: i64,
    },
    /// A finite number from `min` to `max`.
    Number {
        min: f64,
        max: f64,
    },
    Duration,
    /// A fraction, written as `"1%"` or 0.01.
    Fraction,
    /// The coefficient of variation between processes, as a fraction above zero.
    Spread,
    /// A duration for metrics of time; otherwise a number in the metric's unit.
    Magnitude,
    Date,
    Glob,
    Choice(&'static [&'static str]),
    List(&'static ValueKind),
    /// One value, or a list with at least one.
    OneOrMore(&'static ValueKind),
    /// A table whose keys are free and whose values are text.
    Texts,
    /// A table from names of flags to other names of the same flags.
    Renames,
    /// A table whose keys are free and whose values are text, numbers or booleans.
    Scalars,
    Table(&'static Section),
    /// An array of tables, `[[…]]`.
    Tables(&'static Section),
    /// A table whose keys are free and whose values are tables.
    Named(&'static Section),
}

impl ValueKind {
    /// The declaration of the table or tables that a value of this type holds.
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

/// The side from which a key is read on a pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChosenBy {
    /// The base, which is the default.
    Base,
    /// The head. The report shows its changes.
    Head,
    /// Each key of the table has its own setting.
    Each,
}

impl ChosenBy {
    pub(super) fn take<T: Clone>(self, own: &mut T, base: &T) {
        if self == Self::Base {
            own.clone_from(base);
        }
    }

    /// A description of a key that differs, such as `timeout: 300s → 1s`.
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

/// Converts `Debug` text into the notation of a configuration: it drops the type names around values, and
/// changes the case of enum variants.
fn as_in_toml(debug: &str) -> String {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut text = String::with_capacity(debug.len());
    // One entry for each open parenthesis: true if a type name came before it.
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

/// The declaration of one key.
#[derive(Debug)]
pub(super) struct Field {
    pub key: &'static str,
    pub kind: ValueKind,
    pub by: ChosenBy,
    pub presence: KeyPresence,
    /// Sentences for the reference page and for editors that use the JSON Schema.
    pub doc: &'static str,
}

/// The default of a key, or whether it is required.
#[derive(Debug, Clone, Copy)]
pub(super) enum KeyPresence {
    Required,
    Optional,
    /// A default as TOML.
    Text(&'static str),
    /// A default that is computed.
    Made(fn() -> String),
    /// The value in the default policy.
    Policy(fn(&Policy) -> String),
    /// The value in the default policy, with the function that puts a configured value into a policy.
    Judged(fn(&Policy) -> String, ReadPolicy),
}

impl Field {
    /// Returns true if the field describes every key that the table does not name.
    pub(super) fn is_any_name(&self) -> bool {
        self.key.starts_with('<')
    }

    /// Returns this field with `by` as the side that chooses it on a pull request.
    pub(super) const fn by(self, by: ChosenBy) -> Self {
        Self { by, ..self }
    }

    pub(super) fn is_required(&self) -> bool {
        matches!(self.presence, KeyPresence::Required)
    }

    /// The default as TOML, if there is one.
    pub(super) fn default(&self) -> Option<Cow<'static, str>> {
        Some(match self.presence {
            KeyPresence::Required | KeyPresence::Optional => return None,
            KeyPresence::Text(text) => Cow::Borrowed(text),
            KeyPresence::Made(make) => Cow::Owned(make()),
            KeyPresence::Policy(read) | KeyPresence::Judged(read, _) => Cow::Owned(read(&Policy::default())),
        })
    }
}

/// The declaration of one table.
#[derive(Debug)]
pub(super) struct Section {
    /// The table's name in messages, such as `[measure]` or `[[model]]`.
    pub title: &'static str,
    pub doc: &'static str,
    pub fields: &'static [Field],
}

impl Section {
    /// The documentation, in which `{metrics}` is replaced by the names of the metrics that a suite measures.
    pub(super) fn about(&self) -> String {
        let names = Metric::BUILT_IN.map(|metric| format!("`{}`", metric.name)).join(", ");
        self.doc.replace("{metrics}", &names)
    }

    /// The field of this key: the one declared for it, or else the one that stands for all other names (such
    /// as `<type>`).
    pub(super) fn field(&self, key: &str) -> Option<&'static Field> {
        let own = self.fields.iter().find(|field| field.key == key);
        own.or_else(|| self.fields.iter().find(|field| field.is_any_name()))
    }
}

pub(super) const fn optional(key: &'static str, kind: ValueKind, doc: &'static str) -> Field {
    Field { key, kind, by: ChosenBy::Base, presence: KeyPresence::Optional, doc }
}

/// An optional key with a fixed default.
pub(super) const fn defaulted(
    key: &'static str,
    kind: ValueKind,
    default: &'static str,
    doc: &'static str,
) -> Field {
    Field { key, kind, by: ChosenBy::Base, presence: KeyPresence::Text(default), doc }
}

/// A function that puts the value of a key into a policy.
pub(super) type ReadPolicy = fn(&mut Policy, ConfigView<'_, '_>);

/// A key that sets one value of the policy. `written` returns that value as TOML, which for the default
/// policy is the key's default, and `read` takes it from a document.
pub(super) const fn of_policy(
    key: &'static str,
    kind: ValueKind,
    written: fn(&Policy) -> String,
    read: ReadPolicy,
    doc: &'static str,
) -> Field {
    Field { key, kind, by: ChosenBy::Base, presence: KeyPresence::Judged(written, read), doc }
}

/// A key that must be present.
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
