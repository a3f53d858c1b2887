//! Lists the names of a baseline's runs, newest first, only as far as they are needed.

use jiff::Timestamp;

use super::folder::{BaselineFolder, Fault};
use super::{Files, RunName, StoreError, name};

/// An iterator over runs, newest first. A period of a remote store is only requested when the newer ones are
/// used up.
pub struct Newest<'a> {
    files: &'a dyn Files,
    folder: &'a BaselineFolder,
    /// Recent periods, oldest first, which are listed without asking which periods exist.
    recent: Vec<String>,
    /// The oldest of the initial `recent` periods. Only periods before it count as earlier ones.
    since: Option<String>,
    /// The earlier periods that were not listed yet, oldest first; `None` until they are requested.
    earlier: Option<Vec<String>>,
    /// The remaining runs of the period that was listed last, oldest first.
    listed: Vec<RunName>,
    /// Files in the listed periods that are neither acceptances nor runs of that period.
    pub faults: Vec<Fault>,
}

/// Every run of a baseline folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Runs {
    /// Names of the runs, oldest first.
    pub names: Vec<RunName>,
    /// Files that are neither runs nor acceptances.
    pub faults: Vec<Fault>,
}

impl BaselineFolder {
    /// Lists the runs, newest first.
    pub fn newest<'a>(&'a self, files: &'a dyn Files) -> Newest<'a> {
        let (listed, faults) = (Vec::new(), Vec::new());
        Newest { files, folder: self, recent: Vec::new(), since: None, earlier: None, listed, faults }
    }

    /// Lists the runs, newest first, without periods that begin long after `now`. As long as the recent
    /// periods are enough, a remote store is not asked for the others.
    pub fn newest_at<'a>(&'a self, files: &'a dyn Files, now: Timestamp) -> Newest<'a> {
        let recent = files.recent_periods(now);
        Newest { since: recent.first().cloned(), recent, ..self.newest(files) }
    }

    /// The newest `count` runs, oldest first.
    pub fn newest_runs(&self, files: &dyn Files, count: usize) -> Result<Runs, StoreError> {
        let mut newest = self.newest(files);
        let mut names = newest.by_ref().take(count).collect::<Result<Vec<_>, _>>()?;
        names.reverse();
        Ok(Runs { names, faults: newest.faults })
    }

    /// All runs. For a remote store, this lists every period and takes a request for each thousand runs.
    pub fn runs(&self, files: &dyn Files) -> Result<Runs, StoreError> {
        self.newest_runs(files, usize::MAX)
    }

    /// The run with this name, and those whose names begin with it: other sessions of the same commit and
    /// second.
    pub(super) fn runs_like(&self, files: &dyn Files, name: &RunName) -> Result<Vec<RunName>, StoreError> {
        let names = files.names_in(&self.folder, &files.period_of(name))?;
        let runs = names.iter().filter_map(|file| RunName::parse(file, self.encoding));
        Ok(runs.filter(|known| known.as_str().starts_with(name.as_str())).collect())
    }
}

impl Newest<'_> {
    /// The newest period that was not listed yet.
    fn next_period(&mut self) -> Result<Option<String>, StoreError> {
        if let Some(period) = self.recent.pop() {
            return Ok(Some(period));
        }
        if self.earlier.is_none() {
            let mut periods = self.files.periods(&self.folder.folder)?;
            if let Some(since) = &self.since {
                periods.retain(|period| period < since);
            }
            self.earlier = Some(periods);
        }
        Ok(self.earlier.as_mut().and_then(Vec::pop))
    }

    /// Lists the newest remaining period. Returns `false` if there is none.
    fn list(&mut self) -> Result<bool, StoreError> {
        let Some(period) = self.next_period()? else { return Ok(false) };
        for file in self.files.names_in(&self.folder.folder, &period)? {
            match RunName::parse(&file, self.folder.encoding) {
                Some(name) if self.files.period_of(&name) == period => self.listed.push(name),
                None if name::is_acceptance(&file) => {}
                _ => self.faults.push(Fault {
                    path: self.folder.path(&file),
                    why: "it is not named like a run".to_owned(),
                }),
            }
        }
        Ok(true)
    }
}

impl Iterator for Newest<'_> {
    type Item = Result<RunName, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.listed.is_empty() {
            match self.list() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
        self.listed.pop().map(Ok)
    }
}
