//! Writes a run as a file that other tools read.

mod appended;
mod collected;
mod csv;
mod evidence;
mod google_benchmark;
mod results_jsonl;
mod run_json;

pub use appended::{Appended, appended};

use std::collections::BTreeSet;

use benchgate_core::model::{Benchmark, Run, Series};

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
    match format {
        ExportFormat::RunJson => run_json::write(run, now),
        ExportFormat::GoogleBenchmark => google_benchmark::write(run),
        ExportFormat::ResultsJsonl => results_jsonl::write(run),
        ExportFormat::Csv => csv::write(run),
    }
}

/// Returns a format that `compare` reads and that keeps all evidence of a run.
pub fn format_that_keeps(run: &Run, now: &str) -> Option<ExportFormat> {
    let formats = [ExportFormat::RunJson, ExportFormat::GoogleBenchmark, ExportFormat::ResultsJsonl];
    formats.into_iter().find(|&format| {
        let holds_rows = format == ExportFormat::RunJson || !evidence::has_untimed(run);
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
