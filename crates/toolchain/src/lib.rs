#![doc = include_str!("../README.md")]
//!
//! ```text
//! benchgate.toml ── pin ──▶ benchgate.lock ── ensure ──▶ <cache>/tools/<digest>/ ── verify ──▶ Installed
//! (version, commit)         (files, sha256)              (staged, renamed at once)  (every time)
//! ```
//!
//! All access to an index goes through pip, so an internal index, a proxy or a certificate that works for pip
//! works here too. The IREE tools themselves need no Python: their wheels contain plain executables, which
//! are run directly, without pip's Python launcher.

mod artifact;
mod fetch;
mod install;
mod iree;
mod lock;
mod manifest;
mod pin;
mod pip;
mod python_env;

use std::io;
use std::path::{Path, PathBuf};

use benchgate_host::process::{Exit, ProcessError};

pub use artifact::{cached_artifacts, ensure_artifact, place_artifacts, record_artifact};
pub use install::{Installed, InstalledTree, list, remove_tree};
pub use iree::{ensure, release, verify};
pub use lock::{LOCK_FILE, Lock, LockedPython, LockedTools};
pub use pin::{pin_python, pin_tools, release_commit, release_order, releases};
pub use pip::{SuitePackages, Wheel};
pub use python_env::{Environment, PythonEnv, ensure_python, pythons};

/// The reason why tools could not be obtained or verified.
#[derive(Debug, thiserror::Error)]
pub enum ToolchainError {
    #[error("find Python 3.10 or newer with pip: {found}")]
    NoPython { found: String },
    #[error("find {what} in {}, which {found}", lock.display())]
    NotLocked { what: String, found: String, lock: PathBuf },
    #[error("use the pin of IREE {version}: it names commit {pinned}, but {} has commit {locked}", lock.display())]
    OtherCommit { version: String, pinned: String, locked: String, lock: PathBuf },
    #[error("pin IREE {version}: it was built from commit {found}, but benchgate.toml names {pinned}")]
    OtherRelease { version: String, pinned: String, found: String },
    #[error("read {}: {problem}", path.display())]
    Lock { path: PathBuf, problem: String },
    #[error("install {what}: it is not in the cache, and no index could be reached ({detail})")]
    Offline { what: String, detail: String },
    #[error("install {what}: no index has it ({detail})")]
    NotFound { what: String, detail: String },
    #[error("verify {what}: expected sha256 {expected}, found {found}")]
    WrongHash { what: String, expected: String, found: String },
    #[error("download {url}: expected sha256 {expected}, found {found}")]
    WrongFile { url: String, expected: String, found: String },
    #[error("verify the {tool} in {}: expected commit {expected}, found {found}", root.display())]
    WrongCommit { tool: &'static str, root: PathBuf, expected: String, found: String },
    #[error("find {tool} in {}", root.display())]
    MissingTool { tool: String, root: PathBuf },
    #[error("verify {}: expected {expected}, found {found}", path.display())]
    Tampered { path: PathBuf, expected: String, found: String },
    #[error("trust {}: {why}", path.display())]
    Exposed { path: PathBuf, why: String },
    #[error("find {what}: it is not installed")]
    NotInstalled { what: String },
    #[error("install into {}: no space is left on the disk", path.display())]
    DiskFull { path: PathBuf },
    #[error("install {what}: pip {exit}: {detail}")]
    Pip { what: String, exit: Exit, detail: String },
    #[error("run {}: it {exit}: {detail}", program.display())]
    Tool { program: PathBuf, exit: Exit, detail: String },
    #[error("link an artifact at {}: {why}", path.display())]
    PlaceTaken { path: PathBuf, why: String },
    #[error("download {url}: {detail}")]
    Download { url: String, detail: String },
    #[error("{doing} {}: {source}", path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("install the tools: interrupted")]
    Interrupted,
}

impl ToolchainError {
    /// Returns whether a tool or file is unavailable, as opposed to available but different from
    /// the lock.
    pub const fn is_absence(&self) -> bool {
        matches!(
            self,
            Self::NoPython { .. }
                | Self::NotLocked { .. }
                | Self::Offline { .. }
                | Self::NotFound { .. }
                | Self::Pip { .. }
        )
    }

    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::NoPython { .. } => "install python3 (3.10 or newer) with its pip and venv packages",
            Self::NotLocked { .. } => "run `benchgate tools pin` and commit benchgate.lock",
            Self::OtherCommit { .. } => {
                "correct the pin's commit in benchgate.toml; if the lock's commit is wrong instead, remove its entry and run `benchgate tools pin`"
            }
            Self::OtherRelease { .. } => {
                "`benchgate tools pin VERSION` looks up the commit of a version and writes both into benchgate.toml"
            }
            Self::Lock { .. } => {
                "restore the file from version control, or remove it and run `benchgate tools pin`"
            }
            Self::Offline { .. } => {
                "connect to the network once, or copy a cache that contains them; pip's own settings name \
                the index"
            }
            Self::NotFound { .. } => "check the version, and the index that pip uses (`pip config list`)",
            Self::WrongHash { .. } => {
                "the index serves a different file than the locked one: find out why before running `benchgate \
                tools pin`"
            }
            Self::WrongFile { .. } => {
                "the server's file does not have the hash in the configuration: find out why before changing `sha256`"
            }
            Self::WrongCommit { .. } => {
                "correct the pin in benchgate.toml: its commit or its version does not match these tools"
            }
            Self::MissingTool { .. } => "check that the wheels or the build tree are complete",
            Self::Tampered { .. } => {
                "the installation was changed: remove its folder (`benchgate tools list` names it), and `benchgate \
                tools install` installs it again"
            }
            Self::Exposed { .. } => {
                "other users of this machine can change the installed tools: remove their write permission (`chown`, `chmod go-w`), or \
                 name a cache of your own (--cache-dir, BENCHGATE_CACHE)"
            }
            Self::NotInstalled { .. } => "run `benchgate tools install`",
            Self::DiskFull { .. } => {
                "free some space, or put the cache elsewhere (--cache-dir, BENCHGATE_CACHE)"
            }
            Self::PlaceTaken { .. } => {
                "move the existing file away, or give the artifact another `name`; `artifacts` in the \
                sources is for links that benchgate makes"
            }
            Self::Download { .. } => "check the URL and the network",
            Self::Pip { .. } | Self::Tool { .. } | Self::Io { .. } | Self::Process(_) => return None,
            Self::Interrupted => return None,
        })
    }

    /// Names a failed file operation, and distinguishes a full disk from other errors.
    fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::DiskFull { path: path.to_owned() }
            }
            _ => Self::Io { doing, path: path.to_owned(), source },
        }
    }
}
