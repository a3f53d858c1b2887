//! Creates a plan from a suite and the durations of its benchmarks.

use std::collections::BTreeMap;

use crate::model::{Policy, SideName, counted};
use crate::record::{
    Design, Number, PlanFile, PlanSchema, PlannedBenchmarkRecord, PlannedShardRecord, PlannedSideRecord,
};
use crate::stats::describe;

use super::pack::{Cut, PackError, pack};

/// The duration that is assumed if none is known for any benchmark.
const DEFAULT_SECONDS: f64 = 60.0;

/// A suite before it is divided.
#[derive(Debug, Clone)]
pub struct PlannedSuite {
    pub suite: String,
    pub suite_sha256: String,
    pub seed: u64,
    pub processes: u32,
    pub min_blocks: u32,
    pub max_blocks: u32,
    pub time_budget_ns: Option<u64>,
    pub gate: Policy,
    pub sides: Vec<PlannedSideRecord>,
    pub benchmarks: Vec<SuiteBenchmark>,
}

#[derive(Debug, Clone)]
pub struct SuiteBenchmark {
    pub name: String,
    pub target: String,
    pub sides: Vec<SideName>,
    /// Number of rows that the benchmark has in a result.
    pub rows: usize,
    /// Labels of the runner that measures it.
    pub runner: Vec<String>,
}

/// Creates the plan, and notes about it. `durations` are seconds by benchmark name; an unknown duration
/// counts as the median of the known ones.
///
/// # Errors
/// The suite can't be divided into this number of shards.
pub fn plan(
    suite: PlannedSuite,
    durations: &BTreeMap<String, f64>,
    cut: Cut,
) -> Result<(PlanFile, Vec<String>), PackError> {
    let usual = usual(durations);
    let seconds = |name: &str| durations.get(name).copied().unwrap_or(usual);
    let mut runners: Vec<&[String]> = Vec::new();
    let mut items = Vec::new();
    for benchmark in &suite.benchmarks {
        let kind = runners.iter().position(|runner| *runner == benchmark.runner.as_slice());
        let kind = kind.unwrap_or_else(|| {
            runners.push(&benchmark.runner);
            runners.len() - 1
        });
        items.push((kind, seconds(&benchmark.name)));
    }
    let loads = pack(&items, runners.len(), cut)?;
    let shards: Vec<PlannedShardRecord> = (1..)
        .zip(&loads)
        .map(|(shard, load)| PlannedShardRecord {
            shard,
            runner: runners[load.kind].to_vec(),
            benchmarks: load.items.iter().map(|&item| suite.benchmarks[item].name.clone()).collect(),
            seconds: Number(load.seconds),
        })
        .collect();
    let mut notes = vec![known_durations(&suite, durations, usual)];
    if let Cut::Shards(wanted) = cut
        && shards.len() < wanted
    {
        let (benchmarks, made) =
            (counted(suite.benchmarks.len(), "benchmark"), counted(shards.len(), "shard"));
        notes.push(format!(
            "{benchmarks} can fill only {made}, because a benchmark is measured on one machine"
        ));
    }
    if let Cut::Seconds(most) = cut {
        let over = shards.iter().filter(|shard| shard.seconds.0 > most);
        notes.extend(over.map(|shard| {
            format!(
                "shard {} takes about {:.0} s, longer than asked for: all blocks of {} run on one machine",
                shard.shard,
                shard.seconds.0,
                shard.benchmarks.join(", ")
            )
        }));
    }
    if suite.time_budget_ns.is_some() {
        notes.push(
            "each shard has the whole time budget, so the number of blocks of a row depends on how the suite is split"
                .to_owned(),
        );
    }
    let fatal = suite.gate.metrics.iter().filter(|(_, rule)| rule.fatal).map(|(name, _)| name.as_str());
    let raised = suite.gate.overrides.iter().filter(|rule| rule.fatal == Some(true));
    let metrics = fatal.chain(raised.filter_map(|rule| rule.metric.as_deref()));
    let metrics = metrics.collect::<std::collections::BTreeSet<&str>>().len().max(1);
    let rows: usize = suite.benchmarks.iter().map(|benchmark| benchmark.rows).sum();
    let mut file = PlanFile {
        schema: PlanSchema,
        benchgate: benchgate_core::VERSION.to_owned(),
        sha256: String::new(),
        suite: suite.suite,
        suite_sha256: suite.suite_sha256,
        design: if suite.sides.len() == 2 { Design::Pairs } else { Design::Single },
        seed: suite.seed,
        processes: suite.processes,
        min_blocks: suite.min_blocks,
        max_blocks: suite.max_blocks,
        time_budget_ns: suite.time_budget_ns,
        rows: u32::try_from(rows * metrics).unwrap_or(u32::MAX),
        gate: suite.gate,
        sides: suite.sides,
        benchmarks: suite
            .benchmarks
            .iter()
            .zip(&items)
            .map(|(benchmark, (_, seconds))| PlannedBenchmarkRecord {
                name: benchmark.name.clone(),
                target: benchmark.target.clone(),
                sides: benchmark.sides.clone(),
                seconds: Number(*seconds),
            })
            .collect(),
        shards,
    };
    file.seal();
    Ok((file, notes))
}

fn known_durations(suite: &PlannedSuite, durations: &BTreeMap<String, f64>, usual: f64) -> String {
    let known = suite.benchmarks.iter().filter(|benchmark| durations.contains_key(&benchmark.name)).count();
    let all = counted(suite.benchmarks.len(), "benchmark");
    if known == suite.benchmarks.len() {
        return format!("durations are known for all {all}");
    }
    format!("durations are known for {known} of {all}; each of the others counts as {usual:.0} s")
}

fn usual(durations: &BTreeMap<String, f64>) -> f64 {
    let known: Vec<f64> = durations.values().copied().collect();
    describe::median(&known).unwrap_or(DEFAULT_SECONDS)
}
