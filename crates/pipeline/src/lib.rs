#![doc = include_str!("../README.md")]
//!
//! The stages overlap: a model is compiled as soon as it is exported, and verified as soon as it is compiled.
//! But nothing is measured until all of that has ended, so that a measured process never shares the machine
//! with a compiler.

mod argv;
mod backends;
mod between_sides;
mod bundle;
mod cache;
mod calibration;
mod calling_module;
mod candidates;
mod code;
mod commands;
mod compile;
mod compile_timing;
mod diagnostics;
mod exchange;
mod export;
mod export_reads;
mod flags;
mod generated;
mod host;
mod interpreters;
mod journal;
mod later_calls;
mod measure;
mod other_inputs;
mod plan;
mod prepare;
mod profile;
mod ready;
mod run;
mod schedule;
mod slots;
mod stage;
mod targets;
mod timed;
mod trace;
mod verify;

use std::path::{Path, PathBuf};

use benchgate_host::device::DeviceError;
use benchgate_host::process::ProcessError;
use benchgate_ingest::FileContent;
use benchgate_toolchain::ToolchainError;

pub use backends::{Axes, BackendsSource, CollectKind, DumpKind, Extras};
pub use bundle::{OpenBundle, PackedBundle, open_bundle};
pub use cache::Cache;
pub use calibration::{CALIBRATION_DAYS, CalibrationSource, keep_calibration};
pub use commands::CommandRows;
pub use exchange::{ExchangePlan, Exchangeable};
pub use flags::named_by_flags;
pub use interpreters::ExporterSource;
pub use plan::{DeclaredBenchmark, Filter, Shard, SideInput, declared_benchmarks, expected};
pub use run::{MeasuredRun, Options, PrepareFrom, PreparedRun, SuiteRun};
pub use schedule::sides_of_round;
pub use targets::{listed_devices, listed_drivers};

/// The reason why a run could not continue. The results of everything that finished before are on disk.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    #[error("failed to {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Toolchain(#[from] ToolchainError),
    #[error("failed to {0}")]
    Process(#[from] ProcessError),
    #[error("failed to select benchmarks: {0}")]
    Selection(String),
    #[error("failed to {0}")]
    Device(DeviceError),
    #[error("failed to use the calibration {}: {why}", path.display())]
    Calibration { path: PathBuf, why: String },
    #[error("failed to use the bundle {}: {why}", path.display())]
    Bundle { path: PathBuf, why: String },
    #[error("failed to make a bundle: {0}")]
    NotBundleable(String),
    #[error("{} changed while it was measured", .0.display())]
    Changed(PathBuf),
    #[error("failed to exchange kernels: {0}")]
    Exchange(String),
    #[error("failed to set up {command}: {why}")]
    Setup { command: String, why: String },
    /// The command prints results that can't be read without their format.
    #[error("failed to recognize the format of the command's output: {0}")]
    UnknownOutput(FileContent),
    #[error("interrupted")]
    Interrupted,
    /// Interrupted while a session with commands was waiting or measuring. The results of its processes are
    /// kept. `can_resume` tells whether the caller has a way to resume them.
    #[error("interrupted")]
    CommandsInterrupted { processes: usize, can_resume: bool },
}

impl PipelineError {
    fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }

    /// Returns whether the disk is full, which is the only I/O error with a known remedy.
    pub fn is_disk_full(&self) -> bool {
        match self {
            Self::Io { source, .. } => {
                matches!(source.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded)
            }
            Self::Process(error) => error.is_disk_full(),
            _ => false,
        }
    }
}

impl From<DeviceError> for PipelineError {
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::Interrupted { .. } => Self::Interrupted,
            error => Self::Device(error),
        }
    }
}
