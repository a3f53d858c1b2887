//! From the stored shape to the words of the model, and from the words to the stored shape.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::model::{
    Artifact, Benchmark, BenchmarkName, BlockSlot, Calibration, Context, Divergence, Lint, Metric,
    MetricKind, MetricSeries, Origin, Outcome, OutputCheck, Process, Profile, Run, Series, SideName, Spread,
    Stage, Testbed, Toolchain, Unit, Verification,
};

use super::telemetry_v1;
use super::{
    ArtifactRecord, BenchmarkRecord, CalibrationRecord, ContextRecord, DivergenceRecord, LintRecord,
    MetricRecord, Number, OutcomeRecord, OutcomeStatus, OutputRecord, ProcessRecord, RunFile, RunSchema,
    SideRecord, SpreadRecord, StageStatus, TestbedRecord, ToolchainRecord, VerificationRecord,
};

impl RunFile {
    /// Every side as a [`Run`], base first. `label` is how the reader names the file.
    pub fn runs(&self, label: &str) -> Vec<(SideName, Run)> {
        self.sides.iter().map(|side| (side.name.0, self.run(side, label))).collect()
    }

    /// As [`RunFile::runs`]; each record is freed as soon as it is converted, so that a large file is never in
    /// memory twice.
    pub fn into_runs(mut self, label: &str) -> Vec<(SideName, Run)> {
        let sides = std::mem::take(&mut self.sides);
        let runs = sides.into_iter().map(|mut side| {
            let records = std::mem::take(&mut side.benchmarks);
            let mut run = self.run(&side, label);
            run.benchmarks = records.into_iter().map(|record| benchmark(&record, &self.metrics)).collect();
            (side.name.0, run)
        });
        runs.collect()
    }

    fn run(&self, side: &SideRecord, label: &str) -> Run {
        Run {
            anchor: None,
            suite: Some(self.suite.clone()),
            session: Some(self.session.clone()),
            origin: Origin { format: RunSchema::NAME.to_owned(), label: label.to_owned() },
            context: side.context.as_ref().map(Context::from).unwrap_or_default(),
            testbed: Some(Testbed::from(&self.testbed)),
            toolchain: side.toolchain.as_ref().map(Toolchain::from),
            commit: side.commit.clone(),
            benchmarks: side.benchmarks.iter().map(|record| benchmark(record, &self.metrics)).collect(),
            calibration: self.calibration.as_ref().map(Calibration::from),
            lints: self.lints.iter().map(Lint::from).collect(),
        }
    }
}

fn benchmark(record: &BenchmarkRecord, described: &[MetricRecord]) -> Benchmark {
    let mut metrics = Vec::new();
    let sampled: BTreeSet<&str> =
        record.processes.iter().flat_map(|process| process.samples.keys().map(String::as_str)).collect();
    // The order of the file's own descriptions is the order of importance.
    for metric in described {
        let name = metric.name.as_str();
        if sampled.contains(name) {
            metrics.push(MetricSeries { metric: metric.into(), series: samples_of(record, name) });
        } else if let Some(value) = record.values.iter().find(|value| value.metric == name) {
            metrics.push(single(metric.into(), value.value.0));
        }
    }
    for derived in derived(record) {
        if metrics.iter().all(|known| known.metric.name != derived.metric.name) {
            metrics.push(derived);
        }
    }
    Benchmark {
        name: BenchmarkName::new(&record.name),
        labels: record.labels.clone(),
        outcome: Outcome::from(&record.outcome),
        metrics,
        artifact: record.artifact.as_ref().map(Artifact::from),
        verification: record.verification.as_ref().map(Verification::from),
        lints: record.lints.iter().map(Lint::from).collect(),
        telemetry: record
            .processes
            .iter()
            .filter(|process| process.failure.is_none())
            .filter_map(telemetry_v1::telemetry)
            .collect(),
        profile: record.profile.as_ref().map(Profile::from),
        compiler: record.compiler.clone(),
    }
}

/// Every process that worked, with its samples of this metric.
fn samples_of(record: &BenchmarkRecord, metric: &str) -> Series {
    let worked = record.processes.iter().filter(|process| process.failure.is_none());
    let with_metric = worked.filter_map(|process| Some((process, process.samples.get(metric)?)));
    Series::Processes(
        with_metric.map(|(process, samples)| taken(process, samples.iter().map(|n| n.0).collect())).collect(),
    )
}

fn taken(process: &ProcessRecord, samples: Vec<f64>) -> Process {
    Process {
        samples,
        slot: process.slot.map(|slot| BlockSlot { block: slot.block, slot: slot.slot }),
        started: Some(Arc::from(process.started.as_str())),
    }
}

fn single(metric: Metric, value: f64) -> MetricSeries {
    let series = match metric.kind {
        MetricKind::Exact => Series::Exact(value),
        MetricKind::Noisy => {
            Series::Processes(vec![Process { samples: vec![value], slot: None, started: None }])
        }
    };
    MetricSeries { metric, series }
}

/// Metrics that other parts of the record already hold, so that no number is stored twice.
#[expect(clippy::cast_precision_loss, reason = "sizes and counts are far below 2^53")]
fn derived(record: &BenchmarkRecord) -> Vec<MetricSeries> {
    let mut metrics = Vec::new();
    // A cached stage says how long the look-up took, which is not a compile time.
    let compiled =
        record.stages.iter().find(|stage| stage.stage.0 == Stage::Compile && stage.status == StageStatus::Ok);
    if let Some(stage) = compiled {
        const NANOSECONDS: f64 = 1e9;
        metrics.push(single(Metric::COMPILE_TIME, stage.seconds.0 * NANOSECONDS));
    }
    if let Some(artifact) = &record.artifact {
        metrics.push(single(Metric::VMFB_SIZE, artifact.vmfb_bytes as f64));
        if let Some(count) = artifact.dispatch_count {
            metrics.push(single(Metric::DISPATCH_COUNT, count as f64));
        }
    }
    let memory: Vec<Process> = record
        .processes
        .iter()
        .filter(|process| process.failure.is_none())
        .filter_map(|process| Some(taken(process, vec![process.peak_memory_bytes? as f64])))
        .collect();
    if !memory.is_empty() {
        metrics.push(MetricSeries { metric: Metric::PEAK_HOST_MEMORY, series: Series::Processes(memory) });
    }
    metrics
}

impl From<&MetricRecord> for Metric {
    fn from(record: &MetricRecord) -> Self {
        Self {
            name: Cow::Owned(record.name.clone()),
            unit: Unit::parse(&record.unit),
            better: record.better.0,
            kind: record.kind.0,
        }
    }
}

impl From<&Metric> for MetricRecord {
    fn from(metric: &Metric) -> Self {
        Self {
            name: metric.name.clone().into_owned(),
            unit: metric.unit.as_str().to_owned(),
            better: metric.better.into(),
            kind: metric.kind.into(),
        }
    }
}

impl From<&TestbedRecord> for Testbed {
    fn from(record: &TestbedRecord) -> Self {
        Self { id: record.id.clone(), facts: record.facts.clone(), notes: record.notes.clone() }
    }
}

impl From<&Testbed> for TestbedRecord {
    fn from(testbed: &Testbed) -> Self {
        Self { id: testbed.id.clone(), facts: testbed.facts.clone(), notes: testbed.notes.clone() }
    }
}

impl From<&ToolchainRecord> for Toolchain {
    fn from(record: &ToolchainRecord) -> Self {
        Self {
            version: record.version.clone(),
            compiler_commit: record.compiler_commit.clone(),
            runtime_commit: record.runtime_commit.clone(),
            source: record.source.clone(),
        }
    }
}

impl From<&Toolchain> for ToolchainRecord {
    fn from(toolchain: &Toolchain) -> Self {
        Self {
            version: toolchain.version.clone(),
            compiler_commit: toolchain.compiler_commit.clone(),
            runtime_commit: toolchain.runtime_commit.clone(),
            source: toolchain.source.clone(),
        }
    }
}

impl From<&ContextRecord> for Context {
    fn from(record: &ContextRecord) -> Self {
        Self {
            date: record.date.clone(),
            host_name: record.host_name.clone(),
            executable: record.executable.clone(),
            num_cpus: record.num_cpus,
            mhz_per_cpu: record.mhz_per_cpu.map(f64::from),
            cpu_scaling_enabled: record.cpu_scaling_enabled,
            aslr_enabled: record.aslr_enabled,
            library_build_type: record.library_build_type.clone(),
            library_version: record.library_version.clone(),
            load_avg: record.load_avg.iter().map(|load| load.0).collect(),
        }
    }
}

impl From<&Context> for ContextRecord {
    fn from(context: &Context) -> Self {
        Self {
            date: context.date.clone(),
            host_name: context.host_name.clone(),
            executable: context.executable.clone(),
            num_cpus: context.num_cpus,
            mhz_per_cpu: context.mhz_per_cpu.map(Number),
            cpu_scaling_enabled: context.cpu_scaling_enabled,
            aslr_enabled: context.aslr_enabled,
            library_build_type: context.library_build_type.clone(),
            library_version: context.library_version.clone(),
            load_avg: context.load_avg.iter().copied().map(Number).collect(),
        }
    }
}

impl From<&OutcomeRecord> for Outcome {
    fn from(record: &OutcomeRecord) -> Self {
        let why = record.why.clone().unwrap_or_default();
        match (record.status, record.stage) {
            (OutcomeStatus::Ok, _) => Self::Ok,
            (OutcomeStatus::Unsupported, _) => Self::Unsupported { reason: why },
            (OutcomeStatus::Skipped, _) => Self::Skipped { reason: why },
            // Reading refuses a failure without its stage; benchmark is where it would show.
            (OutcomeStatus::Failed, stage) => {
                Self::Failed { stage: stage.map_or(Stage::Benchmark, |stage| stage.0), why }
            }
        }
    }
}

impl From<&Outcome> for OutcomeRecord {
    fn from(outcome: &Outcome) -> Self {
        let (status, stage, why) = match outcome {
            Outcome::Ok => (OutcomeStatus::Ok, None, None),
            Outcome::Unsupported { reason } => (OutcomeStatus::Unsupported, None, Some(reason)),
            Outcome::Failed { stage, why } => (OutcomeStatus::Failed, Some(*stage), Some(why)),
            Outcome::Skipped { reason } => (OutcomeStatus::Skipped, None, Some(reason)),
        };
        Self { status, stage: stage.map(Into::into), why: why.cloned() }
    }
}

impl From<&ArtifactRecord> for Artifact {
    fn from(record: &ArtifactRecord) -> Self {
        Self { vmfb_sha256: record.vmfb_sha256.clone(), execution_sha256: record.execution_sha256.clone() }
    }
}

impl From<&VerificationRecord> for Verification {
    fn from(record: &VerificationRecord) -> Self {
        let checks = |outputs: &[OutputRecord]| outputs.iter().map(OutputCheck::from).collect();
        Self {
            code: record.code.0,
            outputs: checks(&record.outputs),
            why: record.why.clone(),
            against_base: checks(&record.against_base),
            no_fp64: record.no_fp64.clone(),
        }
    }
}

impl From<&OutputRecord> for OutputCheck {
    fn from(output: &OutputRecord) -> Self {
        Self {
            index: output.index as usize,
            code: output.code.0,
            divergence: output.divergence.as_ref().map(Divergence::from),
            why: output.why.clone(),
        }
    }
}

impl From<&Verification> for VerificationRecord {
    fn from(verification: &Verification) -> Self {
        let records = |outputs: &[OutputCheck]| outputs.iter().map(OutputRecord::from).collect();
        Self {
            code: verification.code.into(),
            why: verification.why.clone(),
            outputs: records(&verification.outputs),
            against_base: records(&verification.against_base),
            no_fp64: verification.no_fp64.clone(),
        }
    }
}

impl From<&OutputCheck> for OutputRecord {
    fn from(output: &OutputCheck) -> Self {
        Self {
            // A function with four thousand million outputs has other problems.
            index: u32::try_from(output.index).unwrap_or(u32::MAX),
            code: output.code.into(),
            why: output.why.clone(),
            divergence: output.divergence.as_ref().map(DivergenceRecord::from),
        }
    }
}

impl From<&DivergenceRecord> for Divergence {
    fn from(record: &DivergenceRecord) -> Self {
        Self {
            max_abs: record.max_abs.0,
            max_rel: record.max_rel.0,
            max_ulp: record.max_ulp.0,
            cosine: record.cosine.0,
            rmse: record.rmse.0,
            mismatched: record.mismatched,
            elements: record.elements,
            non_finite: record.non_finite,
            error: record.error.map(|error| error.0),
            allowed_error: record.allowed_error.map(|error| error.0),
            error_fp64: record.error_fp64.map(|error| error.0),
            reference_error_fp64: record.reference_error_fp64.map(|error| error.0),
        }
    }
}

impl From<&Divergence> for DivergenceRecord {
    fn from(divergence: &Divergence) -> Self {
        Self {
            max_abs: Number(divergence.max_abs),
            max_rel: Number(divergence.max_rel),
            max_ulp: Number(divergence.max_ulp),
            cosine: Number(divergence.cosine),
            rmse: Number(divergence.rmse),
            mismatched: divergence.mismatched,
            elements: divergence.elements,
            non_finite: divergence.non_finite,
            error: divergence.error.map(Number),
            allowed_error: divergence.allowed_error.map(Number),
            error_fp64: divergence.error_fp64.map(Number),
            reference_error_fp64: divergence.reference_error_fp64.map(Number),
        }
    }
}

impl From<&LintRecord> for Lint {
    fn from(record: &LintRecord) -> Self {
        Self { code: record.code.0, detail: record.detail.clone() }
    }
}

impl From<&Lint> for LintRecord {
    fn from(lint: &Lint) -> Self {
        Self { code: lint.code.into(), detail: lint.detail.clone() }
    }
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
