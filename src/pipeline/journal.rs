//! What is on disk while a run goes on. Each finished process is written before the next starts, so
//! a kill at any moment loses at most the block that was being measured.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::model::{BenchmarkName, BlockSlot, SideName};
use crate::record::{ContextRecord, ProcessRecord};

use super::PipelineError;
use super::argv::Timing;
use super::cache::write_atomically;
use super::timings::Timings;

/// A process that ended, in one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) benchmark: String,
    /// `base` or `head`.
    pub(super) side: String,
    pub(super) block: u32,
    pub(super) slot: u8,
    pub(super) process: ProcessRecord,
    pub(super) context: Option<ContextRecord>,
}

impl Entry {
    pub(super) fn side(&self) -> Option<SideName> {
        SideName::BOTH.into_iter().find(|side| side.as_str() == self.side)
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Head {
    /// Digest of everything that decides what is measured; another plan is another session.
    plan: String,
    session: String,
    created: String,
    /// Of this session's schedule, unless the configuration names one.
    seed: u64,
}

/// The journal of one session.
#[derive(Debug)]
pub(super) struct Journal {
    folder: PathBuf,
    pub(super) session: String,
    pub(super) created: String,
    pub(super) resumed: bool,
    /// Drawn when the session began; a resumed session keeps it.
    pub(super) seed: u64,
    /// How long the processes of each benchmark measure.
    pub(super) timings: Timings,
    entries: BTreeMap<(String, SideName, BlockSlot), Entry>,
    next_order: u32,
}

const HEAD: &str = "session.json";
const DONE: &str = "complete";
const TIMINGS: &str = "timings.json";

/// Sessions that are kept for their logs after they are complete.
const KEPT_SESSIONS: usize = 8;

impl Journal {
    /// Opens the unfinished session of this plan, or begins one. `now` is RFC 3339.
    pub(super) fn open(sessions: &Path, plan: &str, now: &str) -> Result<Self, PipelineError> {
        fs::create_dir_all(sessions).map_err(PipelineError::io("create", sessions))?;
        // Sixteen hexadecimal digits tell plans apart; a person may have to type them.
        let prefix = &plan[..16];
        let (mut folder, mut number) = (sessions.join(format!("{prefix}-1")), 1);
        while folder.join(DONE).exists() || folder.exists() && read_head(&folder, plan).is_none() {
            number += 1;
            folder = sessions.join(format!("{prefix}-{number}"));
        }
        match read_head(&folder, plan) {
            Some(head) => Self::resume(folder, head),
            None => {
                remove_old(sessions)?;
                Self::begin(folder, plan, &format!("{prefix}-{number}"), now)
            }
        }
    }

    fn begin(folder: PathBuf, plan: &str, name: &str, now: &str) -> Result<Self, PipelineError> {
        let processes = folder.join("processes");
        fs::create_dir_all(&processes).map_err(PipelineError::io("create", &processes))?;
        // The name alone would repeat after a clean-up; with the time it can't.
        let head = Head {
            plan: plan.to_owned(),
            session: format!("{name}@{now}"),
            created: now.to_owned(),
            seed: entropy()?,
        };
        write_json(&folder.join(HEAD), &head)?;
        Ok(Self {
            folder,
            session: head.session,
            created: head.created,
            resumed: false,
            seed: head.seed,
            timings: Timings::default(),
            entries: BTreeMap::new(),
            next_order: 0,
        })
    }

    fn resume(folder: PathBuf, head: Head) -> Result<Self, PipelineError> {
        let mut journal = Self {
            folder,
            session: head.session,
            created: head.created,
            resumed: true,
            seed: head.seed,
            timings: Timings::default(),
            entries: BTreeMap::new(),
            next_order: 0,
        };
        journal.timings = Timings::read(&journal.folder.join(TIMINGS))?;
        let processes = journal.folder.join("processes");
        for item in fs::read_dir(&processes).map_err(PipelineError::io("read", &processes))? {
            let path = item.map_err(PipelineError::io("read", &processes))?.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let bytes = fs::read(&path).map_err(PipelineError::io("read", &path))?;
            // Files are written whole or not at all, so an unreadable one was damaged afterwards.
            let entry: Entry = serde_json::from_slice(&bytes).map_err(|error| {
                let cause =
                    format!("not a process record ({error}); delete it to measure that process again");
                PipelineError::io("read back", &path)(std::io::Error::other(cause))
            })?;
            if let Some(side) = entry.side() {
                journal.next_order = journal.next_order.max(entry.process.order + 1);
                let slot = BlockSlot { block: entry.block, slot: entry.slot };
                journal.entries.insert((entry.benchmark.clone(), side, slot), entry);
            }
        }
        Ok(journal)
    }

    pub(super) fn contains(&self, benchmark: &BenchmarkName, side: SideName, slot: BlockSlot) -> bool {
        self.entries.contains_key(&(benchmark.as_str().to_owned(), side, slot))
    }

    /// Position of the next process among all of the session.
    pub(super) fn next_order(&self) -> u32 {
        self.next_order
    }

    /// Where a process may leave its raw output and log.
    pub(super) fn file(&self, order: u32, ending: &str) -> PathBuf {
        self.folder.join("processes").join(format!("{order:05}.{ending}"))
    }

    /// Where the trial of a side leaves its raw output and log. It is not a measured process.
    pub(super) fn trial_file(&self, side: SideName, ending: &str) -> PathBuf {
        self.folder.join(format!("trial-{side}.{ending}"))
    }

    /// Fixes how long a benchmark's processes measure, for this session and its resumptions.
    pub(super) fn set_timing(
        &mut self,
        benchmark: &BenchmarkName,
        timing: &Timing,
    ) -> Result<(), PipelineError> {
        self.timings.set(benchmark, timing);
        self.timings.write(&self.folder.join(TIMINGS))
    }

    /// Where the processes of other backends are kept.
    pub(super) fn backends(&self) -> PathBuf {
        self.folder.join("backends")
    }

    /// Writes a finished process to disk; it is there when this returns.
    pub(super) fn add(&mut self, side: SideName, entry: Entry) -> Result<(), PipelineError> {
        write_json(&self.file(entry.process.order, "json"), &entry)?;
        self.next_order = self.next_order.max(entry.process.order + 1);
        let slot = BlockSlot { block: entry.block, slot: entry.slot };
        self.entries.insert((entry.benchmark.clone(), side, slot), entry);
        Ok(())
    }

    /// Forgets the processes of a block that was cut: its first half was measured in another hour.
    pub(super) fn drop_partial_block(
        &mut self,
        benchmark: &BenchmarkName,
        block: u32,
    ) -> Result<(), PipelineError> {
        let cut: Vec<_> = self
            .entries
            .keys()
            .filter(|(name, _, slot)| name == benchmark.as_str() && slot.block == block)
            .cloned()
            .collect();
        for key in cut {
            if let Some(entry) = self.entries.remove(&key) {
                let kept = self.file(entry.process.order, "json");
                let aside = self.file(entry.process.order, "interrupted");
                fs::rename(&kept, &aside).map_err(PipelineError::io("set aside", &kept))?;
            }
        }
        Ok(())
    }

    /// Processes of a benchmark, in the order they ran.
    pub(super) fn processes(&self, benchmark: &BenchmarkName, side: SideName) -> Vec<&Entry> {
        let mut entries: Vec<&Entry> = self
            .entries
            .iter()
            .filter(|((name, of, _), _)| name == benchmark.as_str() && *of == side)
            .map(|(_, entry)| entry)
            .collect();
        entries.sort_by_key(|entry| entry.process.order);
        entries
    }

    pub(super) fn has_failed(&self, benchmark: &BenchmarkName) -> bool {
        self.entries
            .values()
            .any(|entry| entry.benchmark == benchmark.as_str() && entry.process.failure.is_some())
    }

    /// Whether another process of this side would tell nothing new: the side has failed, or the other
    /// one has and this one was seen to work.
    pub(super) fn is_settled(&self, benchmark: &BenchmarkName, side: SideName) -> bool {
        let mine = self.processes(benchmark, side);
        mine.iter().any(|entry| entry.process.failure.is_some())
            || !mine.is_empty() && self.has_failed(benchmark)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Wall-clock seconds that measuring has taken so far, over all resumptions.
    pub(super) fn measured_seconds(&self) -> f64 {
        self.entries.values().map(|entry| entry.process.seconds.0).sum()
    }

    /// The run file is written; the next run of this plan begins anew.
    pub(super) fn complete(&self) -> Result<(), PipelineError> {
        write_atomically(&self.folder.join(DONE), b"")
    }
}

/// Bits of a seed that every reader of JSON keeps: programs that read numbers as doubles hold no more.
const SEED_BITS: u32 = 53;

/// A seed that can't be known beforehand. The random order is what makes the comparison fair: a program that
/// could foresee it could disturb exactly the processes of base.
fn entropy() -> Result<u64, PipelineError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| {
        PipelineError::io("draw a seed from", Path::new("the system's random generator"))(
            std::io::Error::other(error),
        )
    })?;
    Ok(u64::from_le_bytes(bytes) >> (u64::BITS - SEED_BITS))
}

/// The head of a session folder, where it is one of this plan. A folder without a readable head was
/// cut in the moment it was made and holds nothing.
fn read_head(folder: &Path, plan: &str) -> Option<Head> {
    let bytes = fs::read(folder.join(HEAD)).ok()?;
    let head: Head = serde_json::from_slice(&bytes).ok()?;
    (head.plan == plan).then_some(head)
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), PipelineError> {
    let bytes = serde_json::to_vec_pretty(value)
        .map_err(|error| PipelineError::io("write", path)(std::io::Error::other(error)))?;
    write_atomically(path, &bytes)
}

/// Removes the oldest complete sessions. Unfinished ones are somebody's measurements and stay.
fn remove_old(sessions: &Path) -> Result<(), PipelineError> {
    let mut done = Vec::new();
    for item in fs::read_dir(sessions).map_err(PipelineError::io("read", sessions))? {
        let path = item.map_err(PipelineError::io("read", sessions))?.path();
        if let Ok(mark) = fs::metadata(path.join(DONE)).and_then(|mark| mark.modified()) {
            done.push((mark, path));
        }
    }
    done.sort();
    let excess = done.len().saturating_sub(KEPT_SESSIONS);
    for (_, path) in done.into_iter().take(excess) {
        fs::remove_dir_all(&path).map_err(PipelineError::io("remove", &path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Number;

    const PLAN: &str = "0123456789abcdef0123456789abcdef";

    fn entry(benchmark: &str, block: u32, slot: u8, order: u32) -> Entry {
        Entry {
            benchmark: benchmark.into(),
            side: "head".into(),
            block,
            slot,
            context: None,
            process: ProcessRecord {
                slot: None,
                order,
                started: "2026-01-01T00:00:00Z".into(),
                seconds: Number(1.5),
                failure: None,
                peak_memory_bytes: None,
                load_avg: Vec::new(),
                log: None,
                iterations: None,
                telemetry: None,
                samples: BTreeMap::new(),
            },
        }
    }

    #[test]
    fn an_unfinished_session_is_resumed_with_its_processes() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(folder.path(), PLAN, "t0").unwrap();
        journal.add(SideName::Head, entry("a", 0, 1, 4)).unwrap();
        let again = Journal::open(folder.path(), PLAN, "t1").unwrap();
        assert!(again.resumed);
        assert_eq!((again.session.clone(), again.created.as_str()), (journal.session.clone(), "t0"));
        assert!(again.contains(&BenchmarkName::new("a"), SideName::Head, BlockSlot { block: 0, slot: 1 }));
        assert_eq!(again.next_order(), 5);
        assert_eq!(again.measured_seconds(), 1.5);
    }

    #[test]
    fn a_complete_session_is_not_resumed() {
        let folder = tempfile::tempdir().unwrap();
        let first = Journal::open(folder.path(), PLAN, "t0").unwrap();
        first.complete().unwrap();
        let second = Journal::open(folder.path(), PLAN, "t1").unwrap();
        assert!(!second.resumed);
        assert_ne!(first.session, second.session);
    }

    #[test]
    fn another_plan_is_another_session() {
        let folder = tempfile::tempdir().unwrap();
        let first = Journal::open(folder.path(), PLAN, "t0").unwrap();
        let other = Journal::open(folder.path(), "fedcba98765432100000", "t0").unwrap();
        assert!(!other.resumed);
        assert_ne!(first.session, other.session);
    }

    #[test]
    fn each_session_draws_its_own_seed_and_keeps_it_when_resumed() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path(), PLAN, "t0").unwrap();
        let resumed = Journal::open(folder.path(), PLAN, "t1").unwrap();
        assert!(resumed.resumed);
        assert_eq!(resumed.seed, journal.seed);
        journal.complete().unwrap();
        let next = Journal::open(folder.path(), PLAN, "t2").unwrap();
        assert_ne!(next.seed, journal.seed);
    }

    #[test]
    fn a_cut_block_is_set_aside_and_not_judged() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(folder.path(), PLAN, "t0").unwrap();
        let name = BenchmarkName::new("a");
        journal.add(SideName::Head, entry("a", 0, 0, 0)).unwrap();
        journal.add(SideName::Head, entry("a", 1, 0, 1)).unwrap();
        journal.drop_partial_block(&name, 1).unwrap();
        assert_eq!(journal.processes(&name, SideName::Head).len(), 1);
        assert!(journal.file(1, "interrupted").exists(), "it stays on disk");
        assert_eq!(Journal::open(folder.path(), PLAN, "t1").unwrap().len(), 1);
    }
}
