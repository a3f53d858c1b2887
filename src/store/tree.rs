//! A baseline in the tree of a commit. A gate reads the merge base's baseline instead of the working tree's; otherwise a
//! pull request could supply the baseline that judges it.

use std::path::Path;

use crate::git::Repository;

use super::{Change, Files, StoreError};

/// A read-only folder in a commit's tree.
#[derive(Debug)]
pub struct CommitTree<'a> {
    repository: &'a Repository,
    commit: String,
    folder: String,
}

impl<'a> CommitTree<'a> {
    /// `folder` is relative to the top of the repository.
    pub fn new(repository: &'a Repository, commit: impl Into<String>, folder: impl Into<String>) -> Self {
        Self { repository, commit: commit.into(), folder: folder.into() }
    }

    fn inside(&self, path: &str) -> String {
        match (self.folder.is_empty(), path.is_empty()) {
            (true, _) => path.to_owned(),
            (_, true) => self.folder.clone(),
            _ => format!("{}/{path}", self.folder),
        }
    }

    fn entries(&self, folder: &str, folders: bool) -> Result<Vec<String>, StoreError> {
        let entries = self.repository.list(&self.commit, &self.inside(folder))?;
        let wanted =
            entries.into_iter().filter(|(name, is_folder)| *is_folder == folders && !name.starts_with('.'));
        Ok(wanted.map(|(name, _)| name).collect())
    }
}

impl Files for CommitTree<'_> {
    fn folders(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        self.entries(folder, true)
    }

    fn names(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        self.entries(folder, false)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, StoreError> {
        let read = self.repository.read_file(&self.commit, Path::new(&self.inside(path)))?;
        read.ok_or_else(|| StoreError::NoSuchFile { path: path.to_owned() })
    }

    fn apply(&mut self, _: &Change) -> Result<(), StoreError> {
        Err(StoreError::ReadOnly(self.place()))
    }

    fn place(&self) -> String {
        format!("{} at commit {}", self.folder, self.commit)
    }
}
