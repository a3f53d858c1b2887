//! The gate against the stored baseline: one side is measured, the other is history.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::config::{Config, Store};
use crate::gate::{CompareOptions, Comparison, compare_with_history};
use crate::git::Repository;
use crate::model::{Run, SideName, Testbed, counted};
use crate::record::RunFile;
use crate::store::{self, CommitTree, Files, HistoryQuery, Lineage, Missing, Selection, StoreError};

use super::store_args::{StorePlace, runner, say_faults};
use super::{CliError, Terminal};

/// A baseline that was opened before anything was measured, so that a wrong token costs no GPU time.
pub struct Baseline<'a> {
    files: Box<dyn Files + 'a>,
    repository: &'a Repository,
    /// Sessions of commits behind this one are history.
    commit: String,
    settings: Store,
    /// How long opening took: for a branch, the time of fetching its listing.
    opened: Duration,
}

impl<'a> Baseline<'a> {
    /// Opens the baseline as `commit` has it, or the branch.
    pub fn open(
        place: &StorePlace,
        settings: &Store,
        repository: &'a Repository,
        commit: String,
        terminal: &Terminal,
    ) -> Result<Self, CliError> {
        let started = Instant::now();
        let files: Box<dyn Files + 'a> = match place {
            // Not the working tree: a change that brought its own baseline would be judged by itself.
            StorePlace::Folder(folder) => {
                Box::new(CommitTree::new(repository, commit.clone(), inside(repository, folder)?))
            }
            StorePlace::Branch { .. } | StorePlace::Objects(_) => {
                place.open(Some(repository), &runner, terminal)?
            }
        };
        Ok(Self { files, repository, commit, settings: settings.clone(), opened: started.elapsed() })
    }

    /// Refuses a suite without any stored session before its head is measured for hours. Whether one is of this
    /// testbed is known afterwards.
    pub fn require(&self, suite: &str) -> Result<(), CliError> {
        let folder = store::folder_name(suite);
        if !self.files.folders(&folder)?.is_empty() {
            return Ok(());
        }
        Err(CliError::baseline_missing(format!(
            "{} holds no session of suite {suite}, and no base was named",
            self.files.place()
        ))
        .hint(
            "measure both sides: `benchgate gate --base origin/main`, or add [side.base]; or store a session \
             first: `benchgate baseline update --measure`",
        ))
    }

    /// Judges a run by the sessions that are stored.
    pub fn judge(
        &self,
        file: &RunFile,
        config: &Config,
        options: &CompareOptions,
        terminal: &Terminal,
    ) -> Result<Comparison, CliError> {
        let started = Instant::now();
        let head = store::judged_side(file, SideName::Head, "run.json", &config.policy);
        let head = &head.ok_or_else(|| CliError::internal("a gate has a head"))?;
        let ancestry = self.repository.ancestry(&self.commit).map_err(StoreError::Git)?;
        let unknown = Testbed::default();
        let ask = HistoryQuery {
            suite: &config.suite,
            testbed: head.testbed.as_ref().unwrap_or(&unknown),
            sessions: self.settings.sessions,
            stale_days: self.settings.stale_days,
            lineage: &|commit| Lineage::look_up(&ancestry, commit),
            now: jiff::Timestamp::now(),
        };
        match store::history_for_gate(self.files.as_ref(), &ask)? {
            Selection::Found(history) => {
                say_faults(&history.faults, terminal);
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
            Selection::Missing(missing) => {
                say_faults(&missing.faults, terminal);
                Err(self.nothing(&missing))
            }
        }
    }

    /// The cost of the decision, in words: people keep years of nights only while reading them stays cheap.
    fn account(&self, head: &Run, sessions: usize, took: Duration) -> String {
        let mut said = format!(
            "judged {} by {} in {:.2} s",
            counted(head.benchmarks.len(), "benchmark"),
            counted(sessions, "stored session"),
            (self.opened + took).as_secs_f64()
        );
        if let Some(bytes) = self.files.fetched() {
            let kilobytes = bytes.div_ceil(1000);
            said.push_str(&format!(
                ", {kilobytes} kB fetched ({:.2} s for the listing before measuring)",
                self.opened.as_secs_f64()
            ));
        }
        said
    }

    fn nothing(&self, missing: &Missing) -> CliError {
        // There is a baseline, but it can't be used, which differs from having none.
        if let Some(fault) = missing.faults.first() {
            return CliError::failed(format!(
                "failed to read the stored sessions of suite {} on testbed {} in {}: {} of them can't be used, and \
                 no other can be compared with; {}: {}",
                missing.suite,
                missing.testbed,
                self.files.place(),
                missing.faults.len(),
                fault.path,
                fault.why
            ))
            .hint("`benchgate baseline verify` lists every damaged file");
        }
        let mut message = format!(
            "failed to find a stored session of suite {} on testbed {} behind {} in {}",
            missing.suite,
            missing.testbed,
            self.commit.get(..12).unwrap_or(&self.commit),
            self.files.place()
        );
        for note in &missing.notes {
            message.push_str(&format!("; {note}"));
        }
        for similar in &missing.similar {
            let (newest, differences) = (similar.newest.time(), similar.differences.join(", "));
            message.push_str(&format!(
                "; testbed {}, newest session {newest}, differs in {differences}",
                similar.testbed
            ));
        }
        let hint = if missing.unknown > 0 {
            "this clone is shallow: run `git fetch --unshallow origin`, or check out with `fetch-depth: 0`"
        } else {
            "store one from the base's commit: `benchgate run` and `benchgate baseline update`; or measure both \
             sides here: `benchgate gate --base origin/main`"
        };
        CliError::baseline_missing(message).hint(hint)
    }
}

/// The folder of the baseline relative to the top of the repository. It need not be in the working tree.
fn inside(repository: &Repository, folder: &Path) -> Result<String, CliError> {
    let parent = match folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let inside = repository.relative(parent)?.join(folder.file_name().unwrap_or_default());
    Ok(inside.to_string_lossy().into_owned())
}
