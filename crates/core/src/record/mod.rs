//! Level 1: the stored formats and their versions, as frozen serde structs with migrations.
//!
//! A field that was written once stays readable forever. Within a version nothing is renamed or given another
//! meaning, and only optional fields and values of enums are added; any other change needs a new version next to
//! the old one, and a migration. Readers know every field of their version and reject others: a program must
//! not judge a file with content that it does not understand.
//!
//! In version 1, leaf types of the model (lints, metrics, testbeds, verifications …) are their own stored
//! form. The schemas and golden files guard them; a type that needs another shape in version 2 gets a separate
//! record type here.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod baseline_v1;
mod benchmark_v1;
mod bisection_v1;
mod bundle_v1;
mod comparison_v1;
mod convert;
mod parquet;
mod plan_v1;
mod run_check;
mod run_v1;
mod schema;
#[cfg(test)]
mod tests;

/// Maximum size of a result in bytes, whether benchgate or another tool wrote it. 5,000 benchmarks with every
/// sample take a tenth of it.
pub const MOST_RESULT_BYTES: u64 = 512 << 20;

use std::collections::BTreeSet;

use crate::model::{Metric, is_date};

pub use crate::model::Number;
pub use baseline_v1::{
    AcceptanceFile, AnchoredRecord, BaselineBenchmark, BaselineFile, BaselineProcess, QuarantineCause,
    QuarantineRecord, SummaryRecord,
};
pub use benchmark_v1::{
    ArtifactRecord, CpuTelemetryRecord, GpuTelemetryRecord, OutcomeRecord, OutcomeStatus, RangeRecord,
    SampleMap, StageRecord, StageStatus, TelemetryRecord, ValueRecord,
};
pub use bisection_v1::{
    BisectionFile, BisectionResult, CandidateRecord, ObservationRecord, PartKind, PartRecord, ProbeRecord,
};
pub use bundle_v1::{
    BundleFile, BundledBenchmark, BundledCaller, BundledFile, BundledInput, BundledModule, BundledParameters,
    BundledSide, ReferenceProblem, is_plain_path,
};
pub use comparison_v1::{
    ComparisonFile, GeomeanRecord, MovedCode, PolicyRecord, ReasonCode, ReasonRecord, RowRecord,
};
pub use convert::WHEN_STORED;
pub use plan_v1::{PlanFile, PlannedBenchmarkRecord, PlannedShardRecord, PlannedSideRecord};
pub use run_v1::{
    BackendProcessRecord, BackendRecord, BenchmarkRecord, BundleOrigin, CalibrationRecord, CollectedRecord,
    CommandRecord, Design, MeasureRecord, MemoryRecord, MergedShardRecord, OperatorTimesRecord,
    ProcessRecord, ProfiledTimesRecord, RunFile, ShardRecord, SideRecord, SpreadRecord, TimingRecord,
};
pub use schema::{
    AcceptanceSchema, BaselineSchema, BisectionSchema, BundleSchema, ComparisonSchema, PlanSchema, RunSchema,
    json_schema_of,
};

/// The reason why bytes are not a usable record. Each message is a fragment that fits "failed to read PATH:
/// …".
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The bytes end before the document does.
    #[error("line {line}, column {column}: the file ends in the middle; it is truncated")]
    Truncated { line: usize, column: usize },
    /// The bytes are not JSON.
    #[error("line {line}, column {column}: not JSON: {what}")]
    Syntax { line: usize, column: usize, what: String },
    /// The JSON does not have the record's shape.
    #[error("line {line}, column {column}: {what}")]
    Shape { line: usize, column: usize, what: String },
    /// The record has a version that this program does not know.
    #[error("the file has schema {found:?} and this benchgate reads {known:?}; {need}")]
    Version { found: String, known: &'static str, need: String },
    /// The shape is right, but the content contradicts itself. `at` is the path inside the document.
    #[error("{at}: {what}")]
    Inconsistent { at: String, what: String },
    /// A Parquet file is damaged, has another shape, or contradicts itself.
    #[error("not a usable Parquet file: {0}")]
    Parquet(String),
    /// The records would take several times the file's size in memory.
    #[error(
        "it has too many small records for a file of {mebibytes} MiB: reading them would take several times as much memory"
    )]
    TooDense { mebibytes: usize },
}

/// Returns the error for a contradiction at this path inside the document.
fn wrong(at: impl Into<String>, what: impl Into<String>) -> RecordError {
    RecordError::Inconsistent { at: at.into(), what: what.into() }
}

impl RecordError {
    /// Returns line and column, counted from 1, if the error has a position.
    pub fn place(&self) -> Option<(usize, usize)> {
        match *self {
            Self::Truncated { line, column }
            | Self::Syntax { line, column, .. }
            | Self::Shape { line, column, .. } => Some((line, column)),
            Self::Version { .. } | Self::Inconsistent { .. } | Self::Parquet(_) | Self::TooDense { .. } => {
                None
            }
        }
    }

    fn from_json(error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        // The position has its own field, but serde_json repeats it at the end of its message.
        let text = error.to_string();
        let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what).to_owned();
        match error.classify() {
            serde_json::error::Category::Eof => Self::Truncated { line, column },
            serde_json::error::Category::Syntax | serde_json::error::Category::Io => {
                Self::Syntax { line, column, what }
            }
            serde_json::error::Category::Data => Self::Shape { line, column, what },
        }
    }
}

/// Returns the names of the metrics that a file describes. A file that calls latency a throughput would turn
/// a regression into an improvement, so a built-in metric must be described correctly.
fn described(metrics: &[Metric]) -> Result<BTreeSet<&str>, RecordError> {
    let mut names = BTreeSet::new();
    for metric in metrics {
        if !names.insert(metric.name.as_ref()) {
            return Err(wrong("metrics", format!("{:?} is described twice", metric.name)));
        }
        if let Some(known) = Metric::built_in(&metric.name)
            && known != *metric
        {
            let what = format!(
                "the built-in metric {:?} has the unit {}, but the file describes it differently",
                metric.name, known.unit
            );
            return Err(wrong("metrics", what));
        }
    }
    Ok(names)
}

fn known_metric(at: &str, name: &str, metrics: &BTreeSet<&str>) -> Result<(), RecordError> {
    if metrics.contains(name) {
        Ok(())
    } else {
        Err(wrong(at, format!("{name:?} is not described in metrics")))
    }
}

fn timestamp(at: &str, text: &str) -> Result<jiff::Timestamp, RecordError> {
    text.parse().map_err(|_| wrong(at, format!("expected an RFC 3339 time, found {text:?}")))
}

/// Checks that a clock can have measured this duration.
fn duration(at: &str, Number(seconds): Number) -> Result<(), RecordError> {
    if seconds.is_finite() && seconds >= 0.0 {
        Ok(())
    } else {
        Err(wrong(at, format!("expected a duration, found {seconds} seconds")))
    }
}

fn date(at: &str, text: &str) -> Result<(), RecordError> {
    if is_date(text) { Ok(()) } else { Err(wrong(at, format!("expected a day, YYYY-MM-DD, found {text:?}"))) }
}
