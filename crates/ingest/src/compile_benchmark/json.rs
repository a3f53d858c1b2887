//! The JSON artifact for one model on one device: `{"model", "device", "results": [{"backend", …}]}`. Its
//! versions spell the same field differently, so every known spelling is accepted.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use benchgate_core::model::{Benchmark, Metric, Run, Stage, Summary};

use super::super::build::{ByName, carried, fail, processes, summary};
use super::super::error::{LineFault, line_fault};
use super::super::facts::{self, Commits, Field};
use super::super::json::{parse, unique_map};
use super::super::stated::check_summary;
use super::named;

#[derive(Deserialize)]
struct CompileBenchmarkFile {
    model: Option<String>,
    device: Option<String>,
    #[serde(alias = "runs")]
    num_runs: Option<u64>,
    results: Vec<CompileBenchmarkEntry>,
    #[serde(flatten, deserialize_with = "unique_map")]
    other: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
struct CompileBenchmarkEntry {
    backend: String,
    #[serde(alias = "mean_ms", alias = "latency_ms")]
    mean_latency_ms: Option<f64>,
    #[serde(alias = "std_ms", alias = "stddev_ms")]
    std_latency_ms: Option<f64>,
    #[serde(alias = "median_ms")]
    median_latency_ms: Option<f64>,
    #[serde(alias = "times_ms", alias = "samples_ms")]
    latencies_ms: Option<Vec<Option<f64>>>,
    #[serde(alias = "compile_time", alias = "compile_s")]
    compile_time_s: Option<f64>,
    success: Option<bool>,
    #[serde(alias = "reason", alias = "failure")]
    error: Option<String>,
    #[serde(flatten, deserialize_with = "unique_map")]
    other: BTreeMap<String, Value>,
}

pub(crate) fn read(text: &str) -> Result<Run, LineFault> {
    let file: CompileBenchmarkFile = parse(text)?;
    for name in [&file.model, &file.device].into_iter().flatten() {
        carried(name).map_err(|what| line_fault(1, what))?;
    }
    let of_file = facts::of_json(&file.other);
    let mut commits = Commits::default();
    commits.add(facts::borrowed(&of_file));
    let shared = facts::shared(of_file).map_err(|what| line_fault(1, what))?;
    let mut benchmarks = ByName::default();
    for entry in &file.results {
        let mut benchmark = benchmark(entry, &file);
        let of_row = facts::of_json(&entry.other);
        commits.add(facts::borrowed(&of_row));
        let is_of_file = |(name, _): &&Field| of_row.iter().all(|(of_row, _)| of_row != name);
        let fields: Vec<Field> = of_row.iter().chain(shared.iter().filter(is_of_file)).cloned().collect();
        facts::state(&mut benchmark, &fields);
        benchmarks.push_once(benchmark);
    }
    let mut run = Run { benchmarks: benchmarks.finish(), ..Run::default() };
    commits.finish(&mut run);
    Ok(run)
}

fn benchmark(entry: &CompileBenchmarkEntry, file: &CompileBenchmarkFile) -> Benchmark {
    let mut benchmark = named(file.model.as_deref(), file.device.as_deref(), &entry.backend);
    let error = entry.error.as_deref().filter(|error| !error.is_empty());
    if error.is_some() || entry.success == Some(false) {
        fail(&mut benchmark, Stage::Compile, error.unwrap_or_default());
        return benchmark;
    }
    let mut stated = Summary {
        mean: entry.mean_latency_ms,
        median: entry.median_latency_ms,
        stddev: entry.std_latency_ms,
        ..Summary::default()
    };
    match (&entry.latencies_ms, entry.mean_latency_ms.or(entry.median_latency_ms)) {
        (Some(times), _) if !times.is_empty() => {
            let samples: Vec<f64> = times.iter().map(|time| time.unwrap_or(f64::NAN)).collect();
            check_summary(&mut benchmark, &samples, &stated);
            processes(&mut benchmark, Metric::LATENCY, 1e6, vec![samples]);
        }
        (Some(_), _) => {
            fail(&mut benchmark, Stage::Benchmark, "the list of latencies is empty");
            return benchmark;
        }
        (None, Some(_)) => {
            stated.n = file.num_runs;
            summary(&mut benchmark, Metric::LATENCY, 1e6, stated);
        }
        (None, None) => {
            fail(&mut benchmark, Stage::Benchmark, "no latency");
            return benchmark;
        }
    }
    if let Some(time) = entry.compile_time_s {
        let stated = Summary { mean: Some(time), ..Summary::default() };
        summary(&mut benchmark, Metric::COMPILE_TIME, 1e9, stated);
    }
    benchmark
}
