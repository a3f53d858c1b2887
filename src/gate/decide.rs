//! Red, green or open: the two thresholds, the error budget over looks and rows.

use crate::model::Verdict;
use crate::stats::Effect;
use crate::stats::multiplicity::{benjamini_hochberg, holm, holm_levels};
use crate::stats::spending::Looks;

use super::{Interval, MetricPolicy, Policy, Reason, SideStats};

/// Exponent of the spending function for reds: most of the budget is kept for the last looks, yet a
/// change that is many times the noise can stop at the first.
const RED_RHO: f64 = 3.0;
/// The same for greens: spent evenly, because most rows are unchanged and should stop early.
const GREEN_RHO: f64 = 1.0;
/// Power that the minimum detectable effect is stated for.
pub const MDE_POWER: f64 = 0.9;

/// What must be decided about one noisy row, turned so that positive is worse.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    pub effect: Effect,
    /// Smallest log change worth a red or an improvement.
    pub floor: f64,
    /// Largest log change that a green may hide.
    pub tolerance: f64,
    /// Share of the red and of the green budget that this look is worth.
    pub red_share: f64,
    pub green_share: f64,
    pub fatal: bool,
}

impl Question {
    /// `worse` is +1 where a larger value is worse. `blocks` is zero for unpaired rows.
    pub fn new(
        effect: Effect,
        worse: f64,
        rule: &MetricPolicy,
        sides: (&SideStats, &SideStats),
        policy: &Policy,
        blocks: u32,
    ) -> Self {
        let (base, head) = sides;
        let smaller = base.location.min(head.location);
        let absolute = if smaller > 0.0 { (rule.floor.absolute.max(0.0) / smaller).ln_1p() } else { 0.0 };
        let floor = rule.floor.relative.max(0.0).ln_1p().max(absolute);
        let looks = Looks::new(policy.sequential.min_blocks, policy.sequential.max_blocks);
        let share = |rho| if blocks == 0 { 1.0 } else { looks.share(blocks, rho) };
        Self {
            effect: if worse < 0.0 { effect.swapped() } else { effect },
            floor,
            tolerance: rule.tolerance.max(0.0).ln_1p().max(floor),
            red_share: share(RED_RHO),
            green_share: share(GREEN_RHO),
            fatal: rule.fatal,
        }
    }

    /// p of "not worse than the floor", as if all budget were spent at this look.
    fn p_worse(&self) -> f64 {
        (self.effect.p_above(self.floor) / self.red_share).min(1.0)
    }

    fn p_better(&self) -> f64 {
        (self.effect.p_below(-self.floor) / self.red_share).min(1.0)
    }
}

/// The answer to a [`Question`].
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    pub verdict: Verdict,
    pub reason: Reason,
    /// Turned back to head/base.
    pub interval: Interval,
    pub p_worse: f64,
    pub p_adjusted: f64,
    /// After Benjamini and Hochberg, for ordering a listing.
    pub q_value: f64,
    pub minimum_detectable: f64,
}

/// Decides all questions of a comparison at once. Fatal and other rows are two families: a report
/// only row must not cost a fatal one its power. `worse` holds each question's direction.
pub fn decide(questions: &[Question], worse: &[f64], policy: &Policy) -> Vec<Decision> {
    let mut decisions: Vec<Option<Decision>> = vec![None; questions.len()];
    for fatal in [true, false] {
        let family: Vec<usize> = (0..questions.len()).filter(|&i| questions[i].fatal == fatal).collect();
        let of = |f: fn(&Question) -> f64| family.iter().map(|&i| f(&questions[i])).collect::<Vec<f64>>();
        let (p_worse, p_better) = (of(Question::p_worse), of(Question::p_better));
        let adjusted = holm(&p_worse);
        let levels = holm_levels(&p_worse, policy.alpha);
        let better_levels = holm_levels(&p_better, policy.alpha);
        let listing = benjamini_hochberg(&p_worse);
        for (at, &index) in family.iter().enumerate() {
            let question = &questions[index];
            let raw = question.effect.p_above(question.floor);
            let (verdict, reason, level) =
                judge(question, (p_worse[at], levels[at]), (p_better[at], better_levels[at]), policy.alpha);
            decisions[index] = Some(Decision {
                verdict,
                reason,
                interval: interval(&question.effect, level, worse[index]),
                p_worse: raw,
                p_adjusted: adjusted[at],
                q_value: listing[at],
                minimum_detectable: (question.floor
                    + question.effect.detectable(levels[at] * question.red_share, MDE_POWER))
                .exp_m1(),
            });
        }
    }
    decisions.into_iter().flatten().collect()
}

/// Verdict, reason, and the one-sided level that decided.
fn judge(question: &Question, worse: (f64, f64), better: (f64, f64), alpha: f64) -> (Verdict, Reason, f64) {
    let (p_worse, worse_level) = worse;
    let (p_better, better_level) = better;
    if p_worse <= worse_level {
        return (Verdict::Regressed, Reason::BeyondFloor, worse_level * question.red_share);
    }
    if p_better <= better_level {
        return (Verdict::Improved, Reason::BelowFloor, better_level * question.red_share);
    }
    // No correction over rows: "every row is within tolerance" is an intersection of claims, each of
    // which must be shown, so the whole is at most as likely wrong as one of them (Berger 1982).
    let green_level = alpha * question.green_share;
    if question.effect.upper(green_level) < question.tolerance {
        return (Verdict::Pass, Reason::WithinTolerance, green_level);
    }
    (Verdict::Inconclusive, Reason::Open, worse_level * question.red_share)
}

fn interval(effect: &Effect, level: f64, worse: f64) -> Interval {
    let (low, high) = (effect.lower(level), effect.upper(level));
    let (low, high) = if worse < 0.0 { (-high, -low) } else { (low, high) };
    Interval { low: low.exp(), high: high.exp(), level: 1.0 - 2.0 * level }
}

/// A deterministic value: any change beyond both parts of the floor counts.
pub fn decide_exact(base: f64, head: f64, worse: f64, rule: &MetricPolicy) -> (Verdict, Reason) {
    let change = (head - base) * worse;
    let relative = change.abs() / base.abs();
    let beyond = change != 0.0
        && change.abs() > rule.floor.absolute
        && (relative > rule.floor.relative || base == 0.0);
    let verdict = match (beyond, change > 0.0) {
        (false, _) => Verdict::Pass,
        (true, true) => Verdict::Regressed,
        (true, false) => Verdict::Improved,
    };
    (verdict, Reason::Exact)
}
