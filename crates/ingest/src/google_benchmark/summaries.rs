//! Aggregate rows, and their conversion to summaries for benchmarks without any repetition.

use benchgate_core::model::{
    Benchmark, Lint, LintCode, Metric, MetricSeries, Outcome, Series, Stage, Summary,
};

use super::super::stated::check_summary;
use super::counters::{MAX_COUNTERS, counter_metric, reported_counter, unusable_counter};

/// The content of one aggregate row.
#[derive(Debug)]
pub(super) struct Aggregate {
    pub statistic: Statistic,
    /// Number of repetitions that it summarizes.
    pub count: Option<f64>,
    pub real: f64,
    pub cpu: Option<f64>,
    pub counters: Vec<(String, f64)>,
}

/// Builds the summaries of a benchmark without any repetition.
pub(super) fn summarise(benchmark: &mut Benchmark, aggregates: &[Aggregate]) {
    let real = gather(aggregates, |aggregate| Some(aggregate.real));
    if real.len() > 1 {
        let detail = format!("{} summaries of one name", real.len());
        benchmark.lints.push(Lint::new(LintCode::DuplicateName, detail));
    }
    if !real.iter().any(|summary| summary.mean.is_some() || summary.median.is_some()) {
        let why = "neither mean nor median was kept".to_owned();
        benchmark.outcome = Outcome::Failed { stage: Stage::Benchmark, why };
        return;
    }
    let stated = || real.iter().flat_map(|summary| [summary.mean, summary.median]).flatten();
    let spread = || real.iter().flat_map(|summary| [summary.stddev, summary.min, summary.max]).flatten();
    if stated().chain(spread()).any(|value| !value.is_finite()) {
        benchmark.lints.push(Lint::new(LintCode::NonFinite, "a summary contains NaN or infinity"));
        return;
    }
    if stated().any(|value| value <= 0.0) || spread().any(|value| value < 0.0) {
        benchmark.lints.push(Lint::new(LintCode::ZeroTime, "a summary states a time of zero or less"));
        return;
    }
    real.iter().for_each(|stated| check_summary(benchmark, &[], stated));
    benchmark.metrics.push(MetricSeries { metric: Metric::LATENCY, series: Series::Summaries(real) });
    let cpu = gather(aggregates, |aggregate| aggregate.cpu);
    push_if_sound(benchmark, Metric::CPU_TIME, cpu);
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in aggregates.iter().flat_map(|aggregate| &aggregate.counters) {
        if names.len() < MAX_COUNTERS && !names.contains(&name) {
            names.push(name);
        }
    }
    for name in names {
        let of = |aggregate: &Aggregate| {
            aggregate.counters.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
        };
        push_if_sound(benchmark, counter_metric(name), gather(aggregates, of));
    }
}

fn push_if_sound(benchmark: &mut Benchmark, metric: Metric, summaries: Vec<Summary>) {
    let stated = |summary: &Summary| summary.mean.is_some() || summary.median.is_some();
    if !summaries.iter().any(stated) {
        return;
    }
    let mut all = summaries.iter().flat_map(|s| [s.mean, s.median, s.stddev, s.min, s.max]).flatten();
    match all.find_map(unusable_counter) {
        None => benchmark.metrics.push(MetricSeries { metric, series: Series::Summaries(summaries) }),
        Some(what) => {
            let detail = format!("{}: a value is {what}", metric.name);
            benchmark.lints.push(Lint::new(LintCode::DroppedMetric, detail));
            benchmark.lints.extend(reported_counter(&metric.name, what));
        }
    }
}

/// Returns the summaries; a statistic that appears again begins a new one.
fn gather(aggregates: &[Aggregate], value: impl Fn(&Aggregate) -> Option<f64>) -> Vec<Summary> {
    let mut groups: Vec<Vec<(Statistic, f64)>> = Vec::new();
    let mut counts: Vec<Option<u64>> = Vec::new();
    for aggregate in aggregates.iter().filter(|aggregate| aggregate.statistic != Statistic::Other) {
        let Some(value) = value(aggregate) else { continue };
        let begins = groups
            .last()
            .is_none_or(|group| group.iter().any(|(statistic, _)| *statistic == aggregate.statistic));
        if begins {
            groups.push(Vec::new());
            counts.push(aggregate.count.filter(|n| (1.0..1e15).contains(n)).map(|n| n as u64));
        }
        if let Some(group) = groups.last_mut() {
            group.push((aggregate.statistic, value));
        }
    }
    groups.iter().zip(counts).map(|(group, n)| summary(group, n)).collect()
}

fn summary(group: &[(Statistic, f64)], n: Option<u64>) -> Summary {
    let of = |wanted| group.iter().find(|(statistic, _)| *statistic == wanted).map(|(_, value)| *value);
    let mean = of(Statistic::Mean);
    // If a file states only the coefficient of variation, the deviation follows from it.
    let from_cv = || Some(of(Statistic::Cv)? * mean?).filter(|stddev| stddev.is_finite());
    Summary {
        n,
        mean,
        median: of(Statistic::Median),
        // The console rounds a small deviation to 0.000 ms but still prints its ratio, such as 2.09 %.
        stddev: of(Statistic::Stddev)
            .filter(|&stddev| stddev != 0.0)
            .or_else(from_cv)
            .or(of(Statistic::Stddev)),
        min: of(Statistic::Min),
        max: of(Statistic::Max),
        ..Summary::default()
    }
}

/// The statistic that an aggregate row states about the repetitions before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Statistic {
    Mean,
    Median,
    Stddev,
    /// stddev / mean: a fraction, although it is in the time column.
    Cv,
    Min,
    Max,
    /// An asymptotic fit (`BigO`) over other benchmarks, or its residual (`RMS`); it measures nothing.
    Fit,
    /// A user-defined statistic, which is never a time.
    Other,
}

/// Suffixes of the tool's own statistics, for output that does not mark aggregate rows.
const SUFFIXES: [(&str, Statistic); 8] = [
    ("_mean", Statistic::Mean),
    ("_median", Statistic::Median),
    ("_stddev", Statistic::Stddev),
    ("_cv", Statistic::Cv),
    ("_min", Statistic::Min),
    ("_max", Statistic::Max),
    ("_BigO", Statistic::Fit),
    ("_RMS", Statistic::Fit),
];

impl Statistic {
    /// Parses the tool's `aggregate_name`.
    pub(super) fn parse(name: &str) -> Self {
        match name {
            "mean" => Self::Mean,
            "median" => Self::Median,
            "stddev" => Self::Stddev,
            "cv" => Self::Cv,
            "min" => Self::Min,
            "max" => Self::Max,
            "BigO" | "RMS" => Self::Fit,
            _ => Self::Other,
        }
    }

    /// Returns a summary that holds only this statistic of times.
    pub(super) fn alone(self, value: f64) -> Summary {
        let mut summary = Summary::default();
        let field = match self {
            Self::Mean => &mut summary.mean,
            Self::Median => &mut summary.median,
            Self::Stddev => &mut summary.stddev,
            Self::Min => &mut summary.min,
            Self::Max => &mut summary.max,
            Self::Cv | Self::Fit | Self::Other => return summary,
        };
        *field = Some(value);
        summary
    }

    /// Splits `BM_main_mean` into `BM_main` and the mean. This is only a hint, because a benchmark may have
    /// such a name.
    pub(super) fn split_suffix(name: &str) -> Option<(&str, Self)> {
        SUFFIXES.iter().find_map(|&(suffix, statistic)| {
            name.strip_suffix(suffix).filter(|stem| !stem.is_empty()).map(|stem| (stem, statistic))
        })
    }
}
