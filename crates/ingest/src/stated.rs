//! Compares a file's statements about its samples with the samples and with each other: a file that was cut
//! off, edited or pieced together contradicts itself.

use benchgate_core::model::{Benchmark, Lint, LintCode, Summary};

/// Share by which a total and the sum of its parts may differ.
const ROUNDING: f64 = 0.01;

/// Share of the largest number that arithmetic in single precision may lose.
const ARITHMETIC: f64 = 1e-6;

/// Returns whether two numbers are equal except for rounding. A number that is not finite is ignored.
pub(super) fn agree(one: f64, two: f64) -> bool {
    let apart = (one - two).abs();
    apart.is_nan() || apart <= ROUNDING * one.abs().max(two.abs())
}

/// Adds the finding for a contradiction, which prevents a verdict about the benchmark.
pub(super) fn contradict(benchmark: &mut Benchmark, detail: impl Into<String>) {
    benchmark.lints.push(Lint::new(LintCode::Contradictory, detail));
}

/// Compares a count that the file states with the actual number of `what`.
pub(super) fn check_count(benchmark: &mut Benchmark, stated: Option<u64>, found: usize, what: &str) {
    if let Some(stated) = stated.filter(|stated| *stated != found as u64) {
        contradict(benchmark, format!("{found} {what}, but the file states {stated}"));
    }
}

/// Compares what the file states about samples with the samples, both in the tool's unit. Without samples,
/// the statements are compared with each other.
pub(super) fn check_summary(benchmark: &mut Benchmark, samples: &[f64], stated: &Summary) {
    if let Some(detail) = contradiction(samples, stated) {
        contradict(benchmark, detail);
    }
}

/// Describes how the statements of a summary contradict the samples or, without samples, each other.
pub(super) fn contradiction(samples: &[f64], stated: &Summary) -> Option<String> {
    if samples.is_empty() {
        return is_impossible(stated)
            .then(|| "no set of times has the statistics that the file states".to_owned());
    }
    if let Some(n) = stated.n.filter(|n| *n != samples.len() as u64) {
        return Some(format!("{} samples, but the file states {n}", samples.len()));
    }
    if samples.iter().any(|sample| !sample.is_finite()) {
        return None;
    }
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len() - 1;
    let count = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / count;
    let squares = samples.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>();
    // Tools define quantiles differently, but always between the two neighboring samples; and they divide the
    // variance by n or by n − 1.
    let (below, above) = ((sorted.len() / 4).saturating_sub(1), (sorted.len() / 4 + 1).min(last));
    let found = [
        ("mean", stated.mean, mean, mean),
        ("median", stated.median, sorted[last / 2], sorted[sorted.len() / 2]),
        ("least", stated.min, sorted[0], sorted[0]),
        ("largest", stated.max, sorted[last], sorted[last]),
        ("first quartile", stated.q1, sorted[below], sorted[above]),
        ("third quartile", stated.q3, sorted[last - above], sorted[last - below]),
        ("deviation", stated.stddev, (squares / count).sqrt(), (squares / (count - 1.0).max(1.0)).sqrt()),
    ];
    let [ours, theirs] = [Printed::new(samples.iter().copied()), Printed::new(values(stated))];
    let largest = sorted[last].abs().max(sorted[0].abs());
    found.into_iter().find_map(|(name, stated, low, high)| {
        let stated = stated?;
        if !stated.is_finite() {
            return Some(format!("the {name} of the samples is {high:.4e}, but the file's is not a number"));
        }
        let rounded = if name == "deviation" { largest } else { high };
        let open = ours.open(rounded) + theirs.open(stated) + ARITHMETIC * largest;
        (stated < low - open || stated > high + open)
            .then(|| format!("the {name} of the samples is {high:.4e}, but the file states {stated:.4e} (in the file's unit)"))
    })
}

/// Returns whether no samples can have these statistics: a mean or median outside the extremes or quartiles,
/// or a deviation that is too small for the distance between mean and median, or too large for the distance
/// between the extremes.
fn is_impossible(stated: &Summary) -> bool {
    let printed = Printed::new(values(stated));
    let open = |value: f64| printed.open(value) + ARITHMETIC * value.abs();
    let is_above = |one: f64, two: f64| one - two > open(one) + open(two);
    let is_unsorted = |list: &[Option<f64>]| {
        let known: Vec<f64> = list.iter().copied().flatten().collect();
        known.windows(2).any(|pair| is_above(pair[0], pair[1]))
    };
    let (low, high) = stated.interval.unzip();
    let range = stated.max.zip(stated.min).map(|(max, min)| max - min);
    let skew = stated.mean.zip(stated.median).map(|(mean, median)| (mean - median).abs());
    // Nothing follows from a missing deviation, or from the deviation of a single repetition.
    let deviation = stated.stddev.filter(|_| stated.n != Some(1));
    let centre = stated.mean.or(stated.median).map_or(0.0, open);
    let is_wider = |one: Option<f64>, two: Option<f64>| {
        one.zip(two).is_some_and(|(one, two)| one - two > 2.0 * centre + open(one) + open(two))
    };
    is_unsorted(&[stated.min, stated.q1, stated.median, stated.q3, stated.max])
        || is_unsorted(&[stated.min, stated.mean, stated.max])
        || is_unsorted(&[low, stated.median.or(stated.mean), high])
        || is_wider(deviation, range)
        || is_wider(skew, deviation)
}

fn values(stated: &Summary) -> impl Iterator<Item = f64> {
    let Summary { mean, median, stddev, q1, q3, min, max, .. } = *stated;
    [mean, median, stddev, q1, q3, min, max].into_iter().flatten()
}

/// The significant digits and decimals of numbers that were all printed by one rule.
struct Printed {
    digits: i32,
    decimals: i32,
}

impl Printed {
    fn new(values: impl Iterator<Item = f64>) -> Self {
        let mut printed = Self { digits: 1, decimals: 0 };
        // Among this many numbers, some don't end in zeros.
        for value in values.filter(|value| value.is_finite() && *value != 0.0).take(64) {
            // Converting units may change the last digit of a double.
            let text = format!("{:.14e}", value.abs());
            let Some((mantissa, exponent)) = text.split_once('e') else { continue };
            let exponent: i32 = exponent.parse().unwrap_or_default();
            let digits = mantissa.trim_end_matches('0').trim_end_matches('.').len().saturating_sub(1).max(1);
            let digits = i32::try_from(digits).unwrap_or(i32::MAX);
            printed.digits = printed.digits.max(digits).max(exponent + 1);
            printed.decimals = printed.decimals.max(digits - 1 - exponent);
        }
        printed
    }

    /// Returns how far a printed number may be from the original: half a unit in its last place.
    fn open(&self, value: f64) -> f64 {
        let exponent = if value == 0.0 { 0 } else { value.abs().log10().floor().clamp(-400.0, 400.0) as i32 };
        0.499 * 10f64.powi((exponent + 1 - self.digits).max(-self.decimals))
    }
}
