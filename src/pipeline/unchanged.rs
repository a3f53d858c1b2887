//! Checks that no measured file changes during the run. Otherwise a tool that is rebuilt, or a module that a
//! measured program replaces, would be measured without being verified.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::files::Stamp;
use crate::toolchain::Installed;

use super::PipelineError;
use super::cache::{Digests, aside, file_sha256};
use super::candidates::{Measurable, PreparedSide, TimedProgram};

/// The files, each with its stamp from when it was verified.
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
