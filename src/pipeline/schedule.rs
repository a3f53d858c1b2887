//! Determines the order of measured processes, as a pure function of the seed, so that an interrupted job can
//! resume at the same place.
//!
//! Selects the undecided rows on which a time budget is spent.

use std::time::Duration;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::model::{BlockSlot, SideName};

/// A scheduled start of the benchmark tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ScheduledProcess {
    /// Index in the list of benchmarks.
    pub(super) benchmark: usize,
    pub(super) side: SideName,
    pub(super) slot: BlockSlot,
}

/// The random generator of a round. Each round has its own stream of the seed, so rounds are independent.
fn generator(seed: u64, round: u32) -> ChaCha8Rng {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(u64::from(round));
    generator
}

/// Schedules one block of every listed benchmark. The benchmarks are in random order, each with two pairs,
/// and the order of the sides in each pair is random.
///
/// The two processes of a pair are compared because they are close in time. The permutation test of the
/// verdict draws the orders of the pairs again; with two pairs per block it is exact, and its p-values are
/// fine-grained enough. The order of a round does not depend on which benchmarks are still undecided, so
/// stopping some of them early does not move the others.
pub(super) fn paired_round(benchmarks: &[usize], all: usize, round: u32, seed: u64) -> Vec<ScheduledProcess> {
    let (order, sides) = drawn(all, round, seed);
    order
        .into_iter()
        .filter(|benchmark| benchmarks.contains(benchmark))
        .flat_map(|benchmark| {
            sides[benchmark].into_iter().enumerate().map(move |(slot, side)| ScheduledProcess {
                benchmark,
                side,
                // The four processes of a block have slots 0 to 3.
                slot: BlockSlot { block: round, slot: u8::try_from(slot).unwrap_or(u8::MAX) },
            })
        })
        .collect()
}

/// The side of each slot in this round's block, for each of `all` benchmarks.
pub fn sides_of_round(all: usize, round: u32, seed: u64) -> Vec<[SideName; 4]> {
    drawn(all, round, seed).1
}

/// The order of the benchmarks in one round, and the sides of the four slots of each benchmark.
fn drawn(all: usize, round: u32, seed: u64) -> (Vec<usize>, Vec<[SideName; 4]>) {
    use SideName::{Base, Head};
    let mut random = generator(seed, round);
    let mut order: Vec<usize> = (0..all).collect();
    order.shuffle(&mut random);
    let mut pair = || if rand::RngExt::random(&mut random) { [Head, Base] } else { [Base, Head] };
    let sides = (0..all).map(|_| {
        let ([a, b], [c, d]) = (pair(), pair());
        [a, b, c, d]
    });
    let sides = sides.collect();
    (order, sides)
}

/// Schedules one process of every benchmark of a run with one side, in random order.
pub(super) fn single_round(
    benchmarks: &[usize],
    side: SideName,
    round: u32,
    seed: u64,
) -> Vec<ScheduledProcess> {
    let mut order = benchmarks.to_vec();
    order.shuffle(&mut generator(seed, round));
    order
        .into_iter()
        .map(|benchmark| ScheduledProcess { benchmark, side, slot: BlockSlot { block: round, slot: 0 } })
        .collect()
}

/// An undecided row before the next look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Want {
    pub(super) block: Duration,
    /// Number of blocks until the next look.
    pub(super) to_look: u32,
    /// Estimated number of blocks until the row is decided; `None` if unknown.
    pub(super) to_verdict: Option<f64>,
}

impl Want {
    fn seconds_to_verdict(&self) -> f64 {
        let blocks = self.to_verdict.unwrap_or(f64::INFINITY).max(f64::from(self.to_look));
        blocks * self.block.as_secs_f64()
    }

    fn cost_of_look(&self) -> Duration {
        self.block.saturating_mul(self.to_look)
    }
}

/// Selects the rows on which to spend the time that is `left`. Rows that need the least time come first, and
/// each is measured up to its next look. A row that can't reach its next look is not continued, because the
/// additional blocks could not decide it.
pub(super) fn affordable(wants: &[Want], left: Option<Duration>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..wants.len()).collect();
    let Some(mut left) = left else { return order };
    order.sort_by(|&a, &b| wants[a].seconds_to_verdict().total_cmp(&wants[b].seconds_to_verdict()));
    order.retain(|&row| match left.checked_sub(wants[row].cost_of_look()) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    });
    order.sort_unstable();
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_of_a_block_has_each_side_once() {
        for round in 0..20 {
            let steps = paired_round(&[0, 1, 2], 3, round, 7);
            for benchmark in 0..3 {
                let sides: Vec<_> =
                    steps.iter().filter(|s| s.benchmark == benchmark).map(|s| s.side).collect();
                assert_eq!(sides.len(), 4);
                assert_ne!(sides[0], sides[1]);
                assert_ne!(sides[2], sides[3]);
            }
        }
    }

    #[test]
    fn a_block_is_never_interleaved_with_another_benchmark() {
        let steps = paired_round(&[0, 1, 2, 3], 4, 3, 1);
        for block in steps.chunks(4) {
            assert!(block.iter().all(|step| step.benchmark == block[0].benchmark));
        }
    }

    #[test]
    fn settling_one_benchmark_moves_no_other() {
        let all = paired_round(&[0, 1, 2, 3], 4, 5, 9);
        let without: Vec<_> = all.iter().copied().filter(|step| step.benchmark != 2).collect();
        assert_eq!(paired_round(&[0, 1, 3], 4, 5, 9), without);
    }

    #[test]
    fn all_four_orders_of_two_pairs_occur() {
        let starts = |round| {
            let steps = paired_round(&[0], 1, round, 1);
            (steps[0].side == SideName::Head, steps[2].side == SideName::Head)
        };
        let orders: Vec<_> = (0..80).map(starts).collect();
        for order in [(false, false), (false, true), (true, false), (true, true)] {
            let count = orders.iter().filter(|found| **found == order).count();
            assert!((8..=36).contains(&count), "{count} of 80 blocks are {order:?}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_order_and_another_seed_another() {
        let order = |seed| paired_round(&[0, 1, 2, 3, 4, 5, 6, 7], 8, 0, seed);
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
    }

    fn want(block_ms: u64, to_verdict: f64) -> Want {
        Want { block: Duration::from_millis(block_ms), to_look: 2, to_verdict: Some(to_verdict) }
    }

    #[test]
    fn without_a_budget_every_open_row_is_measured() {
        assert_eq!(affordable(&[want(100, 2.0), want(9000, 1e9)], None), [0, 1]);
    }

    #[test]
    fn a_budget_is_spent_on_the_rows_that_are_decided_soonest() {
        let rows = [want(400, 40.0), want(400, 3.0), want(400, 4.0)];
        assert_eq!(affordable(&rows, Some(Duration::from_millis(1600))), [1, 2]);
        // A row with many short blocks can need less time than one with few long blocks.
        let rows = [want(1000, 4.0), want(10, 100.0)];
        assert_eq!(affordable(&rows, Some(Duration::from_millis(500))), [1]);
    }

    #[test]
    fn what_one_row_can_t_use_goes_to_a_cheaper_one() {
        let rows = [want(1000, 2.0), want(100, 50.0)];
        assert_eq!(affordable(&rows, Some(Duration::from_millis(300))), [1]);
        assert!(affordable(&rows, Some(Duration::ZERO)).is_empty());
    }

    #[test]
    fn a_row_of_which_nothing_is_known_comes_last() {
        let rows = [Want { to_verdict: None, ..want(100, 0.0) }, want(100, 1000.0)];
        assert_eq!(affordable(&rows, Some(Duration::from_millis(200))), [1]);
    }
}
