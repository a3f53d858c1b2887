//! The side of a run that stored sessions judge.

use crate::gate::{self, Policy};
use crate::model::{Run, SideName};
use crate::record::RunFile;

/// A side of a run, with its ratios to the anchor if one was measured. `None` if the run has no such side. `label` is how
/// the reader names the file.
pub fn judged_side(run: &RunFile, side: SideName, label: &str, policy: &Policy) -> Option<Run> {
    let (_, head) = run.runs(label).into_iter().find(|(name, _)| *name == side)?;
    Some(match run.anchor(label) {
        Some(anchor) => gate::anchored(&anchor, head, policy),
        None => head,
    })
}
