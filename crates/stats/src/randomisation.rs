//! Computes the chance that a redrawn schedule would have favored head as much.
//!
//! Every block contributes one of a few equally likely values to a sum, and the question is how often the sum
//! is as large as the observed one. The contributions are rounded to whole steps, so that the distribution
//! can be counted and need not be simulated: the same blocks give the same p on every machine. The rounding
//! is part of the statistic, so the test stays exact.

use smallvec::{SmallVec, smallvec};

use super::student_tail;

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
    use super::*;

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
