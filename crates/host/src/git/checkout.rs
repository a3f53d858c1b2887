//! Checks out a commit to disk as a fresh clone would have it. The `git` program writes the files, so that
//! attributes, line endings and filters such as git-lfs apply to them as they do to the working tree.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use git2::{ObjectType, Oid};

use super::data_branch::{CommandRunner, run_git};
use super::remote::last_line;
use super::{FOLDER, GitError, LINK, Repository, SUBMODULE, io, other};
use crate::files::{self, LONGEST_LFS_POINTER, Scratch, has_lfs_pointer, is_lfs_pointer, without_parents};
use crate::process::Command;

/// A part of a commit that could not be checked out completely. Shown to the user.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Notice {
    /// A submodule that is not initialized in the working tree.
    Submodule(PathBuf),
    /// A git-lfs pointer that is a pointer in the working tree too.
    LfsPointer(PathBuf),
    /// A symbolic link that left the tree by way of another link, and was removed.
    EscapingLink(PathBuf),
}

impl std::fmt::Display for Notice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Submodule(path) => {
                write!(f, "{path:?} is a submodule that is not initialized here; base's copy is empty too")
            }
            Self::LfsPointer(path) => {
                write!(f, "{path:?} is stored in git-lfs; only its pointer was checked out")
            }
            Self::EscapingLink(path) => {
                write!(
                    f,
                    "the link {path:?} leads out of the repository through another link, so it was left out"
                )
            }
        }
    }
}

/// A commit's tree on disk, deleted when its last owner is dropped. Its files are not writable.
#[derive(Debug, Clone)]
pub struct Checkout {
    pub folder: PathBuf,
    /// The full identifier (40 digits).
    pub commit: String,
    /// Sorted by path.
    pub notices: Vec<Notice>,
    _folder: Arc<Scratch>,
}

impl Repository {
    /// Writes the tree of a commit, with its submodules, into a new folder below `into`. If the working tree
    /// has a file that this clone can't provide for the commit, the error names it. Files of earlier
    /// checkouts are not reused, because a program that ran since could have changed them.
    pub fn checkout(&self, commit: &str, into: &Path, run: &CommandRunner<'_>) -> Result<Checkout, GitError> {
        const PREFIX: &str = "checkout-";
        let id = self.commit(commit)?;
        files::sweep_scratch(into, PREFIX);
        let scratch = Scratch::new_in(into, PREFIX).map_err(|source| io(into, source))?;
        let folder = scratch.path().join("tree");
        let mut writing =
            Writing { scratch: scratch.path(), top: &folder, root: &self.root, run, notices: Vec::new() };
        writing.tree(&self.inner, id, Path::new(""))?;
        let mut notices = writing.notices;
        notices.sort();
        Ok(Checkout { folder, commit: id.to_string(), notices, _folder: Arc::new(scratch) })
    }
}

/// A checkout that is being written.
struct Writing<'a> {
    scratch: &'a Path,
    /// The new folder for the whole repository.
    top: &'a Path,
    /// The working tree.
    root: &'a Path,
    run: &'a CommandRunner<'a>,
    notices: Vec<Notice>,
}

impl Writing<'_> {
    /// Writes a commit of the repository or of a submodule. `below` is the submodule's path from the root, or
    /// empty.
    fn tree(&mut self, repository: &git2::Repository, id: Oid, below: &Path) -> Result<(), GitError> {
        let special = Special::find(repository, id)?;
        let lfs = WorkingTreeLfs::find(repository, &self.root.join(below), &special.pointers);
        let folder = self.top.join(below);
        fs::create_dir_all(&folder).map_err(|source| io(&folder, source))?;
        let history = History::new_in(self.scratch, id)?;
        self.read_tree(repository, id, (&folder, &history.index()), lfs)?;
        for path in &special.pointers {
            if has_lfs_pointer(&folder.join(path)) == Some(true) {
                let path = below.join(path);
                if lfs == WorkingTreeLfs::Content {
                    return Err(GitError::LfsContent { commit: id.to_string(), path });
                }
                self.notices.push(Notice::LfsPointer(path));
            }
        }
        self.links(&special.links, below)?;
        protect(&folder)?;
        history.attach(repository, id, &folder)?;
        for (path, commit) in special.submodules {
            let path = below.join(path);
            match self.submodule(repository, &path, below)? {
                None => self.notices.push(Notice::Submodule(path)),
                Some(inner) if inner.find_commit(commit).is_err() => {
                    return Err(GitError::SubmoduleCommit { path, commit: commit.to_string() });
                }
                Some(inner) => self.tree(&inner, commit, &path)?,
            }
        }
        Ok(())
    }

    fn read_tree(
        &self,
        repository: &git2::Repository,
        id: Oid,
        (folder, index): (&Path, &Path),
        lfs: WorkingTreeLfs,
    ) -> Result<(), GitError> {
        let mut arguments: Vec<String> = Vec::new();
        let mut set = |setting: &str| arguments.extend(["-c".to_owned(), setting.to_owned()]);
        set("core.hooksPath=/dev/null");
        set("core.fsmonitor=false");
        // A fresh clone has every folder, so a sparse checkout is turned off.
        set("core.sparseCheckout=false");
        if lfs == WorkingTreeLfs::Pointers {
            for off in ["process=", "smudge=", "required=false"] {
                set(&format!("filter.lfs.{off}"));
            }
        }
        arguments.extend(["read-tree", "--reset", "-u", "--no-recurse-submodules"].map(str::to_owned));
        arguments.push(id.to_string());
        let command = Command::new("git", CHECKOUT_TIMEOUT)
            .args(arguments)
            .cwd(folder)
            .env("GIT_DIR", repository.path())
            .env("GIT_WORK_TREE", folder)
            .env("GIT_INDEX_FILE", index)
            .env("GIT_TERMINAL_PROMPT", "0")
            // A replacement ref can substitute any object, including the base commit.
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("LC_ALL", "C");
        let finished = run_git(self.run, &command)?;
        if finished.exit.is_success() {
            return Ok(());
        }
        let why = if finished.exit.is_timeout() {
            finished.exit.to_string()
        } else {
            last_line(&finished.stderr_tail)
        };
        Err(GitError::Checkout { commit: id.to_string(), why })
    }

    /// Redirects links that leave the repository to the target that they have in the working tree.
    fn links(&mut self, links: &[(PathBuf, Vec<u8>)], below: &Path) -> Result<(), GitError> {
        let mut inside = Vec::new();
        for (path, target) in links {
            let path = below.join(path);
            let here = self.top.join(&path);
            if stays_inside(&path, target) {
                inside.push((path, here));
                continue;
            }
            let folder = self.root.join(path.parent().unwrap_or(Path::new("")));
            let real = without_parents(&folder.join(OsStr::from_bytes(target)));
            let real = real.strip_prefix(self.root).map(|kept| self.top.join(kept)).unwrap_or(real);
            fs::remove_file(&here).and_then(|()| symlink(real, &here)).map_err(|source| io(&here, source))?;
        }
        let top = fs::canonicalize(self.top).map_err(|source| io(self.top, source))?;
        for (path, here) in inside {
            // A link may leave the tree by way of another link, which only following it shows.
            if fs::canonicalize(&here).is_ok_and(|real| !real.starts_with(&top)) {
                fs::remove_file(&here).map_err(|source| io(&here, source))?;
                self.notices.push(Notice::EscapingLink(path));
            }
        }
        Ok(())
    }

    /// The repository of a submodule: in its folder of the working tree or, if head has moved or removed it,
    /// among this clone's modules. `None` if the submodule was never initialized.
    fn submodule(
        &self,
        outer: &git2::Repository,
        path: &Path,
        below: &Path,
    ) -> Result<Option<git2::Repository>, GitError> {
        let opened = |at: &Path| match at.exists() {
            true => git2::Repository::open(at).map(Some).map_err(|error| other("open a submodule", &error)),
            false => Ok(None),
        };
        let here = self.root.join(path);
        if here.join(".git").exists() {
            return opened(&here);
        }
        let modules = self.top.join(below).join(".gitmodules");
        let Ok(listed) = git2::Config::open(&modules) else { return Ok(None) };
        let inner = path.strip_prefix(below).unwrap_or(path);
        let mut name = None;
        let entries =
            listed.entries(Some("submodule\\..*\\.path")).map_err(|e| other("read .gitmodules", &e))?;
        entries
            .for_each(|entry| {
                if entry.value().is_ok_and(|value| Path::new(value) == inner) {
                    name = entry.name().ok().and_then(|key| {
                        Some(key.strip_prefix("submodule.")?.strip_suffix(".path")?.to_owned())
                    });
                }
            })
            .map_err(|error| other("read .gitmodules", &error))?;
        let is_plain =
            |name: &String| Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        match name.filter(is_plain) {
            Some(name) => opened(&outer.commondir().join("modules").join(name)),
            None => Ok(None),
        }
    }
}

/// Enough time to check out a large repository from a slow disk and to download its git-lfs files. A checkout
/// that takes longer is stuck.
const CHECKOUT_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// The maximum depth of folders: more than any source tree needs, and less than the kernel's limit for paths.
const DEEPEST: usize = 256;

/// Tree entries that need special treatment.
#[derive(Default)]
struct Special {
    pointers: Vec<PathBuf>,
    links: Vec<(PathBuf, Vec<u8>)>,
    submodules: Vec<(PathBuf, Oid)>,
}

impl Special {
    fn find(repository: &git2::Repository, id: Oid) -> Result<Self, GitError> {
        let hostile = |why: String| GitError::HostileTree { commit: id.to_string(), why };
        let unreadable = |error: git2::Error| other("read a tree", &error);
        let odb = repository.odb().map_err(unreadable)?;
        let top = repository.find_commit(id).and_then(|commit| commit.tree()).map_err(unreadable)?;
        let mut found = Self::default();
        let mut pending = vec![(PathBuf::new(), top)];
        while let Some((folder, tree)) = pending.pop() {
            let mut names = BTreeSet::new();
            for entry in tree.iter() {
                let name = entry.name_bytes();
                let shown = || String::from_utf8_lossy(name).into_owned();
                if !names.insert(name.to_vec()) {
                    return Err(hostile(format!("one folder contains {:?} twice", shown())));
                }
                if !is_safe_name(name) {
                    return Err(hostile(format!("it contains a file named {:?}", shown())));
                }
                let path = folder.join(OsStr::from_bytes(name));
                if path.components().count() > DEEPEST {
                    return Err(hostile(format!("its folders are more than {DEEPEST} deep")));
                }
                match entry.filemode() {
                    FOLDER => pending.push((path, repository.find_tree(entry.id()).map_err(unreadable)?)),
                    SUBMODULE => found.submodules.push((path, entry.id())),
                    LINK => {
                        let blob = repository.find_blob(entry.id()).map_err(unreadable)?;
                        found.links.push((path, blob.content().to_vec()));
                    }
                    // A partial clone fetches a missing object only when it is checked out.
                    _ => {
                        let size = odb.read_header(entry.id()).map_or(usize::MAX, |(size, _)| size);
                        if size < LONGEST_LFS_POINTER && is_pointer_blob(repository, entry.id()) {
                            found.pointers.push(path);
                        }
                    }
                }
            }
        }
        Ok(found)
    }
}

fn is_pointer_blob(repository: &git2::Repository, id: Oid) -> bool {
    repository.find_blob(id).is_ok_and(|blob| is_lfs_pointer(blob.content()))
}

/// The state of the git-lfs files in the working tree.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WorkingTreeLfs {
    /// The working tree has none of these files, so git's configuration applies.
    Unknown,
    Content,
    /// The working tree has pointers, because its workflow does not fetch the files. The checkout then has
    /// pointers too, which saves the download.
    Pointers,
}

impl WorkingTreeLfs {
    fn find(repository: &git2::Repository, root: &Path, pointers: &[PathBuf]) -> Self {
        let head = repository.head().and_then(|head| head.peel_to_tree()).ok();
        let in_lfs = |path: &&PathBuf| {
            let entry = head.as_ref().and_then(|head| head.get_path(path).ok());
            entry.is_some_and(|entry| {
                entry.kind() == Some(ObjectType::Blob) && is_pointer_blob(repository, entry.id())
            })
        };
        let found: BTreeSet<bool> =
            pointers.iter().filter(in_lfs).filter_map(|path| has_lfs_pointer(&root.join(path))).collect();
        match (found.contains(&false), found.contains(&true)) {
            (true, _) => Self::Content,
            (false, true) => Self::Pointers,
            (false, false) => Self::Unknown,
        }
    }
}

/// Returns whether a name stays in its folder. git rejects all other names, but a crafted tree may contain
/// them.
fn is_safe_name(name: &[u8]) -> bool {
    !name.is_empty()
        && name != b"."
        && name != b".."
        && !name.eq_ignore_ascii_case(b".git")
        && !name.iter().any(|byte| matches!(byte, b'/' | 0))
}

/// Returns whether a link at `path` with this target stays inside the tree if no other link is followed.
fn stays_inside(path: &Path, target: &[u8]) -> bool {
    let mut depth = path.components().count() - 1;
    for part in Path::new(OsStr::from_bytes(target)).components() {
        match part {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    true
}

/// Removes the write bits of all files.
fn protect(folder: &Path) -> Result<(), GitError> {
    for entry in fs::read_dir(folder).map_err(|source| io(folder, source))? {
        let path = entry.map_err(|source| io(folder, source))?.path();
        let found = fs::symlink_metadata(&path).map_err(|source| io(&path, source))?;
        if found.is_dir() {
            protect(&path)?;
        } else if found.is_file() {
            let mode = Permissions::from_mode(found.permissions().mode() & 0o555);
            fs::set_permissions(&path, mode).map_err(|source| io(&path, source))?;
        }
    }
    Ok(())
}

/// Settings of a repository that determine how its files look on disk.
const KEPT: &str = "^(core\\.(autocrlf|eol|safecrlf|symlinks|filemode)|filter\\..*)$";

/// A `.git` for a checkout, because builds ask git for their version (`git describe`, setuptools_scm, `go build`). It has
/// the commit, its history and the tags, but no branches, remotes or hooks. Nothing that a build writes there reaches the
/// repository.
pub(super) struct History {
    folder: PathBuf,
}

impl History {
    pub(super) fn new_in(scratch: &Path, id: Oid) -> Result<Self, GitError> {
        let folder = scratch.join(format!("{id}.git"));
        fs::create_dir_all(&folder).map_err(|source| io(&folder, source))?;
        Ok(Self { folder })
    }

    /// The index that the checkout is written with.
    pub(super) fn index(&self) -> PathBuf {
        self.folder.join("index")
    }

    /// Connects it with a checkout that is complete.
    pub(super) fn attach(
        &self,
        repository: &git2::Repository,
        id: Oid,
        checkout: &Path,
    ) -> Result<(), GitError> {
        let tags = tags(repository).map_err(|error| other("list tags", &error))?;
        let settings = settings(repository).map_err(|error| other("read git's configuration", &error))?;
        let objects = repository.commondir().join("objects");
        let objects = objects.canonicalize().map_err(|source| io(&objects, source))?;
        let place = checkout.join(".git");
        let written = || -> io::Result<()> {
            fs::create_dir_all(self.folder.join("refs"))?;
            fs::create_dir_all(self.folder.join("objects/info"))?;
            let line = |path: &Path| [path.as_os_str().as_bytes(), b"\n"].concat();
            fs::write(self.folder.join("objects/info/alternates"), line(&objects))?;
            fs::write(self.folder.join("HEAD"), format!("{id}\n"))?;
            fs::write(self.folder.join("config"), settings)?;
            fs::write(self.folder.join("packed-refs"), tags)?;
            let shallow = repository.commondir().join("shallow");
            if shallow.exists() {
                fs::copy(shallow, self.folder.join("shallow"))?;
            }
            // git reads files again that are as new as the index. Then a build would seem to use them.
            File::options().write(true).open(self.index())?.set_modified(SystemTime::now() + NEWER)?;
            fs::write(&place, [b"gitdir: ", &line(&self.folder)[..]].concat())?;
            fs::set_permissions(&place, Permissions::from_mode(0o444))
        };
        written().map_err(|source| io(&place, source))
    }
}

/// git compares the times of files in seconds.
const NEWER: Duration = Duration::from_secs(2);

/// The tags in the format of git's file `packed-refs`.
fn tags(repository: &git2::Repository) -> Result<Vec<u8>, git2::Error> {
    let mut found = Vec::new();
    for reference in repository.references_glob("refs/tags/*")? {
        let reference = reference?;
        if let Some(target) = reference.target() {
            found.push((reference.name_bytes().to_vec(), target));
        }
    }
    found.sort();
    Ok(found.iter().flat_map(|(name, id)| [id.to_string().as_bytes(), b" ", name, b"\n"].concat()).collect())
}

fn settings(repository: &git2::Repository) -> Result<Vec<u8>, git2::Error> {
    // Write permission was removed, which changed the time of each file's state.
    let own = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\ttrustctime = false\n";
    let mut text = own.as_bytes().to_vec();
    let local = match repository.config()?.open_level(git2::ConfigLevel::Local) {
        Err(error) if error.code() == git2::ErrorCode::NotFound => return Ok(text),
        opened => opened?,
    };
    local.entries(Some(KEPT))?.for_each(|entry| {
        let (Some((section, key)), Ok(value)) =
            (entry.name().ok().and_then(|name| name.rsplit_once('.')), entry.value())
        else {
            return;
        };
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let section = match section.split_once('.') {
            Some((section, name)) => format!("[{section} \"{}\"]", quoted(name)),
            None => format!("[{section}]"),
        };
        text.extend(format!("{section}\n\t{key} = \"{}\"\n", quoted(value)).into_bytes());
    })?;
    Ok(text)
}
