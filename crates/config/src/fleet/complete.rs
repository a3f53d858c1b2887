//! Checks that a shard's results contain its part of the plan completely, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use benchgate_core::model::{ARCHITECTURE, JUDGED_BY, JUDGED_BY_OUTPUTS, Run, SideName, counted};
use benchgate_core::record::{
    BenchmarkRecord, Design, OutcomeStatus, PlanFile, PlannedBenchmarkRecord, PlannedShardRecord,
    ProcessRecord, RunFile,
};
use benchgate_gate::{CHECKED_IDENTICAL_BLOCKS, IDENTICAL_BLOCKS, Policy, open_in_shard};
use benchgate_stats::multiplicity::Looks;

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
    let out_of_time = || time_left(plan, file.processes()).is_some_and(|left| left <= 0.0);
    let short = found < plan.processes as usize && (found == 0 || !out_of_time());
    (short || found > plan.processes as usize)
        .then(|| format!("has {}, but the plan requires {}", counted(found, "process"), plan.processes))
}

/// Checks that blocks are complete and consecutive from the first one on. [`check_looks`] checks their number.
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

/// Tolerance for the rounding of times, which are added up in a different order than during the measurement.
const ROUNDING_SECONDS: f64 = 1e-6;

/// Describes the rows of a shard that were not measured exactly as long as their samples require, by evaluating each look
/// again. `policy` is the plan's.
pub(super) fn check_looks(plan: &PlanFile, policy: &Policy, file: &RunFile) -> Vec<String> {
    let rows = paired(file);
    let (identical, compared): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.identical);
    let looks = Looks::new(plan.min_blocks, plan.max_blocks);
    let mut wrong = Vec::new();
    let mut doubted = Vec::new();
    // Identical sides whose sources or tools are in different places are measured with more blocks.
    let checks = [IDENTICAL_BLOCKS, CHECKED_IDENTICAL_BLOCKS];
    let open = checks.map(|blocks| {
        let checked = blocks < looks.first();
        if checked { open_at(plan, policy, file, &identical, blocks) } else { BTreeSet::new() }
    });
    for row in identical {
        let is_open = [0, 1].map(|check| row.blocks >= checks[check] && open[check].contains(row.name));
        let is_settled =
            checks.into_iter().zip(is_open).any(|(blocks, is_open)| row.blocks == blocks && !is_open);
        let is_cut = row.blocks < CHECKED_IDENTICAL_BLOCKS && out_of_time(plan, file, row.blocks);
        if is_settled || is_cut {
            continue;
        }
        if is_open.contains(&true) {
            doubted.push(row);
        } else {
            let number = checks.map(|blocks| blocks.to_string()).join(" or ");
            wrong.push(format!(
                "{:?} has {}; benchmarks with identical sides have {number}",
                row.name,
                row.counted_blocks()
            ));
        }
    }
    let mut next = Some(looks.first());
    // Identical sides whose first times are far apart are measured like different sides.
    let mut measured = compared;
    measured.extend(doubted);
    while let Some(look) = next {
        let (ended, further): (Vec<_>, Vec<_>) = measured.into_iter().partition(|row| row.blocks < look);
        let between = ended.iter().filter(|row| !out_of_time(plan, file, row.blocks));
        wrong.extend(between.map(|row| {
            format!("{:?} has {}, but the plan has no look at that point", row.name, row.counted_blocks())
        }));
        next = looks.after(look);
        // Nothing is measured after the last look, so it needs no check.
        let asked: &[PairedBenchmark<'_>] = if next.is_some() { &further } else { &[] };
        let open = open_at(plan, policy, file, asked, look);
        let is_open = |row: &&PairedBenchmark<'_>| open.contains(row.name);
        // A command is measured until all of its rows are decided.
        let going_on: BTreeSet<&str> = open.iter().map(|name| file.declared_name(name)).collect();
        let is_done = |row: &&PairedBenchmark<'_>| !going_on.contains(file.declared_name(row.name));
        let decided = further.iter().filter(|row| row.blocks > look && is_done(row));
        wrong.extend(decided.map(|row| {
            format!("{:?} has {}, but the plan allows at most {look}", row.name, row.counted_blocks())
        }));
        let open: Vec<&PairedBenchmark<'_>> = further.iter().filter(is_open).collect();
        let affordable = next.is_some_and(|next| can_afford(plan, file, &open, (look, next)));
        let cut = open.iter().filter(|row| row.blocks == look && affordable);
        wrong.extend(cut.map(|row| {
            format!(
                "{:?} ends after {} although it is undecided and more blocks are allowed",
                row.name,
                row.counted_blocks()
            )
        }));
        measured = further.into_iter().filter(|row| row.blocks > look).collect();
    }
    wrong
}

/// A benchmark that was measured in blocks and did not fail.
struct PairedBenchmark<'a> {
    name: &'a str,
    sides: [&'a BenchmarkRecord; 2],
    blocks: u32,
    identical: bool,
}

impl PairedBenchmark<'_> {
    fn counted_blocks(&self) -> String {
        counted(self.blocks as usize, "block")
    }
}

fn paired(file: &RunFile) -> Vec<PairedBenchmark<'_>> {
    let side = |name| file.side(name).map(|side| side.benchmarks.as_slice()).unwrap_or_default();
    let partner = |base: &BenchmarkRecord| side(SideName::Head).iter().find(|head| head.name == base.name);
    let ok = |record: &BenchmarkRecord| record.outcome.status == OutcomeStatus::Ok;
    let pairs = side(SideName::Base).iter().filter_map(|base| Some((base, partner(base)?)));
    pairs
        .filter(|(base, head)| ok(base) && ok(head))
        .filter(|(base, head)| !(is_untimed(base) && is_untimed(head)))
        .map(|(base, head)| {
            let slots = base.processes.iter().filter_map(|process| process.slot);
            let blocks = slots.map(|slot| slot.block.saturating_add(1)).max().unwrap_or_default();
            let identical = base.artifact.is_some() && base.artifact == head.artifact;
            PairedBenchmark { name: &base.name, sides: [base, head], blocks, identical }
        })
        .collect()
}

/// The rows that need more blocks at this look, judged only by the blocks up to it.
fn open_at(
    plan: &PlanFile,
    policy: &Policy,
    file: &RunFile,
    rows: &[PairedBenchmark<'_>],
    blocks: u32,
) -> BTreeSet<String> {
    if rows.is_empty() {
        return BTreeSet::new();
    }
    let mut seen = file.clone();
    for side in &mut seen.sides {
        side.benchmarks.retain(|record| rows.iter().any(|row| row.name == record.name));
        for record in &mut side.benchmarks {
            record.processes.retain(|process| in_first(process, blocks));
        }
    }
    let (mut base, mut head) = (Run::default(), Run::default());
    for (side, run) in seen.into_runs("shard") {
        match side {
            SideName::Base => base = run,
            SideName::Head => head = run,
        }
    }
    let open = open_in_shard(&base, &head, policy, plan.rows).open;
    open.into_iter().map(|name| name.to_string()).collect()
}

fn in_first(process: &ProcessRecord, blocks: u32) -> bool {
    process.slot.is_some_and(|slot| slot.block < blocks)
}

/// The seconds of the time budget that were left after these processes.
pub(super) fn time_left<'a>(
    plan: &PlanFile,
    processes: impl Iterator<Item = &'a ProcessRecord>,
) -> Option<f64> {
    let budget = plan.time_budget_ns? as f64 / 1e9;
    Some(budget - processes.map(|process| process.seconds.0).sum::<f64>() - ROUNDING_SECONDS)
}

/// Returns whether the shard's time budget was spent after this number of blocks, so that every row ended
/// there.
fn out_of_time(plan: &PlanFile, file: &RunFile, blocks: u32) -> bool {
    let before = file.processes().filter(|process| in_first(process, blocks));
    blocks > 0 && time_left(plan, before).is_some_and(|left| left <= 0.0)
}

/// Returns whether there was time to measure all undecided rows until the next look. If not, some had to end
/// at this one.
fn can_afford(
    plan: &PlanFile,
    file: &RunFile,
    open: &[&PairedBenchmark<'_>],
    (look, next): (u32, u32),
) -> bool {
    let before = file.processes().filter(|process| in_first(process, look));
    let Some(left) = time_left(plan, before) else { return true };
    let processes = open.iter().flat_map(|row| row.sides).flat_map(|record| &record.processes);
    let processes = processes.filter(|process| in_first(process, look));
    // A command's process appears in each record that the command printed.
    let each: BTreeMap<u32, f64> = processes.map(|process| (process.order, process.seconds.0)).collect();
    let spent = each.into_values().sum::<f64>();
    left > 0.0 && spent / f64::from(look) * f64::from(next - look) <= left
}
