//! A baseline on a branch of a remote that contains nothing else.

use std::cell::RefCell;

use crate::git::{DataBranch, Edit, GitError};

use super::{Change, Files, StoreError};

/// The default branch.
pub const BRANCH: &str = "benchgate-baselines";

const README_NAME: &str = "README.md";
/// Explains the branch to people who find it.
const README: &str = "\
# Baselines of benchgate

This branch contains measurements and shares no history with the code. Each file is one run:
`<suite>/<testbed>/<time>-<commit>.json`. Files are added and never changed; each contains a hash of its
content. `benchgate baseline list|show|verify` reads them, `benchgate baseline update|accept|prune` writes.
";

/// The files of a data branch.
pub struct Branch<'a> {
    // Reading fetches missing files, which changes the branch's cache.
    inner: RefCell<DataBranch<'a>>,
}

impl<'a> Branch<'a> {
    pub fn new(branch: DataBranch<'a>) -> Self {
        Self { inner: RefCell::new(branch) }
    }

    fn entries(&self, folder: &str, folders: bool) -> Result<Vec<String>, StoreError> {
        let entries = self.inner.borrow().list(folder)?;
        let wanted =
            entries.into_iter().filter(|(name, is_folder)| *is_folder == folders && !name.starts_with('.'));
        Ok(wanted.map(|(name, _)| name).collect())
    }
}

impl Files for Branch<'_> {
    fn folders(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        self.entries(folder, true)
    }

    fn names(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        self.entries(folder, false)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, StoreError> {
        let read = self.inner.borrow().read(path)?;
        read.ok_or_else(|| StoreError::NoSuchFile { path: path.to_owned() })
    }

    fn prefetch(&self, paths: &[String]) -> Result<(), StoreError> {
        Ok(self.inner.borrow().fetch_files(paths)?)
    }

    fn apply(&mut self, change: &Change) -> Result<(), StoreError> {
        // A mistyped branch name must not commit measurements to a branch with code.
        if let Some(file) = self.names("")?.into_iter().find(|name| name != README_NAME) {
            return Err(StoreError::NotABaseline { place: self.place(), file });
        }
        let mut edits: Vec<Edit<'_>> =
            change.add.iter().map(|(path, bytes)| Edit::Add(path, bytes)).collect();
        edits.extend(change.remove.iter().map(|path| Edit::Remove(path)));
        let branch = self.inner.get_mut();
        if branch.tip().is_none() {
            edits.push(Edit::Add(README_NAME, README.as_bytes()));
        }
        match branch.push(&edits, &change.message) {
            Ok(()) => Ok(()),
            Err(GitError::NameTaken(path)) => Err(StoreError::Exists { path }),
            Err(error) => Err(error.into()),
        }
    }

    fn place(&self) -> String {
        let branch = self.inner.borrow();
        format!("the branch {} of {}", branch.name(), branch.url())
    }

    fn fetched(&self) -> Option<u64> {
        Some(self.inner.borrow().bytes())
    }
}
