//! The gate against the stored baseline: only the head is measured, and the base comes from the history.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::config::{Config, Store};
use crate::gate::{CompareOptions, Comparison, compare_with_history};
use crate::git::{GitError, Repository};
use crate::model::{Run, SideName, Testbed, counted, short_commit};
use crate::record::RunFile;
use crate::store::{
    self, BaselineFolder, CommitTree, Directory, Files, History, HistoryQuery, Lineage, Missing, Selection,
    StoreError,
};

use super::store_args::{StorePlace, UNSHALLOW, runner, say_faults};
use super::{CliError, Terminal};

/// An opened baseline. It is opened before measuring, so that an invalid token costs no GPU time.
pub struct Baseline<'a> {
    files: Box<dyn Files + 'a>,
    /// The folder of the baseline; `None` for a branch or an object store. The gate reads its content from a
    /// commit.
    folder: Option<PathBuf>,
    repository: &'a Repository,
    /// The commit whose ancestors' sessions are the history.
    commit: String,
    settings: Store,
    /// The time that opening and reading took, including the fetch of a branch's list of files.
    reading: Cell<Duration>,
    /// The newest selection of sessions, with the testbed for which they were selected.
    selected: RefCell<Option<(String, Selection)>>,
}

impl<'a> Baseline<'a> {
    /// Opens the baseline: a folder as `commit` has it, or a branch or object store.
    pub fn open(
        place: &StorePlace,
        settings: &Store,
        repository: &'a Repository,
        commit: String,
        terminal: &Terminal,
    ) -> Result<Self, CliError> {
        let started = Instant::now();
        let files: Box<dyn Files + 'a> = match place {
            // Reading the working tree would let a change bring the baseline that judges it.
            StorePlace::Folder(folder) => {
                Box::new(CommitTree::new(repository, commit.clone(), inside(repository, folder)?))
            }
            StorePlace::Branch { .. } | StorePlace::Objects(_) => {
                place.open(Some(repository), &runner, terminal).map_err(|error| {
                    let Some(remote) = place.unknown_remote(repository) else { return error };
                    error.hint(format!(
                        "compare with a branch: `benchgate gate --base {}`; or name the remote of the stored baseline: \
                         `git remote add {remote} URL`",
                        likely_base(repository)
                    ))
                })?
            }
        };
        let folder = match place {
            StorePlace::Folder(folder) => Some(folder.clone()),
            StorePlace::Branch { .. } | StorePlace::Objects(_) => None,
        };
        Ok(Self {
            files,
            folder,
            repository,
            commit,
            settings: settings.clone(),
            reading: Cell::new(started.elapsed()),
            selected: RefCell::default(),
        })
    }

    /// Refuses a baseline without a usable session from any of these testbeds, before the head is measured for
    /// hours.
    pub fn require(
        &self,
        suite: &str,
        testbeds: &[Testbed],
        is_base_named: bool,
        terminal: &Terminal,
    ) -> Result<(), CliError> {
        let folder = store::folder_name(suite);
        if !self.files.folders(&folder)?.is_empty() {
            let mut unusable = None;
            for testbed in testbeds {
                match self.select(suite, testbed)? {
                    Selection::Found(_) => return Ok(()),
                    Selection::Missing(missing) => unusable = Some(missing),
                }
            }
            return unusable.map_or(Ok(()), |missing| Err(self.nothing(&missing, terminal)?));
        }
        let message = format!("failed to find a session of the suite {suite} in {}", self.files.place());
        if let Some((why, hint)) = self.uncommitted(suite, None)? {
            return Err(CliError::baseline_missing(format!("{message}; {why}")).hint(hint));
        }
        let store = "store a session first: `benchgate baseline update --measure`";
        if is_base_named {
            let hint = format!("measure both sides: omit `--stored`; or {store}");
            return Err(CliError::baseline_missing(message).hint(hint));
        }
        Err(CliError::baseline_missing(format!("{message}, and no base was named")).hint(format!(
            "measure both sides: `benchgate gate --base {}`, or add [side.base]; or {store}",
            likely_base(self.repository)
        )))
    }

    /// The explanation and the hint if the folder has sessions that the commit lacks.
    fn uncommitted(&self, suite: &str, testbed: Option<&str>) -> Result<Option<(String, String)>, CliError> {
        let Some(folder) = &self.folder else { return Ok(None) };
        let here = Directory::new(folder);
        let suite_folder = store::folder_name(suite);
        let is_meant =
            |of_testbed: &String| testbed.is_none_or(|testbed| store::folder_name(testbed) == *of_testbed);
        let mut count = 0;
        for of_testbed in here.folders(&suite_folder)?.iter().filter(|folder| is_meant(folder)) {
            let shelf = BaselineFolder::open_folder(&here, format!("{suite_folder}/{of_testbed}"))?;
            let committed = shelf.runs(self.files.as_ref())?.names;
            count += shelf.runs(&here)?.names.iter().filter(|name| !committed.contains(name)).count();
        }
        if count == 0 {
            return Ok(None);
        }
        let (sessions, folder) = (counted(count, "session"), folder.display());
        // If the commit is a base, the sessions may have been committed after it.
        let is_head = self.repository.head()?.commit == self.commit;
        Ok(Some(if is_head {
            (
                format!("uncommitted: {sessions} in {folder}, but a gate reads only committed sessions"),
                format!("commit the sessions: `git add {folder}`, then `git commit`"),
            )
        } else {
            (
                format!("the base commit does not contain {sessions} in {folder}"),
                "commit the sessions on the base's branch: a change can't be judged by a baseline that it \
                adds itself"
                    .to_owned(),
            )
        }))
    }

    /// Judges a run against the stored sessions.
    pub fn judge(
        &self,
        file: &RunFile,
        config: &Config,
        options: &CompareOptions,
        terminal: &Terminal,
    ) -> Result<Comparison, CliError> {
        let head = store::judged_side(file, SideName::Head, "run.json", &config.policy);
        let head = &head.ok_or_else(|| CliError::internal("a gate has a head"))?;
        let unknown = Testbed::default();
        match self.select(&config.suite, head.testbed.as_ref().unwrap_or(&unknown))? {
            Selection::Found(mut history) => {
                history.take_names(&config.renames);
                say_faults(&history.faults, terminal);
                let started = Instant::now();
                let mut comparison =
                    compare_with_history(head, history.sessions(false), &config.policy, options);
                terminal.note(&self.account(head, history.runs.len(), started.elapsed()));
                comparison.notes.extend(history.notes);
                let faults = history.faults.iter();
                comparison
                    .notes
                    .extend(faults.map(|fault| format!("{} is left out: {}", fault.path, fault.why)));
                Ok(comparison)
            }
            Selection::Missing(missing) => Err(self.nothing(&missing, terminal)?),
        }
    }

    /// Selects the sessions of a testbed. The last selection is kept, because it was read from a remote.
    fn select(&self, suite: &str, testbed: &Testbed) -> Result<Selection, CliError> {
        if let Some((_, known)) = self.selected.borrow().as_ref().filter(|(id, _)| *id == testbed.id) {
            return Ok(known.clone());
        }
        let started = Instant::now();
        let ancestry = self.repository.ancestry(&self.commit).map_err(StoreError::Git)?;
        let ask = HistoryQuery {
            suite,
            testbed,
            sessions: self.settings.sessions,
            stale_days: self.settings.stale_days,
            lineage: &|commit| Lineage::look_up(&ancestry, commit),
            now: jiff::Timestamp::now(),
        };
        let found = store::history_for_gate(self.files.as_ref(), &ask)?;
        if let Selection::Found(History { unknown: unknown @ 1.., .. }) = &found {
            return Err(StoreError::Shallow(*unknown).into());
        }
        self.reading.set(self.reading.get() + started.elapsed());
        *self.selected.borrow_mut() = Some((testbed.id.clone(), found.clone()));
        Ok(found)
    }

    /// Describes the cost of the decision, so that people notice when reading their long history becomes
    /// expensive.
    fn account(&self, head: &Run, sessions: usize, comparing: Duration) -> String {
        let mut said = format!(
            "compared {} with {} in {:.2} s",
            counted(head.benchmarks.len(), "benchmark"),
            counted(sessions, "stored session"),
            (self.reading.get() + comparing).as_secs_f64()
        );
        if let Some(bytes) = self.files.fetched() {
            let kilobytes = bytes.div_ceil(1000);
            said.push_str(&format!(
                ", {kilobytes} kB fetched ({:.2} s for reading the sessions)",
                self.reading.get().as_secs_f64()
            ));
        }
        said
    }

    /// Returns the error that no session can be compared with.
    fn nothing(&self, missing: &Missing, terminal: &Terminal) -> Result<CliError, CliError> {
        say_faults(&missing.faults, terminal);
        // A baseline that can't be used is reported differently from a missing one.
        if let Some(fault) = missing.faults.first() {
            return Ok(CliError::failed(format!(
                "failed to read the stored sessions of suite {} on testbed {} in {}: {} of them can't be \
                used, and there is no other session to compare with; {}: {}",
                missing.suite,
                missing.testbed,
                self.files.place(),
                missing.faults.len(),
                fault.path,
                fault.why
            ))
            .hint("`benchgate baseline verify` lists every damaged file"));
        }
        let mut message = format!(
            "failed to find a stored session of suite {} on testbed {} from an ancestor of {} in {}",
            missing.suite,
            missing.testbed,
            short_commit(&self.commit),
            self.files.place()
        );
        for note in &missing.notes {
            message.push_str(&format!("; {note}"));
        }
        for similar in &missing.similar {
            let (newest, differences) = (similar.newest.time(), similar.differences.join(", "));
            message.push_str(&format!(
                "; the testbed {} (newest session {newest}) differs in {differences}",
                similar.testbed
            ));
        }
        let hint = if missing.unknown > 0 {
            format!("this clone is shallow: {UNSHALLOW}")
        } else if let Some((why, hint)) = self.uncommitted(&missing.suite, Some(&missing.testbed))? {
            message.push_str(&format!("; {why}"));
            hint
        } else {
            format!(
                "store one from the base's commit: `benchgate run` and `benchgate baseline update`; or measure both sides \
                 here: `benchgate gate --base {}`",
                likely_base(self.repository)
            )
        };
        Ok(CliError::baseline_missing(message).hint(hint))
    }
}

/// A branch of this clone to compare with. Before the first commit there is none, and a repository without a
/// remote will only ever have its own branch.
pub fn likely_base(repository: &Repository) -> &'static str {
    const USUAL: &str = "origin/main";
    let names = [USUAL, "origin/master", "main", "master"];
    let unborn = if repository.remote_url("origin").is_ok() { USUAL } else { "HEAD" };
    names.into_iter().find(|name| repository.resolve(name).is_ok()).unwrap_or(unborn)
}

/// The baseline's folder relative to the top of the repository. The folder need not exist in the working
/// tree.
fn inside(repository: &Repository, folder: &Path) -> Result<String, CliError> {
    let parent = match folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let outside = |error| match error {
        GitError::Outside { root, .. } => {
            let absolute = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
            let url = format!("file://{}-parquet", absolute.display());
            CliError::usage(format!(
                "failed to use the store {}: it is outside the repository at {}, and a gate reads a folder only \
                 from a commit",
                folder.display(),
                root.display()
            ))
            .hint(format!(
                "store in a folder of the repository and commit it; or use an object store: copy the sessions to it with `benchgate baseline export --store {} --parquet {url}`, then pass `--store {url}`",
                folder.display()
            ))
        }
        other => other.into(),
    };
    let inside = repository.relative(parent).map_err(outside)?.join(folder.file_name().unwrap_or_default());
    Ok(inside.to_string_lossy().into_owned())
}
