//! Aggregate rows, and their conversion to summaries for benchmarks without any repetition.

use benchgate_core::model::{
    Benchmark, Lint, LintCode, Metric, MetricSeries, Outcome, Series, Stage, Summary,
};

use super::super::build::{check_summary, contradiction};
use super::TimeUnit;
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
            benchmark.lints.push(reported_counter(&metric.name, what));
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

/// Facts other than measurements that the rows with one name state. The repetitions in the file are compared with them.
#[derive(Debug, Default)]
pub(super) struct StatedRepetitions {
    instance: Option<Instance>,
    other_instance: bool,
    other_threads: bool,
    /// True if a row states zero iterations, or fewer.
    no_iterations: bool,
    /// Number of repetitions that the rows, or the row of their mean, state.
    repetitions: Option<f64>,
    /// Wall-clock and processor time of each summarizing row, in the tool's unit.
    summaries: Vec<(Statistic, [f64; 2])>,
}

/// Index of a row's benchmark in its program; NaN if the format does not state it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Instance {
    pub family: f64,
    pub in_family: f64,
    pub threads: f64,
    /// Index of the table, if a file has several with a header each because runs were appended to it.
    pub table: f64,
}

impl Instance {
    pub(super) const UNKNOWN: Self =
        Self { family: f64::NAN, in_family: f64::NAN, threads: f64::NAN, table: f64::NAN };

    /// Returns the instance of a row in this table, in a format that states nothing else.
    pub(super) fn of_table(table: u32) -> Self {
        Self { table: f64::from(table), ..Self::UNKNOWN }
    }
}

impl StatedRepetitions {
    /// Adds one repetition; `repetitions` is the total that the row states, if any.
    pub(super) fn repetition(&mut self, instance: Instance, iterations: f64, repetitions: Option<f64>) {
        let first = *self.instance.get_or_insert(instance);
        let differ = |one: f64, two: f64| !one.is_nan() && !two.is_nan() && one != two;
        self.other_instance |= differ(first.family, instance.family)
            || differ(first.in_family, instance.in_family)
            || differ(first.table, instance.table);
        self.other_threads |= differ(first.threads, instance.threads);
        self.no_iterations |= iterations <= 0.0;
        self.repetitions(repetitions);
    }

    /// Adds a row that summarizes repetitions in the same file, in the tool's unit; NaN is ignored.
    pub(super) fn summary(&mut self, statistic: Statistic, times: [f64; 2], repetitions: Option<f64>) {
        self.summaries.push((statistic, times));
        if statistic == Statistic::Mean {
            self.repetitions(repetitions);
        }
    }

    fn repetitions(&mut self, stated: Option<f64>) {
        // Releases before 1.6 write 0 if the number came from the command line.
        let stated = stated.filter(|stated| *stated > 0.0);
        self.repetitions =
            stated.map(|stated| stated.max(self.repetitions.unwrap_or(stated))).or(self.repetitions);
    }

    /// Returns the number of threads if there are several and the name, contrary to the tool's convention,
    /// does not contain it.
    pub(super) fn unnamed_threads(&self, name: &str) -> Option<f64> {
        let threads = self.instance?.threads;
        (threads > 1.0 && !name.split('/').any(|part| part == format!("threads:{threads}")))
            .then_some(threads)
    }

    /// Returns the standard deviations of the times, in the tool's unit, if each is stated once.
    pub(super) fn stddev(&self) -> Option<[f64; 2]> {
        let mut stated = self.summaries.iter().filter(|(statistic, _)| *statistic == Statistic::Stddev);
        stated.next().filter(|_| stated.next().is_none()).map(|(_, times)| *times)
    }

    /// Returns whether rows with one name belong to different benchmarks of the program.
    pub(super) fn has_several_benchmarks(&self) -> bool {
        self.other_instance
    }

    /// Returns a contradiction between rows that all belong to one benchmark and were all measured. `times`
    /// are wall-clock and processor times in nanoseconds, or `None` if they are not to be compared with their
    /// summaries; `factor` is the tool's unit in nanoseconds.
    pub(super) fn contradiction(
        &self,
        name: &str,
        rows: u64,
        factor: f64,
        times: Option<[&[f64]; 2]>,
    ) -> Option<String> {
        if self.no_iterations {
            return Some("a time for zero iterations".to_owned());
        }
        if self.other_threads {
            return Some("rows with the same name have different numbers of threads".to_owned());
        }
        // If the program sets the number itself, the name contains it. A file of summaries only has no repetitions.
        let named = name.split('/').find_map(|part| part.strip_prefix("repeats:")?.parse().ok());
        if let Some((named, stated)) = named.zip(self.repetitions).filter(|(named, stated)| named != stated) {
            return Some(format!("{named} repetitions in the name, but the file states {stated}"));
        }
        let stated = if rows == 0 { None } else { named.or(self.repetitions) };
        if let Some(stated) = stated.filter(|stated| *stated != rows as f64) {
            return Some(format!("{rows} repetitions, but the file states {stated}"));
        }
        let [real, cpu] = times.filter(|_| !self.summaries.is_empty())?;
        let cpu = if cpu.len() == real.len() { cpu } else { &[] };
        let unit = TimeUnit::name(factor);
        let wrong = |times: &[f64], at: usize| {
            // The time is converted back to the printed unit, which shows its precision.
            let times: Vec<f64> = times.iter().map(|time| time / factor).collect();
            let stated = self.summaries.iter().filter(|(_, stated)| !stated[at].is_nan());
            let stated = stated.map(|(statistic, stated)| statistic.alone(stated[at]));
            stated.filter(|_| !times.is_empty()).find_map(|stated| contradiction(&times, &stated, unit))
        };
        let of_cpu = |detail| format!("{}: {detail}", Metric::CPU_TIME.name);
        wrong(real, 0).or_else(|| wrong(cpu, 1).map(of_cpu))
    }
}
