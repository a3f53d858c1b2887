//! L3: the only module that uses git2. Reads refs, merge bases and trees of the local repository,
//! without running its hooks or changing its files. A checkout runs filters, as `git clone` does.
//! [`DataBranch`] is a branch on a remote.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use git2::{ErrorClass, ErrorCode, ObjectType, Oid, RepositoryOpenFlags, Revwalk, Sort};

use benchgate_core::model::{SourceCommit, is_commit};

use crate::files::without_parents;

mod checkout;
mod data_branch;
mod remote;
#[cfg(test)]
mod tests;
mod worktree;

pub use checkout::{Checkout, Notice};
pub use data_branch::{CommandRunner, DataBranch, Edit};
pub use remote::{GitToken, Remote};
pub use worktree::MovedSubmodule;

/// The reason why a git operation failed. If a command fixes the problem, the message names it.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("find a git repository at {} or above it", .0.display())]
    NotARepository(PathBuf),
    #[error(
        "open the repository at {}: it belongs to another user; if you trust it, run `git config --global --add \
         safe.directory {}`", .0.display(), .0.display()
    )]
    OtherOwner(PathBuf),
    #[error("use the repository at {}: it has no working tree", .0.display())]
    Bare(PathBuf),
    #[error("read HEAD: the repository has no commit yet")]
    NoCommit,
    #[error("resolve `{reference}`: no such commit, branch or tag here; {fetch}")]
    UnknownReference { reference: String, fetch: String },
    #[error(
        "resolve `{0}`: several commits have this name; give more digits of the commit, or the full name of the ref \
         (`refs/remotes/{0}`, `refs/tags/{0}`)"
    )]
    AmbiguousReference(String),
    #[error(
        "find the merge base of HEAD and `{0}`: this clone is shallow and ends before it; run `git fetch \
         --unshallow origin`, or check out with `fetch-depth: 0`"
    )]
    Shallow(String),
    #[error("find the merge base of HEAD and `{0}`: they have no commit in common")]
    NoCommonAncestor(String),
    #[error(
        "list the commits from `{good}` to `{bad}`: this clone is shallow and ends before `{good}`; run `git fetch \
         --unshallow origin`, or check out with `fetch-depth: 0`"
    )]
    ShallowLine { good: String, bad: String },
    #[error("list the commits from `{good}` to `{bad}`: the two histories have no commit in common")]
    Unrelated { good: String, bad: String },
    #[error("list the commits from `{good}` to `{bad}`: `{bad}` is the older one; swap the ends")]
    Reversed { good: String, bad: String },
    #[error(
        "list the commits from `{good}` to `{bad}`: `{good}` is not on the first-parent history of `{bad}`; start from \
         {base}, where the two meet"
    )]
    NotOnLine { good: String, bad: String, base: String },
    #[error(
        "read {object} of commit {commit}: the object is not in this clone; if it is a partial clone, run `git \
         fetch --refetch --no-filter origin`"
    )]
    MissingObject { commit: String, object: String },
    #[error("check out commit {commit}: {why}")]
    Checkout { commit: String, why: String },
    #[error(
        "check out {} of commit {commit}: it is stored in git-lfs, and its content is not here; install git-lfs and run \
         `git lfs install`, then `git lfs fetch origin {commit}`", path.display()
    )]
    LfsContent { commit: String, path: PathBuf },
    #[error(
        "check out the submodule {}: its commit {commit} is not in this clone; run `git -C {} fetch origin {commit}`, \
         or check out with `fetch-depth: 0`", path.display(), path.display()
    )]
    SubmoduleCommit { path: PathBuf, commit: String },
    #[error("use commit {commit}: {why}")]
    HostileTree { commit: String, why: String },
    #[error("use {}: it is outside the repository at {}", path.display(), root.display())]
    Outside { path: PathBuf, root: PathBuf },
    #[error("read {} of commit {commit}: it is not a file", path.display())]
    NotAFile { commit: String, path: PathBuf },
    #[error("find the remote `{0}` in this repository's configuration")]
    NoRemote(String),
    #[error("use the branch {0:?}: not a valid branch name")]
    BadBranch(String),
    #[error("use the remote's address: {0}")]
    BadUrl(String),
    #[error("start git: program not found")]
    NoGit,
    #[error("{verb} {url}: access denied for {given}: {why}")]
    Credentials { verb: &'static str, url: String, given: &'static str, why: String },
    #[error("{verb} {url}: {why}")]
    Unreachable { verb: &'static str, url: String, why: String },
    #[error("{verb} {url}: {why}")]
    RemoteFailed { verb: &'static str, url: String, why: String },
    #[error("push to the branch {branch}: the server refused it: {why}")]
    PushRefused { branch: String, why: String },
    #[error("push to the branch {branch}: other writers pushed first {tries} times in a row")]
    Contended { branch: String, tries: u32 },
    #[error("finish: interrupted")]
    Interrupted,
    #[error("write {0}: a file of that name already exists")]
    NameTaken(String),
    #[error("write {}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{action}: {message}")]
    Other { action: &'static str, message: String },
}

/// Length of a full commit identifier.
const FULL_ID: usize = 40;

/// The commit and branch of HEAD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The full identifier (40 digits).
    pub commit: String,
    /// `None` when HEAD is detached, as in most CI checkouts.
    pub branch: Option<String>,
}

/// A repository with a working tree.
pub struct Repository {
    inner: git2::Repository,
    root: PathBuf,
}

impl std::fmt::Debug for Repository {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Repository").field("root", &self.root).finish()
    }
}

impl Repository {
    /// Opens the repository that contains `path`. Rejects a repository that belongs to another user, as git
    /// does, because its configuration could name programs to run.
    pub fn open(path: &Path) -> Result<Self, GitError> {
        let refused = |error: &git2::Error| match error.code() {
            ErrorCode::NotFound => GitError::NotARepository(path.to_owned()),
            ErrorCode::Owner => GitError::OtherOwner(top_of(path)),
            _ => other("open the repository", error),
        };
        // Only a folder with a `.git` counts, which no commit can contain. git also accepts a folder with
        // `HEAD`, `objects` and `refs` as a repository; a pull request could add such a folder, with a base
        // of its choice.
        let given = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let Some(top) = given.ancestors().find(|folder| folder.join(".git").exists()) else {
            return Err(match git2::Repository::discover(path) {
                Ok(_) => GitError::Bare(path.to_owned()),
                Err(error) => refused(&error),
            });
        };
        let (flags, no_ceilings) = (RepositoryOpenFlags::NO_SEARCH, &[] as &[&OsStr]);
        let inner = git2::Repository::open_ext(top, flags, no_ceilings).map_err(|error| refused(&error))?;
        let Some(root) = inner.workdir() else { return Err(GitError::Bare(path.to_owned())) };
        let root = fs::canonicalize(root).map_err(|source| io(root, source))?;
        Ok(Self { inner, root })
    }

    /// The top folder of the working tree, with symbolic links resolved.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of its HEAD, which is not in the working tree of a linked worktree.
    pub fn git_folder(&self) -> &Path {
        self.inner.path()
    }

    pub fn head(&self) -> Result<Head, GitError> {
        let head = self.inner.head().map_err(|error| match error.code() {
            ErrorCode::UnbornBranch | ErrorCode::NotFound => GitError::NoCommit,
            _ => other("read HEAD", &error),
        })?;
        let commit = head.peel_to_commit().map_err(|error| other("read HEAD", &error))?;
        let branch = if head.is_branch() { head.shorthand().map(str::to_owned).ok() } else { None };
        Ok(Head { commit: commit.id().to_string(), branch })
    }

    /// The commit that a branch, tag, remote branch or commit id names. A branch that exists only as
    /// `origin/NAME`, as in CI, is found by its short name.
    pub fn resolve(&self, reference: &str) -> Result<String, GitError> {
        self.commit(reference).map(|id| id.to_string())
    }

    fn commit(&self, reference: &str) -> Result<Oid, GitError> {
        if self.is_ambiguous(reference) {
            return Err(GitError::AmbiguousReference(reference.to_owned()));
        }
        for spec in [reference.to_owned(), format!("refs/remotes/origin/{reference}")] {
            match self.inner.revparse_single(&spec).and_then(|object| object.peel_to_commit()) {
                Ok(commit) => return Ok(commit.id()),
                Err(error) if error.code() == ErrorCode::Ambiguous => {
                    return Err(GitError::AmbiguousReference(reference.to_owned()));
                }
                // Try the next spelling.
                Err(_) => {}
            }
        }
        let fetch = if self.inner.is_shallow() {
            // The commit may be older than the shallow history; fetching a branch would not help.
            "this clone is shallow: run `git fetch --unshallow` (in a workflow, `fetch-depth: 0`)".to_owned()
        } else if reference != "HEAD" && self.remote_url("origin").is_err() {
            "there is no remote `origin` to fetch it from, so name a branch, tag or commit of this clone"
                .to_owned()
        } else {
            fetch_advice(reference)
        };
        Err(GitError::UnknownReference { reference: reference.to_owned(), fetch })
    }

    /// Returns whether a short name matches several refs, or a ref and a commit, with different commits. git
    /// would use the first with a warning, so a tag named `origin/main` would become the base instead of the
    /// remote branch.
    fn is_ambiguous(&self, reference: &str) -> bool {
        // In `origin/main~2`, the ref is `origin/main`.
        let name = reference.split(['~', '^', '@', ':']).next().unwrap_or_default();
        // A full commit identifier takes precedence over every ref.
        if is_commit(name) && name.len() >= FULL_ID {
            return false;
        }
        let commit = |spec: &str| {
            let found = self.inner.find_reference(spec).and_then(|found| found.peel_to_commit());
            found.ok().map(|commit| commit.id())
        };
        let places = ["", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/"];
        let mut found: Vec<Oid> =
            places.iter().filter_map(|place| commit(&format!("{place}{name}"))).collect();
        if !found.is_empty() {
            found.extend(self.inner.find_commit_by_prefix(name).ok().map(|commit| commit.id()));
        }
        found.iter().any(|id| *id != found[0])
    }

    /// The best common ancestor of HEAD and `reference`, with which a pull request is compared.
    pub fn merge_base(&self, reference: &str) -> Result<String, GitError> {
        let theirs = self.commit(reference)?;
        let head = self.head()?.commit;
        let ours = Oid::from_str(&head).map_err(|error| other("read HEAD", &error))?;
        match self.inner.merge_base(ours, theirs) {
            Ok(base) => Ok(base.to_string()),
            // In a shallow clone the common ancestor may just be missing.
            Err(_) if self.inner.is_shallow() => Err(GitError::Shallow(reference.to_owned())),
            Err(error) if error.code() == ErrorCode::NotFound => {
                Err(GitError::NoCommonAncestor(reference.to_owned()))
            }
            Err(error) => Err(other("find the merge base", &error)),
        }
    }

    /// `user.name` of git's configuration.
    pub fn user_name(&self) -> Option<String> {
        let config = self.inner.config().and_then(|mut config| config.snapshot()).ok()?;
        config.get_string("user.name").ok().filter(|name| !name.trim().is_empty())
    }

    /// The URL of a remote, as printed by `git remote get-url`.
    pub fn remote_url(&self, name: &str) -> Result<String, GitError> {
        let remote = self.inner.find_remote(name).map_err(|_| GitError::NoRemote(name.to_owned()))?;
        remote.url().map(str::to_owned).map_err(|_| GitError::NoRemote(name.to_owned()))
    }

    /// The absolute paths of all tracked files.
    pub fn tracked(&self) -> Result<BTreeSet<PathBuf>, GitError> {
        Ok(self.tracked_commits()?.into_iter().map(|(path, _)| self.root.join(path)).collect())
    }

    /// All tracked files relative to the root; for a submodule, its folder and commit.
    pub fn tracked_commits(&self) -> Result<Vec<(PathBuf, Option<String>)>, GitError> {
        let index = self.inner.index().map_err(|error| other("read the index", &error))?;
        let entry = |entry: git2::IndexEntry| {
            let commit =
                i32::try_from(entry.mode).is_ok_and(|mode| mode == SUBMODULE).then(|| entry.id.to_string());
            (PathBuf::from(OsStr::from_bytes(&entry.path)), commit)
        };
        Ok(index.iter().map(entry).collect())
    }

    /// A tracked file at or below `folder`, or the submodule that contains `folder`. `folder` is absolute and
    /// need not exist.
    pub fn tracked_below(&self, folder: &Path) -> Result<Option<PathBuf>, GitError> {
        let index = self.inner.index().map_err(|error| other("read the index", &error))?;
        let found = index.iter().find_map(|entry| {
            let path = self.root.join(OsStr::from_bytes(&entry.path));
            (path.starts_with(folder) || folder.starts_with(&path)).then_some(path)
        });
        Ok(found)
    }

    /// `path` relative to the root of the working tree. Symbolic links in `path` are kept if possible,
    /// because another commit may have other links.
    pub fn relative(&self, path: &Path) -> Result<PathBuf, GitError> {
        let real = |path: &Path| {
            fs::canonicalize(path).map_err(|source| GitError::Io { path: path.to_owned(), source })
        };
        let file = real(path)?;
        let given = without_parents(&std::path::absolute(path).map_err(|source| io(path, source))?);
        // If `..` follows a symbolic link, only the file system can resolve it.
        let given = if real(&given).is_ok_and(|given| given == file) { given } else { file };
        let mut folders: Vec<&Path> = given.ancestors().collect();
        folders.reverse();
        let top = folders.into_iter().find(|folder| real(folder).is_ok_and(|folder| folder == self.root));
        top.and_then(|top| given.strip_prefix(top).ok())
            .map(Path::to_owned)
            .ok_or_else(|| GitError::Outside { path: given.clone(), root: self.root.clone() })
    }

    /// The working tree of the superproject, if this repository is one of its submodules.
    pub fn superproject(&self) -> Result<Option<PathBuf>, GitError> {
        let Some(parent) = self.root.parent() else { return Ok(None) };
        let outer = match Self::open(parent) {
            Ok(outer) => outer,
            Err(GitError::NotARepository(_) | GitError::Bare(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let Ok(inside) = self.root.strip_prefix(&outer.root) else { return Ok(None) };
        let index = outer.inner.index().map_err(|error| other("read the index", &error))?;
        let entry = index.get_path(inside, 0);
        let is_submodule = entry.is_some_and(|entry| i32::try_from(entry.mode) == Ok(SUBMODULE));
        Ok(is_submodule.then_some(outer.root))
    }

    fn tree(&self, commit: &str) -> Result<git2::Tree<'_>, GitError> {
        let id = self.commit(commit)?;
        let found = self.inner.find_commit(id).and_then(|commit| commit.tree());
        found.map_err(|error| self.object_error(&error, commit, Path::new("the tree")))
    }

    fn object_error(&self, error: &git2::Error, commit: &str, path: &Path) -> GitError {
        if error.code() == ErrorCode::NotFound {
            let object = path.display().to_string();
            return GitError::MissingObject { commit: commit.to_owned(), object };
        }
        other("read an object", error)
    }
}

/// The folder that `safe.directory` has to name for the repository at `path`.
fn top_of(path: &Path) -> PathBuf {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    path.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(&path).to_owned()
}

/// The command that fetches a ref.
fn fetch_advice(reference: &str) -> String {
    if reference == "HEAD" {
        return "commit something first".to_owned();
    }
    let branch = reference.strip_prefix("origin/").unwrap_or(reference);
    // The advice contains no name that a shell would require to be quoted.
    let is_plain = !branch.is_empty()
        && !branch.starts_with('-')
        && branch.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/'));
    if is_plain && is_commit(branch) {
        format!("run `git fetch origin {branch}`")
    } else if is_plain {
        format!("run `git fetch origin {branch}:refs/remotes/origin/{branch}`")
    } else {
        "fetch it first".to_owned()
    }
}

fn io(path: &Path, source: std::io::Error) -> GitError {
    GitError::Io { path: path.to_owned(), source }
}

fn other(action: &'static str, error: &git2::Error) -> GitError {
    let mut message = error.message().to_owned();
    // libgit2 does not know this part of an index.
    if message.contains("sdir") {
        message.push_str("; this is a sparse index: run `git sparse-checkout reapply --no-sparse-index`");
    }
    GitError::Other { action, message }
}

impl Repository {
    /// The entries of a folder in a commit's tree: each name, and whether it is a folder. Empty if the folder
    /// does not exist.
    pub fn list(&self, commit: &str, folder: &str) -> Result<Vec<(String, bool)>, GitError> {
        let root = self.tree(commit)?;
        let tree = subtree(&self.inner, root, folder)
            .map_err(|error| self.object_error(&error, commit, Path::new(folder)))?;
        Ok(tree.map(|tree| listing(&tree)).unwrap_or_default())
    }

    /// The content of a file at a commit, if it exists there. `path` is relative to the root.
    pub fn read_file(&self, commit: &str, path: &Path) -> Result<Option<Vec<u8>>, GitError> {
        let tree = self.tree(commit)?;
        let entry = match tree.get_path(path) {
            Ok(entry) => entry,
            Err(error) if error.code() == ErrorCode::NotFound && error.class() == ErrorClass::Tree => {
                return Ok(None);
            }
            Err(error) => return Err(self.object_error(&error, commit, path)),
        };
        if entry.kind() != Some(ObjectType::Blob) || entry.filemode() == LINK {
            return Err(GitError::NotAFile { commit: commit.to_owned(), path: path.to_owned() });
        }
        let blob =
            self.inner.find_blob(entry.id()).map_err(|error| self.object_error(&error, commit, path))?;
        Ok(Some(blob.content().to_vec()))
    }
}

pub(super) const FOLDER: i32 = 0o040_000;
pub(super) const LINK: i32 = 0o120_000;
pub(super) const SUBMODULE: i32 = 0o160_000;

/// A folder of a tree; the empty name returns the tree itself.
pub(super) fn subtree<'r>(
    repository: &'r git2::Repository,
    root: git2::Tree<'r>,
    folder: &str,
) -> Result<Option<git2::Tree<'r>>, git2::Error> {
    if folder.is_empty() {
        return Ok(Some(root));
    }
    match root.get_path(Path::new(folder)) {
        Ok(entry) if entry.kind() == Some(ObjectType::Tree) => repository.find_tree(entry.id()).map(Some),
        Ok(_) => Ok(None),
        Err(error) if error.code() == ErrorCode::NotFound && error.class() == ErrorClass::Tree => Ok(None),
        Err(error) => Err(error),
    }
}

/// The plain files and folders of a tree: each name, and whether it is a folder. Links and submodules are
/// left out.
pub(super) fn listing(tree: &git2::Tree<'_>) -> Vec<(String, bool)> {
    let entries = tree.iter().filter(|entry| !matches!(entry.filemode(), LINK | SUBMODULE));
    entries
        .map(|entry| (String::from_utf8_lossy(entry.name_bytes()).into_owned(), entry.filemode() == FOLDER))
        .collect()
}

/// Tolerated difference between committers' clocks, in seconds. If clocks differ by more, an ancestor may be
/// missed, and a stored session stays unused. Without a limit, a search for an unrelated commit would walk a
/// large history to its root, which takes minutes.
const SLACK: i64 = 7 * 24 * 3600;

/// The ancestors of a commit, walked lazily from the newest, once and only as far back as needed.
pub struct Ancestry<'r> {
    repository: &'r Repository,
    walked: RefCell<Walked<'r>>,
}

struct Walked<'r> {
    walk: Revwalk<'r>,
    seen: HashSet<Oid>,
    /// Commit time of the last walked commit.
    reached: i64,
    ended: bool,
}

impl std::fmt::Debug for Ancestry<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ancestry").field("repository", self.repository).finish_non_exhaustive()
    }
}

impl Repository {
    /// The ancestors of a commit, branch or tag.
    pub fn ancestry(&self, of: &str) -> Result<Ancestry<'_>, GitError> {
        let failed = |error: git2::Error| other("follow the history", &error);
        let of = self.commit(of)?;
        let mut walk = self.inner.revwalk().map_err(failed)?;
        walk.set_sorting(Sort::TIME).map_err(failed)?;
        walk.push(of).map_err(failed)?;
        let walked = Walked { walk, seen: HashSet::new(), reached: i64::MAX, ended: false };
        Ok(Ancestry { repository: self, walked: RefCell::new(walked) })
    }
}

impl Ancestry<'_> {
    /// Returns whether `commit` is the start of this walk or one of its ancestors. `None` if a shallow clone
    /// ends before that is known.
    pub fn contains(&self, commit: &str) -> Option<bool> {
        let inner = &self.repository.inner;
        let not_found = |at_end: bool| if at_end && inner.is_shallow() { None } else { Some(false) };
        // If the history is complete, a commit that is not in the repository is not an ancestor.
        let Ok(found) = Oid::from_str(commit).and_then(|id| inner.find_commit(id)) else {
            return not_found(true);
        };
        let (id, time) = (found.id(), found.time().seconds());
        let walked = &mut *self.walked.borrow_mut();
        while !walked.seen.contains(&id) && !walked.ended && walked.reached.saturating_add(SLACK) >= time {
            // In a shallow clone, the walk ends with an error about a missing parent.
            match walked.walk.next().transpose() {
                Ok(Some(next)) => {
                    walked.seen.insert(next);
                    walked.reached = inner.find_commit(next).map_or(walked.reached, |c| c.time().seconds());
                }
                Ok(None) | Err(_) => walked.ended = true,
            }
        }
        if walked.seen.contains(&id) { Some(true) } else { not_found(walked.ended) }
    }
}

/// The maximum number of commits from `good` to `bad`; more suggest that one of the refs is wrong.
const MOST_COMMITS: usize = 100_000;

impl Repository {
    /// The commits from `good` to `bad`, both included, oldest first, along the first parents of merges.
    pub fn line(&self, good: &str, bad: &str) -> Result<Vec<SourceCommit>, GitError> {
        let (first, last) = (self.commit(good)?, self.commit(bad)?);
        let failed = |error: git2::Error| other("follow the history", &error);
        let mut line = Vec::new();
        let mut at = self.inner.find_commit(last).map_err(failed)?;
        loop {
            let subject = String::from_utf8_lossy(at.summary_bytes().unwrap_or_default()).into_owned();
            let author = String::from_utf8_lossy(at.author().name_bytes()).into_owned();
            line.push(SourceCommit { id: at.id().to_string(), subject, author });
            if at.id() == first {
                line.reverse();
                return Ok(line);
            }
            let parent = if line.len() < MOST_COMMITS { at.parent(0).ok() } else { None };
            let Some(parent) = parent else { break };
            at = parent;
        }
        let (good, bad) = (good.to_owned(), bad.to_owned());
        // In a shallow clone, the missing commit may still exist on the remote.
        if self.inner.is_shallow() {
            return Err(GitError::ShallowLine { good, bad });
        }
        Err(match self.inner.merge_base(first, last) {
            Err(error) if error.code() == ErrorCode::NotFound => GitError::Unrelated { good, bad },
            Err(error) => failed(error),
            Ok(base) if base == last => GitError::Reversed { good, bad },
            Ok(base) => GitError::NotOnLine { good, bad, base: base.to_string() },
        })
    }
}
