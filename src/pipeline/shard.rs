//! The part of a suite that this machine measures, as a plan gives it.

use std::collections::BTreeSet;

use crate::model::BenchmarkName;
use crate::record::{PlanFile, ShardRecord};

/// One shard of a plan.
#[derive(Debug, Clone)]
pub struct Shard {
    record: ShardRecord,
    /// Benchmarks that this machine measures.
    benchmarks: BTreeSet<String>,
    /// Every benchmark of the suite, in its order: the schedule is drawn for all of them.
    suite: Vec<BenchmarkName>,
    pub(super) rows: u32,
    pub(super) seed: u64,
}

impl Shard {
    /// `None` if the plan has no shard of this number.
    pub fn new(plan: &PlanFile, number: u32, attempt: u32) -> Option<Self> {
        let benchmarks = plan.shard(number)?.benchmarks.iter().cloned().collect();
        Some(Self {
            record: ShardRecord { plan: plan.sha256.clone(), shard: number, attempt, sha256: None },
            benchmarks,
            suite: plan.benchmarks.iter().map(|benchmark| BenchmarkName::new(&benchmark.name)).collect(),
            rows: plan.rows,
            seed: plan.seed,
        })
    }

    pub(super) fn record(&self) -> ShardRecord {
        self.record.clone()
    }

    /// Whether a benchmark of the suite is measured here.
    pub(super) fn has(&self, benchmark: &str) -> bool {
        self.benchmarks.contains(benchmark)
    }

    /// The names of the whole suite.
    pub(super) fn suite(&self) -> Vec<BenchmarkName> {
        self.suite.clone()
    }
}
