//! Parsers and checks for values that are written as strings: durations, names, dates, paths.

use std::path::{Component, Path};
use std::time::Duration;

use toml_span::Value;
use toml_span::value::ValueInner;

/// The type of a value, for messages of the form `expected …, found …`.
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

/// Parses a duration such as `40ms`, `2s` or `1.5h`.
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
    // A year is longer than any sensible timeout, and short enough that sums of durations don't overflow.
    const LONGEST: f64 = 366.0 * 86400.0;
    let seconds = number * seconds;
    if !(0.0..=LONGEST).contains(&seconds) {
        return None;
    }
    // The value is rounded to whole nanoseconds, so that the binary fraction does not turn `5us` into 4.999
    // µs.
    Some(Duration::from_nanos((seconds * 1e9).round() as u64))
}

/// The value of an integer or a float.
pub(super) fn number(value: &Value<'_>) -> Option<f64> {
    match value.as_ref() {
        ValueInner::Integer(n) => Some(*n as f64),
        ValueInner::Float(n) if n.is_finite() => Some(*n),
        _ => None,
    }
}

/// Returns true if a name is safe in paths, tables and Markdown.
pub(super) fn is_name(text: &str) -> bool {
    const LONGEST: usize = 100;
    text.len() <= LONGEST
        && text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

/// Returns true if pip accepts the text after `==`, and cannot read it as an option or a second requirement.
pub(super) fn is_version(text: &str) -> bool {
    text.len() <= 64
        && text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '+'))
}

/// Returns true if the text can be one argument of a tool: a single line that is neither empty nor very long.
pub(super) fn is_line(text: &str) -> bool {
    const LONGEST: usize = 4096;
    !text.is_empty() && text.len() <= LONGEST && !text.chars().any(char::is_control)
}

/// Returns true for an `https` or `http` URL without credentials.
pub(super) fn is_url(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| {
        let authority = rest.split('/').next().unwrap_or_default();
        !authority.is_empty() && !authority.contains('@')
    }) && is_line(text)
        && !text.contains(' ')
}

/// Returns true for a relative path that never leaves the folder in which it starts.
pub(super) fn is_inside(path: &str) -> bool {
    is_line(path)
        && !path.contains('\\')
        && Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// Returns true for a relative path. The code that opens files checks that `..` does not leave the
/// repository.
pub(super) fn is_relative(path: &str) -> bool {
    is_line(path)
        && !path.contains('\\')
        && Path::new(path)
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir | Component::ParentDir))
}

/// IREE's 8-bit floating-point types.
const FLOAT8: [&str; 4] = ["f8E4M3FN", "f8E4M3FNUZ", "f8E5M2", "f8E5M2FNUZ"];

/// Returns true for an input in IREE's notation, such as `1x3x224x224xf32=1`, `f32=0.5` or `4xi64=1 2 3 4`.
/// `@` is refused: it makes the tool read a file, whose content would not be part of any digest.
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
