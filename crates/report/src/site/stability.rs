//! Benchmarks that are occasionally slow. If a process is much slower than the others of its session, the
//! machine may be the cause, and a single session can't show whether it is. A benchmark is unstable if, over
//! many nights, this happens to it more often than to the others of its suite.
//!
//! Also benchmarks that fail every night.

use jiff::Timestamp;

use super::causes::{Member, Move};
use super::history::{BenchmarkHistory, Point, Timeline, Track};
use super::plot::day;
use crate::report::{change, percent};
use benchgate_core::model::counted;
use benchgate_core::record::QuarantineCause;
use benchgate_stats::change_points::{EDetector, e_value};
use benchgate_stats::describe;

/// Mean number of sessions of a suite until a benchmark is listed by chance.
const CHANCE: f64 = 1000.0;
/// Evidence is limited to this many times the required amount, so that a repaired benchmark leaves the list.
const KEPT: f64 = 10.0;
/// Number of newest sessions of which at least one must be slow.
const RECENT: usize = 30;

/// A benchmark that is occasionally slow.
#[derive(Debug, Clone)]
pub struct Unstable<'a> {
    pub timeline: &'a Timeline,
    pub benchmark: &'a str,
    /// The first session of the period in which it is unstable.
    pub since: Timestamp,
    /// Number of sessions since then, and number of those in which a process was slow.
    pub sessions: usize,
    pub slow: usize,
    /// The typical ratio of the slowest process to the typical process, in the sessions with a slow
    /// process.
    pub ratio: f64,
    /// The share of sessions in which another benchmark of the suite had a slow process.
    pub others: f64,
}

impl Unstable<'_> {
    pub fn is_about(&self, timeline: &Timeline, benchmark: &str) -> bool {
        std::ptr::eq(self.timeline, timeline) && self.benchmark == benchmark
    }

    /// Describes the observation, as the rest of a sentence about the benchmark.
    pub fn sentence(&self) -> String {
        format!(
            "a process was slow (typically {}) in {} of {} since {}; in the suite's other benchmarks, in {} \
            of sessions",
            change(self.ratio),
            self.slow,
            counted(self.sessions, "session"),
            day(self.since),
            percent(self.others)
        )
    }
}

/// Returns every benchmark that is unstable now.
pub fn unstable(timelines: &[Timeline]) -> Vec<Unstable<'_>> {
    timelines.iter().flat_map(of_suite).collect()
}

fn of_suite(timeline: &Timeline) -> Vec<Unstable<'_>> {
    // Number of benchmarks that were compared in each session, and number of those with a slow process.
    let mut counts = vec![(0, 0); timeline.sessions.len()];
    for point in timeline.benchmarks.values().flat_map(points) {
        if let Some(excess) = point.spread.slow {
            counts[point.session].0 += 1;
            counts[point.session].1 += usize::from(excess > 0.0);
        }
    }
    let needed = CHANCE * timeline.benchmarks.len() as f64;
    let found = timeline.benchmarks.iter().filter_map(|(benchmark, history)| {
        let mut detector = EDetector::default();
        for point in points(history) {
            let Some(excess) = point.spread.slow else { continue };
            let (all, hit) = counts[point.session];
            detector = detector.with(point.session, e_value(excess > 0.0, hit, all), KEPT * needed);
        }
        let since: Vec<&Point> = points(history)
            .filter(|point| point.session >= detector.since && point.spread.slow.is_some())
            .collect();
        let excess = |point: &&Point| point.spread.slow.filter(|excess| *excess > 0.0);
        let is_recent = since.iter().rev().take(RECENT).any(|point| excess(point).is_some());
        if detector.evidence < needed || !is_recent {
            return None;
        }
        let slow: Vec<f64> = since.iter().filter_map(excess).collect();
        let (all, hit) = since.iter().fold((0, 0), |(all, hit), point| {
            let (a, h) = counts[point.session];
            (all + a, hit + h)
        });
        Some(Unstable {
            timeline,
            benchmark,
            since: timeline.sessions[detector.since].began,
            sessions: since.len(),
            slow: slow.len(),
            ratio: describe::median(&slow)?.exp(),
            others: (hit - slow.len()) as f64 / (all - since.len()).max(1) as f64,
        })
    });
    found.collect()
}

fn points(history: &BenchmarkHistory) -> impl Iterator<Item = &Point> {
    history.main().into_iter().flat_map(|(_, track)| &track.points)
}

/// Number of newest sessions whose median is the present level, and number of sessions before a change that
/// form the old one.
pub(super) const PRESENT: usize = 7;
pub(super) const BEFORE: usize = 20;
/// Number of sessions that count as a separate level if they are faster than the ones before by
/// [`IMPROVED`].
const LAST: usize = 3;
/// Log ratio between two levels that the noise of a few sessions rarely reaches.
const IMPROVED: f64 = 0.02;

/// Returns whether the newest session is quarantined for a regression of the benchmark. It may fail every night although
/// no change of level is detected: the slowdown is a few nights old, or it reverts a part of an improvement that lasted
/// only a few nights.
pub(super) fn is_held_red(timeline: &Timeline, benchmark: &str) -> bool {
    timeline.newest().is_some_and(|newest| {
        newest.held.iter().any(|reason| {
            reason.cause == QuarantineCause::Regressed
                && reason.benchmark.as_deref().is_none_or(|held| held == benchmark)
        })
    })
}

/// Returns the metric for which the newest session is quarantined. The reason begins with its name. `None` if this metric
/// has no values here (the size of a module, which is not stored as a value).
pub(super) fn red_metric<'a>(
    timeline: &Timeline,
    benchmark: &str,
    history: &'a BenchmarkHistory,
) -> Option<(&'a str, &'a Track)> {
    let held = &timeline.newest()?.held;
    let red = held.iter().filter(|reason| reason.cause == QuarantineCause::Regressed);
    // A reason of this benchmark says more than one of the whole session.
    let own = red.clone().find(|reason| reason.benchmark.as_deref() == Some(benchmark));
    let reason = own.or_else(|| red.clone().find(|reason| reason.benchmark.is_none()))?;
    match reason.why.split_once(": ") {
        Some((metric, _)) if !metric.contains(char::is_whitespace) => {
            history.tracks.get_key_value(metric).map(|(name, track)| (name.as_str(), track))
        }
        _ => history.main(),
    }
}

/// Returns whether the newest session is quarantined for a metric other than the one that represents the benchmark.
pub(super) fn is_red_elsewhere(timeline: &Timeline, benchmark: &str, history: &BenchmarkHistory) -> bool {
    let name = |of: Option<(&str, &Track)>| of.map(|(metric, _)| metric.to_owned());
    is_held_red(timeline, benchmark) && name(red_metric(timeline, benchmark, history)) != name(history.main())
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
    let (metric, track) = red_metric(timeline, benchmark, history)?;
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
