//! Merges shards into one run, or lists every reason why that is not possible.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use crate::gate::Policy;
use crate::model::hex;
use crate::record::{MergedShardRecord, PlanFile, PlannedShardRecord, RunFile};

use super::{complete, join, looks};

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
pub(super) fn defects(plan: &PlanFile, policy: &Policy, file: &RunFile) -> Vec<String> {
    let Some(shard) = file.shard.as_ref().and_then(|shard| plan.shard(shard.shard)) else {
        return vec!["it is not a shard of this plan".to_owned()];
    };
    let found = complete::check(plan, shard, file);
    if found.is_empty() { looks::check(plan, policy, file) } else { found }
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
