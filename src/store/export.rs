//! Copies a baseline from one place to another, for example from a branch to an object store.

use std::collections::BTreeSet;

use super::update::append;
use super::{
    BaselineFolder, Change, Fault, Files, LoadedFile, RunName, StoreError, Stored, baseline_folders,
};

/// Numbers of copied files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExportedSessions {
    pub sessions: usize,
    pub acceptances: usize,
    /// Number of sessions and acceptances that existed already.
    pub already: usize,
    /// Files that can't be used, and are therefore not copied.
    pub faults: Vec<Fault>,
}

/// Number of sessions that are written together.
const AT_ONCE: usize = 64;

/// Copies every session and acceptance that `to` lacks, under the same names. The next call continues an
/// interrupted copy.
pub fn export(from: &dyn Files, to: &mut dyn Files) -> Result<ExportedSessions, StoreError> {
    let mut exported = ExportedSessions::default();
    for (suite, testbed) in baseline_folders(from)? {
        let folder = format!("{suite}/{testbed}");
        let baseline = BaselineFolder::open_folder(from, folder.clone())?;
        let runs = baseline.runs(from)?;
        exported.faults.extend(baseline.faults.iter().chain(&runs.faults).cloned());
        let there = BaselineFolder::open_folder(to, folder)?;
        let known: BTreeSet<RunName> = there.runs(to)?.names.into_iter().collect();
        let (old, new): (Vec<RunName>, Vec<RunName>) =
            runs.names.into_iter().partition(|name| known.contains(name));
        exported.already += old.len();
        for batch in new.chunks(AT_ONCE) {
            baseline.prefetch(from, batch)?;
            let mut sessions = Vec::new();
            for name in batch {
                match baseline.load(from, name)? {
                    LoadedFile::Run(stored) => sessions.push(stored),
                    LoadedFile::Unusable(fault) => exported.faults.push(fault),
                }
            }
            let (written, known) = copy(to, &there, &sessions)?;
            exported.sessions += written;
            exported.already += known;
        }
        // Acceptances are written after the sessions, because each names a session.
        for (file, acceptance) in &baseline.acceptances {
            let path = there.path(file);
            let message = format!("baseline: copy {path}");
            let add = vec![(path, there.encoding.write_acceptance(acceptance))];
            match to.apply(&Change { add, remove: Vec::new(), message }) {
                Ok(()) => exported.acceptances += 1,
                Err(StoreError::Exists { .. }) => exported.already += 1,
                Err(error) => return Err(error),
            }
        }
    }
    Ok(exported)
}

/// Writes sessions. Returns how many were written, and how many another process wrote at the same time.
fn copy(
    to: &mut dyn Files,
    there: &BaselineFolder,
    sessions: &[Stored],
) -> Result<(usize, usize), StoreError> {
    let mut add = Vec::new();
    for stored in sessions {
        let bytes = there.encoding.write(&stored.file);
        let bytes = bytes.map_err(|error| StoreError::Unusable(error.to_string()))?;
        add.push((there.run_path(&stored.name), bytes));
    }
    let message =
        format!("baseline: copy {} of {}", crate::model::counted(sessions.len(), "session"), there.folder);
    match to.apply(&Change { add, remove: Vec::new(), message }) {
        Ok(()) => return Ok((sessions.len(), 0)),
        // Another process stored one of the sessions, so they are written one by one.
        Err(StoreError::Exists { .. }) => {}
        Err(error) => return Err(error),
    }
    let mut known = 0;
    for stored in sessions {
        let (_, already) = append(to, there, &stored.name, &stored.file)?;
        known += usize::from(already);
    }
    Ok((sessions.len() - known, known))
}
