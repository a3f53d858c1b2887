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

/// The processes of one block: logarithms of repetitions, by side.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Block {
    pub base: Vec<Vec<f64>>,
    pub head: Vec<Vec<f64>>,
}

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
/// Differences beyond a factor of e⁴ count as that: no benchmark is compared across more.
pub const FARTHEST: f64 = 4.0;
/// Candidate distances grow by this factor, from a third of the kernel's width.
const RATIO: f64 = 1.4;
/// Where two distances separate the processes about as well, a score of this size decides nothing.
const RIDGE: f64 = 0.02;

/// A function on a regular grid that is zero outside of it.
#[derive(Debug, Clone)]
struct Table {
    low: f64,
    values: Vec<f64>,
}

/// The processes of one side of a block, each with its repetitions.
type OneSide = fn(&Block) -> &Vec<Vec<f64>>;

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

/// Of one process: density of its repetitions' differences to each side's, unshifted.
#[derive(Debug, Clone)]
struct Profile {
    to_base: Table,
    to_head: Table,
}

/// The scores of all processes of one row, for every shift of head.
#[derive(Debug, Clone)]
pub struct Scores {
    /// By block: base's processes, head's processes.
    blocks: Vec<(Vec<Profile>, Vec<Profile>)>,
    distances: Vec<f64>,
    /// Largest difference between any two repetitions.
    span: f64,
}

/// The scores of one block's processes.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockScores {
    pub base: Vec<f64>,
    pub head: Vec<f64>,
}

impl BlockScores {
    /// Mean score of head's processes less that of base's.
    pub fn contrast(&self) -> f64 {
        mean(&self.head) - mean(&self.base)
    }

    /// The largest contrast that other labels could give: label-blind.
    fn largest(&self) -> f64 {
        let mut all: Vec<f64> = self.base.iter().chain(&self.head).copied().collect();
        all.sort_by(f64::total_cmp);
        let (low, high) = all.split_at(self.base.len());
        mean(high) - mean(low)
    }

    fn squares(&self) -> f64 {
        self.base.iter().chain(&self.head).map(|score| score * score).sum()
    }
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
        let all: Vec<f64> =
            blocks.iter().flat_map(|b| b.base.iter().chain(&b.head)).flatten().copied().collect();
        let (low, high) =
            all.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &v| (low.min(v), high.max(v)));
        let whole = |block: &Block| {
            !block.base.is_empty()
                && !block.head.is_empty()
                && block.base.iter().chain(&block.head).all(|p| !p.is_empty())
        };
        if blocks.is_empty() || !blocks.iter().all(whole) || all.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let kernel = kernel();
        let margin = REACH * BANDWIDTH + STEP;
        let span = (high - low).min(FARTHEST);
        let count = |side: OneSide, block: &Block| side(block).iter().map(Vec::len).sum::<usize>();
        let density = |side: OneSide, blocks: &[Block], weight: f64, into: &mut Table| {
            for repetitions in blocks.iter().flat_map(side) {
                into.add(repetitions, weight, &kernel);
            }
        };
        let (base, head): (OneSide, OneSide) = (|block| &block.base, |block| &block.head);
        let empty = || Table::zeros(low - margin, high + margin);
        let weight_of_all = ALL / all.len() as f64;
        let (mut all_base, mut all_head) = (empty(), empty());
        density(base, blocks, weight_of_all, &mut all_base);
        density(head, blocks, weight_of_all, &mut all_head);
        let profiles = blocks.iter().map(|block| {
            let weight = OWN / (count(base, block) + count(head, block)) as f64;
            let (mut near_base, mut near_head) = (all_base.clone(), all_head.clone());
            density(base, std::slice::from_ref(block), weight, &mut near_base);
            density(head, std::slice::from_ref(block), weight, &mut near_head);
            let profile = |repetitions: &Vec<f64>| Profile {
                to_base: differences(repetitions, &near_base, span + margin),
                to_head: differences(repetitions, &near_head, span + margin),
            };
            (block.base.iter().map(profile).collect(), block.head.iter().map(profile).collect())
        });
        let profiles: Vec<(Vec<Profile>, Vec<Profile>)> = profiles.collect();
        let farthest = (2.0 * span).max(4.0 * BANDWIDTH);
        let distances =
            std::iter::successors(Some(BANDWIDTH / 3.0), |x| Some(x * RATIO)).take_while(|x| *x < farthest);
        Some(Self { blocks: profiles, distances: distances.collect(), span })
    }

    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Beyond this shift, up or down, no two repetitions of different sides meet.
    pub fn span(&self) -> f64 {
        self.span
    }

    /// How many pairs of a head and a base repetition differ by about `shift`: the curve whose highest
    /// point is the estimate.
    pub fn agreement(&self, shift: f64) -> f64 {
        // From both sides, so that swapping them changes nothing.
        let of_head = |head: &[Profile]| head.iter().map(|p| p.to_base.at(shift)).sum::<f64>();
        let of_base = |base: &[Profile]| base.iter().map(|p| p.to_head.at(-shift)).sum::<f64>();
        self.blocks.iter().map(|(base, head)| of_head(head) + of_base(base)).sum()
    }

    /// Share of the pairs that differ by about `shift`, 1 where all of them do.
    pub fn support(&self, shift: f64) -> f64 {
        let processes: usize = self.blocks.iter().map(|(base, head)| base.len() + head.len()).sum();
        self.agreement(shift) / (processes as f64 * f64::midpoint(OWN, ALL))
    }

    /// Scores by block when head is taken to be `shift` worse, at the distance that separates the processes of
    /// the blocks best, whichever they are.
    pub fn at(&self, shift: f64) -> Vec<BlockScores> {
        let score = |profile: &Profile, to_base: f64, to_head: f64, x: f64| {
            profile.to_base.at(to_base + x) - profile.to_base.at(to_base - x)
                + profile.to_head.at(to_head + x)
                - profile.to_head.at(to_head - x)
        };
        let ridge = RIDGE * self.blocks.len() as f64;
        let (mut most, mut best) = (f64::NEG_INFINITY, self.unscored());
        let mut scores = best.clone();
        for &x in &self.distances {
            let (mut separated, mut squares) = (0.0, ridge);
            for ((base, head), block) in self.blocks.iter().zip(&mut scores) {
                block.base.iter_mut().zip(base).for_each(|(into, p)| *into = score(p, 0.0, -shift, x));
                block.head.iter_mut().zip(head).for_each(|(into, p)| *into = score(p, shift, 0.0, x));
                separated += block.largest();
                squares += block.squares();
            }
            let separated = separated / squares.sqrt();
            if separated > most {
                most = separated;
                best.clone_from(&scores);
            }
        }
        best
    }

    fn unscored(&self) -> Vec<BlockScores> {
        let zeros = |side: &Vec<Profile>| vec![0.0; side.len()];
        self.blocks.iter().map(|(base, head)| BlockScores { base: zeros(base), head: zeros(head) }).collect()
    }
}

/// Distance up to which a comb is looked for: four slices of a scheduler in a repetition, or more.
const COMB_REACH: f64 = 0.35;
/// A second tooth must stand so many times higher than the gap before it.
const TOOTH: f64 = 3.0;

/// Whether repetitions of one process fall on a grid: how often two of them differ by one further, narrow
/// amount, in proportion to how often they agree, where hardly any differ by less than that amount. Noise
/// falls off from zero and has none; waiting for whole slices of a scheduler makes it. Such repetitions say
/// how often the process waited, and little about what it computed.
pub fn comb(blocks: &[Block]) -> f64 {
    let kernel = kernel();
    let mut table = Table::zeros(-REACH * BANDWIDTH, COMB_REACH + REACH * BANDWIDTH);
    for process in blocks.iter().flat_map(|block| block.base.iter().chain(&block.head)) {
        for (at, one) in process.iter().enumerate() {
            let apart: Vec<f64> = process[..at].iter().map(|other| (one - other).abs()).collect();
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
