//! One process to run, and its request.
//!
//! Chooses the Python interpreter that runs a backend. A missing interpreter does not stop the run; the
//! report states the reason.
//!
//! Implements `--dump` and `--collect`, which add data to an experiment's times.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use strum::VariantArray;

use benchgate_config::{BackendKind, ModelSource};
use benchgate_core::model::DeviceKind;
use benchgate_toolchain::Environment;

use super::super::PipelineError;
use super::super::cache::write_atomically;
use super::super::export::{source_words, typed};
use super::super::host::Host;
use super::super::interpreters::Environments;
use super::super::plan::SideInput;
use super::Experiment;

/// Number of repetitions of another backend if the configuration does not set it. Backends are only context
/// and decide no verdict, so a fixed number that is easy to compare is enough.
const REPETITIONS: u32 = 8;
const MIN_TIME: Duration = Duration::from_millis(40);
const WARMUP: Duration = Duration::from_millis(20);

pub(super) struct BackendProcess<'a, 'b> {
    pub(super) host: &'a Host<'b>,
    pub(super) lead: &'a SideInput,
    pub(super) experiment: &'a Experiment<'a>,
    pub(super) number: u32,
    /// The compiler's cache, shared only by the processes of one experiment.
    pub(super) compiler_cache: PathBuf,
    pub(super) extras: &'a Extras,
    /// The dump to collect during compilation, in which case nothing is measured.
    pub(super) compiler_dump: Option<DumpKind>,
}

impl BackendProcess<'_, '_> {
    /// The request without its folders, which differ between processes.
    pub(super) fn request(&self) -> Result<serde_json::Value, PipelineError> {
        let (experiment, measure) = (self.experiment, &self.lead.config.measure);
        let model = experiment.model;
        let sources = &self.lead.side.sources;
        let (source, symbol, torchbench) = source_words(model, |path| Ok(sources.join(path)))?;
        let options = model.options.iter().map(|(name, value)| (name.clone(), typed(value)));
        let backend = experiment.backend;
        Ok(serde_json::json!({
            "source": source,
            "symbol": symbol,
            "torchbench": torchbench,
            "folder": sources,
            "path": self.lead.config.python.path.iter().map(|path| sources.join(path)).collect::<Vec<_>>(),
            "backend": backend.kind.into_str(),
            "device": experiment.device,
            "test": experiment.test.into_str(),
            "preset": model.preset,
            "options": options.collect::<serde_json::Map<_, _>>(),
            "inputs": experiment.inputs,
            "batch-size": experiment.batch_size,
            "dtype": experiment.dtype.as_ref().or(model.dtype.as_ref()),
            "matmul-precision": experiment.matmul_precision,
            "seed": 0,
            "measure": self.compiler_dump.is_none(),
            // Only the first process verifies, because the program is the same in every process.
            "verify": self.number == 0 && self.compiler_dump.is_none(),
            "warmup-seconds": measure.warmup.unwrap_or(WARMUP).as_secs_f64(),
            "repetitions": backend.repetitions.or(measure.repetitions).unwrap_or(REPETITIONS),
            "iterations": backend.iterations.or(measure.iterations),
            "min-time-seconds": measure.min_time.unwrap_or(MIN_TIME).as_secs_f64(),
            "label": model.name,
            "dump": words(self.dumps()),
            "collect": words(self.collected()),
        }))
    }

    pub(super) fn dumps(&self) -> Vec<DumpKind> {
        self.compiler_dump.map_or_else(|| self.extras.measured(), |kind| vec![kind])
    }

    fn collected(&self) -> Vec<CollectKind> {
        if self.compiler_dump.is_some() { Vec::new() } else { self.extras.collect.clone() }
    }

    /// The folder for this process's dumps: one for each measured process, and a single one for the
    /// compiler's output, which is equal in all processes.
    pub(super) fn dump_folder(&self) -> PathBuf {
        let folder = self.extras.folder_of(self.experiment);
        if self.compiler_dump.is_some() { folder } else { folder.join(self.number.to_string()) }
    }
}

fn words<T: Into<&'static str>>(kinds: Vec<T>) -> Vec<&'static str> {
    kinds.into_iter().map(Into::into).collect()
}

/// An interpreter that has its backend's packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BackendInterpreter {
    pub(super) python: PathBuf,
    /// Package folders that are searched after the interpreter's own.
    pub(super) packages: Vec<PathBuf>,
}

/// The interpreter of each backend, or the reason why there is none.
#[derive(Debug, Default)]
pub(crate) struct BackendInterpreters(BTreeMap<BackendKind, Result<BackendInterpreter, String>>);

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
pub(crate) fn needed(experiments: &[Experiment<'_>]) -> BTreeSet<Environment> {
    let locked = experiments
        .iter()
        .filter(|experiment| experiment.backend.python.is_none() && unsupported(experiment).is_none());
    locked.flat_map(|experiment| Environment::for_backend(experiment.backend.kind).with_under()).collect()
}

/// Finds the interpreter of each backend among the environments of the run, or the reason why there is none.
pub(crate) fn interpreters(
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

/// Files that `--dump` writes for each experiment. Measured processes write the first four after their last
/// repetition. Each of the others needs a separate process, because PyTorch/XLA writes it while it compiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[derive(strum::Display, strum::EnumMessage, strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum DumpKind {
    /// Time per operator, as a table from torch's profiler
    Profile,
    /// The profile as a timeline for chrome://tracing
    Trace,
    /// Counters of torch.compile
    DynamoCounters,
    /// PyTorch/XLA's metrics report
    XlaMetrics,
    /// PyTorch/XLA's lazy IR of each compiled graph
    XlaIr,
    /// The graphs as HLO, before XLA's passes
    XlaHlo,
    /// The graphs as StableHLO
    XlaStablehlo,
    /// XLA's dump of each compiled module: HLO before and after the passes, generated code, buffers
    XlaCompiledHlo,
}

impl DumpKind {
    const fn is_of_xla(self) -> bool {
        matches!(self, Self::XlaMetrics) || self.is_compiler_dump()
    }

    /// Returns whether the file is written while XLA compiles, in a process that is not measured.
    pub(super) const fn is_compiler_dump(self) -> bool {
        matches!(self, Self::XlaIr | Self::XlaHlo | Self::XlaStablehlo | Self::XlaCompiledHlo)
    }
}

/// Values that `--collect` adds to the metrics of each measured process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[derive(strum::Display, strum::EnumMessage, strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum CollectKind {
    /// Counters of torch.compile
    DynamoCounters,
    /// CPU and CUDA time of all operators, from torch's profiler
    Profile,
    /// CPU time, CUDA time and calls per aten operator; on PyTorch/XLA, only operators without a lowering
    Operators,
}

/// The requested additional files and values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extras {
    pub dump: Vec<DumpKind>,
    pub folder: PathBuf,
    pub collect: Vec<CollectKind>,
}

impl Extras {
    /// Checks that the requested dumps are possible.
    ///
    /// # Errors
    /// No experiment can write a requested dump, so its folder would be empty without an explanation.
    pub(crate) fn check(&self, experiments: &[Experiment<'_>]) -> Result<(), PipelineError> {
        if self.dump.is_empty() && self.collect.is_empty() {
            return Ok(());
        }
        if experiments.is_empty() {
            let why = "--dump and --collect are for other backends, but this run has none";
            return Err(PipelineError::Selection(why.to_owned()));
        }
        match self.dump.iter().find(|kind| kind.is_of_xla()) {
            Some(kind) if !experiments.iter().any(is_xla) => {
                let why = format!("--dump {kind} needs an experiment on xla-lazy or xla-dynamo");
                Err(PipelineError::Selection(why))
            }
            _ => Ok(()),
        }
    }

    /// The dumps that measured processes write.
    pub(super) fn measured(&self) -> Vec<DumpKind> {
        self.dump.iter().copied().filter(|kind| !kind.is_compiler_dump()).collect()
    }

    /// The dumps that separate processes write.
    pub(super) fn of_compiler(&self, experiment: &Experiment<'_>) -> Vec<DumpKind> {
        let kinds = self.dump.iter().copied().filter(|kind| kind.is_compiler_dump() && is_xla(experiment));
        let mut unique = Vec::new();
        for kind in kinds {
            if !unique.contains(&kind) {
                unique.push(kind);
            }
        }
        unique
    }

    pub(super) fn folder_of(&self, experiment: &Experiment<'_>) -> PathBuf {
        self.folder.join(&experiment.model.name).join(experiment.slug())
    }

    /// Joins the tables of all processes of an experiment in one file, as the torchbench runner does.
    pub(super) fn join_profiles(
        &self,
        experiment: &Experiment<'_>,
        processes: usize,
    ) -> Result<(), PipelineError> {
        if !self.dump.contains(&DumpKind::Profile) {
            return Ok(());
        }
        let folder = self.folder_of(experiment);
        let name = format!("pytorch-profile-{}.txt", experiment.model.name);
        let mut all = String::new();
        for number in 0..processes {
            all.push_str(
                &fs::read_to_string(folder.join(number.to_string()).join(&name)).unwrap_or_default(),
            );
        }
        if all.is_empty() { Ok(()) } else { write_atomically(&folder.join(&name), all.as_bytes()) }
    }
}

fn is_xla(experiment: &Experiment<'_>) -> bool {
    matches!(experiment.backend.kind, BackendKind::XlaLazy | BackendKind::XlaDynamo)
}
