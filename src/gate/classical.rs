//! `--test welch|mann-whitney`: the classical tests on pooled repetitions, as other tools run them.

use crate::model::Verdict;
use crate::stats::Effect;
use crate::stats::classical::{Moments, UMethod, mann_whitney, welch, welch_error};

use super::decide::{Classical, Question, log_tolerance};
use super::draft::Open;
use super::series::Readings;
use super::{Method, Policy, Reason, Row, TestKind};

/// The question as the classical test answers it. `None` settles the row: the test can't be run.
///
/// The p-values are the textbook's, against "no difference"; the floor then asks whether the estimate
/// is worth a red. Repetitions of one process are taken as independent, which they are not: that is
/// the classical tests' choice, and why they are not the default.
pub fn question(row: &mut Row, open: &Open, policy: &Policy) -> Option<Question> {
    let answer = match policy.test {
        TestKind::Welch => by_welch(open),
        TestKind::MannWhitney => by_rank(open),
        TestKind::Auto => None,
    };
    let Some((effect, test, method)) = answer else {
        row.verdict = Verdict::Inconclusive;
        row.reason = Reason::TooLittle(
            "the test asked for needs two samples a side, and a rank test the samples".to_owned(),
        );
        return None;
    };
    if let Some(estimate) = &mut row.estimate {
        estimate.method = method;
    }
    Some(Question::classical(effect, &open.rule, open.floor, test))
}

fn moments(readings: &Readings) -> Option<Moments> {
    let stats = &readings.stats;
    let variance = stats.stddev? * stats.stddev?;
    (stats.samples >= 2).then_some(Moments { n: stats.samples as f64, mean: stats.mean, variance })
}

fn by_welch(open: &Open) -> Option<(Effect, Classical, Method)> {
    let (base, head) = (moments(&open.base)?, moments(&open.head)?);
    let test = welch(head, base);
    let (se, df) = welch_error(head, base);
    // The delta method puts the difference of means on the log scale of the ratio.
    let log_ratio = (head.mean / base.mean).ln();
    let effect = Effect { center: log_ratio * open.worse, se: se / base.mean.min(head.mean), df };
    let limit = log_tolerance(&open.rule, open.floor);
    let (p_worse, p_better) = sides(test.greater, test.less, open.worse);
    let classical =
        Classical { p_worse, p_better, p_equivalent: effect.p_below(limit), ..beyond(&effect, open) };
    Some((effect, classical, Method::Welch))
}

fn by_rank(open: &Open) -> Option<(Effect, Classical, Method)> {
    let (base, head) = (&open.base, &open.head);
    if base.samples.len() < 2 || head.samples.len() < 2 {
        return None;
    }
    let test = mann_whitney(&head.samples, &base.samples, UMethod::Auto)?;
    // Equivalence by the same test: base made worse by the tolerance must still be worse than head.
    let limit = log_tolerance(&open.rule, open.floor);
    let shifted: Vec<f64> = base.samples.iter().map(|v| v * (limit * open.worse).exp()).collect();
    let against = mann_whitney(&head.samples, &shifted, UMethod::Auto)?;
    let p_equivalent = if open.worse > 0.0 { against.less } else { against.greater };
    let moments = (moments(base)?, moments(head)?);
    let (se, df) = welch_error(moments.1, moments.0);
    let ratio =
        crate::stats::describe::median(&head.samples)? / crate::stats::describe::median(&base.samples)?;
    let effect = Effect { center: ratio.ln() * open.worse, se: se / moments.0.mean.min(moments.1.mean), df };
    let (p_worse, p_better) = sides(test.greater, test.less, open.worse);
    let classical = Classical { p_worse, p_better, p_equivalent, ..beyond(&effect, open) };
    Some((effect, classical, Method::MannWhitney))
}

fn sides(greater: f64, less: f64, worse: f64) -> (f64, f64) {
    if worse > 0.0 { (greater, less) } else { (less, greater) }
}

fn beyond(effect: &Effect, open: &Open) -> Classical {
    Classical {
        p_worse: 1.0,
        p_better: 1.0,
        p_equivalent: 1.0,
        beyond_floor: effect.center > open.floor,
        below_floor: effect.center < -open.floor,
    }
}
