//! `comparison.json`, version 1. Frozen: see the rule in [`crate::record`] before touching a field.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::{
    Estimate, Floor, Interval, Lint, Metric, RunSummary, SideName, SideStats, Typical, Verdict, Verification,
    WaiverUse,
};

use super::{ComparisonSchema, Number, RecordError, schema};

/// The answer about two runs, row by row.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ComparisonFile {
    pub schema: ComparisonSchema,
    /// The version of benchgate that wrote the file.
    pub benchgate: String,
    pub suite: Option<String>,
    pub verdict: Verdict,
    pub exit_code: u8,
    /// The verdict in one sentence.
    pub headline: String,
    pub base: RunSummary,
    pub head: RunSummary,
    /// The rows in the order of the head run, then those that only base has.
    pub rows: Vec<RowRecord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub geomeans: Vec<GeomeanRecord>,
    pub policy: PolicyRecord,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lints: Vec<Lint>,
    /// Assumptions the reader should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl ComparisonFile {
    /// Reads `comparison.json`.
    pub fn from_slice(bytes: &[u8]) -> Result<Self, RecordError> {
        schema::read(bytes, &ComparisonSchema::FORMAT, |_| Ok(()))
    }

    /// Returns the file's bytes. Equal values give equal bytes.
    pub fn to_json(&self) -> Vec<u8> {
        schema::indented_into(Vec::with_capacity(HEAD_BYTES + self.rows.len() * ROW_BYTES), self)
    }
}

/// Sizes of the part before the rows, and of one row of a foreign file, both rounded up. A buffer with this
/// capacity is not copied as the text grows.
const HEAD_BYTES: usize = 8 * 1024;
const ROW_BYTES: usize = 1600;

/// One benchmark × metric.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RowRecord {
    pub benchmark: String,
    /// Absent if the row is about the benchmark as a whole.
    pub metric: Option<Metric>,
    pub target: Option<String>,
    pub verdict: Verdict,
    pub reason: ReasonRecord,
    /// True if this row counts towards the whole verdict.
    pub fatal: bool,
    pub estimate: Option<Estimate>,
    pub base: Option<SideStats>,
    pub head: Option<SideStats>,
    /// The values that reports show; head/base is the estimate's ratio.
    pub typical: Option<Typical>,
    /// The floor that applied: a change must exceed both parts.
    pub floor: Option<Floor>,
    /// The tolerance that applied, as a fraction of base.
    pub tolerance: Option<Number>,
    pub base_verification: Option<Verification>,
    pub head_verification: Option<Verification>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lints: Vec<Lint>,
    pub waiver: Option<WaiverUse>,
}

/// Why a row has its verdict.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReasonRecord {
    pub code: ReasonCode,
    /// In words.
    pub text: String,
    /// Text of a tool or a file, not of benchgate.
    pub detail: Option<String>,
    /// The side that the reason is about, if it concerns only one side.
    pub side: Option<SideName>,
    /// The part of a noisy value that moved, or may have moved.
    pub moved: Option<MovedCode>,
}

/// The ways in which a noisy value can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MovedCode {
    /// The time that most repetitions take.
    Typical,
    /// The number of slow processes.
    Stability,
    /// The number and the length of stalls of repetitions.
    Tail,
}

/// The reasons a row can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReasonCode {
    BeyondFloor,
    BelowFloor,
    WithinTolerance,
    Open,
    Identical,
    Stability,
    Exact,
    OnlyOn,
    MetricOnlyOn,
    FailsAtHead,
    FailsAtBase,
    FailsOnBoth,
    NotMeasured,
    WrongOutput,
    WrongOutputOnBase,
    Unusable,
    TooLittle,
    UnitMismatch,
}

/// Geometric mean of head/base over rows of one target and metric.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GeomeanRecord {
    pub target: Option<String>,
    pub metric: String,
    pub ratio: Number,
    pub interval: Option<Interval>,
    pub rows: u32,
}

/// The policy that the verdict is based on. Floors and tolerances are in the rows that they applied to.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyRecord {
    /// Family-wise error of the fatal rows.
    pub alpha: Number,
    /// `auto`, `welch` or `mann-whitney`.
    pub test: String,
    /// Verdicts that make the exit code non-zero.
    pub fail_on: Vec<Verdict>,
    pub between_cv: Option<Number>,
}
