//! results.jsonl of the torchbench runner: one line for each process of each benchmark.

use serde_json::{Map, Value, json};

use crate::model::{Benchmark, Consequence, Metric, Outcome, Process, Run, Series};

use super::{ExportedRun, count_benchmarks, only_summaries};

/// Labels that are not axes of the experiment.
const NOT_AXES: [&str; 6] = ["model", "suite", "target", "iterations_per_run", "timestamp", "label"];

const NANOSECONDS: f64 = 1e9;

pub(super) fn write(run: &Run) -> ExportedRun {
    let mut bytes = Vec::new();
    for benchmark in &run.benchmarks {
        for line in lines(run, benchmark) {
            bytes.extend(serde_json::to_vec(&line).unwrap_or_default());
            bytes.push(b'\n');
        }
    }
    let mut lost = Vec::new();
    if let Some((count, first)) = count_benchmarks(run, only_summaries) {
        lost.push(format!(
            "the format keeps repetitions: {count} benchmarks (the first is {first}) have summaries only, of which the mean is kept"
        ));
    }
    if run.testbed.is_some() {
        lost.push("the format has no place for what identifies a machine".to_owned());
    }
    ExportedRun { bytes, lost }
}

fn lines(run: &Run, benchmark: &Benchmark) -> Vec<Value> {
    let error = match &benchmark.outcome {
        Outcome::Failed { stage, why } => Some(format!("{stage}: {why}")),
        Outcome::Skipped { .. } | Outcome::Unsupported { .. } => Some("SKIP".to_owned()),
        Outcome::Ok if benchmark.metric(&Metric::LATENCY.name).is_none() => {
            Some(super::why_unmeasured(benchmark))
        }
        Outcome::Ok => None,
    };
    let withheld = super::withheld(run, benchmark);
    let is_error = withheld.is_some_and(|lint| lint.code.consequence() == Consequence::Error);
    let error =
        error.or_else(|| withheld.filter(|_| is_error).map(|lint| format!("{}: {}", lint.code, lint.detail)));
    if let Some(error) = error {
        return vec![line(run, benchmark, 0, json!({ "error": error }))];
    }
    let iterations = iterations(benchmark);
    let rounds = benchmark.metric(&Metric::LATENCY.name).map_or(0, |latency| match &latency.series {
        Series::Processes(processes) => processes.len(),
        Series::Summaries(summaries) => summaries.len(),
        Series::Exact(_) => 1,
    });
    // One process that was skipped keeps the others from passing, as the finding does.
    let skipped = withheld.map(|_| line(run, benchmark, 0, json!({ "error": "SKIP" })));
    let measured = (0..rounds).map(|at| {
        let mut metrics = Map::new();
        let mut repeat = 0;
        for series in &benchmark.metrics {
            let values: Vec<f64> = match &series.series {
                Series::Processes(processes) => processes.get(at).map_or(&[][..], samples).to_vec(),
                Series::Summaries(summaries) => {
                    summaries.get(at).and_then(|s| s.mean.or(s.median)).into_iter().collect()
                }
                Series::Exact(value) => vec![*value],
            };
            let metric = series.metric.name.as_ref();
            let seconds = series.metric.unit.as_str() == "ns";
            let values: Vec<f64> =
                values.into_iter().map(|value| if seconds { value / NANOSECONDS } else { value }).collect();
            if metric == Metric::LATENCY.name {
                repeat = values.len();
                let total: Vec<f64> = values.iter().map(|value| value * f64::from(iterations)).collect();
                metrics.insert("total_time".to_owned(), json!(total));
                metrics.insert("per_iter_time".to_owned(), json!(values));
            } else if metric != "total-time" {
                let suffix = if seconds && !metric.ends_with("-time") { "_time_s" } else { "" };
                // A key called `error` would turn the line into a failure.
                let prefix = if metric == "error" { "metric_" } else { "" };
                metrics.insert(format!("{prefix}{}{suffix}", metric.replace('-', "_")), json!(values));
            }
        }
        line(run, benchmark, repeat, Value::Object(metrics))
    });
    measured.chain(skipped).collect()
}

/// Iterations of one repetition, where the file that was read said so.
fn iterations(benchmark: &Benchmark) -> u32 {
    benchmark.labels.get("iterations_per_run").and_then(|count| count.parse().ok()).unwrap_or(1)
}

fn samples(process: &Process) -> &[f64] {
    &process.samples
}

fn line(run: &Run, benchmark: &Benchmark, repeat: usize, metrics: Value) -> Value {
    let label = |name: &str| benchmark.labels.get(name).map(String::as_str);
    let suite = label("suite").or(run.suite.as_deref());
    let mut experiment = Map::new();
    experiment.insert("accelerator".to_owned(), json!(label("target")));
    for (axis, value) in benchmark.labels.iter().filter(|(axis, _)| !NOT_AXES.contains(&axis.as_str())) {
        experiment.insert(axis.clone(), json!(value));
    }
    // Without a label for the model, the benchmark's name is the model's.
    let model = label("model").unwrap_or(benchmark.name.as_str());
    json!({
        "model": { "suite_name": suite, "model_name": model },
        "experiment": experiment,
        "repeat": repeat,
        "iterations_per_run": iterations(benchmark),
        // The runner's first repetitions warm up; these don't.
        "warmup_repetitions": 0,
        "metrics": metrics,
        "timestamp": run.context.date,
        "verification_code": benchmark.verification.as_ref().map_or("VERIFIER_SKIPPED", |v| v.code.as_str()),
    })
}
