//! `benchgate import`: writes a configuration for another project's test suites.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::config;
use crate::exit_code::ExitCode;
use crate::files;
use crate::import::{self, FetchedFile, SuiteFiles};
use crate::model::{Event, Stage, counted};
use crate::toolchain;

use super::{CliError, Terminal, paths, runtime};

/// The maximum number of files in a checkout. With more files, the path is probably wrong.
const MOST_FILES: usize = 100_000;
/// The maximum depth of folders below the given one.
const DEEPEST: usize = 32;
/// The maximum size of a definition. The program of a single operator has a few KiB; larger files count as
/// data.
const LARGEST_DEFINITION: u64 = 16 << 20;

/// Write a benchgate.toml for another project's test suites
///
/// Prints every setting that benchgate.toml can't express, one per line, with the reason.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  benchgate import iree-test-suites iree-test-suites
  benchgate import iree-test-suites iree-test-suites --lists iree/tests/external/iree-test-suites
  benchgate import iree-test-suites iree-test-suites --lists lists --fetch")]
pub struct ImportArgs {
    /// The project whose definitions are read
    #[arg(value_name = "PROJECT", value_enum)]
    project: Project,
    /// Checkout of the suites; benchgate.toml is written there
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Additional folder with test configurations: flags, expected failures and skipped tests
    #[arg(long, value_name = "FOLDER")]
    lists: Option<PathBuf>,
    /// Download the files that definitions name only by URL, and record their SHA-256
    ///
    /// Each file is downloaded once, into the cache that later runs use. The content downloaded now becomes the
    /// expected content.
    #[arg(long)]
    fetch: bool,
    /// Cache directory for tools and compiled models [default: $XDG_CACHE_HOME/benchgate]
    #[arg(long, value_name = "FOLDER", env = "BENCHGATE_CACHE")]
    cache_dir: Option<PathBuf>,
}

/// A project whose definitions are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Project {
    IreeTestSuites,
}

pub fn run(args: &ImportArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let output = args.folder.join("benchgate.toml");
    if std::fs::symlink_metadata(&output).is_ok() {
        return Err(CliError::usage(format!("failed to write {}: it already exists", output.display()))
            .hint("move or delete it, and import again"));
    }
    let mut found = SuiteFiles::new();
    collect(&args.folder, "", DEEPEST, &mut found)?;
    let lists = args.lists.as_ref().map(|lists| format!("{}/", lists.display()));
    if let (Some(folder), Some(prefix)) = (&args.lists, &lists) {
        collect(folder, prefix, DEEPEST, &mut found)?;
    }
    let Project::IreeTestSuites = args.project;
    let mut fetched = BTreeMap::new();
    let mut imported = import::iree_test_suites(&found, &fetched, lists.as_deref());
    if args.fetch && !imported.missing.is_empty() {
        fetched = fetch(&imported.missing, args.cache_dir.as_deref(), terminal)?;
        imported = import::iree_test_suites(&found, &fetched, lists.as_deref());
    }
    if imported.models == 0 {
        return Err(CliError::usage(format!("no test of {} can be imported", args.folder.display()))
            .hint("name a checkout of iree-org/iree-test-suites"));
    }
    if imported.targets == 0 {
        return Err(CliError::usage(format!("{} has no test configuration", args.folder.display()))
            .hint("pass a folder that contains configurations: `--lists FOLDER`"));
    }
    config::parse(&imported.config, &output)
        .map_err(|error| CliError::failed(format!("the imported configuration is not valid: {error}")))?;
    files::write(&output, imported.config.as_bytes()).map_err(CliError::unwritable(&output))?;
    let mut text = String::new();
    for untranslated in &imported.untranslated {
        text.push_str(&format!("{untranslated}\n"));
    }
    terminal.say(&text);
    terminal.note(&format!(
        "wrote {}: {}, {}, {}, {} that fail as expected; {} not translated",
        output.display(),
        counted(imported.models, "model"),
        counted(imported.targets, "target"),
        counted(imported.limits, "limit"),
        counted(imported.expectations, "benchmark"),
        counted(imported.untranslated.len(), "definition"),
    ));
    Ok(ExitCode::Pass)
}

/// Downloads files into the cache and returns their hashes.
fn fetch(
    urls: &BTreeSet<String>,
    cache: Option<&Path>,
    terminal: &Terminal,
) -> Result<BTreeMap<String, FetchedFile>, CliError> {
    let cache = paths::cache_dir(cache)?;
    runtime::block_on(async |cancel| {
        let progress = terminal.progress();
        progress.on(Event::StageStarted { stage: Stage::Toolchain, steps: urls.len() });
        let mut fetched = BTreeMap::new();
        for url in urls {
            let (sha256, size) = toolchain::record_artifact(url, &cache, &*progress, &cancel).await?;
            fetched.insert(url.clone(), FetchedFile { sha256, size });
        }
        progress.on(Event::StageFinished { stage: Stage::Toolchain });
        Ok(fetched)
    })
}

/// Collects the files below a folder, with the text of definitions. Links are not followed.
fn collect(folder: &Path, prefix: &str, deepest: usize, found: &mut SuiteFiles) -> Result<(), CliError> {
    let failed = |why: &str| CliError::usage(format!("failed to read {}: {why}", folder.display()));
    if deepest == 0 {
        return Err(failed("folders are nested too deeply"));
    }
    for entry in std::fs::read_dir(folder).map_err(|error| failed(&error.to_string()))? {
        let (entry, kind) = entry
            .and_then(|entry| entry.file_type().map(|kind| (entry, kind)))
            .map_err(|error| failed(&error.to_string()))?;
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else {
            return Err(failed("the name of a file is not UTF-8"));
        };
        let path = format!("{prefix}{name}");
        if kind.is_dir() && name != ".git" {
            collect(&entry.path(), &format!("{path}/"), deepest - 1, found)?;
        } else if kind.is_file() {
            let text = import::is_definition(&path).then(|| text(&entry.path())).transpose()?.flatten();
            found.insert(path, text);
        }
        if found.len() > MOST_FILES {
            return Err(failed(&format!("it has more than {MOST_FILES} files")));
        }
    }
    Ok(())
}

/// Reads a file's text; `None` if the file is too large for a definition.
fn text(path: &Path) -> Result<Option<String>, CliError> {
    let failed = |why: &str| CliError::usage(format!("failed to read {}: {why}", path.display()));
    match files::read_bounded(path, LARGEST_DEFINITION) {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| failed("it is not UTF-8")),
        Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => Ok(None),
        Err(error) => Err(failed(&error.to_string())),
    }
}
