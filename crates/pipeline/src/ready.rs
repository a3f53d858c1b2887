//! Ends a run: measures the prepared benchmarks, and builds and writes the record, which is stored and judged.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use benchgate_config::Measure;
use benchgate_core::model::{
    BenchmarkName, Event, Lint, LintCode, Metric, Outcome, Run, SideName, Stage, Testbed, counted,
};
use benchgate_core::record::{
    ArtifactRecord, BenchmarkRecord, CalibrationRecord, Design, MeasureRecord, Number, OutcomeRecord,
    RunFile, RunSchema, ShardRecord, SideRecord, ValueRecord,
};
use benchgate_gate::{CHECKED_IDENTICAL_BLOCKS, IDENTICAL_BLOCKS, Policy};
use benchgate_host::device::{self, HostLock};
use benchgate_stats::describe;

use super::cache::{KeyBuilder, write_atomically};
use super::candidates::{PreparedSide, candidates};
use super::commands::PreparedCommand;
use super::exchange::{self, ExchangePlan};
use super::host::Host;
use super::journal::{Journal, JournalEntry};
use super::measure::Measuring;
use super::plan::Shard;
use super::profile::Profiler;
use super::run::{MeasuredRun, Options, PrepareFrom, PreparedRun};
use super::stage::{Prepared, relative, stored};
use super::{PipelineError, backends, calibration, commands, compile_timing, host};

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
        commands::find_programs(sides.iter().flat_map(|side| &side.commands))?;
        let (options, config) = (self.run.options, &self.lead.config);
        // Other jobs may run while outputs and code are compared, but not while anything is timed. If a side of each
        // benchmark could not be built, nothing is.
        let is_timed = candidates(&sides, &self.names).iter().any(|candidate| !candidate.sides.is_empty())
            || !self.experiments.is_empty()
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
            host::undo_leftovers(&host.gpus, host.progress, alone);
        }
        let asked = config.measure.lock_clocks;
        // The clocks stay locked until this function returns, even with an error.
        let (held, lints) = match &alone {
            Some(alone) => host::hold(&host.gpus, &host.choices, asked, host.progress, alone),
            None => (None, Vec::new()),
        };
        let testbed = match asked.filter(|_| held.is_some()) {
            Some(clock) => host::with_clock(&host.testbed, clock),
            None => host.testbed.clone(),
        };
        let calibration =
            calibration::find(&options.calibration, &options.cache, &config.suite, &testbed, host.progress)?;
        let shard = options.shard.as_ref();
        // The paths of logs are absolute.
        let output = std::path::absolute(&options.output).unwrap_or_else(|_| options.output.clone());
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
            relative_to: output.parent().unwrap_or(Path::new("")),
            calibration: calibration.as_ref(),
        };
        let candidates = candidates(&sides, &run.names);
        let identical_blocks = options.identical_blocks.unwrap_or_else(|| identical_blocks(&sides));
        let sessions = options.work.join("sessions");
        let plan = plan_digest(&frame, identical_blocks, shard)?;
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
        let look = |journal: &Journal| runs(&run_file(&frame, journal, false), &label);
        let measuring = Measuring {
            host: &host,
            settings: frame.measure,
            policy: frame.policy,
            candidates: &candidates,
            identical_blocks,
            suite_rows: shard.map(|shard| shard.rows),
            seed: seed(&frame, &journal),
            journal: &mut journal,
            clock_held: held.is_some(),
            unchanged: &unchanged,
            asked: BTreeMap::new(),
            look: &look,
        };
        let measured = measuring.run().await;
        measured.map_err(|error| interrupted(error, &sides, options, journal.len()))?;

        commands::observe(&host, &sides, &journal).await?;
        let mut file = run_file(&frame, &journal, true);
        commands::compare_outputs(&sides, &mut file)?;
        file.shard = shard.map(Shard::record);
        let (base, head) = runs(&file, &label);
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
        let (base, head) = runs(&file, &label);
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

/// The data of a run that is not specific to one side.
pub(super) struct Frame<'a> {
    pub(super) suite: &'a str,
    pub(super) measure: &'a Measure,
    pub(super) policy: &'a Policy,
    pub(super) cpus: Option<&'a [usize]>,
    pub(super) testbed: &'a Testbed,
    pub(super) sides: &'a [PreparedSide<'a>],
    /// Findings about the whole run.
    pub(super) lints: &'a [Lint],
    /// The folder that paths in the file are relative to, where possible.
    pub(super) relative_to: &'a Path,
    /// The calibration from an A/A session of this suite on this testbed.
    pub(super) calibration: Option<&'a CalibrationRecord>,
}

/// The digest of everything that determines the measurement. A session is only resumed if its digest is the
/// same.
fn plan_digest(
    frame: &Frame<'_>,
    identical_blocks: u32,
    shard: Option<&Shard>,
) -> Result<String, PipelineError> {
    let sequential = frame.policy.sequential;
    let mut key = KeyBuilder::new("plan/2")
        .text("suite", frame.suite)
        .text("testbed", &frame.testbed.id)
        .json("measure", &measure_record(frame))?
        .json("blocks", &[sequential.min_blocks, sequential.max_blocks, identical_blocks])?
        .json("processes", &frame.measure.processes)?
        .json("seed", &frame.measure.seed)?;
    if let Some(ShardRecord { plan, shard, .. }) = shard.map(Shard::record) {
        key = key.text("plan", &plan).json("shard", &shard)?;
    }
    for side in frame.sides {
        key = key.text("side", side.input.name.as_str());
        for prepared in &side.benchmarks {
            let artifact = prepared.artifact.iter();
            key = key
                .text("benchmark", prepared.name().as_str())
                .list("runs", artifact.flat_map(|it| [&it.vmfb_sha256, &it.execution_sha256]));
        }
        for command in &side.commands {
            key = key.text("command", &command.spec.name).text("runs", command.digest());
        }
    }
    Ok(key.finish())
}

/// Builds the record from the journal so far.
pub(super) fn run_file(frame: &Frame<'_>, journal: &Journal, complete: bool) -> RunFile {
    let paired = frame.sides.len() == 2;
    let metrics = described(frame, journal);
    RunFile {
        schema: RunSchema,
        benchgate: benchgate_core::VERSION.to_owned(),
        suite: frame.suite.to_owned(),
        session: journal.session.clone(),
        created: journal.created.clone(),
        complete,
        design: if paired { Design::Pairs } else { Design::Single },
        seed: seed(frame, journal),
        measure: measure_record(frame),
        testbed: frame.testbed.clone(),
        sides: frame.sides.iter().map(|side| side_record(frame, side, journal, &metrics)).collect(),
        metrics,
        backends: Vec::new(),
        bundle: None,
        shard: None,
        shards: Vec::new(),
        gate: Some(frame.policy.stored()),
        calibration: frame.calibration.cloned(),
        lints: frame.lints.to_vec(),
    }
}

/// The record of the settings that determine how long and how often to measure.
fn measure_record(frame: &Frame<'_>) -> MeasureRecord {
    let (measure, blocks) = (frame.measure, frame.policy.sequential);
    let paired = frame.sides.len() == 2;
    MeasureRecord {
        repetitions: measure.repetitions,
        iterations: measure.iterations,
        min_time_ns: measure.min_time.map(nanoseconds),
        warmup_ns: measure.warmup.map(nanoseconds),
        processes: (!paired).then_some(measure.processes),
        min_blocks: paired.then_some(blocks.min_blocks),
        max_blocks: paired.then_some(blocks.max_blocks),
        cpus: frame.cpus.map(|cpus| cpus.iter().filter_map(|cpu| u32::try_from(*cpu).ok()).collect()),
    }
}

/// The seed that orders this session's processes.
pub(super) fn seed(frame: &Frame<'_>, journal: &Journal) -> u64 {
    frame.measure.seed.unwrap_or(journal.seed)
}

/// Both sides of the record as runs. A run of the reference toolchain takes the place of the base.
pub(super) fn runs(file: &RunFile, label: &str) -> (Run, Run) {
    let (mut base, mut head) = (Run::default(), Run::default());
    for side in &file.sides {
        let run = file.run(side, label);
        match side.name {
            SideName::Base => base = run,
            SideName::Head => head = run,
        }
    }
    (base, head)
}

fn nanoseconds(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn side_record(
    frame: &Frame<'_>,
    side: &PreparedSide<'_>,
    journal: &Journal,
    metrics: &[Metric],
) -> SideRecord {
    let name = side.input.name;
    let entries = || {
        let modules = side.benchmarks.iter().map(Prepared::name);
        let commands = side.commands.iter().map(|command| BenchmarkName::new(&command.spec.name));
        modules.chain(commands).flat_map(|benchmark| journal.processes(&benchmark, name))
    };
    let modules = side.benchmarks.iter().map(|prepared| benchmark(frame, name, prepared, journal));
    let commands = side
        .commands
        .iter()
        .flat_map(|command| commands::records(command, name, journal, metrics, frame.relative_to));
    let mut context = entries().find_map(|entry| entry.context.clone());
    if let Some(context) = &mut context {
        context.load_avg = typical_load(entries());
    }
    SideRecord {
        name,
        anchor: side.input.anchor,
        commit: side.input.commit.clone(),
        dirty: side.input.dirty,
        toolchain: side.tools.as_ref().map(|tools| tools.identity.clone()),
        flags: side.input.side.flags.clone(),
        run_flags: side.input.side.run_flags.clone(),
        context,
        commands: side.commands.iter().map(PreparedCommand::record).collect(),
        benchmarks: modules.chain(commands).collect(),
    }
}

/// The median of each load average over all processes. A single reading from before measuring would show the
/// load of benchgate's own compilers if the cache was empty.
fn typical_load<'a>(entries: impl Iterator<Item = &'a JournalEntry>) -> Vec<f64> {
    let mut by_window: [Vec<f64>; 3] = Default::default();
    for entry in entries {
        for (window, load) in by_window.iter_mut().zip(&entry.process.load_avg) {
            window.push(*load);
        }
    }
    by_window.iter().filter_map(|loads| describe::median(loads)).collect()
}

fn benchmark(
    frame: &Frame<'_>,
    side: SideName,
    prepared: &Prepared<'_>,
    journal: &Journal,
) -> BenchmarkRecord {
    let entries = journal.processes(&prepared.name(), side);
    let failure = entries.iter().find_map(|entry| entry.process.failure.clone());
    let outcome = match (&prepared.outcome, failure) {
        (Outcome::Ok, Some(why)) => Outcome::Failed { stage: Stage::Benchmark, why },
        (outcome, _) => outcome.clone(),
    };
    let killed =
        entries.iter().filter(|entry| entry.killed).filter_map(|entry| entry.process.failure.clone());
    let lints: Vec<Lint> =
        prepared.lints.iter().cloned().chain(killed.map(|why| Lint::new(LintCode::Killed, why))).collect();
    let artifact = prepared.artifact.as_ref().zip(prepared.compiled.as_ref());
    BenchmarkRecord {
        name: prepared.name().as_str().to_owned(),
        labels: prepared.labels().collect(),
        outcome: OutcomeRecord::from(&outcome),
        artifact: artifact.map(|(artifact, compiled)| ArtifactRecord {
            vmfb_sha256: artifact.vmfb_sha256.clone(),
            vmfb_bytes: compiled.vmfb_bytes,
            execution_sha256: artifact.execution_sha256.clone(),
            dispatch_count: compiled.dispatch_count,
            workload: artifact.workload.clone(),
        }),
        stages: prepared.stages.iter().map(|stage| stored(stage, frame.relative_to)).collect(),
        verification: prepared.verification.clone(),
        timing: journal.timings.record(&prepared.name()).filter(|_| !entries.is_empty()),
        processes: entries
            .iter()
            .map(|entry| {
                let mut process = entry.process.clone();
                process.log = process.log.map(|log| relative(Path::new(&log), frame.relative_to));
                process
            })
            .collect(),
        values: values(prepared),
        // This field is filled in later, because profiles are taken after everything is measured.
        profile: None,
        code: prepared.code.clone(),
        compiler: prepared.compiled.as_ref().map(|compiled| compiled.statistics.clone()).unwrap_or_default(),
        lints: lints.to_vec(),
    }
}

/// The metrics that the record stores by name. The other metrics are derived from stages and artifacts.
fn described(frame: &Frame<'_>, journal: &Journal) -> Vec<Metric> {
    let mut metrics = vec![Metric::LATENCY, Metric::CPU_TIME];
    let printed = frame.sides.iter().flat_map(|side| {
        let commands = side.commands.iter().map(|command| BenchmarkName::new(&command.spec.name));
        commands.flat_map(|command| journal.processes(&command, side.input.name))
    });
    let mut others = commands::metrics(printed);
    let prepared = || frame.sides.iter().flat_map(|side| &side.benchmarks);
    if prepared().any(|prepared| prepared.calls.peak_device_memory.is_some()) {
        others.push(Metric::PEAK_DEVICE_MEMORY);
    }
    others.extend(prepared().flat_map(|prepared| &prepared.code_facts).map(|(metric, _)| metric.clone()));
    // A command can print a built-in metric too, such as `items-per-second`.
    let mut described: BTreeSet<_> = metrics.iter().map(|metric| metric.name.clone()).collect();
    metrics.extend(others.into_iter().filter(|metric| described.insert(metric.name.clone())));
    metrics
}

fn values(prepared: &Prepared<'_>) -> Vec<ValueRecord> {
    let memory = prepared.calls.peak_device_memory.map(|bytes| (Metric::PEAK_DEVICE_MEMORY, bytes as f64));
    let values = memory.into_iter().chain(prepared.code_facts.iter().cloned());
    values
        .map(|(metric, value)| ValueRecord { metric: metric.name.into_owned(), value: Number(value) })
        .collect()
}
