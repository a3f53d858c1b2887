//! The names of a baseline's runs, newest first, listed as far as they are needed.

use jiff::Timestamp;

use super::folder::{BaselineFolder, Fault};
use super::{Files, RunName, StoreError, name};

/// Runs from the newest to the oldest. A period of a remote store is only requested when the newer ones are used up.
pub struct Newest<'a> {
    files: &'a dyn Files,
    folder: &'a BaselineFolder,
    /// Periods to list without asking which there are, oldest first.
    recent: Vec<String>,
    /// The first of these sessions.
    since: Option<String>,
    /// All earlier periods that were not listed yet, oldest first; `None` before they are requested.
    earlier: Option<Vec<String>>,
    /// Runs of the period that was listed last, oldest first.
    listed: Vec<RunName>,
    /// Files that don't belong here, in the periods that were listed.
    pub faults: Vec<Fault>,
}

/// Every run of a baseline folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Runs {
    /// Oldest first.
    pub names: Vec<RunName>,
    /// Files that don't belong here.
    pub faults: Vec<Fault>,
}

impl BaselineFolder {
    /// The runs, newest first.
    pub fn newest<'a>(&'a self, files: &'a dyn Files) -> Newest<'a> {
        let (listed, faults) = (Vec::new(), Vec::new());
        Newest { files, folder: self, recent: Vec::new(), since: None, earlier: None, listed, faults }
    }

    /// The runs, newest first, without those of periods that begin long after `now`. The periods of a remote store are
    /// not listed while the recent ones are enough.
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

    /// All runs. A remote place lists every period, which takes a request for each thousand runs.
    pub fn runs(&self, files: &dyn Files) -> Result<Runs, StoreError> {
        self.newest_runs(files, usize::MAX)
    }

    /// The run of this name and those with the same beginning, which are other sessions of the same second and commit.
    pub(super) fn runs_like(&self, files: &dyn Files, name: &RunName) -> Result<Vec<RunName>, StoreError> {
        let names = files.names_in(&self.folder, &files.period_of(name))?;
        let runs = names.iter().filter_map(|file| RunName::parse(file, self.encoding));
        Ok(runs.filter(|known| known.as_str().starts_with(name.as_str())).collect())
    }
}

impl Newest<'_> {
    /// The newest period that was not listed.
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

    /// Lists the newest remaining period. `false` without one.
    fn list(&mut self) -> Result<bool, StoreError> {
        let Some(period) = self.next_period()? else { return Ok(false) };
        for file in self.files.names_in(&self.folder.folder, &period)? {
            match RunName::parse(&file, self.folder.encoding) {
                Some(name) if self.files.period_of(&name) == period => self.listed.push(name),
                None if name::is_acceptance(&file) => {}
                _ => self.faults.push(Fault {
                    path: self.folder.path(&file),
                    why: "its name is not that of a run".to_owned(),
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
