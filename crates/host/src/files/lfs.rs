//! Pointers of git-lfs, which replace the content of files that were not fetched.

use std::fs;
use std::path::Path;

/// First line of every pointer file (git-lfs specification, version 1).
const FIRST_LINE: &[u8] = b"version https://git-lfs.github.com/spec/";

/// Limit of the same specification.
pub const LONGEST_LFS_POINTER: usize = 1024;

/// Whether these are the bytes of a pointer.
pub fn is_lfs_pointer(content: &[u8]) -> bool {
    content.len() < LONGEST_LFS_POINTER && content.starts_with(FIRST_LINE)
}

/// Whether a file is a pointer; `None` if there is no file that can be read.
pub fn has_lfs_pointer(path: &Path) -> Option<bool> {
    let found = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    if found.len() >= LONGEST_LFS_POINTER as u64 {
        return Some(false);
    }
    fs::read(path).ok().map(|content| is_lfs_pointer(&content))
}
