//! Simulates years of a nightly job with the real store, gate, alerts and site data.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use benchgate::gate::{CompareOptions, Policy, Row, compare_with_history};
use benchgate::model::{BenchmarkGlob, Metric, SideName, Verdict};
use benchgate::record::{AcceptanceFile, AcceptanceSchema, RunFile};
use benchgate::site::{
    Action, AlertPolicy, IssueTrace, KnownIssue, Timeline, name_machines, open_slowdowns, plan,
};
use benchgate::store::{
    BaselineFolder, Change, Files, HistoryQuery, Lineage, Selection, StoreError, UpdateOptions, accept,
    history_for_gate, judged_side, summarise, update,
};
use jiff::{SignedDuration, Timestamp};
use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};

const GOLDEN: &str = include_str!("../fixtures/record/run-v1.json");
pub const ROWS: usize = 10;
/// Number of rows with one or two steps of any size; the other rows have gradual changes and improvements.
const STEP_ROWS: usize = 6;
const SESSIONS: usize = 20;
/// Sizes of steps, as fractions.
const SIZES: [f64; 10] = [0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.2, 0.3, 0.5, 1.0];
/// Nights in which the machine is off.
const OFF: Range<usize> = 120..127;
/// Smallest slowdown that must never pass or join the baseline.
const LARGE: f64 = 0.03;
/// Nights after which an alert must show a step.
const SHOWN_AFTER: usize = 14;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Reverted(usize),
    Accepted(usize),
    Never,
}

#[derive(Debug, Clone, Copy)]
pub struct Slowdown {
    pub row: usize,
    pub night: usize,
    /// Number of nights until it has its full size.
    pub takes: usize,
    /// A fraction.
    pub size: f64,
    pub end: End,
}

impl Slowdown {
    /// Its size in a night, as a log ratio.
    fn at(&self, night: usize) -> f64 {
        let over = matches!(self.end, End::Reverted(end) if night >= end);
        if night < self.night || over {
            return 0.0;
        }
        self.size.ln_1p() * (((night - self.night + 1) as f64) / self.takes as f64).min(1.0)
    }

    fn is_accepted(&self, night: usize) -> bool {
        matches!(self.end, End::Accepted(end) if night > end)
    }
}

/// The variation of a machine between nights.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Number of benchmarks. An acceptance covers the whole suite if it is one.
    pub rows: usize,
    /// Standard deviation between the nights of a benchmark, as a log ratio.
    pub between: f64,
    /// Factor by which it is larger after an accepted change of the benchmark.
    pub wider: f64,
    /// Nights in which the whole machine is faster or slower, with the log ratio.
    pub periods: Vec<(Range<usize>, f64)>,
}

impl Machine {
    pub fn steady(between: f64) -> Self {
        Self { rows: ROWS, between, wider: 1.0, periods: Vec::new() }
    }

    /// A machine that is faster by 2 to 5 % for a week now and then.
    pub fn with_fast_weeks(between: f64, seed: u64, nights: usize) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0xfa57);
        let mut below = |most: usize| random.next_u32() as usize % most;
        let (mut periods, mut night) = (Vec::new(), 25);
        while night < nights {
            night += below(60);
            let end = night + 4 + below(6);
            periods.push((night..end, -(0.02 + 0.01 * below(4) as f64)));
            night = end + 10;
        }
        Self { periods, ..Self::steady(between) }
    }

    fn shift(&self, night: usize) -> f64 {
        self.periods.iter().filter(|(nights, _)| nights.contains(&night)).map(|(_, shift)| shift).sum()
    }
}

/// The result of a simulated year. Each entry is a night and a row.
#[derive(Debug, Default)]
pub struct NightsYear {
    /// Number of nights before each row's first slowdown, summed over rows, and how many of them were
    /// excluded from the baseline.
    pub unchanged_nights: usize,
    pub unchanged_held: usize,
    pub slow_nights: usize,
    pub stored_as_good: Vec<(usize, usize)>,
    pub passed: Vec<(usize, usize)>,
    /// The number of steps that were open for long enough, and those of them whose range no issue shows.
    pub steps: usize,
    pub steps_not_shown: Vec<Slowdown>,
    /// Nights on which the site's first section lacks a slowdown that is a week old.
    pub not_on_site: Vec<(usize, usize)>,
    /// Nights of rows that are not slow and are quarantined for a regression.
    pub false_red: Vec<(usize, usize)>,
    /// Nights after a slowdown was reverted until its benchmark is good again.
    pub nights_to_recover: Vec<usize>,
}

/// The changes of a year: steps of every size, two causes in one benchmark, two gradual slowdowns, a lasting
/// improvement, and improvements that a later change partly reverts.
pub fn slowdowns(seed: u64, nights: usize) -> Vec<Slowdown> {
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0x5eed);
    let mut below = |most: usize| random.next_u32() as usize % most;
    let mut all = Vec::new();
    for row in 0..STEP_ROWS {
        let night = 30 + below(nights.saturating_sub(70).max(1));
        let end = night + 12 + below(80);
        let end = match below(3) {
            0 => End::Reverted(end),
            1 => End::Accepted(end),
            _ => End::Never,
        };
        all.push(Slowdown { row, night, takes: 1, size: SIZES[below(SIZES.len())], end });
    }
    // A second cause in a benchmark that is slow already.
    let first = all[0];
    let night = first.night + 20;
    let second = Slowdown { night, size: 0.3, end: first.end, ..first };
    if !matches!(first.end, End::Reverted(end) | End::Accepted(end) if end <= night) {
        all.push(second);
    }
    // Gradual slowdowns over weeks and months, one of them after a lasting improvement.
    let creep = |row, night, takes, size| Slowdown { row, night, takes, size, end: End::Never };
    let sizes = [0.03, 0.04, 0.06, 0.12];
    all.push(creep(STEP_ROWS, 40 + below(60), [20, 40, 80, 160][below(4)], sizes[below(4)]));
    all.push(creep(STEP_ROWS + 1, 40 + below(20), 1, -0.08));
    all.push(creep(STEP_ROWS + 1, 110 + below(40), [40, 80, 160][below(3)], sizes[below(4)]));
    for row in STEP_ROWS + 2..ROWS {
        // Three nights, of which one may fail, because a single night shows no new level. None is in the week
        // without nights.
        let night = 30 + below(nights.saturating_sub(120).max(1));
        let night = if (OFF.start - 20..OFF.end).contains(&night) { night + 30 } else { night };
        let (gain, lasts) = (0.05 + 0.01 * below(16) as f64, 3 + below(18));
        let least = LARGE.max(0.3 * gain);
        let size = least + (gain / (1.0 - gain) - least) * below(11) as f64 / 10.0;
        let end = night + lasts + 12 + below(80);
        let end = [End::Reverted(end), End::Accepted(end), End::Never][below(3)];
        all.push(creep(row, night, 1, -gain));
        all.push(Slowdown { row, night: night + lasts, takes: 1, size, end });
    }
    all
}

/// Slowdowns that are accepted on the first night. Every second one is followed by another, one to four nights later,
/// which is accepted after two weeks.
pub fn accepted_at_once(seed: u64, nights: usize, rows: usize) -> Vec<Slowdown> {
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0xacce);
    let mut below = |most: usize| random.next_u32() as usize % most;
    let mut all = Vec::new();
    for row in 0..rows {
        let mut night = 25 + below(15);
        while night + 20 < nights {
            let step = |night, size, end| Slowdown { row, night, takes: 1, size, end: End::Accepted(end) };
            if !(OFF.start - 20..OFF.end).contains(&night) {
                all.push(step(night, [0.05, 0.1, 0.2][below(3)], night));
                let again = night + 1 + below(4);
                if below(2) == 0 {
                    all.push(step(again, [0.05, 0.1][below(2)], again + 14));
                }
            }
            night += 40 + below(10);
        }
    }
    all
}

struct Noise(ChaCha8Rng);

impl Noise {
    fn normal(&mut self) -> f64 {
        let mut uniform = || (f64::from(self.0.next_u32()) + 0.5) / 4_294_967_296.0;
        (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos()
    }
}

fn name(row: usize) -> String {
    format!("m{row}/cpu/main")
}

fn began(night: usize) -> Timestamp {
    let first: Timestamp = "2025-01-01T02:00:00Z".parse().unwrap();
    first + SignedDuration::from_hours(24 * night as i64)
}

fn session(golden: &RunFile, night: usize, levels: &[f64], noise: &mut Noise) -> RunFile {
    let mut file = golden.clone();
    file.session = format!("night-{night}");
    file.created = began(night).to_string();
    let commit = format!("{:040x}", night + 1);
    file.sides[0].commit = Some(commit.clone());
    let template = file.sides[0].benchmarks[0].clone();
    file.sides[0].benchmarks = (0..)
        .zip(levels)
        .map(|(row, level)| {
            let mut benchmark = template.clone();
            benchmark.name = name(row);
            benchmark.artifact.as_mut().unwrap().vmfb_sha256 = format!("{commit}{row:024}");
            for process in &mut benchmark.processes {
                let latency = 1e6 * (1.0 + row as f64) * (level + 0.001 * noise.normal()).exp();
                process.samples.get_mut("latency").unwrap().iter_mut().for_each(|value| *value = latency);
            }
            benchmark
        })
        .collect();
    file
}

/// A store in memory, because a year of nights would wait for the disk thousands of times.
#[derive(Default)]
struct MemoryFiles(BTreeMap<String, Vec<u8>>);

impl Files for MemoryFiles {
    fn list(&self, folder: &str, folders: bool) -> Result<Vec<String>, StoreError> {
        let wanted = self.below(folder).filter(|rest| rest.contains('/') == folders);
        let mut names: Vec<String> =
            wanted.filter_map(|rest| Some(rest.split('/').next()?.to_owned())).collect();
        names.dedup();
        Ok(names)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, StoreError> {
        self.0.get(path).cloned().ok_or_else(|| StoreError::NoSuchFile { path: path.to_owned() })
    }

    fn apply(&mut self, change: &Change) -> Result<(), StoreError> {
        for (path, bytes) in &change.add {
            if self.0.insert(path.clone(), bytes.clone()).is_some() {
                return Err(StoreError::Exists { path: path.clone() });
            }
        }
        Ok(())
    }

    fn place(&self) -> String {
        "memory".to_owned()
    }
}

impl MemoryFiles {
    /// The paths of all files below a folder, relative to the folder.
    fn below(&self, folder: &str) -> impl Iterator<Item = &str> {
        let start = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let found = self.0.range(start.clone()..).map(|(path, _)| path.as_str());
        let length = start.len();
        found.take_while(move |path| path.starts_with(&start)).map(move |path| &path[length..])
    }
}

fn timelines(files: &MemoryFiles, golden: &RunFile) -> Vec<Timeline> {
    let folder = BaselineFolder::open(files, &golden.suite, &golden.testbed.id).unwrap();
    let mut timeline = Timeline::new(&golden.suite, &golden.testbed.id);
    for name in folder.runs(files).unwrap().names {
        let stored = folder.load(files, &name).unwrap().unwrap();
        let held = folder.held(&stored);
        timeline.add(name.as_str(), name.began().unwrap(), stored.file, held);
    }
    timeline.acceptances = folder.acceptances.iter().map(|(_, accepted)| accepted.clone()).collect();
    let mut all = vec![timeline];
    name_machines(&mut all);
    all
}

/// Returns whether a row is about the metric that is slowed down.
fn is_time(row: &Row) -> bool {
    row.metric.as_ref().is_some_and(|metric| metric.name == Metric::LATENCY.name)
}

/// Simulates nights of a machine with these slowdowns.
pub fn play_nights(seed: u64, nights: usize, machine: &Machine, slowdowns: &[Slowdown]) -> NightsYear {
    let mut golden = RunFile::from_slice(GOLDEN.as_bytes()).unwrap();
    golden.sides.truncate(1);
    golden.sides[0].name = SideName::Head;
    golden.calibration = None;
    let mut files = MemoryFiles::default();
    let mut noise = Noise(ChaCha8Rng::seed_from_u64(seed));
    let policy = Policy::default();
    let ancestor = |_: &str| Lineage::Ancestor;
    let mut year = NightsYear::default();
    let mut known: Vec<KnownIssue> = Vec::new();
    let mut ranges: BTreeMap<usize, Vec<(Timestamp, Timestamp)>> = BTreeMap::new();
    let mut lines: Vec<Timeline> = vec![Timeline::new(&golden.suite, &golden.testbed.id)];
    let mut recovering: BTreeMap<usize, usize> = BTreeMap::new();
    let mut since = 0;
    for night in 0..nights {
        // Some nights fail, and one week the machine is off.
        if noise.0.next_u32().is_multiple_of(50) || OFF.contains(&night) {
            continue;
        }
        let all: Vec<f64> = (0..machine.rows)
            .map(|row| slowdowns.iter().filter(|slow| slow.row == row).map(|slow| slow.at(night)).sum())
            .collect();
        let open = |row: usize| -> f64 {
            let of_row = slowdowns.iter().filter(|slow| slow.row == row && !slow.is_accepted(night));
            of_row.map(|slow| slow.at(night)).filter(|level| *level > 0.0).sum()
        };
        let shift = machine.shift(night);
        let spread = |row: usize| {
            let is_wider = slowdowns.iter().any(|slow| slow.row == row && slow.is_accepted(night));
            machine.between * if is_wider { machine.wider } else { 1.0 }
        };
        let levels = all.iter().zip(0..).map(|(level, row)| level + shift + spread(row) * noise.normal());
        let levels: Vec<f64> = levels.collect();
        let run = session(&golden, night, &levels, &mut noise);
        let now = began(night) + SignedDuration::from_hours(1);
        let query = HistoryQuery {
            suite: &golden.suite,
            testbed: &golden.testbed,
            sessions: SESSIONS,
            stale_days: 14,
            lineage: &ancestor,
            now,
        };
        let mut passes = BTreeSet::new();
        let is_large = |row: usize| open(row) >= LARGE.ln_1p() - 1e-9;
        if (0..machine.rows).any(is_large)
            && let Selection::Found(history) = history_for_gate(&files, &query).unwrap()
        {
            let head = judged_side(&run, SideName::Head, "run.json", &policy).unwrap();
            let gate =
                compare_with_history(&head, history.sessions(false), &policy, &CompareOptions::default());
            let green = gate
                .rows
                .iter()
                .filter(|row| is_time(row) && matches!(row.verdict, Verdict::Pass | Verdict::Improved));
            passes.extend(green.map(|row| row.benchmark.to_string()));
        }
        let writing = UpdateOptions {
            side: SideName::Head,
            sessions: SESSIONS,
            policy: &policy,
            options: CompareOptions::default(),
            lineage: &ancestor,
            now,
        };
        let stored = update(&mut files, &run, &writing).unwrap();
        for row in 0..machine.rows {
            let reasons: Vec<_> = stored
                .quarantine
                .iter()
                .filter(|reason| reason.benchmark.as_ref().is_none_or(|held| *held == name(row)))
                .collect();
            let red = reasons.iter().any(|reason| reason.cause.to_string() == "regressed");
            if is_large(row) {
                year.slow_nights += 1;
                if reasons.is_empty() {
                    year.stored_as_good.push((night, row));
                }
                if passes.contains(&name(row)) {
                    year.passed.push((night, row));
                }
                recovering.insert(row, 0);
            } else if open(row) == 0.0 {
                match recovering.get_mut(&row) {
                    Some(waited) if !reasons.is_empty() => *waited += 1,
                    Some(waited) => {
                        year.nights_to_recover.push(*waited);
                        recovering.remove(&row);
                    }
                    None => {
                        year.unchanged_nights += 1;
                        year.unchanged_held += usize::from(!reasons.is_empty());
                        year.false_red.extend(red.then_some((night, row)));
                    }
                }
            }
        }
        // An acceptance in a night that failed is one of the next night.
        let due = |slow: &&Slowdown| matches!(slow.end, End::Accepted(end) if (since..=night).contains(&end));
        let accepted: Vec<&Slowdown> = slowdowns.iter().filter(due).collect();
        since = night + 1;
        for slow in &accepted {
            let from = (slow.night..=night).map(began).find_map(|at| {
                let stamp = at.strftime("%Y%m%dT%H%M%SZ").to_string();
                let folder = BaselineFolder::open(&files, &golden.suite, &golden.testbed.id).unwrap();
                folder.find(&files, &stamp).ok()
            });
            let acceptance = AcceptanceFile {
                schema: AcceptanceSchema,
                benchgate: String::new(),
                sha256: String::new(),
                suite: golden.suite.clone(),
                testbed: golden.testbed.id.clone(),
                created: now.to_string(),
                from: String::new(),
                benchmark: (machine.rows > 1).then(|| BenchmarkGlob::new(name(slow.row))),
                not_measured: Vec::new(),
                later_runs: None,
                who: "kim".to_owned(),
                why: "on purpose".to_owned(),
                until: None,
            };
            accept(&mut files, acceptance, Some(from.unwrap().as_str())).unwrap();
        }
        if accepted.is_empty() {
            let file = summarise(&run, SideName::Head, None, Vec::new()).unwrap();
            let stamp = began(night).strftime("%Y%m%dT%H%M%SZ").to_string();
            let name = format!("{stamp}-{:040x}", night + 1);
            lines[0].add(&name, began(night), file, stored.quarantine);
        } else {
            lines = timelines(&files, &golden);
        }
        let policy = AlertPolicy::default();
        for action in plan(&lines, &known, now, &policy).actions {
            let stored = |trace: &IssueTrace| IssueTrace::from_body(&trace.line()).unwrap();
            let (number, open, trace) = match &action {
                Action::Open { trace, .. } => (known.len() as u64 + 1, true, trace),
                Action::Update { number, trace, .. } | Action::Reopen { number, trace, .. } => {
                    (*number, true, trace)
                }
                Action::Close { number, trace, .. } => (*number, false, trace),
            };
            let issue = KnownIssue { number, open, trace: stored(trace) };
            match known.iter_mut().find(|known| known.number == number) {
                Some(known) => *known = issue,
                None => known.push(issue),
            }
            if let Action::Open { cause, .. } | Action::Update { cause, .. } | Action::Reopen { cause, .. } =
                &action
            {
                for step in cause.steps() {
                    for member in &step.members {
                        let row: usize = member.benchmark[1..2].parse().unwrap();
                        ranges.entry(row).or_default().push((step.after(), step.until()));
                    }
                }
            }
        }
        let on_site: BTreeSet<usize> = open_slowdowns(&lines, now, &policy)
            .iter()
            .flat_map(|open| open.cause.steps())
            .flat_map(|step| step.members.iter().map(|member| member.benchmark[1..2].parse().unwrap()))
            .collect();
        for slow in slowdowns.iter().filter(|slow| slow.takes == 1 && slow.size >= LARGE) {
            let week_old = night >= slow.night + 7 && slow.at(night) > 0.0 && !slow.is_accepted(night);
            let taken = matches!(slow.end, End::Accepted(end) if night >= end);
            if week_old && !taken && !on_site.contains(&slow.row) {
                year.not_on_site.push((night, slow.row));
            }
        }
    }
    for slow in slowdowns.iter().filter(|slow| slow.takes == 1 && slow.size >= LARGE) {
        let until = match slow.end {
            End::Reverted(end) | End::Accepted(end) => end.min(nights),
            End::Never => nights,
        };
        if until < slow.night + SHOWN_AFTER {
            continue;
        }
        year.steps += 1;
        // Sessions may be missing on either side of the change.
        let near = SignedDuration::from_hours(24 * 3);
        let (first, last) = (began(slow.night) - near, began(slow.night) + near);
        let shown = ranges
            .get(&slow.row)
            .is_some_and(|ranges| ranges.iter().any(|(after, until)| *after <= last && *until >= first));
        if !shown {
            year.steps_not_shown.push(*slow);
        }
    }
    year
}
