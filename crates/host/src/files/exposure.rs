//! Whether other users of the machine can change a file.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use nix::unistd::{getegid, geteuid};

/// The reason why users other than this one and root can change the file of this metadata; `None` if they can't. A
/// group that this process runs in is its own.
pub fn exposure(metadata: &Metadata) -> Option<String> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let is_own = |id: u32, own: u32| id == own || id == 0;
    if !is_own(metadata.uid(), user) {
        return Some(format!("it belongs to user {}", metadata.uid()));
    }
    // A link has the mode of every link; only its folder decides who replaces it.
    if metadata.is_symlink() {
        return None;
    }
    if metadata.mode() & 0o002 != 0 {
        return Some("every user can write to it".to_owned());
    }
    (metadata.mode() & 0o020 != 0 && !is_own(metadata.gid(), group))
        .then(|| format!("group {} can write to it", metadata.gid()))
}
