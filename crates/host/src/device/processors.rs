//! Chooses the processors to measure on. Two unpinned workers on two processors vary by 4–33 % from block to
//! block; one pinned worker varies by 0.7–10 %. The placement of the tool matters more than any statistical
//! method.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use super::read_line;

/// The processors a CPU target is pinned to unless the configuration says otherwise: all that benchgate may
/// use except the first one and the siblings that share its core. The excluded processors are left to the
/// host: its interrupts, its services, and benchgate itself. `None` if there is only one.
pub fn default_cpus() -> Option<Vec<usize>> {
    let set = sched_getaffinity(Pid::from_raw(0)).ok()?;
    let allowed: BTreeSet<usize> =
        (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false)).collect();
    let first = *allowed.first()?;
    let siblings = format!("/sys/devices/system/cpu/cpu{first}/topology/thread_siblings_list");
    choose(&allowed, &std::fs::read_to_string(siblings).unwrap_or_default())
}

/// Keeps the calling thread off the measured processors, if others are available.
pub(super) fn stay_with_the_host() {
    let Some(measured) = default_cpus() else { return };
    let Ok(allowed) = sched_getaffinity(Pid::from_raw(0)) else { return };
    let mut host = CpuSet::new();
    for cpu in (0..CpuSet::count()).filter(|cpu| allowed.is_set(*cpu).unwrap_or(false)) {
        if !measured.contains(&cpu) && host.set(cpu).is_err() {
            return;
        }
    }
    // If the system refuses, the thread runs anywhere.
    let _ = sched_setaffinity(Pid::from_raw(0), &host);
}

/// The processors that a process may be pinned to here: all of the machine except those that a container
/// hides.
pub fn pinnable() -> Vec<usize> {
    let tried = std::thread::Builder::new().spawn(|| {
        // A container may hide processors, and the kernel reports that only by refusing to pin a thread to
        // them. So a temporary thread tries each processor.
        let takes = |cpu: usize| {
            let mut one = CpuSet::new();
            one.set(cpu).is_ok() && sched_setaffinity(Pid::from_raw(0), &one).is_ok()
        };
        (0..CpuSet::count()).filter(|cpu| takes(*cpu)).collect()
    });
    tried.map(|thread| thread.join().unwrap_or_default()).unwrap_or_default()
}

/// Formats ascending numbers as `0-3,8`.
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
    // The machine has a single core with two threads: using one thread alone is still better than sharing
    // both.
    let rest: Vec<usize> = allowed.iter().copied().filter(|cpu| *cpu != first).collect();
    (!rest.is_empty()).then_some(rest)
}

/// Parses the kernel's list format: `0-3,8,10-11`.
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

/// The settings of some processors. Settings that the kernel does not show are absent; most virtual machines
/// show none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Governance {
    /// The governors in use, each with its number of processors.
    pub governors: BTreeMap<String, usize>,
    /// True if turbo is on, so that the clock may exceed its nominal value.
    pub boost: Option<bool>,
    /// The memory nodes that the processors belong to.
    pub nodes: Vec<usize>,
}

/// The settings of these processors.
pub fn governance(cpus: &[usize]) -> Governance {
    governance_below(Path::new("/sys/devices/system"), cpus)
}

fn governance_below(system: &Path, cpus: &[usize]) -> Governance {
    let text = |path: &str| read_line(system.join(path));
    let mut governors = BTreeMap::new();
    for cpu in cpus {
        if let Some(governor) = text(&format!("cpu/cpu{cpu}/cpufreq/scaling_governor")) {
            *governors.entry(governor).or_default() += 1;
        }
    }
    let online = parse_list(&text("node/online").unwrap_or_default());
    let holds = |node: &usize| {
        let list = parse_list(&text(&format!("node/node{node}/cpulist")).unwrap_or_default());
        cpus.iter().any(|cpu| list.contains(cpu))
    };
    Governance { governors, boost: boost(system), nodes: online.into_iter().filter(holds).collect() }
}

/// Returns whether turbo is on, so that the clock may exceed its nominal value. The two kinds of frequency
/// drivers report it in different files.
pub(super) fn boost(system: &Path) -> Option<bool> {
    let says = |path: &str, on: &str| read_line(system.join(path)).map(|text| text == on);
    says("cpu/intel_pstate/no_turbo", "0").or_else(|| says("cpu/cpufreq/boost", "1"))
}

#[cfg(test)]
mod tests {
    use std::fs;

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
        let online = parse_list(&fs::read_to_string("/sys/devices/system/cpu/online").unwrap());
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

    fn write(system: &Path, path: &str, text: &str) {
        let path = system.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    #[test]
    fn governors_boost_and_nodes_are_those_of_the_measured_processors() {
        let system = tempfile::tempdir().unwrap();
        for (cpu, governor) in [(0, "powersave"), (1, "performance"), (2, "performance"), (3, "schedutil")] {
            write(system.path(), &format!("cpu/cpu{cpu}/cpufreq/scaling_governor"), governor);
        }
        write(system.path(), "cpu/intel_pstate/no_turbo", "1");
        write(system.path(), "node/online", "0-1");
        write(system.path(), "node/node0/cpulist", "0-1");
        write(system.path(), "node/node1/cpulist", "2-3");
        let seen = governance_below(system.path(), &[1, 2, 3]);
        assert_eq!(seen.governors, BTreeMap::from([("performance".into(), 2), ("schedutil".into(), 1)]));
        assert_eq!(seen.boost, Some(false));
        assert_eq!(seen.nodes, [0, 1]);
        assert_eq!(governance_below(system.path(), &[1]).nodes, [0]);
    }

    #[test]
    fn a_machine_that_shows_nothing_is_not_an_error() {
        let system = tempfile::tempdir().unwrap();
        assert_eq!(governance_below(system.path(), &[0]), Governance::default());
        write(system.path(), "cpu/cpufreq/boost", "1");
        assert_eq!(boost(system.path()), Some(true));
    }
}
