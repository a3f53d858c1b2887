//! Times that a tool rounded to a few digits, so that their rounding can hide or create a change.

use std::collections::HashMap;

use benchgate_core::model::{Lint, LintCode, MetricSeries, Series, Unit};
use benchgate_stats::describe;

use super::series::{self, values};

/// Relative rounding error above which rounding alone exceeds half of the default floor of 1 %.
const COARSE: f64 = 0.005;

/// Largest number of digits whose rounding error can exceed [`COARSE`].
const FEW_DIGITS: i32 = 3;

/// Number of different times that shows that noise is larger than the rounding, which then averages out, if none of
/// them is that of most repetitions.
const NOT_ROUNDED: usize = 4;

/// Number of different times, and share of the second most frequent one, from which noise is nearly as large as a step, so
/// that the error of their mean is at most a fifth of that of a single one.
const DIFFERENT: usize = 3;
const DITHERED: f64 = 0.1;
const OF_MEAN: f64 = 0.2;

/// Number of values with few digits that shows that a tool rounds. One can have few by chance, or because a person wrote it.
const ENOUGH: usize = 3;

/// Number of times that end in zeros because they were rounded.
const MEASURED: usize = 12;

/// Units in which tools print times, in nanoseconds.
const WHOLE_UNITS: [f64; 4] = [1.0, 1e3, 1e6, 1e9];

/// Returns the finding that all times of both sides have so few digits that their rounding can explain the change, or hide
/// one.
pub fn lint(base: &MetricSeries, head: &MetricSeries) -> Option<Lint> {
    let sides = [base, head];
    let is_exact = sides.iter().any(|side| matches!(side.series, Series::Exact(_)));
    if base.metric.unit != Unit::Nanoseconds || is_exact {
        return None;
    }
    let times = sides.map(values);
    let places: Vec<f64> = times.iter().flatten().map(|time| place(*time)).collect::<Option<_>>()?;
    let place = places.into_iter().fold(f64::INFINITY, f64::min);
    let is_whole = WHOLE_UNITS.contains(&place);
    let steps = times.each_ref().map(|times| Steps::new(times));
    let is_evident = is_whole || steps.iter().any(|steps| steps.all >= ENOUGH);
    if !is_evident || steps.iter().all(Steps::average_out) {
        return None;
    }
    let is_dithered = steps.iter().all(Steps::are_dithered);
    let typical = |at: usize| match is_dithered {
        true => describe::mean(&times[at]),
        false => Some(series::described(sides[at])?.location),
    };
    let (one, other) = (typical(0)?, typical(1)?);
    let (least, most) = (one.min(other), one.max(other));
    let is_by_hand = steps.iter().all(|steps| steps.all < MEASURED);
    let printed = if most > least * (1.0 + COARSE) && is_by_hand {
        // A few different times may end in zeros: 1000 and 1100 ns.
        WHOLE_UNITS.into_iter().rfind(|unit| *unit <= place).unwrap_or(place)
    } else if least < 10.0 * place && !is_whole {
        // A tool that does not print whole units prints two digits at least.
        place / 10.0
    } else {
        place
    };
    let error = 0.5 * printed * if is_dithered { OF_MEAN } else { 1.0 };
    let is_hidden = most - error < (least + error) * (1.0 + COARSE);
    (error > COARSE * least && is_hidden).then(|| {
        let share = 100.0 * error / least;
        Lint::new(
            LintCode::RoundedTime,
            format!("the times have so few digits that rounding changes them by up to {share:.1} %"),
        )
    })
}

/// Returns whether the values of a metric have few decimal digits and differ in few steps, so that equal ones are no copies.
pub fn is_rounded(series: &MetricSeries) -> bool {
    let values = values(series);
    values.iter().all(|value| place(*value).is_some()) && Steps::new(&values).different < NOT_ROUNDED
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

/// The numbers of different times.
struct Steps {
    all: usize,
    different: usize,
    /// How often the most frequent time and the second one occur.
    first: usize,
    second: usize,
}

impl Steps {
    fn new(times: &[f64]) -> Self {
        let mut counts: HashMap<u64, usize> = HashMap::new();
        for time in times {
            *counts.entry(time.to_bits()).or_default() += 1;
        }
        let mut counts: Vec<usize> = counts.into_values().collect();
        counts.sort_unstable_by(|one, two| two.cmp(one));
        let count = |at: usize| counts.get(at).copied().unwrap_or(0);
        Self { all: times.len(), different: counts.len(), first: count(0), second: count(1) }
    }

    fn are_dithered(&self) -> bool {
        self.different >= DIFFERENT && self.second as f64 >= DITHERED * self.all as f64
    }

    fn average_out(&self) -> bool {
        self.different >= NOT_ROUNDED && 2 * self.first <= self.all
    }
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
        // A person writes such times.
        assert!(!is_found(&[1000.0; 5], &[1100.0; 5]));
        assert!(!is_found(&ms(10.04), &ms(10.04)));
        assert!(!is_found(&ms(0.0), &ms(-1.0)) && !is_found(&ms(f64::NAN), &ms(f64::INFINITY)));
    }

    #[test]
    fn a_single_time_shows_rounding_in_whole_units_only() {
        assert!(is_found(&[9.0], &[9.0]) && is_found(&[2000.0], &[3000.0]));
        assert!(!is_found(&[5.1e6], &[5.2e6]));
    }

    #[test]
    fn noise_that_is_larger_than_the_rounding_averages_out() {
        assert!(!is_found(&[60.0, 62.0, 65.0, 61.0, 63.0], &[61.0, 64.0, 60.0, 63.0, 65.0]));
        let steps = |low: f64, shares: [usize; 3]| {
            let values = shares.into_iter().enumerate();
            values.flat_map(|(at, count)| vec![low + at as f64; count]).collect::<Vec<_>>()
        };
        assert!(!is_found(&steps(8.0, [5, 10, 5]), &steps(9.0, [5, 10, 5])));
        assert!(is_found(&steps(8.0, [12, 8, 0]), &steps(8.0, [8, 12, 0])));
        // A small noise next to the border of two steps is none.
        assert!(is_found(&steps(8.0, [19, 5, 0]), &steps(8.0, [5, 19, 0])));
    }
}
