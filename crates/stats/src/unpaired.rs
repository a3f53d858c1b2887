//! Comparison of head and base without pairs: sessions of one program on one machine, of which a file usually has one.
//!
//! A *repetition* lies in a *process*, a process in a *session* (Kalibera and Jones 2013, ISMM). The spread
//! at a lower level says nothing about the spread at a higher one, so a level with a single unit has an
//! unknown spread, which gets a prior with t tails (Gelman 2006, Bayesian Anal. 1:515–534). The prior's scale
//! depends on how much the sessions were disturbed while they were measured, and all rows of a comparison
//! correct it together.

use super::describe;
use super::distributions::student_quantile;
use super::robust::{ENOUGH, Fit, NU, ScalePrior, fit, quicker_mean};
use crate::inference::Effect;

/// One side of a row, as costs: larger is worse.
#[derive(Debug, Clone, PartialEq)]
pub struct SeparateSide {
    /// One location for each independent unit: a session, or a process if the spread between processes is
    /// known.
    pub locations: Vec<f64>,
    /// Number of processes in a typical unit.
    pub processes: usize,
    /// Standard error of a location, from the spread inside its unit.
    pub within: f64,
    /// Disturbance of a typical session as a standard deviation; `None` if the data do not show it.
    pub disturbance: Option<f64>,
}

/// One row: both sides, and the standard deviation between units if known.
#[derive(Debug, Clone, PartialEq)]
pub struct UnpairedRow {
    pub base: SeparateSide,
    pub head: SeparateSide,
    pub known: Option<f64>,
}

/// The effects of a row for "head is worse" and for "head is better", and the prior standard deviation
/// between two units behind them. Both effects have the same center; if the sessions were disturbed to
/// different degrees, the two effects have different errors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimated {
    pub worse: Effect,
    pub better: Effect,
    pub between: f64,
    /// The disturbance from which the prior follows; `None` if a side of the row does not show any.
    pub disturbance: Option<f64>,
}

/// Standard deviation between sessions, and between the processes of a session, on an undisturbed machine. In
/// recordings of an idle machine, two processes of a calm row differ by 1 % in the median and by at most 3 %.
const SESSION: f64 = 0.015;
const PROCESS: f64 = 0.015;
/// Expected difference of two sessions, given the disturbance inside them: proportional to it and, because a
/// disturbed machine has modes, growing faster than that until both modes are seen. The three constants
/// follow from the recordings in tests/fixtures/corpus.
const LINEAR: f64 = 1.5;
const QUADRATIC: f64 = 30.0;
const MODES: f64 = 0.6;
/// Assumed disturbance of a session that was measured once, as on a loaded machine.
const UNSEEN: f64 = 0.15;
/// Largest disturbance that is counted for time lost to interruptions or spent waiting. A machine that is
/// this busy shows its modes, and losing more time doesn't make medians differ more.
pub const BUSY: f64 = 0.2;
/// Largest spread between sessions. In the recordings, two sessions of one program differ by at most a factor
/// of ten, and t tails reach beyond that.
const MOST_BETWEEN: f64 = 0.75;
/// Degrees of freedom of a prior.
const PRIOR_DF: f64 = 4.0;
/// Most degrees of freedom that rows add: rows have heavy tails, and no number of rows turns them into a
/// normal distribution.
const MOST_DF: f64 = 30.0;
/// Level of a whole comparison at which the common shift of its rows is bounded.
const LEVEL: f64 = 0.01;

/// The assumed difference between two units of one side.
struct Prior {
    sd: f64,
    df: f64,
}

impl Prior {
    fn new(side: &SeparateSide, disturbance: f64) -> Self {
        let unseen = if side.processes > 1 { SESSION } else { SESSION.hypot(PROCESS) };
        let grown = QUADRATIC * disturbance * disturbance;
        // Variances of one of the two sides that differ.
        let (calm, modes) =
            (unseen.powi(2) + (LINEAR * disturbance).powi(2) / 2.0, grown.min(MODES).powi(2) / 2.0);
        // A calm session may hide that the machine has modes, so its tails are heavy; modes that were seen
        // add no tails. The two parts are combined by Satterthwaite's approximation.
        let seen = (grown / MODES).powi(2).min(1.0) * modes;
        let hidden = calm + modes - seen;
        let df = (hidden + seen).powi(2) / (hidden.powi(2) / PRIOR_DF + seen.powi(2) / MOST_DF);
        Self { sd: (calm + modes).sqrt().min(MOST_BETWEEN), df }
    }
}

/// Returns the effects of all rows of one metric; `None` for a row in which a side has no unit.
pub fn effects(rows: &[UnpairedRow]) -> Vec<Option<Estimated>> {
    let most: Vec<f64> = rows.iter().map(|row| disturbance(&row.base).max(disturbance(&row.head))).collect();
    // Rows of one session share the machine, so no row was calmer than the typical one.
    let typical = describe::median(&most).unwrap_or_default();
    // Disturbances only slow a session down. If base was disturbed more than the rest, head looks faster but
    // never slower, and vice versa.
    let worse = toward(rows, typical, |row| disturbance(&row.head), alone);
    let better = toward(rows, typical, |row| disturbance(&row.base), not_worse);
    let both = |((worse, better), row): ((Option<Found>, Option<Found>), &UnpairedRow)| {
        let (worse, better) = (worse?, better?);
        let between = worse.between.max(better.between);
        let seen = row.base.disturbance.zip(row.head.disturbance);
        let disturbance = seen.map(|(base, head)| base.max(head).max(typical));
        Some(Estimated { worse: worse.effect, better: better.effect, between, disturbance })
    };
    worse.into_iter().zip(better).zip(rows).map(both).collect()
}

fn disturbance(side: &SeparateSide) -> f64 {
    side.disturbance.unwrap_or(UNSEEN)
}

/// The effect of a row in one direction.
#[derive(Clone, Copy)]
struct Found {
    effect: Effect,
    between: f64,
}

fn is_single(row: &UnpairedRow) -> bool {
    row.known.is_none() && row.base.locations.len() == 1 && row.head.locations.len() == 1
}

/// Returns the effects in one direction. `disturbed` gives the disturbance of the relevant session, and
/// `estimate` the effect of a row by itself.
fn toward(
    rows: &[UnpairedRow],
    typical: f64,
    disturbed: impl Fn(&UnpairedRow) -> f64,
    estimate: impl Fn(&UnpairedRow, f64) -> Option<Found>,
) -> Vec<Option<Found>> {
    let of_row = |row: &UnpairedRow| {
        let most = disturbance(&row.base).max(disturbance(&row.head));
        estimate(row, typical.max(if is_single(row) { disturbed(row) } else { most }))
    };
    let mut found: Vec<Option<Found>> = rows.iter().map(of_row).collect();
    let single: Vec<usize> =
        (0..rows.len()).filter(|&at| is_single(&rows[at]) && found[at].is_some()).collect();
    let divided = |&at: &usize| {
        let prior = |side| Prior::new(side, typical).sd;
        Some(Divided::new(found[at]?.effect, prior(&rows[at].base).hypot(prior(&rows[at].head))))
    };
    let priors: Vec<Divided> = single.iter().filter_map(divided).collect();
    for (at, effect) in single.into_iter().zip(together(&priors)) {
        if let Some(found) = &mut found[at] {
            found.effect = effect;
        }
    }
    found
}

impl UnpairedRow {
    fn prior(&self, side: &SeparateSide, disturbance: f64) -> Prior {
        match self.known {
            Some(sd) => Prior { sd, df: f64::INFINITY },
            None => Prior::new(side, disturbance),
        }
    }

    /// Returns the prior that is combined with a side's own units. The weight of an assumption decreases as
    /// sessions are added; a known value keeps its weight.
    fn scale_prior(&self, side: &SeparateSide, prior: &Prior) -> ScalePrior {
        let measured = side.locations.len().saturating_sub(1).max(1) as f64;
        let df = if self.known.is_some() { PRIOR_DF } else { PRIOR_DF / (measured * measured) };
        ScalePrior { variance: prior.sd * prior.sd, df }
    }
}

/// Estimates one row by itself: Welch's approximation on robust locations of both sides.
fn alone(row: &UnpairedRow, disturbance: f64) -> Option<Found> {
    let prior = |side: &SeparateSide| row.prior(side, disturbance);
    let (base_prior, head_prior) = (prior(&row.base), prior(&row.head));
    let fitted = |side: &SeparateSide, prior: &Prior| fit(&side.locations, row.scale_prior(side, prior));
    let (base, head) = (fitted(&row.base, &base_prior), fitted(&row.head, &head_prior));
    // Location, its variance, and the degrees of freedom of that variance.
    let of = |side: &SeparateSide, own: Option<Fit>, other: Option<Fit>, prior: &Prior| match (own, other) {
        (Some(own), _) => Some((own.center, variance_of_location(&side.locations, &own), own.df)),
        // One side has one process and the other several: all are of one session, so the others' spread applies.
        (None, Some(other)) if row.known.is_none() => {
            let variance = other.scale * other.scale + side.within * side.within;
            side.locations.first().map(|only| (*only, variance, other.df))
        }
        _ => side
            .locations
            .first()
            .map(|only| (*only, prior.sd * prior.sd + side.within * side.within, prior.df)),
    };
    let (base_center, base_variance, base_df) = of(&row.base, base, head, &base_prior)?;
    let (head_center, head_variance, head_df) = of(&row.head, head, base, &head_prior)?;
    let (se, joined) = welch((base_variance, base_df), (head_variance, head_df));
    // If both sides use the prior, it is one unknown, and not two that could cancel.
    let df = if base.is_none() && head.is_none() { base_df.min(head_df) } else { joined };
    let effect = Effect { center: head_center - base_center, se, df };
    Some(Found { effect, between: base_prior.sd.max(head_prior.sd) })
}

/// Returns the standard error of the difference of two locations, and its degrees of freedom, from the
/// variance and the degrees of freedom of each (Welch 1947, Biometrika 34:28–35).
fn welch((base, base_df): (f64, f64), (head, head_df): (f64, f64)) -> (f64, f64) {
    let variance = base + head;
    let denominator = base * base / base_df + head * head / head_df;
    (variance.sqrt(), if denominator > 0.0 { variance * variance / denominator } else { f64::INFINITY })
}

/// Estimates one row by itself, to bound how much worse head is. With enough sessions, the quicker ones are
/// used: they differ less, and slow sessions are attributed to the machine unless one side has more of them.
/// Their effect is used only if it is larger than the effect of all sessions, because a head that is slow in
/// half of its sessions moves the location of all sessions.
fn not_worse(row: &UnpairedRow, disturbance: f64) -> Option<Found> {
    let found = alone(row, disturbance)?;
    let [base, head] = [&row.base, &row.head].map(|side| {
        let prior = row.scale_prior(side, &row.prior(side, disturbance));
        (side.locations.len() >= ENOUGH).then(|| quicker_mean(&side.locations, prior)).flatten()
    });
    let Some((base, head)) = base.zip(head) else { return Some(found) };
    let (se, df) = welch((base.se.powi(2), base.df), (head.se.powi(2), head.df));
    let center = found.effect.center.max(head.center - base.center);
    Some(Found { effect: Effect { center, se, df }, ..found })
}

/// Returns the variance of a fitted location. The model's own variance is right only for its tails: it is too
/// small for a normal distribution and too large for heavier tails. Huber's estimate takes the shape from the
/// values themselves (Huber 1967, Proc. 5th Berkeley Symp. 1:221–233); the model's variance is mixed in with
/// the weight of a few values.
fn variance_of_location(values: &[f64], fit: &Fit) -> f64 {
    let model = fit.effect().se.powi(2);
    let n = fit.n as f64;
    let squared = fit.scale * fit.scale;
    let (mut influence, mut slope) = (0.0, 0.0);
    for value in values {
        let distance = (value - fit.center).powi(2) / squared;
        let weight = (NU + 1.0) / (NU + distance);
        influence += weight * weight * distance * squared;
        slope += weight * (NU - distance) / (NU + distance);
    }
    let measured = influence * n / (n - 1.0) / (slope * slope);
    if measured.is_finite() {
        (PRIOR_DF * model + (n - 1.0) * measured) / (PRIOR_DF + n - 1.0)
    } else {
        model
    }
}

/// A row's effect, and the two parts of its standard error.
struct Divided {
    effect: Effect,
    /// The effect of the sessions on this row alone.
    own: f64,
    /// The effect of the sessions on all rows alike.
    common: f64,
}

impl Divided {
    /// Divides the error of a row. Half of the difference between a typical row's sessions is common to all
    /// rows. If a row was disturbed more than a typical one, the rest affects only this row, because the
    /// others were not disturbed.
    fn new(effect: Effect, typical: f64) -> Self {
        let common = typical.min(effect.se) / 2f64.sqrt();
        Self { effect, own: (effect.se * effect.se - common * common).sqrt(), common }
    }
}

/// Estimates rows that have one session per side and share both sessions. Unknown are the effect of a session
/// on all rows alike and its effect on each row. The densest half of the rows shows how much rows differ and
/// bounds their common shift, because rows that did not change should not have moved.
fn together(rows: &[Divided]) -> Vec<Effect> {
    let n = rows.len() as f64;
    let centers: Vec<f64> = rows.iter().map(|row| row.effect.center).collect();
    let Some(middle) = densest(&centers) else { return Vec::new() };
    let mut relative: Vec<f64> =
        unmoved(rows, middle).into_iter().map(|row| (row.effect.center - middle).abs() / row.own).collect();
    relative.sort_by(f64::total_cmp);
    // If one of two rows changed, or two of three, no two rows agree on the unchanged level, so four are needed.
    let rows_beyond = if rows.len() < 4 { 0.0 } else { n - 1.0 };
    let compared = if relative.len() < 4 { 0.0 } else { relative.len() as f64 - 1.0 };
    let spread = relative[(relative.len() - 1) / 2] * consistency(relative.len());
    // Rows have heavy tails: if most agree more than the prior expects, the others become more credible only
    // slowly.
    let weight = compared / if spread > 1.0 { 6.0 } else { 30.0 };
    let factor = ((PRIOR_DF + weight * spread * spread) / (PRIOR_DF + weight)).sqrt();
    let joint = |row: &Divided| {
        let df = (row.effect.df + rows_beyond / 6.0).min(MOST_DF);
        // The common shift is one event for all rows, so its quantile needs no correction for their number.
        let once = student_quantile(LEVEL, row.effect.df) / student_quantile(LEVEL / n, df);
        let bound = middle.abs() + factor * row.own / n.sqrt();
        let common = if rows.len() == 1 { row.common } else { row.common.min(bound) };
        Effect { center: row.effect.center, se: (factor * row.own).hypot(once * common), df }
    };
    rows.iter().map(joint).collect()
}

/// Returns the rows without those that certainly changed, because these don't show how much unchanged rows
/// differ. The densest half always stays complete.
fn unmoved(rows: &[Divided], middle: f64) -> Vec<&Divided> {
    let p = |row: &Divided| {
        let away = Effect { center: (row.effect.center - middle).abs(), ..row.effect };
        2.0 * away.p_above(0.0)
    };
    let mut kept: Vec<(f64, &Divided)> = rows.iter().map(|row| (p(row), row)).collect();
    kept.sort_by(|a, b| a.0.total_cmp(&b.0));
    let most = rows.len().saturating_sub(1) / 2;
    let moved = (0..most).take_while(|&at| kept[at].0 <= LEVEL / (rows.len() - at) as f64).count();
    kept.into_iter().skip(if rows.len() < 4 { 0 } else { moved }).map(|(_, row)| row).collect()
}

/// Returns the mean of the shortest interval that holds half of the values; if there are several, the one
/// nearest to no change.
fn densest(values: &[f64]) -> Option<f64> {
    let sorted = describe::sorted(values);
    let half = sorted.len().div_ceil(2);
    let halves = sorted
        .windows(half.max(1))
        .filter_map(|held| Some((held.last()? - held.first()?, describe::mean(held)?)));
    let nearer = |a: &(f64, f64), b: &(f64, f64)| a.0.total_cmp(&b.0).then(a.1.abs().total_cmp(&b.1.abs()));
    halves.min_by(nearer).map(|(_, mean)| mean)
}

/// Returns the factor that converts the lower median distance from the densest half's mean to the standard
/// deviation of normal values (simulated, within 10 % for five rows or more).
fn consistency(rows: usize) -> f64 {
    let n = rows as f64;
    1.4826 * if rows % 2 == 1 { 1.0 + 2.7 / (n - 0.1) } else { 1.0 + 4.1 / (n - 2.35).max(1.3) }
}

/// Number of stretches that a sequence is divided into: enough to detect a drift and two modes.
const STRETCHES: usize = 10;
/// Number of repetitions from which the mean shows rare interruptions.
const ENOUGH_FOR_MEAN: usize = 50;

/// Estimates how much a session was disturbed, from the costs of its repetitions in the order taken: the
/// standard deviation of the medians of its stretches, or the share of time that was lost to interruptions,
/// whichever is larger.
pub fn disturbance_of(costs: &[f64]) -> Option<f64> {
    let stretches = costs.len().min(STRETCHES);
    let cut = |at: usize| at * costs.len() / stretches;
    let medians: Vec<f64> =
        (0..stretches).filter_map(|at| describe::median(&costs[cut(at)..cut(at + 1)])).collect();
    // The standard deviation of a few values is itself uncertain, and may be small by chance.
    let uncertain = 1.0 + 1.0 / (stretches.max(2) - 1) as f64;
    let slow = describe::stddev(&medians)? * uncertain;
    let lost = if costs.len() < ENOUGH_FOR_MEAN {
        0.0
    } else {
        let median = describe::median(costs)?;
        let mean = describe::mean(&costs.iter().map(|cost| (cost - median).exp()).collect::<Vec<f64>>())?;
        mean.ln().min(BUSY)
    };
    Some(slow.max(lost))
}

/// Returns the standard error of the location of a session with this disturbance.
pub fn within(disturbance: Option<f64>, repetitions: f64) -> f64 {
    // The factor for the median of normal values.
    1.2533 * disturbance.unwrap_or_default() / repetitions.clamp(1.0, STRETCHES as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(location: f64, disturbance: f64) -> SeparateSide {
        SeparateSide { locations: vec![location], processes: 1, within: 0.0, disturbance: Some(disturbance) }
    }

    fn row(change: f64, disturbance: f64) -> UnpairedRow {
        UnpairedRow { base: side(0.0, disturbance), head: side(change, disturbance), known: None }
    }

    /// Returns the p of "no more than 1 % slower" at Holm's first step.
    fn adjusted(rows: &[UnpairedRow], at: usize) -> f64 {
        effects(rows)[at].unwrap().worse.p_above(0.01) * rows.len() as f64
    }

    #[test]
    fn a_change_of_one_row_is_seen_whatever_the_number_of_rows_and_whatever_another_row_does() {
        for rows in 1..=20 {
            let mut suite: Vec<UnpairedRow> =
                (0..rows).map(|at| row(if at % 2 == 0 { 0.01 } else { -0.01 }, 0.01)).collect();
            suite[0] = row(0.4, 0.01);
            assert!(adjusted(&suite, 0) < 0.01, "{rows} rows: {}", adjusted(&suite, 0));
            if rows > 1 {
                suite[1] = row(-2.3, 0.01);
                assert!(adjusted(&suite, 0) < 0.01, "{rows} rows, one 10 × faster: {}", adjusted(&suite, 0));
            }
        }
    }

    #[test]
    fn what_all_rows_have_in_common_is_a_session_as_long_as_the_prior_allows_it() {
        let moved = |by: f64| -> Vec<UnpairedRow> { (0..20).map(|_| row(by, 0.01)).collect() };
        assert!(adjusted(&moved(0.06), 0) > 0.01);
        assert!(adjusted(&moved(0.4), 0) < 0.01);
    }

    #[test]
    fn a_hundred_of_five_thousand_rows_stand_out_by_a_tenth() {
        let noise = |at: usize| 0.01 * ((at * 7919 % 1000) as f64 / 1000.0 - 0.5);
        let suite: Vec<UnpairedRow> =
            (0..5000).map(|at| row(noise(at) + if at % 50 == 0 { 0.095 } else { 0.0 }, 0.012)).collect();
        assert!(adjusted(&suite, 50) < 0.01 && adjusted(&suite, 51) > 0.5, "{}", adjusted(&suite, 50));
    }

    #[test]
    fn disturbed_sessions_say_little() {
        assert!(adjusted(&[row(0.4, 0.01)], 0) < 0.01);
        assert!(adjusted(&[row(0.4, 0.1)], 0) > 0.01);
        assert!(adjusted(&[row(1.5, 0.4)], 0) > 0.01);
        // A calm row next to disturbed ones was measured on the same machine, so its calm proves little.
        assert!(adjusted(&[row(0.4, 0.01), row(0.0, 0.2), row(0.0, 0.2)], 0) > 0.01);
    }

    #[test]
    fn on_a_machine_that_is_seen_to_be_busy_six_times_slower_is_slower() {
        for rows in [1, 3, 20] {
            let suite = |by: f64| -> Vec<UnpairedRow> {
                (0..rows).map(|at| row(if at == 0 { by } else { 0.0 }, 0.2)).collect()
            };
            assert!(adjusted(&suite(3.4_f64.ln()), 0) > 0.01);
            assert!(adjusted(&suite(6_f64.ln()), 0) < 0.01, "{rows}: {}", adjusted(&suite(6_f64.ln()), 0));
        }
    }

    #[test]
    fn a_base_that_was_disturbed_alone_does_not_hide_that_head_is_slower() {
        let suite = |base: f64, head: f64, by: f64| {
            let mut rows: Vec<UnpairedRow> =
                (0..20).map(|at| row(if at % 2 == 0 { 0.01 } else { -0.01 }, 0.01)).collect();
            rows[0] = UnpairedRow { base: side(0.0, base), head: side(by, head), known: None };
            effects(&rows)[0].unwrap()
        };
        let p_worse = |base, head| 20.0 * suite(base, head, 0.3).worse.p_above(0.01);
        assert!(p_worse(0.1, 0.01) < 0.01 && p_worse(0.01, 0.1) > 0.01);
        let (slower, faster) = (suite(0.01, 0.1, 0.3), suite(0.1, 0.01, -0.3));
        assert_eq!(slower.worse, faster.better.swapped(), "mirrored sides, mirrored answers");
    }

    #[test]
    fn rows_that_changed_for_certain_do_not_widen_the_others() {
        let widths = |changed: f64| {
            let mut suite: Vec<UnpairedRow> = [0.0, 0.0, 0.01, -0.04, 0.05].map(|by| row(by, 0.01)).to_vec();
            (suite[0], suite[1]) = (row(0.4, 0.01), row(changed, 0.01));
            effects(&suite)[0].unwrap().worse.se
        };
        assert!(widths(-2.3) <= widths(0.0), "{} {}", widths(-2.3), widths(0.0));
    }

    #[test]
    fn a_row_that_was_disturbed_alone_has_its_disturbance_to_itself() {
        let mut suite: Vec<UnpairedRow> =
            (0..20).map(|at| row(if at % 2 == 0 { 0.01 } else { -0.01 }, 0.01)).collect();
        suite[0] = row(0.25, 0.035);
        assert!(adjusted(&suite, 0) > 0.01, "{}", adjusted(&suite, 0));
        suite[0] = row(0.25, 0.01);
        assert!(adjusted(&suite, 0) < 0.01, "{}", adjusted(&suite, 0));
    }

    #[test]
    fn the_error_of_many_sessions_is_that_of_their_own_tails() {
        let se = |shape: fn(f64) -> f64| {
            // Quantiles of a uniform distribution, transformed by `shape`.
            let values: Vec<f64> = (0..40).map(|at| shape((f64::from(at) - 19.5) / 20.0)).collect();
            let fitted = fit(&values, ScalePrior::NONE).unwrap();
            (variance_of_location(&values, &fitted).sqrt(), fitted.effect().se)
        };
        let (short, model) = se(|x| 0.01 * x);
        assert!(short > 1.1 * model, "{short} {model}");
        let (long, model) = se(|x| 0.01 * x * (1.0 + 9.0 * x.abs().powi(12)));
        assert!(long < model, "{long} {model}");
    }

    #[test]
    fn slow_sessions_of_both_sides_do_not_hide_that_the_others_agree() {
        let slow = |by: f64| SeparateSide {
            locations: (0..21).map(|at| if at < 4 { by } else { 0.02 * f64::from(at % 3) }).collect(),
            ..side(0.0, 0.02)
        };
        for by in [0.08, 0.16, 0.32] {
            let row = UnpairedRow { base: slow(by), head: slow(by), known: None };
            let upper = effects(&[row])[0].unwrap().better.upper(0.01);
            assert!(upper < 0.02, "{by}: {upper}");
        }
    }

    #[test]
    fn a_head_that_is_slow_in_half_of_its_sessions_is_not_shown_by_its_quicker_ones() {
        let half = |by: f64| SeparateSide {
            locations: (0..21)
                .map(|at| 0.002 * f64::from(at % 3) + if at % 2 == 0 { by } else { 0.0 })
                .collect(),
            ..side(0.0, 0.02)
        };
        let row = UnpairedRow { base: half(0.0), head: half(0.08), known: None };
        let found = effects(&[row])[0].unwrap();
        assert!(found.better.center >= found.worse.center && found.better.upper(0.01) > 0.03, "{found:?}");
    }

    #[test]
    fn several_sessions_outweigh_the_prior() {
        let many = |by: f64| -> Vec<f64> { (0..21).map(|at| by + 0.01 * f64::from(at % 5 - 2)).collect() };
        let side = |by: f64| SeparateSide { locations: many(by), ..side(0.0, 0.02) };
        let found =
            effects(&[UnpairedRow { base: side(0.0), head: side(0.05), known: None }])[0].unwrap().worse;
        assert!(found.p_above(0.01) < 1e-4 && found.se < 0.007, "{found:?}");
    }

    #[test]
    fn a_stretch_that_was_slow_and_time_that_was_lost_both_disturb() {
        let calm: Vec<f64> = (0..100).map(|at| 0.01 * f64::from(at % 5)).collect();
        let with = |slow: std::ops::Range<usize>, by: f64| {
            let mut costs = calm.clone();
            costs[slow].iter_mut().for_each(|cost| *cost += by);
            disturbance_of(&costs).unwrap()
        };
        assert!(disturbance_of(&calm).unwrap() < 0.002);
        assert!(with(60..100, 0.2) > 0.09);
        // One repetition in fifty waited and took thirty times as long.
        assert!(with(0..2, 3.4) > 0.19);
        assert_eq!(disturbance_of(&[1.0]), None);
    }
}
