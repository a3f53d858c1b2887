//! One benchmark of one side, from its source to a verified module that is ready to be measured.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::{Input, ModelSource, Parameters};
use crate::device::{Choice, Gpus, Watched};
use crate::files::Scratch;
use crate::model::{
    Artifact, BenchmarkName, Event, Lint, LintCode, Outcome, Progress, Stage, Testbed, Verification,
    VerifyCode,
};
use crate::numerics::TensorFile;
use crate::process::{Cancel, Command, Exit, Finished};
use crate::record::StageStatus;
use crate::toolchain::{Environment, Installed};

use super::argv::{CompileSpec, Execution, InputArg};
use super::cache::{Cache, Digests, KeyBuilder};
use super::compile::{self, Compiled};
use super::divergence::Outputs;
use super::export::Exported;
use super::failures::Failures;
use super::flags::Named;
use super::interpreters::Interpreters;
use super::plan::Planned;
use super::slots::{Slots, Turn, Urgency};
use super::targets::{Devices, Presence};
use super::trace::Sources;
use super::{PipelineError, devices, ir, verify};

/// Less room than this on a disk is none.
const FULL_DISK_BYTES: u64 = 1 << 20;

/// What every stage needs.
pub(super) struct Context<'a> {
    pub(super) cache: &'a Cache,
    pub(super) progress: &'a dyn Progress,
    pub(super) cancel: &'a Cancel,
    pub(super) testbed: &'a Testbed,
    /// Tools at once, while nothing is measured.
    pub(super) slots: Slots,
    /// What inputs and parameters are, by content.
    pub(super) digests: Digests,
    /// What the sides' sources are, by content.
    pub(super) sources: Sources,
    /// What failed already.
    pub(super) failures: Failures,
    /// Which devices are there.
    pub(super) devices: Devices,
    /// What exports models.
    pub(super) interpreters: Interpreters,
    /// Whether there is a base, with whose outputs head's are compared.
    pub(super) paired: bool,
    /// Where the IR of every phase goes, where it is asked for.
    pub(super) ir: Option<PathBuf>,
    /// Where logs of failures are kept.
    pub(super) logs: PathBuf,
    /// Where folders are made that end with the step that needs them. Not in the cache, which may be read-only.
    pub(super) scratch: PathBuf,
    /// Processors for CPU devices.
    pub(super) cpus: Option<Vec<usize>>,
    /// The GPUs of this machine; empty where no target needs one.
    pub(super) gpus: Arc<Gpus>,
    /// What each target's device is among them.
    pub(super) choices: Vec<Choice>,
}

impl Context<'_> {
    /// Runs a tool; an interrupt ends the run.
    pub(super) async fn run(&self, command: &Command) -> Result<Finished, PipelineError> {
        let finished = crate::process::run(command, self.cancel).await?;
        if finished.exit == Exit::Interrupted { Err(PipelineError::Interrupted) } else { Ok(finished) }
    }

    /// A folder that ends with its holder.
    pub(super) fn scratch(&self) -> Result<Scratch, PipelineError> {
        Scratch::new_in(&self.scratch, "").map_err(PipelineError::io("write in", &self.scratch))
    }

    /// Waits for a turn to run a tool, or for an interrupt.
    pub(super) async fn slot(&self) -> Result<Turn, PipelineError> {
        self.slot_for(Urgency::Now).await
    }

    /// The same, for what may have to wait for something more urgent.
    pub(super) async fn slot_for(&self, urgency: Urgency) -> Result<Turn, PipelineError> {
        tokio::select! {
            turn = self.slots.turn(urgency) => Ok(turn),
            () = self.cancel.requested() => Err(PipelineError::Interrupted),
        }
    }

    /// Keeps the log of a failed step beyond the step's own folder.
    pub(super) fn keep_log(&self, log: &Path, stage: &str, key: &str) -> Result<PathBuf, PipelineError> {
        fs::create_dir_all(&self.logs).map_err(PipelineError::io("create", &self.logs))?;
        // Twelve hexadecimal digits tell any two steps of one run apart.
        let kept = self.logs.join(format!("{stage}-{}.log", &key[..12]));
        match fs::copy(log, &kept) {
            Ok(_) => Ok(kept),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(kept),
            Err(error) => Err(PipelineError::io("write", &kept)(error)),
        }
    }

    /// A tool that failed for want of room says nothing about the model: the run stops instead.
    pub(super) fn fail_on_full_disk(&self, finished: &Finished, folder: &Path) -> Result<(), PipelineError> {
        // Writing to a mapped file on a full disk is not an error that a program could print.
        let full = || crate::device::free_bytes(folder).is_some_and(|free| free < FULL_DISK_BYTES);
        let is_bus_error = finished.exit.is_bus_error();
        if finished.stderr_tail.contains("No space left on device") || is_bus_error && full() {
            return Err(PipelineError::io("write in", folder)(std::io::ErrorKind::StorageFull.into()));
        }
        Ok(())
    }

    fn is_cpu(device: &str) -> bool {
        device.starts_with("local-")
    }

    /// What to watch while a process runs on this device.
    pub(super) fn watched(&self, device: &str, env: &BTreeMap<String, String>) -> Watched {
        Watched {
            gpus: Arc::clone(&self.gpus),
            indices: devices::chosen(&self.gpus, device, env).candidates().to_vec(),
            cpus: self.cpus_for(device),
        }
    }

    /// Processors a device's process is pinned to.
    pub(super) fn cpus_for(&self, device: &str) -> Option<Vec<usize>> {
        self.cpus.clone().filter(|_| Self::is_cpu(device))
    }
}

/// Why one benchmark can't go on.
#[derive(Debug, Clone)]
pub(super) struct StageFailure {
    pub(super) why: String,
    pub(super) log: Option<PathBuf>,
    /// How long the tool ran, without the wait for its turn, where a tool ran.
    pub(super) took: Option<Duration>,
    /// Declared not to work, or impossible on this machine: not a failure, and not a pass.
    pub(super) unsupported: bool,
    /// The tool was ended from outside, which says nothing about the model.
    pub(super) killed: bool,
}

impl StageFailure {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), log: None, took: None, unsupported: false, killed: false }
    }

    pub(super) fn unsupported(reason: impl Into<String>) -> Self {
        Self { unsupported: true, ..Self::new(reason) }
    }
}

/// How a stage of one benchmark went.
#[derive(Debug, Clone)]
pub(super) struct StageReport {
    pub(super) stage: Stage,
    pub(super) status: StageStatus,
    pub(super) seconds: f64,
    pub(super) peak_memory_bytes: Option<u64>,
    pub(super) log: Option<PathBuf>,
}

impl StageReport {
    /// There was nothing to do.
    pub(super) fn skipped(stage: Stage) -> Self {
        Self { stage, status: StageStatus::Skipped, seconds: 0.0, peak_memory_bytes: None, log: None }
    }
}

/// A benchmark of one side, ready to be measured or with the reason why not.
#[derive(Debug, Clone)]
pub(super) struct Prepared {
    pub(super) name: BenchmarkName,
    pub(super) labels: Vec<(String, String)>,
    pub(super) outcome: Outcome,
    pub(super) stages: Vec<StageReport>,
    pub(super) compiled: Option<Compiled>,
    pub(super) artifact: Option<Artifact>,
    pub(super) verification: Option<Verification>,
    /// Bytes on the device in one call.
    pub(super) peak_device_memory: Option<u64>,
    pub(super) execution: Option<Execution>,
    /// What the verified call computed, until both sides are there.
    pub(super) outputs: Option<Outputs>,
    pub(super) lints: Vec<Lint>,
}

/// What the stages before the compiler produced.
pub(super) struct Source {
    pub(super) mlir: PathBuf,
    pub(super) mlir_sha256: String,
    pub(super) inputs: Vec<InputArg>,
    pub(super) expected: Vec<TensorFile>,
    /// Weights beside the MLIR: scope and archive.
    pub(super) parameters: Vec<(String, PathBuf)>,
    /// The same in double precision, where the exporter has it.
    pub(super) expected64: Vec<TensorFile>,
    /// Why the exporter has none.
    pub(super) expected64_problem: Option<String>,
    /// The exporter's own finding about the reference: it failed, or eager disagrees with itself.
    pub(super) reference_problem: Option<(VerifyCode, String)>,
    pub(super) report: StageReport,
    pub(super) lowering: Option<String>,
}

/// A benchmark whose module is there, with its data.
pub(super) struct Built {
    pub(super) prepared: Prepared,
    pub(super) source: Source,
    pub(super) compiled: Compiled,
}

/// Takes a benchmark through export, compile and verify. Fails only where the whole run must stop.
pub(super) async fn prepare(
    context: &Context<'_>,
    planned: Planned<'_>,
    tools: &Installed,
) -> Result<Prepared, PipelineError> {
    match build(context, planned, tools).await? {
        Ok(built) => check(context, planned, tools, *built).await,
        Err(failed) => Ok(*failed),
    }
}

/// A benchmark before anything was done for it.
pub(super) fn unprepared(planned: Planned<'_>) -> Prepared {
    Prepared {
        labels: vec![
            ("model".into(), planned.model.name.clone()),
            ("target".into(), planned.target.name.clone()),
            ("function".into(), planned.model.function.clone()),
        ],
        name: planned.name(),
        outcome: Outcome::Ok,
        stages: Vec::new(),
        compiled: None,
        artifact: None,
        verification: None,
        peak_device_memory: None,
        execution: None,
        outputs: None,
        lints: Vec::new(),
    }
}

/// What an exported model was lowered to, and by which exporter.
pub(super) fn labels_of_export(planned: Planned<'_>, source: &Source) -> Vec<(String, String)> {
    let lowering = source.lowering.iter().map(|lowering| ("lowering".to_owned(), lowering.clone()));
    let exporter = planned.model.exporter;
    let exporter = exporter.iter().map(|exporter| ("exporter".to_owned(), exporter.as_str().to_owned()));
    lowering.chain(exporter).collect()
}

/// Export and compile: all that needs Python or a compiler. The inner error is a benchmark that ends here.
pub(super) async fn build(
    context: &Context<'_>,
    planned: Planned<'_>,
    tools: &Installed,
) -> Result<Result<Box<Built>, Box<Prepared>>, PipelineError> {
    let mut prepared = unprepared(planned);
    let what = format!("{} {}", prepared.name, planned.side.name);

    // Not a finding about the model, and not the whole run's: the other benchmarks need no such environment.
    if let Some(exporter) = planned.model.exporter
        && let Err(why) = context.interpreters.environment(Environment::of(exporter))
    {
        return Ok(Err(Box::new(failed(prepared, Stage::Toolchain, StageFailure::new(why)))));
    }
    let source = match step(context, Stage::Export, &what, source(context, planned)).await? {
        Ok(source) => source,
        Err(failure) => return Ok(Err(Box::new(failed(prepared, Stage::Export, failure)))),
    };
    prepared.stages.push(source.report.clone());
    prepared.labels.extend(labels_of_export(planned, &source));

    let job = compile::Job {
        tools,
        source: &source.mlir,
        source_sha256: &source.mlir_sha256,
        spec: compile_spec(planned),
        folder: &planned.side.side.sources,
        timeout: planned.side.config.measure.compile_timeout,
    };
    if let Some(root) = &context.ir {
        ir::dump(context, planned, &job, root).await?;
    }
    let compiled = match step(context, Stage::Compile, &what, compile::compile(context, &job)).await? {
        Ok(compiled) => compiled,
        Err(failure) => return Ok(Err(Box::new(failed(prepared, Stage::Compile, failure)))),
    };
    if let Some(why) = &compiled.damaged {
        context.progress.on(Event::Warning(&format!("a damaged cache entry was made again: {why}")));
        prepared.lints.push(Lint::new(LintCode::CacheDiscarded, why.clone()));
    }
    prepared.stages.push(StageReport {
        stage: Stage::Compile,
        status: if compiled.cached { StageStatus::Cached } else { StageStatus::Ok },
        seconds: compiled.seconds,
        peak_memory_bytes: compiled.peak_memory_bytes,
        log: Some(compiled.log.clone()),
    });
    Ok(Ok(Box::new(Built { prepared, source, compiled })))
}

/// Looks for the device and verifies: all that must happen where it is measured.
pub(super) async fn check(
    context: &Context<'_>,
    planned: Planned<'_>,
    tools: &Installed,
    built: Built,
) -> Result<Prepared, PipelineError> {
    let Built { mut prepared, source, compiled } = built;
    let what = format!("{} {}", prepared.name, planned.side.name);
    let execution = execution(context, planned, &source, &compiled);
    prepared.artifact = Some(Artifact {
        vmfb_sha256: compiled.vmfb_sha256.clone(),
        execution_sha256: match execution_sha256(context, &execution, planned, tools).await? {
            Ok(digest) => digest,
            Err(why) => return Ok(failed(prepared, Stage::Verify, StageFailure::new(why))),
        },
    });
    prepared.compiled = Some(compiled);

    match context.devices.find(context, tools, planned.target).await? {
        Presence::Present => {}
        // What the compiler made is known all the same, and is compared. The time is not.
        Presence::Absent { what, said } => {
            prepared.lints.push(Lint::new(LintCode::NoDevice, said));
            prepared.outcome = Outcome::Unsupported { reason: format!("{what} (compiled only)") };
            return Ok(prepared);
        }
        // The machine's fault, like a process that can't be measured.
        Presence::Broken { why } => return Ok(failed(prepared, Stage::Benchmark, StageFailure::new(why))),
    }

    let verified =
        step(context, Stage::Verify, &what, verify::verify(context, planned, tools, &execution, &source));
    match verified.await? {
        Ok(verified) => {
            prepared.stages.push(verified.report);
            prepared.peak_device_memory = verified.peak_device_memory;
            // There is a reference, and nothing was verified by it.
            if verified.verification.code == VerifyCode::VerifierSkipped && !source.expected.is_empty() {
                let why = verified.verification.why.clone().unwrap_or_default();
                prepared.lints.push(Lint::new(LintCode::VacuousReference, why));
            }
            prepared.verification = Some(verified.verification);
            prepared.outputs = verified.outputs;
            prepared.execution = Some(execution);
        }
        Err(failure) => {
            prepared.verification =
                Some(Verification::bare(VerifyCode::ExceptionRaised, Some(failure.why.clone())));
            return Ok(failed(prepared, Stage::Verify, failure));
        }
    }
    Ok(prepared)
}

/// Announces a step and how it ended.
async fn step<T>(
    context: &Context<'_>,
    stage: Stage,
    what: &str,
    work: impl Future<Output = Result<Result<T, StageFailure>, PipelineError>>,
) -> Result<Result<T, StageFailure>, PipelineError>
where
    T: Noted,
{
    let started = Instant::now();
    context.progress.on(Event::StepStarted { stage, what });
    let result = work.await?;
    let (note, took) = match &result {
        Ok(value) => (value.note(), value.took()),
        Err(failure) => {
            let log = failure.log.as_ref().map(|log| format!(" (log: {})", log.display()));
            let how = if failure.unsupported { "unsupported" } else { "failed" };
            let note = format!("{how}: {}{}", failure.why, log.unwrap_or_default());
            (note, failure.took.unwrap_or_else(|| started.elapsed()))
        }
    };
    context.progress.on(Event::StepFinished { stage, what, note: &note, took });
    Ok(result)
}

/// Says in a word how a step ended, and how long the tool took without the wait for its turn.
pub(super) trait Noted {
    fn note(&self) -> String;
    fn took(&self) -> Duration;
}

fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

impl Noted for Source {
    fn took(&self) -> Duration {
        if self.report.status == StageStatus::Ok { duration(self.report.seconds) } else { Duration::ZERO }
    }

    fn note(&self) -> String {
        match self.report.status {
            StageStatus::Cached => "cached".to_owned(),
            StageStatus::Skipped => "already MLIR".to_owned(),
            StageStatus::Ok | StageStatus::Failed => {
                let narrow = self.expected64_problem.as_ref().map(|why| format!("no fp64 reference: {why}"));
                let notes: Vec<String> = self.lowering.clone().into_iter().chain(narrow).collect();
                notes.join("; ")
            }
        }
    }
}

impl Noted for Compiled {
    fn took(&self) -> Duration {
        if self.cached { Duration::ZERO } else { duration(self.seconds) }
    }

    fn note(&self) -> String {
        if self.cached { "cached".to_owned() } else { format!("{} bytes", self.vmfb_bytes) }
    }
}

pub(super) fn failed(mut prepared: Prepared, stage: Stage, failure: StageFailure) -> Prepared {
    prepared.stages.push(StageReport {
        stage,
        status: if failure.unsupported { StageStatus::Skipped } else { StageStatus::Failed },
        seconds: failure.took.unwrap_or_default().as_secs_f64(),
        peak_memory_bytes: None,
        log: failure.log,
    });
    if failure.killed {
        prepared.lints.push(Lint::new(LintCode::Killed, format!("{stage}: {}", failure.why)));
    }
    prepared.outcome = if failure.unsupported {
        Outcome::Unsupported { reason: failure.why }
    } else {
        Outcome::Failed { stage, why: failure.why }
    };
    prepared
}

pub(super) fn compile_spec(planned: Planned<'_>) -> CompileSpec {
    CompileSpec {
        backend: planned.target.backend.clone(),
        input_type: planned.model.input_type.clone(),
        dispatch_repeats: planned.model.dispatch_repeats,
        flags: [&planned.target.flags, &planned.model.flags, &planned.side.side.flags]
            .into_iter()
            .flatten()
            .cloned()
            .collect(),
    }
}

/// Finds a model's source, exporting it where it is Python.
async fn source(
    context: &Context<'_>,
    planned: Planned<'_>,
) -> Result<Result<Source, StageFailure>, PipelineError> {
    let folder = &planned.side.side.sources;
    let model = planned.model;
    match &model.source {
        ModelSource::Mlir(path) => {
            let mlir = folder.join(path);
            let parameters = |archive: &Parameters| (archive.scope.clone(), folder.join(&archive.path));
            let inputs = model.inputs.iter().map(|input| match input {
                Input::File(file) => InputArg::File(file.below(folder)),
                Input::Literal(text) => InputArg::Literal(text.clone()),
            });
            Ok(Ok(Source {
                mlir_sha256: context.digests.of(&mlir).await?,
                mlir,
                inputs: inputs.collect(),
                expected: model.expected.iter().map(|file| file.below(folder)).collect(),
                parameters: model.parameters.iter().map(parameters).collect(),
                expected64: model.expected_f64.iter().map(|file| file.below(folder)).collect(),
                expected64_problem: None,
                reference_problem: None,
                report: StageReport::skipped(Stage::Export),
                lowering: None,
            }))
        }
        ModelSource::Python { .. } | ModelSource::Zoo(_) => {
            let Some(exporter) = model.exporter else {
                return Ok(Err(StageFailure::new("the model names no exporter")));
            };
            let exported = super::export::export(context, planned, exporter).await?;
            Ok(exported.map(Exported::into_source))
        }
    }
}

fn execution(context: &Context<'_>, planned: Planned<'_>, source: &Source, compiled: &Compiled) -> Execution {
    Execution {
        module: compiled.module.clone(),
        function: planned.model.function.clone(),
        device: planned.target.device.clone(),
        inputs: source.inputs.clone(),
        parameters: source.parameters.clone(),
        allocators: planned.target.allocators.clone(),
        dispatch_repeats: planned.model.dispatch_repeats,
        run_flags: planned.target.run_flags.iter().chain(&planned.side.side.run_flags).cloned().collect(),
        workers: context.cpus_for(&planned.target.device).map(|cpus| cpus.len()),
    }
}

/// The digest of everything that is executed with the module: runtime, data, flags, environment. The inner
/// error is a flag that names a file that is not there.
async fn execution_sha256(
    context: &Context<'_>,
    execution: &Execution,
    planned: Planned<'_>,
    tools: &Installed,
) -> Result<Result<String, String>, PipelineError> {
    let folder = &planned.side.side.sources;
    let named = match Named::find(&execution.run_flags, folder) {
        Ok(named) => named,
        Err(why) => return Ok(Err(why)),
    };
    let mut key = KeyBuilder::new("execution/2")
        .text("tools", &tools.digest)
        .text("function", &execution.function)
        .text("device", &execution.device)
        .list("flag", &execution.run_flags)
        .list("allocator", &execution.allocators)
        .text("dispatch-repeats", &execution.dispatch_repeats.to_string())
        .list("env", planned.target.env.iter().map(|(name, value)| format!("{name}={value}")))
        .text("workers", &format!("{:?}", execution.workers));
    key = named.add_to(key, &context.digests).await?;
    key = Named::in_values(planned.target.env.values(), folder).add_to(key, &context.digests).await?;
    key = add_inputs(key, &execution.inputs, &context.digests).await?;
    for (scope, path) in &execution.parameters {
        key = key.text("scope", scope).text("parameters", &context.digests.of(path).await?);
    }
    Ok(Ok(key.finish()))
}

/// What a function is called with: contents, and not names.
pub(super) async fn add_inputs(
    mut key: KeyBuilder,
    inputs: &[InputArg],
    digests: &Digests,
) -> Result<KeyBuilder, PipelineError> {
    for input in inputs {
        key = match input {
            InputArg::File(file) => add_tensor(key, "npy", file, digests).await?,
            InputArg::Literal(text) => key.text("literal", text),
        };
    }
    Ok(key)
}

/// The content of a file, and the type that its bytes are read as.
pub(super) async fn add_tensor(
    key: KeyBuilder,
    name: &str,
    file: &TensorFile,
    digests: &Digests,
) -> Result<KeyBuilder, PipelineError> {
    let key = key.text(name, &digests.of(&file.path).await?);
    Ok(match &file.raw {
        Some(raw) => key.text("raw", raw),
        None => key,
    })
}
