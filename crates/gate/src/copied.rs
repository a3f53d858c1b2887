//! Processes of one benchmark whose samples were copied. Clocks tick and tools round, so some values agree by chance;
//! all values of a process, or of many processes in a row, don't.

use std::collections::{HashMap, HashSet};

use benchgate_core::model::{
    Lint, LintCode, MetricKind, MetricSeries, Process, Series, SideName, Summary, Unit,
};

/// Samples count as copied where chance makes them agree so in one row of a billion at most: a gate that judges a
/// thousand rows a hundred times a day is wrong once in twenty-seven years. If the clock shows no value twice, that
/// takes eight different values of a single process, four of each of three processes, or eight processes of one value
/// each; where it is coarse, more, and none suffice where hardly any two values differ.
const BY_CHANCE: f64 = 1e-9;

/// Values that a process recorded.
#[derive(PartialEq)]
struct Record {
    /// Bits of its values, in order.
    bits: Vec<u64>,
    block: Option<u32>,
}

/// The finding about a pair of series in which the same samples are recorded for several processes. Of one file,
/// series that are equal are one series, however few values they have.
pub fn lint(base: &MetricSeries, head: &MetricSeries, one_file: bool) -> Option<Lint> {
    if ![base, head].into_iter().all(is_timed) {
        return None;
    }
    let sides = [records(base), records(head)];
    if one_file && sides[0] == sides[1] {
        return Some(Lint::new(LintCode::RepeatedSamples, "both sides are the same samples of one file"));
    }
    let mut seen = HashSet::new();
    let (distinct, mut copies): (Vec<&Record>, Vec<&Record>) =
        sides.iter().flatten().partition(|record| seen.insert(&record.bits));
    if copies.is_empty() {
        return None;
    }
    let blocks = Blocks::new(&sides);
    copies.retain(|copy| !blocks.is_drawn_again(copy));
    let sequences = sides.each_ref().map(|side| sequence(side));
    let detail = copied_processes(&distinct, &copies)
        .or_else(|| copied_sequence(&sequences))
        .or_else(|| constant_side(&sequences))?;
    Some(Lint::new(LintCode::RepeatedSamples, detail))
}

/// Records of the processes of each block, by side. Resampled sessions (the bootstrap) hold blocks several times,
/// whole and in no order. They are drawn from measured blocks, so repeated blocks are not copies of a process; a
/// sequence of blocks that repeats in the same order is one (`copied_sequence`).
struct Blocks<'a> {
    by_block: HashMap<u32, [HashSet<&'a [u64]>; 2]>,
    holding: HashMap<&'a [u64], Vec<u32>>,
    /// Blocks in which two processes recorded the same.
    twofold: HashSet<(u32, &'a [u64])>,
}

impl<'a> Blocks<'a> {
    fn new(sides: &'a [Vec<Record>; 2]) -> Self {
        let mut blocks = Self { by_block: HashMap::new(), holding: HashMap::new(), twofold: HashSet::new() };
        for (side, records) in sides.iter().enumerate() {
            for Record { bits, block } in records {
                let Some(block) = *block else { continue };
                blocks.by_block.entry(block).or_default()[side].insert(bits);
                let holding = blocks.holding.entry(bits).or_default();
                if holding.contains(&block) {
                    blocks.twofold.insert((block, bits));
                } else {
                    holding.push(block);
                }
            }
        }
        blocks
    }

    /// Whether the block of this record shares records of both its sides with another one that holds it, whichever side
    /// that one took them for: labels may be drawn again too.
    fn is_drawn_again(&self, copy: &'a Record) -> bool {
        let Some(block) = copy.block.filter(|block| !self.twofold.contains(&(*block, &copy.bits))) else {
            return false;
        };
        let [base, head] = &self.by_block[&block];
        self.holding[copy.bits.as_slice()].iter().filter(|other| **other != block).any(|other| {
            let [other_base, other_head] = &self.by_block[other];
            let is_shared = |bits: &&[u64]| other_base.contains(bits) || other_head.contains(bits);
            base.iter().any(is_shared) && head.iter().any(is_shared)
        })
    }
}

/// Consecutive records: by blocks if there are any, else by processes.
fn sequence(records: &[Record]) -> Vec<Vec<u64>> {
    let blocks = records.chunk_by(|a, b| a.block.is_some() && a.block == b.block);
    blocks.map(|block| block.iter().flat_map(|record| &record.bits).copied().collect()).collect()
}

/// Counted or computed values may repeat exactly; times of a clock don't.
fn is_timed(series: &MetricSeries) -> bool {
    let timed = matches!(series.metric.unit, Unit::Nanoseconds | Unit::PerSecond);
    series.metric.kind == MetricKind::Noisy && timed
}

fn records(series: &MetricSeries) -> Vec<Record> {
    let of_summary =
        |Summary { mean, median, stddev, q1, q3, min, max, interval: _, n: _, session: _ }: &Summary| {
            let stated = [mean, median, stddev, q1, q3, min, max].into_iter().flatten();
            Record { bits: stated.map(|value| value.to_bits()).collect(), block: None }
        };
    let of_process = |process: &Process| Record {
        bits: process.samples.iter().map(|sample| sample.to_bits()).collect(),
        block: process.slot.map(|slot| slot.block),
    };
    let mut records: Vec<Record> = match &series.series {
        Series::Processes(processes) => processes.iter().map(of_process).collect(),
        Series::Summaries(summaries) => summaries.iter().map(of_summary).collect(),
        Series::Exact(_) => Vec::new(),
    };
    records.retain(|record| !record.bits.is_empty());
    records
}

/// Processes that recorded the same values as an earlier one. A process that lies where another one does may agree
/// with it in the first value, and in each further one that differs from those before as often as two values do: of
/// one process, or of neighboring ones at the same place, because warming up looks alike in all of them. Accounts for
/// the number of processes to agree with, and for the number of ways to choose them.
fn copied_processes(distinct: &[&Record], copies: &[&Record]) -> Option<String> {
    let all = distinct.len() + copies.len();
    let neighbors = distinct.windows(2).flat_map(|pair| pair[0].bits.iter().zip(&pair[1].bits));
    let (same, compared) =
        neighbors.fold((0, 0), |(same, all), (a, b)| (same + usize::from(a == b), all + 1));
    let agreement = share_equal(distinct.iter().map(|record| equal_pairs(&record.bits)));
    let agreement = if compared == 0 { agreement } else { agreement.max(share_equal([(same, compared)])) };
    let log_p_of = |record: &&Record| {
        let further = record.bits.iter().collect::<HashSet<_>>().len() - 1;
        ((all as f64).ln() + further as f64 * agreement.ln()).min(0.0)
    };
    let log_p = log_choices(all, copies.len()) + copies.iter().map(log_p_of).sum::<f64>();
    (log_p < BY_CHANCE.ln())
        .then(|| format!("{} of {all} processes recorded exactly the samples of another one", copies.len()))
}

/// Processes or blocks in a row that were recorded twice, on one side or on both, where each has too few values to show
/// it. They must all differ: a clock that is coarse often shows one value for a while.
fn copied_sequence(sides: &[Vec<Vec<u64>>; 2]) -> Option<String> {
    let all = (sides[0].len() + sides[1].len()) as f64;
    let agreement = share_equal(sides.iter().map(|records| equal_pairs(records)));
    // The sequence may begin at any two places.
    let length = ((BY_CHANCE.ln() - 2.0 * all.ln()) / agreement.ln()).ceil() as usize;
    let mut places: HashMap<&[Vec<u64>], (usize, usize)> = HashMap::new();
    for (side, records) in sides.iter().enumerate() {
        for (at, row) in records.windows(length).enumerate() {
            let (first_side, first) = *places.entry(row).or_insert((side, at));
            let apart = first_side != side || at >= first + length;
            if apart && row.iter().collect::<HashSet<_>>().len() == length {
                return Some(format!(
                    "{length} processes or blocks in a row recorded exactly the samples of {length} others"
                ));
            }
        }
    }
    None
}

/// A side whose processes all recorded the same, while the other one shows that the clock is not that coarse.
fn constant_side([base, head]: &[Vec<Vec<u64>>; 2]) -> Option<String> {
    [(SideName::Base, base, head), (SideName::Head, head, base)].into_iter().find_map(
        |(name, side, other)| {
            let constant = side.windows(2).all(|pair| pair[0] == pair[1]);
            let log_p = side.len().saturating_sub(1) as f64 * share_equal([equal_pairs(other)]).ln();
            (constant && log_p < BY_CHANCE.ln())
                .then(|| format!("all processes of {name} recorded the same samples"))
        },
    )
}

/// Number of equal pairs of a list, and of all pairs.
fn equal_pairs<T: Ord>(list: &[T]) -> (usize, usize) {
    let mut sorted: Vec<&T> = list.iter().collect();
    sorted.sort_unstable();
    let pairs = |count: usize| count * count.saturating_sub(1) / 2;
    (sorted.chunk_by(|a, b| a == b).map(|equal| pairs(equal.len())).sum(), pairs(list.len()))
}

/// How often two values are equal; where few were compared, one that is and one that isn't count in addition (Laplace's
/// rule of succession), so that it is never zero.
fn share_equal(pairs: impl IntoIterator<Item = (usize, usize)>) -> f64 {
    let (equal, all) = pairs.into_iter().fold((0, 0), |sum, found| (sum.0 + found.0, sum.1 + found.1));
    (equal as f64 + 1.0) / (all as f64 + 2.0)
}

/// Logarithm of the number of ways to choose `some` of `all`.
fn log_choices(all: usize, some: usize) -> f64 {
    (0..some).map(|at| ((all - at) as f64 / (at + 1) as f64).ln()).sum()
}
