//! Options of the commands that measure: other backends, repetitions, dumps, result files to append to, and the part of a
//! suite that one machine measures.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use strum::VariantArray;

use crate::config::{Backend, BackendKind, Config};
use crate::model::{BenchmarkName, SideName, counted, hex};
use crate::pipeline::{Axes, CollectKind, DumpKind, Extras, Shard, SideInput};
use crate::record::{PlanFile, RunFile};
use crate::toolchain::Lock;
use crate::{files, ingest};

use super::{CliError, Terminal, choices, paths, reading};

/// Other backends, and the files of a run in addition to run.json.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Other backends")]
pub struct BackendArgs {
    /// Also run the models on this backend, as a [[backend]] table does; repeatable
    #[arg(long, value_name = "NAME", value_parser = choices::named(BackendKind::VARIANTS, Into::into), conflicts_with = "half")]
    backend: Vec<BackendKind>,
    /// Select experiments by axis value; repeatable, also for several values of one axis. Axes: backend, test,
    /// batch-size, dtype, matmul-precision. `default` is the model's own value; `backend=iree` leaves out other
    /// backends
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "half")]
    axis: Vec<String>,
    /// Repetitions in each process [default: the key `repetitions` of [measure]]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    repeat: Option<u32>,
    /// Iterations of one repetition, instead of as many as fill `min-time` of [measure]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    iterations_per_run: Option<u32>,
    /// Write profiles, counters and compiler IR of the other backends; repeatable, or separated by commas
    #[arg(long, value_name = "WHAT", conflicts_with = "half", value_delimiter = ',', value_parser = choices::documented::<DumpKind>())]
    dump: Vec<DumpKind>,
    /// Folder for the files of --dump [default: dumps in the working folder]
    #[arg(long, value_name = "FOLDER", requires = "dump")]
    dump_dir: Option<PathBuf>,
    /// Also collect these counters and operator times from the other backends, into their metrics in run.json
    /// and results.jsonl; repeatable, or separated by commas
    #[arg(long, value_name = "WHAT", conflicts_with = "half", value_delimiter = ',', value_parser = choices::documented::<CollectKind>())]
    collect: Vec<CollectKind>,
    /// Append to results.jsonl, latency.csv and iree_latency.csv in this folder
    #[arg(long, value_name = "FOLDER", conflicts_with = "until")]
    append_results: Option<PathBuf>,
}

impl BackendArgs {
    /// Applies the settings that the command line overrides.
    pub fn apply(&self, config: &mut Config) {
        for kind in &self.backend {
            if !config.backends.iter().any(|known| known.kind == *kind) {
                config.backends.push(Backend::new(*kind));
            }
        }
        if self.repeat.is_some() {
            config.measure.repetitions = self.repeat;
        }
        if self.iterations_per_run.is_some() {
            config.measure.iterations = self.iterations_per_run;
        }
        for backend in &mut config.backends {
            backend.repetitions = self.repeat.or(backend.repetitions);
            backend.iterations = self.iterations_per_run.or(backend.iterations);
        }
    }

    pub fn axes(&self) -> Result<Axes, CliError> {
        Axes::new(&self.axis).map_err(|why| {
            CliError::usage(format!("failed to read --axis: {why}"))
                .hint("for example --axis test=train --axis dtype=bf16")
        })
    }

    /// The extra files that the options request. `work` is the working folder.
    pub fn extras(&self, work: &Path) -> Result<Extras, CliError> {
        let folder = self.dump_dir.clone().unwrap_or_else(|| work.join("dumps"));
        // The path must be absolute, because the processes that write there run in other folders.
        let folder = paths::absolute("the folder ", &folder)?;
        Ok(Extras { dump: self.dump.clone(), folder, collect: self.collect.clone() })
    }

    /// Appends the run to the files that existing data frames and dashboards read.
    pub fn append(&self, file: &RunFile, terminal: &Terminal) -> Result<(), CliError> {
        let Some(folder) = &self.append_results else { return Ok(()) };
        let failed = |path: &Path, error: std::io::Error| {
            CliError::failed(format!("failed to append to {}: {error}", path.display()))
                .hint("the run itself is stored; name a folder that can be written to")
        };
        std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
        for appended in ingest::appended(file) {
            let path = folder.join(appended.name);
            append(&path, &appended.header, &appended.lines).map_err(|error| failed(&path, error))?;
        }
        terminal.note(&format!("appended the run to the files in {}", folder.display()));
        Ok(())
    }
}

/// Appends all lines in a single write, so that a reader or a concurrent run never sees half a line.
fn append(path: &Path, header: &str, lines: &str) -> std::io::Result<()> {
    use std::io::Write;
    if lines.is_empty() {
        return Ok(());
    }
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
    let text = if file.metadata()?.len() == 0 { format!("{header}{lines}") } else { lines.to_owned() };
    file.write_all(text.as_bytes())
}

/// Options of every command that measures: the part of a suite that one machine measures.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ShardArgs {
    /// Plan file written by `benchgate plan`
    #[arg(long, value_name = "FILE", requires = "shard", conflicts_with = "filter")]
    plan: Option<PathBuf>,
    /// Number of the shard of the plan to measure here, from 1
    #[arg(long, value_name = "K", requires = "plan")]
    shard: Option<u32>,
    /// Number of this attempt at the shard; a later attempt replaces an earlier one [default: the number of the job's
    /// attempt, or 1]
    #[arg(long, value_name = "N", requires = "plan", env = "BENCHGATE_ATTEMPT")]
    attempt: Option<u32>,
}

/// Variables with a CI system's count of attempts, and the number to add because some count restarts only.
const ATTEMPTS: [(&str, u32); 3] =
    [("GITHUB_RUN_ATTEMPT", 0), ("BUILDKITE_RETRY_COUNT", 1), ("SLURM_RESTART_COUNT", 1)];

impl ShardArgs {
    pub fn planned(&self) -> Option<(&Path, u32)> {
        self.plan.as_deref().zip(self.shard)
    }

    /// Rejects `--plan` for a command or suite that can't be sharded; `why` is the reason.
    pub fn refuse(&self, why: &str) -> Result<(), CliError> {
        match self.plan {
            None => Ok(()),
            Some(_) => Err(CliError::usage(format!("failed to use --plan: {why}"))),
        }
    }

    /// The shard to measure here; `None` for the whole suite.
    ///
    /// # Errors
    /// A plan that can't be read, has no such shard, or was not made for these sides.
    pub fn of_suite(&self, sides: &[SideInput]) -> Result<Option<Shard>, CliError> {
        let Some((path, number)) = self.planned() else { return Ok(None) };
        let plan = read_plan(path)?;
        let refused = |what: &str| {
            CliError::usage(format!("failed to use {}: {what}", path.display())).hint(
                "create the plan again with `benchgate plan`, from this configuration and these commits",
            )
        };
        let names: Vec<BenchmarkName> =
            plan.benchmarks.iter().map(|benchmark| BenchmarkName::new(&benchmark.name)).collect();
        if plan.suite_sha256 != suite_digest(sides, &names)? {
            return Err(refused("configuration, lock, commit or sides differ from the plan's"));
        }
        let lead = sides.iter().find(|side| side.name == SideName::Head).or(sides.first());
        if lead.is_none_or(|side| side.config.policy.stored() != plan.gate) {
            return Err(refused("the policy differs from the plan's"));
        }
        let blocks = lead.map(|side| side.config.policy.sequential);
        if blocks
            .is_none_or(|blocks| (blocks.min_blocks, blocks.max_blocks) != (plan.min_blocks, plan.max_blocks))
        {
            return Err(refused("the number of blocks differs from the plan's"));
        }
        if lead.and_then(|side| time_budget_ns(&side.config)) != plan.time_budget_ns {
            return Err(refused("the time budget differs from the plan's"));
        }
        let all = counted(plan.shards.len(), "shard");
        let shard = Shard::new(&plan, number, self.attempt());
        shard.map(Some).ok_or_else(|| refused(&format!("it has {all}, but no shard {number}")))
    }

    /// The number of rows of the whole suite that can fail it; 0 if the suite is not sharded.
    pub fn rows(&self) -> Result<u32, CliError> {
        self.planned().map_or(Ok(0), |(path, _)| read_plan(path).map(|plan| plan.rows))
    }

    /// A note that the verdict covers only a shard of the suite.
    pub fn note(&self) -> Option<String> {
        let (_, number) = self.planned()?;
        Some(format!("this is shard {number}; `benchgate merge` joins all shards to the result of the suite"))
    }

    fn attempt(&self) -> u32 {
        let engines = ATTEMPTS.iter().filter_map(|(name, add)| {
            let count: u32 = std::env::var(name).ok()?.parse().ok()?;
            count.checked_add(*add)
        });
        self.attempt.or_else(|| engines.max()).unwrap_or(1)
    }
}

pub fn read_plan(path: &Path) -> Result<PlanFile, CliError> {
    PlanFile::from_slice(&reading::file(path)?).map_err(|error| {
        CliError::input(format!("failed to read {}: {error}", path.display()))
            .hint("plans are written by `benchgate plan` and described by schemas/plan.json")
    })
}

/// The time budget in the form that a plan stores.
pub fn time_budget_ns(config: &Config) -> Option<u64> {
    config.measure.time_budget.map(|budget| u64::try_from(budget.as_nanos()).unwrap_or(u64::MAX))
}

/// A digest that identifies a suite: it covers the files that configure and pin it, the commits, and the
/// benchmarks.
pub fn suite_digest(sides: &[SideInput], names: &[BenchmarkName]) -> Result<String, CliError> {
    let mut hash = Sha256::new();
    for side in sides {
        let config = &side.config;
        let lock = Lock::path_for(&config.file);
        let policy = config.policy_file.as_ref().map(|file| config.root.join(file));
        let lock = lock.exists().then(|| sha256(&lock)).transpose()?;
        let policy = policy.map(|file| sha256(&file)).transpose()?;
        let content = serde_json::json!({
            "side": side.name.as_str(),
            "config": sha256(&config.file)?,
            "lock": lock,
            "policy": policy,
            "commit": side.commit,
            "flags": side.side.flags,
            "run-flags": side.side.run_flags,
        });
        hash.update(format!("{content}\n"));
    }
    for name in names {
        hash.update(format!("{name:?}\n"));
    }
    Ok(hex(&hash.finalize()))
}

fn sha256(path: &Path) -> Result<String, CliError> {
    files::sha256_of(path)
        .map_err(|error| CliError::usage(format!("failed to read {}: {error}", path.display())))
}
