//! The baseline files of one suite on one testbed, and the check of a whole baseline. Files are loaded one by
//! one.

use std::collections::BTreeMap;

use jiff::Timestamp;

use benchgate_core::model::Testbed;
use benchgate_core::record::{AcceptanceFile, BaselineFile, QuarantineRecord, RecordError};

use super::name::{RunName, acceptance_file};
use super::quarantine::is_released;
use super::{Encoding, Files, StoreError, folder_name, name};

/// A file that can't be used, and the reason. Faults are always reported; the file is otherwise ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub path: String,
    pub why: String,
}

/// A run that was loaded from a baseline.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    pub name: RunName,
    pub file: BaselineFile,
}

/// The baseline of one suite on one testbed.
#[derive(Debug, Clone, PartialEq)]
pub struct BaselineFolder {
    /// `<suite>/<testbed>`.
    pub folder: String,
    /// The encoding of the baseline's sessions.
    pub encoding: Encoding,
    /// The acceptances in force, oldest first, each with its file name. Until [`Self::end_acceptances`] is
    /// called, these are all acceptances.
    pub acceptances: Vec<(String, AcceptanceFile)>,
    /// The acceptances that have expired or were withdrawn: sessions stored under them are not part of the
    /// baseline.
    pub ended: Vec<(String, AcceptanceFile)>,
    /// Acceptances that can't be read.
    pub faults: Vec<Fault>,
}

/// The folder names of every suite and testbed in a baseline.
pub fn baseline_folders(files: &dyn Files) -> Result<Vec<(String, String)>, StoreError> {
    let mut found = Vec::new();
    for suite in files.folders("")? {
        for testbed in files.folders(&suite)? {
            found.push((suite.clone(), testbed));
        }
    }
    Ok(found)
}

impl BaselineFolder {
    /// Opens the baseline of a suite on a testbed and reads its acceptances, which are few. A missing folder is empty.
    pub fn open(files: &dyn Files, suite: &str, testbed: &str) -> Result<Self, StoreError> {
        Self::open_folder(files, format!("{}/{}", folder_name(suite), folder_name(testbed)))
    }

    /// Opens a path `<suite>/<testbed>` of folder names.
    pub fn open_folder(files: &dyn Files, folder: String) -> Result<Self, StoreError> {
        let encoding = files.encoding();
        let mut baseline =
            Self { folder, encoding, acceptances: Vec::new(), ended: Vec::new(), faults: Vec::new() };
        let accepted = files.acceptances(&baseline.folder)?;
        files.prefetch(&accepted.iter().map(|file| baseline.path(file)).collect::<Vec<_>>())?;
        let mut read = Vec::new();
        for file in accepted {
            let path = baseline.path(&file);
            match AcceptanceFile::from_slice(&files.read(&path)?) {
                Ok(acceptance) => match baseline.misplaced_acceptance(&file, &acceptance) {
                    None => read.push((file, acceptance)),
                    Some(why) => baseline.faults.push(Fault { path, why }),
                },
                Err(error) => baseline.faults.push(fault(path, &error)),
            }
        }
        // Acceptances are not sorted by file name, because file names have times in whole seconds
        // only.
        read.sort_by_cached_key(|(_, acceptance)| acceptance.created.parse::<Timestamp>().ok());
        for (file, acceptance) in read {
            baseline.add_acceptance(file, acceptance);
        }
        Ok(baseline)
    }

    /// Adds an acceptance that is newer than those before. It replaces an older one with the same
    /// benchmarks and the same first session, so an acceptance can be extended or withdrawn.
    fn add_acceptance(&mut self, file: String, new: AcceptanceFile) {
        self.acceptances.retain(|(_, old)| (&old.from, &old.benchmark) != (&new.from, &new.benchmark));
        self.acceptances.push((file, new));
    }

    /// The path of a file in this folder.
    pub fn path(&self, file: &str) -> String {
        format!("{}/{file}", self.folder)
    }

    /// The path of a run in this folder.
    pub fn run_path(&self, name: &RunName) -> String {
        self.path(&name.file(self.encoding))
    }

    /// Announces the runs that will be loaded next.
    pub fn prefetch(&self, files: &dyn Files, names: &[RunName]) -> Result<(), StoreError> {
        files.prefetch(&names.iter().map(|name| self.run_path(name)).collect::<Vec<_>>())
    }

    /// Loads one run. Returns an error only if the baseline can't be read; a file with unusable content is a
    /// fault.
    pub fn load(&self, files: &dyn Files, name: &RunName) -> Result<Result<Stored, Fault>, StoreError> {
        let path = self.run_path(name);
        let read = self.encoding.read(&files.read(&path)?).map_err(|error| fault(path, &error));
        Ok(read.and_then(|file| self.checked(name, file)))
    }

    /// Loads runs one by one, and prefetches them in batches.
    pub fn load_all<'a>(
        &'a self,
        files: &'a dyn Files,
        names: &'a [RunName],
    ) -> impl Iterator<Item = Result<Result<Stored, Fault>, StoreError>> + 'a {
        names.chunks(BATCH).flat_map(move |batch| {
            let failed = self.prefetch(files, batch).err().map(Err);
            failed.into_iter().chain(batch.iter().map(move |name| self.load(files, name)))
        })
    }

    /// Accepts a file if its path matches its content.
    pub fn checked(&self, name: &RunName, file: BaselineFile) -> Result<Stored, Fault> {
        match self.misplaced(name, &file) {
            None => Ok(Stored { name: name.clone(), file }),
            Some(why) => Err(Fault { path: self.run_path(name), why }),
        }
    }

    /// The reasons why a stored session or one of its benchmarks is still excluded: the reasons of
    /// its quarantine that no acceptance lifted.
    pub fn held(&self, stored: &Stored) -> Vec<QuarantineRecord> {
        let reasons = stored.file.quarantine.iter();
        reasons
            .filter(|reason| {
                !is_released(reason, reason.benchmark.as_deref(), &stored.name, &self.acceptances)
            })
            .cloned()
            .collect()
    }

    /// The reason why a file is in the wrong folder for its suite and testbed, if it is.
    fn elsewhere(&self, suite: &str, testbed: &str) -> Option<String> {
        let belongs = format!("{}/{}", folder_name(suite), folder_name(testbed));
        (belongs != self.folder).then(|| format!("it belongs in {belongs}"))
    }

    /// The reason why an acceptance's folder or name does not match its content, if so.
    fn misplaced_acceptance(&self, name: &str, file: &AcceptanceFile) -> Option<String> {
        let named = || {
            let named = acceptance_file(&file.created, &file.sha256)?;
            (named != name).then(|| format!("its name should be {named} according to its content"))
        };
        self.elsewhere(&file.suite, &file.testbed).or_else(named)
    }

    /// The reason why a file's folder or name does not match its content, if so.
    fn misplaced(&self, name: &RunName, file: &BaselineFile) -> Option<String> {
        if let Some(why) = self.elsewhere(&file.suite, &file.testbed.id) {
            return Some(why);
        }
        let Some(named) = RunName::new(&file.created, file.commit.as_deref()) else {
            return Some("its commit is not a valid commit".to_owned());
        };
        let same = name == &named || *name == named.with_hash(&file.sha256);
        (!same).then(|| format!("its name should be {named} according to its content"))
    }
}

fn fault(path: String, error: &RecordError) -> Fault {
    Fault { path, why: error.to_string() }
}

/// The contents of a whole baseline, and the files that can't be used.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verified {
    pub baselines: usize,
    pub runs: usize,
    pub acceptances: usize,
    pub quarantined: usize,
    pub faults: Vec<Fault>,
}

/// Number of files that are prefetched together. Starting a fetch takes as long as transferring some hundred
/// files, but fetching all files at once would use too much memory.
pub const BATCH: usize = 256;

/// Checks every file: its schema, hash, folder and name, that each session has one file, and that each
/// acceptance starts with an existing run.
///
/// # Errors
/// The baseline can't be read. A problem with a single file is a [`Fault`].
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
        for loaded in baseline.load_all(files, &runs.names) {
            let stored = match loaded? {
                Ok(stored) => stored,
                Err(fault) => {
                    verified.faults.push(fault);
                    continue;
                }
            };
            verified.runs += 1;
            verified.quarantined += usize::from(!stored.file.quarantine.is_empty());
            let path = baseline.run_path(&stored.name);
            if let Some(first) = sessions.insert(stored.file.session, path.clone()) {
                verified.faults.push(Fault { path, why: format!("its session is also stored in {first}") });
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

/// An iterator over runs, newest first, which lists names only as far as they are needed: a period of a remote store is
/// only requested when the newer ones are used up.
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

/// Maximum number of differing facts of a testbed that is listed.
const MAX_DIFFERENCES: usize = 3;
/// Maximum number of listed testbeds.
const MAX_OFFERED: usize = 3;

/// A testbed that has results of the same suite and differs in few facts. It is listed in messages but never used,
/// because a different driver or clock changes every result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimilarTestbed {
    pub testbed: String,
    /// The newest session of this testbed.
    pub newest: RunName,
    /// The differing facts, as `fact: there / here`.
    pub differences: Vec<String>,
}

/// Finds the testbeds of a suite that differ least, most similar first. Reads one file of each.
pub(super) fn similar_testbeds(
    files: &dyn Files,
    suite: &str,
    wanted: &Testbed,
) -> Result<Vec<SimilarTestbed>, StoreError> {
    let folder = folder_name(suite);
    let mut found = Vec::new();
    for testbed in files.folders(&folder)? {
        if testbed == folder_name(&wanted.id) {
            continue;
        }
        let baseline = BaselineFolder::open_folder(files, format!("{folder}/{testbed}"))?;
        let Some(newest) = baseline.newest(files).next().transpose()? else { continue };
        let Ok(stored) = baseline.load(files, &newest)? else { continue };
        let differences = differences(&stored.file.testbed.facts, &wanted.facts);
        if differences.len() <= MAX_DIFFERENCES {
            found.push(SimilarTestbed { testbed: stored.file.testbed.id, newest, differences });
        }
    }
    found.sort_by(|a, b| (a.differences.len(), &a.testbed).cmp(&(b.differences.len(), &b.testbed)));
    found.truncate(MAX_OFFERED);
    Ok(found)
}

fn differences(there: &BTreeMap<String, String>, here: &BTreeMap<String, String>) -> Vec<String> {
    let keys = there.keys().chain(here.keys().filter(|key| !there.contains_key(*key)));
    let differing = keys.filter(|key| there.get(*key) != here.get(*key));
    let shown = |facts: &BTreeMap<String, String>, key: &String| {
        facts.get(key).cloned().unwrap_or_else(|| "unknown".to_owned())
    };
    differing.map(|key| format!("{key}: {} / {}", shown(there, key), shown(here, key))).collect()
}
