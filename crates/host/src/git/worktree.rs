//! Compares the working tree with HEAD: the measured files must be those of the commit.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use git2::{ErrorCode, IndexEntry, IndexEntryExtendedFlag, IndexEntryFlag, Oid, Status, StatusEntry};

use super::{GitError, Repository, SUBMODULE, other};

/// A submodule whose checkout is not at the commit that HEAD names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedSubmodule {
    /// Relative to the root of the working tree.
    pub path: PathBuf,
    /// The commit that HEAD names.
    pub named: String,
    /// The commit that is checked out.
    pub found: String,
}

impl Repository {
    /// Returns whether tracked files, including those of initialized submodules, differ from HEAD. Untracked
    /// files don't count, as with `git describe --dirty`. Settings that hide changes from git (`ignore` of a
    /// submodule, `skip-worktree`, `assume-unchanged`) don't hide them here.
    pub fn is_dirty(&self) -> Result<bool, GitError> {
        is_dirty(&self.inner).map_err(|error| other("compare with HEAD", &error))
    }

    /// Returns the files that are neither tracked nor ignored. A folder of such files counts once.
    pub fn untracked_files(&self) -> Result<Vec<PathBuf>, GitError> {
        let mut options = git2::StatusOptions::new();
        options.include_untracked(true).include_ignored(false).exclude_submodules(true);
        let statuses = self.inner.statuses(Some(&mut options));
        let statuses = statuses.map_err(|error| other("find untracked files", &error))?;
        let untracked = statuses.iter().filter(|entry| entry.status() == Status::WT_NEW);
        Ok(untracked.map(|entry| PathBuf::from(OsStr::from_bytes(entry.path_bytes()))).collect())
    }

    /// Returns the files among these, relative to the root, that are neither tracked nor ignored. Files of
    /// submodules and files outside of the repository are left out.
    pub fn untracked_among(
        &self,
        files: impl IntoIterator<Item = PathBuf>,
    ) -> Result<BTreeSet<PathBuf>, GitError> {
        let mut found = BTreeSet::new();
        for file in files {
            // A tracked link may lead to an untracked file.
            let real = std::fs::canonicalize(&file).ok();
            for place in real.into_iter().chain([file]).filter_map(|place| self.relative(&place).ok()) {
                match self.inner.status_file(&place) {
                    Ok(status) if status.is_wt_new() => {
                        found.insert(place);
                    }
                    Ok(_) => {}
                    Err(error) if matches!(error.code(), ErrorCode::NotFound | ErrorCode::Ambiguous) => {}
                    Err(error) => return Err(other("compare with HEAD", &error)),
                }
            }
        }
        Ok(found)
    }

    /// Returns the submodules whose checkout is not at the commit that HEAD names. Submodules that are not
    /// initialized are left out.
    pub fn moved_submodules(&self) -> Result<Vec<MovedSubmodule>, GitError> {
        let found = submodules(&self.inner).map_err(|error| other("compare submodules with HEAD", &error))?;
        let moved = found.into_iter().filter(|one| one.found != Some(one.named));
        let moved = moved.map(|one| MovedSubmodule {
            path: one.path,
            named: one.named.to_string(),
            found: one.found.map_or_else(|| "no commit".to_owned(), |found| found.to_string()),
        });
        Ok(moved.collect())
    }

    /// Returns the commit that the tree of `commit` names for the submodule at `path`.
    pub fn submodule_commit(&self, commit: &str, path: &Path) -> Result<Option<String>, GitError> {
        let tree = self.inner.find_commit(self.commit(commit)?).and_then(|commit| commit.tree());
        match tree.and_then(|tree| tree.get_path(path)) {
            Ok(entry) => Ok((entry.filemode() == SUBMODULE).then(|| entry.id().to_string())),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(other("read a tree", &error)),
        }
    }
}

fn is_dirty(repository: &git2::Repository) -> Result<bool, git2::Error> {
    let mut options = git2::StatusOptions::new();
    options.include_untracked(false).include_ignored(false).exclude_submodules(true);
    let index = repository.index()?;
    let is_left_out = |entry: &StatusEntry<'_>| {
        let known = index.get_path(Path::new(OsStr::from_bytes(entry.path_bytes())), 0);
        entry.status() == Status::WT_DELETED && known.is_some_and(|known| is_skipped(&known))
    };
    let statuses = repository.statuses(Some(&mut options))?;
    if statuses.iter().any(|entry| !entry.status().is_empty() && !is_left_out(&entry)) {
        return Ok(true);
    }
    if has_hidden_changes(repository, &index)? {
        return Ok(true);
    }
    for one in submodules(repository)? {
        if one.found != Some(one.named) || is_dirty(&one.repository)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns whether a sparse checkout leaves this file out.
fn is_skipped(entry: &IndexEntry) -> bool {
    entry.flags_extended & IndexEntryExtendedFlag::SKIP_WORKTREE.bits() != 0
}

/// Returns whether a file that git was told not to look at differs from the index. A file that a sparse
/// checkout left out is not on disk and can't be measured.
fn has_hidden_changes(repository: &git2::Repository, index: &git2::Index) -> Result<bool, git2::Error> {
    let Some(root) = repository.workdir() else { return Ok(false) };
    let mut shown = git2::Index::new()?;
    for mut entry in index.iter() {
        let hidden = IndexEntryFlag::VALID.bits();
        let is_hidden = entry.flags & hidden != 0 || is_skipped(&entry);
        if is_hidden && root.join(OsStr::from_bytes(&entry.path)).symlink_metadata().is_ok() {
            entry.flags &= !(hidden | IndexEntryFlag::EXTENDED.bits());
            entry.flags_extended = 0;
            shown.add(&entry)?;
        }
    }
    if shown.is_empty() {
        return Ok(false);
    }
    let changes = repository.diff_index_to_workdir(Some(&shown), None)?;
    Ok(changes.deltas().len() > 0)
}

struct Submodule {
    path: PathBuf,
    repository: git2::Repository,
    /// The commit that HEAD names; zero if it names none.
    named: Oid,
    /// The commit that is checked out. `None` if there is none.
    found: Option<Oid>,
}

/// Finds the submodules by the index and not by .gitmodules, whose settings could hide them.
fn submodules(repository: &git2::Repository) -> Result<Vec<Submodule>, git2::Error> {
    let Some(root) = repository.workdir() else { return Ok(Vec::new()) };
    let tree = match repository.head() {
        Ok(head) => Some(head.peel_to_tree()?),
        Err(error) if error.code() == ErrorCode::UnbornBranch => None,
        Err(error) => return Err(error),
    };
    let index = repository.index()?;
    let is_submodule = |entry: &IndexEntry| i32::try_from(entry.mode).is_ok_and(|mode| mode == SUBMODULE);
    let mut found = Vec::new();
    for entry in index.iter().filter(is_submodule) {
        let path = PathBuf::from(OsStr::from_bytes(&entry.path));
        let here = root.join(&path);
        if here.join(".git").symlink_metadata().is_err() {
            continue;
        }
        let named = match tree.as_ref().map(|tree| tree.get_path(&path)) {
            Some(Ok(named)) => named.id(),
            Some(Err(error)) if error.code() != ErrorCode::NotFound => return Err(error),
            _ => Oid::ZERO_SHA1,
        };
        let repository = git2::Repository::open(&here)?;
        let commit = repository.head().ok().and_then(|head| head.target());
        found.push(Submodule { path, repository, named, found: commit });
    }
    Ok(found)
}
