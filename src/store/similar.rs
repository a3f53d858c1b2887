//! Testbeds that differ in only a few facts from the requested one. They are listed in messages but never used, because a
//! different driver or clock changes every result.

use std::collections::BTreeMap;

use crate::model::Testbed;

use super::{BaselineFolder, Files, LoadedFile, RunName, StoreError, folder_name};

/// Maximum number of differing facts of a testbed that is listed.
const MAX_DIFFERENCES: usize = 3;
/// Maximum number of listed testbeds.
const MAX_OFFERED: usize = 3;

/// A testbed that has results of the same suite and differs in few facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimilarTestbed {
    pub testbed: String,
    /// The newest session of this testbed.
    pub newest: RunName,
    /// The differing facts, as `fact: there / here`.
    pub differences: Vec<String>,
}

/// Finds the testbeds of a suite that differ least, most similar first. Reads one file of each.
pub(super) fn similar_testbeds(
    files: &dyn Files,
    suite: &str,
    wanted: &Testbed,
) -> Result<Vec<SimilarTestbed>, StoreError> {
    let folder = folder_name(suite);
    let mut found = Vec::new();
    for testbed in files.folders(&folder)? {
        if testbed == folder_name(&wanted.id) {
            continue;
        }
        let baseline = BaselineFolder::open_folder(files, format!("{folder}/{testbed}"))?;
        let Some(newest) = baseline.newest(files).next().transpose()? else { continue };
        let LoadedFile::Run(stored) = baseline.load(files, &newest)? else { continue };
        let differences = differences(&stored.file.testbed.facts, &wanted.facts);
        if differences.len() <= MAX_DIFFERENCES {
            found.push(SimilarTestbed { testbed: stored.file.testbed.id, newest, differences });
        }
    }
    found.sort_by(|a, b| (a.differences.len(), &a.testbed).cmp(&(b.differences.len(), &b.testbed)));
    found.truncate(MAX_OFFERED);
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
