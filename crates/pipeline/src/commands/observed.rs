//! Runs one more process of each side after everything is measured, and observes which files it opens. This
//! shows which source files `prepare` reads, and which files of earlier processes a process reuses. `setup` is observed
//! when it runs, because it may not work twice.
//!
//! All processes share the user's folders. Separate folders would make honest tools slow or let them fail,
//! because tools look for packages, downloads and compilers in the home folder. So processes are not
//! isolated. Instead, a side that reads what earlier processes wrote is detected by observing it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::PipelineError;
use crate::host::Host;
use benchgate_core::model::{Lint, LintCode, excerpt};
use benchgate_host::process::{Command, Exit, Finished, Opened};

use super::filter::EVERYTHING;
use super::leftovers::{LONGEST_NAME, PYTHON_CACHE, compiled_from, without_digits};
use super::{Line, PreparedCommand};

/// The files that a side's observed process read.
#[derive(Debug, Default)]
pub(super) struct ObservedProcess {
    /// Names of source files that `prepare` read or looked for. `None` if that could not be observed.
    pub(super) prepared_with: Option<BTreeSet<String>>,
    /// Results of earlier processes that the observed process could use. `None` if that could not be
    /// observed.
    reused: Option<Reused>,
    /// Everything that `prepare` and the process used or looked for, as far as it could be observed.
    pub(super) opened: Opened,
    /// Files and folders outside the build folder that changed after base's build began and before this process
    /// started, with the time of their last change.
    pub(super) recent: BTreeMap<PathBuf, SystemTime>,
    /// The files in `recent` that this process changed too.
    pub(super) rewritten: BTreeSet<PathBuf>,
    /// Factor by which this process computed longer than the typical one that was not observed.
    longer: f64,
}

#[derive(Debug)]
struct Reused {
    /// Files that earlier processes wrote, grouped by their place.
    files: BTreeMap<String, ReusedFile>,
    /// Kinds of kernel memory that outlive a process.
    memory: BTreeSet<String>,
}

#[derive(Debug)]
struct ReusedFile {
    path: PathBuf,
    /// True if the file was written after `setup`.
    by_process: bool,
    /// Names of the files in this place that were written after `setup`, without those that contain a digest.
    named: BTreeMap<String, PathBuf>,
}

impl PreparedCommand {
    /// Runs `prepare` and one process. `since` is the time at which the first code of either side began to
    /// run.
    pub(super) async fn observe(
        &self,
        host: &Host<'_>,
        since: SystemTime,
        log: &Path,
        output: &Path,
    ) -> Result<ObservedProcess, PipelineError> {
        self.remove_outputs()?;
        let seen = |finished: Finished| finished.opened.filter(|_| finished.exit == Exit::Success);
        let mut observed = ObservedProcess::default();
        if let Some(line) = &self.spec.prepare {
            let line = observed_process(self.line(line, Path::new(""), EVERYTHING).log(log));
            observed.prepared_with = seen(host.run(&line).await?).map(|opened| {
                observed.opened.join(opened.clone());
                self.read_sources(host, &opened, since)
            });
        }
        let start = observed_process(self.start(output, EVERYTHING).capture_stdout().log(log));
        let finished = host.run(&start.cpus(host.cpus_for(&self.spec.device))).await?;
        self.keep_outputs(&finished, true)?;
        observed.longer = longer(finished.user, self.typically_busy(Line::Run));
        observed.reused = seen(finished).map(|opened| {
            observed.opened.join(opened.clone());
            observed.recent = self.recent(&opened, since, output);
            let is_rewritten =
                |(path, at): &(&PathBuf, &SystemTime)| written(path).is_some_and(|now| now > **at);
            observed.rewritten = observed.recent.iter().filter(is_rewritten).map(|it| it.0.clone()).collect();
            Reused { files: self.reused(&observed.recent), memory: opened.kept_memory }
        });
        Ok(observed)
    }

    /// The names of the source files that a process read or looked for and that are older than `since`.
    pub(super) fn read_sources(
        &self,
        host: &Host<'_>,
        opened: &Opened,
        since: SystemTime,
    ) -> BTreeSet<String> {
        let old = opened.read.iter().filter(|path| written(path).is_none_or(|at| at < since));
        old.filter_map(|path| self.name_in_sources(host, path)).collect()
    }

    pub(super) fn is_built(&self, path: &Path) -> bool {
        self.build_folder().is_some_and(|folder| path.starts_with(folder))
    }

    /// The name of a source file relative to the sources. Folders that tools fill don't count as sources.
    pub(super) fn name_in_sources(&self, host: &Host<'_>, path: &Path) -> Option<String> {
        let name = self.sources.iter().find_map(|sources| path.strip_prefix(sources).ok())?;
        let is_cached = |kind: &OsStr| ["pyc", "nbi", "nbc"].iter().any(|cached| kind == *cached);
        let in_cache = name.iter().any(|part| part == PYTHON_CACHE);
        let is_made =
            name.iter().any(|part| part == ".git") || in_cache && path.extension().is_some_and(is_cached);
        let is_source = !is_made && !self.is_built(path) && !host.sources.is_own(path) && !path.is_dir();
        is_source.then(|| name.to_string_lossy().into_owned())
    }

    /// Files and folders outside the build folder that were written since `since`, but not by this process.
    fn recent(&self, opened: &Opened, since: SystemTime, output: &Path) -> BTreeMap<PathBuf, SystemTime> {
        // benchgate created the folders that lead to the output and to the build folder.
        let leads_to = |path: &Path| {
            output.starts_with(path) || self.build_folder().is_some_and(|folder| folder.starts_with(path))
        };
        let is_tools = |path: &Path| is_pythons(path, since) || is_index_of_git(path);
        let is_kept = |path: &Path| !leads_to(path) && !self.is_built(path) && !is_tools(path);
        let recent = opened.found.iter().filter(|(path, at)| **at >= since && is_kept(path));
        recent.map(|(path, at)| (path.clone(), *at)).collect()
    }

    /// Groups recent files by their place.
    fn reused(&self, recent: &BTreeMap<PathBuf, SystemTime>) -> BTreeMap<String, ReusedFile> {
        let mut found: BTreeMap<String, ReusedFile> = BTreeMap::new();
        for (path, at) in recent {
            let by_process = self.set_up.get().is_some_and(|set_up| at >= set_up);
            let file = found.entry(self.place(path)).or_insert_with(|| ReusedFile {
                path: path.clone(),
                by_process,
                named: BTreeMap::new(),
            });
            file.by_process |= by_process;
            let in_cache = path.parent().is_some_and(|folder| folder.ends_with(PYTHON_CACHE));
            if by_process && path.is_file() && !in_cache && !has_digest(path) {
                file.named.insert(without_digits(path), path.clone());
            }
        }
        found
    }

    /// The place to report for a file: a folder of the sources, of the temporary folder, or of a program in
    /// the home folder. File names are left out, because caches often use digests as names.
    fn place(&self, path: &Path) -> String {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let temporary = ["/tmp", "/var/tmp", "/dev/shm"].map(PathBuf::from);
        let temporary = temporary.into_iter().chain([std::env::temp_dir()]);
        let roots = self.sources.iter().map(|sources| (sources.clone(), 1));
        let roots = roots.chain(home.map(|home| (home, 2))).chain(temporary.map(|folder| (folder, 1)));
        for (root, parts) in roots {
            if let Ok(inside) = path.strip_prefix(&root) {
                let root = if self.sources.contains(&root) { PathBuf::from("sources") } else { root };
                return without_digits(&root.join(inside.iter().take(parts).collect::<PathBuf>()));
            }
        }
        without_digits(path.parent().unwrap_or(path))
    }
}

/// Observes a process that is not timed, or a build. Each of its calls waits for the supervisor, on a busy machine for
/// up to a millisecond, so it may take longer than the configuration allows other processes.
pub(super) fn observed_process(command: Command) -> Command {
    const SLOWER: u32 = 4;
    Command { timeout: command.timeout * SLOWER, ..command }.observed()
}

/// Returns whether Python itself wrote a file since `since`, or made the folder, to compile a source file that
/// is older.
fn is_pythons(path: &Path, since: SystemTime) -> bool {
    let is_old = |source: &Path| written(source).is_some_and(|at| at < since);
    if !path.ends_with(PYTHON_CACHE) {
        return compiled_from(path).is_some_and(|source| is_old(&source));
    }
    let beside = path.parent().and_then(|folder| fs::read_dir(folder).ok());
    let mut beside = beside.into_iter().flatten().flatten().map(|entry| entry.path());
    beside.any(|source| source.extension().is_some_and(|kind| kind == "py") && is_old(&source))
}

/// Returns whether a file is an index of git, which rewrites it when it looks at files that are as new as the index
/// (`git describe --dirty`).
fn is_index_of_git(path: &Path) -> bool {
    let mut start = [0; 4];
    path.ends_with("index")
        && path.iter().any(|part| part == ".git")
        && fs::File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok()
        && start == *b"DIRC"
}

/// Returns whether a file or a folder above it is named by a digest, as in the caches of compilers. Such names
/// differ between any two versions of a program.
fn has_digest(path: &Path) -> bool {
    let mut words = path.iter().flat_map(|part| {
        let part = part.to_string_lossy().replace('-', "");
        part.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_owned).collect::<Vec<_>>()
    });
    words.any(|word| {
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        let is_hex = word.bytes().all(|byte| byte.is_ascii_hexdigit());
        word.len() >= 16 && digits >= 2 && digits < word.len() || word.len() >= 12 && digits > 0 && is_hex
    })
}

/// The time at which a file was last changed, according to its change time, which no program can set.
pub(super) fn written(path: &Path) -> Option<SystemTime> {
    let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let seconds = Duration::from_secs(u64::try_from(metadata.ctime()).ok()?);
    let rest = Duration::from_nanos(u64::try_from(metadata.ctime_nsec()).ok()?);
    Some(SystemTime::UNIX_EPOCH + seconds + rest)
}

pub(super) fn shown(name: &str) -> String {
    excerpt(name, LONGEST_NAME)
}

pub(super) fn other_work(detail: String) -> Option<Lint> {
    Some(Lint::new(LintCode::WorkloadChanged, detail))
}

/// Processor time below which a time is not precise.
const IMPRECISE: Duration = Duration::from_millis(50);

/// Factor by which a process with this processor time computed longer than another one.
fn longer(time: Duration, other: Option<Duration>) -> f64 {
    let other = other.unwrap_or(time).max(IMPRECISE);
    time.as_secs_f64() / other.as_secs_f64()
}

/// The finding that head's `setup` or `prepare` computes longer than base's by what its processes compute less while they are
/// timed: the work may have moved there.
pub(super) fn moved_work(base: &PreparedCommand, head: &PreparedCommand) -> Option<Lint> {
    /// Share of the lost processor time that has to be found, and the smallest share of base's that counts as lost.
    const FOUND: f64 = 0.5;
    const LOST: f64 = 0.1;
    let busy = |line: Line| {
        let of = |side: &PreparedCommand| Some(side.typically_busy(line)?.as_secs_f64());
        of(base).zip(of(head))
    };
    let (of_base, of_head) = busy(Line::Run)?;
    let lost = of_base - of_head;
    [Line::Setup, Line::Prepare].into_iter().find_map(|line| {
        let (before, after) = busy(line)?;
        let is_moved = lost > LOST * of_base && after - before > (FOUND * lost).max(IMPRECISE.as_secs_f64());
        if !is_moved {
            return None;
        }
        other_work(format!(
            "head's `{line}` computes for {after:.2} s (base's for {before:.2} s), and its processes compute for \
             {of_head:.2} s while they are timed (base's for {of_base:.2} s)"
        ))
    })
}

/// Factor from which an observed process does other work than the timed ones. Observing takes time of the kernel and of the
/// supervisor, but none of the program's own code.
const OTHERWISE: f64 = 3.0;

/// The finding about files that earlier processes wrote: changed work if only head reads such files, shared
/// state if both sides do.
pub(super) fn kept_state(base: &ObservedProcess, head: &ObservedProcess) -> Option<Lint> {
    let Some(by_base) = &base.reused else {
        return Some(Lint::new(
            LintCode::Unobserved,
            "files that the command's processes open can't be observed",
        ));
    };
    let Some(by_head) = &head.reused else {
        return other_work("a process of head can't be observed, but base's can".to_owned());
    };
    if let Some(kind) = by_head.memory.difference(&by_base.memory).next() {
        return other_work(format!(
            "head's processes use {kind}, which keep results for later processes; base's processes don't use them"
        ));
    }
    // A program can find out that it is observed, and keep results for the processes that are timed only.
    if head.longer > OTHERWISE * base.longer.max(1.0) {
        return other_work(format!(
            "head's process computes {:.1} times as long while its files are observed as when it is timed (base's {:.1} times)",
            head.longer, base.longer
        ));
    }
    let memory = by_head.memory.intersection(&by_base.memory).next();
    let (by_base, by_head) = (&by_base.files, &by_head.files);
    let only = by_head.iter().find_map(|(place, of_head)| match by_base.get(place) {
        None => Some(&of_head.path),
        Some(of_base) => {
            of_head.named.iter().find(|(name, _)| !of_base.named.contains_key(*name)).map(|(_, path)| path)
        }
    });
    if let Some(path) = only {
        let path = shown(&path.to_string_lossy());
        return other_work(format!(
            "head's processes read `{path}`, which was written during the run; base's processes don't read it{}",
            // Base's checkout is read-only, so pytest writes its cache only for head.
            if path.contains(".pytest_cache") {
                " (`pytest -p no:cacheprovider` writes no such file)"
            } else {
                ""
            }
        ));
    }
    let both = by_head
        .iter()
        .find(|(place, file)| file.by_process || by_base.get(*place).is_some_and(|file| file.by_process));
    let file = both.map(|(_, ReusedFile { path, .. })| {
        let path = shown(&path.to_string_lossy());
        format!("processes of both sides read files of earlier processes, such as `{path}`")
    });
    let memory = || {
        memory
            .map(|kind| format!("processes of both sides use {kind}, which keep results for later processes"))
    };
    file.or_else(memory).map(|detail| Lint::new(LintCode::KeptState, detail))
}
