//! A run as pictures and pages need it: its record, and the comparison of its sides where it has two.

use std::collections::HashMap;

use benchgate_core::model::{Metric, SideName};
use benchgate_core::record::{BenchmarkRecord, ProcessRecord, RunFile};
use benchgate_gate::{Comparison, Latency, Typical};

/// A run with the name it is shown by.
#[derive(Debug, Clone)]
pub struct DrawnRun {
    pub name: String,
    pub file: RunFile,
    /// Comparison of the two sides, if there are two and the run is complete.
    pub comparison: Option<Comparison>,
    /// Latencies that the comparison shows, by benchmark.
    shown: HashMap<String, Typical>,
}

impl DrawnRun {
    pub fn new(name: impl Into<String>, file: RunFile, comparison: Option<Comparison>) -> Self {
        let shown = comparison.as_ref().map(shown_latencies).unwrap_or_default();
        Self { name: name.into(), file, comparison, shown }
    }

    /// The latency of a benchmark on a side: the value that the comparison shows, so that a picture and a
    /// table never disagree; without a comparison the location of its processes.
    pub(super) fn latency(&self, side: SideName, benchmark: &BenchmarkRecord) -> Option<Latency> {
        let worked = benchmark.processes.iter().filter(|process| process.failure.is_none());
        let measured = Latency::of_processes(worked.filter_map(latency_samples))?;
        let shown = self.shown.get(&benchmark.name).and_then(|shown| match side {
            SideName::Base => shown.base,
            SideName::Head => shown.head,
        });
        Some(shown.map_or(measured, |typical| measured.around(typical)))
    }
}

/// The latencies that a comparison shows, by benchmark.
pub(super) fn shown_latencies(comparison: &Comparison) -> HashMap<String, Typical> {
    let latencies = comparison.rows.iter().filter(|row| {
        row.estimate.is_some()
            && row.metric.as_ref().is_some_and(|metric| metric.name == Metric::LATENCY.name)
    });
    latencies.map(|row| (row.benchmark.to_string(), row.typical)).collect()
}

fn latency_samples(process: &ProcessRecord) -> Option<&[f64]> {
    process.samples.get(Metric::LATENCY.name.as_ref())
}
