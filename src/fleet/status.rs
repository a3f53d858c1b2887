//! The state of a plan's shards: which are done, and which have to run (again).

use std::fmt;

use crate::gate::Policy;
use crate::model::counted;
use crate::record::{OutcomeStatus, PlanFile, RunFile};

use super::merge::{Labelled, choose, defects, sort};

/// Every shard of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetStatus {
    pub shards: Vec<ShardStatus>,
    /// Files that belong to no shard of this plan.
    pub others: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardStatus {
    pub shard: u32,
    pub benchmarks: usize,
    pub state: ShardState,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShardState {
    /// The shard's file can be merged. A benchmark that failed counts as a result.
    Done {
        attempt: u32,
        failed: usize,
    },
    /// The shard's file can't be merged, for these reasons.
    Refused(Vec<String>),
    Missing,
}

/// The state of each shard, by the rules of `merge`. `policy` is the plan's.
pub fn status(plan: &PlanFile, policy: &Policy, mut files: Vec<Labelled>) -> FleetStatus {
    sort(&mut files);
    let chosen = choose(plan, files);
    let of_shard =
        |shard| chosen.wrong.iter().filter(move |(of, _)| *of == shard).map(|(_, why)| why.clone());
    let state = |shard: u32| {
        let mut wrong: Vec<String> = of_shard(Some(shard)).collect();
        let file = chosen.shards.get(&shard);
        if let Some((label, file)) = file {
            wrong.extend(defects(plan, policy, file).into_iter().map(|why| format!("{label}: {why}")));
        }
        match file {
            _ if !wrong.is_empty() => ShardState::Refused(wrong),
            None => ShardState::Missing,
            Some((_, file)) => ShardState::Done {
                attempt: file.shard.as_ref().map_or(1, |shard| shard.attempt),
                failed: failed(file),
            },
        }
    };
    let shards = plan.shards.iter().map(|planned| ShardStatus {
        shard: planned.shard,
        benchmarks: planned.benchmarks.len(),
        state: state(planned.shard),
    });
    FleetStatus { shards: shards.collect(), others: of_shard(None).collect() }
}

/// The number of benchmarks that failed on a side.
fn failed(file: &RunFile) -> usize {
    let failed = file.sides.iter().flat_map(|side| &side.benchmarks);
    let failed = failed.filter(|record| record.outcome.status == OutcomeStatus::Failed);
    failed.map(|record| &record.name).collect::<std::collections::BTreeSet<_>>().len()
}

impl FleetStatus {
    /// Shards that have to run before the plan can be merged.
    pub fn to_run(&self) -> Vec<u32> {
        let open = self.shards.iter().filter(|shard| !matches!(shard.state, ShardState::Done { .. }));
        open.map(|shard| shard.shard).collect()
    }

    /// Returns whether `merge` would join these files.
    pub fn is_complete(&self) -> bool {
        self.others.is_empty() && self.to_run().is_empty()
    }

    /// One sentence about all shards.
    pub fn summary(&self) -> String {
        let open = self.to_run();
        let done = self.shards.len() - open.len();
        if open.is_empty() {
            return format!("all {} done", counted(done, "shard"));
        }
        let open: Vec<String> = open.iter().map(u32::to_string).collect();
        format!("{done} of {} done; to run: {}", counted(self.shards.len(), "shard"), open.join(","))
    }
}

impl fmt::Display for ShardStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let benchmarks = counted(self.benchmarks, "benchmark");
        write!(f, "shard {}: ", self.shard)?;
        match &self.state {
            ShardState::Done { attempt, failed } => {
                write!(f, "done, {benchmarks}")?;
                if *failed > 0 {
                    write!(f, ", {failed} failed")?;
                }
                if *attempt > 1 {
                    write!(f, ", attempt {attempt}")?;
                }
                Ok(())
            }
            ShardState::Refused(why) => write!(f, "can't be merged: {}", why.join("; ")),
            ShardState::Missing => write!(f, "missing, {benchmarks}"),
        }
    }
}
