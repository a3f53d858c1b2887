//! Temporary folders that are removed when dropped. Folders that a killed process left are removed by the
//! next process; a held lock shows that the owner is still alive.
//!
//! Entries of a cache or working folder: their size, their last use, and their removal.

use std::fs::{self, File, FileTimes};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use walkdir::WalkDir;

use super::{LockAttempt, LockFile};

/// File name of the lock in a temporary folder.
const LOCK: &str = "lock";
/// Name of the folder for the owner's files. The folder is next to the lock, so that it can be renamed
/// without the lock.
const CONTENT: &str = "content";

/// Number of attempts to create a folder, because a concurrent clean-up may remove it before it is locked.
const ATTEMPTS: usize = 64;

/// A temporary folder of this process. Dropping it removes it.
#[derive(Debug)]
pub struct Scratch {
    content: PathBuf,
    /// Declared first, so that the folder is removed before its lock is released and no other process sees it
    /// unlocked.
    _folder: tempfile::TempDir,
    _lock: Option<LockFile>,
}

impl Scratch {
    /// Creates a temporary folder whose name begins with `prefix`, and `parent` if it is missing.
    ///
    /// # Errors
    /// The folder can't be created.
    pub fn new_in(parent: &Path, prefix: &str) -> io::Result<Self> {
        fs::create_dir_all(parent)?;
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let folder = tempfile::Builder::new().prefix(prefix).tempdir_in(parent)?;
            match Self::claim(folder) {
                Ok(Some(scratch)) => return Ok(scratch),
                Ok(None) => {}
                // A clean-up removed the folder before it was locked.
                Err(error) if error.kind() == io::ErrorKind::NotFound => last = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(last.unwrap_or_else(|| io::ErrorKind::ResourceBusy.into()))
    }

    fn claim(folder: tempfile::TempDir) -> io::Result<Option<Self>> {
        let lock = match LockFile::try_take(&folder.path().join(LOCK)) {
            Ok(LockAttempt::Taken(lock)) => Some(lock),
            Ok(LockAttempt::Held(_)) => return Ok(None),
            Err(error) if knows_no_locks(&error) => None,
            Err(error) => return Err(error),
        };
        let content = folder.path().join(CONTENT);
        // Created with normal permissions, because it may become a cache entry that others read.
        fs::create_dir(&content)?;
        Ok(Some(Self { content, _folder: folder, _lock: lock }))
    }

    /// The folder for the owner's files.
    pub fn path(&self) -> &Path {
        &self.content
    }
}

/// Returns whether the file system does not support locks. In that case no clean-up can take a lock either,
/// so it never removes a folder in use.
fn knows_no_locks(error: &io::Error) -> bool {
    use nix::libc::{ENOLCK, ENOSYS, EOPNOTSUPP};
    matches!(error.raw_os_error(), Some(ENOLCK | ENOSYS | EOPNOTSUPP))
}

/// Removes the temporary folders with this prefix that dead processes of this user left in `parent`. Errors
/// are ignored: several clean-ups may run at once, and the next one tries again.
pub fn sweep_scratch(parent: &Path, prefix: &str) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let is_named = entry.file_name().to_string_lossy().starts_with(prefix);
        if is_named && is_own(&path, fs::Metadata::is_dir) {
            // If the lock is taken, its holder is alive or is already cleaning up.
            if let Ok(LockAttempt::Taken(_lock)) = LockFile::try_take(&path.join(LOCK)) {
                drop(fs::remove_dir_all(&path));
            }
        }
    }
}

/// Returns whether the path is of the given kind and belongs to this user; shared folders also contain other
/// users' files.
pub(super) fn is_own(path: &Path, kind: impl Fn(&fs::Metadata) -> bool) -> bool {
    fs::symlink_metadata(path)
        .is_ok_and(|found| kind(&found) && found.uid() == nix::unistd::geteuid().as_raw())
}

/// A cached folder, which can be recreated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptFolder {
    pub path: PathBuf,
    /// Total size of its files.
    pub bytes: u64,
    /// The time when the folder, or a file directly in it, was last written or marked by
    /// [`mark_used`]. Reading doesn't count: many file systems don't record it, and a search for
    /// unused folders also reads.
    pub last_used: SystemTime,
}

impl KeptFolder {
    /// Reads a folder's size and last use.
    ///
    /// # Errors
    /// The folder, or something in it, can't be read.
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut kept =
            Self { path: path.to_owned(), bytes: 0, last_used: fs::symlink_metadata(path)?.modified()? };
        for entry in WalkDir::new(path).min_depth(1) {
            let entry = entry?;
            let metadata = entry.metadata()?;
            if !metadata.is_file() {
                continue;
            }
            kept.bytes += metadata.len();
            if entry.depth() == 1 {
                kept.last_used = kept.last_used.max(metadata.modified()?);
            }
        }
        Ok(kept)
    }

    /// Time since the last use; zero if that is in the future.
    pub fn idle(&self, now: SystemTime) -> Duration {
        now.duration_since(self.last_used).unwrap_or_default()
    }

    /// Removes the folder. It is renamed first, so that no process finds a partly removed folder under its
    /// name.
    ///
    /// # Errors
    /// The folder can't be renamed or removed.
    pub fn remove(&self) -> io::Result<()> {
        let doomed = self.path.with_extension(REMOVED);
        match fs::rename(&self.path, &doomed) {
            // Another process removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            renamed => renamed?,
        }
        fs::remove_dir_all(&doomed)
    }
}

/// Marks a folder as used now. Errors are ignored: only the folder's owner can mark it, and only the owner's
/// `clean` would remove it, so a read-only cache is safe.
pub fn mark_used(folder: &Path) {
    let now = FileTimes::new().set_modified(SystemTime::now());
    drop(File::open(folder).and_then(|folder| folder.set_times(now)));
}

/// The extension of a folder whose removal has begun.
const REMOVED: &str = "removed";

/// Folders directly below `parent`, except those whose names show that they are being created or removed.
pub fn folders_in(parent: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(parent) else { return Vec::new() };
    let mut folders: Vec<PathBuf> = entries
        .flatten()
        // Checks the entry itself, because a link to a folder is not one of our folders.
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_none_or(|extension| extension == REMOVED))
        .collect();
    folders.sort();
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_in_use_survives_a_clean_up_whatever_number_its_owner_has_here() {
        let parent = tempfile::tempdir().unwrap();
        let used = Scratch::new_in(parent.path(), "x-").unwrap();
        sweep_scratch(parent.path(), "x-");
        assert!(used.path().is_dir());
        drop(used);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_dead_process_left_is_removed_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        for left in ["x-whole/content", "x-cut", "y-another"] {
            fs::create_dir_all(parent.path().join(left)).unwrap();
        }
        fs::write(parent.path().join("x-whole/lock"), "").unwrap();
        fs::write(parent.path().join("x-file"), "").unwrap();
        sweep_scratch(parent.path(), "x-");
        let mut left: Vec<_> =
            fs::read_dir(parent.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["x-file", "y-another"]);
    }

    #[test]
    fn many_may_make_folders_and_clean_up_at_once() {
        let parent = tempfile::tempdir().unwrap();
        for number in 0..50 {
            fs::create_dir_all(parent.path().join(format!("x-{number}/content/deep"))).unwrap();
        }
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        sweep_scratch(parent.path(), "x-");
                        let mine = Scratch::new_in(parent.path(), "x-").unwrap();
                        sweep_scratch(parent.path(), "x-");
                        fs::write(mine.path().join("a"), "mine").unwrap();
                        assert_eq!(fs::read_to_string(mine.path().join("a")).unwrap(), "mine");
                    }
                });
            }
        });
        sweep_scratch(parent.path(), "x-");
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
