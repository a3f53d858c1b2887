//! L3: files that are written whole or not at all, bounded reads, temporary folders that are cleaned up even
//! after a kill, and locks that name their owner.
//!
//! A kernel lock (`flock`) shows whether an owner is alive: it is released however its holder ends,
//! and it works across containers that share a folder. Process IDs don't: the same ID means
//! different processes in different containers, and after a restart.

use std::io;

mod bounded;
mod draft;
mod lock;
mod scratch;

pub use bounded::{
    LONGEST_LFS_POINTER, Stamp, exposure, has_lfs_pointer, is_lfs_pointer, open_bounded, read_bounded,
    sha256_of, sha256_unless,
};
pub use draft::{FileDraft, replace, sweep_drafts, write};
pub use lock::{LockAttempt, LockFile, Owner};
pub use scratch::{KeptFolder, Scratch, folders_in, mark_used, sweep_scratch};

/// Returns `None` for the error that a file or folder does not exist, for example because another process has
/// removed it.
pub fn if_exists<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}
