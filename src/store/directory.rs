//! A baseline in a folder.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use crate::files::{self, FileDraft};

use super::{Change, Files, StoreError};

/// Bytes of a stored session: one summary a process, so a suite of 20,000 benchmarks takes a fraction of it.
const MOST_BYTES: u64 = 256 << 20;

/// A folder, usually `baselines/` in the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    root: PathBuf,
}

impl Directory {
    /// The folder may be missing; the baseline is empty then.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn entries(&self, folder: &str, folders: bool) -> Result<Vec<String>, StoreError> {
        let path = self.root.join(folder);
        let io = |source| StoreError::Io { action: "list", path: path.clone(), source };
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io(error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(io)?;
            // Links are not followed; a baseline consists of regular files.
            let kind = entry.file_type().map_err(io)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if !name.starts_with('.') && if folders { kind.is_dir() } else { kind.is_file() } {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// Creates a file completely or not at all, and never replaces another file.
    fn create(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.root.join(name);
        let folder = path.parent().unwrap_or(&self.root);
        let io = |source| StoreError::Io { action: "write", path: path.clone(), source };
        fs::create_dir_all(folder).map_err(io)?;
        files::sweep_drafts(&path);
        let mut file = FileDraft::open(&path).map_err(io)?;
        file.write_all(bytes).map_err(io)?;
        file.commit_new().map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => StoreError::Exists { path: name.to_owned() },
            _ => io(error),
        })
    }
}

impl Files for Directory {
    fn folders(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        self.entries(folder, true)
    }

    fn names(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        self.entries(folder, false)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, StoreError> {
        let file = self.root.join(path);
        files::read_bounded(&file, MOST_BYTES).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => StoreError::NoSuchFile { path: path.to_owned() },
            _ => StoreError::Io { action: "read", path: file, source },
        })
    }

    fn apply(&mut self, change: &Change) -> Result<(), StoreError> {
        for (path, bytes) in &change.add {
            self.create(path, bytes)?;
        }
        for path in &change.remove {
            let file = self.root.join(path);
            match fs::remove_file(&file) {
                Ok(()) => {}
                // Another process has removed it already.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(source) => return Err(StoreError::Io { action: "remove", path: file, source }),
            }
        }
        Ok(())
    }

    fn place(&self) -> String {
        self.root.display().to_string()
    }
}
