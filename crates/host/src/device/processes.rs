//! Other programs on this machine: distinguishes our own processes from those that may disturb a measurement.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use benchgate_core::model::ForeignProcess;

use super::read_line;

fn process(pid: u32) -> ForeignProcess {
    ForeignProcess { pid, name: read_line(format!("/proc/{pid}/comm")) }
}

/// The fields of `/proc/PID/stat` that are needed here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    running: bool,
    parent: u32,
    /// Processor ticks used since the process's start.
    ticks: u64,
    /// Start time in ticks since boot. Together with the process ID, this identifies a process
    /// uniquely.
    started: u64,
    /// The processor on which the process ran last.
    processor: usize,
}

impl Stat {
    fn read(proc: &Path, pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(proc.join(pid.to_string()).join("stat")).ok()?)
    }

    /// The name in parentheses may itself contain parentheses, so fields are counted from the last closing
    /// one.
    fn parse(stat: &str) -> Option<Self> {
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        Some(Self {
            running: *fields.first()? == "R",
            parent: u32::try_from(number(1)?).ok()?,
            ticks: number(11)? + number(12)?,
            started: number(19)?,
            processor: usize::try_from(number(36)?).ok()?,
        })
    }
}

/// Start time of a process. `None` if it has ended or is not visible.
pub(super) fn started(pid: u32) -> Option<u64> {
    Some(Stat::read(Path::new("/proc"), pid)?.started)
}

/// Returns whether a process is a descendant of process `own`. `None` if the process is not
/// visible: it has ended, or it belongs to another container, whose process IDs mean nothing here.
fn is_ours(proc: &Path, pid: u32, own: u32) -> Option<bool> {
    let mut at = pid;
    // A longer chain must be a loop, which can appear if process IDs are reused while the chain is
    // read.
    for _ in 0..64 {
        if at == own {
            return Some(true);
        }
        match Stat::read(proc, at) {
            Some(stat) if stat.parent > 0 => at = stat.parent,
            Some(_) => return Some(false),
            None if at == pid => return None,
            None => return Some(false),
        }
    }
    Some(false)
}

/// Foreign processes on a GPU. `before` and `after` are the processes on the GPU while none of ours
/// was running; `during` are those seen while our tool was running.
pub(super) fn foreign_on_gpu(before: &[u32], during: &[(u32, Option<bool>)], after: &[u32]) -> BTreeSet<u32> {
    let mut foreign: BTreeSet<u32> = before.iter().chain(after).copied().collect();
    let mut unknown = BTreeSet::new();
    for (pid, ours) in during {
        match ours {
            Some(true) => {}
            Some(false) => {
                foreign.insert(*pid);
            }
            None => {
                unknown.insert(*pid);
            }
        }
    }
    // One unknown ID is the ID of our own tool on the host; any further one is a foreign process.
    let mut rest = unknown.difference(&foreign).copied().collect::<Vec<_>>();
    if rest.len() > 1 {
        foreign.extend(rest.drain(1..));
    }
    foreign
}

/// The given processes, each with true if it is ours, false if it is foreign, and `None` if it is
/// not visible.
pub(super) fn marked(pids: &[u32]) -> Vec<(u32, Option<bool>)> {
    let own = std::process::id();
    pids.iter().map(|pid| (*pid, is_ours(Path::new("/proc"), *pid, own))).collect()
}

/// The given processes except benchgate and its descendants, for `doctor`.
pub fn foreign(pids: &[u32]) -> Vec<ForeignProcess> {
    named(marked(pids).into_iter().filter(|(_, ours)| *ours != Some(true)).map(|(pid, _)| pid))
}

pub(super) fn named(pids: impl IntoIterator<Item = u32>) -> Vec<ForeignProcess> {
    pids.into_iter().map(process).collect()
}

/// The program that most likely uses these processors now: among the foreign programs running there, the one with the
/// most processor time. Reads all of `/proc`, so it is called only if something was found.
pub(super) fn busiest_on(cpus: Option<&[usize]>) -> Option<ForeignProcess> {
    let proc = Path::new("/proc");
    let own = std::process::id();
    let (_, pid) = fs::read_dir(proc)
        .ok()?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter_map(|pid| Some((Stat::read(proc, pid)?, pid)))
        .filter(|(stat, _)| stat.running && cpus.is_none_or(|cpus| cpus.contains(&stat.processor)))
        .filter(|(_, pid)| is_ours(proc, *pid, own) == Some(false))
        .map(|(stat, pid)| (stat.ticks, pid))
        .max()?;
    Some(process(pid))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(proc: &Path, pid: u32, stat: &str) {
        fs::create_dir_all(proc.join(pid.to_string())).unwrap();
        fs::write(proc.join(pid.to_string()).join("stat"), stat).unwrap();
    }

    fn stat(pid: u32, parent: u32) -> String {
        let mut fields = vec!["0".to_owned(); 50];
        fields[0] = "R".to_owned();
        for (at, value) in [(1, parent), (11, 250), (12, 50), (19, 9), (36, 3)] {
            fields[at] = value.to_string();
        }
        format!("{pid} (a) b ) {}\n", fields.join(" "))
    }

    #[test]
    fn a_descendant_is_ours_and_another_process_is_not() {
        let proc = tempfile::tempdir().unwrap();
        for (pid, parent) in [(1, 0), (10, 1), (20, 10), (30, 20), (40, 1)] {
            write(proc.path(), pid, &stat(pid, parent));
        }
        assert_eq!(is_ours(proc.path(), 30, 10), Some(true));
        assert_eq!(is_ours(proc.path(), 40, 10), Some(false));
        assert_eq!(is_ours(proc.path(), 99, 10), None);
    }

    #[test]
    fn a_name_full_of_parentheses_does_not_move_the_fields() {
        let read = Stat::parse(&stat(7, 3)).unwrap();
        assert_eq!((read.running, read.parent, read.ticks, read.processor), (true, 3, 300, 3));
        let own = Stat::read(Path::new("/proc"), std::process::id()).unwrap();
        assert!(own.parent > 0);
        assert_eq!(started(std::process::id()), Some(own.started));
    }

    #[test]
    fn a_process_on_the_gpu_that_is_not_ours_is_foreign() {
        let pids = |set: BTreeSet<u32>| set.into_iter().collect::<Vec<_>>();
        assert!(foreign_on_gpu(&[], &[(5, Some(true))], &[]).is_empty());
        assert_eq!(pids(foreign_on_gpu(&[9], &[(5, Some(true)), (9, Some(false))], &[])), [9]);
        assert_eq!(pids(foreign_on_gpu(&[], &[(5, Some(true)), (8, Some(false))], &[])), [8]);
        // A process of another container: the first one may be our own tool, with its ID on the
        // host.
        assert!(foreign_on_gpu(&[], &[(70_001, None)], &[]).is_empty());
        assert_eq!(pids(foreign_on_gpu(&[], &[(70_001, None), (70_009, None)], &[])), [70_009]);
        assert_eq!(pids(foreign_on_gpu(&[70_001], &[(70_001, None), (70_009, None)], &[])), [70_001]);
    }
}
