//! By how much head is worse than base, from randomised blocks: an estimate, p-values, and an interval that is
//! their inversion.
//!
//! For a shift that is asked about, head's repetitions are moved back by it. If that is the true shift,
//! the labels mean nothing any more: every order in which the block's processes could have run would
//! have been as good (Fisher 1935). Two
//! sets of orders are drawn from:
//!
//! - the *coins*: head and base of a whole block swapped, which is what the schedule really randomised.
//!   Their p holds for noise of any kind, but n blocks can't say less than 2⁻ⁿ.
//! - all *orders* of the block's processes. ABBA cancels what drifts, so for noise whose neighbours are at least
//!   as alike as processes further apart it is at most as variable as a random order, and the p of all orders is
//!   too large rather than too small.
//!
//! The coins decide as far as they can count; below that the orders do.

use super::randomisation::{Contribution, tail};
use super::scores::{BANDWIDTH, Block, BlockScores, FARTHEST, Scores, comb};

/// What the coins must always say, whatever the orders say: one in 64.
const COINS_AT_LEAST: f64 = 6.0;
/// Largest block whose orders are all counted: more are only swapped.
const MOST_ORDERED: usize = 8;
/// A shift is a candidate where pairs agree with it at least so much, compared with the estimate. Data with several
/// modes have several candidates, and a bound must lie beyond all of them.
const CANDIDATE: f64 = 0.7;
/// So far beyond the last candidate all pairs lie on one side, and farther shifts are as unlikely.
const BEYOND: f64 = 4.0 * BANDWIDTH;
/// Steps of bisection between a shift that is rejected and one that isn't.
const BISECTIONS: u32 = 6;

/// One shift that was asked about.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Asked {
    shift: f64,
    /// p of "the true shift is this or less", below the estimate; of "this or more", above it.
    p: f64,
}

/// What keeps a mode from speaking for the code. A red needs no such check: its test holds for any noise
/// that doesn't know the sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blur {
    /// Repetitions fall on a grid, for example of a scheduler's slices.
    Grid,
    /// Hardly any two repetitions agree.
    Scattered,
}

/// Recorded combs of processes that had their processor for themselves reach 0.1, grids of slices begin at 0.7.
const MOST_COMB: f64 = 0.3;
/// Recorded hosts that switch speed reach 0.04, processors shared with a competitor 0.03.
const LEAST_SUPPORT: f64 = 0.035;

/// The answer of one row's blocks.
#[derive(Debug, Clone)]
pub struct Shift {
    scores: Scores,
    comb: f64,
    estimate: f64,
    /// Candidates below and above the estimate, in order of size.
    below: Vec<Asked>,
    above: Vec<Asked>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Towards {
    Above,
    Below,
}

impl Shift {
    /// `None` where the blocks can't be scored.
    pub fn new(blocks: &[Block]) -> Option<Self> {
        let scores = Scores::new(blocks)?;
        let estimate = mode(&scores);
        let enough = CANDIDATE * scores.agreement(estimate);
        let steps = (2.0 * scores.span() / BANDWIDTH).ceil() as i64 + 1;
        let ask = |cells: std::ops::RangeInclusive<i64>, towards| {
            cells
                .map(|cell| estimate + cell as f64 * BANDWIDTH)
                .filter(|shift| scores.agreement(*shift) >= enough)
                .map(|shift| Asked { shift, p: p_value(&scores, shift, towards) })
                .collect()
        };
        let (below, above) = (ask(-steps..=-1, Towards::Above), ask(1..=steps, Towards::Below));
        Some(Self { scores, comb: comb(blocks), estimate, below, above })
    }

    /// The mode of the pairwise differences.
    pub fn estimate(&self) -> f64 {
        self.estimate
    }

    /// Why the repetitions can't show that nothing changed, if they can't.
    pub fn blur(&self) -> Option<Blur> {
        if self.comb > MOST_COMB {
            return Some(Blur::Grid);
        }
        (self.scores.support(self.estimate) < LEAST_SUPPORT).then_some(Blur::Scattered)
    }

    pub fn blocks(&self) -> usize {
        self.scores.blocks()
    }

    /// One-sided p of "the true shift is `limit` or less": the largest p of all those shifts, because data with
    /// several modes can agree with a far shift where they don't with a near one.
    pub fn p_above(&self, limit: f64) -> f64 {
        self.p(limit, Towards::Above)
    }

    /// One-sided p of "the true shift is `limit` or more".
    pub fn p_below(&self, limit: f64) -> f64 {
        self.p(limit, Towards::Below)
    }

    /// The bound that the true shift exceeds with confidence 1 − `alpha`.
    pub fn lower(&self, alpha: f64) -> f64 {
        self.bound(alpha, Towards::Above)
    }

    /// The bound that the true shift stays below with confidence 1 − `alpha`.
    pub fn upper(&self, alpha: f64) -> f64 {
        self.bound(alpha, Towards::Below)
    }

    fn asked(&self, towards: Towards) -> &[Asked] {
        match towards {
            Towards::Above => &self.below,
            Towards::Below => &self.above,
        }
    }

    /// So far all pairs are on one side.
    fn end(&self, towards: Towards) -> f64 {
        match towards {
            Towards::Above => self.below.first().map_or(self.estimate, |asked| asked.shift) - BEYOND,
            Towards::Below => self.above.last().map_or(self.estimate, |asked| asked.shift) + BEYOND,
        }
    }

    fn p(&self, limit: f64, towards: Towards) -> f64 {
        let end = self.end(towards);
        let (reached, limit) = match towards {
            Towards::Above => (limit >= self.estimate, limit.max(end)),
            Towards::Below => (limit <= self.estimate, limit.min(end)),
        };
        if reached {
            return 1.0;
        }
        let past = |asked: &&Asked| match towards {
            Towards::Above => asked.shift <= limit,
            Towards::Below => asked.shift >= limit,
        };
        let farther = self.asked(towards).iter().filter(past).map(|asked| asked.p);
        farther.fold(p_value(&self.scores, limit, towards), f64::max)
    }

    /// The farthest shift that is not rejected.
    fn bound(&self, alpha: f64, towards: Towards) -> f64 {
        let end = self.end(towards);
        let rejected = |shift: f64| self.p(shift, towards) <= alpha;
        if !rejected(end) {
            // The data can't bound it, and no benchmark is compared across more.
            return if towards == Towards::Above { -FARTHEST } else { FARTHEST };
        }
        // p of a limit is monotone: it is the largest of all beyond it.
        let (mut inside, mut outside) = (self.estimate, end);
        while (outside - inside).abs() > BANDWIDTH {
            let middle = f64::midpoint(inside, outside);
            if rejected(middle) { outside = middle } else { inside = middle }
        }
        for _ in 0..BISECTIONS {
            let middle = f64::midpoint(inside, outside);
            if rejected(middle) { outside = middle } else { inside = middle }
        }
        inside
    }
}

/// The highest point of the agreement, smoothed a little so that three equal repetitions don't make it.
fn mode(scores: &Scores) -> f64 {
    let height = |shift: f64| {
        scores.agreement(shift)
            + f64::midpoint(scores.agreement(shift - BANDWIDTH), scores.agreement(shift + BANDWIDTH))
    };
    let step = BANDWIDTH / 4.0;
    let cells = (scores.span() / step).ceil() as i64 + 1;
    let (mut best, mut most) = (0.0, f64::NEG_INFINITY);
    // From zero outwards, so that equal heights prefer the smaller change on both sides alike.
    for cell in 0..=cells {
        let shift = cell as f64 * step;
        let (up, down) = (height(shift), height(-shift));
        if up.max(down) > most {
            most = up.max(down);
            best = if up == down {
                0.0
            } else if up > down {
                shift
            } else {
                -shift
            };
        }
    }
    let (left, right) = (height(best - step), height(best + step));
    let curvature = left - 2.0 * most + right;
    if curvature < 0.0 { best + step * (0.5 * (left - right) / curvature).clamp(-1.0, 1.0) } else { best }
}

/// p of "the true shift is `shift`" against "it is more" (`Above`) or "it is less" (`Below`).
fn p_value(scores: &Scores, shift: f64, towards: Towards) -> f64 {
    let sign = if towards == Towards::Above { 1.0 } else { -1.0 };
    let blocks = scores.at(shift);
    let orders: Vec<Contribution> = blocks.iter().map(|block| orders(block, sign)).collect();
    let by_orders = tail(&orders);
    let coins: Vec<Contribution> =
        blocks.iter().map(|block| Contribution::swapped(sign * block.contrast())).collect();
    let by_coins = tail(&coins);
    // As far as half of the coins can count, they decide alone.
    let finest = (-(blocks.len() as f64 / 2.0).max(COINS_AT_LEAST)).exp2();
    if by_coins > finest { by_coins.max(by_orders) } else { by_orders }
}

/// The contrasts of all orders in which as many processes of the block are head's.
fn orders(block: &BlockScores, sign: f64) -> Contribution {
    let observed = sign * block.contrast();
    let (base, head) = (block.base.len(), block.head.len());
    let all: Vec<f64> = block.base.iter().chain(&block.head).copied().collect();
    if all.len() > MOST_ORDERED {
        return Contribution::swapped(observed);
    }
    let total: f64 = all.iter().sum();
    let contrast = |labels: u32| {
        let ours: f64 = all.iter().enumerate().filter(|(at, _)| labels >> at & 1 == 1).map(|(_, s)| s).sum();
        sign * (ours / head as f64 - (total - ours) / base as f64)
    };
    let labels = (0..1_u32 << all.len()).filter(|labels| labels.count_ones() as usize == head);
    Contribution { possible: labels.map(contrast).collect(), observed }
}
