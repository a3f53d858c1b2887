//! The chance that a schedule drawn again would have favoured head as much.
//!
//! Every block contributes one of a few equally likely values to a sum, and the question is how often the
//! sum is as large as the one observed. The contributions are rounded to whole steps, so that the
//! distribution is counted, not simulated: the same blocks give the same p on every machine, and the
//! rounding is part of the statistic, which keeps the test exact.

use smallvec::{SmallVec, smallvec};

use super::student_tail;

/// Steps that the largest possible sum is divided into. Half a step a block is far below what one
/// repetition contributes.
const STEPS: f64 = 400.0;
/// Below so many standard deviations the normal distribution answers: p is above one in seven there, and
/// nothing is decided.
const CLEARLY_OPEN: f64 = 1.0;

/// What one block may contribute, every value as likely as the others, and what it did contribute.
#[derive(Debug, Clone, PartialEq)]
pub struct Contribution {
    pub possible: SmallVec<[f64; 6]>,
    pub observed: f64,
}

impl Contribution {
    /// A block whose sides may be swapped.
    pub fn swapped(observed: f64) -> Self {
        Self { possible: smallvec![observed, -observed], observed }
    }
}

/// P(sum ≥ observed sum) when every block's value is drawn again. 1 where nothing can differ.
pub fn tail(blocks: &[Contribution]) -> f64 {
    let largest = |block: &Contribution| block.possible.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
    let reach: f64 = blocks.iter().map(largest).sum();
    let finite = blocks.iter().flat_map(|block| &block.possible).all(|value| value.is_finite());
    if !finite || reach <= 0.0 {
        return 1.0;
    }
    if let Some(p) = clearly_open(blocks) {
        return p;
    }
    let step = reach / STEPS;
    let whole = |value: f64| (value / step).round() as i64;
    // `chances[i]` belongs to the sum `i - offset`.
    let (mut chances, mut next, mut offset, mut observed) = (vec![1.0], Vec::new(), 0_i64, 0_i64);
    for block in blocks {
        observed += whole(block.observed);
        let values = || block.possible.iter().map(|&value| whole(value));
        let most = values().map(i64::abs).max().unwrap_or_default();
        next.clear();
        next.resize(chances.len() + 2 * most as usize, 0.0);
        let share = 1.0 / block.possible.len().max(1) as f64;
        for value in values() {
            let start = (most + value) as usize;
            for (place, chance) in next[start..].iter_mut().zip(&chances) {
                *place += share * chance;
            }
        }
        std::mem::swap(&mut chances, &mut next);
        offset += most;
    }
    let first = usize::try_from(observed + offset).unwrap_or_default().min(chances.len());
    chances[first..].iter().sum::<f64>().min(1.0)
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
        // The smallest block may turn without changing much, but not without changing the sum.
        assert_eq!(tail(&swaps(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5])), 2.0_f64.powi(-8));
    }

    #[test]
    fn one_dissenting_block_leaves_its_equals_the_same_chance() {
        // Sums of seven of eight ones or more: 9 of 256 arrangements.
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
