//! The labels that the schedule could have drawn instead, inferred from the order of the processes.

use super::randomisation::{Contribution, exact_tail, tail};
use super::scores::{BlockCosts, ProcessCosts, Scored};

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scores::ProcessCosts;

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
}
