//! The calibration itself: spreads, floors, and the measured error rates.

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand_chacha::ChaCha12Rng;

use crate::gate::estimate::shift;
use crate::gate::evidence::blocks as paired_blocks;
use crate::gate::series::{self, Readings};
use crate::gate::{Comparison, Policy};
use crate::model::{BenchmarkName, Calibration, Metric, Run, Spread, Verdict};
use crate::stats::robust::{ScalePrior, fit};
use crate::stats::scores::BlockCosts;
use crate::stats::{Inference, binomial_tail, describe};

use super::resample::{Recording, measure};

/// What `noise` is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct NoiseOptions {
    pub seed: u64,
    /// Resampled sessions without a change, and as many for each slowdown.
    pub resamples: u32,
    /// Slowdowns to inject into one benchmark at a time, as fractions: 0.05 is 5 %.
    pub slowdowns: Vec<f64>,
    /// The metric that is calibrated.
    pub metric: String,
    /// Who measured it and when, in words for the report.
    pub source: String,
}

impl Default for NoiseOptions {
    fn default() -> Self {
        Self {
            seed: 1,
            resamples: 1000,
            slowdowns: vec![0.03, 0.05, 0.10],
            metric: Metric::LATENCY.name.into_owned(),
            source: String::new(),
        }
    }
}

/// Chance that a bound of an interval is missed.
const MISSED: f64 = 0.025;

/// Hits among trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Share {
    pub hits: u64,
    pub of: u64,
}

impl Share {
    /// The share itself; NaN without trials.
    pub fn value(&self) -> f64 {
        self.hits as f64 / self.of as f64
    }

    /// The shares that these trials leave possible, each bound missed by one such count in forty (Clopper and Pearson
    /// 1934, Biometrika 26:404–413). Everything is possible without trials.
    pub fn interval(&self) -> (f64, f64) {
        // The tail grows with the share, so sixty halvings find where it passes the level.
        let where_tail_is = |hits: u64, level: f64| {
            let (mut low, mut high) = (0.0_f64, 1.0_f64);
            for _ in 0..60 {
                let middle = f64::midpoint(low, high);
                if binomial_tail(hits, self.of, middle) < level { low = middle } else { high = middle }
            }
            high
        };
        let low = if self.hits == 0 { 0.0 } else { where_tail_is(self.hits, MISSED) };
        let high = if self.hits >= self.of { 1.0 } else { where_tail_is(self.hits + 1, 1.0 - MISSED) };
        (low, high)
    }

    fn add(&mut self, hit: bool) {
        self.hits += u64::from(hit);
        self.of += 1;
    }
}

/// How often a slowdown of one benchmark was seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerPoint {
    pub slowdown: f64,
    pub seen: Share,
    /// Blocks per row, averaged over all rows of the suite.
    pub blocks: f64,
}

/// What the machine's noise means for one benchmark.
#[derive(Debug, Clone, PartialEq)]
pub struct NoiseRow {
    pub benchmark: BenchmarkName,
    pub spread: Spread,
    /// The smallest floor this row can hold with 90 % power at the last look, as a fraction: below it a
    /// red would ask for more blocks than the policy allows.
    pub floor: f64,
    /// Unchanged sessions in which this row was green.
    pub green: Share,
    pub power: Vec<PowerPoint>,
}

/// The whole calibration.
#[derive(Debug, Clone, PartialEq)]
pub struct NoiseReport {
    pub rows: Vec<NoiseRow>,
    /// Rounds of blocks that were recorded; every session is drawn from them, so that no number of resamples knows more.
    pub rounds: u32,
    /// Unchanged sessions that turned red.
    pub red_suites: Share,
    pub green_rows: Share,
    pub inconclusive_rows: Share,
    /// Blocks per row in unchanged sessions.
    pub blocks: f64,
    /// By slowdown, over all benchmarks.
    pub power: Vec<PowerPoint>,
    pub(crate) calibration: Calibration,
}

impl NoiseReport {
    /// What runs of this machine may use. `None` where unchanged code surely turns red more often than `alpha` promises:
    /// then the blocks are not what the method takes them for, and their spreads would make later verdicts too sure.
    pub fn calibration(&self, alpha: f64) -> Option<&Calibration> {
        (self.red_suites.interval().0 <= alpha).then_some(&self.calibration)
    }

    /// The session that was calibrated from.
    pub fn source(&self) -> &str {
        &self.calibration.source
    }
}

/// Calibrates from an A/A session: `base` and `head` ran the same program.
///
/// Resampling can't show disturbances the session didn't have, nor how sessions differ: a longer A/A
/// session says more.
pub fn noise(base: &Run, head: &Run, policy: &Policy, options: &NoiseOptions) -> NoiseReport {
    let recording = Recording::new(base, head, &options.metric);
    let mut random = ChaCha12Rng::seed_from_u64(options.seed);
    let mut rows: Vec<NoiseRow> = spreads(base, head, policy, &options.metric);
    let mut report = NoiseReport {
        rows: Vec::new(),
        rounds: u32::try_from(recording.rounds()).unwrap_or(u32::MAX),
        red_suites: Share::default(),
        green_rows: Share::default(),
        inconclusive_rows: Share::default(),
        blocks: f64::NAN,
        power: Vec::new(),
        calibration: Calibration {
            source: options.source.clone(),
            spreads: rows.iter().map(|r| ((r.benchmark.clone(), options.metric.clone()), r.spread)).collect(),
        },
    };
    if recording.is_empty() {
        report.rows = rows;
        return report;
    }
    let max = policy.sequential.max_blocks.max(1);
    let mut blocks = 0_u64;
    for _ in 0..options.resamples {
        let (_, base, head) = recording.draw(max, None, &mut random);
        let measured = measure(&base, &head, policy);
        blocks += measured.blocks.iter().map(|n| u64::from(*n)).sum::<u64>();
        report.red_suites.add(measured.comparison.verdict == Verdict::Regressed);
        for (name, verdict) in verdicts(&measured.comparison) {
            report.green_rows.add(is_green(verdict));
            report.inconclusive_rows.add(verdict == Verdict::Inconclusive);
            if let Some(row) = rows.iter_mut().find(|row| row.benchmark == name) {
                row.green.add(is_green(verdict));
            }
        }
    }
    let judged = |sessions: u32| f64::from(sessions.max(1)) * recording.len() as f64;
    report.blocks = blocks as f64 / judged(options.resamples);
    for &slowdown in &options.slowdowns {
        let mut whole = PowerPoint { slowdown, seen: Share::default(), blocks: 0.0 };
        let mut by_row: BTreeMap<BenchmarkName, Share> = BTreeMap::new();
        for session in 0..options.resamples {
            let slow = session as usize % recording.len();
            let (_, base, head) = recording.draw(max, Some((slow, 1.0 + slowdown)), &mut random);
            let measured = measure(&base, &head, policy);
            whole.blocks += measured.blocks.iter().map(|n| f64::from(*n)).sum::<f64>();
            let name = &head.benchmarks[slow].name;
            let seen = verdicts(&measured.comparison).any(|(row, v)| row == *name && v == Verdict::Regressed);
            whole.seen.add(seen);
            by_row.entry(name.clone()).or_default().add(seen);
        }
        whole.blocks /= judged(options.resamples);
        report.power.push(whole);
        for row in &mut rows {
            let seen = by_row.get(&row.benchmark).copied().unwrap_or_default();
            row.power.push(PowerPoint { slowdown, seen, blocks: whole.blocks });
        }
    }
    report.rows = rows;
    report
}

fn verdicts(comparison: &Comparison) -> impl Iterator<Item = (BenchmarkName, Verdict)> {
    comparison.rows.iter().filter(|row| row.metric.is_some()).map(|row| (row.benchmark.clone(), row.verdict))
}

fn is_green(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Pass | Verdict::Improved)
}

/// The spreads that the session shows at each level.
fn spreads(base: &Run, head: &Run, policy: &Policy, metric: &str) -> Vec<NoiseRow> {
    let mut rows = Vec::new();
    for side in &head.benchmarks {
        let partner = base.benchmarks.iter().find(|b| b.name == side.name).and_then(|b| b.metric(metric));
        let (Some(base), Some(head)) = (partner, side.metric(metric)) else { continue };
        let (Ok(base), Ok(head)) = (series::read(base), series::read(head)) else { continue };
        if !base.has_ratio() || !head.has_ratio() {
            continue;
        }
        let costs: Vec<f64> = base.clean.iter().chain(&head.clean).copied().collect();
        let blocks = paired_blocks(&base, &head).unwrap_or_default();
        let differences: Vec<f64> = blocks.iter().filter_map(difference).collect();
        let spread = Spread {
            within_process: within(&base, &head),
            between_processes: describe::stddev(&costs),
            between_blocks: fit(&differences, ScalePrior::NONE).map(|fit| fit.scale),
            between_sessions: None,
        };
        let measured = blocks.len();
        let floor = shift(blocks).map_or(f64::NAN, |shift| smallest_floor(&shift, measured, policy));
        rows.push(NoiseRow {
            benchmark: side.name.clone(),
            spread,
            floor,
            green: Share::default(),
            power: Vec::new(),
        });
    }
    rows
}

fn within(base: &Readings, head: &Readings) -> Option<f64> {
    let both: Vec<f64> = [base.within_cv, head.within_cv].into_iter().flatten().collect();
    describe::mean(&both)
}

/// Head's typical cost less base's, in one block.
fn difference(block: &BlockCosts) -> Option<f64> {
    let typical = |head: bool| {
        let side = block.iter().filter(|process| process.head == head);
        describe::mean(&side.map(|process| process.clean).collect::<Vec<f64>>())
    };
    Some(typical(true)? - typical(false)?)
}

/// The distance beyond the floor that is seen with 90 % power when the last look decides one row, if an
/// interval narrows with the square root of the blocks.
fn smallest_floor(shift: &Inference, measured: usize, policy: &Policy) -> f64 {
    let blocks = f64::from(policy.sequential.max_blocks.max(2));
    let seen = shift.detectable(policy.alpha, crate::gate::decide::MDE_POWER);
    (seen * (measured as f64 / blocks).sqrt()).exp_m1()
}

#[cfg(test)]
mod tests {
    use super::Share;

    #[test]
    fn the_interval_of_a_share_is_that_of_clopper_and_pearson() {
        // scipy.stats.binomtest(hits, of).proportion_ci()
        for (hits, of, low, high) in [
            (0, 20, 0.0, 0.168_433_470_98),
            (20, 20, 0.831_566_529_02, 1.0),
            (74, 1000, 0.058_536_9, 0.092_034_2),
            (0, 0, 0.0, 1.0),
        ] {
            let (below, above) = Share { hits, of }.interval();
            assert!(
                (below - low).abs() < 1e-3 && (above - high).abs() < 1e-3,
                "{hits} of {of}: {below} {above}"
            );
        }
    }
}
