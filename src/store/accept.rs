//! A real change is the new normal.

use crate::record::{AcceptanceFile, AcceptanceSchema};

use super::{Change, Files, RunName, Shelf, StoreError, name};

/// Who accepts what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acceptance {
    pub suite: String,
    pub testbed: String,
    /// The first run of the new normal: its name, or the beginning of its name or commit. `None` is the
    /// newest.
    pub from: Option<String>,
    /// Glob over benchmark names; `None` is every benchmark.
    pub benchmark: Option<String>,
    pub who: String,
    pub why: String,
    /// The last day it holds; `None` is for good.
    pub until: Option<jiff::civil::Date>,
    /// When, RFC 3339.
    pub created: String,
    /// The version of benchgate.
    pub benchgate: String,
}

/// Writes an acceptance beside the runs, and returns its path and the run it starts at.
///
/// # Errors
/// No such run, or several; a glob that is none; a place that can't be written.
pub fn accept(files: &mut dyn Files, acceptance: Acceptance) -> Result<(String, RunName), StoreError> {
    // A later reader who finds the level changed has only this record.
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
    let shelf = Shelf::open(files, &acceptance.suite, &acceptance.testbed)?;
    let from = find(&shelf, acceptance.from.as_deref())?;
    let mut file = AcceptanceFile {
        schema: AcceptanceSchema,
        benchgate: acceptance.benchgate,
        sha256: String::new(),
        suite: acceptance.suite,
        testbed: acceptance.testbed,
        created: acceptance.created,
        from: from.to_string(),
        benchmark: acceptance.benchmark,
        who: acceptance.who,
        why: acceptance.why,
        until: acceptance.until.map(|day| day.to_string()),
    };
    file.seal();
    let named = name::acceptance_file(&file.created, &file.sha256)
        .ok_or_else(|| StoreError::Unusable(format!("{:?} is no time", file.created)))?;
    let path = shelf.path(&named);
    let message = format!("baseline: accept {} on {} from {from}", file.suite, file.testbed);
    files.apply(&Change { add: vec![(path.clone(), file.to_json())], remove: Vec::new(), message })?;
    Ok((path, from))
}

impl Shelf {
    /// The run that a person means: by name, by the beginning of the name, or by that of the commit.
    ///
    /// # Errors
    /// There is none, or there are several of different commits.
    pub fn find(&self, wanted: &str) -> Result<RunName, StoreError> {
        find(self, Some(wanted))
    }
}

fn find(shelf: &Shelf, wanted: Option<&str>) -> Result<RunName, StoreError> {
    let missing =
        |what: &str, why: &str| StoreError::NoSuchRun { what: what.to_owned(), why: why.to_owned() };
    let Some(wanted) = wanted else {
        let newest = shelf.runs.last().cloned();
        return newest.ok_or_else(|| missing("a run to accept", &format!("{} is empty", shelf.folder)));
    };
    let wanted = wanted.strip_suffix(".json").unwrap_or(wanted);
    if let Some(exact) = shelf.runs.iter().find(|name| name.as_str() == wanted) {
        return Ok(exact.clone());
    }
    let fits = |name: &&RunName| {
        name.as_str().starts_with(wanted) || name.commit().is_some_and(|commit| commit.starts_with(wanted))
    };
    let found: Vec<&RunName> = shelf.runs.iter().filter(fits).collect();
    match found.as_slice() {
        [one] => Ok((*one).clone()),
        [] => Err(missing(
            &format!("run {wanted}"),
            &format!("{} has none of that name or commit", shelf.folder),
        )),
        // The first of several runs of a commit is the first of the new normal.
        several if several.windows(2).all(|two| two[0].commit() == two[1].commit()) => Ok(several[0].clone()),
        _ => Err(missing(&format!("run {wanted}"), "several runs begin like that; give more of the name")),
    }
}
