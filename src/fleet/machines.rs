//! Combines the machines of the shards into one testbed, and notes which rows were measured on a different
//! machine.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

use crate::model::{Context, Lint, LintCode, Testbed, hex};
use crate::record::{PlanFile, RunFile};

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
pub fn other_machine(plan: &PlanFile, files: &[RunFile], shard: usize) -> Option<Lint> {
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
            "measured on a different machine of the same kind than shard {}: {} / {}",
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
