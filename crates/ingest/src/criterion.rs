//! Reads criterion.rs's `estimates.json` and `sample.json`. Neither file names its benchmark. The name is in
//! `benchmark.json` next to them or, failing that, in the path
//! `target/criterion/GROUP/BENCHMARK/new/sample.json`, which is the label.

use serde::Deserialize;

use benchgate_core::model::{Benchmark, BenchmarkName, Metric, Run, Series, Summary};

use super::build::{carried, processes, summary};
use super::error::{LineFault, line_fault};
use super::json::parse;
use super::stated::check_summary;

/// Nanoseconds.
#[derive(Deserialize)]
struct Estimates {
    mean: CriterionEstimate,
    median: CriterionEstimate,
    std_dev: CriterionEstimate,
}

#[derive(Deserialize)]
struct CriterionEstimate {
    point_estimate: Option<f64>,
    confidence_interval: Option<ConfidenceInterval>,
}

#[derive(Deserialize)]
struct ConfidenceInterval {
    lower_bound: f64,
    upper_bound: f64,
}

/// Each sample ran `iters` iterations in `times` nanoseconds.
#[derive(Deserialize)]
struct CriterionSample {
    iters: Vec<f64>,
    times: Vec<Option<f64>>,
}

/// Reads `estimates.json`, which is a summary.
pub(super) fn read_estimates(text: &str, label: &str) -> Result<Run, LineFault> {
    let file: Estimates = parse(text)?;
    let mut benchmark = Benchmark::new(name_from(label));
    let stated = file.summary();
    if stated.mean.is_none() && stated.median.is_none() {
        return Err(line_fault(1, "neither mean nor median has a point estimate"));
    }
    for estimate in [&file.mean, &file.median] {
        let interval = estimate.confidence_interval.as_ref();
        let interval = interval.map(|interval| (interval.lower_bound, interval.upper_bound));
        let median = estimate.point_estimate;
        check_summary(&mut benchmark, &[], &Summary { median, interval, ..Summary::default() });
    }
    summary(&mut benchmark, Metric::LATENCY, 1.0, stated);
    Ok(Run { benchmarks: vec![benchmark], ..Run::default() })
}

/// Reads `sample.json`, which has every sample of one process.
pub(super) fn read_sample(text: &str, label: &str) -> Result<Run, LineFault> {
    let file: CriterionSample = parse(text)?;
    if file.iters.len() != file.times.len() {
        let what = format!("{} iteration counts and {} times", file.iters.len(), file.times.len());
        return Err(line_fault(1, what));
    }
    if file.iters.iter().any(|&iterations| iterations.is_nan() || iterations < 1.0) {
        return Err(line_fault(1, "a sample with zero iterations"));
    }
    if file.times.is_empty() {
        return Err(line_fault(1, "no samples"));
    }
    let samples =
        file.times.iter().zip(&file.iters).map(|(time, iterations)| time.unwrap_or(f64::NAN) / iterations);
    let mut benchmark = Benchmark::new(name_from(label));
    processes(&mut benchmark, Metric::LATENCY, 1.0, vec![samples.collect()]);
    Ok(Run { benchmarks: vec![benchmark], ..Run::default() })
}

/// Compares the samples of a run with the estimates that criterion wrote next to them.
///
/// # Errors
/// The bytes are not valid estimates.
pub fn check_criterion(run: &mut Run, estimates: &[u8]) -> Result<(), String> {
    let file: Estimates = serde_json::from_slice(estimates).map_err(|error| error.to_string())?;
    for benchmark in &mut run.benchmarks {
        let samples = match benchmark.metric(&Metric::LATENCY.name).map(|found| &found.series) {
            Some(Series::Processes(processes)) => {
                processes.iter().flat_map(|each| each.samples.clone()).collect()
            }
            _ => Vec::new(),
        };
        check_summary(benchmark, &samples, &file.summary());
    }
    Ok(())
}

impl Estimates {
    fn summary(&self) -> Summary {
        Summary {
            mean: self.mean.point_estimate,
            median: self.median.point_estimate,
            stddev: self.std_dev.point_estimate,
            ..Summary::default()
        }
    }
}

#[derive(Deserialize)]
struct CriterionBenchmark {
    full_id: String,
    /// The work of one iteration: `{"Elements": 1024}`.
    throughput: Option<serde_json::Value>,
}

/// Sets a run's benchmark name and its work per iteration from a `benchmark.json`. The work must be equal on
/// both sides.
///
/// # Errors
/// The bytes do not state a name.
pub fn describe_criterion(run: &mut Run, description: &[u8]) -> Result<(), String> {
    let file: CriterionBenchmark = serde_json::from_slice(description).map_err(|error| error.to_string())?;
    let name = BenchmarkName::new(carried(&file.full_id)?);
    let work = file.throughput.map_or_else(|| "not stated".to_owned(), |work| work.to_string());
    for benchmark in &mut run.benchmarks {
        benchmark.rename(name.clone());
        benchmark.labels.insert("throughput".to_owned(), work.clone());
    }
    Ok(())
}

/// Returns `GROUP/BENCHMARK` for `…/criterion/GROUP/BENCHMARK/new/sample.json`.
fn name_from(label: &str) -> String {
    let parts: Vec<&str> = label.split(['/', '\\']).filter(|part| !part.is_empty() && *part != ".").collect();
    let folders = &parts[..parts.len().saturating_sub(1)];
    // The last folder is the name of the baseline: `new`, `base`, or one that the user chose.
    let folders = &folders[..folders.len().saturating_sub(1)];
    let start = folders.iter().rposition(|part| *part == "criterion").map_or(0, |at| at + 1);
    let name = folders[start..].join("/");
    if name.is_empty() { "criterion".to_owned() } else { name }
}
