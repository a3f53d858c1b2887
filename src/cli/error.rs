//! What a command can fail with. Hints live here and only here; the exit code comes from one match.

use crate::exit_code::ExitCode;

/// A failure at the top, with the room it came from.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The command line or configuration can't be used.
    #[error("{message}")]
    Usage { message: String, hint: Option<String> },
    /// An input could not be read.
    #[error("{message}")]
    Input { message: String, hint: Option<String> },
    /// A stage, the tools or the results can't be used.
    #[error("{message}")]
    Failed { message: String, hint: Option<String> },
    /// There is nothing to compare with.
    #[error("{message}")]
    BaselineMissing { message: String, hint: Option<String> },
    /// SIGINT or SIGTERM.
    #[error("interrupted; what was measured is kept and the next run resumes")]
    Interrupted,
    /// A defect of benchgate.
    #[error("{message}")]
    Internal { message: String },
}

impl CliError {
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage { .. } => ExitCode::Usage,
            Self::Input { .. } => ExitCode::InputUnreadable,
            Self::Failed { .. } => ExitCode::Error,
            Self::BaselineMissing { .. } => ExitCode::BaselineMissing,
            Self::Interrupted => ExitCode::Interrupted,
            Self::Internal { .. } => ExitCode::Internal,
        }
    }

    /// What to do next, where there is something to do.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Usage { hint, .. }
            | Self::Input { hint, .. }
            | Self::Failed { hint, .. }
            | Self::BaselineMissing { hint, .. } => hint.as_deref(),
            Self::Interrupted => None,
            Self::Internal { .. } => Some("this is a defect of benchgate; please report it with the command"),
        }
    }
}
