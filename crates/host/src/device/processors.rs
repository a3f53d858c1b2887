//! Which processors to measure on. Two workers on two processors, unpinned, spread 4–33 % from block to
//! block; one pinned worker 0.7–10 %. How the tool is started matters more than any statistics.

use std::collections::BTreeSet;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// The processors a CPU target is pinned to unless the configuration says otherwise: all that benchgate may use except
/// the first one and the siblings that share its core. These are left to the host: its interrupts, its services, and
/// benchgate itself. `None` if there is only one.
pub fn default_cpus() -> Option<Vec<usize>> {
    let set = sched_getaffinity(Pid::from_raw(0)).ok()?;
    let allowed: BTreeSet<usize> =
        (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false)).collect();
    let first = *allowed.first()?;
    let siblings = format!("/sys/devices/system/cpu/cpu{first}/topology/thread_siblings_list");
    choose(&allowed, &std::fs::read_to_string(siblings).unwrap_or_default())
}

/// Keeps the calling thread off the processors that are measured on, if there are others.
pub(super) fn stay_with_the_host() {
    let Some(measured) = default_cpus() else { return };
    let Ok(allowed) = sched_getaffinity(Pid::from_raw(0)) else { return };
    let mut host = CpuSet::new();
    for cpu in (0..CpuSet::count()).filter(|cpu| allowed.is_set(*cpu).unwrap_or(false)) {
        if !measured.contains(&cpu) && host.set(cpu).is_err() {
            return;
        }
    }
    // If it is refused, the thread runs anywhere.
    let _ = sched_setaffinity(Pid::from_raw(0), &host);
}

/// The processors that a process may be pinned to here: those of the machine without those that a container hides.
pub fn pinnable() -> Vec<usize> {
    let tried = std::thread::Builder::new().spawn(|| {
        // The kernel refuses a missing processor, so the only way to ask is to try. This thread ends after the query.
        let takes = |cpu: usize| {
            let mut one = CpuSet::new();
            one.set(cpu).is_ok() && sched_setaffinity(Pid::from_raw(0), &one).is_ok()
        };
        (0..CpuSet::count()).filter(|cpu| takes(*cpu)).collect()
    });
    tried.map(|thread| thread.join().unwrap_or_default()).unwrap_or_default()
}

/// `0-3,8` of these numbers, which ascend.
pub fn ranges(cpus: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => runs.push((cpu, cpu)),
        }
    }
    let shown = |(first, last): (usize, usize)| match last - first {
        0 => first.to_string(),
        _ => format!("{first}-{last}"),
    };
    runs.into_iter().map(shown).collect::<Vec<_>>().join(",")
}

fn choose(allowed: &BTreeSet<usize>, siblings_of_first: &str) -> Option<Vec<usize>> {
    let first = *allowed.first()?;
    let siblings = parse_list(siblings_of_first);
    let apart: Vec<usize> =
        allowed.iter().copied().filter(|cpu| *cpu != first && !siblings.contains(cpu)).collect();
    if !apart.is_empty() {
        return Some(apart);
    }
    // One core with two threads: half a core to itself is still better than sharing both halves.
    let rest: Vec<usize> = allowed.iter().copied().filter(|cpu| *cpu != first).collect();
    (!rest.is_empty()).then_some(rest)
}

/// The kernel's list format: `0-3,8,10-11`.
pub(super) fn parse_list(text: &str) -> BTreeSet<usize> {
    text.trim()
        .split(',')
        .filter_map(|part| {
            let (from, to) = part.split_once('-').unwrap_or((part, part));
            Some(from.parse::<usize>().ok()?..=to.parse::<usize>().ok()?)
        })
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(allowed: &str, siblings: &str) -> Option<Vec<usize>> {
        choose(&parse_list(allowed), siblings)
    }

    #[test]
    fn the_first_core_stays_with_the_host() {
        assert_eq!(chosen("0-1", "0\n"), Some(vec![1]));
        assert_eq!(chosen("0-7", "0,4\n"), Some(vec![1, 2, 3, 5, 6, 7]));
        assert_eq!(chosen("2-5", "2-3\n"), Some(vec![4, 5]));
        assert_eq!(chosen("0-3", ""), Some(vec![1, 2, 3]));
    }

    #[test]
    fn the_processors_of_this_machine_can_be_pinned_to_and_no_others() {
        let online = parse_list(&std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap());
        let found = pinnable();
        assert!(!found.is_empty() && found.iter().all(|cpu| online.contains(cpu)), "{found:?}");
        let before = sched_getaffinity(Pid::from_raw(0)).unwrap();
        pinnable();
        assert_eq!(sched_getaffinity(Pid::from_raw(0)).unwrap(), before, "this thread stays where it was");
        assert_eq!(ranges(&[0, 1, 2, 8, 10, 11]), "0-2,8,10-11");
        assert_eq!(ranges(&[]), "");
    }

    #[test]
    fn one_core_is_shared_by_its_threads_and_one_processor_is_not_pinned() {
        assert_eq!(chosen("0-1", "0-1\n"), Some(vec![1]));
        assert_eq!(chosen("3", "3\n"), None);
    }
}
