//! The facts that a comparison states about a row, in the form that `comparison.json` stores.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{Context, Number, Testbed, Toolchain, number};

/// A two-sided interval for the ratio.
#[serde_with::apply(f64 => #[serde(with = "number")] #[schemars(with = "Number")])]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "IntervalRecord")]
pub struct Interval {
    pub low: f64,
    pub high: f64,
    /// Confidence after every correction.
    pub level: f64,
}

/// The method behind an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "MethodCode")]
pub enum Method {
    // Blocks of pairs. (The comments of this enum have two slashes: a doc comment would change the schema of
    // version 1.)
    Paired,
    // Independent processes of two files.
    Unpaired,
    // Only the mean, the standard deviation and n were known.
    Summaries,
    // Deterministic values.
    Exact,
    // `--test welch`.
    Welch,
    // `--test mann-whitney`.
    MannWhitney,
    // Everything that is executed is identical, so there is nothing to compare.
    Identical,
    // One session against the stored sessions of a baseline.
    History,
}

/// The ratio head/base and its uncertainty.
#[serde_with::apply(
    f64 => #[serde(with = "number")] #[schemars(with = "Number")],
    Option<f64> => #[serde(default, with = "number::optional")] #[schemars(with = "Option<Number>")],
)]
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "EstimateRecord")]
pub struct Estimate {
    pub method: Method,
    /// head / base.
    pub ratio: f64,
    pub interval: Option<Interval>,
    /// One-sided p against the floor, before correction.
    pub p_worse: Option<f64>,
    /// `p_worse` after the error budget is spent over looks and rows.
    pub p_adjusted: Option<f64>,
    /// `p_worse` after the correction by Benjamini and Hochberg: for ordering a listing, never for the verdict.
    pub q_value: Option<f64>,
    /// One-sided p of "head is not slow more often than base", before correction.
    pub p_stability: Option<f64>,
    /// One-sided p of "head's repetitions don't stall more than base's", before correction.
    pub p_tail: Option<f64>,
    pub blocks: u32,
    /// The smallest change, as a fraction, that the row could have detected with 90 % power.
    pub minimum_detectable: Option<f64>,
    /// Sessions of the side that has fewer, if the sides were measured separately.
    pub sessions: Option<u32>,
    /// Two-sided p of "the repetitions of the two runs do not differ"; runs of equal programs may differ too.
    pub p_runs: Option<f64>,
}

impl Estimate {
    /// Creates a ratio without further statistics.
    pub fn unjudged(method: Method, ratio: f64) -> Self {
        Self {
            method,
            ratio,
            interval: None,
            p_worse: None,
            p_adjusted: None,
            q_value: None,
            p_stability: None,
            p_tail: None,
            blocks: 0,
            minimum_detectable: None,
            sessions: None,
            p_runs: None,
        }
    }
}

/// The typical value of each side, in the metric's unit.
// If the row has an effect, it is exactly head / base of these two values.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TypicalRecord")]
pub struct Typical {
    #[serde(default, with = "number::optional")]
    #[schemars(with = "Option<Number>")]
    pub base: Option<f64>,
    #[serde(default, with = "number::optional")]
    #[schemars(with = "Option<Number>")]
    pub head: Option<f64>,
}

impl Typical {
    /// Neither value may be shown.
    pub const WITHHELD: Self = Self { base: None, head: None };
}

/// Plain description of one side of a row, in the metric's unit.
#[serde_with::apply(
    f64 => #[serde(with = "number")] #[schemars(with = "Number")],
    Option<f64> => #[serde(default, with = "number::optional")] #[schemars(with = "Option<Number>")],
)]
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SideStatsRecord")]
pub struct SideStats {
    pub processes: u32,
    // Number of repetitions in all processes.
    pub samples: u64,
    /// Median over processes of each process's location.
    pub location: f64,
    pub mean: f64,
    // The sample standard deviation of all repetitions.
    pub stddev: Option<f64>,
    // stddev / mean.
    pub cv: Option<f64>,
    pub min: f64,
    pub max: f64,
}

/// A waiver that matched the row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "WaiverRecord")]
pub struct WaiverUse {
    pub owner: String,
    pub reason: String,
    pub expires: String,
    /// True if it has expired, and so had no effect.
    pub expired: bool,
}

/// Facts about one of the two runs.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RunSummaryRecord")]
pub struct RunSummary {
    /// The reader's name for it: a path, or `-`.
    pub label: String,
    pub format: String,
    pub commit: Option<String>,
    pub toolchain: Option<Toolchain>,
    pub testbed: Option<Testbed>,
    pub context: Context,
    pub benchmarks: u32,
}
