//! Whether the slowdown that an issue is about is over: every benchmark of it is back at its earlier level, or its new
//! level was accepted.

use jiff::Timestamp;

use super::causes::{Cause, Member, key};
use super::history::{BenchmarkHistory, Timeline};
use benchgate_stats::describe;

/// Newest sessions whose median is the present level, and sessions before a change that are the old one.
pub(super) const PRESENT: usize = 7;
pub(super) const BEFORE: usize = 20;
/// Part of a slowdown that may be left of one that is over.
const LEFT: f64 = 1.0 / 3.0;

/// The content of an issue's marker.
#[derive(Debug, Clone, PartialEq)]
pub struct IssueTrace {
    /// When the new level began, as far as it was known when the issue was opened.
    pub at: Timestamp,
    /// The largest slowdown then, as a log ratio.
    pub size: f64,
    /// The largest slowdown that was reported.
    pub total: f64,
    /// Keys of the benchmarks.
    pub members: Vec<String>,
    /// benchgate closed it, and may open it again.
    pub recovered: bool,
}

/// Why an issue is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Over {
    Recovered,
    Accepted { who: String, why: String },
}

impl std::fmt::Display for Over {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Recovered => f.write_str("back at the earlier level"),
            Self::Accepted { who, why } => write!(f, "accepted by {who}: {why}"),
        }
    }
}

/// The acceptance that makes the new level of all of a cause's benchmarks the normal.
pub(super) fn acceptance(cause: &Cause<'_>) -> Option<Over> {
    let mut accepted = cause.members.iter().map(|member| accepted(member, cause.after()));
    let first = accepted.next()??;
    accepted.all(|accepted| accepted.is_some()).then_some(first)
}

/// An acceptance that makes the new level of a benchmark the normal.
fn accepted(member: &Member<'_>, after: Timestamp) -> Option<Over> {
    let begins = |from: &str| {
        member.timeline.sessions.iter().any(|session| session.name == from && session.began > after)
    };
    let found = member
        .timeline
        .acceptances
        .iter()
        .find(|accepted| accepted.covers(Some(member.benchmark)) && begins(&accepted.from))?;
    Some(Over::Accepted { who: found.who.clone(), why: found.why.clone() })
}

/// Whether every benchmark of an issue is back near the level that it had before. One that is no longer measured
/// has not recovered.
pub(super) fn has_recovered(timelines: &[Timeline], trace: &IssueTrace) -> bool {
    let mut found = 0;
    for timeline in timelines {
        for (benchmark, history) in &timeline.benchmarks {
            if !trace.members.contains(&key(timeline, benchmark)) {
                continue;
            }
            let Some(left) = slowdown_left(timeline, history, trace.at) else { return false };
            if left > (trace.size * LEFT).min(0.02) {
                return false;
            }
            found += 1;
        }
    }
    found == trace.members.len()
}

/// The present level against the one before, as a log ratio.
fn slowdown_left(timeline: &Timeline, history: &BenchmarkHistory, at: Timestamp) -> Option<f64> {
    let (_, track) = history.main()?;
    let costs = track.costs()?;
    let split = track.points.iter().position(|point| timeline.sessions[point.session].began >= at)?;
    let (before, after) = costs.split_at(split);
    if before.is_empty() || after.len() < PRESENT {
        return None;
    }
    let old = describe::median(&before[before.len().saturating_sub(BEFORE)..])?;
    Some(describe::median(&after[after.len() - PRESENT..])? - old)
}
