//! Runs that are constructed for tests.

use benchgate::gate::{CompareOptions, Comparison, Policy, Row, compare};
use benchgate::model::{
    Benchmark, BlockSlot, Metric, MetricSeries, Outcome, Process, Run, Series, Stage, Verification,
    VerifyCode,
};

/// A benchmark with one process that has these latencies, in nanoseconds.
pub fn measured(name: &str, samples: &[f64]) -> Benchmark {
    with(name, Metric::LATENCY, Series::Processes(vec![process(samples, None)]))
}

pub fn process(samples: &[f64], slot: Option<(u32, u8)>) -> Process {
    Process {
        samples: samples.to_vec(),
        slot: slot.map(|(block, slot)| BlockSlot { block, slot }),
        ..Process::default()
    }
}

pub fn with(name: &str, metric: Metric, series: Series) -> Benchmark {
    let mut benchmark = Benchmark::new(name);
    benchmark.metrics.push(MetricSeries { metric, series });
    benchmark
}

pub fn failed(name: &str, stage: Stage) -> Benchmark {
    let mut benchmark = Benchmark::new(name);
    benchmark.outcome = Outcome::Failed { stage, why: "exit status 1".to_owned() };
    benchmark
}

pub fn verified(mut benchmark: Benchmark, code: VerifyCode) -> Benchmark {
    benchmark.verification = Some(Verification::bare(code, None));
    benchmark
}

pub fn run(benchmarks: Vec<Benchmark>) -> Run {
    Run { benchmarks, ..Run::default() }
}

/// Both sides of a paired benchmark: block `b` has base at `base[b]` and head at `head[b]`, two
/// processes each in ABBA or BAAB order, eight repetitions within `jitter` of the location. No two processes measure
/// the same to the last bit.
pub fn paired(name: &str, base: &[f64], head: &[f64], jitter: f64) -> (Benchmark, Benchmark) {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for (block, (base, head)) in base.iter().zip(head).enumerate() {
        let slots = if block % 2 == 0 { [0, 3, 1, 2] } else { [1, 2, 0, 3] };
        for (side, location, slots) in [(&mut a, base, &slots[..2]), (&mut b, head, &slots[2..])] {
            for slot in slots {
                let other = 1.0 + 1e-12 * (4 * block + usize::from(*slot)) as f64;
                let samples: Vec<f64> =
                    (0..8).map(|i| location * other * (1.0 + jitter * (f64::from(i) - 3.5))).collect();
                side.push(process(&samples, Some((block as u32, *slot))));
            }
        }
    }
    let make = |processes| with(name, Metric::LATENCY, Series::Processes(processes));
    (make(a), make(b))
}

pub fn session(benchmarks: Vec<Benchmark>) -> Run {
    Run { session: Some("one".to_owned()), benchmarks, ..Run::default() }
}

pub fn judged(base: &Run, head: &Run) -> Comparison {
    judged_by(&Policy::default(), base, head)
}

pub fn judged_by(policy: &Policy, base: &Run, head: &Run) -> Comparison {
    compare(
        base,
        head,
        policy,
        &CompareOptions { seed: 1, today: "2026-11-20".to_owned(), ..CompareOptions::default() },
    )
}

/// The only row of two runs with one benchmark each.
pub fn only_row(base: Benchmark, head: Benchmark) -> Row {
    let mut comparison = judged(&run(vec![base]), &run(vec![head]));
    assert_eq!(comparison.rows.len(), 1, "{:?}", comparison.rows);
    comparison.rows.remove(0)
}
