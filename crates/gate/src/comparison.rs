//! The result of comparing two runs, which every renderer reads and none recomputes, and its one verdict.

use std::collections::BTreeSet;

use benchgate_core::exit_code::ExitCode;
use benchgate_core::model::{
    BenchmarkName, FailureKind, Lint, Metric, Outcome, SideName, Stage, Verdict, Verification,
};
pub use benchgate_core::model::{Estimate, Interval, Method, RunSummary, SideStats, Typical, WaiverUse};
use benchgate_stats::Effect;

use super::evidence::SpreadSource;
use super::{Alignment, FailOn, LimitReading, MetricPolicy, Policy};

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

/// The exit codes in order of precedence.
const PRECEDENCE: [ExitCode; 6] = [
    ExitCode::Error,
    ExitCode::Diverged,
    ExitCode::Regressed,
    ExitCode::BaselineMissing,
    ExitCode::Inconclusive,
    ExitCode::Pass,
];

/// Returns the overall verdict, and its exit code if `fail_on` contains it.
///
/// A waived row still shows its verdict and counts as judged. If nothing fatal was judged, nothing can pass:
/// the overall verdict is *missing* if a benchmark of head or base has no partner, otherwise *error*.
pub fn overall(rows: &[Row], fail_on: &FailOn) -> (Verdict, ExitCode) {
    let waived = |row: &Row| row.waiver.as_ref().is_some_and(|waiver| !waiver.expired);
    let mut counted: Vec<Verdict> = rows.iter().filter(|row| row.fatal).map(|row| row.verdict).collect();
    if counted.is_empty() && !rows.iter().any(waived) {
        let lonely = rows.iter().any(|row| row.verdict == Verdict::Missing);
        counted.push(if lonely { Verdict::Missing } else { Verdict::Error });
    }
    let verdict = counted.iter().copied().max_by_key(|v| v.precedence()).unwrap_or(Verdict::Pass);
    let asked =
        |code: &ExitCode| counted.iter().any(|v| fail_on.0.contains(v) && ExitCode::for_verdict(*v) == *code);
    (verdict, PRECEDENCE.into_iter().find(asked).unwrap_or(ExitCode::Pass))
}

/// Returns the exit code of several comparisons together.
pub fn first_of(codes: impl Iterator<Item = ExitCode> + Clone) -> ExitCode {
    PRECEDENCE.into_iter().find(|code| codes.clone().any(|other| other == *code)).unwrap_or(ExitCode::Error)
}

/// Returns geometric means per target and metric over rows whose numbers can be used, in order of first
/// appearance. Benchmarks with wrong outputs are left out, because their speed has no meaning. The interval
/// is for these benchmarks, not for benchmarks in general: it includes the errors of the rows, but not the
/// spread between rows. `own_processes`: the benchmarks whose processes measure nothing else.
pub fn geomeans(
    rows: &[Row],
    effects: &[Option<Effect>],
    own_processes: &BTreeSet<&BenchmarkName>,
    alpha: f64,
) -> Vec<Geomean> {
    let is_wrong = |row: &&Row| {
        matches!(row.reason, Reason::WrongOutput | Reason::WrongOutputOnBase | Reason::ExpectedFailure { .. })
    };
    let wrong: BTreeSet<&BenchmarkName> = rows.iter().filter(is_wrong).map(|row| &row.benchmark).collect();
    let usable = |row: &Row| {
        !matches!(row.reason, Reason::Unusable(_) | Reason::TooLittle(_)) && !wrong.contains(&row.benchmark)
    };
    let mut groups: Vec<Group> = Vec::new();
    for (row, effect) in rows.iter().zip(effects) {
        let Some(metric) = &row.metric else { continue };
        let is_of_row = |group: &Group| *group.target == row.target && group.metric == metric;
        let at = groups.iter().position(is_of_row).unwrap_or_else(|| {
            groups.push(Group { target: &row.target, metric, effects: Vec::new(), left_out: Vec::new() });
            groups.len() - 1
        });
        let in_blocks = row.estimate.as_ref().is_some_and(|estimate| estimate.method == Method::Paired);
        match effect {
            Some(effect) if usable(row) => {
                groups[at].effects.push(RowEffect {
                    effect: *effect,
                    interval: row.estimate.as_ref().and_then(|estimate| estimate.interval),
                    is_independent: in_blocks && own_processes.contains(&row.benchmark),
                });
            }
            _ => groups[at].left_out.push(row.benchmark.clone()),
        }
    }
    groups.retain(|group| !group.effects.is_empty());
    groups
        .into_iter()
        .map(|Group { target, metric, effects, left_out }| {
            let level = alpha / 2.0;
            let low = mean_effect(effects.iter().map(|row| row.reaching(|interval| interval.low)));
            let high = mean_effect(effects.iter().map(|row| row.reaching(|interval| interval.high)));
            Geomean {
                target: target.clone(),
                metric: metric.clone(),
                ratio: low.center.exp(),
                interval: Some(Interval {
                    low: low.lower(level).exp(),
                    high: high.upper(level).exp(),
                    level: 1.0 - alpha,
                }),
                rows: effects.len() as u32,
                left_out,
            }
        })
        .collect()
}

/// The rows of one target and metric.
struct Group<'a> {
    target: &'a Option<String>,
    metric: &'a Metric,
    effects: Vec<RowEffect>,
    /// The benchmarks of the other rows.
    left_out: Vec<BenchmarkName>,
}

/// The effect of a row whose numbers can be used.
struct RowEffect {
    effect: Effect,
    interval: Option<Interval>,
    /// True if its error is independent of the errors of the other rows.
    is_independent: bool,
}

impl RowEffect {
    /// Distance of an interval's end, on the log scale, from which the row excludes next to nothing.
    const UNBOUNDED: f64 = 3.9;

    /// Returns the effect with a standard error for which its interval reaches as far as the row's own: times with two modes
    /// have a wider one than a normal distribution with the row's standard error. A row with too few blocks for its level has
    /// no bound there, and keeps its standard error.
    fn reaching(&self, end: impl Fn(&Interval) -> f64) -> (Effect, bool) {
        let effect = self.effect;
        let factor = self.interval.as_ref().and_then(|interval| {
            let reached = (end(interval).ln() - effect.center).abs();
            let normal = effect.upper((1.0 - interval.level) / 2.0) - effect.center;
            Some(reached / normal).filter(|factor| factor.is_finite() && reached < Self::UNBOUNDED)
        });
        (Effect { se: effect.se * factor.unwrap_or(1.0).max(1.0), ..effect }, self.is_independent)
    }
}

/// Returns the mean of effects, each with whether it is independent, with Satterthwaite's degrees of freedom. Rows that share
/// processes, sessions or files also share what happened to these, and nobody knows to which part. Their standard errors
/// are therefore added as if they were completely correlated, which is the most that the mean's error can be.
fn mean_effect(effects: impl Iterator<Item = (Effect, bool)>) -> Effect {
    let effects: Vec<(Effect, bool)> = effects.collect();
    let shared = || effects.iter().filter(|(_, is_independent)| !is_independent).map(|(effect, _)| effect);
    let together = Effect {
        center: 0.0,
        se: shared().map(|effect| effect.se).sum(),
        df: shared().map(|effect| effect.df).fold(f64::INFINITY, f64::min),
    };
    let independent = || {
        let of_rows = effects.iter().filter(|(_, is_independent)| *is_independent).map(|(effect, _)| effect);
        of_rows.chain([&together])
    };
    let n = effects.len() as f64;
    let total: f64 = independent().map(|e| e.se * e.se).sum();
    let denominator: f64 = independent().map(|e| e.se.powi(4) / e.df).sum();
    Effect {
        center: effects.iter().map(|(effect, _)| effect.center).sum::<f64>() / n,
        se: total.sqrt() / n,
        df: if denominator > 0.0 { total * total / denominator } else { f64::INFINITY },
    }
}
