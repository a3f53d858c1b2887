//! Accepts a change, so that the results from a certain run on become the new baseline.

use std::collections::BTreeSet;

use jiff::Timestamp;

use benchgate_core::model::BenchmarkGlob;
use benchgate_core::record::{AcceptanceFile, QuarantineCause, QuarantineRecord};

use super::usable::{absent, held, usable};
use super::{BaselineFolder, Change, Fault, Files, RunName, StoreError, Stored, name};

/// Completes an acceptance, writes it next to the runs, and returns its path and the first accepted run. `from` is
/// the name of that run, or a prefix of its name or commit; `None` means the newest run.
///
/// # Errors
/// The run does not exist, is ambiguous or can't be read; the glob is invalid; the baseline can't be written.
pub fn accept(
    files: &mut dyn Files,
    mut file: AcceptanceFile,
    from: Option<&str>,
) -> Result<(String, RunName), StoreError> {
    // The reason is required because later readers have only this record to understand why the level changed.
    if file.why.trim().is_empty() {
        return Err(StoreError::Unusable("an acceptance needs a reason".to_owned()));
    }
    if file.who.trim().is_empty() {
        return Err(StoreError::Unusable("an acceptance needs a name".to_owned()));
    }
    if let Some(glob) = file.benchmark.as_ref().map(BenchmarkGlob::as_str) {
        globset::Glob::new(glob)
            .map_err(|error| StoreError::Unusable(format!("`{glob}` is not a valid glob: {error}")))?;
    }
    let baseline = BaselineFolder::open(files, &file.suite, &file.testbed)?;
    let from = find(files, &baseline, from)?;
    file.from = from.to_string();
    file.later_runs = Some(later_runs(files, &baseline, &from)?);
    file.not_measured = not_measured(files, &baseline, &from, &file)?;
    file.seal();
    let named = name::acceptance_file(&file.created, &file.sha256)
        .ok_or_else(|| StoreError::Unusable(format!("{:?} is not a valid time", file.created)))?;
    let path = baseline.path(&named);
    let message = format!("baseline: accept {} on {} from {from}", file.suite, file.testbed);
    let bytes = baseline.encoding.write_acceptance(&file);
    let change = Change { add: vec![(path.clone(), bytes.clone())], remove: Vec::new(), message };
    match files.apply(&change) {
        // This acceptance exists already: the request was repeated because its response was lost.
        Err(StoreError::Exists { .. }) if files.read(&path)? == bytes => Ok((path, from)),
        applied => applied.map(|()| (path, from)),
    }
}

/// The benchmarks of the acceptance that its first run should have measured but did not. Accepting other changes
/// must not erase their history, or they could return with any value. Only a glob that matches nothing else
/// accepts that they are gone.
fn not_measured(
    files: &dyn Files,
    baseline: &BaselineFolder,
    from: &RunName,
    acceptance: &AcceptanceFile,
) -> Result<Vec<String>, StoreError> {
    let stored = match baseline.load(files, from)? {
        Ok(stored) => stored,
        // Withdrawing must always be possible.
        Err(_) if acceptance.is_withdrawal() => return Ok(Vec::new()),
        Err(Fault { path, why }) => return Err(StoreError::Unreadable { path, why }),
    };
    let mut covered = stored.file.benchmarks.iter().filter(|it| acceptance.covers(Some(&it.name)));
    if acceptance.benchmark.is_some() && covered.next().is_none() {
        return Ok(Vec::new());
    }
    let mut names = absent(&stored, &baseline.acceptances);
    names.retain(|name| acceptance.covers(Some(name)));
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// The stored runs after the first accepted one, oldest first. One that is measured but not stored yet is not among
/// them, nor one that this machine's clock, if it is ahead, takes for an earlier one.
fn later_runs(
    files: &dyn Files,
    baseline: &BaselineFolder,
    from: &RunName,
) -> Result<Vec<String>, StoreError> {
    let newest = baseline.newest(files);
    let later = newest.take_while(|name| name.as_ref().map_or(true, |name| name > from));
    let mut names = later.map(|name| name.map(|name| name.to_string())).collect::<Result<Vec<_>, _>>()?;
    names.reverse();
    Ok(names)
}

/// The effect of an acceptance on the sessions from the first accepted one on, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AcceptedSessions {
    /// Sessions that the acceptance releases from quarantine, entirely or for some benchmarks.
    pub released: Vec<RunName>,
    /// Released results that are wrong, failed, unverified or incomplete, with the reasons.
    pub faulty: Vec<(RunName, Vec<QuarantineRecord>)>,
    /// Sessions in which accepted benchmarks stay in quarantine, with the reasons.
    pub held: Vec<(RunName, Vec<QuarantineRecord>)>,
    /// Benchmarks that the first accepted session did not measure, and that the acceptance leaves out.
    pub not_measured: Vec<String>,
    /// Number of sessions from the first accepted one on.
    pub accepted: usize,
    /// Quarantined sessions that an earlier acceptance released.
    pub already: Vec<RunName>,
    /// Quarantined sessions that precede another acceptance, with which a new history starts.
    pub past: Vec<RunName>,
    /// Baseline files that can't be used.
    pub faults: Vec<Fault>,
}

impl AcceptedSessions {
    /// Determines the effect on the sessions from `from` on. `path` is the path of the acceptance, and
    /// `before` is the baseline without it.
    ///
    /// # Errors
    /// The baseline can't be read.
    pub fn read(
        files: &dyn Files,
        before: &BaselineFolder,
        path: &str,
        from: &RunName,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let mut after = BaselineFolder::open_folder(files, before.folder.clone())?;
        after.end_acceptances(now);
        let is_this = |(file, _): &&(String, AcceptanceFile)| after.path(file) == path;
        let Some((_, acceptance)) = after.acceptances.iter().find(is_this) else {
            return Ok(Self::default());
        };
        let mut newest = after.newest(files);
        let mut names = Vec::new();
        for name in newest.by_ref() {
            let name = name?;
            if name < *from {
                break;
            }
            names.push(name);
        }
        names.reverse();
        let faults = std::mem::take(&mut newest.faults);
        let not_measured = acceptance.not_measured.clone();
        let mut read = Self { faults, not_measured, accepted: names.len(), ..Self::default() };
        for loaded in after.load_all(files, &names) {
            match loaded? {
                Ok(stored) => read.add(&stored, before, &after, acceptance),
                Err(fault) => read.faults.push(fault),
            }
        }
        Ok(read)
    }

    fn add(
        &mut self,
        stored: &Stored,
        before: &BaselineFolder,
        after: &BaselineFolder,
        acceptance: &AcceptanceFile,
    ) {
        let earlier = usable(stored, before);
        let now = usable(stored, after);
        let measured = stored.file.benchmarks.iter().map(|benchmark| benchmark.name.as_str());
        let absent = stored.file.quarantine.iter().filter_map(|reason| reason.benchmark.as_deref());
        let names: BTreeSet<&str> = measured.chain(absent).collect();
        let covered: Vec<&str> = names.into_iter().filter(|name| acceptance.covers(Some(name))).collect();
        let reasons = |acceptances: &[(String, AcceptanceFile)]| {
            let mut found: Vec<QuarantineRecord> = Vec::new();
            for reason in covered.iter().flat_map(|name| held(stored, name, acceptances)) {
                if !found.contains(reason) {
                    found.push(reason.clone());
                }
            }
            found
        };
        let left = reasons(&after.acceptances);
        let mut lifted = reasons(&before.acceptances);
        lifted.retain(|reason| !left.contains(reason));
        let benchmarks = stored.file.benchmarks.iter().zip(&now);
        let is_past = benchmarks
            .into_iter()
            .any(|(benchmark, usable)| !usable && covered.contains(&benchmark.name.as_str()));
        // A benchmark that was not measured also has a reason, but no result that becomes usable.
        let is_absence = left.is_empty() && !lifted.is_empty() && !is_past;
        let is_released = is_absence || earlier.iter().zip(&now).any(|(earlier, now)| !earlier && *now);
        let mut faulty = lifted;
        faulty.retain(|reason| {
            !matches!(reason.cause, QuarantineCause::Regressed | QuarantineCause::Undecided)
        });
        let name = || stored.name.clone();
        if is_released {
            self.released.push(name());
        } else if left.is_empty() && !reasons(&[]).is_empty() {
            if is_past { self.past.push(name()) } else { self.already.push(name()) }
        }
        if is_released && !faulty.is_empty() {
            self.faulty.push((name(), faulty));
        }
        if !left.is_empty() {
            self.held.push((name(), left));
        }
    }
}

impl BaselineFolder {
    /// Finds a run by its name, or by a prefix of its name or commit.
    ///
    /// # Errors
    /// No run matches, or runs of several commits match.
    pub fn find(&self, files: &dyn Files, wanted: &str) -> Result<RunName, StoreError> {
        find(files, self, Some(wanted))
    }
}

fn find(files: &dyn Files, baseline: &BaselineFolder, wanted: Option<&str>) -> Result<RunName, StoreError> {
    let missing =
        |what: &str, why: &str| StoreError::NoSuchRun { what: what.to_owned(), why: why.to_owned() };
    let Some(wanted) = wanted else {
        let newest = baseline.newest(files).next().transpose()?;
        return newest.ok_or_else(|| missing("a run to accept", &format!("{} is empty", baseline.folder)));
    };
    let wanted = wanted.strip_suffix(".json").or_else(|| wanted.strip_suffix(".parquet")).unwrap_or(wanted);
    let runs = baseline.runs(files)?.names;
    if let Some(exact) = runs.iter().find(|name| name.as_str() == wanted) {
        return Ok(exact.clone());
    }
    let fits = |name: &&RunName| {
        name.as_str().starts_with(wanted) || name.commit().is_some_and(|commit| commit.starts_with(wanted))
    };
    let found: Vec<&RunName> = runs.iter().filter(fits).collect();
    match found.as_slice() {
        [one] => Ok((*one).clone()),
        [] => Err(missing(
            &format!("run {wanted}"),
            &format!("{} contains no run of that name or commit", baseline.folder),
        )),
        // If all matching runs are of one commit, the acceptance starts with the first of them.
        several if several.windows(2).all(|two| two[0].commit() == two[1].commit()) => Ok(several[0].clone()),
        _ => Err(missing(&format!("run {wanted}"), "several runs match; give more digits")),
    }
}
