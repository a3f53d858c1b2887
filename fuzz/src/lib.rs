//! Properties that every reader must have for every input.

use benchgate_core::model::{Outcome, Run, Series};
pub use benchgate_ingest as ingest;
use benchgate_ingest::{ExportFormat, Format, IngestError};

/// Reads the bytes as `format`, and checks the result.
pub fn check(format: Format, bytes: &[u8]) {
    // Detection reads the same bytes and may return any result, in bounded time.
    let _ = ingest::detect(bytes);
    match ingest::read_sides(bytes, format, "fuzz/group/name/new/input") {
        Ok(sides) => sides.iter().for_each(|(_, run)| check_run(run, format)),
        Err(IngestError::Malformed { line, what, .. }) => {
            let lines = 1 + bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
            assert!(line >= 1 && line <= lines, "line {line} of {lines}");
            assert!(!what.is_empty());
        }
        Err(_) => {}
    }
}

fn check_run(run: &Run, format: Format) {
    assert!(format == Format::RunJson || !run.benchmarks.is_empty());
    for benchmark in &run.benchmarks {
        if format != Format::RunJson && matches!(benchmark.outcome, Outcome::Failed { .. }) {
            assert!(benchmark.metrics.is_empty(), "a failed row kept a number");
        }
        for metric in &benchmark.metrics {
            if let (Series::Processes(processes), "latency", true) =
                (&metric.series, metric.metric.name.as_ref(), format != Format::RunJson)
            {
                for sample in processes.iter().flat_map(|process| &process.samples) {
                    assert!(sample.is_finite() && *sample > 0.0, "{sample} is no latency");
                }
            }
        }
    }
    // Every run that is read can be written and read again.
    if format != Format::RunJson {
        let written = ingest::export(run, ExportFormat::GoogleBenchmark, "2026-11-20T12:00:00Z");
        let back = ingest::read(&written.bytes, Format::GoogleBenchmarkJson, "back");
        if run.benchmarks.iter().all(|benchmark| !benchmark.name.as_str().is_empty()) {
            assert!(back.is_ok(), "{back:?}");
        }
    }
}
