//! Errors of the store.

use std::path::PathBuf;

use crate::git::GitError;
use crate::record::RecordError;

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
    /// Leaving it out could turn a regression into a pass.
    #[error("read {path}: {why}")]
    Unreadable { path: String, why: String },
    #[error("store the run: {0}")]
    Unusable(String),
    #[error("write to {place}: it contains {file}, so it is not a branch of baselines")]
    NotABaseline { place: String, file: String },
    #[error("write to {0}: it is read-only")]
    ReadOnly(String),
    /// `why` holds no credentials.
    #[error("{action} {url}: {why}")]
    Objects { action: &'static str, url: String, why: String },
    #[error("reach the store: interrupted")]
    Interrupted,
    #[error(transparent)]
    Git(#[from] GitError),
}
