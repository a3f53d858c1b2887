//! Measuring: fresh processes in the order of the schedule, until every row is settled or the budget
//! is spent. Nothing else of benchgate runs meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::config::Measure;
use crate::device::Watch;
use crate::gate;
use crate::ingest;
use crate::model::{
    BenchmarkName, BlockSlot, Consequence, Event, Metric, Outcome, Run, Series, SideName, Stage,
};
use crate::process::{Command, Exit, Finished};
use crate::record::{ContextRecord, Number, ProcessRecord, SlotRecord};
use crate::toolchain::Installed;

use super::PipelineError;
use super::argv::{Execution, Timing};
use super::compile::{failure, printed_error};
use super::devices;
use super::diagnostics;
use super::journal::{Entry, Journal};
use super::prepare::Context;
use super::schedule::{self, Step};

/// One side of a benchmark that is ready to be measured.
#[derive(Debug, Clone)]
pub(super) struct Ready<'a> {
    pub(super) execution: &'a Execution,
    pub(super) tools: &'a Installed,
    pub(super) env: BTreeMap<String, String>,
    pub(super) folder: PathBuf,
}

/// A benchmark with the sides that can be measured.
#[derive(Debug, Clone)]
pub(super) struct Candidate<'a> {
    pub(super) name: BenchmarkName,
    pub(super) sides: BTreeMap<SideName, Ready<'a>>,
    /// Both sides execute the same bytes: there is nothing to compare.
    pub(super) identical: bool,
}

impl Candidate<'_> {
    fn is_paired(&self) -> bool {
        self.sides.len() == 2
    }
}

/// Blocks of a row whose sides are identical, where nobody asked for more: enough for a free A/A sample
/// of the machine's noise.
pub(super) const IDENTICAL_BLOCKS: u32 = 1;

/// Blocks after which measuring stops whatever a gate still asks: a guard against a policy without
/// an end, far above any useful count.
const MOST_ROUNDS: u32 = 10_000;

/// What [`measure`] works on.
pub(super) struct Measuring<'a, 'b> {
    pub(super) context: &'a Context<'b>,
    pub(super) settings: &'a Measure,
    pub(super) policy: &'a gate::Policy,
    pub(super) candidates: &'a [Candidate<'a>],
    /// Blocks of a row whose sides are identical.
    pub(super) identical_blocks: u32,
    pub(super) journal: &'a mut Journal,
    pub(super) clock_held: bool,
    /// Of the schedule.
    pub(super) seed: u64,
    /// Makes the two runs of what the journal holds, for a look.
    pub(super) look: &'a dyn Fn(&Journal) -> (Run, Run),
}

impl Measuring<'_, '_> {
    /// Measures every candidate.
    pub(super) async fn run(mut self) -> Result<(), PipelineError> {
        let steps = self.candidates.iter().map(|c| c.sides.len()).sum::<usize>();
        if steps == 0 {
            return Ok(());
        }
        self.set_cut_blocks_aside()?;
        // What an interrupted run measured is not measured again, so it is no step of this one.
        let steps = self.expected_processes().saturating_sub(self.journal.len());
        self.context.progress.on(Event::StageStarted { stage: Stage::Benchmark, steps });
        self.paired().await?;
        self.single().await?;
        self.context.progress.on(Event::StageFinished { stage: Stage::Benchmark });
        Ok(())
    }

    fn expected_processes(&self) -> usize {
        let processes = |candidate: &Candidate<'_>| match (candidate.is_paired(), candidate.identical) {
            (true, true) => 4 * self.identical_blocks,
            (true, false) => 4 * self.policy.sequential.min_blocks,
            (false, _) if candidate.sides.is_empty() => 0,
            (false, _) => self.settings.processes,
        };
        self.candidates.iter().map(|candidate| processes(candidate) as usize).sum()
    }

    /// A block that a kill cut in two is measured again from its start: its halves would be from
    /// different hours, which is what pairing is there to avoid.
    fn set_cut_blocks_aside(&mut self) -> Result<(), PipelineError> {
        for candidate in self.candidates.iter().filter(|candidate| candidate.is_paired()) {
            if self.journal.has_failed(&candidate.name) {
                continue;
            }
            let mut found: BTreeMap<u32, usize> = BTreeMap::new();
            for side in SideName::BOTH {
                for entry in self.journal.processes(&candidate.name, side) {
                    *found.entry(entry.block).or_default() += 1;
                }
            }
            for (block, _) in found.into_iter().filter(|(_, processes)| *processes < 4) {
                self.journal.drop_partial_block(&candidate.name, block)?;
            }
        }
        Ok(())
    }

    /// Rounds of blocks; a look decides which rows need another.
    async fn paired(&mut self) -> Result<(), PipelineError> {
        let paired: Vec<usize> =
            (0..self.candidates.len()).filter(|&index| self.candidates[index].is_paired()).collect();
        let mut open: BTreeSet<usize> =
            paired.iter().copied().filter(|&index| !self.candidates[index].identical).collect();
        let mut identical: Vec<usize> =
            paired.iter().copied().filter(|&index| self.candidates[index].identical).collect();
        let mut round = 0;
        let mut until = self.policy.sequential.min_blocks;
        while round < MOST_ROUNDS {
            let mut now: Vec<usize> = if round < until { open.iter().copied().collect() } else { Vec::new() };
            if round < self.identical_blocks {
                now.extend(&identical);
            }
            if now.is_empty() {
                break;
            }
            if self.out_of_time(round) {
                return Ok(());
            }
            let steps = schedule::paired_round(&now, self.candidates.len(), round, self.seed);
            for step in steps {
                self.step(step).await?;
            }
            open.retain(|&index| !self.journal.has_failed(&self.candidates[index].name));
            identical.retain(|&index| !self.journal.has_failed(&self.candidates[index].name));
            round += 1;
            if round == until && !open.is_empty() {
                let (base, head) = (self.look)(self.journal);
                let answer = gate::open_rows(&base, &head, self.policy);
                open.retain(|&index| answer.open.contains(&self.candidates[index].name));
                until = answer.next_blocks.unwrap_or(round);
                if !open.is_empty() && until > round {
                    let steps = 4 * open.len() * (until - round) as usize;
                    self.context.progress.on(Event::StepsAdded { stage: Stage::Benchmark, steps });
                    self.context.progress.on(Event::Note(&format!(
                        "{} of {} rows are still open after {round} blocks; measuring up to {until}",
                        open.len(),
                        paired.len(),
                    )));
                }
            }
        }
        Ok(())
    }

    /// Benchmarks that only one side has: described, never compared.
    async fn single(&mut self) -> Result<(), PipelineError> {
        for side in SideName::BOTH {
            let mut alone: Vec<usize> = (0..self.candidates.len())
                .filter(|&index| {
                    let sides = &self.candidates[index].sides;
                    sides.len() == 1 && sides.contains_key(&side)
                })
                .collect();
            for round in 0..self.settings.processes {
                alone.retain(|&index| !self.journal.has_failed(&self.candidates[index].name));
                if alone.is_empty() || self.out_of_time(round) {
                    break;
                }
                for step in schedule::single_round(&alone, side, round, self.seed) {
                    self.step(step).await?;
                }
            }
        }
        Ok(())
    }

    /// The budget is checked between rounds, so that every row of a round has the same blocks. The
    /// first round is always measured: a run without a number answers nothing.
    fn out_of_time(&self, round: u32) -> bool {
        let spent = Duration::from_secs_f64(self.journal.measured_seconds().max(0.0));
        let over = self.settings.time_budget.is_some_and(|budget| round > 0 && spent >= budget);
        if over {
            let text = format!("the time budget is spent after {round} rounds; open rows stay open");
            self.context.progress.on(Event::Warning(&text));
        }
        over
    }

    async fn step(&mut self, step: Step) -> Result<(), PipelineError> {
        let candidate = &self.candidates[step.benchmark];
        if self.journal.contains(&candidate.name, step.side, step.slot)
            || self.journal.is_settled(&candidate.name, step.side)
        {
            return Ok(());
        }
        let Some(ready) = candidate.sides.get(&step.side) else { return Ok(()) };
        let paired = candidate.is_paired();
        let what = format!("{} {} block {}", candidate.name, step.side, step.slot.block + 1);
        self.context.progress.on(Event::StepStarted { stage: Stage::Benchmark, what: &what });
        let started = Instant::now();
        let entry = self.process(&candidate.name, ready, step, paired).await?;
        let note = match &entry.process.failure {
            Some(why) => format!("failed: {why}"),
            None => typical(&entry),
        };
        self.journal.add(step.side, entry)?;
        self.context.progress.on(Event::StepFinished {
            stage: Stage::Benchmark,
            what: &what,
            note: &note,
            took: started.elapsed(),
        });
        Ok(())
    }

    /// One fresh start of the benchmark tool.
    async fn process(
        &self,
        name: &BenchmarkName,
        ready: &Ready<'_>,
        step: Step,
        paired: bool,
    ) -> Result<Entry, PipelineError> {
        let order = self.journal.next_order();
        let raw = self.journal.file(order, "raw");
        // A process that was cut left its file; the tool must not append to it.
        remove_if_there(&raw)?;
        let log = self.journal.file(order, "log");
        remove_if_there(&log)?;
        let timing = Timing {
            repetitions: self.settings.repetitions,
            iterations: self.settings.iterations,
            min_time: self.settings.min_time,
            warmup: self.settings.warmup,
        };
        let command = Command::new(&ready.tools.iree_benchmark_module, self.settings.timeout)
            .args(ready.execution.benchmark(&timing, &raw))
            .cwd(&ready.folder)
            .log(&log)
            .cpus(self.context.cpus_for(&ready.execution.device));
        let command =
            ready.env.iter().fold(command, |command, (variable, value)| command.env(variable, value));
        let load_avg = crate::device::load_average();
        let watch = Watch::start(self.context.watched(&ready.execution.device, &ready.env));
        let started = jiff::Timestamp::now().to_string();
        let finished = self.context.run(&command).await?;
        let seen = watch.stop(finished.user + finished.system);
        let telemetry = devices::record(&seen, &self.context.gpus, self.clock_held);
        self.context.fail_on_full_disk(&finished, &raw)?;
        let asked = Asked { function: &ready.execution.function, repetitions: timing.repetitions };
        let (measured, failed) = match samples(&finished, &raw, &log, self.settings.timeout, &asked)? {
            Ok(measured) => (measured, None),
            Err(why) => (Measured::default(), Some(why)),
        };
        let BlockSlot { block, slot } = step.slot;
        Ok(Entry {
            benchmark: name.as_str().to_owned(),
            side: step.side.as_str().to_owned(),
            block,
            slot,
            context: measured.context,
            process: ProcessRecord {
                slot: paired.then_some(SlotRecord { block, slot }),
                order,
                started,
                seconds: Number(finished.wall.as_secs_f64()),
                failure: failed,
                peak_memory_bytes: finished.peak_memory_bytes,
                load_avg: load_avg.into_iter().map(Number).collect(),
                log: Some(log.to_string_lossy().into_owned()),
                iterations: None,
                telemetry,
                samples: measured.samples,
            },
        })
    }
}

/// What a process measured.
#[derive(Debug, Default)]
struct Measured {
    samples: BTreeMap<String, Vec<Number>>,
    context: Option<ContextRecord>,
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
        let ended = failure(finished, timeout, None).why;
        return Ok(Err(said.unwrap_or(ended)));
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

/// The median of a process in milliseconds, for the person who waits.
fn typical(entry: &Entry) -> String {
    let mut values: Vec<f64> = entry
        .process
        .samples
        .get(Metric::LATENCY.name.as_ref())
        .map(|values| values.iter().map(|value| value.0).collect())
        .unwrap_or_default();
    values.sort_by(f64::total_cmp);
    const NANOSECONDS_PER_MILLISECOND: f64 = 1e6;
    values
        .get(values.len() / 2)
        .map_or_else(String::new, |value| format!("{:.3} ms", value / NANOSECONDS_PER_MILLISECOND))
}
