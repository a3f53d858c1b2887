//! Reads everything and says what is wrong with it.

use std::collections::BTreeMap;

use super::{Fault, Files, Shelf, StoreError, shelves};

/// What a whole baseline holds, and what of it can't be used.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verified {
    pub shelves: usize,
    pub runs: usize,
    pub acceptances: usize,
    pub quarantined: usize,
    pub faults: Vec<Fault>,
}

/// Files announced at once. A journey costs as much as some hundred files; holding all of them would not
/// be proportional any more.
const BATCH: usize = 256;

/// Checks every file: schema, hash, place, name, one file a session, and that acceptances start at a run
/// that is there.
///
/// # Errors
/// The place can't be read. What is wrong with a file is a [`Fault`].
pub fn verify(files: &dyn Files) -> Result<Verified, StoreError> {
    let mut verified = Verified::default();
    for (suite, testbed) in shelves(files)? {
        let shelf = Shelf::of_folder(files, format!("{suite}/{testbed}"))?;
        verified.shelves += 1;
        verified.acceptances += shelf.acceptances.len();
        verified.faults.extend(shelf.faults.iter().cloned());
        let mut sessions: BTreeMap<String, String> = BTreeMap::new();
        for batch in shelf.runs.chunks(BATCH) {
            files.announce(&batch.iter().map(|name| shelf.path(&name.file())).collect::<Vec<_>>())?;
            for name in batch {
                let stored = match shelf.load(files, name)? {
                    Ok(stored) => stored,
                    Err(fault) => {
                        verified.faults.push(fault);
                        continue;
                    }
                };
                verified.runs += 1;
                verified.quarantined += usize::from(!stored.file.quarantine.is_empty());
                let path = shelf.path(&name.file());
                if let Some(first) = sessions.insert(stored.file.session.clone(), path.clone()) {
                    verified
                        .faults
                        .push(Fault { path, why: format!("its session is stored in {first} too") });
                }
            }
        }
        for (file, acceptance) in &shelf.acceptances {
            if shelf.runs.iter().all(|name| name.as_str() != acceptance.from) {
                let why = format!("it starts at {}, which is not here", acceptance.from);
                verified.faults.push(Fault { path: shelf.path(file), why });
            }
        }
    }
    Ok(verified)
}
