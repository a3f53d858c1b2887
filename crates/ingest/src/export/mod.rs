//! Writes a run as a file that other tools read.

mod appended;
mod google_benchmark;
mod results_jsonl;
mod run_json;

pub use appended::{Appended, appended};

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::io::Write;

use benchgate_core::model::{
    Benchmark, BenchmarkName, BlockSlot, Consequence, Lint, LintCode, Metric, MetricSeries, Outcome, Quality,
    Run, Series, Summary, Unit, Verification, VerifyCode,
};

use super::Format;

/// A format for writing runs, with the name that `--to` accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[derive(strum::Display, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum ExportFormat {
    /// benchgate's own run.json.
    RunJson,
    /// Google Benchmark JSON, in which the repetitions of all processes follow one another.
    GoogleBenchmark,
    /// results.jsonl of the torchbench runner, one line per process.
    ResultsJsonl,
    /// One line per value, for spreadsheets and data frames.
    Csv,
}

/// A run that was written in another format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedRun {
    pub bytes: Vec<u8>,
    /// Information that the format can't hold, in sentences; empty if nothing was lost.
    pub lost: Vec<String>,
    /// The losses that could make a comparison of the written file pass although a comparison of the run does
    /// not.
    pub evidence_lost: Vec<String>,
}

/// Writes a run. `now` (RFC 3339) is used if the run does not state when it was measured.
pub fn export(run: &Run, format: ExportFormat, now: &str) -> ExportedRun {
    let (mut exported, written) = match format {
        ExportFormat::RunJson => (run_json::write(run, now), Format::RunJson),
        ExportFormat::GoogleBenchmark => (google_benchmark::write(run), Format::GoogleBenchmarkJson),
        ExportFormat::ResultsJsonl => (results_jsonl::write(run), Format::ResultsJsonl),
        // No command reads it.
        ExportFormat::Csv => return write_csv(run),
    };
    exported.evidence_lost.extend(lost_metrics(run, &exported.bytes, written));
    exported
}

/// Returns the metrics that show whether both sides did the same work, equally well, and that a written file no longer
/// shows. Times next to the latency are informational, and a failed row can't pass.
fn lost_metrics(run: &Run, bytes: &[u8], format: Format) -> Vec<String> {
    let Ok(back) = super::read(bytes, format, "-") else { return Vec::new() };
    let by_name: HashMap<&BenchmarkName, &Benchmark> =
        back.benchmarks.iter().map(|it| (&it.name, it)).collect();
    let mut lost = BTreeSet::new();
    for (at, benchmark) in run.benchmarks.iter().enumerate().filter(|(_, it)| it.outcome.is_ok()) {
        let found = by_name.get(&benchmark.name).copied().or_else(|| back.benchmarks.get(at));
        let Some(found) = found.filter(|it| it.outcome.is_ok()) else { continue };
        let checks = benchmark.metrics.iter().filter(|series| series.metric.unit != Unit::Nanoseconds);
        lost.extend(
            checks.filter(|series| !is_kept(series, found)).map(|series| series.metric.name.as_ref()),
        );
    }
    let (qualities, others): (Vec<&str>, Vec<&str>) =
        lost.into_iter().partition(|name| Quality::of_name(name).is_some());
    let said = |names: Vec<&str>, before: &str, after: &str| {
        (!names.is_empty()).then(|| format!("{before}{}{after}", names.join(", ")))
    };
    let sentences = [said(qualities, "how right the results are (", ")"), said(others, "the values of ", "")];
    sentences.into_iter().flatten().collect()
}

/// Returns whether a benchmark has this metric, with the bounds that show how a rate was rounded.
fn is_kept(series: &MetricSeries, benchmark: &Benchmark) -> bool {
    let has_bounds = |series: &MetricSeries| match &series.series {
        Series::Summaries(all) => all.iter().any(|summary| summary.interval.is_some()),
        Series::Processes(_) | Series::Exact(_) => false,
    };
    benchmark.metric(&series.metric.name).is_some_and(|found| !has_bounds(series) || has_bounds(found))
}

/// Returns a format that `compare` reads and that keeps all evidence of a run.
pub fn format_that_keeps(run: &Run, now: &str) -> Option<ExportFormat> {
    let formats = [ExportFormat::RunJson, ExportFormat::GoogleBenchmark, ExportFormat::ResultsJsonl];
    formats.into_iter().find(|&format| {
        let holds_rows = format == ExportFormat::RunJson || !has_untimed(run);
        holds_rows && export(run, format, now).evidence_lost.is_empty()
    })
}

/// Returns the reason why a benchmark without a recorded failure has no latency.
fn why_unmeasured(benchmark: &Benchmark) -> String {
    let lint = benchmark.lints.first();
    lint.map_or_else(
        || "no latency was measured".to_owned(),
        |lint| format!("{}: {}", lint.code, lint.detail),
    )
}

/// Describes the affected benchmarks, for a sentence about what was lost: the name of a single one, or their
/// number and the first one's name.
fn affected_benchmarks(run: &Run, lossy: impl Fn(&Benchmark) -> bool) -> Option<String> {
    let mut hit = run.benchmarks.iter().filter(|benchmark| lossy(benchmark));
    let first = hit.next()?.name.as_str();
    Some(match hit.count() {
        0 => first.to_owned(),
        more => format!("{} benchmarks (the first is {first})", more + 1),
    })
}

fn has_summaries(benchmark: &Benchmark) -> bool {
    benchmark.metrics.iter().any(|metric| matches!(metric.series, Series::Summaries(_)))
}

fn several_processes(benchmark: &Benchmark) -> bool {
    benchmark.metrics.iter().any(|metric| metric.series.processes() > 1)
}

/// Returns one note that names all metrics that the file lacks.
fn left_out(names: &BTreeSet<&str>) -> Option<String> {
    let names = names.iter().copied().collect::<Vec<_>>().join(", ");
    (!names.is_empty()).then(|| format!("the format can't store these metrics: {names}"))
}

const HEADER: [&str; 9] =
    ["benchmark", "outcome", "why", "metric", "unit", "statistic", "process", "repetition", "value"];

/// CSV with one row per value, so that columns need no naming convention for metrics, processes and
/// statistics.
fn write_csv(run: &Run) -> ExportedRun {
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
        let why = if why.is_empty() { why_unmeasured(benchmark) } else { why.clone() };
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

/// The row for a finding that forbids a pass, in formats without findings.
#[derive(Debug, PartialEq, Eq)]
enum RowMark {
    /// A failed row: the benchmark can't be judged.
    Failed(String),
    /// A skipped row among measured ones, which can neither pass nor regress.
    Skipped(String),
}

/// Returns the worst finding about a benchmark or its whole run. That a process was measured only once is not
/// included, because readers detect it themselves.
fn mark(run: &Run, benchmark: &Benchmark) -> Option<RowMark> {
    let single = samples(benchmark, &Metric::LATENCY.name) == 1;
    let lints = benchmark.lints.iter().chain(&run.lints);
    worst(lints.filter(|lint| !(single && lint.code == LintCode::SingleRepetition)))
}

/// Returns the worst of these findings, if one of them forbids a pass.
fn worst<'a>(lints: impl Iterator<Item = &'a Lint> + Clone) -> Option<RowMark> {
    let worst = |consequence| {
        let found = lints.clone().find(|lint| lint.code.consequence() == consequence)?;
        Some(format!("{}: {}", found.code, found.detail))
    };
    worst(Consequence::Error).map(RowMark::Failed).or_else(|| {
        worst(Consequence::Inconclusive).or_else(|| worst(Consequence::NotGreen)).map(RowMark::Skipped)
    })
}

/// Returns the verification result that fails a benchmark, for a format that has no code for it.
fn wrong_output(benchmark: &Benchmark) -> Option<RowMark> {
    let verification = benchmark.verification.as_ref()?;
    let code = verification.supported_code();
    let wrong = match code {
        VerifyCode::Pass => false,
        VerifyCode::VerifierSkipped | VerifyCode::NondeterministicEagerRun => {
            verification.differs_from_base()
        }
        VerifyCode::Fail
        | VerifyCode::EagerFailed
        | VerifyCode::ExceptionRaised
        | VerifyCode::VerifierDidntRun => true,
    };
    let why = verification.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    wrong.then(|| RowMark::Failed(format!("verification {code}{why}")))
}

/// Returns the evidence that only run.json can store and on which a verdict may depend.
fn only_in_run_json(run: &Run) -> Vec<String> {
    let any = |has: fn(&Benchmark) -> bool| run.benchmarks.iter().any(has);
    let facts = [
        ("what was executed", any(|benchmark| benchmark.artifact.is_some())),
        ("the pairing of processes", any(|benchmark| slots(benchmark).next().is_some())),
        ("the calibration", run.calibration.is_some()),
    ];
    facts.into_iter().filter(|(_, held)| *held).map(|(fact, _)| fact.to_owned()).collect()
}

/// Returns the metrics that determine the verdict: latency or, without one, all of them.
fn deciding(benchmark: &Benchmark) -> impl Iterator<Item = &MetricSeries> {
    let timed = benchmark.metric(&Metric::LATENCY.name).is_some();
    benchmark.metrics.iter().filter(move |series| !timed || series.metric.name == Metric::LATENCY.name)
}

/// Describes the loss in formats that only store repetitions.
fn spread_of_summaries(run: &Run) -> Option<String> {
    // A mean alone shows no skew, but it would be compared with medians.
    let has_spread = |it: &Summary| {
        let of_many = it.n.is_some_and(|n| n > 1) && it.mean.is_some();
        of_many || [it.mean, it.median, it.stddev, it.min, it.max].iter().flatten().count() > 1
    };
    let lossy = |benchmark: &Benchmark| {
        deciding(benchmark)
            .any(|it| matches!(&it.series, Series::Summaries(all) if all.iter().any(has_spread)))
    };
    let which = affected_benchmarks(run, lossy)?;
    Some(format!("the spread and the kind of the summaries of {which}"))
}

/// Returns whether a benchmark was measured but would be a failed row in a format in which every row has a
/// latency.
fn has_untimed(run: &Run) -> bool {
    run.benchmarks.iter().any(|it| {
        let latency = it.metric(&Metric::LATENCY.name).map(|latency| &latency.series);
        it.outcome.is_ok() && !it.metrics.is_empty() && matches!(latency, None | Some(Series::Exact(_)))
    })
}

/// Returns whether the outputs were shown to be right. The other side of a comparison may not have shown
/// this.
fn is_verified(benchmark: &Benchmark) -> bool {
    benchmark.verification.as_ref().map(Verification::supported_code) == Some(VerifyCode::Pass)
}

fn slots(benchmark: &Benchmark) -> impl Iterator<Item = BlockSlot> {
    let processes = benchmark.metrics.iter().filter_map(|metric| match &metric.series {
        Series::Processes(processes) => Some(processes),
        Series::Summaries(_) | Series::Exact(_) => None,
    });
    processes.flatten().filter_map(|process| process.slot)
}

/// Returns the number of values of a metric in all processes.
fn samples(benchmark: &Benchmark, metric: &str) -> usize {
    match benchmark.metric(metric).map(|metric| &metric.series) {
        Some(Series::Processes(processes)) => processes.iter().map(|process| process.samples.len()).sum(),
        Some(Series::Summaries(summaries)) => summaries.len(),
        Some(Series::Exact(_)) => 1,
        None => 0,
    }
}
