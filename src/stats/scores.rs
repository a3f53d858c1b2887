//! How far each process lies above or below the others, by a measure that outliers can't move.
//!
//! Two repetitions that met the host in the same state differ by what the code does; repetitions that met
//! different states differ by anything. So a pair counts by how close its difference comes to a
//! candidate distance: a Gaussian kernel, nothing far away. A process that often finds others `distance` below
//! itself, and seldom above, has a positive score. Partners are sought in the process's own block and,
//! with less weight each, in all blocks, because a state of the host comes back.
//!
//! The scores never look at which side is which: head's repetitions are moved by the shift that is
//! asked about, and then all processes are treated alike. Whatever is chosen from scores before the labels
//! are used is label-blind, and tests that redraw the labels stay exact (Hemerik and Goeman 2018,
//! TEST 27:811–825).

use super::describe;

/// One process of a block: its place in the schedule, its side, and logarithms of its repetitions.
#[derive(Debug, Clone, PartialEq)]
pub struct Process {
    pub slot: u8,
    pub head: bool,
    pub costs: Vec<f64>,
}

/// The processes of one block, base's before head's.
pub type Block = Vec<Process>;

/// Width of the kernel, as a log ratio. Smaller than the effects that matter, larger than what repetitions
/// in one state of the host differ by.
pub const BANDWIDTH: f64 = 0.008;
/// Cells of the tables: a quarter of the kernel's width, with linear interpolation between them.
const STEP: f64 = BANDWIDTH / 4.0;
/// Standard deviations after which the kernel is zero.
const REACH: f64 = 3.5;
/// Weight of a process's own block and of all blocks together.
const OWN: f64 = 0.6;
const ALL: f64 = 1.2;
/// Pairs that lie farther apart than a factor of e⁴, once the sides' medians are aligned, meet nowhere.
const FARTHEST: f64 = 4.0;
/// Candidate distances grow by this factor, from a third of the kernel's width.
const RATIO: f64 = 1.4;
/// Partners are not sought farther away: a shift as large is rejected long before.
const FARTHEST_PARTNER: f64 = 0.5;
/// A score of this size separates nothing.
const RIDGE: f64 = 0.02;
/// A distance whose separation is this much smaller than the best one's weighs e times less. Choosing only the best
/// one sees less, because which one that is varies from session to session.
const SHARPNESS: f64 = 0.1;

/// A density on a regular grid, zero outside of it.
#[derive(Debug, Clone)]
struct Table {
    low: f64,
    values: Vec<f64>,
}

impl Table {
    fn zeros(low: f64, high: f64) -> Self {
        Self { low, values: vec![0.0; ((high - low) / STEP).ceil().max(0.0) as usize + 2] }
    }

    fn place(&self, x: f64) -> Option<(usize, f64)> {
        let position = (x - self.low) / STEP;
        let whole = position.floor();
        (position >= 0.0 && whole < (self.values.len() - 1) as f64)
            .then_some((whole as usize, position - whole))
    }

    fn at(&self, x: f64) -> f64 {
        self.place(x).map_or(0.0, |(cell, part)| {
            self.values[cell] + part * (self.values[cell + 1] - self.values[cell])
        })
    }

    /// Adds `weight` kernels about every point.
    fn add(&mut self, points: &[f64], weight: f64, kernel: &[f64]) {
        for &point in points {
            let Some((cell, part)) = self.place(point) else { continue };
            for (cell, weight) in [(cell, weight * (1.0 - part)), (cell + 1, weight * part)] {
                for (away, height) in kernel.iter().enumerate() {
                    if let Some(value) = self.values.get_mut(cell + away) {
                        *value += weight * height;
                    }
                    if let Some(value) = cell.checked_sub(away).filter(|_| away > 0) {
                        self.values[value] += weight * height;
                    }
                }
            }
        }
    }
}

/// Of one process: its place and side, and the density of its repetitions' differences to each side's, unshifted.
#[derive(Debug, Clone)]
struct Profile {
    slot: u8,
    head: bool,
    middle: f64,
    to_base: Table,
    to_head: Table,
}

/// The scores of all processes of one row, for every shift of head.
#[derive(Debug, Clone)]
pub struct Scores {
    blocks: Vec<Vec<Profile>>,
    /// Head's median less base's: head's costs are kept less this, so that the tables need not reach from one
    /// side to the other.
    center: f64,
    /// Largest difference between any two repetitions, once the medians are aligned.
    span: f64,
}

/// One process's score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    pub slot: u8,
    pub head: bool,
    pub score: f64,
}

/// Largest difference of the block's sides that other labels could give: label-blind.
fn largest(block: &[Scored]) -> f64 {
    let mut all: Vec<f64> = block.iter().map(|process| process.score).collect();
    all.sort_by(f64::total_cmp);
    let (low, high) = all.split_at(block.iter().filter(|process| !process.head).count());
    mean(high) - mean(low)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn kernel() -> Vec<f64> {
    let cells = (REACH * BANDWIDTH / STEP).ceil() as usize;
    (0..=cells).map(|cell| (-0.5 * (cell as f64 * STEP / BANDWIDTH).powi(2)).exp()).collect()
}

impl Scores {
    /// `None` without a block that has repetitions of both sides, or where a value is not finite.
    pub fn new(blocks: &[Block]) -> Option<Self> {
        let has = |block: &Block, head: bool| block.iter().any(|process| process.head == head);
        let usable = |process: &Process| {
            !process.costs.is_empty() && process.costs.iter().all(|value| value.is_finite())
        };
        let whole = |block: &Block| has(block, true) && has(block, false) && block.iter().all(usable);
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
        let (kernel, margin) = (kernel(), REACH * BANDWIDTH + STEP);
        let span = (high - low).min(FARTHEST);
        let count = |blocks: &[Block]| blocks.iter().flatten().map(|p| p.costs.len()).sum::<usize>() as f64;
        let add = |into: &mut [Table; 2], blocks: &[Block], weight: f64| {
            for process in blocks.iter().flatten() {
                into[usize::from(process.head)].add(&process.costs, weight, &kernel);
            }
        };
        let mut everywhere = [0, 1].map(|_| Table::zeros(low - margin, high + margin));
        add(&mut everywhere, &blocks, ALL / count(&blocks));
        let profiles = blocks.iter().map(|block| {
            let mut here = everywhere.clone();
            let own = std::slice::from_ref(block);
            add(&mut here, own, OWN / count(own));
            let to = |process: &Process, side: &Table| differences(&process.costs, side, span + margin);
            let profile = |process: &Process| Profile {
                slot: process.slot,
                head: process.head,
                middle: describe::median(&process.costs).unwrap_or_default(),
                to_base: to(process, &here[0]),
                to_head: to(process, &here[1]),
            };
            block.iter().map(profile).collect()
        });
        let blocks = profiles.collect();
        Some(Self { blocks, center, span })
    }

    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// The shifts at which any two repetitions of different sides meet.
    pub fn range(&self) -> (f64, f64) {
        (self.center - self.span, self.center + self.span)
    }

    /// How many pairs of a head and a base repetition differ by about `shift`: the curve whose highest
    /// point is the estimate.
    pub fn agreement(&self, shift: f64) -> f64 {
        let shift = shift - self.center;
        // From both sides, so that swapping them changes nothing.
        let of_side = |head: bool| {
            let profiles = self.blocks.iter().flatten().filter(|profile| profile.head == head);
            profiles.map(|p| if head { p.to_base.at(shift) } else { p.to_head.at(-shift) }).sum::<f64>()
        };
        of_side(true) + of_side(false)
    }

    /// Share of the pairs that differ by about `shift`, 1 where all of them do.
    pub fn support(&self, shift: f64) -> f64 {
        let processes: usize = self.blocks.iter().map(Vec::len).sum();
        self.agreement(shift) / (processes as f64 * f64::midpoint(OWN, ALL))
    }

    /// How many processes lie below each one, less how many lie above it, when head is taken to be `shift` worse:
    /// crude, and never blind to sides that lie far apart.
    pub fn ranks(&self, shift: f64) -> Vec<Vec<Scored>> {
        let shift = shift - self.center;
        let moved = |p: &Profile| if p.head { p.middle - shift } else { p.middle };
        let sorted = describe::sorted(&self.blocks.iter().flatten().map(moved).collect::<Vec<f64>>());
        let rank = |p: &Profile| {
            let (own, all) = (moved(p), sorted.len());
            let (below, not_above) =
                (sorted.partition_point(|other| *other < own), sorted.partition_point(|other| *other <= own));
            Scored { slot: p.slot, head: p.head, score: (below + not_above) as f64 - all as f64 }
        };
        self.blocks.iter().map(|block| block.iter().map(rank).collect()).collect()
    }

    /// Scores by block when head is taken to be `shift` worse: the mean over all distances, each weighted by how well it
    /// separates the processes of the blocks, whichever side they are of.
    pub fn at(&self, shift: f64) -> Vec<Vec<Scored>> {
        let shift = shift - self.center;
        let distances = std::iter::successors(Some(BANDWIDTH / 3.0), |x| Some(x * RATIO));
        let distances = distances.take_while(|x| *x < FARTHEST_PARTNER);
        let separated: Vec<Separated> = distances.map(|distance| self.separated(shift, distance)).collect();
        let most = separated.iter().map(|one| one.separation).fold(f64::NEG_INFINITY, f64::max);
        let unscored = |p: &Profile| Scored { slot: p.slot, head: p.head, score: 0.0 };
        let mut mean: Vec<Vec<Scored>> =
            self.blocks.iter().map(|block| block.iter().map(unscored).collect()).collect();
        for one in separated {
            let weight = ((one.separation - most) / SHARPNESS).exp() / one.size;
            for (into, from) in mean.iter_mut().flatten().zip(one.scores.iter().flatten()) {
                into.score += weight * from.score;
            }
        }
        mean
    }

    /// Scores with partners at one distance, head's centered costs less `shift`.
    fn separated(&self, shift: f64, x: f64) -> Separated {
        let score = |p: &Profile| {
            let (to_base, to_head) = if p.head { (shift, 0.0) } else { (0.0, -shift) };
            let score = p.to_base.at(to_base + x) - p.to_base.at(to_base - x) + p.to_head.at(to_head + x)
                - p.to_head.at(to_head - x);
            Scored { slot: p.slot, head: p.head, score }
        };
        let scores: Vec<Vec<Scored>> =
            self.blocks.iter().map(|block| block.iter().map(score).collect()).collect();
        let squares: f64 = scores.iter().flatten().map(|one| one.score * one.score).sum();
        let size = (squares + RIDGE * self.blocks.len() as f64).sqrt();
        Separated { separation: scores.iter().map(|block| largest(block)).sum::<f64>() / size, size, scores }
    }
}

/// The scores of one distance, how large they are, and how well they separate the processes of the blocks.
struct Separated {
    scores: Vec<Vec<Scored>>,
    size: f64,
    separation: f64,
}

/// Distance up to which a comb is looked for: four slices of a scheduler in a repetition, or more.
const COMB_REACH: f64 = 0.35;
/// Most repetitions of one process that a comb is looked for in.
const COMB_REPETITIONS: usize = 256;
/// A second tooth must stand so many times higher than the gap before it.
const TOOTH: f64 = 3.0;

/// Whether repetitions of one process fall on a grid: how often two of them differ by one further, narrow
/// amount, in proportion to how often they agree, where hardly any differ by less than that amount. Noise
/// falls off from zero and has none; waiting for whole slices of a scheduler makes it. Such repetitions say
/// how often the process waited, and little about what it computed.
pub fn comb(blocks: &[Block]) -> f64 {
    let kernel = kernel();
    let mut table = Table::zeros(-REACH * BANDWIDTH, COMB_REACH + REACH * BANDWIDTH);
    for process in blocks.iter().flatten() {
        // Every pair is looked at, so long processes are thinned evenly.
        let every = process.costs.len().div_ceil(COMB_REPETITIONS).max(1);
        let costs: Vec<f64> = process.costs.iter().step_by(every).copied().collect();
        for (at, one) in costs.iter().enumerate() {
            let apart: Vec<f64> = costs[..at].iter().map(|other| (one - other).abs()).collect();
            table.add(&apart, 1.0, &kernel);
        }
    }
    let agree = table.at(0.0);
    let (mut gap, mut tooth) = (agree, 0.0_f64);
    for cell in 0..=(COMB_REACH / STEP) as usize {
        let height = table.at(cell as f64 * STEP);
        gap = gap.min(height);
        if height > TOOTH * gap {
            tooth = tooth.max(height);
        }
    }
    if agree > 0.0 { tooth / agree } else { 0.0 }
}

/// Density of the differences `repetition - other` over all others in `density`.
fn differences(repetitions: &[f64], density: &Table, farthest: f64) -> Table {
    // Zero is a cell's own place, so that both directions are rounded alike.
    let farthest = (farthest / STEP).ceil() * STEP;
    let mut table = Table::zeros(-farthest, farthest);
    let share = 1.0 / repetitions.len() as f64;
    for &repetition in repetitions {
        // Cell by cell the place in `density` moves down by one; its part of a cell stays.
        let position = (repetition - table.low - density.low) / STEP;
        let (whole, part) = (position.floor() as i64, position - position.floor());
        let (first, last) =
            (0.max(whole - density.values.len() as i64 + 2), whole.min(table.values.len() as i64 - 1));
        for cell in first..=last {
            let at = (whole - cell) as usize;
            let value = density.values[at] + part * (density.values[at + 1] - density.values[at]);
            table.values[cell as usize] += share * value;
        }
    }
    table
}
