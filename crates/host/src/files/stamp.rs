//! Whether a file was written to.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// A stamp that changes with any write to a file. The change time can't be set by a program (only moved, with the
/// clock of the whole machine), so a file with an unchanged stamp was not written to since.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    pub size: u64,
    inode: u64,
    changed_s: i64,
    changed_ns: i64,
}

impl Stamp {
    /// The current stamp of a file; for a link, that of its target.
    ///
    /// # Errors
    /// Its metadata can't be read.
    pub fn now(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        Ok(Self {
            size: metadata.len(),
            inode: metadata.ino(),
            changed_s: metadata.ctime(),
            changed_ns: metadata.ctime_nsec(),
        })
    }
}
