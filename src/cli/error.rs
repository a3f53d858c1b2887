//! Errors of commands, with their hints and exit codes.

use std::io;
use std::path::Path;

use crate::config::ConfigError;
use crate::device::DeviceError;
use crate::exit_code::ExitCode;
use crate::git::GitError;
use crate::model::counted;
use crate::pipeline::PipelineError;
use crate::toolchain::ToolchainError;

/// The kind of failure, which determines the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The command line or configuration can't be used.
    Usage,
    /// An input could not be read.
    Input,
    /// A stage, the tools or the results can't be used.
    Failed,
    /// There is nothing to compare with.
    BaselineMissing,
    /// The baseline could not be read or written.
    Store,
    /// The token does not have the required permission.
    Forbidden,
    /// GitHub could not be reached, or refused the request.
    GitHub,
    /// The command received SIGINT or SIGTERM.
    Interrupted,
    /// A bug in benchgate.
    Internal,
}

/// An error that ends a command: a message, and a hint if the user can do something about it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct CliError {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
}

impl CliError {
    fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None }
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    pub fn input(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Input, message)
    }

    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, message)
    }

    pub fn baseline_missing(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::BaselineMissing, message)
    }

    pub fn store(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Store, message)
    }

    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Forbidden, message).hint("give the job `permissions: pull-requests: write`")
    }

    pub fn github(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::GitHub, message)
    }

    pub fn interrupted() -> Self {
        Self::new(ErrorKind::Interrupted, "interrupted")
    }

    /// An interruption. `kept` names the work that the next run does not have to repeat.
    fn interrupted_keeping(kept: &str) -> Self {
        let message = format!("interrupted; {kept} is kept, and the next run continues from there");
        Self::new(ErrorKind::Interrupted, message)
    }

    /// Names a file or folder that could not be written.
    pub fn unwritable(path: &Path) -> impl Fn(io::Error) -> Self {
        move |error| Self::failed(format!("failed to write {}: {error}", path.display()))
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
            .hint("this is a bug in benchgate; please report it, with the command that you ran")
    }

    /// Adds a hint about what to do next.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a hint about what to do next, if there is one.
    pub fn maybe_hint(mut self, hint: Option<impl Into<String>>) -> Self {
        self.hint = hint.map(Into::into);
        self
    }

    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The hint, if there is one.
    pub fn help(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    pub fn exit_code(&self) -> ExitCode {
        match self.kind {
            ErrorKind::Usage => ExitCode::Usage,
            ErrorKind::Input => ExitCode::InputUnreadable,
            ErrorKind::Failed => ExitCode::Error,
            ErrorKind::BaselineMissing => ExitCode::BaselineMissing,
            ErrorKind::Store | ErrorKind::Forbidden | ErrorKind::GitHub => ExitCode::StoreFailed,
            ErrorKind::Interrupted => ExitCode::Interrupted,
            ErrorKind::Internal => ExitCode::Internal,
        }
    }
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> Self {
        Self::usage(format!("failed to {error}")).hint(match &error {
            ConfigError::Unreadable { .. } => {
                "name the suite's file with --config, or write one with `benchgate init`"
            }
            _ => docs!("configuration.md", "every key"),
        })
    }
}

impl From<ToolchainError> for CliError {
    fn from(error: ToolchainError) -> Self {
        match error {
            ToolchainError::Interrupted => Self::interrupted_keeping("every complete download"),
            error => Self::failed(format!("failed to {error}")).maybe_hint(error.hint()),
        }
    }
}

impl From<PipelineError> for CliError {
    fn from(error: PipelineError) -> Self {
        let disk_full = error.is_disk_full().then_some(
            "free some space, or use another disk (--cache-dir, --work-dir); the measurements are kept",
        );
        let message = error.to_string();
        match error {
            PipelineError::Interrupted => Self::interrupted_keeping("all finished work"),
            PipelineError::CommandsInterrupted { processes: 0, .. } => Self::interrupted(),
            PipelineError::CommandsInterrupted { processes, can_resume: true } => {
                let kept = counted(processes, "process");
                Self::new(ErrorKind::Interrupted, format!("interrupted; the measurements ({kept}) are kept"))
                    .hint("run the command again with `--resume` to continue, if the programs are unchanged")
            }
            PipelineError::CommandsInterrupted { .. } => {
                let why = "interrupted; the next run measures everything again, because the commands may have changed by then";
                Self::new(ErrorKind::Interrupted, why)
            }
            PipelineError::Toolchain(error) => Self::from(error),
            PipelineError::Selection(_) => {
                Self::usage(message).hint("--filter is matched against model/target/function")
            }
            PipelineError::Calibration { .. } => {
                Self::usage(message).hint("`benchgate noise` measures one for this suite on this machine")
            }
            PipelineError::Bundle { .. } => {
                Self::input(message).hint("create the bundle again: `benchgate run --until compile --bundle \
                    FILE`")
            }
            PipelineError::NotBundleable(_) => {
                Self::usage(message).hint(docs!("bundles.md", "what a bundle can contain"))
            }
            PipelineError::Device(DeviceError::Held { .. }) => Self::failed(message)
                .hint("wait for that process or end it; --lock-timeout sets how long to wait"),
            PipelineError::Changed(_) => Self::failed(message)
                .hint("build tools and programs before they are measured; a command writes its results to `{output}`"),
            PipelineError::Setup { .. } | PipelineError::Exchange(_) => Self::failed(message),
            PipelineError::UnknownOutput(content) => Self::input(message).hint(content.hint()),
            PipelineError::Io { .. } | PipelineError::Process(_) | PipelineError::Device(_) => {
                Self::failed(message).maybe_hint(disk_full)
            }
        }
    }
}

impl From<GitError> for CliError {
    fn from(error: GitError) -> Self {
        let message = format!("failed to {error}");
        match error {
            GitError::NotARepository(_) | GitError::Bare(_) => Self::usage(message).hint(
                "--base needs the suite in a git work tree; to compare two sides of one suite, add [side.base]",
            ),
            // These errors need no hint, because their messages name the command to run.
            GitError::UnknownReference { .. }
            | GitError::AmbiguousReference(_)
            | GitError::ShallowLine { .. }
            | GitError::Unrelated { .. }
            | GitError::Reversed { .. }
            | GitError::NotOnLine { .. } => Self::usage(message),
            _ => Self::baseline_missing(message),
        }
    }
}
