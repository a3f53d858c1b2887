//! Records the files that an export or a compilation read, and checks whether they are unchanged.
//!
//! Only after a tool has run is it known which files its result depends on. So for each key, the cache has
//! one entry per state of these files, and traces that list the files and select an entry. The kernel
//! observes which files the compiler and an export open. An export's Python interpreter also reports the files that
//! it looks for. Where the kernel can't observe it, native code can open files without such a report, so the key of
//! an export also contains the whole tree of its side's sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use super::PipelineError;
use super::cache::{Cache, Digests, KeyBuilder, aside, write_json};
use super::slots::Memo;
use super::stage::{StageError, StageFailure, Staged};
use benchgate_host::files::{self, without_parents};
use benchgate_host::git::{GitError, Repository};
use serde::{Deserialize, Serialize};

/// Extensions of files that benchgate and its tools write next to a configuration. Models read such files
/// only from Python, whose reads are reported. If they were part of the key, every run would change it.
const HEARD: [&str; 7] = ["csv", "html", "jsonl", "log", "md", "svg", "xml"];

/// The files that an exporter read, as it reported or as the kernel observed.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Heard {
    pub(super) read: Vec<PathBuf>,
    /// Those that did not exist when they were first read or looked for; the model may have made them since.
    #[serde(default)]
    pub(super) absent: Vec<PathBuf>,
    pub(super) listed: Vec<PathBuf>,
    /// An action of the model whose effect can't be described by a list of files, if there was one.
    pub(super) opaque: Option<String>,
    /// Folders of the interpreter and its packages, which the key already contains.
    #[serde(default)]
    environment: Vec<PathBuf>,
    /// Files that only the kernel saw it open; `None` if it could not be observed.
    #[serde(skip)]
    pub(super) observed: Option<Vec<PathBuf>>,
}

impl Heard {
    /// Adds the files that native code or child processes used.
    pub(super) fn add(&mut self, used: BTreeSet<PathBuf>, sources: &Path, known: &Sources) {
        let place = TracePlace::of_program(sources, sources);
        let is_below = |path: &Path, folder: &Path| {
            path.starts_with(folder) && !place.folders.iter().any(|sources| sources.starts_with(folder))
        };
        // Images and clusters keep models in these.
        let may_hold_models = |path: &Path| {
            ["/opt", "/usr/local", "/usr/share"].iter().any(|it| path.starts_with(it)) && !is_library(path)
        };
        let is_system = |path: &Path| {
            self.environment.iter().any(|folder| is_below(path, folder))
                || SYSTEM.iter().any(|folder| is_below(path, Path::new(folder))) && !may_hold_models(path)
                || ["/run", "/var/cache", "/var/lib/sss"].iter().any(|it| path.starts_with(it))
        };
        // Each run has checkouts of its own, with a `.git` that names their folder.
        let is_git = |path: &Path| path.iter().any(|part| part == ".git");
        let mut folders = known.real_folders();
        folders.insert(0, (place.folders[1].clone(), place.folders[0].clone()));
        // Links may lead to the folders of benchgate, whose names are the same in every run.
        let named = |path: PathBuf| {
            let inside = |(real, name): &(PathBuf, PathBuf)| Some(name.join(path.strip_prefix(real).ok()?));
            folders.iter().find_map(inside).unwrap_or(path)
        };
        let found = used.into_iter().filter(|path| !is_system(path) && !is_git(path)).map(named);
        let found: BTreeSet<PathBuf> = found.filter(|path| !known.is_own(path)).collect();
        let reported: BTreeSet<&PathBuf> = self.read.iter().collect();
        self.observed = Some(found.into_iter().filter(|path| !reported.contains(path)).collect());
    }
}

/// The folders that determine how files are named in a trace.
#[derive(Debug, Clone)]
pub(super) struct TracePlace {
    /// The folder of the sources, as named and with links resolved.
    folders: [PathBuf; 2],
    /// The folder of the tools, which the request's key already contains, if there is one.
    tools: Option<PathBuf>,
}

/// Folders that are the same for every checkout on a machine.
const SYSTEM: [&str; 8] = ["/bin", "/etc", "/lib", "/lib64", "/nix", "/opt", "/sbin", "/usr"];

impl TracePlace {
    /// The names for a trace of an interpreter, which are relative to the sources.
    pub(super) fn of_sources(sources: &Path) -> Self {
        let folder = clean(sources);
        Self { folders: [folder.clone(), folder], tools: None }
    }

    /// The names for a trace of a program below `tools`, which is started in the folder of the sources.
    pub(super) fn of_program(sources: &Path, tools: &Path) -> Self {
        let folder = clean(sources);
        let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        Self { folders: [folder, real], tools: Some(clean(tools)) }
    }

    /// The file that a name in a trace stands for. Names for an interpreter are computed from the names of the folders, also of
    /// those that are links.
    fn file(&self, name: &str) -> PathBuf {
        let path = self.folders[0].join(name);
        if self.tools.is_none() { clean(&path) } else { path }
    }

    /// The names of a file in a trace. Names are relative to the sources, even for files outside of them,
    /// because base's and head's checkouts have different neighbors. A program opens some files by absolute
    /// path, and others relative to its folder. If both are possible, the file gets both names, and neither
    /// file may have changed.
    fn names(&self, path: &Path) -> Vec<String> {
        let [folder, real] = &self.folders;
        let absolute = || path.to_string_lossy().into_owned();
        let Some(tools) = &self.tools else { return vec![relative(path, folder)] };
        if let Some(inside) = self.folders.iter().find_map(|folder| path.strip_prefix(folder).ok()) {
            return vec![inside.to_string_lossy().into_owned()];
        }
        let system = SYSTEM.iter().any(|root| path.starts_with(root) && !real.starts_with(root));
        if system || path.starts_with(tools) {
            vec![absolute()]
        } else {
            vec![absolute(), relative(path, real)]
        }
    }
}

/// The files that were read, with their content, named as [`TracePlace`] determines.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Trace {
    /// The digest of each file, by name; `None` if it was not found.
    files: BTreeMap<String, Option<String>>,
    /// A digest of the file names in each listed folder outside the sources.
    folders: BTreeMap<String, Option<String>>,
}

/// The digests of each side's sources, computed once per run.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// Folders that this run writes to, which are not inputs of a model.
    own: Vec<PathBuf>,
    /// Sources in a folder that belongs to benchgate, because they were checked out there.
    checkouts: Vec<PathBuf>,
    trees: Memo<PathBuf, Result<String, StageFailure>>,
    rests: Memo<PathBuf, String>,
}

/// Extensions of files in a repository that only Python, a compiler or people read. Python's reads are reported,
/// and the compiler's are observed. If they were part of the key, each change of a compiler would export its whole
/// suite again.
const TEXTS: [&str; 36] = [
    "bazel", "bzl", "c", "cc", "cmake", "cpp", "css", "cu", "cxx", "go", "h", "hh", "hpp", "html", "inc",
    "java", "js", "ll", "lock", "md", "mlir", "py", "pyc", "pyi", "rs", "rst", "s", "sh", "td", "test",
    "toml", "ts", "txt", "yaml", "yml", "zig",
];

impl Sources {
    pub(super) fn without(own: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { own: own.into_iter().map(|path| clean(&path)).collect(), ..Self::default() }
    }

    /// Marks folders as sources although they are in a folder that this run writes to.
    pub(super) fn with_checkouts<'a>(self, folders: impl IntoIterator<Item = &'a Path>) -> Self {
        Self { checkouts: folders.into_iter().map(clean).collect(), ..self }
    }

    /// The digest of all files in a source folder.
    pub(super) async fn digest(&self, folder: &Path, digests: &Digests) -> Staged<String> {
        let folder = clean(folder);
        let look = async || {
            let (root, own) = (folder.clone(), self.own.clone());
            let found = aside(move || {
                let skip = |path: &Path| own.iter().any(|own| own == path) || is_made(path);
                Ok(files_below(&root, &skip))
            });
            let mut files = match found.await? {
                Ok(files) => files,
                Err(why) => {
                    return Ok(Err(StageFailure::new(format!("the sources can't be hashed: {why}"))));
                }
            };
            // The `.git` of a checkout that benchgate made, and of each submodule, names a folder of this run.
            let is_git = |name: &str| name == ".git" || name.ends_with("/.git");
            files.iter_mut().filter(|(name, _)| is_git(name)).for_each(|(_, path)| *path = None);
            files.retain(|name, _| !self.is_own(&folder.join(name)) && !is_heard(name));
            let key = add_tree(KeyBuilder::new("sources/1"), &files, digests).await?;
            Ok::<_, PipelineError>(Ok(key.finish()))
        };
        Ok(self.trees.get(folder.clone(), look).await??)
    }

    /// The digest of the tracked files outside `folder`, such as weights beside the suite, which native code can
    /// read without a report. Submodules are known by their commits. Without a repository, no file is tracked.
    pub(super) async fn digest_of_rest(&self, folder: &Path, digests: &Digests) -> Staged<String> {
        let folder = clean(folder);
        let look = async || {
            let folder = folder.canonicalize().unwrap_or_else(|_| folder.clone());
            let repository = match Repository::open(&folder) {
                Ok(repository) => repository,
                Err(GitError::NotARepository(_)) => return Ok(String::new()),
                // For example, another user owns it. An unknown state must not equal an earlier one.
                Err(_) => return Ok(jiff::Timestamp::now().to_string()),
            };
            let unknown =
                |error| StageFailure::new(format!("the repository can't be read: failed to {error}"));
            let tracked = repository.tracked_commits().map_err(unknown)?;
            let mut key = KeyBuilder::new("rest/1");
            for (name, commit) in tracked {
                let path = repository.root().join(&name);
                let kind = name.extension().unwrap_or_default();
                let is_text = TEXTS.iter().any(|text| kind.eq_ignore_ascii_case(text))
                    || is_heard(&name.to_string_lossy());
                if path.starts_with(&folder) || self.is_own(&path) || is_text && commit.is_none() {
                    continue;
                }
                let state = match commit {
                    // The machine may have checked out another commit of the submodule.
                    Some(commit) => {
                        let inner = Repository::open(&path).ok().filter(|inner| inner.root() == path);
                        Some(inner.and_then(|inner| inner.head().ok()).map_or(commit, |head| head.commit))
                    }
                    None => file_state(&path, digests).await,
                };
                key = key.bytes("name", name.as_os_str().as_encoded_bytes());
                key = key.text("is", state.as_deref().unwrap_or("not there"));
            }
            Ok::<_, StageError>(key.finish())
        };
        self.rests.get(folder.clone(), look).await
    }

    /// Returns whether this run writes the file itself.
    pub(super) fn is_own(&self, path: &Path) -> bool {
        let below = |folders: &[PathBuf]| folders.iter().any(|folder| path.starts_with(folder));
        below(&self.own) && !below(&self.checkouts)
    }

    /// The folders of benchgate that are reached through links: where they really are, and their names.
    fn real_folders(&self) -> Vec<(PathBuf, PathBuf)> {
        let folders = self.checkouts.iter().chain(&self.own);
        let real = folders.filter_map(|folder| Some((folder.canonicalize().ok()?, folder.clone())));
        real.filter(|(real, folder)| real != folder).collect()
    }

    /// Records the current state of the files that were read and the folders that were listed.
    pub(super) async fn record(
        &self,
        read: impl Iterator<Item = &PathBuf>,
        listed: impl Iterator<Item = &PathBuf>,
        place: &TracePlace,
        digests: &Digests,
    ) -> Trace {
        let mut trace = Trace { files: BTreeMap::new(), folders: BTreeMap::new() };
        for name in read.flat_map(|path| place.names(path)) {
            let now = file_state(&place.file(&name), digests).await;
            trace.files.insert(name, now);
        }
        for name in listed.flat_map(|path| place.names(path)) {
            let now = self.listing(&place.file(&name));
            trace.folders.insert(name, now);
        }
        trace
    }

    /// Returns whether all files and folders of a trace are unchanged.
    async fn holds(&self, trace: &Trace, place: &TracePlace, digests: &Digests) -> bool {
        for (name, then) in &trace.files {
            if file_state(&place.file(name), digests).await != *then {
                return false;
            }
        }
        trace.folders.iter().all(|(name, then)| self.listing(&place.file(name)) == *then)
    }

    fn listing(&self, folder: &Path) -> Option<String> {
        let items = fs::read_dir(folder).ok()?;
        let mut names: Vec<Vec<u8>> = items
            .filter_map(Result::ok)
            .filter(|item| !self.is_own(&clean(&item.path())))
            .map(|item| item.file_name().as_encoded_bytes().to_vec())
            .collect();
        names.sort();
        Some(names.iter().fold(KeyBuilder::new("listing"), |key, name| key.bytes("name", name)).finish())
    }

    /// The key of the entry that was made for `key` from files in their current state, if there is one.
    pub(super) async fn entry(
        &self,
        cache: &Cache,
        (kind, key): (&str, &str),
        place: &TracePlace,
        digests: &Digests,
    ) -> Option<String> {
        let index = cache.folder(kind, key);
        let items = fs::read_dir(&index).ok()?;
        for path in items.filter_map(Result::ok).map(|item| item.path()) {
            // A trace that can't be read is treated like a missing one.
            let read = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<Trace>(&bytes).ok());
            let Some(trace) = read else { continue };
            if self.holds(&trace, place, digests).await {
                files::mark_used(&index);
                return Some(trace.entry_key(key));
            }
        }
        None
    }
}

impl Trace {
    /// The key of the entry that was made for `key` from these files.
    pub(super) fn entry_key(&self, key: &str) -> String {
        let parts = |mut builder: KeyBuilder, parts: &BTreeMap<String, Option<String>>| {
            for (name, content) in parts {
                builder = builder.text("name", name).text("is", content.as_deref().unwrap_or("not there"));
            }
            builder.bytes("count", &parts.len().to_le_bytes())
        };
        let builder = KeyBuilder::new("traced/1").text("key", key);
        parts(parts(builder, &self.files), &self.folders).finish()
    }

    /// Stores this trace with those that select an entry for `key`.
    pub(super) fn keep(&self, cache: &Cache, kind: &str, key: &str) -> Result<(), PipelineError> {
        let folder = cache.folder(kind, key);
        fs::create_dir_all(&folder).map_err(PipelineError::io("create", &folder))?;
        write_json(&folder.join(format!("{}.json", self.entry_key(key))), self)
    }
}

/// A digest of a file's content, of where a link leads, and of whether the file is executable, because
/// programs can depend on each of these. `None` if the file doesn't exist.
pub(super) async fn file_state(path: &Path, digests: &Digests) -> Option<String> {
    let itself = fs::symlink_metadata(path).ok()?;
    let link = if itself.is_symlink() { fs::read_link(path).ok() } else { None };
    // Write permission is left out, because it differs between a checkout and a working tree.
    let runs = fs::metadata(path).is_ok_and(|target| target.permissions().mode() & 0o111 != 0);
    // A large file that is used by a link too is hashed once.
    let content = digests.readable(&path.canonicalize().unwrap_or_else(|_| path.to_owned())).await;
    let builder = KeyBuilder::new("state/1").bytes("runs", &[u8::from(runs)]);
    let builder = builder.text("content", content.as_deref().unwrap_or("none"));
    Some(builder.bytes("link", link.unwrap_or_default().as_os_str().as_encoded_bytes()).finish())
}

/// Returns whether tools created the folder, as a marker file in it shows: a repository, a virtual
/// environment or a cache.
pub(super) fn is_made(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name == ".git")
        || ["pyvenv.cfg", "CACHEDIR.TAG"].iter().any(|mark| folder.join(mark).is_file())
}

/// Returns whether a path names a library: `libfoo.so.1`.
pub(super) fn is_library(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".so") || name.contains(".so.")
}

fn is_heard(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|ending| HEARD.iter().any(|heard| ending == *heard))
}

/// Converts a path to an absolute one without `.` and `..`, as Python's `abspath` does.
pub(super) fn clean(path: &Path) -> PathBuf {
    without_parents(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
}

/// The relative path from a folder to a path. Both paths must be results of [`clean`].
pub(super) fn relative(path: &Path, folder: &Path) -> String {
    let shared = path.components().zip(folder.components()).take_while(|(a, b)| a == b).count();
    let up = folder.components().skip(shared).map(|_| Component::ParentDir);
    let way: PathBuf = up.chain(path.components().skip(shared)).collect();
    way.to_string_lossy().into_owned()
}

/// Maximum number of files, which is more than a folder of sources or of bitcode has. Hashing a home folder
/// by mistake would take hours, and a link to a parent folder would never end.
const MOST_FILES: usize = 50_000;
const DEEPEST: usize = 48;

/// The reason why a folder can't be identified by the content of its files.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {why}", path = path.display())]
pub(super) struct TreeError {
    path: PathBuf,
    why: String,
}

/// Every file below a folder, by its relative path. Links are followed, because a tool would read their
/// targets. A folder for which `skip` returns true is listed by name, without a path, and not entered.
pub(super) fn files_below(
    folder: &Path,
    skip: &dyn Fn(&Path) -> bool,
) -> Result<BTreeMap<String, Option<PathBuf>>, TreeError> {
    let mut found = BTreeMap::new();
    walk_tree(folder, "", 0, skip, &mut found)?;
    Ok(found)
}

fn walk_tree(
    folder: &Path,
    prefix: &str,
    depth: usize,
    skip: &dyn Fn(&Path) -> bool,
    found: &mut BTreeMap<String, Option<PathBuf>>,
) -> Result<(), TreeError> {
    let wrong = |why: String| TreeError { path: folder.to_owned(), why };
    if depth > DEEPEST {
        return Err(wrong("folders are nested too deeply, or a link leads to its own parent".to_owned()));
    }
    for item in fs::read_dir(folder).map_err(|error| wrong(error.to_string()))? {
        let item = item.map_err(|error| wrong(error.to_string()))?;
        let path = item.path();
        // A name that is not valid UTF-8 is escaped, so that it stays distinct.
        let name = format!("{prefix}{}", item.file_name().as_encoded_bytes().escape_ascii());
        if path.is_dir() {
            if skip(&path) {
                found.insert(name, None);
            } else {
                walk_tree(&path, &format!("{name}/"), depth + 1, skip, found)?;
            }
        } else if path.is_file() {
            found.insert(name, Some(path));
        } else {
            // A dangling link or a socket exists but has no content.
            found.insert(name, None);
        }
        if found.len() > MOST_FILES {
            return Err(wrong(format!("the folder has more than {MOST_FILES} files")));
        }
    }
    Ok(())
}

/// Adds the names and contents of files to a key.
pub(super) async fn add_tree(
    mut key: KeyBuilder,
    files: &BTreeMap<String, Option<PathBuf>>,
    digests: &Digests,
) -> Result<KeyBuilder, PipelineError> {
    for (name, path) in files {
        key = key.text("file", name);
        key = match path {
            Some(path) => key.text("is", &digests.sha256(path).await?),
            None => key.text("is", "not read"),
        };
    }
    Ok(key.bytes("files", &files.len().to_le_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_relative_to_the_sources_also_outside_of_them() {
        let folder = Path::new("/checkout/suite");
        assert_eq!(relative(Path::new("/checkout/suite/a/b.py"), folder), "a/b.py");
        assert_eq!(relative(Path::new("/checkout/lib/x.py"), folder), "../lib/x.py");
        assert_eq!(relative(Path::new("/data/w.bin"), folder), "../../data/w.bin");
        assert_eq!(clean(Path::new("/a/./b/../c")), Path::new("/a/c"));
    }

    #[test]
    fn the_digest_of_a_checkout_in_our_cache_covers_its_files() {
        let cache = tempfile::tempdir().unwrap();
        let tree = cache.path().join("checkouts/1/tree");
        fs::create_dir_all(&tree).unwrap();
        let digest = |content: &str| {
            fs::write(tree.join("model.py"), content).unwrap();
            let sources = Sources::without([cache.path().to_owned()]).with_checkouts([tree.as_path()]);
            let digests = Digests::new(&benchgate_host::process::Cancel::default());
            let digest = async { sources.digest(&tree, &digests).await };
            tokio::runtime::Runtime::new().unwrap().block_on(digest).unwrap()
        };
        assert_ne!(digest("base"), digest("head"));
    }

    #[test]
    fn the_rest_of_a_repository_counts_except_for_texts_and_files_that_git_does_not_track() {
        let folder = tempfile::tempdir().unwrap();
        let repository = git2::Repository::init(folder.path()).unwrap();
        let suite = folder.path().join("suite");
        fs::create_dir_all(&suite).unwrap();
        let digest = || {
            let digests = Digests::new(&benchgate_host::process::Cancel::default());
            let sources = Sources::default();
            let digest = async { sources.digest_of_rest(&suite, &digests).await };
            tokio::runtime::Runtime::new().unwrap().block_on(digest).unwrap()
        };
        let mut index = repository.index().unwrap();
        for name in ["weights.bin", "flag", "compiler.cpp", "suite/inside.bin"] {
            fs::write(folder.path().join(name), "1").unwrap();
            index.add_path(Path::new(name)).unwrap();
        }
        index.write().unwrap();
        let first = digest();
        for name in ["compiler.cpp", "suite/inside.bin", "untracked.bin"] {
            fs::write(folder.path().join(name), "other").unwrap();
            assert_eq!(digest(), first, "{name}");
        }
        fs::write(folder.path().join("weights.bin"), "other").unwrap();
        let second = digest();
        assert_ne!(second, first);
        fs::remove_file(folder.path().join("flag")).unwrap();
        assert_ne!(digest(), second);
    }

    #[test]
    fn where_a_link_leads_and_whether_a_file_may_be_executed_are_part_of_its_state() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let now = |name: &str| {
            let digests = Digests::new(&benchgate_host::process::Cancel::default());
            let path = path(name);
            tokio::runtime::Runtime::new().unwrap().block_on(async { file_state(&path, &digests).await })
        };
        let link = |to: &str| {
            _ = fs::remove_file(path("link"));
            std::os::unix::fs::symlink(to, path("link")).unwrap();
            now("link")
        };
        fs::write(path("a"), "same").unwrap();
        fs::write(path("b"), "same").unwrap();
        assert_eq!(now("a"), now("b"));
        assert_ne!(link("a"), link("b"));
        assert_ne!(link("gone"), link("not there either"));
        assert_eq!(now("nothing"), None);
        let before = now("a");
        fs::set_permissions(path("a"), fs::Permissions::from_mode(0o755)).unwrap();
        assert_ne!(now("a"), before);
        fs::set_permissions(path("b"), fs::Permissions::from_mode(0o444)).unwrap();
        assert_eq!(now("b"), before);
    }

    #[test]
    fn links_to_their_own_parent_are_an_error_and_not_an_endless_walk() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["again", "and-again"] {
            std::os::unix::fs::symlink(folder.path(), folder.path().join(name)).unwrap();
        }
        assert!(files_below(folder.path(), &|_| false).is_err());
    }

    #[test]
    fn a_skipped_folder_and_a_dangling_link_are_still_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/deep")).unwrap();
        fs::create_dir_all(folder.path().join("skipped")).unwrap();
        fs::write(folder.path().join("a/deep/x"), "1").unwrap();
        std::os::unix::fs::symlink("/nowhere", folder.path().join("dangling")).unwrap();
        let found = files_below(folder.path(), &|path| path.ends_with("skipped")).unwrap();
        let names: Vec<(&str, bool)> =
            found.iter().map(|(name, path)| (name.as_str(), path.is_some())).collect();
        assert_eq!(names, [("a/deep/x", true), ("dangling", false), ("skipped", false)]);
    }
}
