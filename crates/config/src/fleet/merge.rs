//! Merges shards into one run, or lists every reason why that is not possible.
//!
//! The state of a plan's shards: which are done, and which have to run (again).

use std::collections::BTreeMap;
use std::fmt;

use sha2::{Digest, Sha256};

use benchgate_core::model::{counted, hex};
use benchgate_core::record::{MergedShardRecord, OutcomeStatus, PlanFile, PlannedShardRecord, RunFile};
use benchgate_gate::Policy;

use super::{complete, join};

/// A complete run, and notes about its shards.
#[derive(Debug, Clone)]
pub struct Merged {
    pub file: RunFile,
    pub notes: Vec<String>,
}

/// The reasons why shards don't form a complete run; each names a missing, repeated or foreign part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotMergeable(pub Vec<String>);

/// A shard's file with the name under which it was read.
pub type Labelled = (String, RunFile);

/// Joins the shards of a plan. The result does not depend on the order of the files. `policy` is the plan's.
///
/// # Errors
/// A part is missing, repeated or not part of this plan.
pub fn merge(plan: &PlanFile, policy: &Policy, mut files: Vec<Labelled>) -> Result<Merged, NotMergeable> {
    sort(&mut files);
    let Chosen { shards: chosen, notes, wrong } = choose(plan, files);
    let mut wrong: Vec<String> = wrong.into_iter().map(|(_, what)| what).collect();
    for (label, file) in chosen.values() {
        wrong.extend(defects(plan, policy, file).into_iter().map(|what| format!("{label}: {what}")));
    }
    wrong.extend(
        missing(plan, &chosen)
            .map(|shard| format!("shard {} is missing: {}", shard.shard, shard.benchmarks.join(", "))),
    );
    if !wrong.is_empty() {
        return Err(NotMergeable(wrong));
    }
    let (files, attempts): (Vec<RunFile>, Vec<u32>) = chosen
        .into_values()
        .map(|(_, file)| {
            let attempt = file.shard.as_ref().map_or(1, |shard| shard.attempt);
            (file, attempt)
        })
        .unzip();
    let origins: Vec<MergedShardRecord> = (1..)
        .zip(files.iter().zip(attempts))
        .map(|(shard, (file, attempt))| MergedShardRecord {
            plan: plan.sha256.clone(),
            shard,
            attempt,
            session: file.session.clone(),
            testbed: file.testbed.clone(),
        })
        .collect();
    let session = session(&origins);
    let file = join::join(plan, files, origins, session).map_err(NotMergeable)?;
    Ok(Merged { file, notes })
}

pub(super) fn sort(files: &mut [Labelled]) {
    files.sort_by_cached_key(|(label, file)| {
        (file.shard.clone().map(|s| (s.shard, s.attempt)), label.clone())
    });
}

/// The reasons why a file is not a valid result for a shard of the plan; empty if the file is
/// valid.
fn defects(plan: &PlanFile, policy: &Policy, file: &RunFile) -> Vec<String> {
    let Some(shard) = file.shard.as_ref().and_then(|shard| plan.shard(shard.shard)) else {
        return vec!["it is not a shard of this plan".to_owned()];
    };
    let found = complete::check(plan, shard, file);
    if found.is_empty() { complete::check_looks(plan, policy, file) } else { found }
}

fn missing<'a>(
    plan: &'a PlanFile,
    chosen: &'a BTreeMap<u32, Labelled>,
) -> impl Iterator<Item = &'a PlannedShardRecord> {
    plan.shards.iter().filter(|shard| !chosen.contains_key(&shard.shard))
}

/// The files that were chosen for a plan's shards.
#[derive(Default)]
pub(super) struct Chosen {
    /// The file that counts for each shard, by shard number.
    pub shards: BTreeMap<u32, Labelled>,
    notes: Vec<String>,
    /// Reasons why files can't be used, each with the shard of this plan that the file claims to be.
    pub wrong: Vec<(Option<u32>, String)>,
}

/// Chooses the newest attempt of each shard. `files` must be sorted by shard and attempt.
pub(super) fn choose(plan: &PlanFile, files: Vec<Labelled>) -> Chosen {
    let mut found = Chosen::default();
    let Chosen { shards: chosen, notes, wrong } = &mut found;
    for (label, mut file) in files {
        let Some(shard) = file.shard.clone() else {
            wrong.push((None, format!("{label} is not a shard of any plan")));
            continue;
        };
        let number = shard.shard;
        if shard.plan != plan.sha256 || plan.shard(number).is_none() {
            wrong.push((None, format!("{label} is shard {number} of another plan")));
            continue;
        }
        if !file.has_shard_seal() {
            let what = format!("{label} was changed: its content does not match its digest");
            wrong.push((Some(number), what));
            continue;
        }
        if let Some((known, older)) = chosen.get(&number) {
            let attempt = older.shard.as_ref().map_or(0, |shard| shard.attempt);
            if attempt == shard.attempt && *older == file {
                notes.push(format!("{label} is identical to {known}"));
                continue;
            }
            if attempt == shard.attempt {
                let what = format!(
                    "{known} and {label} are both attempt {attempt} of shard {number}, but they differ"
                );
                wrong.push((Some(number), what));
                continue;
            }
            notes.push(format!(
                "{label} replaces {known}: attempt {} at shard {number} after attempt {attempt}",
                shard.attempt
            ));
        }
        chosen.insert(number, (label, file));
    }
    found
}

/// A name for the merged session, derived from the names of its parts.
fn session(origins: &[MergedShardRecord]) -> String {
    let mut hash = Sha256::new();
    for origin in origins {
        hash.update(format!("{} {} {}\n", origin.plan, origin.shard, origin.session));
    }
    format!("merged-{}", hex(&hash.finalize()[..8]))
}

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
