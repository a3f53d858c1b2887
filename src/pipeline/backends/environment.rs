//! Which interpreter runs a backend. One that can't be had is a reason in the report, never an error.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::config::BackendKind;
use crate::model::Progress;
use crate::process::Cancel;
use crate::toolchain::{self, Environment, Lock, ToolchainError};

use super::super::PipelineError;
use super::Experiment;

/// An interpreter with what its backend imports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::pipeline) struct Interpreter {
    pub(super) python: PathBuf,
    /// Searched after the interpreter's own packages.
    pub(super) packages: Vec<PathBuf>,
}

/// By backend: its interpreter, or why there is none.
#[derive(Debug, Default)]
pub(in crate::pipeline) struct Interpreters(BTreeMap<BackendKind, Result<Interpreter, String>>);

impl Interpreters {
    pub(super) fn of(&self, kind: BackendKind) -> Result<&Interpreter, String> {
        match self.0.get(&kind) {
            Some(Ok(interpreter)) => Ok(interpreter),
            Some(Err(why)) => Err(why.clone()),
            None => Err("no Python environment was prepared".to_owned()),
        }
    }
}

/// Finds or installs what the experiments need, before anything is measured.
///
/// # Errors
/// An interrupt; everything else is that backend's reason.
pub(in crate::pipeline) async fn interpreters(
    experiments: &[Experiment<'_>],
    lock: &Lock,
    cache: &Path,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Interpreters, PipelineError> {
    let mut found = BTreeMap::new();
    for experiment in experiments {
        let kind = experiment.backend.kind;
        if found.contains_key(&kind) {
            continue;
        }
        let interpreter = match &experiment.backend.python {
            // Made absolute, because it is started in another folder, and not resolved: what a virtual
            // environment's link points to is not that environment.
            Some(python) if python.is_file() => std::path::absolute(python)
                .map(|python| Interpreter { python, packages: Vec::new() })
                .map_err(|error| format!("failed to find {}: {error}", python.display())),
            Some(python) => Err(format!("there is no interpreter {}", python.display())),
            None => match environment(kind, lock, cache, progress, cancel).await {
                Err(ToolchainError::Interrupted) => return Err(PipelineError::Interrupted),
                other => other.map_err(|error| format!("failed to {error}")),
            },
        };
        found.insert(kind, interpreter);
    }
    Ok(Interpreters(found))
}

async fn environment(
    kind: BackendKind,
    lock: &Lock,
    cache: &Path,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Interpreter, ToolchainError> {
    let environment = match kind {
        BackendKind::XlaLazy | BackendKind::XlaDynamo => Environment::TorchXla,
        BackendKind::Eager
        | BackendKind::TorchScript
        | BackendKind::Inductor
        | BackendKind::OnnxRuntime
        | BackendKind::TensorRt => Environment::Torch,
    };
    let env = toolchain::ensure_python(environment, lock, cache, progress, cancel).await?;
    Ok(Interpreter { python: env.python, packages: Vec::new() })
}
