//! The policy: floors, tolerances, error budget, fatality, waivers.

use benchgate_core::model::{Metric, Verdict};

use benchgate_stats::spending::Looks;

pub use benchgate_core::model::{Expectation, FailureKind, Floor, MetricPolicy, Override, Waiver};
pub use benchgate_core::numerics::NumericsTolerance;

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

impl Default for Policy {
    fn default() -> Self {
        let judged =
            Metric::BUILT_IN.into_iter().map(|metric| (metric.default_policy(), metric.name.into_owned()));
        let mut metrics: Vec<_> = judged.filter_map(|(policy, name)| Some((name, policy?))).collect();
        // Stored policies name it last.
        metrics.sort_by_key(|(name, _)| *name == Metric::PEAK_HOST_MEMORY.name);
        Self {
            metrics,
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
