#![doc = include_str!("../README.md")]
//!
//! ```text
//! update ─▶ quarantine ─▶ append ─▶  files  ─▶ select ─▶ gate
//!                                 ▲ accept, prune   verify, similar testbeds
//! ```
//!
//! [`Files`] is the interface to all places. Only the needed files are listed and read: names are listed newest
//! first (in an object store, one month at a time), and each file is read when it is used. Files are never
//! changed in place; an acceptance is a new file.

mod accept;
mod earlier;
mod files;
mod folder;
mod listing;
mod name;
#[cfg(test)]
mod nights_tests;
mod objects;
#[cfg(test)]
mod objects_tests;
mod places;
mod prune;
mod quarantine;
#[cfg(test)]
mod quarantine_tests;
mod select;
mod summarise;
#[cfg(test)]
mod tests;
mod update;
mod usable;

use std::path::PathBuf;

use benchgate_core::model::counted;
use benchgate_core::record::RecordError;
use benchgate_host::git::GitError;

pub use accept::{AcceptedSessions, accept};
pub use files::{Change, Encoding, Files};
pub use folder::{
    BATCH, BaselineFolder, Fault, Newest, Runs, SimilarTestbed, Stored, Verified, baseline_folders, verify,
};
pub use name::{RunName, folder_name};
pub use objects::Objects;
pub use places::{BRANCH, Branch, CommitTree, Directory};
pub use prune::{Pruned, prunable};
pub use quarantine::{STILL_RED, is_released};
pub use select::{History, Missing, Selection, history_for_gate};
pub use summarise::summarise;
pub use update::{ExportedSessions, UpdateOptions, Updated, export, judged_side, update};
pub use usable::{HistoryQuery, Lineage, is_usable};

/// Each message completes "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
    #[error("read {path}: {source}")]
    Record { path: String, source: RecordError },
    #[error("write {path}: the file already exists, and files of a baseline are never overwritten")]
    Exists { path: String },
    #[error("read {path}: the baseline has no such file")]
    NoSuchFile { path: String },
    #[error("find {what}: {why}")]
    NoSuchRun { what: String, why: String },
    /// A file that can't be read. Ignoring it could turn a regression into a pass.
    #[error("read {path}: {why}")]
    Unreadable { path: String, why: String },
    #[error("store the run: {0}")]
    Unusable(String),
    /// Sessions that a shallow clone can't place. Without them, a gradual slowdown would look like no change.
    #[error("compare with {}: this shallow clone does not reach their commits", counted(*.0, "stored session"))]
    Shallow(usize),
    #[error("write to {place}: it contains {file}, so it is not a branch of baselines")]
    NotABaseline { place: String, file: String },
    #[error("write to {0}: it is read-only")]
    ReadOnly(String),
    /// A failed request to an object store. `why` contains no credentials.
    #[error("{action} {url}: {why}")]
    Objects { action: &'static str, url: String, why: String },
    #[error("reach the store: interrupted")]
    Interrupted,
    #[error(transparent)]
    Git(#[from] GitError),
}
