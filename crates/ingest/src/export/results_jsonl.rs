//! Writes results.jsonl of the torchbench runner: one line for each process of each benchmark.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use benchgate_core::model::{
    Benchmark, Better, ENVIRONMENT, Metric, Outcome, Process, Run, Series, Verification, VerifyCode,
};

use super::{
    ExportedRun, RowMark, affected_benchmarks, has_summaries, left_out, mark, only_in_run_json,
    spread_of_summaries,
};

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
    if let Some(which) = affected_benchmarks(run, has_summaries) {
        lost.push(format!(
            "the format stores repetitions, so only the mean of each summary is kept in {which}"
        ));
    }
    let metrics = run.benchmarks.iter().flat_map(|benchmark| &benchmark.metrics).map(|series| &series.metric);
    let rates: BTreeSet<&str> =
        metrics.filter(|metric| !is_written(metric)).map(|metric| metric.name.as_ref()).collect();
    lost.extend(left_out(&rates));
    let mut evidence_lost = only_in_run_json(run);
    evidence_lost.extend(spread_of_summaries(run));
    ExportedRun { bytes, lost, evidence_lost }
}

/// Returns whether readers interpret a metric correctly. Readers assume that less is better, so a rate would
/// turn a regression into an improvement.
fn is_written(metric: &Metric) -> bool {
    metric.better != Better::Higher
}

fn lines(run: &Run, benchmark: &Benchmark) -> Vec<Value> {
    let instead = match &benchmark.outcome {
        Outcome::Failed { stage, why } => Some(RowMark::Failed(format!("{stage}: {why}"))),
        Outcome::Skipped { reason } | Outcome::Unsupported { reason } => {
            Some(RowMark::Skipped(reason.clone()))
        }
        Outcome::Ok if benchmark.metric(&Metric::LATENCY.name).is_none() => {
            Some(RowMark::Failed(super::why_unmeasured(benchmark)))
        }
        Outcome::Ok => None,
    };
    if let Some(mark) = instead {
        return vec![line(run, benchmark, 0, unmeasured(mark))];
    }
    let mut lines = processes(run, benchmark);
    lines.extend(mark(run, benchmark).map(|mark| line(run, benchmark, 0, unmeasured(mark))));
    lines
}

/// Returns the fields of a line without times.
pub(super) fn unmeasured(mark: RowMark) -> Map<String, Value> {
    let fields = match mark {
        RowMark::Failed(why) => vec![("error", why)],
        // The runner's word for a benchmark that it does not run.
        RowMark::Skipped(why) => vec![("error", "SKIP".to_owned()), ("reason", why)],
    };
    fields.into_iter().map(|(name, text)| (name.to_owned(), text.into())).collect()
}

/// Returns one line for each process.
fn processes(run: &Run, benchmark: &Benchmark) -> Vec<Value> {
    let iterations = iterations(benchmark);
    let rounds = benchmark.metric(&Metric::LATENCY.name).map_or(0, |latency| latency.series.processes());
    (0..rounds)
        .map(|at| {
            let mut metrics = Map::new();
            let mut repeat = 0;
            for series in benchmark.metrics.iter().filter(|series| is_written(&series.metric)) {
                let values: Vec<f64> = match &series.series {
                    Series::Processes(processes) => processes.get(at).map_or(&[][..], samples).to_vec(),
                    Series::Summaries(summaries) => {
                        summaries.get(at).and_then(|s| s.mean.or(s.median)).into_iter().collect()
                    }
                    Series::Exact(value) => vec![*value],
                };
                let metric = series.metric.name.as_ref();
                let seconds = series.metric.unit.as_str() == "ns";
                let values: Vec<f64> = values
                    .into_iter()
                    .map(|value| if seconds { value / NANOSECONDS } else { value })
                    .collect();
                if metric == Metric::LATENCY.name {
                    repeat = values.len();
                    let total: Vec<f64> =
                        values.iter().map(|value| value * f64::from(iterations.unwrap_or(1))).collect();
                    metrics.insert("total_time".to_owned(), json!(total));
                    metrics.insert("per_iter_time".to_owned(), json!(values));
                } else if metric != "total-time" {
                    let suffix = if seconds && !metric.ends_with("-time") { "_time_s" } else { "" };
                    // A key with the name `error` would mark the line as a failure.
                    let prefix = if metric == "error" { "metric_" } else { "" };
                    metrics.insert(format!("{prefix}{}{suffix}", metric.replace('-', "_")), json!(values));
                }
            }
            line(run, benchmark, repeat, metrics)
        })
        .collect()
}

/// Returns the number of iterations in one repetition; `None` if the input is a result of such a tool that does
/// not state it.
fn iterations(benchmark: &Benchmark) -> Option<u32> {
    benchmark.labels.get("iterations_per_run").map_or(Some(1), |count| count.parse().ok())
}

fn samples(process: &Process) -> &[f64] {
    &process.samples
}

fn line(run: &Run, benchmark: &Benchmark, repeat: usize, metrics: Map<String, Value>) -> Value {
    let label = |name: &str| benchmark.labels.get(name).map(String::as_str);
    let suite = label("suite").or(run.suite.as_deref());
    let mut experiment = Map::new();
    experiment.insert("accelerator".to_owned(), json!(label("target")));
    let is_axis = |label: &str| !NOT_AXES.contains(&label) && !label.starts_with(ENVIRONMENT);
    for (axis, value) in benchmark.labels.iter().filter(|(label, _)| is_axis(label)) {
        experiment.insert(axis.clone(), json!(value));
    }
    // Without a model label, the benchmark's name is used as the model's.
    let model = label("model").unwrap_or(benchmark.name.as_str());
    json!({
        "model": { "suite_name": suite, "model_name": model },
        "experiment": experiment,
        "repeat": repeat,
        "iterations_per_run": iterations(benchmark),
        // The runner's first repetitions are warm-up; these aren't.
        "warmup_repetitions": 0,
        "metrics": metrics,
        "timestamp": run.context.date,
        "verification_code": benchmark.verification.as_ref().map_or(VerifyCode::VerifierSkipped, code).as_str(),
        // The runner's own tools skip unknown fields.
        "benchgate": { "context": run.context, "testbed": run.testbed },
    })
}

/// Returns the code for a verification. The outputs' details are not written, so the code has to include
/// them.
pub(super) fn code(verification: &Verification) -> VerifyCode {
    match verification.supported_code() {
        code if code.has_no_reference() && verification.differs_from_base() => VerifyCode::Fail,
        code => code,
    }
}
