//! The state of each row during measurement, and the probable remaining time. It has no effect on verdicts.

use benchgate_core::model::{BenchmarkName, Metric, Verdict};

use super::{Comparison, Method, Row};

/// The state of one benchmark between two looks.
#[derive(Debug, Clone, PartialEq)]
pub struct Outlook {
    pub benchmark: BenchmarkName,
    pub verdict: Verdict,
    /// Blocks measured so far.
    pub blocks: u32,
    /// head / base.
    pub ratio: f64,
    /// The interval that would decide now.
    pub interval: Option<(f64, f64)>,
    /// Blocks after which the interval is probably narrow enough to decide; `None` if unknown.
    pub blocks_needed: Option<f64>,
}

/// Returns the gating paired rows, one per benchmark: the one that is farthest from a decision represents it.
pub fn outlook(comparison: &Comparison) -> Vec<Outlook> {
    let mut all: Vec<Outlook> = Vec::new();
    // Compilations are finished before a process is timed.
    let paired = |row: &&Row| {
        let is_paired = row.estimate.as_ref().is_some_and(|e| e.method == Method::Paired);
        row.fatal && is_paired && !row.metric.as_ref().is_some_and(Metric::is_compile_time)
    };
    for row in comparison.rows.iter().filter(paired) {
        let Some(found) = of_row(row) else { continue };
        match all.iter_mut().find(|known| known.benchmark == found.benchmark) {
            Some(known) if found.verdict == Verdict::Inconclusive => *known = found,
            Some(_) => {}
            None => all.push(found),
        }
    }
    all
}

fn of_row(row: &Row) -> Option<Outlook> {
    let estimate = row.estimate.as_ref()?;
    let interval = estimate.interval.map(|interval| (interval.low, interval.high));
    Some(Outlook {
        benchmark: row.benchmark.clone(),
        verdict: row.verdict,
        blocks: estimate.blocks,
        ratio: estimate.ratio,
        interval,
        blocks_needed: interval
            .and_then(|interval| blocks_needed(row, estimate.ratio, interval, estimate.blocks)),
    })
}

/// Estimates the blocks that a decision needs. An interval narrows with the square root of the number of
/// blocks. An interval decides when its worse end is below the tolerance or its better end is beyond the
/// floor, whichever is nearer to the estimate.
fn blocks_needed(row: &Row, ratio: f64, (low, high): (f64, f64), blocks: u32) -> Option<f64> {
    let (policy, metric) = (row.policy.as_ref()?, row.metric.as_ref()?);
    let cost = metric.better.worse() * ratio.ln();
    let (floor, tolerance) = (policy.floor.relative.max(0.0).ln_1p(), policy.tolerance.max(0.0).ln_1p());
    let half_width = (high.ln() - low.ln()) / 2.0;
    let room = (tolerance.max(floor) - cost).max(cost - floor);
    let needed = f64::from(blocks) * (half_width / room).powi(2);
    (room > 0.0 && needed.is_finite()).then(|| needed.max(f64::from(blocks)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Estimate, Interval, MetricPolicy, Policy, Reason};
    use benchgate_core::model::Metric;

    fn row(ratio: f64, low: f64, high: f64) -> Row {
        let policy = Policy::default();
        let rule: &MetricPolicy = &policy.metrics[0].1;
        Row {
            metric: Some(Metric::LATENCY),
            estimate: Some(Estimate {
                interval: Some(Interval { low, high, level: 0.99 }),
                blocks: 8,
                ..Estimate::unjudged(Method::Paired, ratio)
            }),
            policy: Some(rule.clone()),
            ..Row::new(BenchmarkName::new("a"), Verdict::Inconclusive, Reason::Open)
        }
    }

    #[test]
    fn a_wide_interval_needs_more_blocks_than_a_narrow_one() {
        let needed = |row: &Row| of_row(row).unwrap().blocks_needed.unwrap();
        let (wide, narrow) = (row(1.0, 0.90, 1.11), row(1.0, 0.96, 1.04));
        assert!(needed(&wide) > needed(&narrow));
        assert!(needed(&narrow) > 8.0);
        // The distance to the limit is three percent, and the interval is twice as wide: that takes four
        // times the blocks.
        let twice = row(1.0, 1.0 / 1.03 / 1.03, 1.03 * 1.03);
        assert!((needed(&twice) - 32.0).abs() < 0.01, "{}", needed(&twice));
    }

    #[test]
    fn a_clear_change_needs_no_more_blocks() {
        assert_eq!(of_row(&row(1.2, 1.15, 1.25)).unwrap().blocks_needed, Some(8.0));
    }
}
