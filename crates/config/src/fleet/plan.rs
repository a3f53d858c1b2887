//! Creates a plan from a suite and the durations of its benchmarks.
//!
//! Assigns benchmarks to shards: the longest goes first, to the least loaded shard (LPT, Graham 1969). The
//! longest shard is at most a third longer than the optimum.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use benchgate_core::model::{counted, shell_word};
use benchgate_core::record::{Number, PlanFile, PlannedShardRecord};
use benchgate_stats::describe;

/// The duration that is assumed if none is known for any benchmark.
const DEFAULT_SECONDS: f64 = 60.0;

/// The properties of a benchmark by which it is planned, and which a plan does not store.
#[derive(Debug, Clone)]
pub struct Place {
    /// Number of rows that the benchmark has in a result.
    pub rows: usize,
    /// Labels of the runner that measures it.
    pub runner: Vec<String>,
}

/// Divides a plan that has no shards yet, and returns notes about it. Each benchmark has one of `places`, in the
/// same order. `durations` are seconds by benchmark name; an unknown duration counts as the median of the known
/// ones.
///
/// # Errors
/// The suite can't be divided into this number of shards.
pub fn plan(
    mut file: PlanFile,
    places: &[Place],
    durations: &BTreeMap<String, f64>,
    cut: Cut,
) -> Result<(PlanFile, Vec<String>), PackError> {
    let usual = usual(durations);
    let mut runners: Vec<&[String]> = Vec::new();
    let mut items = Vec::new();
    for (benchmark, place) in file.benchmarks.iter_mut().zip(places) {
        let kind = runners.iter().position(|runner| *runner == place.runner.as_slice());
        let kind = kind.unwrap_or_else(|| {
            runners.push(&place.runner);
            runners.len() - 1
        });
        benchmark.seconds = Number(durations.get(&benchmark.name).copied().unwrap_or(usual));
        items.push((kind, benchmark.seconds.0));
    }
    let loads = pack(&items, runners.len(), cut)?;
    let shard = |(shard, load): (u32, &Load)| PlannedShardRecord {
        shard,
        runner: runners[load.kind].to_vec(),
        benchmarks: load.items.iter().map(|&item| file.benchmarks[item].name.clone()).collect(),
        seconds: Number(load.seconds),
    };
    file.shards = (1..).zip(&loads).map(shard).collect();
    let mut notes = vec![known_durations(&file, durations, usual)];
    if let Cut::Shards(wanted) = cut
        && file.shards.len() < wanted
    {
        let (benchmarks, made) =
            (counted(file.benchmarks.len(), "benchmark"), counted(file.shards.len(), "shard"));
        notes.push(format!(
            "{benchmarks} can fill only {made}, because a benchmark is measured on one machine"
        ));
    }
    if let Cut::Seconds(most) = cut {
        let over = file.shards.iter().filter(|shard| shard.seconds.0 > most);
        notes.extend(over.map(|shard| {
            format!(
                "shard {} takes about {:.0} s, longer than asked for: all blocks of {} run on one machine",
                shard.shard,
                shard.seconds.0,
                shard.benchmarks.join(", ")
            )
        }));
    }
    if file.time_budget_ns.is_some() {
        notes.push(
            "each shard has the whole time budget, so the number of blocks of a row depends on how the suite is split"
                .to_owned(),
        );
    }
    let fatal = file.gate.metrics.iter().filter(|(_, rule)| rule.fatal).map(|(name, _)| name.as_str());
    let raised = file.gate.overrides.iter().filter(|rule| rule.fatal == Some(true));
    let metrics = fatal.chain(raised.filter_map(|rule| rule.metric.as_deref()));
    let metrics = metrics.collect::<std::collections::BTreeSet<&str>>().len().max(1);
    let rows: usize = places.iter().map(|place| place.rows).sum();
    file.rows = u32::try_from(rows * metrics).unwrap_or(u32::MAX);
    file.seal();
    Ok((file, notes))
}

fn known_durations(file: &PlanFile, durations: &BTreeMap<String, f64>, usual: f64) -> String {
    let known = file.benchmarks.iter().filter(|benchmark| durations.contains_key(&benchmark.name)).count();
    let all = counted(file.benchmarks.len(), "benchmark");
    if known == file.benchmarks.len() {
        return format!("durations are known for all {all}");
    }
    format!("durations are known for {known} of {all}; each of the others counts as {usual:.0} s")
}

fn usual(durations: &BTreeMap<String, f64>) -> f64 {
    let known: Vec<f64> = durations.values().copied().collect();
    describe::median(&known).unwrap_or(DEFAULT_SECONDS)
}

/// The requested division into shards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cut {
    Shards(usize),
    /// The fewest shards that each measure for at most this long.
    Seconds(f64),
}

/// The reason why a suite can't be divided as requested.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackError {
    #[error("{kinds} kinds of runners need at least {kinds} shards (requested: {shards})")]
    TooFewShards { shards: usize, kinds: usize },
}

/// The benchmarks of one shard.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// Index of the kind of runner.
    pub kind: usize,
    /// Indices of the benchmarks, ascending.
    pub items: Vec<usize>,
    pub seconds: f64,
}

/// Packs items, which are pairs of a kind of runner and a time in seconds. Every item is in one load, and no
/// load is empty. The result is deterministic: items with equal times are taken in order.
///
/// # Errors
/// There are fewer shards than kinds.
pub fn pack(items: &[(usize, f64)], kinds: usize, cut: Cut) -> Result<Vec<Load>, PackError> {
    let groups: Vec<Vec<usize>> =
        (0..kinds).map(|kind| (0..items.len()).filter(|&item| items[item].0 == kind).collect()).collect();
    let used: Vec<usize> = (0..kinds).filter(|&kind| !groups[kind].is_empty()).collect();
    let counts = match cut {
        Cut::Shards(shards) => counts(&groups, &used, items, shards)?,
        Cut::Seconds(most) => {
            let enough = |kind: &usize| {
                let group = &groups[*kind];
                let fits = |count: &usize| {
                    longest_first(items, group, *count).iter().all(|load| load.seconds <= most)
                };
                (1..group.len()).find(fits).unwrap_or(group.len())
            };
            used.iter().map(enough).collect()
        }
    };
    Ok(used
        .iter()
        .zip(counts)
        .flat_map(|(&kind, count)| longest_first(items, &groups[kind], count))
        .collect())
}

/// The number of shards of each kind. Each kind gets one, and every further shard goes to the kind whose
/// longest shard is longest.
fn counts(
    groups: &[Vec<usize>],
    used: &[usize],
    items: &[(usize, f64)],
    shards: usize,
) -> Result<Vec<usize>, PackError> {
    if shards < used.len() {
        return Err(PackError::TooFewShards { shards, kinds: used.len() });
    }
    let mut counts = vec![1; used.len()];
    for _ in used.len()..shards {
        let slowest = |at: &usize| {
            let loads = longest_first(items, &groups[used[*at]], counts[*at]);
            loads.iter().map(|load| load.seconds).fold(0.0, f64::max)
        };
        // Kinds that already have a shard for each benchmark are left out, because another shard would be
        // empty.
        let open = (0..used.len()).filter(|&at| counts[at] < groups[used[at]].len());
        let Some(next) = open.max_by(|a, b| slowest(a).total_cmp(&slowest(b)).then(b.cmp(a))) else { break };
        counts[next] += 1;
    }
    Ok(counts)
}

fn longest_first(items: &[(usize, f64)], group: &[usize], count: usize) -> Vec<Load> {
    let kind = group.first().map_or(0, |&item| items[item].0);
    let mut loads = vec![Load { kind, items: Vec::new(), seconds: 0.0 }; count];
    let mut order = group.to_vec();
    order.sort_by(|&a, &b| items[b].1.total_cmp(&items[a].1).then(a.cmp(&b)));
    for item in order {
        let least = loads.iter_mut().min_by(|a, b| {
            // Among equally loaded shards, the one with fewer items is chosen, so that items without a
            // duration are spread too.
            let by_count = a.items.len().cmp(&b.items.len());
            a.seconds.total_cmp(&b.seconds).then(by_count)
        });
        if let Some(load) = least {
            load.items.push(item);
            load.seconds += items[item].1;
        }
    }
    for load in &mut loads {
        load.items.sort_unstable();
    }
    loads.sort_by_key(|load| load.items.first().copied());
    loads
}

/// The system that runs the shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[derive(strum::EnumMessage, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum PlanFormat {
    /// A `matrix` for a GitHub Actions job, on one line
    Github,
    /// Steps for `buildkite-agent pipeline upload`
    Buildkite,
    /// Options for `sbatch`, one line per kind of runner
    Slurm,
    /// The shards as JSON, for other programs
    Json,
}

/// The options of the command that measures a shard, which are those that the plan was created with.
#[derive(Debug, Clone, Default)]
pub struct ShardCommand {
    /// Path of the plan file.
    pub plan: String,
    pub config: String,
    pub base: Option<String>,
}

impl ShardCommand {
    /// The command that measures a shard.
    fn measure(&self, shard: u32) -> String {
        let command = match &self.base {
            Some(base) => format!("gate --base {}", shell_word(base)),
            None => "run".to_owned(),
        };
        let (config, plan) = (shell_word(&self.config), shell_word(&self.plan));
        format!(
            "benchgate {command} --config {config} --plan {plan} --shard {shard} --run shard-{shard}.json"
        )
    }
}

/// Renders a plan in the format of the system that runs it. Each job only gets its shard number; everything
/// else is in the plan.
pub fn render(plan: &PlanFile, format: PlanFormat, command: &ShardCommand) -> String {
    match format {
        PlanFormat::Github => one_line(&github(plan)),
        PlanFormat::Buildkite => pretty(&buildkite(plan, command)),
        PlanFormat::Slurm => slurm(plan),
        PlanFormat::Json => pretty(&github(plan)["include"]),
    }
}

fn one_line(value: &Value) -> String {
    format!("{value}\n")
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

fn github(plan: &PlanFile) -> Value {
    let shards = plan.shards.iter().map(|shard| {
        json!({
            "shard": shard.shard,
            "shards": plan.shards.len(),
            "runner": shard.runner,
            "minutes": minutes(shard.seconds.0),
            "benchmarks": shard.benchmarks.len(),
        })
    });
    json!({ "include": shards.collect::<Vec<_>>() })
}

fn buildkite(plan: &PlanFile, command: &ShardCommand) -> Value {
    let file = shell_word(&command.plan);
    // An agent starts in a fresh checkout. The planning step uploads the plan, and each agent downloads it
    // into the given folder, under the path that it was uploaded with, without a leading `/`.
    let (below, into) = match command.plan.strip_prefix('/') {
        Some(below) => (shell_word(below), "/"),
        None => (file.clone(), "."),
    };
    let fetch = format!("buildkite-agent artifact download {below} {into}");
    let steps = plan.shards.iter().map(|shard| {
        // A runner label becomes an agent tag: `queue=gpu`, or only the name of the queue.
        let agents = shard.runner.iter().map(|label| {
            let (key, value) = label.split_once('=').unwrap_or(("queue", label));
            (key.to_owned(), Value::from(value))
        });
        json!({
            "label": format!("benchgate shard {} of {}", shard.shard, plan.shards.len()),
            "key": format!("benchgate-shard-{}", shard.shard),
            "agents": agents.collect::<serde_json::Map<String, Value>>(),
            "command": format!("{fetch} && {}", command.measure(shard.shard)),
            "artifact_paths": format!("shard-{}.json", shard.shard),
        })
    });
    let mut steps: Vec<Value> = steps.collect();
    let keys: Vec<Value> = steps.iter().map(|step| step["key"].clone()).collect();
    steps.push(json!({
        "label": "benchgate merge",
        "depends_on": keys.iter().map(|key| json!({"step": key, "allow_failure": true})).collect::<Vec<_>>(),
        "command": format!(
            "{fetch} && buildkite-agent artifact download 'shard-*.json' . && \
             benchgate merge --plan {file} 'shard-*.json' --output run.json && benchgate compare run.json"
        ),
    }));
    json!({ "steps": steps })
}

/// One job array for each kind of runner, because all jobs of an array have the same requirements.
fn slurm(plan: &PlanFile) -> String {
    let mut kinds: Vec<(&[String], Vec<u32>, f64)> = Vec::new();
    for shard in &plan.shards {
        match kinds.iter_mut().find(|(runner, _, _)| *runner == shard.runner.as_slice()) {
            Some((_, numbers, most)) => {
                numbers.push(shard.shard);
                *most = most.max(shard.seconds.0);
            }
            None => kinds.push((&shard.runner, vec![shard.shard], shard.seconds.0)),
        }
    }
    let line = |(runner, numbers, most): &(&[String], Vec<u32>, f64)| {
        let array: Vec<String> = numbers.iter().map(u32::to_string).collect();
        // The line is not quoted, because it is used in `$(…)`, where the shell does not remove
        // quotes.
        let constraint =
            if runner.is_empty() { String::new() } else { format!(" --constraint={}", runner.join("&")) };
        // The limit is generous, because preparation also takes time, and a job that exceeds its
        // limit has no result.
        let limit = 30 + 2 * minutes(*most);
        format!("--array={}{constraint} --time={limit}\n", array.join(","))
    };
    kinds.iter().map(line).collect()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to a week of minutes")]
fn minutes(seconds: f64) -> u64 {
    const WEEK: f64 = 10_080.0;
    (seconds / 60.0).ceil().clamp(1.0, WEEK) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(loads: &[Load]) -> Vec<Vec<usize>> {
        loads.iter().map(|load| load.items.clone()).collect()
    }

    #[test]
    fn the_longest_benchmarks_are_placed_first() {
        let seconds = [(0, 7.0), (0, 1.0), (0, 5.0), (0, 4.0), (0, 3.0)];
        let loads = pack(&seconds, 1, Cut::Shards(2)).unwrap();
        assert_eq!(items(&loads), [vec![0, 4], vec![1, 2, 3]]);
        assert_eq!(loads.iter().map(|load| load.seconds).collect::<Vec<_>>(), [10.0, 10.0]);
    }

    #[test]
    fn a_shard_has_one_kind_of_runner_and_work_to_do() {
        let seconds = [(0, 1.0), (1, 30.0), (0, 1.0), (1, 30.0)];
        let loads = pack(&seconds, 2, Cut::Shards(9)).unwrap();
        assert_eq!(loads.len(), 4, "no shard is empty");
        let three = pack(&seconds, 2, Cut::Shards(3)).unwrap();
        assert_eq!(items(&three), [vec![0, 2], vec![1], vec![3]]);
        assert_eq!(pack(&seconds, 2, Cut::Shards(1)), Err(PackError::TooFewShards { shards: 1, kinds: 2 }));
    }

    #[test]
    fn a_limit_of_time_takes_as_few_shards_as_it_needs() {
        let seconds = [(0, 50.0), (0, 50.0), (0, 20.0), (0, 200.0)];
        assert_eq!(pack(&seconds, 1, Cut::Seconds(320.0)).unwrap().len(), 1);
        assert_eq!(pack(&seconds, 1, Cut::Seconds(200.0)).unwrap().len(), 2);
        // A benchmark is never divided.
        assert_eq!(pack(&seconds, 1, Cut::Seconds(60.0)).unwrap().len(), 4);
    }
}
