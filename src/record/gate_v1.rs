//! The policy of the suite that was measured, version 1: what `[gate]` and `[[waiver]]` said when the run was made.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::Verdict;

use super::{FloorRecord, Number};

/// Judges the run where no other policy is given, so that judging in a second step gives the verdict of doing it
/// in one. A published verdict never comes from it: the base's own configuration judges there.
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
    pub overrides: Vec<OverrideRecord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waivers: Vec<GateWaiverRecord>,
}

/// How one metric is judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GateMetricRecord {
    pub name: String,
    pub floor: FloorRecord,
    /// As a fraction of base.
    pub tolerance: Number,
    pub fatal: bool,
}

/// An exception by benchmark.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OverrideRecord {
    /// Glob over benchmark names.
    pub benchmark: String,
    pub metric: Option<String>,
    pub floor_relative: Option<Number>,
    pub floor_absolute: Option<Number>,
    pub tolerance: Option<Number>,
    pub fatal: Option<bool>,
    pub between_cv: Option<Number>,
}

/// A reviewed exception with an expiry.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GateWaiverRecord {
    /// Glob over benchmark names.
    pub benchmark: String,
    pub metric: Option<String>,
    pub owner: String,
    pub reason: String,
    /// Last day it holds, `YYYY-MM-DD`.
    pub expires: String,
}
