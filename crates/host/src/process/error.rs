//! Errors of running a program. The end of a program that did run is an [`Exit`](super::Exit), not an error.

use std::io;
use std::path::PathBuf;

/// Failed to run a program.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    #[error("start {}: there is no such program", program.display())]
    NotFound { program: PathBuf },
    #[error("start {} in {}: {source}", program.display(), cwd.display())]
    Start { program: PathBuf, cwd: PathBuf, source: io::Error },
    #[error("write the log {}: {source}", path.display())]
    Log { path: PathBuf, source: io::Error },
    #[error("read the output of {}: {source}", program.display())]
    Output { program: PathBuf, source: io::Error },
    /// The supervisor itself was killed, so nothing is known about the program's end.
    #[error("learn how {} ended: its supervisor was killed", program.display())]
    SupervisorLost { program: PathBuf },
}

impl ProcessError {
    /// Whether a full disk or an exhausted quota is the cause.
    pub fn is_disk_full(&self) -> bool {
        match self {
            Self::Start { source, .. } | Self::Log { source, .. } | Self::Output { source, .. } => {
                matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
            }
            Self::NotFound { .. } | Self::SupervisorLost { .. } => false,
        }
    }
}
