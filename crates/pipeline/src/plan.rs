//! Determines which benchmarks each side of a suite has, before anything is run.
//!
//! Selects the artifacts that the selected benchmarks of a side need.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use regex::Regex;

use benchgate_config::{Artifact, CommandSpec, Config, Model, ModelSource, Side, Target};
use benchgate_core::model::{BenchmarkName, Metric, SideName, excerpt, is_cpu, short_commit};
use benchgate_core::record::{PlanFile, ShardRecord};
use benchgate_gate::{Expected, NumericsTolerance};
use benchgate_host::git::{Checkout, Repository};
use benchgate_toolchain::Lock;

use super::PipelineError;

/// One side of a run: its own configuration, lock and sources.
#[derive(Debug, Clone)]
pub struct SideInput {
    pub name: SideName,
    /// True for the reference toolchain, which is measured for head's ratio to it but not compared with head.
    pub anchor: bool,
    pub config: Config,
    pub side: Side,
    pub lock: Lock,
    /// The commit of the sources, if they are in a repository.
    pub commit: Option<String>,
    /// True if the working tree had uncommitted changes, or if the models or flags name untracked files.
    pub dirty: Option<bool>,
    /// Untracked files that the models or flags name.
    pub untracked: BTreeSet<PathBuf>,
    /// The checkout of the sources, if they are not in the working tree. The checkout is deleted when its
    /// last side is dropped.
    pub checkout: Option<Checkout>,
}

impl SideInput {
    /// Creates a side whose sources are in a folder without a known commit, and whose tools are not locked.
    pub fn new(name: SideName, config: Config, side: Side) -> Self {
        let lock = Lock::default();
        let untracked = BTreeSet::new();
        Self { name, anchor: false, config, side, lock, commit: None, dirty: None, untracked, checkout: None }
    }

    /// Returns a note that lists the measured untracked files, or `None` if there are none.
    pub fn untracked_note(&self) -> Option<String> {
        let files: Vec<String> = self.untracked.iter().map(|path| path.display().to_string()).collect();
        let commit = self.commit.as_deref().map_or("no commit", short_commit);
        let files = excerpt(&files.join(", "), 200);
        (!files.is_empty()).then(|| {
            format!(
                "{} was measured with untracked files, which {commit} does not contain: {files}",
                self.name
            )
        })
    }

    /// Returns whether the sources are complete. If a checkout is incomplete, anything could fail because of
    /// that.
    pub fn is_complete(&self) -> bool {
        self.checkout.as_ref().is_none_or(|checkout| checkout.notices.is_empty())
    }
}

/// Selects benchmarks by name. If there are several patterns, a name has to match any of them. Names from
/// other tools may contain brackets (`test[3]`), so a pattern also matches the name that is equal to it.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    names: Vec<Regex>,
    /// A model needs at least one of these tags; if there are none, all models are selected.
    tags: Vec<String>,
}

impl Filter {
    pub fn new(patterns: &[Regex]) -> Self {
        Self { names: patterns.to_vec(), tags: Vec::new() }
    }

    /// Selects only models with one of these tags; all models if there are none.
    #[must_use]
    pub fn with_tags(self, tags: &[String]) -> Self {
        Self { tags: tags.to_vec(), ..self }
    }

    fn selects_tags(&self, tags: &[String]) -> bool {
        self.tags.is_empty() || tags.iter().any(|tag| self.tags.contains(tag))
    }

    /// The commands of a configuration that the filter selects.
    pub fn commands<'a>(&'a self, config: &'a Config) -> impl Iterator<Item = &'a CommandSpec> {
        // Commands have no tags.
        config.commands.iter().filter(|command| self.selects_tags(&[]) && self.selects(&command.name))
    }

    pub fn selects(&self, name: &str) -> bool {
        self.names.is_empty()
            || self.names.iter().any(|pattern| pattern.as_str() == name || pattern.is_match(name))
    }
}

/// A benchmark of a model that a side declares.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlannedBenchmark<'a> {
    pub(super) side: &'a SideInput,
    pub(super) model: &'a Model,
    pub(super) target: &'a Target,
}

impl PlannedBenchmark<'_> {
    pub(super) fn name(&self) -> BenchmarkName {
        name(self.model, self.target)
    }

    /// The name that the policy uses for the benchmark, which is the name at base.
    pub(super) fn judged_as(&self) -> BenchmarkName {
        let model = self.side.config.renames.get(&self.model.name).unwrap_or(&self.model.name);
        BenchmarkName::from_parts(model, &self.target.name, &self.model.function)
    }

    /// The torchbench commit that the model comes from; `unversioned` if the checkout is not a repository.
    pub(super) fn torchbench(&self) -> Option<String> {
        let ModelSource::Torchbench { checkout, .. } = &self.model.source else { return None };
        let found = Repository::open(&checkout.folder).and_then(|repository| {
            let dirty = if repository.is_dirty()? { "-dirty" } else { "" };
            Ok(format!("{}{dirty}", repository.head()?.commit))
        });
        Some(found.unwrap_or_else(|_| "unversioned".to_owned()))
    }

    /// The allowed differences between its outputs and their references.
    pub(super) fn tolerances(&self) -> Vec<NumericsTolerance> {
        self.side.config.numerics.for_benchmark(&self.judged_as())
    }
}

fn name(model: &Model, target: &Target) -> BenchmarkName {
    BenchmarkName::from_parts(&model.name, &target.name, &model.function)
}

/// Every combination of a model with one of its targets, in the configuration's order.
fn placed(config: &Config) -> impl Iterator<Item = (&Model, &Target)> {
    let pairs =
        config.models.iter().flat_map(|model| config.targets.iter().map(move |target| (model, target)));
    pairs.filter(|(model, target)| model.targets.is_empty() || model.targets.contains(&target.name))
}

/// Every benchmark of a model that a configuration declares.
fn declared(config: &Config) -> impl Iterator<Item = (&Model, &Target)> {
    placed(config).filter(|(model, _)| model.compile)
}

/// The benchmarks that a result of this configuration must contain, in the configuration's order.
pub fn expected(config: &Config) -> Vec<Expected> {
    let models = declared(config).map(|(model, target)| Expected {
        benchmark: name(model, target),
        judged_as: name(model, target),
        device: Some(target.device.clone()),
        on_gpu: !is_cpu(&target.device),
        has_reference: !matches!(model.source, ModelSource::Mlir(_)) || !model.expected.is_empty(),
        names_reference: !model.expected.is_empty(),
        is_timed: target.is_timed(),
        printed: None,
    });
    let of_command = |command: &CommandSpec| {
        let metrics = match command.metrics.as_slice() {
            [] => vec![Metric::LATENCY.name.into_owned()],
            named => named.to_vec(),
        };
        let has_reference = !command.outputs.is_empty();
        let rows = command.benchmarks().unwrap_or_default().into_iter();
        let name = BenchmarkName::new(&command.name);
        rows.map(move |benchmark| Expected {
            benchmark,
            judged_as: name.clone(),
            device: None,
            on_gpu: false,
            has_reference,
            names_reference: false,
            is_timed: true,
            printed: Some(metrics.clone()),
        })
    };
    models.chain(config.commands.iter().flat_map(of_command)).collect()
}

/// A benchmark of a suite, and the sides that have it. A command counts as one benchmark, however many its
/// processes print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredBenchmark {
    pub name: BenchmarkName,
    /// The name of the target, or of the command.
    pub target: String,
    pub sides: Vec<SideName>,
    /// The number of rows that it has in a result, as far as known: a command may print several.
    pub rows: usize,
}

/// All selected benchmarks of these sides, in the order of a run.
///
/// # Errors
/// No benchmark is selected.
pub fn declared_benchmarks(
    sides: &[SideInput],
    filter: &Filter,
) -> Result<Vec<DeclaredBenchmark>, PipelineError> {
    let mut found: BTreeMap<BenchmarkName, DeclaredBenchmark> = BTreeMap::new();
    let mut all = Vec::new();
    for side in sides {
        let models = plan(side, filter);
        let models = models.iter().map(|planned| (planned.name(), planned.target.name.clone(), 1));
        let commands = filter.commands(&side.config).map(|command| {
            let rows = command.benchmarks().map_or(1, |rows| rows.len());
            (BenchmarkName::new(&command.name), command.name.clone(), rows)
        });
        for (name, target, rows) in models.chain(commands) {
            all.push((side.name, name.clone()));
            let one = DeclaredBenchmark { name: name.clone(), target, sides: Vec::new(), rows };
            found.entry(name).or_insert(one).sides.push(side.name);
        }
    }
    Ok(names(all, false)?.into_iter().filter_map(|name| found.remove(&name)).collect())
}

/// Every selected benchmark of a side, in the order of its configuration.
pub(super) fn plan<'a>(side: &'a SideInput, filter: &Filter) -> Vec<PlannedBenchmark<'a>> {
    selected(side, filter, declared(&side.config))
}

/// The selected models that are not compiled, because only other backends run them.
pub(super) fn uncompiled<'a>(side: &'a SideInput, filter: &Filter) -> Vec<PlannedBenchmark<'a>> {
    selected(side, filter, placed(&side.config).filter(|(model, _)| !model.compile))
}

fn selected<'a>(
    side: &'a SideInput,
    filter: &Filter,
    placed: impl Iterator<Item = (&'a Model, &'a Target)>,
) -> Vec<PlannedBenchmark<'a>> {
    placed
        .map(|(model, target)| PlannedBenchmark { side, model, target })
        .filter(|planned| filter.selects_tags(&planned.model.tags))
        // A renamed model may match by either name, so that renaming it does not exclude it from a filter.
        .filter(|planned| {
            [planned.name(), planned.judged_as()].iter().any(|name| filter.selects(name.as_str()))
        })
        .collect()
}

/// The names of all benchmarks of a run: those of head in their order, then those that only base has. It is
/// an error if nothing is selected, because an empty suite would pass, unless `has_others` says that there is
/// something else to run.
pub(super) fn names(
    mut of_sides: Vec<(SideName, BenchmarkName)>,
    has_others: bool,
) -> Result<Vec<BenchmarkName>, PipelineError> {
    of_sides.sort_by_key(|(side, _)| *side == SideName::Base);
    let mut known: BTreeSet<BenchmarkName> = BTreeSet::new();
    let names = of_sides.into_iter().map(|(_, name)| name).filter(|name| known.insert(name.clone()));
    let names: Vec<BenchmarkName> = names.collect();
    if names.is_empty() && !has_others {
        return Err(PipelineError::Selection("no benchmark of the suite matches the filter".to_owned()));
    }
    Ok(names)
}

#[derive(Debug, Clone)]
pub struct Shard {
    record: ShardRecord,
    /// Names of the benchmarks that this machine measures.
    benchmarks: BTreeSet<String>,
    /// All benchmarks of the suite, in its order, because the schedule is drawn for all of them.
    suite: Vec<BenchmarkName>,
    pub(super) rows: u32,
    pub(super) seed: u64,
}

impl Shard {
    /// Returns `None` if the plan has no shard with this number.
    pub fn new(plan: &PlanFile, number: u32, attempt: u32) -> Option<Self> {
        let benchmarks = plan.shard(number)?.benchmarks.iter().cloned().collect();
        Some(Self {
            record: ShardRecord { plan: plan.sha256.clone(), shard: number, attempt, sha256: None },
            benchmarks,
            suite: plan.benchmarks.iter().map(|benchmark| BenchmarkName::new(&benchmark.name)).collect(),
            rows: plan.rows,
            seed: plan.seed,
        })
    }

    pub(super) fn record(&self) -> ShardRecord {
        self.record.clone()
    }

    /// Returns whether this shard measures a benchmark of the suite.
    pub(super) fn has(&self, benchmark: &str) -> bool {
        self.benchmarks.contains(benchmark)
    }

    /// The names of all benchmarks of the suite.
    pub(super) fn suite(&self) -> Vec<BenchmarkName> {
        self.suite.clone()
    }
}

/// Selects the artifacts that a side's selected benchmarks need, each with the folder of the side's sources.
/// An artifact is left out only if it is named by models that are not selected, and by nothing else. One that
/// no key names is kept, because code and commands can open it.
pub(super) fn needed<'a>(
    side: &'a SideInput,
    plan: &[PlannedBenchmark<'_>],
    has_commands: bool,
) -> Vec<(&'a Artifact, &'a Path)> {
    if plan.is_empty() && !has_commands {
        return Vec::new();
    }
    let all = &side.config.artifacts;
    let is_needed = |artifact: &&Artifact| {
        let names = |model: &Model| model.files().any(|path| artifact.is_at(path));
        plan.iter().any(|planned| names(planned.model))
            || !side.config.models.iter().any(names)
            || is_in_flags(artifact, side)
    };
    all.iter().filter(is_needed).map(|artifact| (artifact, side.side.sources.as_path())).collect()
}

/// Returns whether flags or environment variables of any benchmark name the artifact.
fn is_in_flags(artifact: &Artifact, side: &SideInput) -> bool {
    let config = &side.config;
    let of_targets = config.targets.iter().flat_map(|target| target.flags.iter().chain(&target.run_flags));
    let variables = config.targets.iter().flat_map(|target| target.env.values());
    let of_models = config.models.iter().flat_map(|model| &model.flags);
    let of_side = side.side.flags.iter().chain(&side.side.run_flags);
    let path = artifact.path();
    let path = path.to_string_lossy();
    of_targets.chain(variables).chain(of_models).chain(of_side).any(|flag| flag.contains(&*path))
}
