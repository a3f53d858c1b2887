//! A command to run, and its outcome: how it ended, or why it could not be run.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;
use std::{fmt, io};

use nix::sys::signal::Signal;

use benchgate_core::model::shell_word;

use super::Opened;

/// Variables that a tool inherits. Everything else is dropped, because tokens, and the `GITHUB_*` files
/// through which a step controls its runner, must not reach the code of a pull request. The list contains
/// whole names: a prefix such as `SSL_` would also match `SSL_CLIENT_KEY_PASSWORD`.
const INHERITED: &[&str] = &[
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NUMERIC",
    "LC_TIME",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    // Folders of toolchains, which images of containers put outside the home folder.
    "CARGO_HOME",
    "GOMODCACHE",
    "GOPATH",
    "GOROOT",
    "JAVA_HOME",
    "PYENV_ROOT",
    "RUSTUP_HOME",
    // Folders in which drivers are found (containers and NixOS put libcuda outside the default path).
    "LD_LIBRARY_PATH",
    "VK_DRIVER_FILES",
    "VK_ICD_FILENAMES",
    // Variables that select the devices that this job may use.
    "CUDA_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "HIP_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
];

/// A program to run, with its folder, environment and limits.
#[derive(Clone, Default)]
pub struct Command {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// Variables in addition to the inherited ones.
    pub env: BTreeMap<OsString, OsString>,
    /// The working folder; by default benchgate's own.
    pub cwd: Option<PathBuf>,
    /// Time limit, after which the whole process tree is ended.
    pub timeout: Duration,
    /// The file to which stdout and stderr are appended, up to a limit.
    pub log: Option<PathBuf>,
    /// Keeps stdout in memory, up to a limit.
    pub capture_stdout: bool,
    /// The processors on which the program may run.
    pub cpus: Option<Vec<usize>>,
    /// Records which files the program opens. This slows down each such call, so it is never used for timed
    /// processes.
    pub observed: bool,
}

impl Command {
    /// Creates a command without arguments. Every command has a time limit.
    pub fn new(program: impl Into<PathBuf>, timeout: Duration) -> Self {
        Self { program: program.into(), timeout, ..Self::default() }
    }

    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    #[must_use]
    pub fn envs<'a>(mut self, variables: impl IntoIterator<Item = (&'a String, &'a String)>) -> Self {
        self.env.extend(variables.into_iter().map(|(name, value)| (name.into(), value.into())));
        self
    }

    #[must_use]
    pub fn cwd(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cwd = Some(folder.into());
        self
    }

    #[must_use]
    pub fn log(mut self, file: impl Into<PathBuf>) -> Self {
        self.log = Some(file.into());
        self
    }

    #[must_use]
    pub const fn capture_stdout(mut self) -> Self {
        self.capture_stdout = true;
        self
    }

    #[must_use]
    pub fn cpus(mut self, cpus: Option<Vec<usize>>) -> Self {
        self.cpus = cpus;
        self
    }

    #[must_use]
    pub const fn observed(mut self) -> Self {
        self.observed = true;
        self
    }

    /// The folder in which the command runs, for messages.
    pub(super) fn folder(&self) -> PathBuf {
        self.cwd.clone().unwrap_or_else(|| PathBuf::from("."))
    }

    /// The complete environment of the child; `inherited` is benchgate's own.
    pub(super) fn environment(
        &self,
        inherited: impl Iterator<Item = (OsString, OsString)>,
    ) -> BTreeMap<OsString, OsString> {
        let mut all: BTreeMap<_, _> = inherited.filter(|(name, _)| is_inherited(name)).collect();
        all.extend(self.env.iter().map(|(name, value)| (name.clone(), value.clone())));
        all
    }
}

/// Omits the values of variables, because one of them may be a token.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

/// Writes the command in shell syntax, so that it can be copied and run again.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shell_word(&self.program))?;
        for arg in &self.args {
            write!(f, " {}", shell_word(arg))?;
        }
        Ok(())
    }
}

fn is_inherited(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| INHERITED.contains(&name))
}

/// The way in which a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Success,
    /// The program ended by itself with this nonzero code.
    Code(i32),
    /// The program was ended by this signal, which benchgate did not send.
    Signal(i32),
    /// benchgate ended the program after this time limit.
    TimedOut(Duration),
    /// benchgate ended the program because benchgate itself was asked to stop.
    Interrupted,
}

impl Exit {
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Success)
    }

    pub const fn is_timeout(self) -> bool {
        matches!(self, Self::TimedOut(_))
    }

    /// Returns whether the signal was SIGBUS, which usually means a mapped file on a full disk.
    pub const fn is_bus_error(self) -> bool {
        matches!(self, Self::Signal(nix::libc::SIGBUS))
    }
}

/// A predicate for a sentence about the program: `iree-compile` + `was killed by signal 11 (SIGSEGV)`.
impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Success => f.write_str("succeeded"),
            Self::Code(code) => write!(f, "ended with exit code {code}"),
            Self::Signal(number) => match Signal::try_from(*number) {
                Ok(signal) => write!(f, "was killed by signal {number} ({signal})"),
                Err(_) => write!(f, "was killed by signal {number}"),
            },
            Self::TimedOut(limit) => write!(f, "timed out after {} s", limit.as_secs_f64()),
            Self::Interrupted => f.write_str("was interrupted"),
        }
    }
}

/// The outcome of a program that ended, and the resources that it used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    pub exit: Exit,
    /// Wall-clock time from just before the start to the end, measured by the supervisor.
    pub wall: Duration,
    /// Processor time of the program and of the children that it waited for.
    pub user: Duration,
    pub system: Duration,
    /// Peak resident memory of the tool's largest process (`ru_maxrss`). `None` if it did not exceed the peak
    /// inherited from the supervisor, which Linux keeps over `exec`.
    pub peak_memory_bytes: Option<u64>,
    /// Captured stdout; empty unless asked for.
    pub stdout: Vec<u8>,
    /// True if stdout was longer than the part that is kept.
    pub stdout_truncated: bool,
    /// The end of stderr, with invalid UTF-8 replaced.
    pub stderr_tail: String,
    /// Processes that the tool left running, which were killed after it ended.
    pub leftovers: u32,
    /// True if the kernel killed a process for lack of memory while the tool ran: in this cgroup or, if
    /// cgroups don't count that, anywhere on this machine.
    pub memory_ran_out: bool,
    /// The files that the tool opened; `None` if this was not requested or is not possible on this machine.
    pub opened: Option<Opened>,
}

impl Finished {
    /// A program that ended in this way with this output, and used no resources.
    pub fn new(exit: Exit, stdout: Vec<u8>, stderr_tail: String) -> Self {
        Self {
            exit,
            wall: Duration::ZERO,
            user: Duration::ZERO,
            system: Duration::ZERO,
            peak_memory_bytes: None,
            stdout,
            stdout_truncated: false,
            stderr_tail,
            leftovers: 0,
            memory_ran_out: false,
            opened: None,
        }
    }

    /// The reason why the program was ended from outside, in which case its result says nothing about the
    /// program. `None` otherwise.
    pub fn ended_from_outside(&self) -> Option<&'static str> {
        if matches!(self.exit, Exit::Success | Exit::TimedOut(_) | Exit::Interrupted) {
            return None;
        }
        if self.memory_ran_out {
            return Some("the kernel ran out of memory and killed a process");
        }
        let Exit::Signal(number) = self.exit else { return None };
        match Signal::try_from(number).ok()? {
            Signal::SIGKILL => {
                Some("benchgate did not send this signal; the usual cause is a limit on memory")
            }
            Signal::SIGTERM | Signal::SIGINT | Signal::SIGHUP | Signal::SIGQUIT | Signal::SIGPWR => {
                Some("benchgate did not send this signal")
            }
            Signal::SIGXCPU | Signal::SIGXFSZ => Some("a limit of this user was reached (`ulimit`)"),
            Signal::SIGBUS => Some("the usual causes are a full disk or failing memory"),
            _ => None,
        }
    }
}

/// The reason why a program could not be run.
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
    #[error("get the exit status of {}: its supervisor was killed", program.display())]
    SupervisorLost { program: PathBuf },
}

impl ProcessError {
    /// Returns whether a full disk or an exhausted quota is the cause.
    pub fn is_disk_full(&self) -> bool {
        match self {
            Self::Start { source, .. } | Self::Log { source, .. } | Self::Output { source, .. } => {
                matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
            }
            Self::NotFound { .. } | Self::SupervisorLost { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(command: &Command, inherited: &[&str]) -> Vec<String> {
        let inherited = inherited.iter().map(|name| (OsString::from(name), OsString::from("x")));
        command.environment(inherited).keys().map(|name| name.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn tokens_and_runner_files_are_not_inherited() {
        let command = Command::new("tool", Duration::from_secs(1)).env("GIVEN", "1");
        let seen = names(
            &command,
            &[
                "PATH",
                "HOME",
                "SSL_CERT_FILE",
                "LC_ALL",
                "GITHUB_TOKEN",
                "GITHUB_ENV",
                "GITHUB_OUTPUT",
                "GITHUB_PATH",
                "GITHUB_STEP_SUMMARY",
                "ACTIONS_RUNTIME_TOKEN",
                "AWS_SECRET_ACCESS_KEY",
                "PIP_INDEX_URL",
                "LD_PRELOAD",
                "SSL_CLIENT_KEY_PASSWORD",
                "LC_TOKEN",
            ],
        );
        assert_eq!(seen, ["GIVEN", "HOME", "LC_ALL", "PATH", "SSL_CERT_FILE"]);
    }

    #[test]
    fn a_command_prints_as_a_shell_would_read_it() {
        let command = Command::new("/opt/iree-compile", Duration::from_secs(1)).args([
            "--flag=a",
            "two words",
            "it's",
            "",
        ]);
        assert_eq!(command.to_string(), r"/opt/iree-compile --flag=a 'two words' 'it'\''s' ''");
    }
}
