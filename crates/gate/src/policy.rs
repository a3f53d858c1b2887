//! The policy: floors, tolerances, error budget, fatality, waivers.

use serde::Serialize;

use benchgate_core::model::{Metric, Verdict};

use benchgate_stats::spending::Looks;

pub use benchgate_core::model::{Expectation, FailureKind, Floor, Override, Waiver};
pub use benchgate_core::numerics::NumericsTolerance;

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

    /// For a metric that the policy doesn't name. Facts about generated code that cost every program time decide: registers
    /// that are newly spilled, fewer waves, matrix instructions that are gone. Counts of registers alone change with
    /// every compiler and mean little.
    pub fn unnamed(metric: &Metric) -> Self {
        let relative = match metric {
            metric
                if [Metric::SPILLED_REGISTERS, Metric::SPILLED_SCALAR_REGISTERS, Metric::SCRATCH]
                    .contains(metric) =>
            {
                0.10
            }
            metric if *metric == Metric::OCCUPANCY => 0.0,
            // Half as many can do the same work if each is twice as wide.
            metric if *metric == Metric::MATRIX_INSTRUCTIONS => 0.99,
            _ => return Self::UNNAMED,
        };
        Self { floor: Floor { relative, absolute: 0.0 }, tolerance: relative, fatal: true }
    }
}

/// The verdicts that make the exit code non-zero.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// Statistical test for the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TestKind {
    /// benchgate's test: paired if blocks pair up, hierarchical otherwise.
    #[default]
    Auto,
    /// Welch's t on the pooled samples, as classical tools do.
    Welch,
    /// Mann-Whitney's U on the pooled samples, as google/benchmark's compare.py does.
    MannWhitney,
}

impl TestKind {
    pub const ALL: [Self; 3] = [Self::Auto, Self::Welch, Self::MannWhitney];

    /// The word in configurations and files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Welch => "welch",
            Self::MannWhitney => "mann-whitney",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// How measuring continues while the answer is open.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SequentialPolicy {
    /// Blocks (two pairs of processes) before the first look.
    pub min_blocks: u32,
    /// Blocks after which an open row is inconclusive.
    pub max_blocks: u32,
}

/// Everything a verdict depends on in addition to the two runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// By metric name; a metric that is not named is reported and never fatal.
    pub metrics: Vec<(String, MetricPolicy)>,
    pub overrides: Vec<Override>,
    pub waivers: Vec<Waiver>,
    pub expectations: Vec<Expectation>,
    /// Family-wise error of the suite's fatal rows.
    pub alpha: f64,
    pub sequential: SequentialPolicy,
    pub fail_on: FailOn,
    pub test: TestKind,
    /// Declared standard deviation between processes where neither data nor calibration has one.
    pub between_cv: Option<f64>,
    /// The treatment of outputs that moved away from base's after the model or its reference changed.
    pub changed_reference: ChangedReference,
}

/// Pairs of compilations before which nothing is decided: fewer can't fail a row at the level of a small suite.
const LEAST_COMPILE_PAIRS: u32 = 12;

impl Policy {
    /// After how many blocks rows are judged. Of compile time, a block is one pair of compilations.
    pub fn looks(&self, metric: &Metric) -> Looks {
        let SequentialPolicy { min_blocks, max_blocks } = self.sequential;
        let least = if metric.is_compile_time() { LEAST_COMPILE_PAIRS } else { 0 };
        Looks::new(min_blocks.max(least), max_blocks)
    }
}

/// The treatment of outputs that differ from base's after head's model changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChangedReference {
    /// The row has diverged.
    #[default]
    Fail,
    /// A finding: the suite's models may change what they compute.
    Note,
}

impl ChangedReference {
    pub const ALL: [Self; 2] = [Self::Fail, Self::Note];

    /// The word in configurations and files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Note => "note",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == word)
    }
}

/// In the unit of times.
const HALF_A_SECOND: f64 = 5e8;

impl Default for Policy {
    fn default() -> Self {
        let reported = |relative, tolerance| MetricPolicy {
            floor: Floor { relative, absolute: 0.0 },
            tolerance,
            fatal: false,
        };
        Self {
            metrics: vec![
                (Metric::LATENCY.name.into_owned(), MetricPolicy { fatal: true, ..MetricPolicy::UNNAMED }),
                // Taken once, while other compilers share the processors: it varies by tens of percent, and a slow
                // compile harms no user of the compiled model. Reported if it is far beyond that, and not fatal by
                // default.
                (
                    Metric::COMPILE_TIME.name.into_owned(),
                    MetricPolicy {
                        floor: Floor { relative: 0.25, absolute: HALF_A_SECOND },
                        tolerance: 0.50,
                        fatal: false,
                    },
                ),
                (Metric::VMFB_SIZE.name.into_owned(), reported(0.01, 0.01)),
                (Metric::DISPATCH_COUNT.name.into_owned(), reported(0.0, 0.0)),
                (Metric::PEAK_DEVICE_MEMORY.name.into_owned(), reported(0.01, 0.01)),
                (Metric::PEAK_HOST_MEMORY.name.into_owned(), reported(0.05, 0.10)),
            ],
            overrides: Vec::new(),
            waivers: Vec::new(),
            expectations: Vec::new(),
            alpha: 0.01,
            sequential: SequentialPolicy { min_blocks: 12, max_blocks: 24 },
            fail_on: FailOn::default(),
            test: TestKind::Auto,
            between_cv: None,
            changed_reference: ChangedReference::Fail,
        }
    }
}
