//! The shift by which head is worse than base, from randomized blocks: an estimate, p-values, and the
//! interval obtained by inverting them.
//!
//! To test a shift, head's repetitions are moved back by it. If that is the true shift, the labels are exchangeable:
//! every order that the schedule could have drawn is equally likely (Fisher 1935).

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::density::{BANDWIDTH, KERNEL_REACH, STEP, Table, kernel};
use super::draws::Draws;
use super::scores::{BlockCosts, Scores};

/// Share of the level that goes to the scores of near pairs; the rest goes to ranks, which reject distant
/// shifts.
const NEAR_SHARE: f64 = 0.9;
/// A shift is a candidate if the pairs agree with it at least this much, relative to the estimate. Data with
/// several modes have several candidates, and a bound must lie beyond all of them.
const CANDIDATE: f64 = 0.7;
/// Factor by which the steps grow in the search for the first rejected shift.
const GROWTH: f64 = 1.3;
/// Distance beyond the range of the data at which no pair agrees; all farther shifts are equally unlikely.
const BEYOND: f64 = 4.0 * BANDWIDTH;
/// An unbounded interval ends at a factor of e⁴: benchmarks whose times differ by more are not compared.
const FARTHEST: f64 = 4.0;
/// Number of bisection steps between a shift that is rejected and one that isn't.
const BISECTIONS: u32 = 6;

/// A shift that was tested, with its result.
#[derive(Debug, Clone, Copy, PartialEq)]
struct AskedShift {
    /// Distance from the estimate.
    away: f64,
    /// p of "the true shift is this or less" if the shift lies below the estimate, and of "this or more" if
    /// it lies above.
    p: f64,
}

/// The reason why the mode of the differences does not represent the code. A regression needs no such check:
/// its test is valid for any noise that is independent of the sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blur {
    /// Repetitions fall on a grid, such as a scheduler's slices.
    Grid,
    /// Hardly any two repetitions agree.
    Scattered,
}

/// Largest result of `comb` at which repetitions are usable. In recordings, processes that had their
/// processor to themselves reach 0.1; grids of slices begin at 0.7.
const MOST_COMB: f64 = 0.3;
/// Smallest support of a usable mode. In recordings, hosts that switch speed have 0.04 or more; processors
/// shared with a competitor reach 0.03.
const LEAST_SUPPORT: f64 = 0.035;

/// One-sided level at which the width of an interval is converted to a standard error, and its normal
/// quantile.
const LEVEL: f64 = 0.05;
const LEVEL_Z: f64 = 1.645;

/// Cached intermediate results.
#[derive(Debug, Default)]
struct ShiftCache {
    /// Recomputed if missing, because the scores take a thousand times the memory of the blocks.
    scores: Option<Scores>,
    /// p-values, by the bits of the shift: bounds at several levels need the same shifts.
    p: HashMap<(u64, Towards), f64>,
}

impl ShiftCache {
    fn bytes(&self) -> usize {
        /// Bytes of a shift and its p-value, including the map's overhead.
        const ANSWER: usize = 48;
        self.scores.as_ref().map_or(0, Scores::bytes) + self.p.len() * ANSWER
    }
}

/// The inference from one row's blocks.
#[derive(Debug)]
pub struct Shift {
    blocks: Arc<[BlockCosts]>,
    answers: Mutex<ShiftCache>,
    draws: Draws,
    /// The smallest p that any scores of these blocks could give.
    finest: f64,
    comb: f64,
    estimate: f64,
    support: f64,
    range: (f64, f64),
    /// Candidates below and above the estimate, nearest first.
    below: Vec<AskedShift>,
    above: Vec<AskedShift>,
    standard_error: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Towards {
    Above,
    Below,
}

impl Towards {
    /// Returns the sign of the direction, away from the estimate, in which limits are rejected.
    fn outwards(self) -> f64 {
        match self {
            Self::Above => -1.0,
            Self::Below => 1.0,
        }
    }
}

impl Shift {
    /// Returns `None` if the blocks can't be scored.
    pub fn new(blocks: impl Into<Arc<[BlockCosts]>>) -> Option<Self> {
        let blocks = blocks.into();
        let scores = Scores::new(&blocks)?;
        let estimate = mode(&scores);
        let draws = Draws::of_blocks(&blocks);
        let mut shift = Self {
            draws,
            finest: draws.finest(&scores.ranks(estimate)),
            comb: comb(&blocks),
            estimate,
            support: scores.support(estimate),
            range: scores.range(),
            below: Vec::new(),
            above: Vec::new(),
            standard_error: 0.0,
            blocks,
            answers: Mutex::default(),
        };
        shift.below = shift.candidates(&scores, Towards::Above);
        shift.above = shift.candidates(&scores, Towards::Below);
        shift.answers().scores = Some(scores);
        shift.standard_error = shift.half_width(LEVEL) / LEVEL_Z;
        Some(shift)
    }

    /// Frees intermediate data if it takes more than `most` bytes. The next query computes it again.
    pub fn put_away(&self, most: usize) {
        let mut answers = self.answers();
        if answers.bytes() > most {
            *answers = ShiftCache::default();
        }
    }

    fn answers(&self) -> MutexGuard<'_, ShiftCache> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the possible true shifts on one side of the estimate: those that pairs agree with, and always
    /// zero, because most changes have no effect.
    fn candidates(&self, scores: &Scores, towards: Towards) -> Vec<AskedShift> {
        let sign = towards.outwards();
        let end = self.end(towards);
        let enough = CANDIDATE * scores.agreement(self.estimate);
        let agrees = |away: &f64| scores.agreement(self.estimate + sign * away) >= enough;
        let cells = (end / BANDWIDTH) as u32;
        let away = (1..=cells).map(|cell| f64::from(cell) * BANDWIDTH).filter(agrees);
        let none = (-self.estimate * sign > 0.0).then_some(-self.estimate * sign);
        let ask = |away: f64| AskedShift { away, p: self.p_by(scores, self.estimate + sign * away, towards) };
        let mut asked: Vec<AskedShift> = away.chain(none).map(ask).collect();
        asked.sort_by(|a, b| a.away.total_cmp(&b.away));
        asked
    }

    /// Returns the distance from the estimate at which no pair agrees any more.
    fn end(&self, towards: Towards) -> f64 {
        let (low, high) = self.range;
        let end = match towards {
            Towards::Above => self.estimate - low,
            Towards::Below => high - self.estimate,
        };
        end.max(0.0) + BEYOND
    }

    /// Returns the mode of the pairwise differences.
    pub fn estimate(&self) -> f64 {
        self.estimate
    }

    /// Returns why the repetitions can't show that nothing changed; `None` if they can.
    pub fn blur(&self) -> Option<Blur> {
        if self.comb > MOST_COMB {
            return Some(Blur::Grid);
        }
        (self.support < LEAST_SUPPORT).then_some(Blur::Scattered)
    }

    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Returns the one-sided p of "the true shift is `limit` or less": the largest p of all those shifts,
    /// because data with several modes can agree with a distant shift even if they don't agree with a nearer
    /// one.
    pub fn p_above(&self, limit: f64) -> f64 {
        self.p(limit, Towards::Above)
    }

    /// Returns the one-sided p of "the true shift is `limit` or more".
    pub fn p_below(&self, limit: f64) -> f64 {
        self.p(limit, Towards::Below)
    }

    /// Returns the bound that the true shift exceeds with confidence 1 − `alpha`.
    pub fn lower(&self, alpha: f64) -> f64 {
        self.bound(alpha, Towards::Above)
    }

    /// Returns the bound that the true shift stays below with confidence 1 − `alpha`.
    pub fn upper(&self, alpha: f64) -> f64 {
        self.bound(alpha, Towards::Below)
    }

    /// Returns half the width of the interval that excludes `alpha` at each end.
    pub fn half_width(&self, alpha: f64) -> f64 {
        f64::midpoint(self.upper(alpha), -self.lower(alpha))
    }

    /// Returns the standard error of a normal distribution whose interval has the same width.
    pub fn standard_error(&self) -> f64 {
        self.standard_error
    }

    fn asked(&self, towards: Towards) -> &[AskedShift] {
        match towards {
            Towards::Above => &self.below,
            Towards::Below => &self.above,
        }
    }

    fn p(&self, limit: f64, towards: Towards) -> f64 {
        let away = towards.outwards() * (limit - self.estimate);
        if away <= 0.0 {
            return 1.0;
        }
        let farther = self.asked(towards).iter().filter(|asked| asked.away >= away).map(|asked| asked.p);
        farther.fold(self.p_value(limit, towards), f64::max)
    }

    /// Returns the distance at which rejection begins beyond the farthest candidate that is not rejected.
    fn bound(&self, alpha: f64, towards: Towards) -> f64 {
        if self.finest / NEAR_SHARE > alpha {
            // Nothing can be rejected. In a large suite with few blocks, most rows are of this kind.
            return towards.outwards() * FARTHEST;
        }
        let at = |away: f64| self.estimate + towards.outwards() * away;
        let rejected = |away: &f64| self.p(at(*away), towards) <= alpha;
        let last = self.asked(towards).iter().rfind(|asked| asked.p > alpha);
        let mut inside = last.map_or(0.0, |asked| asked.away);
        let start = inside;
        let end = self.end(towards);
        let further = std::iter::successors(Some(BANDWIDTH), |x| Some(x * GROWTH)).map(|x| start + x);
        let mut further = further.take_while(|x| *x < end).chain([end]);
        let found = further.find(|away| {
            let found = rejected(away);
            if !found {
                inside = *away;
            }
            found
        });
        match found {
            Some(outside) => at(narrowed(inside, outside, |away| rejected(&away))),
            None => towards.outwards() * FARTHEST,
        }
    }

    /// Returns the p of "the true shift is `shift`" against "it is more" (`Above`) or "it is less" (`Below`).
    fn p_value(&self, shift: f64, towards: Towards) -> f64 {
        let (key, mut answers) = ((shift.to_bits(), towards), self.answers());
        if let Some(p) = answers.p.get(&key) {
            return *p;
        }
        if answers.scores.is_none() {
            answers.scores = Scores::new(&self.blocks);
        }
        // The constructor has already scored these blocks, so scoring them again succeeds and the fallback is
        // never used.
        let p = answers.scores.as_ref().map_or(1.0, |scores| self.p_by(scores, shift, towards));
        answers.p.insert(key, p);
        p
    }

    fn p_by(&self, scores: &Scores, shift: f64, towards: Towards) -> f64 {
        let sign = -towards.outwards();
        let near = self.draws.p_value(&scores.at(shift), sign) / NEAR_SHARE;
        if near <= self.finest / (1.0 - NEAR_SHARE) {
            // Ranks can't give a smaller p-value than this.
            return near.min(1.0);
        }
        let ranks = self.draws.p_value(&scores.ranks(shift), sign) / (1.0 - NEAR_SHARE);
        near.min(ranks).min(1.0)
    }
}

/// Searches between a distance that is not rejected and one that is; returns the largest one found not to be
/// rejected.
fn narrowed(mut inside: f64, mut outside: f64, rejected: impl Fn(f64) -> bool) -> f64 {
    /// The first step of a search is one bandwidth wide, with a margin for the rounding error of its start.
    const NARROW: f64 = 1.001 * BANDWIDTH;
    let mut steps = BISECTIONS;
    while steps > 0 {
        let middle = f64::midpoint(inside, outside);
        steps -= u32::from(outside - inside <= NARROW);
        if rejected(middle) { outside = middle } else { inside = middle }
    }
    inside
}

/// Returns the highest point of the agreement, smoothed slightly so that three equal repetitions alone can't
/// create it.
fn mode(scores: &Scores) -> f64 {
    /// Number of grid points per kernel width.
    const WIDTH: i64 = 4;
    let step = BANDWIDTH / WIDTH as f64;
    let (low, high) = scores.range();
    let (center, cells) = (f64::midpoint(low, high), ((high - low) / 2.0 / step).ceil() as i64 + 1);
    let at = |cell: i64| center + cell as f64 * step;
    let reach = cells + WIDTH + 1;
    let agreement: Vec<f64> = (-reach..=reach).map(|cell| scores.agreement(at(cell))).collect();
    let height = |cell: i64| {
        let [left, own, right] =
            [cell - WIDTH, cell, cell + WIDTH].map(|cell| agreement[(cell + reach) as usize]);
        own + f64::midpoint(left, right)
    };
    let (mut best, mut most) = (0, f64::NEG_INFINITY);
    // From the center outwards, so that ties are resolved alike on both sides.
    for away in 0..=cells {
        let (up, down) = (height(away), height(-away));
        if up.max(down) > most {
            most = up.max(down);
            best = match up.total_cmp(&down) {
                Ordering::Equal => 0,
                Ordering::Greater => away,
                Ordering::Less => -away,
            };
        }
    }
    let (left, right) = (height(best - 1), height(best + 1));
    let curvature = left - 2.0 * most + right;
    let peak = if curvature < 0.0 { (0.5 * (left - right) / curvature).clamp(-1.0, 1.0) } else { 0.0 };
    at(best) + step * peak
}

/// Distance up to which a comb is searched for: repetitions may consist of as few as one or two scheduler slices.
const COMB_REACH: f64 = 0.75;
/// Maximum number of repetitions of one process that are searched for a comb.
const COMB_REPETITIONS: usize = 256;
/// A second peak must be this many times as high as the gap before it.
const TOOTH: f64 = 3.0;

/// Returns how clearly the repetitions of a process fall on a grid: how often two of them differ by one
/// narrow amount, relative to how often they agree, provided that smaller differences are rare. For ordinary
/// noise the frequency of differences decreases from zero on, without such a peak; waiting for whole
/// scheduler slices creates one. Such repetitions show how often the process waited, and little about the
/// program.
fn comb(blocks: &[BlockCosts]) -> f64 {
    let kernel = kernel();
    let mut table = Table::zeros(-KERNEL_REACH * BANDWIDTH, COMB_REACH + KERNEL_REACH * BANDWIDTH);
    for process in blocks.iter().flatten() {
        // Every pair is compared, so only evenly spaced repetitions of a long process are used.
        let every = process.costs.len().div_ceil(COMB_REPETITIONS).max(1);
        let costs: Vec<f64> = process.costs.iter().step_by(every).copied().collect();
        for (at, one) in costs.iter().enumerate() {
            let apart: Vec<f64> = costs[..at].iter().map(|other| (one - other).abs()).collect();
            table.add(&apart, 1.0, &kernel);
        }
    }
    let agree = table.at(0.0);
    let (mut gap, mut tooth) = (agree, 0.0_f64);
    for cell in 0..=(COMB_REACH / STEP) as usize {
        let height = table.at(cell as f64 * STEP);
        gap = gap.min(height);
        if height > TOOTH * gap {
            tooth = tooth.max(height);
        }
    }
    if agree > 0.0 { tooth / agree } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use rand::rngs::ChaCha12Rng;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::scores::ProcessCosts;

    /// Returns pairs drawn by coins. Every process has `repetitions` repetitions that vary by `noise`, and
    /// head's are `shift` larger.
    fn session(blocks: usize, repetitions: usize, noise: f64, shift: f64, seed: u64) -> Vec<BlockCosts> {
        let mut random = ChaCha12Rng::seed_from_u64(seed);
        let mut one_block = || -> BlockCosts {
            let coins: [bool; 2] = [random.random(), random.random()];
            let mut process = |slot: u8| {
                let head = coins[usize::from(slot / 2)] == slot.is_multiple_of(2);
                let level = if random.random::<f64>() < 0.3 { 0.5 } else { 0.0 };
                let costs = (0..repetitions).map(|_| {
                    let wave: f64 = (0..4).map(|_| random.random::<f64>() - 0.5).sum();
                    level + noise * wave + if head { shift } else { 0.0 }
                });
                ProcessCosts { slot, head, costs: costs.collect(), ..ProcessCosts::default() }
            };
            (0..4).map(&mut process).collect()
        };
        (0..blocks).map(|_| one_block()).collect()
    }

    fn changed(blocks: &[BlockCosts], change: impl Fn(&mut ProcessCosts)) -> Vec<BlockCosts> {
        let mut blocks = blocks.to_vec();
        blocks.iter_mut().flatten().for_each(change);
        blocks
    }

    #[test]
    fn sides_that_never_meet_are_bounded_on_both_sides() {
        for shift in [0.2, 0.58, 1.5, 4.7, -0.58] {
            let shifts = Shift::new(session(12, 8, 0.004, shift, 3)).unwrap();
            let (low, high) = (shifts.lower(1e-3), shifts.upper(1e-3));
            assert!(low > shift - 0.02 && high < shift + 0.02, "{shift}: {low} to {high}");
        }
    }

    #[test]
    fn a_level_that_the_coins_cannot_reach_bounds_nothing() {
        let shifts = Shift::new(session(4, 8, 0.004, 0.2, 3)).unwrap();
        assert!(shifts.lower(0.01) > 0.18);
        assert_eq!((shifts.lower(1e-5), shifts.upper(1e-5)), (-FARTHEST, FARTHEST));
    }

    #[test]
    fn six_blocks_that_never_meet_are_enough_for_a_suite_of_three_rows() {
        // The shift is larger than the distance of the host's two states.
        let shifts = Shift::new(session(6, 8, 0.004, 0.75, 3)).unwrap();
        let level = 0.8 * 0.01 / 3.0;
        let found = (shifts.p_above(0.01), shifts.lower(level));
        assert!(found.0 <= level && found.1 > 0.25, "{found:?}");
    }

    #[test]
    fn swapping_the_sides_mirrors_the_answer() {
        let blocks = session(12, 8, 0.01, 0.03, 5);
        let swapped = changed(&blocks, |process| process.head = !process.head);
        let (one, other) = (Shift::new(blocks).unwrap(), Shift::new(swapped).unwrap());
        assert!((one.estimate() + other.estimate()).abs() < 1e-6);
        for alpha in [0.05, 1e-3] {
            assert!((one.lower(alpha) + other.upper(alpha)).abs() < 1e-6);
            assert!((one.upper(alpha) + other.lower(alpha)).abs() < 1e-6);
        }
    }

    #[test]
    fn a_bound_has_the_same_resolution_wherever_the_search_begins() {
        for start in (0..1000).map(|at| f64::from(at) * 1.7e-5) {
            let bound = narrowed(start, start + BANDWIDTH, |away| away - start > 0.31 * BANDWIDTH);
            assert!((bound - start - 19.0 / 64.0 * BANDWIDTH).abs() < 1e-15, "{start}: {bound}");
        }
    }

    #[test]
    fn units_change_nothing_and_a_slower_head_moves_everything_by_as_much() {
        let blocks = session(12, 8, 0.01, 0.0, 6);
        let scaled = changed(&blocks, |process| process.costs.iter_mut().for_each(|cost| *cost += 13.8));
        let slowed =
            changed(&blocks, |p| p.costs.iter_mut().for_each(|c| *c += if p.head { 0.7 } else { 0.0 }));
        let of = |blocks: &[BlockCosts]| {
            let shift = Shift::new(blocks).unwrap();
            [shift.lower(0.01), shift.estimate(), shift.upper(0.01)]
        };
        for ((plain, scaled), slowed) in of(&blocks).into_iter().zip(of(&scaled)).zip(of(&slowed)) {
            assert!((plain - scaled).abs() < 1e-6, "{plain} {scaled}");
            assert!((plain + 0.7 - slowed).abs() < 0.004, "{plain} {slowed}");
        }
    }

    /// Tries all 256 outcomes of the coins of four blocks, for noise with two states and one extreme process.
    #[test]
    fn among_all_draws_of_the_coins_small_p_values_are_as_rare_as_they_say() {
        for seed in 0..2 {
            let mut blocks = session(4, 3, 0.02, 0.0, seed);
            blocks[1][2].costs = vec![1.1, 0.02, 0.9];
            let p: Vec<f64> = (0..256_u32)
                .map(|coins| {
                    let mut drawn = blocks.clone();
                    for (number, block) in drawn.iter_mut().enumerate() {
                        for process in block {
                            let coin = coins >> (2 * number + usize::from(process.slot / 2)) & 1 == 1;
                            process.head = coin == process.slot.is_multiple_of(2);
                        }
                    }
                    Shift::new(drawn).unwrap().p_above(0.0)
                })
                .collect();
            for level in [1.0 / 256.0, 2.0 / 256.0, 0.02, 0.05, 0.1] {
                let found = p.iter().filter(|p| **p <= level).count() as f64 / 256.0;
                assert!(found <= level, "seed {seed}: {found} at {level}");
            }
        }
    }

    #[test]
    fn extreme_values_are_answered_and_prove_nothing() {
        let with = |costs: fn(usize) -> Vec<f64>| {
            let mut number = 0;
            let mut blocks = session(8, 1, 0.0, 0.0, 9);
            blocks.iter_mut().flatten().for_each(|process| {
                process.costs = costs(number);
                number += 1;
            });
            Shift::new(blocks)
        };
        let equal = with(|_| vec![0.0; 8]).unwrap();
        assert_eq!((equal.estimate(), equal.p_above(0.0)), (0.0, 1.0));
        let ends = with(|at| vec![if at % 3 == 0 { -690.0 } else { 690.0 }]).unwrap();
        assert!(ends.p_above(0.01) > 0.01);
        let many = with(|at| (0..10_000).map(|i| ((i * 7919 + at) % 1000) as f64 * 1e-5).collect()).unwrap();
        assert!(many.estimate().abs() < 0.01);
        assert!(with(|_| vec![f64::NAN]).is_none() && with(|_| Vec::new()).is_none());
        assert!(Shift::new(Vec::<BlockCosts>::new()).is_none());
    }
}
