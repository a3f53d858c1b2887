//! The baselines that need no object store: in a folder, in the tree of a commit, or on a branch of a remote.

use std::cell::RefCell;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use benchgate_core::model::short_commit;
use benchgate_host::files::{self, FileDraft};
use benchgate_host::git::{DataBranch, Edit, GitError, Repository};

use super::{Change, Files, StoreError};

/// Maximum size of a stored session. A session has one summary per process, so a suite of 20,000 benchmarks
/// needs only a fraction of this.
const MOST_BYTES: u64 = 256 << 20;

/// The names of the folders, or else of the files, among entries.
fn names(entries: Vec<(String, bool)>, folders: bool) -> Vec<String> {
    let wanted =
        entries.into_iter().filter(|(name, is_folder)| *is_folder == folders && !name.starts_with('.'));
    wanted.map(|(name, _)| name).collect()
}

/// A baseline in a folder, usually `baselines/` in the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    root: PathBuf,
}

impl Directory {
    /// Opens a folder. If the folder is missing, the baseline is empty.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
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
    fn list(&self, folder: &str, folders: bool) -> Result<Vec<String>, StoreError> {
        let path = self.root.join(folder);
        let io = |source| StoreError::Io { action: "list", path: path.clone(), source };
        let Some(entries) = files::if_exists(fs::read_dir(&path)).map_err(io)? else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(io)?;
            let kind = entry.file_type().map_err(io)?;
            found.push((entry.file_name().to_string_lossy().into_owned(), kind.is_dir()));
        }
        found.sort();
        Ok(names(found, folders))
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, StoreError> {
        let file = self.root.join(path);
        // A link could lead out of the baseline.
        if file.is_symlink() {
            let source = std::io::Error::other("it is a link; a baseline consists of regular files");
            return Err(StoreError::Io { action: "read", path: file, source });
        }
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
            // Another process may have removed it already.
            files::if_exists(fs::remove_file(&file)).map_err(|source| StoreError::Io {
                action: "remove",
                path: file,
                source,
            })?;
        }
        Ok(())
    }

    fn place(&self) -> String {
        self.root.display().to_string()
    }
}

/// The default name of the branch.
pub const BRANCH: &str = "benchgate-baselines";

const README_NAME: &str = "README.md";
/// A README that explains the branch to people who find it.
const README: &str = "\
# Baselines of benchgate

This branch contains measurements and shares no history with the code. Each file is one run:
`<suite>/<testbed>/<time>-<commit>.json`. Files are added and never changed; each contains a hash of its
content. `benchgate baseline list|show|verify` reads them, `benchgate baseline update|accept|prune` writes.
";

/// A baseline on a data branch.
pub struct Branch<'a> {
    // A cell is needed because reading fetches missing files and so changes the branch's cache.
    inner: RefCell<DataBranch<'a>>,
}

impl<'a> Branch<'a> {
    pub fn new(branch: DataBranch<'a>) -> Self {
        Self { inner: RefCell::new(branch) }
    }
}

impl Files for Branch<'_> {
    fn list(&self, folder: &str, folders: bool) -> Result<Vec<String>, StoreError> {
        Ok(names(self.inner.borrow().list(folder)?, folders))
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, StoreError> {
        let read = self.inner.borrow().read(path)?;
        read.ok_or_else(|| StoreError::NoSuchFile { path: path.to_owned() })
    }

    fn prefetch(&self, paths: &[String]) -> Result<(), StoreError> {
        Ok(self.inner.borrow().fetch_files(paths)?)
    }

    fn apply(&mut self, change: &Change) -> Result<(), StoreError> {
        // If the branch name is a typo, measurements must not be committed to a branch with code.
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

/// A baseline in a commit's tree, which is read-only. A gate reads the merge base's baseline rather than the
/// working tree's; otherwise a pull request could supply the baseline that judges it.
#[derive(Debug)]
pub struct CommitTree<'a> {
    repository: &'a Repository,
    commit: String,
    folder: String,
}

impl<'a> CommitTree<'a> {
    /// Opens `folder`, whose path is relative to the top of the repository.
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
}

impl Files for CommitTree<'_> {
    fn list(&self, folder: &str, folders: bool) -> Result<Vec<String>, StoreError> {
        Ok(names(self.repository.list(&self.commit, &self.inside(folder))?, folders))
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, StoreError> {
        let read = self.repository.read_file(&self.commit, Path::new(&self.inside(path)))?;
        read.ok_or_else(|| StoreError::NoSuchFile { path: path.to_owned() })
    }

    fn apply(&mut self, _: &Change) -> Result<(), StoreError> {
        Err(StoreError::ReadOnly(self.place()))
    }

    fn place(&self) -> String {
        format!("{} at commit {}", self.folder, short_commit(&self.commit))
    }
}
