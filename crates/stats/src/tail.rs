//! Tests whether head's repetitions stall more than base's: a few of them take many times as long as the
//! others.
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
}
