//! Trees of commits: their folders listed, and the whole of one written to disk.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use git2::{ErrorClass, ErrorCode, ObjectType, Oid};

use super::{Checkout, GitError, Notice, Repository, io};
use crate::files::{self, Scratch};

impl Repository {
    /// Names in a folder of a commit's tree, and whether each is a folder. Empty if the folder does not exist.
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

    /// Writes the tree of a commit below `into`, in a folder of the commit's name, and returns it.
    ///
    /// Content is written as stored, without filters or changes of line endings. The folder appears complete or not
    /// at all. An existing folder is compared with the commit first and replaced if it differs.
    pub fn checkout(&self, commit: &str, into: &Path) -> Result<Checkout, GitError> {
        let id = self.commit(commit)?.to_string();
        let plan = self.plan(&id)?;
        let folder = into.join(&id);
        let mut notices: Vec<Notice> = plan.iter().filter_map(Planned::notice).collect();
        if !(folder.is_dir() && matches_plan(&folder, &plan)) {
            const PREFIX: &str = ".checkout-";
            files::sweep_scratch(into, PREFIX);
            let fresh = Scratch::new_in(into, PREFIX).map_err(|source| io(into, source))?;
            let tree = fresh.path().join("tree");
            self.write(&id, &plan, &tree)?;
            if folder.is_dir() && !matches_plan(&folder, &plan) {
                // Renamed first, so that a partly removed folder never has this name.
                let aside = fresh.path().join("stale");
                fs::rename(&folder, &aside).map_err(|source| io(&folder, source))?;
            }
            match fs::rename(&tree, &folder) {
                Ok(()) => {}
                // Another process created the same checkout first.
                Err(_) if folder.is_dir() && matches_plan(&folder, &plan) => {}
                Err(source) => return Err(io(&folder, source)),
            }
        }
        for planned in &plan {
            let is_link = matches!(planned.content, Content::Link(_));
            // `symlink_metadata` does not follow links, so this checks whether the link itself exists.
            if is_link && fs::symlink_metadata(folder.join(&planned.path)).is_err() {
                notices.push(Notice::EscapingLink(planned.path.clone()));
            }
        }
        notices.sort();
        Ok(Checkout { folder, commit: id, notices })
    }

    /// Every entry of a commit, parents before their children.
    fn plan(&self, commit: &str) -> Result<Vec<Planned>, GitError> {
        let mut plan = Vec::new();
        let mut pending = vec![(PathBuf::new(), self.tree(commit)?)];
        let hostile = |why: String| GitError::HostileTree { commit: commit.to_owned(), why };
        while let Some((folder, tree)) = pending.pop() {
            let mut names = BTreeSet::new();
            for entry in tree.iter() {
                let name = entry.name_bytes();
                if !names.insert(name.to_vec()) {
                    let shown = String::from_utf8_lossy(name).into_owned();
                    return Err(hostile(format!("one folder contains {shown:?} twice")));
                }
                if !is_safe_name(name) {
                    let shown = String::from_utf8_lossy(name).into_owned();
                    return Err(hostile(format!("it contains a file named {shown:?}")));
                }
                let path = folder.join(OsStr::from_bytes(name));
                if path.components().count() > DEEPEST {
                    return Err(hostile(format!("its folders are more than {DEEPEST} deep")));
                }
                let content = match entry.filemode() {
                    FOLDER => {
                        let tree = self
                            .inner
                            .find_tree(entry.id())
                            .map_err(|error| self.object_error(&error, commit, &path))?;
                        pending.push((path.clone(), tree));
                        Content::Folder
                    }
                    SUBMODULE => Content::Submodule,
                    mode => {
                        let blob = self
                            .inner
                            .find_blob(entry.id())
                            .map_err(|error| self.object_error(&error, commit, &path))?;
                        if mode == LINK {
                            Content::Link(blob.content().to_vec())
                        } else {
                            let is_pointer = blob.content().starts_with(LFS_POINTER)
                                && blob.content().len() < LONGEST_LFS_POINTER;
                            Content::File { id: entry.id(), is_executable: mode == EXECUTABLE, is_pointer }
                        }
                    }
                };
                plan.push(Planned { path, content });
            }
        }
        Ok(plan)
    }

    /// Writes a planned tree into a folder that does not exist yet. Links are created last and nothing is
    /// overwritten, so that no path leads through a link.
    fn write(&self, commit: &str, plan: &[Planned], root: &Path) -> Result<(), GitError> {
        fs::create_dir(root).map_err(|source| io(root, source))?;
        for planned in plan {
            let path = root.join(&planned.path);
            match &planned.content {
                Content::Folder | Content::Submodule => {
                    fs::create_dir(&path).map_err(|source| io(&path, source))?;
                }
                Content::File { id, is_executable, .. } => {
                    let blob = self
                        .inner
                        .find_blob(*id)
                        .map_err(|error| self.object_error(&error, commit, &planned.path))?;
                    let mode = file_mode(*is_executable);
                    let mut options = fs::OpenOptions::new();
                    let mut file = options
                        .write(true)
                        .create_new(true)
                        .mode(mode)
                        .open(&path)
                        .map_err(|source| io(&path, source))?;
                    file.write_all(blob.content()).map_err(|source| io(&path, source))?;
                }
                Content::Link(_) => {}
            }
        }
        let mut links = Vec::new();
        for planned in plan {
            if let Content::Link(target) = &planned.content
                && stays_inside(&planned.path, target)
            {
                let path = root.join(&planned.path);
                std::os::unix::fs::symlink(OsStr::from_bytes(target), &path)
                    .map_err(|source| io(&path, source))?;
                links.push(path);
            }
        }
        let real_root = fs::canonicalize(root).map_err(|source| io(root, source))?;
        for path in links {
            // A link may lead out through another link; only following it shows that.
            if fs::canonicalize(&path).is_ok_and(|real| !real.starts_with(&real_root)) {
                fs::remove_file(&path).map_err(|source| io(&path, source))?;
            }
        }
        Ok(())
    }
}

const FOLDER: i32 = 0o040_000;
const LINK: i32 = 0o120_000;
const SUBMODULE: i32 = 0o160_000;
const EXECUTABLE: i32 = 0o100_755;
/// More than any source tree needs, and less than the kernel's limit for paths.
const DEEPEST: usize = 256;
/// First line of every pointer file (git-lfs specification, version 1).
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";
/// Limit of the same specification.
const LONGEST_LFS_POINTER: usize = 1024;

/// One entry of a tree.
struct Planned {
    path: PathBuf,
    content: Content,
}

enum Content {
    Folder,
    Submodule,
    File { id: Oid, is_executable: bool, is_pointer: bool },
    Link(Vec<u8>),
}

impl Planned {
    fn notice(&self) -> Option<Notice> {
        match self.content {
            Content::Submodule => Some(Notice::Submodule(self.path.clone())),
            Content::File { is_pointer: true, .. } => Some(Notice::LfsPointer(self.path.clone())),
            _ => None,
        }
    }
}

const fn file_mode(is_executable: bool) -> u32 {
    if is_executable { 0o555 } else { 0o444 }
}

/// A folder of a tree; the empty name is the tree itself.
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

/// Plain files and folders of a tree, and whether each is a folder. Links and submodules are left out.
pub(super) fn listing(tree: &git2::Tree<'_>) -> Vec<(String, bool)> {
    let entries = tree.iter().filter(|entry| !matches!(entry.filemode(), LINK | SUBMODULE));
    entries
        .map(|entry| (String::from_utf8_lossy(entry.name_bytes()).into_owned(), entry.filemode() == FOLDER))
        .collect()
}

/// Whether a name stays in its folder. Git rejects other names, but a crafted tree may contain them.
fn is_safe_name(name: &[u8]) -> bool {
    !name.is_empty()
        && name != b"."
        && name != b".."
        && !name.eq_ignore_ascii_case(b".git")
        && !name.iter().any(|byte| matches!(byte, b'/' | 0))
}

/// Whether a link at `path` with this target stays inside the tree, judged by its text alone.
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

/// Whether `folder` contains exactly the planned files, byte by byte, and nothing else.
fn matches_plan(folder: &Path, plan: &[Planned]) -> bool {
    let mut expected: BTreeSet<&Path> = plan.iter().map(|planned| planned.path.as_path()).collect();
    let complete = plan.iter().all(|planned| {
        let path = folder.join(&planned.path);
        let Ok(found) = fs::symlink_metadata(&path) else {
            // Links that lead out of the tree are left out on purpose.
            return matches!(planned.content, Content::Link(_));
        };
        match &planned.content {
            Content::Folder | Content::Submodule => found.is_dir(),
            Content::Link(target) => {
                fs::read_link(&path).is_ok_and(|found| found.as_os_str().as_bytes() == target.as_slice())
            }
            Content::File { id, is_executable, .. } => {
                found.is_file()
                    && found.permissions().mode() & 0o777 == file_mode(*is_executable)
                    && fs::read(&path)
                        .is_ok_and(|bytes| Oid::hash_object(ObjectType::Blob, &bytes).is_ok_and(|f| f == *id))
            }
        }
    });
    let mut pending = vec![PathBuf::new()];
    while let Some(below) = pending.pop() {
        let Ok(entries) = fs::read_dir(folder.join(&below)) else { return false };
        for entry in entries {
            let Ok(entry) = entry else { return false };
            let path = below.join(entry.file_name());
            if !expected.remove(path.as_path()) {
                return false;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                pending.push(path);
            }
        }
    }
    complete
}
