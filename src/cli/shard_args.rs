//! `--plan FILE --shard K`: the part of a suite that one machine measures.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::config::Config;
use crate::files;
use crate::model::{BenchmarkName, SideName, counted, hex};
use crate::pipeline::{Shard, SideInput};
use crate::record::PlanFile;
use crate::toolchain::Lock;

use super::{CliError, reading};

/// Options of every command that measures.
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
    fn planned(&self) -> Option<(&Path, u32)> {
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
        let plan = read(path)?;
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
        self.planned().map_or(Ok(0), |(path, _)| read(path).map(|plan| plan.rows))
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

pub fn read(path: &Path) -> Result<PlanFile, CliError> {
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
