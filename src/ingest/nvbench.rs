//! NVIDIA nvbench's `--json`: every state of every benchmark with summaries by tag. Its samples are in
//! binary files beside the JSON, so only summaries are read. Numbers are written as strings.

use std::collections::HashMap;

use serde::Deserialize;

use crate::model::{Benchmark, Better, Metric, Outcome, Run, Stage, Summary, Unit};

use super::build::{ByName, carried, fail, own_metric, summary};
use super::error::{LineFault, line_fault};
use super::json::{Value, parse};

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    devices: Vec<Device>,
    benchmarks: Vec<Entry>,
}

#[derive(Deserialize)]
struct Device {
    id: i64,
    name: String,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    states: Vec<State>,
}

#[derive(Deserialize)]
struct State {
    #[serde(default)]
    device: Option<i64>,
    #[serde(default)]
    axis_values: Vec<Axis>,
    /// Null where the state was skipped.
    #[serde(default)]
    summaries: Option<Vec<Tagged>>,
    #[serde(default)]
    is_skipped: bool,
    #[serde(default)]
    skip_reason: Option<String>,
}

#[derive(Deserialize)]
struct Axis {
    name: String,
    value: serde_json::Value,
}

#[derive(Deserialize)]
struct Tagged {
    tag: String,
    #[serde(default)]
    data: Vec<Datum>,
}

#[derive(Deserialize)]
struct Datum {
    name: String,
    value: Value,
}

/// Reads the whole file.
pub(super) fn read(text: &str) -> Result<Run, LineFault> {
    let mut rewritten = String::new();
    let file: File = parse(text, &mut rewritten)?;
    let mut benchmarks = ByName::default();
    let mut devices = HashMap::new();
    for device in &file.devices {
        devices.insert(device.id, carried(&device.name).map_err(|what| line_fault(1, what))?);
    }
    for entry in &file.benchmarks {
        let name = carried(&entry.name).map_err(|what| line_fault(1, what))?;
        for state in &entry.states {
            benchmarks.push(benchmark(name, state, &devices));
        }
    }
    Ok(Run { benchmarks: benchmarks.finish(), ..Run::default() })
}

fn benchmark(entry: &str, state: &State, devices: &HashMap<i64, &str>) -> Benchmark {
    let mut name = entry.to_owned();
    let mut labels = Vec::new();
    if let Some(device) = state.device {
        name.push_str(&format!("/Device={device}"));
        labels.extend(devices.get(&device).map(|name| ("target".to_owned(), (*name).to_owned())));
    }
    for axis in &state.axis_values {
        let value = axis.value.as_str().map_or_else(|| axis.value.to_string(), str::to_owned);
        name.push_str(&format!("/{}={value}", axis.name));
        labels.push((axis.name.clone(), value));
    }
    let mut benchmark = Benchmark::new(name);
    benchmark.labels.extend(labels);
    if state.is_skipped {
        let reason = state.skip_reason.clone().unwrap_or_else(|| "no reason given".to_owned());
        benchmark.outcome = Outcome::Skipped { reason };
        return benchmark;
    }
    let value = |tags: &[&str]| {
        let all = state.summaries.iter().flatten();
        let tagged = tags.iter().find_map(|tag| all.clone().find(|summary| summary.tag == *tag))?;
        tagged.data.iter().find(|datum| datum.name == "value").map(|datum| datum.value.0)
    };
    let n = value(&["nv/cold/sample_size", "nv/cold/time/gpu/sample_size"]);
    let n = n.filter(|n| (1.0..1e15).contains(n)).map(|n| n as u64);
    let timed = |clock: &str| -> Option<Summary> {
        let of = |part: &str| value(&[&format!("nv/cold/time/{clock}/{part}")]);
        let mean = of("mean")?;
        // With few samples the relative noise is infinite, which states nothing.
        let relative = of("stdev/relative").filter(|relative| relative.is_finite());
        let stddev = of("stdev/absolute").or(relative.map(|relative| relative * mean));
        Some(Summary { n, mean: Some(mean), median: of("median"), stddev, min: of("min"), max: of("max") })
    };
    match timed("gpu").or_else(|| timed("cpu")) {
        Some(stated) => summary(&mut benchmark, Metric::LATENCY, 1e9, stated),
        None => {
            fail(&mut benchmark, Stage::Benchmark, "no cold measurement (`nv/cold/time/gpu/mean`)");
            return benchmark;
        }
    }
    let side: [(&str, &'static str, f64, Unit, Better); 4] = [
        ("nv/cold/time/cpu/mean", "cpu-wall-time", 1e9, Unit::Nanoseconds, Better::Lower),
        ("nv/batch/time/gpu/mean", "batch-gpu-time", 1e9, Unit::Nanoseconds, Better::Lower),
        ("nv/cold/bw/global/bytes_per_second", "bytes-per-second", 1.0, Unit::PerSecond, Better::Higher),
        ("nv/cold/bw/item_rate", "items-per-second", 1.0, Unit::PerSecond, Better::Higher),
    ];
    for (tag, name, scale, unit, better) in side {
        if let Some(mean) = value(&[tag]) {
            let stated = Summary { mean: Some(mean), ..Summary::default() };
            summary(&mut benchmark, own_metric(name, unit, better), scale, stated);
        }
    }
    benchmark
}
