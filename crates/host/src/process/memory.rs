//! Kernel counters of memory: which processes were killed when it ran out.

use std::path::Path;

use super::cgroup;

/// How many processes the kernel has killed for lack of memory: in benchgate's own cgroup and below, where that is
/// counted, else on the whole machine. `None` if it does not report them.
pub(super) fn out_of_memory_kills() -> Option<u64> {
    let of_cgroup = || {
        let folder = cgroup::own()?;
        count(&std::fs::read_to_string(folder.join("memory.events")).ok()?)
    };
    of_cgroup().or_else(|| count(&std::fs::read_to_string(Path::new("/proc/vmstat")).ok()?))
}

/// The line `oom_kill N`, which `memory.events` and `/proc/vmstat` share.
fn count(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_are_read_where_they_are_counted() {
        assert_eq!(count("low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n"), Some(2));
        assert_eq!(count("oom 3\n"), None);
        assert!(out_of_memory_kills().is_some());
    }
}
