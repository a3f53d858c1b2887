//! Selects old sessions to remove.

use std::collections::BTreeSet;

use super::{BaselineFolder, Change, Encoding, Files, RunName, StoreError};

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
/// history starts there. Acceptances are kept too.
pub fn prunable(files: &dyn Files, folder: &str, keep: usize) -> Result<Pruned, StoreError> {
    let baseline = BaselineFolder::open_folder(files, folder.to_owned())?;
    let accepted: BTreeSet<&str> = baseline.acceptances.iter().map(|(_, file)| file.from.as_str()).collect();
    let runs = baseline.runs(files)?.names;
    let surplus = runs.len().saturating_sub(keep);
    let old = runs[..surplus].iter().filter(|name| !accepted.contains(name.as_str()));
    let removed: Vec<RunName> = old.cloned().collect();
    let kept = runs.len() - removed.len();
    Ok(Pruned { folder: folder.to_owned(), encoding: baseline.encoding, removed, kept })
}
