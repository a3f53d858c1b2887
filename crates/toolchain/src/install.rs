//! Installs a tree of files completely or not at all: the tree is staged in a separate folder, then renamed.
//!
//! ```text
//! <cache>/<kind>/<digest>        installed; only ever appears whole
//! <cache>/<kind>/<digest>.part/  staged: tree/, tmp/, pip/ (downloads, kept for the next attempt)
//! <cache>/<kind>/<digest>.lock   held while staging
//! ```
//!
//! Tools that were verified against a pin, however they were installed.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use benchgate_config::Pin;
use benchgate_core::model::{Event, Progress, Toolchain};
use benchgate_host::files::KeptFolder;
use benchgate_host::process::{self, Cancel, Command, Exit, Finished};

use super::ToolchainError;
use super::manifest::{ToolManifest, digest_of_files};

/// Interval at which a waiting process checks whether another one has finished the installation.
const POLL: Duration = Duration::from_millis(100);

/// Age from which an untouched staging folder belongs to an abandoned installation.
const STALE: Duration = Duration::from_secs(7 * 24 * 3600);

/// The folder of one installed tree, and the folder and lock that are used to install it.
pub(super) struct ToolPlace {
    /// The final folder.
    pub(super) root: PathBuf,
    part: PathBuf,
}

/// The exclusive right to stage a tree. The right ends when this value is dropped or the process
/// ends.
struct InstallTurn {
    _lock: File,
}

impl ToolPlace {
    pub(super) fn new(cache: &Path, kind: &str, digest: &str) -> Self {
        let root = cache.join(kind).join(digest);
        Self { part: root.with_extension("part"), root }
    }

    pub(super) fn is_installed(&self) -> bool {
        self.root.exists()
    }

    pub(super) fn tree(&self) -> PathBuf {
        self.part.join("tree")
    }

    /// The folder for temporary files and downloads, which are not installed.
    pub(super) fn work(&self) -> &Path {
        &self.part
    }

    /// Installs the tree that `staging` creates, unless it is installed already. If several processes want
    /// the same tree, only one installs it.
    pub(super) async fn install(
        &self,
        staging: impl Future<Output = Result<(), ToolchainError>>,
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<(), ToolchainError> {
        let turn = self.take_turn(progress, cancel).await?;
        if self.is_installed() {
            return Ok(());
        }
        let staged = match self.begin(&turn) {
            Ok(()) => staging.await,
            begun => begun,
        };
        match staged {
            Ok(()) => {
                self.commit(turn)?;
                self.mention_size(progress);
                Ok(())
            }
            Err(error) => {
                self.abandon(&error);
                Err(error)
            }
        }
    }

    /// Reports the installed size if the tree is large.
    fn mention_size(&self, progress: &dyn Progress) {
        const LARGE: u64 = 1_000_000_000;
        let Ok(kept) = KeptFolder::read(&self.root) else { return };
        if kept.bytes >= LARGE {
            let gigabytes = kept.bytes as f64 / 1e9;
            let place = kept.path.display();
            progress.on(Event::Note(&format!(
                "{place} takes {gigabytes:.1} GB; `benchgate clean` removes unused files"
            )));
        }
    }

    /// Waits for the installation lock, and reports that it waits.
    async fn take_turn(
        &self,
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<InstallTurn, ToolchainError> {
        let kind = self.root.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(kind).map_err(ToolchainError::io("make", kind))?;
        sweep(kind);
        let path = self.root.with_extension("lock");
        let open = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let lock = open.map_err(ToolchainError::io("open", &path))?;
        let mut announced = false;
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(InstallTurn { _lock: lock }),
                Err(TryLockError::Error(source)) => return Err(ToolchainError::io("lock", &path)(source)),
                Err(TryLockError::WouldBlock) => {}
            }
            if !announced {
                announced = true;
                progress.on(Event::Note(
                    "the same tools are already being installed or downloaded, for the other side or by another benchgate process; waiting",
                ));
            }
            tokio::select! {
                () = tokio::time::sleep(POLL) => {}
                () = cancel.requested() => return Err(ToolchainError::Interrupted),
            }
        }
    }

    /// Creates an empty tree to fill. Downloads of a killed attempt are kept, but its partial tree is
    /// removed.
    fn begin(&self, _turn: &InstallTurn) -> Result<(), ToolchainError> {
        self.discard_tree();
        let tree = self.tree();
        fs::create_dir_all(&tree).map_err(ToolchainError::io("make", &tree))
    }

    /// Renames the staged tree to its final place.
    fn commit(&self, _turn: InstallTurn) -> Result<(), ToolchainError> {
        fs::rename(self.tree(), &self.root).map_err(ToolchainError::io("rename to", &self.root))?;
        remove(&self.part);
        Ok(())
    }

    /// Frees the disk space of a failed attempt. Downloads are kept for the next attempt, unless the disk is
    /// full.
    fn abandon(&self, why: &ToolchainError) {
        if matches!(why, ToolchainError::DiskFull { .. }) {
            remove(&self.part);
        } else {
            self.discard_tree();
        }
    }

    fn discard_tree(&self) {
        remove(&self.tree());
        remove(&self.part.join("tmp"));
    }
}

/// Removes a folder that benchgate created. Errors are ignored, because the next clean-up tries again.
fn remove(folder: &Path) {
    drop(fs::remove_dir_all(folder));
}

/// Removes abandoned staging folders.
fn sweep(kind: &Path) {
    let Ok(entries) = fs::read_dir(kind) else { return };
    for part in entries.flatten().map(|entry| entry.path()) {
        let is_part = part.extension().is_some_and(|extension| extension == "part");
        let modified = fs::metadata(&part).and_then(|metadata| metadata.modified());
        let age = modified.ok().and_then(|then| SystemTime::now().duration_since(then).ok());
        if !is_part || age.is_none_or(|age| age < STALE) {
            continue;
        }
        // The lock is held if an installation is still in progress there.
        if let Ok(lock) = File::open(part.with_extension("lock"))
            && lock.try_lock().is_ok()
        {
            remove(&part);
        }
    }
}

/// Removes an installed tree, unless another benchgate is installing it. Returns whether the tree is gone.
pub fn remove_tree(tree: &KeptFolder) -> Result<bool, ToolchainError> {
    let lock = tree.path.with_extension("lock");
    let turn = match File::open(&lock) {
        Ok(file) => Some(file),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(ToolchainError::io("open", &lock)(error)),
    };
    if turn.as_ref().is_some_and(|lock| lock.try_lock().is_err()) {
        return Ok(false);
    }
    tree.remove().map_err(ToolchainError::io("remove", &tree.path))?;
    Ok(true)
}

/// An installed tree, for `tools list`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledTree {
    pub what: String,
    pub compiler_commit: Option<String>,
    pub root: PathBuf,
    /// Size of the verified files.
    pub bytes: u64,
    /// The reason why the tree can't be read, if any.
    pub problem: Option<String>,
}

/// All trees that are installed in a cache.
pub fn list(cache: &Path) -> Vec<InstalledTree> {
    let mut trees = Vec::new();
    for kind in ["tools", "python"] {
        let Ok(entries) = fs::read_dir(cache.join(kind)) else { continue };
        for root in entries.flatten().map(|entry| entry.path()) {
            // The names of installed trees are digests and have no dot; those of locks, staging folders and
            // bootstraps do.
            let is_tree = root.extension().is_none() && root.is_dir();
            if !is_tree {
                continue;
            }
            let (what, compiler_commit, bytes, problem) = match ToolManifest::read(&root) {
                Ok(Some(manifest)) => {
                    (manifest.what.clone(), manifest.compiler_commit.clone(), manifest.size(), None)
                }
                Ok(None) => continue,
                Err(error) => ("unknown".to_owned(), None, 0, Some(error.to_string())),
            };
            trees.push(InstalledTree { what, compiler_commit, root, bytes, problem });
        }
    }
    trees.sort_by(|a, b| (&a.what, &a.root).cmp(&(&b.what, &b.root)));
    trees
}

/// Time limit for `--version`, which is long because the compiler first loads a library of 300 MB.
const VERSION_TIMEOUT: Duration = Duration::from_secs(120);

/// Folder of the tools in the compiler's wheel.
pub(super) const COMPILER_FOLDER: &str = "iree/compiler/_mlir_libs";
pub(super) const RUNTIME_FOLDER: &str = "iree/_runtime_libs";

/// Verified tools: their commits equal the pin's, and their files match the lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    pub identity: Toolchain,
    pub root: PathBuf,
    /// Digest of the content. Tools with equal digests are identical.
    pub digest: String,
    pub iree_compile: PathBuf,
    pub iree_run_module: PathBuf,
    pub iree_benchmark_module: PathBuf,
    pub iree_dump_module: PathBuf,
}

impl Installed {
    /// The program that reads profiles. `None` for older versions, which don't have it.
    pub fn iree_profile(&self) -> Option<PathBuf> {
        self.runtime_tool("iree-profile")
    }

    /// The tool that times captured calls. `None` for older versions, which don't have it.
    pub fn iree_benchmark_replay(&self) -> Option<PathBuf> {
        self.runtime_tool("iree-benchmark-replay")
    }

    fn runtime_tool(&self, name: &str) -> Option<PathBuf> {
        Some(self.iree_benchmark_module.with_file_name(name)).filter(|path| path.is_file())
    }

    /// Verifies the runtime tools of a bundle (`iree-run-module` and `iree-benchmark-module`), which contains
    /// no compiler. The bundle states their commits.
    ///
    /// # Errors
    /// The commits differ from the pin's, or a tool can't be read.
    pub async fn runtime_alone(
        pin: &Pin,
        identity: Toolchain,
        root: &Path,
        [iree_run_module, iree_benchmark_module]: [PathBuf; 2],
    ) -> Result<Self, ToolchainError> {
        compare_commits(&pin.commit, root, &identity.compiler_commit, &identity.runtime_commit)?;
        let files = [iree_run_module.clone(), iree_benchmark_module.clone()];
        let digest = blocking(root, move || digest_of_files(&files)).await?;
        Ok(Self {
            identity,
            root: root.to_owned(),
            digest,
            // A bundle need not contain these two tools; starting a missing one reports an error.
            iree_compile: iree_run_module.with_file_name("iree-compile"),
            iree_dump_module: iree_run_module.with_file_name("iree-dump-module"),
            iree_run_module,
            iree_benchmark_module,
        })
    }
}

/// Runs slow file operations outside the runtime's threads.
pub(super) async fn blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> Result<T, ToolchainError> + Send + 'static,
) -> Result<T, ToolchainError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(panic) => Err(ToolchainError::io("hash", path)(std::io::Error::other(panic))),
    }
}

pub(super) fn compare_commits(
    expected: &str,
    root: &Path,
    compiler: &str,
    runtime: &str,
) -> Result<(), ToolchainError> {
    for (tool, found) in [("compiler", compiler), ("runtime", runtime)] {
        // The commit is empty if the tool does not report one.
        if found.is_empty() || found != expected {
            return Err(ToolchainError::WrongCommit {
                tool,
                root: root.to_owned(),
                expected: if expected.is_empty() { "one".to_owned() } else { expected.to_owned() },
                found: if found.is_empty() { "none".to_owned() } else { found.to_owned() },
            });
        }
    }
    Ok(())
}

/// The compiler's commit, as printed by `iree-compile --version`.
pub(super) async fn compiler_commit(iree_compile: &Path, cancel: &Cancel) -> Result<String, ToolchainError> {
    let command = Command::new(iree_compile, VERSION_TIMEOUT).arg("--version").capture_stdout();
    let finished = succeeded(&command, cancel).await?;
    Ok(parse_compiler_commit(&String::from_utf8_lossy(&finished.stdout)).unwrap_or_default())
}

/// Runs a program, and returns an error if it fails.
pub(super) async fn succeeded(command: &Command, cancel: &Cancel) -> Result<Finished, ToolchainError> {
    let finished = process::run(command, cancel).await?;
    match finished.exit {
        Exit::Success => Ok(finished),
        Exit::Interrupted => Err(ToolchainError::Interrupted),
        exit => {
            let detail = finished.stderr_tail.lines().next_back().unwrap_or("no message").to_owned();
            Err(ToolchainError::Tool { program: command.program.clone(), exit, detail })
        }
    }
}

/// The commit, from a line like `  IREE compiler version 3.13.0rc20261016 @ 89ece87b…`.
fn parse_compiler_commit(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.contains("IREE compiler version"))?;
    commit_at_start(line.split_once('@')?.1.trim_start())
}

/// The commit in the runtime's own version file.
pub(super) fn runtime_commit(version_py: &Path) -> Result<String, ToolchainError> {
    let text = fs::read_to_string(version_py).map_err(ToolchainError::io("read", version_py))?;
    Ok(parse_runtime_commit(&text).unwrap_or_default())
}

/// The commit, from a line like `REVISIONS = {"IREE": "89ece87b…"}`.
fn parse_runtime_commit(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("REVISIONS"))?;
    let value = line.split_once("\"IREE\"").or_else(|| line.split_once("'IREE'"))?.1;
    commit_at_start(value.trim_start_matches([':', ' ', '"', '\'']))
}

/// The 40 hexadecimal digits with which a text starts.
fn commit_at_start(text: &str) -> Option<String> {
    let commit = text.get(..40)?;
    commit.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| commit.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "89ece87b89852100c0a4ac3d515e14842d090967";

    #[test]
    fn commits_are_read_where_the_tools_print_them() {
        let printed = format!(
            "IREE (https://iree.dev):\n  IREE compiler version 3.13.0rc20261016 @ {COMMIT}\n  LLVM version 24.0.0git\n"
        );
        assert_eq!(parse_compiler_commit(&printed).as_deref(), Some(COMMIT));
        let file = format!("VERSION = \"3.13.0rc20261016\"\nREVISIONS = {{\"IREE\": \"{COMMIT}\"}}\n");
        assert_eq!(parse_runtime_commit(&file).as_deref(), Some(COMMIT));
        assert_eq!(parse_compiler_commit("IREE compiler version 3.13 @ (unknown)"), None);
        assert_eq!(parse_runtime_commit("REVISIONS = {}"), None);
    }
}
