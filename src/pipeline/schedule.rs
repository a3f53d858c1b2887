//! Determines the order of measured processes, as a pure function of the seed, so that an interrupted job can
//! resume at the same place.

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
}
