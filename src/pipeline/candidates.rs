//! Which benchmarks of a run can be measured, and on which sides.

use std::collections::BTreeMap;
use std::path::Path;

use crate::model::{BenchmarkName, SideName};
use crate::toolchain::Installed;

use super::PipelineError;
use super::argv::Execution;
use super::commands::{GuardedFiles, PreparedCommand};
use super::prepared_side::PreparedSide;
use super::stage::Prepared;

/// A benchmark with the sides that can be measured.
#[derive(Debug, Clone)]
pub(super) struct BenchmarkCandidate<'a> {
    pub(super) name: BenchmarkName,
    pub(super) sides: BTreeMap<SideName, TimedProgram<'a>>,
    /// Both sides execute the same bytes: there is nothing to compare.
    pub(super) identical: bool,
}

impl BenchmarkCandidate<'_> {
    pub(super) fn is_paired(&self) -> bool {
        self.sides.len() == 2
    }
}

/// The program that the processes of one side execute.
#[derive(Debug, Clone, Copy)]
pub(super) enum TimedProgram<'a> {
    Module(Measurable<'a>),
    Command(&'a PreparedCommand),
}

impl TimedProgram<'_> {
    /// The current state of files that must not change while a command runs.
    pub(super) fn guard(&self) -> Result<Option<GuardedFiles<'_>>, PipelineError> {
        match self {
            Self::Module(_) => Ok(None),
            Self::Command(command) => command.guard().map(Some),
        }
    }

    /// The device that its processes use, and their environment.
    pub(super) fn device(&self) -> (&str, &BTreeMap<String, String>) {
        match self {
            Self::Module(module) => (&module.execution.device, module.env),
            Self::Command(command) => (&command.spec.device, &command.spec.env),
        }
    }
}

/// One side of a benchmark of a module that is ready to be measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measurable<'a> {
    pub(super) execution: &'a Execution,
    pub(super) tools: &'a Installed,
    pub(super) env: &'a BTreeMap<String, String>,
    pub(super) folder: &'a Path,
}

/// A candidate for each command. One that only one side has is described and not compared.
pub(super) fn command_candidates<'a>(sides: &'a [PreparedSide<'a>]) -> Vec<BenchmarkCandidate<'a>> {
    let mut found: Vec<BenchmarkCandidate<'a>> = Vec::new();
    for side in sides.iter().rev() {
        for command in &side.commands {
            let name = BenchmarkName::new(&command.spec.name);
            let program = TimedProgram::Command(command);
            match found.iter_mut().find(|candidate| candidate.name == name) {
                Some(candidate) => drop(candidate.sides.insert(side.input.name, program)),
                None => found.push(BenchmarkCandidate {
                    name,
                    sides: BTreeMap::from([(side.input.name, program)]),
                    identical: false,
                }),
            }
        }
    }
    for candidate in &mut found {
        let failed =
            |program: &TimedProgram<'_>| matches!(program, TimedProgram::Command(it) if it.failure.is_some());
        if candidate.sides.values().any(failed) {
            candidate.sides.clear();
        }
    }
    found
}

/// A candidate for each name. A benchmark that one of two sides could not prepare is not measured: its verdict is
/// known, and one side alone can't be compared.
pub(super) fn candidates<'a>(
    sides: &'a [PreparedSide<'a>],
    names: &[BenchmarkName],
) -> Vec<BenchmarkCandidate<'a>> {
    names.iter().map(|name| candidate(sides, name)).collect()
}

fn candidate<'a>(sides: &'a [PreparedSide<'a>], name: &BenchmarkName) -> BenchmarkCandidate<'a> {
    let declared: Vec<(&PreparedSide<'_>, &Prepared<'_>)> = sides
        .iter()
        .filter_map(|side| Some((side, side.benchmarks.iter().find(|prepared| prepared.name() == *name)?)))
        .collect();
    let measurable = declared.iter().filter_map(|(side, prepared)| {
        let execution = prepared.execution.as_ref().filter(|_| prepared.outcome.is_ok())?;
        let (env, folder) = (&prepared.planned.target.env, side.input.side.sources.as_path());
        let tools = side.tools.as_deref()?;
        Some((side.input.name, TimedProgram::Module(Measurable { execution, tools, env, folder })))
    });
    let mut ready: BTreeMap<SideName, TimedProgram<'_>> = measurable.collect();
    if ready.len() < declared.len() {
        ready.clear();
    }
    let identical = match declared.as_slice() {
        [(_, first), (_, second)] => first.artifact.is_some() && first.artifact == second.artifact,
        _ => false,
    };
    BenchmarkCandidate { name: name.clone(), sides: ready, identical }
}
