//! Finds which kernel is to blame by exchanging kernels: base with one kernel of head, and head with one of
//! base, each measured in paired blocks.
//!
//! This is evidence for a person who looks for a cause. Nothing here affects a verdict.

use std::collections::BTreeMap;

use benchgate_core::model::{Benchmark, Metric, MetricSeries, Run, Series};
use benchgate_stats::describe::{mean, variance};
use benchgate_stats::student_quantile;

use super::Interval;
use super::status::matched;

/// Probability that an interval misses the true value on one side.
const MISSED: f64 = 0.025;

/// Suffix of the name under which a kernel is exchanged in the opposite order, after the kernels that follow
/// it.
pub const REVERSED: &str = "-reversed";

/// The effect of an exchange, as a fraction of base's time: 0.5 if base takes 1.5 times as long with this
/// kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchanged {
    /// Name of the kernel, or the name under which all kernels were exchanged.
    pub name: String,
    /// The mean of the two effects below, so that an effect that two kernels only have together is divided
    /// between them.
    pub change: f64,
    /// Bounds of the change.
    pub interval: Interval,
    /// The effect of this kernel after the preceding ones were exchanged.
    pub in_order: f64,
    /// The effect of this kernel after the following ones were exchanged.
    pub reversed: f64,
    pub blocks: usize,
}

/// The difference of two times, in their unit. Other programs add to both times, which changes their ratio
/// but not their difference.
struct Difference {
    /// The mean time of base's processes.
    base: f64,
    mean: f64,
    /// The variance of the mean difference.
    variance: f64,
    blocks: usize,
}

impl Difference {
    fn new(base: Option<&Benchmark>, head: Option<&Benchmark>, time: &Metric) -> Option<Self> {
        let [base, head] = [base, head].map(|side| by_block(side?.metric(&time.name)?));
        let (base, head) = (base?, head?);
        let pairs = base.iter().filter_map(|(block, base)| Some((mean(base)?, mean(head.get(block)?)?)));
        let (base, differences): (Vec<f64>, Vec<f64>) = pairs.map(|(base, head)| (base, head - base)).unzip();
        let blocks = differences.len();
        Some(Self {
            base: mean(&base)?,
            mean: mean(&differences)?,
            variance: variance(&differences)? / blocks as f64,
            blocks,
        })
    }
}

/// Returns the times of the processes of each block, averaged over repetitions.
fn by_block(metric: &MetricSeries) -> Option<BTreeMap<u32, Vec<f64>>> {
    let Series::Processes(processes) = &metric.series else { return None };
    let mut blocks: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for process in processes {
        blocks.entry(process.slot?.block).or_default().push(mean(&process.samples)?);
    }
    Some(blocks)
}

/// The time of base with head's kernels: with all of them, and with each one.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    /// True for processor time, which other programs disturb less than the time of the call.
    pub by_processor: bool,
    pub whole: Exchanged,
    /// The kernels; the kernel that changed the time most is first.
    pub kernels: Vec<Exchanged>,
    /// Kernels that were not measured, each with the reason.
    pub failed: Vec<(String, String)>,
}

/// The result of checking that the kernels' changes add up to the change by all kernels together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sum {
    AddsUp,
    Differs,
    /// Some kernels were not measured, or the intervals are as wide as the change itself.
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
    /// Computes the exchange from this time in the runs of both sides, in which each benchmark is an
    /// exchange. `None` if exchanging all kernels was not measured.
    pub fn new(base: &Run, head: &Run, whole: &str, time: &Metric) -> Option<Self> {
        let mut differences: BTreeMap<&str, Result<Difference, &str>> = BTreeMap::new();
        for pair in matched(base, head) {
            let Some(benchmark) = pair.any() else { continue };
            // A command's benchmark has the command's name as a prefix.
            let name = benchmark.name.as_str();
            let name = name.split_once('/').map_or(name, |(command, _)| command);
            let outcome = [pair.head, pair.base].into_iter().flatten().find(|side| !side.outcome.is_ok());
            let why =
                outcome.and_then(|side| side.outcome.why()).unwrap_or("the exchanged call was not measured");
            differences.insert(name, Difference::new(pair.base, pair.head, time).ok_or(why));
        }
        let all = differences.remove(whole)?.ok()?;
        let unit = all.base;
        let exchanged = |name: &str, measured: &[&Difference]| {
            let count = measured.len() as f64;
            let mean = measured.iter().map(|it| it.mean).sum::<f64>() / count;
            let error = measured.iter().map(|it| it.variance).sum::<f64>().sqrt() / count;
            let df = measured.iter().map(|it| it.blocks as f64 - 1.0).sum();
            let half = student_quantile(MISSED, df) * error;
            let [low, high] = [mean - half, mean + half].map(|bound| bound / unit);
            Exchanged {
                name: name.to_owned(),
                change: mean / unit,
                interval: Interval { low, high, level: 1.0 - 2.0 * MISSED },
                in_order: measured.first().map_or(mean, |it| it.mean) / unit,
                reversed: measured.last().map_or(mean, |it| it.mean) / unit,
                blocks: measured.iter().map(|it| it.blocks).min().unwrap_or_default(),
            }
        };
        let mut kernels = Vec::new();
        let mut failed = Vec::new();
        for (&name, in_order) in differences.iter().filter(|(name, _)| !name.ends_with(REVERSED)) {
            let reversed = differences.get(format!("{name}{REVERSED}").as_str());
            match (in_order, reversed.unwrap_or(&Err("the exchanged call was not measured"))) {
                (Ok(in_order), Ok(reversed)) => kernels.push(exchanged(name, &[in_order, reversed])),
                (Err(why), _) | (_, Err(why)) => failed.push((name.to_owned(), (*why).to_owned())),
            }
        }
        let whole = exchanged(whole, &[&all]);
        kernels.sort_by(|a, b| b.change.abs().total_cmp(&a.change.abs()));
        Some(Self { by_processor: *time == Metric::CPU_TIME, whole, kernels, failed })
    }

    /// Returns whether exchanging all kernels is known to have changed the time; otherwise there is nothing
    /// to divide.
    pub fn has_changed(&self) -> bool {
        self.whole.interval.low > 0.0 || self.whole.interval.high < 0.0
    }

    /// Returns the share of a kernel in the change of the whole, with its bounds.
    pub fn share(&self, kernel: &Exchanged) -> [f64; 3] {
        let whole = self.whole.change;
        let [low, high] = [kernel.interval.low / whole, kernel.interval.high / whole];
        [kernel.change / whole, low.min(high), low.max(high)]
    }

    /// Returns the sum of the changes of all kernels.
    pub fn sum(&self) -> f64 {
        self.kernels.iter().map(|kernel| kernel.change).sum()
    }

    /// Returns the sums of the effects of all kernels, in each of the two orders.
    pub fn sums(&self) -> [f64; 2] {
        [|it: &Exchanged| it.in_order, |it: &Exchanged| it.reversed]
            .map(|effect| self.kernels.iter().map(effect).sum())
    }

    /// Returns how far the sum may differ from the change of the whole by chance: the exchanges are measured
    /// independently, so the squares of their uncertainties add up.
    pub fn allowance(&self) -> f64 {
        let exchanges = self.kernels.iter().chain([&self.whole]);
        let half_widths = exchanges.map(|it| (it.interval.high - it.interval.low) / 2.0);
        half_widths.map(|half| half * half).sum::<f64>().sqrt()
    }

    /// Returns whether the changes of the kernels add up to the change of the whole, within their intervals.
    /// Each order leads from base to head, so the sum also includes the effects that kernels only have
    /// together; it is wrong only if the machine changed while it measured.
    pub fn sum_is(&self) -> Sum {
        let allowance = self.allowance();
        // If the uncertainty is as large as the change of the whole, any kernels would add up.
        let is_known = self.failed.is_empty() && self.has_changed() && allowance < self.whole.change.abs();
        if !is_known {
            Sum::Unknown
        } else if (self.sum() - self.whole.change).abs() <= allowance {
            Sum::AddsUp
        } else {
            Sum::Differs
        }
    }

    /// Returns the kernels that explain 80 % of the change of the whole, largest first; if all kernels that
    /// are known to change the time in its direction explain less, returns all of those.
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
    use benchgate_core::model::{BlockSlot, Process};

    /// Returns both sides of an exchange with these times and noise of `spread`.
    fn exchanged(name: &str, [base, head]: [f64; 2], spread: f64) -> [Benchmark; 2] {
        let side = |is_head: bool| {
            let slots = (0..8_u32).flat_map(|block| [(block, 0_u8), (block, 1), (block, 2), (block, 3)]);
            let own = slots.filter(|(_, slot)| matches!(slot, 1 | 2) == is_head);
            let process = |(block, slot): (u32, u8)| {
                let at = f64::from(block * 4 + u32::from(slot));
                // The digits of a sine serve as noise.
                let noise = |repetition: u32| {
                    let seed = at * 12.989_8 + f64::from(repetition) * 78.233 + head + 10.0 * base;
                    ((seed.sin() * 43_758.545_3).fract() - 0.5) * spread
                };
                let time = 1e6 * if is_head { head } else { base };
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

    /// Returns kernels with the time that each adds in both orders, and the time with all of them.
    fn exchange(kernels: &[(&str, f64, f64)], all: f64, spread: f64) -> Exchange {
        let (mut base, mut head) = (Run::default(), Run::default());
        let mut push = |name: &str, times| {
            let [of_base, of_head] = exchanged(name, times, spread);
            base.benchmarks.push(of_base);
            head.benchmarks.push(of_head);
        };
        for (name, in_order, reversed) in kernels {
            push(name, [1.0, 1.0 + in_order]);
            push(&format!("{name}{REVERSED}"), [all - reversed, all]);
        }
        push("all", [1.0, all]);
        Exchange::new(&base, &head, "all", &Metric::LATENCY).unwrap()
    }

    #[test]
    fn kernels_that_add_up_are_named_by_their_share() {
        let found = exchange(&[("a", 0.15, 0.15), ("b", 0.0, 0.0), ("c", 0.35, 0.35)], 1.5, 0.004);
        assert_eq!(found.sum_is(), Sum::AddsUp, "{found:#?}");
        let names: Vec<&str> = found.to_blame().iter().map(|kernel| kernel.name.as_str()).collect();
        assert_eq!(names, ["c", "a"], "{found:#?}");
        let [share, low, high] = found.share(&found.kernels[0]);
        assert!((share - 0.7).abs() < 0.02 && low < share && share < high, "{share} {low} {high}");
    }

    #[test]
    fn what_two_kernels_add_only_together_is_divided_between_them() {
        let found = exchange(&[("a", 0.1, 0.3), ("b", 0.4, 0.2)], 1.5, 0.004);
        assert_eq!(found.sum_is(), Sum::AddsUp, "{found:#?}");
        let [b, a] = [&found.kernels[0], &found.kernels[1]].map(|kernel| found.share(kernel)[0]);
        assert!((b - 0.6).abs() < 0.02 && (a - 0.4).abs() < 0.02, "{a} {b}");
    }

    /// Other programs add half of base's time to every time of `a`, and nothing to the times of other
    /// kernels.
    #[test]
    fn other_programs_do_not_change_what_a_kernel_adds() {
        let mut sides = [Run::default(), Run::default()];
        for (name, times) in [
            ("a", [1.5, 1.9]),
            ("a-reversed", [2.1, 2.5]),
            ("b", [1.0, 1.6]),
            ("b-reversed", [1.4, 2.0]),
            ("all", [1.0, 2.0]),
        ] {
            let both = exchanged(name, times, 0.004);
            sides.iter_mut().zip(both).for_each(|(side, benchmark)| side.benchmarks.push(benchmark));
        }
        let [base, head] = sides;
        let found = Exchange::new(&base, &head, "all", &Metric::LATENCY).unwrap();
        assert_eq!(found.sum_is(), Sum::AddsUp, "{found:#?}");
        let shares: Vec<f64> = found.kernels.iter().map(|kernel| found.share(kernel)[0]).collect();
        assert!((shares[0] - 0.6).abs() < 0.02 && (shares[1] - 0.4).abs() < 0.02, "{shares:?}");
    }

    #[test]
    fn kernels_measured_on_a_machine_that_changed_do_not_add_up() {
        let found = exchange(&[("a", 0.4, 0.5), ("b", 0.5, 0.4), ("c", 0.4, 0.5)], 2.0, 0.004);
        assert_eq!(found.sum_is(), Sum::Differs, "{found:#?}");
    }

    #[test]
    fn intervals_as_wide_as_the_change_and_missing_kernels_leave_the_sum_unknown() {
        assert_eq!(exchange(&[("a", 0.1, 0.1)], 1.1, 0.4).sum_is(), Sum::Unknown);
        assert_eq!(exchange(&[("a", 0.0, 0.0)], 1.0, 0.004).sum_is(), Sum::Unknown);
        let mut lacking = exchange(&[("a", 0.5, 0.5)], 1.5, 0.004);
        assert_eq!(lacking.sum_is(), Sum::AddsUp);
        lacking.failed.push(("b".to_owned(), "it crashed".to_owned()));
        assert_eq!(lacking.sum_is(), Sum::Unknown);
    }

    #[test]
    fn a_kernel_that_became_quicker_is_not_to_blame_for_a_slowdown() {
        let found = exchange(&[("a", -0.2, -0.2), ("b", 0.6, 0.6)], 1.4, 0.004);
        let names: Vec<&str> = found.to_blame().iter().map(|kernel| kernel.name.as_str()).collect();
        assert_eq!(names, ["b"]);
    }
}
