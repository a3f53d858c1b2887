//! The files that runs append to: `results.jsonl` of the torchbench runner, and the suites' `latency.csv` and
//! `iree_latency.csv`. Each file gets one line per process, so that readers can see the spread.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use benchgate_core::model::{Metric, SideName, Verification, VerifyCode};
use benchgate_core::record::{
    BackendProcessRecord, BackendRecord, BenchmarkRecord, CollectedRecord, OperatorTimesRecord,
    OutcomeRecord, OutcomeStatus, ProcessRecord, RunFile,
};
use benchgate_stats::describe::median;

use super::results_jsonl::{code, unmeasured};
use super::{RowMark, worst};

const SECONDS: f64 = 1e-9;
const MILLISECONDS: f64 = 1e-6;

/// Lines to append to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    pub name: &'static str,
    /// The header for an empty file; may be empty itself.
    pub header: String,
    pub lines: String,
}

/// Returns the lines that a run appends to each file.
pub fn appended(file: &RunFile) -> Vec<Appended> {
    vec![
        Appended { name: "results.jsonl", header: String::new(), lines: results(file) },
        Appended {
            name: "latency.csv",
            header: "timestamp,model,device,time_ms\n".to_owned(),
            lines: file
                .backends
                .iter()
                .filter(|record| is_plain_eager(record))
                .map(|record| eager_rows(file, record))
                .collect(),
        },
        Appended {
            name: "iree_latency.csv",
            header: "timestamp,model,target,time_ms\n".to_owned(),
            lines: head(file).map(|benchmark| iree_rows(file, benchmark)).collect(),
        },
    ]
}

/// Returns the side that is judged, or the only one.
fn head(file: &RunFile) -> impl Iterator<Item = &BenchmarkRecord> {
    let side = file.side(SideName::Head).or(file.sides.first());
    side.into_iter().flat_map(|side| &side.benchmarks)
}

/// Returns whether an experiment could come from the suites' own script. Four columns can't distinguish other
/// experiments, so those are not written to the file.
fn is_plain_eager(record: &BackendRecord) -> bool {
    record.backend == "eager"
        && record.test == "eval"
        && record.batch_size.is_none()
        && record.dtype.is_none()
        && record.matmul_precision.is_none()
}

fn eager_rows(file: &RunFile, record: &BackendRecord) -> String {
    let instead = instead(&record.outcome, record.verification.as_ref());
    // An experiment that was not started still gets a row, so that its model does not disappear.
    if record.processes.is_empty() {
        return format!("{},{},{},{}\n", file.created, record.model, record.device, cell(instead, &[]));
    }
    record
        .processes
        .iter()
        .map(|process| {
            let time = cell(instead, &process.latency);
            format!("{},{},{},{time}\n", process.started, record.model, record.device)
        })
        .collect()
}

fn iree_rows(file: &RunFile, benchmark: &BenchmarkRecord) -> String {
    let label = |name: &str| benchmark.labels.get(name).map_or(benchmark.name.as_str(), String::as_str);
    // The file has no column for the function, but two functions of a model are two benchmarks.
    let model = function(benchmark)
        .map_or_else(|| label("model").to_owned(), |function| format!("{}/{function}", label("model")));
    let row = |started: &str, time: String| format!("{started},{model},{},{time}\n", label("target"));
    let instead = instead(&benchmark.outcome, benchmark.verification.as_ref());
    if benchmark.processes.is_empty() {
        return row(&file.created, cell(instead, &[]));
    }
    let rows =
        benchmark.processes.iter().map(|process| row(&process.started, cell(instead, latency(process))));
    rows.collect()
}

/// Returns the function of a benchmark, unless it is the default one.
fn function(benchmark: &BenchmarkRecord) -> Option<&str> {
    benchmark.labels.get("function").map(String::as_str).filter(|function| *function != "main")
}

/// Returns the text that replaces a time. The file has no other place to record that the outputs are wrong.
fn instead(outcome: &OutcomeRecord, verification: Option<&Verification>) -> Option<&'static str> {
    let is_wrong = |found| {
        matches!(code(found), VerifyCode::Fail | VerifyCode::EagerFailed | VerifyCode::ExceptionRaised)
    };
    match outcome.status {
        OutcomeStatus::Ok => verification.is_some_and(is_wrong).then_some("error"),
        OutcomeStatus::Unsupported | OutcomeStatus::Skipped => Some("unsupported"),
        OutcomeStatus::Failed => Some("error"),
    }
}

fn cell(instead: Option<&str>, samples: &[f64]) -> String {
    match (instead, median(samples)) {
        (Some(word), _) => word.to_owned(),
        (None, Some(value)) => format!("{}", value * MILLISECONDS),
        (None, None) => "error".to_owned(),
    }
}

fn latency(process: &ProcessRecord) -> &[f64] {
    process.samples.get(Metric::LATENCY.name.as_ref()).unwrap_or_default()
}

fn results(file: &RunFile) -> String {
    let mut lines = Vec::new();
    for benchmark in head(file) {
        iree_lines(file, benchmark, &mut lines);
    }
    for record in &file.backends {
        backend_lines(file, record, &mut lines);
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// One line, with fields in the runner's own order.
struct AppendedLine<'a> {
    model: &'a str,
    accelerator: &'a str,
    xla: bool,
    dynamo: Option<&'a str>,
    test: &'a str,
    batch_size: Option<u32>,
    /// Additional fields that the runner does not have; written only if they are not empty.
    more: Vec<(&'static str, &'a str)>,
    repeat: usize,
    iterations: u64,
    metrics: Map<String, Value>,
    started: &'a str,
    verification: Option<&'a Verification>,
}

impl AppendedLine<'_> {
    fn write(self, file: &RunFile) -> Value {
        let mut experiment = Map::new();
        let mut put = |key: &str, value: Value| experiment.insert(key.to_owned(), value);
        put("accelerator", json!(self.accelerator));
        put("accelerator_model", json!(accelerator_model(file, self.accelerator)));
        put("xla", if self.xla { json!("PJRT") } else { Value::Null });
        put("xla_flags", Value::Null);
        put("dynamo", json!(self.dynamo));
        put("torch_xla2", Value::Null);
        put("keep_model_data_on_cuda", json!(false));
        put("test", json!(self.test));
        put("batch_size", json!(self.batch_size));
        for (key, value) in self.more {
            put(key, json!(value));
        }
        let seconds = self.started.parse::<jiff::Timestamp>().map(jiff::Timestamp::as_second).ok();
        json!({
            "model": { "suite_name": file.suite, "model_name": self.model },
            "experiment": experiment,
            "repeat": self.repeat,
            "iterations_per_run": self.iterations,
            // The runner's first repetitions are warm-up; these aren't.
            "warmup_repetitions": 0,
            "metrics": self.metrics,
            "timestamp": seconds,
            "verification_code": self.verification.map_or(VerifyCode::VerifierSkipped, code).as_str(),
        })
    }
}

/// Returns the processor's name for CPU targets and the GPU's for others, if the testbed states it.
fn accelerator_model(file: &RunFile, accelerator: &str) -> Option<String> {
    let key = if accelerator.contains("cpu") || accelerator.starts_with("local") { "cpu" } else { "gpu" };
    let facts = &file.testbed.facts;
    let found = facts.get(&format!("{key}-model")).or_else(|| facts.get(key));
    found.or_else(|| facts.iter().find(|(name, _)| name.starts_with(key)).map(|(_, value)| value)).cloned()
}

fn failed(outcome: &OutcomeRecord) -> Option<Map<String, Value>> {
    let why = outcome.why.clone().unwrap_or_default();
    let mark = match outcome.status {
        OutcomeStatus::Ok => return None,
        OutcomeStatus::Failed => RowMark::Failed(why),
        OutcomeStatus::Unsupported | OutcomeStatus::Skipped => RowMark::Skipped(why),
    };
    Some(unmeasured(mark))
}

fn times(samples: &[f64], iterations: f64) -> Map<String, Value> {
    let per_iteration: Vec<f64> = samples.iter().map(|value| value * SECONDS).collect();
    let total: Vec<f64> = per_iteration.iter().map(|value| value * iterations).collect();
    let mut metrics = Map::new();
    metrics.insert("total_time".to_owned(), json!(total));
    metrics.insert("per_iter_time".to_owned(), json!(per_iteration));
    metrics
}

fn iree_lines(file: &RunFile, benchmark: &BenchmarkRecord, lines: &mut Vec<Value>) {
    let label = |name: &str| benchmark.labels.get(name).map_or(benchmark.name.as_str(), String::as_str);
    let line = |repeat, iterations, metrics, started: &str| {
        let line = AppendedLine {
            model: label("model"),
            accelerator: label("target"),
            xla: false,
            dynamo: None,
            test: "eval",
            batch_size: None,
            more: [("backend", "iree")]
                .into_iter()
                .chain(function(benchmark).map(|function| ("function", function)))
                .collect(),
            repeat,
            iterations,
            metrics,
            started,
            verification: benchmark.verification.as_ref(),
        };
        line.write(file)
    };
    if let Some(metrics) = failed(&benchmark.outcome) {
        lines.push(line(0, 1, metrics, &file.created));
        return;
    }
    for process in &benchmark.processes {
        let samples = latency(process);
        let iterations = process.iterations.unwrap_or(1);
        lines.push(line(samples.len(), iterations, times(samples, float(iterations)), &process.started));
    }
    // A finding that forbids a pass gets an additional line, as in a converted file.
    let mark = worst(benchmark.lints.iter().chain(&file.lints));
    lines.extend(mark.map(|mark| line(0, 1, unmeasured(mark), &file.created)));
}

fn backend_lines(file: &RunFile, record: &BackendRecord, lines: &mut Vec<Value>) {
    let line = |repeat, iterations, metrics, started: &str| {
        let (xla, dynamo) = match record.backend.as_str() {
            "inductor" => (false, Some("inductor")),
            "xla-lazy" => (true, None),
            "xla-dynamo" => (true, Some("openxla")),
            _ => (false, None),
        };
        let mut more = Vec::new();
        if !matches!(record.backend.as_str(), "eager" | "inductor" | "xla-lazy" | "xla-dynamo") {
            more.push(("backend", record.backend.as_str()));
        }
        more.extend(record.dtype.as_deref().map(|dtype| ("dtype", dtype)));
        more.extend(record.matmul_precision.as_deref().map(|precision| ("matmul_precision", precision)));
        let line = AppendedLine {
            model: &record.model,
            accelerator: &record.device,
            xla,
            dynamo,
            test: &record.test,
            batch_size: record.batch_size,
            more,
            repeat,
            iterations,
            metrics,
            started,
            verification: record.verification.as_ref(),
        };
        line.write(file)
    };
    if let Some(metrics) = failed(&record.outcome) {
        let started =
            record.processes.last().map_or(file.created.as_str(), |process| process.started.as_str());
        lines.push(line(0, 1, metrics, started));
        return;
    }
    for process in &record.processes {
        let iterations = process.iterations.unwrap_or(1);
        let mut metrics = times(&process.latency, float(iterations));
        metrics.extend(own_metrics(process));
        metrics.extend(
            process.collected.iter().flat_map(|collected| collected_metrics(&record.backend, collected)),
        );
        lines.push(line(process.latency.len(), iterations, metrics, &process.started));
    }
}

/// Returns the metrics that already have the names of results.jsonl, ordered by name.
fn own_metrics(process: &BackendProcessRecord) -> impl Iterator<Item = (String, Value)> {
    let known = |name: &str| matches!(name, "total_time" | "per_iter_time" | "error");
    let own = process.metrics.iter().filter(move |(name, _)| !known(name));
    own.map(|(name, values)| (name.clone(), json!(values.iter().map(|value| value.0).collect::<Vec<_>>())))
}

fn float(count: u64) -> f64 {
    count as f64
}

/// Returns the values that `--collect` took from a process, under the names of the torchbench runner. Like every metric
/// of results.jsonl they are lists. The lists of these values have one entry, because a value is taken once
/// per process and not in each repetition.
fn collected_metrics(backend: &str, collected: &CollectedRecord) -> Map<String, Value> {
    let mut metrics = Map::new();
    let mut put = |name: &str, value: Value| metrics.insert(name.to_owned(), json!([value]));
    if let Some(counters) = &collected.dynamo_counters {
        put("dynamo_counters", json!(counters));
    }
    if let Some(profile) = &collected.profile {
        let (cpu, cuda) = (profile.cpu_seconds.0, profile.cuda_seconds.0);
        let iterations = f64::from(profile.iterations.max(1));
        put("total_cpu_time_s", json!(cpu));
        put("per_iter_cpu_time_s", json!(cpu / iterations));
        put("total_cuda_time_s", json!(cuda));
        put("per_iter_cuda_time_s", json!(cuda / iterations));
        // The runner profiles its repetitions; here, fewer iterations are profiled after them.
        put("profiled_iterations", json!(profile.iterations));
    }
    if let Some(operators) = &collected.operators {
        // The runner uses this name for the operators of every backend except PyTorch/XLA.
        let name = if backend.starts_with("xla-") { "xla_unlowered_ops" } else { "inductor_ops" };
        let by_name: BTreeMap<&str, Value> =
            operators.iter().map(|(operator, times)| (operator.as_str(), operator_metrics(times))).collect();
        put(name, json!(by_name));
    }
    metrics
}

fn operator_metrics(times: &OperatorTimesRecord) -> Value {
    json!({
        "self_cpu_time_s": times.self_cpu_seconds.0,
        "self_cuda_time_s": times.self_cuda_seconds.0,
        "total_cpu_time_s": times.cpu_seconds.0,
        "total_cuda_time_s": times.cuda_seconds.0,
        "num_of_calls": times.calls,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, read};
    use benchgate_core::model::{Benchmark, Lint, LintCode, Process, Series};

    fn sample() -> RunFile {
        let text = include_str!("../../../../tests/fixtures/record/backends-v1.json");
        RunFile::from_slice(text.as_bytes()).unwrap()
    }

    /// Returns a run with one record for each combination of four axes.
    fn multiplied() -> RunFile {
        let mut file = sample();
        let one = file.backends.iter().find(|record| record.backend == "eager").unwrap().clone();
        file.backends.clear();
        for at in 0..16 {
            let set = |axis: u32| at >> axis & 1 == 1;
            file.backends.push(BackendRecord {
                test: if set(0) { "train" } else { "eval" }.to_owned(),
                batch_size: set(1).then_some(8),
                dtype: set(2).then(|| "bf16".to_owned()),
                matmul_precision: set(3).then(|| "medium".to_owned()),
                ..one.clone()
            });
        }
        file
    }

    fn lines_of(file: &RunFile, name: &str) -> String {
        appended(file).into_iter().find(|appended| appended.name == name).unwrap().lines
    }

    fn processes(benchmark: &Benchmark) -> &[Process] {
        match &benchmark.metric("latency").unwrap().series {
            Series::Processes(processes) => processes,
            other => panic!("no processes: {other:?}"),
        }
    }

    fn keys(value: &Value) -> Vec<&str> {
        value.as_object().unwrap().keys().map(String::as_str).collect()
    }

    #[test]
    fn every_line_of_results_jsonl_has_the_runners_fields() {
        let text = lines_of(&multiplied(), "results.jsonl");
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for line in &lines {
            // These are the fields of a line in the runner's README.
            for field in [
                "model",
                "experiment",
                "repeat",
                "iterations_per_run",
                "metrics",
                "timestamp",
                "verification_code",
            ] {
                assert!(!line[field].is_null(), "{field}: {line}");
            }
            assert_eq!(keys(&line["model"]), ["suite_name", "model_name"]);
            assert_eq!(
                keys(&line["experiment"])[..9],
                [
                    "accelerator",
                    "accelerator_model",
                    "xla",
                    "xla_flags",
                    "dynamo",
                    "torch_xla2",
                    "keep_model_data_on_cuda",
                    "test",
                    "batch_size"
                ]
            );
            let (total, one) = (&line["metrics"]["total_time"], &line["metrics"]["per_iter_time"]);
            assert_eq!(total.as_array().unwrap().len() as u64, line["repeat"].as_u64().unwrap());
            let ratio = total[0].as_f64().unwrap() / one[0].as_f64().unwrap();
            assert!((ratio - line["iterations_per_run"].as_f64().unwrap()).abs() < 1e-6, "{line}");
        }
        let others: Vec<_> = lines.iter().filter(|line| line["experiment"]["backend"] != "iree").collect();
        let different: std::collections::BTreeSet<_> =
            others.iter().map(|line| line["experiment"].to_string()).collect();
        assert_eq!(different.len(), 16, "an axis is not in the line:\n{different:#?}");
    }

    #[test]
    fn what_did_not_run_says_so_in_the_runners_words() {
        let text = lines_of(&sample(), "results.jsonl");
        let found = |backend: &str| -> Value {
            let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            lines.into_iter().find(|line| line["experiment"]["backend"] == backend).unwrap()
        };
        assert_eq!(found("tensorrt")["metrics"]["error"], "SKIP");
        assert!(found("onnxruntime")["metrics"]["error"].as_str().unwrap().contains("1 inputs"));
    }

    #[test]
    fn a_finding_that_withholds_green_is_appended_with_the_times() {
        let mut file = sample();
        let lint = Lint::new(LintCode::VacuousReference, "a constant would pass");
        file.lints.push(lint);
        let text = lines_of(&file, "results.jsonl");
        let run = read(text.as_bytes(), Format::ResultsJsonl, "results.jsonl").unwrap();
        let iree =
            |benchmark: &&Benchmark| benchmark.labels.get("backend").is_some_and(|name| name == "iree");
        let measured: Vec<&Benchmark> =
            run.benchmarks.iter().filter(iree).filter(|benchmark| benchmark.outcome.is_ok()).collect();
        assert!(!measured.is_empty(), "{text}");
        for benchmark in measured {
            assert!(benchmark.lints.iter().any(|lint| lint.code == LintCode::SkippedRow), "{benchmark:?}");
        }
    }

    #[test]
    fn eager_that_was_never_started_is_a_row_of_latency_csv() {
        let mut file = sample();
        let eager = file.backends.iter_mut().find(|record| is_plain_eager(record)).unwrap();
        eager.processes.clear();
        eager.outcome.status = OutcomeStatus::Failed;
        let expected = format!("{},{},{},error\n", file.created, eager.model, eager.device);
        let lines = lines_of(&file, "latency.csv");
        assert!(lines.contains(&expected), "{lines}");
    }

    #[test]
    fn what_is_appended_reads_back_as_the_same_times() {
        let file = sample();
        let run =
            read(lines_of(&file, "results.jsonl").as_bytes(), Format::ResultsJsonl, "results.jsonl").unwrap();
        let eager = run
            .benchmarks
            .iter()
            .find(|benchmark| {
                let label = |name: &str| benchmark.labels.get(name).map(String::as_str);
                label("test") == Some("eval")
                    && label("dynamo").is_none()
                    && label("backend").is_none()
                    && label("xla").is_none()
            })
            .unwrap();
        let record = file.backends.iter().find(|record| is_plain_eager(record)).unwrap();
        let read_back = processes(eager);
        assert_eq!(read_back.len(), record.processes.len());
        for (read, written) in read_back.iter().zip(&record.processes) {
            assert_eq!(read.samples.len(), written.latency.len());
            assert!((read.samples[0] / written.latency[0] - 1.0).abs() < 1e-9);
        }
        for name in ["latency.csv", "iree_latency.csv"] {
            let all = appended(&file).into_iter().find(|appended| appended.name == name).unwrap();
            let text = format!("{}{}", all.header, all.lines);
            let run = read(text.as_bytes(), Format::LatencyCsv, name).unwrap();
            assert!(processes(&run.benchmarks[0]).iter().all(|process| process.samples[0] > 0.0), "{text}");
        }
    }

    fn collected() -> CollectedRecord {
        let text = r#"{
            "dynamo_counters": {"stats": {"calls_captured": 5, "unique_graphs": 1}},
            "profile": {"iterations": 4, "cpu_seconds": 0.5, "cuda_seconds": 0.0},
            "operators": {"aten::nonzero": {"calls": 8, "self_cpu_seconds": 0.25, "cpu_seconds": 0.5,
                                            "self_cuda_seconds": 0.0, "cuda_seconds": 0.0}}
        }"#;
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn every_number_has_the_runners_name() {
        let expected = json!({
            "dynamo_counters": [{ "stats": { "calls_captured": 5, "unique_graphs": 1 } }],
            "total_cpu_time_s": [0.5],
            "per_iter_cpu_time_s": [0.125],
            "total_cuda_time_s": [0.0],
            "per_iter_cuda_time_s": [0.0],
            "profiled_iterations": [4],
            "xla_unlowered_ops": [{ "aten::nonzero": {
                "self_cpu_time_s": 0.25,
                "self_cuda_time_s": 0.0,
                "total_cpu_time_s": 0.5,
                "total_cuda_time_s": 0.0,
                "num_of_calls": 8,
            } }],
        });
        assert_eq!(json!(collected_metrics("xla-lazy", &collected())), expected);
    }

    #[test]
    fn operators_of_other_backends_have_the_runners_other_name() {
        assert!(collected_metrics("inductor", &collected())["inductor_ops"][0]["aten::nonzero"].is_object());
    }

    #[test]
    fn no_fallback_differs_from_not_collected() {
        let none = CollectedRecord { operators: Some(BTreeMap::new()), ..CollectedRecord::default() };
        assert_eq!(json!(collected_metrics("xla-lazy", &none)), json!({ "xla_unlowered_ops": [{}] }));
        assert!(collected_metrics("xla-lazy", &CollectedRecord::default()).is_empty());
    }
}
