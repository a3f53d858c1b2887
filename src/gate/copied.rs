//! Processes of one benchmark whose samples were copied. Clocks tick and tools round, so some values agree by chance;
//! all values of a process, or of many processes in a row, don't.

use std::collections::{HashMap, HashSet};

use crate::model::{Lint, LintCode, MetricKind, MetricSeries, Series, SideName, Summary, Unit};

/// Samples count as copied where chance makes them agree so in one row of a billion at most: a gate that judges a
/// thousand rows a hundred times a day is wrong once in twenty-seven years. Where the clock shows no value twice,
/// that takes eight different values of a single process, four of each of three processes, or eight processes of one
/// value each; where it is coarse, more, and none suffice where hardly any two values differ.
const BY_CHANCE: f64 = 1e-9;

/// What a process recorded: the bits of its values, in order.
type Record = Vec<u64>;

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
    let (distinct, copies): (Vec<&Record>, Vec<&Record>) =
        sides.iter().flatten().partition(|record| seen.insert(*record));
    if copies.is_empty() {
        return None;
    }
    let detail = copied_processes(&distinct, &copies)
        .or_else(|| copied_sequence(&sides))
        .or_else(|| constant_side(&sides))?;
    Some(Lint::new(LintCode::RepeatedSamples, detail))
}

/// What is counted may well repeat exactly; what a clock shows doesn't.
fn is_timed(series: &MetricSeries) -> bool {
    let counted = matches!(series.metric.unit, Unit::Count | Unit::Bytes | Unit::Fraction);
    series.metric.kind == MetricKind::Noisy && !counted
}

fn records(series: &MetricSeries) -> Vec<Record> {
    let of_summary = |Summary { n: _, mean, median, stddev, min, max }: &Summary| -> Record {
        [mean, median, stddev, min, max].into_iter().flatten().map(|value| value.to_bits()).collect()
    };
    let mut records: Vec<Record> = match &series.series {
        Series::Processes(processes) => processes
            .iter()
            .map(|process| process.samples.iter().map(|sample| sample.to_bits()).collect())
            .collect(),
        Series::Summaries(summaries) => summaries.iter().map(of_summary).collect(),
        Series::Exact(_) => Vec::new(),
    };
    records.retain(|record| !record.is_empty());
    records
}

/// Processes that recorded what an earlier one did. A process that lies where another one does may agree with it in
/// the first value, and in each further one that differs from those before as often as two values do: of
/// one process, or of neighboring ones at the same place, because warming up looks alike in all of them. There
/// are as many processes to agree with as there are, and as many ways to choose the ones that do.
fn copied_processes(distinct: &[&Record], copies: &[&Record]) -> Option<String> {
    let all = distinct.len() + copies.len();
    let neighbors = distinct.windows(2).flat_map(|pair| pair[0].iter().zip(pair[1]));
    let (same, compared) =
        neighbors.fold((0, 0), |(same, all), (a, b)| (same + usize::from(a == b), all + 1));
    let agreement = share_equal(distinct.iter().map(|record| equal_pairs(record)));
    let agreement = if compared == 0 { agreement } else { agreement.max(share_equal([(same, compared)])) };
    let log_p_of = |record: &&Record| {
        let further = record.iter().collect::<HashSet<_>>().len() - 1;
        ((all as f64).ln() + further as f64 * agreement.ln()).min(0.0)
    };
    let log_p = log_choices(all, copies.len()) + copies.iter().map(log_p_of).sum::<f64>();
    (log_p < BY_CHANCE.ln())
        .then(|| format!("{} of {all} processes recorded exactly the samples of another one", copies.len()))
}

/// Processes in a row that were recorded twice, on one side or on both, where each has too few values to show it. They
/// must all differ: a clock that is coarse often shows one value for a while.
fn copied_sequence(sides: &[Vec<Record>; 2]) -> Option<String> {
    let all = (sides[0].len() + sides[1].len()) as f64;
    let agreement = share_equal(sides.iter().map(|records| equal_pairs(records)));
    // Any two places may be where the row begins.
    let length = ((BY_CHANCE.ln() - 2.0 * all.ln()) / agreement.ln()).ceil() as usize;
    let mut places: HashMap<&[Record], (usize, usize)> = HashMap::new();
    for (side, records) in sides.iter().enumerate() {
        for (at, row) in records.windows(length).enumerate() {
            let (first_side, first) = *places.entry(row).or_insert((side, at));
            let apart = first_side != side || at >= first + length;
            if apart && row.iter().collect::<HashSet<_>>().len() == length {
                return Some(format!(
                    "{length} processes in a row recorded exactly the samples of {length} others"
                ));
            }
        }
    }
    None
}

/// A side whose processes all recorded the same, while the other one shows that the clock is not that coarse.
fn constant_side([base, head]: &[Vec<Record>; 2]) -> Option<String> {
    [(SideName::Base, base, head), (SideName::Head, head, base)].into_iter().find_map(
        |(name, side, other)| {
            let constant = side.windows(2).all(|pair| pair[0] == pair[1]);
            let log_p = side.len().saturating_sub(1) as f64 * share_equal([equal_pairs(other)]).ln();
            (constant && log_p < BY_CHANCE.ln())
                .then(|| format!("all {} processes of {name} recorded the same samples", side.len()))
        },
    )
}

/// Pairs of a list that are equal, and all of them.
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
