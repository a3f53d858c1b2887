//! Compares one session with the stored sessions of a baseline, which come from other days and possibly other
//! chips, or with a reference toolchain that was measured in the same session.

use std::collections::{BTreeMap, HashMap, HashSet};

use benchgate_core::model::{
    Anchor, Artifact, Benchmark, BenchmarkName, Lint, LintCode, Metric, MetricKind, MetricSeries, Outcome,
    Quality, Run, Series, Spread, counted,
};
use benchgate_stats::describe;

use super::common::{Common, CommonShifts, RowCosts};
use super::estimate::ENOUGH_SESSIONS;
use super::evidence::{Evidence, SpreadSource, usable};
use super::gradual::{Earlier, EarlierCosts, EarlierSessions, StoredSessions};
use super::newest::{GradualQuestion, NewestCosts};
use super::{TooLittle, series};

/// Assumed standard deviation between sessions on one GPU testbed, if neither history, calibration nor policy
/// states it: clocks and temperatures differ between days. It is a log ratio.
pub const DEFAULT_GPU_SESSION_CV: f64 = 0.03;
/// Assumed standard deviation between sessions on processors.
pub const DEFAULT_CPU_SESSION_CV: f64 = 0.05;

/// Returns the sessions of head's testbed, which head may be compared with. If either side has no
/// fingerprint, the comparison's own lints report it.
pub fn same_testbed<'a>(head: &Run, sessions: &'a [Run]) -> Vec<&'a Run> {
    sessions.iter().filter(|session| is_same_testbed(head, session)).collect()
}

fn is_same_testbed(head: &Run, session: &Run) -> bool {
    match (&session.testbed, &head.testbed) {
        (Some(stored), Some(head)) => stored.id == head.id,
        _ => true,
    }
}

/// The costs of one row, which is a benchmark and a metric.
struct Costs<'a> {
    metric: &'a Metric,
    /// Stored sessions by number, oldest first, with the row's cost in each.
    stored: Vec<(usize, f64)>,
    /// Sessions that are excluded because they were slow, in the same form.
    slow: Vec<(usize, f64)>,
    /// Sessions before the row's acceptance, in the same form.
    before: Vec<(usize, f64)>,
    now: Option<f64>,
    /// True if a stored session has a value that allows no ratio.
    has_zero: bool,
    /// Costs in sessions on earlier days.
    earlier: Vec<EarlierCosts>,
}

/// Stored sessions, indexed by benchmark, so that the time stays linear for histories of years and suites of
/// thousands.
pub struct Sessions<'a> {
    rows: HashMap<(&'a BenchmarkName, &'a str), Costs<'a>>,
    /// Earlier levels of the rows in which head was measured.
    earlier: HashMap<(&'a BenchmarkName, &'a str), Earlier>,
    /// The best value of each exact metric of head since the last acceptance. The newest value is not enough,
    /// because it moves along with a gradual change.
    best: HashMap<(&'a BenchmarkName, &'a str), &'a MetricSeries>,
    /// How right the results of the oldest sessions are.
    oldest: HashMap<&'a BenchmarkName, Benchmark>,
    /// Numbers of unknown meaning in the newest sessions.
    newest: HashMap<&'a BenchmarkName, Benchmark>,
    /// How right the results of recent sessions are.
    recent: HashMap<&'a BenchmarkName, Benchmark>,
    /// Common shifts, by metric name.
    common: BTreeMap<&'a str, Common>,
    /// Head's anchor, if any; costs are then ratios to it.
    anchor: Option<&'a Anchor>,
}

impl<'a> Sessions<'a> {
    /// Indexes the sessions of head's testbed.
    pub fn new(sessions: &StoredSessions<'a>, head: &'a Run) -> Self {
        let earlier = sessions.earlier;
        let [runs, slow, before] =
            [sessions.good, sessions.slow, sessions.before].map(|runs| same_testbed(head, runs));
        let best = best_exact(&runs, earlier, head);
        let mut rows = costs([&runs, &slow, &before], head);
        for sessions in earlier {
            add_earlier(&mut rows, sessions, head);
        }
        let mut earlier: HashMap<_, _> =
            rows.iter_mut().filter_map(|(key, row)| Some((*key, row.take_earlier()?))).collect();
        let mut by_metric: BTreeMap<&str, Vec<&mut Costs<'a>>> = BTreeMap::new();
        for ((_, metric), costs) in &mut rows {
            by_metric.entry(metric).or_default().push(costs);
        }
        let mut common = BTreeMap::new();
        for (metric, mut rows) in by_metric {
            let seen: Vec<RowCosts<'_>> = rows
                .iter()
                .map(|costs| RowCosts { stored: &costs.stored, slow: &costs.slow, now: costs.now })
                .collect();
            let Some(found) = Common::of_rows(&seen, runs.len(), slow.len()) else { continue };
            for (at, costs) in rows.iter_mut().enumerate() {
                costs.slow = found.without(at, &costs.slow, None).0;
                costs.before = found.without(at, &costs.before, None).0;
                (costs.stored, costs.now) = found.without(at, &costs.stored, costs.now);
            }
            common.insert(metric, found);
        }
        let mut past: BTreeMap<&str, Vec<&mut Earlier>> = BTreeMap::new();
        for (key, row) in &mut earlier {
            if let Some(newest) = rows.get(key).and_then(Costs::newest) {
                row.set_alone(newest);
            }
            past.entry(key.1).or_default().push(row);
        }
        for rows in past.values_mut() {
            Earlier::share_scale(rows);
            Earlier::share_shifts(rows);
        }
        let oldest = oldest_qualities(sessions, head);
        let newest = |most: usize| runs.iter().rev().take(most).copied();
        let recent = joined(newest(ENOUGH_OF_QUALITY), ENOUGH_OF_QUALITY, |metric| {
            Quality::of_metric(metric).is_some()
        });
        let newest = joined(newest(FEW), FEW, Metric::is_of_unknown_meaning);
        Self { rows, earlier, best, oldest, newest, recent, common, anchor: head.anchor.as_ref() }
    }

    /// Returns a benchmark's metrics of unknown meaning, from the newest sessions.
    pub fn newest(&self, name: &BenchmarkName) -> Option<&Benchmark> {
        self.newest.get(name)
    }

    /// Returns the best stored value of an exact metric of head.
    pub fn best(&self, name: &BenchmarkName, metric: &Metric) -> Option<&'a MetricSeries> {
        self.best.get(&(name, metric.name.as_ref())).copied()
    }

    /// Returns whether costs are ratios to an anchor that both sessions measured.
    pub fn is_anchored(&self) -> bool {
        self.anchor.is_some()
    }

    /// Returns the finding that no stored ratio of this row refers to the artifact of head's anchor.
    pub fn other_anchor(&self, name: &BenchmarkName, metric: &Metric) -> Option<Lint> {
        let anchor = self.anchor?;
        let row = self.rows.get(&(name, metric.name.as_ref())).filter(|row| row.stored.is_empty())?;
        row.now?;
        let detail = format!(
            "no stored session has this benchmark's ratio to the anchor's present module (IREE {})",
            anchor.toolchain.version
        );
        Some(Lint::new(LintCode::AnchorChanged, detail))
    }

    /// Returns the value of head from which the change of a row is estimated, without the shift that all
    /// benchmarks share; `None` if that is a ratio to an anchor.
    pub fn compared(&self, name: &BenchmarkName, metric: &Metric) -> Option<f64> {
        let row = self.rows.get(&(name, metric.name.as_ref())).filter(|_| !self.is_anchored())?;
        Some((row.now? * metric.better.worse()).exp())
    }

    /// Returns whether this row has been slowed down: sessions are excluded because they were slow, or head
    /// continues a slowdown that is gradual or that the first sessions can't exclude.
    pub fn is_slowed(&self, name: &BenchmarkName, metric: &Metric, question: &GradualQuestion) -> bool {
        let key = (name, metric.name.as_ref());
        let was_slowed = |earlier: &Earlier| {
            earlier.judge(question).is_some() || earlier.may_be_slower_than_first(question.tolerance)
        };
        self.rows.get(&key).is_some_and(|row| !row.slow.is_empty())
            || self.earlier.get(&key).is_some_and(was_slowed)
    }

    /// Returns the common shift of all rows of a metric, by session, and head's; `None` if none was removed.
    pub fn common(&self, metric: &str) -> Option<CommonShifts> {
        self.common.get(metric).map(Common::shifts)
    }
}

/// The part that a session has in the comparison of a row.
#[derive(Clone, Copy)]
enum Part {
    Good,
    Slow,
    Before,
}

/// Returns the cost of every noisy row of head, in head and in the sessions.
fn costs<'a>(
    [runs, slow, before]: [&[&'a Run]; 3],
    head: &'a Run,
) -> HashMap<(&'a BenchmarkName, &'a str), Costs<'a>> {
    let mut rows: HashMap<(&BenchmarkName, &str), Costs<'a>> = HashMap::new();
    let noisy = |series: &&MetricSeries| series.metric.kind == MetricKind::Noisy;
    for benchmark in &head.benchmarks {
        for series in benchmark.metrics.iter().filter(noisy) {
            let now = cost(head, benchmark, series, head.anchor.as_ref());
            let [stored, slow, before] = [const { Vec::new() }; 3];
            let earlier = Vec::new();
            let costs = Costs { metric: &series.metric, stored, slow, before, now, has_zero: false, earlier };
            rows.insert((&benchmark.name, series.metric.name.as_ref()), costs);
        }
    }
    // A session may be good for one benchmark and slow for another, or before the acceptance of another.
    let number = |other: &Run, at: usize| {
        runs.iter().position(|good| good.origin.label == other.origin.label).unwrap_or(at)
    };
    let slow = slow.iter().zip(runs.len()..).map(|(run, at)| (number(run, at), *run, Part::Slow));
    let before = before.iter().map(|run| (number(run, usize::MAX), *run, Part::Before));
    let good = runs.iter().zip(0..).map(|(run, number)| (number, *run, Part::Good));
    for (number, run, part) in good.chain(slow).chain(before) {
        for benchmark in run.benchmarks.iter().filter(|benchmark| benchmark.outcome.is_ok()) {
            for series in &benchmark.metrics {
                let key = (&benchmark.name, series.metric.name.as_ref());
                let Some(row) = rows.get_mut(&key).filter(|row| row.is_of(&series.metric)) else { continue };
                let sessions = match part {
                    Part::Good => &mut row.stored,
                    Part::Slow => &mut row.slow,
                    Part::Before => &mut row.before,
                };
                sessions
                    .extend(cost(run, benchmark, series, head.anchor.as_ref()).map(|cost| (number, cost)));
                if !matches!(part, Part::Before) {
                    row.has_zero |= series::read(series).is_ok_and(|readings| !readings.has_ratio());
                }
            }
        }
    }
    rows
}

/// Returns a benchmark's metrics that state how right its result is, from recent sessions, because a score that is stated
/// once a night varies from night to night, and from the oldest ones since the last acceptance.
pub fn qualities<'a>(stored: Option<&'a Sessions<'_>>, name: &BenchmarkName) -> [Option<&'a Benchmark>; 2] {
    stored.map_or([None; 2], |stored| [&stored.recent, &stored.oldest].map(|sessions| sessions.get(name)))
}

/// The number of sessions that show which facts a program states, or how much work it does.
const FEW: usize = 3;

/// The number of sessions that show how right results were.
const ENOUGH_OF_QUALITY: usize = 10;

/// Joins the metrics that state how right results are, and how much work a call does, each from the oldest sessions that
/// have it. The newest ones move along with results that get a little worse every night.
fn oldest_qualities<'a>(sessions: &StoredSessions<'a>, head: &Run) -> HashMap<&'a BenchmarkName, Benchmark> {
    let mut days: Vec<&EarlierSessions> = sessions.earlier.iter().collect();
    days.sort_by(|one, two| one.since.cmp(&two.since));
    // The sessions of several days overlap.
    let mut known = HashSet::new();
    let runs = days.into_iter().flat_map(|day| &day.runs).chain(sessions.good);
    let runs = runs.filter(|run| is_same_testbed(head, run) && known.insert(run.origin.label.as_str()));
    let is_clock = |metric: &Metric| [Metric::LATENCY, Metric::CPU_TIME].contains(metric);
    let runs: Vec<&Run> = runs.collect();
    let is_quality = |metric: &Metric| Quality::of_metric(metric).is_some();
    let mut all = joined(runs.iter().copied(), FEW, |metric| {
        is_quality(metric) || metric.is_rate_of_work() || is_clock(metric)
    });
    // If a score gets a little worse every night, a later session hides what was lost before it, so few ones are joined
    // unless the score varies.
    let mut more = joined(runs.into_iter(), ENOUGH_OF_QUALITY, is_quality);
    for (name, oldest) in &mut all {
        let mut more = more.remove(name).map_or_else(Vec::new, |benchmark| benchmark.metrics);
        for series in oldest.metrics.iter_mut().filter(|series| is_quality(&series.metric) && varies(series))
        {
            if let Some(at) = more.iter().position(|longer| longer.metric == series.metric) {
                *series = more.swap_remove(at);
            }
        }
    }
    all
}

/// Returns whether a score varies so much that a few sessions don't show how right results are.
fn varies(series: &MetricSeries) -> bool {
    const LITTLE: f64 = 0.01;
    let values = series::values(series);
    let (least, most) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
        (least.min(*value), most.max(*value))
    });
    most - least > LITTLE * most.abs()
}

/// Joins the metrics that `is_wanted`, each from the first `most` sessions that have it.
fn joined<'a>(
    runs: impl Iterator<Item = &'a Run>,
    most: usize,
    is_wanted: impl Fn(&Metric) -> bool,
) -> HashMap<&'a BenchmarkName, Benchmark> {
    let mut all: HashMap<&BenchmarkName, Benchmark> = HashMap::new();
    let mut counts: HashMap<(&BenchmarkName, &str), usize> = HashMap::new();
    for benchmark in runs.flat_map(|run| &run.benchmarks) {
        let joined = all.entry(&benchmark.name).or_insert_with(|| Benchmark::new(benchmark.name.as_str()));
        for series in benchmark.metrics.iter().filter(|series| is_wanted(&series.metric)) {
            let count = counts.entry((&benchmark.name, series.metric.name.as_ref())).or_default();
            *count += 1;
            if *count > most {
                continue;
            }
            let known = joined.metrics.iter_mut().find(|known| known.metric == series.metric);
            match (known.map(|known| &mut known.series), &series.series) {
                (None, _) => joined.metrics.push(series.clone()),
                (Some(Series::Processes(known)), Series::Processes(more)) => {
                    known.extend(more.iter().cloned())
                }
                (Some(Series::Summaries(known)), Series::Summaries(more)) => {
                    known.extend(more.iter().cloned())
                }
                (Some(_), _) => {}
            }
        }
    }
    all
}

/// Returns the best value in the sessions for every exact metric of head.
fn best_exact<'a>(
    runs: &[&'a Run],
    earlier: &'a [EarlierSessions],
    head: &'a Run,
) -> HashMap<(&'a BenchmarkName, &'a str), &'a MetricSeries> {
    fn exact(benchmark: &Benchmark) -> impl Iterator<Item = (&BenchmarkName, f64, &MetricSeries)> {
        benchmark.metrics.iter().filter_map(|series| match series.series {
            Series::Exact(value) if value.is_finite() => Some((&benchmark.name, value, series)),
            _ => None,
        })
    }
    let of_head = head.benchmarks.iter().flat_map(exact);
    let wanted: HashMap<(&BenchmarkName, &str), &Metric> =
        of_head.map(|(name, _, series)| ((name, series.metric.name.as_ref()), &series.metric)).collect();
    let mut best: HashMap<(&BenchmarkName, &str), (f64, &MetricSeries)> = HashMap::new();
    let days = earlier.iter().flat_map(|sessions| &sessions.runs).filter(|run| is_same_testbed(head, run));
    for (name, value, series) in
        runs.iter().copied().chain(days).flat_map(|run| &run.benchmarks).flat_map(exact)
    {
        let key = (name, series.metric.name.as_ref());
        let is_same = |metric: &&&Metric| metric.is_like(&series.metric);
        if wanted.get(&key).filter(is_same).is_none() {
            continue;
        }
        let cost = series.metric.better.worse() * value;
        let known = best.entry(key).or_insert((cost, series));
        if cost < known.0 {
            *known = (cost, series);
        }
    }
    best.into_iter().map(|(key, (_, series))| (key, series)).collect()
}

impl Costs<'_> {
    /// Returns whether these costs belong to this metric. Another unit is another quantity.
    fn is_of(&self, metric: &Metric) -> bool {
        metric.unit == self.metric.unit && metric.better == self.metric.better
    }

    fn newest(&self) -> Option<NewestCosts> {
        let costs = |of: &[(usize, f64)]| of.iter().map(|(_, cost)| *cost).collect();
        let newest = NewestCosts::new(costs(&self.stored), costs(&self.slow), self.now?);
        Some(NewestCosts { before: costs(&self.before), ..newest })
    }

    fn take_earlier(&mut self) -> Option<Earlier> {
        let newest = self.newest()?;
        Some(Earlier::new(std::mem::take(&mut self.earlier), newest))
    }
}

/// Adds the costs of sessions on earlier days to the rows of head.
fn add_earlier<'a>(
    rows: &mut HashMap<(&'a BenchmarkName, &'a str), Costs<'a>>,
    sessions: &'a EarlierSessions,
    head: &Run,
) {
    for row in rows.values_mut() {
        row.earlier.push(EarlierCosts { since: sessions.since.clone(), ..EarlierCosts::default() });
    }
    for run in sessions.runs.iter().filter(|run| is_same_testbed(head, run)) {
        for benchmark in run.benchmarks.iter().filter(|benchmark| benchmark.outcome.is_ok()) {
            for series in &benchmark.metrics {
                let key = (&benchmark.name, series.metric.name.as_ref());
                let Some(row) = rows.get_mut(&key).filter(|row| row.is_of(&series.metric)) else { continue };
                let cost = cost(run, benchmark, series, head.anchor.as_ref());
                if let Some((group, cost)) = row.earlier.last_mut().zip(cost) {
                    group.costs.push(cost);
                }
            }
        }
    }
}

/// Returns the cost of one benchmark in one session: the median over its processes or, with an anchor, its
/// ratio to the same module of the reference toolchain.
fn cost(run: &Run, benchmark: &Benchmark, series: &MetricSeries, anchor: Option<&Anchor>) -> Option<f64> {
    if let Some(anchor) = anchor {
        let own = run.anchor.as_ref().filter(|own| own.toolchain == anchor.toolchain)?;
        own.artifacts
            .get(&benchmark.name)
            .filter(|own| anchor.artifacts.get(&benchmark.name) == Some(own))?;
        let key = (benchmark.name.clone(), series.metric.name.to_string());
        let ratio = own.ratios.get(&key).copied().filter(|ratio| *ratio > 0.0)?;
        return Some(series.metric.better.worse() * ratio.ln());
    }
    // A session with samples and one with only summaries have just the median in common.
    describe::median(&series::read(series).ok()?.middle).filter(|cost| cost.is_finite())
}

/// Returns the newest session. If a benchmark's device was missing in it, the benchmark is taken from the
/// newest session that measured it: one night with a broken driver must not make the gate expect no result.
pub fn newest_measured(sessions: &[&Run]) -> Option<Run> {
    let (newest, older) = sessions.split_last()?;
    let mut run = (*newest).clone();
    for benchmark in &mut run.benchmarks {
        let compiled_only =
            matches!(benchmark.outcome, Outcome::Unsupported { .. }) && benchmark.artifact.is_some();
        if !compiled_only {
            continue;
        }
        let of_session = |session: &&Run| {
            session
                .benchmarks
                .iter()
                .find(|known| known.name == benchmark.name && known.outcome.is_ok())
                .cloned()
        };
        if let Some(measured) = older.iter().rev().find_map(of_session) {
            *benchmark = measured;
        }
    }
    Some(run)
}

/// Returns notes about the history for the reader.
pub fn notes(stored: usize, used: usize, is_shifted: bool) -> Vec<String> {
    let mut notes = vec![format!(
        "compared with {}; the spread between sessions is taken into account",
        counted(used, "stored session")
    )];
    if used < stored {
        notes.push(format!("left out: {} of other testbeds", counted(stored - used, "stored session")));
    }
    if is_shifted {
        notes.push(
            "values are as measured. The shift that all benchmarks of a session share is removed from each \
            row's change and judged in a separate row"
                .to_owned(),
        );
    }
    notes
}

/// Describes how a history with an anchor is used.
pub fn method(anchored: bool) -> Option<String> {
    anchored.then(|| "times are divided by the anchor's times in the same session, block by block".to_owned())
}

/// Gathers the evidence of head's session against the history of this row.
pub fn gather(
    sessions: &Sessions<'_>,
    name: &BenchmarkName,
    metric: &Metric,
    calibrated: Option<&Spread>,
    declared: Option<f64>,
    gpu: bool,
) -> Result<Evidence, TooLittle> {
    let not_stored = || TooLittle::new("not stored", "no stored session has this row");
    let row = sessions.rows.get(&(name, metric.name.as_ref())).ok_or_else(not_stored)?;
    if row.has_zero {
        let why = "a stored session has a value of zero, so there is no ratio to judge";
        return Err(TooLittle::new("a value is zero", why));
    }
    let missing = || match sessions.is_anchored() {
        true => TooLittle::new("no anchor", "head has no ratio to the anchor"),
        false => TooLittle::new("no process", "head has no process"),
    };
    let now = row.now.ok_or_else(missing)?;
    let costs: Vec<f64> = row.stored.iter().map(|(_, cost)| *cost).collect();
    let (between, source) = prior(calibrated, declared, gpu);
    let mut lints = Vec::new();
    let earlier = sessions.earlier.get(&(name, metric.name.as_ref())).cloned().unwrap_or_default();
    let before = earlier.spread_before();
    if costs.len() < ENOUGH_SESSIONS && (before.is_some() || source != SpreadSource::Calibrated) {
        let stored = counted(costs.len(), "stored session");
        let detail = match before {
            Some(before) => {
                let percent = 100.0 * before.variance.sqrt();
                format!(
                    "{stored} since the acceptance; the spread between sessions before it was {percent:.1} %"
                )
            }
            None => {
                format!("{stored}, {} spread between sessions of {:.1} %", source.as_str(), between * 100.0)
            }
        };
        lints.push(Lint::new(LintCode::FewSessions, detail));
    }
    if costs.is_empty() {
        return Err(not_stored());
    }
    let slow = row.slow.iter().map(|(_, cost)| *cost).collect();
    Ok(Evidence::History { stored: costs, slow, earlier, now, assumed_sd: between, lints })
}

/// Returns the common shift of all rows of a metric, as the evidence of a row.
pub fn gather_common(sessions: &Sessions<'_>, metric: &str, gpu: bool) -> Option<Evidence> {
    let CommonShifts { stored, slow, now } = sessions.common(metric)?;
    let (assumed_sd, _) = prior(None, None, gpu);
    let (earlier, lints) = (Earlier::default(), Vec::new());
    Some(Evidence::History { stored, slow, earlier, now, assumed_sd, lints })
}

/// Returns the spread between sessions without their history, and its source.
pub fn prior(calibrated: Option<&Spread>, declared: Option<f64>, gpu: bool) -> (f64, SpreadSource) {
    if let Some(between) = declared.filter(usable) {
        return (between, SpreadSource::Declared);
    }
    if let Some(between) = calibrated.and_then(|spread| spread.between_sessions).filter(usable) {
        return (between, SpreadSource::Calibrated);
    }
    (if gpu { DEFAULT_GPU_SESSION_CV } else { DEFAULT_CPU_SESSION_CV }, SpreadSource::Default)
}

/// Identifies what a module executes.
pub fn executed(artifact: &Artifact) -> String {
    format!("{}-{}", artifact.vmfb_sha256, artifact.execution_sha256)
}
