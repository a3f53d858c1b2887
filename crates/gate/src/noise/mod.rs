//! A/A calibration: spread, false positives and power from runs of unchanged code on a machine.

mod resample;

use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;

use benchgate_core::model::{BenchmarkName, Calibration, Metric, Run, Spread, Verdict};
use benchgate_stats::robust::{ScalePrior, fit};
use benchgate_stats::scores::BlockCosts;
use benchgate_stats::{Inference, binomial_tail, describe};

use crate::decide::log_floor;
use crate::estimate::shift;
use crate::evidence::blocks as paired_blocks;
use crate::rules::Rules;
use crate::series::{self, Readings};
use crate::{OtherPrograms, Policy, threads};

pub use resample::{MeasuredSession, Recording, measure};

#[derive(Debug, Clone, PartialEq)]
pub struct NoiseOptions {
    pub seed: u64,
    /// Number of resampled sessions without a change, and for each slowdown.
    pub resamples: u32,
    /// True to stop earlier, as soon as every figure is precise enough.
    pub until_precise: bool,
    /// Number of sessions that are judged at once; it does not affect the figures.
    pub threads: usize,
    /// Slowdowns to inject into one benchmark at a time, as fractions: 0.05 is 5 %.
    pub slowdowns: Vec<f64>,
    pub metric: String,
    /// Text for the report that states who measured the session and when.
    pub source: String,
}

impl Default for NoiseOptions {
    fn default() -> Self {
        Self {
            seed: 1,
            resamples: 1000,
            until_precise: false,
            threads: threads::THREADS,
            slowdowns: vec![0.03, 0.05, 0.10],
            metric: Metric::LATENCY.name.into_owned(),
            source: String::new(),
        }
    }
}

/// Chance that an interval misses the true value on one side.
const MISSED: f64 = 0.025;

/// Number of hits among a number of trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Share {
    pub hits: u64,
    pub of: u64,
}

impl Share {
    /// Returns the share itself; NaN without trials.
    pub fn value(&self) -> f64 {
        self.hits as f64 / self.of as f64
    }

    /// Returns the range of shares that are compatible with these trials; each bound is exceeded in one of
    /// forty cases (Clopper and Pearson 1934, Biometrika 26:404–413). Without trials, every share is
    /// possible.
    pub fn interval(&self) -> (f64, f64) {
        // The tail probability grows with the share, so sixty bisection steps find where it crosses the
        // level.
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

/// The rate at which a slowdown of one benchmark was detected.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerPoint {
    pub slowdown: f64,
    pub seen: Share,
    /// Blocks per row, averaged over all rows of the suite.
    pub blocks: f64,
}

/// The machine's noise for one benchmark.
#[derive(Debug, Clone, PartialEq)]
pub struct NoiseRow {
    pub benchmark: BenchmarkName,
    pub spread: Spread,
    /// The smallest slowdown that turns this row red with 90 % power at the last look, as a fraction; it includes
    /// the floor of the row.
    pub least: f64,
    /// Number of unchanged sessions in which this row passed.
    pub green: Share,
    pub power: Vec<PowerPoint>,
}

/// The result of a calibration, with the measured error rates.
#[derive(Debug, Clone, PartialEq)]
pub struct NoiseReport {
    pub rows: Vec<NoiseRow>,
    /// Number of recorded rounds of blocks. Every session is drawn from them, so more resamples don't add
    /// information.
    pub rounds: u32,
    /// Share of the unchanged sessions that failed.
    pub red_suites: Share,
    pub green_rows: Share,
    pub inconclusive_rows: Share,
    /// Blocks per row in unchanged sessions.
    pub blocks: f64,
    /// Power by slowdown, over all benchmarks.
    pub power: Vec<PowerPoint>,
    /// The other programs that disturbed the session, if they matter.
    pub others: Option<OtherPrograms>,
    pub calibration: Calibration,
}

impl NoiseReport {
    /// Returns the calibration for later runs on this machine. `None` if unchanged code certainly fails more
    /// often than `alpha` promises: then the blocks violate the assumptions of the method, and their spreads
    /// would make later verdicts too certain.
    pub fn calibration(&self, alpha: f64) -> Option<&Calibration> {
        (self.red_suites.interval().0 <= alpha).then_some(&self.calibration)
    }

    /// Returns the session from which the calibration was made.
    pub fn source(&self) -> &str {
        &self.calibration.source
    }
}

/// Calibrates from an A/A session, in which `base` and `head` ran the same program.
///
/// Resampling can't show disturbances that the session didn't have, nor differences between sessions; a
/// longer A/A session shows more.
pub fn noise(base: &Run, head: &Run, policy: &Policy, options: &NoiseOptions) -> NoiseReport {
    let mut calibrating = Calibrating::new(base, head, policy, options);
    while !calibrating.is_done() {
        calibrating.judge_more(|_| false);
    }
    calibrating.into_report()
}

/// Number of sessions that are drawn and judged at once, for each figure that is not precise yet.
const BATCH: u32 = 16;
/// Widths of the intervals at which the figures are precise enough for resampling to stop: for the share of
/// unchanged suites that fail, and for a power.
const RED_WITHIN: f64 = 0.02;
const POWER_WITHIN: f64 = 0.15;

/// A calibration whose figures become more precise with every batch of sessions.
pub struct Calibrating<'a> {
    recording: Recording,
    policy: &'a Policy,
    options: &'a NoiseOptions,
    report: NoiseReport,
    /// Numbers of sessions judged without a change, and with each slowdown.
    judged: Vec<u32>,
}

/// The verdicts of one resampled session.
struct JudgedSession {
    slow: usize,
    verdict: Verdict,
    /// Verdict of each benchmark that was resampled.
    rows: Vec<Option<Verdict>>,
    blocks: f64,
}

impl<'a> Calibrating<'a> {
    /// Creates a calibration; its spreads are available immediately.
    pub fn new(base: &Run, head: &Run, policy: &'a Policy, options: &'a NoiseOptions) -> Self {
        let recording = Recording::new(base, head, &options.metric);
        let rows = spreads(base, head, policy, options);
        let calibration = Calibration {
            source: options.source.clone(),
            spreads: rows
                .iter()
                .map(|row| ((row.benchmark.clone(), options.metric.clone()), row.spread))
                .collect(),
        };
        let report = NoiseReport {
            rows,
            rounds: u32::try_from(recording.rounds()).unwrap_or(u32::MAX),
            red_suites: Share::default(),
            green_rows: Share::default(),
            inconclusive_rows: Share::default(),
            blocks: if recording.is_empty() { f64::NAN } else { 0.0 },
            power: if recording.is_empty() { Vec::new() } else { points(options) },
            others: OtherPrograms::of_runs([base, head]),
            calibration,
        };
        Self { recording, policy, options, report, judged: vec![0; 1 + options.slowdowns.len()] }
    }

    /// Returns the benchmarks and their spreads.
    pub fn rows(&self) -> &[NoiseRow] {
        &self.report.rows
    }

    pub fn is_done(&self) -> bool {
        self.recording.is_empty() || (0..self.judged.len()).all(|figure| self.is_settled(figure))
    }

    /// Returns the number of sessions judged so far, and the most that will be judged.
    pub fn sessions(&self) -> (u64, u64) {
        let most = u64::from(self.options.resamples) * self.judged.len() as u64;
        (self.judged.iter().copied().map(u64::from).sum(), most)
    }

    /// Returns a lower bound for the share of the work that is done.
    pub fn progress(&self) -> f64 {
        let of = |(figure, judged): (usize, &u32)| {
            let most = f64::from(self.options.resamples.max(1));
            if self.is_settled(figure) { 1.0 } else { f64::from(*judged) / most }
        };
        self.judged.iter().enumerate().map(of).sum::<f64>() / self.judged.len() as f64
    }

    /// Returns whether a figure needs no more sessions. The first figure belongs to unchanged sessions, each
    /// of the others to one slowdown.
    fn is_settled(&self, figure: usize) -> bool {
        let judged = self.judged[figure];
        if judged >= self.options.resamples || !self.options.until_precise || judged == 0 {
            return judged >= self.options.resamples;
        }
        let wide = |share: Share| share.interval().1 - share.interval().0;
        match figure {
            0 => {
                let red = self.report.red_suites;
                wide(red) <= RED_WITHIN || red.interval().0 > self.policy.alpha
            }
            slowdown => wide(self.report.power[slowdown - 1].seen) <= POWER_WITHIN,
        }
    }

    /// Judges another batch of sessions, or as many as time allows: at least one for each figure. `is_late` is
    /// called after every few sessions, and ends the batch if it returns true.
    pub fn judge_more(&mut self, mut is_late: impl FnMut(&Self) -> bool) {
        let open = (0..self.judged.len()).filter(|&figure| !self.is_settled(figure));
        // The number of the next session for each figure.
        let open: Vec<(usize, u32)> = open.map(|figure| (figure, self.judged[figure])).collect();
        let of_all = |more: u32| open.iter().map(move |&(figure, first)| (figure, first + more));
        let batch: Vec<(usize, u32)> = (0..BATCH).flat_map(of_all).collect();
        let at_once = self.options.threads.max(open.len()).max(1);
        for part in batch.chunks(at_once) {
            let wanted: Vec<(usize, u32)> =
                part.iter().copied().filter(|(_, number)| *number < self.options.resamples).collect();
            let sessions = threads::each_on(self.options.threads, &wanted, 2, |&(figure, number)| {
                self.judged_session(figure.checked_sub(1).map(|at| self.options.slowdowns[at]), number)
            });
            for ((figure, _), session) in wanted.into_iter().zip(sessions) {
                self.count(figure, &session);
            }
            if is_late(self) {
                return;
            }
        }
    }

    /// Draws and judges a session. Sessions with the same number consist of the same blocks whatever the
    /// slowdown, so that they differ only in the slowdown.
    fn judged_session(&self, slowdown: Option<f64>, number: u32) -> JudgedSession {
        let mut random = ChaCha12Rng::seed_from_u64(self.options.seed);
        random.set_stream(u64::from(number));
        let slow = number as usize % self.recording.len();
        let max = self.policy.sequential.max_blocks.max(1);
        let factor = slowdown.map(|slowdown| (slow, 1.0 + slowdown));
        let (_, base, head) = self.recording.draw(max, factor, true, &mut random);
        let MeasuredSession { comparison, blocks } = measure(&base, &head, self.policy);
        let verdict_of = |name: &BenchmarkName| {
            comparison
                .rows
                .iter()
                .find(|row| row.metric.is_some() && row.benchmark == *name)
                .map(|row| row.verdict)
        };
        JudgedSession {
            slow,
            verdict: comparison.verdict,
            rows: head.benchmarks.iter().map(|benchmark| verdict_of(&benchmark.name)).collect(),
            blocks: blocks.iter().map(|n| f64::from(*n)).sum::<f64>() / self.recording.len() as f64,
        }
    }

    fn count(&mut self, figure: usize, session: &JudgedSession) {
        let report = &mut self.report;
        self.judged[figure] += 1;
        let more = 1.0 / f64::from(self.judged[figure]);
        let names: Vec<&str> = self.recording.names().collect();
        let mean_with = |mean: f64| mean + (session.blocks - mean) * more;
        if figure == 0 {
            report.red_suites.add(session.verdict == Verdict::Regressed);
            report.blocks = mean_with(report.blocks);
            for (name, verdict) in names.iter().zip(&session.rows) {
                let Some(verdict) = verdict else { continue };
                report.green_rows.add(is_green(*verdict));
                report.inconclusive_rows.add(*verdict == Verdict::Inconclusive);
                if let Some(row) = report.rows.iter_mut().find(|row| row.benchmark.as_str() == *name) {
                    row.green.add(is_green(*verdict));
                }
            }
            return;
        }
        let seen = session.rows[session.slow] == Some(Verdict::Regressed);
        let whole = &mut report.power[figure - 1];
        whole.seen.add(seen);
        whole.blocks = mean_with(whole.blocks);
        let slow = report.rows.iter_mut().find(|row| row.benchmark.as_str() == names[session.slow]);
        if let Some(row) = slow {
            row.power[figure - 1].seen.add(seen);
        }
    }

    pub fn into_report(self) -> NoiseReport {
        let mut report = self.report;
        if self.judged[0] == 0 {
            report.blocks = f64::NAN;
        }
        let blocks: Vec<f64> = report.power.iter().map(|point| point.blocks).collect();
        rising(&mut report.power);
        for row in &mut report.rows {
            row.power.iter_mut().zip(&blocks).for_each(|(point, blocks)| point.blocks = *blocks);
            rising(&mut row.power);
        }
        report
    }
}

fn points(options: &NoiseOptions) -> Vec<PowerPoint> {
    let point = |&slowdown: &f64| PowerPoint { slowdown, seen: Share::default(), blocks: 0.0 };
    options.slowdowns.iter().map(point).collect()
}

/// Makes the power non-decreasing. A larger slowdown is detected at least as often, so figures that
/// contradict this do so by chance, and are pooled (Ayer et al. 1955, Ann. Math. Stat. 26:641–647).
fn rising(points: &mut [PowerPoint]) {
    let mut order: Vec<usize> = (0..points.len()).filter(|&at| points[at].seen.of > 0).collect();
    order.sort_by(|&a, &b| points[a].slowdown.total_cmp(&points[b].slowdown));
    let mut pools: Vec<(Share, Vec<usize>)> = Vec::new();
    for at in order {
        pools.push((points[at].seen, vec![at]));
        while let [.., (below, _), (above, _)] = pools.as_slice()
            && below.value() > above.value()
            && let Some((share, members)) = pools.pop()
            && let Some((pool, known)) = pools.last_mut()
        {
            (pool.hits, pool.of) = (pool.hits + share.hits, pool.of + share.of);
            known.extend(members);
        }
    }
    for (share, members) in pools {
        members.into_iter().for_each(|at| points[at].seen = share);
    }
}

fn is_green(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Pass | Verdict::Improved)
}

/// Returns the spreads that the session shows at each level.
fn spreads(base: &Run, head: &Run, policy: &Policy, options: &NoiseOptions) -> Vec<NoiseRow> {
    let metric = &options.metric;
    let rules = Rules::new(policy, "").of_runs(base, head);
    let mut rows = Vec::new();
    for side in &head.benchmarks {
        let partner = base.benchmarks.iter().find(|b| b.name == side.name).and_then(|b| b.metric(metric));
        let (Some(base), Some(head)) = (partner, side.metric(metric)) else { continue };
        let rule = rules.metric(&side.name, &head.metric);
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
        let floor = log_floor(&rule, &base.stats, &head.stats);
        let least =
            shift(blocks).map_or(f64::NAN, |shift| (floor + beyond_floor(&shift, measured, policy)).exp_m1());
        rows.push(NoiseRow {
            benchmark: side.name.clone(),
            spread,
            least,
            green: Share::default(),
            power: points(options),
        });
    }
    rows
}

fn within(base: &Readings, head: &Readings) -> Option<f64> {
    let both: Vec<f64> = [base.within_cv, head.within_cv].into_iter().flatten().collect();
    describe::mean(&both)
}

/// Returns head's typical cost minus base's, in one block.
fn difference(block: &BlockCosts) -> Option<f64> {
    let typical = |head: bool| {
        let side = block.iter().filter(|process| process.head == head);
        describe::mean(&side.map(|process| process.clean).collect::<Vec<f64>>())
    };
    Some(typical(true)? - typical(false)?)
}

/// Returns the distance beyond the floor, on the log scale, that is detected with 90 % power when the last look
/// decides one row, assuming that intervals narrow with the square root of the number of blocks.
fn beyond_floor(shift: &Inference, measured: usize, policy: &Policy) -> f64 {
    let blocks = f64::from(policy.sequential.max_blocks.max(2));
    let seen = shift.detectable(policy.alpha, crate::decide::MDE_POWER);
    seen * (measured as f64 / blocks).sqrt()
}

#[cfg(test)]
mod tests {
    use super::{PowerPoint, Share, rising};

    #[test]
    fn a_power_never_falls_with_the_size_of_the_change() {
        let of = |hits: [u64; 4]| -> Vec<f64> {
            let point = |(at, hits)| PowerPoint {
                slowdown: f64::from(at),
                seen: Share { hits, of: 100 },
                blocks: 0.0,
            };
            let mut points: Vec<PowerPoint> = (1..).zip(hits).map(point).collect();
            rising(&mut points);
            points.iter().map(|point| point.seen.value()).collect()
        };
        assert_eq!(of([10, 20, 90, 100]), [0.1, 0.2, 0.9, 1.0]);
        assert_eq!(of([10, 30, 20, 100]), [0.1, 0.25, 0.25, 1.0]);
        assert_eq!(of([60, 50, 40, 30]), [0.45; 4]);
    }

    #[test]
    fn the_interval_of_a_share_is_that_of_clopper_and_pearson() {
        // Computed by `scipy.stats.binomtest(hits, of).proportion_ci()`.
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
