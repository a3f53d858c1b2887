//! The small languages inside strings: durations, names, dates, paths.
//!
//! Each returns the expected form, in words, if the text is invalid.

use std::path::{Component, Path};
use std::time::Duration;

use toml_span::Value;
use toml_span::value::ValueInner;

/// The type of a value, for `expected …, found …`.
pub(super) fn found(value: &Value<'_>) -> &'static str {
    match value.as_ref() {
        ValueInner::String(_) => "a string",
        ValueInner::Integer(_) => "an integer",
        ValueInner::Float(_) => "a number",
        ValueInner::Boolean(_) => "a boolean",
        ValueInner::Array(_) => "an array",
        ValueInner::Table(_) => "a table",
    }
}

/// `40ms`, `2s`, `1.5h`.
pub fn duration(text: &str) -> Option<Duration> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(unit_at);
    let seconds = match unit.trim_start() {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    let number: f64 = number.parse().ok()?;
    // A year is beyond every timeout, and keeps later sums of durations from overflowing.
    const LONGEST: f64 = 366.0 * 86400.0;
    let seconds = number * seconds;
    if !(0.0..=LONGEST).contains(&seconds) {
        return None;
    }
    // Whole nanoseconds: `5us` must not become 4.999 µs by way of a binary fraction.
    Some(Duration::from_nanos((seconds * 1e9).round() as u64))
}

/// An integer or a float.
pub(super) fn number(value: &Value<'_>) -> Option<f64> {
    match value.as_ref() {
        ValueInner::Integer(n) => Some(*n as f64),
        ValueInner::Float(n) if n.is_finite() => Some(*n),
        _ => None,
    }
}

/// A name that is safe in paths, tables and Markdown.
pub(super) fn is_name(text: &str) -> bool {
    const LONGEST: usize = 100;
    text.len() <= LONGEST
        && text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

/// Whether pip accepts the text after `==`, and it can't be an option or a second requirement.
pub(super) fn is_version(text: &str) -> bool {
    text.len() <= 64
        && text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '+'))
}

/// Text for one argument of a tool: not empty, one line, not endless.
pub(super) fn is_line(text: &str) -> bool {
    const LONGEST: usize = 4096;
    !text.is_empty() && text.len() <= LONGEST && !text.chars().any(char::is_control)
}

/// An `https` (or `http`) address without credentials in it.
pub(super) fn is_url(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| {
        let authority = rest.split('/').next().unwrap_or_default();
        !authority.is_empty() && !authority.contains('@')
    }) && is_line(text)
        && !text.contains(' ')
}

/// A relative path that never leaves the folder it starts at.
pub(super) fn is_inside(path: &str) -> bool {
    is_line(path)
        && !path.contains('\\')
        && Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// A relative path; code that opens files checks whether `..` stays inside the repository.
pub(super) fn is_relative(path: &str) -> bool {
    is_line(path)
        && !path.contains('\\')
        && Path::new(path)
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir | Component::ParentDir))
}

/// IREE's floating-point types of eight bits.
const FLOAT8: [&str; 4] = ["f8E4M3FN", "f8E4M3FNUZ", "f8E5M2", "f8E5M2FNUZ"];

/// IREE's own notation of an input: `1x3x224x224xf32=1`, `f32=0.5`, `4xi64=1 2 3 4`. With `@`, the tool reads
/// a file, whose content would be in no digest.
pub(super) fn is_literal_input(text: &str) -> bool {
    let shape_and_type = text.split('=').next().unwrap_or_default();
    let mut parts = shape_and_type.split('x').collect::<Vec<_>>();
    let Some(element) = parts.pop() else { return false };
    let letters = element.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_known = matches!(letters, "f" | "bf" | "i" | "si" | "ui") && letters.len() < element.len()
        || FLOAT8.contains(&element);
    parts.iter().all(|part| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit()))
        && is_known
        && !text.contains('@')
        && is_line(text)
}
