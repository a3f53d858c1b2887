//! A whole run: tools, then everything that can be prepared, then measuring, then the record.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;

use crate::config::Pin;
use crate::device::{self, Gpus};
use crate::files;
use crate::model::{BenchmarkName, Event, Progress, Run, SideName, Stage, Testbed, counted};
use crate::process::{self, Cancel};
use crate::record::{BundleOrigin, RunFile};
use crate::toolchain::{self, Environment, Installed, Lock};

use super::PipelineError;
use super::argv::InputArg;
use super::assemble::{self, Frame, PreparedSide};
use super::backends::{self, Axes, Dumps, Experiment};
use super::cache::{Cache, Digests, KeyBuilder, write_atomically};
use super::calibration::{self, CalibrationSource};
use super::devices;
use super::divergence;
use super::failures::Failures;
use super::interpreters::{Environments, Interpreters};
use super::journal::Journal;
use super::measure::{Candidate, IDENTICAL_BLOCKS, Measuring};
use super::plan::{self, Filter, Planned, SideInput};
use super::prepare::{Context, Prepared, prepare};
use super::profile::Profiler;
use super::slots::Slots;
use super::targets::Devices;
use super::timed::Ready;
use super::trace::Sources;

/// Where a run keeps and leaves things.
#[derive(Debug, Clone)]
pub struct Options {
    /// benchgate's cache folder: tools, exported and compiled models.
    pub cache: PathBuf,
    /// The working folder: sessions with their logs.
    pub work: PathBuf,
    /// Where `run.json` goes.
    pub output: PathBuf,
    pub filter: Filter,
    /// How long to wait for another job that measures on this machine; `None` is as long as it takes.
    pub lock_timeout: Option<Duration>,
    /// Blocks of rows whose sides execute the same bytes: `None` is one, a calibration wants many.
    pub identical_blocks: Option<u32>,
    pub calibration: CalibrationSource,
    /// Keep the IR of every phase of the compiler in the working folder.
    pub dump_ir: bool,
    /// Which experiments on other backends are run.
    pub axes: Axes,
    pub dumps: Dumps,
}

/// A finished run.
#[derive(Debug, Clone)]
pub struct Session {
    pub file: RunFile,
    /// Both sides as the gate sees them; a side that was not run is empty.
    pub base: Run,
    pub head: Run,
    /// It went on where an interrupted run had stopped.
    pub resumed: bool,
}

/// Runs a suite: one side, or two sides paired.
///
/// # Errors
/// What stops a whole run: tools that can't be verified, a disk without room, an interrupt. A model
/// that fails is an outcome in the record.
pub async fn run(
    sides: &[SideInput],
    options: &Options,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Session, PipelineError> {
    let Some(lead) = sides.iter().find(|side| side.name == SideName::Head).or(sides.first()) else {
        return Err(PipelineError::Selection("there is no side to run".to_owned()));
    };
    let plans: Vec<Vec<Planned<'_>>> = sides.iter().map(|side| plan::plan(side, &options.filter)).collect();
    let names = plan::names(&plans)?;

    let lead_at = sides.iter().position(|side| std::ptr::eq(side, lead)).unwrap_or(0);
    let mut experiments = backends::experiments(&plans[lead_at], &lead.config.backends, &options.axes)?;

    let cache = Cache::open(&options.cache);
    let needed = ready(sides, &plans, lead, &experiments, options, progress, cancel).await?;
    let Needed { tools, exporters, interpreters } = needed;
    let machine = Machine::look(&plans, progress);
    let context = context(&cache, &machine, lead, options, exporters, progress, cancel);
    let context = Context { paired: sides.len() == 2, ..context };
    let effort = Effort::begin();
    let prepared = prepare_all(&context, sides, plans, &tools).await?;
    context.interpreters.stop().await;
    progress.on(Event::Note(&effort.end(prepared.iter().map(|side| side.benchmarks.len()).sum())));
    if let Some(ir) = &context.ir {
        progress.on(Event::Note(&format!("the IR of every phase is in {}", ir.display())));
    }

    for experiment in &mut experiments {
        experiment.inputs = exported_inputs(&prepared[lead_at], experiment.model_name());
    }
    let beside = Beside { experiments: &experiments, interpreters: &interpreters, bundle: None };
    measure_and_record(&context, lead, &prepared, &tools, &names, &beside, options).await
}

/// What must be there before the first model.
pub(super) struct Needed {
    /// The tools of every side.
    pub(super) tools: Vec<Arc<Installed>>,
    pub(super) exporters: Exporters,
    /// What runs other backends.
    pub(super) interpreters: backends::Interpreters,
}

/// The environments that export, and how many models each of them has to.
#[derive(Default)]
pub(super) struct Exporters {
    environments: Environments,
    models: BTreeMap<Environment, usize>,
}

/// Installs and verifies what every side needs before its first model: the tools, and Python where a model
/// is exported or another backend runs.
pub(super) async fn ready(
    sides: &[SideInput],
    plans: &[Vec<Planned<'_>>],
    lead: &SideInput,
    experiments: &[Experiment<'_>],
    options: &Options,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Needed, PipelineError> {
    let models = exported_models(plans);
    let needed: BTreeSet<Environment> = models.keys().copied().chain(backends::needed(experiments)).collect();
    let steps = sides.len() + needed.len();
    progress.on(Event::StageStarted { stage: Stage::Toolchain, steps });
    let tools =
        try_join_all(sides.iter().map(|side| tools_of(side, &options.cache, progress, cancel))).await?;
    let mut environments = environments(&needed, &lead.lock, &options.cache, progress, cancel).await?;
    let interpreters = backends::interpreters(experiments, &environments);
    environments.retain(|environment, _| models.contains_key(environment));
    progress.on(Event::StageFinished { stage: Stage::Toolchain });
    Ok(Needed { tools, exporters: Exporters { environments, models }, interpreters })
}

/// The machine as a run finds it.
pub(super) struct Machine {
    gpus: Arc<Gpus>,
    choices: Vec<device::Choice>,
    pub(super) testbed: Testbed,
}

impl Machine {
    /// Looks at it, and at the GPUs that these benchmarks need.
    pub(super) fn look(plans: &[Vec<Planned<'_>>], progress: &dyn Progress) -> Self {
        let targets = || plans.iter().flatten().map(|planned| planned.target);
        let gpus = devices::gpus(targets());
        let choices = devices::choices(&gpus, targets());
        if let Some(problem) = gpus.problem() {
            progress.on(Event::Warning(&format!("the GPUs can't be watched: {problem}")));
        }
        let used: Vec<&device::Gpu> =
            devices::candidates(&choices).into_iter().filter_map(|index| gpus.list().get(index)).collect();
        let testbed = device::testbed(&used);
        Self { gpus, choices, testbed }
    }

    /// The machine alone, where nothing is run on a device.
    pub(super) fn without_devices() -> Self {
        Self { gpus: Arc::default(), choices: Vec::new(), testbed: device::testbed(&[]) }
    }
}

/// What the stages share, for one side alone.
pub(super) fn context<'a>(
    cache: &'a Cache,
    machine: &'a Machine,
    lead: &SideInput,
    options: &Options,
    exporters: Exporters,
    progress: &'a dyn Progress,
    cancel: &'a Cancel,
) -> Context<'a> {
    let scratch = options.work.join("scratch");
    files::sweep_scratch(&scratch, "");
    let settings = &lead.config.measure;
    let jobs = settings.jobs.unwrap_or_else(|| available_parallelism().map_or(1, usize::from));
    let Exporters { environments, models } = exporters;
    Context {
        cache,
        progress,
        cancel,
        testbed: &machine.testbed,
        slots: Slots::new(jobs),
        digests: Digests::default(),
        sources: Sources::without([options.work.clone(), options.output.clone(), options.cache.clone()]),
        failures: Failures::default(),
        devices: Devices::default(),
        interpreters: Interpreters::new(environments, jobs, &models),
        paired: false,
        ir: options.dump_ir.then(|| options.work.join("ir")),
        logs: options.work.join("logs"),
        scratch,
        cpus: settings.cpus.clone().or_else(device::default_cpus),
        gpus: Arc::clone(&machine.gpus),
        choices: machine.choices.clone(),
    }
}

/// What the record holds beside the measured sides.
pub(super) struct Beside<'a> {
    pub(super) experiments: &'a [Experiment<'a>],
    pub(super) interpreters: &'a backends::Interpreters,
    /// Where the modules come from, if they were not compiled here.
    pub(super) bundle: Option<BundleOrigin>,
}

/// The inputs that a model's module is measured with, where the exporter wrote them.
fn exported_inputs(side: &PreparedSide<'_>, model: &str) -> Vec<PathBuf> {
    let is_model = |prepared: &&Prepared| {
        prepared.labels.iter().any(|(label, value)| label == "model" && value == model)
    };
    let execution = side.benchmarks.iter().filter(is_model).find_map(|prepared| prepared.execution.as_ref());
    let inputs = execution.map(|execution| execution.inputs.as_slice()).unwrap_or_default();
    inputs
        .iter()
        .filter_map(|input| match input {
            InputArg::File(file) => Some(file.path.clone()),
            InputArg::Literal(_) => None,
        })
        .collect()
}

/// What preparing costs, so that idle processors are seen.
pub(super) struct Effort {
    started: Instant,
    processor_time: Duration,
    /// Of the machine: other people's work makes ours slower and leaves nothing idle.
    idle_time: Option<Duration>,
}

impl Effort {
    pub(super) fn begin() -> Self {
        Self {
            started: Instant::now(),
            processor_time: process::processor_time(),
            idle_time: device::idle_time(),
        }
    }

    /// `preparing took 312.0 s for 34 benchmarks, 2 processors 93 % busy with it and 4 % idle`.
    pub(super) fn end(self, benchmarks: usize) -> String {
        let wall = self.started.elapsed().as_secs_f64();
        let used = process::processor_time().saturating_sub(self.processor_time).as_secs_f64();
        let processors = available_parallelism().map_or(1, usize::from);
        let benchmarks = counted(benchmarks, "benchmark");
        #[expect(clippy::cast_precision_loss, reason = "no machine has 2^53 processors")]
        let percent = |spent: f64| 100.0 * spent / (wall.max(f64::EPSILON) * processors as f64);
        let busy = percent(used);
        let idle = device::idle_time().zip(self.idle_time).map(|(now, then)| now.saturating_sub(then));
        let idle =
            idle.map(|idle| format!(" and {:.0} % idle", percent(idle.as_secs_f64()))).unwrap_or_default();
        format!(
            "preparing took {wall:.1} s for {benchmarks}, {processors} processors {busy:.0} % busy with it{idle}"
        )
    }
}

/// How many models each environment has to export.
fn exported_models(plans: &[Vec<Planned<'_>>]) -> BTreeMap<Environment, usize> {
    let mut names: BTreeMap<Environment, BTreeSet<&str>> = BTreeMap::new();
    for planned in plans.iter().flatten() {
        if let Some(exporter) = planned.model.exporter {
            names.entry(Environment::of(exporter)).or_default().insert(&planned.model.name);
        }
    }
    names.into_iter().map(|(environment, names)| (environment, names.len())).collect()
}

/// The environments that are needed. One that can't be had (no wheels for this machine, no network) fails
/// the benchmarks and backends that need it, each with that reason; the others are still measured. One that is not what
/// was locked stops the run: somebody changed something.
async fn environments(
    needed: &BTreeSet<Environment>,
    lock: &Lock,
    cache: &Path,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Environments, PipelineError> {
    let mut environments = Environments::new();
    for environment in needed {
        let python = match toolchain::ensure_python(*environment, lock, cache, progress, cancel).await {
            Ok(python) => Ok(python),
            Err(error) if error.is_absence() => {
                let why = format!("failed to {error}");
                progress.on(Event::Warning(&why));
                Err(why)
            }
            Err(error) => return Err(error.into()),
        };
        environments.insert(*environment, python);
    }
    Ok(environments)
}

async fn tools_of(
    side: &SideInput,
    cache: &Path,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Arc<Installed>, PipelineError> {
    let pin: &Pin = &side.side.pin;
    Ok(Arc::new(toolchain::ensure(pin, &side.lock, cache, progress, cancel).await?))
}

/// Every benchmark of every side, as parallel as the slots allow.
async fn prepare_all<'a>(
    context: &Context<'_>,
    sides: &'a [SideInput],
    plans: Vec<Vec<Planned<'a>>>,
    tools: &[Arc<Installed>],
) -> Result<Vec<PreparedSide<'a>>, PipelineError> {
    let steps = plans.iter().map(Vec::len).sum();
    let stages = [Stage::Export, Stage::Compile, Stage::Verify];
    for stage in stages {
        context.progress.on(Event::StageStarted { stage, steps });
    }
    let jobs = sides.iter().zip(plans).zip(tools).map(|((side, plan), tools)| async move {
        let benchmarks =
            try_join_all(plan.into_iter().map(|planned| prepare(context, planned, tools))).await?;
        Ok::<_, PipelineError>(PreparedSide { input: side, toolchain: tools.identity.clone(), benchmarks })
    });
    let mut prepared = try_join_all(jobs).await?;
    divergence::compare_sides(&mut prepared)?;
    for stage in stages {
        context.progress.on(Event::StageFinished { stage });
    }
    Ok(prepared)
}

pub(super) async fn measure_and_record(
    context: &Context<'_>,
    lead: &SideInput,
    prepared: &[PreparedSide<'_>],
    tools: &[Arc<Installed>],
    names: &[BenchmarkName],
    beside: &Beside<'_>,
    options: &Options,
) -> Result<Session, PipelineError> {
    let alone = device::lock_host(options.lock_timeout, context.progress, context.cancel).await?;
    devices::undo_leftovers(&context.gpus, context.progress, &alone);
    let asked = lead.config.measure.lock_clocks;
    // Held until this function ends, however it does.
    let (held, lints) = devices::hold(&context.gpus, &context.choices, asked, context.progress, &alone);
    // At another clock it is another machine.
    let testbed = match asked.filter(|_| held.is_some()) {
        Some(clock) => device::with_fact(context.testbed, "gpu-clock", clock.to_string()),
        None => context.testbed.clone(),
    };
    let calibration = calibration::find(
        &options.calibration,
        &options.cache,
        &lead.config.suite,
        &testbed,
        context.progress,
    )?;
    let frame = Frame {
        suite: &lead.config.suite,
        measure: &lead.config.measure,
        policy: &lead.config.policy,
        cpus: context.cpus.as_deref(),
        testbed: &testbed,
        sides: prepared,
        lints: &lints,
        relative_to: options.output.parent().unwrap_or(Path::new("")),
        calibration: calibration.as_ref(),
    };
    let candidates = candidates(prepared, tools, names);
    let identical_blocks = options.identical_blocks.unwrap_or(IDENTICAL_BLOCKS);
    let sessions = options.work.join("sessions");
    let plan = plan_digest(&frame, &testbed, identical_blocks);
    let mut journal = Journal::open(&sessions, &plan, context.progress, context.cancel).await?;
    if journal.resumed {
        let kept = counted(journal.len(), "process");
        context.progress.on(Event::Note(&format!("resuming session {} with {kept}", journal.session)));
    }
    let label = options.output.to_string_lossy().into_owned();
    let look = |journal: &Journal| assemble::runs(&assemble::run_file(&frame, journal, false), &label);
    let measuring = Measuring {
        context,
        settings: frame.measure,
        policy: frame.policy,
        candidates: &candidates,
        identical_blocks,
        seed: assemble::seed(&frame, &journal),
        journal: &mut journal,
        clock_held: held.is_some(),
        look: &look,
    };
    measuring.run().await?;

    let mut file = assemble::run_file(&frame, &journal, true);
    let (base, head) = assemble::runs(&file, &label);
    let profiler = Profiler {
        context,
        settings: frame.measure,
        policy: frame.policy,
        candidates: &candidates,
        folder: options.work.join("profiles"),
    };
    profiler.run(&mut file, &base, &head).await?;
    file.backends = backends::run(
        context,
        lead,
        beside.experiments,
        beside.interpreters,
        &journal,
        &options.dumps,
        frame.relative_to,
    )
    .await?;
    file.bundle.clone_from(&beside.bundle);
    write_atomically(&options.output, &file.to_json())?;
    journal.complete()?;
    let (base, head) = assemble::runs(&file, &label);
    Ok(Session { file, base, head, resumed: journal.resumed })
}

/// Which benchmarks can be measured, and on which sides. A benchmark that both sides have and one of
/// them could not prepare is not measured: its verdict is known, and half of it compares with nothing.
fn candidates<'a>(
    prepared: &'a [PreparedSide<'_>],
    tools: &'a [Arc<Installed>],
    names: &[BenchmarkName],
) -> Vec<Candidate<'a>> {
    names
        .iter()
        .map(|name| {
            let declared: Vec<(&PreparedSide<'_>, &Arc<Installed>, &Prepared)> = prepared
                .iter()
                .zip(tools)
                .filter_map(|(side, tools)| {
                    Some((side, tools, side.benchmarks.iter().find(|prepared| prepared.name == *name)?))
                })
                .collect();
            let mut sides = BTreeMap::new();
            for (side, tools, prepared) in &declared {
                if let Some(execution) = prepared.execution.as_ref().filter(|_| prepared.outcome.is_ok()) {
                    let input = side.input;
                    let target = prepared.labels.iter().find(|(label, _)| label == "target");
                    let env = input
                        .config
                        .targets
                        .iter()
                        .find(|candidate| target.is_some_and(|(_, name)| *name == candidate.name))
                        .map(|target| target.env.clone())
                        .unwrap_or_default();
                    let folder = input.side.sources.clone();
                    sides.insert(input.name, Ready { execution, tools, env, folder });
                }
            }
            if sides.len() < declared.len() {
                sides.clear();
            }
            let identical = match declared.as_slice() {
                [(_, _, first), (_, _, second)] => {
                    first.artifact.is_some() && first.artifact == second.artifact
                }
                _ => false,
            };
            Candidate { name: name.clone(), sides, identical }
        })
        .collect()
}

/// The digest of everything that decides what is measured and how: an interrupted session goes on
/// only under the same one.
fn plan_digest(frame: &Frame<'_>, testbed: &Testbed, identical_blocks: u32) -> String {
    let measure = frame.measure;
    let mut key = KeyBuilder::new("plan/1")
        .text("suite", frame.suite)
        .text("testbed", &testbed.id)
        .text("repetitions", &format!("{:?}", measure.repetitions))
        .text("iterations", &format!("{:?}", measure.iterations))
        .text("min-time", &format!("{:?}", measure.min_time))
        .text("warmup", &format!("{:?}", measure.warmup))
        .text("processes", &measure.processes.to_string())
        .text("sequential", &format!("{:?}", frame.policy.sequential))
        .text("identical-blocks", &identical_blocks.to_string())
        .text("cpus", &format!("{:?}", frame.cpus))
        .text("seed", &format!("{:?}", measure.seed));
    for side in frame.sides {
        key = key.text("side", side.input.name.as_str());
        for prepared in &side.benchmarks {
            key = key.text("benchmark", prepared.name.as_str());
            match &prepared.artifact {
                Some(artifact) => {
                    key = key.text("vmfb", &artifact.vmfb_sha256).text("run", &artifact.execution_sha256)
                }
                None => key = key.text("vmfb", "none"),
            }
        }
    }
    key.finish()
}
