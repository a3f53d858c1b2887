//! Which benchmarks a suite has, per side, before anything is run.

use regex::Regex;

use crate::config::{Config, Model, Side, Target};
use crate::model::{BenchmarkName, SideName};
use crate::toolchain::Lock;

use super::PipelineError;

/// One side of a run: its own configuration, lock and sources.
#[derive(Debug, Clone)]
pub struct SideInput {
    pub name: SideName,
    pub config: Config,
    pub side: Side,
    pub lock: Lock,
    /// Commit of the sources, where they are in a repository.
    pub commit: Option<String>,
    /// Whether the working tree had changes that no commit has.
    pub dirty: Option<bool>,
}

/// Selects benchmarks by name. Several patterns select what any of them matches.
#[derive(Debug, Clone, Default)]
pub struct Filter(Vec<Regex>);

impl Filter {
    pub fn new(patterns: &[String]) -> Result<Self, regex::Error> {
        patterns.iter().map(|pattern| Regex::new(pattern)).collect::<Result<_, _>>().map(Self)
    }

    pub fn selects(&self, name: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|pattern| pattern.is_match(name))
    }
}

/// A benchmark that a side declares.
#[derive(Debug, Clone, Copy)]
pub(super) struct Planned<'a> {
    pub(super) side: &'a SideInput,
    pub(super) model: &'a Model,
    pub(super) target: &'a Target,
}

impl Planned<'_> {
    pub(super) fn name(&self) -> BenchmarkName {
        BenchmarkName::from_parts(&self.model.name, &self.target.name, &self.model.function)
    }
}

/// Every selected benchmark of a side, in the order of its configuration.
pub(super) fn plan<'a>(side: &'a SideInput, filter: &Filter) -> Vec<Planned<'a>> {
    let config = &side.config;
    config
        .models
        .iter()
        .flat_map(|model| config.targets.iter().map(move |target| Planned { side, model, target }))
        .filter(|planned| {
            let wanted = &planned.model.targets;
            wanted.is_empty() || wanted.contains(&planned.target.name)
        })
        .filter(|planned| filter.selects(planned.name().as_str()))
        .collect()
}

/// The names of all benchmarks of a run: head's in their order, then what only base has.
/// A selection that selects nothing is an error, because an empty suite would pass.
pub(super) fn names(sides: &[Vec<Planned<'_>>]) -> Result<Vec<BenchmarkName>, PipelineError> {
    let mut names: Vec<BenchmarkName> = Vec::new();
    let head_first = sides.iter().flatten().filter(|p| p.side.name == SideName::Head);
    let base_after = sides.iter().flatten().filter(|p| p.side.name == SideName::Base);
    for planned in head_first.chain(base_after) {
        let name = planned.name();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return Err(PipelineError::Selection("no benchmark of the suite matches the filter".to_owned()));
    }
    Ok(names)
}
