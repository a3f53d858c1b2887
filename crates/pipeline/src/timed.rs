//! Starts the benchmark tool once, in a fresh process, and checks its output.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use benchgate_core::model::{Consequence, Context, Metric, Outcome, Series};
use benchgate_core::record::{MOST_RESULT_BYTES, Number, ProcessRecord, SampleMap};
use benchgate_host::device::Watch;
use benchgate_host::files;
use benchgate_host::process::{Command, Exit, Finished};
use benchgate_ingest::{self, Format};

use super::argv::Timing;
use super::candidates::{BenchmarkCandidate, Measurable, TimedProgram};
use super::commands::{self, CommandOutput, PreparedCommand, Printed};
use super::compile::{failure, printed_error};
use super::host::Host;
use super::journal::JournalEntry;
use super::schedule::ScheduledProcess;
use super::stage::{StageError, StageFailure, Staged};
use super::{PipelineError, diagnostics, host};

/// The tool's output format, for error messages.
const FORMAT: Format = Format::GoogleBenchmarkJson;
const TOOL: &str = "iree-benchmark-module";

/// The inputs of one start of the benchmark tool or a command.
pub(super) struct Start<'a> {
    pub(super) candidate: &'a BenchmarkCandidate<'a>,
    pub(super) program: TimedProgram<'a>,
    pub(super) step: ScheduledProcess,
    /// The benchmarks that a command should run; `None` for all.
    pub(super) asked: Option<BTreeSet<String>>,
    /// The format that the command is known to print.
    pub(super) format: Option<Format>,
    /// The position among all processes of the session.
    pub(super) order: u32,
    pub(super) timing: Timing,
    pub(super) timeout: Duration,
    /// Path of the tool's results.
    pub(super) raw: PathBuf,
    pub(super) log: PathBuf,
    pub(super) clock_held: bool,
}

impl Start<'_> {
    /// Runs the tool, and returns its measurements or its failure as an entry of the journal.
    pub(super) async fn run(&self, host: &Host<'_>) -> Result<JournalEntry, PipelineError> {
        // An interrupted process may have left this file, and the tool must not append to it.
        remove_if_there(&self.raw)?;
        remove_if_there(&self.log)?;
        let (device, env) = self.program.device();
        let prepared = match self.program {
            TimedProgram::Module(_) => None,
            TimedProgram::Command(command) => command.prepare(host, &self.log).await?,
        };
        let load_avg = benchgate_host::device::load_average();
        let watch = Watch::start(host.watched(device, env));
        let started = jiff::Timestamp::now().to_string();
        let (finished, measured) = match self.program {
            TimedProgram::Module(ready) => {
                let temporary = host.scratch()?;
                let command = Command::new(&ready.tools.iree_benchmark_module, self.timeout)
                    // The runtime writes code that the system's linker linked into a temporary folder, which it
                    // leaves behind.
                    .env("TMPDIR", temporary.path())
                    .args(ready.execution.benchmark(&self.timing, &self.raw))
                    .cwd(ready.folder)
                    .envs(ready.env)
                    .log(&self.log)
                    .cpus(host.cpus_for(device));
                let finished = host.run(&command).await?;
                host.fail_on_full_disk(&finished, &self.raw)?;
                let measured = self.samples(&ready, &finished);
                (finished, measured)
            }
            TimedProgram::Command(command) => self.processes(command, prepared, host).await?,
        };
        let seen = watch.stop(finished.user + finished.system);
        let (measured, failure) = match measured {
            Ok(measured) => (measured, None),
            Err(StageError::Benchmark(failure)) => (MeasuredProcess::default(), Some(failure.why)),
            Err(StageError::Run(error)) => return Err(error),
        };
        let slot = self.step.slot;
        Ok(JournalEntry {
            benchmark: self.candidate.name.as_str().to_owned(),
            side: self.step.side.as_str().to_owned(),
            block: slot.block,
            slot: slot.slot,
            context: measured.context,
            killed: finished.ended_from_outside().is_some(),
            printed: measured.printed,
            process: ProcessRecord {
                slot: self.candidate.is_paired().then_some(slot),
                order: self.order,
                started,
                seconds: Number(finished.wall.as_secs_f64()),
                failure,
                peak_memory_bytes: finished.peak_memory_bytes,
                load_avg: load_avg.to_vec(),
                log: Some(self.log.to_string_lossy().into_owned()),
                iterations: measured.iterations,
                telemetry: host::record(&seen, &host.gpus, self.clock_held),
                samples: measured.samples,
                stated_stddev: BTreeMap::new(),
            },
        })
    }

    /// Starts a command as often as a slot of the schedule requires. `prepared` is the failure of the first
    /// preparation, if it failed. Returns the last process, with the time of all processes.
    async fn processes(
        &self,
        command: &PreparedCommand,
        mut prepared: Option<Finished>,
        host: &Host<'_>,
    ) -> Result<(Finished, Staged<MeasuredProcess>), PipelineError> {
        let start = command
            .start(&self.raw, &command.pattern(self.format, self.asked.as_ref()))
            .capture_stdout()
            .log(&self.log)
            .cpus(host.cpus_for(self.program.device().0));
        let mut slot = None;
        let mut used: Option<Finished> = None;
        let mut left = self.timing.repetitions;
        loop {
            left = left.saturating_sub(1);
            let finished = match prepared {
                // If preparing failed, the process is not started, and the failure counts as its result.
                Some(failed) => failed,
                None => host.run(&start).await?,
            };
            host.fail_on_full_disk(&finished, &self.raw)?;
            command.keep_outputs(&finished, self.asked.is_none())?;
            let output =
                commands::read(command, &finished, &self.raw).and_then(|next| commands::joined(slot, next));
            let finished = match used {
                Some(before) => commands::together(&before, finished),
                None => finished,
            };
            match output {
                Err(why) => return Ok((finished, Err(StageFailure::new(why).into()))),
                Ok(output) if left == 0 => return Ok((finished, Ok(self.printed(output)))),
                Ok(output) => slot = Some(output),
            }
            used = Some(finished);
            remove_if_there(&self.raw)?;
            prepared = command.prepare(host, &self.log).await?;
        }
    }

    /// Converts the output of a command's processes.
    fn printed(&self, output: CommandOutput) -> MeasuredProcess {
        MeasuredProcess {
            context: output.context,
            printed: Some(Printed { asked: self.asked.clone(), ..output.printed }),
            ..MeasuredProcess::default()
        }
    }

    /// Reads the results of a module's process. The tool may exit with code 0 without having measured
    /// anything, so success also depends on the results file. A process that measured less than requested, or
    /// something else, has failed.
    fn samples(&self, ready: &Measurable<'_>, finished: &Finished) -> Staged<MeasuredProcess> {
        let (raw, log) = (&self.raw, &self.log);
        let (function, repetitions) = (&ready.execution.function, self.timing.repetitions);
        let failed = |why: String| Err(StageFailure::new(why).into());
        if finished.exit != Exit::Success {
            // The results file has more detail than stderr: the message of the row that failed.
            let said = files::read_bounded(raw, MOST_RESULT_BYTES).ok().and_then(|bytes| row_failure(&bytes));
            let ended = failure(finished, None);
            return failed(said.filter(|_| !ended.killed).unwrap_or(ended.why));
        }
        let error = diagnostics::despite_success(finished, log)?;
        let bytes = match (files::read_bounded(raw, MOST_RESULT_BYTES), &error) {
            (Ok(bytes), _) => bytes,
            (Err(_), Some(said)) => return Err(printed_error(said).into()),
            (Err(error), None) => return Err(PipelineError::io("read", raw)(error).into()),
        };
        let unreadable = |why| StageFailure::new(format!("the tool's output can't be read: {why}"));
        let run = benchgate_ingest::read(&bytes, FORMAT, TOOL).map_err(unreadable)?;
        let [benchmark] = run.benchmarks.as_slice() else {
            return failed(format!("the tool measured {} benchmarks instead of one", run.benchmarks.len()));
        };
        if let Outcome::Failed { why, .. } = &benchmark.outcome {
            return failed(why.clone());
        }
        if let Some(said) = error {
            return Err(printed_error(&said).into());
        }
        // IREE's row names have the form `BM_FUNCTION/process_time/real_time`.
        let row = benchmark.name.as_str();
        if row.strip_prefix("BM_").and_then(|name| name.split('/').next()) != Some(function.as_str()) {
            return failed(format!("the tool measured `{row}` instead of `{function}`"));
        }
        if let Some(lint) = benchmark.lints.iter().find(|lint| lint.code.consequence() == Consequence::Error)
        {
            return failed(lint.detail.clone());
        }
        let mut measured =
            MeasuredProcess { context: Some(run.context.clone()), ..MeasuredProcess::default() };
        for metric in [Metric::LATENCY, Metric::CPU_TIME] {
            let Some(series) = benchmark.metric(&metric.name) else { continue };
            let Series::Processes(processes) = &series.series else { continue };
            measured.iterations = processes.first().and_then(|process| process.iterations);
            let values: Vec<f64> =
                processes.iter().flat_map(|process| process.samples.iter().copied()).collect();
            if values.iter().any(|value| !value.is_finite() || *value < 0.0) {
                return failed(format!("the tool printed a {} that is not a time", metric.name));
            }
            measured.samples.insert(metric.name.into_owned(), values);
        }
        match measured.samples.get(Metric::LATENCY.name.as_ref()) {
            None => failed("the tool printed no time".to_owned()),
            Some(values) if values.iter().any(|value| *value <= 0.0) => {
                failed("the tool printed a time of zero".to_owned())
            }
            Some(values) if u32::try_from(values.len()) != Ok(repetitions) => {
                failed(format!("the tool measured {} of {repetitions} repetitions", values.len()))
            }
            Some(_) => Ok(measured),
        }
    }
}

#[derive(Debug, Default)]
struct MeasuredProcess {
    samples: SampleMap,
    context: Option<Context>,
    /// Number of iterations per repetition.
    iterations: Option<u64>,
    printed: Option<Printed>,
}

/// A process's latency in the form in which reports show it, for progress messages.
pub(super) fn latency_in_words(samples: &[f64]) -> Option<String> {
    const NANOSECONDS_PER_MILLISECOND: f64 = 1e6;
    let latency = benchgate_gate::location(samples, Metric::LATENCY.better)?;
    Some(format!("{:.3} ms", latency / NANOSECONDS_PER_MILLISECOND))
}

/// The message of the first failed row in a results file.
fn row_failure(bytes: &[u8]) -> Option<String> {
    let run = benchgate_ingest::read(bytes, FORMAT, TOOL).ok()?;
    run.benchmarks.into_iter().find_map(|benchmark| match benchmark.outcome {
        Outcome::Failed { why, .. } => Some(why),
        _ => None,
    })
}

fn remove_if_there(path: &Path) -> Result<(), PipelineError> {
    files::if_exists(fs::remove_file(path)).map(drop).map_err(PipelineError::io("remove", path))
}
