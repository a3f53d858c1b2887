//! L3: the machine that measures: its fingerprint, its load, its processors and GPUs, what happens on them
//! while a process is measured, and the lock that prevents two simultaneous measurements.

mod busy;
mod clocks;
mod gpu;
mod host_lock;
mod processors;
mod testbed;
mod watch;

use std::path::Path;

use nix::sys::statvfs::statvfs;

pub use busy::{Usage, foreign, load_average, usage_now};
pub use clocks::{ClockHold, Leftover, hold_clocks, leftover_locks, undo_leftovers};
pub use gpu::{Choice, Gpu, GpuReading, Gpus, Limit, accelerator, choose};
pub use host_lock::{DeviceError, HostLock, lock, lock_host, measuring_now};
pub use processors::{Governance, default_cpus, governance, pinnable, ranges};
pub use testbed::{testbed, with_fact};
pub use watch::{GpuSeen, Seen, Watch, Watched};

/// Bytes that this user may still write to the file system of `folder`. `None` if the file system
/// does not report them.
pub fn free_bytes(folder: &Path) -> Option<u64> {
    let answer = statvfs(folder).ok()?;
    Some(answer.blocks_available().saturating_mul(answer.fragment_size()))
}

/// The first line of a file, trimmed. `None` if the file does not exist or the line is empty.
pub(super) fn read_line(path: impl AsRef<Path>) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
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
