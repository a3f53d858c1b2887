//! Errors that stop a whole run. A model that fails is an [`Outcome`](crate::model::Outcome), not one of these.

use std::path::{Path, PathBuf};

use crate::device::DeviceError;
use crate::process::ProcessError;
use crate::toolchain::ToolchainError;

/// Why a run could not go on. Everything finished before it is on disk.
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
    #[error("failed to set up {command}: {why}")]
    Setup { command: String, why: String },
    #[error("interrupted")]
    Interrupted,
}

impl PipelineError {
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }

    /// The disk has no room: the one I/O error whose remedy is known.
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
