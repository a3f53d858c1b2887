//! Installs a tree of files completely or not at all: the tree is staged in a separate folder, then renamed.
//!
//! ```text
//! <cache>/<kind>/<digest>        installed; only ever appears whole
//! <cache>/<kind>/<digest>.part/  staged: tree/, tmp/, pip/ (downloads, kept for the next attempt)
//! <cache>/<kind>/<digest>.lock   held while staging
//! ```

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::ToolchainError;
use super::manifest::ToolManifest;
use crate::files::KeptFolder;
use crate::model::{Event, Progress};
use crate::process::Cancel;

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
