//! Decides which stored results a comparison uses: those of ancestors of its commit, except quarantined ones, those
//! from before an acceptance, and those stored under one that has ended.

use jiff::Timestamp;

use benchgate_core::model::Testbed;
use benchgate_core::record::{AcceptanceFile, OutcomeStatus, QuarantineRecord};
use benchgate_host::git::Ancestry;

use super::quarantine::is_released;
use super::{BaselineFolder, RunName, Stored, name};

/// The relation of a stored commit to the compared commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lineage {
    Ancestor,
    /// The commit is on another branch, or later than the compared commit.
    Unrelated,
    /// The history of this shallow clone is too short to tell.
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

/// The request for a history to compare with.
pub struct HistoryQuery<'a> {
    pub suite: &'a str,
    pub testbed: &'a Testbed,
    /// The maximum number of sessions.
    pub sessions: usize,
    /// Age in days at which the newest session makes the baseline stale.
    pub stale_days: u32,
    /// Tells how a commit is related to the compared one.
    pub lineage: &'a dyn Fn(&str) -> Lineage,
    /// The time of the comparison, by which staleness is judged.
    pub now: Timestamp,
}

/// A session that is used, and which of its benchmarks are part of the baseline.
pub(super) struct UsableSession {
    pub(super) stored: Stored,
    /// For each benchmark of the file, in its order: true if it is part of the baseline.
    pub(super) usable: Vec<bool>,
    /// Names of benchmarks that are quarantined because they were not measured.
    pub(super) absent: Vec<String>,
}

impl UsableSession {
    /// The names of the benchmarks that are part of the baseline; with `usable` false, of the others.
    pub(super) fn names(&self, usable: bool) -> impl Iterator<Item = &str> {
        let benchmarks = self.stored.file.benchmarks.iter().zip(&self.usable);
        benchmarks.filter(move |(_, is)| **is == usable).map(|(benchmark, _)| benchmark.name.as_str())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.names(true).any(|usable| usable == name)
    }
}

/// The reasons why a benchmark of the session is still excluded after acceptances.
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

/// Returns whether a session precedes an acceptance of this benchmark.
pub(super) fn is_past(stored: &Stored, name: &str, acceptances: &[(String, AcceptanceFile)]) -> bool {
    acceptances
        .iter()
        .any(|(_, accepted)| accepted.covers(Some(name)) && *stored.name.as_str() < *accepted.from)
}

/// Determines for each benchmark of the file, in its order, whether it is part of the baseline.
pub(super) fn usable(stored: &Stored, baseline: &BaselineFolder) -> Vec<bool> {
    let BaselineFolder { acceptances, ended, .. } = baseline;
    let is_held = |name: &str| held(stored, name, acceptances).next().is_some();
    let names = stored.file.benchmarks.iter().map(|benchmark| benchmark.name.as_str());
    let was_tolerated = |name: &str| {
        let covered = ended.iter().filter(|(_, ended)| ended.covers(Some(name)));
        covered.into_iter().any(|(_, ended)| was_stored_under(&stored.name, ended))
            && !acceptances
                .iter()
                .any(|(_, accepted)| accepted.covers(Some(name)) && *stored.name.as_str() >= *accepted.from)
    };
    names.map(|name| !is_held(name) && !is_past(stored, name, acceptances) && !was_tolerated(name)).collect()
}

/// Returns whether a benchmark of the session is part of the baseline, considering acceptances.
pub fn is_usable(stored: &Stored, name: &str, baseline: &BaselineFolder) -> bool {
    let at = stored.file.benchmarks.iter().position(|benchmark| benchmark.name == name);
    at.is_some_and(|at| usable(stored, baseline)[at])
}

/// The benchmarks of the session that were measured, and whether each is part of the baseline.
pub(super) fn measured<'a>(
    stored: &'a Stored,
    baseline: &BaselineFolder,
) -> impl Iterator<Item = (&'a str, bool)> {
    let benchmarks = stored.file.benchmarks.iter().zip(usable(stored, baseline));
    let measured = benchmarks.filter(|(benchmark, _)| benchmark.outcome.status == OutcomeStatus::Ok);
    measured.map(|(benchmark, usable)| (benchmark.name.as_str(), usable))
}

/// Benchmarks that the session should have measured but did not: their quarantine names them, and the file
/// does not contain them.
pub(super) fn absent(stored: &Stored, acceptances: &[(String, AcceptanceFile)]) -> Vec<String> {
    let named =
        stored.file.quarantine.iter().filter_map(|reason| Some((reason, reason.benchmark.as_deref()?)));
    named
        .filter(|(reason, name)| !is_released(reason, Some(name), &stored.name, acceptances))
        .map(|(_, name)| name.to_owned())
        .filter(|name| stored.file.benchmarks.iter().all(|benchmark| benchmark.name != *name))
        .collect()
}

impl BaselineFolder {
    /// Moves the acceptances that have expired or were withdrawn from `acceptances` to `ended`.
    pub fn end_acceptances(&mut self, now: Timestamp) {
        let ended = self.acceptances.extract_if(.., |(_, acceptance)| has_ended(acceptance, now));
        self.ended.extend(ended);
    }
}

/// Returns whether an acceptance has expired or was withdrawn. Days are in UTC, as in the names of
/// runs.
fn has_ended(acceptance: &AcceptanceFile, now: Timestamp) -> bool {
    acceptance.is_withdrawal()
        || last_moment(acceptance)
            .is_some_and(|last| name::stamp(&now.to_string()).is_some_and(|now| now > last))
}

/// The last moment at which an acceptance with a last day applies, in the format of names: the end
/// of its last day, or the time of its creation if that is later, because a withdrawal names a day
/// that has passed.
fn last_moment(acceptance: &AcceptanceFile) -> Option<String> {
    let end = format!("{}T235959Z", acceptance.until.as_ref()?.replace('-', ""));
    Some(name::stamp(&acceptance.created).map_or(end.clone(), |created| created.max(end)))
}

/// Returns whether a run was stored while the now expired acceptance was in force.
pub(super) fn was_stored_under(name: &RunName, ended: &AcceptanceFile) -> bool {
    *name.as_str() >= *ended.from && last_moment(ended).is_some_and(|last| name.time() <= last.as_str())
}
