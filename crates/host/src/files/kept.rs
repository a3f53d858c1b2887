//! Entries of a cache or working folder: their size, their last use, and their removal.

use std::fs::{self, File, FileTimes};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use walkdir::WalkDir;

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
