//! Selects older sessions to compare a run with, in addition to the newest ones. The newest sessions follow a
//! gradual slowdown, so they can't show it. The number of sessions read does not depend on the length of the
//! history.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use benchgate_core::model::Run;
use benchgate_gate::{EarlierSessions, LEVEL_SESSIONS};

use super::quarantine::is_about_speed;
use super::usable::{HistoryQuery, Lineage, UsableSession, held, is_past, usable};
use super::{BaselineFolder, Fault, Files, RunName, StoreError, Stored};

/// Number of sessions to read from each starting day on. Some of them may be quarantined.
const FROM_EACH: usize = 7;
/// Maximum number of files to open from each starting day on, if some sessions are quarantined or
/// can't be read.
const MOST_FROM_EACH: usize = 20;
/// Starting days, in days before the comparison. Sessions are read from each of these days on, in addition to
/// the first sessions and those after each acceptance. Days after the first session are needed because a
/// benchmark that became faster or was added after the first session has its best level later. Each day is
/// about 1.4 times as far back as the one before. With a factor of two, a slowdown of 3 % over half a year
/// went unnoticed for weeks, because one day fell before an improvement and the next one into the slowdown.
/// The days are counted back from the comparison. For a benchmark that has been red for a while, they are
/// also counted from its last good session, so that its reference level stays until the slowdown is accepted.
const DAYS_BEFORE: [i64; 12] = [15, 30, 45, 60, 90, 120, 180, 240, 360, 480, 720, 960];
/// Maximum number of acceptances, newest first, whose first sessions are read.
const ACCEPTANCES: usize = 8;
/// Number of days without a good session after which a benchmark's days are also counted from its last good
/// session. A single excluded session must not change them.
const RED_FOR: i64 = 7;
/// Maximum number of periods to list from each starting day on.
const PERIODS: usize = 12;

/// Reads good sessions from each starting day on, oldest first. Also returns how many can't be used
/// because this shallow clone does not contain their commits. `kept` are the sessions that were
/// already read, oldest first.
pub(super) fn sessions(
    files: &dyn Files,
    baseline: &BaselineFolder,
    query: &HistoryQuery<'_>,
    kept: &[UsableSession],
    faults: &mut Vec<Fault>,
) -> Result<(Vec<EarlierSessions>, usize), StoreError> {
    if kept.is_empty() {
        return Ok((Vec::new(), 0));
    }
    let mut listing = Listing {
        files,
        baseline,
        periods: files.periods(&baseline.folder)?,
        names: BTreeMap::new(),
        unknown: BTreeSet::new(),
    };
    let (mut known, mut found) = (BTreeSet::new(), Vec::new());
    for start in starts(baseline, query, kept) {
        let names = listing.from(start.as_ref(), query)?;
        // If there is no session between two days, both begin with the same session.
        let Some(first) = names.first().filter(|first| known.insert((*first).clone())) else { continue };
        let mut group = EarlierSessions { since: day(first), runs: Vec::new() };
        let (likely, more) = names.split_at(names.len().min(FROM_EACH));
        for names in [likely, more] {
            if group.runs.len() >= LEVEL_SESSIONS {
                break;
            }
            for stored in read(files, baseline, names, kept, faults)? {
                let mut usable = usable(&stored, baseline).into_iter();
                let mut run = stored.file.run(&baseline.run_path(&stored.name));
                run.benchmarks.retain(|_| usable.next().unwrap_or(false));
                group.runs.push(run);
            }
        }
        found.push(group);
    }
    Ok((found, listing.unknown.len()))
}

/// Reads the sessions among the newest ones that precede an acceptance, oldest first, each reduced to the
/// benchmarks that it covers. Those that were slow are among them: a change of level hardly affects how much
/// sessions differ, and a slowdown may have been open for long before it was accepted.
pub(super) fn before_acceptances(
    files: &dyn Files,
    baseline: &BaselineFolder,
    query: &HistoryQuery<'_>,
    kept: &[UsableSession],
    faults: &mut Vec<Fault>,
) -> Result<Vec<Run>, StoreError> {
    let acceptances = &baseline.acceptances;
    let last = acceptances.iter().map(|(_, accepted)| accepted.from.as_str()).max();
    let Some((last, oldest)) = last.zip(kept.first()) else { return Ok(Vec::new()) };
    if kept.len() >= query.sessions && oldest.stored.name.as_str() >= last {
        return Ok(Vec::new());
    }
    let mut names = Vec::new();
    let newest = baseline.newest_at(files, query.now);
    for name in newest {
        let name = name?;
        if names.len() == query.sessions {
            break;
        }
        if name.commit().map(query.lineage) == Some(Lineage::Ancestor) {
            names.push(name);
        }
    }
    names.retain(|name| name.as_str() < last);
    names.reverse();
    let mut found = Vec::new();
    for stored in read(files, baseline, &names, kept, faults)? {
        let mut run = stored.file.run(&baseline.run_path(&stored.name));
        run.benchmarks.retain(|benchmark| {
            let name = benchmark.name.as_str();
            is_past(&stored, name, acceptances) && held(&stored, name, acceptances).all(is_about_speed)
        });
        found.extend(Some(run).filter(|run| !run.benchmarks.is_empty()));
    }
    Ok(found)
}

/// Reads sessions, of which `kept` were already read. One that can't be used is left out.
fn read(
    files: &dyn Files,
    baseline: &BaselineFolder,
    names: &[RunName],
    kept: &[UsableSession],
    faults: &mut Vec<Fault>,
) -> Result<Vec<Stored>, StoreError> {
    let is_kept = |name: &RunName| kept.iter().find(|kept| kept.stored.name == *name);
    let unread: Vec<RunName> = names.iter().filter(|name| is_kept(name).is_none()).cloned().collect();
    baseline.prefetch(files, &unread)?;
    let mut read = Vec::new();
    for name in names {
        match is_kept(name) {
            Some(kept) => read.push(kept.stored.clone()),
            None => match baseline.load(files, name)? {
                Ok(stored) => read.push(stored),
                Err(fault) if !faults.contains(&fault) => faults.push(fault),
                Err(_) => {}
            },
        }
    }
    Ok(read)
}

/// Starts of the ranges of sessions to read, in ascending order. `None` stands for the beginning of the
/// history.
fn starts(
    baseline: &BaselineFolder,
    query: &HistoryQuery<'_>,
    kept: &[UsableSession],
) -> BTreeSet<Option<RunName>> {
    let before = |end: Timestamp, days: i64| end.checked_sub(SignedDuration::from_hours(24 * days)).ok();
    let long_ago = before(query.now, RED_FOR);
    let ends =
        last_good(kept).into_iter().filter(|end| long_ago.is_some_and(|ago| *end < ago)).chain([query.now]);
    let days = ends.flat_map(|end| DAYS_BEFORE.iter().filter_map(move |days| before(end, *days)));
    let days = days.filter_map(|day| RunName::new(&day.to_string(), None));
    let fixed = fixed_starts(baseline);
    let first = fixed.first().cloned().flatten();
    days.map(Some).filter(|day| *day > first).chain(fixed).collect()
}

/// The times of the last good sessions of all benchmarks.
fn last_good(kept: &[UsableSession]) -> BTreeSet<Timestamp> {
    let mut known = BTreeSet::new();
    let newest_first = kept.iter().rev();
    let last =
        newest_first.filter(|session| session.names(true).filter(|name| known.insert(*name)).count() > 0);
    last.filter_map(|session| session.stored.name.began()).collect()
}

/// Starts that don't depend on the time of the comparison: the first session that counts, and the
/// acceptances.
fn fixed_starts(baseline: &BaselineFolder) -> BTreeSet<Option<RunName>> {
    let accepted = baseline.acceptances.iter().map(|(_, accepted)| accepted);
    // No session before an acceptance of all benchmarks counts.
    let of_all = accepted.clone().filter(|accepted| accepted.starts_a_history());
    let horizon = of_all.filter_map(|accepted| RunName::from_stem(&accepted.from)).max();
    let from: BTreeSet<RunName> =
        accepted.filter_map(|accepted| RunName::from_stem(&accepted.from)).collect();
    let from = from.into_iter().rev().take(ACCEPTANCES).map(Some).filter(|from| *from > horizon);
    from.chain([horizon.clone()]).collect()
}

/// The sessions of `runs` that later ones are compared with, and that therefore must not be pruned: the first of
/// each fixed start, and the first of each half month, because [`DAYS_BEFORE`] looks for levels of days in between.
/// Without the latter, a slowdown that begins after an improvement would only be compared with the slower first
/// sessions, and with the newest ones, which follow it.
pub(super) fn first_sessions<'a>(baseline: &BaselineFolder, runs: &'a [RunName]) -> BTreeSet<&'a RunName> {
    let fixed = fixed_starts(baseline);
    let from = |start: &Option<RunName>| {
        let start = runs.partition_point(|name| start.as_ref().is_some_and(|start| name < start));
        &runs[start..]
    };
    let counting = fixed.first().map_or(runs, from);
    let halves = counting.chunk_by(|a, b| half_month(a) == half_month(b));
    let first = fixed.iter().map(from).chain(halves);
    first.flat_map(|sessions| sessions.iter().take(LEVEL_SESSIONS)).collect()
}

/// The year and month of a session, and whether it is in the second half of the month.
fn half_month(name: &RunName) -> (&str, bool) {
    let (month, day) = name.time()[..8].split_at(6);
    (month, day > "15")
}

fn day(name: &RunName) -> String {
    let time = name.time();
    format!("{}-{}-{}", &time[..4], &time[4..6], &time[6..8])
}

/// The sessions of a folder, whose periods are listed on demand.
struct Listing<'a> {
    files: &'a dyn Files,
    baseline: &'a BaselineFolder,
    /// All periods, oldest first.
    periods: Vec<String>,
    /// Names of the sessions, by period.
    names: BTreeMap<String, Vec<RunName>>,
    /// Runs whose commits are not in this shallow clone.
    unknown: BTreeSet<RunName>,
}

impl Listing<'_> {
    /// The first [`MOST_FROM_EACH`] sessions, from `start` on, whose commits are ancestors.
    fn from(
        &mut self,
        start: Option<&RunName>,
        query: &HistoryQuery<'_>,
    ) -> Result<Vec<RunName>, StoreError> {
        let first = start.map(|start| self.files.period_of(start)).unwrap_or_default();
        let periods = self.periods.iter().filter(|period| **period >= first).take(PERIODS);
        let mut found = Vec::new();
        for period in periods {
            if !self.names.contains_key(period) {
                let files = self.files.names_in(&self.baseline.folder, period)?;
                let names = files.iter().filter_map(|file| RunName::parse(file, self.baseline.encoding));
                // An object that was copied to another month has no session at the path that its name says.
                let names = names.filter(|name| self.files.period_of(name) == *period);
                self.names.insert(period.clone(), names.collect());
            }
            let names = self.names.get(period).into_iter().flatten();
            for name in names.filter(|name| start.is_none_or(|start| *name >= start)) {
                if found.len() == MOST_FROM_EACH {
                    return Ok(found);
                }
                match name.commit().map(query.lineage) {
                    Some(Lineage::Ancestor) => found.push(name.clone()),
                    Some(Lineage::Unknown) => {
                        self.unknown.insert(name.clone());
                    }
                    Some(Lineage::Unrelated) | None => {}
                }
            }
        }
        Ok(found)
    }
}
