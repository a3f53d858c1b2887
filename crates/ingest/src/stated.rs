//! Comparison of a file's statements about its samples with the samples: a file that was cut, edited or put together
//! from parts contradicts itself.

use benchgate_core::model::{Benchmark, Lint, LintCode, Summary};

/// Share by which a stated number and that of the samples may differ: some tools print three digits.
const ROUNDING: f64 = 0.01;

/// Whether two numbers are the same but for rounding. A number that is not finite is ignored.
pub(super) fn agree(one: f64, two: f64) -> bool {
    let apart = (one - two).abs();
    apart.is_nan() || apart <= ROUNDING * one.abs().max(two.abs())
}

/// A contradiction, which prevents a verdict about the benchmark.
pub(super) fn contradict(benchmark: &mut Benchmark, detail: impl Into<String>) {
    benchmark.lints.push(Lint::new(LintCode::Contradictory, detail));
}

/// Compares a count that the file states with the actual number of `what`.
pub(super) fn check_count(benchmark: &mut Benchmark, stated: Option<u64>, found: usize, what: &str) {
    if let Some(stated) = stated.filter(|stated| *stated != found as u64) {
        contradict(benchmark, format!("{found} {what} where the file states {stated}"));
    }
}

/// Compares the mean that the file states with that of the samples, in the tool's unit.
pub(super) fn check_mean(benchmark: &mut Benchmark, stated: Option<f64>, samples: &[f64]) {
    let mean = samples.iter().sum::<f64>() / samples.len() as f64;
    if let Some(stated) = stated.filter(|stated| !agree(*stated, mean)) {
        contradict(
            benchmark,
            format!("the mean of the samples is {mean:.4e}, and the file states {stated:.4e}"),
        );
    }
}

/// Whether a summary's mean and median are within its extremes, and its median within its quartiles.
pub(super) fn is_ordered(summary: &Summary) -> bool {
    let is_sorted = |values: &[Option<f64>]| {
        let known: Vec<f64> = values.iter().copied().flatten().collect();
        known.windows(2).all(|pair| pair[0] <= pair[1] || agree(pair[0], pair[1]))
    };
    is_sorted(&[summary.min, summary.q1, summary.median, summary.q3, summary.max])
        && is_sorted(&[summary.min, summary.mean, summary.max])
}
