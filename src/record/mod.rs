//! L1: the stored formats and their versions: frozen serde structs and migrations.
//!
//! A field that is written once stays readable for ever. Within a version nothing is added, renamed or
//! given another meaning; what must change gets a new version next to the old one and a migration.
//! Readers know every field of their version and refuse others: a file that says something this
//! program does not understand must not be judged by it.
//!
//! Leaf types of the model (lints, metrics, testbeds, verifications …) are their own stored form in version 1. The
//! schemas and golden files guard them; one whose shape has to differ in a version 2 gets a mirror here.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod backend_v1;
mod baseline_convert;
mod baseline_v1;
mod bisection_v1;
mod bundle_v1;
mod check;
mod comparison_v1;
mod convert;
mod error;
mod gate_v1;
mod lines;
mod parquet;
mod plan_v1;
mod profile_v1;
mod run_v1;
mod samples;
mod schema;
mod telemetry_v1;
#[cfg(test)]
mod tests;
mod weight;

/// Bytes of a result, benchgate's or another tool's. 5,000 benchmarks with every sample take a tenth of it.
pub const MOST_RESULT_BYTES: u64 = 512 << 20;

pub use crate::model::Number;
pub use backend_v1::{
    BackendProcessRecord, BackendRecord, CollectedRecord, MemoryRecord, OperatorTimesRecord,
    ProfiledTimesRecord,
};
pub use baseline_v1::{
    AcceptanceFile, AnchoredRecord, BaselineBenchmark, BaselineFile, BaselineProcess, QuarantineCause,
    QuarantineRecord, SummaryRecord,
};
pub use bisection_v1::{
    BisectionFile, BisectionResult, CandidateRecord, ObservationRecord, PartKind, PartRecord, ProbeRecord,
};
pub use bundle_v1::{
    BundleFile, BundleOrigin, BundledBenchmark, BundledFile, BundledInput, BundledModule, BundledParameters,
    BundledSide, ReferenceProblem, is_plain_path,
};
pub use comparison_v1::{
    ComparisonFile, EstimateRecord, FloorRecord, GeomeanRecord, IntervalRecord, MethodCode, PolicyRecord,
    ReasonCode, ReasonRecord, RowRecord, RunSummaryRecord, SideStatsRecord, TypicalRecord, WaiverRecord,
};
pub use error::RecordError;
pub use gate_v1::{GateMetricRecord, GateRecord, GateWaiverRecord, OverrideRecord};
pub use plan_v1::{
    MergedShardRecord, PlanFile, PlannedBenchmarkRecord, PlannedShardRecord, PlannedSideRecord, ShardRecord,
};
pub use profile_v1::{KernelRecord, ProfileRecord};
pub use run_v1::{
    ArtifactRecord, BenchmarkRecord, CalibrationRecord, Design, MeasureRecord, OutcomeRecord, OutcomeStatus,
    ProcessRecord, RunFile, SideRecord, SpreadRecord, StageRecord, StageStatus, TimingRecord, ValueRecord,
};
pub use samples::SampleMap;
pub use schema::{
    AcceptanceSchema, BaselineSchema, BisectionSchema, BundleSchema, ComparisonSchema, PlanSchema, RunSchema,
    acceptance_json_schema, baseline_json_schema, bisection_json_schema, bundle_json_schema,
    comparison_json_schema, plan_json_schema, run_json_schema,
};
pub use telemetry_v1::{CpuTelemetryRecord, ForeignRecord, GpuTelemetryRecord, RangeRecord, TelemetryRecord};
