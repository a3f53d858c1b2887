//! Simulates a year of nights, judged one after the other as by the nightly job, and the issues that result.

use std::collections::BTreeMap;

use benchgate::model::{BenchmarkGlob, Better, MetricKind, Unit};
use benchgate::record::{AcceptanceFile, AcceptanceSchema};
use benchgate::site::{
    Action, AlertPolicy, BenchmarkHistory, IssueTrace, KnownIssue, Point, ProcessSpread, Session, Timeline,
    Track, plan,
};
use jiff::{SignedDuration, Timestamp};
use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};

pub const NIGHTS: usize = 365;
const BENCHMARKS: usize = 12;

#[derive(Debug, Clone, Copy)]
pub struct Change {
    pub night: usize,
    pub takes: usize,
    pub benchmarks: &'static [usize],
    /// A log ratio.
    pub size: f64,
    /// True if it should have an issue.
    pub is_cause: bool,
}

const fn step(night: usize, benchmarks: &'static [usize], size: f64) -> Change {
    Change { night, takes: 1, benchmarks, size, is_cause: size > 0.0 }
}

/// A step of several benchmarks, a reverted step, a gradual slowdown, an accepted step, an improvement, and a
/// change of chip under the same name, which shifts all benchmarks.
pub const PLANTED: [Change; 7] = [
    step(70, &[0, 1, 2], 0.08),
    step(110, &[3], 0.05),
    step(150, &[3], -0.05),
    Change { night: 170, takes: 40, benchmarks: &[4], size: 0.12, is_cause: true },
    step(235, &[5, 6], 0.04),
    step(265, &[7], -0.06),
    step(310, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], 0.06),
];
/// The night on which the step of night 235 is accepted.
const ACCEPTED: usize = 245;

#[derive(Debug, Clone, Default)]
pub struct Year {
    /// Night and benchmarks of each issue that was opened.
    pub opened: Vec<(usize, Vec<usize>)>,
    pub closed: usize,
    pub reopened: usize,
}

impl Year {
    /// Issues that match no planted cause.
    pub fn false_issues(&self, planted: &[Change]) -> usize {
        self.opened.iter().filter(|issue| cause_of(issue, planted).is_none()).count()
    }

    /// Returns whether every planted cause has exactly one issue, and no other issue exists.
    pub fn is_exact(&self, planted: &[Change]) -> bool {
        let causes: Vec<usize> = (0..planted.len()).filter(|at| planted[*at].is_cause).collect();
        let mut found: Vec<usize> = self.opened.iter().filter_map(|issue| cause_of(issue, planted)).collect();
        found.sort_unstable();
        found == causes && self.false_issues(planted) == 0
    }
}

fn cause_of((night, benchmarks): &(usize, Vec<usize>), planted: &[Change]) -> Option<usize> {
    planted.iter().position(|change| {
        change.is_cause
            && (change.night..change.night + change.takes + 40).contains(night)
            && benchmarks.iter().any(|benchmark| change.benchmarks.contains(benchmark))
    })
}

fn name(benchmark: usize) -> String {
    format!("model-{benchmark:02}/gpu/main")
}

struct Noise(ChaCha8Rng);

impl Noise {
    fn uniform(&mut self) -> f64 {
        (f64::from(self.0.next_u32()) + 0.5) / 4_294_967_296.0
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Heavier tails than the normal distribution: one night in twenty varies three times as much.
    fn night(&mut self) -> f64 {
        let scale = if self.uniform() < 0.05 { 3.0 } else { 1.0 };
        scale * self.normal()
    }
}

/// Latencies of later processes.
pub fn track() -> Track {
    Track { unit: Unit::Nanoseconds, better: Better::Lower, kind: MetricKind::Noisy, points: Vec::new() }
}

/// One session of a machine without recorded facts.
pub fn night_session(began: Timestamp, commit: Option<String>) -> Session {
    Session {
        name: began.strftime("%Y%m%dT%H%M%SZ").to_string(),
        began,
        commit,
        toolchain: None,
        notes: BTreeMap::new(),
        held: Vec::new(),
        state: BTreeMap::new(),
    }
}

/// A value that all processes of a session have.
pub fn point(session: usize, value: f64) -> Point {
    let (low, high, spread) = (value, value, ProcessSpread::default());
    Point { session, value, low, high, processes: 8, held: false, spread }
}

/// Simulates a year. `noise` is the standard deviation between nights of each benchmark, as a log ratio.
pub fn play(seed: u64, noise: f64, planted: &[Change]) -> Year {
    let mut random = Noise(ChaCha8Rng::seed_from_u64(seed));
    let first: Timestamp = "2025-01-01T02:17:00Z".parse().unwrap();
    let mut timeline = Timeline::new("zoo", "gpu");
    for benchmark in 0..BENCHMARKS {
        let tracks = BTreeMap::from([("latency".to_owned(), track())]);
        timeline.benchmarks.insert(name(benchmark), BenchmarkHistory { tracks, failures: Vec::new() });
    }
    let mut timelines = vec![timeline];
    let mut issues: Vec<KnownIssue> = Vec::new();
    let mut year = Year::default();
    for night in 0..NIGHTS {
        // Some nights fail, and one week the machine is off.
        if random.uniform() < 0.02 || (200..207).contains(&night) {
            continue;
        }
        let now = first + SignedDuration::from_hours(24 * night as i64);
        let timeline = &mut timelines[0];
        let session = timeline.sessions.len();
        timeline.sessions.push(night_session(now, Some(format!("{night:040x}"))));
        let today = 0.3 * noise * random.normal() + if random.uniform() < 0.01 { 0.2 } else { 0.0 };
        for benchmark in 0..BENCHMARKS {
            let level: f64 = planted
                .iter()
                .filter(|change| change.benchmarks.contains(&benchmark) && night >= change.night)
                .map(|change| {
                    change.size * (((night - change.night + 1) as f64) / change.takes as f64).min(1.0)
                })
                .sum();
            let value = (14.0 + level + today + noise * random.night()).exp();
            let point = point(session, value);
            let history = timeline.benchmarks.get_mut(&name(benchmark)).unwrap();
            history.tracks.get_mut("latency").unwrap().points.push(point);
        }
        if night == ACCEPTED && planted.iter().any(|change| change.night == 235) {
            let from = timeline
                .sessions
                .iter()
                .find(|session| session.began >= first + SignedDuration::from_hours(24 * 235));
            let accepted = acceptance(&from.unwrap().name, now);
            timeline.acceptances.push(accepted);
        }
        let decided = plan(&timelines, &issues, now, &AlertPolicy::default());
        for action in decided.actions {
            apply(action, night, &mut issues, &mut year);
        }
    }
    year
}

fn acceptance(from: &str, now: Timestamp) -> AcceptanceFile {
    AcceptanceFile {
        schema: AcceptanceSchema,
        benchgate: String::new(),
        sha256: String::new(),
        suite: "zoo".to_owned(),
        testbed: "gpu".to_owned(),
        created: now.to_string(),
        from: from.to_owned(),
        benchmark: Some(BenchmarkGlob::new("model-0[56]/*")),
        not_measured: Vec::new(),
        later_runs: None,
        who: "kim".to_owned(),
        why: "on purpose".to_owned(),
        until: None,
    }
}

/// The issues as GitHub lists them afterwards, read from their markers as in the next night.
fn apply(action: Action<'_>, night: usize, issues: &mut Vec<KnownIssue>, year: &mut Year) {
    let stored = |trace: &IssueTrace| IssueTrace::from_body(&trace.line()).unwrap();
    match action {
        Action::Open { cause, trace } => {
            let benchmarks =
                cause.members.iter().map(|member| member.benchmark[6..8].parse().unwrap()).collect();
            year.opened.push((night, benchmarks));
            issues.push(KnownIssue { number: issues.len() as u64 + 1, open: true, trace: stored(&trace) });
        }
        Action::Update { number, trace, .. } => issues[number as usize - 1].trace = stored(&trace),
        Action::Reopen { number, trace, .. } => {
            year.reopened += 1;
            issues[number as usize - 1] = KnownIssue { number, open: true, trace: stored(&trace) };
        }
        Action::Close { number, trace, .. } => {
            year.closed += 1;
            issues[number as usize - 1] = KnownIssue { number, open: false, trace: stored(&trace) };
        }
    }
}
