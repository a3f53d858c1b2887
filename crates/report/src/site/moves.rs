//! Changes of levels, and benchmarks that moved together.

use super::history::{Session, Timeline, Track};
use benchgate_stats::change_points::change_points;

/// Smaller changes are not listed individually, because no gate could have detected them.
const LEAST_SHOWN: f64 = 0.003;

/// One change of level of one metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Move {
    /// Session of the first value of the new level, and the earliest and latest one that it may be.
    pub at: usize,
    pub earliest: usize,
    pub latest: usize,
    /// Session of the last value that certainly has the old level.
    pub before: usize,
    /// Ratio of this cost to the one before: above one is worse.
    pub cost_ratio: f64,
    /// Strength of the evidence: see [`benchgate_stats::change_points::ChangePoint::evidence`].
    pub evidence: f64,
    /// Values before and after.
    pub from: f64,
    pub to: f64,
    /// The newest level, after all changes, and how many times the cost before this change it is.
    pub now: f64,
    pub total_ratio: f64,
}

impl Move {
    pub fn is_worse(&self) -> bool {
        self.cost_ratio > 1.0
    }
}

impl Track {
    /// Every change of level that is shown, oldest first.
    pub fn moves(&self) -> Vec<Move> {
        let Some(costs) = self.costs() else { return Vec::new() };
        let session = |at: usize| self.points[at].session;
        let value = |cost: f64| {
            if self.better == benchgate_core::model::Better::Lower { cost.exp() } else { (-cost).exp() }
        };
        let changes = change_points(&costs);
        let newest = changes.last().map_or(0.0, |change| change.after);
        changes
            .into_iter()
            .filter(|change| (change.after - change.before).abs() >= LEAST_SHOWN)
            .map(|change| Move {
                at: session(change.at),
                earliest: session(change.earliest),
                latest: session(change.latest),
                before: session(change.earliest.saturating_sub(1)),
                cost_ratio: (change.after - change.before).exp(),
                evidence: change.evidence,
                from: value(change.before),
                to: value(change.after),
                now: value(newest),
                total_ratio: (newest - change.before).exp(),
            })
            .collect()
    }
}

/// A range of measured commits: everything after `from`, up to and including `to`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range<'a> {
    pub from: &'a str,
    pub to: &'a str,
}

/// A commit of what was measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceCommit {
    pub id: String,
    /// The first line of its message.
    pub subject: String,
    pub author: String,
}

/// Lists the commits of a range of the sources, newest first; none if they are not known.
pub type ListCommits<'a> = &'a dyn Fn(&Range<'_>) -> Vec<SourceCommit>;

/// The commits of the sources between two sessions. `None` if either is unknown, or both are the same.
pub fn sources<'a>(old: &'a Session, new: &'a Session) -> Option<Range<'a>> {
    let (from, to) = (old.commit.as_deref()?, new.commit.as_deref()?);
    (from != to).then_some(Range { from, to })
}

/// The commits of the compiler between two sessions, likewise.
pub fn compiler<'a>(old: &'a Session, new: &'a Session) -> Option<Range<'a>> {
    let (from, to) = (old.toolchain.as_ref()?, new.toolchain.as_ref()?);
    let (from, to) = (from.compiler_commit.as_str(), to.compiler_commit.as_str());
    (from != to).then_some(Range { from, to })
}

impl Timeline {
    /// The sessions that bound where a change lies: the last of the old level, and the first of the new one.
    pub fn bounds(&self, change: &Move) -> (&Session, &Session) {
        (&self.sessions[change.before], &self.sessions[change.latest])
    }
}
