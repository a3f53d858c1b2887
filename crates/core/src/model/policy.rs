//! Parts of a policy, in the form in which files hold them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{Number, number};

/// The smallest change worth a red.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "FloorRecord")]
pub struct Floor {
    /// As a fraction of base.
    #[serde(with = "number")]
    #[schemars(with = "Number")]
    pub relative: f64,
    /// In the metric's unit.
    #[serde(with = "number")]
    #[schemars(with = "Number")]
    pub absolute: f64,
}

/// An exception by benchmark.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "OverrideRecord")]
pub struct Override {
    /// Glob over benchmark names.
    pub benchmark: String,
    pub metric: Option<String>,
    #[serde(default, with = "number::optional")]
    #[schemars(with = "Option<Number>")]
    pub floor_relative: Option<f64>,
    #[serde(default, with = "number::optional")]
    #[schemars(with = "Option<Number>")]
    pub floor_absolute: Option<f64>,
    #[serde(default, with = "number::optional")]
    #[schemars(with = "Option<Number>")]
    pub tolerance: Option<f64>,
    pub fatal: Option<bool>,
    #[serde(default, with = "number::optional")]
    #[schemars(with = "Option<Number>")]
    pub between_cv: Option<f64>,
}

/// A reviewed exception with an expiry.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "GateWaiverRecord")]
pub struct Waiver {
    /// Glob over benchmark names.
    pub benchmark: String,
    pub metric: Option<String>,
    pub owner: String,
    pub reason: String,
    /// Last day it holds, `YYYY-MM-DD`.
    pub expires: String,
}

impl Waiver {
    /// Longest time that one may hold from today on: one that outlives its reason hides what comes after it.
    pub const LONGEST_DAYS: i64 = 366;
}
