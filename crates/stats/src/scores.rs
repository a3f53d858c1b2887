//! Scores of how far each process lies above or below the others, by a measure that resists outliers.
//!
//! Two repetitions in the same state of the host differ only because of the code; in different states they
//! can differ by any amount. Therefore the weight of a pair depends on how close its difference is to a
//! candidate distance: a Gaussian kernel that is zero far away. A process that has many partners `distance`
//! below itself, and few above, has a positive score. Partners come from the process's own block and, each
//! with less weight, from all blocks, because states of the host recur.
//!
//! The scores don't depend on which side is which: head's repetitions are moved by the shift in question, and
//! then all processes are treated alike. Any choice made from scores before the labels are used is
//! label-blind, and tests that redraw the labels stay exact (Hemerik and Goeman 2018, TEST 27:811–825).

use smallvec::SmallVec;

use super::density::{BANDWIDTH, Differences, KERNEL_REACH, STEP, Table, TableGrid, kernel, sum};
use super::describe;

/// One process of a block: its position in the schedule, its side, and the logarithms of its repetitions,
/// larger if worse.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProcessCosts {
    pub slot: u8,
    pub head: bool,
    /// The process's location as a cost: the quartile of its repetitions that interference affects least.
    pub clean: f64,
    /// The median of its repetitions, as a cost.
    pub middle: f64,
    /// The logarithm of the arithmetic mean of its repetitions, as a cost.
    pub mean: f64,
    pub costs: Vec<f64>,
}

/// The processes of one block: base's before head's, and each side's in the order in which they ran.
pub type BlockCosts = Vec<ProcessCosts>;

/// Returns twelve blocks of two pairs, with these costs by pair and side. Head and base take turns in running
/// first.
#[cfg(test)]
pub(crate) fn two_pairs_each(costs: impl Fn(usize, bool) -> ProcessCosts) -> Vec<BlockCosts> {
    let process = |pair: usize, slot: u8, head: bool| ProcessCosts { slot, head, ..costs(pair, head) };
    let block = |block: usize| {
        let [one, other] = [2 * block, 2 * block + 1];
        vec![process(one, 0, false), process(other, 2, false), process(one, 1, true), process(other, 3, true)]
    };
    (0..12).map(block).collect()
}

/// Weights of a process's own block and of all blocks together.
const OWN: f64 = 0.6;
const ALL: f64 = 1.2;
/// Repetitions that differ by more than a factor of e⁴, once the sides' medians are aligned, are never
/// compared.
const FARTHEST: f64 = 4.0;
/// Factor between successive candidate distances, which begin at a third of the kernel's width.
const RATIO: f64 = 1.4;
/// Largest distance at which partners are searched for: so large a shift is rejected anyway.
const FARTHEST_PARTNER: f64 = 0.5;
/// Constant added to the squared scores for each block, so that tiny scores don't count as a separation of
/// the sides.
const RIDGE: f64 = 0.02;
/// If the separation of a distance is smaller than the best one's by this much, its weight is smaller by a
/// factor of e. Choosing only the best distance would detect less, because the best one varies between
/// sessions.
const SHARPNESS: f64 = 0.2;
/// Distance at which the prior weight is largest. The separations of one session are noisy, so distances have
/// prior weights: on most hosts the states lie a few percent apart. Below this distance the weights fall like
/// a log-normal density; above it they fall slowly, like a power, because a scheduler's slices are tens of
/// percent apart.
const EXPECTED_DISTANCE: f64 = 0.033;
/// Standard deviation of the logarithm below that distance: a factor of 1.6.
const BELOW_SPREAD: f64 = 0.48;
/// The power above that distance.
const ABOVE_POWER: f64 = 0.75;

/// Returns the distances at which partners are searched for.
fn distances() -> impl Iterator<Item = f64> {
    std::iter::successors(Some(BANDWIDTH / 3.0), |x| Some(x * RATIO)).take_while(|x| *x < FARTHEST_PARTNER)
}

/// One process: its position, its side, and its score within its own side.
#[derive(Debug, Clone)]
struct ProcessScores {
    slot: u8,
    head: bool,
    middle: f64,
    /// Its score within its own side at each distance, which no shift changes.
    own: Vec<f64>,
}

/// The scores of all processes of one row, for every shift of head.
#[derive(Debug, Clone)]
pub struct Scores {
    blocks: Vec<Vec<ProcessScores>>,
    /// The densities of each process's differences to the other side, without a shift, by side; and their
    /// sums.
    across: [TableGrid; 2],
    sums: [Table; 2],
    /// Head's median minus base's. Head's costs are stored minus this center, so that the tables need not
    /// span the distance between the sides.
    center: f64,
    /// Largest difference between any two repetitions once the medians are aligned.
    span: f64,
}

/// The score of one process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    pub slot: u8,
    pub head: bool,
    pub score: f64,
}

/// Returns the largest difference between the block's sides that any labels could give, which does not depend
/// on the actual labels. Sorts the scores.
fn largest(block: &[ProcessScores], scores: &mut [f64]) -> f64 {
    scores.sort_unstable_by(f64::total_cmp);
    let (low, high) = scores.split_at(block.iter().filter(|process| !process.head).count());
    mean(high) - mean(low)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

impl Scores {
    /// Returns `None` if no block has repetitions of both sides, or if a value is not finite.
    pub fn new(blocks: &[BlockCosts]) -> Option<Self> {
        let has = |block: &BlockCosts, head: bool| block.iter().any(|process| process.head == head);
        let usable = |process: &ProcessCosts| {
            !process.costs.is_empty() && process.costs.iter().all(|value| value.is_finite())
        };
        let whole = |block: &BlockCosts| has(block, true) && has(block, false) && block.iter().all(usable);
        if blocks.is_empty() || !blocks.iter().all(whole) {
            return None;
        }
        let costs = |head: bool| -> Vec<f64> {
            let processes = blocks.iter().flatten().filter(|process| process.head == head);
            processes.flat_map(|process| &process.costs).copied().collect()
        };
        let center = describe::median(&costs(true))? - describe::median(&costs(false))?;
        let mut blocks = blocks.to_vec();
        for process in blocks.iter_mut().flatten().filter(|process| process.head) {
            process.costs.iter_mut().for_each(|cost| *cost -= center);
        }
        let all = blocks.iter().flatten().flat_map(|process| &process.costs);
        let (low, high) =
            all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &v| (low.min(v), high.max(v)));
        let (kernel, margin) = (kernel(), KERNEL_REACH * BANDWIDTH + STEP);
        let span = (high - low).min(FARTHEST);
        let count =
            |blocks: &[BlockCosts]| blocks.iter().flatten().map(|p| p.costs.len()).sum::<usize>() as f64;
        let add = |into: &mut [Table; 2], blocks: &[BlockCosts], weight: f64| {
            for process in blocks.iter().flatten() {
                into[usize::from(process.head)].add(&process.costs, weight, &kernel);
            }
        };
        let mut everywhere = [0, 1].map(|_| Table::zeros(low - margin, high + margin));
        add(&mut everywhere, &blocks, ALL / count(&blocks));
        let mut across = [Vec::new(), Vec::new()];
        let profiles = blocks.iter().map(|block| {
            let mut here = everywhere.clone();
            let own = std::slice::from_ref(block);
            add(&mut here, own, OWN / count(own));
            let mut profile = |process: &ProcessCosts| {
                let to =
                    |head: bool| Differences::new(&process.costs, &here[usize::from(head)], span + margin);
                let own = to(process.head);
                across[usize::from(process.head)].push(to(!process.head).table());
                ProcessScores {
                    slot: process.slot,
                    head: process.head,
                    middle: describe::median(&process.costs).unwrap_or_default(),
                    own: distances().map(|x| own.at(x) - own.at(-x)).collect(),
                }
            };
            block.iter().map(&mut profile).collect()
        });
        let blocks = profiles.collect();
        let (sums, across) =
            (across.each_ref().map(|side| sum(side)), across.map(|side| TableGrid::new(&side)));
        Some(Self { blocks, across, sums, center, span })
    }

    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Returns the approximate memory use in bytes.
    pub fn bytes(&self) -> usize {
        let tables = self.across.iter().map(TableGrid::bytes).sum::<usize>();
        let processes = self.blocks.iter().map(Vec::len).sum::<usize>();
        tables + processes * distances().count() * size_of::<f64>()
    }

    /// Returns the range of shifts at which any two repetitions of different sides can agree.
    pub fn range(&self) -> (f64, f64) {
        (self.center - self.span, self.center + self.span)
    }

    /// Returns the number of pairs of a head and a base repetition that differ by about `shift`: the curve
    /// whose highest point is the estimate.
    pub fn agreement(&self, shift: f64) -> f64 {
        let shift = shift - self.center;
        let [of_base, of_head] = &self.sums;
        // Computed from both sides, so that swapping them changes nothing.
        of_head.at(shift) + of_base.at(-shift)
    }

    /// Returns the share of the pairs that differ by about `shift`; 1 if all of them do.
    pub fn support(&self, shift: f64) -> f64 {
        let processes: usize = self.blocks.iter().map(Vec::len).sum();
        self.agreement(shift) / (processes as f64 * f64::midpoint(OWN, ALL))
    }

    /// Returns, for each process, the number of processes below it minus the number above it, if head is
    /// `shift` worse: a coarse score, but one that always separates distant sides.
    pub fn ranks(&self, shift: f64) -> Vec<Vec<Scored>> {
        let shift = shift - self.center;
        let moved = |p: &ProcessScores| if p.head { p.middle - shift } else { p.middle };
        let sorted = describe::sorted(&self.blocks.iter().flatten().map(moved).collect::<Vec<f64>>());
        let rank = |p: &ProcessScores| {
            let (own, all) = (moved(p), sorted.len());
            let (below, not_above) =
                (sorted.partition_point(|other| *other < own), sorted.partition_point(|other| *other <= own));
            Scored { slot: p.slot, head: p.head, score: (below + not_above) as f64 - all as f64 }
        };
        self.blocks.iter().map(|block| block.iter().map(rank).collect()).collect()
    }

    /// Returns the scores by block if head is `shift` worse: the mean over all distances, each weighted by
    /// how well it separates the processes of the blocks, whichever side they belong to.
    pub fn at(&self, shift: f64) -> Vec<Vec<Scored>> {
        let shift = shift - self.center;
        let processes = self.blocks.iter().map(Vec::len).sum();
        let count = distances().count();
        let (mut scores, mut workspace) =
            (ScoreValues::from_elem(0.0, count * processes), Workspace::default());
        let found: SmallVec<[Separated; 16]> = distances()
            .zip(scores.chunks_exact_mut(processes))
            .enumerate()
            .map(|(at, (x, scores))| self.separated(shift, at, x, scores, &mut workspace))
            .collect();
        let most = found.iter().map(|one| one.log_weight).fold(f64::NEG_INFINITY, f64::max);
        let mut mean = ScoreValues::from_elem(0.0, processes);
        for (one, scores) in found.iter().zip(scores.chunks_exact(processes)) {
            let weight = (one.log_weight - most).exp() / one.size;
            mean.iter_mut().zip(scores).for_each(|(into, score)| *into += weight * score);
        }
        let mut mean = mean.into_iter();
        let mut scored =
            |p: &ProcessScores| Scored { slot: p.slot, head: p.head, score: mean.next().unwrap_or(0.0) };
        self.blocks.iter().map(|block| block.iter().map(&mut scored).collect()).collect()
    }

    /// Computes the scores for partners at the distance `x`, whose index is `at`, after head's centered costs
    /// are reduced by `shift`.
    fn separated(
        &self,
        shift: f64,
        at: usize,
        x: f64,
        scores: &mut [f64],
        workspace: &mut Workspace,
    ) -> Separated {
        let Workspace { across: [base, head], sorted } = workspace;
        self.across[0].differences(x - shift, -x - shift, base);
        self.across[1].differences(x + shift, shift - x, head);
        let mut across = [base.iter(), head.iter()];
        for (score, p) in scores.iter_mut().zip(self.blocks.iter().flatten()) {
            *score = p.own[at] + across[usize::from(p.head)].next().unwrap_or(&0.0);
        }
        let size = scores.iter().map(|score| *score * *score).sum::<f64>();
        let size = (size + RIDGE * self.blocks.len() as f64).sqrt();
        sorted.clear();
        sorted.extend_from_slice(scores);
        let (mut rest, mut separation) = (sorted.as_mut_slice(), 0.0);
        for block in &self.blocks {
            let (own, others) = rest.split_at_mut(block.len());
            separation += largest(block, own);
            rest = others;
        }
        Separated { log_weight: separation / size / SHARPNESS + log_prior(x), size }
    }
}

/// The scores of up to sixteen blocks at all distances. The scores are on the stack, because a row allocates
/// them dozens of times.
type ScoreValues = SmallVec<[f64; 1024]>;

/// Returns the logarithm of a distance's prior weight.
fn log_prior(x: f64) -> f64 {
    let away = (x / EXPECTED_DISTANCE).ln();
    let below = away.min(0.0) / BELOW_SPREAD;
    -below * below / 2.0 - ABOVE_POWER * away.max(0.0)
}

/// Buffers that all distances share.
#[derive(Default)]
struct Workspace {
    across: [Vec<f64>; 2],
    sorted: Vec<f64>,
}

/// The size of one distance's scores, and their weight.
struct Separated {
    size: f64,
    /// Logarithm of the weight, which combines how well the scores separate the processes of the blocks with
    /// the prior weight of the distance.
    log_weight: f64,
}
