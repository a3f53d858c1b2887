//! Selects old sessions to remove.

use std::collections::{BTreeMap, BTreeSet};

use super::earlier;
use super::usable::measured;
use super::{BaselineFolder, Change, Encoding, Fault, Files, RunName, StoreError};

/// The result of pruning one baseline folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pruned {
    pub folder: String,
    encoding: Encoding,
    pub removed: Vec<RunName>,
    pub kept: usize,
}

impl Pruned {
    /// The change that removes the files.
    pub fn change(&self) -> Change {
        Change {
            add: Vec::new(),
            remove: self
                .removed
                .iter()
                .map(|name| format!("{}/{}", self.folder, name.file(self.encoding)))
                .collect(),
            message: format!(
                "baseline: prune {} to {}",
                self.folder,
                benchgate_core::model::counted(self.kept, "session")
            ),
        }
    }
}

/// Number of usable sessions that are kept for a benchmark whose newest one is quarantined. Equal to the number
/// that a gate uses by default: with fewer, a slowdown that is open could pass.
const GOOD: usize = 20;

/// Selects the runs of a baseline folder that can be removed: all except the newest `keep` readable
/// ones and those that are still needed:
/// - runs that an acceptance names, because the current history starts there;
/// - the first runs of all, after each acceptance and of each half month, because they show a gradual slowdown;
/// - the last good runs of each benchmark whose newest run is quarantined, because the next run is
///   compared with them.
///
/// Acceptances and newer files that can't be read are kept too; the latter are returned.
pub fn prunable(
    files: &dyn Files,
    folder: &str,
    keep: usize,
    now: jiff::Timestamp,
) -> Result<(Pruned, Vec<Fault>), StoreError> {
    let mut baseline = BaselineFolder::open_folder(files, folder.to_owned())?;
    baseline.end_acceptances(now);
    let BaselineFolder { acceptances, ended, .. } = &baseline;
    let accepted: BTreeSet<&str> =
        acceptances.iter().chain(ended).map(|(_, file)| file.from.as_str()).collect();
    let runs = baseline.runs(files)?.names;
    // The good runs of each benchmark among those that are kept, and whether its newest run is good.
    let mut seen: BTreeMap<String, (bool, usize)> = BTreeMap::new();
    let (mut newer, mut faults) = (0, Vec::new());
    let mut oldest_kept = runs.len();
    let newest: Vec<RunName> = runs.iter().rev().take(keep).cloned().collect();
    baseline.prefetch(files, &newest)?;
    for name in runs.iter().rev() {
        if newer == keep {
            break;
        }
        oldest_kept -= 1;
        let stored = match baseline.load(files, name)? {
            Ok(stored) => stored,
            Err(fault) => {
                faults.push(fault);
                continue;
            }
        };
        newer += 1;
        if newer == 1 {
            // A benchmark that is expected, but was not measured, has only its reason there.
            let expected = stored.file.quarantine.iter().filter_map(|reason| reason.benchmark.clone());
            seen.extend(expected.map(|benchmark| (benchmark, (false, 0))));
        }
        for (benchmark, usable) in measured(&stored, &baseline) {
            let (_, good) = seen.entry(benchmark.to_owned()).or_insert((usable, 0));
            *good += usize::from(usable);
        }
    }
    let open = seen.into_iter().filter(|(_, (is_good, good))| !is_good && *good < GOOD);
    let mut wanted: BTreeMap<String, usize> =
        open.map(|(benchmark, (_, good))| (benchmark, GOOD - good)).collect();
    let old = &runs[..oldest_kept];
    let mut last_good = BTreeSet::new();
    for name in old.iter().rev() {
        if wanted.is_empty() {
            break;
        }
        let Ok(stored) = baseline.load(files, name)? else { continue };
        for (benchmark, usable) in measured(&stored, &baseline) {
            if let Some(count) = wanted.get_mut(benchmark).filter(|_| usable) {
                *count -= 1;
                last_good.insert(name);
            }
        }
        wanted.retain(|_, count| *count > 0);
    }
    let first = earlier::first_sessions(&baseline, &runs);
    let old = old.iter().filter(|name| {
        !accepted.contains(name.as_str()) && !last_good.contains(name) && !first.contains(name)
    });
    let removed: Vec<RunName> = old.cloned().collect();
    let kept = runs.len() - removed.len();
    Ok((Pruned { folder: folder.to_owned(), encoding: baseline.encoding, removed, kept }, faults))
}
