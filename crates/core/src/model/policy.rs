//! The policy: floors, tolerances, error budget, fatality and waivers. [`Policy`] is also its stored form.
//! [`Disclose`] limits what a report may show.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{Benchmark, Better, Metric, Number, Outcome, Stage, Verdict, VerifyCode, number};

/// The smallest slowdown that fails.
#[serde_with::apply(f64 => #[serde(with = "number")] #[schemars(with = "Number")])]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "FloorRecord")]
pub struct Floor {
    /// A fraction of base.
    pub relative: f64,
    /// In the metric's unit.
    pub absolute: f64,
}

/// The rules by which one metric is judged.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricPolicy {
    pub floor: Floor,
    /// Largest change that a pass may hide, as a fraction of base.
    pub tolerance: f64,
    /// True if a regression of this metric fails the gate.
    pub fatal: bool,
    /// Which direction of another tool's metric is better.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub better: Option<Better>,
}

impl MetricPolicy {
    /// The default for a metric that the policy doesn't name: judged like a time, reported, never fatal.
    pub const UNNAMED: Self =
        Self { floor: Floor { relative: 0.01, absolute: 0.0 }, tolerance: 0.03, fatal: false, better: None };

    /// Returns the policy for a metric that is not named.
    pub fn unnamed(metric: &Metric) -> Self {
        let of_code = Metric::OF_CODE.contains(metric).then(|| metric.default_policy());
        of_code.flatten().unwrap_or(Self::UNNAMED)
    }
}

/// An exception by benchmark.
#[serde_with::apply(
    Option<f64> => #[serde(default, with = "number::optional")] #[schemars(with = "Option<Number>")],
)]
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "OverrideRecord")]
pub struct Override {
    /// Glob over benchmark names.
    pub benchmark: String,
    pub metric: Option<String>,
    pub floor_relative: Option<f64>,
    pub floor_absolute: Option<f64>,
    pub tolerance: Option<f64>,
    pub fatal: Option<bool>,
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
    /// Maximum validity of a waiver in days, counted from today: a waiver that outlives its reason hides
    /// later regressions.
    pub const LONGEST_DAYS: i64 = 366;
}

/// An absolute limit of one metric, next to the comparison with base.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "LimitRecord")]
pub struct Limit {
    /// Glob over benchmark names.
    pub benchmark: String,
    pub metric: String,
    /// Largest value, in the metric's unit.
    #[serde(default, with = "number::optional")]
    #[schemars(with = "Option<Number>")]
    pub max: Option<f64>,
    /// Smallest value, in the metric's unit.
    #[serde(default, with = "number::optional")]
    #[schemars(with = "Option<Number>")]
    pub min: Option<f64>,
    /// Glob over the facts of the machine, such as the name of its processor; it holds on every machine without it.
    pub testbed: Option<String>,
    pub owner: Option<String>,
}

words! {
    /// The way in which a benchmark fails.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum FailureKind: "kind of failure" {
        /// The model is not compiled to a module.
        Compile = "compile-failure",
        /// The module does not run.
        Run = "run-failure",
        /// The module's outputs differ from those of the reference.
        Divergence = "divergence",
    }
}

impl FailureKind {
    /// Returns the way in which a benchmark failed on one side, if it did.
    pub fn of(benchmark: &Benchmark) -> Option<Self> {
        match &benchmark.outcome {
            Outcome::Failed { stage: Stage::Export | Stage::Compile, .. } => Some(Self::Compile),
            Outcome::Failed { stage: Stage::Verify | Stage::Benchmark, .. } => Some(Self::Run),
            Outcome::Ok => match benchmark.verification.as_ref()?.supported_code() {
                VerifyCode::Fail => Some(Self::Divergence),
                VerifyCode::ExceptionRaised => Some(Self::Run),
                _ => None,
            },
            // A failure to install the tools is not a failure of the benchmark.
            Outcome::Failed { stage: Stage::Toolchain, .. }
            | Outcome::Unsupported { .. }
            | Outcome::Skipped { .. } => None,
        }
    }
}

/// A benchmark that is known to fail. If it works, that is an error, so that no expectation outlives its
/// reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ExpectationRecord")]
pub struct Expectation {
    /// Glob over benchmark names.
    pub benchmark: String,
    /// The kinds of failure.
    pub failure: Vec<FailureKind>,
    pub reason: String,
    /// The judged change removes this expectation, so the benchmark has to work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
}

words! {
    /// Values that reports may show outside the measuring machine.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum Disclose: "disclosure" {
        /// Everything that was measured.
        #[default]
        All = "all",
        /// Only changes, without absolute times, sizes or counts, which may be private.
        Ratios = "ratios",
    }
}

/// The verdicts that make the exit code non-zero.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailOn(pub Vec<Verdict>);

impl FailOn {
    /// The verdicts that can fail a job; by default all of them do.
    pub const POSSIBLE: [Verdict; 5] =
        [Verdict::Regressed, Verdict::Diverged, Verdict::Error, Verdict::Missing, Verdict::Inconclusive];
}

impl Default for FailOn {
    fn default() -> Self {
        Self(Self::POSSIBLE.to_vec())
    }
}

words! {
    /// Statistical test for the verdict.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum TestKind: "test" {
        /// benchgate's test: paired if blocks pair up, hierarchical otherwise.
        #[default]
        Auto = "auto",
        /// Welch's t on the pooled samples, as classical tools do.
        Welch = "welch",
        /// Mann-Whitney's U on the pooled samples, as google/benchmark's compare.py does.
        MannWhitney = "mann-whitney",
    }
}

words! {
    /// The treatment of outputs that differ from base's after head's model changed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum ChangedReference: "value of `changed-reference`" {
        /// The row is `diverged`.
        #[default]
        Fail = "fail",
        /// The row gets a finding, for suites whose models may change what they compute.
        Note = "note",
    }
}

impl ChangedReference {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The limits of measuring while a row is undecided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SequentialPolicy {
    /// Blocks (two pairs of processes) before the first look.
    pub min_blocks: u32,
    /// Blocks after which an open row is inconclusive.
    pub max_blocks: u32,
}

impl Default for SequentialPolicy {
    fn default() -> Self {
        Self { min_blocks: 12, max_blocks: 24 }
    }
}

/// Judges the run if no other policy is given, so that judging it later gives the same verdict. Published
/// verdicts never use it, but the base's configuration.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "GateRecord")]
pub struct Policy {
    /// Family-wise error of the fatal rows.
    #[serde(with = "number")]
    #[schemars(with = "Number")]
    pub alpha: f64,
    /// `auto`, `welch` or `mann-whitney`.
    #[schemars(with = "String")]
    pub test: TestKind,
    /// Verdicts that make the exit code non-zero.
    #[schemars(with = "Vec<Verdict>")]
    pub fail_on: FailOn,
    #[serde(default, with = "number::optional")]
    #[schemars(with = "Option<Number>")]
    pub between_cv: Option<f64>,
    /// `note` where outputs that changed with their model don't fail.
    #[serde(default, skip_serializing_if = "ChangedReference::is_default")]
    #[schemars(with = "Option<String>")]
    pub changed_reference: ChangedReference,
    #[serde(with = "by_name")]
    #[schemars(with = "Vec<GateMetricRecord>")]
    pub metrics: Vec<(String, MetricPolicy)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<Override>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waivers: Vec<Waiver>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expectations: Vec<Expectation>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<Limit>,
    // These limits are stored with the design of the measurement and not with the policy.
    #[serde(skip)]
    pub sequential: SequentialPolicy,
}

impl Policy {
    /// Returns the policy for a metric that decides in place of a time: a change of the same relative size
    /// matters.
    pub fn like_a_time(&self) -> MetricPolicy {
        let latency = self.metrics.iter().find(|(name, _)| *name == Metric::LATENCY.name);
        let rule = latency.map_or(MetricPolicy::UNNAMED, |(_, rule)| rule.clone());
        let floor = Floor { absolute: 0.0, ..rule.floor };
        MetricPolicy { floor, tolerance: rule.tolerance, fatal: true, better: None }
    }

    /// Returns the part of the policy that a file stores as its policy.
    pub fn stored(&self) -> Self {
        Self { sequential: SequentialPolicy::default(), ..self.clone() }
    }
}

impl Default for Policy {
    fn default() -> Self {
        let judged =
            Metric::BUILT_IN.into_iter().map(|metric| (metric.default_policy(), metric.name.into_owned()));
        let mut metrics: Vec<_> = judged.filter_map(|(policy, name)| Some((name, policy?))).collect();
        // Policies in stored files list it last.
        metrics.sort_by_key(|(name, _)| *name == Metric::PEAK_HOST_MEMORY.name);
        Self {
            metrics,
            overrides: Vec::new(),
            waivers: Vec::new(),
            expectations: Vec::new(),
            limits: Vec::new(),
            alpha: 0.01,
            sequential: SequentialPolicy::default(),
            fail_on: FailOn::default(),
            test: TestKind::Auto,
            between_cv: None,
            changed_reference: ChangedReference::Fail,
        }
    }
}

/// The rules by which one metric is judged.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GateMetricRecord {
    name: String,
    floor: Floor,
    /// A fraction of base.
    tolerance: Number,
    fatal: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    better: Option<Better>,
}

/// Serialization of metrics as a list in which each entry states its name.
mod by_name {
    use super::{Deserialize, GateMetricRecord, MetricPolicy, Number, Serialize};

    type Metrics = Vec<(String, MetricPolicy)>;

    pub(super) fn serialize<S: serde::Serializer>(
        metrics: &Metrics,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let record = |(name, policy): &(String, MetricPolicy)| GateMetricRecord {
            name: name.clone(),
            floor: policy.floor,
            tolerance: Number(policy.tolerance),
            fatal: policy.fatal,
            better: policy.better,
        };
        metrics.iter().map(record).collect::<Vec<_>>().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Metrics, D::Error> {
        let records = Vec::<GateMetricRecord>::deserialize(deserializer)?.into_iter();
        let policy = |GateMetricRecord { name, floor, tolerance, fatal, better }| {
            (name, MetricPolicy { floor, tolerance: tolerance.0, fatal, better })
        };
        Ok(records.map(policy).collect())
    }
}
