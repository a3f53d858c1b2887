//! One fresh start of the benchmark tool, and what its output is worth.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::device::Watch;
use crate::ingest;
use crate::model::{Consequence, Metric, Outcome, Run, Series};
use crate::process::{Command, Exit, Finished};
use crate::record::{ContextRecord, Number, TelemetryRecord};
use crate::toolchain::Installed;

use super::PipelineError;
use super::argv::{Execution, Timing};
use super::compile::{failure, printed_error};
use super::devices;
use super::diagnostics;
use super::prepare::Context;

/// One side of a benchmark that is ready to be measured.
#[derive(Debug, Clone)]
pub(super) struct Ready<'a> {
    pub(super) execution: &'a Execution,
    pub(super) tools: &'a Installed,
    pub(super) env: BTreeMap<String, String>,
    pub(super) folder: PathBuf,
}

/// How the benchmark tool is started.
pub(super) struct Start<'a> {
    pub(super) ready: &'a Ready<'a>,
    pub(super) timing: Timing,
    pub(super) timeout: Duration,
    /// Where the tool writes its results.
    pub(super) raw: PathBuf,
    pub(super) log: PathBuf,
    pub(super) clock_held: bool,
}

/// A process that ended.
pub(super) struct Timed {
    /// RFC 3339.
    pub(super) started: String,
    pub(super) wall: Duration,
    pub(super) peak_memory_bytes: Option<u64>,
    pub(super) load_avg: Vec<f64>,
    pub(super) telemetry: Option<TelemetryRecord>,
    /// What it measured, or why it measured nothing.
    pub(super) result: Result<Measured, String>,
    /// It was ended from outside, which says nothing about the benchmark.
    pub(super) killed: bool,
}

impl Start<'_> {
    pub(super) async fn run(&self, context: &Context<'_>) -> Result<Timed, PipelineError> {
        // A process that was cut left its file; the tool must not append to it.
        remove_if_there(&self.raw)?;
        remove_if_there(&self.log)?;
        let ready = self.ready;
        let command = Command::new(&ready.tools.iree_benchmark_module, self.timeout)
            .args(ready.execution.benchmark(&self.timing, &self.raw))
            .cwd(&ready.folder)
            .log(&self.log)
            .cpus(context.cpus_for(&ready.execution.device));
        let command =
            ready.env.iter().fold(command, |command, (variable, value)| command.env(variable, value));
        let load_avg = crate::device::load_average();
        let watch = Watch::start(context.watched(&ready.execution.device, &ready.env));
        let started = jiff::Timestamp::now().to_string();
        let finished = context.run(&command).await?;
        let seen = watch.stop(finished.user + finished.system);
        let telemetry = devices::record(&seen, &context.gpus, self.clock_held);
        context.fail_on_full_disk(&finished, &self.raw)?;
        let asked = Asked { function: &ready.execution.function, repetitions: self.timing.repetitions };
        let result = samples(&finished, &self.raw, &self.log, self.timeout, &asked)?;
        let killed = finished.ended_from_outside().is_some();
        let Finished { wall, peak_memory_bytes, .. } = finished;
        Ok(Timed { started, wall, peak_memory_bytes, load_avg, telemetry, result, killed })
    }
}

/// What a process measured.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) samples: BTreeMap<String, Vec<Number>>,
    pub(super) context: Option<ContextRecord>,
}

/// What the tool was asked to measure.
struct Asked<'a> {
    function: &'a str,
    repetitions: u32,
}

/// Reads a process's own output. The tool may exit 0 without having measured anything, so success
/// is what the file says, not the exit code alone. A process that measured less than it was asked for, or
/// something else, failed.
fn samples(
    finished: &Finished,
    raw: &Path,
    log: &Path,
    timeout: Duration,
    asked: &Asked<'_>,
) -> Result<Result<Measured, String>, PipelineError> {
    if finished.exit != Exit::Success {
        // The file says more than stderr where the tool wrote one: the message of the failed row.
        let said = fs::read(raw).ok().and_then(|bytes| row_failure(&bytes));
        let ended = failure(finished, timeout, None);
        return Ok(Err(said.filter(|_| !ended.killed).unwrap_or(ended.why)));
    }
    let error = diagnostics::despite_success(finished, log)?;
    let bytes = match (fs::read(raw), &error) {
        (Ok(bytes), _) => bytes,
        (Err(_), Some(said)) => return Ok(Err(printed_error(said).why)),
        (Err(error), None) => return Err(PipelineError::io("read", raw)(error)),
    };
    let run = match read(&bytes) {
        Ok(run) => run,
        Err(why) => return Ok(Err(format!("the tool's output can't be read: {why}"))),
    };
    let [benchmark] = run.benchmarks.as_slice() else {
        return Ok(Err(format!(
            "the tool measured {} benchmarks where one was asked for",
            run.benchmarks.len()
        )));
    };
    if let Outcome::Failed { why, .. } = &benchmark.outcome {
        return Ok(Err(why.clone()));
    }
    if let Some(said) = error {
        return Ok(Err(printed_error(&said).why));
    }
    // IREE names the row `BM_FUNCTION/process_time/real_time`.
    let row = benchmark.name.as_str();
    if row.strip_prefix("BM_").and_then(|name| name.split('/').next()) != Some(asked.function) {
        return Ok(Err(format!("the tool measured `{row}` where `{}` was asked for", asked.function)));
    }
    if let Some(lint) = benchmark.lints.iter().find(|lint| lint.code.consequence() == Consequence::Error) {
        return Ok(Err(lint.detail.clone()));
    }
    let mut measured =
        Measured { samples: BTreeMap::new(), context: Some(ContextRecord::from(&run.context)) };
    for metric in [Metric::LATENCY, Metric::CPU_TIME] {
        let Some(series) = benchmark.metric(&metric.name) else { continue };
        let Series::Processes(processes) = &series.series else { continue };
        let values: Vec<f64> = processes.iter().flat_map(|process| process.samples.iter().copied()).collect();
        if values.iter().any(|value| !value.is_finite() || *value < 0.0) {
            return Ok(Err(format!("the tool printed a {} that is not a time", metric.name)));
        }
        measured.samples.insert(metric.name.into_owned(), values.into_iter().map(Number).collect());
    }
    match measured.samples.get(Metric::LATENCY.name.as_ref()) {
        None => Ok(Err("the tool printed no time".to_owned())),
        Some(values) if values.iter().any(|value| value.0 <= 0.0) => {
            Ok(Err("the tool printed a time of zero".to_owned()))
        }
        Some(values) if u32::try_from(values.len()) != Ok(asked.repetitions) => {
            let (found, asked) = (values.len(), asked.repetitions);
            Ok(Err(format!("the tool measured {found} of {asked} repetitions")))
        }
        Some(_) => Ok(Ok(measured)),
    }
}

fn read(bytes: &[u8]) -> Result<Run, ingest::IngestError> {
    ingest::read(bytes, ingest::Format::GoogleBenchmarkJson, "iree-benchmark-module")
}

/// The message of the first failed row of a file.
fn row_failure(bytes: &[u8]) -> Option<String> {
    let run = read(bytes).ok()?;
    run.benchmarks.into_iter().find_map(|benchmark| match benchmark.outcome {
        Outcome::Failed { why, .. } => Some(why),
        _ => None,
    })
}

fn remove_if_there(path: &Path) -> Result<(), PipelineError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(PipelineError::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}
