//! Conversions between stored records and the types of the model.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::{
    Anchor, Artifact, Benchmark, BenchmarkName, Calibration, Lint, Metric, MetricKind, MetricSeries, Origin,
    Outcome, PREPARE, Process, RUN_LINE, Run, SETUP, Series, SideName, Spread, Stage, Summary, Toolchain,
    Verification, is_of_command, shell_word,
};

use super::benchmark_v1::telemetry;
use super::{
    BaselineBenchmark, BaselineFile, BaselineSchema, BenchmarkRecord, CalibrationRecord, CommandRecord,
    Number, ProcessRecord, RunFile, RunSchema, SideRecord, SpreadRecord, StageRecord, StageStatus,
    SummaryRecord,
};

impl RunFile {
    /// Returns every side as a [`Run`], base first. `label` is the file's name as the user wrote it. An
    /// anchor is left out, because nothing is compared with it.
    pub fn runs(&self, label: &str) -> Vec<(SideName, Run)> {
        let sides = self.sides.iter().filter(|side| !side.anchor);
        sides.map(|side| (side.name, self.run(side, label))).collect()
    }

    /// Returns the reference toolchain's run that was measured together with head.
    pub fn anchor(&self, label: &str) -> Option<Run> {
        self.sides.iter().find(|side| side.anchor).map(|side| self.run(side, label))
    }

    /// Does the same as [`RunFile::runs`], but frees each record as soon as it is converted, so that a large
    /// file is never in memory twice.
    pub fn into_runs(mut self, label: &str) -> Vec<(SideName, Run)> {
        let sides = std::mem::take(&mut self.sides);
        let runs = sides.into_iter().filter(|side| !side.anchor).map(|mut side| {
            let records = std::mem::take(&mut side.benchmarks);
            let mut run = self.run(&side, label);
            let commands = std::mem::take(&mut side.commands);
            let benchmarks = records.into_iter().map(|record| benchmark(&record, &commands, &self.metrics));
            run.benchmarks = benchmarks.collect();
            (side.name, run)
        });
        runs.collect()
    }

    /// Converts one side of this file, which may be an anchor.
    pub fn run(&self, side: &SideRecord, label: &str) -> Run {
        Run {
            anchor: None,
            suite: Some(self.suite.clone()),
            session: Some(self.session.clone()),
            origin: Origin::new(RunSchema::NAME, label),
            context: side.context.clone().unwrap_or_default(),
            testbed: Some(self.testbed.clone()),
            toolchain: side.toolchain.clone(),
            commit: side.commit.clone(),
            programs: programs(side),
            benchmarks: side
                .benchmarks
                .iter()
                .map(|record| benchmark(record, &side.commands, &self.metrics))
                .collect(),
            calibration: self.calibration.as_ref().map(Calibration::from),
            in_shards: self.shard.is_some() || !self.shards.is_empty(),
            lints: self.lints.to_vec(),
        }
    }
}

fn benchmark(record: &BenchmarkRecord, commands: &[CommandRecord], described: &[Metric]) -> Benchmark {
    let mut metrics = Vec::new();
    let sampled: BTreeSet<&str> =
        record.processes.iter().flat_map(|process| process.samples.iter().map(|(name, _)| name)).collect();
    // The file describes its metrics in order of importance.
    for metric in described {
        let name = metric.name.as_ref();
        if sampled.contains(name) {
            let samples = |process: &ProcessRecord| {
                let stated = process.stated_stddev.get(name).map(|stated| stated.0);
                Some((process.samples.get(name)?.to_vec(), stated))
            };
            let series = Series::Processes(taken(record, samples));
            metrics.push(MetricSeries { metric: metric.clone(), series });
        } else if let Some(value) = record.values.iter().find(|value| value.metric == name) {
            metrics.push(single(metric.clone(), value.value.0));
        }
    }
    for derived in derived(record) {
        if metrics.iter().all(|known| known.metric.name != derived.metric.name) {
            metrics.push(derived);
        }
    }
    Benchmark {
        name: BenchmarkName::new(&record.name),
        labels: labels(record, commands),
        outcome: Outcome::from(&record.outcome),
        metrics,
        artifact: record.artifact.as_ref().map(Artifact::from),
        verification: record.verification.clone(),
        lints: record.lints.to_vec(),
        telemetry: record
            .processes
            .iter()
            .filter(|process| process.failure.is_none())
            .filter_map(|process| Some(telemetry(process.order, process.telemetry.as_ref()?)))
            .collect(),
        profile: record.profile.clone(),
        code: record.code.clone(),
        compiler: record.compiler.clone(),
        code_sha256: None,
        printed: Vec::new(),
    }
}

/// Returns what a side states about its programs.
fn programs(side: &SideRecord) -> BTreeMap<String, String> {
    let of_command = |command: &CommandRecord| {
        let digest = command.program_sha256.as_deref().map(|digest| format!("{digest:.12} "));
        (command.name.clone(), format!("{}{}", digest.unwrap_or_default(), command.command))
    };
    let changes =
        side.dirty.map(|dirty| if dirty { "uncommitted changes" } else { "no uncommitted changes" });
    let of_all = changes.map(|changes| (String::new(), changes.to_owned()));
    side.commands.iter().map(of_command).chain(of_all).collect()
}

/// Returns the labels of a benchmark. Its line and those that ran before it come from its command's record: a row that a
/// program printed can't state them.
fn labels(record: &BenchmarkRecord, commands: &[CommandRecord]) -> BTreeMap<String, String> {
    let mut labels = record.labels.clone();
    if let Some(command) = commands.iter().find(|command| is_of_command(&record.name, &command.name)) {
        let variables = command
            .configured
            .iter()
            .filter_map(|(key, value)| Some(format!("{}={} ", key.strip_prefix("env.")?, shell_word(value))));
        let run = command.configured.get("run").map(|run| variables.collect::<String>() + run);
        for (label, line) in [(RUN_LINE, &run), (SETUP, &command.setup), (PREPARE, &command.prepare)] {
            match line {
                Some(line) => labels.insert(label.to_owned(), line.clone()),
                None => labels.remove(label),
            };
        }
    }
    labels
}

/// Returns every successful process for which `samples` finds samples and, possibly, a stated standard
/// deviation.
fn taken(
    record: &BenchmarkRecord,
    samples: impl Fn(&ProcessRecord) -> Option<(Vec<f64>, Option<f64>)>,
) -> Vec<Process> {
    let worked = record.processes.iter().filter(|process| process.failure.is_none());
    let taken = |process: &ProcessRecord| {
        let (samples, stated_stddev) = samples(process)?;
        Some(Process {
            samples,
            slot: process.slot,
            session: 0,
            iterations: process.iterations,
            stated_stddev,
            started: Some(Arc::from(process.started.as_str())),
            dated: None,
        })
    };
    worked.filter_map(taken).collect()
}

fn single(metric: Metric, value: f64) -> MetricSeries {
    let series = match metric.kind {
        MetricKind::Exact => Series::Exact(value),
        MetricKind::Noisy => Series::Processes(vec![Process { samples: vec![value], ..Process::default() }]),
    };
    MetricSeries { metric, series }
}

/// Returns the metrics that follow from other parts of the record, so that no number is stored twice.
fn derived(record: &BenchmarkRecord) -> Vec<MetricSeries> {
    let mut metrics = Vec::new();
    metrics.extend(compile_time(&record.stages));
    if let Some(artifact) = &record.artifact {
        metrics.push(single(Metric::VMFB_SIZE, artifact.vmfb_bytes as f64));
        if let Some(count) = artifact.dispatch_count {
            metrics.push(single(Metric::DISPATCH_COUNT, count as f64));
        }
    }
    let memory = taken(record, |process| Some((vec![process.peak_memory_bytes? as f64], None)));
    if !memory.is_empty() {
        metrics.push(MetricSeries { metric: Metric::PEAK_HOST_MEMORY, series: Series::Processes(memory) });
    }
    metrics
}

/// Returns the compiler's time. The first compilation shares the processors with others. Later compilations
/// are made only to be timed; if there are any, only these count.
fn compile_time(stages: &[StageRecord]) -> Option<MetricSeries> {
    const NANOSECONDS: f64 = 1e9;
    let compiled: Vec<&StageRecord> = stages.iter().filter(|stage| stage.stage == Stage::Compile).collect();
    let timed = compiled.get(1..).filter(|timed| !timed.is_empty()).unwrap_or(&compiled);
    // For a cached stage the record has the time of the lookup, which is not a compile time.
    let timed = timed.iter().filter(|stage| stage.status == StageStatus::Ok);
    let process = |stage: &&StageRecord| Process {
        samples: vec![stage.seconds.0 * NANOSECONDS],
        slot: stage.slot,
        ..Process::default()
    };
    let processes: Vec<Process> = timed.map(process).collect();
    let series = (!processes.is_empty()).then_some(Series::Processes(processes))?;
    Some(MetricSeries { metric: Metric::COMPILE_TIME, series })
}

impl From<&Calibration> for CalibrationRecord {
    fn from(calibration: &Calibration) -> Self {
        let spread = |((benchmark, metric), spread): (&(BenchmarkName, String), &Spread)| SpreadRecord {
            benchmark: benchmark.to_string(),
            metric: metric.clone(),
            within_process: spread.within_process.map(Number),
            between_processes: spread.between_processes.map(Number),
            between_blocks: spread.between_blocks.map(Number),
            between_sessions: spread.between_sessions.map(Number),
        };
        Self { source: calibration.source.clone(), spreads: calibration.spreads.iter().map(spread).collect() }
    }
}

impl From<&CalibrationRecord> for Calibration {
    fn from(record: &CalibrationRecord) -> Self {
        let spreads = record.spreads.iter().map(|spread| {
            let key = (BenchmarkName::new(&spread.benchmark), spread.metric.clone());
            let value = Spread {
                within_process: spread.within_process.map(f64::from),
                between_processes: spread.between_processes.map(f64::from),
                between_blocks: spread.between_blocks.map(f64::from),
                between_sessions: spread.between_sessions.map(f64::from),
            };
            (key, value)
        });
        Self { source: record.source.clone(), spreads: spreads.collect() }
    }
}

impl BaselineFile {
    /// Returns the session as a [`Run`]. `label` is the file's name as the user wrote it.
    pub fn run(&self, label: &str) -> Run {
        Run {
            suite: Some(self.suite.clone()),
            session: Some(self.session.clone()),
            origin: Origin::new(BaselineSchema::NAME, label),
            testbed: Some(self.testbed.clone()),
            toolchain: self.toolchain.clone(),
            commit: self.commit.clone(),
            benchmarks: self.benchmarks.iter().map(|record| words(record, &self.metrics)).collect(),
            anchor: self.anchor.clone().map(|toolchain| anchor(toolchain, &self.benchmarks)),
            lints: self.lints.to_vec(),
            ..Run::default()
        }
    }
}

fn anchor(toolchain: Toolchain, benchmarks: &[BaselineBenchmark]) -> Anchor {
    let mut anchor = Anchor { toolchain, ..Anchor::default() };
    for (benchmark, record) in benchmarks.iter().filter_map(|it| Some((it, it.anchored.as_ref()?))) {
        let name = BenchmarkName::new(&benchmark.name);
        let ratios = record.ratios.iter();
        anchor.ratios.extend(ratios.map(|(metric, ratio)| ((name.clone(), metric.clone()), ratio.0)));
        anchor.artifacts.insert(name, record.artifact.clone());
    }
    anchor
}

/// The detail of a stored session's findings, of which only the codes were kept.
pub const WHEN_STORED: &str = "when it was stored";

fn words(record: &BaselineBenchmark, metrics: &[Metric]) -> Benchmark {
    let metrics = metrics.iter().filter_map(|metric| {
        Some(MetricSeries { series: series(record, &metric.name, metric.kind)?, metric: metric.clone() })
    });
    Benchmark {
        labels: record.labels.clone(),
        outcome: Outcome::from(&record.outcome),
        metrics: metrics.collect(),
        artifact: record.artifact.as_ref().map(Artifact::from),
        verification: record
            .verification
            .map(|code| Verification { sketches: record.sketches.clone(), ..Verification::bare(code, None) }),
        lints: record.lints.iter().map(|code| Lint::new(*code, WHEN_STORED)).collect(),
        ..Benchmark::new(&record.name)
    }
}

fn series(record: &BaselineBenchmark, metric: &str, kind: MetricKind) -> Option<Series> {
    let summaries: Vec<Summary> = record
        .processes
        .iter()
        .filter_map(|process| process.summaries.get(metric))
        .map(Summary::from)
        .collect();
    let single = record.values.iter().find(|value| value.metric == metric).map(|value| value.value.0);
    match (kind, summaries.first().and_then(|first| first.median), single) {
        // A value that was the same in every process is exact; otherwise it can't be compared exactly.
        (MetricKind::Exact, Some(first), _) if summaries.iter().all(|s| s.median == Some(first)) => {
            Some(Series::Exact(first))
        }
        (_, Some(_), _) => Some(Series::Summaries(summaries)),
        (MetricKind::Exact, None, Some(value)) => Some(Series::Exact(value)),
        (MetricKind::Noisy, None, Some(value)) => {
            Some(Series::Summaries(vec![Summary { n: Some(1), median: Some(value), ..Summary::default() }]))
        }
        (_, None, None) => None,
    }
}

impl From<&SummaryRecord> for Summary {
    fn from(record: &SummaryRecord) -> Self {
        Self {
            n: Some(record.n),
            median: Some(record.median.0),
            stddev: record.stddev.map(f64::from),
            min: record.min.map(f64::from),
            ..Self::default()
        }
    }
}
