//! Which kernel is to blame, proved by exchange: base with one kernel of head at a time, each in paired blocks.
//!
//! Evidence for a person who looks for a cause. Nothing here decides anything.

use benchgate_core::model::{Benchmark, Metric, Run};

use super::Interval;
use super::estimate::shift;
use super::evidence::blocks;
use super::matching::matched;
use super::series;

/// Chance that an interval misses on one side.
const MISSED: f64 = 0.025;

/// The effect of an exchange on base's time.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchanged {
    /// The kernel, or the name under which all of them were exchanged.
    pub name: String,
    /// As a fraction of base's time: 0.5 if base takes 1.5 times as long with this kernel.
    pub change: f64,
    /// Bounds of the change.
    pub interval: Interval,
    pub blocks: usize,
}

/// The time of base with head's kernels: all of them, and each alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    pub whole: Exchanged,
    /// The one that changed the time most first.
    pub kernels: Vec<Exchanged>,
    /// Kernels that were not measured, each with the reason.
    pub failed: Vec<(String, String)>,
}

/// Whether kernels that were exchanged alone add up to all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sum {
    AddsUp,
    Differs,
    /// Some were not measured, or the intervals are as wide as what is divided.
    Unknown,
}

impl Sum {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AddsUp => "adds-up",
            Self::Differs => "differs",
            Self::Unknown => "unknown",
        }
    }
}

impl Exchange {
    /// From the runs of both sides, whose benchmarks are the exchanges. `None` if exchanging all kernels was not
    /// measured.
    pub fn new(base: &Run, head: &Run, whole: &str) -> Option<Self> {
        let mut kernels = Vec::new();
        let mut failed = Vec::new();
        let mut all = None;
        for pair in matched(base, head) {
            let Some(benchmark) = pair.any() else { continue };
            // A command's benchmark has the command's name in front.
            let name = benchmark.name.as_str();
            let name = name.split_once('/').map_or(name, |(command, _)| command);
            let metric = |side: Option<&Benchmark>| {
                let metric = side?.metric(&Metric::LATENCY.name)?;
                series::read(metric).ok()
            };
            let evidence = metric(pair.base).zip(metric(pair.head));
            let estimate = evidence.and_then(|(base, head)| {
                let blocks = blocks(&base, &head)?;
                Some((blocks.len(), shift(blocks)?))
            });
            let Some((blocks, shift)) = estimate else {
                let outcome = [pair.head, pair.base].into_iter().flatten().find(|side| !side.outcome.is_ok());
                let why = outcome.and_then(|side| side.outcome.why()).unwrap_or("it was not measured");
                failed.push((name.to_owned(), why.to_owned()));
                continue;
            };
            let exchanged = Exchanged {
                name: name.to_owned(),
                change: shift.center().exp_m1(),
                interval: Interval {
                    low: shift.lower(MISSED).exp_m1(),
                    high: shift.upper(MISSED).exp_m1(),
                    level: 1.0 - 2.0 * MISSED,
                },
                blocks,
            };
            if name == whole { all = Some(exchanged) } else { kernels.push(exchanged) }
        }
        kernels.sort_by(|a, b| b.change.abs().total_cmp(&a.change.abs()));
        Some(Self { whole: all?, kernels, failed })
    }

    /// Whether exchanging all kernels is known to have changed the time: otherwise there is nothing to divide.
    pub fn has_changed(&self) -> bool {
        self.whole.interval.low > 0.0 || self.whole.interval.high < 0.0
    }

    /// The share of a kernel in the change of the whole, with its bounds.
    pub fn share(&self, kernel: &Exchanged) -> [f64; 3] {
        let whole = self.whole.change;
        let [low, high] = [kernel.interval.low / whole, kernel.interval.high / whole];
        [kernel.change / whole, low.min(high), low.max(high)]
    }

    /// The changes of all kernels together.
    pub fn sum(&self) -> f64 {
        self.kernels.iter().map(|kernel| kernel.change).sum()
    }

    /// How far the sum may lie from the change of the whole by chance: the exchanges are measured independently, so the
    /// squares of their uncertainties add up.
    pub fn allowance(&self) -> f64 {
        let exchanges = self.kernels.iter().chain([&self.whole]);
        let half_widths = exchanges.map(|it| (it.interval.high - it.interval.low) / 2.0);
        half_widths.map(|half| half * half).sum::<f64>().sqrt()
    }

    /// Whether the changes of the kernels add up to that of the whole, within their intervals. They need not: kernels
    /// leave each other data in caches.
    pub fn sum_is(&self) -> Sum {
        let allowance = self.allowance();
        // If the uncertainty is as large as the change of the whole, any kernels add up.
        let is_known = self.failed.is_empty() && self.has_changed() && allowance < self.whole.change.abs();
        if !is_known {
            Sum::Unknown
        } else if (self.sum() - self.whole.change).abs() <= allowance {
            Sum::AddsUp
        } else {
            Sum::Differs
        }
    }

    /// The kernels that explain 80 % of the change of the whole, the largest first; all that are known to change the
    /// time in its direction if these explain less.
    pub fn to_blame(&self) -> Vec<&Exchanged> {
        const ENOUGH: f64 = 0.8;
        let mut explained = 0.0;
        let mut blamed = Vec::new();
        for kernel in &self.kernels {
            let [share, low, _] = self.share(kernel);
            if explained >= ENOUGH || low <= 0.0 {
                continue;
            }
            explained += share;
            blamed.push(kernel);
        }
        blamed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use benchgate_core::model::{BlockSlot, MetricSeries, Process, Series};

    /// Both sides of an exchange whose head takes `factor` times as long, with noise of `spread`.
    fn exchanged(name: &str, factor: f64, spread: f64) -> [Benchmark; 2] {
        let side = |is_head: bool| {
            let slots = (0..8_u32).flat_map(|block| [(block, 0_u8), (block, 1), (block, 2), (block, 3)]);
            let own = slots.filter(|(_, slot)| matches!(slot, 1 | 2) == is_head);
            let process = |(block, slot): (u32, u8)| {
                let at = f64::from(block * 4 + u32::from(slot));
                // Digits of a sine are as good as noise.
                let noise = |repetition: u32| {
                    let seed = at * 12.989_8 + f64::from(repetition) * 78.233 + factor;
                    ((seed.sin() * 43_758.545_3).fract() - 0.5) * spread
                };
                let time = if is_head { 1e6 * factor } else { 1e6 };
                Process {
                    samples: (0..5).map(|repetition| time * (1.0 + noise(repetition))).collect(),
                    slot: Some(BlockSlot { block, slot }),
                    ..Process::default()
                }
            };
            let series = Series::Processes(own.map(process).collect());
            let name = format!("{name}/BM_replay");
            Benchmark {
                metrics: vec![MetricSeries { metric: Metric::LATENCY, series }],
                ..Benchmark::new(&name)
            }
        };
        [side(false), side(true)]
    }

    fn exchange(kernels: &[(&str, f64)], spread: f64) -> Exchange {
        let (mut base, mut head) = (Run::default(), Run::default());
        for (name, factor) in kernels {
            let [of_base, of_head] = exchanged(name, *factor, spread);
            base.benchmarks.push(of_base);
            head.benchmarks.push(of_head);
        }
        Exchange::new(&base, &head, "all").unwrap()
    }

    #[test]
    fn kernels_that_add_up_are_named_by_their_share() {
        let found = exchange(&[("a", 1.15), ("b", 1.0), ("c", 1.35), ("all", 1.5)], 0.004);
        assert_eq!(found.sum_is(), Sum::AddsUp, "{found:#?}");
        let names: Vec<&str> = found.to_blame().iter().map(|kernel| kernel.name.as_str()).collect();
        assert_eq!(names, ["c", "a"], "{found:#?}");
        let [share, low, high] = found.share(&found.kernels[0]);
        assert!((share - 0.7).abs() < 0.02 && low < share && share < high, "{share} {low} {high}");
    }

    #[test]
    fn kernels_that_slow_each_other_down_do_not_add_up() {
        let found = exchange(&[("a", 1.1), ("b", 1.1), ("all", 1.5)], 0.004);
        assert_eq!(found.sum_is(), Sum::Differs, "{found:#?}");
    }

    #[test]
    fn intervals_as_wide_as_the_change_and_missing_kernels_leave_the_sum_unknown() {
        assert_eq!(exchange(&[("a", 1.1), ("all", 1.1)], 0.4).sum_is(), Sum::Unknown);
        assert_eq!(exchange(&[("a", 1.0), ("all", 1.0)], 0.004).sum_is(), Sum::Unknown);
        let mut lacking = exchange(&[("a", 1.5), ("all", 1.5)], 0.004);
        assert_eq!(lacking.sum_is(), Sum::AddsUp);
        lacking.failed.push(("b".to_owned(), "it crashed".to_owned()));
        assert_eq!(lacking.sum_is(), Sum::Unknown);
    }

    #[test]
    fn a_kernel_that_became_quicker_is_not_to_blame_for_a_slowdown() {
        let found = exchange(&[("a", 0.8), ("b", 1.6), ("all", 1.4)], 0.004);
        let names: Vec<&str> = found.to_blame().iter().map(|kernel| kernel.name.as_str()).collect();
        assert_eq!(names, ["b"]);
    }
}
