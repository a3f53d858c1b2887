//! Detects files that copy another file with fewer digits or in another unit, so that their values are not
//! equal to the last bit.

use benchgate_core::model::{Lint, LintCode, MetricSeries, Run, Series};

use super::copied::{BY_CHANCE, is_timed};

/// Smallest relative difference of two measurements of one program, for rows with too few values to show it.
const SPREAD: f64 = 1e-3;

/// Largest relative change by rounding.
const COARSEST: f64 = 0.01;

/// Significant digits that the conversion of a unit keeps.
const DIGITS: i32 = 14;

/// Returns the finding that all values of both sides agree except for rounding, in an order and number that
/// chance does not explain.
pub fn lint(base: &Run, head: &Run) -> Option<Lint> {
    let of_head = head.by_name();
    let (mut rows, mut log_p, mut is_rounded) = (0, 0.0, false);
    for benchmark in &base.benchmarks {
        let Some(partner) = of_head.get(&benchmark.name) else { continue };
        for series in benchmark.metrics.iter().filter(|series| is_timed(series)) {
            let Some(other) = partner.metric(&series.metric.name) else { continue };
            let sides = [series, other].map(values);
            let chance = log_chance(&sides)?;
            // Equal values are judged elsewhere, because coarse clocks repeat them.
            if sides[0] != sides[1] {
                is_rounded = true;
                log_p += chance;
            }
            rows += 1;
        }
    }
    let detail = || format!("the values of both sides agree in all {rows} rows, except for rounding");
    (is_rounded && log_p < BY_CHANCE.ln()).then(|| Lint::new(LintCode::RepeatedSamples, detail()))
}

/// Returns the values of a series in their order; for summaries, one of each.
fn values(series: &MetricSeries) -> Vec<f64> {
    match &series.series {
        Series::Processes(processes) => {
            processes.iter().flat_map(|process| process.samples.iter().copied()).collect()
        }
        Series::Summaries(summaries) => {
            summaries.iter().filter_map(|summary| summary.mean.or(summary.median)).collect()
        }
        Series::Exact(_) => Vec::new(),
    }
}

/// Returns the logarithm of the chance that the values of a row agree except for rounding; `None` if they
/// don't.
fn log_chance([base, head]: &[Vec<f64>; 2]) -> Option<f64> {
    if base.len() != head.len() {
        return None;
    }
    let printed = [Printed::new(base), Printed::new(head)];
    let spread = spread(base).min(spread(head));
    let mut log_p = 0.0;
    for (one, two) in base.iter().zip(head) {
        // If a clock is too coarse, both sides show zero.
        if *one == 0.0 && *two == 0.0 {
            continue;
        }
        let [coarse, fine] = {
            let [a, b] = printed.each_ref().map(|printed| printed.step(*one));
            // Few digits don't make different values equal.
            [a.max(b).min(COARSEST * one.abs()), a.min(b)]
        };
        // A value that was cut instead of rounded may be off by a whole step.
        let off = if coarse > 5.0 * fine { coarse } else { 0.5 * coarse };
        if (one - two).abs() > off + one.abs() * 10f64.powi(1 - DIGITS) {
            return None;
        }
        let spread = if base.len() < 4 { SPREAD * one.abs() } else { spread };
        log_p += (2.0 * off / spread).min(1.0).ln();
    }
    Some(log_p)
}

/// Returns how much neighboring values differ, which is little while a process warms up or drifts.
fn spread(values: &[f64]) -> f64 {
    let mut apart: Vec<f64> = values.windows(2).map(|pair| (pair[0] - pair[1]).abs()).collect();
    apart.sort_by(f64::total_cmp);
    apart.get(apart.len() / 2).copied().unwrap_or(0.0)
}

/// The digits and decimals of values that were all printed by one rule.
struct Printed {
    digits: i32,
    decimals: i32,
}

impl Printed {
    fn new(values: &[f64]) -> Self {
        let mut printed = Self { digits: 1, decimals: i32::MIN };
        for value in values.iter().filter(|value| value.is_finite() && **value != 0.0) {
            let text = format!("{:.*e}", DIGITS as usize - 1, value.abs());
            let Some((mantissa, exponent)) = text.split_once('e') else { continue };
            let exponent: i32 = exponent.parse().unwrap_or_default();
            let written = mantissa.trim_end_matches('0').bytes().filter(u8::is_ascii_digit).count();
            let digits = i32::try_from(written).unwrap_or(DIGITS);
            printed.digits = printed.digits.max(digits);
            printed.decimals = printed.decimals.max(digits - 1 - exponent);
        }
        printed
    }

    /// Returns the distance between a value and the next one that could have been printed.
    fn step(&self, value: f64) -> f64 {
        let exponent = if value == 0.0 { 0 } else { value.abs().log10().floor().clamp(-300.0, 300.0) as i32 };
        10f64.powi((exponent + 1 - self.digits).max(self.decimals.saturating_neg()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values with a spread of half a percent, from a generator with this seed.
    fn measured(seed: u64, count: u64) -> Vec<f64> {
        let noise = |at: u64| {
            let mut state = (seed << 32 | at).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            state ^= state >> 29;
            state = state.wrapping_mul(0xBF58_476D_1CE4_E5B9);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        (0..count).map(|at| 122_600.0 * (1.0 + 0.005 * noise(at))).collect()
    }

    fn rounded(values: &[f64], step: f64) -> Vec<f64> {
        values.iter().map(|value| (value / step).round() * step).collect()
    }

    #[test]
    fn a_rounded_copy_is_no_chance_and_another_measurement_does_not_agree() {
        let values = measured(1, 20);
        for step in [0.01, 1.0, 10.0] {
            let chance = log_chance(&[values.clone(), rounded(&values, step)]).unwrap();
            assert!(chance < BY_CHANCE.ln(), "{step}: {chance}");
        }
        assert_eq!(log_chance(&[values.clone(), measured(2, 20)]), None);
        assert_eq!(log_chance(&[values.clone(), rounded(&measured(2, 20), 1.0)]), None);
    }

    #[test]
    fn a_round_number_does_not_agree_with_another() {
        assert_eq!(log_chance(&[vec![100.0], vec![100_000.0]]), None);
        assert_eq!(log_chance(&[vec![100.0], vec![200.0]]), None);
    }

    #[test]
    fn a_time_of_zero_on_both_sides_shows_nothing() {
        let with_zero = |seed| [vec![0.0], rounded(&measured(seed, 20), 1_000.0)].concat();
        let chance = log_chance(&[with_zero(1), with_zero(2)]).unwrap();
        assert!(chance > -1e-9, "{chance}");
    }

    #[test]
    fn values_that_are_too_coarse_to_differ_agree_by_chance() {
        let [base, head] = [1, 2].map(|seed| rounded(&measured(seed, 20), 1_000.0));
        assert_eq!(log_chance(&[base, head]), Some(0.0));
        let chance = log_chance(&[measured(1, 20), rounded(&measured(2, 20), 1_000.0)]).unwrap();
        assert!(chance > -1e-9, "{chance}");
    }
}
