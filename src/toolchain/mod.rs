//! L3: pins, lock file, installation, verification, and other downloads. Nothing is measured with unverified
//! tools.
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
mod error;
mod fetch;
mod install;
mod interpreter;
mod iree;
mod lock;
mod manifest;
mod pin;
mod pip;
mod python_env;
mod wheel;

pub use artifact::{cached_artifacts, ensure_artifact, place_artifacts, record_artifact};
pub use error::ToolchainError;
pub use install::{Installed, InstalledTree, list, remove_tree};
pub use interpreter::pythons;
pub use iree::{ensure, release, verify};
pub use lock::{LOCK_FILE, Lock, LockedPython, LockedTools};
pub use pin::{pin_python, pin_tools, release_commit, release_order, releases};
pub use pip::SuitePackages;
pub use python_env::{Environment, PythonEnv, ensure_python};
pub use wheel::Wheel;
