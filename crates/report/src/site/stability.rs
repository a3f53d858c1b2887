//! Benchmarks that are occasionally slow. If a process is much slower than the others of its session, the
//! machine may be the cause, and a single session can't show whether it is. A benchmark is unstable if, over
//! many nights, this happens to it more often than to the others of its suite.

use jiff::Timestamp;

use super::history::{BenchmarkHistory, Point, Timeline};
use super::plot::day;
use crate::report::{change, percent};
use benchgate_core::model::counted;
use benchgate_stats::describe;
use benchgate_stats::e_detector::{EDetector, e_value};

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

/// Minimum number of processes that a session needs to show that one of them is slow.
const LEAST: usize = 3;
/// Number of sessions from which the usual distance between the quickest and the typical process is learned.
const LEARNED: usize = 20;
/// Minimum number of such sessions.
const KNOWN: usize = 5;
/// A process is slow if it exceeds the typical one by this many times the usual distance, and by this
/// fraction.
const FAR: f64 = 5.0;
const SLOWER: f64 = 0.05;

/// The spread of one session's processes around the typical one, as costs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ProcessSpread {
    /// Distance from the quickest process to the typical one.
    pub below: f64,
    /// Distance by which the slowest process exceeds the typical one; zero if it is not slow, `None` if there
    /// is too little data.
    pub slow: Option<f64>,
}

impl ProcessSpread {
    /// Computes the spread of the first `count` processes, which all benchmarks of the session have.
    pub fn new(costs: &[f64], count: usize, earlier: impl DoubleEndedIterator<Item = ProcessSpread>) -> Self {
        let costs = &costs[..count.min(costs.len())];
        let known = costs.len() >= LEAST && costs.iter().all(|cost| cost.is_finite());
        let Some(typical) = describe::median(costs).filter(|_| known) else {
            return Self::default();
        };
        let quickest = costs.iter().copied().fold(f64::INFINITY, f64::min);
        let slowest = costs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // The distance is zero if a session had too few processes.
        let below = earlier.map(|spread| spread.below).filter(|below| *below > 0.0);
        let usual: Vec<f64> = below.rev().take(LEARNED).collect();
        let usual = describe::median(&usual).filter(|_| usual.len() >= KNOWN);
        let slow = usual.map(|usual| {
            let excess = slowest - typical;
            if excess > (FAR * usual).max(SLOWER.ln_1p()) { excess } else { 0.0 }
        });
        Self { below: typical - quickest, slow }
    }
}

/// Returns the number of processes that are compared in a session, which every benchmark with enough
/// processes has.
pub fn compared(processes: impl Iterator<Item = usize>) -> usize {
    processes.filter(|count| *count >= LEAST).min().unwrap_or(0)
}
