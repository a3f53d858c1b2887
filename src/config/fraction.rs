//! Fractions and probabilities in the configuration and on the command line. Both use the same parser and the
//! same bounds, so that neither accepts a typo that loosens the gate.
//!
//! If a value is out of bounds, each function returns a description of the expected form.

use toml_span::Value;

use super::values;

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
    match (value.as_str(), values::number(value)) {
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
