//! Runs one fresh process of one experiment: sends its request, reads its answer, and checks the answer.
//!
//! The answer of a backend's process, or an answer that is derived from its output after a crash.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use benchgate_core::model::{BenchmarkName, Outcome, Stage, Verification, VerifyCode};
use benchgate_core::numerics::{self, TensorFile};
use benchgate_core::record::{BackendProcessRecord, CollectedRecord, MemoryRecord, Number, OutcomeRecord};
use benchgate_host::files;
use benchgate_host::process::{Command, Exit, Finished};

use super::super::PipelineError;
use super::super::cache::{Cache, KeyBuilder, package_digest, write_json};
use super::super::interpreters::ExporterSource;
use super::super::journal::Journal;
use super::super::stage::StageError;
use super::super::timed::latency_in_words;
use super::super::verify::tensors;
use super::request::{BackendInterpreter, BackendInterpreters, BackendProcess, unsupported};

/// The result of a finished process, as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(super) outcome: OutcomeRecord,
    pub(super) verification: Option<Verification>,
    pub(super) versions: BTreeMap<String, String>,
    /// Absent if no process was started.
    pub(super) process: Option<BackendProcessRecord>,
}

impl Kept {
    fn ended(outcome: &Outcome) -> Self {
        Self {
            outcome: OutcomeRecord::from(outcome),
            verification: None,
            versions: BTreeMap::new(),
            process: None,
        }
    }

    pub(super) fn outcome(&self) -> Outcome {
        Outcome::from(&self.outcome)
    }

    /// A note for progress messages.
    pub(super) fn note(&self) -> String {
        match self.outcome() {
            Outcome::Unsupported { reason } | Outcome::Skipped { reason } => format!("unsupported: {reason}"),
            Outcome::Failed { stage, why } => format!("failed: {stage}: {why}"),
            Outcome::Ok => {
                let latency = self.process.as_ref().and_then(|process| latency_in_words(&process.latency));
                let code = self.verification.as_ref().map(|v| format!(", {}", v.code)).unwrap_or_default();
                latency.map_or_else(String::new, |latency| latency + &code)
            }
        }
    }
}

/// Runs the process, or returns its result if an interrupted session already has it.
pub(super) async fn once(
    job: &BackendProcess<'_, '_>,
    interpreters: &BackendInterpreters,
    journal: &Journal,
) -> Result<Kept, PipelineError> {
    let experiment = job.experiment;
    if let Some(reason) = unsupported(experiment) {
        return Ok(Kept::ended(&Outcome::Unsupported { reason }));
    }
    let interpreter = match interpreters.find(experiment.backend.kind) {
        Ok(interpreter) => interpreter,
        Err(reason) => return Ok(Kept::ended(&Outcome::Unsupported { reason })),
    };
    let request = job.request()?;
    let key = KeyBuilder::new("backend/1")
        .text("package", &BackendsSource::digest())
        .text("python", &interpreter.python.to_string_lossy())
        .text("request", &request.to_string())
        .finish();
    let folder = journal.backends();
    fs::create_dir_all(&folder).map_err(PipelineError::io("create", &folder))?;
    let name = format!("{}-{}", &key[..16], job.number);
    let file = folder.join(format!("{name}.json"));
    if let Some(kept) = fs::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
        return Ok(kept);
    }
    let log = folder.join(format!("{name}.log"));
    let kept = started(job, interpreter, request, &log).await?;
    write_json(&file, &kept)?;
    Ok(kept)
}

async fn started(
    job: &BackendProcess<'_, '_>,
    interpreter: &BackendInterpreter,
    mut request: serde_json::Value,
    log: &Path,
) -> Result<Kept, PipelineError> {
    let host = job.host;
    let packages = BackendsSource::install(&host.cache)?;
    let exporter = ExporterSource::install(&host.cache)?;
    let staged = host.scratch()?;
    let out = staged.path();
    fs::create_dir_all(&job.compiler_cache).map_err(PipelineError::io("create", &job.compiler_cache))?;
    request["out"] = serde_json::json!(out);
    if !job.dumps().is_empty() {
        request["dump-dir"] = serde_json::json!(job.dump_folder());
    }
    let (asked, answered) = (out.join("request.json"), out.join("answer.jsonl"));
    fs::write(&asked, request.to_string()).map_err(PipelineError::io("write", &asked))?;
    files::if_exists(fs::remove_file(log)).map_err(PipelineError::io("remove", log))?;
    let backend = job.experiment.backend;
    let command = Command::new(&interpreter.python, backend.timeout)
        .args(["-m", "benchgate_backends"])
        .arg(&asked)
        .arg(&answered)
        .cwd(&packages)
        .env("PYTHONPATH", &exporter)
        .env("BENCHGATE_PACKAGES", std::env::join_paths(&interpreter.packages).unwrap_or_default())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PYTHONHASHSEED", "0")
        .env("TMPDIR", out)
        .env("TORCHINDUCTOR_CACHE_DIR", job.compiler_cache.join("inductor"))
        .env("TRITON_CACHE_DIR", job.compiler_cache.join("triton"))
        .envs(&backend.env)
        .cpus(host.cpus.clone().filter(|_| job.experiment.device == "cpu"))
        .log(log);
    let load_avg = benchgate_host::device::load_average();
    let started = jiff::Timestamp::now().to_string();
    let finished = match host.run(&command).await {
        Ok(finished) => finished,
        // An interpreter that does not start only affects its own backend's row, but a full disk affects the
        // whole run.
        Err(PipelineError::Process(error)) if !error.is_disk_full() => {
            let why = format!("failed to {error}");
            return Ok(Kept::ended(&Outcome::Failed { stage: Stage::Toolchain, why }));
        }
        Err(error) => return Err(error),
    };
    host.fail_on_full_disk(&finished, out)?;
    let text = fs::read_to_string(&answered).unwrap_or_default();
    let answer = BackendAnswer::read(&text, &finished, job.compiler_dump.is_none());
    let verification = verification(job, &answer, out)?;
    let failure = (answer.status == BackendStatus::Failed).then(|| answer.why());
    let process = BackendProcessRecord {
        started,
        seconds: Number(finished.wall.as_secs_f64()),
        failure,
        peak_memory_bytes: finished.peak_memory_bytes,
        load_avg: load_avg.to_vec(),
        log: Some(log.to_string_lossy().into_owned()),
        iterations: answer.iterations,
        compile_seconds: answer.compile_seconds.filter(|_| answer.cold).map(Number),
        latency: answer.samples.clone(),
        metrics: answer
            .metrics
            .iter()
            .map(|(name, values)| (name.clone(), values.iter().copied().map(Number).collect()))
            .collect(),
        memory: answer.memory.iter().map(memory_record).collect(),
        collected: answer.collected.clone(),
    };
    Ok(Kept {
        outcome: OutcomeRecord::from(&answer.outcome()),
        verification: verification.clone(),
        versions: answer.versions,
        process: Some(process),
    })
}

/// Compares the written tensors with the outputs of eager execution, under the suite's own tolerances.
fn verification(
    job: &BackendProcess<'_, '_>,
    answer: &BackendAnswer,
    out: &Path,
) -> Result<Option<Verification>, PipelineError> {
    let with = |code, why| Some(Verification::bare(code, Some(why)));
    if let Some(code) = answer.code.as_deref().and_then(VerifyCode::parse) {
        let why = match code {
            VerifyCode::NondeterministicEagerRun => "two eager runs on the same input differ".to_owned(),
            _ => answer.why(),
        };
        return Ok(with(code, why));
    }
    let Some(count) = answer.outputs else {
        let in_verifier = answer.status == BackendStatus::Failed && answer.stage.as_deref() == Some("verify");
        return Ok(if in_verifier { with(VerifyCode::ExceptionRaised, answer.why()) } else { None });
    };
    // File names are generated here, so that an answer can't point outside the folder.
    let paths = |count: usize, pattern: &str| -> Vec<TensorFile> {
        let name = |index: usize| pattern.replace("{}", &index.to_string());
        (0..count).map(|index| TensorFile::named(out.join(name(index)))).collect()
    };
    let read = |count, pattern| tensors(&paths(count, pattern));
    let sets = (|| {
        Ok((
            read(count, "actual{}.npy")?,
            read(count, "expected{}.npy")?,
            read(answer.references64, "expected64_{}.npy")?,
        ))
    })();
    match sets {
        Ok((actual, expected, wide)) => {
            let benchmark = job.experiment.benchmarks.first().map(String::as_str).unwrap_or_default();
            let tolerances = job.lead.config.numerics.for_benchmark(&BenchmarkName::new(benchmark));
            Ok(Some(numerics::verify(&actual, &expected, &wide, &tolerances)))
        }
        Err(StageError::Benchmark(failure)) => Ok(with(VerifyCode::VerifierDidntRun, failure.why)),
        Err(StageError::Run(error)) => Err(error),
    }
}

/// Converts a memory reading: seconds since the start, bytes on the host and on the device, and the stage.
fn memory_record(
    (seconds, host_bytes, device_bytes, stage): &(f64, u64, Option<u64>, String),
) -> MemoryRecord {
    MemoryRecord {
        seconds: Number(*seconds),
        host_bytes: *host_bytes,
        device_bytes: *device_bytes,
        stage: stage.clone(),
    }
}

const KIND: &str = "backends";

macro_rules! package {
    ($($file:literal),+ $(,)?) => {
        &[$(($file, include_str!(concat!("../../python/benchgate_backends/", $file)))),+]
    };
}

/// The embedded package from `python/`.
#[derive(Debug, Clone, Copy)]
pub struct BackendsSource;

impl BackendsSource {
    /// Names and contents of the files.
    pub const FILES: &[(&str, &str)] = package![
        "__init__.py",
        "__main__.py",
        "after.py",
        "case.py",
        "graphs.py",
        "main.py",
        "memory.py",
        "onnx_backend.py",
        "profiling.py",
        "protocol.py",
        "reference.py",
        "timing.py",
        "torch_backends.py",
        "xla_backend.py",
    ];

    pub(super) fn digest() -> String {
        package_digest(KIND, Self::FILES)
    }

    /// Writes the package to the cache. Returns the folder to import it from.
    pub(super) fn install(cache: &Cache) -> Result<PathBuf, PipelineError> {
        cache.install(KIND, "benchgate_backends", Self::FILES)
    }
}

/// The first line that the Python package prints.
const PROTOCOL: &str = "benchgate-backends/1";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum BackendStatus {
    Ok,
    Unsupported,
    #[default]
    Failed,
}

/// The answer, which is the last line of the output.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct BackendAnswer {
    pub(super) status: BackendStatus,
    pub(super) stage: Option<String>,
    pub(super) error: Option<String>,
    pub(super) code: Option<String>,
    #[serde(default)]
    pub(super) samples: Vec<f64>,
    pub(super) iterations: Option<u64>,
    pub(super) compile_seconds: Option<f64>,
    #[serde(default)]
    pub(super) cold: bool,
    #[serde(default)]
    pub(super) metrics: BTreeMap<String, Vec<f64>>,
    #[serde(default)]
    pub(super) versions: BTreeMap<String, String>,
    /// Number of tensors that were written for comparison.
    pub(super) outputs: Option<usize>,
    #[serde(default)]
    pub(super) references64: usize,
    #[serde(default)]
    pub(super) memory: Vec<(f64, u64, Option<u64>, String)>,
    pub(super) collected: Option<CollectedRecord>,
}

impl BackendAnswer {
    fn failed(stage: Option<String>, error: String) -> Self {
        Self { status: BackendStatus::Failed, stage, error: Some(error), ..Self::default() }
    }

    /// Reads the answer from the last line. If there is none, derives one from the lines before and the end
    /// of the process. `measured` tells whether times were requested.
    pub(super) fn read(text: &str, finished: &Finished, measured: bool) -> Self {
        let mut stage = None;
        for line in text.lines() {
            let Ok(message) = serde_json::from_str::<serde_json::Value>(line) else { continue };
            if let Some(hello) = message["hello"].as_str().filter(|hello| *hello != PROTOCOL) {
                return Self::failed(None, format!("expected the protocol {PROTOCOL}, found {hello}"));
            }
            if message["status"].is_string() {
                let answer = serde_json::from_value::<Self>(message);
                return match answer {
                    Ok(answer) if measured => answer.checked(),
                    Ok(answer) => answer,
                    Err(error) => Self::failed(None, format!("the answer can't be read: {error}")),
                };
            }
            stage = message["stage"].as_str().map(str::to_owned).or(stage);
        }
        let last =
            finished.stderr_tail.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let how = match finished.exit {
            Exit::Success => "ended without an answer".to_owned(),
            exit => exit.to_string(),
        };
        let separator = if last.is_empty() { "" } else { ": " };
        Self::failed(stage, format!("the backend {how}{separator}{last}"))
    }

    /// Turns an answer without a valid time into a failure.
    fn checked(self) -> Self {
        let timed =
            !self.samples.is_empty() && self.samples.iter().all(|value| value.is_finite() && *value > 0.0);
        if self.status == BackendStatus::Ok && !timed {
            return Self::failed(Some("measure".to_owned()), "the backend measured no time".to_owned());
        }
        self
    }

    pub(super) fn why(&self) -> String {
        let error = self.error.as_deref().unwrap_or("the backend gave no reason");
        // Compilers may print pages about an error; the complete text is in the log.
        const LONGEST: usize = 300;
        let line: String = error
            .lines()
            .find(|line| !line.trim().is_empty())
            .unwrap_or_default()
            .chars()
            .take(LONGEST)
            .collect();
        match (&self.stage, self.status) {
            (Some(stage), BackendStatus::Failed) => format!("{stage}: {line}"),
            _ => line,
        }
    }

    pub(super) fn outcome(&self) -> Outcome {
        let why = self.why();
        match self.status {
            BackendStatus::Ok => Outcome::Ok,
            BackendStatus::Unsupported => Outcome::Unsupported { reason: why },
            BackendStatus::Failed => {
                let stage = match self.stage.as_deref() {
                    Some("compile") => Stage::Compile,
                    Some("verify") => Stage::Verify,
                    Some("warmup" | "measure" | "dump") => Stage::Benchmark,
                    Some("import") => Stage::Toolchain,
                    // The remaining stages, creating the model and running it eagerly, are the first steps of
                    // an export.
                    _ => Stage::Export,
                };
                Outcome::Failed { stage, why }
            }
        }
    }
}
