//! `benchgate init`: writes a suite that runs, and the workflows that judge it.

mod templates;
mod torchbench;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::{self, CommandLine};
use crate::exit_code::ExitCode;
use crate::git;
use crate::github::{RepositoryName, Sha};
use crate::process::{self, Command, Exit};

use super::store_args::git_environment;
use super::stored::likely_base;
use super::{CliError, Terminal, runtime};
use templates::{Answers, Template, store};

/// Write a suite, and workflows that measure it and publish its results
///
/// Writes benchgate.toml with an example that runs. In a released version, or with --action, it also writes
/// four workflows: one measures every pull request with a read-only token, one publishes the results without
/// running any of the pull request's code, one adds a session to the baseline every night, and one publishes
/// the history as a site and opens issues about slowdowns. Existing files are never overwritten; an existing
/// suite only gets its workflows.
///
/// With --shards several machines measure one run: the workflows plan, measure each shard in a separate job, and
/// merge.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  benchgate init
  benchgate init suites/zoo --runner self-hosted,gpu
  benchgate init --shards 4            several machines measure
  benchgate init --label benchgate     only pull requests with this label
  benchgate init --model attention     one more model, in Python
  benchgate init tb --torchbench DIR   PyTorch's torchbench
  benchgate init --build-command 'make O={build}' --command '{build}/bench'

Exit codes: 0 written, 2 usage, or a file is there already (then nothing is
written).")]
pub struct InitArgs {
    /// Folder of the suite; the workflows go to the top of its repository
    #[arg(value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
    /// The suite's name [default: the folder's]
    #[arg(long, value_name = "NAME", value_parser = name)]
    suite: Option<String>,
    /// Labels of the runner that measures, separated by commas
    #[arg(long, value_name = "LABELS", default_value = "ubuntu-24.04", value_parser = name, value_delimiter = ',')]
    runner: Vec<String>,
    /// Number of shards
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    shards: Option<u16>,
    /// Measure only pull requests with this label, instead of all of them
    #[arg(long, value_name = "LABEL", value_parser = name)]
    label: Option<String>,
    /// The action, pinned: `OWNER/REPO@COMMIT` with all 40 digits [default: this release's action]
    #[arg(long, value_name = "ACTION", value_parser = action)]
    action: Option<String>,
    /// Write a suite of the models in a checkout of PyTorch's torchbench, instead of the example
    #[arg(long, value_name = "CHECKOUT")]
    torchbench: Option<PathBuf>,
    /// PyTorch's torchbench.yaml: dtypes, batch sizes, tolerances and models to leave out
    #[arg(long, value_name = "FILE", requires = "torchbench")]
    torchbench_config: Option<PathBuf>,
    /// Write models/NAME.py, a model in Python, and nothing else
    #[arg(long, value_name = "NAME", value_parser = name, conflicts_with_all = ["suite", "runner", "shards", "label", "action", "torchbench"])]
    model: Option<String>,
    /// Write a suite that measures this command, instead of the example; writes no workflow
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["runner", "shards", "label", "action", "torchbench", "model"])]
    command: Option<String>,
    /// Command that builds the program; `{build}` stands for an empty folder, one per side; repeatable, in order
    #[arg(long, value_name = "COMMAND", requires = "command")]
    build_command: Vec<String>,
}

/// Files that a run leaves in the repository. They are large and different each time, so git should ignore
/// them.
const IGNORED: &str = "run.json\nnoise.json\n.benchgate/\n";

/// The commit from which a release was built. Only the release workflow sets this variable.
const RELEASED: Option<&str> = option_env!("BENCHGATE_RELEASE_COMMIT");

const UNKNOWN_ACTION: &str =
    "this benchgate was not built by a release, so it does not know the commit of its action";

/// Parses a name that is valid in a configuration, as a runner's label and as a file name.
fn name(text: &str) -> Result<String, String> {
    let known = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let good = text.starts_with(|first: char| first.is_ascii_alphanumeric()) && text.chars().all(known);
    if good { Ok(text.to_owned()) } else { Err("expected letters, digits, `.`, `_` and `-`".to_owned()) }
}

fn action(text: &str) -> Result<String, String> {
    let known = text.split_once('@').filter(|(repository, commit)| {
        RepositoryName::parse(repository).is_some() && Sha::parse(commit).is_some()
    });
    let wanted = "expected OWNER/REPO@COMMIT with the full commit hash: a tag can be moved to other code";
    known.map(|_| text.to_owned()).ok_or_else(|| wanted.to_owned())
}

pub fn run(args: &InitArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    if let Some(model) = &args.model {
        let file = args.folder.join("models").join(format!("{model}.py"));
        write(&[(file, templates::MODEL.to_owned().into_bytes())], terminal)?;
        terminal.say(&format!(
            "\nAdd it to benchgate.toml:\n\n[[model]]\nname = \"{model}\"\nsource = \"models/{model}.py:make\"\n"
        ));
        return Ok(ExitCode::Pass);
    }
    if let Some(command) = &args.command {
        return for_command(args, command, terminal);
    }
    // An existing suite is kept and only gets its workflows.
    let has_suite = args.folder.join("benchgate.toml").exists();
    if has_suite && args.torchbench.is_some() {
        return Err(already_there(&args.folder.join("benchgate.toml").display().to_string()));
    }
    let answers = answers(args)?;
    let root = git::Repository::open(&existing(&args.folder)).map(|repository| repository.root().to_owned());
    let root = root.unwrap_or_else(|_| args.folder.clone());
    let mut files: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    let ignore = root.join(".gitignore");
    let keeps_ignore = std::fs::symlink_metadata(&ignore).is_ok();
    if !has_suite {
        if !keeps_ignore {
            files.push((ignore, IGNORED.into()));
        }
        let suite = templates::suite(&answers).into_iter();
        files.extend(suite.map(|(name, content)| (args.folder.join(name), content)));
    }
    if answers.action.is_some() {
        let filled = |workflow: Template| (root.join(workflow.path()), workflow.fill(&answers).into_bytes());
        files.extend(Template::ALL.map(filled));
    } else if has_suite {
        return Err(
            CliError::usage(UNKNOWN_ACTION).hint("name it: --action OWNER/REPO@COMMIT, with all 40 digits")
        );
    }
    write(&files, terminal)?;
    if keeps_ignore && !has_suite {
        terminal.say(&format!("\nAdd to .gitignore:\n\n{IGNORED}"));
    }
    let base = git::Repository::open(&existing(&args.folder)).map_or("HEAD", |at| likely_base(&at));
    let suite = has_suite.then(|| config::load(&args.folder.join("benchgate.toml")));
    // A suite of commands needs no tools.
    let has_models = !suite.is_some_and(|suite| suite.is_ok_and(|suite| suite.models.is_empty()));
    let pin = "  benchgate tools pin   write the hashes of the tools to benchgate.lock\n";
    let pin = if has_models { pin } else { "" };
    terminal.say(&format!(
        "\nNext:\n{pin}  benchgate run         check that \
         the suite works here\n  benchgate doctor      list what is still missing here\n\nOnce it is committed, `benchgate gate \
         --base {base}` measures a change here.\n",
    ));
    if answers.action.is_none() {
        let runner = args.runner.join(",");
        let shards = args.shards.map(|shards| format!(" --shards {shards}")).unwrap_or_default();
        let label = args.label.as_ref().map(|label| format!(" --label {label}")).unwrap_or_default();
        terminal.note(&format!(
            "no workflows were written: {UNKNOWN_ACTION}; `benchgate init --action OWNER/REPO@COMMIT --runner \
             {runner}{shards}{label}` adds them"
        ));
        terminal.say("Without workflows no pull request is measured.\n");
    } else {
        terminal.say(
            "Then commit all of it: the next pull request is measured. For the site, choose \"GitHub Actions\" as the source \
             in Settings > Pages.\n",
        );
    }
    Ok(ExitCode::Pass)
}

fn answers(args: &InitArgs) -> Result<Answers, CliError> {
    let is_release = RELEASED.is_some_and(|commit| Sha::parse(commit).is_some());
    let action = match &args.action {
        Some(action) => Some(action.clone()),
        None if is_release => {
            let version = benchgate_core::VERSION;
            let commit = commit_of(version, env!("CARGO_PKG_REPOSITORY"))?;
            Some(format!("benchgate/benchgate@{commit} # v{version}"))
        }
        None => None,
    };
    let folder = std::path::absolute(&args.folder).map_err(CliError::unwritable(&args.folder))?;
    let inside = git::Repository::open(&existing(&args.folder))
        .ok()
        .and_then(|repository| {
            let root = repository.root().to_owned();
            // The folder may not exist yet, so git is asked about the part of its path that does.
            let there = existing(&folder);
            let real = std::fs::canonicalize(&there).ok()?.join(folder.strip_prefix(&there).ok()?);
            real.strip_prefix(root).ok().map(Path::to_owned)
        })
        .unwrap_or_default();
    let inside =
        inside.to_str().filter(|path| path.split('/').all(|part| part.is_empty() || name(part).is_ok()));
    let inside = inside.ok_or_else(|| {
        CliError::usage(format!(
            "{} has characters in its path that a workflow would have to quote",
            args.folder.display()
        ))
        .hint("rename the folder, or run it in another one")
    })?;
    let has_branch = action.is_some() || has_remote(&args.folder);
    Ok(Answers {
        suite: suite_name(args)?,
        folder: inside.to_owned(),
        runner: args.runner.clone(),
        shards: args.shards,
        label: args.label.clone(),
        action,
        models: args
            .torchbench
            .as_deref()
            .map(|checkout| torchbench::suite(checkout, args.torchbench_config.as_deref(), &args.folder))
            .transpose()?,
        has_branch,
    })
}

/// Returns true if the folder's repository has the remote that `[store]` names by default.
fn has_remote(folder: &Path) -> bool {
    git::Repository::open(&existing(folder)).is_ok_and(|at| at.remote_url("origin").is_ok())
}

/// The requested name, or else the folder's.
fn suite_name(args: &InitArgs) -> Result<String, CliError> {
    let folder = std::path::absolute(&args.folder).map_err(CliError::unwritable(&args.folder))?;
    let named = folder.file_name().and_then(|name| name.to_str()).and_then(|folder| name(folder).ok());
    Ok(args.suite.clone().or(named).unwrap_or_else(|| "suite".to_owned()))
}

/// The folder itself if it exists, or else its nearest existing parent.
fn existing(folder: &Path) -> PathBuf {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    absolute.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/")).to_owned()
}

/// Writes all files, or none if one of them exists.
fn write(files: &[(PathBuf, Vec<u8>)], terminal: &Terminal) -> Result<(), CliError> {
    let there: Vec<String> = files
        .iter()
        .filter(|(path, _)| std::fs::symlink_metadata(path).is_ok())
        .map(|(path, _)| path.display().to_string())
        .collect();
    if !there.is_empty() {
        return Err(already_there(&there.join(", ")));
    }
    for (path, content) in files {
        let folder = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(CliError::unwritable(folder))?;
        let file = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
        file.and_then(|mut file| std::io::Write::write_all(&mut file, content))
            .map_err(CliError::unwritable(path))?;
        terminal.say(&format!("wrote {}\n", from_here(path).display()));
    }
    Ok(())
}

/// The path as the user would type it in the current folder.
fn from_here(path: &Path) -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(&here).or_else(|_| path.strip_prefix(".")).unwrap_or(path).to_owned()
}

fn already_there(paths: &str) -> CliError {
    CliError::usage(format!("failed to write {paths}: already there; nothing is overwritten"))
        .hint("move the existing files away, or run init in another folder to compare")
}

// The functions below find the commit of this release's action. The tag is created after the program is
// built, so the program can't contain it.

/// Time limit for listing two references of a remote repository.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The commit that the tag of `version` points to in the repository at `url`.
///
/// # Errors
/// The repository can't be reached, or has no such tag.
fn commit_of(version: &str, url: &str) -> Result<String, CliError> {
    let tag = format!("refs/tags/v{version}");
    // An annotated tag is a separate object; with `^{}` git resolves it to the commit.
    let commit = format!("{tag}^{{}}");
    let mut command = Command::new("git", TIMEOUT)
        .args(["ls-remote", "--tags", "--", url, &tag, &commit])
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("LC_ALL", "C")
        .capture_stdout();
    for (name, value) in git_environment() {
        command = command.env(name, value);
    }
    let failed = |why: &str| {
        CliError::failed(format!("failed to read the tag v{version} of {url}: {why}"))
            .hint("name the action's commit: --action OWNER/REPO@COMMIT, with all 40 digits")
    };
    let finished = runtime::block_on(async |cancel| {
        process::run(&command, &cancel).await.map_err(|error| failed(&error.to_string()))
    })?;
    if finished.exit != Exit::Success {
        let why = finished.stderr_tail.lines().rev().find(|line| !line.trim().is_empty());
        return Err(failed(why.unwrap_or("git failed")));
    }
    let listed = String::from_utf8_lossy(&finished.stdout).into_owned();
    let named = |wanted: &str| {
        let mut lines = listed.lines().filter_map(|line| line.split_once('\t'));
        lines.find(|(_, name)| *name == wanted).map(|(commit, _)| commit)
    };
    named(&commit)
        .or_else(|| named(&tag))
        .filter(|commit| Sha::parse(commit).is_some())
        .map(str::to_owned)
        .ok_or_else(|| failed("there is no such tag"))
}

/// Writes a suite for one program of the repository (`--command`), and a .gitignore unless there is one.
fn for_command(args: &InitArgs, command: &str, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let file = args.folder.join("benchgate.toml");
    let text = suite(&suite_name(args)?, &args.build_command, command, has_remote(&args.folder));
    // Invalid commands are reported before anything is written.
    config::parse(&text, &file).map_err(|problems| CliError::usage(format!("failed to {problems}")))?;
    let root = git::Repository::open(&existing(&args.folder)).map(|repository| repository.root().to_owned());
    let ignore = root.unwrap_or_else(|_| args.folder.clone()).join(".gitignore");
    let keeps_ignore = std::fs::symlink_metadata(&ignore).is_ok();
    let mut files: Vec<(PathBuf, Vec<u8>)> = vec![(file, text.into_bytes())];
    if !keeps_ignore {
        files.push((ignore, IGNORED.into()));
    }
    write(&files, terminal)?;
    if keeps_ignore {
        terminal.say(&format!("\nAdd to .gitignore:\n\n{IGNORED}"));
    }
    let base = git::Repository::open(&existing(&args.folder)).map_or("HEAD", |at| likely_base(&at));
    terminal.say(&format!(
        "\nNext:\n  benchgate run                       check that the command works here\n  {:<34}  measure what a {} \
         changed\n\nThe base is built from its own configuration, so commit this file to the base first.\n",
        format!("benchgate gate --base {base}"),
        if base == "HEAD" { "later edit" } else { "branch" },
    ));
    Ok(ExitCode::Pass)
}

fn suite(name: &str, build: &[String], run: &str, has_branch: bool) -> String {
    let store = store(has_branch);
    let build = match build {
        [] => "# Commands that build the program; {build} is an empty folder of each side.\n# build = [\"cmake -B {build}\", \"cmake --build {build}\"]\n"
            .to_owned(),
        lines => format!("build = {lines:?}\n"),
    };
    let filter = if run.contains(CommandLine::FILTER) {
        ""
    } else {
        "# With {filter} in it, later processes run only the undecided benchmarks.\n"
    };
    format!(
        "# What is measured and what counts as a regression: docs/commands.md and docs/configuration.md.\n\n[suite]\n\
         name = {name:?}\n\n[[command]]\nname = \"bench\"\n{build}{filter}run = {run:?}\n\n[store]\n{store}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_action_of_a_release_is_the_commit_that_its_tag_names() {
        let folder = tempfile::tempdir().unwrap();
        let repository = git2::Repository::init(folder.path()).unwrap();
        let author = git2::Signature::now("t", "t@example.com").unwrap();
        let tree = repository.find_tree(repository.index().unwrap().write_tree().unwrap()).unwrap();
        let commit = repository.commit(Some("HEAD"), &author, &author, "sums", &tree, &[]).unwrap();
        let object = repository.find_object(commit, None).unwrap();
        repository.tag("v1.2.3", &object, &author, "benchgate 1.2.3", false).unwrap();
        repository.tag_lightweight("v1.2.4", &object, false).unwrap();
        let url = folder.path().to_str().unwrap();
        for version in ["1.2.3", "1.2.4"] {
            assert_eq!(commit_of(version, url).unwrap(), commit.to_string());
        }
        let absent = commit_of("1.2", url).unwrap_err().to_string();
        assert!(absent.contains("there is no such tag"), "{absent}");
        assert!(commit_of("1.2.3", "/nowhere").unwrap_err().to_string().contains("/nowhere"));
    }
}
