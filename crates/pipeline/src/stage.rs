//! Types that the stages share: the result of a stage, and the benchmark that passes through the stages.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use benchgate_core::model::{
    ARCHITECTURE, Artifact, BenchmarkName, Event, GeneratedCode, JUDGED_BY, JUDGED_BY_OUTPUTS, Lint,
    LintCode, Metric, Outcome, Progress, RENAMED_FROM, Stage, Verification, VerifyCode,
};
use benchgate_core::numerics::TensorFile;
use benchgate_core::record::{Number, StageRecord, StageStatus};
use benchgate_host::files::Scratch;
use benchgate_host::process::ProcessError;

use super::PipelineError;
use super::argv::{Execution, InputArg};
use super::other_inputs::OtherValues;
use super::plan::PlannedBenchmark;

/// The result of a stage for one benchmark, or the reason for its failure.
pub(super) type Staged<T> = Result<T, StageError>;

#[derive(Debug)]
pub(super) enum StageError {
    /// Only this benchmark ends; the others continue.
    Benchmark(StageFailure),
    /// The whole run ends.
    Run(PipelineError),
}

impl StageError {
    /// Adds `what` to the description of a benchmark's failure.
    pub(super) fn about(self, what: &str) -> Self {
        match self {
            Self::Benchmark(failure) => {
                Self::Benchmark(StageFailure { why: format!("{what}: {}", failure.why), ..failure })
            }
            run @ Self::Run(_) => run,
        }
    }
}

impl From<StageFailure> for StageError {
    fn from(failure: StageFailure) -> Self {
        Self::Benchmark(failure)
    }
}

impl From<PipelineError> for StageError {
    fn from(error: PipelineError) -> Self {
        Self::Run(error)
    }
}

impl From<ProcessError> for StageError {
    fn from(error: ProcessError) -> Self {
        Self::Run(error.into())
    }
}

/// The reason why one benchmark can't continue.
#[derive(Debug, Clone)]
pub(super) struct StageFailure {
    pub(super) why: String,
    pub(super) log: Option<PathBuf>,
    /// Duration of the tool, without the time spent waiting for its turn, if a tool ran.
    pub(super) took: Option<Duration>,
    /// True if the benchmark is declared not to work, or impossible on this machine. This is neither a
    /// failure nor a pass.
    pub(super) unsupported: bool,
    /// True if the tool was ended from outside, which says nothing about the model.
    pub(super) killed: bool,
    /// True if the compiler itself reports an error in the program.
    pub(super) rejected: bool,
}

impl StageFailure {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), log: None, took: None, unsupported: false, killed: false, rejected: false }
    }

    pub(super) fn unsupported(reason: impl Into<String>) -> Self {
        Self { unsupported: true, ..Self::new(reason) }
    }

    /// The result of the step in words.
    pub(super) fn note(&self) -> String {
        in_words(if self.unsupported { "unsupported" } else { "failed" }, &self.why, self.log.as_deref())
    }
}

/// The result of a step that did not succeed, with the path of its log.
pub(super) fn in_words(how: &str, why: &str, log: Option<&Path>) -> String {
    let log = log.map_or_else(String::new, |log| format!(" (log: {})", log.display()));
    format!("{how}: {why}{log}")
}

/// A stage that ended, whose log has an absolute path until it is stored.
pub(super) fn ended(stage: Stage, status: StageStatus, seconds: f64) -> StageRecord {
    let seconds = Number(seconds);
    StageRecord {
        stage,
        status,
        seconds,
        made_in_seconds: None,
        peak_memory_bytes: None,
        slot: None,
        log: None,
    }
}

/// The form that run.json stores, in which paths are relative to a folder where possible.
pub(super) fn stored(report: &StageRecord, relative_to: &Path) -> StageRecord {
    let log = report.log.as_ref().map(|log| relative(Path::new(log), relative_to));
    StageRecord { log, ..report.clone() }
}

/// The duration of the tool in this run.
fn took(report: &StageRecord) -> Duration {
    let ran = report.status == StageStatus::Ok;
    Duration::try_from_secs_f64(if ran { report.seconds.0 } else { 0.0 }).unwrap_or_default()
}

pub(super) fn relative(path: &Path, folder: &Path) -> String {
    path.strip_prefix(folder).unwrap_or(path).to_string_lossy().into_owned()
}

pub(super) trait StageOutput {
    fn report(&self) -> StageRecord;
    /// A note of a few words on how the stage ended.
    fn note(&self) -> String;
}

/// The compiler's input, and the data that belongs to it.
#[derive(Debug, Clone)]
pub(super) struct PreparedSource {
    pub(super) mlir: PathBuf,
    pub(super) mlir_sha256: String,
    pub(super) inputs: Vec<InputArg>,
    pub(super) expected: Vec<TensorFile>,
    /// Weights in separate files: each scope with its archive.
    pub(super) parameters: Vec<(String, PathBuf)>,
    /// The expected outputs in double precision, if the exporter computed them.
    pub(super) expected64: Vec<TensorFile>,
    /// The exporter's reason why these outputs are missing.
    pub(super) expected64_problem: Option<String>,
    /// Names of the tensors that a call of the model leaves in its attributes, and that the export leaves out.
    pub(super) left_out: Vec<String>,
    /// The exporter's finding about the reference, if it can't be used: computing it failed, or two eager
    /// executions disagree.
    pub(super) reference_problem: Option<(VerifyCode, String)>,
    pub(super) report: StageRecord,
    pub(super) lowering: Option<String>,
    /// Files that the export read or looked for, relative to the sources.
    pub(super) read: Vec<String>,
    /// Those of these files that did not exist at first.
    pub(super) absent: Vec<String>,
    /// Files that only the kernel saw the export use; `None` if it could not be observed.
    pub(super) observed: Option<Vec<String>>,
    /// The reason why an older cache entry could not be used, if there was one.
    pub(super) damaged: Option<String>,
}

impl StageOutput for PreparedSource {
    fn report(&self) -> StageRecord {
        self.report.clone()
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

#[derive(Debug, Clone)]
pub(super) struct Compiled {
    pub(super) module: PathBuf,
    pub(super) vmfb_sha256: String,
    pub(super) vmfb_bytes: u64,
    pub(super) dispatch_count: Option<u64>,
    /// A description of a file, other than the source, with an operation that keeps a value for the next
    /// call.
    pub(super) stores: Option<String>,
    /// Statistics of the compiler, by its own names.
    pub(super) statistics: std::collections::BTreeMap<String, u64>,
    pub(super) report: StageRecord,
    /// The reason why an older cache entry could not be used, if there was one.
    pub(super) damaged: Option<String>,
}

impl StageOutput for Compiled {
    fn report(&self) -> StageRecord {
        self.report.clone()
    }

    fn note(&self) -> String {
        match self.report.status {
            StageStatus::Cached => "cached".to_owned(),
            _ => format!("{} bytes", self.vmfb_bytes),
        }
    }
}

/// A module that calls a function of another one.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub(super) module: PathBuf,
    /// Number of the function's results that are buffers; the calling module returns only these.
    pub(super) results: usize,
    /// Number of the function's inputs that are buffers.
    pub(super) inputs: usize,
    /// Deletes the module when its last owner is dropped. `None` if the module came with a bundle.
    pub(super) _folder: Option<Arc<Scratch>>,
}

/// The outputs of one verified call, on disk until they are compared with the other side's.
#[derive(Debug, Clone)]
pub(super) struct Outputs {
    /// Deletes the files when its last owner is dropped.
    pub(super) _folder: Arc<Scratch>,
    pub(super) files: Vec<TensorFile>,
    /// The outputs of a first call with other inputs, in the same folder; empty if there was none.
    pub(super) with_others: Vec<TensorFile>,
    /// The inputs that the first call changed, with the values that it left there.
    pub(super) left: Vec<TensorFile>,
    /// The outputs of the same computation in fp64, if the exporter has them.
    pub(super) exact: Vec<TensorFile>,
    /// The data with which the function was called, and their digest.
    pub(super) arguments: Vec<InputArg>,
    pub(super) inputs: String,
    /// Digest of the program and its data: MLIR, parameters and inputs.
    pub(super) question: String,
    /// Digest of the inputs and their reference, if there is one.
    pub(super) answer: Option<String>,
}

/// The calls of a benchmark's function.
#[derive(Debug, Clone, Default)]
pub(super) struct Calls {
    /// Peak memory of the verified call on the device, in bytes.
    pub(super) peak_device_memory: Option<u64>,
    /// Its outputs, until both sides are available, if they are compared with the other side's.
    pub(super) outputs: Option<Outputs>,
    /// The reason why they can't be compared, if there is no reference either.
    pub(super) incomparable: Option<&'static str>,
    /// The values by which the inputs of a later call differed from those of the first one.
    pub(super) other_values: Option<OtherValues>,
}

/// A benchmark of one side, with the results of its stages so far.
#[derive(Debug, Clone)]
pub(super) struct Prepared<'a> {
    pub(super) planned: PlannedBenchmark<'a>,
    pub(super) outcome: Outcome,
    pub(super) stages: Vec<StageRecord>,
    pub(super) lints: Vec<Lint>,
    pub(super) source: Option<PreparedSource>,
    pub(super) compiled: Option<Compiled>,
    /// The module that calls the benchmark's function more than once; only for timed targets.
    pub(super) caller: Option<Caller>,
    pub(super) artifact: Option<Artifact>,
    pub(super) verification: Option<Verification>,
    pub(super) calls: Calls,
    /// Exact facts of the compilation: the compiler's instruction count, if instructions are counted, and
    /// facts of the generated code, if it is judged.
    pub(super) code_facts: Vec<(Metric, f64)>,
    /// The processors for which the code was generated, if the code is judged.
    pub(super) architecture: Option<String>,
    /// The generated code, which can explain a change of a time that is judged.
    pub(super) code: Option<GeneratedCode>,
    /// The executed module, its device and its data, once they are known.
    pub(super) execution: Option<Execution>,
}

impl<'a> Prepared<'a> {
    /// Creates a benchmark that has not passed any stage.
    pub(super) fn new(planned: PlannedBenchmark<'a>) -> Self {
        Self {
            planned,
            outcome: Outcome::Ok,
            stages: Vec::new(),
            lints: Vec::new(),
            source: None,
            compiled: None,
            caller: None,
            artifact: None,
            verification: None,
            calls: Calls::default(),
            code_facts: Vec::new(),
            architecture: None,
            code: None,
            execution: None,
        }
    }

    pub(super) fn name(&self) -> BenchmarkName {
        self.planned.name()
    }

    pub(super) fn labels(&self) -> impl Iterator<Item = (String, String)> {
        let PlannedBenchmark { model, target, .. } = self.planned;
        let source = self.source.as_ref();
        let exporter = source.and(model.exporter).map(|exporter| exporter.into_str().to_owned());
        let always = [("model", &model.name), ("target", &target.name), ("function", &model.function)];
        let always = always.map(|(label, value)| (label, Some(value.clone())));
        let renamed = self.planned.side.config.renames.contains_key(&model.name);
        let outputs = target.judges_outputs().then(|| JUDGED_BY_OUTPUTS.to_owned());
        let exported = [
            (JUDGED_BY, outputs),
            (ARCHITECTURE, self.architecture.clone()),
            ("lowering", source.and_then(|source| source.lowering.clone())),
            ("exporter", exporter),
            (RENAMED_FROM, renamed.then(|| self.planned.judged_as().to_string())),
            ("torchbench", source.and_then(|_| self.planned.torchbench())),
        ];
        always.into_iter().chain(exported).filter_map(|(label, value)| Some((label.to_owned(), value?)))
    }

    /// Runs one stage, announces it and records its result. `None` if the benchmark ends with this stage.
    pub(super) async fn stage<T: StageOutput>(
        &mut self,
        stage: Stage,
        progress: &dyn Progress,
        work: impl Future<Output = Staged<T>>,
    ) -> Result<Option<T>, PipelineError> {
        let what = format!("{} {}", self.name(), self.planned.side.name);
        let started = Instant::now();
        progress.on(Event::StepStarted { stage, what: &what });
        let finished = |note: &str, took| progress.on(Event::StepFinished { stage, what: &what, note, took });
        match work.await {
            Ok(output) => {
                let report = output.report();
                finished(&output.note(), took(&report));
                self.stages.push(report);
                Ok(Some(output))
            }
            Err(StageError::Run(error)) => Err(error),
            Err(StageError::Benchmark(failure)) => {
                finished(&failure.note(), failure.took.unwrap_or_else(|| started.elapsed()));
                self.fail(stage, failure);
                Ok(None)
            }
        }
    }

    /// Ends the benchmark at this stage.
    pub(super) fn fail(&mut self, stage: Stage, failure: StageFailure) {
        let status = if failure.unsupported { StageStatus::Skipped } else { StageStatus::Failed };
        let seconds = failure.took.unwrap_or_default().as_secs_f64();
        let log = failure.log.map(|log| log.to_string_lossy().into_owned());
        self.stages.push(StageRecord { log, ..ended(stage, status, seconds) });
        if failure.killed {
            self.lints.push(Lint::new(LintCode::Killed, format!("{stage}: {}", failure.why)));
        }
        // The compiler's error may be caused by a file that is missing in an incomplete checkout.
        if failure.rejected && self.planned.side.is_complete() {
            self.lints.push(Lint::new(LintCode::CompilerRejected, failure.why.clone()));
        }
        self.outcome = if failure.unsupported {
            Outcome::Unsupported { reason: failure.why }
        } else {
            Outcome::Failed { stage, why: failure.why }
        };
    }

    /// Adds a note that a damaged cache entry was created again.
    pub(super) fn note_damage(&mut self, damaged: Option<&String>, progress: &dyn Progress) {
        if let Some(why) = damaged {
            progress.on(Event::Warning(&format!("a damaged cache entry was rebuilt: {why}")));
            self.lints.push(Lint::new(LintCode::CacheDiscarded, why.clone()));
        }
    }
}

/// The peak of the memory allocated on the device. If a tool reports it in another form, it is unknown, never
/// zero.
pub(super) fn peak_device_memory(stderr: &str) -> Option<u64> {
    // An example: `DEVICE_LOCAL:       524288B peak /       524288B allocated / …`.
    let line = stderr.lines().rev().find_map(|line| line.trim().strip_prefix("DEVICE_LOCAL:"))?;
    let (bytes, _) = line.split_once("B peak")?;
    bytes.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_read_from_what_the_tool_prints_on_exit() {
        // Output of iree-run-module 3.13.0 on local-task; that of 3.9.0 has the same form.
        let printed = "Device: local-task\n[[ iree_hal_allocator_t memory statistics ]]\n  \
                       HOST_LOCAL:       262144B peak /       262144B allocated /       262144B freed /            0B live\n\
                       DEVICE_LOCAL:       524288B peak /       524288B allocated /       524288B freed /            0B live\n\n";
        assert_eq!(peak_device_memory(printed), Some(524_288));
    }

    #[test]
    fn other_words_leave_it_unknown() {
        for other in ["", "DEVICE_LOCAL: 5 MiB peak / 0", "HOST_LOCAL: 5B peak /", "DEVICE_LOCAL: -5B peak"] {
            assert_eq!(peak_device_memory(other), None, "{other}");
        }
    }
}
