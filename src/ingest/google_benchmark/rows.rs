//! Rows to benchmarks: what JSON, CSV and console text have in common.
//!
//! Rows of one name become the repetitions of one process. Aggregate rows count only where no
//! repetition was kept. What is not a measurement (an errored row, a zero, a NaN, an unknown unit) is a
//! lint or an outcome and never a number.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::model::{
    Benchmark, Better, Lint, LintCode, Metric, MetricKind, MetricSeries, Outcome, Process, Series, Stage,
    Summary, Unit,
};

use super::statistic::Statistic;

/// Counters beyond this in one row are an attack, not a benchmark.
pub(super) const MAX_COUNTERS: usize = 256;

/// How a row says what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum RowKind {
    /// The format has no mark; the name's suffix may tell.
    #[default]
    Unmarked,
    Iteration,
    Aggregate(Statistic),
}

/// The unit of a row's two time columns.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TimeUnit<'a> {
    /// Nanoseconds in one of it.
    Known(f64),
    /// The columns hold a ratio (`_cv`, `_RMS`), not a time; 1 in this unit is so much.
    Ratio(f64),
    Unknown(Cow<'a, str>),
}

impl<'a> TimeUnit<'a> {
    pub(super) fn parse(name: Cow<'a, str>) -> Self {
        match name.as_ref() {
            "ns" => Self::Known(1.0),
            "us" => Self::Known(1e3),
            "ms" => Self::Known(1e6),
            "s" => Self::Known(1e9),
            "%" => Self::Ratio(0.01),
            _ => Self::Unknown(name),
        }
    }
}

/// One row, whatever it was written as. Reused from row to row.
#[derive(Debug, Clone)]
pub(super) struct Row<'a> {
    /// Without an aggregate's suffix where the format tells.
    pub family: Cow<'a, str>,
    pub kind: RowKind,
    /// Number of this repetition, where the format has one.
    pub repetition: Option<f64>,
    /// Of an aggregate: how many repetitions it summarises.
    pub count: Option<f64>,
    pub real: f64,
    pub cpu: Option<f64>,
    pub unit: TimeUnit<'a>,
    /// The format printed so few digits that rounding alone could hide or make a change.
    pub coarse: bool,
    pub error: Option<Cow<'a, str>>,
    pub skipped: Option<Cow<'a, str>>,
    pub label: Option<Cow<'a, str>>,
    pub counters: Vec<(Cow<'a, str>, f64)>,
}

impl Default for Row<'_> {
    fn default() -> Self {
        Self {
            family: Cow::Borrowed(""),
            kind: RowKind::Unmarked,
            repetition: None,
            count: None,
            real: f64::NAN,
            cpu: None,
            unit: TimeUnit::Known(1.0),
            coarse: false,
            error: None,
            skipped: None,
            label: None,
            counters: Vec::new(),
        }
    }
}

#[derive(Debug)]
struct Column<'a> {
    name: Cow<'a, str>,
    values: Vec<f64>,
    not_finite: bool,
}

#[derive(Debug)]
struct Aggregate<'a> {
    statistic: Statistic,
    count: Option<f64>,
    real: f64,
    cpu: Option<f64>,
    counters: Vec<(Cow<'a, str>, f64)>,
}

#[derive(Debug, Default)]
struct Family<'a> {
    name: Cow<'a, str>,
    /// Iteration rows, good or bad.
    rows: u64,
    last_repetition: Option<f64>,
    real: Vec<f64>,
    cpu: Vec<f64>,
    cpu_unusable: bool,
    counters: Vec<Column<'a>>,
    aggregates: Vec<Aggregate<'a>>,
    errored: u64,
    error: Cow<'a, str>,
    skipped: u64,
    skip: Cow<'a, str>,
    zero: u64,
    not_finite: u64,
    unknown_unit: Option<Cow<'a, str>>,
    duplicated: bool,
    coarse: bool,
    maybe_cut: bool,
    label: Option<Cow<'a, str>>,
}

/// All rows of a file so far.
#[derive(Debug, Default)]
pub(super) struct Families<'a> {
    list: Vec<Family<'a>>,
    index: HashMap<Cow<'a, str>, usize>,
    last: usize,
    /// Unmarked rows whose name ends like an aggregate's; the whole file decides what they are.
    undecided: Vec<(usize, Row<'a>)>,
}

impl<'a> Families<'a> {
    #[inline]
    #[expect(clippy::ptr_arg, reason = "a borrowed name is kept as it is, without a copy")]
    fn find(&mut self, name: &Cow<'a, str>) -> usize {
        if self.list.get(self.last).is_some_and(|family| family.name == *name) {
            return self.last;
        }
        self.find_elsewhere(name)
    }

    #[expect(clippy::ptr_arg, reason = "a borrowed name is kept as it is, without a copy")]
    fn find_elsewhere(&mut self, name: &Cow<'a, str>) -> usize {
        if let Some(&at) = self.index.get(name.as_ref()) {
            return at;
        }
        self.list.push(Family { name: name.clone(), ..Family::default() });
        self.index.insert(name.clone(), self.list.len() - 1);
        self.list.len() - 1
    }

    /// Takes one row; the row's buffers stay with the caller.
    #[inline]
    pub(super) fn push(&mut self, row: &mut Row<'a>) {
        let at = self.find(&row.family);
        match row.kind {
            RowKind::Iteration => self.sample(at, row),
            RowKind::Aggregate(statistic) => self.aggregate(at, statistic, row),
            RowKind::Unmarked => {
                let plain = row.error.is_some() || row.skipped.is_some();
                if !plain && Statistic::split_suffix(&row.family).is_some() {
                    self.undecided.push((at, row.clone()));
                } else {
                    self.sample(at, row);
                }
            }
        }
    }

    /// The last row taken may have lost its end.
    pub(super) fn mark_last_as_cut(&mut self) {
        let last = self.undecided.last().map_or(self.last, |(at, _)| *at).max(self.last);
        if let Some(family) = self.list.get_mut(last) {
            family.maybe_cut = true;
        }
    }

    #[inline]
    fn sample(&mut self, at: usize, row: &mut Row<'a>) {
        let revisited = at != self.last;
        self.last = at;
        let family = &mut self.list[at];
        family.rows += 1;
        family.duplicated |= match (row.repetition, family.last_repetition) {
            (Some(now), Some(before)) => now <= before,
            (Some(_), None) => false,
            (None, _) => revisited && family.rows > 1,
        };
        family.last_repetition = row.repetition;
        if family.label.is_none() {
            family.label = row.label.take();
        }
        if let Some(error) = row.error.take() {
            // The first reason is the cause; later repetitions only say that one failed before.
            if family.error.is_empty() {
                family.error = error;
            }
            family.errored += 1;
            return;
        }
        if let Some(reason) = row.skipped.take() {
            family.skipped += 1;
            family.skip = reason;
            return;
        }
        let factor = match &row.unit {
            TimeUnit::Known(factor) => *factor,
            TimeUnit::Ratio(_) => {
                family.unknown_unit = Some(Cow::Borrowed("%"));
                return;
            }
            TimeUnit::Unknown(name) => {
                family.unknown_unit = Some(name.clone());
                return;
            }
        };
        family.coarse |= row.coarse;
        let real = row.real * factor;
        if !real.is_finite() {
            family.not_finite += 1;
        } else if real <= 0.0 {
            family.zero += 1;
        } else {
            family.real.push(real);
        }
        if let Some(cpu) = row.cpu {
            let cpu = cpu * factor;
            if cpu.is_finite() && cpu > 0.0 {
                family.cpu.push(cpu);
            } else {
                family.cpu_unusable = true;
            }
        }
        for (place, (name, value)) in row.counters.drain(..).enumerate() {
            let known = match family.counters.get(place) {
                Some(column) if column.name == name => Some(place),
                _ => family.counters.iter().position(|column| column.name == name),
            };
            let known = known.unwrap_or_else(|| {
                // More names than one row may carry: the rest repeats the attack, not the benchmark.
                if family.counters.len() < MAX_COUNTERS {
                    family.counters.push(Column { name, values: Vec::new(), not_finite: false });
                    family.counters.len() - 1
                } else {
                    family.counters[MAX_COUNTERS - 1].not_finite = true;
                    MAX_COUNTERS - 1
                }
            });
            let column = &mut family.counters[known];
            column.not_finite |= !value.is_finite();
            column.values.push(value);
        }
    }

    fn aggregate(&mut self, at: usize, statistic: Statistic, row: &mut Row<'a>) {
        if statistic == Statistic::Fit {
            return;
        }
        self.last = at;
        let family = &mut self.list[at];
        // The repetitions themselves are there; their summary adds nothing.
        if family.rows > 0 {
            return;
        }
        let factor = match (&row.unit, statistic) {
            (TimeUnit::Ratio(factor), _) => *factor,
            (_, Statistic::Cv | Statistic::Other) => 1.0,
            (TimeUnit::Known(factor), _) => *factor,
            (TimeUnit::Unknown(name), _) => {
                family.unknown_unit = Some(name.clone());
                return;
            }
        };
        family.coarse |= row.coarse && matches!(statistic, Statistic::Mean | Statistic::Median);
        family.aggregates.push(Aggregate {
            statistic,
            count: row.count,
            real: row.real * factor,
            cpu: row.cpu.map(|cpu| cpu * factor),
            counters: std::mem::take(&mut row.counters),
        });
    }

    /// Decides what unmarked rows with an aggregate's suffix are. Google Benchmark writes a mean and a
    /// standard deviation or neither, so a stem that has both is a benchmark and its rows summarise it;
    /// a lone `BM_x_mean` is a benchmark that happens to be called so.
    fn settle(&mut self) {
        let mut undecided = std::mem::take(&mut self.undecided);
        let stems = |wanted: Statistic| -> HashSet<String> {
            undecided
                .iter()
                .filter_map(|(_, row)| Statistic::split_suffix(&row.family))
                .filter(|(_, statistic)| *statistic == wanted)
                .map(|(stem, _)| stem.to_owned())
                .collect()
        };
        let (means, stddevs) = (stems(Statistic::Mean), stems(Statistic::Stddev));
        // Releases before `_cv` printed the iterations of one repetition where later ones print how many
        // repetitions are summarised, so without it the column says nothing about n.
        let cvs = stems(Statistic::Cv);
        for (at, row) in &mut undecided {
            let split = Statistic::split_suffix(&row.family);
            let summary = split.filter(|(stem, statistic)| match row.unit {
                TimeUnit::Ratio(_) => true,
                // The unit of a fit is its function, `N^2`.
                TimeUnit::Unknown(_) if *statistic == Statistic::Fit => true,
                _ => means.contains(*stem) && stddevs.contains(*stem),
            });
            match summary.map(|(stem, statistic)| (stem.to_owned(), statistic)) {
                Some((stem, statistic)) => {
                    if !cvs.contains(&stem) {
                        row.count = None;
                    }
                    let cut = self.list[*at].maybe_cut;
                    let stem = self.find(&Cow::Owned(stem));
                    self.list[stem].maybe_cut |= cut;
                    self.aggregate(stem, statistic, row);
                }
                None => self.sample(*at, row),
            }
        }
    }

    /// The benchmarks, in order of appearance.
    pub(super) fn finish(mut self) -> Vec<Benchmark> {
        self.settle();
        let kept = |family: &Family<'_>| {
            family.rows > 0 || !family.aggregates.is_empty() || family.unknown_unit.is_some()
        };
        self.list.into_iter().filter(kept).map(Family::finish).collect()
    }
}

/// What a counter is called in benchgate's words, and which way it should go.
fn counter_metric(name: &str) -> Metric {
    match name {
        "items_per_second" => Metric::THROUGHPUT,
        _ => Metric {
            name: Cow::Owned(name.to_owned()),
            // No format says whether a counter is a rate in all of its outputs, so none is believed.
            unit: Unit::Other(Cow::Borrowed("counter")),
            better: if is_rate(name) { Better::Higher } else { Better::Lower },
            kind: MetricKind::Noisy,
        },
    }
}

fn is_rate(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["per_second", "per_sec", "/s", "flops", "throughput", "bandwidth"].iter().any(|word| name.contains(word))
}

impl Family<'_> {
    fn finish(self) -> Benchmark {
        let mut benchmark = Benchmark::new(&self.name);
        if let Some(label) = &self.label {
            benchmark.labels.insert("label".to_owned(), label.to_string());
        }
        self.find_lints(&mut benchmark.lints);
        if self.errored > 0 {
            let why = if self.error.is_empty() {
                "the tool gave no reason".to_owned()
            } else {
                self.error.into_owned()
            };
            benchmark.outcome = Outcome::Failed { stage: Stage::Benchmark, why };
            return benchmark;
        }
        if self.skipped > 0 && self.skipped == self.rows {
            benchmark.outcome = Outcome::Skipped { reason: self.skip.into_owned() };
            return benchmark;
        }
        if self.rows > 0 {
            benchmark.metrics.reserve_exact(2 + self.counters.len());
            let mut column = |metric: Metric, mut samples: Vec<f64>| {
                if !samples.is_empty() {
                    // Hundreds of joined files keep nothing but these.
                    samples.shrink_to_fit();
                    let process = Process { samples, slot: None, started: None };
                    benchmark.metrics.push(MetricSeries { metric, series: Series::Processes(vec![process]) });
                }
            };
            column(Metric::LATENCY, self.real);
            if !self.cpu_unusable {
                column(Metric::CPU_TIME, self.cpu);
            }
            for counter in self.counters.into_iter().filter(|counter| !counter.not_finite) {
                column(counter_metric(&counter.name), counter.values);
            }
        } else {
            summarise(&mut benchmark, &self.aggregates);
        }
        benchmark
    }

    fn find_lints(&self, lints: &mut Vec<Lint>) {
        let rows = self.rows;
        let mut lint = |code, detail: String| lints.push(Lint::new(code, detail));
        if self.errored > 0 {
            let why = if self.error.is_empty() { "no reason given" } else { &self.error };
            lint(LintCode::Errored, format!("{} of {rows} repetitions failed: {why}", self.errored));
        }
        if self.skipped > 0 {
            lint(
                LintCode::SkippedRow,
                format!("{} of {rows} repetitions skipped: {}", self.skipped, self.skip),
            );
        }
        if self.zero > 0 {
            lint(LintCode::ZeroTime, format!("{} of {rows} times are zero or less", self.zero));
        }
        if self.not_finite > 0 {
            lint(LintCode::NonFinite, format!("{} of {rows} times are NaN or infinite", self.not_finite));
        }
        if let Some(unit) = &self.unknown_unit {
            lint(LintCode::UnknownUnit, format!("time unit `{unit}`"));
        }
        if self.duplicated {
            lint(LintCode::DuplicateName, format!("{rows} rows from several benchmarks of one name"));
        }
        if self.cpu_unusable {
            lint(LintCode::DroppedMetric, "cpu-time: a value is not a positive number".to_owned());
        }
        for counter in self.counters.iter().filter(|counter| counter.not_finite) {
            lint(LintCode::DroppedMetric, format!("{}: a value is NaN or infinite", counter.name));
        }
        if self.real.len() == 1 && rows == 1 {
            lint(LintCode::SingleRepetition, "one repetition".to_owned());
        }
        if self.rows == 0 && !self.aggregates.is_empty() {
            lint(LintCode::AggregatesOnly, "no repetition was kept".to_owned());
        }
        if self.coarse {
            lint(LintCode::RoundedTime, "a time is printed with fewer than three digits".to_owned());
        }
        if self.maybe_cut {
            lint(LintCode::TruncatedInput, "the last line has no end".to_owned());
        }
    }
}

/// Builds the summaries of a benchmark that kept no repetition.
fn summarise(benchmark: &mut Benchmark, aggregates: &[Aggregate<'_>]) {
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
        benchmark.lints.push(Lint::new(LintCode::NonFinite, "a summary holds NaN or infinity"));
        return;
    }
    if stated().any(|value| value <= 0.0) || spread().any(|value| value < 0.0) {
        benchmark.lints.push(Lint::new(LintCode::ZeroTime, "a summary states a time of zero or less"));
        return;
    }
    benchmark.metrics.push(MetricSeries { metric: Metric::LATENCY, series: Series::Summaries(real) });
    let cpu = gather(aggregates, |aggregate| aggregate.cpu);
    push_if_sound(benchmark, Metric::CPU_TIME, cpu);
    let mut names: Vec<&Cow<'_, str>> = Vec::new();
    for (name, _) in aggregates.iter().flat_map(|aggregate| &aggregate.counters) {
        if names.len() < MAX_COUNTERS && !names.contains(&name) {
            names.push(name);
        }
    }
    for name in names {
        let of = |aggregate: &Aggregate<'_>| {
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
    let all = summaries.iter().flat_map(|s| [s.mean, s.median, s.stddev, s.min, s.max]).flatten();
    if all.into_iter().all(f64::is_finite) {
        benchmark.metrics.push(MetricSeries { metric, series: Series::Summaries(summaries) });
    } else {
        let detail = format!("{}: a value is NaN or infinite", metric.name);
        benchmark.lints.push(Lint::new(LintCode::DroppedMetric, detail));
    }
}

/// One summary for every time the statistics begin anew.
fn gather(aggregates: &[Aggregate<'_>], value: impl Fn(&Aggregate<'_>) -> Option<f64>) -> Vec<Summary> {
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
    // A file that states only the coefficient of variation states the deviation with it.
    let from_cv = || Some(of(Statistic::Cv)? * mean?);
    Summary {
        n,
        mean,
        median: of(Statistic::Median),
        // The console rounds a small deviation to 0.000 ms and keeps it as 2.09 %.
        stddev: of(Statistic::Stddev)
            .filter(|&stddev| stddev != 0.0)
            .or_else(from_cv)
            .or(of(Statistic::Stddev)),
        min: of(Statistic::Min),
        max: of(Statistic::Max),
    }
}
