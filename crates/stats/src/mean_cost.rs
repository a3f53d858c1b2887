//! Tests whether head costs more than base on average.
//!
//! A mode ignores slow processes and rare stalls, and a count of slow processes ignores how slow they are.
//! The mean of all processes' means includes both. Redrawing the schedule's coins tests it exactly, because a
//! machine that is sometimes slow is equally likely to be slow for either side.

use super::draws::Draws;
use super::scores::{BlockCosts, ProcessCosts};
use super::tail::log_mean_exp;

/// The evidence that blocks give about the mean of all processes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanCost {
    /// The logarithm of the ratio of head's mean to base's.
    pub rise: f64,
    /// The rise of the mean of the processes' medians. The rest of `rise` is due to differences between the
    /// repetitions of a process.
    pub of_medians: f64,
    /// One-sided p of "head's mean exceeds base's by no more than the floor", from redrawing the coins.
    pub p: f64,
}

impl MeanCost {
    /// Evaluates blocks; `floor` is on the log scale.
    pub fn new(blocks: &[BlockCosts], floor: f64) -> Self {
        let rise = |cost: fn(&ProcessCosts) -> f64| {
            let [base, head] = [false, true].map(|head| {
                let side = blocks.iter().flatten().filter(|process| process.head == head);
                log_mean_exp(&side.map(cost).collect::<Vec<f64>>())
            });
            head - base
        };
        // Means are taken relative to the largest one, so that every score is finite.
        let largest = blocks.iter().flatten().map(|process| process.mean).fold(f64::NEG_INFINITY, f64::max);
        let score =
            |process: &ProcessCosts| (process.mean - largest - if process.head { floor } else { 0.0 }).exp();
        Self {
            rise: rise(|process| process.mean),
            of_medians: rise(|process| process.middle),
            p: Draws::exact_p_value(blocks, score),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scores::two_pairs_each;

    /// Each listed process takes the given multiple of the others' time.
    fn cost(base: &[(usize, f64)], head: &[(usize, f64)]) -> MeanCost {
        let blocks = two_pairs_each(|pair, is_head| {
            let slow = if is_head { head } else { base };
            let factor = slow.iter().find(|(at, _)| *at == pair).map_or(1.0, |(_, factor)| *factor);
            ProcessCosts { middle: factor.ln(), mean: factor.ln(), ..ProcessCosts::default() }
        });
        MeanCost::new(&blocks, 0.0)
    }

    #[test]
    fn slow_processes_of_head_alone_are_as_surprising_as_their_coins() {
        let found = cost(&[], &[(1, 2.0), (4, 2.0), (9, 2.0), (13, 2.0), (20, 2.0)]);
        assert!((found.p * 32.0 - 1.0).abs() < 1e-3, "{found:?}");
        assert!((found.rise - (1.0 + 5.0 / 24.0_f64).ln()).abs() < 1e-12, "{found:?}");
        assert_eq!(found.of_medians, found.rise);
    }

    #[test]
    fn slow_processes_of_base_count_against_those_of_head_by_their_size() {
        let (twice, tenfold) = ([(0, 2.0), (3, 2.0), (7, 2.0)], [(1, 10.0), (4, 10.0), (9, 10.0)]);
        let same = cost(&twice, &[(1, 2.0), (4, 2.0), (9, 2.0)]);
        assert!(same.rise.abs() < 1e-12 && same.p > 0.5, "{same:?}");
        let longer = cost(&twice, &tenfold);
        assert!(longer.rise > 0.6 && (longer.p * 8.0 - 1.0).abs() < 1e-3, "{longer:?}");
        assert!(cost(&tenfold, &twice).p > 0.8);
    }

    #[test]
    fn means_of_any_size_are_finite() {
        let found = cost(&[(0, 1e300)], &[(1, 1e300)]);
        assert!(found.rise.abs() < 1e-9 && found.p.is_finite(), "{found:?}");
    }
}
