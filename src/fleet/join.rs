//! Joins the complete parts of a run into one.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::model::{Context, Lint, Metric};
use crate::record::{
    BenchmarkRecord, CalibrationRecord, MeasureRecord, MergedShardRecord, PlanFile, RunFile, SideRecord,
};

use super::machines;

/// Joins the files of all shards, in the order of the plan.
///
/// # Errors
/// The files differ in facts that all parts of a run share.
pub fn join(
    plan: &PlanFile,
    mut files: Vec<RunFile>,
    shards: Vec<MergedShardRecord>,
    session: String,
) -> Result<RunFile, Vec<String>> {
    let testbed = machines::testbed(plan, &files).map_err(|why| vec![why])?;
    let metrics = metrics(&files).map_err(|why| vec![why])?;
    let notes: Vec<Option<Lint>> =
        (0..files.len()).map(|shard| machines::other_machine(plan, &files, shard)).collect();
    let lints = lints(&files);
    let calibration = calibration(plan, &files);
    for (file, note) in files.iter_mut().zip(notes) {
        let Some(note) = note else { continue };
        for benchmark in file.sides.iter_mut().flat_map(|side| &mut side.benchmarks) {
            benchmark.lints.push(note.clone());
        }
    }
    let in_order = chronological(&mut files);
    if !in_order {
        return Err(vec!["a process has no start time".to_owned()]);
    }
    let bundle = files.first().and_then(|first| first.bundle.clone());
    let bundle = bundle.filter(|bundle| files.iter().all(|file| file.bundle.as_ref() == Some(bundle)));
    let created = files.iter().map(|file| file.created.clone()).min_by_key(|text| time(text));
    let backends = files.iter_mut().flat_map(|file| std::mem::take(&mut file.backends)).collect();
    let sides = sides(plan, &mut files);
    let measure = files.first().map(|file| file.measure.clone());
    let Some((first, measure)) = files.first().zip(measure) else {
        return Err(vec!["there is no shard".to_owned()]);
    };
    let cpus =
        measure.cpus.clone().filter(|cpus| files.iter().all(|file| file.measure.cpus.as_ref() == Some(cpus)));
    Ok(RunFile {
        schema: first.schema,
        benchgate: benchgate_core::VERSION.to_owned(),
        suite: plan.suite.clone(),
        session,
        created: created.unwrap_or_default(),
        complete: true,
        design: plan.design,
        seed: plan.seed,
        measure: MeasureRecord { cpus, ..measure },
        testbed,
        metrics,
        sides,
        backends,
        bundle,
        shard: None,
        shards,
        gate: Some(plan.gate.clone()),
        calibration,
        lints,
    })
}

/// The sides of the joined run, each with all benchmarks in the order of the suite.
fn sides(plan: &PlanFile, files: &mut [RunFile]) -> Vec<SideRecord> {
    let mut sides = Vec::new();
    for at in 0..plan.sides.len() {
        let contexts: Vec<&Context> =
            files.iter().filter_map(|file| file.sides.get(at)?.context.as_ref()).collect();
        let context = machines::context(&contexts);
        let mut records: BTreeMap<String, Vec<BenchmarkRecord>> = BTreeMap::new();
        let mut joined: Option<SideRecord> = None;
        for file in files.iter_mut() {
            let Some(side) = file.sides.get_mut(at) else { continue };
            let found = std::mem::take(&mut side.benchmarks);
            match &mut joined {
                None => joined = Some(side.clone()),
                Some(joined) => {
                    joined.commands.append(&mut side.commands.clone());
                    // A shard with only commands needs no tools, so another shard provides the
                    // toolchain.
                    joined.toolchain = joined.toolchain.take().or_else(|| side.toolchain.clone());
                }
            }
            for record in found {
                let name = file.declared_name(&record.name).to_owned();
                records.entry(name).or_default().push(record);
            }
        }
        if let Some(side) = &mut joined {
            let place = |name: &str| plan.benchmarks.iter().position(|planned| planned.name == name);
            side.commands.sort_by_key(|command| place(&command.name));
        }
        let benchmarks =
            plan.benchmarks.iter().filter_map(|planned| records.remove(&planned.name)).flatten().collect();
        // If one working tree had changes, the run as a whole was not measured at the commit.
        let dirty = files.iter().filter_map(|file| file.sides.get(at)?.dirty).max();
        sides.extend(joined.map(|side| SideRecord { context, benchmarks, dirty, ..side }));
    }
    sides
}

fn time(text: &str) -> Option<jiff::Timestamp> {
    text.parse().ok()
}

/// Numbers all processes by their start times. Returns false if a process has no start time. Within
/// a shard the original order is kept even if its clock was set back, because slots are paired by
/// this order.
fn chronological(files: &mut [RunFile]) -> bool {
    let mut processes = Vec::new();
    let mut known = true;
    for (shard, file) in (0_usize..).zip(files.iter_mut()) {
        let benchmarks = file.sides.iter_mut().flat_map(|side| &mut side.benchmarks);
        let mut own: Vec<_> = benchmarks.flat_map(|benchmark| &mut benchmark.processes).collect();
        own.sort_by_key(|process| process.order);
        let mut latest = None;
        for process in own {
            let started = time(&process.started);
            known &= started.is_some();
            latest = latest.max(started);
            processes.push((latest, shard, process));
        }
    }
    // The sort is stable, so that processes with equal times keep the order within their shard.
    processes.sort_by_key(|(started, shard, _)| (*started, *shard));
    let mut numbers: HashMap<(usize, u32), u32> = HashMap::new();
    for (_, shard, process) in processes {
        // A command's process appears in each record that the command printed.
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        process.order = *numbers.entry((shard, process.order)).or_insert(next);
    }
    known
}

/// The metrics that the shards describe, each once.
fn metrics(files: &[RunFile]) -> Result<Vec<Metric>, String> {
    let mut all: Vec<&Metric> = Vec::new();
    // The longest list comes first, so that entries that other shards lack keep their position.
    let mut longest: Vec<&RunFile> = files.iter().collect();
    longest.sort_by_key(|file| std::cmp::Reverse(file.metrics.len()));
    for metric in longest.into_iter().flat_map(|file| &file.metrics) {
        match all.iter().find(|known| known.name == metric.name) {
            Some(known) if *known == metric => {}
            Some(_) => return Err(format!("shards describe the metric {:?} differently", metric.name)),
            None => all.push(metric),
        }
    }
    Ok(all.into_iter().cloned().collect())
}

/// The findings of all shards. A finding that some shards lack names the shards that have it.
fn lints(files: &[RunFile]) -> Vec<Lint> {
    let mut all = Vec::new();
    for (shard, file) in (1..).zip(files) {
        for lint in &file.lints {
            let everywhere = files.iter().all(|file| file.lints.contains(lint));
            let lint = if everywhere {
                lint.clone()
            } else {
                Lint { code: lint.code, detail: format!("shard {shard}: {}", lint.detail) }
            };
            if !all.contains(&lint) {
                all.push(lint);
            }
        }
    }
    all
}

/// The calibration of the joined run: the common one if all are equal, otherwise each shard's calibration of
/// its own rows.
fn calibration(plan: &PlanFile, files: &[RunFile]) -> Option<CalibrationRecord> {
    let known: Vec<&CalibrationRecord> = files.iter().filter_map(|file| file.calibration.as_ref()).collect();
    let first = *known.first()?;
    if known.len() == files.len() && known.iter().all(|calibration| *calibration == first) {
        return Some(first.clone());
    }
    let sources: BTreeSet<&str> = known.iter().map(|calibration| calibration.source.as_str()).collect();
    let mut spreads = Vec::new();
    for (file, shard) in files.iter().zip(&plan.shards) {
        let own = file.calibration.iter().flat_map(|calibration| &calibration.spreads);
        let is_here = |name: &str| shard.benchmarks.iter().any(|here| here == file.declared_name(name));
        spreads.extend(own.filter(|spread| is_here(&spread.benchmark)).cloned());
    }
    spreads.sort_by(|a, b| (&a.benchmark, &a.metric).cmp(&(&b.benchmark, &b.metric)));
    Some(CalibrationRecord { source: sources.into_iter().collect::<Vec<_>>().join("; "), spreads })
}
