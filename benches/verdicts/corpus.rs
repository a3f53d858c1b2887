//! The recorded corpus, converted to runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use benchgate::model::{Benchmark, BlockSlot, Metric, MetricSeries, Process, Run, Series};
use serde_json::Value;

const NANOSECONDS_PER_MILLISECOND: f64 = 1e6;

/// Returns the folder of the project's own recordings.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/corpus")
}

fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the kinds of lines in a recording. Lines without a kind come from unchanged code.
pub fn kinds(file: &Path) -> Vec<String> {
    let kind = |line: &Value| line["kind"].as_str().unwrap_or("aa").to_owned();
    let mut kinds: Vec<String> = lines(file).iter().map(kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

fn samples(line: &Value) -> Vec<f64> {
    let values = line["real_time_ms"].as_array().unwrap();
    values.iter().map(|v| v.as_f64().unwrap() * NANOSECONDS_PER_MILLISECOND).collect()
}

fn text<'a>(line: &'a Value, key: &str) -> &'a str {
    line[key].as_str().unwrap()
}

pub fn benchmark(name: &str, processes: Vec<Process>) -> Benchmark {
    let mut benchmark = Benchmark::new(name);
    benchmark.metrics.push(MetricSeries { metric: Metric::LATENCY, series: Series::Processes(processes) });
    benchmark
}

pub fn session(benchmarks: Vec<Benchmark>) -> Run {
    Run { session: Some("recorded".to_owned()), benchmarks, ..Run::default() }
}

/// Returns the time from the start of a process to the start of the next one in its block, which is the cost
/// of a process.
pub fn seconds_a_process(file: &Path) -> f64 {
    let lines = lines(file);
    let started = |line: &Value| text(line, "started").parse::<jiff::Timestamp>().unwrap();
    let same = |pair: &&[Value]| ["model", "round"].iter().all(|key| pair[0][key] == pair[1][key]);
    let apart = lines.windows(2).filter(same).map(|pair| started(&pair[1]) - started(&pair[0]));
    let seconds: Vec<f64> = apart.map(|span| span.total(jiff::Unit::Second).unwrap()).collect();
    benchgate::stats::describe::median(&seconds).unwrap()
}

/// Returns a recorded session with side A as base and side B as head. A round is a block, and only the last
/// `share` of the rounds is read. If a slot is a pair (0 and 1, as in `paired.jsonl`), its lines are in the
/// order of their start.
pub fn session_of(file: &Path, kind: &str, share: f64) -> (Run, Run) {
    let mut lines = lines(file);
    lines.retain(|line| line["kind"].as_str().unwrap_or("aa") == kind);
    let rounds = lines.iter().map(|line| line["round"].as_u64().unwrap()).max().unwrap_or_default() + 1;
    let first = (rounds as f64 * (1.0 - share)).round() as u64;
    let of_pairs = lines.iter().all(|line| line["slot"].as_u64().unwrap() < 2);
    let mut models: BTreeMap<String, (Vec<Process>, Vec<Process>)> = BTreeMap::new();
    let mut places: BTreeMap<(String, u64, u64), u8> = BTreeMap::new();
    for line in lines.iter().filter(|line| line["round"].as_u64().unwrap() >= first) {
        let (model, round, slot) =
            (text(line, "model"), line["round"].as_u64().unwrap(), line["slot"].as_u64().unwrap());
        let slot = if of_pairs {
            let place = places.entry((model.to_owned(), round, slot)).or_default();
            *place += 1;
            2 * slot as u8 + *place - 1
        } else {
            slot as u8
        };
        let slot = BlockSlot { block: round as u32, slot };
        let process = Process { samples: samples(line), slot: Some(slot), ..Process::default() };
        let (a, b) = models.entry(model.to_owned()).or_default();
        if text(line, "side") == "A" { a.push(process) } else { b.push(process) }
    }
    let mut runs = (session(Vec::new()), session(Vec::new()));
    for (name, (a, b)) in models {
        runs.0.benchmarks.push(benchmark(&name, a));
        runs.1.benchmarks.push(benchmark(&name, b));
    }
    runs
}

/// Reads `loaded.jsonl` for one IREE version: for each round, one process of each model.
pub fn loaded(iree: &str) -> Vec<BTreeMap<String, Vec<f64>>> {
    let mut rounds: BTreeMap<u64, BTreeMap<String, Vec<f64>>> = BTreeMap::new();
    for line in lines(&folder().join("loaded.jsonl")).iter().filter(|line| text(line, "iree") == iree) {
        let round = line["round"].as_u64().unwrap();
        rounds.entry(round).or_default().insert(text(line, "model").to_owned(), samples(line));
    }
    rounds.into_values().collect()
}
