//! Determines which benchmarks of a run can be measured, on which sides, and whether their files change meanwhile.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use benchgate_core::model::{BenchmarkName, SideName};
use benchgate_host::files::Stamp;
use benchgate_toolchain::Installed;

use super::PipelineError;
use super::argv::Execution;
use super::cache::{Digests, aside, file_sha256};
use super::commands::{GuardedFiles, PreparedCommand};
use super::plan::SideInput;
use super::stage::Prepared;

/// A benchmark with the sides that can be measured.
#[derive(Debug, Clone)]
pub(super) struct BenchmarkCandidate<'a> {
    pub(super) name: BenchmarkName,
    pub(super) sides: BTreeMap<SideName, TimedProgram<'a>>,
    /// True if both sides execute the same bytes, so that there is nothing to compare.
    pub(super) identical: bool,
}

impl BenchmarkCandidate<'_> {
    pub(super) fn is_paired(&self) -> bool {
        self.sides.len() == 2
    }
}

/// The program that a side's processes execute.
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

    /// The device and the environment variables of its processes.
    pub(super) fn device(&self) -> (&str, &BTreeMap<String, String>) {
        match self {
            Self::Module(module) => (&module.execution.device, module.env),
            Self::Command(command) => (&command.spec.device, &command.spec.env),
        }
    }
}

/// A module's benchmark on one side, ready to be measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measurable<'a> {
    pub(super) execution: &'a Execution,
    pub(super) tools: &'a Installed,
    pub(super) env: &'a BTreeMap<String, String>,
    pub(super) folder: &'a Path,
}

/// Returns a candidate for each name. If one of two sides could not be prepared, a benchmark is not measured:
/// its verdict is known, and the other side alone can't be compared.
pub(super) fn candidates<'a>(
    sides: &'a [PreparedSide<'a>],
    names: &[BenchmarkName],
) -> Vec<BenchmarkCandidate<'a>> {
    names.iter().map(|name| candidate(sides, name)).collect()
}

fn candidate<'a>(sides: &'a [PreparedSide<'a>], name: &BenchmarkName) -> BenchmarkCandidate<'a> {
    let declared: Vec<(SideName, Option<TimedProgram<'a>>)> =
        sides.iter().filter_map(|side| Some((side.input.name, program(side, name)?))).collect();
    let failed = declared.iter().any(|(_, program)| program.is_none());
    let ready = declared.into_iter().filter(|_| !failed);
    let of_models: Vec<&Prepared<'_>> = sides.iter().filter_map(|side| side.benchmark(name)).collect();
    BenchmarkCandidate {
        name: name.clone(),
        sides: ready.filter_map(|(side, program)| Some((side, program?))).collect(),
        identical: matches!(of_models.as_slice(), [base, head] if base.artifact.is_some() && base.artifact == head.artifact),
    }
}

/// The program that the processes of a benchmark execute. `None` if this side does not have the benchmark;
/// `Some(None)` if it could not be prepared.
fn program<'a>(side: &'a PreparedSide<'a>, name: &BenchmarkName) -> Option<Option<TimedProgram<'a>>> {
    if let Some(command) = side.commands.iter().find(|command| command.spec.name == name.as_str()) {
        return Some(command.can_run().then_some(TimedProgram::Command(command)));
    }
    let prepared = side.benchmark(name)?;
    let (env, folder) = (&prepared.planned.target.env, side.input.side.sources.as_path());
    let execution = prepared.execution.as_ref().filter(|_| prepared.outcome.is_ok());
    let ready = execution.zip(side.tools.as_deref());
    Some(ready.map(|(execution, tools)| TimedProgram::Module(Measurable { execution, tools, env, folder })))
}

/// A side with its tools and its benchmarks.
pub(super) struct PreparedSide<'a> {
    pub(super) input: &'a SideInput,
    /// Absent if the side has no model.
    pub(super) tools: Option<Arc<Installed>>,
    pub(super) benchmarks: Vec<Prepared<'a>>,
    pub(super) commands: Vec<PreparedCommand>,
}

impl PreparedSide<'_> {
    /// The benchmark with this name, if it is one of a model.
    pub(super) fn benchmark(&self, name: &BenchmarkName) -> Option<&Prepared<'_>> {
        self.benchmarks.iter().find(|prepared| prepared.name() == *name)
    }
}

/// The measured files, each with its stamp from when it was verified. No file may change during the run: a tool that is
/// rebuilt, or a module that a measured program replaces, would be measured without being verified.
#[derive(Debug, Clone, Default)]
pub(super) struct Unchanged(BTreeMap<PathBuf, Stamp>);

impl Unchanged {
    /// Records the current state of the tools. This function is called right after the tools were hashed.
    pub(super) fn tools<'a>(tools: impl Iterator<Item = &'a Installed>) -> Result<Self, PipelineError> {
        let mut known = Self::default();
        for installed in tools {
            known.add(&installed.iree_benchmark_module)?;
        }
        Ok(known)
    }

    /// Records the files that a side's benchmarks read, with their stamps from when they were hashed. Modules
    /// are hashed again, because other modules have run since they were made.
    pub(super) async fn add_side(
        &mut self,
        side: &PreparedSide<'_>,
        digests: &Digests,
    ) -> Result<(), PipelineError> {
        for prepared in side.benchmarks.iter().filter(|prepared| prepared.outcome.is_ok()) {
            let (Some(execution), Some(artifact)) = (&prepared.execution, &prepared.artifact) else {
                continue;
            };
            for path in execution.reads() {
                self.0.insert(path.to_owned(), digests.stamp(path).await?);
            }
            self.add(&execution.module)?;
            let module = execution.module.clone();
            let sha256 = aside(move || file_sha256(&module)).await?;
            if sha256 != artifact.vmfb_sha256 {
                return Err(PipelineError::Changed(execution.module.clone()));
            }
        }
        Ok(())
    }

    /// Records the programs of a side's commands and the files that they name. A command writes its results
    /// to `{output}`, so it does not have to write to any of these.
    pub(super) async fn add_commands(
        &mut self,
        side: &PreparedSide<'_>,
        digests: &Digests,
    ) -> Result<(), PipelineError> {
        for path in side.commands.iter().flat_map(|command| &command.files) {
            self.0.insert(path.clone(), digests.stamp(path).await?);
        }
        Ok(())
    }

    fn add(&mut self, path: &Path) -> Result<(), PipelineError> {
        if !self.0.contains_key(path) {
            let stamp = Stamp::now(path).map_err(PipelineError::io("look at", path))?;
            self.0.insert(path.to_owned(), stamp);
        }
        Ok(())
    }

    /// Returns an error if a file that a process of this benchmark executes or reads has been written to.
    pub(super) fn check(&self, program: &TimedProgram<'_>) -> Result<(), PipelineError> {
        let files: Vec<&Path> = match program {
            TimedProgram::Module(Measurable { execution, tools, .. }) => {
                let tool = tools.iree_benchmark_module.as_path();
                execution.reads().chain([execution.module.as_path(), tool]).collect()
            }
            TimedProgram::Command(command) => command.files.iter().map(PathBuf::as_path).collect(),
        };
        for path in files {
            let same = Stamp::now(path).is_ok_and(|stamp| self.0.get(path) == Some(&stamp));
            if !same {
                return Err(PipelineError::Changed(path.to_owned()));
            }
        }
        Ok(())
    }
}
