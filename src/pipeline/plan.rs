//! Which benchmarks a suite has, per side, before anything is run.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

use crate::config::{CommandSpec, Config, Model, ModelSource, Side, Target};
use crate::gate::{Expected, NumericsTolerance};
use crate::git::{Checkout, Repository};
use crate::model::{BenchmarkName, Metric, SideName, is_cpu};
use crate::record::{PlanFile, ShardRecord};
use crate::toolchain::Lock;

use super::PipelineError;

/// One side of a run: its own configuration, lock and sources.
#[derive(Debug, Clone)]
pub struct SideInput {
    pub name: SideName,
    /// Measured for head's ratio to it, and not to be compared with.
    pub anchor: bool,
    pub config: Config,
    pub side: Side,
    pub lock: Lock,
    /// Commit of the sources, if they are in a repository.
    pub commit: Option<String>,
    /// Whether the working tree had changes that no commit has.
    pub dirty: Option<bool>,
    /// The checkout of the sources, if they are not in the working tree. It is removed with the last side that names
    /// it.
    pub checkout: Option<Checkout>,
}

impl SideInput {
    /// A side whose sources are a folder of no known commit, with tools that no lock names.
    pub fn new(name: SideName, config: Config, side: Side) -> Self {
        let lock = Lock::default();
        Self { name, anchor: false, config, side, lock, commit: None, dirty: None, checkout: None }
    }

    /// Whether the sources are complete. A checkout that left something out can make anything fail.
    pub fn is_complete(&self) -> bool {
        self.checkout.as_ref().is_none_or(|checkout| checkout.notices.is_empty())
    }
}

/// Selects benchmarks by name. Several patterns select all names that match any of them. Names of other tools hold
/// brackets (`test[3]`), so a pattern also matches its own text.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    names: Vec<Regex>,
    /// With any of these tags; empty for all.
    tags: Vec<String>,
}

impl Filter {
    pub fn new(patterns: &[Regex]) -> Self {
        Self { names: patterns.to_vec(), tags: Vec::new() }
    }

    /// Only models with one of these tags; all if there are none.
    #[must_use]
    pub fn with_tags(self, tags: &[String]) -> Self {
        Self { tags: tags.to_vec(), ..self }
    }

    fn selects_tags(&self, tags: &[String]) -> bool {
        self.tags.is_empty() || tags.iter().any(|tag| self.tags.contains(tag))
    }

    /// The commands of a configuration that it selects.
    pub fn commands<'a>(&'a self, config: &'a Config) -> impl Iterator<Item = &'a CommandSpec> {
        // A command has no tags.
        config.commands.iter().filter(|command| self.selects_tags(&[]) && self.selects(&command.name))
    }

    pub fn selects(&self, name: &str) -> bool {
        self.names.is_empty()
            || self.names.iter().any(|pattern| pattern.as_str() == name || pattern.is_match(name))
    }
}

/// A benchmark that a side declares.
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

    /// The name that the policy knows it by: the base's.
    pub(super) fn judged_as(&self) -> BenchmarkName {
        let model = self.side.config.renames.get(&self.model.name).unwrap_or(&self.model.name);
        BenchmarkName::from_parts(model, &self.target.name, &self.model.function)
    }

    /// The commit of torchbench that the model is from; `unversioned` where the checkout is not a repository.
    pub(super) fn torchbench(&self) -> Option<String> {
        let ModelSource::Torchbench { checkout, .. } = &self.model.source else { return None };
        let found = Repository::open(&checkout.folder).and_then(|repository| {
            let dirty = if repository.is_dirty()? { "-dirty" } else { "" };
            Ok(format!("{}{dirty}", repository.head()?.commit))
        });
        Some(found.unwrap_or_else(|_| "unversioned".to_owned()))
    }

    /// How far its outputs may be from their references.
    pub(super) fn tolerances(&self) -> Vec<NumericsTolerance> {
        self.side.config.numerics.for_benchmark(&self.judged_as())
    }
}

fn name(model: &Model, target: &Target) -> BenchmarkName {
    BenchmarkName::from_parts(&model.name, &target.name, &model.function)
}

/// Every model with each of its targets, in the configuration's order.
fn placed(config: &Config) -> impl Iterator<Item = (&Model, &Target)> {
    let pairs =
        config.models.iter().flat_map(|model| config.targets.iter().map(move |target| (model, target)));
    pairs.filter(|(model, target)| model.targets.is_empty() || model.targets.contains(&target.name))
}

/// Every benchmark that a configuration declares.
fn declared(config: &Config) -> impl Iterator<Item = (&Model, &Target)> {
    placed(config).filter(|(model, _)| model.compile)
}

/// Benchmarks that a result of this configuration must contain, in the configuration's order.
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

/// A benchmark of a suite, and which sides have it. A command is one, however many its processes print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredBenchmark {
    pub name: BenchmarkName,
    /// The name of the target, or of the command.
    pub target: String,
    pub sides: Vec<SideName>,
    /// How many benchmarks it is in a result, as far as that is known: a command may print several.
    pub rows: usize,
}

/// Every benchmark of these sides, in the order that a run of all of them has.
///
/// # Errors
/// A selection that selects nothing.
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

/// The selected models that only other backends run.
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
        // By either name of a renamed model: the new one must not take it out of what a filter keeps.
        .filter(|planned| {
            [planned.name(), planned.judged_as()].iter().any(|name| filter.selects(name.as_str()))
        })
        .collect()
}

/// The names of all benchmarks of a run: head's in their order, then what only base has.
/// A selection that selects nothing is an error, because an empty suite would pass; `has_others` says that there is
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

/// One shard of a plan.
#[derive(Debug, Clone)]
pub struct Shard {
    record: ShardRecord,
    /// Benchmarks that this machine measures.
    benchmarks: BTreeSet<String>,
    /// Every benchmark of the suite, in its order: the schedule is drawn for all of them.
    suite: Vec<BenchmarkName>,
    pub(super) rows: u32,
    pub(super) seed: u64,
}

impl Shard {
    /// `None` if the plan has no shard of this number.
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

    /// Whether a benchmark of the suite is measured here.
    pub(super) fn has(&self, benchmark: &str) -> bool {
        self.benchmarks.contains(benchmark)
    }

    /// The names of the whole suite.
    pub(super) fn suite(&self) -> Vec<BenchmarkName> {
        self.suite.clone()
    }
}
