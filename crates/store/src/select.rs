//! Selects the sessions that a head is compared with: the newest ones of its testbed since the last
//! acceptance, whose commits are ancestors of the head, without quarantined results.

use std::collections::{BTreeMap, BTreeSet};

use benchgate_core::model::{
    Benchmark, BenchmarkGlob, BenchmarkName, Lint, LintCode, Outcome, RENAMED_FROM, Run, counted,
};
use benchgate_core::record::{AcceptanceFile, BaselineBenchmark, OutcomeStatus, QuarantineCause};
use benchgate_gate::{EarlierSessions, StoredSessions};

use super::folder::SimilarTestbed;
use super::quarantine::is_about_speed;
use super::usable::{UsableSession, absent, held, is_past, usable, was_stored_under};
use super::{
    BaselineFolder, Fault, Files, HistoryQuery, Lineage, RunName, StoreError, Stored, earlier, folder,
};

/// Maximum number of files to open per wanted session, so that a baseline with a thousand quarantined runs is
/// not read completely. The limit does not apply while an unaccepted slowdown hides the good sessions before
/// it.
const MAX_OPENED_PER_SESSION: usize = 5;

/// The result of a [`HistoryQuery`].
#[derive(Debug, Clone, PartialEq)]
pub enum Selection {
    Found(History),
    Missing(Missing),
}

/// The sessions to compare with.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// The sessions, oldest first, without quarantined results and results from before an acceptance. The
    /// newest one has the finding about a stale baseline, if there is one.
    pub runs: Vec<Run>,
    pub names: Vec<RunName>,
    /// Sentences about the runs that were skipped.
    pub notes: Vec<String>,
    /// Files that can't be used; these are always reported.
    pub faults: Vec<Fault>,
    /// Sessions that were excluded because benchmarks were slow, and that are newer than the last good
    /// session of these benchmarks. The runs contain only these benchmarks; oldest first.
    pub slow: Vec<Run>,
    /// Sessions before an acceptance, reduced to the benchmarks that it covers; oldest first.
    pub before: Vec<Run>,
    /// Good older sessions since the last acceptance, grouped by starting day.
    pub earlier: Vec<EarlierSessions>,
    /// Benchmarks that are quarantined for a regression in `slow`, with the oldest of these sessions; `None` stands for
    /// all of them together.
    pub red: BTreeMap<Option<String>, RunName>,
    /// Benchmarks as in [`Missing::still_red`].
    pub still_red: Vec<String>,
    /// Runs as in [`Missing::unknown`]. They may be the ones that show a gradual slowdown.
    pub unknown: usize,
}

impl History {
    /// The sessions that a run is compared with. `storing` is true if a good run is added to the
    /// baseline.
    pub fn sessions(&self, storing: bool) -> StoredSessions<'_> {
        let Self { runs, slow, before, earlier, .. } = self;
        StoredSessions { good: runs, slow, before, earlier, storing }
    }

    /// Gives the benchmarks of renamed models their new names; `renames` maps new names of models to old ones.
    pub fn take_names(&mut self, renames: &BTreeMap<String, String>) {
        let earlier = self.earlier.iter_mut().flat_map(|sessions| &mut sessions.runs);
        let runs = self.runs.iter_mut().chain(&mut self.slow).chain(&mut self.before).chain(earlier);
        for run in runs {
            let renamed = |old: &BenchmarkName| {
                let (model, rest) = old.as_str().split_once('/')?;
                let (to, _) = renames.iter().find(|(_, from)| *from == model)?;
                Some(BenchmarkName::new(format!("{to}/{rest}")))
            };
            // A benchmark that already had a new name was another one, which was removed.
            let taken: BTreeSet<BenchmarkName> =
                run.benchmarks.iter().filter_map(|benchmark| renamed(&benchmark.name)).collect();
            run.benchmarks.retain(|benchmark| !taken.contains(&benchmark.name));
            for benchmark in &mut run.benchmarks {
                let Some(new) = renamed(&benchmark.name) else { continue };
                // The policy for the old name applies.
                benchmark.labels.insert(RENAMED_FROM.to_owned(), benchmark.name.as_str().to_owned());
                benchmark.rename(new);
            }
        }
    }
}

/// The facts about a baseline without sessions to compare with.
#[derive(Debug, Clone, PartialEq)]
pub struct Missing {
    pub suite: String,
    pub testbed: String,
    pub notes: Vec<String>,
    pub faults: Vec<Fault>,
    /// Testbeds of this suite that differ in few facts. They are listed, but never used.
    pub similar: Vec<SimilarTestbed>,
    /// Number of runs whose relation to the compared commit is unknown, because this clone is shallow.
    pub unknown: usize,
    /// Benchmarks that are quarantined for a regression and have no session to compare with. A session that
    /// is stored now must not become their new baseline by itself.
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

/// Finds the sessions to compare a head with, or the reason why there are none.
///
/// # Errors
/// The baseline can't be read. A problem with a single file is a [`Fault`].
pub fn history_for_gate(files: &dyn Files, query: &HistoryQuery<'_>) -> Result<Selection, StoreError> {
    let mut baseline = BaselineFolder::open(files, query.suite, &query.testbed.id)?;
    // An acceptance shows which sessions no longer count. Without it, the comparison would use
    // sessions from before the change.
    if let Some(Fault { path, why }) = baseline.faults.first().cloned() {
        return Err(StoreError::Unreadable { path, why });
    }
    baseline.end_acceptances(query.now);
    let mut skipped = Skipped::default();
    let mut faults = Vec::new();
    let SessionSearch { kept, slow, red, still_red, .. } =
        newest(files, &baseline, query, &mut skipped, &mut faults)?;
    let still_red = still_red.into_iter().filter(|name| !kept.iter().any(|kept| kept.has(name))).collect();
    let (earlier, unknown) = earlier::sessions(files, &baseline, query, &kept, &mut faults)?;
    let before = earlier::before_acceptances(files, &baseline, query, &kept, &mut faults)?;
    skipped.unknown = skipped.unknown.max(unknown);
    let mut notes = skipped.notes();
    notes.extend(baseline.ended.iter().map(|(_, ended)| expiry_note(ended)));
    if kept.is_empty() {
        return Ok(Selection::Missing(Missing {
            suite: query.suite.to_owned(),
            testbed: query.testbed.id.clone(),
            similar: folder::similar_testbeds(files, query.suite, query.testbed)?,
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
    let unknown = skipped.unknown;
    Ok(Selection::Found(History {
        runs,
        names,
        notes,
        faults,
        slow,
        before,
        earlier,
        red,
        still_red,
        unknown,
    }))
}

/// The search for usable sessions, from the newest to the oldest.
#[derive(Default)]
struct SessionSearch {
    kept: Vec<UsableSession>,
    slow: Vec<Run>,
    red: BTreeMap<Option<String>, RunName>,
    still_red: BTreeSet<String>,
    /// Number of usable sessions found so far for each benchmark; under `None`, for all benchmarks together.
    good: BTreeMap<Option<String>, usize>,
    /// Benchmarks that were not measured in the newest session, or were excluded in the newest one that
    /// measured them. The search for their usable sessions goes beyond the requested number of sessions,
    /// because a few sessions don't show the spread between sessions, and a benchmark that has been red for
    /// long must not look like a new one.
    wanted: BTreeSet<String>,
}

impl SessionSearch {
    fn good(&self, name: &str) -> usize {
        self.good.get(&Some(name.to_owned())).copied().unwrap_or_default()
    }

    /// Returns whether a benchmark that is red still lacks good sessions. A few are not enough, because the
    /// last ones before a gradual slowdown was detected are already part of it.
    fn wants_red(&self) -> bool {
        self.wanted.iter().any(|name| self.still_red.contains(name))
    }

    /// Adds the next older session. Returns whether it is used.
    fn add(&mut self, stored: Stored, baseline: &BaselineFolder, sessions: usize) -> bool {
        let acceptances = &baseline.acceptances;
        let mut usable = usable(&stored, baseline);
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
                // The newest session that measured a benchmark may be older than many sessions that could not
                // measure it.
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

    /// The session reduced to the benchmarks that are excluded because they were slow and have no newer
    /// usable session.
    fn slow_run(&mut self, stored: &Stored, baseline: &BaselineFolder, usable: &[bool]) -> Option<Run> {
        let is_open =
            |search: &Self, name: &Option<String>| search.good.get(name).is_none_or(|good| *good == 0);
        let mut run = stored.file.run(&baseline.run_path(&stored.name));
        let mut usable = usable.iter();
        run.benchmarks.retain(|benchmark| {
            let name = Some(benchmark.name.as_str().to_owned());
            let reasons: Vec<_> = held(stored, benchmark.name.as_str(), &baseline.acceptances).collect();
            let is_slow = usable.next() == Some(&false)
                && !is_past(stored, benchmark.name.as_str(), &baseline.acceptances)
                && is_open(self, &name)
                && !reasons.is_empty()
                && reasons.iter().all(|reason| is_about_speed(reason));
            if is_slow {
                let regressed = reasons.iter().filter(|reason| reason.cause == QuarantineCause::Regressed);
                let red = regressed.map(|reason| reason.benchmark.clone());
                let red: Vec<_> = red.filter(|name| is_open(self, name)).collect();
                self.red.extend(red.into_iter().map(|name| (name, stored.name.clone())));
            }
            is_slow
        });
        (!run.benchmarks.is_empty()).then_some(run)
    }
}

/// The newest usable sessions, oldest first.
fn newest(
    files: &dyn Files,
    baseline: &BaselineFolder,
    query: &HistoryQuery<'_>,
    skipped: &mut Skipped,
    faults: &mut Vec<Fault>,
) -> Result<SessionSearch, StoreError> {
    // Runs before the last acceptance of all benchmarks are never used, so their files are not opened.
    let horizon =
        baseline.acceptances.iter().filter(|(_, a)| a.starts_a_history()).map(|(_, a)| &a.from).max();
    let mut names = baseline.newest_at(files, query.now);
    let mut opened = 0;
    let mut search = SessionSearch::default();
    let most = query.sessions.saturating_mul(MAX_OPENED_PER_SESSION);
    while (search.kept.len() < query.sessions || !search.wanted.is_empty())
        && (opened < most || search.wants_red() || search.kept.is_empty())
    {
        let room = query.sessions.checked_sub(search.kept.len()).filter(|room| *room > 0);
        // A long search takes increasingly large steps, because each step is a separate transfer from a
        // remote baseline.
        let room = room.unwrap_or_else(|| opened.max(query.sessions));
        let mut batch = Vec::new();
        for name in names.by_ref() {
            let name = name?;
            if horizon.is_some_and(|from| name.as_str() < from.as_str()) {
                break;
            }
            let of_all = baseline.ended.iter().filter(|(_, ended)| ended.starts_a_history());
            if of_all.into_iter().any(|(_, ended)| was_stored_under(&name, ended))
                && !is_accepted(&name, &baseline.acceptances)
            {
                skipped.quarantined += 1;
                continue;
            }
            match name.commit().map(query.lineage) {
                Some(Lineage::Ancestor) => batch.push(name),
                Some(Lineage::Unrelated) => skipped.unrelated += 1,
                Some(Lineage::Unknown) => skipped.unknown += 1,
                // A run without a commit has no position in this history.
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
        for loaded in baseline.load_all(files, &batch) {
            let stored = match loaded? {
                Ok(stored) => stored,
                Err(fault) => {
                    faults.push(fault);
                    continue;
                }
            };
            present.extend(stored.file.benchmarks.iter().map(|benchmark| benchmark.name.clone()));
            if !search.add(stored, baseline, query.sessions) {
                skipped.quarantined += 1;
            }
        }
        // A benchmark that no session of this batch contains was added later, so older sessions don't contain
        // it either.
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

/// Returns whether an acceptance of all benchmarks that is still in force covers the run.
fn is_accepted(name: &RunName, in_force: &[(String, AcceptanceFile)]) -> bool {
    in_force.iter().any(|(_, accepted)| accepted.benchmark.is_none() && *name.as_str() >= *accepted.from)
}

/// Benchmarks that are excluded because they were slower than in the sessions before. An acceptance ends this for older
/// sessions.
fn red(stored: &Stored, acceptances: &[(String, AcceptanceFile)]) -> Vec<String> {
    let regressed =
        |name: &str| held(stored, name, acceptances).any(|reason| reason.cause == QuarantineCause::Regressed);
    let names = stored.file.benchmarks.iter().map(|benchmark| &benchmark.name);
    names.filter(|name| regressed(name) && !is_past(stored, name, acceptances)).cloned().collect()
}

/// Converts the sessions to runs. Outcomes and exact metrics are compared with the newest session. So a
/// benchmark that is quarantined there is moved to it from the newest session in which the benchmark is
/// usable. The benchmark is moved rather than copied, because counting a session twice would make the spread
/// look smaller. A benchmark that never worked stays unchanged, so that the comparison can report it. A
/// benchmark without any usable session is kept too, because otherwise it would look like a new one.
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

/// A placeholder for a benchmark that has no session to compare with.
fn quarantined(name: BenchmarkName) -> Benchmark {
    let why = "no stored session of this benchmark is part of the baseline";
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
                "the newest stored session is {} old",
                counted(usize::try_from(days).unwrap_or_default(), "day")
            ),
        )
    })
}

fn expiry_note(ended: &AcceptanceFile) -> String {
    let what = ended.benchmark.as_ref().map_or("every benchmark", BenchmarkGlob::as_str);
    let until = ended.until.as_deref().unwrap_or_default();
    let end = if ended.is_withdrawal() {
        format!("was withdrawn by {}", ended.who)
    } else {
        format!("by {} expired after {until}", ended.who)
    };
    format!(
        "the acceptance of {what} {end} ({}): sessions stored under it are no longer part of the baseline",
        ended.why
    )
}
