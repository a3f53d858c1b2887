//! Evidence from comparing two candidates.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use crate::decide::{decide_exact, log_floor};
use crate::{CompareOptions, Estimate, Policy, Reason, Row, compare, estimate, evidence, series};
use benchgate_core::model::{Consequence, Lint, LintCode, Metric, Run, Series, Verdict};
use benchgate_stats::Inference;

use super::BisectOptions;

/// Two candidates by their position in the order; `base` comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pair {
    pub base: usize,
    pub head: usize,
}

/// The way in which a range is worse at its end than at its start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// The level is worse by this much, on the log scale (or in units, for exact values).
    Shift(f64),
    /// Head is slow more often, or stalls more.
    Stability,
}

/// Shares of the step below which a level counts as the good end's, and above which it counts as the bad
/// end's. The margin covers the error of the step's own estimate, and the small differences that any rebuild
/// causes.
const NEAR_NONE: f64 = 0.25;
const NEAR_ALL: f64 = 0.75;

/// Share of the whole step up to which the rest of a range is not searched: a twentieth is smaller than the
/// error of the step's own estimate.
pub(super) const MINOR: f64 = 0.05;

/// p-values of the two hypotheses about a pair, assuming that a single change causes the whole step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tested {
    /// No part of the step lies between the two.
    pub none: f64,
    /// The whole step lies between the two.
    pub all: f64,
}

/// The result of comparing a pair of candidates.
#[derive(Debug, Clone)]
pub struct Observed {
    /// Number of blocks that were measured, whatever the verdict.
    pub blocks: u32,
    pub verdict: Verdict,
    pub reason: Reason,
    /// Head relative to base as a cost: log scale, or in units for exact values. Positive is worse.
    pub change: f64,
    /// The interval on which the decision is based, on the same scale.
    pub interval: Option<(f64, f64)>,
    /// The smallest change that the gate reports.
    pub(super) floor: f64,
    shift: Option<Inference>,
    p_stability: f64,
    exact: bool,
    /// p-values that were computed, by the size of the step: the search asks for them again before every
    /// probe.
    known: Arc<Mutex<Vec<(f64, Tested)>>>,
}

impl Observed {
    /// Returns the evidence for two identical programs.
    pub fn identical() -> Self {
        Self::exact(0.0, Verdict::Pass)
    }

    /// Returns the evidence from two values of an exact metric, judged as the gate judges them.
    pub fn of_values(base: f64, head: f64, options: &BisectOptions) -> Self {
        let sign = options.metric.better.worse();
        let rule = options.policy.metrics.first().map(|(_, rule)| rule);
        let verdict = rule.map_or(Verdict::Inconclusive, |rule| decide_exact(base, head, sign, rule).0);
        Self::exact(sign * (head - base), verdict)
    }

    /// Returns the evidence from a value that a candidate always has.
    pub fn exact(change: f64, verdict: Verdict) -> Self {
        Self {
            blocks: 0,
            verdict,
            reason: Reason::Exact,
            change,
            interval: None,
            floor: 0.0,
            shift: None,
            p_stability: 1.0,
            exact: true,
            known: Arc::default(),
        }
    }

    /// Returns the observation from a paired session of one benchmark, as the gate judges it; or the finding
    /// that makes the session unusable, so that more blocks would not help.
    pub fn paired(base: &Run, head: &Run, metric: &Metric, policy: &Policy) -> Result<Self, Lint> {
        let comparison = compare(base, head, policy, &CompareOptions::default());
        let judged = comparison
            .rows
            .iter()
            .find(|row| row.metric.as_ref().is_some_and(|found| found.name == metric.name));
        let row =
            judged.ok_or_else(|| Lint::new(LintCode::Errored, format!("no {} was measured", metric.name)))?;
        if matches!(row.verdict, Verdict::Error | Verdict::Missing) {
            return Err(unusable(row, metric));
        }
        let sign = metric.better.worse();
        let estimate = row.estimate.as_ref();
        let shift = shift(base, head, metric)?;
        let interval = estimate.and_then(|estimate| estimate.interval).map(|interval| {
            let (low, high) = (sign * interval.low.ln(), sign * interval.high.ln());
            (low.min(high), low.max(high))
        });
        let sides = row.base.as_ref().zip(row.head.as_ref()).zip(row.policy.as_ref());
        Ok(Self {
            blocks: blocks(base, head, metric),
            verdict: row.verdict,
            reason: row.reason.clone(),
            change: shift.as_ref().map_or(0.0, Inference::center),
            interval,
            floor: sides.map_or(0.0, |((base, head), rule)| log_floor(rule, base, head)),
            shift,
            p_stability: estimate.map_or(1.0, uneven),
            exact: false,
            known: Arc::default(),
        })
    }

    /// Returns the step between the two candidates of a regressed pair.
    pub fn step(&self) -> Option<Step> {
        if self.verdict != Verdict::Regressed {
            return None;
        }
        Some(if self.reason.is_uneven() { Step::Stability } else { Step::Shift(self.change) })
    }

    /// Returns whether the gate considers the pair not worse. With several modes, the gate can report an
    /// improvement although the interval reaches far beyond the floor: such an improvement does not rule out
    /// a slowdown.
    pub fn is_not_worse(&self) -> bool {
        match self.verdict {
            Verdict::Pass => true,
            Verdict::Improved => self.bounds().is_some_and(|(_, high)| high <= self.floor),
            _ => false,
        }
    }

    /// Returns the pair with its interval at this one-sided level, if that interval shows that the pair is
    /// worse by less than the share `MINOR` of a step. The p-value alone is not enough: with several modes, a
    /// rejected limit may lie inside the interval. A pair in which head is slow more often is not minor,
    /// because more than the typical time got worse.
    pub fn minor(&self, size: f64, level: f64) -> Option<Self> {
        let shift = self.shift.as_ref().filter(|_| !self.is_final() && !self.reason.is_uneven())?;
        let limit = MINOR * size;
        (shift.p_below(limit) <= level && shift.upper(level) <= limit)
            .then(|| Self { interval: Some((shift.lower(level), shift.upper(level))), ..self.clone() })
    }

    /// Returns the interval; for an exact value, the value itself.
    pub(super) fn bounds(&self) -> Option<(f64, f64)> {
        if self.exact { Some((self.change, self.change)) } else { self.interval }
    }

    /// Returns whether an exact value settles the comparison.
    pub fn is_settled(&self) -> bool {
        self.exact
    }

    /// Returns whether more blocks would change nothing, because an exact value settles the comparison or a
    /// finding forbids a verdict.
    pub fn is_final(&self) -> bool {
        self.exact || matches!(self.reason, Reason::Unusable(_))
    }

    pub fn tested(&self, step: Step) -> Tested {
        match (step, &self.shift) {
            (Step::Shift(size), _) if self.exact => Tested {
                none: f64::from(u8::from(self.change <= NEAR_NONE * size)),
                all: f64::from(u8::from(self.change >= NEAR_ALL * size)),
            },
            (Step::Shift(size), Some(shift)) => {
                let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some((_, tested)) = known.iter().find(|(asked, _)| *asked == size) {
                    return *tested;
                }
                let (none, all) = (shift.p_above(NEAR_NONE * size), shift.p_below(NEAR_ALL * size));
                known.push((size, Tested { none, all }));
                Tested { none, all }
            }
            (Step::Stability, _) => Tested { none: self.p_stability, all: 1.0 },
            (Step::Shift(_), None) => Tested { none: 1.0, all: 1.0 },
        }
    }
}

/// Returns the number of blocks with samples of both sides.
fn blocks(base: &Run, head: &Run, metric: &Metric) -> u32 {
    let measured = |run: &Run| -> BTreeSet<u32> {
        let series = run.benchmarks.first().and_then(|benchmark| benchmark.metric(&metric.name));
        let Some(Series::Processes(processes)) = series.map(|series| &series.series) else {
            return BTreeSet::new();
        };
        let measured = processes.iter().filter(|process| !process.samples.is_empty());
        measured.filter_map(|process| Some(process.slot?.block)).collect()
    };
    measured(base).intersection(&measured(head)).count() as u32
}

/// Returns the p of "head is neither slow nor stalled more often", from the two tests together.
fn uneven(estimate: &Estimate) -> f64 {
    let (stability, tail) = (estimate.p_stability.unwrap_or(1.0), estimate.p_tail.unwrap_or(1.0));
    (2.0 * stability.min(tail)).min(1.0)
}

/// Returns the finding that makes a row an error.
fn unusable(row: &Row, metric: &Metric) -> Lint {
    let found = match &row.reason {
        Reason::Unusable(lint) => Some(lint),
        _ => row.lints.iter().find(|lint| lint.code.consequence() == Consequence::Error),
    };
    let missing =
        || Lint::new(LintCode::Errored, format!("the {} of the two sides can't be compared", metric.name));
    found.cloned().unwrap_or_else(missing)
}

fn shift(base: &Run, head: &Run, metric: &Metric) -> Result<Option<Inference>, Lint> {
    let readings = |run: &Run| run.benchmarks.first().and_then(|b| b.metric(&metric.name)).map(series::read);
    let (Some(base), Some(head)) = (readings(base).transpose()?, readings(head).transpose()?) else {
        return Ok(None);
    };
    if !(base.has_ratio() && head.has_ratio()) {
        return Ok(None);
    }
    Ok(evidence::blocks(&base, &head).and_then(estimate::shift))
}
