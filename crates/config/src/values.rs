//! Reads the values of a configuration: durations, names, dates, paths, fractions and probabilities. Fractions are read
//! alike on the command line.

use std::collections::BTreeMap;
use std::path::{Component, Path};
use std::str::FromStr;
use std::time::Duration;

use toml_span::Value;
use toml_span::value::ValueInner;

use benchgate_core::model::{is_hidden, without_commands};
use benchgate_core::numerics::RandomTensor;

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

/// Text from the file in a form that is safe in a message: hidden characters are escaped, GitHub's workflow
/// commands are defused, and long text is cut off.
pub(super) fn shown(text: &str) -> String {
    const LONGEST: usize = 80;
    let mut out = String::new();
    for c in text.chars().take(LONGEST) {
        if is_hidden(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    if text.chars().nth(LONGEST).is_some() {
        out.push('…');
    }
    without_commands(&out)
}

/// Returns true for an input in IREE's notation, such as `1x3x224x224xf32=1`, `f32=0.5` or `4xi64=1 2 3 4`; a bare number
/// is an argument that is not a tensor. `@` is refused: it makes the tool read a file, whose content would not be part of any digest.
pub(super) fn is_literal_input(text: &str) -> bool {
    if text.starts_with(|c: char| c.is_ascii_digit() || c == '-') && text.parse().is_ok_and(f64::is_finite) {
        return true;
    }
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

/// Parses an input of random numbers.
///
/// # Errors
/// The notation to use instead.
pub(super) fn random_input(text: &str) -> Result<RandomTensor, String> {
    let Some(random) = RandomTensor::parse(text) else {
        let form = "1x3xf32=random(seed=42, skip=0, scale=1, offset=0)";
        return Err(format!("expected `{form}`, found `{}`", shown(text)));
    };
    let Some(flaw) = random.integer_flaw() else { return Ok(random) };
    let (other, last) = random.with_integers();
    Err(format!(
        "expected `{other}` for integers from 0 to {last}, found `{}`: {flaw}, because numbers between 0 and 1 are \
         multiplied by `scale` and truncated",
        shown(text)
    ))
}

/// The smallest bare number that is refused: from here on it is far more likely that a percent sign is
/// missing than that a floor of 20 % is meant.
pub(super) const LARGEST_BARE: f64 = 0.2;
/// No real hardware has shown a smaller spread between processes.
const LEAST_SPREAD: f64 = 1e-4;
/// Bounds of `alpha`. One false positive in a million suites is negligible, and with a much smaller value no
/// row could regress or pass.
pub(super) const ALPHA: (f64, f64) = (1e-6, 0.4);

/// Parses `1%`, or a bare number below 0.2 such as 0.01.
///
/// # Errors
/// Text that is not such a number, or a value that makes no sense as a floor or tolerance.
pub fn fraction(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let Some(percent) = text.strip_suffix('%') else {
        return bare(text.parse().map_err(|_| expected())?);
    };
    let percent: f64 = percent.trim().parse().map_err(|_| expected())?;
    if (0.0..100.0).contains(&percent) {
        Ok(percent / 100.0)
    } else {
        Err("expected a percentage from 0% to less than 100%".to_owned())
    }
}

/// A number without a percent sign.
fn bare(number: f64) -> Result<f64, String> {
    if (0.0..LARGEST_BARE).contains(&number) {
        return Ok(number);
    }
    // `1` probably means 1 %; `0.5` could mean 0.5 % or 50 %.
    let advice = match number {
        n if (1.0..100.0).contains(&n) => format!("; did you mean {n}%?"),
        n if (LARGEST_BARE..1.0).contains(&n) => format!("; did you mean {n}% or {}%?", shifted(n)),
        _ => String::new(),
    };
    Err(format!("{}{advice}", expected()))
}

/// A fraction as a percentage, rounded to remove the digits that binary fractions add.
fn shifted(fraction: f64) -> f64 {
    (fraction * 1e8).round() / 1e6
}

fn expected() -> String {
    format!("expected a percentage such as 1%, or a fraction below {LARGEST_BARE} such as 0.01")
}

/// Parses the spread between processes, which is a fraction.
///
/// # Errors
/// Those of [`fraction`], and a spread that is too small to be real.
pub fn spread(text: &str) -> Result<f64, String> {
    fraction(text).and_then(true_spread)
}

fn true_spread(value: f64) -> Result<f64, String> {
    if value >= LEAST_SPREAD {
        return Ok(value);
    }
    Err(format!(
        "expected a spread of at least {}%: processes are never exactly alike",
        shifted(LEAST_SPREAD)
    ))
}

/// Parses a probability of error, which is a number.
///
/// # Errors
/// Text that is not a number, or a level at which nothing, or everything, would be significant.
pub fn alpha(text: &str) -> Result<f64, String> {
    let (least, largest) = ALPHA;
    let value: Option<f64> = text.trim().parse().ok();
    value
        .filter(|value| (least..=largest).contains(value))
        .ok_or_else(|| format!("expected a probability from {least} to {largest}"))
}

/// Reads a [`fraction`] from a TOML value: a text with a percent sign, or a number.
pub(super) fn fraction_of(value: &Value<'_>) -> Result<f64, String> {
    match (value.as_str(), number(value)) {
        // TOML has numbers, so a string without a percent sign is a mistake.
        (Some(text), _) if text.ends_with('%') => fraction(text),
        (None, Some(number)) => bare(number),
        _ => Err(expected()),
    }
}

/// Reads a [`spread`] from a TOML value.
pub(super) fn spread_of(value: &Value<'_>) -> Result<f64, String> {
    fraction_of(value).and_then(true_spread)
}

/// A value that may be absent, in a document that has been checked. Absent values and values of the wrong type are read as
/// empty. Wrong types were reported by the first pass, after which no configuration is returned.
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

    pub(super) fn is_list(self) -> bool {
        self.given.is_some_and(|value| value.as_array().is_some())
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
        self.given.and_then(number)
    }

    pub(super) fn fraction(self) -> Option<f64> {
        self.given.and_then(|value| fraction_of(value).ok())
    }

    pub(super) fn duration(self) -> Option<Duration> {
        self.text().and_then(duration)
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

#[cfg(test)]
mod tests {
    use super::{alpha, fraction, spread};

    #[test]
    fn a_percentage_and_a_fraction_mean_the_same() {
        for text in ["1%", "1 %", "0.01", " 0.01 ", "1.0%"] {
            assert_eq!(fraction(text), Ok(0.01), "{text}");
        }
        assert_eq!(fraction("40%"), Ok(0.4));
        assert_eq!(fraction("0"), Ok(0.0));
        assert_eq!(fraction("0.1999"), Ok(0.1999));
    }

    #[test]
    fn a_bare_number_that_is_a_percentage_is_refused_with_advice() {
        let advice = |text: &str| fraction(text).unwrap_err().split_once("; ").unwrap().1.to_owned();
        assert_eq!(advice("1"), "did you mean 1%?");
        assert_eq!(advice("3"), "did you mean 3%?");
        assert_eq!(advice("0.5"), "did you mean 0.5% or 50%?");
        assert_eq!(advice("0.2"), "did you mean 0.2% or 20%?");
        assert_eq!(advice("0.29"), "did you mean 0.29% or 29%?");
    }

    #[test]
    fn what_no_floor_can_mean_is_refused() {
        for text in [
            "", "%", "much", "-1%", "-0.01", "NaN", "NaN%", "inf", "inf%", "-inf%", "100%", "300%", "1e9",
            "1e9%", "1%%", "0x1", "1,5%",
        ] {
            assert!(fraction(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_spread_of_zero_is_refused() {
        assert_eq!(spread("2%"), Ok(0.02));
        for text in ["0", "0%", "-0", "1e-320", "1e-9%"] {
            assert!(spread(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn an_alpha_at_which_nothing_could_be_decided_is_refused() {
        for text in ["0.01", "1e-6", "0.4"] {
            assert!(alpha(text).is_ok(), "{text}");
        }
        for text in ["0", "-0.01", "1e-7", "1e-30", "1e-200", "1e-320", "0.5", "1", "NaN", "inf", "1%", ""] {
            assert!(alpha(text).is_err(), "{text}");
        }
    }
}
