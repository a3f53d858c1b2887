//! What the shape alone can't say: that a run file agrees with itself.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Metric, SideName, Stage, is_date};

use super::{
    BackendRecord, BaselineFile, BenchmarkRecord, OutcomeRecord, OutcomeStatus, ProcessRecord, RecordError,
    RunFile,
};

fn wrong(at: impl Into<String>, what: impl Into<String>) -> RecordError {
    RecordError::Inconsistent { at: at.into(), what: what.into() }
}

/// Slots of a block.
const SLOTS: u8 = 4;

/// Refuses a file that contradicts itself; the first contradiction is named.
pub(super) fn run(file: &RunFile) -> Result<(), RecordError> {
    timestamp("created", &file.created)?;
    let metrics = described(&file.metrics)?;
    match file.sides.iter().map(|side| side.name).collect::<Vec<_>>().as_slice() {
        [_] | [SideName::Base, SideName::Head] => {}
        _ => return Err(wrong("sides", "neither one side nor base followed by head")),
    }
    let alone = file.sides.len() == 1;
    let misplaced = file.sides.iter().position(|side| side.anchor && (alone || side.name != SideName::Base));
    if let Some(at) = misplaced {
        return Err(wrong(format!("sides[{at}].anchor"), "only a base with a head can be an anchor"));
    }
    for (at, backend) in file.backends.iter().enumerate() {
        self::backend(&format!("backends[{at}]"), backend)?;
    }
    // A slot is one process: no two of a benchmark, on whatever side, stand in the same place.
    let mut slots: BTreeMap<&str, BTreeSet<(u32, u8)>> = BTreeMap::new();
    for (side_at, side) in file.sides.iter().enumerate() {
        let mut names = BTreeSet::new();
        for (at, benchmark) in side.benchmarks.iter().enumerate() {
            let at = format!("sides[{side_at}].benchmarks[{at}]");
            if !names.insert(benchmark.name.as_str()) {
                return Err(wrong(at, format!("a second benchmark is named {:?}", benchmark.name)));
            }
            self::benchmark(&at, benchmark, &metrics)?;
            let taken = slots.entry(&benchmark.name).or_default();
            for (process_at, process) in benchmark.processes.iter().enumerate() {
                let at = format!("{at}.processes[{process_at}]");
                self::process(&at, process, &metrics)?;
                if let Some(slot) = process.slot
                    && !taken.insert((slot.block, slot.slot))
                {
                    let what = format!("block {} already has a process in slot {}", slot.block, slot.slot);
                    return Err(wrong(format!("{at}.slot"), what));
                }
            }
        }
    }
    Ok(())
}

/// The names of the metrics that a file describes. A file that calls latency a throughput would turn a
/// regression into an improvement.
fn described(metrics: &[Metric]) -> Result<BTreeSet<&str>, RecordError> {
    let mut names = BTreeSet::new();
    for metric in metrics {
        if !names.insert(metric.name.as_ref()) {
            return Err(wrong("metrics", format!("{:?} is described twice", metric.name)));
        }
        if let Some(known) = Metric::built_in(&metric.name)
            && known != *metric
        {
            let what = format!(
                "{:?} is a built-in metric in {}, and the file describes it differently",
                metric.name, known.unit
            );
            return Err(wrong("metrics", what));
        }
    }
    Ok(names)
}

fn backend(at: &str, backend: &BackendRecord) -> Result<(), RecordError> {
    outcome(at, &backend.outcome)?;
    for (process_at, process) in backend.processes.iter().enumerate() {
        let at = format!("{at}.processes[{process_at}]");
        timestamp(&format!("{at}.started"), &process.started)?;
        if backend.outcome.status == OutcomeStatus::Ok && process.failure.is_some() {
            return Err(wrong(at, "the outcome is ok although this process failed"));
        }
    }
    Ok(())
}

fn benchmark(at: &str, benchmark: &BenchmarkRecord, metrics: &BTreeSet<&str>) -> Result<(), RecordError> {
    outcome(at, &benchmark.outcome)?;
    let failure = benchmark.processes.iter().find_map(|process| process.failure.as_deref());
    if let (OutcomeStatus::Ok, Some(failure)) = (benchmark.outcome.status, failure) {
        let what = format!("the outcome is ok although a process failed: {failure}");
        return Err(wrong(format!("{at}.outcome"), what));
    }
    let mut single = BTreeSet::new();
    for value in &benchmark.values {
        let at = format!("{at}.values");
        known_metric(&at, &value.metric, metrics)?;
        let sampled = benchmark.processes.iter().any(|process| process.samples.get(&value.metric).is_some());
        if sampled || !single.insert(value.metric.as_str()) {
            return Err(wrong(at, format!("{:?} has values in two places", value.metric)));
        }
    }
    Ok(())
}

pub(super) fn outcome(at: &str, outcome: &OutcomeRecord) -> Result<(), RecordError> {
    let failed = outcome.status == OutcomeStatus::Failed;
    if failed != outcome.stage.is_some() {
        let stages = Stage::ALL.map(Stage::as_str).join(", ");
        let what = format!("a failed outcome, and no other, names its stage ({stages})");
        return Err(wrong(format!("{at}.outcome"), what));
    }
    if (outcome.status == OutcomeStatus::Ok) == outcome.why.is_some() {
        return Err(wrong(format!("{at}.outcome"), "every outcome but ok says why"));
    }
    Ok(())
}

fn process(at: &str, process: &ProcessRecord, metrics: &BTreeSet<&str>) -> Result<(), RecordError> {
    timestamp(&format!("{at}.started"), &process.started)?;
    if let Some(slot) = process.slot
        && slot.slot >= SLOTS
    {
        return Err(wrong(format!("{at}.slot"), format!("slot {} of a block of four", slot.slot)));
    }
    process.samples.iter().try_for_each(|(name, _)| known_metric(&format!("{at}.samples"), name, metrics))
}

fn known_metric(at: &str, name: &str, metrics: &BTreeSet<&str>) -> Result<(), RecordError> {
    if metrics.contains(name) {
        Ok(())
    } else {
        Err(wrong(at, format!("{name:?} is not described in metrics")))
    }
}

pub(super) fn timestamp(at: &str, text: &str) -> Result<(), RecordError> {
    match text.parse::<jiff::Timestamp>() {
        Ok(_) => Ok(()),
        Err(_) => Err(wrong(at, format!("{text:?} is not an RFC 3339 time"))),
    }
}

pub(super) fn date(at: &str, text: &str) -> Result<(), RecordError> {
    if is_date(text) { Ok(()) } else { Err(wrong(at, format!("expected a day, YYYY-MM-DD, found {text:?}"))) }
}

/// Refuses a file of a baseline that contradicts itself.
pub(super) fn baseline(file: &BaselineFile) -> Result<(), RecordError> {
    timestamp("created", &file.created)?;
    let metrics = described(&file.metrics)?;
    let mut names = BTreeSet::new();
    for (at, benchmark) in file.benchmarks.iter().enumerate() {
        let at = format!("benchmarks[{at}]");
        if !names.insert(benchmark.name.as_str()) {
            return Err(wrong(at, format!("a second benchmark is named {:?}", benchmark.name)));
        }
        outcome(&at, &benchmark.outcome)?;
        let named = benchmark.processes.iter().flat_map(|process| process.summaries.keys());
        let mut named = named.chain(benchmark.values.iter().map(|value| &value.metric));
        named.try_for_each(|name| known_metric(&at, name, &metrics))?;
    }
    Ok(())
}

/// Refuses a file whose content is not what its writer hashed.
pub(super) fn hash(stated: &str, found: &str) -> Result<(), RecordError> {
    if stated == found {
        return Ok(());
    }
    let what =
        format!("the content has hash {found}, not {stated}: it was damaged or edited after it was written");
    Err(wrong("sha256", what))
}
