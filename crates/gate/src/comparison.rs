//! The result of comparing two runs, which every renderer reads and none recomputes.

use benchgate_core::exit_code::ExitCode;
use benchgate_core::model::{
    BenchmarkName, FailureKind, Lint, Metric, Outcome, SideName, Stage, Verdict, Verification,
};
pub use benchgate_core::model::{Estimate, Interval, Method, RunSummary, SideStats, Typical, WaiverUse};

use super::evidence::SpreadSource;
use super::{Alignment, LimitReading, MetricPolicy, Policy};

/// The reason for a row's verdict; every renderer words it from this value.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// The whole interval lies beyond the floor, in the bad direction.
    BeyondFloor,
    /// The whole interval lies beyond the floor, in the good direction.
    BelowFloor,
    /// The whole interval lies below the tolerance.
    WithinTolerance,
    /// The interval includes both a pass and a regression.
    Open,
    /// Everything executed is identical on both sides.
    Identical,
    /// The location is unchanged, but head is slow more often or spreads wider.
    Stability,
    /// The location is unchanged, but rare repetitions of head take many times as long, which makes head's
    /// mean worse.
    Tail,
    /// A deterministic value changed (or did not).
    Exact,
    /// The benchmark exists on one side only.
    OnlyOn(SideName),
    /// The metric exists on one side only.
    MetricOnlyOn(SideName),
    /// The benchmark worked at base, but this stage fails at head.
    FailsAtHead { stage: Stage, why: String },
    /// The benchmark failed at base, so there is nothing to compare with.
    FailsAtBase { stage: Stage, why: String },
    /// The benchmark fails on both sides.
    FailsOnBoth { stage: Stage, why: String },
    /// The benchmark fails as the suite expects, for the reason that the suite gives.
    ExpectedFailure { failure: FailureKind, reason: String },
    /// The outputs are right on both sides, and nothing is timed.
    Verified,
    /// The benchmark is declared unsupported, or was skipped, on one side.
    NotMeasured(Outcome),
    /// Head's outputs are wrong.
    WrongOutput,
    /// Base's outputs are wrong too.
    WrongOutputOnBase,
    /// A lint with the consequence `error` or `inconclusive` forbids a verdict.
    Unusable(Lint),
    /// The data do not support a verdict (one sample, no spread, repetitions on a grid).
    TooLittle(TooLittle),
    /// Head's typical value is beyond an absolute limit or, if the row is inconclusive, may be.
    Limit(LimitReading),
    /// The units of the two sides are of different kinds.
    UnitMismatch { base: String, head: String },
}

/// A condition of a verdict that the data do not meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooLittle {
    /// A short text that fits into a table cell.
    pub short: &'static str,
    /// A whole sentence without a capital letter and a full stop; it may quote a tool.
    pub why: String,
}

impl TooLittle {
    pub(crate) fn new(short: &'static str, why: impl Into<String>) -> Self {
        Self { short, why: why.into() }
    }
}

impl Reason {
    pub(crate) fn too_little(short: &'static str, why: impl Into<String>) -> Self {
        Self::TooLittle(TooLittle::new(short, why))
    }

    /// Returns whether something other than the typical time is worse at head, or may be.
    pub fn is_uneven(&self) -> bool {
        matches!(self, Self::Stability | Self::Tail)
    }
}

/// One benchmark × metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub benchmark: BenchmarkName,
    /// `None` if the row is about the benchmark as a whole (missing, failed, diverged).
    pub metric: Option<Metric>,
    pub target: Option<String>,
    pub verdict: Verdict,
    pub reason: Reason,
    /// True if this row counts towards the whole verdict.
    pub fatal: bool,
    pub estimate: Option<Estimate>,
    pub base: Option<SideStats>,
    pub head: Option<SideStats>,
    /// The values that reports show ([`ShownSides`](super::ShownSides)).
    pub typical: Typical,
    /// The floor and tolerance that applied, after overrides.
    pub policy: Option<MetricPolicy>,
    pub base_verification: Option<Verification>,
    pub head_verification: Option<Verification>,
    pub lints: Vec<Lint>,
    pub waiver: Option<WaiverUse>,
    /// Both sides' densities, for a row that decides and has changed or is undecided.
    pub alignment: Option<Alignment>,
    /// Whether nothing in the generated code differs, which [`Row::identical_code`] states.
    pub same_code: bool,
    /// The assumed spread on which the row's interval relies, if its own data does not show the spread.
    pub assumed: Option<AssumedSpread>,
}

impl Row {
    /// Creates a row that counts, about a benchmark as a whole, without any data.
    pub fn new(benchmark: BenchmarkName, verdict: Verdict, reason: Reason) -> Self {
        Self {
            benchmark,
            metric: None,
            target: None,
            verdict,
            reason,
            fatal: true,
            estimate: None,
            base: None,
            head: None,
            typical: Typical::default(),
            policy: None,
            base_verification: None,
            head_verification: None,
            lints: Vec::new(),
            waiver: None,
            alignment: None,
            same_code: false,
            assumed: None,
        }
    }
}

/// A standard deviation that the data of a row does not show, and its source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AssumedSpread {
    /// Standard deviation as a fraction: between sessions if it is the default, between processes otherwise.
    pub sd: f64,
    /// The disturbance from which the default spread is derived: how much the repetitions vary or wait.
    /// `None` if the repetitions don't show it.
    pub disturbance: Option<f64>,
    pub source: SpreadSource,
}

/// Geometric mean of head/base over the judged rows of one target and metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Geomean {
    pub target: Option<String>,
    pub metric: Metric,
    pub ratio: f64,
    pub interval: Option<Interval>,
    pub rows: u32,
    /// The benchmarks of the rows of this target and metric whose numbers can't be used.
    pub left_out: Vec<BenchmarkName>,
}

/// The complete result of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    pub suite: Option<String>,
    pub verdict: Verdict,
    /// The exit code, from the verdicts of fatal rows and the policy's `fail-on`.
    pub exit_code: ExitCode,
    pub base: RunSummary,
    pub head: RunSummary,
    /// Rows in the order of the head run, followed by those of benchmarks that only base has.
    pub rows: Vec<Row>,
    pub geomeans: Vec<Geomean>,
    pub policy: Policy,
    /// Findings about the runs as a whole.
    pub lints: Vec<Lint>,
    /// Sentences that concern only this comparison.
    pub notes: Vec<String>,
    /// Sentences about how the comparison was judged, which are equal for all comparisons of its kind; a
    /// short report omits them.
    pub method: Vec<String>,
}
