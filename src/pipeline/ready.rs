//! Ends a run: measures the prepared benchmarks, and writes the record.

use std::collections::BTreeMap;
use std::path::Path;

use crate::device::{self, HostLock};
use crate::gate::{CHECKED_IDENTICAL_BLOCKS, IDENTICAL_BLOCKS};
use crate::model::{BenchmarkName, Event, counted};

use super::assemble::{self, Frame};
use super::cache::write_atomically;
use super::candidates::{PreparedSide, candidates};
use super::exchange::{self, ExchangePlan};
use super::host::Host;
use super::journal::Journal;
use super::measure::Measuring;
use super::plan::Shard;
use super::profile::Profiler;
use super::run::{MeasuredRun, Options, PrepareFrom, PreparedRun};
use super::{PipelineError, backends, calibration, commands, compile_timing, devices};

/// A run whose benchmarks are built and verified, and which has the right to measure.
pub struct ReadyRun<'a> {
    run: PreparedRun<'a>,
    host: Host<'a>,
    sides: Vec<PreparedSide<'a>>,
    /// The host lock, held while measuring; `None` if nothing is timed.
    alone: Option<HostLock>,
}

impl<'a> PreparedRun<'a> {
    /// Prepares every benchmark, and waits for the right to measure.
    ///
    /// # Errors
    /// Something stops the whole run: tools that can't be verified, a full disk, an interrupt. A model that
    /// fails is not an error, but an outcome in the record.
    pub async fn ready(mut self) -> Result<ReadyRun<'a>, PipelineError> {
        let host = self.measuring_host();
        let sides = self.checked(&host).await?;
        commands::find_programs(&sides)?;
        let (options, config) = (self.run.options, &self.lead.config);
        // Other jobs may run while outputs and code are compared, but not while anything is timed.
        let is_timed = sides.iter().any(PreparedSide::is_timed)
            || !compile_timing::judged(&sides, &config.policy).is_empty();
        let alone = if is_timed {
            let locked = device::lock_host(options.lock_timeout, host.progress, host.cancel).await;
            Some(locked.map_err(|error| interrupted(error.into(), &sides, options, 0))?)
        } else {
            None
        };
        Ok(ReadyRun { run: self, host, sides, alone })
    }
}

impl ReadyRun<'_> {
    /// Captures a call of a benchmark's module at base, and writes head's kernels next to it.
    ///
    /// # Errors
    /// Kernels can't be exchanged, because a module could not be compiled or the runtime lacks the necessary
    /// tools.
    pub async fn capture(
        self,
        benchmark: &BenchmarkName,
        folder: &Path,
    ) -> Result<ExchangePlan, PipelineError> {
        exchange::plan(&self.host, &self.sides, benchmark, folder).await
    }

    /// Measures what can be measured, and writes the record to the output.
    ///
    /// # Errors
    /// A file changed meanwhile, the disk is full, or the run was interrupted.
    pub async fn measure(self) -> Result<MeasuredRun, PipelineError> {
        let Self { run, host, mut sides, alone } = self;
        let (options, config) = (run.run.options, &run.lead.config);
        // There is no compiler on a machine that measures a bundle.
        if let PrepareFrom::Sources = run.from {
            let rows = options.shard.as_ref().map(|shard| shard.rows);
            compile_timing::time(&host, &mut sides, config, rows).await?;
        }
        let mut unchanged = run.unchanged.clone();
        for side in &sides {
            unchanged.add_side(side, &host.digests).await?;
            unchanged.add_commands(side, &host.digests).await?;
        }
        if let Some(alone) = &alone {
            devices::undo_leftovers(&host.gpus, host.progress, alone);
        }
        let asked = config.measure.lock_clocks;
        // The clocks stay locked until this function returns, even with an error.
        let (held, lints) = match &alone {
            Some(alone) => devices::hold(&host.gpus, &host.choices, asked, host.progress, alone),
            None => (None, Vec::new()),
        };
        let testbed = match asked.filter(|_| held.is_some()) {
            Some(clock) => devices::with_clock(&host.testbed, clock),
            None => host.testbed.clone(),
        };
        let calibration =
            calibration::find(&options.calibration, &options.cache, &config.suite, &testbed, host.progress)?;
        let shard = options.shard.as_ref();
        let mut settings = config.measure.clone();
        settings.seed = shard.map(|shard| shard.seed).or(settings.seed);
        let frame = Frame {
            suite: &config.suite,
            measure: &settings,
            policy: &config.policy,
            cpus: host.cpus.as_deref(),
            testbed: &testbed,
            sides: &sides,
            lints: &lints,
            relative_to: options.output.parent().unwrap_or(Path::new("")),
            calibration: calibration.as_ref(),
        };
        let candidates = candidates(&sides, &run.names);
        let identical_blocks = options.identical_blocks.unwrap_or_else(|| identical_blocks(&sides));
        let sessions = options.work.join("sessions");
        let plan = assemble::plan_digest(&frame, identical_blocks, shard)?;
        // Only a part of a command's program is known, so it may have changed since the session was
        // interrupted.
        let resume =
            options.resume_commands.unwrap_or(false) || sides.iter().all(|side| side.commands.is_empty());
        let mut journal = Journal::open(&sessions, &plan, host.progress, host.cancel, resume)
            .await
            .map_err(|error| interrupted(error, &sides, options, 0))?;
        if journal.resumed {
            let kept = counted(journal.len(), "process");
            host.progress.on(Event::Note(&format!("resuming session {} with {kept}", journal.session)));
        }
        let label = options.output.to_string_lossy().into_owned();
        let look = |journal: &Journal| assemble::runs(&assemble::run_file(&frame, journal, false), &label);
        let measuring = Measuring {
            host: &host,
            settings: frame.measure,
            policy: frame.policy,
            candidates: &candidates,
            identical_blocks,
            suite_rows: shard.map(|shard| shard.rows),
            seed: assemble::seed(&frame, &journal),
            journal: &mut journal,
            clock_held: held.is_some(),
            unchanged: &unchanged,
            asked: BTreeMap::new(),
            look: &look,
        };
        let measured = measuring.run().await;
        measured.map_err(|error| interrupted(error, &sides, options, journal.len()))?;

        commands::observe(&host, &sides, &journal).await?;
        let mut file = assemble::run_file(&frame, &journal, true);
        commands::compare_outputs(&sides, &mut file)?;
        file.shard = shard.map(Shard::record);
        let (base, head) = assemble::runs(&file, &label);
        let profiler = Profiler {
            host: &host,
            settings: frame.measure,
            policy: frame.policy,
            candidates: &candidates,
            folder: options.work.join("profiles"),
        };
        profiler.run(&mut file, &base, &head).await?;
        let others = backends::Experiments {
            host: &host,
            lead: run.lead,
            experiments: &run.experiments,
            interpreters: &run.interpreters,
            extras: &options.extras,
        };
        file.backends = others.run(&journal, frame.relative_to).await?;
        if let PrepareFrom::Bundle(bundle) = run.from {
            file.bundle = Some(bundle.origin());
        }
        file.seal_shard();
        write_atomically(&options.output, &file.to_json())?;
        journal.complete()?;
        let (base, head) = assemble::runs(&file, &label);
        Ok(MeasuredRun { file, base, head, resumed: journal.resumed })
    }
}

/// Converts the error of an interrupted run. If the session had commands, it is not resumed automatically, so
/// the error has to say how to resume it.
fn interrupted(
    error: PipelineError,
    sides: &[PreparedSide<'_>],
    options: &Options,
    processes: usize,
) -> PipelineError {
    match error {
        PipelineError::Interrupted if sides.iter().any(|side| !side.commands.is_empty()) => {
            PipelineError::CommandsInterrupted { processes, can_resume: options.resume_commands.is_some() }
        }
        error => error,
    }
}

/// Number of blocks for rows whose sides execute the same bytes.
fn identical_blocks(sides: &[PreparedSide<'_>]) -> u32 {
    let places = |side: &PreparedSide<'_>| {
        (side.input.side.sources.clone(), side.tools.as_ref().map(|tools| tools.root.clone()))
    };
    let alike = sides.windows(2).all(|pair| places(&pair[0]) == places(&pair[1]));
    if alike { IDENTICAL_BLOCKS } else { CHECKED_IDENTICAL_BLOCKS }
}
