//! `benchgate site`: renders the stored history as web pages.
//!
//! Writes a site to a folder. Unchanged files are not written again, so that a nightly update only writes its
//! changes. Files that the site no longer has are removed, but only if the site wrote them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::exit_code::ExitCode;
use crate::files;
use crate::gate::threads;
use crate::git::Repository;
use crate::model::{SourceCommit, counted, hex};
use crate::site::{self, Silence, Site, Timeline, Unstable};
use crate::store::{self, Files, StoreError, Stored};

use super::store_args::{StoreArgs, runner, say_faults};
use super::{CliError, Terminal};

/// Write the stored history as a static site
///
/// An overview, a page for each benchmark, and a page that compares two sessions. The site works from a disk and from
/// any web server, and makes no network requests. Files that did not change are not written again.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  benchgate site public                       the folder `baselines`
  benchgate site public --branch              the branch benchgate-baselines
  benchgate site public --fail-on missing     exit code 12 if anything stopped reporting")]
pub struct SiteArgs {
    /// Folder for the site; created if absent
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    history: HistoryArgs,
    /// Repository for links to commits [default: the remote `origin`]
    #[arg(long, value_name = "URL", value_parser = repository)]
    repository: Option<site::RepositoryUrl>,
    #[command(flatten)]
    store: StoreArgs,
}

/// Options for reading the stored history, and for the time after which it counts as silent.
#[derive(Debug, Clone, clap::Args)]
pub struct HistoryArgs {
    /// Configuration of the suite; its `[store]` says where the sessions are stored
    #[arg(long, short, value_name = "FILE", default_value = "benchgate.toml", env = "BENCHGATE_CONFIG")]
    config: PathBuf,
    /// Number of newest sessions to read; counted per suite and testbed [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    sessions: Option<u32>,
    /// Days without a session after which a testbed or benchmark is missing
    #[arg(long, value_name = "DAYS", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    silent_after: u32,
    /// Verdicts that make the exit code non-zero; only `missing` is valid here, and the output is written in any case
    #[arg(long, value_name = "VERDICTS")]
    fail_on: Option<SiteFailOn>,
    /// Override the current time (RFC 3339), for reproducible pages [default: now]
    #[arg(long, value_name = "TIME")]
    now: Option<Timestamp>,
}

/// Conditions that can fail a nightly run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum SiteFailOn {
    /// A testbed or benchmark stopped reporting
    Missing,
}

pub fn repository(text: &str) -> Result<site::RepositoryUrl, String> {
    let expected = "expected an address like https://github.com/OWNER/REPO";
    site::RepositoryUrl::parse(text).ok_or_else(|| expected.to_owned())
}

pub fn run(args: &SiteArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let mut folder = Folder::open(&args.folder)?;
    let git = Repository::open(Path::new(".")).ok();
    let origin = git.as_ref().and_then(|git| git.remote_url("origin").ok());
    let repository =
        args.repository.clone().or_else(|| origin.as_deref().and_then(site::RepositoryUrl::parse));
    let timelines = args.history.read(&args.store, git.as_ref(), terminal)?;
    let now = args.history.now();
    let silent = args.history.silent(&timelines);
    let unstable = site::unstable(&timelines);
    let repository = repository.as_ref();
    let open = site::open_slowdowns(&timelines, now, &site::AlertPolicy::default());
    let red = site::red_rows(&timelines, &open);
    let commits = |range: &site::Range<'_>| git.as_ref().map(|git| commits(git, range)).unwrap_or_default();
    let site = Site {
        timelines: &timelines,
        open: &open,
        red: &red,
        newest: args.history.sessions.map(|sessions| sessions as usize),
        silent: &silent,
        unstable: &unstable,
        now,
        repository,
        commits: &commits,
    };
    site.build(&site::moved(&timelines), |path, content| folder.write(path, content))?;
    folder.finish()?;
    terminal.say(&format!(
        "wrote {} to {}: {}, {} unchanged, {} removed\n",
        counted(timelines.iter().map(|timeline| timeline.benchmarks.len()).sum(), "benchmark"),
        args.folder.display(),
        counted(folder.written, "file"),
        folder.unchanged,
        folder.removed
    ));
    Ok(args.history.judge(&unstable, &silent, terminal))
}

/// The commits after the first one of a range, newest first. Empty if this clone does not have them, because
/// the suite's sources may be in another repository.
fn commits(git: &Repository, range: &site::Range<'_>) -> Vec<SourceCommit> {
    git.line(range.from, range.to).unwrap_or_default().into_iter().skip(1).rev().collect()
}

impl HistoryArgs {
    pub fn now(&self) -> Timestamp {
        self.now.unwrap_or_else(Timestamp::now)
    }

    /// Reads all stored sessions, reduced to timelines.
    pub fn read(
        &self,
        place: &StoreArgs,
        git: Option<&Repository>,
        terminal: &Terminal,
    ) -> Result<Vec<Timeline>, CliError> {
        // The file may be absent only if it has the default name.
        let config = place.configured(&self.config, self.config != Path::new("benchgate.toml"))?;
        let files = place.place(config.as_ref()).open(git, &runner, terminal)?;
        let mut timelines = Vec::new();
        for (suite, testbed) in store::baseline_folders(files.as_ref())? {
            let mut baseline =
                store::BaselineFolder::open_folder(files.as_ref(), format!("{suite}/{testbed}"))?;
            // Sessions that an expired acceptance released count as slow again, as for the gate.
            baseline.end_acceptances(self.now());
            let newest = self.sessions.map_or(usize::MAX, |sessions| sessions as usize);
            timelines.extend(read_timeline(files.as_ref(), &baseline, newest, terminal)?);
        }
        if timelines.is_empty() {
            return Err(CliError::baseline_missing(format!("{} has no session", files.place()))
                .hint("`benchgate baseline update` stores a session; --store and --branch name the place"));
        }
        site::name_machines(&mut timelines);
        Ok(timelines)
    }

    /// The benchmarks and testbeds that stopped reporting.
    pub fn silent(&self, timelines: &[Timeline]) -> Vec<Silence> {
        site::silences(timelines, self.now(), self.silent_after)
    }

    /// Lists unstable and missing benchmarks, and returns the exit code.
    pub fn judge(&self, unstable: &[Unstable<'_>], silent: &[Silence], terminal: &Terminal) -> ExitCode {
        let now = self.now();
        for unstable in unstable {
            let Unstable { timeline, benchmark, .. } = unstable;
            terminal.warn(&format!(
                "unstable: {benchmark} of {} on {}: {}",
                timeline.suite,
                timeline.machine,
                unstable.sentence()
            ));
        }
        let mut alarm = false;
        for silence in silent {
            let what = silence.benchmark.as_deref().unwrap_or("the whole testbed");
            let since = silence.since.strftime("%Y-%m-%d");
            let days = counted(usize::try_from(silence.days(now)).unwrap_or_default(), "day");
            let text = format!(
                "{what} of {} on {} was last measured on {since}, {days} ago",
                silence.suite, silence.testbed
            );
            match &silence.explained {
                Some(why) => terminal.note(&format!("note: {text}; {why}")),
                None => {
                    alarm = true;
                    terminal.warn(&format!("missing: {text}"));
                }
            }
        }
        if alarm && self.fail_on == Some(SiteFailOn::Missing) {
            ExitCode::BaselineMissing
        } else {
            ExitCode::Pass
        }
    }
}

/// The number of files that are parsed together on all processors. Prefetching uses a multiple of it.
const BATCH: usize = 32;

/// The newest sessions of one suite on one testbed, reduced to a timeline; `None` if there are none.
pub fn read_timeline(
    files: &dyn Files,
    baseline: &store::BaselineFolder,
    newest: usize,
    terminal: &Terminal,
) -> Result<Option<Timeline>, CliError> {
    let runs = baseline.newest_runs(files, newest)?;
    say_faults(&baseline.faults, terminal);
    say_faults(&runs.faults, terminal);
    let mut faults = baseline.faults.len() + runs.faults.len();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let mut found: Option<Timeline> = None;
    for (at, batch) in runs.names.chunks(BATCH).enumerate() {
        let ahead = at * BATCH;
        if ahead.is_multiple_of(store::BATCH) {
            baseline.prefetch(files, &runs.names[ahead..runs.names.len().min(ahead + store::BATCH)])?;
        }
        let bytes = batch.iter().map(|name| files.read(&baseline.run_path(name)));
        let bytes = bytes.collect::<Result<Vec<_>, StoreError>>()?;
        let sessions = threads::each_on(processors, &bytes, 2, |bytes| baseline.encoding.read(bytes));
        for (name, file) in batch.iter().zip(sessions) {
            let stored = file.map_err(|error| error.to_string());
            let stored = stored.and_then(|file| baseline.checked(name, file).map_err(|fault| fault.why));
            match (stored, name.began()) {
                (Ok(stored), Some(began)) => {
                    let held = baseline.held(&stored);
                    let Stored { name, file } = stored;
                    let timeline = found.get_or_insert_with(|| Timeline::new(&file.suite, &file.testbed.id));
                    timeline.add(name.as_str(), began, file, held);
                }
                (stored, _) => {
                    faults += 1;
                    let why = stored.err().unwrap_or_else(|| "its name contains no time".to_owned());
                    terminal.warn(&format!("{} is left out: {why}", baseline.run_path(name)));
                }
            }
        }
    }
    if let Some(found) = &mut found {
        found.faults = faults;
        found.acceptances = baseline.acceptances.iter().map(|(_, accepted)| accepted.clone()).collect();
    }
    Ok(found)
}

impl From<FolderError> for CliError {
    fn from(error: FolderError) -> Self {
        let message = format!("failed to {error}");
        match error {
            FolderError::Foreign(_) => Self::usage(message)
                .hint("name a new or empty folder, or one that an earlier `benchgate site` wrote"),
            FolderError::Manifest { .. } => {
                Self::usage(message).hint("remove the folder and run the command again")
            }
            FolderError::Io { .. } => Self::failed(message),
        }
    }
}

/// The name of the file that lists all files of the site.
const MANIFEST: &str = "benchgate-site.json";
const SCHEMA: &str = "benchgate/site/v1";

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    schema: String,
    /// The SHA-256 of each file, by path.
    files: BTreeMap<String, String>,
}

/// Errors. Each message completes "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error("{action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("write a site to {}: it has files but no {MANIFEST}", .0.display())]
    Foreign(PathBuf),
    #[error("read {}: {why}", path.display())]
    Manifest { path: PathBuf, why: String },
}

/// A site that is being written.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    old: Manifest,
    new: Manifest,
    pub written: usize,
    pub unchanged: usize,
    pub removed: usize,
}

impl Folder {
    /// Opens a folder that is absent, empty, or contains a site.
    ///
    /// # Errors
    /// A folder with other content, or one that can't be read.
    pub fn open(root: &Path) -> Result<Self, FolderError> {
        let path = root.join(MANIFEST);
        let old = match fs::read(&path) {
            Ok(bytes) => {
                let unreadable = |why: String| FolderError::Manifest { path: path.clone(), why };
                let manifest: Manifest =
                    serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
                if manifest.schema != SCHEMA {
                    return Err(unreadable(format!("expected {SCHEMA}, found {:?}", manifest.schema)));
                }
                manifest
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let foreign = fs::read_dir(root).is_ok_and(|mut entries| entries.next().is_some());
                if foreign {
                    return Err(FolderError::Foreign(root.to_owned()));
                }
                Manifest::default()
            }
            Err(source) => return Err(FolderError::Io { action: "read", path, source }),
        };
        let new = Manifest { schema: SCHEMA.to_owned(), files: BTreeMap::new() };
        Ok(Self { root: root.to_owned(), old, new, written: 0, unchanged: 0, removed: 0 })
    }

    /// Writes one file, unless it already has this content.
    pub fn write(&mut self, path: &str, content: &[u8]) -> Result<(), FolderError> {
        let digest = hex(&Sha256::digest(content));
        let file = self.root.join(path);
        // Checking the size detects truncated or edited files without reading hundreds of megabytes again.
        let same = self.old.files.get(path) == Some(&digest)
            && fs::symlink_metadata(&file)
                .is_ok_and(|found| found.is_file() && found.len() == content.len() as u64);
        if same {
            self.unchanged += 1;
        } else {
            let io = |source| FolderError::Io { action: "write", path: file.clone(), source };
            fs::create_dir_all(file.parent().unwrap_or(&self.root)).map_err(io)?;
            // Syncing thousands of files would be slow, and a site that a power failure damaged can be
            // written again.
            files::replace(&file, content).map_err(io)?;
            self.written += 1;
        }
        self.new.files.insert(path.to_owned(), digest);
        Ok(())
    }

    /// Removes files that the site no longer has, and writes the list of its files.
    pub fn finish(&mut self) -> Result<(), FolderError> {
        let gone: BTreeSet<String> =
            self.old.files.keys().filter(|path| !self.new.files.contains_key(*path)).cloned().collect();
        for path in gone.iter().filter(|path| is_inside(path)) {
            let file = self.root.join(path);
            let removed = files::if_exists(fs::remove_file(&file)).map_err(|source| FolderError::Io {
                action: "remove",
                path: file,
                source,
            })?;
            self.removed += usize::from(removed.is_some());
        }
        // Unfinished files of a killed run must not be published.
        let folders: BTreeSet<_> =
            self.new.files.keys().filter_map(|path| Path::new(path).parent()).collect();
        for folder in folders {
            files::sweep_drafts(&self.root.join(folder).join(MANIFEST));
        }
        let path = self.root.join(MANIFEST);
        let bytes = serde_json::to_vec_pretty(&self.new).unwrap_or_default();
        files::write(&path, &bytes).map_err(|source| FolderError::Io { action: "write", path, source })
    }
}

/// Returns true for a plain path below the site. The manifest may have been edited, so other paths are not
/// removed.
fn is_inside(path: &str) -> bool {
    let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    !path.contains('\\') && path.split('/').all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(root: &Path, files: &[(&str, &str)]) -> (usize, usize, usize) {
        let mut folder = Folder::open(root).unwrap();
        for (path, content) in files {
            folder.write(path, content.as_bytes()).unwrap();
        }
        folder.finish().unwrap();
        (folder.written, folder.unchanged, folder.removed)
    }

    #[test]
    fn only_what_changed_is_written_and_only_what_was_written_is_removed() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(site(root.path(), &[("index.html", "a"), ("b/x.html", "x")]), (2, 0, 0));
        let time = |path: &str| fs::metadata(root.path().join(path)).unwrap().modified().unwrap();
        let before = time("index.html");
        fs::write(root.path().join("CNAME"), "example.org").unwrap();
        assert_eq!(site(root.path(), &[("index.html", "a"), ("b/y.html", "y")]), (1, 1, 1));
        assert_eq!(time("index.html"), before);
        assert!(!root.path().join("b/x.html").exists());
        assert!(root.path().join("CNAME").exists());
        // A truncated file is written again.
        fs::write(root.path().join("index.html"), "").unwrap();
        assert_eq!(site(root.path(), &[("index.html", "a"), ("b/y.html", "y")]), (1, 1, 0));
        assert_eq!(fs::read_to_string(root.path().join("index.html")).unwrap(), "a");
    }

    #[test]
    fn a_folder_of_something_else_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("thesis.tex"), "x").unwrap();
        assert!(matches!(Folder::open(root.path()), Err(FolderError::Foreign(_))));
        fs::write(root.path().join(MANIFEST), "{}").unwrap();
        assert!(matches!(Folder::open(root.path()), Err(FolderError::Manifest { .. })));
    }

    #[test]
    fn an_edited_manifest_removes_nothing_outside() {
        let outer = tempfile::tempdir().unwrap();
        let (root, outside) = (outer.path().join("site"), outer.path().join("keep"));
        fs::write(&outside, "x").unwrap();
        fs::create_dir(&root).unwrap();
        let manifest = serde_json::json!({ "schema": SCHEMA, "files": { "../keep": "0", outside.to_str().unwrap(): "0" } });
        fs::write(root.join(MANIFEST), manifest.to_string()).unwrap();
        assert_eq!(site(&root, &[("index.html", "a")]), (1, 0, 0));
        assert!(outside.exists());
    }
}
