//! Metrics for which the tool that measured them does not state whether more or less is better.

use benchgate_core::model::{Better, Metric, Run, Verdict};

use super::history::StoredSessions;
use super::{EarlierSessions, Policy, Reason, Row};

/// Returns the run with the directions that the policy states; `None` if that changes nothing.
pub fn stated(run: &Run, policy: &Policy) -> Option<Run> {
    let stated = |metric: &Metric| {
        let rule = policy.metrics.iter().find(|(name, _)| *name == metric.name);
        rule.and_then(|(_, rule)| rule.better).filter(|better| *better != metric.better)
    };
    let series = |run: &Run| {
        run.benchmarks
            .iter()
            .flat_map(|benchmark| &benchmark.metrics)
            .any(|series| stated(&series.metric).is_some())
    };
    series(run).then(|| {
        let mut run = run.clone();
        for series in run.benchmarks.iter_mut().flat_map(|benchmark| &mut benchmark.metrics) {
            series.metric.better = stated(&series.metric).unwrap_or(series.metric.better);
        }
        run
    })
}

/// The stored sessions with the directions that the policy states.
pub struct StatedSessions {
    good: Vec<Run>,
    slow: Vec<Run>,
    before: Vec<Run>,
    earlier: Vec<EarlierSessions>,
    storing: bool,
}

impl StatedSessions {
    /// Returns `None` if the policy states no direction.
    pub fn new(stored: StoredSessions<'_>, policy: &Policy) -> Option<Self> {
        let all = |runs: &[Run]| -> Vec<Run> {
            runs.iter().map(|run| stated(run, policy).unwrap_or_else(|| run.clone())).collect()
        };
        let earlier = |sessions: &EarlierSessions| EarlierSessions {
            since: sessions.since.clone(),
            runs: all(&sessions.runs),
        };
        policy.metrics.iter().any(|(_, rule)| rule.better.is_some()).then(|| Self {
            good: all(stored.good),
            slow: all(stored.slow),
            before: all(stored.before),
            earlier: stored.earlier.iter().map(earlier).collect(),
            storing: stored.storing,
        })
    }

    pub fn sessions(&self) -> StoredSessions<'_> {
        StoredSessions {
            good: &self.good,
            slow: &self.slow,
            before: &self.before,
            earlier: &self.earlier,
            storing: self.storing,
        }
    }
}

/// Makes a row inconclusive if its metric changed and neither the tool nor the policy states which direction
/// is better. The row passes only if a change of more than the tolerance is excluded in both directions.
pub fn withhold(row: &mut Row) {
    // A limit states by itself whether it is an upper or a lower one.
    if matches!(row.reason, Reason::Limit(_)) {
        return;
    }
    let Some(metric) = row.metric.as_ref().filter(|metric| metric.better == Better::Unknown) else { return };
    let interval = row.estimate.as_ref().and_then(|estimate| estimate.interval);
    let may_be_lower = || {
        let tolerance = row.policy.as_ref().map_or(0.0, |rule| rule.tolerance);
        interval.is_some_and(|interval| interval.low * (1.0 + tolerance) < 1.0)
    };
    let changed = match row.verdict {
        Verdict::Regressed | Verdict::Improved => true,
        Verdict::Pass => may_be_lower(),
        _ => false,
    };
    if changed {
        let why = format!(
            "neither the metric's name nor its unit states whether more or less is better; set `better = \
            \"higher\"` or `\"lower\"` in `[gate.metric.{:?}]` of the policy",
            metric.name
        );
        (row.verdict, row.reason) = (Verdict::Inconclusive, Reason::too_little("unknown direction", why));
    }
}
