//! `comparison.json`, version 1. Frozen: see the module's rule before touching a field.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::{Context, Floor, Lint, Metric, SideName, Testbed, Toolchain, Verdict, Verification};

use super::{ComparisonSchema, Number, RecordError, schema, write};

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
    pub base: RunSummaryRecord,
    pub head: RunSummaryRecord,
    /// In the order of the head run, then what only base has.
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

    /// The file's bytes: the same value gives the same bytes.
    pub fn to_json(&self) -> Vec<u8> {
        write::indented_into(Vec::with_capacity(HEAD_BYTES + self.rows.len() * ROW_BYTES), self)
    }
}

/// Bytes of a file before its rows, and of a row of a foreign file, rounded up: room that is there from the start isn't
/// copied as the text grows.
const HEAD_BYTES: usize = 8 * 1024;
const ROW_BYTES: usize = 1600;

/// What is known about one of the two runs.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunSummaryRecord {
    /// How the reader named it: a path, or `-`.
    pub label: String,
    pub format: String,
    pub commit: Option<String>,
    pub toolchain: Option<Toolchain>,
    pub testbed: Option<Testbed>,
    pub context: Context,
    pub benchmarks: u32,
}

/// One benchmark × metric.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RowRecord {
    pub benchmark: String,
    /// Absent where the row is about the benchmark as a whole.
    pub metric: Option<Metric>,
    pub target: Option<String>,
    pub verdict: Verdict,
    pub reason: ReasonRecord,
    /// Whether this row counts towards the whole verdict.
    pub fatal: bool,
    pub estimate: Option<EstimateRecord>,
    pub base: Option<SideStatsRecord>,
    pub head: Option<SideStatsRecord>,
    /// The values that reports show; head/base is the estimate's ratio.
    pub typical: Option<TypicalRecord>,
    /// The floor that applied: a change must exceed both parts.
    pub floor: Option<Floor>,
    /// The tolerance that applied, as a fraction of base.
    pub tolerance: Option<Number>,
    pub base_verification: Option<Verification>,
    pub head_verification: Option<Verification>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lints: Vec<Lint>,
    pub waiver: Option<WaiverRecord>,
}

/// Why a row has its verdict.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReasonRecord {
    pub code: ReasonCode,
    /// In words.
    pub text: String,
    /// What a tool or a file said; not benchgate's words.
    pub detail: Option<String>,
    /// The side it is about, where it is about one.
    pub side: Option<SideName>,
    /// What moved, or may have moved, where it is a noisy value.
    pub moved: Option<MovedCode>,
}

/// What a noisy value can change by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MovedCode {
    /// The time that most repetitions take.
    Typical,
    /// How often a process is slow.
    Stability,
    /// How often a repetition stalls, and for how long.
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

/// The ratio head/base and how sure it is.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EstimateRecord {
    pub method: MethodCode,
    /// head / base.
    pub ratio: Number,
    pub interval: Option<IntervalRecord>,
    /// One-sided p against the floor, before correction.
    pub p_worse: Option<Number>,
    /// The same after the error budget is spent over looks and rows.
    pub p_adjusted: Option<Number>,
    /// The same by Benjamini and Hochberg: for ordering a listing, never for the verdict.
    pub q_value: Option<Number>,
    /// One-sided p of "head is not slow more often than base", before correction.
    pub p_stability: Option<Number>,
    /// One-sided p of "head's repetitions don't stall more than base's", before correction.
    pub p_tail: Option<Number>,
    pub blocks: u32,
    /// The smallest change, as a fraction, that the row could have seen with 90 % power.
    pub minimum_detectable: Option<Number>,
    /// Sessions of the side that has fewer, where the sides were measured separately.
    pub sessions: Option<u32>,
    /// Two-sided p of "the repetitions of the two runs do not differ"; the programs need not differ where the runs do.
    pub p_runs: Option<Number>,
}

/// What produced an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MethodCode {
    Paired,
    Unpaired,
    Summaries,
    Exact,
    Welch,
    MannWhitney,
    Identical,
    History,
}

/// A two-sided interval for the ratio.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IntervalRecord {
    pub low: Number,
    pub high: Number,
    /// Confidence after every correction.
    pub level: Number,
}

/// Plain description of one side of a row, in the metric's unit.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SideStatsRecord {
    pub processes: u32,
    pub samples: u64,
    /// Median over processes of each process's location.
    pub location: Number,
    pub mean: Number,
    pub stddev: Option<Number>,
    pub cv: Option<Number>,
    pub min: Number,
    pub max: Number,
}

/// The typical value of each side, in the metric's unit.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TypicalRecord {
    pub base: Option<Number>,
    pub head: Option<Number>,
}

/// A waiver that matched the row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaiverRecord {
    pub owner: String,
    pub reason: String,
    pub expires: String,
    /// Its day has passed, so it changed nothing.
    pub expired: bool,
}

/// Geometric mean of head/base over rows of one target and metric.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GeomeanRecord {
    pub target: Option<String>,
    pub metric: String,
    pub ratio: Number,
    pub interval: Option<IntervalRecord>,
    pub rows: u32,
}

/// The basis of the verdict in addition to the runs. Floors and tolerances are in the rows they applied to.
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
