//! Selects the sessions that a head is compared with: the newest ones of its testbed whose commits are ancestors, since
//! the last acceptance, without quarantined results.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::gate::{EarlierSessions, StoredSessions};
use crate::git::Ancestry;
use crate::model::{Benchmark, BenchmarkGlob, BenchmarkName, Lint, LintCode, Outcome, Run, Testbed, counted};
use crate::record::{AcceptanceFile, BaselineBenchmark, OutcomeStatus, QuarantineCause, QuarantineRecord};

use super::earlier;
use super::name;
use super::quarantine::is_released;
use super::similar::{self, SimilarTestbed};
use super::{BaselineFolder, Fault, Files, LoadedFile, RunName, StoreError, Stored};

/// Files opened per wanted session before the search stops, so that a baseline with a thousand quarantined runs is not
/// read completely. A slowdown that no one accepts is searched to its beginning.
const MAX_OPENED_PER_SESSION: usize = 5;

/// How a stored commit is related to the compared commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lineage {
    Ancestor,
    /// On another branch, or later.
    Unrelated,
    /// A shallow clone ends before the answer.
    Unknown,
}

impl Lineage {
    /// Looks up a commit in the history of the compared commit.
    pub fn look_up(ancestry: &Ancestry<'_>, commit: &str) -> Self {
        match ancestry.contains(commit) {
            Some(true) => Self::Ancestor,
            Some(false) => Self::Unrelated,
            None => Self::Unknown,
        }
    }
}

/// The history that a gate compares with.
pub struct HistoryQuery<'a> {
    pub suite: &'a str,
    pub testbed: &'a Testbed,
    /// The maximum number of sessions.
    pub sessions: usize,
    /// Age of the newest session, in days, from which the baseline counts as stale.
    pub stale_days: u32,
    /// How a commit is related to the compared one.
    pub lineage: &'a dyn Fn(&str) -> Lineage,
    /// The time of the comparison, for staleness.
    pub now: Timestamp,
}

/// The answer to a [`HistoryQuery`].
#[derive(Debug, Clone, PartialEq)]
pub enum Selection {
    Found(History),
    Missing(Missing),
}

/// Sessions to compare with.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// Oldest first, without quarantined results and results from before an acceptance. The newest has the lint about
    /// staleness.
    pub runs: Vec<Run>,
    pub names: Vec<RunName>,
    /// Which runs were skipped, in words.
    pub notes: Vec<String>,
    /// Files that can't be used; these are always reported.
    pub faults: Vec<Fault>,
    /// Sessions after the last good one of a benchmark that are excluded because they were slow, with those benchmarks
    /// alone; oldest first.
    pub slow: Vec<Run>,
    /// Good sessions of days in the past, since the last acceptance.
    pub earlier: Vec<EarlierSessions>,
    /// Benchmarks that are quarantined for a regression in those, and `None` for all of them together.
    pub red: BTreeSet<Option<String>>,
    /// The benchmarks that [`Missing::still_red`] describes.
    pub still_red: Vec<String>,
}

impl History {
    /// The sessions that a run is compared with. `storing`: it joins the baseline if it is good.
    pub fn sessions(&self, storing: bool) -> StoredSessions<'_> {
        StoredSessions { good: &self.runs, slow: &self.slow, earlier: &self.earlier, storing }
    }
}

/// The reason why there is nothing to compare with.
#[derive(Debug, Clone, PartialEq)]
pub struct Missing {
    pub suite: String,
    pub testbed: String,
    pub notes: Vec<String>,
    pub faults: Vec<Fault>,
    /// Testbeds of this suite that differ in few facts. Listed, never used.
    pub similar: Vec<SimilarTestbed>,
    /// Runs whose relation to the compared commit is unknown, because this clone is shallow.
    pub unknown: usize,
    /// Benchmarks that are quarantined for a regression and have no session to compare with: a session that is stored
    /// now must not become their new normal by itself.
    pub still_red: Vec<String>,
}

/// Numbers of skipped runs.
#[derive(Default)]
struct Skipped {
    quarantined: usize,
    unrelated: usize,
    unknown: usize,
}

impl Skipped {
    fn notes(&self) -> Vec<String> {
        let said = [
            (self.quarantined, "in quarantine (`benchgate baseline show` says why)"),
            (self.unrelated, "of commits that are not ancestors of this one"),
            (self.unknown, "of commits that this shallow clone does not reach"),
        ];
        let said = said.into_iter().filter(|(count, _)| *count > 0);
        said.map(|(count, what)| format!("left out: {} {what}", counted(count, "stored session"))).collect()
    }
}

/// The sessions to compare a head with, or why there are none.
///
/// # Errors
/// The place can't be read. A problem with a single file is a [`Fault`].
pub fn history_for_gate(files: &dyn Files, query: &HistoryQuery<'_>) -> Result<Selection, StoreError> {
    let mut baseline = BaselineFolder::open(files, query.suite, &query.testbed.id)?;
    // An acceptance says which sessions no longer count, so without it a regression could look like the old normal.
    if let Some(Fault { path, why }) = baseline.faults.first().cloned() {
        return Err(StoreError::Unreadable { path, why });
    }
    let (ended, in_force) = std::mem::take(&mut baseline.acceptances)
        .into_iter()
        .partition(|(_, acceptance)| has_ended(acceptance, query.now));
    baseline.acceptances = in_force;
    let ended: Vec<AcceptanceFile> = ended.into_iter().map(|(_, acceptance)| acceptance).collect();
    let mut skipped = Skipped::default();
    let mut faults = Vec::new();
    let SessionSearch { kept, slow, red, still_red, .. } =
        newest(files, &baseline, &ended, query, &mut skipped, &mut faults)?;
    let still_red = still_red.into_iter().filter(|name| !kept.iter().any(|kept| kept.has(name))).collect();
    let (earlier, unknown) = earlier::sessions(files, &baseline, &ended, query, &kept, &mut faults)?;
    skipped.unknown = skipped.unknown.max(unknown);
    let mut notes = skipped.notes();
    notes.extend(ended.iter().map(expiry_note));
    if kept.is_empty() {
        return Ok(Selection::Missing(Missing {
            suite: query.suite.to_owned(),
            testbed: query.testbed.id.clone(),
            similar: similar::similar_testbeds(files, query.suite, query.testbed)?,
            unknown: skipped.unknown,
            notes,
            faults,
            still_red,
        }));
    }
    let names = kept.iter().map(|kept| kept.stored.name.clone()).collect();
    let mut runs = assemble(kept, &earlier, &baseline);
    if let Some(newest) = runs.last_mut() {
        newest.1.lints.extend(staleness(&newest.0, query));
    }
    let runs = runs.into_iter().map(|(_, run)| run).collect();
    Ok(Selection::Found(History { runs, names, notes, faults, slow, earlier, red, still_red }))
}

/// A session and which of its benchmarks are part of the baseline.
pub(super) struct UsableSession {
    pub(super) stored: Stored,
    /// For each benchmark of the file: whether it is part of the baseline.
    usable: Vec<bool>,
    /// Benchmarks that are quarantined because they were not measured.
    absent: Vec<String>,
}

/// The search for usable sessions, from the newest to the oldest.
#[derive(Default)]
struct SessionSearch {
    kept: Vec<UsableSession>,
    slow: Vec<Run>,
    red: BTreeSet<Option<String>>,
    still_red: BTreeSet<String>,
    /// Usable sessions of each benchmark that were found, and of all benchmarks together.
    good: BTreeMap<Option<String>, usize>,
    /// Benchmarks that were not measured in the newest session, or are excluded in the newest one that measured them. Their usable sessions are searched beyond
    /// the wanted number of sessions: few would say little of how sessions differ, and a benchmark that is red for longer
    /// must not look like one that is new.
    wanted: BTreeSet<String>,
}

impl SessionSearch {
    fn good(&self, name: &str) -> usize {
        self.good.get(&Some(name.to_owned())).copied().unwrap_or_default()
    }

    /// Whether a benchmark that is red still lacks good sessions. A few are not enough: the last ones before a gradual
    /// slowdown was found are part of it.
    fn wants_red(&self) -> bool {
        self.wanted.iter().any(|name| self.still_red.contains(name))
    }

    /// Adds a session that is older than all before. Returns whether it is used.
    fn add(
        &mut self,
        stored: Stored,
        baseline: &BaselineFolder,
        ended: &[AcceptanceFile],
        sessions: usize,
    ) -> bool {
        let acceptances = &baseline.acceptances;
        let mut usable = usable(&stored, acceptances, ended);
        let is_further = self.kept.len() >= sessions;
        self.still_red.extend(red(&stored, acceptances));
        if !is_further {
            let slow = self.slow_run(&stored, baseline, &usable);
            self.slow.extend(slow);
        }
        for (benchmark, usable) in stored.file.benchmarks.iter().zip(&mut usable) {
            let name = Some(benchmark.name.clone());
            let known = self.good.get(&name).copied();
            let is_measured = benchmark.outcome.status == OutcomeStatus::Ok;
            if known.is_none() && !is_further {
                // The newest session that measured it may be older than many that could not.
                if !(is_measured && *usable) {
                    self.wanted.insert(benchmark.name.clone());
                }
                if is_measured {
                    self.good.insert(name.clone(), 0);
                }
            }
            *usable &= !is_further || self.wanted.contains(&benchmark.name);
            if *usable && is_measured {
                *self.good.entry(name).or_default() += 1;
            }
        }
        if !usable.iter().any(|usable| *usable) {
            return is_further;
        }
        *self.good.entry(None).or_default() += 1;
        let absent = absent(&stored, acceptances);
        if self.kept.is_empty() {
            self.wanted.extend(absent.iter().cloned());
        }
        self.kept.push(UsableSession { stored, usable, absent });
        true
    }

    /// The benchmarks of a session that are excluded because they were slow, and of which no newer session is usable.
    fn slow_run(&mut self, stored: &Stored, baseline: &BaselineFolder, usable: &[bool]) -> Option<Run> {
        let is_open =
            |search: &Self, name: &Option<String>| search.good.get(name).is_none_or(|good| *good == 0);
        let mut run = stored.file.run(&baseline.run_path(&stored.name));
        let mut usable = usable.iter();
        run.benchmarks.retain(|benchmark| {
            let name = Some(benchmark.name.as_str().to_owned());
            let reasons: Vec<_> = held(stored, benchmark.name.as_str(), &baseline.acceptances).collect();
            let is_past = baseline.acceptances.iter().any(|(_, accepted)| {
                accepted.covers(Some(benchmark.name.as_str())) && *stored.name.as_str() < *accepted.from
            });
            let is_slow = usable.next() == Some(&false)
                && !is_past
                && is_open(self, &name)
                && !reasons.is_empty()
                && reasons.iter().all(|reason| is_about_speed(reason));
            if is_slow {
                let regressed = reasons.iter().filter(|reason| reason.cause == QuarantineCause::Regressed);
                let red = regressed.map(|reason| reason.benchmark.clone());
                let red: Vec<_> = red.filter(|name| is_open(self, name)).collect();
                self.red.extend(red);
            }
            is_slow
        });
        (!run.benchmarks.is_empty()).then_some(run)
    }
}

/// Whether a benchmark is excluded for what was measured, and not because the measurement can't be used.
fn is_about_speed(reason: &QuarantineRecord) -> bool {
    match reason.cause {
        QuarantineCause::Regressed => true,
        QuarantineCause::Undecided => reason.benchmark.is_some(),
        QuarantineCause::Diverged
        | QuarantineCause::Errored
        | QuarantineCause::Unverified
        | QuarantineCause::Incomplete => false,
    }
}

impl UsableSession {
    /// The names of the benchmarks that are part of the baseline, or of those that are not.
    pub(super) fn names(&self, usable: bool) -> impl Iterator<Item = &str> {
        let benchmarks = self.stored.file.benchmarks.iter().zip(&self.usable);
        benchmarks.filter(move |(_, is)| **is == usable).map(|(benchmark, _)| benchmark.name.as_str())
    }

    fn has(&self, name: &str) -> bool {
        self.names(true).any(|usable| usable == name)
    }
}

/// The newest usable sessions, oldest first.
fn newest(
    files: &dyn Files,
    baseline: &BaselineFolder,
    ended: &[AcceptanceFile],
    query: &HistoryQuery<'_>,
    skipped: &mut Skipped,
    faults: &mut Vec<Fault>,
) -> Result<SessionSearch, StoreError> {
    // Runs before the last acceptance of all benchmarks are never used, so they are not opened.
    let horizon =
        baseline.acceptances.iter().filter(|(_, a)| a.benchmark.is_none()).map(|(_, a)| &a.from).max();
    let mut names = baseline.newest_at(files, query.now);
    let mut opened = 0;
    let mut search = SessionSearch::default();
    let most = query.sessions.saturating_mul(MAX_OPENED_PER_SESSION);
    while (search.kept.len() < query.sessions || !search.wanted.is_empty())
        && (opened < most || search.wants_red() || search.kept.is_empty())
    {
        let room = query.sessions.checked_sub(search.kept.len()).filter(|room| *room > 0);
        // A long search takes ever larger steps, because a remote place answers each of them with a transfer.
        let room = room.unwrap_or_else(|| opened.max(query.sessions));
        let mut batch = Vec::new();
        for name in names.by_ref() {
            let name = name?;
            if horizon.is_some_and(|from| name.as_str() < from.as_str()) {
                break;
            }
            if ended
                .iter()
                .any(|acceptance| was_stored_under(&name, acceptance) && acceptance.benchmark.is_none())
                && !is_accepted(&name, &baseline.acceptances)
            {
                skipped.quarantined += 1;
                continue;
            }
            match name.commit().map(query.lineage) {
                Some(Lineage::Ancestor) => batch.push(name),
                Some(Lineage::Unrelated) => skipped.unrelated += 1,
                Some(Lineage::Unknown) => skipped.unknown += 1,
                // Without a commit the run can't be related to this history.
                None => skipped.quarantined += 1,
            }
            if batch.len() == room {
                break;
            }
        }
        if batch.is_empty() {
            break;
        }
        opened += batch.len();
        let mut present = BTreeSet::new();
        baseline.prefetch(files, &batch)?;
        for name in &batch {
            let stored = match baseline.load(files, name)? {
                LoadedFile::Run(stored) => stored,
                LoadedFile::Unusable(fault) => {
                    faults.push(fault);
                    continue;
                }
            };
            present.extend(stored.file.benchmarks.iter().map(|benchmark| benchmark.name.clone()));
            if !search.add(stored, baseline, ended, query.sessions) {
                skipped.quarantined += 1;
            }
        }
        // A benchmark that no session of the batch knows is newer than they are.
        let wanted = std::mem::take(&mut search.wanted).into_iter();
        let is_wanted =
            |name: &String, good: usize| good < query.sessions && (good == 0 || present.contains(name));
        search.wanted = wanted.filter(|name| is_wanted(name, search.good(name))).collect();
    }
    faults.append(&mut names.faults);
    search.kept.reverse();
    search.slow.reverse();
    Ok(search)
}

/// The reason why a benchmark of the session is excluded, after acceptances.
pub(super) fn held<'a>(
    stored: &'a Stored,
    name: &'a str,
    acceptances: &'a [(String, AcceptanceFile)],
) -> impl Iterator<Item = &'a QuarantineRecord> {
    stored.file.quarantine.iter().filter(move |reason| {
        reason.benchmark.as_deref().is_none_or(|benchmark| benchmark == name)
            && !is_released(reason, Some(name), &stored.name, acceptances)
    })
}

/// For each benchmark of the file, whether it is part of the baseline.
pub(super) fn usable(
    stored: &Stored,
    acceptances: &[(String, AcceptanceFile)],
    ended: &[AcceptanceFile],
) -> Vec<bool> {
    let is_held = |name: &str| held(stored, name, acceptances).next().is_some();
    let is_past = |name: &str| {
        acceptances
            .iter()
            .any(|(_, accepted)| accepted.covers(Some(name)) && *stored.name.as_str() < *accepted.from)
    };
    let names = stored.file.benchmarks.iter().map(|benchmark| benchmark.name.as_str());
    let was_tolerated = |name: &str| {
        let covered = |acceptance: &&AcceptanceFile| acceptance.covers(Some(name));
        ended.iter().filter(covered).any(|acceptance| was_stored_under(&stored.name, acceptance))
            && !acceptances
                .iter()
                .any(|(_, accepted)| accepted.covers(Some(name)) && *stored.name.as_str() >= *accepted.from)
    };
    names.map(|name| !is_held(name) && !is_past(name) && !was_tolerated(name)).collect()
}

/// Whether a benchmark of the session is part of the baseline, after acceptances.
pub fn is_usable(stored: &Stored, name: &str, acceptances: &[(String, AcceptanceFile)]) -> bool {
    let at = stored.file.benchmarks.iter().position(|benchmark| benchmark.name == name);
    at.is_some_and(|at| usable(stored, acceptances, &[])[at])
}

/// The benchmarks of the session that were measured, and whether each is part of the baseline.
pub(super) fn measured<'a>(
    stored: &'a Stored,
    acceptances: &[(String, AcceptanceFile)],
) -> impl Iterator<Item = (&'a str, bool)> {
    let benchmarks = stored.file.benchmarks.iter().zip(usable(stored, acceptances, &[]));
    let measured = benchmarks.filter(|(benchmark, _)| benchmark.outcome.status == OutcomeStatus::Ok);
    measured.map(|(benchmark, usable)| (benchmark.name.as_str(), usable))
}

/// Benchmarks that the session should have measured: they are quarantined by name but not in the file.
fn absent(stored: &Stored, acceptances: &[(String, AcceptanceFile)]) -> Vec<String> {
    let named =
        stored.file.quarantine.iter().filter_map(|reason| Some((reason, reason.benchmark.as_deref()?)));
    named
        .filter(|(reason, name)| !is_released(reason, Some(name), &stored.name, acceptances))
        .map(|(_, name)| name.to_owned())
        .filter(|name| stored.file.benchmarks.iter().all(|benchmark| benchmark.name != *name))
        .collect()
}

/// Benchmarks that are excluded because they were slower than the sessions before.
fn red(stored: &Stored, acceptances: &[(String, AcceptanceFile)]) -> Vec<String> {
    let regressed =
        |name: &str| held(stored, name, acceptances).any(|reason| reason.cause == QuarantineCause::Regressed);
    let names = stored.file.benchmarks.iter().map(|benchmark| &benchmark.name);
    names.filter(|name| regressed(name)).cloned().collect()
}

/// Whether an acceptance has expired. Days are in UTC, like the names of runs.
fn has_ended(acceptance: &AcceptanceFile, now: Timestamp) -> bool {
    last_moment(acceptance).is_some_and(|last| name::stamp(&now.to_string()).is_some_and(|now| now > last))
}

/// The end of the last day of an acceptance, in the format of names.
fn last_moment(acceptance: &AcceptanceFile) -> Option<String> {
    acceptance.until.as_ref().map(|until| format!("{}T235959Z", until.replace('-', "")))
}

/// Whether a run was stored while the acceptance, now expired, was in force.
fn was_stored_under(name: &RunName, ended: &AcceptanceFile) -> bool {
    *name.as_str() >= *ended.from && last_moment(ended).is_some_and(|last| name.time() <= last.as_str())
}

/// Whether an acceptance of all benchmarks that is still in force covers the run.
fn is_accepted(name: &RunName, in_force: &[(String, AcceptanceFile)]) -> bool {
    in_force.iter().any(|(_, accepted)| accepted.benchmark.is_none() && *name.as_str() >= *accepted.from)
}

fn expiry_note(ended: &AcceptanceFile) -> String {
    let what = ended.benchmark.as_ref().map_or("every benchmark", BenchmarkGlob::as_str);
    let until = ended.until.as_deref().unwrap_or_default();
    format!(
        "the acceptance of {what} by {} expired after {until} ({}): sessions stored under it are no longer part of the baseline",
        ended.who, ended.why
    )
}

/// Converts the sessions to runs. Outcomes and exact metrics are compared with the newest session, so a benchmark that
/// is quarantined there is moved there from the newest session in which it is usable. It is moved and not copied,
/// because a session that counts twice would make the spread look smaller. A benchmark that never worked is left
/// unchanged, so that the comparison can report it. One without any usable session is not left out, because it would
/// look like a new one.
fn assemble(
    kept: Vec<UsableSession>,
    earlier: &[EarlierSessions],
    baseline: &BaselineFolder,
) -> Vec<(RunName, Run)> {
    let mut runs: Vec<(RunName, Run)> = Vec::with_capacity(kept.len());
    let mut wanted = Vec::new();
    let last = kept.len().saturating_sub(1);
    for (at, UsableSession { stored, usable, absent }) in kept.into_iter().enumerate() {
        let mut run = stored.file.run(&baseline.run_path(&stored.name));
        if at == last {
            let is_measured = |benchmark: &BaselineBenchmark| benchmark.outcome.status == OutcomeStatus::Ok;
            let held = stored.file.benchmarks.iter().zip(&usable);
            let held = held.filter(|(benchmark, usable)| !**usable || !is_measured(benchmark));
            wanted = held
                .map(|(benchmark, _)| (BenchmarkName::new(&benchmark.name), !is_measured(benchmark)))
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
        let place = |run: &Run| {
            run.benchmarks.iter().position(|benchmark| benchmark.name == name && benchmark.outcome.is_ok())
        };
        let found = older.iter_mut().rev().find_map(|(_, run)| Some(run.benchmarks.remove(place(run)?)));
        let in_earlier = || {
            let mut runs = earlier.iter().rev().flat_map(|sessions| sessions.runs.iter().rev());
            runs.find_map(|run| Some(run.benchmarks[place(run)?].clone()))
        };
        let found = found.or_else(in_earlier);
        match (found, places.get(&name)) {
            (Some(benchmark), Some(&at)) if unmeasured => newest.1.benchmarks[at] = benchmark,
            (Some(benchmark), _) => newest.1.benchmarks.push(benchmark),
            (None, Some(_)) => {}
            (None, None) => newest.1.benchmarks.push(quarantined(name)),
        }
    }
    runs
}

/// A benchmark of which no session can be compared with.
fn quarantined(name: BenchmarkName) -> Benchmark {
    let why = "no stored session of it is part of the baseline";
    Benchmark {
        outcome: Outcome::Skipped { reason: why.to_owned() },
        lints: vec![Lint::new(LintCode::Quarantined, why)],
        ..Benchmark::new(name.as_str())
    }
}

fn staleness(name: &RunName, query: &HistoryQuery<'_>) -> Option<Lint> {
    let days = query.now.duration_since(name.began()?).as_hours() / 24;
    (days >= i64::from(query.stale_days)).then(|| {
        Lint::new(
            LintCode::StaleBaseline,
            format!(
                "its newest session is {} old",
                counted(usize::try_from(days).unwrap_or_default(), "day")
            ),
        )
    })
}
