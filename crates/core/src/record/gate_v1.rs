//! The policy of the suite that was measured, version 1: what `[gate]` and `[[waiver]]` said when the run was made.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::{Expectation, Floor, Number, Override, Verdict, Waiver};

/// Judges the run if no other policy is given, so that judging in a second step gives the verdict of doing it in one.
/// A published verdict never comes from it: the base's own configuration judges there.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GateRecord {
    /// Family-wise error of the fatal rows.
    pub alpha: Number,
    /// `auto`, `welch` or `mann-whitney`.
    pub test: String,
    /// Verdicts that make the exit code non-zero.
    pub fail_on: Vec<Verdict>,
    pub between_cv: Option<Number>,
    /// `note` where outputs that changed with their model don't fail.
    pub changed_reference: Option<String>,
    pub metrics: Vec<GateMetricRecord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<Override>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waivers: Vec<Waiver>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expectations: Vec<Expectation>,
}

/// How one metric is judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GateMetricRecord {
    pub name: String,
    pub floor: Floor,
    /// As a fraction of base.
    pub tolerance: Number,
    pub fatal: bool,
}
