//! A baseline on a branch of a remote that holds nothing else.

use std::cell::RefCell;

use crate::git::{DataBranch, Edit, GitError};

use super::{Change, Files, StoreError};

/// The branch, unless another is named.
pub const BRANCH: &str = "benchgate-baselines";

const README_NAME: &str = "README.md";
/// Says what the branch is to a person who finds it.
const README: &str = "\
# Baselines of benchgate

This branch holds measurements and shares no history with the code. One file is one run:
`<suite>/<testbed>/<time>-<commit>.json`. Files are added and never changed; each carries a hash of its
content. `benchgate baseline list|show|verify` reads them, `benchgate baseline update|accept|prune` writes.
";

/// A data branch as a set of files.
pub struct Branch<'a> {
    // Reading fetches what is missing, which the branch keeps.
    inner: RefCell<DataBranch<'a>>,
}

impl<'a> Branch<'a> {
    /// The files of a branch that was fetched.
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

    fn announce(&self, paths: &[String]) -> Result<(), StoreError> {
        Ok(self.inner.borrow().bring(paths)?)
    }

    fn apply(&mut self, change: &Change) -> Result<(), StoreError> {
        // A slip of the keyboard must not commit measurements onto somebody's code.
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
