//! Proves that a shard holds all of its part of the plan, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::SideName;
use crate::record::{
    BenchmarkRecord, Design, OutcomeStatus, PlanFile, PlannedBenchmarkRecord, PlannedShardRecord, RunFile,
};
use crate::stats::spending::Looks;

/// What a shard lacks, has twice, or should not have.
pub fn check(plan: &PlanFile, shard: &PlannedShardRecord, file: &RunFile) -> Vec<String> {
    let mut wrong = agrees(plan, file);
    let planned: BTreeMap<&str, &PlannedBenchmarkRecord> =
        plan.benchmarks.iter().map(|benchmark| (benchmark.name.as_str(), benchmark)).collect();
    let mine: BTreeSet<&str> = shard.benchmarks.iter().map(String::as_str).collect();
    for side in &file.sides {
        let strays = side.benchmarks.iter().filter(|record| {
            let here = planned.get(record.name.as_str()).is_some_and(|b| b.sides.contains(&side.name));
            !here || !mine.contains(record.name.as_str())
        });
        wrong.extend(
            strays.map(|record| format!("{:?} on {} is not part of this shard", record.name, side.name)),
        );
    }
    for name in &shard.benchmarks {
        let Some(benchmark) = planned.get(name.as_str()) else { continue };
        wrong.extend(measured(plan, benchmark, file).into_iter().map(|what| format!("{name:?} {what}")));
    }
    wrong
}

/// What all shards must agree on.
fn agrees(plan: &PlanFile, file: &RunFile) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut same = |what: &str, same: bool| {
        if !same {
            wrong.push(format!("the {what} is not that of the plan"));
        }
    };
    same("suite", file.suite == plan.suite);
    same("design", file.design == plan.design);
    same("seed", file.seed == plan.seed);
    same("policy", file.gate.as_ref() == Some(&plan.gate));
    let blocks = (file.measure.min_blocks, file.measure.max_blocks);
    same(
        "number of blocks",
        plan.design == Design::Single || blocks == (Some(plan.min_blocks), Some(plan.max_blocks)),
    );
    same(
        "number of processes",
        plan.design != Design::Single || file.measure.processes == Some(plan.processes),
    );
    same("list of sides", file.sides.iter().map(|s| s.name).eq(plan.sides.iter().map(|s| s.name)));
    for (side, planned) in file.sides.iter().zip(&plan.sides) {
        same("commit", side.commit == planned.commit);
        let pinned = side.toolchain.as_ref().is_some_and(|tools| {
            tools.version == planned.version
                && [&tools.compiler_commit, &tools.runtime_commit] == [&planned.tools_commit; 2]
        });
        same("toolchain", pinned);
    }
    if !file.complete {
        wrong.push("it was interrupted".to_owned());
    }
    wrong
}

/// What a benchmark lacks. A failure is a result: there is nothing to measure after it.
fn measured(plan: &PlanFile, planned: &PlannedBenchmarkRecord, file: &RunFile) -> Option<String> {
    let mut records: Vec<(SideName, &BenchmarkRecord)> = Vec::new();
    for side in &planned.sides {
        let found = file.side(*side).and_then(|s| s.benchmarks.iter().find(|b| b.name == planned.name));
        match found {
            Some(record) => records.push((*side, record)),
            None => return Some(format!("is missing on {side}")),
        }
    }
    if records.iter().any(|(_, record)| record.outcome.status != OutcomeStatus::Ok) {
        return None;
    }
    match records.as_slice() {
        [(_, base), (_, head)] => blocks(plan, base, head),
        _ => records.iter().find_map(|(_, record)| processes(plan, record)),
    }
}

fn processes(plan: &PlanFile, record: &BenchmarkRecord) -> Option<String> {
    let found = record.processes.len();
    let short = found < plan.processes as usize && (plan.time_budget_ns.is_none() || found == 0);
    (short || found > plan.processes as usize)
        .then(|| format!("has {found} processes, and the plan asks for {}", plan.processes))
}

/// Blocks are whole, follow each other from the first, and end where a look may end them.
fn blocks(plan: &PlanFile, base: &BenchmarkRecord, head: &BenchmarkRecord) -> Option<String> {
    let mut found: BTreeMap<u32, [BTreeSet<u8>; 2]> = BTreeMap::new();
    for (at, record) in [base, head].into_iter().enumerate() {
        for process in &record.processes {
            let Some(slot) = process.slot else {
                return Some("has a process outside of all blocks".to_owned());
            };
            found.entry(slot.block).or_default()[at].insert(slot.slot);
        }
    }
    let cut = (0..).zip(&found).find(|(expected, (block, [base, head]))| {
        *block != expected || base.len() != 2 || head.len() != 2 || !base.is_disjoint(head)
    });
    if let Some((expected, _)) = cut {
        return Some(format!("lacks processes of block {}", expected + 1));
    }
    let last = found.len();
    let identical = base.artifact.is_some() && base.artifact == head.artifact;
    let looks = Looks::new(plan.min_blocks, plan.max_blocks);
    let ends_there = if identical || plan.time_budget_ns.is_some() {
        last >= 1 && last <= plan.max_blocks as usize
    } else {
        looks.points().iter().any(|point| *point as usize == last)
    };
    (!ends_there).then(|| format!("has {last} blocks, and no look of the plan ends there"))
}
