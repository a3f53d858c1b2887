//! Times that a tool rounded to a few digits, so that their rounding can hide or create a change.

use std::collections::HashMap;

use benchgate_core::model::{Lint, LintCode, MetricSeries, Series, Unit};

use super::series::{self, values};

/// Relative rounding error above which rounding alone exceeds half of the default floor of 1 %.
const COARSE: f64 = 0.005;

/// Largest number of digits whose rounding error can exceed [`COARSE`].
const FEW_DIGITS: i32 = 3;

/// Number of different times that shows that noise is larger than the rounding, which then averages out, if none of
/// them is that of most repetitions.
const NOT_ROUNDED: usize = 4;

/// Number of values with few digits that shows that a tool rounds.
const ENOUGH: usize = 3;

/// Units of time, in nanoseconds. A tool may print a time in whole ones, but otherwise prints two digits at least.
const WHOLE_UNITS: [f64; 4] = [1.0, 1e3, 1e6, 1e9];

/// Returns the finding that all times of both sides have so few digits that their rounding can explain the change, or hide
/// one.
pub fn lint(base: &MetricSeries, head: &MetricSeries) -> Option<Lint> {
    let is_exact = [base, head].into_iter().any(|side| matches!(side.series, Series::Exact(_)));
    if base.metric.unit != Unit::Nanoseconds || is_exact {
        return None;
    }
    let sides = [base, head];
    let [base, head] = sides.map(values);
    let place =
        base.iter().chain(&head).try_fold(f64::INFINITY, |least, time| Some(least.min(place(*time)?)))?;
    let [one, other] = sides.map(|side| Some(series::described(side)?.location));
    let (one, other) = one.zip(other)?;
    let (least, most) = (one.min(other), one.max(other));
    let is_one_digit = least < 10.0 * place && !WHOLE_UNITS.contains(&place);
    let half = 0.5 * if is_one_digit { place / 10.0 } else { place };
    let is_hidden = most - half < (least + half) * (1.0 + COARSE);
    // One value can have few digits by chance, or because a person wrote it.
    let is_evident = place == 1.0 || base.len().max(head.len()) >= ENOUGH;
    let is_rounded = is_evident && (is_repeated(&base) || is_repeated(&head));
    (half > COARSE * least && is_hidden && is_rounded).then(|| {
        let share = 100.0 * half / least;
        Lint::new(
            LintCode::RoundedTime,
            format!("the times have so few digits that rounding changes them by up to {share:.1} %"),
        )
    })
}

/// Returns whether all values of a metric have few decimal digits, so that equal ones are no copies.
pub fn has_few_digits(series: &MetricSeries) -> bool {
    values(series).into_iter().all(|value| place(value).is_some())
}

/// Returns the value of the last place of a positive number with a few decimal digits; `None` if it has more.
fn place(value: f64) -> Option<f64> {
    if !value.is_finite() || value <= 0.0 {
        return None;
    }
    let exponent = value.log10().floor() as i32;
    (0..FEW_DIGITS).map(|digits| 10f64.powi(exponent - digits)).find(|place| {
        let places = value / place;
        (places - places.round()).abs() < 1e-9 * places
    })
}

/// Returns whether the values don't differ by more than their rounding.
fn is_repeated(values: &[f64]) -> bool {
    let mut different: HashMap<u64, usize> = HashMap::new();
    for value in values {
        *different.entry(value.to_bits()).or_default() += 1;
    }
    let most = different.values().copied().max().unwrap_or(0);
    different.len() < NOT_ROUNDED || 2 * most > values.len()
}

#[cfg(test)]
mod tests {
    use benchgate_core::model::{Metric, Process};

    use super::*;

    fn times(values: &[f64]) -> MetricSeries {
        let processes = values.iter().map(|time| Process { samples: vec![*time], ..Process::default() });
        MetricSeries { metric: Metric::LATENCY, series: Series::Processes(processes.collect()) }
    }

    fn is_found(base: &[f64], head: &[f64]) -> bool {
        lint(&times(base), &times(head)).is_some()
    }

    #[test]
    fn rounding_that_can_hide_a_change_is_found_and_no_larger_change() {
        let ms = |time: f64| [1e6 * time; 5];
        assert!(is_found(&ms(120.0), &ms(120.0)));
        assert!(is_found(&ms(10.0), &ms(11.0)));
        assert!(!is_found(&ms(10.0), &ms(12.0)));
        assert!(!is_found(&ms(10.04), &ms(10.04)));
        assert!(!is_found(&ms(0.0), &ms(-1.0)) && !is_found(&ms(f64::NAN), &ms(f64::INFINITY)));
    }

    #[test]
    fn a_single_time_shows_rounding_in_whole_nanoseconds_only() {
        assert!(is_found(&[9.0], &[9.0]));
        assert!(!is_found(&[9e6], &[9e6]));
    }

    #[test]
    fn noise_that_is_larger_than_the_rounding_averages_out() {
        assert!(!is_found(&[60.0, 62.0, 65.0, 61.0, 63.0], &[61.0, 64.0, 60.0, 63.0, 65.0]));
    }
}
