//! Parts of a policy, in the form in which files hold them, and the amount of information in a report.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{Benchmark, Metric, Number, Outcome, Stage, VerifyCode, number};

/// The smallest slowdown that fails.
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

/// How one metric is judged.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricPolicy {
    pub floor: Floor,
    /// Largest change that a pass may hide, as a fraction of base.
    pub tolerance: f64,
    /// Whether a regression of this metric fails the gate.
    pub fatal: bool,
}

impl MetricPolicy {
    /// For metrics the policy doesn't name: judged like a time, reported, never fatal.
    pub const UNNAMED: Self =
        Self { floor: Floor { relative: 0.01, absolute: 0.0 }, tolerance: 0.03, fatal: false };

    /// For a metric that the policy doesn't name.
    pub fn unnamed(metric: &Metric) -> Self {
        let of_code = Metric::OF_CODE.contains(metric).then(|| metric.default_policy());
        of_code.flatten().unwrap_or(Self::UNNAMED)
    }
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
    /// Longest validity of a waiver from today on: a waiver that outlives its reason hides later regressions.
    pub const LONGEST_DAYS: i64 = 366;
}

words! {
    /// How a benchmark fails.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum FailureKind: "kind of failure" {
        /// It does not become a module.
        Compile = "compile-failure",
        /// The module does not run.
        Run = "run-failure",
        /// Its outputs are not those of the reference.
        Divergence = "divergence",
    }
}

impl FailureKind {
    /// How a benchmark of one side failed, if it did.
    pub fn of(benchmark: &Benchmark) -> Option<Self> {
        match &benchmark.outcome {
            Outcome::Failed { stage: Stage::Export | Stage::Compile, .. } => Some(Self::Compile),
            Outcome::Failed { stage: Stage::Verify | Stage::Benchmark, .. } => Some(Self::Run),
            Outcome::Ok => match benchmark.verification.as_ref()?.supported_code() {
                VerifyCode::Fail => Some(Self::Divergence),
                VerifyCode::ExceptionRaised => Some(Self::Run),
                _ => None,
            },
            // A failed installation of the tools says nothing about the benchmark.
            Outcome::Failed { stage: Stage::Toolchain, .. }
            | Outcome::Unsupported { .. }
            | Outcome::Skipped { .. } => None,
        }
    }
}

/// A benchmark that is known to fail. One that works is an error, so that no expectation outlives its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ExpectationRecord")]
pub struct Expectation {
    /// Glob over benchmark names.
    pub benchmark: String,
    /// The kinds of failure.
    pub failure: Vec<FailureKind>,
    pub reason: String,
    /// The change that is judged removes it: its benchmark has to work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
}

words! {
    /// Values that reports may show outside of the measuring machine.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum Disclose: "disclosure" {
        /// Everything that was measured.
        #[default]
        All = "all",
        /// Changes, and no absolute times, sizes or counts: numbers may be private.
        Ratios = "ratios",
    }
}
