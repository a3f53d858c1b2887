//! Entries of a cache or a working folder: how large it is, when it was last used, and its removal.

use std::fs::{self, File, FileTimes};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use walkdir::WalkDir;

/// A cached folder that can be created again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptFolder {
    pub path: PathBuf,
    /// Size of its files.
    pub bytes: u64,
    /// When it, or a file directly in it, was last written or marked by [`mark_used`]. Reading doesn't count: many
    /// file systems don't record it, and a search for unused folders reads too.
    pub last_used: SystemTime,
}

impl KeptFolder {
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

    /// Time since its last use; zero for a time in the future.
    pub fn idle(&self, now: SystemTime) -> Duration {
        now.duration_since(self.last_used).unwrap_or_default()
    }

    /// Removes the folder. It is renamed first, so that a partly removed folder is never found under its name.
    ///
    /// # Errors
    /// It can't be renamed or removed.
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

/// Marks a folder as used now. Only its owner can, and only its owner's `clean` would remove it; a read-only cache stays
/// as it is.
pub fn mark_used(folder: &Path) {
    let now = FileTimes::new().set_modified(SystemTime::now());
    drop(File::open(folder).and_then(|folder| folder.set_times(now)));
}

/// The extension of a folder whose removal has begun.
const REMOVED: &str = "removed";

/// Folders directly below `parent`, without those that are being created or removed, as their names show.
pub fn folders_in(parent: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(parent) else { return Vec::new() };
    let mut folders: Vec<PathBuf> = entries
        .flatten()
        // The entry itself is checked: a link to a folder is not one of our folders.
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_none_or(|extension| extension == REMOVED))
        .collect();
    folders.sort();
    folders
}
