//! One more session for a baseline.

use crate::gate::{self, CompareOptions, Comparison, Policy};
use crate::model::{SideName, Testbed};
use crate::record::{BaselineFile, QuarantineRecord, RunFile};

use super::select::{Ask, Selection, history_for_gate};
use super::{Change, Files, RunName, Shelf, StoreError, quarantine, summarise};

/// Names that are tried for one run. A second session of a second already has its own hash in the name,
/// so one more try is what another writer can cost.
const TRIES: usize = 3;

/// What storing a run takes beside the run.
pub struct Writing<'a> {
    /// At most so many stored sessions judge the run.
    pub sessions: usize,
    /// The side that is stored.
    pub side: SideName,
    /// Judges whether the run is red against what is stored.
    pub policy: &'a Policy,
    pub options: CompareOptions,
    /// Where the run lies in history; its `suite` and `testbed` are those of the run.
    pub lineage: &'a dyn Fn(&str) -> super::Lineage,
    pub now: jiff::Timestamp,
}

/// A run that is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Updated {
    /// Path of the file inside the baseline.
    pub path: String,
    /// Why it, or a benchmark of it, is not learned from. Empty where all of it is.
    pub quarantine: Vec<QuarantineRecord>,
    /// It was there already; nothing was written.
    pub already: bool,
    /// The run against the sessions that were there, where there were any.
    pub comparison: Option<Comparison>,
    /// Files of the shelf that can't be used.
    pub faults: Vec<super::Fault>,
}

/// Adds a side of a run. The same run a second time changes nothing.
///
/// # Errors
/// A run that can't be tied to a suite, a testbed and a time; a place that can't be read or written.
pub fn update(files: &mut dyn Files, run: &RunFile, writing: &Writing<'_>) -> Result<Updated, StoreError> {
    let side = writing.side;
    let unusable = |what: &str| StoreError::Unusable(what.to_owned());
    let head = run.runs("run.json").into_iter().find(|(name, _)| *name == side).map(|(_, head)| head);
    let head = head.ok_or_else(|| StoreError::Unusable(format!("it has no side {side}")))?;
    let testbed = Testbed::from(&run.testbed);
    if testbed.id.is_empty() {
        return Err(unusable("its testbed has no fingerprint, so nothing could be compared with it"));
    }
    if run.suite.is_empty() {
        return Err(unusable("its suite has no name"));
    }
    let record = run.side(side).ok_or_else(|| unusable("it has no such side"))?;
    let name = RunName::new(&run.created, record.commit.as_deref())
        .ok_or_else(|| unusable("its commit is not one"))?;
    let shelf = Shelf::open(files, &run.suite, &testbed.id)?;
    if let Some((path, file)) = already(files, &shelf, run, &name)? {
        let quarantine = file.quarantine;
        return Ok(Updated { path, quarantine, already: true, comparison: None, faults: shelf.faults });
    }
    let ask = Ask {
        suite: &run.suite,
        testbed: &testbed,
        sessions: writing.sessions,
        // Whoever adds a session has ended the staleness.
        stale_days: u32::MAX,
        lineage: writing.lineage,
        now: writing.now,
    };
    let (comparison, faults) = match history_for_gate(files, &ask)? {
        Selection::Found(history) => {
            let comparison =
                gate::compare_with_history(&head, &history.runs, writing.policy, &writing.options);
            (Some(comparison), history.faults)
        }
        Selection::Missing(missing) => (None, missing.faults),
    };
    let quarantine = quarantine::reasons(run, side, comparison.as_ref());
    let file = summarise(run, side, quarantine).ok_or_else(|| unusable("it has no such side"))?;
    let path = append(files, &shelf, &name, &file)?;
    Ok(Updated { path, quarantine: file.quarantine, already: false, comparison, faults })
}

/// The file of this session, where it is stored: a run that is stored twice would count twice.
fn already(
    files: &dyn Files,
    shelf: &Shelf,
    run: &RunFile,
    name: &RunName,
) -> Result<Option<(String, BaselineFile)>, StoreError> {
    for candidate in shelf.runs.iter().filter(|known| known.as_str().starts_with(name.as_str())) {
        if let Ok(stored) = shelf.load(files, candidate)?
            && stored.file.session == run.session
        {
            return Ok(Some((shelf.path(&candidate.file()), stored.file)));
        }
    }
    Ok(None)
}

fn append(
    files: &mut dyn Files,
    shelf: &Shelf,
    name: &RunName,
    file: &BaselineFile,
) -> Result<String, StoreError> {
    let mut name = name.clone();
    let mut tries = 0;
    loop {
        let path = shelf.path(&name.file());
        let message = format!("baseline: {} on {}, {name}", file.suite, file.testbed.id);
        let change = Change { add: vec![(path.clone(), file.to_json())], remove: Vec::new(), message };
        tries += 1;
        match files.apply(&change) {
            Ok(()) => return Ok(path),
            // Another session of the same second and commit; both are kept.
            Err(StoreError::Exists { .. }) if tries < TRIES => name = name.beside(&file.sha256),
            Err(error) => return Err(error),
        }
    }
}
