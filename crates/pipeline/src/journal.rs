//! The journal of a run on disk. Each finished process is written before the next starts, so a kill at any moment
//! loses at most the block that was being measured.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use benchgate_core::model::{BenchmarkName, BlockSlot, Context, Event, Progress, SideName, counted};
use benchgate_core::record::ProcessRecord;
use benchgate_host::files::{self, LockAttempt, LockFile, Owner};
use benchgate_host::process::Cancel;
use benchgate_ingest::Format;

use super::PipelineError;
use super::argv::Timing;
use super::cache::{write_atomically, write_json};
use super::commands::Printed;
use super::schedule::Timings;

/// A finished process, stored in one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct JournalEntry {
    pub(super) benchmark: String,
    /// `base` or `head`.
    pub(super) side: String,
    pub(super) block: u32,
    pub(super) slot: u8,
    pub(super) process: ProcessRecord,
    pub(super) context: Option<Context>,
    /// True if the failure came from outside and not from the benchmark.
    #[serde(default)]
    pub(super) killed: bool,
    /// The parsed output of a command's process; absent for a module's process, and if the process failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) printed: Option<Printed>,
}

impl JournalEntry {
    pub(super) fn side(&self) -> Option<SideName> {
        SideName::BOTH.into_iter().find(|side| side.as_str() == self.side)
    }

    /// A progress message about a command's process.
    pub(super) fn process_note(&self) -> String {
        let rows = self.printed.as_ref().map_or(0, |printed| printed.rows.len());
        format!("{:.3} s, {}", self.process.seconds.0, counted(rows, "benchmark"))
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct SessionHead {
    /// Digest of everything that determines the measurement. A different plan is a different session.
    plan: String,
    session: String,
    created: String,
    /// Seed of this session's schedule, used unless the configuration sets one.
    seed: u64,
}

#[derive(Debug)]
pub(super) struct Journal {
    folder: PathBuf,
    pub(super) session: String,
    pub(super) created: String,
    pub(super) resumed: bool,
    /// A random seed from when the session began. A resumed session keeps it.
    pub(super) seed: u64,
    /// The timing of each benchmark's processes.
    pub(super) timings: Timings,
    entries: BTreeMap<(String, SideName, BlockSlot), JournalEntry>,
    /// Names of the benchmarks that each command printed.
    printed: BTreeMap<String, HashSet<String>>,
    next_order: u32,
    /// Held while the journal is open, because two jobs that write to the same folder would mix their
    /// processes.
    _lock: LockFile,
}

/// The result of an attempt to open a session.
#[derive(Debug)]
pub(super) enum Opening {
    Opened(Box<Journal>),
    /// Another job on this machine is measuring the same plan in this folder.
    Held(Option<Owner>),
}

/// Interval at which a waiting job checks the folder. The interval is short compared with any measurement.
const POLL: Duration = Duration::from_millis(200);

const LOCK: &str = "lock";
const HEAD: &str = "session.json";
const DONE: &str = "complete";
const TIMINGS: &str = "timings.json";

/// Number of complete sessions that are kept for their logs.
const KEPT_SESSIONS: usize = 8;

impl Journal {
    /// Opens this plan's unfinished session if it may be resumed, or begins a new one. If another job is
    /// measuring the plan here, waits for it. Jobs on one machine may not share the host lock (those in two
    /// containers don't), but they share this folder.
    pub(super) async fn open(
        sessions: &Path,
        plan: &str,
        progress: &dyn Progress,
        cancel: &Cancel,
        resume: bool,
    ) -> Result<Self, PipelineError> {
        let mut announced = false;
        loop {
            let owner = match Self::try_open(sessions, plan, &jiff::Timestamp::now().to_string())? {
                Opening::Opened(journal) if journal.resumed && !resume => {
                    journal.complete()?;
                    continue;
                }
                Opening::Opened(journal) => return Ok(*journal),
                Opening::Held(owner) => owner,
            };
            if !announced {
                announced = true;
                let who = owner.map_or_else(|| "another job".to_owned(), |owner| owner.to_string());
                let folder = sessions.display();
                progress
                    .on(Event::Note(&format!("{who} is measuring the same benchmarks in {folder}; waiting")));
            }
            tokio::select! {
                () = tokio::time::sleep(POLL) => {}
                () = cancel.requested() => return Err(PipelineError::Interrupted),
            }
        }
    }

    /// Opens a session without waiting. `now` is a time in RFC 3339.
    pub(super) fn try_open(sessions: &Path, plan: &str, now: &str) -> Result<Opening, PipelineError> {
        // Sixteen hexadecimal digits are enough to distinguish plans, and short enough to type.
        let prefix = &plan[..16];
        for number in 1_u32.. {
            let folder = sessions.join(format!("{prefix}-{number}"));
            if folder.join(DONE).exists() {
                continue;
            }
            fs::create_dir_all(&folder).map_err(PipelineError::io("create", &folder))?;
            let path = folder.join(LOCK);
            let lock = match LockFile::try_take(&path).map_err(PipelineError::io("lock", &path))? {
                LockAttempt::Taken(lock) => lock,
                // A job on another machine, which shares this folder over a network, does not disturb this
                // job's measurements, nor does this job disturb its measurements.
                LockAttempt::Held(Some(owner)) if !owner.shares_the_machine_with(&Owner::this_process()) => {
                    continue;
                }
                LockAttempt::Held(owner) => return Ok(Opening::Held(owner)),
            };
            // The lock's last holder may have completed the session after the check above.
            if folder.join(DONE).exists() {
                continue;
            }
            let journal = match read_head(&folder, plan) {
                Some(head) => Self::resume(folder, head, lock)?,
                None if folder.join(HEAD).exists() => continue,
                None => {
                    remove_old(sessions)?;
                    Self::begin(folder, plan, &format!("{prefix}-{number}"), now, lock)?
                }
            };
            return Ok(Opening::Opened(Box::new(journal)));
        }
        let full = std::io::Error::other("all session numbers are in use");
        Err(PipelineError::io("begin a session in", sessions)(full))
    }

    fn begin(
        folder: PathBuf,
        plan: &str,
        name: &str,
        now: &str,
        lock: LockFile,
    ) -> Result<Self, PipelineError> {
        let processes = folder.join("processes");
        fs::create_dir_all(&processes).map_err(PipelineError::io("create", &processes))?;
        // The name alone could repeat after old sessions are removed, so the time is added.
        let head = SessionHead {
            plan: plan.to_owned(),
            session: format!("{name}@{now}"),
            created: now.to_owned(),
            seed: entropy()?,
        };
        write_json(&folder.join(HEAD), &head)?;
        Ok(Self::new(folder, head, false, lock))
    }

    fn new(folder: PathBuf, head: SessionHead, resumed: bool, lock: LockFile) -> Self {
        Self {
            folder,
            session: head.session,
            created: head.created,
            resumed,
            seed: head.seed,
            timings: Timings::default(),
            entries: BTreeMap::new(),
            printed: BTreeMap::new(),
            next_order: 0,
            _lock: lock,
        }
    }

    fn resume(folder: PathBuf, head: SessionHead, lock: LockFile) -> Result<Self, PipelineError> {
        let mut journal = Self::new(folder, head, true, lock);
        journal.timings = Timings::read(&journal.folder.join(TIMINGS))?;
        let processes = journal.folder.join("processes");
        files::sweep_drafts(&processes.join(HEAD));
        for item in fs::read_dir(&processes).map_err(PipelineError::io("read", &processes))? {
            let path = item.map_err(PipelineError::io("read", &processes))?.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let bytes = fs::read(&path).map_err(PipelineError::io("read", &path))?;
            // Files are written completely or not at all, so an unreadable one was damaged later.
            let entry: JournalEntry = serde_json::from_slice(&bytes).map_err(|error| {
                let cause =
                    format!("not a process record ({error}); delete it to measure that process again");
                PipelineError::io("read back", &path)(std::io::Error::other(cause))
            })?;
            if let Some(side) = entry.side() {
                journal.keep(side, entry);
            }
        }
        Ok(journal)
    }

    pub(super) fn contains(&self, benchmark: &BenchmarkName, side: SideName, slot: BlockSlot) -> bool {
        self.entries.contains_key(&(benchmark.as_str().to_owned(), side, slot))
    }

    /// Position of the next process in the session.
    pub(super) fn next_order(&self) -> u32 {
        self.next_order
    }

    /// Path for the raw output and the log of a process.
    pub(super) fn file(&self, order: u32, ending: &str) -> PathBuf {
        self.folder.join("processes").join(format!("{order:05}.{ending}"))
    }

    /// Path for the raw output and the log of a side's trial, which is not a measured process.
    pub(super) fn trial_file(&self, side: SideName, ending: &str) -> PathBuf {
        self.folder.join(format!("trial-{side}.{ending}"))
    }

    /// Stores how long a benchmark's processes measure, for this session and its resumptions.
    pub(super) fn set_timing(
        &mut self,
        benchmark: &BenchmarkName,
        timing: &Timing,
    ) -> Result<(), PipelineError> {
        self.timings.set(benchmark, timing);
        self.timings.write(&self.folder.join(TIMINGS))
    }

    /// Folder for the results of other backends.
    pub(super) fn backends(&self) -> PathBuf {
        self.folder.join("backends")
    }

    /// Writes a finished process to disk before it returns.
    pub(super) fn add(&mut self, side: SideName, entry: JournalEntry) -> Result<(), PipelineError> {
        write_json(&self.file(entry.process.order, "json"), &entry)?;
        self.keep(side, entry);
        Ok(())
    }

    fn keep(&mut self, side: SideName, entry: JournalEntry) {
        self.next_order = self.next_order.max(entry.process.order + 1);
        if let Some(printed) = &entry.printed {
            let rows = printed.rows.iter().map(|row| row.name.clone());
            self.printed.entry(entry.benchmark.clone()).or_default().extend(rows);
        }
        let slot = BlockSlot { block: entry.block, slot: entry.slot };
        self.entries.insert((entry.benchmark.clone(), side, slot), entry);
    }

    /// Removes the processes of a partial block, because the rest would be measured at a different time.
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

    /// The processes of a benchmark, in the order in which they ran.
    pub(super) fn processes(&self, benchmark: &BenchmarkName, side: SideName) -> Vec<&JournalEntry> {
        let mut entries: Vec<&JournalEntry> = self
            .entries
            .iter()
            .filter(|((name, of, _), _)| name == benchmark.as_str() && *of == side)
            .map(|(_, entry)| entry)
            .collect();
        entries.sort_by_key(|entry| entry.process.order);
        entries
    }

    /// Returns whether a process of this command printed the benchmark with this name.
    pub(super) fn has_printed(&self, command: &BenchmarkName, row: &BenchmarkName) -> bool {
        self.printed.get(command.as_str()).is_some_and(|rows| rows.contains(row.as_str()))
    }

    /// The format that a command's processes print; `None` if it is not known yet.
    pub(super) fn format(&self, command: &BenchmarkName) -> Option<Format> {
        let mut printed = self.entries.values().filter(|entry| entry.benchmark == command.as_str());
        printed.find_map(|entry| entry.printed.as_ref()?.format)
    }

    pub(super) fn has_failed(&self, benchmark: &BenchmarkName) -> bool {
        self.entries
            .values()
            .any(|entry| entry.benchmark == benchmark.as_str() && entry.process.failure.is_some())
    }

    /// Returns whether another process of this side would add no information, because this side has failed,
    /// or because the other side has failed and this one has worked.
    pub(super) fn is_settled(&self, benchmark: &BenchmarkName, side: SideName) -> bool {
        let mine = self.processes(benchmark, side);
        mine.iter().any(|entry| entry.process.failure.is_some())
            || !mine.is_empty() && self.has_failed(benchmark)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Wall-clock seconds that measuring has taken so far, including the time before the session was resumed.
    pub(super) fn measured_seconds(&self) -> f64 {
        self.entries.values().map(|entry| entry.process.seconds.0).sum()
    }

    /// Marks the session as complete, because its run file is written. The next run of this plan starts a new
    /// session.
    pub(super) fn complete(&self) -> Result<(), PipelineError> {
        write_atomically(&self.folder.join(DONE), b"")
    }
}

/// Number of bits of a seed. JSON readers that represent numbers as doubles keep no more.
const SEED_BITS: u32 = 53;

/// An unpredictable seed. The comparison is fair because the order is random: a program that could predict
/// the order could slow down exactly the processes of base.
pub(super) fn entropy() -> Result<u64, PipelineError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| {
        PipelineError::io("draw a seed from", Path::new("the system's random generator"))(
            std::io::Error::other(error),
        )
    })?;
    Ok(u64::from_le_bytes(bytes) >> (u64::BITS - SEED_BITS))
}

/// Reads the header of a session folder, if the folder belongs to this plan.
fn read_head(folder: &Path, plan: &str) -> Option<SessionHead> {
    let bytes = fs::read(folder.join(HEAD)).ok()?;
    let head: SessionHead = serde_json::from_slice(&bytes).ok()?;
    (head.plan == plan).then_some(head)
}

/// Removes the oldest complete sessions. Unfinished ones are kept, because their measurements can be resumed.
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
        // Another job may have removed it.
        files::if_exists(fs::remove_dir_all(&path)).map_err(PipelineError::io("remove", &path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use benchgate_core::record::Number;

    const PLAN: &str = "0123456789abcdef0123456789abcdef";

    fn entry(benchmark: &str, block: u32, slot: u8, order: u32) -> JournalEntry {
        JournalEntry {
            benchmark: benchmark.into(),
            side: "head".into(),
            block,
            slot,
            context: None,
            killed: false,
            printed: None,
            process: ProcessRecord {
                order,
                started: "2026-01-01T00:00:00Z".into(),
                seconds: Number(1.5),
                ..ProcessRecord::default()
            },
        }
    }

    fn opened(sessions: &Path, plan: &str, now: &str) -> Journal {
        match Journal::try_open(sessions, plan, now).unwrap() {
            Opening::Opened(journal) => *journal,
            Opening::Held(owner) => panic!("held by {owner:?}"),
        }
    }

    #[test]
    fn a_session_that_another_job_measures_is_waited_for_and_not_shared() {
        let folder = tempfile::tempdir().unwrap();
        let mut first = opened(folder.path(), PLAN, "t0");
        let Opening::Held(owner) = Journal::try_open(folder.path(), PLAN, "t1").unwrap() else {
            panic!("two jobs write into one session")
        };
        assert_eq!(owner, Some(Owner::this_process()));
        // Simulates a killed run: its lock is gone, but its measurements remain.
        first.add(SideName::Head, entry("a", 0, 0, 0)).unwrap();
        let name = first.session.clone();
        drop(first);
        let second = opened(folder.path(), PLAN, "t2");
        assert_eq!((second.len(), second.resumed, &second.session), (1, true, &name));
        second.complete().unwrap();
        assert_ne!(opened(folder.path(), PLAN, "t3").session, name, "a complete session is not gone on with");
    }

    #[test]
    fn a_session_that_another_machine_measures_in_a_shared_folder_is_left_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let first = opened(folder.path(), PLAN, "t0");
        let elsewhere = Owner { boot: "another".into(), ..Owner::this_process() };
        fs::write(first.folder.join(LOCK), serde_json::to_vec(&elsewhere).unwrap()).unwrap();
        let second = opened(folder.path(), PLAN, "t1");
        assert!(!second.resumed);
        assert_ne!(second.session, first.session);
    }

    #[test]
    fn a_folder_that_was_cut_before_it_had_a_head_is_used() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join(format!("{}-1", &PLAN[..16]))).unwrap();
        assert!(opened(folder.path(), PLAN, "t0").session.starts_with(&format!("{}-1@", &PLAN[..16])));
    }

    #[test]
    fn an_unfinished_session_is_resumed_with_its_processes() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = opened(folder.path(), PLAN, "t0");
        journal.add(SideName::Head, entry("a", 0, 1, 4)).unwrap();
        let session = journal.session.clone();
        drop(journal);
        let again = opened(folder.path(), PLAN, "t1");
        assert!(again.resumed);
        assert_eq!((again.session.clone(), again.created.as_str()), (session, "t0"));
        assert!(again.contains(&BenchmarkName::new("a"), SideName::Head, BlockSlot { block: 0, slot: 1 }));
        assert_eq!(again.next_order(), 5);
        assert_eq!(again.measured_seconds(), 1.5);
    }

    #[test]
    fn a_complete_session_is_not_resumed() {
        let folder = tempfile::tempdir().unwrap();
        let first = opened(folder.path(), PLAN, "t0");
        first.complete().unwrap();
        let second = opened(folder.path(), PLAN, "t1");
        assert!(!second.resumed);
        assert_ne!(first.session, second.session);
    }

    #[test]
    fn another_plan_is_another_session() {
        let folder = tempfile::tempdir().unwrap();
        let first = opened(folder.path(), PLAN, "t0");
        let other = opened(folder.path(), "fedcba98765432100000", "t0");
        assert!(!other.resumed);
        assert_ne!(first.session, other.session);
    }

    #[test]
    fn each_session_draws_its_own_seed_and_keeps_it_when_resumed() {
        let folder = tempfile::tempdir().unwrap();
        let journal = opened(folder.path(), PLAN, "t0");
        let seed = journal.seed;
        drop(journal);
        let resumed = opened(folder.path(), PLAN, "t1");
        assert!(resumed.resumed);
        assert_eq!(resumed.seed, seed);
        resumed.complete().unwrap();
        let next = opened(folder.path(), PLAN, "t2");
        assert_ne!(next.seed, seed);
    }

    #[test]
    fn a_cut_block_is_set_aside_and_not_judged() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = opened(folder.path(), PLAN, "t0");
        let name = BenchmarkName::new("a");
        journal.add(SideName::Head, entry("a", 0, 0, 0)).unwrap();
        journal.add(SideName::Head, entry("a", 1, 0, 1)).unwrap();
        journal.drop_partial_block(&name, 1).unwrap();
        assert_eq!(journal.processes(&name, SideName::Head).len(), 1);
        assert!(journal.file(1, "interrupted").exists(), "it stays on disk");
        drop(journal);
        assert_eq!(opened(folder.path(), PLAN, "t1").len(), 1);
    }
}
