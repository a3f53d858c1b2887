//! Sequential testing: decides which rows need more blocks, and estimates how many.

use benchgate_core::model::{Benchmark, BenchmarkName, Calibration, Metric, Run, Standing, Verdict};

use benchgate_stats::multiplicity::Looks;

use super::{CompareOptions, Comparison, Method, Policy, Reason, Row, SequentialPolicy, compare, threads};

/// Number of blocks for a row whose sides are identical, unless more are requested: enough for a free A/A
/// sample of the machine's noise.
pub const IDENTICAL_BLOCKS: u32 = 1;

/// Number of blocks for identical artifacts whose sides differ in sources or tools: inputs that were not
/// recorded may differ too, so their times are checked.
pub const CHECKED_IDENTICAL_BLOCKS: u32 = 4;

/// Number of pairs of compilations before which nothing is decided: fewer can't fail a row at the level of a
/// small suite.
const LEAST_COMPILE_PAIRS: u32 = 12;

/// Returns the numbers of blocks after which rows are judged. For compile time, a block is one pair of
/// compilations.
pub fn looks(policy: &Policy, metric: &Metric) -> Looks {
    let SequentialPolicy { min_blocks, max_blocks } = policy.sequential;
    let least = if metric.is_compile_time() { LEAST_COMPILE_PAIRS } else { 0 };
    Looks::new(min_blocks.max(least), max_blocks)
}

/// The rows that are still undecided after a look.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OpenRows {
    /// Benchmarks that need more blocks before they can be judged.
    pub open: Vec<BenchmarkName>,
    /// Number of blocks that each of them should have at the next look; `None` if measuring is over.
    pub next_blocks: Option<u32>,
}

/// Returns the undecided rows after the blocks measured so far, and the number of blocks to measure next.
/// Open benchmarks are measured in step: all of them get `next_blocks` blocks before the next call.
///
/// The result is a pure function of what was measured, so an interrupted job gets the same result when it
/// resumes.
pub fn open_rows(base: &Run, head: &Run, policy: &Policy) -> OpenRows {
    open_in(&compare(base, head, policy, &CompareOptions::at_look()), policy)
}

/// Returns the undecided rows like [`open_rows`], for one shard of a suite with this many fatal rows. Each
/// benchmark is judged alone and against the whole suite's error budget, so the time for which it is measured
/// does not depend on the other benchmarks of its shard.
pub fn open_in_shard(base: &Run, head: &Run, policy: &Policy, suite_rows: u32) -> OpenRows {
    let options = CompareOptions { suite_rows, ..CompareOptions::at_look() };
    let alone = |benchmark: &Benchmark| {
        let name = &benchmark.name;
        open_in(&compare(&only(base, name), &only(head, name), policy, &options), policy)
    };
    let mut all = OpenRows::default();
    for answer in threads::each(&head.benchmarks, WORTH_SHARING, alone) {
        all.open.extend(answer.open);
        all.next_blocks = [all.next_blocks, answer.next_blocks].into_iter().flatten().min();
    }
    all
}

/// Number of benchmarks from which threads save more time than starting them takes: each benchmark takes a
/// millisecond.
const WORTH_SHARING: usize = 8;

/// Returns a run with one benchmark, and with the data that all its benchmarks share.
fn only(run: &Run, name: &BenchmarkName) -> Run {
    let spreads_of = |calibration: &Calibration| Calibration {
        source: calibration.source.clone(),
        spreads: calibration
            .spreads
            .range((name.clone(), String::new())..)
            .take_while(|((benchmark, _), _)| benchmark == name)
            .map(|(key, spread)| (key.clone(), *spread))
            .collect(),
    };
    let benchmarks = run.benchmarks.iter().filter(|benchmark| benchmark.name == *name);
    Run {
        suite: run.suite.clone(),
        session: run.session.clone(),
        origin: run.origin.clone(),
        context: run.context.clone(),
        testbed: run.testbed.clone(),
        toolchain: run.toolchain.clone(),
        commit: run.commit.clone(),
        programs: run.programs.clone(),
        benchmarks: benchmarks.cloned().collect(),
        calibration: run.calibration.as_ref().map(spreads_of),
        anchor: run.anchor.clone(),
        in_shards: run.in_shards,
        lints: run.lints.clone(),
    }
}

/// Returns the undecided rows of an existing comparison. Processes that run a module don't measure its
/// compiler, so compile times are not included.
pub fn open_in(comparison: &Comparison, policy: &Policy) -> OpenRows {
    open_of(comparison, policy, false)
}

/// Returns benchmarks whose compile time needs more pairs of compilations, like [`open_in`]; `suite_rows` is
/// the number of fatal rows.
pub fn open_compile_times(base: &Run, head: &Run, policy: &Policy, suite_rows: u32) -> OpenRows {
    let options = CompareOptions { suite_rows, ..CompareOptions::at_look() };
    open_of(&compare(base, head, policy, &options), policy, true)
}

fn open_of(comparison: &Comparison, policy: &Policy, of_compiler: bool) -> OpenRows {
    let looks = looks(policy, &if of_compiler { Metric::COMPILE_TIME } else { Metric::LATENCY });
    let mut open = Vec::new();
    let mut next: Option<u32> = None;
    let asked = |row: &&Row| {
        let is_open = row.fatal && row.verdict == Verdict::Inconclusive;
        is_open && row.metric.as_ref().is_some_and(Metric::is_compile_time) == of_compiler
    };
    for row in comparison.rows.iter().filter(asked) {
        let blocks = row.estimate.as_ref().map_or(0, |estimate| estimate.blocks);
        let more_helps = match &row.reason {
            Reason::Open | Reason::Stability | Reason::Tail => {
                row.estimate.as_ref().is_some_and(|e| e.method == Method::Paired)
            }
            // More blocks don't narrow the interval of a row without blocks.
            Reason::TooLittle(_) => {
                row.estimate.as_ref().is_none_or(|e| e.method == Method::Paired || e.interval.is_none())
            }
            _ => false,
        };
        let Some(point) = looks.after(blocks).filter(|_| more_helps) else { continue };
        if !open.contains(&row.benchmark) {
            open.push(row.benchmark.clone());
        }
        next = Some(next.map_or(point, |known: u32| known.min(point)));
    }
    OpenRows { next_blocks: next, open }
}

/// The state of one benchmark between two looks.
#[derive(Debug, Clone, PartialEq)]
pub struct Outlook {
    /// The state of the row that represents the benchmark. The caller knows whether it is still measured.
    pub standing: Standing,
    /// Blocks after which the interval is probably narrow enough to decide; `None` if unknown.
    pub blocks_needed: Option<f64>,
}

/// Returns the gating paired rows, one per benchmark: the one that is farthest from a decision represents it.
pub fn outlook(comparison: &Comparison) -> Vec<Outlook> {
    let mut all: Vec<Outlook> = Vec::new();
    // Compilations are finished before a process is timed.
    let paired = |row: &&Row| {
        let is_paired = row.estimate.as_ref().is_some_and(|e| e.method == Method::Paired);
        row.fatal && is_paired && !row.metric.as_ref().is_some_and(Metric::is_compile_time)
    };
    for row in comparison.rows.iter().filter(paired) {
        let Some(found) = of_row(row) else { continue };
        match all.iter_mut().find(|known| known.standing.benchmark == found.standing.benchmark) {
            Some(known) if found.standing.verdict == Verdict::Inconclusive => *known = found,
            Some(_) => {}
            None => all.push(found),
        }
    }
    all
}

fn of_row(row: &Row) -> Option<Outlook> {
    let estimate = row.estimate.as_ref()?;
    let interval = estimate.interval.map(|interval| (interval.low, interval.high));
    let (benchmark, verdict) = (row.benchmark.clone(), row.verdict);
    let (blocks, ratio) = (estimate.blocks, estimate.ratio);
    let blocks_needed = interval.and_then(|interval| blocks_needed(row, ratio, interval, blocks));
    let standing = Standing { benchmark, verdict, blocks, ratio, interval, open: false };
    Some(Outlook { standing, blocks_needed })
}

/// Estimates the blocks that a decision needs. An interval narrows with the square root of the number of
/// blocks. An interval decides when its worse end is below the tolerance or its better end is beyond the
/// floor, whichever is nearer to the estimate.
fn blocks_needed(row: &Row, ratio: f64, (low, high): (f64, f64), blocks: u32) -> Option<f64> {
    let (policy, metric) = (row.policy.as_ref()?, row.metric.as_ref()?);
    let cost = metric.better.worse() * ratio.ln();
    let (floor, tolerance) = (policy.floor.relative.max(0.0).ln_1p(), policy.tolerance.max(0.0).ln_1p());
    let half_width = (high.ln() - low.ln()) / 2.0;
    let room = (tolerance.max(floor) - cost).max(cost - floor);
    let needed = f64::from(blocks) * (half_width / room).powi(2);
    (room > 0.0 && needed.is_finite()).then(|| needed.max(f64::from(blocks)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Estimate, Interval, MetricPolicy, Policy, Reason};
    use benchgate_core::model::Metric;

    fn row(ratio: f64, low: f64, high: f64) -> Row {
        let policy = Policy::default();
        let rule: &MetricPolicy = &policy.metrics[0].1;
        Row {
            metric: Some(Metric::LATENCY),
            estimate: Some(Estimate {
                interval: Some(Interval { low, high, level: 0.99 }),
                blocks: 8,
                ..Estimate::unjudged(Method::Paired, ratio)
            }),
            policy: Some(rule.clone()),
            ..Row::new(BenchmarkName::new("a"), Verdict::Inconclusive, Reason::Open)
        }
    }

    #[test]
    fn a_wide_interval_needs_more_blocks_than_a_narrow_one() {
        let needed = |row: &Row| of_row(row).unwrap().blocks_needed.unwrap();
        let (wide, narrow) = (row(1.0, 0.90, 1.11), row(1.0, 0.96, 1.04));
        assert!(needed(&wide) > needed(&narrow));
        assert!(needed(&narrow) > 8.0);
        // The distance to the limit is three percent, and the interval is twice as wide: that takes four
        // times the blocks.
        let twice = row(1.0, 1.0 / 1.03 / 1.03, 1.03 * 1.03);
        assert!((needed(&twice) - 32.0).abs() < 0.01, "{}", needed(&twice));
    }

    #[test]
    fn a_clear_change_needs_no_more_blocks() {
        assert_eq!(of_row(&row(1.2, 1.15, 1.25)).unwrap().blocks_needed, Some(8.0));
    }
}
