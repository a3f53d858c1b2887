//! What a command can fail with. Hints live here and only here; the exit code comes from one match.

use crate::device::DeviceError;
use crate::exit_code::ExitCode;
use crate::pipeline::PipelineError;
use crate::toolchain::ToolchainError;

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
    /// The baseline could not be read or written.
    #[error("{message}")]
    Store { message: String, hint: Option<String> },
    /// The token may not do this.
    #[error("{message}")]
    Forbidden { message: String },
    /// GitHub could not be reached, or refused.
    #[error("{message}")]
    GitHub { message: String, hint: Option<String> },
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
            Self::Store { .. } | Self::Forbidden { .. } | Self::GitHub { .. } => ExitCode::StoreFailed,
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
            | Self::BaselineMissing { hint, .. }
            | Self::GitHub { hint, .. }
            | Self::Store { hint, .. } => hint.as_deref(),
            Self::Forbidden { .. } => Some("give the job `permissions: pull-requests: write`"),
            Self::Interrupted => None,
            Self::Internal { .. } => Some("this is a defect of benchgate; please report it with the command"),
        }
    }
}

impl From<crate::config::ConfigError> for CliError {
    fn from(error: crate::config::ConfigError) -> Self {
        use crate::config::ConfigError;
        let hint = match &error {
            ConfigError::Unreadable { .. } => {
                "name the suite's file with --config, or write one with `benchgate init`"
            }
            _ => docs!("configuration.md", "every key"),
        };
        Self::Usage { message: format!("failed to {error}"), hint: Some(hint.to_owned()) }
    }
}

impl From<ToolchainError> for CliError {
    fn from(error: ToolchainError) -> Self {
        match error {
            ToolchainError::Interrupted => Self::Interrupted,
            error => {
                Self::Failed { message: format!("failed to {error}"), hint: error.hint().map(str::to_owned) }
            }
        }
    }
}

impl From<PipelineError> for CliError {
    fn from(error: PipelineError) -> Self {
        let hint = error.is_disk_full().then(|| {
            "free some room, or go to another disk (--cache-dir, --work-dir); what was measured is kept and the \
             next run resumes"
                .to_owned()
        });
        let message = error.to_string();
        match error {
            PipelineError::Interrupted => Self::Interrupted,
            PipelineError::Toolchain(error) => Self::from(error),
            PipelineError::Selection(_) => Self::Usage {
                message,
                hint: Some("--filter is matched against model/target/function".to_owned()),
            },
            PipelineError::Calibration { .. } => Self::Usage {
                message,
                hint: Some("`benchgate noise` measures one for this suite on this machine".to_owned()),
            },
            PipelineError::Bundle { .. } => Self::Input {
                message,
                hint: Some("make it again, with `benchgate run --until compile --bundle FILE`".to_owned()),
            },
            PipelineError::NotBundleable(_) => {
                Self::Usage { message, hint: Some(docs!("bundles.md", "what a bundle can hold").to_owned()) }
            }
            PipelineError::Device(DeviceError::Held { .. }) => Self::Failed {
                message,
                hint: Some(
                    "wait for that process or end it; --lock-timeout sets how long to wait".to_owned(),
                ),
            },
            PipelineError::Changed(_) => Self::Failed {
                message,
                hint: Some(
                    "don't build tools or replace models while they are measured; run it again".to_owned(),
                ),
            },
            PipelineError::Io { .. } | PipelineError::Process(_) | PipelineError::Device(_) => {
                Self::Failed { message, hint }
            }
        }
    }
}

impl From<crate::git::GitError> for CliError {
    fn from(error: crate::git::GitError) -> Self {
        use crate::git::GitError;
        let named_wrongly = matches!(
            error,
            GitError::UnknownReference { .. }
                | GitError::AmbiguousReference(_)
                | GitError::ShallowLine { .. }
                | GitError::Unrelated { .. }
                | GitError::Reversed { .. }
                | GitError::NotOnLine { .. }
        );
        let no_tree = matches!(error, GitError::NotARepository(_) | GitError::Bare(_));
        let hint =
            "--base needs the suite in a git work tree; two sides of one suite need [side.base] instead";
        let hint = no_tree.then(|| hint.to_owned());
        let message = format!("failed to {error}");
        // The others say themselves what to run.
        if named_wrongly || no_tree {
            Self::Usage { message, hint }
        } else {
            Self::BaselineMissing { message, hint }
        }
    }
}
