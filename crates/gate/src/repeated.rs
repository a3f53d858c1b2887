//! Samples of one benchmark that are recorded for another one too: two programs never take bit-identical times.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use benchgate_core::model::{Benchmark, BenchmarkName, Lint, LintCode, Process, Run, Series};

/// Fewer different values than this may agree by chance, because clocks tick and tools round.
const ENOUGH_VALUES: usize = 4;
/// The same in any order.
const ENOUGH_IN_ANY_ORDER: usize = 8;

/// Benchmarks of one run that share a process's samples with another benchmark of it.
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

/// The finding about a benchmark that either side repeats.
pub fn lint(name: &BenchmarkName, repeated: &BTreeSet<BenchmarkName>) -> Option<Lint> {
    let detail = "the same samples are recorded for another benchmark of this run";
    repeated.contains(name).then(|| Lint::new(LintCode::RepeatedSamples, detail))
}

fn processes(benchmark: &Benchmark) -> impl Iterator<Item = &Process> {
    benchmark.metrics.first().into_iter().flat_map(|metric| match &metric.series {
        Series::Processes(processes) => processes.as_slice(),
        Series::Summaries(_) | Series::Exact(_) => &[],
    })
}

/// A digest of a process's samples, `None` if they are too few to be distinguished from another's.
fn digest(process: &Process) -> Option<u64> {
    let values: Vec<u64> = process.samples.iter().map(|value| value.to_bits()).collect();
    let mut in_any_order = values.clone();
    in_any_order.sort_unstable();
    let different = in_any_order.chunk_by(|a, b| a == b).count();
    let mut hasher = DefaultHasher::new();
    if different < ENOUGH_IN_ANY_ORDER { values } else { in_any_order }.hash(&mut hasher);
    (different >= ENOUGH_VALUES).then(|| hasher.finish())
}
