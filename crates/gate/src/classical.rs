//! `--test welch|mann-whitney`: the classical tests on pooled repetitions, as other tools run them.

use benchgate_core::model::{LintCode, Verdict};
use benchgate_stats::classical::{Moments, RankShift, UMethod, mann_whitney, welch, welch_error};
use benchgate_stats::{Effect, describe, student_quantile};

use super::decide::{Classical, LEAST_HEAD_PROCESSES, Question, log_tolerance};
use super::draft::Open;
use super::separate::FAR;
use super::series::Readings;
use super::{Interval, Method, Policy, Reason, Row, TestKind, TooLittle};

/// Returns the question for the classical test; `None` if the test can't be run, which settles the row.
/// `asked` is the default test's question; its other conditions of a pass apply to every test.
///
/// The p-values are the textbook's, for the hypothesis of no difference; the floor then decides whether the
/// estimate is large enough to fail. The classical tests assume that repetitions of one process are
/// independent. Repetitions are not independent, which is why these tests are not the default.
pub fn question(row: &mut Row, open: &Open, policy: &Policy, asked: Option<Question>) -> Option<Question> {
    // Both tests ignore the spread between processes.
    row.lints.retain(|lint| lint.code != LintCode::AssumedSpread);
    row.assumed = None;
    let answer = match policy.test {
        TestKind::Welch => by_welch(open),
        TestKind::MannWhitney => by_rank(open, policy.alpha),
        TestKind::Auto => None,
    };
    let Some((effect, test, method)) = answer else {
        row.verdict = Verdict::Inconclusive;
        row.reason = Reason::too_little(
            "too few samples",
            "the requested test needs at least two samples per side, and a rank test needs the samples themselves",
        );
        return None;
    };
    if let Some(estimate) = &mut row.estimate {
        estimate.method = method;
        estimate.ratio = (effect.center * open.worse).exp();
    }
    let smallest = smallest_p(open);
    if policy.test == TestKind::MannWhitney && smallest > policy.alpha {
        row.verdict = Verdict::Inconclusive;
        let alpha = policy.alpha;
        let why = format!(
            "so few samples give the rank test a p-value of {smallest:.3} at best, and alpha is {alpha}"
        );
        row.reason = Reason::too_little("too few samples", why);
        return None;
    }
    let question = Question::classical(effect, &open.rule, open.floor, test, asked);
    Some(question.unless(slow_process(open, log_tolerance(&open.rule, open.floor))))
}

/// Returns the reason why few processes can't let head pass: one of them is slower than all of base's, by much more
/// than processes of either side differ. The ranks of pooled repetitions don't show by how much.
fn slow_process(open: &Open, tolerance: f64) -> Option<TooLittle> {
    let [base, head] = open.readings.as_ref()?;
    if head.middle.len() >= LEAST_HEAD_PROCESSES || head.middle.len() < 2 {
        return None;
    }
    let slowest = |costs: &[f64]| costs.iter().copied().reduce(f64::max);
    let distances = |costs: &[f64]| -> Vec<f64> {
        let typical = describe::median(costs).unwrap_or_default();
        costs.iter().map(|cost| (cost - typical).abs()).collect()
    };
    let spread = describe::median(&[distances(&base.middle), distances(&head.middle)].concat())?;
    let above = slowest(&head.middle)? - slowest(&base.middle)?;
    (above > tolerance.max(FAR * spread)).then(|| {
        let why = format!(
            "the slowest process of head takes {:.2} × the time of base's slowest one; at least {LEAST_HEAD_PROCESSES} \
             processes of head are needed to show that this is rare",
            above.exp()
        );
        TooLittle::new("a process is slow", why)
    })
}

/// Returns the p-value of two samples that don't overlap, which is the smallest that the rank test can give.
fn smallest_p(open: &Open) -> f64 {
    let Some([base, head]) = &open.readings else { return 1.0 };
    let (base, head) = (base.samples.len() as u64, head.samples.len() as u64);
    // Only one of the ways to choose the ranks of one sample is this extreme.
    (1..=base.min(head)).fold(1.0, |p, i| p * i as f64 / (base.max(head) + i) as f64)
}

fn moments(readings: &Readings) -> Option<Moments> {
    let stats = &readings.stats;
    let variance = stats.stddev? * stats.stddev?;
    (stats.samples >= 2).then_some(Moments { n: stats.samples as f64, mean: stats.mean, variance })
}

fn by_welch(open: &Open) -> Option<(Effect, Classical, Method)> {
    let [base, head] = open.readings.as_ref()?;
    let (base, head) = (moments(base)?, moments(head)?);
    let test = welch(head, base);
    let (se, df) = welch_error(head, base);
    // The delta method transfers the difference of means to the log scale of the ratio.
    let log_ratio = (head.mean / base.mean).ln();
    let effect = Effect { center: log_ratio * open.worse, se: se / base.mean.min(head.mean), df };
    let limit = log_tolerance(&open.rule, open.floor);
    let (p_worse, p_better) = sides(test.greater, test.less, open.worse);
    let classical =
        Classical { p_worse, p_better, p_equivalent: effect.p_below(limit), ..beyond(&effect, open) };
    Some((effect, classical, Method::Welch))
}

fn by_rank(open: &Open, alpha: f64) -> Option<(Effect, Classical, Method)> {
    let [base, head] = open.readings.as_ref()?;
    if base.samples.len() < 2 || head.samples.len() < 2 {
        return None;
    }
    let test = mann_whitney(&head.samples, &base.samples, UMethod::Auto)?;
    // Equivalence is tested by the same test: base made worse by the tolerance must still be worse than head.
    let limit = log_tolerance(&open.rule, open.floor);
    let shifted: Vec<f64> = base.samples.iter().map(|v| v * (limit * open.worse).exp()).collect();
    let against = mann_whitney(&head.samples, &shifted, UMethod::Auto)?;
    let p_equivalent = if open.worse > 0.0 { against.less } else { against.greater };
    let shift = shift(open)?;
    // Summaries over rows need a standard error. The standard error is chosen so that its normal interval is
    // as wide as the test's interval.
    let quantile = student_quantile(alpha, f64::INFINITY);
    let se = shift.interval(alpha).map_or(f64::INFINITY, |(low, high)| (high - low) / (2.0 * quantile));
    let effect = Effect { center: shift.estimate() * open.worse, se, df: f64::INFINITY };
    let (p_worse, p_better) = sides(test.greater, test.less, open.worse);
    let classical = Classical { p_worse, p_better, p_equivalent, ..beyond(&effect, open) };
    Some((effect, classical, Method::MannWhitney))
}

/// Returns the shift of the logarithms, head against base.
fn shift(open: &Open) -> Option<RankShift> {
    let logs = |readings: &Readings| readings.samples.iter().map(|v| v.ln()).collect::<Vec<f64>>();
    let [base, head] = open.readings.as_ref()?;
    RankShift::new(&logs(head), &logs(base))
}

/// Returns the interval of the rank test at the level that decided, as head/base; `None` if there are too few
/// values to exclude anything at that level.
pub fn rank_interval(open: &Open, level: f64) -> Option<Interval> {
    let (low, high) = shift(open)?.interval((1.0 - level) / 2.0)?;
    Some(Interval { low: low.exp(), high: high.exp(), level })
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
