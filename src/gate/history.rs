//! One session against the stored sessions of a baseline: another day, maybe another chip.

use std::collections::HashMap;

use crate::model::{Benchmark, BenchmarkName, Lint, LintCode, Metric, Outcome, Run, Spread};
use crate::stats::describe;

use super::estimate::ENOUGH_SESSIONS;
use super::evidence::{Evidence, SpreadSource, usable};
use super::series::{self, Readings};

/// Assumed standard deviation between sessions on one GPU testbed where neither history, calibration
/// nor policy says better: clocks and temperatures of another day, as a log ratio.
pub const DEFAULT_GPU_SESSION_CV: f64 = 0.03;
/// The same for processors.
pub const DEFAULT_CPU_SESSION_CV: f64 = 0.05;

/// The sessions that head may be compared with: those of its testbed. Where either side has no
/// fingerprint nothing is known, and the comparison's own lints say so.
pub fn same_testbed<'a>(head: &Run, sessions: &'a [Run]) -> Vec<&'a Run> {
    let same = |session: &&Run| match (&session.testbed, &head.testbed) {
        (Some(stored), Some(head)) => stored.id == head.id,
        _ => true,
    };
    sessions.iter().filter(same).collect()
}

/// Stored sessions, found by benchmark: histories of years and suites of thousands stay linear.
pub struct Sessions<'a> {
    benchmarks: HashMap<&'a BenchmarkName, Vec<&'a Benchmark>>,
}

impl<'a> Sessions<'a> {
    /// In the order given, oldest first.
    pub fn new(runs: &[&'a Run]) -> Self {
        let mut benchmarks: HashMap<&'a BenchmarkName, Vec<&'a Benchmark>> = HashMap::new();
        for benchmark in runs.iter().flat_map(|run| &run.benchmarks) {
            benchmarks.entry(&benchmark.name).or_default().push(benchmark);
        }
        Self { benchmarks }
    }
}

/// The newest session, with benchmarks whose device was missing in it as the newest session has them that
/// measured them: one night with a broken driver must not teach the gate to expect nothing.
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

/// What the reader should know of the history.
pub fn notes(stored: usize, used: usize) -> Vec<String> {
    let mut notes = vec![format!("compared with {used} stored sessions; how much sessions differ counts")];
    if used < stored {
        notes.push(format!("{} stored sessions of other testbeds were left out", stored - used));
    }
    notes
}

/// The cost of one benchmark in one session: the median over its processes.
fn session_cost(readings: &Readings, summaries: bool) -> Option<f64> {
    describe::median(if summaries { &readings.middle } else { &readings.clean })
}

/// Head's session against the history of this row.
pub fn gather(
    sessions: &Sessions<'_>,
    name: &BenchmarkName,
    metric: &Metric,
    head: &Readings,
    calibrated: Option<&Spread>,
    declared: Option<f64>,
    gpu: bool,
) -> Result<Evidence, String> {
    let stored: Vec<Readings> = sessions
        .benchmarks
        .get(name)
        .into_iter()
        .flatten()
        .filter(|benchmark| benchmark.outcome.is_ok())
        .filter_map(|benchmark| benchmark.metric(&metric.name))
        .filter(|series| series.metric.unit == metric.unit)
        .filter_map(|series| series::read(series).ok())
        .collect();
    if stored.iter().any(|readings| !readings.has_ratio()) {
        return Err("a stored session has a value of zero, so there is no ratio to judge".to_owned());
    }
    let summaries = head.summaries_only || stored.iter().any(|readings| readings.summaries_only);
    let costs: Vec<f64> = stored.iter().filter_map(|readings| session_cost(readings, summaries)).collect();
    let now = session_cost(head, summaries).ok_or("head has no process")?;
    let (between, source) = prior(calibrated, declared, gpu);
    let mut lints = Vec::new();
    if costs.len() < ENOUGH_SESSIONS && source != SpreadSource::Calibrated {
        let detail = format!(
            "{} stored sessions, {} spread between sessions of {:.1} %",
            costs.len(),
            source.as_str(),
            between * 100.0
        );
        lints.push(Lint::new(LintCode::FewSessions, detail));
    }
    if costs.is_empty() {
        return Err("no stored session has this row".to_owned());
    }
    Ok(Evidence::History { stored: costs, now, assumed_sd: between, lints })
}

fn prior(calibrated: Option<&Spread>, declared: Option<f64>, gpu: bool) -> (f64, SpreadSource) {
    if let Some(between) = declared.filter(usable) {
        return (between, SpreadSource::Declared);
    }
    if let Some(between) = calibrated.and_then(|spread| spread.between_sessions).filter(usable) {
        return (between, SpreadSource::Calibrated);
    }
    (if gpu { DEFAULT_GPU_SESSION_CV } else { DEFAULT_CPU_SESSION_CV }, SpreadSource::Default)
}
