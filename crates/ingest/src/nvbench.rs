//! NVIDIA nvbench's `--json`: every state of every benchmark, with summaries by tag. The samples are in
//! binary files next to the JSON, so only summaries are read. Numbers are written as strings.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::Deserialize;

use benchgate_core::model::{
    Benchmark, Better, DEVICE_CLOCK, Lint, LintCode, Metric, Outcome, Quality, Run, Stage, Summary, Unit,
};

use super::build::{carried, fail, own_metric, summary, testbed};
use super::facts::{self, Field};
use super::join::ByName;
use super::json::parse;
use super::values::number;
use super::{LineFault, line_fault};

/// Largest error of a printed number, as a share.
const ROUNDING: f64 = 1e-9;

#[derive(Deserialize)]
struct NvbenchFile {
    #[serde(default)]
    devices: NullableList<Device>,
    benchmarks: NullableList<NvbenchEntry>,
}

/// Number of samples from which nvbench states a finite noise.
const LEAST_FOR_NOISE: f64 = 5.0;

/// An array in nvbench's JSON. Its writer appends to a new JSON value, which stays null if nothing is
/// appended, so any empty array may be null.
#[derive(Deserialize)]
#[serde(from = "Option<Vec<T>>", bound = "T: Deserialize<'de>")]
struct NullableList<T>(Vec<T>);

impl<T> From<Option<Vec<T>>> for NullableList<T> {
    fn from(list: Option<Vec<T>>) -> Self {
        Self(list.unwrap_or_default())
    }
}

impl<T> Default for NullableList<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

#[derive(Deserialize)]
struct Device {
    id: i64,
    name: String,
    /// A partition of a GPU has the same name but fewer multiprocessors.
    number_of_sms: Option<u64>,
    ecc_state: Option<bool>,
}

#[derive(Deserialize)]
struct NvbenchEntry {
    name: String,
    states: NullableList<State>,
}

#[derive(Deserialize)]
struct State {
    device: Option<i64>,
    #[serde(default)]
    axis_values: NullableList<Axis>,
    #[serde(default)]
    summaries: NullableList<Tagged>,
    #[serde(default)]
    is_skipped: bool,
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
    data: NullableList<Datum>,
}

#[derive(Deserialize)]
struct Datum {
    name: String,
    value: serde_json::Value,
}

impl Tagged {
    /// Returns the value as text, as numbers are written too.
    fn value(&self) -> Option<String> {
        let datum = self.data.0.iter().find(|datum| datum.name == "value")?;
        Some(datum.value.as_str().map_or_else(|| datum.value.to_string(), str::to_owned))
    }
}

pub(super) fn read(text: &str) -> Result<Run, LineFault> {
    let file: NvbenchFile = parse(text)?;
    let mut benchmarks = ByName::default();
    let mut devices = HashMap::new();
    for device in &file.devices.0 {
        devices.insert(device.id, carried(&device.name).map_err(|what| line_fault(1, what))?);
    }
    for entry in &file.benchmarks.0 {
        let name = carried(&entry.name).map_err(|what| line_fault(1, what))?;
        for state in &entry.states.0 {
            benchmarks.push_once(benchmark(name, state, &devices));
        }
    }
    let testbed = testbed(facts(&file));
    Ok(Run { benchmarks: benchmarks.finish(), testbed, ..Run::default() })
}

/// Returns the devices that were measured; the file lists all devices of the machine.
fn facts(file: &NvbenchFile) -> BTreeMap<String, String> {
    let states = file.benchmarks.0.iter().flat_map(|entry| &entry.states.0);
    let used: BTreeSet<i64> = states.filter_map(|state| state.device).collect();
    let fact = |device: &Device| {
        let multiprocessors = device.number_of_sms.map(|count| format!(", {count} multiprocessors"));
        let ecc = device.ecc_state.map(|on| if on { ", ECC" } else { ", no ECC" });
        let text = [Some(device.name.as_str()), multiprocessors.as_deref(), ecc];
        (format!("device {}", device.id), text.into_iter().flatten().collect())
    };
    file.devices.0.iter().filter(|device| used.contains(&device.id)).map(fact).collect()
}

fn benchmark(entry: &str, state: &State, devices: &HashMap<i64, &str>) -> Benchmark {
    let mut name = entry.to_owned();
    let mut labels = Vec::new();
    let has = |tag: &str| state.summaries.0.iter().any(|summary| summary.tag == tag);
    let device = state.device.map(|device| (device, devices.get(&device)));
    // A host-only benchmark has no device, but its writer stores an uninitialized number.
    let device = device.filter(|(_, known)| known.is_some() || !has("nv/cpu_only/sample_size"));
    if let Some((device, known)) = device {
        name.push_str(&format!("/Device={device}"));
        labels.extend(known.map(|name| ("target".to_owned(), (*name).to_owned())));
    }
    for axis in &state.axis_values.0 {
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
    let mut tags = HashSet::new();
    if state.summaries.0.iter().any(|summary| !tags.insert(&summary.tag)) {
        benchmark.lints.push(Lint::new(LintCode::DuplicateName, "two summaries have the same tag"));
    }
    let value = |tag: &str| {
        let tagged = state.summaries.0.iter().find(|summary| summary.tag == tag)?;
        tagged.value().map(|value| value.trim().parse().unwrap_or(f64::NAN))
    };
    let timed = |kind: &str, clock: &str| -> Option<Summary> {
        let of = |part: &str| value(&format!("nv/{kind}/time/{clock}/{part}"));
        let mean = of("mean")?;
        let n = value(&format!("nv/{kind}/sample_size")).filter(|n| (1.0..1e15).contains(n));
        // With few samples the relative noise is infinite, which has no meaning.
        let relative = of("stdev/relative");
        let is_few = n.is_none_or(|n| n < LEAST_FOR_NOISE);
        let relative = relative.filter(|relative| relative.is_finite() || !is_few);
        let stddev = of("stdev/absolute").or(relative.map(|relative| relative * mean));
        Some(Summary {
            n: n.map(|n| n as u64),
            mean: Some(mean),
            median: of("median"),
            stddev,
            min: of("min"),
            max: of("max"),
            ..Summary::default()
        })
    };
    // The first available time is used: the GPU's own clock, or the host's clock for a benchmark that only
    // runs on the host.
    let latency = [("cold", "gpu"), ("cold", "cpu"), ("cpu_only", "cpu")];
    let Some(stated) = latency.iter().find_map(|(kind, clock)| timed(kind, clock)) else {
        let tags = latency.map(|(kind, clock)| format!("`nv/{kind}/time/{clock}/mean`"));
        fail(&mut benchmark, Stage::Benchmark, format!("no isolated measurement ({})", tags.join(", ")));
        return benchmark;
    };
    summary(&mut benchmark, Metric::LATENCY, 1e9, stated);
    let side: [(&[&str], &'static str, f64, Unit, Better); 5] = [
        (&["nv/cold/time/cpu/mean"], "cpu-wall-time", 1e9, Unit::Nanoseconds, Better::Lower),
        (&["nv/batch/time/gpu/mean"], "batch-gpu-time", 1e9, Unit::Nanoseconds, Better::Lower),
        (
            &["nv/cold/bw/global/bytes_per_second", "nv/cpu_only/bw/global/bytes_per_second"],
            "bytes-per-second",
            1.0,
            Unit::PerSecond,
            Better::Higher,
        ),
        (
            &["nv/cold/bw/item_rate", "nv/cpu_only/bw/item_rate"],
            "items-per-second",
            1.0,
            Unit::PerSecond,
            Better::Higher,
        ),
        (&["nv/cold/sm_clock_rate/mean"], DEVICE_CLOCK, 1.0, Unit::parse("Hz"), Better::Higher),
    ];
    for (tags, name, scale, unit, better) in side {
        if let Some(mean) = tags.iter().find_map(|tag| value(tag)) {
            // The tool computes rates from the mean time, so only the last digit is rounded.
            let is_exact = unit == Unit::PerSecond && mean > 0.0;
            let interval = is_exact.then_some((mean * (1.0 - ROUNDING), mean * (1.0 + ROUNDING)));
            let stated = Summary { mean: Some(mean), interval, ..Summary::default() };
            summary(&mut benchmark, own_metric(name, unit, better), scale, stated);
        }
    }
    let own = state.summaries.0.iter().filter(|summary| !summary.tag.starts_with("nv/"));
    let own = own.filter_map(|summary| Some((summary.tag.clone(), summary.value()?)));
    let is_number = |(name, value): &Field| Quality::of_name(name).is_none() && number(value).is_some();
    let (numbers, fields): (Vec<Field>, Vec<Field>) = own.partition(is_number);
    facts::state(&mut benchmark, &fields);
    // The user's own numbers are mostly measurements.
    for (name, value) in numbers {
        facts::state_values(&mut benchmark, &name, number(&value).into_iter().collect());
    }
    benchmark
}
