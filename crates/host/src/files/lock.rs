//! A lock file that a process holds until it ends for any reason.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use nix::libc::O_NOFOLLOW;

use super::Owner;

/// A lock held by this process. It is released when dropped or when the process dies.
#[derive(Debug)]
pub struct LockFile {
    file: File,
}

/// The outcome of trying to take a lock.
#[derive(Debug)]
pub enum LockAttempt {
    Taken(LockFile),
    /// Another process holds it; its owner, if recorded.
    Held(Option<Owner>),
}

impl LockFile {
    /// Takes the lock if it is free, and creates its file if needed. The folder must exist.
    ///
    /// # Errors
    /// The file can't be opened, or the file system does not support locks.
    pub fn try_take(path: &Path) -> io::Result<LockAttempt> {
        loop {
            let open = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .custom_flags(O_NOFOLLOW)
                .open(path);
            match Self::try_take_open(open?)? {
                // The previous holder removed the file between opening and locking. A lock on a file without a name excludes
                // no other process.
                LockAttempt::Taken(lock) if !lock.is_at(path) => {}
                attempt => return Ok(attempt),
            }
        }
    }

    /// Takes the lock of an open file.
    ///
    /// # Errors
    /// The file system does not support locks.
    pub fn try_take_open(file: File) -> io::Result<LockAttempt> {
        match file.try_lock() {
            Ok(()) => {
                // If the file is not writable, waiting processes just can't name the owner.
                drop(Owner::this_process().record_in(&file));
                Ok(LockAttempt::Taken(Self { file }))
            }
            Err(TryLockError::WouldBlock) => Ok(LockAttempt::Held(Owner::recorded_in(&file))),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn is_at(&self, path: &Path) -> bool {
        let at = std::fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()));
        let held = self.file.metadata().map(|held| (held.dev(), held.ino()));
        matches!((at, held), (Ok(at), Ok(held)) if at == held)
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        // Closing the file is not enough: a child that is between fork and exec holds it open too.
        drop(self.file.unlock());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_lock_says_who_holds_it_and_a_dropped_one_is_free() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let LockAttempt::Taken(held) = LockFile::try_take(&path).unwrap() else {
            panic!("the lock should be free")
        };
        let LockAttempt::Held(owner) = LockFile::try_take(&path).unwrap() else { panic!("it is held") };
        assert_eq!(owner, Some(Owner::this_process()));
        drop(held);
        assert!(matches!(LockFile::try_take(&path).unwrap(), LockAttempt::Taken(_)));
    }

    #[test]
    fn a_dropped_lock_is_free_while_a_child_still_has_its_file_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let LockAttempt::Taken(held) = LockFile::try_take(&path).unwrap() else { panic!("it is free") };
        let _in_a_child = held.file.try_clone().unwrap();
        drop(held);
        assert!(matches!(LockFile::try_take(&path).unwrap(), LockAttempt::Taken(_)));
    }

    #[test]
    fn a_link_in_place_of_a_lock_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
        assert!(LockFile::try_take(&path).is_err());
    }
}
