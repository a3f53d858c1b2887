//! Accepts a change: the results from one run on become the new baseline.

use crate::model::BenchmarkGlob;
use crate::record::{AcceptanceFile, AcceptanceSchema};

use super::{BaselineFolder, Change, Files, RunName, StoreError, name};

/// An acceptance: the change, the person and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acceptance {
    pub suite: String,
    pub testbed: String,
    /// The first accepted run: its name, or a prefix of its name or commit. `None` means the newest.
    pub from: Option<String>,
    /// Glob for benchmark names; `None` is every benchmark.
    pub benchmark: Option<String>,
    pub who: String,
    pub why: String,
    /// The last day on which it applies; `None` is unlimited.
    pub until: Option<jiff::civil::Date>,
    /// RFC 3339.
    pub created: String,
    /// The version of benchgate.
    pub benchgate: String,
}

/// Writes an acceptance next to the runs, and returns its path and the run it starts at.
///
/// # Errors
/// The run does not exist or is ambiguous; the glob is invalid; the place can't be written.
pub fn accept(files: &mut dyn Files, acceptance: Acceptance) -> Result<(String, RunName), StoreError> {
    // Later readers have only this record to understand why the level changed.
    if acceptance.why.trim().is_empty() {
        return Err(StoreError::Unusable("an acceptance needs a reason".to_owned()));
    }
    if acceptance.who.trim().is_empty() {
        return Err(StoreError::Unusable("an acceptance needs a name".to_owned()));
    }
    if let Some(glob) = &acceptance.benchmark {
        globset::Glob::new(glob)
            .map_err(|error| StoreError::Unusable(format!("`{glob}` is not a valid glob: {error}")))?;
    }
    let baseline = BaselineFolder::open(files, &acceptance.suite, &acceptance.testbed)?;
    let from = find(files, &baseline, acceptance.from.as_deref())?;
    let mut file = AcceptanceFile {
        schema: AcceptanceSchema,
        benchgate: acceptance.benchgate,
        sha256: String::new(),
        suite: acceptance.suite,
        testbed: acceptance.testbed,
        created: acceptance.created,
        from: from.to_string(),
        benchmark: acceptance.benchmark.map(BenchmarkGlob::new),
        who: acceptance.who,
        why: acceptance.why,
        until: acceptance.until.map(|day| day.to_string()),
    };
    file.seal();
    let named = name::acceptance_file(&file.created, &file.sha256)
        .ok_or_else(|| StoreError::Unusable(format!("{:?} is not a valid time", file.created)))?;
    let path = baseline.path(&named);
    let message = format!("baseline: accept {} on {} from {from}", file.suite, file.testbed);
    let bytes = baseline.encoding.write_acceptance(&file);
    let change = Change { add: vec![(path.clone(), bytes.clone())], remove: Vec::new(), message };
    match files.apply(&change) {
        // A request was repeated because its response was lost.
        Err(StoreError::Exists { .. }) if files.read(&path)? == bytes => Ok((path, from)),
        applied => applied.map(|()| (path, from)),
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
        // Several runs of one commit: accept from the first.
        several if several.windows(2).all(|two| two[0].commit() == two[1].commit()) => Ok(several[0].clone()),
        _ => Err(missing(&format!("run {wanted}"), "several runs match; give more digits")),
    }
}
