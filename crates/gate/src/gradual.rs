//! A night against earlier levels of its history. The newest sessions move along with a gradual slowdown, each of them
//! within the tolerance of those before; the level that was good months ago does not.

use benchgate_core::model::Run;
use benchgate_stats::Effect;
use benchgate_stats::describe;

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
    /// The evidence is enough for a verdict, if the effect is beyond the floor.
    pub is_certain: bool,
}

impl Gradual {
    /// `+4.1 % since 2026-08-01 (gradual)`.
    pub fn text(&self) -> String {
        format!("{:+.1} % since {} (gradual)", 100.0 * self.effect.center.exp_m1(), self.since)
    }
}

/// Evidence from which a gradual slowdown is certain: the logarithm of a thousand.
const CERTAIN: f64 = 7.0;
/// The most that one session can contribute: a single outlier has no effect on the verdict.
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
/// Variance of a median, relative to that of a mean (normal distribution).
const OF_MEDIAN: f64 = std::f64::consts::FRAC_PI_2;

impl Earlier {
    /// `groups` of sessions of different days, oldest first.
    pub fn new(mut groups: Vec<EarlierCosts>, recent: Vec<f64>, now: f64) -> Self {
        groups.retain(|group| group.costs.len() >= LEVEL_SESSIONS);
        Self { levels: groups, recent, now }
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

    /// The slowdown of the newest session, or of the sessions before it, against the earlier level: a cumulative sum of
    /// the log likelihood ratio between that level and one that is slower by the tolerance (Page 1954, Biometrika
    /// 41:100–115). `None` if the newest session does not continue a slowdown. `storing` as in
    /// [`super::StoredSessions`].
    pub fn judge(&self, floor: f64, tolerance: f64, storing: bool) -> Option<Gradual> {
        let (scale, df) = self.scale()?;
        let (level, center) = self.level(scale, floor)?;
        // A change of exactly the floor is not a slowdown, whatever the tolerance.
        let slow = tolerance.max(1.5 * floor);
        let middle = (slow / 2.0).max(1.25 * floor);
        let distance = 2.0 * (slow - middle) / scale;
        let (mut evidence, mut began) = (0.0_f64, 0);
        let nights: Vec<f64> = self.recent.iter().copied().chain([self.now]).collect();
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
        let slower = &nights[began..];
        let slower = &slower[slower.len().saturating_sub(NEWEST)..];
        // The median of two is their mean.
        let of_recent = if slower.len() > 2 { OF_MEDIAN } else { 1.0 };
        let share = of_recent / slower.len() as f64 + OF_MEDIAN / level.costs.len() as f64;
        let effect = Effect { center: describe::median(slower)? - center, se: scale * share.sqrt(), df };
        let is_certain = evidence >= CERTAIN && slower.len() > 1;
        let is_likely = effect.center > LIKELY * effect.se;
        is_likely.then(|| Gradual { effect, since: level.since.clone(), is_certain })
    }

    /// The standard deviation between sessions and its degrees of freedom, from differences of neighbors: a gradual
    /// slowdown hardly shows in them.
    fn scale(&self) -> Option<(f64, f64)> {
        let neighbors =
            |costs: &[f64]| -> Vec<f64> { costs.windows(2).map(|two| (two[1] - two[0]).abs()).collect() };
        let differences = [neighbors(&self.levels.first()?.costs), neighbors(&self.recent)].concat();
        let scale = describe::MEDIAN_DIFFERENCE * describe::median(&differences)?;
        Some((scale.max(LEAST_SCALE), (differences.len() as f64 / 2.0).max(1.0)))
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    const FLOOR: f64 = 0.00995;
    const TOLERANCE: f64 = 0.02956;

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
            let gradual = nights(*seed, sd, levels).judge(FLOOR, TOLERANCE, true);
            gradual.is_some_and(|gradual| gradual.is_certain && gradual.effect.p_above(FLOOR) < 0.001)
        };
        (0..500).filter(certain).count()
    }

    #[test]
    fn three_percent_that_came_slowly_are_certain_on_a_calm_machine_and_never_pass_on_a_noisy_one() {
        let creep: Vec<f64> = (0..20).map(|night| 0.02 + 0.001 * f64::from(night)).collect();
        assert!(found(0.006, &creep) >= 490);
        let noisy = |seed: &u64| nights(*seed, 0.01, &creep).judge(FLOOR, TOLERANCE, true).is_some();
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
        let judged = (0..500).filter_map(|seed| nights(seed, 0.005, &levels).judge(FLOOR, TOLERANCE, true));
        let certain: Vec<bool> = judged.map(|gradual| gradual.is_certain).collect();
        assert!(certain.len() >= 490 && certain.iter().filter(|is| **is).count() <= 5, "{}", certain.len());
    }

    #[test]
    fn a_slowdown_is_over_at_once_for_a_gate_and_after_two_nights_for_a_baseline() {
        let mut levels = [0.05; 21];
        levels[20] = 0.0;
        let open = |levels: &[f64], storing| {
            (0..100)
                .filter(|seed| nights(*seed, 0.004, levels).judge(FLOOR, TOLERANCE, storing).is_some())
                .count()
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
        let judged = Earlier::new(groups, vec![0.05; 20], 0.05).judge(FLOOR, TOLERANCE, true).unwrap();
        assert_eq!((judged.since.as_str(), judged.is_certain), ("2026-04-01", true));
        assert_eq!(judged.text(), "+5.1 % since 2026-04-01 (gradual)");
    }
}
