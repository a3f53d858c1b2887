//! Why a baseline can't be read or written.

use std::path::PathBuf;

use crate::git::GitError;
use crate::record::RecordError;

/// What can fail in the store. Each message fits "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
    #[error("read {path}: {source}")]
    Record { path: String, source: RecordError },
    #[error("write {path}: a file of that name is there, and no file of a baseline is ever overwritten")]
    Exists { path: String },
    #[error("read {path}: the baseline has no such file")]
    NoSuchFile { path: String },
    #[error("find {what}: {why}")]
    NoSuchRun { what: String, why: String },
    #[error("store the run: {0}")]
    Unusable(String),
    #[error("write to {place}: it holds {file}, so it is no branch of baselines")]
    NotABaseline { place: String, file: String },
    #[error("write to {0}: it is read-only")]
    ReadOnly(String),
    #[error(transparent)]
    Git(#[from] GitError),
}
