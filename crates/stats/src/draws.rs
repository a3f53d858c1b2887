//! The labels that the schedule could have drawn instead, inferred from the order of the processes.
//!
//! Computes the chance that a redrawn schedule would have favored head as much.
//!
//! Every block contributes one of a few equally likely values to a sum, and the question is how often the sum
//! is as large as the observed one. The contributions are rounded to whole steps, so that the distribution
//! can be counted and need not be simulated: the same blocks give the same p on every machine. The rounding
//! is part of the statistic, so the test stays exact.

use smallvec::{SmallVec, smallvec};

use super::scores::{BlockCosts, ProcessCosts, Scored};
use super::student_tail;

/// The unit that one coin decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Draws {
    /// Each pair of neighboring processes has its own coin, so p is exact and has a fine resolution.
    Pairs,
    /// One coin decides a whole block, ABBA or BAAB. Redrawing these coins is exact, but with n blocks p
    /// can't be below 2⁻ⁿ. Redrawing all orders of a block's processes has a finer resolution. Because ABBA
    /// cancels drift, its statistic varies at most as much as that of a random order if neighboring processes
    /// are at least as alike as distant ones, so the p of all orders is conservative. The coins give the
    /// p-value down to their limit, the orders below it.
    Blocks,
}

/// Minimum evidence required from the coins of the blocks, whatever the orders show: a p of at most one in
/// 64.
const COINS_AT_LEAST: f64 = 6.0;
/// Largest block for which all orders are counted; for a larger block, only the two sides are swapped.
const MOST_ORDERED: usize = 8;

impl Draws {
    /// Infers the coins from the blocks. A block that is not a mirror image was drawn with two coins. If all
    /// blocks of a session are mirror images, one coin per block is assumed; with two coins, this happens
    /// once in 2ⁿ sessions. The p of pairs is divided by the chance of at least one block that is not a
    /// mirror image.
    pub fn of_blocks(blocks: &[BlockCosts]) -> Self {
        if blocks.iter().any(alternates) { Self::Pairs } else { Self::Blocks }
    }

    /// Returns the probability that other draws would have favored head as much (`sign` 1) or base as much
    /// (−1). The value is approximate if it is too large to matter.
    pub fn p_value(self, blocks: &[Vec<Scored>], sign: f64) -> f64 {
        self.p_by(blocks, sign, tail)
    }

    /// Returns the probability that other draws would have given head's processes as high scores. The value is
    /// exact even if it is large.
    pub fn exact_p_value(blocks: &[BlockCosts], score: impl Fn(&ProcessCosts) -> f64) -> f64 {
        let scored =
            |process: &ProcessCosts| Scored { slot: process.slot, head: process.head, score: score(process) };
        let scores: Vec<Vec<Scored>> =
            blocks.iter().map(|block| block.iter().map(scored).collect()).collect();
        Self::of_blocks(blocks).p_by(&scores, 1.0, exact_tail)
    }

    fn p_by(self, blocks: &[Vec<Scored>], sign: f64, tail: fn(&[Contribution]) -> f64) -> f64 {
        let all = |contributions: fn(&[Scored], f64) -> Vec<Contribution>| {
            tail(&blocks.iter().flat_map(|block| contributions(block, sign)).collect::<Vec<Contribution>>())
        };
        match self {
            Self::Pairs => (all(pairs) / drawn_by_pairs(blocks.len())).min(1.0),
            Self::Blocks => {
                let (by_coins, by_orders) = (all(whole), all(orders));
                let finest = (-(blocks.len() as f64 / 2.0).max(COINS_AT_LEAST)).exp2();
                if by_coins > finest { by_coins.max(by_orders) } else { by_orders }
            }
        }
    }

    /// Returns the smallest p that these blocks can give, because the observation itself is one of the draws.
    pub fn finest(self, blocks: &[Vec<Scored>]) -> f64 {
        let one = |contributions: fn(&[Scored], f64) -> Vec<Contribution>| -> f64 {
            let all = blocks.iter().flat_map(|block| contributions(block, 1.0));
            all.map(|contribution| 1.0 / contribution.possible.len() as f64).product()
        };
        match self {
            Self::Pairs => (one(pairs) / drawn_by_pairs(blocks.len())).min(1.0),
            Self::Blocks => one(orders),
        }
    }
}

/// Returns the chance that a coin per pair draws at least one block that is not a mirror image.
fn drawn_by_pairs(blocks: usize) -> f64 {
    1.0 - (-(blocks as f64)).exp2()
}

/// Returns whether the same side runs first in both pairs.
fn alternates(block: &BlockCosts) -> bool {
    let side = |slot: u8| {
        let mut found = block.iter().filter(|process| process.slot == slot);
        found.next().filter(|_| found.next().is_none()).map(|process| process.head)
    };
    match [0, 1, 2, 3].map(side) {
        [Some(a), Some(b), Some(c), Some(d)] => a != b && c != d && a == c,
        _ => false,
    }
}

/// Returns the contributions of the pairs whose two processes both ran.
fn pairs(block: &[Scored], sign: f64) -> Vec<Contribution> {
    let of_pair = |(at, one): (usize, &Scored)| {
        let partner = block[at + 1..].iter().find(|other| other.slot / 2 == one.slot / 2)?;
        let (base, head) = if one.head { (partner, one) } else { (one, partner) };
        (base.head != head.head).then(|| Contribution::swapped(sign * (head.score - base.score)))
    };
    block.iter().enumerate().filter_map(of_pair).collect()
}

fn whole(block: &[Scored], sign: f64) -> Vec<Contribution> {
    vec![Contribution::swapped(sign * contrast(block, |process, _| process.head))]
}

/// Returns the contributions of all orders with the same number of head processes in the block.
fn orders(block: &[Scored], sign: f64) -> Vec<Contribution> {
    if block.len() > MOST_ORDERED {
        return whole(block, sign);
    }
    let heads = block.iter().filter(|process| process.head).count();
    let labels = (0..1_u32 << block.len()).filter(|labels| labels.count_ones() as usize == heads);
    let possible = labels.map(|labels| sign * contrast(block, |_, at| labels >> at & 1 == 1)).collect();
    vec![Contribution { possible, observed: sign * contrast(block, |process, _| process.head) }]
}

/// Returns the mean score of the processes labeled head minus that of the others.
fn contrast(block: &[Scored], is_head: impl Fn(&Scored, usize) -> bool) -> f64 {
    let (mut sums, mut counts) = ([0.0; 2], [0.0; 2]);
    for (at, process) in block.iter().enumerate() {
        let side = usize::from(is_head(process, at));
        sums[side] += process.score;
        counts[side] += 1.0;
    }
    sums[1] / counts[1] - sums[0] / counts[0]
}

/// Number of steps that the largest possible sum is divided into. A rounding error of half a step per block
/// is far smaller than the contribution of one repetition.
const STEPS: f64 = 400.0;
/// Distance, in standard deviations, below which the normal distribution is used: p is then above one in
/// seven, which never decides a verdict.
const CLEARLY_OPEN: f64 = 1.0;

/// The list is on the stack, because millions of p-values each need a few kilobytes.
type Chances = SmallVec<[f64; 1024]>;

/// The possible contributions of one block, all equally likely, and its observed contribution.
#[derive(Debug, Clone, PartialEq)]
pub struct Contribution {
    pub possible: SmallVec<[f64; 6]>,
    pub observed: f64,
}

impl Contribution {
    /// Creates the contribution of a block whose two sides may be swapped.
    pub fn swapped(observed: f64) -> Self {
        Self { possible: smallvec![observed, -observed], observed }
    }
}

/// Returns [`exact_tail`], or an approximation by the normal distribution for a p that can't decide a
/// verdict: searching for a bound needs many of those.
pub fn tail(blocks: &[Contribution]) -> f64 {
    clearly_open(blocks).unwrap_or_else(|| exact_tail(blocks))
}

/// Returns P(sum ≥ observed sum) if every block's value is drawn again; 1 if nothing can differ.
pub fn exact_tail(blocks: &[Contribution]) -> f64 {
    let largest = |block: &Contribution| block.possible.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
    let reach: f64 = blocks.iter().map(largest).sum();
    let finite = blocks.iter().flat_map(|block| &block.possible).all(|value| value.is_finite());
    if !finite || reach <= 0.0 {
        return 1.0;
    }
    let step = reach / STEPS;
    let whole = |value: f64| (value / step).round() as i64;
    // The remaining distance to the observed sum, and the most by which the remaining blocks can change the
    // sum.
    let most =
        |block: &Contribution| block.possible.iter().map(|&value| whole(value).abs()).max().unwrap_or(0);
    let observed: i64 = blocks.iter().map(|block| whole(block.observed)).sum();
    let mut rest: i64 = blocks.iter().map(most).sum();
    // `chances[i]` belongs to the sum `low + i`. Sums that are certain to reach the observed value are
    // counted in `reached`; those that can't reach it any more are dropped.
    let (mut low, mut reached) = (0_i64, 0.0);
    // References are swapped instead of the vectors, which hold their kilobytes inline.
    let (mut chances, mut next) = (&mut Chances::from_elem(1.0, 1), &mut Chances::new());
    for block in blocks {
        let most = most(block);
        rest -= most;
        let (first, end) = ((low - most).max(observed - rest), low + chances.len() as i64 + most);
        let open = first..end.min(observed + rest).max(first);
        let share = 1.0 / block.possible.len().max(1) as f64;
        next.clear();
        next.resize((open.end - open.start) as usize, 0.0);
        for &value in &block.possible {
            // Offset between the sums of `chances` and those of `next`.
            let start = low + whole(value);
            let inside = |sum: i64| (sum - start).clamp(0, chances.len() as i64) as usize;
            let (from, to) = (inside(open.start), inside(open.end));
            let into = ((start + from as i64 - open.start).max(0) as usize).min(next.len());
            for (place, chance) in next[into..].iter_mut().zip(&chances[from..to]) {
                *place += share * chance;
            }
            reached += share * chances[to..].iter().sum::<f64>();
        }
        std::mem::swap(&mut chances, &mut next);
        low = open.start;
    }
    reached.min(1.0)
}

fn clearly_open(blocks: &[Contribution]) -> Option<f64> {
    let (mut mean, mut variance, mut observed) = (0.0, 0.0, 0.0);
    for block in blocks {
        let n = block.possible.len() as f64;
        let center = block.possible.iter().sum::<f64>() / n;
        mean += center;
        variance += block.possible.iter().map(|v| (v - center) * (v - center)).sum::<f64>() / n;
        observed += block.observed;
    }
    let z = (observed - mean) / variance.sqrt();
    (z < CLEARLY_OPEN).then(|| student_tail(z, f64::INFINITY))
}

#[cfg(test)]
mod tests {
    use crate::scores::ProcessCosts;

    use super::*;

    fn block(sides: &[bool]) -> BlockCosts {
        let process = |(slot, head): (usize, &bool)| ProcessCosts {
            slot: slot as u8,
            head: *head,
            costs: vec![0.0],
            ..ProcessCosts::default()
        };
        sides.iter().enumerate().map(process).collect()
    }

    fn scored(slot: u8, head: bool, score: f64) -> Scored {
        Scored { slot, head, score }
    }

    #[test]
    fn one_block_that_is_no_mirror_image_shows_a_coin_for_each_pair() {
        let (abba, baab) = (block(&[false, true, true, false]), block(&[true, false, false, true]));
        assert_eq!(Draws::of_blocks(&[abba.clone(), baab.clone()]), Draws::Blocks);
        let abab = block(&[false, true, false, true]);
        assert_eq!(Draws::of_blocks(&[abba, baab, abab]), Draws::Pairs);
        // No schedule of pairs draws this order.
        assert_eq!(Draws::of_blocks(&[block(&[false, false, true, true])]), Draws::Blocks);
        assert_eq!(Draws::of_blocks(&[block(&[false, true])]), Draws::Blocks);
    }

    #[test]
    fn a_process_whose_partner_was_lost_says_nothing() {
        let whole = [scored(0, false, 0.0), scored(1, true, 1.0), scored(2, true, 5.0)];
        assert_eq!(pairs(&whole, 1.0), [Contribution::swapped(1.0)]);
    }

    #[test]
    fn the_better_order_in_every_pair_is_as_rare_as_the_coins() {
        let block =
            vec![scored(0, false, 0.0), scored(1, true, 1.0), scored(2, false, 0.0), scored(3, true, 1.0)];
        let p = Draws::Pairs.p_value(&vec![block; 3], 1.0);
        assert!((p - 2.0_f64.powi(-6) / (1.0 - 2.0_f64.powi(-3))).abs() < 1e-12, "{p}");
    }

    #[test]
    fn the_finest_p_is_that_of_sides_that_never_meet() {
        for (draws, sides) in
            [(Draws::Pairs, [false, true, false, true]), (Draws::Blocks, [false, true, true, false])]
        {
            let process =
                |(slot, head): (usize, &bool)| scored(slot as u8, *head, f64::from(u8::from(*head)));
            let block: Vec<Scored> = sides.iter().enumerate().map(process).collect();
            for count in [1, 3, 12] {
                let blocks = vec![block.clone(); count];
                let (p, finest) = (draws.p_value(&blocks, 1.0), draws.finest(&blocks));
                // With fewer than six blocks, the coins of whole blocks give less evidence than the orders.
                assert!(finest <= p * (1.0 + 1e-12), "{draws:?} {count}: {finest} {p}");
                assert!(count < 12 || p <= finest * (1.0 + 1e-12), "{draws:?} {count}: {finest} {p}");
            }
        }
    }

    fn swaps(values: &[f64]) -> Vec<Contribution> {
        values.iter().map(|&value| Contribution::swapped(value)).collect()
    }

    #[test]
    fn agreement_of_all_blocks_is_as_rare_as_their_coins() {
        assert_eq!(tail(&swaps(&[1.0; 10])), 2.0_f64.powi(-10));
        // Swapping the labels of the smallest block changes the sum only a little, but it does change it.
        assert_eq!(tail(&swaps(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5])), 2.0_f64.powi(-8));
    }

    #[test]
    fn one_dissenting_block_leaves_its_equals_the_same_chance() {
        // Sums of at least seven, of eight ones: 9 of 256 arrangements.
        let mut values = [1.0; 8];
        values[3] = -1.0;
        assert!((tail(&swaps(&values)) - 9.0 / 256.0).abs() < 1e-15);
    }

    #[test]
    fn blocks_that_say_nothing_are_no_evidence() {
        assert_eq!(tail(&[]), 1.0);
        assert_eq!(tail(&swaps(&[0.0, 0.0, 0.0])), 1.0);
        assert_eq!(tail(&swaps(&[f64::NAN, 1.0])), 1.0);
    }

    #[test]
    fn the_best_of_six_orders_in_every_block_is_rarer_than_a_coin() {
        let block = Contribution { possible: smallvec![2.0, 0.1, 0.0, 0.0, -0.1, -2.0], observed: 2.0 };
        assert!((tail(&vec![block; 4]) * 6.0_f64.powi(4) - 1.0).abs() < 1e-12);
    }
}
