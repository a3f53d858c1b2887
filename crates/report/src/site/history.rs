//! The stored sessions of one suite on one testbed, reduced to the content of pages. Each session is read,
//! reduced and dropped; otherwise, three years of five hundred benchmarks would not fit into memory.

use std::collections::BTreeMap;

use jiff::Timestamp;

use benchgate_core::model::{Better, Metric, MetricKind, Testbed, Toolchain, Unit};
use benchgate_core::record::{
    AcceptanceFile, BaselineBenchmark, BaselineFile, OutcomeStatus, QuarantineRecord,
};
use benchgate_stats::describe::{self, median_with_interval};

/// One suite on one testbed.
#[derive(Debug, Clone)]
pub struct Timeline {
    pub suite: String,
    /// The testbed as described by the newest session.
    pub testbed: Testbed,
    /// The display name of the machine; see [`name_machines`].
    pub machine: String,
    /// The sessions, oldest first.
    pub sessions: Vec<Session>,
    pub acceptances: Vec<AcceptanceFile>,
    pub benchmarks: BTreeMap<String, BenchmarkHistory>,
    /// Number of files that can't be used.
    pub faults: usize,
}

/// One stored session without its values.
#[derive(Debug, Clone)]
pub struct Session {
    /// The name of its file, without the extension.
    pub name: String,
    pub began: Timestamp,
    pub commit: Option<String>,
    pub toolchain: Option<Toolchain>,
    /// Facts about the machine that differ between sessions only if the machine was changed.
    pub notes: BTreeMap<String, String>,
    /// Reasons why the session, or a benchmark of it, is still excluded.
    pub held: Vec<QuarantineRecord>,
    /// The state of the machine during the measurement: the median over processes. Each key is a
    /// name that includes the unit.
    pub state: BTreeMap<String, f64>,
}

/// One benchmark over the sessions.
#[derive(Debug, Clone, Default)]
pub struct BenchmarkHistory {
    /// The tracks, by metric name.
    pub tracks: BTreeMap<String, Track>,
    /// Session and reason for each session in which the benchmark was planned but not measured.
    pub failures: Vec<(usize, String)>,
}

/// One metric of one benchmark over the sessions.
#[derive(Debug, Clone, PartialEq)]
pub struct Track {
    pub unit: Unit,
    pub better: Better,
    pub kind: MetricKind,
    /// The points, oldest first.
    pub points: Vec<Point>,
}

/// One metric of one benchmark in one session.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    pub session: usize,
    /// Median over the processes, and its interval.
    pub value: f64,
    pub low: f64,
    pub high: f64,
    pub processes: usize,
    /// True if the point is excluded from the baseline.
    pub held: bool,
    pub spread: ProcessSpread,
}

impl Timeline {
    pub fn new(suite: &str, testbed: &str) -> Self {
        Self {
            suite: suite.to_owned(),
            testbed: Testbed { id: testbed.to_owned(), ..Testbed::default() },
            machine: testbed.to_owned(),
            sessions: Vec::new(),
            acceptances: Vec::new(),
            benchmarks: BTreeMap::new(),
            faults: 0,
        }
    }

    /// Adds the next session, in order from the oldest. `held` has the reasons why the session, or
    /// one of its benchmarks, is still excluded.
    pub fn add(&mut self, name: &str, began: Timestamp, file: BaselineFile, held: Vec<QuarantineRecord>) {
        let at = self.sessions.len();
        let metrics: BTreeMap<&str, &Metric> =
            file.metrics.iter().map(|metric| (metric.name.as_ref(), metric)).collect();
        let count = compared(file.benchmarks.iter().map(|benchmark| benchmark.processes.len()));
        for benchmark in &file.benchmarks {
            let is_held = held
                .iter()
                .any(|reason| reason.benchmark.as_ref().is_none_or(|excluded| *excluded == benchmark.name));
            let history = self.benchmarks.entry(benchmark.name.clone()).or_default();
            if benchmark.outcome.status != OutcomeStatus::Ok {
                let why = benchmark.outcome.why.clone();
                history.failures.push((at, why.unwrap_or_else(|| "no reason was recorded".to_owned())));
                continue;
            }
            for (metric, values) in measured(benchmark) {
                let Some(record) = metrics.get(metric) else { continue };
                let Some((value, low, high)) = median_with_interval(&values) else { continue };
                if !(value.is_finite() && low.is_finite() && high.is_finite()) {
                    continue;
                }
                let track = history.tracks.entry(metric.to_owned()).or_insert_with(|| Track::new(record));
                if track.unit != record.unit {
                    // Another unit is another quantity; only the newest one is shown.
                    *track = Track::new(record);
                }
                let costs: Vec<f64> = values.iter().map(|value| track.cost(*value)).collect();
                let spread = ProcessSpread::new(&costs, count, track.points.iter().map(|point| point.spread));
                let processes = values.len();
                track.points.push(Point { session: at, value, low, high, processes, held: is_held, spread });
            }
        }
        self.suite = file.suite;
        let state = state(&file.benchmarks);
        self.sessions.push(Session {
            name: name.to_owned(),
            began,
            commit: file.commit,
            toolchain: file.toolchain,
            notes: file.testbed.lasting_notes().map(|(key, value)| (key.clone(), value.clone())).collect(),
            held,
            state,
        });
        self.testbed = file.testbed;
    }

    pub fn newest(&self) -> Option<&Session> {
        self.sessions.last()
    }
}

/// Names each timeline's machine by its device and host, plus the testbed's identifier if that is ambiguous.
pub fn name_machines(timelines: &mut [Timeline]) {
    let named = |timeline: &Timeline| {
        let device = ["gpu", "device", "cpu"].iter().find_map(|fact| timeline.testbed.facts.get(*fact));
        let host = timeline.testbed.notes.get("host-name");
        let parts: Vec<&str> = device.into_iter().chain(host).map(String::as_str).collect();
        if parts.is_empty() { timeline.testbed.id.clone() } else { parts.join(" · ") }
    };
    let names: Vec<(String, String)> =
        timelines.iter().map(|timeline| (named(timeline), timeline.testbed.id.clone())).collect();
    for (timeline, (name, id)) in timelines.iter_mut().zip(&names) {
        let shared = names.iter().any(|(other, other_id)| other == name && other_id != id);
        let digits: String = id.chars().take(6).collect();
        timeline.machine = if shared && name != id { format!("{name} ({digits})") } else { name.clone() };
    }
}

/// Returns the values of the processes by metric; a single value if processes have none of their own.
fn measured(benchmark: &BaselineBenchmark) -> BTreeMap<&str, Vec<f64>> {
    let mut found: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for process in &benchmark.processes {
        for (metric, summary) in &process.summaries {
            found.entry(metric).or_default().push(summary.median.0);
        }
    }
    for single in &benchmark.values {
        found.entry(&single.metric).or_insert_with(|| vec![single.value.0]);
    }
    found
}

fn state(benchmarks: &[BaselineBenchmark]) -> BTreeMap<String, f64> {
    let mut values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for process in benchmarks.iter().flat_map(|benchmark| &benchmark.processes) {
        for (name, value) in &process.state {
            values.entry(name).or_default().push(value.0);
        }
    }
    let median = |(name, values): (&str, Vec<f64>)| Some((name.to_owned(), describe::median(&values)?));
    values.into_iter().filter_map(median).filter(|(_, value)| value.is_finite()).collect()
}

impl Track {
    fn new(record: &Metric) -> Self {
        Self { unit: record.unit.clone(), better: record.better, kind: record.kind, points: Vec::new() }
    }

    /// Returns the value that every session has; `None` if they differ, or if there are none.
    pub fn constant(&self) -> Option<f64> {
        let first = self.points.first()?;
        let equal = |point: &Point| point.low == first.value && point.high == first.value;
        self.points.iter().all(equal).then_some(first.value)
    }

    /// Returns the values as costs: logarithms, larger is worse. `None` if a value has no logarithm.
    pub fn costs(&self) -> Option<Vec<f64>> {
        self.points.iter().map(|point| (point.value > 0.0).then(|| self.cost(point.value))).collect()
    }

    pub fn cost(&self, value: f64) -> f64 {
        self.better.worse() * value.ln()
    }
}

impl BenchmarkHistory {
    /// Returns the metric that represents the benchmark: its latency, or the first metric that varies.
    pub fn main(&self) -> Option<(&str, &Track)> {
        let named = self.tracks.get_key_value(Metric::LATENCY.name.as_ref());
        let noisy = || self.tracks.iter().find(|(_, track)| track.kind == MetricKind::Noisy);
        named.or_else(noisy).or_else(|| self.tracks.iter().next()).map(|(name, track)| (name.as_str(), track))
    }

    /// Returns the newest session that measured the benchmark.
    pub fn last_measured(&self) -> Option<usize> {
        self.tracks.values().filter_map(|track| Some(track.points.last()?.session)).max()
    }
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
    fn new(costs: &[f64], count: usize, earlier: impl DoubleEndedIterator<Item = ProcessSpread>) -> Self {
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
fn compared(processes: impl Iterator<Item = usize>) -> usize {
    processes.filter(|count| *count >= LEAST).min().unwrap_or(0)
}
