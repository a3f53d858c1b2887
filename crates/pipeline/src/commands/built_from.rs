//! Detects a head that is not built from its own commit: from what base's build made, or from files that no commit
//! contains. A slower head would run base's program, or one that nobody else can build.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::host::Host;
use crate::trace::{file_state, is_made};
use benchgate_core::model::{Lint, LintCode};
use benchgate_host::git::{GitError, Repository};
use benchgate_host::process::Opened;

use super::PreparedCommand;
use super::leftovers::compiled_from;
use super::observed::{ObservedProcess, other_work, shown, written};
use super::others_sources::{holds_tools, is_code, is_program};

/// A command whose builds are compared.
pub(super) struct BuiltFrom<'a> {
    pub(super) host: &'a Host<'a>,
    pub(super) base: (&'a PreparedCommand, &'a ObservedProcess),
    pub(super) head: (&'a PreparedCommand, &'a ObservedProcess),
}

impl BuiltFrom<'_> {
    /// The findings about head's build, and about what its processes run instead. `bases` contains all commands of
    /// base, which were built before head's.
    pub(super) async fn lints(&self, bases: &[PreparedCommand]) -> Vec<Lint> {
        if !self.base.0.is_checked_out {
            return Vec::new();
        }
        let mut found = self.of_builds(bases).await;
        found.extend(self.runs_uncommitted(bases).unwrap_or_else(Some));
        found.extend(self.above_the_clone("processes", &self.base.1.opened, &self.head.1.opened));
        found
    }

    async fn of_builds(&self, bases: &[PreparedCommand]) -> Vec<Lint> {
        let (base, head) = (self.base.0, self.head.0);
        let Some(by_base) = &base.build_files else {
            let why = "the files that the builds use can't be observed";
            return vec![Lint::new(LintCode::Unobserved, why)];
        };
        let Some(by_head) = &head.build_files else {
            return other_work("head's build can't be observed, but base's can".to_owned())
                .into_iter()
                .collect();
        };
        let mut found: Vec<Lint> = self.takes_from_base(by_head, bases).await.into_iter().collect();
        if found.is_empty() {
            found.extend(self.reuses(by_base, by_head, bases).await);
        }
        found.extend(self.unread_change(by_head).await);
        found.extend(self.uncommitted(by_base, by_head).unwrap_or_else(Some));
        found.extend(self.above_the_clone("build", by_base, by_head));
        found.extend(self.other_data().await);
        found
    }

    /// The finding that head's build reads base's build folder, or a file of base's sources that differs from
    /// head's.
    async fn takes_from_base(&self, by_head: &Opened, bases: &[PreparedCommand]) -> Option<Lint> {
        let (base, head) = (self.base.0, self.head.0);
        let folders: Vec<PathBuf> =
            bases.iter().filter_map(|it| it.build_folder()?.canonicalize().ok()).collect();
        for path in by_head.used.iter().filter_map(|path| path.canonicalize().ok()) {
            let name = if let Some(made) = folders.iter().find_map(|folder| path.strip_prefix(folder).ok()) {
                format!("`{}` in {{build}}", shown(&made.to_string_lossy()))
            } else if let Some(name) = base.name_in_sources(self.host, &path) {
                let [of_base, of_head] = [base, head].map(|side| side.sources[0].join(&name));
                if self.is_same(&of_base, &of_head).await {
                    continue;
                }
                format!("`{}`", shown(&name))
            } else {
                continue;
            };
            return other_work(format!(
                "head's build reads base's {name}, so both sides may run base's code"
            ));
        }
        None
    }

    /// The finding that head's program comes from files that base's build wrote in a place that both builds
    /// share. A cache that recognizes unchanged sources is shared too, but to do so it reads them. A build that only
    /// compares times does not read a source file that changed before base was built.
    async fn reuses(&self, by_base: &Opened, by_head: &Opened, bases: &[PreparedCommand]) -> Option<Lint> {
        let ((base, _), (head, of_head)) = (self.base, self.head);
        let is_bases = |at: SystemTime| bases.iter().any(|base| base.was_building(at));
        let by_build =
            by_head.used.iter().filter(|path| by_head.found.get(*path).is_some_and(|at| is_bases(*at)));
        // A link in the build folder can lead to such a file.
        let run = of_head.opened.used.iter().filter_map(|path| path.canonicalize().ok());
        let run = run.filter(|path| written(path).is_some_and(is_bases));
        let is_shared = |path: &PathBuf| {
            let is_source = head.sources.iter().any(|sources| path.starts_with(sources));
            !is_source && !self.host.sources.is_own(path) && !is_of_pip(path)
        };
        let shared = by_build.cloned().chain(run).find(is_shared)?;
        if !self.runs_the_same().await {
            return None;
        }
        let names = |side: &PreparedCommand, files: &Opened| -> BTreeSet<String> {
            let sources = files.used.iter().map(|path| compiled_from(path).unwrap_or_else(|| path.clone()));
            sources.filter_map(|path| side.name_in_sources(self.host, &path)).collect()
        };
        let (with_base, with_head) = (names(base, by_base), names(head, by_head));
        let shared = shown(&shared.to_string_lossy());
        let mut differing = None;
        for name in &with_base {
            let [of_base, of_head] = [base, head].map(|side| side.sources[0].join(name));
            if !of_head.is_file() || self.is_same(&of_base, &of_head).await {
                continue;
            }
            if !with_head.contains(name) {
                return other_work(format!(
                    "head's build does not read `{}`, which differs from base's, but `{shared}`, which base's build \
                     wrote, so both sides run base's code",
                    shown(name)
                ));
            }
            differing.get_or_insert(name);
        }
        differing.map(|name| {
            let detail = format!(
                "both sides run the same program although `{}` differs from base's; head's build reads `{shared}`, \
                 which base's build wrote",
                shown(name)
            );
            Lint::new(LintCode::ScriptChanged, detail)
        })
    }

    /// Each file of the build folders and sources that a process used, at base and at head.
    fn run(&self) -> BTreeSet<[PathBuf; 2]> {
        let sides = [self.base, self.head];
        let folders = sides.map(|(command, _)| command.build_folder());
        let mut found = BTreeSet::new();
        for ((command, observed), folder) in sides.into_iter().zip(folders) {
            for path in &observed.opened.used {
                let built = folder.and_then(|folder| path.strip_prefix(folder).ok());
                if let (Some(name), [Some(of_base), Some(of_head)]) = (built, folders) {
                    found.insert([of_base, of_head].map(|folder| folder.join(name)));
                } else if let Some(name) = command.name_in_sources(self.host, path) {
                    found.insert(sides.map(|(side, _)| side.sources[0].join(&name)));
                }
            }
        }
        found
    }

    /// Returns whether both sides run the same programs. Without programs, all files count: another file, such as one
    /// with the version, may differ although the program does not.
    async fn runs_the_same(&self) -> bool {
        let used = self.run();
        let is_run =
            |it: &&[PathBuf; 2]| self.head.0.files.contains(&it[1]) || it.iter().any(|file| is_program(file));
        let programs: Vec<_> = used.iter().filter(is_run).collect();
        let compared = if programs.is_empty() { used.iter().collect() } else { programs };
        for [of_base, of_head] in compared {
            if !self.is_same(of_base, of_head).await {
                return false;
            }
        }
        true
    }

    /// The finding that head's processes run a committed program and that head's build looks at a source file that differs from
    /// base's, as `make` does for its time, but doesn't read it: it takes the program for the newer one.
    async fn unread_change(&self, by_head: &Opened) -> Option<Lint> {
        let ((base, _), (head, of_head)) = (self.base, self.head);
        let name = |path: &PathBuf| head.name_in_sources(self.host, path);
        let is_made = |path: &Path| written(path).is_some_and(|at| head.was_building(at));
        let is_committed = |path: &&PathBuf| is_program(path) && name(path).is_some() && !is_made(path);
        // git looks at all files, so a build that runs it shows nothing.
        let runs_git = by_head.used.iter().any(|path| path.file_name().is_some_and(|name| name == "git"));
        if runs_git
            || !of_head.opened.used.iter().any(|path| is_committed(&path))
            || !self.runs_the_same().await
        {
            return None;
        }
        let source = |path: &PathBuf| compiled_from(path).unwrap_or_else(|| path.clone());
        let used: BTreeSet<PathBuf> = by_head.used.iter().chain(&of_head.opened.used).map(source).collect();
        for name in by_head.read.iter().filter(|path| !used.contains(*path)).filter_map(name) {
            let [of_base, of_head] = [base, head].map(|side| side.sources[0].join(&name));
            if of_base.is_file() && of_head.is_file() && !self.is_same(&of_base, &of_head).await {
                return other_work(format!(
                    "head's build looks at `{}`, which differs from base's, but does not read it, and both sides run the \
                     same program",
                    shown(&name)
                ));
            }
        }
        None
    }

    /// The note that the processes use different data that the builds made: the result of a compiler under test, or a
    /// smaller or easier input.
    async fn other_data(&self) -> Option<Lint> {
        let head = self.head.0;
        let size = |path: &Path| path.metadata().ok().filter(Metadata::is_file).map(|found| found.len());
        for [of_base, of_head] in &self.run() {
            let (Some(at_base), Some(at_head)) = (size(of_base), size(of_head)) else { continue };
            let runs = head.files.contains(of_head) || [of_base, of_head].iter().any(|it| is_code(it));
            let name = head.build_folder().and_then(|folder| of_head.strip_prefix(folder).ok());
            let Some(name) = name.filter(|_| !runs) else { continue };
            let difference = if at_base != at_head {
                format!("this file has {at_base} bytes at base and {at_head} at head")
            } else if !self.is_same(of_base, of_head).await {
                "this file differs from base's".to_owned()
            } else {
                continue;
            };
            let name = shown(&name.to_string_lossy());
            let detail = format!("the processes read `{name}` in {{build}}; {difference}");
            return Some(Lint::new(LintCode::ScriptChanged, detail));
        }
        None
    }

    /// The finding that head's build reads a file of the working tree that git does not track and that base's
    /// checkout does not have after base's build. If base's build looks for it too, it is a local setting.
    fn uncommitted(&self, by_base: &Opened, by_head: &Opened) -> Result<Option<Lint>, Lint> {
        let mut names = self.older(by_base, by_head);
        names.retain(|name| !self.base.0.sources[0].join(name).exists());
        let mut names = self.untracked(names)?;
        names.sort_by_key(|name| !self.is_sought(by_base, name));
        Ok(names.first().map(|name| {
            let is_sought = self.is_sought(by_base, name);
            let code = if is_sought { LintCode::WorkloadChanged } else { LintCode::ScriptChanged };
            Lint::new(code, format!("head's build reads `{}`, which no commit contains", shown(name)))
        }))
    }

    /// The finding that head's build or processes read a file in a folder above the clone, such as the settings of a
    /// workspace (`../.cargo/config.toml`), and that base's look for it in vain above the checkout.
    fn above_the_clone(&self, what: &str, by_base: &Opened, by_head: &Opened) -> Option<Lint> {
        let [base, head] = [self.base.0, self.head.0].map(|side| &side.sources[1]);
        let is_built = |path: &Path| written(path).is_some_and(|at| self.base.0.was_building(at));
        let is_missed = |path: &&PathBuf| {
            let mut levels = head.ancestors().zip(base.ancestors()).skip(1);
            levels.any(|(above_head, above_base)| {
                let name = path.strip_prefix(above_head).ok();
                let missed = name.map(|name| above_base.join(name));
                missed.is_some_and(|path| {
                    by_base.read.contains(&path) && (!by_base.used.contains(&path) || is_built(&path))
                })
            })
        };
        let is_above = |path: &&PathBuf| !path.starts_with(head) && !self.host.sources.is_own(path);
        let mut used = by_head.used.iter().filter(|path| !by_base.used.contains(*path));
        let path = used.find(|path| is_above(path) && is_missed(path))?;
        let path = shown(&path.to_string_lossy());
        other_work(format!(
            "head's {what} read `{path}`, a file above the clone, and base's look for it in vain"
        ))
    }

    /// The finding that head's processes use a file of the working tree that git does not track and that is older than
    /// the run, although base's build made its own: an earlier build left it, maybe of other code. Or base's processes
    /// look for it in vain and do without it, such as a compiled module of Python.
    fn runs_uncommitted(&self, bases: &[PreparedCommand]) -> Result<Option<Lint>, Lint> {
        let ((base, of_base), (head, of_head)) = (self.base, self.head);
        let (by_base, by_head) = (&of_base.opened, &of_head.opened);
        // Python looks for a module by listing the folders where it may be.
        let is_listed = |name: &str| {
            let listed = |file: PathBuf| {
                file.ancestors().find(|it| it.exists()).is_some_and(|it| by_base.listed.contains(it))
            };
            is_code(&head.sources[1].join(name)) && base.sources.iter().any(|it| listed(it.join(name)))
        };
        let is_built = |name: &str| {
            let at = written(&base.sources[0].join(name));
            at.is_some_and(|at| bases.iter().any(|base| base.was_building(at)))
        };
        let is_missed = |name: &str| {
            !base.sources[0].join(name).exists() && (self.is_sought(by_base, name) || is_listed(name))
        };
        let mut names = self.older(by_base, by_head);
        names.retain(|name| is_built(name) || is_missed(name));
        for name in self.untracked(names)? {
            let why = if is_built(&name) {
                "which head's build did not write although base's build wrote it"
            // A new module that is not committed yet belongs to the change.
            } else if self.is_sought(by_base, &name) || !self.is_new(&name)? {
                "which no commit contains and base's processes don't find"
            } else {
                continue;
            };
            return Ok(other_work(format!("head's processes use `{}`, {why}", shown(&name))));
        }
        Ok(None)
    }

    /// The names of the files of the working tree that only head's programs used and that are older than the run.
    fn older(&self, by_base: &Opened, by_head: &Opened) -> BTreeSet<String> {
        let (base, head) = (self.base.0, self.head.0);
        let is_in_tools = |name: &str| {
            let below = Path::new(name).ancestors().skip(1).filter(|it| *it != Path::new(""));
            below.map(|it| head.sources[1].join(it)).any(|folder| is_made(&folder) || holds_tools(&folder))
        };
        let names = by_head.used.iter().filter(|path| !by_base.used.contains(*path)).filter_map(|path| {
            let path = compiled_from(path).unwrap_or_else(|| path.clone());
            // Builds of head's other commands run after base's.
            let is_older = by_head.found.get(&path).is_some_and(|at| *at < base.began);
            head.name_in_sources(self.host, &path).filter(|name| is_older && !is_in_tools(name))
        });
        names.collect()
    }

    /// Returns whether a program of base looked for a file of its sources.
    fn is_sought(&self, by_base: &Opened, name: &str) -> bool {
        self.base.0.sources.iter().any(|sources| by_base.read.contains(&sources.join(name)))
    }

    /// The names that git does not track in head's working tree. An error is the finding that they are unknown.
    fn untracked(&self, names: BTreeSet<String>) -> Result<Vec<String>, Lint> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let tracked = self.ask_git(|repository| repository.tracked())?;
        // A submodule is tracked as a folder.
        let is_tracked =
            |name: &str| self.head.0.sources[1].join(name).ancestors().any(|it| tracked.contains(it));
        Ok(names.into_iter().filter(|name| !is_tracked(name)).collect())
    }

    /// Returns whether git neither tracks nor ignores a file of head's working tree.
    fn is_new(&self, name: &str) -> Result<bool, Lint> {
        let file = self.head.0.sources[1].join(name);
        self.ask_git(|repository| Ok(!repository.untracked_among([file])?.is_empty()))
    }

    fn ask_git<T>(&self, ask: impl FnOnce(&Repository) -> Result<T, GitError>) -> Result<T, Lint> {
        Repository::open(&self.head.0.sources[1]).and_then(|repository| ask(&repository)).map_err(|error| {
            let why = format!("it is unknown whether head is built from its commit: failed to {error}");
            Lint::new(LintCode::Unobserved, why)
        })
    }

    async fn is_same(&self, first: &Path, second: &Path) -> bool {
        let digests = &self.host.digests;
        file_state(first, digests).await == file_state(second, digests).await
    }
}

/// Returns whether pip keeps a file for itself: the date of its last look for a new version, or an answer of an index. Neither
/// is made from the sources.
fn is_of_pip(path: &Path) -> bool {
    let parts: Vec<_> = path.iter().collect();
    parts
        .windows(2)
        .any(|two| two[0] == "pip" && ["selfcheck", "http", "http-v2"].iter().any(|own| two[1] == *own))
}
