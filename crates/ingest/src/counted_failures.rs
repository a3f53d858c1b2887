//! Metrics that count failures: a program that prints them may end with success although it did less work, or none.

use benchgate_core::model::{Benchmark, Lint, LintCode, MetricSeries, Series};

/// Words in the names of metrics that count failures, whatever else the name says.
const FAILURES: &str =
    "failed failures nan nans mismatch mismatches mismatched crashes crashed timeouts oom diverged";

/// Words that count failures if all other words of the name are in [`OF_COUNTS`].
const ERRORS: &str = "error errors failure fail fails err errs exceptions aborted aborts invalid wrong incorrect skipped inf infs";
const OF_COUNTS: &str =
    "count counts num number n total of rate per op s sec second iteration check checks runtime is has";

/// Returns the finding for each metric that counts failures, if any was counted. Base may have counted some as well,
/// so the detail doesn't contain their number.
pub(super) fn problems(benchmark: &Benchmark) -> Vec<Lint> {
    let failing = benchmark.metrics.iter().filter(|series| counts_failures(series) && is_above_zero(series));
    failing.map(|series| more_than_zero(&series.metric.name)).collect()
}

fn is_above_zero(series: &MetricSeries) -> bool {
    let above = |value: &f64| *value > 0.0;
    match &series.series {
        Series::Exact(value) => above(value),
        Series::Processes(processes) => processes.iter().flat_map(|process| &process.samples).any(above),
        Series::Summaries(summaries) => {
            let stated = summaries.iter().flat_map(|summary| [summary.mean, summary.median, summary.max]);
            stated.flatten().any(|value| value > 0.0)
        }
    }
}

/// Returns the finding for a value that is not read as a metric.
pub(super) fn problem(name: &str, value: f64) -> Option<Lint> {
    (value > 0.0 && is_name(name, value.fract() == 0.0)).then(|| more_than_zero(name))
}

fn more_than_zero(name: &str) -> Lint {
    Lint::new(LintCode::ReportedProblem, format!("`{name}` is more than 0"))
}

fn counts_failures(series: &MetricSeries) -> bool {
    is_name(&series.metric.name, is_whole(series))
}

/// Returns whether a metric of this name counts failures: `errors`, `error_count`, `num_failed_requests`.
/// `error` can also name a deviation, but only a count is a whole number.
fn is_name(name: &str, is_whole: bool) -> bool {
    let name = name.to_ascii_lowercase();
    let words = || name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let is_in = |known: &str, word: &str| known.split_ascii_whitespace().any(|known| known == word);
    let is_deviation = matches!(name.as_str(), "error" | "err") && !is_whole;
    words().any(|word| is_in(FAILURES, word))
        || !is_deviation
            && words().any(|word| is_in(ERRORS, word))
            && words().all(|word| is_in(ERRORS, word) || is_in(OF_COUNTS, word))
}

fn is_whole(series: &MetricSeries) -> bool {
    let whole = |value: &f64| value.fract() == 0.0;
    match &series.series {
        Series::Exact(value) => whole(value),
        Series::Processes(processes) => processes.iter().flat_map(|process| &process.samples).all(whole),
        Series::Summaries(summaries) => {
            summaries.iter().filter_map(|summary| summary.mean).all(|mean| whole(&mean))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::google_benchmark::counter_metric;
    use benchgate_core::model::Process;

    #[test]
    fn counts_of_failures_are_known_by_their_names() {
        let counts = |name: &str, value: f64| {
            let processes = vec![Process { samples: vec![value], ..Process::default() }];
            counts_failures(&MetricSeries {
                metric: counter_metric(name),
                series: Series::Processes(processes),
            })
        };
        for name in [
            "errors",
            "error",
            "error_count",
            "failures",
            "nan_count",
            "NaNs",
            "errors/op",
            "failed_requests",
        ] {
            assert!(counts(name, 3.0), "{name}");
        }
        for name in
            ["error", "max_error", "rel_err", "page-faults", "cache_misses", "items-per-second", "inflight"]
        {
            assert!(!counts(name, 0.5), "{name}");
        }
    }
}
