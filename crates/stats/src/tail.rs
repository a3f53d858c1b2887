//! Tests whether head's repetitions stall more than base's (a few of them take many times as long as the
//! others), and whether head costs more on average.
//!
//! A mode ignores rare stalls, and a process with one stalled repetition is not a slow process. The mean of
//! its repetitions includes them. A process's tail is the distance of that mean above its median, as a log
//! ratio: a shift of head or a slow process does not change it, so redrawing the schedule's coins tests it
//! exactly.

use super::draws::Draws;
use super::scores::{BlockCosts, ProcessCosts};

/// The evidence that blocks give about the tails of head and base.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StallTail {
    /// The amount by which head's tail raises its mean more than base's tail raises base's mean, as a log
    /// ratio.
    pub excess: f64,
    /// One-sided p of "head's tail adds no more than the floor to its mean", from redrawing the coins.
    pub p: f64,
}

impl StallTail {
    /// Evaluates blocks; `shift` is head's location effect. Stalls that only reduce the advantage of a faster
    /// head are not a slowdown. This can only favor head, so the test stays conservative.
    pub fn new(blocks: &[BlockCosts], shift: f64, floor: f64) -> Self {
        let lead = shift.min(0.0);
        let tail =
            |process: &ProcessCosts| process.mean - process.middle + if process.head { lead } else { 0.0 };
        let of_side = |head: bool| -> Vec<f64> {
            blocks.iter().flatten().filter(|process| process.head == head).map(tail).collect()
        };
        let p =
            Draws::exact_p_value(blocks, |process| tail(process) - if process.head { floor } else { 0.0 });
        Self { excess: log_mean_exp(&of_side(true)) - log_mean_exp(&of_side(false)), p }
    }
}

/// Returns the logarithm of the mean of the values with these logarithms, without overflow.
pub fn log_mean_exp(logarithms: &[f64]) -> f64 {
    let largest = logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let relative: f64 = logarithms.iter().map(|value| (value - largest).exp()).sum();
    largest + (relative / logarithms.len() as f64).ln()
}

/// The evidence that blocks give about the mean of all processes.
///
/// A mode ignores slow processes and rare stalls, and a count of slow processes ignores how slow they are. The
/// mean of all processes' means includes both. Redrawing the schedule's coins tests it exactly, because a
/// machine that is sometimes slow is equally likely to be slow for either side.
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

    /// Returns blocks in which the listed processes have a tail of ln 7 and all others none.
    fn blocks(base: &[usize], head: &[usize]) -> Vec<BlockCosts> {
        two_pairs_each(|pair, is_head| {
            let stalled = if is_head { head } else { base };
            let mean = if stalled.contains(&pair) { 7.0_f64.ln() } else { 0.0 };
            ProcessCosts { mean, ..ProcessCosts::default() }
        })
    }

    #[test]
    fn stalls_of_head_alone_are_as_surprising_as_their_coins() {
        let tail = StallTail::new(&blocks(&[], &[1, 4, 9, 13, 20]), 0.0, 0.0);
        assert!((tail.p * 32.0 - 1.0).abs() < 1e-3, "{tail:?}");
        assert!((tail.excess - (1.0 + 5.0 / 24.0 * 6.0_f64).ln()).abs() < 1e-12, "{tail:?}");
    }

    #[test]
    fn a_single_stall_is_one_coin() {
        assert!((StallTail::new(&blocks(&[], &[5]), 0.0, 0.01).p - 0.5).abs() < 1e-3);
    }

    #[test]
    fn stalls_of_both_sides_say_nothing_against_head() {
        let tail = StallTail::new(&blocks(&[0, 3, 7], &[2, 5, 8]), 0.0, 0.0);
        assert!(tail.excess.abs() < 1e-12 && tail.p >= 0.5, "{tail:?}");
    }

    #[test]
    fn a_tail_below_the_floor_is_no_evidence() {
        let mut blocks = blocks(&[], &[]);
        blocks.iter_mut().flatten().filter(|process| process.head).for_each(|process| process.mean = 0.008);
        assert!(StallTail::new(&blocks, 0.0, 0.0).p < 1e-6);
        assert_eq!(StallTail::new(&blocks, 0.0, 0.01).p, 1.0);
    }

    #[test]
    fn a_head_whose_stalls_take_back_less_than_it_gained_has_no_excess() {
        let stalled = blocks(&[], &[1, 4, 9, 13, 20]);
        assert!(StallTail::new(&stalled, -2.0, 0.0).excess < 0.0);
        assert!(StallTail::new(&stalled, -0.05, 0.0).excess > 0.5);
        assert!(StallTail::new(&stalled, -2.0, 0.0).p > 0.9);
    }

    #[test]
    fn means_of_any_size_are_finite() {
        assert!((log_mean_exp(&[700.0, 700.0]) - 700.0).abs() < 1e-9);
        assert!((log_mean_exp(&[-690.0, 690.0]) - (690.0 - 2.0_f64.ln())).abs() < 1e-9);
    }

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
    fn a_mean_cost_of_any_size_is_finite() {
        let found = cost(&[(0, 1e300)], &[(1, 1e300)]);
        assert!(found.rise.abs() < 1e-9 && found.p.is_finite(), "{found:?}");
    }
}
