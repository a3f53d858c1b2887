//! Google Benchmark JSON, as its own tools and benchgate read it.

use serde_json::{Map, Value, json};

use crate::model::{Benchmark, Consequence, Context, Metric, MetricSeries, Outcome, Run, Series, Summary};

use super::{ExportedRun, count_benchmarks, several_processes};

pub(super) fn write(run: &Run) -> ExportedRun {
    let mut rows = Vec::new();
    for (benchmark, family) in run.benchmarks.iter().zip(0u64..) {
        push_rows(run, benchmark, family, &mut rows);
    }
    let file = json!({ "context": context(&run.context), "benchmarks": rows });
    let mut bytes = serde_json::to_vec_pretty(&file).unwrap_or_default();
    bytes.push(b'\n');
    let mut lost = Vec::new();
    if let Some((count, first)) = count_benchmarks(run, several_processes) {
        lost.push(format!(
            "the format knows one process a file: in {count} benchmarks (the first is {first}) processes became repetitions"
        ));
    }
    if run.benchmarks.iter().any(|benchmark| benchmark.verification.is_some()) {
        lost.push("the format has no place for verification".to_owned());
    }
    if run.testbed.is_some() {
        lost.push("the format has no place for what identifies a machine".to_owned());
    }
    ExportedRun { bytes, lost }
}

fn context(context: &Context) -> Value {
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
    Value::Object(object)
}

/// What every row of a benchmark begins with.
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

/// The key of a metric in a row. A metric called like one of the tool's own keys must not replace it.
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

fn push_rows(run: &Run, benchmark: &Benchmark, family: u64, rows: &mut Vec<Value>) {
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
    let withheld = super::withheld(run, benchmark);
    let why = withheld.map(|lint| format!("{}: {}", lint.code, lint.detail)).unwrap_or_default();
    if withheld.is_some_and(|lint| lint.code.consequence() == Consequence::Error) {
        return rows.push(marked("error_occurred", "error_message", &why));
    }
    if withheld.is_some() {
        rows.push(marked("skipped", "skip_message", &why));
    }
    match benchmark.metric(&Metric::LATENCY.name).map(|latency| &latency.series) {
        Some(Series::Processes(_)) => samples(benchmark, family, rows),
        Some(Series::Summaries(summaries)) => {
            for (at, summary) in summaries.iter().enumerate() {
                aggregates(benchmark, family, at, summary, rows);
            }
        }
        Some(Series::Exact(_)) | None => {
            rows.push(marked("error_occurred", "error_message", &super::why_unmeasured(benchmark)));
        }
    }
}

fn samples(benchmark: &Benchmark, family: u64, rows: &mut Vec<Value>) {
    let all = |series: &MetricSeries| -> Vec<f64> {
        match &series.series {
            Series::Processes(processes) => {
                processes.iter().flat_map(|process| &process.samples).copied().collect()
            }
            Series::Exact(value) => vec![*value],
            Series::Summaries(_) => Vec::new(),
        }
    };
    let columns: Vec<(String, Vec<f64>)> =
        benchmark.metrics.iter().map(|series| (key(&series.metric), all(series))).collect();
    let count = benchmark.metric(&Metric::LATENCY.name).map_or(0, |latency| all(latency).len());
    for repetition in 0..count {
        let mut row = head(benchmark, family, "", "iteration");
        row.insert("repetitions".to_owned(), count.into());
        row.insert("repetition_index".to_owned(), repetition.into());
        row.insert("threads".to_owned(), 1.into());
        row.insert("iterations".to_owned(), 1.into());
        for (key, values) in &columns {
            // A metric that was not taken with every repetition can't be in their rows.
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
        for series in benchmark.metrics.iter().filter(|series| series.metric.name != Metric::LATENCY.name) {
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
