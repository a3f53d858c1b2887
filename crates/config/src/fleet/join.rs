//! Joins the complete parts of a run into one.
//!
//! Combines the machines of the shards into one testbed, and notes which rows were measured on a different
//! machine.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sha2::{Digest, Sha256};

use benchgate_core::model::{Context, Lint, LintCode, Metric, Testbed, hex};
use benchgate_core::record::{
    BenchmarkRecord, CalibrationRecord, MeasureRecord, MergedShardRecord, PlanFile, RunFile, SideRecord,
};

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
    let testbed = testbed(plan, &files).map_err(|why| vec![why])?;
    let metrics = metrics(&files).map_err(|why| vec![why])?;
    let notes: Vec<Option<Lint>> = (0..files.len()).map(|shard| other_machine(plan, &files, shard)).collect();
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
        let context = context(&contexts);
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

/// The names of the targets that a shard measures.
fn targets(plan: &PlanFile, shard: usize) -> BTreeSet<&str> {
    let names = plan.shards.get(shard).map(|shard| shard.benchmarks.as_slice()).unwrap_or_default();
    let mine = plan.benchmarks.iter().filter(|benchmark| names.contains(&benchmark.name));
    mine.map(|benchmark| benchmark.target.as_str()).collect()
}

/// Creates one testbed for all shards. Machines of one kind form one testbed; if targets need different
/// kinds, each fact is listed under its target.
///
/// # Errors
/// A target was measured on two kinds of machines, so later sessions would be compared with a mixture.
pub fn testbed(plan: &PlanFile, files: &[RunFile]) -> Result<Testbed, String> {
    let Some(first) = files.first() else { return Ok(Testbed::default()) };
    if files
        .iter()
        .all(|file| file.testbed.id == first.testbed.id && file.testbed.facts == first.testbed.facts)
    {
        let agreed = |(key, value): (&String, &String)| {
            let all = files.iter().all(|file| file.testbed.notes.get(key) == Some(value));
            all.then(|| (key.clone(), value.clone()))
        };
        let notes = first.testbed.notes.iter().filter_map(agreed).collect();
        return Ok(Testbed { notes, ..first.testbed.clone() });
    }
    let mut by_target: BTreeMap<&str, (usize, &Testbed)> = BTreeMap::new();
    for (at, file) in files.iter().enumerate() {
        for target in targets(plan, at) {
            let (known_at, known) = *by_target.entry(target).or_insert((at, &file.testbed));
            if known.id != file.testbed.id || known.facts != file.testbed.facts {
                return Err(format!(
                    "shards {} and {} measured {target:?} on different kinds of machines: {}",
                    known_at + 1,
                    at + 1,
                    differing(known, &file.testbed)
                ));
            }
        }
    }
    let mut facts = BTreeMap::new();
    for (target, (_, testbed)) in by_target {
        facts.extend(testbed.facts.iter().map(|(key, value)| (format!("{target}/{key}"), value.clone())));
    }
    let mut hash = Sha256::new();
    for (key, value) in &facts {
        hash.update(format!("{key}={value}\n"));
    }
    Ok(Testbed { id: hex(&hash.finalize()[..6]), facts, notes: BTreeMap::new() })
}

fn differing(a: &Testbed, b: &Testbed) -> String {
    let keys: BTreeSet<&String> = a.facts.keys().chain(b.facts.keys()).collect();
    let unequal = keys.into_iter().filter(|key| a.facts.get(*key) != b.facts.get(*key));
    let named: Vec<&str> = unequal.map(String::as_str).take(4).collect();
    if named.is_empty() { format!("{} and {}", a.id, b.id) } else { named.join(", ") }
}

/// A note for the rows of a shard that ran on a different machine than the first shard with the same target.
/// The machines are of the same kind, but the rows of one table come from different chips.
fn other_machine(plan: &PlanFile, files: &[RunFile], shard: usize) -> Option<Lint> {
    /// The notes that identify the chip and the host.
    const NOTES: [&str; 2] = ["gpu-id", "host-name"];
    let mine = targets(plan, shard);
    let first = (0..files.len()).find(|&at| !targets(plan, at).is_disjoint(&mine))?;
    let (here, there) = (&files.get(shard)?.testbed.notes, &files.get(first)?.testbed.notes);
    let unequal = NOTES.iter().find_map(|note| {
        let both = here.get(*note).zip(there.get(*note));
        both.filter(|(here, there)| here != there)
    })?;
    Some(Lint {
        code: LintCode::OtherHost,
        detail: format!(
            "measured on a different machine from shard {}, but of the same kind: {} / {}",
            first + 1,
            unequal.1,
            unequal.0
        ),
    })
}

/// Combines the facts about the hosts. If shards disagree about a fact, the fact is left out or has
/// its worst value, such as the highest load or a debug build, so that a quiet machine does not
/// hide a busy one.
pub fn context(all: &[&Context]) -> Option<Context> {
    let first = *all.first()?;
    let worst_flag = |of: fn(&Context) -> Option<bool>, bad: bool| {
        let known = || all.iter().filter_map(|context| of(context));
        known().find(|flag| *flag == bad).or_else(|| known().next())
    };
    let is_debug = |build: &&String| build.eq_ignore_ascii_case("debug");
    let builds = || all.iter().filter_map(|context| context.library_build_type.as_ref());
    Some(Context {
        date: all.iter().filter_map(|context| context.date.clone()).min(),
        host_name: agreed(all, |context| context.host_name.clone()),
        executable: agreed(all, |context| context.executable.clone()),
        num_cpus: all.iter().filter_map(|context| context.num_cpus).min(),
        mhz_per_cpu: first.mhz_per_cpu.filter(|_| all.iter().all(|c| c.mhz_per_cpu == first.mhz_per_cpu)),
        cpu_scaling_enabled: worst_flag(|context| context.cpu_scaling_enabled, true),
        aslr_enabled: worst_flag(|context| context.aslr_enabled, true),
        library_build_type: builds().find(is_debug).or_else(|| builds().next()).cloned(),
        library_version: agreed(all, |context| context.library_version.clone()),
        load_avg: (0..3).map_while(|window| highest(all, window)).collect(),
    })
}

fn agreed(all: &[&Context], of: impl Fn(&Context) -> Option<String>) -> Option<String> {
    let first = of(all.first()?)?;
    all.iter().all(|context| of(context).as_ref() == Some(&first)).then_some(first)
}

fn highest(all: &[&Context], window: usize) -> Option<f64> {
    let loads = all.iter().filter_map(|context| context.load_avg.get(window));
    loads.copied().max_by(f64::total_cmp)
}
