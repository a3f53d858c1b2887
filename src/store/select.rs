//! Which sessions a head is compared with: the newest of its testbed that lie behind it, since the last
//! acceptance, and nothing that is quarantined.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::git::Ancestry;
use crate::model::{BenchmarkName, Lint, LintCode, Run, Testbed};
use crate::record::{AcceptanceFile, OutcomeStatus};

use super::name;
use super::near::{self, NearMiss};
use super::quarantine::{covers, is_released};
use super::{Fault, Files, RunName, Shelf, StoreError, Stored};

/// Files that a gate opens for each session it wants, before it stops looking: a shelf of a thousand
/// quarantined runs must not be read whole.
const PATIENCE: usize = 5;

/// Whether a stored commit lies behind the commit that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lineage {
    Ancestor,
    /// On another branch, or later.
    Stranger,
    /// History is cut off before it could be told.
    Unknown,
}

impl Lineage {
    /// Whether a commit lies behind another, from git's answer.
    pub fn of(ancestry: &Ancestry<'_>, commit: &str) -> Self {
        match ancestry.holds(commit) {
            Some(true) => Self::Ancestor,
            Some(false) => Self::Stranger,
            None => Self::Unknown,
        }
    }
}

/// What a gate asks for.
pub struct Ask<'a> {
    pub suite: &'a str,
    pub testbed: &'a Testbed,
    /// At most so many sessions.
    pub sessions: usize,
    /// Age of the newest session, in days, from which the baseline is called stale.
    pub stale_days: u32,
    /// Whether a commit lies behind the one that is compared.
    pub lineage: &'a dyn Fn(&str) -> Lineage,
    /// The time of the comparison, for staleness.
    pub now: Timestamp,
}

/// The answer to an [`Ask`].
#[derive(Debug, Clone, PartialEq)]
pub enum Selection {
    Found(History),
    Missing(Missing),
}

/// Sessions to compare with.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// Oldest first, without what is quarantined or older than its acceptance. The newest carries the
    /// lint on staleness.
    pub runs: Vec<Run>,
    pub names: Vec<RunName>,
    /// What was passed over, in sentences.
    pub notes: Vec<String>,
    /// Files that can't be used: to be said loudly.
    pub faults: Vec<Fault>,
}

/// Why there is nothing to compare with.
#[derive(Debug, Clone, PartialEq)]
pub struct Missing {
    pub suite: String,
    pub testbed: String,
    /// Files on this shelf, usable or not.
    pub stored: usize,
    pub notes: Vec<String>,
    pub faults: Vec<Fault>,
    /// Testbeds of this suite that differ little. Offered, never used.
    pub near: Vec<NearMiss>,
    /// Runs whose place in history could not be told, because this clone is shallow.
    pub unknown: usize,
}

/// What was passed over on the way.
#[derive(Default)]
struct Passed {
    quarantined: usize,
    strangers: usize,
    unknown: usize,
}

impl Passed {
    fn notes(&self) -> Vec<String> {
        let said = [
            (self.quarantined, "are quarantined (`benchgate baseline show` says why)"),
            (self.strangers, "measured commits that are not behind this one"),
            (self.unknown, "measured commits that this shallow clone does not reach"),
        ];
        let said = said.into_iter().filter(|(count, _)| *count > 0);
        said.map(|(count, what)| format!("{count} stored sessions {what}")).collect()
    }
}

/// The sessions to compare a head with, or why there are none.
///
/// # Errors
/// The place can't be read, or git can't tell a lineage. A single bad file is a [`Fault`].
pub fn history_for_gate(files: &dyn Files, ask: &Ask<'_>) -> Result<Selection, StoreError> {
    let mut shelf = Shelf::open(files, ask.suite, &ask.testbed.id)?;
    let (ended, in_force) = std::mem::take(&mut shelf.acceptances)
        .into_iter()
        .partition(|(_, acceptance)| has_ended(acceptance, ask.now));
    shelf.acceptances = in_force;
    let ended: Vec<AcceptanceFile> = ended.into_iter().map(|(_, acceptance)| acceptance).collect();
    let mut passed = Passed::default();
    let mut faults = shelf.faults.clone();
    let kept = newest(files, &shelf, &ended, ask, &mut passed, &mut faults)?;
    let mut notes = passed.notes();
    notes.extend(ended.iter().map(farewell));
    if kept.is_empty() {
        return Ok(Selection::Missing(Missing {
            suite: ask.suite.to_owned(),
            testbed: ask.testbed.id.clone(),
            stored: shelf.runs.len(),
            near: near::near_misses(files, ask.suite, ask.testbed)?,
            unknown: passed.unknown,
            notes,
            faults,
        }));
    }
    let names = kept.iter().map(|kept| kept.stored.name.clone()).collect();
    let mut runs = assemble(kept, &shelf);
    if let Some(newest) = runs.last_mut() {
        newest.1.lints.extend(staleness(&newest.0, ask));
    }
    let runs = runs.into_iter().map(|(_, run)| run).collect();
    Ok(Selection::Found(History { runs, names, notes, faults }))
}

/// A session with the benchmarks of it that may be learned from.
struct Kept {
    stored: Stored,
    /// By benchmark: whether it may be learned from.
    usable: Vec<bool>,
    /// Benchmarks that were not measured in it, and are quarantined for that.
    absent: Vec<String>,
}

/// The newest sessions that may be learned from, oldest first.
fn newest(
    files: &dyn Files,
    shelf: &Shelf,
    ended: &[AcceptanceFile],
    ask: &Ask<'_>,
    passed: &mut Passed,
    faults: &mut Vec<Fault>,
) -> Result<Vec<Kept>, StoreError> {
    // Runs before the last acceptance of everything are out of question, so they are not even opened.
    let horizon = shelf.acceptances.iter().filter(|(_, a)| a.benchmark.is_none()).map(|(_, a)| &a.from).max();
    let mut names = shelf.runs.iter().rev();
    let mut opened = 0;
    let mut kept = Vec::new();
    while kept.len() < ask.sessions && opened < ask.sessions.saturating_mul(PATIENCE) {
        let mut batch = Vec::new();
        for name in
            names.by_ref().take_while(|name| horizon.is_none_or(|from| name.as_str() >= from.as_str()))
        {
            if ended.iter().any(|acceptance| is_under(name, acceptance) && acceptance.benchmark.is_none())
                && !is_accepted(name, &shelf.acceptances)
            {
                passed.quarantined += 1;
                continue;
            }
            match name.commit().map(ask.lineage) {
                Some(Lineage::Ancestor) => batch.push(name),
                Some(Lineage::Stranger) => passed.strangers += 1,
                Some(Lineage::Unknown) => passed.unknown += 1,
                // Without a commit nothing ties a run to this history.
                None => passed.quarantined += 1,
            }
            if batch.len() == ask.sessions - kept.len() {
                break;
            }
        }
        if batch.is_empty() {
            break;
        }
        opened += batch.len();
        files.announce(&batch.iter().map(|name| shelf.path(&name.file())).collect::<Vec<_>>())?;
        for name in batch {
            let stored = match shelf.load(files, name)? {
                Ok(stored) => stored,
                Err(fault) => {
                    faults.push(fault);
                    continue;
                }
            };
            let usable = usable(&stored, &shelf.acceptances, ended);
            if usable.iter().any(|usable| *usable) {
                let absent = absent(&stored, &shelf.acceptances);
                kept.push(Kept { stored, usable, absent });
            } else {
                passed.quarantined += 1;
            }
        }
    }
    kept.reverse();
    Ok(kept)
}

/// By benchmark of the file, whether it may be learned from.
fn usable(stored: &Stored, acceptances: &[(String, AcceptanceFile)], ended: &[AcceptanceFile]) -> Vec<bool> {
    let held: Vec<_> = stored
        .file
        .quarantine
        .iter()
        .filter(|reason| !is_released(reason, &stored.name, acceptances))
        .collect();
    let is_held = |name: &str| {
        held.iter().any(|reason| reason.benchmark.as_deref().is_none_or(|benchmark| benchmark == name))
    };
    let is_past = |name: &str| {
        acceptances
            .iter()
            .any(|(_, accepted)| covers(accepted, Some(name)) && *stored.name.as_str() < *accepted.from)
    };
    let names = stored.file.benchmarks.iter().map(|benchmark| benchmark.name.as_str());
    let was_tolerated = |name: &str| {
        let covered = |acceptance: &&AcceptanceFile| covers(acceptance, Some(name));
        ended.iter().filter(covered).any(|acceptance| is_under(&stored.name, acceptance))
            && !acceptances
                .iter()
                .any(|(_, accepted)| covers(accepted, Some(name)) && *stored.name.as_str() >= *accepted.from)
    };
    names.map(|name| !is_held(name) && !is_past(name) && !was_tolerated(name)).collect()
}

/// Benchmarks that the session should have measured: quarantined by name, and not in the file.
fn absent(stored: &Stored, acceptances: &[(String, AcceptanceFile)]) -> Vec<String> {
    let held = stored.file.quarantine.iter().filter(|reason| !is_released(reason, &stored.name, acceptances));
    held.filter_map(|reason| reason.benchmark.clone())
        .filter(|name| stored.file.benchmarks.iter().all(|benchmark| benchmark.name != *name))
        .collect()
}

/// Whether an acceptance no longer holds. Days are those of UTC, as the names of runs are.
fn has_ended(acceptance: &AcceptanceFile, now: Timestamp) -> bool {
    last_moment(acceptance).is_some_and(|last| name::stamp(&now.to_string()).is_some_and(|now| now > last))
}

/// The end of the last day of an acceptance, as times stand in names.
fn last_moment(acceptance: &AcceptanceFile) -> Option<String> {
    acceptance.until.as_ref().map(|until| format!("{}T235959Z", until.replace('-', "")))
}

/// Whether a run was stored while an acceptance that has ended made it the normal.
fn is_under(name: &RunName, ended: &AcceptanceFile) -> bool {
    *name.as_str() >= *ended.from && last_moment(ended).is_some_and(|last| name.time() <= last.as_str())
}

/// Whether an acceptance of everything that still holds has made the run the normal.
fn is_accepted(name: &RunName, in_force: &[(String, AcceptanceFile)]) -> bool {
    in_force.iter().any(|(_, accepted)| accepted.benchmark.is_none() && *name.as_str() >= *accepted.from)
}

fn farewell(ended: &AcceptanceFile) -> String {
    let what = ended.benchmark.as_deref().unwrap_or("every benchmark");
    let until = ended.until.as_deref().unwrap_or_default();
    format!(
        "{} accepted {what} until {until} ({}): what was stored under that is no longer learned from",
        ended.who, ended.why
    )
}

/// The sessions as runs. Outcomes and exact metrics are compared with the newest session, so a benchmark
/// that is quarantined there is taken from the newest session that may be learned from: moved, because a
/// session that counted twice would make the spread look small. One that never worked stays as it is, so
/// that the comparison can say so.
fn assemble(kept: Vec<Kept>, shelf: &Shelf) -> Vec<(RunName, Run)> {
    let mut runs: Vec<(RunName, Run)> = Vec::with_capacity(kept.len());
    let mut wanted = Vec::new();
    let last = kept.len().saturating_sub(1);
    for (at, Kept { stored, usable, absent }) in kept.into_iter().enumerate() {
        let mut run = stored.file.run(&shelf.path(&stored.name.file()));
        if at == last {
            let held = stored.file.benchmarks.iter().zip(&usable).filter(|(_, usable)| !**usable);
            wanted = held
                .map(|(benchmark, _)| {
                    let unmeasured = benchmark.outcome.status != OutcomeStatus::Ok;
                    (BenchmarkName::new(&benchmark.name), unmeasured)
                })
                .chain(absent.iter().map(|name| (BenchmarkName::new(name), false)))
                .collect();
        }
        let mut usable = usable.iter();
        run.benchmarks.retain(|benchmark| {
            let usable = usable.next().copied().unwrap_or(false);
            usable || (at == last && !benchmark.outcome.is_ok())
        });
        runs.push((stored.name, run));
    }
    let Some((newest, older)) = runs.split_last_mut() else { return runs };
    let mut places: BTreeMap<BenchmarkName, usize> = BTreeMap::new();
    for (at, benchmark) in newest.1.benchmarks.iter().enumerate() {
        places.insert(benchmark.name.clone(), at);
    }
    for (name, unmeasured) in wanted {
        let found = older.iter_mut().rev().find_map(|(_, run)| {
            let at = run.benchmarks.iter().position(|benchmark| benchmark.name == name)?;
            Some(run.benchmarks.remove(at))
        });
        match (found, places.get(&name)) {
            (Some(benchmark), Some(&at)) if unmeasured => newest.1.benchmarks[at] = benchmark,
            (Some(benchmark), _) => newest.1.benchmarks.push(benchmark),
            (None, _) => {}
        }
    }
    runs
}

fn staleness(name: &RunName, ask: &Ask<'_>) -> Option<Lint> {
    let days = ask.now.duration_since(name.began()?).as_hours() / 24;
    (days >= i64::from(ask.stale_days))
        .then(|| Lint::new(LintCode::StaleBaseline, format!("its newest session is {days} days old")))
}
