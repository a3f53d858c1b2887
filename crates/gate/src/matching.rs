//! Pairs of benchmarks of base and head: by name only.

use std::collections::HashMap;

use benchgate_core::model::{Benchmark, BenchmarkName, Run};

/// One benchmark, on one side or on both.
#[derive(Debug, Clone, Copy)]
pub struct Matched<'a> {
    pub base: Option<&'a Benchmark>,
    pub head: Option<&'a Benchmark>,
}

impl<'a> Matched<'a> {
    /// Either side; head if both are present.
    pub fn any(&self) -> Option<&'a Benchmark> {
        self.head.or(self.base)
    }
}

/// Every benchmark of either run, once: in the order of head, then what only base has. If a run repeats a name, the
/// first pairs with the first, the second with the second.
pub fn matched<'a>(base: &'a Run, head: &'a Run) -> Vec<Matched<'a>> {
    let mut waiting: HashMap<&BenchmarkName, Vec<usize>> = HashMap::with_capacity(base.benchmarks.len());
    for (index, benchmark) in base.benchmarks.iter().enumerate().rev() {
        waiting.entry(&benchmark.name).or_default().push(index);
    }
    let mut taken = vec![false; base.benchmarks.len()];
    let mut pairs = Vec::with_capacity(head.benchmarks.len());
    for benchmark in &head.benchmarks {
        let partner = waiting.get_mut(&benchmark.name).and_then(Vec::pop);
        if let Some(index) = partner {
            taken[index] = true;
        }
        pairs.push(Matched { base: partner.map(|index| &base.benchmarks[index]), head: Some(benchmark) });
    }
    let left = base.benchmarks.iter().zip(&taken).filter(|(_, taken)| !**taken);
    pairs.extend(left.map(|(benchmark, _)| Matched { base: Some(benchmark), head: None }));
    pairs
}
