//! The recorded corpus as runs.

use std::collections::BTreeMap;
use std::path::Path;

use benchgate::model::{Benchmark, BlockSlot, Metric, MetricSeries, Process, Run, Series};
use serde_json::Value;

const NANOSECONDS_PER_MILLISECOND: f64 = 1e6;

fn lines(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/corpus").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
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

/// A recorded session: side A as base, side B as head; a round is a block. `kind` picks lines where a file
/// holds several kinds. In `paired.jsonl` a slot is a pair, whose lines are in the order of their start.
pub fn session_of(file: &str, kind: Option<&str>) -> (Run, Run) {
    let mut models: BTreeMap<String, (Vec<Process>, Vec<Process>)> = BTreeMap::new();
    let mut places: BTreeMap<(String, u64, u64), u8> = BTreeMap::new();
    for line in lines(file).iter().filter(|line| kind.is_none_or(|kind| text(line, "kind") == kind)) {
        let (model, round, slot) =
            (text(line, "model"), line["round"].as_u64().unwrap(), line["slot"].as_u64().unwrap());
        let slot = if file == "paired.jsonl" {
            let place = places.entry((model.to_owned(), round, slot)).or_default();
            *place += 1;
            2 * slot as u8 + *place - 1
        } else {
            slot as u8
        };
        let slot = BlockSlot { block: round as u32, slot };
        let process = Process { samples: samples(line), slot: Some(slot), started: None };
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

/// `loaded.jsonl` of one IREE version: for each round, each model's one process.
pub fn loaded(iree: &str) -> Vec<BTreeMap<String, Vec<f64>>> {
    let mut rounds: BTreeMap<u64, BTreeMap<String, Vec<f64>>> = BTreeMap::new();
    for line in lines("loaded.jsonl").iter().filter(|line| text(line, "iree") == iree) {
        let round = line["round"].as_u64().unwrap();
        rounds.entry(round).or_default().insert(text(line, "model").to_owned(), samples(line));
    }
    rounds.into_values().collect()
}
