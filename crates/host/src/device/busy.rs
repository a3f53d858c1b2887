//! Measures how busy the machine is: its load, and the use of the processors by other programs (the kernel's
//! counts minus our own use).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use benchgate_core::model::ForeignProcess;

use super::read_line;

/// The length of a kernel tick: the counters in `/proc/stat` advance in hundredths of a second (`USER_HZ`) on
/// every architecture that Linux supports.
const TICK: Duration = Duration::from_millis(10);

/// The rounding error of a short interval, in ticks per processor: one at each end and one in the middle.
const SLACK_TICKS: u64 = 3;

/// The counters of some processors at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Busy {
    at: Instant,
    processors: u32,
    /// Ticks in which any program ran.
    busy: u64,
    /// Ticks in which the hypervisor ran another virtual machine (steal time).
    stolen: u64,
}

/// The use of the watched processors between two moments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usage {
    /// Share of the processors' time used by other programs, 0 to 1.
    pub foreign: f64,
    /// Share of the time that the hypervisor gave to other virtual machines.
    pub stolen: f64,
    /// The smallest share that the counters can resolve in this interval.
    pub resolution: f64,
}

impl Busy {
    /// Reads the counters of these processors, or of all processors if there is no list. `None` if there are
    /// none.
    pub(super) fn now(cpus: Option<&[usize]>) -> Option<Self> {
        Self::parse(&fs::read_to_string(counters("stat")).ok()?, cpus, Instant::now())
    }

    fn parse(stat: &str, cpus: Option<&[usize]>, at: Instant) -> Option<Self> {
        let wanted: Option<BTreeSet<usize>> = cpus.map(|cpus| cpus.iter().copied().collect());
        let mut found = Self { at, processors: 0, busy: 0, stolen: 0 };
        for line in stat.lines() {
            let mut fields = line.split_ascii_whitespace();
            let Some(cpu) = fields.next().and_then(|name| name.strip_prefix("cpu")?.parse::<usize>().ok())
            else {
                continue;
            };
            if wanted.as_ref().is_some_and(|wanted| !wanted.contains(&cpu)) {
                continue;
            }
            let ticks: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
            // user nice system idle iowait irq softirq steal; the kernel already counts guest time as user
            // time.
            let [user, nice, system, _, _, irq, softirq, steal, ..] = *ticks else { return None };
            found.processors += 1;
            found.busy += user + nice + system + irq + softirq;
            found.stolen += steal;
        }
        (found.processors > 0).then_some(found)
    }

    /// The usage since `before`; `own` is the processor time of benchgate and its tools in this
    /// interval. `None` if no time passed.
    pub(super) fn since(&self, before: &Self, own: Duration) -> Option<Usage> {
        let elapsed = self.at.checked_duration_since(before.at)?.as_secs_f64();
        let capacity = elapsed * f64::from(self.processors);
        if capacity <= 0.0 {
            return None;
        }
        let seconds = |ticks: u64| TICK.as_secs_f64() * ticks as f64;
        let busy = seconds(self.busy.saturating_sub(before.busy));
        let share = |seconds: f64| (seconds / capacity).clamp(0.0, 1.0);
        Some(Usage {
            foreign: share(busy - own.as_secs_f64()),
            stolen: share(seconds(self.stolen.saturating_sub(before.stolen))),
            resolution: share(seconds(SLACK_TICKS) * f64::from(self.processors)),
        })
    }
}

/// Measures for `time` how much other programs use these processors.
pub fn usage_now(cpus: Option<&[usize]>, time: Duration) -> Option<Usage> {
    let (before, own) = (Busy::now(cpus)?, own_time());
    std::thread::sleep(time);
    Busy::now(cpus)?.since(&before, own_time().saturating_sub(own))
}

/// Processor time of benchgate itself.
pub(super) fn own_time() -> Duration {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeValLike;
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return Duration::ZERO };
    let microseconds = (usage.user_time() + usage.system_time()).num_microseconds();
    Duration::from_micros(u64::try_from(microseconds).unwrap_or(0))
}

/// The path of a file with kernel counters. Debug builds, whose measurements don't count, read a folder that
/// a test prepared instead; release builds ignore that variable, so that no setting can make a busy machine
/// look idle.
pub(super) fn counters(name: &str) -> PathBuf {
    let given = if cfg!(debug_assertions) { std::env::var_os("BENCHGATE_PROC_DIR") } else { None };
    given.map_or_else(|| PathBuf::from("/proc"), PathBuf::from).join(name)
}

/// The 1, 5 and 15 minute load averages; empty if the kernel does not report them.
pub fn load_average() -> Vec<f64> {
    parse(&fs::read_to_string(counters("loadavg")).unwrap_or_default())
}

fn parse(text: &str) -> Vec<f64> {
    text.split(' ').take(3).map_while(|number| number.parse().ok()).collect()
}

// Other programs on this machine: distinguishes our own processes from those that may disturb a measurement.

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

    const BEFORE: &str = "cpu  300 0 0 900 0 0 0 0 0 0\ncpu0 100 0 0 500 0 0 0 0 0 0\n\
                          cpu1 200 0 0 400 0 0 0 0 0 0\nintr 1 2\n";
    const AFTER: &str = "cpu  420 0 0 980 0 0 0 20 0 0\ncpu0 120 0 0 580 0 0 0 0 0 0\n\
                         cpu1 270 10 10 400 0 0 0 10 0 0\nintr 1 2\n";

    fn usage(cpus: Option<&[usize]>, own: Duration) -> Usage {
        let start = Instant::now();
        let before = Busy::parse(BEFORE, cpus, start).unwrap();
        let after = Busy::parse(AFTER, cpus, start + Duration::from_secs(1)).unwrap();
        after.since(&before, own).unwrap()
    }

    #[test]
    fn what_we_did_not_use_was_used_by_others() {
        let seen = usage(Some(&[1]), Duration::from_millis(300));
        assert!((seen.foreign - 0.6).abs() < 1e-9, "{seen:?}");
        assert!((seen.stolen - 0.1).abs() < 1e-9, "{seen:?}");
        assert!((seen.resolution - 0.03).abs() < 1e-9, "{seen:?}");
    }

    #[test]
    fn using_more_than_was_counted_is_not_foreign_and_other_processors_are_not_looked_at() {
        assert_eq!(usage(Some(&[0]), Duration::from_millis(230)).foreign, 0.0);
        assert!((usage(None, Duration::ZERO).foreign - 0.55).abs() < 1e-9);
        assert_eq!(Busy::parse(BEFORE, Some(&[7]), Instant::now()), None);
    }

    #[test]
    fn this_machine_counts() {
        assert!(Busy::now(None).is_some());
        assert!(own_time() > Duration::ZERO);
    }

    #[test]
    fn three_averages_are_read() {
        assert_eq!(parse("0.20 1.18 12.08 1/190 12345\n"), [0.20, 1.18, 12.08]);
        assert!(parse("").is_empty());
        assert_eq!(load_average().len(), 3);
    }

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
