//! Checks all files of a baseline.

use std::collections::BTreeMap;

use super::{BaselineFolder, Fault, Files, LoadedFile, StoreError, baseline_folders};

/// The contents of a whole baseline, and the files that can't be used.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verified {
    pub baselines: usize,
    pub runs: usize,
    pub acceptances: usize,
    pub quarantined: usize,
    pub faults: Vec<Fault>,
}

/// Number of files that are prefetched together. Starting a fetch costs as much as some hundred files; fetching all of
/// them at once would use too much memory.
pub const BATCH: usize = 256;

/// Checks every file: schema, hash, folder, name, one file per session, and that acceptances start at an existing
/// run.
///
/// # Errors
/// The place can't be read. A problem with a single file is a [`Fault`].
pub fn verify(files: &dyn Files) -> Result<Verified, StoreError> {
    let mut verified = Verified::default();
    for (suite, testbed) in baseline_folders(files)? {
        let baseline = BaselineFolder::open_folder(files, format!("{suite}/{testbed}"))?;
        verified.baselines += 1;
        verified.acceptances += baseline.acceptances.len();
        verified.faults.extend(baseline.faults.iter().cloned());
        let mut sessions: BTreeMap<String, String> = BTreeMap::new();
        let runs = baseline.runs(files)?;
        verified.faults.extend(runs.faults);
        for batch in runs.names.chunks(BATCH) {
            baseline.prefetch(files, batch)?;
            for name in batch {
                let stored = match baseline.load(files, name)? {
                    LoadedFile::Run(stored) => stored,
                    LoadedFile::Unusable(fault) => {
                        verified.faults.push(fault);
                        continue;
                    }
                };
                verified.runs += 1;
                verified.quarantined += usize::from(!stored.file.quarantine.is_empty());
                let path = baseline.run_path(name);
                if let Some(first) = sessions.insert(stored.file.session.clone(), path.clone()) {
                    verified
                        .faults
                        .push(Fault { path, why: format!("its session is also stored in {first}") });
                }
            }
        }
        for (file, acceptance) in &baseline.acceptances {
            if runs.names.iter().all(|name| name.as_str() != acceptance.from) {
                let why = format!("it starts at {}, which does not exist", acceptance.from);
                verified.faults.push(Fault { path: baseline.path(file), why });
            }
        }
    }
    Ok(verified)
}
