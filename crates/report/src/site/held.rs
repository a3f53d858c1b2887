//! Benchmarks that fail every night, although no change of level is detected: the slowdown is a few
//! nights old, or it reverts a part of an improvement that lasted only a few nights.

use benchgate_core::record::QuarantineCause;
use benchgate_stats::describe;

use super::causes::{Member, Move};
use super::history::{BenchmarkHistory, Point, Timeline};

/// Number of newest sessions whose median is the present level, and number of sessions before a change that
/// form the old one.
pub(super) const PRESENT: usize = 7;
pub(super) const BEFORE: usize = 20;
/// Number of sessions that count as a separate level if they are faster than the ones before by
/// [`IMPROVED`].
const LAST: usize = 3;
/// Log ratio between two levels that the noise of a few sessions rarely reaches.
const IMPROVED: f64 = 0.02;

/// Returns whether the newest session is quarantined for a regression of the benchmark.
pub(super) fn is_held_red(timeline: &Timeline, benchmark: &str) -> bool {
    timeline.newest().is_some_and(|newest| {
        newest.held.iter().any(|reason| {
            reason.cause == QuarantineCause::Regressed
                && reason.benchmark.as_deref().is_none_or(|held| held == benchmark)
        })
    })
}

/// Returns the cost level before a change, from the sessions before it: that of the last
/// [`BEFORE`], or of the last few if they are faster by more than `least`.
pub(super) fn level_before(costs: &[f64], least: f64) -> Option<f64> {
    let newest = |count: usize| describe::median(&costs[costs.len().saturating_sub(count)..]);
    let (level, last) = (newest(BEFORE)?, newest(LAST)?);
    Some(if level - last > least.max(IMPROVED) { last } else { level })
}

/// Returns a benchmark that has failed in this many sessions or more, as a change between its last good session
/// and the first session that has been excluded since.
pub(super) fn red_since<'a>(
    timeline: &'a Timeline,
    benchmark: &'a str,
    history: &'a BenchmarkHistory,
    sessions: usize,
) -> Option<Member<'a>> {
    if !is_held_red(timeline, benchmark) {
        return None;
    }
    let (metric, track) = history.main()?;
    // A value that has no logarithm was not measured.
    let cost = |point: &Point| (point.value > 0.0).then(|| track.cost(point.value));
    let good = track.points.iter().rposition(|point| !point.held)?;
    let first = track.points.get(good + 1)?;
    let excluded: Vec<f64> = track.points[good + 1..].iter().filter_map(cost).collect();
    if excluded.len() < sessions {
        return None;
    }
    let before: Vec<f64> =
        track.points[..=good].iter().filter(|point| !point.held).filter_map(cost).collect();
    let from = level_before(&before, 0.0)?;
    let now = describe::median(&excluded[excluded.len().saturating_sub(PRESENT)..])?;
    let value = |cost: f64| (track.better.worse() * cost).exp();
    let ratio = (now - from).exp();
    let change = Move {
        at: first.session,
        earliest: first.session,
        latest: first.session,
        before: track.points[good].session,
        cost_ratio: ratio,
        evidence: 0.0,
        from: value(from),
        to: value(now),
        now: value(now),
        total_ratio: ratio,
    };
    (ratio > 1.0).then_some(Member { timeline, benchmark, metric, change })
}
