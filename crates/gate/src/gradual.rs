//! A night against earlier levels of its history. The newest sessions move along with a gradual slowdown, each of them
//! within the tolerance of those before; the level that was good months ago does not. Nor do the first sessions of all,
//! which are too few for a level: a slowdown right after them would otherwise be most of the first level.

use benchgate_core::model::{Run, counted, percents};
use benchgate_stats::robust::{Fit, ScalePrior};
use benchgate_stats::{Effect, describe};

/// Sessions of some days in the past that are part of the baseline.
#[derive(Debug, Clone, PartialEq)]
pub struct EarlierSessions {
    /// The first of these days, `2026-08-01`.
    pub since: String,
    pub runs: Vec<Run>,
}

/// Sessions that make a level. A single session may be fast by chance.
pub const LEVEL_SESSIONS: usize = 5;

/// The costs of one row on some days in the past.
#[derive(Debug, Clone, Default)]
pub struct EarlierCosts {
    pub since: String,
    pub costs: Vec<f64>,
}

/// Further data that a row is compared with, besides its newest sessions: its best level since the last acceptance, and all
/// sessions between then and now that were read. Costs as measured, without the shift of all rows taken out: a machine that
/// gets slower over months makes every row slower.
#[derive(Debug, Clone, Default)]
pub struct Earlier {
    levels: Vec<EarlierCosts>,
    /// The first sessions since the last acceptance, however few.
    first: EarlierCosts,
    /// The spread between sessions of the metric's other rows, once these have enough sessions.
    neighbors: Option<ScalePrior>,
    /// Values of the newest sessions, and of those that are excluded because they were slow: oldest first.
    recent: Vec<f64>,
    now: f64,
}

/// The comparison of the newest session with an earlier level.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradual {
    /// Effect of the sessions since the slowdown is visible, against the earlier level.
    pub effect: Effect,
    pub since: String,
    /// The number of sessions that it is compared with, if they are the first ones and too few for a level.
    pub first: Option<usize>,
    /// The evidence is enough for a verdict, if the effect is beyond the floor.
    pub is_certain: bool,
}

impl Gradual {
    /// `+4.1 % since 2026-08-01 (gradual)`, or `+4.1 % compared with the first 2 stored sessions (from 2026-08-01)`.
    pub fn text(&self) -> String {
        let Self { since, first, .. } = self;
        let slower = match self.effect.center.exp_m1() {
            slower if slower > 10.0 => format!("slower by {}", percents(slower)),
            slower => format!("{:+.1} %", 100.0 * slower),
        };
        match first {
            None => format!("{slower} since {since} (gradual)"),
            Some(1) => format!("{slower} compared with the first stored session ({since})"),
            Some(first) => {
                let first = counted(*first, "stored session");
                format!("{slower} compared with the first {first} (from {since})")
            }
        }
    }
}

/// A slowdown against some sessions.
struct Slowdown {
    effect: Effect,
    is_certain: bool,
    /// The sessions in which it is visible, oldest first.
    nights: Vec<f64>,
}

/// A row's question to its past. Floor and tolerance are on the log scale.
#[derive(Debug, Clone, Copy)]
pub struct GradualQuestion {
    pub floor: f64,
    pub tolerance: f64,
    /// The session joins the baseline if it is good.
    pub storing: bool,
    /// The spread between sessions that is assumed while they are few.
    pub assumed_sd: f64,
}

/// Evidence from which a slowdown is certain, or certainly over: the logarithm of a thousand.
const CERTAIN: f64 = 7.0;
/// The most that one session can contribute, so that two are needed: a single outlier has no effect on the verdict.
const OF_ONE: f64 = 5.0;
/// Standard errors from which a slowdown is likely: one unchanged night in a hundred.
const LIKELY: f64 = 2.33;
/// Standard errors by which another level must be better than the first one, and by more than the floor, to be the one
/// that counts. Otherwise the best of several levels is a lucky one.
const BETTER: f64 = 3.0;
/// Sessions at the end of a slowdown that determine its current size.
const NEWEST: usize = 10;
/// Smallest plausible standard deviation between sessions, as a log ratio.
const LEAST_SCALE: f64 = 2e-4;
/// Degrees of freedom of an assumed spread in addition to data.
pub(super) const ASSUMED_DF: f64 = 4.0;
/// Variance of a median, relative to that of a mean (normal distribution).
const OF_MEDIAN: f64 = std::f64::consts::FRAC_PI_2;

impl Earlier {
    /// `groups` of sessions of different days, oldest first.
    pub fn new(mut groups: Vec<EarlierCosts>, recent: Vec<f64>, now: f64) -> Self {
        let first = groups.first().cloned().unwrap_or_default();
        groups.retain(|group| group.costs.len() >= LEVEL_SESSIONS);
        Self { levels: groups, first, neighbors: None, recent, now }
    }

    /// Adds how much rows of one metric differ between sessions to each of them.
    pub fn share_scale(rows: &mut [&mut Self]) {
        let long = rows.iter().filter(|row| row.recent.len() >= LEVEL_SESSIONS);
        let fits: Vec<Fit> = long.filter_map(|row| row.fit()).collect();
        let prior = Some(ScalePrior::pooled(&fits)).filter(|prior| *prior != ScalePrior::NONE);
        rows.iter_mut().for_each(|row| row.neighbors = prior);
    }

    /// The level that counts: the first one, unless a later one is clearly better.
    fn level(&self, scale: f64, floor: f64) -> Option<(&EarlierCosts, f64)> {
        let mut levels =
            self.levels.iter().filter_map(|level| Some((level, describe::median(&level.costs)?)));
        let first = levels.next()?;
        let share = |level: &EarlierCosts| OF_MEDIAN / level.costs.len() as f64;
        Some(levels.fold(first, |best, level| {
            let error = scale * (share(best.0) + share(level.0)).sqrt();
            if best.1 - level.1 > floor.max(BETTER * error) { level } else { best }
        }))
    }

    /// The slowdown of the newest session, or of the sessions before it, against the earlier level, or against the first
    /// sessions if they are clearly better. `None` if the newest session does not continue a slowdown. `storing` as in
    /// [`super::StoredSessions`]; `assumed_sd` is the spread between sessions that is assumed while they are few.
    pub fn judge(&self, question: &GradualQuestion) -> Option<Gradual> {
        let of_level = self.since_level(question);
        if of_level.as_ref().is_some_and(|gradual| gradual.is_certain) {
            return of_level;
        }
        of_level.into_iter().chain(self.since_first(question)).max_by(|a, b| {
            let strength = |it: &Gradual| (it.is_certain, it.effect.center / it.effect.se);
            strength(a).partial_cmp(&strength(b)).unwrap_or(std::cmp::Ordering::Equal)
        })
    }

    fn since_level(&self, question: &GradualQuestion) -> Option<Gradual> {
        let (scale, df) = self.scale()?;
        let (level, center) = self.level(scale, question.floor)?;
        let Slowdown { effect, is_certain, .. } =
            self.slowdown(center, level.costs.len(), (scale, df), question)?;
        let is_likely = effect.center > LIKELY * effect.se;
        is_likely.then(|| Gradual { effect, since: level.since.clone(), first: None, is_certain })
    }

    /// The clearest slowdown after any number of the first sessions, if the first level contains it or there is none yet.
    fn since_first(&self, question: &GradualQuestion) -> Option<Gradual> {
        // So few sessions may agree by luck.
        let (scale, df) = self.steadied_scale(question.assumed_sd);
        let clear = |error: f64| question.floor.max(BETTER * error);
        let is_level = self.first.costs.len() >= LEVEL_SESSIONS;
        let level = describe::median(&self.first.costs).filter(|_| is_level);
        let counts = 1..=self.first.costs.len().min(2 * LEVEL_SESSIONS);
        let found = counts.filter_map(|count| {
            let center = describe::median(&self.first.costs[..count])?;
            let share = share_of_median(count) + share_of_median(self.first.costs.len());
            if level.is_some_and(|level| level - center <= clear(scale * share.sqrt())) {
                return None;
            }
            let Slowdown { effect, is_certain, nights } =
                self.slowdown(center, count, (scale, df), question)?;
            let levels = (center, center + effect.center);
            let is_clear = effect.center > clear(effect.se);
            (is_clear && !is_over(&nights, levels, scale, question.storing)).then(|| Gradual {
                effect,
                since: self.first.since.clone(),
                first: Some(count),
                is_certain,
            })
        });
        found.max_by(|a, b| (a.effect.center / a.effect.se).total_cmp(&(b.effect.center / b.effect.se)))
    }

    /// Whether the newest session is slower than the first ones by more than the tolerance, and the spread between sessions
    /// is assumed, so that nothing shows whether that is noise.
    pub fn may_be_slower_than_first(&self, tolerance: f64) -> bool {
        let counts = 1..=self.first.costs.len().min(LEVEL_SESSIONS - 1);
        self.known_prior().is_none()
            && counts
                .filter_map(|count| describe::median(&self.first.costs[..count]))
                .any(|center| self.now - center > tolerance)
    }

    /// The slowdown against `sessions` sessions around `center`: a cumulative sum of the log likelihood ratio between that
    /// level and one that is slower by the tolerance (Page 1954, Biometrika 41:100–115).
    fn slowdown(
        &self,
        center: f64,
        sessions: usize,
        (scale, df): (f64, f64),
        question: &GradualQuestion,
    ) -> Option<Slowdown> {
        let &GradualQuestion { floor, tolerance, storing, .. } = question;
        // A change of exactly the floor is not a slowdown, whatever the tolerance.
        let slow = tolerance.max(1.5 * floor);
        let middle = (slow / 2.0).max(1.25 * floor);
        let distance = 2.0 * (slow - middle) / scale;
        let (mut evidence, mut began) = (0.0_f64, 0);
        let mut nights: Vec<f64> = self.recent.iter().copied().chain([self.now]).collect();
        for (night, cost) in nights.iter().enumerate() {
            if evidence == 0.0 {
                began = night;
            }
            let ratio = distance * (cost - center - middle) / scale;
            // A change that repairs a slowdown passes at once, but joins the baseline only after a second night.
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

    /// The standard deviation between sessions and its degrees of freedom, from differences of neighbors: a gradual
    /// slowdown hardly shows in them.
    fn scale(&self) -> Option<(f64, f64)> {
        scale_of(&[&self.levels.first()?.costs, &self.recent])
    }

    /// With few sessions, rows share the conditions of a few days, so that many rows don't help.
    fn known_prior(&self) -> Option<ScalePrior> {
        self.neighbors.filter(|_| self.recent.len() >= LEVEL_SESSIONS)
    }

    fn fit(&self) -> Option<Fit> {
        let (scale, df) = scale_of(&[&self.recent])?;
        Some(Fit { center: 0.0, scale, n: df as usize + 1, df })
    }

    /// The scale and its degrees of freedom, together with that of other rows, or with an assumed one.
    fn steadied_scale(&self, assumed_sd: f64) -> (f64, f64) {
        let assumed = ScalePrior { variance: assumed_sd * assumed_sd, df: ASSUMED_DF };
        let prior = self.known_prior().unwrap_or(assumed);
        let (scale, df) = scale_of(&[&self.recent]).unwrap_or_default();
        let both = df + prior.df;
        let variance = (prior.df * prior.variance + df * scale * scale) / both;
        (variance.sqrt().max(LEAST_SCALE), both)
    }
}

/// Whether the last of these sessions show that a slowdown from `center` to `slow` is over: a cumulative sum of the log
/// likelihood ratio between the two levels. `storing` as in [`super::StoredSessions`].
pub(super) fn is_over(costs: &[f64], (center, slow): (f64, f64), scale: f64, storing: bool) -> bool {
    let distance = (slow - center) / scale;
    let most = if storing { OF_ONE } else { f64::INFINITY };
    let evidence = costs.iter().fold(0.0_f64, |sum, cost| {
        let ratio = distance * (distance / 2.0 - (cost - center) / scale);
        (sum + ratio.min(most)).max(0.0)
    });
    evidence >= CERTAIN
}

/// Variance of the median of so many sessions. That of two is their mean.
fn share_of_median(sessions: usize) -> f64 {
    let relative = if sessions > 2 { OF_MEDIAN } else { 1.0 };
    relative / sessions as f64
}

fn scale_of(series: &[&Vec<f64>]) -> Option<(f64, f64)> {
    let neighbors =
        |costs: &&Vec<f64>| -> Vec<f64> { costs.windows(2).map(|two| (two[1] - two[0]).abs()).collect() };
    let differences: Vec<f64> = series.iter().flat_map(neighbors).collect();
    let scale = describe::MEDIAN_DIFFERENCE * describe::median(&differences)?;
    Some((scale.max(LEAST_SCALE), (differences.len() as f64 / 2.0).max(1.0)))
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    const FLOOR: f64 = 0.00995;
    const TOLERANCE: f64 = 0.02956;

    fn question(storing: bool) -> GradualQuestion {
        GradualQuestion { floor: FLOOR, tolerance: TOLERANCE, storing, assumed_sd: 0.05 }
    }

    fn noise(random: &mut ChaCha8Rng) -> f64 {
        let mut uniform = || (f64::from(random.next_u32()) + 0.5) / 4_294_967_296.0;
        (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos()
    }

    /// Nights at these levels after ten at zero.
    fn nights(seed: u64, sd: f64, levels: &[f64]) -> Earlier {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut cost = |level: f64| level + sd * noise(&mut random);
        let costs = (0..10).map(|_| cost(0.0)).collect();
        let mut recent: Vec<f64> = levels.iter().map(|level| cost(*level)).collect();
        let now = recent.pop().unwrap();
        Earlier::new(vec![EarlierCosts { since: "2026-08-01".to_owned(), costs }], recent, now)
    }

    fn found(sd: f64, levels: &[f64]) -> usize {
        let certain = |seed: &u64| {
            let gradual = nights(*seed, sd, levels).judge(&question(true));
            gradual.is_some_and(|gradual| gradual.is_certain && gradual.effect.p_above(FLOOR) < 0.001)
        };
        (0..500).filter(certain).count()
    }

    #[test]
    fn three_percent_that_came_slowly_are_certain_on_a_calm_machine_and_never_pass_on_a_noisy_one() {
        let creep: Vec<f64> = (0..20).map(|night| 0.02 + 0.001 * f64::from(night)).collect();
        assert!(found(0.006, &creep) >= 490);
        let noisy = |seed: &u64| nights(*seed, 0.01, &creep).judge(&question(true)).is_some();
        assert_eq!((0..500).filter(noisy).count(), 500);
    }

    #[test]
    fn an_unchanged_row_is_hardly_ever_called_slower() {
        for sd in [0.002, 0.006, 0.01, 0.02] {
            assert!(found(sd, &[0.0; 20]) <= 1, "{sd}");
        }
    }

    #[test]
    fn a_night_like_a_slower_one_is_neither_certain_nor_usual() {
        let mut levels = [0.0; 20];
        levels[19] = 0.03;
        let judged = (0..500).filter_map(|seed| nights(seed, 0.005, &levels).judge(&question(true)));
        let certain: Vec<bool> = judged.map(|gradual| gradual.is_certain).collect();
        assert!(certain.len() >= 490 && certain.iter().filter(|is| **is).count() <= 5, "{}", certain.len());
    }

    #[test]
    fn a_slowdown_is_over_at_once_for_a_gate_and_after_two_nights_for_a_baseline() {
        let mut levels = [0.05; 21];
        levels[20] = 0.0;
        let open = |levels: &[f64], storing| {
            (0..100).filter(|seed| nights(*seed, 0.004, levels).judge(&question(storing)).is_some()).count()
        };
        // One normal session may be a fast outlier of the slow level.
        assert!(open(&levels, false) <= 2);
        assert_eq!(open(&levels, true), 100);
        levels[19] = 0.0;
        assert_eq!(open(&levels, true), 0);
    }

    #[test]
    fn a_better_level_than_the_first_counts_and_few_sessions_are_none() {
        let group = |since: &str, level: f64, count| EarlierCosts {
            since: since.to_owned(),
            costs: vec![level; count],
        };
        let groups =
            vec![group("2026-01-01", 0.1, 8), group("2026-04-01", 0.0, 8), group("2026-06-01", -0.1, 4)];
        let judged = Earlier::new(groups, vec![0.05; 20], 0.05).judge(&question(true)).unwrap();
        assert_eq!((judged.since.as_str(), judged.is_certain), ("2026-04-01", true));
        assert_eq!(judged.text(), "+5.1 % since 2026-04-01 (gradual)");
    }
}
