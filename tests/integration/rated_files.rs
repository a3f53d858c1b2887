//! Files in which scripts state a rate next to the times: `extra_info["throughput"] = n / mean`.

use serde_json::{Value, json};

use crate::harness::{Outcome, World};

/// Returns the rate of one measurement with these times, in milliseconds.
pub type RateOf<'a> = &'a dyn Fn(&[f64]) -> f64;

/// Writes the times of a process, in milliseconds, with a rate of this name.
type Writer = fn(&[f64], &str, RateOf<'_>) -> String;

/// The formats, with a writer of each.
pub const FORMATS: [(&str, Writer); 6] = [
    ("pytest-benchmark", pytest),
    ("Bencher", bencher),
    ("rows of a compile benchmark", compile),
    ("means of a compile benchmark", compile_mean),
    ("results.jsonl", results),
    ("latency.csv", csv),
];

pub fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len() as f64
}

pub fn median(times: &[f64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2])
}

pub fn least(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

fn pytest(times: &[f64], name: &str, rate: RateOf<'_>) -> String {
    let data: Vec<f64> = times.iter().map(|time| time * 1e-3).collect();
    json!({"machine_info": {}, "benchmarks": [{"name": "a", "options": {"timer": "perf_counter"},
        "extra_info": {name: rate(times)}, "stats": {"rounds": times.len(), "mean": mean(&data), "data": data}}]})
    .to_string()
}

/// Bencher's own measure is called `throughput`.
fn bencher(times: &[f64], _: &str, rate: RateOf<'_>) -> String {
    json!({"a": {"latency": {"value": mean(times) * 1e6}, "throughput": {"value": rate(times)}}}).to_string()
}

fn compile_with(row: Value, times: &[f64], name: &str, rate: RateOf<'_>) -> String {
    let mut row = row;
    row["backend"] = json!("iree");
    row[name] = json!(rate(times));
    json!({"model": "m", "device": "cuda", "results": [row]}).to_string()
}

fn compile(times: &[f64], name: &str, rate: RateOf<'_>) -> String {
    compile_with(json!({"latencies_ms": times}), times, name, rate)
}

fn compile_mean(times: &[f64], name: &str, rate: RateOf<'_>) -> String {
    compile_with(json!({"mean_latency_ms": mean(times)}), times, name, rate)
}

fn results(times: &[f64], name: &str, rate: RateOf<'_>) -> String {
    let seconds: Vec<f64> = times.iter().map(|time| time * 1e-3).collect();
    let line = json!({"model": {"model_name": "m"}, "experiment": {"accelerator": "cuda"}, "repeat": times.len(),
        "iterations_per_run": 1, "warmup_repetitions": 0, name: rate(times), "metrics": {"per_iter_time": seconds}});
    format!("{line}\n")
}

fn csv(times: &[f64], name: &str, rate: RateOf<'_>) -> String {
    let row = |time: &f64| format!("{time:.6},m,cuda,{time:.6},{:.3}\n", rate(&[*time]));
    format!("run_id,model,device,latency_ms,{name}\n{}", times.iter().map(row).collect::<String>())
}

/// A number between −1 and 1 that differs from place to place.
fn shift(place: u64) -> f64 {
    let mut state = (place + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    for _ in 0..3 {
        state = (state ^ (state >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    }
    (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

/// Times of the repetitions of a process, which differ by 1 %, as processes do by `between`.
pub fn times(process: u64, time: f64, between: f64) -> Vec<f64> {
    let of_process = time * (1.0 + between * shift(process));
    (0..8).map(|at| of_process * (1.0 + 0.01 * shift(1000 * (process + 1) + at))).collect()
}

/// Compares this many files of each side.
pub fn compare(files: u64, base: impl Fn(u64) -> String, head: impl Fn(u64) -> String) -> Outcome {
    let world = World::new();
    for file in 0..files {
        world.write(&format!("base-{file:02}"), base(file));
        world.write(&format!("head-{file:02}"), head(file + 500));
    }
    let spread: &[&str] = if files == 1 { &["--between-cv", "0.1%"] } else { &[] };
    let fail_on = "regressed,diverged,error,missing,inconclusive";
    world.run(["compare", "base-*", "head-*", "--all", "--fail-on", fail_on].iter().chain(spread))
}
