//! hyperfine's `--export-json`. Every run of a command is a fresh process, which is the sampling unit.

use std::collections::BTreeMap;

use serde::Deserialize;

use benchgate_core::model::{Benchmark, Metric, Run, Stage, Summary};

use super::build::{check_count, check_summary, fail, processes, summary};
use super::join::ByName;
use super::json::{Value, parse};
use super::{LineFault, build, facts};

#[derive(Deserialize)]
struct HyperfineFile {
    results: Vec<HyperfineCommand>,
    /// Fields that hyperfine doesn't write.
    #[serde(flatten)]
    others: BTreeMap<String, serde_json::Value>,
}

/// Times are in seconds.
#[derive(Deserialize)]
struct HyperfineCommand {
    command: String,
    mean: Value,
    stddev: Option<f64>,
    median: Option<f64>,
    user: Option<f64>,
    system: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    times: Option<Vec<Option<f64>>>,
    memory_usage_byte: Option<Vec<f64>>,
    #[serde(default)]
    exit_codes: Vec<Option<i64>>,
    #[serde(default)]
    parameters: BTreeMap<String, serde_json::Value>,
    /// Fields that hyperfine doesn't write.
    #[serde(flatten)]
    others: BTreeMap<String, serde_json::Value>,
}

pub(super) fn read(text: &str) -> Result<Run, LineFault> {
    let file: HyperfineFile = parse(text)?;
    let runs = |command: &HyperfineCommand| {
        command.times.as_ref().map_or(0, Vec::len) + command.memory_usage_byte.as_ref().map_or(0, Vec::len)
    };
    build::check_runs(file.results.iter().map(runs).sum())?;
    let mut benchmarks = ByName::default();
    let of_file = facts::results_of_file(&file.others)?;
    for mut command in file.results {
        let others = std::mem::take(&mut command.others);
        let mut benchmark = benchmark(command);
        facts::state_results(&mut benchmark, &others, &of_file);
        benchmarks.push_once(benchmark);
    }
    Ok(Run { benchmarks: benchmarks.finish(), ..Run::default() })
}

fn benchmark(command: HyperfineCommand) -> Benchmark {
    let parameters = || {
        let text =
            |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        command.parameters.iter().map(move |(name, value)| (name.clone(), text(value)))
    };
    let mut name = command.command.clone();
    // With `-n`, the results for several values of a parameter can have the same name, so each value that the
    // name does not contain is appended.
    for (parameter, value) in parameters().filter(|(_, value)| !has_word(&command.command, value)) {
        name.push_str(&format!("/{parameter}={value}"));
    }
    let mut benchmark = Benchmark::new(name);
    benchmark.labels.extend(parameters());
    // Old releases store no exit codes; without them, runs that failed are not known.
    let codes = if command.exit_codes.is_empty() { "not stated" } else { "stated" };
    benchmark.labels.insert("exit codes".to_owned(), codes.to_owned());
    // `--ignore-failure` keeps the times of runs that failed.
    let failed = command.exit_codes.iter().filter(|code| **code != Some(0)).count();
    if failed > 0 {
        let all = command.exit_codes.len();
        fail(&mut benchmark, Stage::Benchmark, format!("{failed} of {all} runs did not exit with 0"));
        return benchmark;
    }
    let stated = Summary {
        mean: Some(command.mean.0),
        median: command.median,
        stddev: command.stddev,
        min: command.min,
        max: command.max,
        ..Summary::default()
    };
    let runs = command.times.as_ref().map(|times| times.len() as u64);
    match command.times {
        Some(times) if times.is_empty() => {
            fail(&mut benchmark, Stage::Benchmark, "the list of times is empty");
            return benchmark;
        }
        Some(times) => {
            let times: Vec<f64> = times.into_iter().map(|time| time.unwrap_or(f64::NAN)).collect();
            check_summary(&mut benchmark, &times, &stated);
            let codes = Some(command.exit_codes.len() as u64).filter(|codes| *codes > 0);
            check_count(&mut benchmark, codes, times.len(), "times");
            let each = times.into_iter().map(|time| vec![time]).collect();
            processes(&mut benchmark, Metric::LATENCY, 1e9, each);
        }
        None => summary(&mut benchmark, Metric::LATENCY, 1e9, stated),
    }
    if let (Some(user), Some(system)) = (command.user, command.system) {
        let mean = Summary { mean: Some(user + system), ..Summary::default() };
        summary(&mut benchmark, Metric::CPU_TIME, 1e9, mean);
    }
    if let Some(memory) = command.memory_usage_byte.filter(|memory| !memory.is_empty()) {
        check_count(&mut benchmark, runs, memory.len(), "values of memory");
        let each = memory.into_iter().map(|bytes| vec![bytes]).collect();
        processes(&mut benchmark, Metric::PEAK_HOST_MEMORY, 1.0, each);
    }
    benchmark
}

/// Returns whether a parameter's value is a separate word of the command: `8` in `conv --threads 8`, but not
/// in `resnet18`.
fn has_word(command: &str, value: &str) -> bool {
    let is_end = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '.' | '_'));
    !value.is_empty()
        && command.match_indices(value).any(|(at, _)| {
            let (before, after) = (&command[..at], &command[at + value.len()..]);
            is_end(before.chars().next_back()) && is_end(after.chars().next())
        })
}
