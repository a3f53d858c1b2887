//! Checks that a shard's results contain its part of the plan completely, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{ARCHITECTURE, JUDGED_BY, JUDGED_BY_OUTPUTS, SideName, counted};
use crate::record::{
    BenchmarkRecord, Design, OutcomeStatus, PlanFile, PlannedBenchmarkRecord, PlannedShardRecord, RunFile,
};

use super::looks;

/// Describes the entries that a shard's file lacks, has twice, or should not have.
pub fn check(plan: &PlanFile, shard: &PlannedShardRecord, file: &RunFile) -> Vec<String> {
    let mut wrong = agrees(plan, file);
    let planned: BTreeMap<&str, &PlannedBenchmarkRecord> =
        plan.benchmarks.iter().map(|benchmark| (benchmark.name.as_str(), benchmark)).collect();
    let mine: BTreeSet<&str> = shard.benchmarks.iter().map(String::as_str).collect();
    for side in &file.sides {
        let strays = side.benchmarks.iter().filter(|record| {
            let name = file.declared_name(&record.name);
            let here = planned.get(name).is_some_and(|b| b.sides.contains(&side.name));
            !here || !mine.contains(name)
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

/// Describes facts that differ from the plan; all shards must agree on them.
fn agrees(plan: &PlanFile, file: &RunFile) -> Vec<String> {
    let (mut wrong, mut edited) = (Vec::new(), Vec::new());
    let mut same = |what: &str, same: bool| {
        if !same {
            wrong.push(format!("the {what} differs from the plan's"));
        }
    };
    // Another version could have stopped at a different look.
    same("version of benchgate", file.benchgate == plan.benchgate);
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
        if let (Some(true), Some(commit)) = (side.dirty, &side.commit) {
            edited.push(format!(
                "files differ from commit {commit}, so another shard may have measured other sources; commit \
                the files first"
            ));
        }
        same("commit", side.commit == planned.commit);
        let pinned = side.toolchain.as_ref().map_or(!side.has_models(), |tools| {
            tools.version == planned.version
                && [&tools.compiler_commit, &tools.runtime_commit] == [&planned.tools_commit; 2]
        });
        same("toolchain", pinned);
    }
    wrong.extend(edited);
    if !file.complete {
        wrong.push("it was interrupted".to_owned());
    }
    wrong
}

/// Describes what a benchmark's results lack. A failure counts as a result, because nothing is measured after
/// it.
fn measured(plan: &PlanFile, planned: &PlannedBenchmarkRecord, file: &RunFile) -> Option<String> {
    let mut rows: BTreeMap<&str, Vec<(SideName, &BenchmarkRecord)>> = BTreeMap::new();
    for side in &planned.sides {
        let records = file.side(*side).map(|side| side.benchmarks.as_slice()).unwrap_or_default();
        let mut found =
            records.iter().filter(|record| file.declared_name(&record.name) == planned.name).peekable();
        if found.peek().is_none() {
            return Some(format!("is missing on {side}"));
        }
        found.for_each(|record| rows.entry(&record.name).or_default().push((*side, record)));
    }
    // A command may print a row on one side only. Such a row is a result, but it does not pass.
    let paired = rows.into_values().filter(|records| records.len() == planned.sides.len());
    paired.into_iter().find_map(|records| lacks(plan, &records, file))
}

/// Describes what one row of a benchmark lacks.
fn lacks(plan: &PlanFile, records: &[(SideName, &BenchmarkRecord)], file: &RunFile) -> Option<String> {
    if records.iter().any(|(_, record)| record.outcome.status != OutcomeStatus::Ok) {
        return None;
    }
    if records.iter().all(|(_, record)| is_untimed(record)) {
        return None;
    }
    match records {
        [(_, base), (_, head)] => blocks(base, head),
        _ => records.iter().find_map(|(_, record)| processes(plan, record, file)),
    }
}

/// Returns whether the benchmark is judged without timing, by the outputs of one call or by the generated
/// code.
pub(super) fn is_untimed(record: &BenchmarkRecord) -> bool {
    let by_outputs = record.labels.get(JUDGED_BY).is_some_and(|by| by == JUDGED_BY_OUTPUTS);
    let by_code = record.labels.contains_key(ARCHITECTURE) && !record.values.is_empty();
    (by_code || by_outputs && record.verification.is_some()) && record.processes.is_empty()
}

fn processes(plan: &PlanFile, record: &BenchmarkRecord, file: &RunFile) -> Option<String> {
    let found = record.processes.len();
    let out_of_time = || looks::time_left(plan, file.processes()).is_some_and(|left| left <= 0.0);
    let short = found < plan.processes as usize && (found == 0 || !out_of_time());
    (short || found > plan.processes as usize)
        .then(|| format!("has {}, but the plan requires {}", counted(found, "process"), plan.processes))
}

/// Checks that blocks are complete and consecutive from the first one on. [`looks`] checks their number.
fn blocks(base: &BenchmarkRecord, head: &BenchmarkRecord) -> Option<String> {
    let mut found: BTreeMap<u32, [BTreeSet<u8>; 2]> = BTreeMap::new();
    for (at, record) in [base, head].into_iter().enumerate() {
        for process in &record.processes {
            let Some(slot) = process.slot else {
                return Some("has a process that is in no block".to_owned());
            };
            found.entry(slot.block).or_default()[at].insert(slot.slot);
        }
    }
    if found.is_empty() {
        return Some("was not measured".to_owned());
    }
    let cut = (0..).zip(&found).find(|(expected, (block, [base, head]))| {
        *block != expected || base.len() != 2 || head.len() != 2 || !base.is_disjoint(head)
    });
    cut.map(|(expected, _)| format!("lacks processes of block {}", expected + 1))
}
