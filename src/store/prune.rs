//! What may go: sessions beyond those that are asked to be kept.

use std::collections::BTreeSet;

use super::{Change, Files, RunName, Shelf, StoreError};

/// What pruning one shelf takes away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pruned {
    pub folder: String,
    pub removed: Vec<RunName>,
    pub kept: usize,
}

impl Pruned {
    /// The change that does it.
    pub fn change(&self) -> Change {
        Change {
            add: Vec::new(),
            remove: self.removed.iter().map(|name| format!("{}/{}", self.folder, name.file())).collect(),
            message: format!("baseline: prune {} to {} sessions", self.folder, self.kept),
        }
    }
}

/// The runs of a shelf beyond the newest `keep`. A run that an acceptance names is never among them: it
/// is where the present normal begins. Acceptances themselves stay.
///
/// # Errors
/// The place can't be read.
pub fn prunable(files: &dyn Files, folder: &str, keep: usize) -> Result<Pruned, StoreError> {
    let shelf = Shelf::of_folder(files, folder.to_owned())?;
    let accepted: BTreeSet<&str> = shelf.acceptances.iter().map(|(_, file)| file.from.as_str()).collect();
    let beyond = shelf.runs.len().saturating_sub(keep);
    let old = shelf.runs[..beyond].iter().filter(|name| !accepted.contains(name.as_str()));
    let removed: Vec<RunName> = old.cloned().collect();
    let kept = shelf.runs.len() - removed.len();
    Ok(Pruned { folder: folder.to_owned(), removed, kept })
}
