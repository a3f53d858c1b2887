//! Implements `--dump` and `--collect`, which add data to an experiment's times.

use std::fs;
use std::path::PathBuf;

use crate::config::BackendKind;

use super::super::PipelineError;
use super::super::cache::write_atomically;
use super::Experiment;

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
    pub(in crate::pipeline) fn check(&self, experiments: &[Experiment<'_>]) -> Result<(), PipelineError> {
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
