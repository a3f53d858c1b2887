//! Processes, blocks and files whose samples were copied. Clocks have a resolution and tools round, so some
//! values agree by chance, but not all values of a process, of many consecutive processes, or of every
//! benchmark in a file. Values are compared in any order, because a copied measurement can also be shuffled.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use benchgate_core::model::{
    Benchmark, BenchmarkName, Lint, LintCode, MetricKind, MetricSeries, Process, Run, Series, SideName,
    Summary, Unit,
};

use super::appended::appended;
use super::rounding::is_rounded;

/// Samples count as copied if chance would make them agree like this in at most one row of a billion: a gate
/// that judges a thousand rows a hundred times a day then makes one mistake in twenty-seven years. If the
/// clock shows no value twice, this takes eight different values of a single process, four of each of three
/// processes, or one of each of eight processes. A coarser clock needs more values, and if hardly any two
/// values differ, no number of them is enough.
const BY_CHANCE: f64 = 1e-9;

/// The values that a process recorded.
#[derive(PartialEq)]
struct Record<'a> {
    /// Bits of the values, in order.
    bits: Vec<u64>,
    block: Option<u32>,
    session: u32,
    dated: Option<&'a str>,
}

/// The values of one process, or those of one block with a part for each side.
type UnitOfTime = Vec<Vec<u64>>;

/// Returns the finding about a pair of series in which several processes have the same samples. Equal series
/// from one file are treated as one series, however few values they have.
pub fn lint(base: &MetricSeries, head: &MetricSeries, one_file: bool) -> Option<Lint> {
    if ![base, head].into_iter().all(is_timed) {
        return None;
    }
    let sides = [records(base), records(head)];
    if one_file && sides[0] == sides[1] {
        // The sides of a paired session were measured separately. Without blocks, the same file was passed
        // for both sides.
        let is_paired = sides.iter().flatten().any(|record| record.block.is_some());
        return Some(match is_paired {
            true => {
                Lint::new(LintCode::RepeatedSamples, "both sides contain the same samples, from one file")
            }
            false => Lint::new(LintCode::SameFile, ""),
        });
    }
    let processes: Vec<UnitOfTime> = sides.iter().flatten().map(|record| vec![record.bits.clone()]).collect();
    let blocks = blocks(&sides);
    let sequences = sides.each_ref().map(|side| sequence(side));
    let are_rounded = [base, head].into_iter().all(is_rounded);
    let detail = copied_units(&processes, "processes")
        .or_else(|| appended(base, head))
        .or_else(|| copied_units(&blocks, "blocks"))
        .or_else(|| copied_sequence(&[in_any_order(&blocks)]))
        .or_else(|| copied_sequence(&sequences))
        .or_else(|| copied_with_date(&sides))
        .or_else(|| if are_rounded { None } else { constant_side(&sequences) })?;
    Some(Lint::new(LintCode::RepeatedSamples, detail))
}

/// Returns the blocks that both sides have, each with the values of a side as one part.
fn blocks(sides: &[Vec<Record<'_>>; 2]) -> Vec<UnitOfTime> {
    let mut blocks: BTreeMap<u32, UnitOfTime> = BTreeMap::new();
    for (side, records) in sides.iter().enumerate() {
        for record in records {
            let Some(block) = record.block else { return Vec::new() };
            blocks.entry(block).or_insert_with(|| vec![Vec::new(); 2])[side].extend(&record.bits);
        }
    }
    blocks.into_values().filter(|block| block.iter().all(|part| !part.is_empty())).collect()
}

/// Returns the units of one side in order, each with its values sorted: blocks if there are any, otherwise
/// processes.
fn sequence(records: &[Record<'_>]) -> Vec<UnitOfTime> {
    let blocks = records.chunk_by(|a, b| a.block.is_some() && a.block == b.block);
    blocks.map(|block| vec![sorted(block.iter().flat_map(|record| &record.bits))]).collect()
}

/// Returns units with the values of each part sorted.
fn in_any_order(units: &[UnitOfTime]) -> Vec<UnitOfTime> {
    units.iter().map(|unit| unit.iter().map(sorted).collect()).collect()
}

fn sorted<'a>(bits: impl IntoIterator<Item = &'a u64>) -> Vec<u64> {
    let mut bits: Vec<u64> = bits.into_iter().copied().collect();
    bits.sort_unstable();
    bits
}

/// Returns whether a series is measured by a clock. Counted or computed values may repeat exactly; times
/// don't.
pub(super) fn is_timed(series: &MetricSeries) -> bool {
    let timed = matches!(series.metric.unit, Unit::Nanoseconds | Unit::PerSecond);
    series.metric.kind == MetricKind::Noisy && timed
}

fn records(series: &MetricSeries) -> Vec<Record<'_>> {
    let of_summary =
        |Summary { mean, median, stddev, q1, q3, min, max, interval: _, n: _, session }: &Summary| {
            let stated = [mean, median, stddev, q1, q3, min, max].into_iter().flatten();
            let bits = stated.map(|value| value.to_bits()).collect();
            Record { bits, block: None, session: *session, dated: None }
        };
    fn of_process(process: &Process) -> Record<'_> {
        Record {
            bits: process.samples.iter().map(|sample| sample.to_bits()).collect(),
            block: process.slot.map(|slot| slot.block),
            session: process.session,
            dated: process.dated.as_deref(),
        }
    }
    let mut records: Vec<Record<'_>> = match &series.series {
        Series::Processes(processes) => processes.iter().map(of_process).collect(),
        Series::Summaries(summaries) => summaries.iter().map(of_summary).collect(),
        Series::Exact(_) => Vec::new(),
    };
    records.retain(|record| !record.bits.is_empty());
    records
}

/// Rates at which values of a row agree by chance.
struct Agreement {
    /// The share of equal pairs among any two values of one side. Copies are included, so this is an upper
    /// bound.
    first: f64,
    /// The share of equal pairs among the values of one unit, or among values at the same position in
    /// neighboring units, because all of them warm up alike.
    further: f64,
}

impl Agreement {
    fn new(units: &[UnitOfTime], distinct: &[&UnitOfTime]) -> Self {
        let parts = units.first().map_or(0, Vec::len);
        let of_part = |part: usize| {
            let values: Vec<u64> = units.iter().flat_map(|unit| &unit[part]).copied().collect();
            equal_pairs(&values)
        };
        let within = share_equal(distinct.iter().copied().flatten().map(|part| equal_pairs(part)));
        let neighbors = distinct.windows(2).flat_map(|pair| {
            pair[0].iter().zip(pair[1]).flat_map(|(one, two)| one.iter().zip(two).map(|(a, b)| a == b))
        });
        let (same, compared) = neighbors.fold((0, 0), |(same, all), is| (same + usize::from(is), all + 1));
        // If no neighbors agree, the values within a unit show more, because there are more of them.
        let alike = if same == 0 { 0.0 } else { share_equal([(same, compared)]) };
        Self { first: share_equal((0..parts).map(of_part)).max(alike), further: within.max(alike) }
    }

    /// Returns the logarithm of the chance that a given other unit has the same values as this one. On each
    /// side, the first value must agree, and so must each further value that differs from those before it; in
    /// any order unless `in_order`.
    fn log_p(&self, unit: &UnitOfTime, in_order: bool) -> f64 {
        let of_part = |part: &Vec<u64>| {
            let values = sorted(part);
            let counts: Vec<usize> = values.chunk_by(|a, b| a == b).map(<[u64]>::len).collect();
            let log_factorial = |n: usize| (1..=n).map(|factor| (factor as f64).ln()).sum::<f64>();
            let orders = log_factorial(values.len()) - counts.iter().copied().map(log_factorial).sum::<f64>();
            let of_order = if in_order { 0.0 } else { orders };
            self.first.ln() + counts.len().saturating_sub(1) as f64 * self.further.ln() + of_order
        };
        unit.iter().map(of_part).sum()
    }
}

/// Returns the finding about units that have the values of an earlier unit. Each of them could have agreed
/// with any of the units, and the agreeing units could have been any other choice of the same number; the
/// probability accounts for both.
fn copied_units(units: &[UnitOfTime], what: &str) -> Option<String> {
    let (mut orders, mut contents) = (HashSet::new(), HashSet::new());
    let (mut distinct, mut copies) = (Vec::new(), Vec::new());
    for (unit, content) in units.iter().zip(in_any_order(units)) {
        let is_new = contents.insert(content);
        let in_order = !orders.insert(unit);
        if is_new { distinct.push(unit) } else { copies.push((unit, in_order)) }
    }
    if copies.is_empty() {
        return None;
    }
    let agreement = Agreement::new(units, &distinct);
    let log_p_of = |(unit, in_order): &(&UnitOfTime, bool)| {
        ((units.len() as f64).ln() + agreement.log_p(unit, *in_order)).min(0.0)
    };
    let log_p = log_choices(units.len(), copies.len()) + copies.iter().map(log_p_of).sum::<f64>();
    (log_p < BY_CHANCE.ln()).then(|| {
        format!("{} of {} {what} recorded exactly the samples of another one", copies.len(), units.len())
    })
}

/// Returns the finding about sessions (files of one side or of both sides) that agree in so many rows that
/// one is a copy of the other. A single row may have too few values to show it.
pub fn copied_sessions(runs: &[&Run]) -> Option<Lint> {
    type Session = (usize, u32);
    let mut rows: BTreeMap<(&BenchmarkName, &str), Vec<(usize, &MetricSeries)>> = BTreeMap::new();
    for (at, run) in runs.iter().enumerate() {
        for benchmark in &run.benchmarks {
            for series in benchmark.metrics.iter().filter(|series| is_timed(series)) {
                rows.entry((&benchmark.name, series.metric.name.as_ref())).or_default().push((at, series));
            }
        }
    }
    let mut agreeing: HashMap<(Session, Session), (usize, f64)> = HashMap::new();
    let mut sessions = HashSet::new();
    for row in rows.values() {
        let mut of_session: BTreeMap<Session, Vec<u64>> = BTreeMap::new();
        for (at, series) in row {
            for record in records(series) {
                of_session.entry((*at, record.session)).or_default().extend(record.bits);
            }
        }
        let row = of_session;
        sessions.extend(row.keys().copied());
        let units: Vec<UnitOfTime> = row.values().map(|bits| vec![bits.clone()]).collect();
        let mut first: HashMap<Vec<u64>, (Session, &Vec<u64>)> = HashMap::new();
        let (mut distinct, mut copies) = (Vec::new(), Vec::new());
        for ((session, bits), unit) in row.iter().zip(&units) {
            let (earlier, original) = *first.entry(sorted(bits)).or_insert((*session, bits));
            if earlier != *session {
                copies.push((earlier, *session, original == bits));
            } else {
                distinct.push(unit);
            }
        }
        if copies.is_empty() {
            continue;
        }
        let agreement = Agreement::new(&units, &distinct);
        // If the clock is coarse, a machine in the same state shows the same values in every row.
        if agreement.first > COARSE {
            continue;
        }
        for (earlier, session, in_order) in copies {
            let found = agreeing.entry((earlier, session)).or_default();
            *found =
                (found.0 + 1, found.1 + agreement.log_p(&vec![row[&session].clone()], in_order).min(0.0));
        }
    }
    let log_pairs = 2.0 * (sessions.len() as f64).ln();
    let mut found: Vec<_> = agreeing
        .into_iter()
        .filter(|(_, (count, log_p))| log_pairs + log_choices(rows.len(), *count) + log_p < BY_CHANCE.ln())
        .collect();
    found.sort_unstable_by_key(|(pair, _)| *pair);
    let ((one, two), (count, _)) = found.first()?;
    let name = |(at, session): &Session| {
        let origin = &runs[*at].origin;
        let known = origin.sessions.get(*session as usize).unwrap_or(&origin.label);
        if known.is_empty() { "a session without a name".to_owned() } else { known.clone() }
    };
    let detail = format!(
        "{} and {} recorded exactly the same samples in {count} of {} rows",
        name(one),
        name(two),
        rows.len()
    );
    Some(Lint::new(LintCode::RepeatedSamples, detail))
}

/// Share of equal values above which a clock is too coarse to distinguish sessions.
const COARSE: f64 = 0.1;

/// Returns the finding about consecutive processes or blocks that were recorded twice, on one side or on
/// both, even if each has too few values to show it. The values must all be different, because a coarse clock
/// often repeats a value for a while.
fn copied_sequence(sequences: &[Vec<UnitOfTime>]) -> Option<String> {
    let mut places: HashMap<&UnitOfTime, (usize, usize)> = HashMap::new();
    // The current sequence of copies, and the longest one, by its last position.
    let (mut row, mut longest) = (HashSet::new(), (0, 0, 0));
    let mut before = None;
    for (number, units) in sequences.iter().enumerate() {
        for (at, unit) in units.iter().enumerate() {
            let place = *places.entry(unit).or_insert((number, at));
            let continues = before.is_some_and(|(side, first)| place == (side, first + 1)) && at > 0;
            if !continues || row.contains(unit) {
                row.clear();
            }
            before = (place != (number, at)).then_some(place);
            if before.is_some() {
                row.insert(unit);
                longest = longest.max((row.len(), number, at));
            }
        }
    }
    let (length, number, end) = longest;
    // The values other than the copies show how coarse the clock is.
    let is_left = |side: usize, at: usize| side != number || at > end || at + length <= end;
    let parts = sequences.iter().flatten().next()?.len();
    let of_part = |part: usize| {
        let values: Vec<&Vec<u64>> = sequences
            .iter()
            .enumerate()
            .flat_map(|(side, units)| units.iter().enumerate().map(move |(at, unit)| (side, at, unit)))
            .filter(|(side, at, _)| is_left(*side, *at))
            .map(|(_, _, unit)| &unit[part])
            .collect();
        equal_pairs(&values)
    };
    let agreement = share_equal((0..parts).map(of_part));
    let all = sequences.iter().map(Vec::len).sum::<usize>() as f64;
    // The sequence may begin at any two positions.
    let log_p = 2.0 * all.ln() + (length * parts) as f64 * agreement.ln();
    (length > 1 && log_p < BY_CHANCE.ln()).then(|| {
        format!("{length} processes or blocks in a row recorded exactly the samples of {length} others")
    })
}

/// Returns the finding about processes that have the date and the samples of a process in another file, which a tool may
/// have appended to. Dates can repeat, so as many must agree as chance does not explain among processes of other dates.
fn copied_with_date(sides: &[Vec<Record<'_>>; 2]) -> Option<String> {
    let records = sides.iter().enumerate().flat_map(|(side, records)| {
        records.iter().filter_map(move |record| Some((record.dated?, &record.bits, (side, record.session))))
    });
    let records: Vec<_> = records.collect();
    let [values, dates, both] = [
        equal_pairs(&records.iter().map(|(_, bits, _)| *bits).collect::<Vec<_>>()),
        equal_pairs(&records.iter().map(|(date, ..)| *date).collect::<Vec<_>>()),
        equal_pairs(&records.iter().map(|(date, bits, _)| (*date, *bits)).collect::<Vec<_>>()),
    ];
    // A machine shows similar values for a while.
    let neighbors = records.windows(2).filter(|pair| pair[0].0 != pair[1].0);
    let alike =
        neighbors.fold((0, 0), |(same, all), pair| (same + usize::from(pair[0].1 == pair[1].1), all + 1));
    let alike = if alike.0 == 0 { 0.0 } else { share_equal([alike]) };
    let agreement = share_equal([(values.0 - both.0, values.1 - dates.0)]).max(alike);
    if agreement > COARSE {
        return None;
    }
    let mut seen: HashMap<_, usize> = HashMap::new();
    let (mut compared, mut copies, mut log_p) = (0, 0, 0.0);
    for (date, bits, file) in records {
        let mut in_others = |bits| {
            let all = seen.entry((date, bits, None)).or_default();
            let before = std::mem::replace(all, *all + 1);
            let of_file = seen.entry((date, bits, Some(file))).or_default();
            before - std::mem::replace(of_file, *of_file + 1)
        };
        let candidates = in_others(None);
        compared += usize::from(candidates > 0);
        if in_others(Some(bits)) > 0 {
            copies += 1;
            log_p += (candidates as f64 * agreement).min(1.0).ln();
        }
    }
    (log_choices(compared, copies) + log_p < BY_CHANCE.ln())
        .then(|| format!("{copies} processes have the date and the samples of one in another file"))
}

/// Returns the finding about a side whose processes all recorded the same values, while the other side shows
/// that the clock is not that coarse.
fn constant_side([base, head]: &[Vec<UnitOfTime>; 2]) -> Option<String> {
    [(SideName::Base, base, head), (SideName::Head, head, base)].into_iter().find_map(
        |(name, side, other)| {
            let constant = side.windows(2).all(|pair| pair[0] == pair[1]);
            let log_p = side.len().saturating_sub(1) as f64 * share_equal([equal_pairs(other)]).ln();
            (constant && log_p < BY_CHANCE.ln())
                .then(|| format!("all processes of {name} recorded the same samples"))
        },
    )
}

/// Returns the number of equal pairs in a list, and the number of all pairs.
fn equal_pairs<T: Ord>(list: &[T]) -> (usize, usize) {
    let mut sorted: Vec<&T> = list.iter().collect();
    sorted.sort_unstable();
    let pairs = |count: usize| count * count.saturating_sub(1) / 2;
    (sorted.chunk_by(|a, b| a == b).map(|equal| pairs(equal.len())).sum(), pairs(list.len()))
}

/// Returns the share of pairs that are equal. One equal and one different pair are added (Laplace's rule of
/// succession), so that the share is never zero, however few pairs were compared.
fn share_equal(pairs: impl IntoIterator<Item = (usize, usize)>) -> f64 {
    let (equal, all) = pairs.into_iter().fold((0, 0), |sum, found| (sum.0 + found.0, sum.1 + found.1));
    (equal as f64 + 1.0) / (all as f64 + 2.0)
}

/// Returns the logarithm of the number of ways to choose `some` of `all`.
fn log_choices(all: usize, some: usize) -> f64 {
    (0..some).map(|at| ((all - at) as f64 / (at + 1) as f64).ln()).sum()
}

/// Number of different values below which processes may agree by chance, because clocks have a resolution and
/// tools round.
const ENOUGH_VALUES: usize = 4;
/// Number of different values below which processes may agree by chance in another order.
const ENOUGH_IN_ANY_ORDER: usize = 8;

/// Returns the benchmarks of a run that share a process's samples with another of its benchmarks.
pub fn repeated(run: &Run) -> BTreeSet<BenchmarkName> {
    let mut owners: HashMap<u64, &BenchmarkName> = HashMap::new();
    let mut found = BTreeSet::new();
    for benchmark in &run.benchmarks {
        for digest in processes(benchmark).filter_map(digest) {
            let owner = *owners.entry(digest).or_insert(&benchmark.name);
            if *owner != benchmark.name {
                found.insert(owner.clone());
                found.insert(benchmark.name.clone());
            }
        }
    }
    found
}

/// Returns the finding about a benchmark that shares samples with another one on either side.
pub fn lint_repeated(name: &BenchmarkName, repeated: &BTreeSet<BenchmarkName>) -> Option<Lint> {
    let detail = "the same samples are recorded for another benchmark of this run";
    repeated.contains(name).then(|| Lint::new(LintCode::RepeatedSamples, detail))
}

fn processes(benchmark: &Benchmark) -> impl Iterator<Item = &Process> {
    benchmark.metrics.first().into_iter().flat_map(|metric| match &metric.series {
        Series::Processes(processes) => processes.as_slice(),
        Series::Summaries(_) | Series::Exact(_) => &[],
    })
}

/// Returns a digest of a process's samples; `None` if there are too few to distinguish them from another
/// process's.
fn digest(process: &Process) -> Option<u64> {
    let values: Vec<u64> = process.samples.iter().map(|value| value.to_bits()).collect();
    let mut in_any_order = values.clone();
    in_any_order.sort_unstable();
    let different = in_any_order.chunk_by(|a, b| a == b).count();
    let mut hasher = DefaultHasher::new();
    if different < ENOUGH_IN_ANY_ORDER { values } else { in_any_order }.hash(&mut hasher);
    (different >= ENOUGH_VALUES).then(|| hasher.finish())
}

/// Smallest relative difference of two measurements of one program, for rows with too few values to show it.
const SPREAD: f64 = 1e-3;

/// Largest relative change by rounding.
const COARSEST: f64 = 0.01;

/// Significant digits that the conversion of a unit keeps.
const DIGITS: i32 = 14;

/// Detects files that copy another file with fewer digits or in another unit: returns the finding that all values of
/// both sides agree except for rounding, in an order and number that chance does not explain.
pub fn rounded_copies(base: &Run, head: &Run) -> Option<Lint> {
    let of_head = head.by_name();
    let (mut rows, mut log_p, mut is_rounded) = (0, 0.0, false);
    for benchmark in &base.benchmarks {
        let Some(partner) = of_head.get(&benchmark.name) else { continue };
        for series in benchmark.metrics.iter().filter(|series| is_timed(series)) {
            let Some(other) = partner.metric(&series.metric.name) else { continue };
            let sides = [series, other].map(values);
            let chance = log_chance(&sides)?;
            // Equal values are judged elsewhere, because coarse clocks repeat them.
            if sides[0] != sides[1] {
                is_rounded = true;
                log_p += chance;
            }
            rows += 1;
        }
    }
    let detail = || format!("the values of both sides agree in all {rows} rows, except for rounding");
    (is_rounded && log_p < BY_CHANCE.ln()).then(|| Lint::new(LintCode::RepeatedSamples, detail()))
}

/// Returns the values of a series in their order; for summaries, one of each.
fn values(series: &MetricSeries) -> Vec<f64> {
    match &series.series {
        Series::Processes(processes) => {
            processes.iter().flat_map(|process| process.samples.iter().copied()).collect()
        }
        Series::Summaries(summaries) => {
            summaries.iter().filter_map(|summary| summary.mean.or(summary.median)).collect()
        }
        Series::Exact(_) => Vec::new(),
    }
}

/// Returns the logarithm of the chance that the values of a row agree except for rounding; `None` if they
/// don't.
fn log_chance([base, head]: &[Vec<f64>; 2]) -> Option<f64> {
    if base.len() != head.len() {
        return None;
    }
    let printed = [Printed::new(base), Printed::new(head)];
    let spread = spread(base).min(spread(head));
    let mut log_p = 0.0;
    for (one, two) in base.iter().zip(head) {
        // If a clock is too coarse, both sides show zero.
        if *one == 0.0 && *two == 0.0 {
            continue;
        }
        let [coarse, fine] = {
            let [a, b] = printed.each_ref().map(|printed| printed.step(*one));
            // Few digits don't make different values equal.
            [a.max(b).min(COARSEST * one.abs()), a.min(b)]
        };
        // A value that was cut instead of rounded may be off by a whole step.
        let off = if coarse > 5.0 * fine { coarse } else { 0.5 * coarse };
        if (one - two).abs() > off + one.abs() * 10f64.powi(1 - DIGITS) {
            return None;
        }
        let spread = if base.len() < 4 { SPREAD * one.abs() } else { spread };
        log_p += (2.0 * off / spread).min(1.0).ln();
    }
    Some(log_p)
}

/// Returns how much neighboring values differ, which is little while a process warms up or drifts.
fn spread(values: &[f64]) -> f64 {
    let mut apart: Vec<f64> = values.windows(2).map(|pair| (pair[0] - pair[1]).abs()).collect();
    apart.sort_by(f64::total_cmp);
    apart.get(apart.len() / 2).copied().unwrap_or(0.0)
}

/// The digits and decimals of values that were all printed by one rule.
struct Printed {
    digits: i32,
    decimals: i32,
}

impl Printed {
    fn new(values: &[f64]) -> Self {
        let mut printed = Self { digits: 1, decimals: i32::MIN };
        for value in values.iter().filter(|value| value.is_finite() && **value != 0.0) {
            let text = format!("{:.*e}", DIGITS as usize - 1, value.abs());
            let Some((mantissa, exponent)) = text.split_once('e') else { continue };
            let exponent: i32 = exponent.parse().unwrap_or_default();
            let written = mantissa.trim_end_matches('0').bytes().filter(u8::is_ascii_digit).count();
            let digits = i32::try_from(written).unwrap_or(DIGITS);
            printed.digits = printed.digits.max(digits);
            printed.decimals = printed.decimals.max(digits - 1 - exponent);
        }
        printed
    }

    /// Returns the distance between a value and the next one that could have been printed.
    fn step(&self, value: f64) -> f64 {
        let exponent = if value == 0.0 { 0 } else { value.abs().log10().floor().clamp(-300.0, 300.0) as i32 };
        10f64.powi((exponent + 1 - self.digits).max(self.decimals.saturating_neg()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values with a spread of half a percent, from a generator with this seed.
    fn measured(seed: u64, count: u64) -> Vec<f64> {
        let noise = |at: u64| {
            let mut state = (seed << 32 | at).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            state ^= state >> 29;
            state = state.wrapping_mul(0xBF58_476D_1CE4_E5B9);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        (0..count).map(|at| 122_600.0 * (1.0 + 0.005 * noise(at))).collect()
    }

    fn rounded(values: &[f64], step: f64) -> Vec<f64> {
        values.iter().map(|value| (value / step).round() * step).collect()
    }

    #[test]
    fn a_rounded_copy_is_no_chance_and_another_measurement_does_not_agree() {
        let values = measured(1, 20);
        for step in [0.01, 1.0, 10.0] {
            let chance = log_chance(&[values.clone(), rounded(&values, step)]).unwrap();
            assert!(chance < BY_CHANCE.ln(), "{step}: {chance}");
        }
        assert_eq!(log_chance(&[values.clone(), measured(2, 20)]), None);
        assert_eq!(log_chance(&[values.clone(), rounded(&measured(2, 20), 1.0)]), None);
    }

    #[test]
    fn a_round_number_does_not_agree_with_another() {
        assert_eq!(log_chance(&[vec![100.0], vec![100_000.0]]), None);
        assert_eq!(log_chance(&[vec![100.0], vec![200.0]]), None);
    }

    #[test]
    fn a_time_of_zero_on_both_sides_shows_nothing() {
        let with_zero = |seed| [vec![0.0], rounded(&measured(seed, 20), 1_000.0)].concat();
        let chance = log_chance(&[with_zero(1), with_zero(2)]).unwrap();
        assert!(chance > -1e-9, "{chance}");
    }

    #[test]
    fn values_that_are_too_coarse_to_differ_agree_by_chance() {
        let [base, head] = [1, 2].map(|seed| rounded(&measured(seed, 20), 1_000.0));
        assert_eq!(log_chance(&[base, head]), Some(0.0));
        let chance = log_chance(&[measured(1, 20), rounded(&measured(2, 20), 1_000.0)]).unwrap();
        assert!(chance > -1e-9, "{chance}");
    }
}
