//! The result of comparing two runs: data that every renderer reads and none recomputes.

use benchgate_core::exit_code::ExitCode;
use benchgate_core::model::{
    BenchmarkName, Context, FailureKind, Lint, Metric, Outcome, SideName, Stage, Testbed, Toolchain, Verdict,
    Verification,
};

use super::{Alignment, MetricPolicy, Policy};

/// A two-sided interval for the ratio head/base.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
    /// Confidence level after every correction, for example 0.9992.
    pub level: f64,
}

/// What produced an estimate.
#[derive(Debug, Clone, PartialEq)]
pub enum Method {
    /// Blocks of pairs.
    Paired,
    /// Independent processes of two files.
    Unpaired,
    /// Only mean, stddev and n were known.
    Summaries,
    /// Deterministic values.
    Exact,
    /// `--test welch`.
    Welch,
    /// `--test mann-whitney`.
    MannWhitney,
    /// Everything executed is identical; nothing to compare.
    Identical,
    /// One session against the stored sessions of a baseline.
    History,
}

/// The effect of one row: the ratio head/base and how sure it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    pub method: Method,
    /// head / base; above 1 is slower for a lower-is-better metric.
    pub ratio: f64,
    pub interval: Option<Interval>,
    /// One-sided p against the floor, before correction.
    pub p_worse: Option<f64>,
    /// The same after the error budget is spent over looks and, by Holm, over rows.
    pub p_adjusted: Option<f64>,
    /// The same by Benjamini and Hochberg: for ordering a listing, never for the verdict.
    pub q_value: Option<f64>,
    /// One-sided p of "head is not slow more often than base", before correction (paired rows).
    pub p_stability: Option<f64>,
    /// One-sided p of "head's repetitions don't stall more than base's", before correction (paired rows).
    pub p_tail: Option<f64>,
    pub blocks: u32,
    /// The smallest change (as a fraction) this row could have seen with 90 % power.
    pub minimum_detectable: Option<f64>,
    /// What is known of the runs, where the sides were measured separately.
    pub separate: Option<SeparateRuns>,
}

/// Two runs that differ need not be two programs that differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeparateRuns {
    /// Sessions of the side that has fewer.
    pub sessions: u32,
    /// p of "the repetitions of the two runs do not differ", by Mann and Whitney; absent where too few were kept.
    pub p_runs: Option<f64>,
}

impl Estimate {
    /// A ratio of which nothing else is known yet.
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
            separate: None,
        }
    }
}

/// The typical value of each side of a row, in the metric's unit. Where the row has an effect, head/base is
/// exactly that effect.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Typical {
    pub base: Option<f64>,
    pub head: Option<f64>,
}

impl Typical {
    /// Nothing may be shown.
    pub const WITHHELD: Self = Self { base: None, head: None };
}

/// Plain description of one side of a row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SideStats {
    pub processes: u32,
    /// Repetitions over all processes.
    pub samples: u64,
    /// Median over processes of each process's location, in the metric's unit.
    pub location: f64,
    pub mean: f64,
    /// Sample standard deviation over all repetitions.
    pub stddev: Option<f64>,
    /// stddev / mean.
    pub cv: Option<f64>,
    pub min: f64,
    pub max: f64,
}

/// Why a row has its verdict; every renderer words it from here.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// Interval wholly beyond the floor, in the bad direction.
    BeyondFloor,
    /// Interval wholly beyond the floor, in the good direction.
    BelowFloor,
    /// Interval wholly below the tolerance.
    WithinTolerance,
    /// The interval still contains both answers.
    Open,
    /// Everything executed is identical on both sides.
    Identical,
    /// Location is unchanged, but head is slow more often or spreads wider.
    Stability,
    /// Location is unchanged, but rare repetitions of head take many times as long, so that its mean is worse.
    Tail,
    /// A deterministic value changed (or did not).
    Exact,
    /// The benchmark exists on one side only.
    OnlyOn(SideName),
    /// The metric exists on one side only.
    MetricOnlyOn(SideName),
    /// It worked at base; this stage fails at head.
    FailsAtHead { stage: Stage, why: String },
    /// It failed at base, so there is nothing to compare with.
    FailsAtBase { stage: Stage, why: String },
    /// It fails on both sides.
    FailsOnBoth { stage: Stage, why: String },
    /// It fails as the suite expects, for the reason that the suite gives.
    ExpectedFailure { failure: FailureKind, reason: String },
    /// Its outputs are right on both sides, and nothing is timed.
    Verified,
    /// Declared unsupported or skipped on a side.
    NotMeasured(Outcome),
    /// Head's outputs are wrong.
    WrongOutput,
    /// Base's outputs are wrong too.
    WrongOutputOnBase,
    /// A lint of consequence `error` or `inconclusive` forbids judging.
    Unusable(Lint),
    /// The data does not support a verdict (one sample, no spread, repetitions on a grid).
    TooLittle(String),
    /// The two sides carry units of different kinds.
    UnitMismatch { base: String, head: String },
}

impl Reason {
    /// Whether the typical time is not what is worse, or may be.
    pub fn is_uneven(&self) -> bool {
        matches!(self, Self::Stability | Self::Tail)
    }
}

/// A waiver that was applied to a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaiverUse {
    pub owner: String,
    pub reason: String,
    pub expires: String,
    /// It matched, but its day has passed, so it changed nothing.
    pub expired: bool,
}

/// One benchmark × metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub benchmark: BenchmarkName,
    /// `None` where the row is about the benchmark as a whole (missing, failed, diverged).
    pub metric: Option<Metric>,
    pub target: Option<String>,
    pub verdict: Verdict,
    pub reason: Reason,
    /// Whether this row counts towards the whole verdict.
    pub fatal: bool,
    pub estimate: Option<Estimate>,
    pub base: Option<SideStats>,
    pub head: Option<SideStats>,
    /// The values that reports show; they go with the effect.
    pub typical: Typical,
    /// The floor and tolerance that applied, after overrides.
    pub policy: Option<MetricPolicy>,
    pub base_verification: Option<Verification>,
    pub head_verification: Option<Verification>,
    pub lints: Vec<Lint>,
    pub waiver: Option<WaiverUse>,
    /// Both sides' densities, for a row that decides and moved or is still open.
    pub alignment: Option<Alignment>,
}

/// Geometric mean of head/base over the judged rows of one target and metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Geomean {
    pub target: Option<String>,
    pub metric: Metric,
    pub ratio: f64,
    pub interval: Option<Interval>,
    pub rows: u32,
}

/// What a report says about one of the two runs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunSummary {
    pub label: String,
    pub format: String,
    pub commit: Option<String>,
    pub toolchain: Option<Toolchain>,
    pub testbed: Option<Testbed>,
    pub context: Context,
    pub benchmarks: u32,
}

/// The whole answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    pub suite: Option<String>,
    pub verdict: Verdict,
    /// From the verdicts of fatal rows and the policy's `fail-on`.
    pub exit_code: ExitCode,
    pub base: RunSummary,
    pub head: RunSummary,
    /// In the order of the head run, then what only base has.
    pub rows: Vec<Row>,
    pub geomeans: Vec<Geomean>,
    pub policy: Policy,
    /// Findings about the runs as a whole.
    pub lints: Vec<Lint>,
    /// Sentences about assumptions the reader should know (assumed spread, paired, seeds).
    pub notes: Vec<String>,
}
