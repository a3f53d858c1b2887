//! Writes Google Benchmark JSON that Google's own tools and benchgate can read.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use benchgate_core::model::{Benchmark, Metric, MetricSeries, Outcome, Run, Series, Summary};

use super::super::google_benchmark::{AXES, Axes, TESTBED, counter_metric};
use super::{
    ExportedRun, RowMark, affected_benchmarks, is_verified, left_out, mark, only_in_run_json,
    several_processes, wrong_output,
};

pub(super) fn write(run: &Run) -> ExportedRun {
    let mut rows = Vec::new();
    let mut unwritten = BTreeSet::new();
    for (benchmark, family) in run.benchmarks.iter().zip(0u64..) {
        let mark = wrong_output(benchmark).or_else(|| mark(run, benchmark));
        push_rows(benchmark, mark, family, &mut rows);
        let lost = benchmark.metrics.iter().filter(|series| !is_written(benchmark, series));
        unwritten.extend(lost.map(|series| series.metric.name.as_ref()));
    }
    let file = json!({ "context": context(run), "benchmarks": rows });
    let mut bytes = serde_json::to_vec_pretty(&file).unwrap_or_default();
    bytes.push(b'\n');
    let mut lost = Vec::new();
    if let Some(which) = affected_benchmarks(run, several_processes) {
        lost.push(format!(
            "the format stores one process per file, so processes became repetitions in {which}"
        ));
    }
    if run.benchmarks.iter().any(|benchmark| benchmark.verification.is_some()) {
        lost.push("the format has no place for verification".to_owned());
    }
    lost.extend(left_out(&unwritten));
    let mut evidence_lost = only_in_run_json(run);
    if run.benchmarks.iter().any(is_verified) {
        evidence_lost.push("which outputs were verified".to_owned());
    }
    ExportedRun { bytes, lost, evidence_lost }
}

fn context(run: &Run) -> Value {
    let context = &run.context;
    let mut object = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            object.insert(key.to_owned(), value);
        }
    };
    put("date", context.date.as_deref().map(Value::from));
    put("host_name", context.host_name.as_deref().map(Value::from));
    put("executable", context.executable.as_deref().map(Value::from));
    put("num_cpus", context.num_cpus.map(Value::from));
    put("mhz_per_cpu", context.mhz_per_cpu.map(Value::from));
    put("cpu_scaling_enabled", context.cpu_scaling_enabled.map(Value::from));
    put("aslr_enabled", context.aslr_enabled.map(Value::from));
    put("load_avg", Some(json!(context.load_avg)));
    put("library_version", context.library_version.as_deref().map(Value::from));
    put("library_build_type", context.library_build_type.as_deref().map(Value::from));
    put("json_schema_version", Some(Value::from(1)));
    // The values are text, like all user-defined context.
    put(TESTBED, run.testbed.as_ref().map(|testbed| json!(testbed).to_string().into()));
    let axes: Axes = run
        .benchmarks
        .iter()
        .map(|it| {
            (it.name.to_string(), it.axes().map(|(axis, value)| (axis.clone(), value.clone())).collect())
        })
        .filter(|(_, axes): &(String, BTreeMap<_, _>)| !axes.is_empty())
        .collect();
    put(AXES, (!axes.is_empty()).then(|| json!(axes).to_string().into()));
    Value::Object(object)
}

/// Returns the fields with which every row of a benchmark begins.
fn head(benchmark: &Benchmark, family: u64, suffix: &str, kind: &str) -> Map<String, Value> {
    let name = benchmark.name.as_str();
    let mut row = Map::new();
    row.insert("name".to_owned(), format!("{name}{suffix}").into());
    row.insert("family_index".to_owned(), family.into());
    row.insert("per_family_instance_index".to_owned(), 0.into());
    row.insert("run_name".to_owned(), name.into());
    row.insert("run_type".to_owned(), kind.into());
    row
}

/// Returns the key of a metric in a row. A metric named like one of the tool's own keys must not replace that
/// key.
fn key(metric: &Metric) -> String {
    const RESERVED: [&str; 18] = [
        "name",
        "run_name",
        "run_type",
        "family_index",
        "per_family_instance_index",
        "repetitions",
        "repetition_index",
        "threads",
        "iterations",
        "real_time",
        "cpu_time",
        "time_unit",
        "aggregate_name",
        "aggregate_unit",
        "error_occurred",
        "error_message",
        "skipped",
        "skip_message",
    ];
    match metric.name.as_ref() {
        "latency" => "real_time".to_owned(),
        "cpu-time" => "cpu_time".to_owned(),
        "items-per-second" => "items_per_second".to_owned(),
        own if RESERVED.contains(&own) || own == "label" => format!("metric_{own}"),
        own => own.to_owned(),
    }
}

/// Returns whether rows contain this metric, which is only the case if readers know its better direction.
fn is_written(benchmark: &Benchmark, series: &MetricSeries) -> bool {
    if series.metric.name == Metric::LATENCY.name {
        return true;
    }
    let latency = benchmark.metric(&Metric::LATENCY.name).map(|latency| &latency.series);
    let shaped = match (latency, &series.series) {
        (Some(Series::Processes(_)), Series::Processes(_) | Series::Exact(_)) => {
            latency.map(values).map(|latency| latency.len()) == Some(values(&series.series).len())
        }
        (Some(Series::Summaries(_)), Series::Summaries(_)) => true,
        _ => false,
    };
    shaped && counter_metric(&key(&series.metric)).better.worse() == series.metric.better.worse()
}

fn push_rows(benchmark: &Benchmark, mark: Option<RowMark>, family: u64, rows: &mut Vec<Value>) {
    let marked = |flag: &str, message: &str, why: &str| {
        let mut row = head(benchmark, family, "", "iteration");
        row.insert(flag.to_owned(), true.into());
        row.insert(message.to_owned(), why.into());
        for key in ["iterations", "real_time", "cpu_time"] {
            row.insert(key.to_owned(), 0.into());
        }
        row.insert("time_unit".to_owned(), "ns".into());
        Value::Object(row)
    };
    match &benchmark.outcome {
        Outcome::Ok => {}
        Outcome::Failed { why, .. } => return rows.push(marked("error_occurred", "error_message", why)),
        Outcome::Skipped { reason } | Outcome::Unsupported { reason } => {
            return rows.push(marked("skipped", "skip_message", reason));
        }
    }
    match benchmark.metric(&Metric::LATENCY.name).map(|latency| &latency.series) {
        Some(Series::Processes(_)) => {
            samples(benchmark, family, rows);
            match mark {
                None => {}
                Some(RowMark::Failed(why)) => rows.push(marked("error_occurred", "error_message", &why)),
                Some(RowMark::Skipped(why)) => rows.push(marked("skipped", "skip_message", &why)),
            }
        }
        Some(Series::Summaries(summaries)) => {
            for (at, summary) in summaries.iter().enumerate() {
                aggregates(benchmark, family, at, summary, rows);
            }
            // A summary has no repetitions, so none of them can be marked as skipped.
            if let Some(RowMark::Failed(why) | RowMark::Skipped(why)) = mark {
                rows.push(marked("error_occurred", "error_message", &why));
            }
        }
        Some(Series::Exact(_)) | None => {
            rows.push(marked("error_occurred", "error_message", &super::why_unmeasured(benchmark)));
        }
    }
}

/// Returns the values of all repetitions, process by process.
fn values(series: &Series) -> Vec<f64> {
    match series {
        Series::Processes(processes) => {
            processes.iter().flat_map(|process| &process.samples).copied().collect()
        }
        Series::Exact(value) => vec![*value],
        Series::Summaries(_) => Vec::new(),
    }
}

fn samples(benchmark: &Benchmark, family: u64, rows: &mut Vec<Value>) {
    let written = benchmark.metrics.iter().filter(|series| is_written(benchmark, series));
    let columns: Vec<(String, Vec<f64>)> =
        written.map(|series| (key(&series.metric), values(&series.series))).collect();
    let latency = benchmark.metric(&Metric::LATENCY.name);
    let count = latency.map_or(0, |latency| values(&latency.series).len());
    for repetition in 0..count {
        let mut row = head(benchmark, family, "", "iteration");
        row.insert("repetitions".to_owned(), count.into());
        row.insert("repetition_index".to_owned(), repetition.into());
        row.insert("threads".to_owned(), 1.into());
        row.insert("iterations".to_owned(), 1.into());
        for (key, values) in &columns {
            // If a metric was not taken with every repetition, the rows can't contain it.
            let value = if values.len() == count { values.get(repetition) } else { None };
            if let Some(value) = value {
                row.insert(key.clone(), (*value).into());
            }
        }
        row.insert("time_unit".to_owned(), "ns".into());
        rows.push(Value::Object(row));
    }
}

fn aggregates(benchmark: &Benchmark, family: u64, at: usize, latency: &Summary, rows: &mut Vec<Value>) {
    let of = |summary: &Summary, statistic: &str| match statistic {
        "mean" => summary.mean,
        "median" => summary.median,
        "stddev" => summary.stddev,
        "min" => summary.min,
        _ => summary.max,
    };
    for statistic in ["mean", "median", "stddev", "min", "max"] {
        let Some(real) = of(latency, statistic) else { continue };
        let mut row = head(benchmark, family, &format!("_{statistic}"), "aggregate");
        if let Some(n) = latency.n {
            row.insert("repetitions".to_owned(), n.into());
        }
        row.insert("threads".to_owned(), 1.into());
        row.insert("aggregate_name".to_owned(), statistic.into());
        row.insert("aggregate_unit".to_owned(), "time".into());
        row.insert("real_time".to_owned(), real.into());
        let others = benchmark.metrics.iter().filter(|series| series.metric.name != Metric::LATENCY.name);
        for series in others.filter(|series| is_written(benchmark, series)) {
            if let Series::Summaries(summaries) = &series.series
                && let Some(value) = summaries.get(at).and_then(|summary| of(summary, statistic))
            {
                row.insert(key(&series.metric), value.into());
            }
        }
        row.insert("time_unit".to_owned(), "ns".into());
        rows.push(Value::Object(row));
    }
}
