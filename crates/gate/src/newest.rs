//! The newest sessions of a row as a series: how much they differ, whether the last ones are slower than a
//! level, and which of them form a faster level.

use benchgate_stats::robust::{Fit, ScalePrior};
use benchgate_stats::{Effect, describe};

/// Minimum number of sessions that form a level. A single session may be fast by chance.
pub const LEVEL_SESSIONS: usize = 5;

/// Evidence at which a slowdown is certain, or certainly over: the logarithm of a thousand.
const CERTAIN: f64 = 7.0;
/// Largest contribution of one session. At least two sessions are needed, because a single outlier must not
/// change the verdict.
const OF_ONE: f64 = 5.0;
/// Evidence at which the sessions before and after an improvement form two levels. More evidence is needed
/// than for a slowdown, because the dividing session is chosen among many, and one lucky night must not make
/// all later ones look slow.
const IMPROVED: f64 = 2.0 * OF_ONE;
/// Minimum number of possible orders of the sessions, so that "the fast ones come last" is not chance: it
/// takes 2 fast sessions of 20, 3 of 11, or 5 of 10. A benchmark that is occasionally fast has them in any
/// order.
const ORDERS: f64 = 150.0;
/// Number of standard errors at which a slowdown is likely: one unchanged night in a hundred exceeds it.
pub(super) const LIKELY: f64 = 2.33;
/// Number of standard errors by which a level must be better than the level that it replaces; the difference must
/// also exceed the floor. Otherwise the best of several levels could be the best by chance.
pub(super) const BETTER: f64 = 3.0;
/// Number of sessions at the end of a slowdown that determine its current size.
const NEWEST: usize = 10;
/// Smallest plausible standard deviation between sessions, as a log ratio.
const LEAST_SCALE: f64 = 2e-4;
/// Degrees of freedom of an assumed spread when it is combined with data.
pub(super) const ASSUMED_DF: f64 = 4.0;
/// Variance of a median relative to that of a mean, for a normal distribution.
pub(super) const OF_MEDIAN: f64 = std::f64::consts::FRAC_PI_2;

/// The costs of one row in its newest sessions, oldest first.
#[derive(Debug, Clone, Default)]
pub struct NewestCosts {
    pub good: Vec<f64>,
    /// Costs in later sessions that are excluded because they were slow.
    pub slow: Vec<f64>,
    pub now: f64,
    /// Costs in the last sessions before the row's acceptance. They are of other levels, but show how much
    /// sessions differ.
    pub before: Vec<f64>,
    /// The spread between sessions of the metric's other rows, once these have enough sessions.
    pub(super) neighbors: Option<ScalePrior>,
}

impl NewestCosts {
    pub fn new(good: Vec<f64>, slow: Vec<f64>, now: f64) -> Self {
        Self { good, slow, now, before: Vec::new(), neighbors: None }
    }

    pub(super) fn stored(&self) -> Vec<f64> {
        [self.good.as_slice(), &self.slow].concat()
    }

    pub(super) fn nights(&self) -> Vec<f64> {
        [self.good.as_slice(), &self.slow, &[self.now]].concat()
    }

    pub(super) fn is_long(&self) -> bool {
        self.good.len() + self.slow.len() >= LEVEL_SESSIONS
    }

    /// Returns the spread of other rows, if there are enough sessions. With few sessions, all rows share the
    /// conditions of a few days, so many rows don't help.
    pub(super) fn of_neighbors(&self) -> Option<ScalePrior> {
        self.neighbors.filter(|_| self.is_long())
    }

    /// Returns the spread before the acceptance, if enough sessions show it. The change of level is one of many
    /// differences, so their median does not need the levels. The accepted change may also have changed the
    /// spread, so this one has the weight of an assumed one at most.
    pub(super) fn of_before(&self) -> Option<ScalePrior> {
        let (scale, df) = scale_of(&[&self.before]).filter(|_| self.before.len() >= LEVEL_SESSIONS)?;
        Some(ScalePrior { variance: scale * scale, df: df.min(ASSUMED_DF) })
    }

    /// Returns the spread that other sessions show than those of the row's level.
    pub(super) fn known_prior(&self) -> Option<ScalePrior> {
        self.of_neighbors().or_else(|| self.of_before())
    }

    pub(super) fn fit(&self) -> Option<Fit> {
        let (scale, df) = scale_of(&[&self.stored()]).filter(|_| self.is_long())?;
        Some(Fit { center: 0.0, scale, n: df as usize + 1, df })
    }

    /// Returns the scale and its degrees of freedom, combined with that of other rows or of earlier sessions
    /// if known.
    pub(super) fn scale(&self) -> Option<(f64, f64)> {
        let own = scale_of(&[&self.stored()]);
        match self.known_prior() {
            Some(prior) => Some(steadied(own.unwrap_or_default(), prior)),
            None => own.filter(|_| self.is_long()),
        }
    }

    /// Returns the scale and its degrees of freedom, combined with that of other rows or, while there are few
    /// sessions, with an assumed one. An assumed scale would hide slowdowns of a suite of few rows for weeks.
    pub(super) fn steadied_scale(&self, assumed_sd: f64) -> (f64, f64) {
        if let Some(scale) = self.scale() {
            return scale;
        }
        let assumed = ScalePrior { variance: assumed_sd * assumed_sd, df: ASSUMED_DF };
        let own = scale_of(&[&self.stored()]).unwrap_or_default();
        steadied(own, assumed)
    }
}

/// A slowdown relative to some sessions.
pub(super) struct Slowdown {
    pub(super) effect: Effect,
    pub(super) is_certain: bool,
    /// Costs of the sessions in which it is visible, oldest first.
    pub(super) nights: Vec<f64>,
}

impl Slowdown {
    pub(super) fn is_likely(&self) -> bool {
        self.effect.center > LIKELY * self.effect.se
    }
}

/// The question whether a row is slower than in its history. Floor and tolerance are on the log scale.
#[derive(Debug, Clone, Copy)]
pub struct GradualQuestion {
    pub floor: f64,
    pub tolerance: f64,
    /// True if the session joins the baseline if it is good.
    pub storing: bool,
    /// The spread between sessions that is assumed while they are few.
    pub assumed_sd: f64,
}

pub(super) fn steadied((scale, df): (f64, f64), prior: ScalePrior) -> (f64, f64) {
    let both = df + prior.df;
    let variance = (prior.df * prior.variance + df * scale * scale) / both;
    (variance.sqrt().max(LEAST_SCALE), both)
}

/// Returns the slowdown of the last of these sessions relative to a level from the given number of sessions:
/// a cumulative sum of the log likelihood ratio between that level and one that is slower by the tolerance
/// (Page 1954, Biometrika 41:100–115).
pub(super) fn slowdown(
    mut nights: Vec<f64>,
    (center, sessions): (f64, usize),
    (scale, df): (f64, f64),
    question: &GradualQuestion,
) -> Option<Slowdown> {
    let &GradualQuestion { floor, tolerance, storing, .. } = question;
    // A change of exactly the floor is not a slowdown, whatever the tolerance.
    let slow = tolerance.max(1.5 * floor);
    let middle = (slow / 2.0).max(1.25 * floor);
    let distance = 2.0 * (slow - middle) / scale;
    let (mut evidence, mut began) = (0.0_f64, 0);
    for (night, cost) in nights.iter().enumerate() {
        if evidence == 0.0 {
            began = night;
        }
        let ratio = distance * (cost - center - middle) / scale;
        // After a slowdown is repaired, the first session passes at once, but joins the baseline only after a
        // second one.
        let least = if storing || night + 1 < nights.len() { -OF_ONE } else { f64::NEG_INFINITY };
        evidence = (evidence + ratio.clamp(least, OF_ONE)).clamp(0.0, CERTAIN);
    }
    if evidence == 0.0 {
        return None;
    }
    let nights = nights.split_off(began);
    let slower = &nights[nights.len().saturating_sub(NEWEST)..];
    let share = share_of_median(slower.len()) + share_of_median(sessions);
    let effect = Effect { center: describe::median(slower)? - center, se: scale * share.sqrt(), df };
    let is_certain = evidence >= CERTAIN && slower.len() > 1;
    Some(Slowdown { effect, is_certain, nights })
}

/// Returns the good sessions since the last clear improvement.
pub(super) fn improved(good: &[f64], scale: f64, floor: f64) -> Option<&[f64]> {
    let mut found = None;
    while let Some(at) = improvement(found.unwrap_or(good), scale, floor) {
        found = Some(&found.unwrap_or(good)[at..]);
    }
    found
}

/// Returns the first session of the faster of two levels, if these sessions clearly have two: each session
/// likely belongs to its own level, and none at the slower level was as fast as the faster level. A benchmark
/// that is occasionally fast has no new level.
fn improvement(good: &[f64], scale: f64, floor: f64) -> Option<usize> {
    let divided = (1..good.len()).filter_map(|at| {
        let (before, after) = good.split_at(at);
        let orders = (1..=after.len()).map(|count| (at + count) as f64 / count as f64).product::<f64>();
        if orders < ORDERS {
            return None;
        }
        let (old, new) = (describe::median(before)?, describe::median(after)?);
        // If sessions resemble their predecessors, all of them differ more than neighbors do.
        let off = |(costs, level): (&[f64], f64)| costs.iter().map(|cost| (cost - level).abs()).collect();
        let off: Vec<Vec<f64>> = [(before, old), (after, new)].into_iter().map(off).collect();
        let scale = scale.max(describe::MEDIAN_DEVIATION * describe::median(&off.concat())?);
        let distance = (old - new) / scale;
        let alike = scale.max((old - new) / 4.0);
        if old - new <= floor.max(BETTER * scale) || before.iter().any(|cost| *cost < new + alike) {
            return None;
        }
        let ratio = |cost: &f64| (distance * (distance / 2.0 - (cost - new) / scale)).clamp(-OF_ONE, OF_ONE);
        let of_new: f64 = after.iter().map(ratio).sum();
        let of_old = -before.iter().map(ratio).sum::<f64>();
        (of_new >= IMPROVED && of_old >= IMPROVED).then_some((at, of_new + of_old))
    });
    divided.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at)
}

/// Returns whether the last of these sessions show that a slowdown from `center` to `slow` is over, by a
/// cumulative sum of the log likelihood ratio between the two levels. `storing` is the field of
/// [`super::StoredSessions`].
pub(super) fn is_over(costs: &[f64], (center, slow): (f64, f64), scale: f64, storing: bool) -> bool {
    let distance = (slow - center) / scale;
    let most = if storing { OF_ONE } else { f64::INFINITY };
    let evidence = costs.iter().fold(0.0_f64, |sum, cost| {
        let ratio = distance * (distance / 2.0 - (cost - center) / scale);
        (sum + ratio.min(most)).max(0.0)
    });
    evidence >= CERTAIN
}

/// Returns the variance of the median of so many sessions, relative to that of one. The median of two is
/// their mean.
pub(super) fn share_of_median(sessions: usize) -> f64 {
    let relative = if sessions > 2 { OF_MEDIAN } else { 1.0 };
    relative / sessions as f64
}

/// Returns the standard deviation between sessions and its degrees of freedom, from differences of neighbors,
/// which a gradual slowdown hardly affects.
pub(super) fn scale_of(series: &[&Vec<f64>]) -> Option<(f64, f64)> {
    let neighbors =
        |costs: &&Vec<f64>| -> Vec<f64> { costs.windows(2).map(|two| (two[1] - two[0]).abs()).collect() };
    let differences: Vec<f64> = series.iter().flat_map(neighbors).collect();
    let scale = describe::MEDIAN_DIFFERENCE * describe::median(&differences)?;
    Some((scale.max(LEAST_SCALE), (differences.len() as f64 / 2.0).max(1.0)))
}
