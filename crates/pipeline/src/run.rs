//! Runs a suite, from its sides to its record or to a bundle. This is the only driver: new kinds of runs add
//! another way to begin ([`PrepareFrom`]) or to end ([`PreparedRun`]).

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use tokio::sync::Mutex;

use benchgate_config::{CommandSpec, Config};
use benchgate_core::model::{BenchmarkName, Event, Progress, Run, SideName, Stage, Testbed};
use benchgate_core::record::RunFile;
use benchgate_host::device::{self, Choice, Gpus};
use benchgate_host::files;
use benchgate_host::process::Cancel;
use benchgate_toolchain::{self, Environment, Installed, SuitePackages};

use super::argv::InputArg;
use super::backends::{self, Axes, Experiment, Extras};
use super::bundle::{self, OpenBundle, PackedBundle};
use super::cache::{Cache, Digests};
use super::calibration::CalibrationSource;
use super::candidates::{PreparedSide, Unchanged};
use super::commands::{self, CommandRows, GuardedFolders};
use super::host::Host;
use super::interpreters::{Environments, Exporters};
use super::plan::{self, Filter, PlannedBenchmark, Shard, SideInput};
use super::prepare::{build, check};
use super::slots::{Memo, Slots, processors};
use super::stage::Prepared;
use super::trace::Sources;
use super::{PipelineError, between_sides, host};

#[derive(Debug, Clone, Default)]
pub struct Options {
    /// benchgate's cache folder, with tools and exported and compiled models.
    pub cache: PathBuf,
    /// The working folder, with sessions and their logs.
    pub work: PathBuf,
    /// Path of `run.json` or of the bundle.
    pub output: PathBuf,
    pub filter: Filter,
    /// The part of the suite to run; `None` means the whole suite.
    pub shard: Option<Shard>,
    /// Maximum time to wait for another job that measures on this machine; `None` means no limit.
    pub lock_timeout: Option<Duration>,
    /// Number of blocks for rows whose sides execute the same bytes. `None` means the default; a calibration
    /// needs many.
    pub identical_blocks: Option<u32>,
    /// True if sides that execute the same bytes need no measurement. False if another job judges the result,
    /// because that job can't verify which files were executed.
    pub claims_identity: bool,
    pub calibration: CalibrationSource,
    /// Keeps the compiler's IR after every phase in the working folder.
    pub dump_ir: bool,
    /// Folder for copies of the compiled modules; `None` for no copies.
    pub keep_modules: Option<PathBuf>,
    /// `Some(true)` resumes an unfinished session with commands, `Some(false)` starts a new one. Only the user
    /// can tell whether the commands changed, so a command without `--resume` passes `None`, which starts a new
    /// one as well.
    pub resume_commands: Option<bool>,
    pub command_rows: CommandRows,
    /// The experiments to run on other backends; `None` for none.
    pub axes: Option<Axes>,
    /// Data to collect from other backends in addition to times.
    pub extras: Extras,
}

impl Options {
    /// Creates default options: the whole suite is prepared and measured here, without an earlier
    /// calibration, and sides that execute the same bytes are measured too.
    pub fn new(cache: PathBuf, work: PathBuf, output: PathBuf) -> Self {
        Self { cache, work, output, calibration: CalibrationSource::None, ..Self::default() }
    }

    /// Returns whether a benchmark of the suite belongs to the part that is run here.
    fn is_here(&self, benchmark: &str) -> bool {
        self.shard.as_ref().is_none_or(|shard| shard.has(benchmark))
    }

    /// The benchmarks of each side that are run here.
    fn plans<'a>(&self, sides: &'a [SideInput]) -> Vec<Vec<PlannedBenchmark<'a>>> {
        let of_side = |side| {
            let planned = plan::plan(side, &self.filter).into_iter();
            planned.filter(|planned| self.is_here(planned.name().as_str())).collect()
        };
        sides.iter().map(of_side).collect()
    }

    /// Inspects this machine and returns the testbeds that a run of these sides may be recorded with, before
    /// any tool is installed. There are two if clocks are to be locked, because only the run shows whether
    /// they can be.
    pub fn testbeds(&self, sides: &[SideInput]) -> Vec<Testbed> {
        let RunMachine { choices, testbed, .. } = RunMachine::look(&self.plans(sides), sides, self);
        let asked = sides.last().and_then(|side| side.config.measure.lock_clocks);
        let asked = asked.filter(|_| !host::candidates(&choices).is_empty());
        let locked = asked.map(|clock| host::with_clock(&testbed, clock));
        locked.into_iter().chain([testbed]).collect()
    }

    /// The commands of a configuration that are run here.
    fn commands<'a>(&'a self, config: &'a Config) -> impl Iterator<Item = &'a CommandSpec> {
        self.filter.commands(config).filter(|command| self.is_here(&command.name))
    }
}

/// The starting point of a run.
#[derive(Debug, Clone, Copy)]
pub enum PrepareFrom<'a> {
    /// Export and compile the sides' sources here.
    Sources,
    /// Use a bundle that another machine exported and compiled.
    Bundle(&'a OpenBundle),
}

/// A suite with one side, or with two sides that are measured in pairs.
#[derive(Clone, Copy)]
pub struct SuiteRun<'a> {
    sides: &'a [SideInput],
    pub(super) options: &'a Options,
    progress: &'a dyn Progress,
    cancel: &'a Cancel,
}

/// A run with selected benchmarks and installed tools.
pub struct PreparedRun<'a> {
    pub(super) run: SuiteRun<'a>,
    pub(super) from: PrepareFrom<'a>,
    /// The side whose settings and policy apply to both.
    pub(super) lead: &'a SideInput,
    plans: Vec<Vec<PlannedBenchmark<'a>>>,
    pub(super) names: Vec<BenchmarkName>,
    /// The tools of each side; absent for a side without a model.
    tools: Vec<Option<Arc<Installed>>>,
    /// The state of the tools when they were verified.
    pub(super) unchanged: Unchanged,
    /// The locked PTX assembler, or the reason why it is unavailable; `None` if no target needs it.
    ptxas: Option<Result<PathBuf, String>>,
    exporters: Exporters,
    pub(super) experiments: Vec<Experiment<'a>>,
    /// The interpreters that run the experiments.
    pub(super) interpreters: backends::BackendInterpreters,
}

#[derive(Debug, Clone)]
pub struct MeasuredRun {
    pub file: RunFile,
    /// The base for the gate. A side that was not run is empty.
    pub base: Run,
    pub head: Run,
    /// True if it resumed an interrupted run.
    pub resumed: bool,
}

impl<'a> SuiteRun<'a> {
    pub fn new(
        sides: &'a [SideInput],
        options: &'a Options,
        progress: &'a dyn Progress,
        cancel: &'a Cancel,
    ) -> Self {
        Self { sides, options, progress, cancel }
    }

    /// Selects the benchmarks, and installs and verifies the tools that every side needs.
    ///
    /// # Errors
    /// No benchmark is selected, or tools can't be installed or verified.
    pub async fn prepare(self, from: PrepareFrom<'a>) -> Result<PreparedRun<'a>, PipelineError> {
        let Self { sides, options, .. } = self;
        let lead_at = sides.iter().position(|side| side.name == SideName::Head).unwrap_or(0);
        let Some(lead) = sides.get(lead_at) else {
            return Err(PipelineError::Selection("there is no side to run".to_owned()));
        };
        let mut plans = options.plans(sides);
        if let PrepareFrom::Bundle(bundle) = from {
            bundle.require_shard(options.shard.as_ref())?;
            for plan in &mut plans {
                // Benchmarks that were filtered out when the bundle was packed don't count as missing.
                plan.retain(|planned| bundle.has(*planned));
            }
        }
        let of_sides = sides.iter().zip(&plans).flat_map(|(side, plan)| {
            let commands = options.commands(&side.config).map(|command| BenchmarkName::new(&command.name));
            plan.iter().map(PlannedBenchmark::name).chain(commands).map(|name| (side.name, name))
        });
        // These models are only run on other backends, and their results are not judged.
        let others = options.axes.is_some() && !plan::uncompiled(lead, &options.filter).is_empty();
        let here = plan::names(of_sides.collect(), others)?;
        // The schedule is drawn for the whole suite, even if only a part of it is measured here.
        let names = options.shard.as_ref().map_or(here, Shard::suite);
        let jobs = lead.config.measure.jobs.unwrap_or_else(processors);
        let mut run = PreparedRun {
            run: self,
            from,
            lead,
            names,
            tools: Vec::new(),
            unchanged: Unchanged::default(),
            ptxas: None,
            exporters: Exporters::default(),
            experiments: Vec::new(),
            interpreters: backends::BackendInterpreters::default(),
            plans,
        };
        match from {
            PrepareFrom::Bundle(bundle) => {
                run.tools = bundle.tools.iter().cloned().map(Some).collect();
                if !lead.config.backends.is_empty() {
                    let text = "a bundle can't contain other backends, because they run in Python";
                    self.progress.on(Event::Note(text));
                }
            }
            PrepareFrom::Sources => {
                if let Some(axes) = &options.axes {
                    let backends = &lead.config.backends;
                    let mut plan = run.plans[lead_at].clone();
                    plan.extend(plan::uncompiled(lead, &options.filter));
                    run.experiments = backends::experiments(&plan, backends, axes)?;
                    options.extras.check(&run.experiments)?;
                }
                let mut artifacts = Vec::new();
                for (side, plan) in sides.iter().zip(&run.plans) {
                    let mut used = plan.clone();
                    if std::ptr::eq(side, lead) && others {
                        used.extend(plan::uncompiled(lead, &options.filter));
                    }
                    let has_commands = options.commands(&side.config).next().is_some();
                    artifacts.extend(plan::needed(side, &used, has_commands));
                }
                let models = exported_models(&run.plans);
                let mut needed: BTreeSet<Environment> = models.keys().copied().collect();
                needed.extend(backends::needed(&run.experiments));
                let planned = run.plans.iter().flatten();
                let assembler: BTreeSet<Environment> =
                    planned.filter_map(|planned| Environment::for_target(planned.target)).collect();
                let with_models = run.plans.iter().filter(|plan| !plan.is_empty()).count();
                let steps = artifacts.len() + with_models + needed.len() + assembler.len();
                if steps > 0 {
                    self.progress.on(Event::StageStarted { stage: Stage::Toolchain, steps });
                }
                let cache = &options.cache;
                benchgate_toolchain::place_artifacts(&artifacts, cache, self.progress, self.cancel).await?;
                let tools = async |side: &SideInput, plan: &[PlannedBenchmark<'_>]| {
                    if plan.is_empty() { Ok(None) } else { self.tools(side).await.map(Some) }
                };
                run.tools =
                    try_join_all(sides.iter().zip(&run.plans).map(|(side, plan)| tools(side, plan))).await?;
                let mut environments = self.environments(&needed, lead).await?;
                // The assembler's output is judged, so the base's assembler is used if there is a base.
                let judge = sides.iter().find(|side| side.name == SideName::Base).unwrap_or(lead);
                let found = self.environments(&assembler, judge).await?.remove(&Environment::Ptxas);
                run.ptxas = found.map(|found| found.map(|environment| environment.ptxas()));
                run.interpreters = backends::interpreters(&run.experiments, &environments);
                environments.retain(|environment, _| models.contains_key(environment));
                self.progress.on(Event::StageFinished { stage: Stage::Toolchain });
                run.exporters = Exporters::new(environments, jobs, &models);
            }
        }
        run.unchanged = Unchanged::tools(run.tools.iter().flatten().map(Arc::as_ref))?;
        Ok(run)
    }

    async fn tools(&self, side: &SideInput) -> Result<Arc<Installed>, PipelineError> {
        let (pin, cache) = (&side.side.pin, &self.options.cache);
        Ok(Arc::new(benchgate_toolchain::ensure(pin, &side.lock, cache, self.progress, self.cancel).await?))
    }

    /// Installs the environments that are needed. If one is not available (no wheels for this machine, no
    /// network), only the benchmarks and backends that need it fail, with that reason. An environment that
    /// differs from the lock stops the run, because something has changed it.
    async fn environments(
        &self,
        needed: &BTreeSet<Environment>,
        lead: &SideInput,
    ) -> Result<Environments, PipelineError> {
        let cache = &self.options.cache;
        let (lock, suite) = (&lead.lock, SuitePackages::read(&lead.config));
        let mut environments = Environments::new();
        for environment in needed {
            let found = benchgate_toolchain::ensure_python(
                *environment,
                &suite,
                lock,
                cache,
                self.progress,
                self.cancel,
            )
            .await;
            let python = match found {
                Err(error) if error.is_absence() => {
                    let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
                    let why = format!("failed to {error}{hint}");
                    self.progress.on(Event::Warning(&why));
                    Err(why)
                }
                found => Ok(found?),
            };
            environments.insert(*environment, python);
        }
        Ok(environments)
    }
}

impl<'a> PreparedRun<'a> {
    /// Exports and compiles, and packs everything that verifying and measuring need into a bundle. `notices`
    /// are shown with the verdict. If the base has its own configuration, the base's policy judges.
    ///
    /// # Errors
    /// Something stops the whole run, or can't be bundled. A model that fails is not an error; the bundle
    /// contains its failure.
    pub async fn pack(self, notices: &[String]) -> Result<PackedBundle, PipelineError> {
        let host = self.host(RunMachine::without_devices());
        let mut sides = self.each(&host, &[Stage::Export, Stage::Compile], false).await?;
        super::export_reads::note(&host, &mut sides).await;
        let Options { output, shard, .. } = self.run.options;
        bundle::pack(&host, self.lead, &sides, notices, shard.as_ref(), output).await
    }

    /// Compiles and verifies every benchmark of every side, and finds the inputs that other backends need.
    pub(super) async fn checked(&mut self, host: &Host<'_>) -> Result<Vec<PreparedSide<'a>>, PipelineError> {
        let stages: &[Stage] = match self.from {
            PrepareFrom::Sources => &[Stage::Export, Stage::Compile, Stage::Verify],
            PrepareFrom::Bundle(bundle) => {
                bundle.teach(&host.digests);
                &[Stage::Verify]
            }
        };
        let mut sides = self.each(host, stages, true).await?;
        super::export_reads::note(host, &mut sides).await;
        between_sides::compare_sides(&mut sides)?;
        if let Some(ir) = &host.ir {
            host.progress.on(Event::Note(&format!("the IR of every phase is in {}", ir.display())));
        }
        let lead = sides.iter().find(|side| std::ptr::eq(side.input, self.lead));
        for experiment in &mut self.experiments {
            experiment.inputs =
                lead.map(|side| exported_inputs(side, experiment.model_name())).unwrap_or_default();
        }
        Ok(sides)
    }

    /// Takes every benchmark of every side through these stages, in parallel as far as the slots allow.
    async fn each(
        &self,
        host: &Host<'_>,
        stages: &[Stage],
        checked: bool,
    ) -> Result<Vec<PreparedSide<'a>>, PipelineError> {
        let steps = self.plans.iter().map(Vec::len).sum();
        for stage in stages.iter().filter(|_| steps > 0) {
            host.progress.on(Event::StageStarted { stage: *stage, steps });
        }
        let paired = self.run.sides.len() == 2;
        // Code of the head runs while base's models are exported: its exporter, and programs that its flags name.
        let mut checkouts = GuardedFolders::default();
        let exported = self.run.sides.iter().zip(&self.plans).filter(|(_, plan)| !plan.is_empty());
        for (side, _) in exported.filter(|(side, _)| side.checkout.is_some()) {
            checkouts.add(&side.side.sources);
        }
        let sources = checkouts.look()?;
        let one = async |planned: PlannedBenchmark<'a>, tools: &Installed| {
            let prepared = match self.from {
                PrepareFrom::Sources => build(host, &self.exporters, planned, tools).await?,
                PrepareFrom::Bundle(bundle) => bundle.prepared(planned, &host.testbed),
            };
            if checked { check(host, prepared, tools, paired).await } else { Ok(prepared) }
        };
        let sides = self.run.sides.iter().zip(&self.plans).zip(&self.tools).map(|((input, plan), tools)| {
            let planned = plan.iter().zip(std::iter::repeat(tools));
            let planned = planned.filter_map(|(planned, tools)| Some((planned, tools.as_deref()?)));
            let benchmarks = try_join_all(planned.map(|(planned, tools)| one(*planned, tools)));
            async move {
                let benchmarks = benchmarks.await?;
                let (tools, commands) = (tools.clone(), Vec::new());
                Ok::<_, PipelineError>(PreparedSide { input, tools, benchmarks, commands })
            }
        });
        let mut sides = try_join_all(sides).await?;
        for stage in stages.iter().filter(|_| steps > 0) {
            host.progress.on(Event::StageFinished { stage: *stage });
        }
        self.exporters.stop().await;
        sources.check_existing()?;
        let mut guarded = GuardedFolders::default();
        let options = self.run.options;
        for side in &mut sides {
            let specs = options.commands(&side.input.config);
            side.commands =
                commands::built(host, side.input, specs, options.command_rows, &mut guarded).await?;
        }
        Ok(sides)
    }

    /// The host with the machine's devices, for a run that measures.
    pub(super) fn measuring_host(&self) -> Host<'a> {
        let SuiteRun { sides, options, progress, .. } = self.run;
        let machine = RunMachine::look(&self.plans, sides, options);
        if let Some(problem) = machine.gpus.problem() {
            progress.on(Event::Warning(&format!("the GPUs can't be watched: {problem}")));
        }
        self.host(machine)
    }

    fn host(&self, machine: RunMachine) -> Host<'a> {
        let SuiteRun { sides, options, progress, cancel } = self.run;
        let scratch = options.work.join("scratch");
        let builds = options.cache.join("commands");
        for folder in [&scratch, &builds] {
            files::sweep_scratch(folder, "");
        }
        let settings = &self.lead.config.measure;
        let RunMachine { gpus, choices, testbed } = machine;
        Host {
            cache: Cache::open(&options.cache),
            progress,
            cancel,
            testbed,
            slots: Slots::new(settings.jobs.unwrap_or_else(processors)),
            device_turn: Mutex::default(),
            digests: Digests::new(cancel),
            claims_identity: options.claims_identity,
            sources: Sources::without(
                [&options.work, &options.output, &options.cache]
                    .into_iter()
                    .chain(&options.keep_modules)
                    .cloned(),
            )
            .with_checkouts(sides.iter().filter_map(|side| Some(side.checkout.as_ref()?.folder.as_path()))),
            unobserved: std::sync::Once::new(),
            listed_devices: Memo::default(),
            loaded: Memo::default(),
            callers: Memo::default(),
            ir: options.dump_ir.then(|| options.work.join("ir")),
            modules: options.keep_modules.clone(),
            ptxas: self.ptxas.clone(),
            logs: options.work.join("logs"),
            scratch,
            builds,
            cpus: settings.cpus.clone().or_else(device::default_cpus),
            gpus,
            choices,
        }
    }
}

/// The facts about the machine at the start of a run.
struct RunMachine {
    gpus: Arc<Gpus>,
    choices: Vec<Choice>,
    testbed: Testbed,
}

impl RunMachine {
    /// Inspects the machine and the GPUs that these benchmarks need.
    fn look(plans: &[Vec<PlannedBenchmark<'_>>], sides: &[SideInput], options: &Options) -> Self {
        let used = || {
            let models =
                plans.iter().flatten().map(|planned| (planned.target.device.as_str(), &planned.target.env));
            let commands = sides.iter().flat_map(|side| options.commands(&side.config));
            models.chain(commands.map(|command| (command.device.as_str(), &command.env)))
        };
        let gpus = host::gpus(used());
        let choices = host::choices(&gpus, used());
        let used: Vec<&device::Gpu> =
            host::candidates(&choices).into_iter().filter_map(|index| gpus.list().get(index)).collect();
        let testbed = device::testbed(&used);
        Self { gpus, choices, testbed }
    }

    /// The machine without its devices, for runs that execute nothing on them.
    fn without_devices() -> Self {
        Self { gpus: Arc::default(), choices: Vec::new(), testbed: device::testbed(&[]) }
    }
}

/// The input files of a model's module, if the exporter wrote them.
fn exported_inputs(side: &PreparedSide<'_>, model: &str) -> Vec<PathBuf> {
    let is_model = |prepared: &&Prepared<'_>| prepared.planned.model.name == model;
    let execution = side.benchmarks.iter().filter(is_model).find_map(|prepared| prepared.execution.as_ref());
    let inputs = execution.into_iter().flat_map(|execution| &execution.inputs);
    let files = inputs.filter_map(|input| match input {
        InputArg::File(file) => Some(file.path.clone()),
        InputArg::Literal(_) => None,
    });
    files.collect()
}

/// The number of models that each environment has to export.
fn exported_models(plans: &[Vec<PlannedBenchmark<'_>>]) -> BTreeMap<Environment, usize> {
    let mut names: BTreeMap<Environment, BTreeSet<&str>> = BTreeMap::new();
    for planned in plans.iter().flatten() {
        if let Some(environment) = Environment::for_model(planned.model) {
            names.entry(environment).or_default().insert(&planned.model.name);
        }
    }
    names.into_iter().map(|(environment, names)| (environment, names.len())).collect()
}
