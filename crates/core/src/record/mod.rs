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
mod error;
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
pub use error::RecordError;
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
