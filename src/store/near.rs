//! Testbeds that are almost the one that is asked for. They are offered and never used: a driver or a
//! clock is enough to move every number.

use std::collections::BTreeMap;

use crate::model::Testbed;

use super::{Files, Shelf, StoreError, folder_name};

/// Facts that may differ before another machine stops being worth a mention.
const MOST_DIFFERENCES: usize = 3;
/// Testbeds worth a mention.
const MOST_OFFERS: usize = 3;

/// A testbed of the same suite that differs in little.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearMiss {
    pub testbed: String,
    /// Sessions stored for it.
    pub sessions: usize,
    /// What differs, as `fact: there / here`.
    pub differences: Vec<String>,
}

/// The testbeds of a suite that differ least, nearest first. One file of each is read.
pub(super) fn near_misses(
    files: &dyn Files,
    suite: &str,
    wanted: &Testbed,
) -> Result<Vec<NearMiss>, StoreError> {
    let folder = folder_name(suite);
    let mut found = Vec::new();
    for testbed in files.folders(&folder)? {
        if testbed == folder_name(&wanted.id) {
            continue;
        }
        let shelf = Shelf::of_folder(files, format!("{folder}/{testbed}"))?;
        let Some(newest) = shelf.runs.last() else { continue };
        let Ok(stored) = shelf.load(files, newest)? else { continue };
        let differences = differences(&stored.file.testbed.facts, &wanted.facts);
        if differences.len() <= MOST_DIFFERENCES {
            found.push(NearMiss { testbed: stored.file.testbed.id, sessions: shelf.runs.len(), differences });
        }
    }
    found.sort_by(|a, b| (a.differences.len(), &a.testbed).cmp(&(b.differences.len(), &b.testbed)));
    found.truncate(MOST_OFFERS);
    Ok(found)
}

fn differences(there: &BTreeMap<String, String>, here: &BTreeMap<String, String>) -> Vec<String> {
    let keys = there.keys().chain(here.keys().filter(|key| !there.contains_key(*key)));
    let differing = keys.filter(|key| there.get(*key) != here.get(*key));
    let shown = |facts: &BTreeMap<String, String>, key: &String| {
        facts.get(key).cloned().unwrap_or_else(|| "unknown".to_owned())
    };
    differing.map(|key| format!("{key}: {} / {}", shown(there, key), shown(here, key))).collect()
}
