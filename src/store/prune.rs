//! Selects old sessions to remove.

use std::collections::BTreeSet;

use super::select::measured;
use super::{BaselineFolder, Change, Encoding, Files, LoadedFile, RunName, StoreError};

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
            message: format!("baseline: prune {} to {} sessions", self.folder, self.kept),
        }
    }
}

/// The runs of a baseline folder except the newest `keep`. Runs that an acceptance names are kept, because the current
/// history starts there, and of each benchmark whose newest runs are all quarantined the last good one, which the next
/// run is compared with. Acceptances are kept too.
pub fn prunable(files: &dyn Files, folder: &str, keep: usize) -> Result<Pruned, StoreError> {
    let baseline = BaselineFolder::open_folder(files, folder.to_owned())?;
    let accepted: BTreeSet<&str> = baseline.acceptances.iter().map(|(_, file)| file.from.as_str()).collect();
    let runs = baseline.runs(files)?.names;
    let (old, new) = runs.split_at(runs.len().saturating_sub(keep));
    baseline.prefetch(files, new)?;
    let (mut good, mut wanted) = (BTreeSet::new(), BTreeSet::new());
    for name in new {
        let LoadedFile::Run(stored) = baseline.load(files, name)? else { continue };
        for (benchmark, usable) in measured(&stored, &baseline.acceptances) {
            if usable { &mut good } else { &mut wanted }.insert(benchmark.to_owned());
        }
    }
    wanted.retain(|benchmark| !good.contains(benchmark));
    let mut last_good = BTreeSet::new();
    for name in old.iter().rev() {
        if wanted.is_empty() {
            break;
        }
        let LoadedFile::Run(stored) = baseline.load(files, name)? else { continue };
        for (benchmark, usable) in measured(&stored, &baseline.acceptances) {
            if usable && wanted.remove(benchmark) {
                last_good.insert(name);
            }
        }
    }
    let old = old.iter().filter(|name| !accepted.contains(name.as_str()) && !last_good.contains(name));
    let removed: Vec<RunName> = old.cloned().collect();
    let kept = runs.len() - removed.len();
    Ok(Pruned { folder: folder.to_owned(), encoding: baseline.encoding, removed, kept })
}
