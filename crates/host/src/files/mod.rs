//! L3: files that are written whole or not at all, bounded reads, temporary folders that are cleaned up even
//! after a kill, and locks that name their owner.
//!
//! A kernel lock (`flock`) shows whether an owner is alive: it is released however its holder ends,
//! and it works across containers that share a folder. Process IDs don't: the same ID means
//! different processes in different containers, and after a restart.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use nix::unistd::{getegid, geteuid};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use benchgate_core::model::hex;

mod draft;
mod lock;
mod scratch;

pub use draft::{FileDraft, replace, sweep_drafts, write};
pub use lock::{LockAttempt, LockFile, Owner};
pub use scratch::{KeptFolder, Scratch, folders_in, mark_used, sweep_scratch};

/// Returns `None` for the error that a file or folder does not exist, for example because another process has
/// removed it.
pub fn if_exists<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// Removes `.` and `..` from an absolute path without following links.
pub fn without_parents(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

/// Reads a whole regular file of at most `most` bytes.
///
/// # Errors
/// The file can't be read, is not a regular file, or is larger.
pub fn read_bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let (file, length) = open_bounded(path, most)?;
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default() + 1);
    // Reads one byte more than allowed to detect a file that is longer or grows while it is read.
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(too_large(bytes.len() as u64, most));
    }
    Ok(bytes)
}

/// Opens a regular file of at most `most` bytes, and returns it with its length. Other kinds are refused: a
/// pipe would wait for its writer, and a device such as `/dev/zero` never ends.
///
/// # Errors
/// The file can't be opened, is not a regular file, or is larger.
pub fn open_bounded(path: &Path, most: u64) -> io::Result<(File, u64)> {
    // The kind is checked before opening, because opening a pipe already waits.
    let found = fs::metadata(path)?;
    if !found.is_file() {
        let what = if found.is_dir() { "it is a folder" } else { "it is not a regular file" };
        return Err(io::Error::other(what));
    }
    if found.len() > most {
        return Err(too_large(found.len(), most));
    }
    Ok((File::open(path)?, found.len()))
}

fn too_large(bytes: u64, most: u64) -> io::Error {
    io::Error::new(
        ErrorKind::FileTooLarge,
        format!("it is too large ({} or more; the limit is {})", size(bytes), size(most)),
    )
}

fn size(bytes: u64) -> String {
    match bytes {
        1_048_576.. => format!("{} MiB", bytes >> 20),
        _ => format!("{bytes} bytes"),
    }
}

/// SHA-256 of a file's content, read in pieces.
pub fn sha256_of(path: &Path) -> io::Result<String> {
    sha256_unless(path, || false)
}

/// Hashes a file, but gives up with [`ErrorKind::Interrupted`] as soon as `stopped` returns true: a large
/// file, especially a sparse one, may take too long.
pub fn sha256_unless(path: &Path, stopped: impl Fn() -> bool) -> io::Result<String> {
    const PIECE: usize = 1 << 20;
    let (mut file, mut hash, mut piece) = (File::open(path)?, Sha256::new(), vec![0; PIECE]);
    loop {
        if stopped() {
            return Err(ErrorKind::Interrupted.into());
        }
        match file.read(&mut piece) {
            Ok(0) => return Ok(hex(&hash.finalize())),
            Ok(read) => hash.update(&piece[..read]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The reason why users other than this one and root can change the file with this metadata; `None` if they
/// can't. A group that this process belongs to counts as this user's.
pub fn exposure(metadata: &Metadata) -> Option<String> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let is_own = |id: u32, own: u32| id == own || id == 0;
    if !is_own(metadata.uid(), user) {
        return Some(format!("it belongs to user {}", metadata.uid()));
    }
    // Every link has the same mode; who can replace a link depends on its folder only.
    if metadata.is_symlink() {
        return None;
    }
    if metadata.mode() & 0o002 != 0 {
        return Some("every user can write to it".to_owned());
    }
    (metadata.mode() & 0o020 != 0 && !is_own(metadata.gid(), group))
        .then(|| format!("group {} can write to it", metadata.gid()))
}

/// First line of every git-lfs pointer (specification, version 1).
const FIRST_LINE: &[u8] = b"version https://git-lfs.github.com/spec/";

/// Maximum length of a pointer, from the same specification.
pub const LONGEST_LFS_POINTER: usize = 1024;

/// Returns whether this content is a git-lfs pointer.
pub fn is_lfs_pointer(content: &[u8]) -> bool {
    content.len() < LONGEST_LFS_POINTER && content.starts_with(FIRST_LINE)
}

/// Returns whether a file is a git-lfs pointer; `None` if there is no readable file.
pub fn has_lfs_pointer(path: &Path) -> Option<bool> {
    let found = fs::symlink_metadata(path).ok().filter(Metadata::is_file)?;
    if found.len() >= LONGEST_LFS_POINTER as u64 {
        return Some(false);
    }
    fs::read(path).ok().map(|content| is_lfs_pointer(&content))
}

/// A stamp that changes with every write to a file. The stamp contains the change time, which no program can
/// set (except by moving the clock of the whole machine), so a file with an unchanged stamp was not written
/// to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    pub size: u64,
    inode: u64,
    changed_s: i64,
    changed_ns: i64,
}

impl Stamp {
    /// The current stamp of a file; for a symbolic link, its target's stamp.
    ///
    /// # Errors
    /// The file's metadata can't be read.
    pub fn now(path: &Path) -> io::Result<Self> {
        Ok(Self::in_metadata(&fs::metadata(path)?))
    }

    /// The stamp in metadata that was read before; for the metadata of a link, the stamp of the
    /// link itself.
    pub fn in_metadata(metadata: &Metadata) -> Self {
        Self {
            size: metadata.len(),
            inode: metadata.ino(),
            changed_s: metadata.ctime(),
            changed_ns: metadata.ctime_nsec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_within_the_bound_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, b"12345678").unwrap();
        assert_eq!(read_bounded(&path, 8).unwrap(), b"12345678");
        assert_eq!(read_bounded(&path, 7).unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert_eq!(read_bounded(&folder.path().join("b"), 7).unwrap_err().kind(), ErrorKind::NotFound);
        for other in [folder.path(), Path::new("/dev/zero")] {
            assert!(read_bounded(other, 8).is_err(), "{}", other.display());
        }
    }
}
