//! A lock file that a process holds until it ends, however it ends. The file names its owner.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::{fmt, io};

use nix::libc::O_NOFOLLOW;
use serde::{Deserialize, Serialize};

/// A lock held by this process. The lock is released when this value is dropped or the process dies.
#[derive(Debug)]
pub struct LockFile {
    file: File,
}

/// The outcome of trying to take a lock.
#[derive(Debug)]
pub enum LockAttempt {
    Taken(LockFile),
    /// Another process holds the lock. Contains its owner, if recorded.
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
                // The previous holder removed the file between our opening and locking it. A lock on a
                // removed file excludes no other process.
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
                // If the file is not writable, other processes can't name the owner while they wait; the lock
                // still holds.
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
        // Closing the file is not enough, because a child between fork and exec also holds it open.
        drop(self.file.unlock());
    }
}

/// Maximum length of a record, because the file may belong to another user, who can write anything into it.
const RECORD_LIMIT: usize = 1024;

/// Identifies a process uniquely. A process ID alone is not unique across containers and restarts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Owner {
    pub host: String,
    /// The kernel's boot id.
    pub boot: String,
    pub pid_namespace: String,
    pub pid: u32,
    /// Start time of the process in ticks since boot.
    pub started: u64,
}

impl Owner {
    /// The current process.
    pub fn this_process() -> Self {
        let text = |path: &str| std::fs::read_to_string(path).map(|text| text.trim().to_owned());
        let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        // Values that the kernel does not show stay empty; empty values never compare as equal.
        Self {
            host: text("/proc/sys/kernel/hostname").unwrap_or_default(),
            boot: text("/proc/sys/kernel/random/boot_id").unwrap_or_default(),
            pid_namespace: namespace.to_string_lossy().into_owned(),
            pid: std::process::id(),
            started: text("/proc/self/stat").ok().as_deref().and_then(start_time).unwrap_or_default(),
        }
    }

    /// Returns whether both owners run under the same kernel, possibly in different containers, and therefore
    /// share the processors.
    pub fn shares_the_machine_with(&self, other: &Self) -> bool {
        !self.boot.is_empty() && self.boot == other.boot
    }

    /// Writes this record to a lock file, replacing an older one.
    fn record_in(&self, file: &File) -> io::Result<()> {
        let text = serde_json::to_vec(self).map_err(io::Error::other)?;
        file.set_len(0)?;
        file.write_all_at(&text, 0)
    }

    /// Reads the owner from a lock file. `None` if the holder has not written it yet or could not write it.
    pub fn recorded_in(file: &File) -> Option<Self> {
        let mut buffer = vec![0; RECORD_LIMIT];
        let length = file.read_at(&mut buffer, 0).ok()?;
        serde_json::from_slice(&buffer[..length]).ok()
    }
}

/// Describes the owner as seen from this process: `process 4711`, `process 17 in another container
/// (runner-2)`, `process 17 on gpu-3`.
impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let here = Self::this_process();
        // The host name is untrusted, because other users may write to the file, and it is printed to a
        // terminal.
        let host: String =
            self.host.chars().filter(|c| c.is_ascii_alphanumeric() || "-._".contains(*c)).collect();
        write!(f, "process {}", self.pid)?;
        if !self.shares_the_machine_with(&here) {
            write!(f, " on {host}")
        } else if self.pid_namespace != here.pid_namespace {
            write!(f, " in another container ({host})")
        } else {
            Ok(())
        }
    }
}

/// The start time, which is the 22nd field of `/proc/PID/stat`. The program's name may contain parentheses,
/// so fields are counted after the last one.
fn start_time(stat: &str) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
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

    #[test]
    fn a_process_number_of_another_container_or_machine_is_not_taken_for_one_here() {
        let here = Owner::this_process();
        assert!(here.started > 0);
        assert_eq!(here.to_string(), format!("process {}", here.pid));
        let host = "runner-2\u{1b}[2J".to_owned();
        let container = Owner { pid_namespace: "pid:[1]".into(), host: host.clone(), ..here.clone() };
        assert!(container.shares_the_machine_with(&here));
        assert_eq!(container.to_string(), format!("process {} in another container (runner-22J)", here.pid));
        let elsewhere = Owner { boot: "another".into(), host, ..here.clone() };
        assert!(!elsewhere.shares_the_machine_with(&here));
        assert_eq!(elsewhere.to_string(), format!("process {} on runner-22J", here.pid));
    }

    #[test]
    fn a_record_is_read_back_and_garbage_is_not() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(Owner::recorded_in(&file), None);
        let owner = Owner::this_process();
        file.write_all_at(&[b'x'; 4000], 0).unwrap();
        assert_eq!(Owner::recorded_in(&file), None);
        owner.record_in(&file).unwrap();
        assert_eq!(Owner::recorded_in(&file), Some(owner));
    }
}
