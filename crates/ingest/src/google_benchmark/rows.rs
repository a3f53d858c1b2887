//! Conversion of rows to benchmarks, shared by JSON, CSV and console text.
//!
//! Rows with one name become the repetitions of one process. Aggregate rows are used only if no repetition
//! was kept. A value that is not a measurement (a failed row, a zero, a NaN, an unknown unit) becomes a lint
//! or an outcome, never a number.

use std::borrow::Cow;
use std::collections::HashMap;

use benchgate_core::model::{
    Benchmark, Lint, LintCode, Metric, MetricSeries, Outcome, Process, Series, Stage,
};

use benchgate_stats::describe;

use super::TimeUnit;
use super::counters::{MAX_COUNTERS, counter_metric, reported_counter, unusable_counter};
use super::labels::{Labels, StatedLabels};
use super::summaries::{Aggregate, Instance, StatedRepetitions, Statistic, summarise};
use crate::build::{agree, has_room};
use crate::text::cut_line;

/// The kind of a row, as the row states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum RowKind {
    /// The format does not mark kinds; the name's suffix may show the kind.
    #[default]
    Unmarked,
    Iteration,
    Aggregate(Statistic),
}

/// One row of any format. It is reused for every row.
#[derive(Debug, Clone)]
pub(super) struct GoogleBenchmarkRow<'a> {
    /// The benchmark's name. If the format marks rows as aggregates, their suffix (such as `_mean`) is removed.
    pub family: Cow<'a, str>,
    pub kind: RowKind,
    /// Number of this repetition, if the format states it.
    pub repetition: Option<f64>,
    /// Number of repetitions that an aggregate summarizes.
    pub count: Option<f64>,
    /// Iterations of a repetition; NaN if unknown.
    pub iterations: f64,
    pub instance: Instance,
    pub real: f64,
    pub cpu: Option<f64>,
    pub unit: TimeUnit<'a>,
    pub error: Option<Cow<'a, str>>,
    pub skipped: Option<Cow<'a, str>>,
    pub label: Option<Cow<'a, str>>,
    pub counters: Vec<(Cow<'a, str>, f64)>,
}

impl Default for GoogleBenchmarkRow<'_> {
    fn default() -> Self {
        Self {
            family: Cow::Borrowed(""),
            kind: RowKind::Unmarked,
            repetition: None,
            count: None,
            iterations: f64::NAN,
            instance: Instance::UNKNOWN,
            real: f64::NAN,
            cpu: None,
            unit: TimeUnit::Known(1.0),
            error: None,
            skipped: None,
            label: None,
            counters: Vec::new(),
        }
    }
}

impl GoogleBenchmarkRow<'_> {
    /// Returns a copy that outlives the text from which it was read.
    fn to_static(&self) -> GoogleBenchmarkRow<'static> {
        let text = |text: &Option<Cow<'_, str>>| text.as_deref().map(|text| Cow::Owned(text.to_owned()));
        GoogleBenchmarkRow {
            family: Cow::Owned(self.family.to_string()),
            unit: match &self.unit {
                TimeUnit::Known(factor) => TimeUnit::Known(*factor),
                TimeUnit::Ratio(factor) => TimeUnit::Ratio(*factor),
                TimeUnit::Unknown(name) => TimeUnit::Unknown(Cow::Owned(name.to_string())),
            },
            error: text(&self.error),
            skipped: text(&self.skipped),
            label: text(&self.label),
            counters: self
                .counters
                .iter()
                .map(|(name, value)| (Cow::Owned(name.to_string()), *value))
                .collect(),
            ..*self
        }
    }
}

#[derive(Debug)]
struct MetricColumn {
    name: String,
    values: Vec<f64>,
    /// The reason why one of the values can't be used.
    unusable: Option<&'static str>,
}

/// An unmarked row whose name ends like an aggregate's.
#[derive(Debug)]
struct Undecided {
    family: usize,
    /// Length of the benchmark's part of the name, if the row is an aggregate.
    stem: usize,
    statistic: Statistic,
    row: GoogleBenchmarkRow<'static>,
}

impl Undecided {
    fn stem(&self) -> &str {
        &self.row.family[..self.stem]
    }

    /// Returns the column of iterations or repetitions, which is the same in all rows that summarize one
    /// benchmark.
    fn count(&self) -> Option<f64> {
        self.row.count.or(Some(self.row.iterations)).filter(|count| !count.is_nan())
    }
}

#[derive(Debug, Default)]
struct Family {
    name: String,
    /// Number of iteration rows, usable or not.
    rows: u64,
    last_repetition: Option<f64>,
    stated: StatedRepetitions,
    /// Iterations of the first repetition.
    iterations: Option<f64>,
    /// True if a later repetition had another number of iterations, or an unknown one.
    iterations_differ: bool,
    real: Vec<f64>,
    cpu: Vec<f64>,
    cpu_unusable: bool,
    counters: Vec<MetricColumn>,
    aggregates: Vec<Aggregate>,
    /// True if only the names suggest that rows summarize this benchmark; they may be benchmarks themselves.
    inferred: bool,
    /// True if one of these rows can't be a benchmark.
    proven: bool,
    errored: u64,
    error: String,
    skipped: u64,
    skip: String,
    zero: u64,
    not_finite: u64,
    unknown_unit: Option<String>,
    /// Nanoseconds in the unit of the first repetition.
    factor: Option<f64>,
    /// True if a later repetition had another unit.
    mixed_units: bool,
    duplicated: bool,
    maybe_cut: bool,
    labels: Labels,
}

/// All rows read so far. Nothing is borrowed from the file, because it may be read in pieces.
#[derive(Debug, Default)]
pub(super) struct Families {
    pub(super) stated: StatedLabels,
    list: Vec<Family>,
    index: HashMap<String, usize>,
    last: usize,
    /// Unmarked rows whose names end like an aggregate's; the whole file decides what they are.
    undecided: Vec<Undecided>,
    /// True if the previous row is the last of `undecided`.
    after_undecided: bool,
}

impl Families {
    #[inline]
    fn find(&mut self, name: &str) -> usize {
        if self.list.get(self.last).is_some_and(|family| family.name == name) {
            return self.last;
        }
        if let Some(&at) = self.index.get(name) {
            return at;
        }
        if !has_room(self.list.len()) {
            return self.list.len() - 1;
        }
        self.list.push(Family { name: name.to_owned(), ..Family::default() });
        self.index.insert(name.to_owned(), self.list.len() - 1);
        self.list.len() - 1
    }

    /// Adds one row; the row's buffers stay with the caller.
    #[inline]
    pub(super) fn push(&mut self, row: &mut GoogleBenchmarkRow<'_>) {
        let at = self.find(&row.family);
        match row.kind {
            RowKind::Iteration => self.sample(at, row),
            RowKind::Aggregate(statistic) => self.aggregate(at, statistic, row),
            RowKind::Unmarked => match self.possible_aggregate(row) {
                Some((stem, statistic)) => {
                    self.undecided.push(Undecided { family: at, stem, statistic, row: row.to_static() });
                    self.after_undecided = true;
                }
                None => {
                    self.sample(at, row);
                    self.after_undecided = false;
                }
            },
        }
    }

    /// Returns the stem's length and the statistic, if an unmarked row's name ends like an aggregate's: in
    /// one of the tool's own suffixes or, directly after such rows, in `_` and the name of a user's
    /// statistic.
    fn possible_aggregate(&self, row: &GoogleBenchmarkRow<'_>) -> Option<(usize, Statistic)> {
        if row.error.is_some() || row.skipped.is_some() {
            return None;
        }
        if let Some((stem, statistic)) = Statistic::split_suffix(&row.family) {
            return Some((stem.len(), statistic));
        }
        let before = self.undecided.last().filter(|_| self.after_undecided)?;
        let own = row.family.strip_prefix(before.stem())?.strip_prefix('_')?;
        (!own.is_empty()).then_some((before.stem, Statistic::Other))
    }

    /// Marks that the end of the last row may be missing.
    pub(super) fn mark_last_as_cut(&mut self) {
        let last = self.undecided.last().map_or(self.last, |row| row.family).max(self.last);
        if let Some(family) = self.list.get_mut(last) {
            family.maybe_cut = true;
        }
    }

    #[inline]
    fn sample(&mut self, at: usize, row: &mut GoogleBenchmarkRow<'_>) {
        let revisited = at != self.last;
        self.last = at;
        let family = &mut self.list[at];
        family.rows += 1;
        family.duplicated |= match (row.repetition, family.last_repetition) {
            (Some(now), Some(before)) => now <= before,
            (Some(_), None) => false,
            (None, _) => revisited && family.rows > 1,
        };
        // The tool writes summaries after the rows that they summarize, so a later row belongs to another
        // benchmark.
        family.duplicated |= !family.aggregates.is_empty();
        family.last_repetition = row.repetition;
        if family.says_failed(row) {
            return;
        }
        if let Some(reason) = row.skipped.take() {
            family.skipped += 1;
            family.skip = reason.into_owned();
            return;
        }
        let factor = match &row.unit {
            TimeUnit::Known(factor) => *factor,
            TimeUnit::Ratio(_) => {
                family.unknown_unit = Some("%".to_owned());
                return;
            }
            TimeUnit::Unknown(name) => {
                family.unknown_unit = Some(name.to_string());
                return;
            }
        };
        family.mixed_units |= *family.factor.get_or_insert(factor) != factor;
        // The other count includes all rows only if repetitions are numbered.
        let repetitions = row.count.filter(|_| row.repetition.is_some());
        family.stated.repetition(row.instance, row.iterations, repetitions);
        let iterations = *family.iterations.get_or_insert(row.iterations);
        family.iterations_differ |= iterations != row.iterations;
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
                // No honest tool prints more counters, so further names share the last column and make it unusable.
                if family.counters.len() < MAX_COUNTERS {
                    family.counters.push(MetricColumn {
                        name: name.into_owned(),
                        values: Vec::new(),
                        unusable: None,
                    });
                    family.counters.len() - 1
                } else {
                    family.counters[MAX_COUNTERS - 1].unusable = Some("NaN or infinite");
                    MAX_COUNTERS - 1
                }
            });
            let column = &mut family.counters[known];
            column.unusable = column.unusable.or(unusable_counter(value));
            column.values.push(value);
        }
    }

    fn aggregate(&mut self, at: usize, statistic: Statistic, row: &mut GoogleBenchmarkRow<'_>) {
        if statistic == Statistic::Fit {
            return;
        }
        self.last = at;
        let family = &mut self.list[at];
        if family.says_failed(row) {
            return;
        }
        // The repetitions are available; their summary must agree with them.
        if family.rows > 0 {
            if let TimeUnit::Known(factor) = &row.unit {
                let factor = factor / family.factor.unwrap_or(*factor);
                let times = [row.real * factor, row.cpu.map_or(f64::NAN, |cpu| cpu * factor)];
                family.stated.summary(statistic, times, row.count);
            }
            return;
        }
        let factor = match (&row.unit, statistic) {
            (TimeUnit::Ratio(factor), _) => *factor,
            // Release 1.7 scales the ratio in CSV like a time, so the number has no meaning.
            (TimeUnit::Known(_), Statistic::Cv) => f64::NAN,
            (_, Statistic::Other) => 1.0,
            (TimeUnit::Known(factor), _) => *factor,
            (TimeUnit::Unknown(name), _) => {
                family.unknown_unit = Some(name.to_string());
                return;
            }
        };
        family.aggregates.push(Aggregate {
            statistic,
            count: row.count,
            real: row.real * factor,
            cpu: row.cpu.map(|cpu| cpu * factor),
            counters: row.counters.drain(..).map(|(name, value)| (name.into_owned(), value)).collect(),
        });
    }

    /// Classifies unmarked rows with an aggregate's suffix. Google Benchmark writes either both a mean and a
    /// standard deviation, with the same count, or neither. So a stem that has both is a benchmark, and its
    /// rows summarize it. A lone `BM_x_mean` is a benchmark with that name, and so is a row that has
    /// statistics itself. A user's statistic appears once, with the same number of repetitions as the mean;
    /// any other row of that form is a benchmark that was not repeated although its neighbor was.
    fn settle(&mut self) {
        let mut undecided = std::mem::take(&mut self.undecided);
        // Returns the stems that have a row of this statistic, with the values of its columns.
        let stems = |wanted: Statistic| -> HashMap<String, [Option<f64>; 2]> {
            let rows = undecided.iter().filter(|row| row.statistic == wanted);
            rows.map(|row| (row.stem().to_owned(), [row.count(), Some(row.row.real)])).collect()
        };
        let (means, stddevs) = (stems(Statistic::Mean), stems(Statistic::Stddev));
        let is_summarized = |stem: &str| match (means.get(stem), stddevs.get(stem)) {
            (Some([mean, _]), Some([stddev, _])) => mean == stddev,
            _ => false,
        };
        // Releases before `_cv` printed the iterations of one repetition in the column in which later ones
        // print the number of summarized repetitions, so without a `_cv` row the column may not contain n.
        let cvs = stems(Statistic::Cv);
        let mut times: HashMap<usize, u64> = HashMap::new();
        for row in &undecided {
            *times.entry(row.family).or_default() += 1;
        }
        for each in undecided.drain(..) {
            let count = each.count();
            let Undecided { family, stem, statistic, mut row } = each;
            let stem = &row.family[..stem];
            let mean = means.get(stem).copied().unwrap_or_default();
            let company = is_summarized(stem) && count == mean[0] && !is_summarized(&row.family);
            let summary = match (&row.unit, statistic) {
                (_, Statistic::Other) => {
                    let has_own = means.contains_key(row.family.as_ref());
                    let alone = self.list[family].rows == 0 && times[&family] == 1;
                    company && row.count.is_some() && !has_own && alone
                }
                (TimeUnit::Ratio(_), _) => true,
                // The unit of a fit is its function, `N^2`.
                (unit, Statistic::Fit) => matches!(unit, TimeUnit::Unknown(_)),
                _ => company,
            };
            if summary {
                let stem = stem.to_owned();
                if !cvs.contains_key(&stem) {
                    row.count = None;
                }
                let cut = self.list[family].maybe_cut;
                let deviation = stddevs.get(&stem).and_then(|stddev| stddev[1]).zip(mean[1]);
                let stem = self.find(&stem);
                self.list[stem].maybe_cut |= cut;
                self.list[stem].inferred |= !matches!(statistic, Statistic::Fit);
                self.list[stem].proven |= statistic == Statistic::Cv
                    && match row.unit {
                        TimeUnit::Ratio(_) => true,
                        // Release 1.7 scales the ratio in CSV as if it were a time in seconds per repetition.
                        TimeUnit::Known(factor) => deviation.zip(count).is_some_and(|((stddev, mean), n)| {
                            agree(row.real * factor * 1e-9 * n, stddev / mean)
                        }),
                        TimeUnit::Unknown(_) => false,
                    };
                self.aggregate(stem, statistic, &mut row);
            } else {
                self.sample(family, &mut row);
            }
        }
    }

    /// Returns the benchmarks, in order of appearance.
    pub(super) fn finish(mut self) -> Vec<Benchmark> {
        self.settle();
        let kept = |family: &Family| {
            family.rows > 0 || !family.aggregates.is_empty() || family.unknown_unit.is_some()
        };
        let mut benchmarks: Vec<Benchmark> = self.list.into_iter().filter(kept).map(Family::finish).collect();
        for benchmark in &mut benchmarks {
            self.stated.add_to(benchmark);
        }
        benchmarks
    }
}

impl Family {
    /// Takes a row's label and error; returns true if they report a failure.
    fn says_failed(&mut self, row: &mut GoogleBenchmarkRow<'_>) -> bool {
        if let Some(failure) = row.label.take().and_then(|label| self.labels.take(label)) {
            row.error.get_or_insert(Cow::Owned(failure));
        }
        let Some(error) = row.error.take() else { return false };
        // The first reason is the cause; later repetitions only report that an earlier one failed.
        if self.error.is_empty() {
            self.error = error.into_owned();
        }
        self.errored += 1;
        true
    }

    fn finish(self) -> Benchmark {
        let mut benchmark = Benchmark::new(match self.stated.unnamed_threads(&self.name) {
            Some(threads) => format!("{}/threads:{threads}", self.name),
            None => self.name.clone(),
        });
        self.labels.describe(&mut benchmark);
        self.find_lints(&mut benchmark.lints);
        if self.errored > 0 {
            let why = if self.error.is_empty() { "the tool gave no reason".to_owned() } else { self.error };
            benchmark.outcome = Outcome::Failed { stage: Stage::Benchmark, why };
            return benchmark;
        }
        if self.skipped > 0 && self.skipped == self.rows {
            benchmark.outcome = Outcome::Skipped { reason: self.skip };
            return benchmark;
        }
        if self.rows > 0 {
            benchmark.metrics.reserve_exact(2 + self.counters.len());
            let iterations = self.iterations.filter(|_| !self.iterations_differ);
            let iterations =
                iterations.filter(|n| n.fract() == 0.0 && (1.0..9e15).contains(n)).map(|n| n as u64);
            let stddev = self.stated.stddev().unwrap_or([f64::NAN; 2]);
            let stddev = stddev.map(|stddev| stddev * self.factor.unwrap_or(1.0));
            let mut column = |metric: Metric, mut samples: Vec<f64>, stated: f64| {
                if !samples.is_empty() {
                    // The console rounds times to three digits, which changes their standard deviation.
                    let differs = |found: f64| (found - stated).abs() > 1e-6 * stated;
                    let rounded = stated > 0.0 && describe::stddev(&samples).is_some_and(differs);
                    let stated_stddev = rounded.then_some(stated);
                    // Only these lists are kept when hundreds of files are joined.
                    samples.shrink_to_fit();
                    let process = Process { samples, iterations, stated_stddev, ..Process::default() };
                    benchmark.metrics.push(MetricSeries { metric, series: Series::Processes(vec![process]) });
                }
            };
            column(Metric::LATENCY, self.real, stddev[0]);
            if !self.cpu_unusable {
                column(Metric::CPU_TIME, self.cpu, stddev[1]);
            }
            // Without a time of each repetition, the benchmark can't be judged, so its other values are not listed.
            let usable = |counter: &MetricColumn| counter.unusable.is_none() && self.zero == 0;
            for counter in self.counters.into_iter().filter(usable) {
                column(counter_metric(&counter.name), counter.values, f64::NAN);
            }
        } else {
            summarise(&mut benchmark, &self.aggregates);
        }
        self.labels.state_numbers(&mut benchmark);
        benchmark
    }

    fn find_lints(&self, lints: &mut Vec<Lint>) {
        let rows = self.rows.max(self.errored);
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
        if self.mixed_units {
            // The tool prints all repetitions of a benchmark in the same unit.
            lint(LintCode::UnitMismatch, "the repetitions have different units of time".to_owned());
        }
        let duplicated = self.duplicated || self.stated.has_several_benchmarks();
        // The tool divides the mean by the iterations of the first repetition.
        let comparable = !self.iterations_differ && self.real.len() as u64 == rows;
        if !duplicated && self.errored + self.skipped == 0 {
            let times: Option<[&[f64]; 2]> = comparable.then_some([&self.real, &self.cpu]);
            if let Some(detail) =
                self.stated.contradiction(&self.name, rows, self.factor.unwrap_or(1.0), times)
            {
                lint(LintCode::Contradictory, detail);
            }
        }
        if duplicated {
            lint(LintCode::DuplicateName, format!("{rows} rows from several benchmarks with the same name"));
        }
        // Repetitions show whether these rows summarize them; without repetitions, only the unit of a row can.
        let is_summary = if rows == 0 { self.proven } else { comparable && rows > 1 };
        if self.inferred && self.zero == 0 && !is_summary {
            let name = &self.name;
            let detail = format!(
                "rows such as `{name}_mean` may be statistics of this benchmark or separate benchmarks"
            );
            lint(LintCode::DuplicateName, detail);
        }
        if self.cpu_unusable && self.zero == 0 {
            lint(LintCode::DroppedMetric, "cpu-time: a value is not a positive number".to_owned());
        }
        for counter in &self.counters {
            if let Some(what) = counter.unusable {
                lint(LintCode::DroppedMetric, format!("{}: a value is {what}", counter.name));
            }
        }
        lints.extend(self.counters.iter().filter_map(|it| Some(reported_counter(&it.name, it.unusable?))));
        let mut lint = |code, detail: String| lints.push(Lint::new(code, detail));
        if self.real.len() == 1 && rows == 1 {
            lint(LintCode::SingleRepetition, "one repetition".to_owned());
        }
        if self.rows == 0 && !self.aggregates.is_empty() {
            lint(LintCode::AggregatesOnly, "no repetition was kept".to_owned());
        }
        lints.extend(self.maybe_cut.then(cut_line));
    }
}
