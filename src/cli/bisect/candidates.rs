//! The candidates of a search: finds them, and turns each into a side of a pair.
//!
//! Tools built from commits of another repository, by the user's own command.
//!
//! Flags whose names differ between versions of the tools.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::config::{self, Config, Pin, ToolSource};
use crate::git::Repository;
use crate::model::{SideName, SourceCommit, hex, short_commit};
use crate::pipeline::SideInput;
use crate::process::{self, Command, Exit};
use crate::toolchain::{self, Lock, ToolchainError, release_order};

use super::super::session::side;
use super::super::store_args::checkout_runner;
use super::super::{CliError, Terminal, paths, runtime};
use super::BisectArgs;

/// Candidates in order, starting at the good end.
pub struct Candidates {
    pub list: Vec<Candidate>,
    /// The suite in the working tree, whose policy and measurement settings apply to all candidates.
    pub config: Config,
    source: CandidateSource,
    lock: Lock,
    cache: PathBuf,
}

#[derive(Debug, Clone)]
pub struct Candidate {
    pub name: String,
    pub title: Option<String>,
    /// A unique identifier: a version, a commit or a pin.
    pub id: String,
}

enum CandidateSource {
    Releases,
    Pins(Vec<Pin>),
    Commits { repository: Repository, suite: PathBuf },
    Builds(Builds),
}

impl Candidates {
    pub fn find(args: &BisectArgs, terminal: &Terminal) -> Result<Self, CliError> {
        let mut config = args.measure.load()?;
        // Other backends are only context for a report, and a bisection has no such report.
        config.backends.clear();
        let cache = paths::cache_dir(args.measure.cache_dir.as_deref())?;
        if config.models.is_empty() {
            only_commits(args)?;
        }
        let lock = Lock::read_for(&config.file)?;
        let (list, source) = match (&args.toolchains, &args.good, &args.bad) {
            (Some(file), ..) => listed(file)?,
            (None, Some(good), Some(bad)) => between(args, &config, (good, bad), &cache, terminal)?,
            // This is not reached, because clap requires both ends.
            _ => return Err(CliError::usage("a bisection needs --good and --bad").hint("name both ends")),
        };
        match list.as_slice() {
            [] | [_] => Err(CliError::usage("the range is empty: the good and the bad end are the same")
                .hint("name two different ends, the good one first")),
            [good, .., bad] => {
                if !matches!(source, CandidateSource::Commits { .. }) {
                    // Commands are not built by a toolchain, so they would be identical for every candidate.
                    config.commands.clear();
                }
                terminal.note(&format!(
                    "{} candidates from {} (good) to {} (bad)",
                    list.len(),
                    good.name,
                    bad.name
                ));
                Ok(Self { list, config, source, lock, cache })
            }
        }
    }

    /// The folder of the builds, whose name changes with the scripts that make them.
    pub fn builds(&self) -> Option<&Path> {
        match &self.source {
            CandidateSource::Builds(builds) => Some(&builds.folder),
            _ => None,
        }
    }

    /// The candidate as one side of a pair.
    pub fn side(&mut self, at: usize, name: SideName, terminal: &Terminal) -> Result<SideInput, Unusable> {
        let candidate = &self.list[at];
        let head = |config: &Config| -> Result<SideInput, Unusable> {
            let side = side(SideName::Head, config)?;
            side.map(|side| SideInput { name, ..side })
                .ok_or_else(|| Unusable::Stop(CliError::internal("every configuration has a head")))
        };
        match &self.source {
            CandidateSource::Commits { repository, suite } => {
                let checkout =
                    repository.checkout(&candidate.id, &self.cache.join("checkouts"), &checkout_runner)?;
                let file = checkout.folder.join(suite);
                if !file.is_file() {
                    return Err(Unusable::Skipped(format!("the commit has no {}", suite.display())));
                }
                let mut config = config::load_within(&file, &checkout.folder)
                    .map_err(|error| Unusable::Skipped(format!("failed to {error}")))?;
                config.judge_by(&self.config);
                config.backends.clear();
                let side = head(&config)?;
                let commit = Some(candidate.id.clone());
                Ok(SideInput { commit, dirty: Some(false), checkout: Some(checkout), ..side })
            }
            source => {
                let pin = match source {
                    CandidateSource::Pins(pins) => pins[at].clone(),
                    CandidateSource::Builds(builds) => builds.pin(&candidate.id, terminal)?,
                    CandidateSource::Releases | CandidateSource::Commits { .. } => {
                        let (lock, cache, progress) = (&mut self.lock, &self.cache, terminal.progress());
                        let found = runtime::block_on(async |cancel| {
                            Ok(toolchain::release(&candidate.id, lock, cache, progress.as_ref(), &cancel)
                                .await)
                        })?;
                        found.map_err(unusable)?
                    }
                };
                let mut config = self.config.clone();
                config.head.pin = pin;
                Ok(SideInput { lock: self.lock.clone(), ..head(&config)? })
            }
        }
    }

    /// Installs and verifies the tools of a side, separately from measuring, so that a failure is attributed
    /// to this candidate.
    pub fn tools(&self, side: &SideInput, terminal: &Terminal) -> Result<(), Unusable> {
        if side.config.models.is_empty() {
            return Ok(());
        }
        let (pin, progress) = (&side.side.pin, terminal.progress());
        let found = runtime::block_on(async |cancel| {
            Ok(toolchain::ensure(pin, &side.lock, &self.cache, progress.as_ref(), &cancel).await)
        })?;
        if let (Err(_), CandidateSource::Builds(builds)) = (&found, &self.source) {
            builds.forget(&pin.commit)?;
        }
        found.map(drop).map_err(unusable)
    }
}

/// Decides whether an error skips a candidate. A release that the index lacks or that doesn't run here is
/// skipped. Tools with unexpected content stop the search, and so does an index that can't be reached.
fn unusable(error: ToolchainError) -> Unusable {
    let skipped = matches!(
        error,
        ToolchainError::NotFound { .. }
            | ToolchainError::NotLocked { .. }
            | ToolchainError::OtherCommit { .. }
            | ToolchainError::MissingTool { .. }
            | ToolchainError::WrongCommit { .. }
            | ToolchainError::Tool { .. }
    );
    if skipped { Unusable::Skipped(format!("failed to {error}")) } else { Unusable::Stop(error.into()) }
}

/// Refuses a range of toolchains for a suite without a model, whose commands would be compared with
/// themselves.
fn only_commits(args: &BisectArgs) -> Result<(), CliError> {
    let ends = [&args.good, &args.bad].into_iter().flatten();
    let releases = ends.into_iter().any(|end| release_order(end).is_some());
    if args.toolchains.is_none() && args.build.is_none() && !releases {
        return Ok(());
    }
    Err(CliError::usage(
        "a suite without [[model]] is bisected between commits: no toolchain builds a [[command]]",
    )
    .hint("name two commits; a tag like 1.2.0 is written refs/tags/1.2.0"))
}

/// The candidates from a file of toolchains.
fn listed(file: &Path) -> Result<(Vec<Candidate>, CandidateSource), CliError> {
    let pins = config::load_toolchains(file)?;
    let candidate = |pin: &Pin| Candidate {
        name: pin.version.clone(),
        title: None,
        id: format!("{}@{}", pin.version, pin.commit),
    };
    Ok((pins.iter().map(candidate).collect(), CandidateSource::Pins(pins)))
}

/// The candidates between two ends: releases if both are version numbers, otherwise commits.
fn between(
    args: &BisectArgs,
    config: &Config,
    (good, bad): (&str, &str),
    cache: &Path,
    terminal: &Terminal,
) -> Result<(Vec<Candidate>, CandidateSource), CliError> {
    if let (Some(command), Some(folder)) = (&args.build, &args.build_repository) {
        let repository = Repository::open(folder)?;
        let line = repository.line(good, bad)?;
        let builds = Builds::new(command, repository.root(), cache)?;
        return Ok((commits(line), CandidateSource::Builds(builds)));
    }
    match (release_order(good), release_order(bad)) {
        (Some(first), Some(last)) => {
            terminal.note("asking pip for the IREE releases");
            let all = runtime::block_on(async |cancel| Ok(toolchain::releases(cache, &cancel).await?))?;
            for end in [good, bad] {
                if !all.iter().any(|version| version == end) {
                    return Err(CliError::usage(format!(
                        "failed to find the IREE release {end}: the index has {}",
                        all.join(", ")
                    ))
                    .hint("name releases that the index has; to name a tag of this repository, write refs/tags/NAME"));
                }
            }
            if first > last {
                return Err(CliError::usage(format!("the release {bad} is older than {good}"))
                    .hint("swap --good and --bad"));
            }
            let inside =
                |version: &&String| release_order(version).is_some_and(|at| first <= at && at <= last);
            let candidate =
                |version: &String| Candidate { name: version.clone(), title: None, id: version.clone() };
            Ok((all.iter().filter(inside).map(candidate).collect(), CandidateSource::Releases))
        }
        (None, None) => {
            // The root may be relative to the working folder, but the repository needs an absolute path.
            let root = std::path::absolute(&config.root).unwrap_or_else(|_| config.root.clone());
            let repository = Repository::open(&root)?;
            let suite = repository.relative(&config.file)?;
            let line = repository.line(good, bad)?;
            Ok((commits(line), CandidateSource::Commits { repository, suite }))
        }
        _ => Err(CliError::usage(format!(
            "{good} and {bad} are a release and a commit, so there is nothing between them to test"
        ))
        .hint("name two releases, or two commits; a tag like 1.2.0 is written refs/tags/1.2.0")),
    }
}

fn commits(line: Vec<SourceCommit>) -> Vec<Candidate> {
    let name = |id: &str| short_commit(id).to_owned();
    line.into_iter()
        .map(|commit| Candidate { name: name(&commit.id), title: Some(commit.subject), id: commit.id })
        .collect()
}

/// Time limit of one build. A compiler that includes MLIR takes about an hour on a small machine.
const TIMEOUT: Duration = Duration::from_secs(4 * 3600);

pub struct Builds {
    command: String,
    repository: PathBuf,
    /// The folder for builds of this repository with this command and the scripts that it names.
    folder: PathBuf,
}

impl Builds {
    pub fn new(command: &str, repository: &Path, cache: &Path) -> Result<Self, CliError> {
        let mut key = Sha256::new();
        let mut add = |part: &[u8]| {
            key.update((part.len() as u64).to_le_bytes());
            key.update(part);
        };
        add(command.as_bytes());
        add(repository.as_os_str().as_encoded_bytes());
        // A build by an earlier version of a script that the command names is another one.
        let words = command.split(|c: char| c.is_whitespace() || "'\"=;&|()".contains(c));
        for file in words.map(|word| repository.join(word)).filter(|file| file.is_file()) {
            let unread = |error| CliError::failed(format!("failed to read {}: {error}", file.display()));
            add(&std::fs::read(&file).map_err(unread)?);
        }
        let key = hex(&key.finalize()[..16]);
        Ok(Self {
            command: command.to_owned(),
            repository: repository.to_owned(),
            folder: cache.join("builds").join(key),
        })
    }

    /// Builds a commit unless it was built before, and returns a pin of the result.
    pub fn pin(&self, commit: &str, terminal: &Terminal) -> Result<Pin, Unusable> {
        let tree = self.folder.join(commit);
        // This file is written after the command has succeeded, so an interrupted build is repeated.
        let done = self.folder.join(format!("{commit}.done"));
        if !done.is_file() {
            terminal.note(&format!("building {commit}"));
            self.build(commit, &tree)?;
            std::fs::write(&done, "").map_err(|error| failed(&done, &error))?;
        }
        let version = format!("0+{}", short_commit(commit));
        Ok(Pin { version, commit: commit.to_owned(), source: ToolSource::Path(tree) })
    }

    /// Lets the next search build a commit again whose tools can't be used.
    fn forget(&self, commit: &str) -> Result<(), Unusable> {
        let done = self.folder.join(format!("{commit}.done"));
        crate::files::if_exists(std::fs::remove_file(&done)).map(drop).map_err(|error| failed(&done, &error))
    }

    fn build(&self, commit: &str, tree: &Path) -> Result<(), Unusable> {
        if tree.exists() {
            std::fs::remove_dir_all(tree).map_err(|error| failed(tree, &error))?;
        }
        std::fs::create_dir_all(tree).map_err(|error| failed(tree, &error))?;
        let log = self.folder.join(format!("{commit}.log"));
        let command = Command::new("/bin/sh", TIMEOUT)
            .args(["-c", &self.command])
            .cwd(&self.repository)
            .env("BENCHGATE_COMMIT", commit)
            .env("BENCHGATE_REPOSITORY", &self.repository)
            .env("BENCHGATE_TREE", tree)
            .log(&log);
        let finished = runtime::block_on(async |cancel| {
            process::run(&command, &cancel)
                .await
                .map_err(|error| CliError::failed(format!("failed to {error}")))
        })?;
        match finished.exit {
            Exit::Success => Ok(()),
            Exit::Interrupted => Err(Unusable::Stop(CliError::interrupted())),
            exit => Err(Unusable::Skipped(format!("the build {exit} (log: {})", log.display()))),
        }
    }
}

fn failed(path: &Path, error: &std::io::Error) -> Unusable {
    Unusable::Stop(CliError::failed(format!("failed to write {}: {error}", path.display())))
}

/// Reasons why a candidate can't become a side of a pair.
pub enum Unusable {
    /// The candidate can't be measured; the search continues without it.
    Skipped(String),
    /// The search can't continue.
    Stop(CliError),
}

impl<E: Into<CliError>> From<E> for Unusable {
    fn from(error: E) -> Self {
        Self::Stop(error.into())
    }
}

/// The flag in a compiler's message about an unknown one: `Unknown command line argument '--iree-x=1'`.
pub fn unknown(why: &str) -> Option<String> {
    const SAYS: &str = "nknown command line argument '";
    let rest = &why[why.find(SAYS)? + SAYS.len()..];
    let flag = rest.split('\'').next()?;
    let name = flag.split('=').next()?;
    name.starts_with("--").then(|| name.to_owned())
}

/// The other name of a flag. The table of aliases is read in both directions.
pub fn other_name<'a>(aliases: &'a BTreeMap<String, String>, flag: &str) -> Option<&'a str> {
    let forward = aliases.get(flag).map(String::as_str);
    forward.or_else(|| aliases.iter().find(|(_, other)| *other == flag).map(|(name, _)| name.as_str()))
}

/// Replaces a flag by its other name everywhere on a side.
pub fn rename(side: &mut SideInput, flag: &str, other: &str) {
    let config = &mut side.config;
    let targets = config.targets.iter_mut().flat_map(|target| [&mut target.flags, &mut target.run_flags]);
    let models = config.models.iter_mut().map(|model| &mut model.flags);
    let own = [&mut side.side.flags, &mut side.side.run_flags];
    for text in targets.chain(models).chain(own).flatten() {
        if let Some(rest) = text.strip_prefix(flag)
            && (rest.is_empty() || rest.starts_with('='))
        {
            *text = format!("{other}{rest}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_names_the_flag_it_does_not_know() {
        let why = "iree-compile: Unknown command line argument '--iree-rocm-target=gfx942'.  Try: 'iree-compile --help'";
        assert_eq!(unknown(why).as_deref(), Some("--iree-rocm-target"));
        assert_eq!(unknown("error: failed to legalize"), None);
    }

    #[test]
    fn a_build_by_a_changed_script_is_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let repository = folder.path();
        let builds = |command: &str| Builds::new(command, repository, repository).unwrap().folder;
        for command in ["./build.sh", "sh 'build.sh'", "JOBS=1 SCRIPT=build.sh; sh $SCRIPT"] {
            std::fs::write(repository.join("build.sh"), "1").unwrap();
            let first = builds(command);
            assert_eq!(builds(command), first);
            std::fs::write(repository.join("build.sh"), "2").unwrap();
            assert_ne!(builds(command), first, "{command}");
        }
    }

    #[test]
    fn an_alias_is_read_in_both_directions() {
        let aliases = BTreeMap::from([("--new".to_owned(), "--old".to_owned())]);
        assert_eq!(other_name(&aliases, "--new"), Some("--old"));
        assert_eq!(other_name(&aliases, "--old"), Some("--new"));
        assert_eq!(other_name(&aliases, "--else"), None);
    }
}
