//! Shards in, one run out, or every reason why not.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use crate::gate::Policy;
use crate::model::hex;
use crate::record::{MergedShardRecord, PlanFile, RunFile};

use super::{complete, join, looks};

/// A whole run, and what is worth knowing about its shards.
#[derive(Debug, Clone)]
pub struct Merged {
    pub file: RunFile,
    pub notes: Vec<String>,
}

/// Why shards are not a whole run: each missing, repeated or foreign part by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotMergeable(pub Vec<String>);

/// One file of a shard, as its reader names it.
pub type Labelled = (String, RunFile);

/// Joins the shards of a plan. The result does not depend on the order of the files. `policy` is the plan's.
///
/// # Errors
/// Anything missing, repeated, or not of this plan.
pub fn merge(plan: &PlanFile, policy: &Policy, mut files: Vec<Labelled>) -> Result<Merged, NotMergeable> {
    files.sort_by_cached_key(|(label, file)| {
        (file.shard.clone().map(|s| (s.shard, s.attempt)), label.clone())
    });
    let (chosen, notes, mut wrong) = choose(plan, files);
    for (number, (label, file)) in &chosen {
        if let Some(shard) = plan.shard(*number) {
            let mut found = complete::check(plan, shard, file);
            if found.is_empty() {
                found = looks::check(plan, policy, file);
            }
            wrong.extend(found.into_iter().map(|what| format!("{label}: {what}")));
        }
    }
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

/// By number, the file of each shard that counts.
type Chosen = BTreeMap<u32, Labelled>;

/// Of each shard the newest attempt. `files` are sorted by shard and attempt.
fn choose(plan: &PlanFile, files: Vec<Labelled>) -> (Chosen, Vec<String>, Vec<String>) {
    let (mut chosen, mut notes, mut wrong) = (Chosen::new(), Vec::new(), Vec::new());
    for (label, mut file) in files {
        let Some(shard) = file.shard.clone() else {
            wrong.push(format!("{label} is not a shard of any plan"));
            continue;
        };
        let number = shard.shard;
        if shard.plan != plan.sha256 || plan.shard(number).is_none() {
            wrong.push(format!("{label} is shard {number} of another plan"));
            continue;
        }
        if !file.has_shard_seal() {
            wrong.push(format!("{label} is not as it was written: its content does not match its digest"));
            continue;
        }
        if let Some((known, older)) = chosen.get(&number) {
            let attempt = older.shard.as_ref().map_or(0, |shard| shard.attempt);
            if attempt == shard.attempt && *older == file {
                notes.push(format!("{label} holds the same as {known}"));
                continue;
            }
            if attempt == shard.attempt {
                wrong.push(format!(
                    "{known} and {label} both are attempt {attempt} at shard {number}, and they differ"
                ));
                continue;
            }
            notes.push(format!(
                "{label} replaces {known}: attempt {} at shard {number} after attempt {attempt}",
                shard.attempt
            ));
        }
        chosen.insert(number, (label, file));
    }
    for shard in &plan.shards {
        if !chosen.contains_key(&shard.shard) {
            wrong.push(format!("shard {} is missing: {}", shard.shard, shard.benchmarks.join(", ")));
        }
    }
    (chosen, notes, wrong)
}

/// A name for what was measured, from the names of its parts.
fn session(origins: &[MergedShardRecord]) -> String {
    let mut hash = Sha256::new();
    for origin in origins {
        hash.update(format!("{} {} {}\n", origin.plan, origin.shard, origin.session));
    }
    format!("merged-{}", hex(&hash.finalize()[..8]))
}
