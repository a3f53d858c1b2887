//! CSV with one row per value, so that columns need no naming convention for metrics, processes and
//! statistics.

use std::borrow::Cow;
use std::io::Write;

use benchgate_core::model::{Benchmark, Outcome, Run, Series};

use super::ExportedRun;
use super::evidence::{RowMark, mark};

const HEADER: [&str; 9] =
    ["benchmark", "outcome", "why", "metric", "unit", "statistic", "process", "repetition", "value"];

pub(super) fn write(run: &Run) -> ExportedRun {
    let mut out = csv::Writer::from_writer(Vec::new());
    // Writing to a `Vec` can't fail, and the csv crate reports no other errors here.
    let mut put = |row: [&str; 9]| drop(out.write_record(row.map(inert)));
    put(HEADER);
    for benchmark in &run.benchmarks {
        rows(run, benchmark, &mut put);
    }
    let mut bytes = out.into_inner().unwrap_or_default();
    drop(bytes.flush());
    ExportedRun { bytes, lost: Vec::new(), evidence_lost: Vec::new() }
}

/// Puts an apostrophe in front of text that a spreadsheet would run as a formula; numbers are unchanged.
fn inert(cell: &str) -> Cow<'_, [u8]> {
    if cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && cell.parse::<f64>().is_err() {
        return Cow::Owned(format!("'{cell}").into_bytes());
    }
    Cow::Borrowed(cell.as_bytes())
}

fn rows(run: &Run, benchmark: &Benchmark, put: &mut impl FnMut([&str; 9])) {
    let name = benchmark.name.as_str();
    let (outcome, why) = match &benchmark.outcome {
        // The benchmark was measured, but a finding can make its values inconclusive.
        Outcome::Ok => match mark(run, benchmark) {
            None => ("ok", String::new()),
            Some(RowMark::Failed(why) | RowMark::Skipped(why)) => ("ok", why),
        },
        Outcome::Unsupported { reason } => ("unsupported", reason.clone()),
        Outcome::Skipped { reason } => ("skipped", reason.clone()),
        Outcome::Failed { stage, why } => ("failed", format!("{stage}: {why}")),
    };
    if benchmark.metrics.is_empty() {
        let why = if why.is_empty() { super::why_unmeasured(benchmark) } else { why.clone() };
        put([name, outcome, &why, "", "", "", "", "", ""]);
    }
    for series in &benchmark.metrics {
        let (metric, unit) = (series.metric.name.as_ref(), series.metric.unit.as_str());
        match &series.series {
            Series::Processes(processes) => {
                for (process, number) in processes.iter().zip(0u64..) {
                    let number = number.to_string();
                    for (sample, repetition) in process.samples.iter().zip(0u64..) {
                        let (repetition, value) = (repetition.to_string(), sample.to_string());
                        put([name, outcome, &why, metric, unit, "sample", &number, &repetition, &value]);
                    }
                }
            }
            Series::Summaries(summaries) => {
                for (summary, number) in summaries.iter().zip(0u64..) {
                    let number = number.to_string();
                    let n = summary.n.map(|n| n.to_string());
                    if let Some(n) = &n {
                        put([name, outcome, &why, metric, "count", "n", &number, "", n]);
                    }
                    let stated = [
                        ("mean", summary.mean),
                        ("median", summary.median),
                        ("stddev", summary.stddev),
                        ("min", summary.min),
                        ("max", summary.max),
                    ];
                    for (statistic, value) in stated {
                        if let Some(value) = value.map(|value| value.to_string()) {
                            put([name, outcome, &why, metric, unit, statistic, &number, "", &value]);
                        }
                    }
                }
            }
            Series::Exact(value) => {
                put([name, outcome, &why, metric, unit, "exact", "", "", &value.to_string()]);
            }
        }
    }
}
