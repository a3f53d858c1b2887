//! What is known about two candidates.

use std::sync::{Arc, Mutex, PoisonError};

use crate::gate::decide::decide_exact;
use crate::gate::{CompareOptions, Policy, Reason, Row, compare, estimate, evidence, series};
use crate::model::{Better, Lint, Metric, Run, Verdict};
use crate::stats::Inference;

use super::options::BisectOptions;

/// Two candidates by their place in the order; `base` comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pair {
    pub base: usize,
    pub head: usize,
}

/// How a range is worse at its end than at its start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// By this much on the log scale (or in units, for exact values).
    Shift(f64),
    /// Slow more often.
    Stability,
}

/// Where a level counts as that of the good end, and from where on as that of the bad end, as shares of the step.
/// The margin is for the error of the step's own estimate, and for small differences that any rebuild makes.
const NEAR_NONE: f64 = 0.25;
const NEAR_ALL: f64 = 0.75;

/// Share of the whole step that what is left of a range may make without being searched: a twentieth is below what
/// the step's own estimate is sure of.
const MINOR: f64 = 0.05;

/// p-values of the two things that can be true of a pair if one change makes the whole step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tested {
    /// Nothing of the step lies between the two.
    pub none: f64,
    /// All of the step lies between the two.
    pub all: f64,
}

/// What a pair of candidates showed.
#[derive(Debug, Clone)]
pub struct Observed {
    pub blocks: u32,
    pub verdict: Verdict,
    pub reason: Reason,
    /// Head against base as a cost: log scale, or in units for exact values. Positive is worse.
    pub change: f64,
    /// The interval that the gate decided by, on the same scale.
    pub interval: Option<(f64, f64)>,
    shift: Option<Inference>,
    p_stability: f64,
    exact: bool,
    /// p-values that were asked for, by the size of the step: the search asks again before every probe.
    known: Arc<Mutex<Vec<(f64, Tested)>>>,
}

impl Observed {
    /// The same program.
    pub fn identical() -> Self {
        Self::exact(0.0, Verdict::Pass)
    }

    /// Of two values of an exact metric, judged as the gate judges them.
    pub fn of_values(base: f64, head: f64, options: &BisectOptions) -> Self {
        let sign = if options.metric.better == Better::Lower { 1.0 } else { -1.0 };
        let rule = options.policy.metrics.first().map(|(_, rule)| rule);
        let verdict = rule.map_or(Verdict::Inconclusive, |rule| decide_exact(base, head, sign, rule).0);
        Self::exact(sign * (head - base), verdict)
    }

    /// Of a value that the same candidate always has.
    pub fn exact(change: f64, verdict: Verdict) -> Self {
        Self {
            blocks: 0,
            verdict,
            reason: Reason::Exact,
            change,
            interval: None,
            shift: None,
            p_stability: 1.0,
            exact: true,
            known: Arc::default(),
        }
    }

    /// From a paired session of one benchmark, judged by the gate.
    pub fn paired(base: &Run, head: &Run, metric: &Metric, policy: &Policy) -> Result<Self, Lint> {
        let comparison = compare(base, head, policy, &CompareOptions::default());
        let judged = |row: &&Row| row.metric.as_ref() == Some(metric);
        let Some(row) = comparison.rows.iter().find(judged).or(comparison.rows.first()) else {
            return Ok(Self::unknown());
        };
        let sign = if metric.better == Better::Lower { 1.0 } else { -1.0 };
        let estimate = row.estimate.as_ref();
        let shift = shift(base, head, metric)?;
        let interval = estimate.and_then(|estimate| estimate.interval).map(|interval| {
            let (low, high) = (sign * interval.low.ln(), sign * interval.high.ln());
            (low.min(high), low.max(high))
        });
        Ok(Self {
            blocks: estimate.map_or(0, |estimate| estimate.blocks),
            verdict: row.verdict,
            reason: row.reason.clone(),
            change: shift.as_ref().map_or(0.0, Inference::center),
            interval,
            shift,
            p_stability: estimate.and_then(|estimate| estimate.p_stability).unwrap_or(1.0),
            exact: false,
            known: Arc::default(),
        })
    }

    fn unknown() -> Self {
        Self { exact: false, ..Self::exact(0.0, Verdict::Inconclusive) }
    }

    /// The step that a red pair shows.
    pub fn step(&self) -> Option<Step> {
        if self.verdict != Verdict::Regressed {
            return None;
        }
        Some(if self.reason == Reason::Stability { Step::Stability } else { Step::Shift(self.change) })
    }

    /// Whether the pair is shown to be worse by less than a share of a step, at this one-sided level.
    pub fn is_minor(&self, size: f64, level: f64) -> bool {
        self.shift.as_ref().is_some_and(|shift| shift.p_below(MINOR * size) <= level)
    }

    /// Whether a value settles it, so that more blocks change nothing.
    pub fn is_settled(&self) -> bool {
        self.exact
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
