//! Renders a plan in the format of the system that runs it. Each job only gets its shard number; everything
//! else is in the plan.

use serde_json::{Value, json};

use crate::record::PlanFile;

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
            Some(base) => format!("gate --base {}", quoted(base)),
            None => "run".to_owned(),
        };
        let (config, plan) = (quoted(&self.config), quoted(&self.plan));
        format!(
            "benchgate {command} --config {config} --plan {plan} --shard {shard} --run shard-{shard}.json"
        )
    }
}

/// A word, quoted for a shell.
fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=,:@~^".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

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
    let file = quoted(&command.plan);
    // An agent starts in a fresh checkout. The planning step uploads the plan, and each agent downloads it
    // into the given folder, under the path that it was uploaded with, without a leading `/`.
    let (below, into) = match command.plan.strip_prefix('/') {
        Some(below) => (quoted(below), "/"),
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
