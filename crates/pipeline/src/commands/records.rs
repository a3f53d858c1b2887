//! Converts the output of a command's processes to one record per benchmark. A benchmark that only some
//! processes of a side printed has failed on that side, because it was not measured as often as scheduled.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use benchgate_core::model::{
    ANY_TEXT, BenchmarkName, Lint, LintCode, Metric, Outcome, SILENT, STANDARD_OUTPUT, SideName, Stage,
};
use benchgate_core::record::{BenchmarkRecord, OutcomeRecord, ProcessRecord, StageRecord, StageStatus};

use benchgate_ingest::labels_of_processes;

use super::super::journal::{Journal, JournalEntry};
use super::super::stage::{StageFailure, ended, relative};
use super::super::targets::Presence;
use super::{PreparedCommand, PrintedRow, PrintedStatistic};

/// All printed metrics, each as the first process described it.
pub(crate) fn metrics<'a>(entries: impl Iterator<Item = &'a JournalEntry>) -> Vec<Metric> {
    let mut found: Vec<Metric> = Vec::new();
    for metric in entries.filter_map(|entry| entry.printed.as_ref()).flat_map(|printed| &printed.metrics) {
        if found.iter().all(|known| known.name != metric.name) {
            found.push(metric.clone());
        }
    }
    found
}

/// Records for the benchmarks of one command on one side. `known` are the metrics of the whole run.
pub(crate) fn records(
    prepared: &PreparedCommand,
    side: SideName,
    journal: &Journal,
    known: &[Metric],
    relative_to: &Path,
) -> Vec<BenchmarkRecord> {
    let command = prepared.spec.name.as_str();
    let name = BenchmarkName::new(command);
    let of_side = |side| -> Vec<CommandProcess<'_>> {
        journal.processes(&name, side).into_iter().map(CommandProcess::new).collect()
    };
    let entries = of_side(side);
    let others: Vec<CommandProcess<'_>> =
        SideName::BOTH.into_iter().filter(|other| *other != side).flat_map(of_side).collect();
    // If a process of this side failed, the benchmarks that it should have printed are known from the other
    // side.
    let failed = entries.iter().any(|process| process.entry.process.failure.is_some());
    let printing = entries.iter().chain(others.iter().filter(|_| failed));
    let mut seen = HashSet::new();
    let known_rows = prepared.spec.benchmarks().unwrap_or_default();
    let printed = printing.flat_map(CommandProcess::names);
    let mut names: Vec<&str> = known_rows
        .iter()
        .map(BenchmarkName::as_str)
        .chain(printed)
        .filter(|name| seen.insert(*name))
        .collect();
    if names.is_empty() {
        names.push(command);
    }
    // Base's processes come first, because base determines the statistic of a row.
    let base_first: Vec<&CommandProcess<'_>> = match side {
        SideName::Base => entries.iter().chain(&others).collect(),
        SideName::Head => others.iter().chain(&entries).collect(),
    };
    let statistic =
        |name: &str| base_first.iter().find_map(|process| process.rows.get(name)).map(|row| row.statistic);
    let whole = entries.iter().any(CommandProcess::is_whole);
    let record = |name: &str| BenchmarkRecord {
        timing: journal.timings.record(&BenchmarkName::new(command)).filter(|_| whole),
        ..record(name, &entries, known, statistic(name), relative_to)
    };
    let mut records: Vec<BenchmarkRecord> = names.into_iter().map(record).collect();
    for record in &mut records {
        match (&prepared.failure, &prepared.device) {
            (Some(failure), _) => unbuilt(record, failure, relative_to),
            (None, Presence::Present) => {}
            (None, Presence::Absent { what, said }) => {
                record.outcome = OutcomeRecord::from(&Outcome::Unsupported { reason: what.clone() });
                record.lints.push(Lint::new(LintCode::NoDevice, said.clone()));
            }
            (None, Presence::Broken { why }) => {
                let (stage, why) = (Stage::Benchmark, why.clone());
                record.outcome = OutcomeRecord::from(&Outcome::Failed { stage, why });
            }
        }
    }
    records
}

/// Records that the command could not be built on this side.
fn unbuilt(record: &mut BenchmarkRecord, failure: &StageFailure, relative_to: &Path) {
    let stage = Stage::Compile;
    record.outcome = OutcomeRecord::from(&Outcome::Failed { stage, why: failure.why.clone() });
    let seconds = failure.took.unwrap_or_default().as_secs_f64();
    let log = failure.log.as_ref().map(|log| relative(log, relative_to));
    record.stages.push(StageRecord { log, ..ended(stage, StageStatus::Failed, seconds) });
    if failure.killed {
        record.lints.push(Lint::new(LintCode::Killed, format!("{stage}: {}", failure.why)));
    }
}

/// A process of the command, with its printed rows by name.
struct CommandProcess<'a> {
    entry: &'a JournalEntry,
    rows: HashMap<&'a str, &'a PrintedRow>,
}

impl<'a> CommandProcess<'a> {
    fn new(entry: &'a JournalEntry) -> Self {
        let rows = entry.printed.iter().flat_map(|printed| &printed.rows);
        Self { entry, rows: rows.map(|row| (row.name.as_str(), row)).collect() }
    }

    /// Returns whether the process was timed as a whole.
    fn is_whole(&self) -> bool {
        self.entry.printed.as_ref().is_some_and(|printed| printed.format.is_none())
    }

    /// The names of its rows in the order of the output.
    fn names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.entry.printed.iter().flat_map(|printed| &printed.rows).map(|row| row.name.as_str())
    }
}

fn record(
    name: &str,
    processes_of_side: &[CommandProcess<'_>],
    known: &[Metric],
    statistic: Option<PrintedStatistic>,
    relative_to: &Path,
) -> BenchmarkRecord {
    let mut lints: Vec<Lint> = Vec::new();
    let mut unmeasured: Vec<Outcome> = Vec::new();
    let mut processes = Vec::new();
    for CommandProcess { entry, rows } in processes_of_side {
        let asked = entry.printed.as_ref().and_then(|printed| printed.asked.as_ref());
        if asked.is_some_and(|asked| !asked.contains(name)) {
            // A process that printed it without being asked does not make it mandatory on the other side.
            continue;
        }
        let row = rows.get(name).copied();
        let lints_of_row = row.into_iter().flat_map(|row| row.lints.iter().cloned());
        let killed = entry.process.failure.clone().filter(|_| entry.killed);
        for lint in lints_of_row.chain(killed.map(|why| Lint::new(LintCode::Killed, why))) {
            // Each problem is compared with the other side's.
            let is_problem = lint.code == LintCode::ReportedProblem;
            if lints.iter().all(|known| known.code != lint.code || is_problem && *known != lint) {
                lints.push(lint);
            }
        }
        if let Some(row) = row
            && let outcome @ (Outcome::Skipped { .. } | Outcome::Unsupported { .. }) =
                Outcome::from(&row.outcome)
        {
            unmeasured.push(outcome);
            continue;
        }
        processes.push(process(entry, row, known, statistic, relative_to));
    }
    let failure = processes.iter().find_map(|process| process.failure.clone());
    let failed = |why| Outcome::Failed { stage: Stage::Benchmark, why };
    let outcome = match (failure, unmeasured.first()) {
        (Some(why), _) => failed(why),
        (None, Some(outcome)) if processes.is_empty() => outcome.clone(),
        (None, Some(_)) => failed("some processes of the command skipped this benchmark".to_owned()),
        (None, None) => Outcome::Ok,
    };
    let rows = processes_of_side.iter().filter_map(|process| process.rows.get(name));
    let mut labels = labels_of_processes(rows.map(|row| &row.labels));
    if let Some(said) = labels.get_mut(STANDARD_OUTPUT) {
        let texts = processes_of_side
            .iter()
            .filter_map(|process| process.rows.get(name)?.labels.get(STANDARD_OUTPUT));
        *said = common_text(&texts.map(String::as_str).collect::<Vec<_>>()).to_owned();
    }
    BenchmarkRecord {
        name: name.to_owned(),
        labels,
        outcome: OutcomeRecord::from(&outcome),
        artifact: None,
        stages: Vec::new(),
        verification: None,
        timing: None,
        processes,
        values: Vec::new(),
        profile: None,
        code: None,
        compiler: Default::default(),
        lints,
    }
}

/// Returns the text that nearly all processes print. One that is another one in many processes states a time, and is not
/// compared. A single process doesn't show that.
fn common_text<'a>(texts: &[&'a str]) -> &'a str {
    const NEARLY_ALL: f64 = 0.75;
    let mut counts: BTreeMap<&'a str, usize> = BTreeMap::new();
    for text in texts {
        *counts.entry(text).or_default() += 1;
    }
    let common = counts.into_iter().max_by_key(|(_, count)| *count);
    let is_common = |count: usize| texts.len() > 1 && count as f64 > NEARLY_ALL * texts.len() as f64;
    match common {
        Some((SILENT, count)) if count == texts.len() || is_common(count) => SILENT,
        Some((text, count)) if is_common(count) && text != SILENT => text,
        _ => ANY_TEXT,
    }
}

/// The record of a process as far as it concerns this benchmark.
fn process(
    entry: &JournalEntry,
    row: Option<&PrintedRow>,
    known: &[Metric],
    statistic: Option<PrintedStatistic>,
    relative_to: &Path,
) -> ProcessRecord {
    let mut process = entry.process.clone();
    process.log = process.log.map(|log| relative(Path::new(&log), relative_to));
    let printed = entry.printed.as_ref();
    if printed.is_none_or(|printed| printed.format.is_some()) {
        // The peak memory of the process belongs to all its benchmarks together.
        process.peak_memory_bytes = None;
    }
    if process.failure.is_some() {
        return process;
    }
    let Some(row) = row else {
        let why = "a process of the command did not print this benchmark";
        return ProcessRecord { failure: Some(why.to_owned()), ..process };
    };
    process.failure = match Outcome::from(&row.outcome) {
        Outcome::Failed { why, .. } => Some(why),
        _ => conflict(entry, row, known, statistic),
    };
    if process.failure.is_none() {
        process.iterations = row.iterations;
        process.samples = row.samples.clone();
    }
    process
}

/// The difference, if any, between the ways in which this process and the first one describe their values.
fn conflict(
    entry: &JournalEntry,
    row: &PrintedRow,
    known: &[Metric],
    statistic: Option<PrintedStatistic>,
) -> Option<String> {
    if let Some(first) = statistic.filter(|first| *first != row.statistic) {
        return Some(format!("expected {first} of this benchmark, found {}", row.statistic));
    }
    let described = entry.printed.iter().flat_map(|printed| &printed.metrics);
    let mut other = described.filter(|metric| row.samples.get(&metric.name).is_some()).filter_map(|metric| {
        let first = known.iter().find(|known| known.name == metric.name)?;
        (first != metric).then_some((metric, first))
    });
    let (metric, first) = other.next()?;
    Some(format!(
        "{}: expected {} where {} is better, found {} where {} is better",
        metric.name, first.unit, first.better, metric.unit, metric.better
    ))
}
