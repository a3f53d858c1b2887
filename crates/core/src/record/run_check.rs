//! Reads a run file and rejects one that contradicts itself, which the schema alone can't detect.
//!
//! Rejects a file with so many small records that they would take several times its size in memory.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::model::SideName;

use super::{
    BackendRecord, BenchmarkRecord, OutcomeStatus, ProcessRecord, RecordError, RunFile, RunSchema,
    StageStatus, described, duration, known_metric, schema, timestamp, wrong,
};

impl RunFile {
    /// Reads `run.json`. An error names the line and column, or the path inside the document.
    pub fn from_slice(bytes: &[u8]) -> Result<Self, RecordError> {
        check(bytes)?;
        schema::read(bytes, &RunSchema::FORMAT, consistent)
    }
}

/// Number of slots in a block.
const SLOTS: u8 = 4;
/// If the clock is set back while a block is measured, that block seems to be out of order. Two processes of
/// a benchmark that are out of order by more than this contradict their slots.
const CLOCK_SET_BACK: SignedDuration = SignedDuration::from_secs(60);

/// The order and the start of the process in each slot of one benchmark, on either side.
type TakenSlots = BTreeMap<(u32, u8), (u32, Timestamp)>;

/// Rejects a file that contradicts itself, naming the first contradiction.
fn consistent(file: &RunFile) -> Result<(), RecordError> {
    timestamp("created", &file.created)?;
    if file.session.trim().is_empty() {
        // Files with the same session count as measured together, so the name must not be empty.
        return Err(wrong("session", "expected a name, found none"));
    }
    let metrics = described(&file.metrics)?;
    match file.sides.iter().map(|side| side.name).collect::<Vec<_>>().as_slice() {
        [_] | [SideName::Base, SideName::Head] => {}
        _ => return Err(wrong("sides", "expected one side, or base followed by head")),
    }
    let alone = file.sides.len() == 1;
    let misplaced = file.sides.iter().position(|side| side.anchor && (alone || side.name != SideName::Base));
    if let Some(at) = misplaced {
        return Err(wrong(format!("sides[{at}].anchor"), "only a base with a head can be an anchor"));
    }
    for (at, backend) in file.backends.iter().enumerate() {
        check_backend(&format!("backends[{at}]"), backend)?;
    }
    // A slot belongs to one process: no two processes of a benchmark, on either side, may have the same slot.
    let mut slots: BTreeMap<&str, TakenSlots> = BTreeMap::new();
    for (side_at, side) in file.sides.iter().enumerate() {
        let mut names = BTreeSet::new();
        for (at, benchmark) in side.benchmarks.iter().enumerate() {
            let at = format!("sides[{side_at}].benchmarks[{at}]");
            if !names.insert(benchmark.name.as_str()) {
                return Err(wrong(at, format!("a second benchmark is named {:?}", benchmark.name)));
            }
            check_benchmark(&at, benchmark, &metrics)?;
            let taken = slots.entry(&benchmark.name).or_default();
            for (process_at, process) in benchmark.processes.iter().enumerate() {
                let at = format!("{at}.processes[{process_at}]");
                let started = check_process(&at, process, &metrics)?;
                if let Some(slot) = process.slot
                    && taken.insert((slot.block, slot.slot), (process.order, started)).is_some()
                {
                    let what = format!("block {} already has a process in slot {}", slot.block, slot.slot);
                    return Err(wrong(format!("{at}.slot"), what));
                }
            }
        }
    }
    slots.iter().try_for_each(|(name, taken)| interleaved(name, taken))
}

/// Checks that the processes of each block ran one after another, in the order of their slots, because only
/// then are they paired. Blocks may be in any order: an interrupted block is measured again.
fn interleaved(benchmark: &str, taken: &TakenSlots) -> Result<(), RecordError> {
    let mut set_back = BTreeSet::new();
    for ((&(block, before), &(first, began)), (&(next, after), &(second, then))) in
        taken.iter().zip(taken.iter().skip(1))
    {
        if block != next {
            continue;
        }
        let contradicted = |field: &str| {
            let what =
                format!("block {block} has slot {before} before slot {after}, and `{field}` contradicts it");
            Err(wrong(format!("processes of {benchmark:?}"), what))
        };
        if first >= second {
            return contradicted("order");
        }
        if began.duration_since(then) > CLOCK_SET_BACK && set_back.insert(block) && set_back.len() > 1 {
            return contradicted("started");
        }
    }
    Ok(())
}

fn check_backend(at: &str, backend: &BackendRecord) -> Result<(), RecordError> {
    backend.outcome.check(at)?;
    for (process_at, process) in backend.processes.iter().enumerate() {
        let at = format!("{at}.processes[{process_at}]");
        timestamp(&format!("{at}.started"), &process.started)?;
        duration(&format!("{at}.seconds"), process.seconds)?;
        if backend.outcome.status == OutcomeStatus::Ok && process.failure.is_some() {
            return Err(wrong(at, "the outcome is ok although this process failed"));
        }
    }
    Ok(())
}

fn check_benchmark(
    at: &str,
    benchmark: &BenchmarkRecord,
    metrics: &BTreeSet<&str>,
) -> Result<(), RecordError> {
    benchmark.outcome.check(at)?;
    let failure = benchmark.processes.iter().find_map(|process| process.failure.as_deref());
    if let (OutcomeStatus::Ok, Some(failure)) = (benchmark.outcome.status, failure) {
        let what = format!("the outcome is ok although a process failed: {failure}");
        return Err(wrong(format!("{at}.outcome"), what));
    }
    for stage in &benchmark.stages {
        let at = format!("{at}.stages.{}", stage.stage);
        duration(&at, stage.seconds)?;
        stage.made_in_seconds.map_or(Ok(()), |seconds| duration(&at, seconds))?;
        if benchmark.outcome.status == OutcomeStatus::Ok && stage.status == StageStatus::Failed {
            return Err(wrong(at, "the outcome is ok although this stage failed"));
        }
    }
    let mut single = BTreeSet::new();
    for value in &benchmark.values {
        let at = format!("{at}.values");
        known_metric(&at, &value.metric, metrics)?;
        let sampled = benchmark.processes.iter().any(|process| process.samples.get(&value.metric).is_some());
        if sampled || !single.insert(value.metric.as_str()) {
            return Err(wrong(at, format!("the metric {:?} has values in two places", value.metric)));
        }
    }
    Ok(())
}

/// Checks a process and returns the time at which it began.
fn check_process(
    at: &str,
    process: &ProcessRecord,
    metrics: &BTreeSet<&str>,
) -> Result<Timestamp, RecordError> {
    let started = timestamp(&format!("{at}.started"), &process.started)?;
    duration(&format!("{at}.seconds"), process.seconds)?;
    if process.iterations == Some(0) {
        return Err(wrong(format!("{at}.iterations"), "expected at least 1 iteration, found 0"));
    }
    if let Some(slot) = process.slot
        && slot.slot >= SLOTS
    {
        return Err(wrong(
            format!("{at}.slot"),
            format!("a block has the slots 0 to 3, found slot {}", slot.slot),
        ));
    }
    process.samples.iter().try_for_each(|(name, _)| known_metric(&format!("{at}.samples"), name, metrics))?;
    for (name, stated) in &process.stated_stddev {
        let repetitions = process.samples.get(name).map_or(0, <[f64]>::len);
        if repetitions < 2 || !(stated.0.is_finite() && stated.0 > 0.0) {
            let what = format!("{} is not the standard deviation of {repetitions} repetitions", stated.0);
            return Err(wrong(format!("{at}.stated_stddev.{name}"), what));
        }
    }
    Ok(started)
}

/// Files up to this size are always read: their size alone bounds the memory that they need.
const FREE_BYTES: usize = 8 << 20;
/// Maximum number of bytes of records for each byte of the file. The file's own bytes are in memory too.
const MOST: usize = 2;
/// Bytes of records that any file may need, which is enough for as many small benchmarks as a result may
/// have.
const FREE_RECORDS: usize = 64 << 20;
/// The parser rejects documents that are nested more deeply.
const DEEPEST: usize = 128;

/// Nesting depths in a run file: the file is at 1, its sides are at 3.
const OF_BENCHMARK: usize = 5;
const IN_BENCHMARK: usize = 6;
const IN_PROCESS: usize = 8;

/// Memory that each kind of element takes, rounded up. The fields of a record are included in the record.
const BENCHMARK: usize = 1_000;
const RECORD: usize = 280;
const MAP_ENTRY: usize = 80;
const LIST: usize = 32;
const NUMBER: usize = 12;
const TEXT: usize = 32;

/// Rejects a large file whose records are far smaller than any real measurement.
pub(super) fn check(bytes: &[u8]) -> Result<(), RecordError> {
    let most = bytes.len().saturating_mul(MOST).max(FREE_RECORDS);
    if bytes.len() <= FREE_BYTES || weight(bytes, most) <= most {
        return Ok(());
    }
    Err(RecordError::TooDense { mebibytes: bytes.len() >> 20 })
}

/// Returns a lower bound for the memory that the records of this document take, or any value above `enough`.
fn weight(bytes: &[u8], enough: usize) -> usize {
    let mut open: Vec<u8> = Vec::with_capacity(DEEPEST);
    let (mut weight, mut at, mut is_value) = (0_usize, 0, true);
    while let Some(&byte) = bytes.get(at) {
        let in_list = open.last() == Some(&b'[');
        let depth = open.len();
        let mut next = at + 1;
        match byte {
            b'{' | b'[' => {
                weight += match (byte, in_list) {
                    (b'{', true) if depth + 1 == OF_BENCHMARK => BENCHMARK,
                    (b'{', true) => RECORD,
                    (b'[', false) if depth >= IN_PROCESS => LIST + MAP_ENTRY,
                    (b'[', _) => LIST,
                    _ => 0,
                };
                if depth == DEEPEST {
                    return weight;
                }
                open.push(byte);
                is_value = byte == b'[';
            }
            b'}' | b']' => drop(open.pop()),
            b':' => is_value = true,
            b',' => is_value = in_list,
            b' ' | b'\n' | b'\r' | b'\t' => {}
            b'"' => {
                next = end_of_text(bytes, next);
                if is_value {
                    weight += TEXT + (next - at) + entry(depth, in_list);
                }
            }
            _ => {
                let rest = &bytes[next..];
                let length = rest.iter().position(|byte| b",]} \n\r\t".contains(byte));
                next += length.unwrap_or(rest.len());
                weight += if in_list { NUMBER } else { entry(depth, in_list) };
            }
        }
        if weight > enough {
            break;
        }
        at = next;
    }
    weight
}

/// Returns the weight of a value. Outside of processes it may belong to a map (labels, compiler statistics,
/// facts).
fn entry(depth: usize, in_list: bool) -> usize {
    if in_list || depth > IN_BENCHMARK { 0 } else { MAP_ENTRY }
}

/// Returns the position after the closing quote.
fn end_of_text(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at) {
        at += match byte {
            b'"' => return at + 1,
            b'\\' => 2,
            _ => 1,
        };
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_small_benchmarks_as_a_result_may_have_are_read() {
        let benchmark = r#"{"name":"BM_NUMBER","outcome":{"status":"ok"},"processes":[{"order":0,
            "started":"2026-11-23T23:17:12.6717511Z","seconds":0,"samples":{"cpu-time":[1000000,1000000,1000000],
            "latency":[1000000,1000999.9999999999,1002000]}}]}"#;
        let list: Vec<String> = (0..20_000).map(|at| benchmark.replace("NUMBER", &at.to_string())).collect();
        let file = format!(r#"{{"sides":[{{"name":"head","benchmarks":[{}]}}]}}"#, list.join(","));
        assert!(file.len() < 8 << 20, "{}", file.len());
        let padded = format!("{}{file}", " ".repeat(FREE_BYTES));
        assert!(check(padded.as_bytes()).is_ok());
    }
}
