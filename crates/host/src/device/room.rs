//! Free space on a disk.

use std::path::Path;

use nix::sys::statvfs::statvfs;

/// Bytes that this user may still write where `folder` is. `None` if the file system does not report it.
pub fn free_bytes(folder: &Path) -> Option<u64> {
    let answer = statvfs(folder).ok()?;
    Some(answer.blocks_available().saturating_mul(answer.fragment_size()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_has_room_and_no_folder_has_none() {
        assert!(free_bytes(Path::new("/")).is_some_and(|free| free > 0));
        assert_eq!(free_bytes(Path::new("/no/such/folder")), None);
    }
}
