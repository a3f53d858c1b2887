//! Chooses the Python interpreter that runs a backend. A missing interpreter does not stop the run; the
//! report states the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use strum::VariantArray;

use crate::config::{BackendKind, ModelSource};
use crate::model::DeviceKind;
use crate::toolchain::Environment;

use super::super::interpreters::Environments;
use super::Experiment;

/// An interpreter that has its backend's packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::pipeline) struct BackendInterpreter {
    pub(super) python: PathBuf,
    /// Package folders that are searched after the interpreter's own.
    pub(super) packages: Vec<PathBuf>,
}

/// The interpreter of each backend, or the reason why there is none.
#[derive(Debug, Default)]
pub(in crate::pipeline) struct BackendInterpreters(BTreeMap<BackendKind, Result<BackendInterpreter, String>>);

impl BackendInterpreters {
    pub(super) fn find(&self, kind: BackendKind) -> Result<&BackendInterpreter, String> {
        match self.0.get(&kind) {
            Some(Ok(interpreter)) => Ok(interpreter),
            Some(Err(why)) => Err(why.clone()),
            None => Err("no Python environment was prepared".to_owned()),
        }
    }
}

/// The reason why an experiment can't run at all, if its configuration shows one.
pub(super) fn unsupported(experiment: &Experiment<'_>) -> Option<String> {
    let no_module = |what| Some(format!("the source is {what}, which has no torch module"));
    match &experiment.model.source {
        ModelSource::Mlir(_) => return no_module("MLIR"),
        ModelSource::Onnx(_) => return no_module("ONNX"),
        _ => {}
    }
    let is_known = DeviceKind::VARIANTS.iter().any(|kind| kind.facts().torch == Some(&experiment.device));
    (!is_known).then(|| format!("torch has no device {}", experiment.device))
}

/// The environments whose packages the experiments import. Experiments that can't run need none.
pub(in crate::pipeline) fn needed(experiments: &[Experiment<'_>]) -> BTreeSet<Environment> {
    let locked = experiments
        .iter()
        .filter(|experiment| experiment.backend.python.is_none() && unsupported(experiment).is_none());
    locked.flat_map(|experiment| Environment::for_backend(experiment.backend.kind).with_under()).collect()
}

/// Finds the interpreter of each backend among the environments of the run, or the reason why there is none.
pub(in crate::pipeline) fn interpreters(
    experiments: &[Experiment<'_>],
    environments: &Environments,
) -> BackendInterpreters {
    let find = |experiment: &Experiment<'_>| match &experiment.backend.python {
        // The path is made absolute, because the interpreter is started in another folder. Links are not
        // resolved, because the interpreter that a virtual environment links to does not belong to that
        // environment.
        Some(python) if python.is_file() => std::path::absolute(python)
            .map(|python| BackendInterpreter { python, packages: Vec::new() })
            .map_err(|error| format!("failed to find {}: {error}", python.display())),
        Some(python) => Err(format!("there is no interpreter {}", python.display())),
        None => locked(Environment::for_backend(experiment.backend.kind), environments),
    };
    BackendInterpreters(
        experiments.iter().map(|experiment| (experiment.backend.kind, find(experiment))).collect(),
    )
}

fn locked(environment: Environment, environments: &Environments) -> Result<BackendInterpreter, String> {
    let find = |environment: Environment| match environments.get(&environment) {
        Some(env) => env.as_ref().map_err(Clone::clone),
        None => Err(format!("no environment {} was prepared", environment.name())),
    };
    let own = find(environment)?;
    let (under, packages) = match environment.over() {
        Some(under) => (find(under)?, Some(own.packages.clone())),
        None => (own, None),
    };
    let packages = packages.into_iter().chain(under.suite_packages.clone()).collect();
    Ok(BackendInterpreter { python: under.python.clone(), packages })
}
