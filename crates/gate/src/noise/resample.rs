//! Simulated sessions: a recorded A/A session is resampled, and measured as the gate would.
//!
//! Blocks are drawn with replacement, in the same rounds for all benchmarks, because a disturbance of the
//! host affects all of them. The side labels of each block are swapped at random, which makes head unchanged
//! by construction. A known slowdown is added by scaling head's samples.

use std::collections::BTreeMap;

use rand::RngExt;

use benchgate_core::model::{Benchmark, BlockSlot, Metric, MetricSeries, Process, Run, Series};

use crate::sequential::open_in;
use crate::{CompareOptions, Comparison, Policy, compare, looks};

/// One recorded block of one benchmark, by side.
type RecordedBlock = (Vec<Process>, Vec<Process>);

/// A recorded session whose sides ran the same program.
#[derive(Debug, Clone)]
pub struct Recording {
    rounds: Vec<u32>,
    benchmarks: Vec<RecordedBenchmark>,
}

#[derive(Debug, Clone)]
struct RecordedBenchmark {
    template: Benchmark,
    metric: MetricSeries,
    blocks: BTreeMap<u32, RecordedBlock>,
}

impl Recording {
    /// Takes the noisy metric `metric` of every benchmark that both runs measured in blocks.
    pub fn new(base: &Run, head: &Run, metric: &str) -> Self {
        let mut benchmarks = Vec::new();
        for side in &head.benchmarks {
            let partner = base.benchmarks.iter().find(|b| b.name == side.name).and_then(|b| b.metric(metric));
            let (Some(base), Some(head)) = (partner, side.metric(metric)) else { continue };
            let mut blocks: BTreeMap<u32, RecordedBlock> = BTreeMap::new();
            for (block, process) in slotted(base) {
                blocks.entry(block).or_default().0.push(process);
            }
            for (block, process) in slotted(head) {
                blocks.entry(block).or_default().1.push(process);
            }
            blocks.retain(|_, (base, head)| !base.is_empty() && !head.is_empty());
            if !blocks.is_empty() {
                // Findings about the recorded session don't apply to sessions that are made from its blocks.
                let template =
                    Benchmark { metrics: Vec::new(), telemetry: Vec::new(), profile: None, ..side.clone() };
                benchmarks.push(RecordedBenchmark { template, metric: head.clone(), blocks });
            }
        }
        let mut rounds: Vec<u32> = benchmarks.iter().flat_map(|b| b.blocks.keys().copied()).collect();
        rounds.sort_unstable();
        rounds.dedup();
        Self { rounds, benchmarks }
    }

    /// Returns the number of benchmarks that can be resampled.
    pub fn len(&self) -> usize {
        self.benchmarks.len()
    }

    /// Returns the number of rounds to draw from.
    pub fn rounds(&self) -> usize {
        self.rounds.len()
    }

    /// Returns the benchmarks' names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.benchmarks.iter().map(|benchmark| benchmark.template.name.as_str())
    }

    pub fn is_empty(&self) -> bool {
        self.benchmarks.is_empty()
    }

    /// Draws a session of `blocks` blocks from the recorded rounds. `slowed` is the index of one benchmark
    /// and the factor by which its head samples are multiplied. Also returns the indices of the rounds that
    /// were drawn, to cluster by them. `swaps` is false for a recording whose sides differ: every block then keeps
    /// its labels.
    pub fn draw(
        &self,
        blocks: u32,
        slowed: Option<(usize, f64)>,
        swaps: bool,
        random: &mut impl RngExt,
    ) -> (Vec<usize>, Run, Run) {
        let drawn: Vec<usize> =
            (0..blocks).map(|_| random.random_range(0..self.rounds.len().max(1))).collect();
        let (mut base, mut head) = (paired_run(), paired_run());
        for (index, benchmark) in self.benchmarks.iter().enumerate() {
            let factor = slowed.filter(|(slow, _)| *slow == index).map_or(1.0, |(_, factor)| factor);
            let (mut a, mut b) = (Vec::new(), Vec::new());
            for (number, &round) in drawn.iter().enumerate() {
                let swap = [0, 1].map(|_| swaps && random.random::<bool>());
                // If a benchmark has no block in this round, the block of its next round is used.
                let wanted = self.rounds[round];
                let found =
                    benchmark.blocks.range(wanted..).next().or_else(|| benchmark.blocks.iter().next());
                let Some((_, (first, second))) = found else { continue };
                let swapped = |process: &Process| {
                    process.slot.is_some_and(|slot| swap[usize::from(slot.slot / 2).min(1)])
                };
                for (is_head, process) in
                    first.iter().map(|p| (false, p)).chain(second.iter().map(|p| (true, p)))
                {
                    if is_head != swapped(process) {
                        b.push(placed(process, number as u32, factor));
                    } else {
                        a.push(placed(process, number as u32, 1.0));
                    }
                }
            }
            base.benchmarks.push(benchmark.with(a));
            head.benchmarks.push(benchmark.with(b));
        }
        (drawn, base, head)
    }
}

impl RecordedBenchmark {
    fn with(&self, processes: Vec<Process>) -> Benchmark {
        let metric =
            MetricSeries { metric: self.metric.metric.clone(), series: Series::Processes(processes) };
        Benchmark { metrics: vec![metric], artifact: None, ..self.template.clone() }
    }
}

fn paired_run() -> Run {
    Run { session: Some("resampled".to_owned()), ..Run::default() }
}

fn slotted(series: &MetricSeries) -> impl Iterator<Item = (u32, Process)> {
    let processes = match &series.series {
        Series::Processes(processes) => processes.as_slice(),
        Series::Summaries(_) | Series::Exact(_) => &[],
    };
    processes.iter().filter_map(|process| Some((process.slot?.block, process.clone())))
}

fn placed(process: &Process, block: u32, factor: f64) -> Process {
    Process {
        samples: process.samples.iter().map(|sample| sample * factor).collect(),
        slot: process.slot.map(|slot| BlockSlot { block, ..slot }),
        ..Process::default()
    }
}

/// The result of a sequentially measured session.
#[derive(Debug, Clone)]
pub struct MeasuredSession {
    pub comparison: Comparison,
    /// Number of blocks for each of head's benchmarks.
    pub blocks: Vec<u32>,
}

/// Measures a session whose blocks are all known, but uses only as many as the gate would have requested: the
/// looks, the stopping and the final comparison are the gate's own.
pub fn measure(base: &Run, head: &Run, policy: &Policy) -> MeasuredSession {
    let options = CompareOptions { resampled: true, ..CompareOptions::default() };
    let looks = looks(policy, &Metric::LATENCY);
    let mut blocks = vec![looks.first(); head.benchmarks.len()];
    loop {
        let (seen_base, seen_head) = (truncated(base, &blocks), truncated(head, &blocks));
        let comparison = compare(&seen_base, &seen_head, policy, &options);
        let open = open_in(&comparison, policy);
        let Some(next) = open.next_blocks else { return MeasuredSession { comparison, blocks } };
        for (count, benchmark) in blocks.iter_mut().zip(&head.benchmarks) {
            if open.open.contains(&benchmark.name) {
                *count = next;
            }
        }
    }
}

/// Returns the first blocks of each benchmark; both runs list the same benchmarks in the same order.
fn truncated(run: &Run, blocks: &[u32]) -> Run {
    let mut seen = Run { session: run.session.clone(), ..Run::default() };
    for (benchmark, &blocks) in run.benchmarks.iter().zip(blocks) {
        let metrics = benchmark.metrics.iter().map(|series| MetricSeries {
            metric: series.metric.clone(),
            series: match &series.series {
                Series::Processes(processes) => Series::Processes(
                    processes
                        .iter()
                        .filter(|p| p.slot.is_none_or(|slot| slot.block < blocks))
                        .cloned()
                        .collect(),
                ),
                other => other.clone(),
            },
        });
        seen.benchmarks.push(Benchmark { metrics: metrics.collect(), ..benchmark.clone() });
    }
    seen
}
