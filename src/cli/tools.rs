//! `benchgate tools`: pins, installs, verifies and lists the IREE tools.

use std::path::{Path, PathBuf};

use crate::config::{self, Config, Pin, ToolSource};
use crate::exit_code::ExitCode;
use crate::files::{self, KeptFolder};
use crate::model::{Event, Stage, Unit};
use crate::process::Cancel;
use crate::report::quantity;
use crate::toolchain::{self, Environment, Installed, Lock, SuitePackages, ToolchainError};

use super::{CliError, Terminal};

/// Pin, install, verify and list the IREE tools
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  benchgate tools pin 3.12.0   change to this release
  benchgate tools pin       resolve the pins of benchgate.toml to benchgate.lock
  benchgate tools install   install what the lock names, into the cache
  benchgate tools verify    hash the installed tools again, check their commits
  benchgate tools list      what the cache holds

Exit codes: 0 done, 2 the configuration is not usable, 20 the tools can't be
verified or installed.")]
pub struct ToolsArgs {
    #[command(subcommand)]
    command: ToolsCommand,
    /// Cache directory for tools and compiled models [default: $XDG_CACHE_HOME/benchgate]
    #[arg(long, global = true, value_name = "FOLDER", env = "BENCHGATE_CACHE")]
    cache_dir: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
enum ToolsCommand {
    /// Resolve every pin to files and hashes, and write benchgate.lock
    ///
    /// Asks pip, with your index settings, for the wheels of the pinned versions for every kind of machine, and writes
    /// their names and sha256 next to the configuration. It installs nothing. If a release is not locked yet, it
    /// reads the commit from that release's runtime wheel, which has to match the pin. Commit the file, and review
    /// changes to it like code.
    #[command(after_help = "\
Examples:
  benchgate tools pin 3.12.0     change benchgate.toml to this release
  benchgate tools pin --config examples/quickstart/benchgate.toml")]
    Pin {
        /// New release for `[toolchain]`
        #[arg(value_name = "VERSION")]
        release: Option<String>,
        #[command(flatten)]
        suite: Suite,
        /// Update all Python packages to their newest wheels, even if their requirements did not change
        #[arg(long)]
        upgrade: bool,
    },
    /// Install the locked tools and download the artifacts into the cache
    ///
    /// Installed tools and artifacts are verified. Several of these commands may run at once, and a killed one can be
    /// repeated.
    #[command(after_help = "Example:\n  benchgate tools install && benchgate run")]
    Install(Suite),
    /// Verify the installed tools: the hashes of their programs and libraries, and the commits of compiler and
    /// runtime
    #[command(after_help = "Example:\n  benchgate tools verify --cache-dir /mnt/cache/benchgate")]
    Verify(Suite),
    /// Remove installed tools and Python environments
    ///
    /// Tools that a suite needs later are installed again. To remove only what is no longer used, run
    /// `benchgate clean`.
    #[command(after_help = "\
Examples:
  benchgate tools remove 3.11.0
  benchgate tools remove 3.11.0 torch --dry-run")]
    Remove {
        /// A release, or the beginning of a name that `benchgate tools list` prints
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
        /// Show what would be done, and do nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// List installed tools and environments
    #[command(after_help = "Example:\n  benchgate tools list")]
    List,
}

#[derive(Debug, clap::Args)]
struct Suite {
    /// Configuration of the suite; `benchgate.lock` is next to it
    #[arg(long, short, value_name = "FILE", default_value = "benchgate.toml", env = "BENCHGATE_CONFIG")]
    config: PathBuf,
}

pub fn run(args: &ToolsArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let cache = super::paths::cache_dir(args.cache_dir.as_deref())?;
    match &args.command {
        ToolsCommand::List => list(&cache, terminal),
        ToolsCommand::Remove { names, dry_run } => remove(names, *dry_run, &cache, terminal)?,
        ToolsCommand::Pin { release, suite, upgrade } => {
            if let Some(version) = release {
                repin(&suite.config, version, &cache, terminal)?;
            }
            let config = load(suite)?;
            wait(async |cancel| pin(&config, *upgrade, &cache, terminal, &cancel).await)?;
        }
        ToolsCommand::Install(suite) => {
            let config = load(suite)?;
            wait(async |cancel| install(&config, &cache, terminal, &cancel).await)?;
        }
        ToolsCommand::Verify(suite) => {
            let config = load(suite)?;
            wait(async |cancel| verify(&config, &cache, terminal, &cancel).await)?;
        }
    }
    Ok(ExitCode::Pass)
}

fn load(suite: &Suite) -> Result<Config, CliError> {
    let config = config::load(&suite.config)?;
    if config.models.is_empty() && config.artifacts.is_empty() {
        let file = suite.config.display();
        return Err(CliError::usage(format!("{file} has no [[model]]: a [[command]] needs no tools")));
    }
    Ok(config)
}

/// Changes the configuration to a release and its commit.
fn repin(file: &Path, version: &str, cache: &Path, terminal: &Terminal) -> Result<(), CliError> {
    let text = config::read_text(file)?;
    let unusable = || {
        CliError::usage(format!("{} has no [toolchain] with a version to change", file.display()))
            .hint("write `version` and `commit` where the tools of each side are named, and run `benchgate tools pin`")
    };
    if config::repinned(&text, version, "").is_none() {
        return Err(unusable());
    }
    let commit = super::runtime::block_on(async |cancel| {
        let progress = terminal.progress();
        let pin = Pin { version: version.to_owned(), ..Pin::default() };
        let tools = toolchain::pin_tools(&pin, cache, &*progress, &cancel).await?;
        Ok(toolchain::release_commit(&tools, cache, &*progress, &cancel).await?)
    })?;
    let commit = commit.ok_or_else(|| {
        CliError::failed(format!(
            "failed to look up the commit of IREE {version}: it has no wheels for this machine"
        ))
        .hint("write `version` and `commit` into benchgate.toml, and run `benchgate tools pin`")
    })?;
    let changed = config::repinned(&text, version, &commit).ok_or_else(unusable)?;
    files::write(file, changed.as_bytes()).map_err(CliError::unwritable(file))?;
    terminal.say(&format!("wrote version {version} and commit {commit} to {}\n", file.display()));
    Ok(())
}

/// Runs asynchronous work until it is done or interrupted.
fn wait(work: impl AsyncFnOnce(Cancel) -> Result<(), ToolchainError>) -> Result<(), CliError> {
    super::runtime::block_on(async |cancel| Ok(work(cancel).await?))
}

/// The distinct pins of a suite, starting with the base's.
fn pins(config: &Config) -> Vec<&Pin> {
    let mut pins: Vec<&Pin> = Vec::new();
    let sides = config.base.iter().chain([&config.head]).map(|side| &side.pin);
    for pin in sides.chain(&config.anchor) {
        if !pins.contains(&pin) {
            pins.push(pin);
        }
    }
    pins
}

async fn pin(
    config: &Config,
    upgrade: bool,
    cache: &Path,
    terminal: &Terminal,
    cancel: &Cancel,
) -> Result<(), ToolchainError> {
    let progress = terminal.progress();
    let mut lock = Lock::read_for(&config.file)?;
    let mut locked = String::new();
    for pin in pins(config).into_iter().filter(|pin| pin.source == ToolSource::Pypi) {
        let tools = toolchain::pin_tools(pin, cache, &*progress, cancel).await?;
        locked.push_str(&format!(
            "IREE {} ({}): {} wheels\n",
            tools.version,
            tools.commit,
            tools.wheels.len()
        ));
        lock.check_commit(&tools)?;
        if !lock.iree.contains(&tools)
            && let Some(found) = toolchain::release_commit(&tools, cache, &*progress, cancel).await?
            && found != tools.commit
        {
            let (version, pinned) = (tools.version, tools.commit);
            return Err(ToolchainError::OtherRelease { version, pinned, found });
        }
        lock.put_tools(tools);
    }
    let suite = SuitePackages::read(config);
    let known = if upgrade { Lock::default() } else { lock.clone() };
    for environment in Environment::needed(config) {
        for env in toolchain::pin_python(environment, &suite, &known, cache, &*progress, cancel).await? {
            locked.push_str(&format!(
                "{} for Python {}: {}\n",
                env.name,
                env.python,
                crate::model::counted(env.wheels.len(), "wheel")
            ));
            lock.put_python(env);
        }
    }
    lock.write()?;
    terminal.say(&format!("{locked}wrote {}\n", lock.file.display()));
    Ok(())
}

async fn install(
    config: &Config,
    cache: &Path,
    terminal: &Terminal,
    cancel: &Cancel,
) -> Result<(), ToolchainError> {
    let progress = terminal.progress();
    let lock = Lock::read_for(&config.file)?;
    let environments = Environment::needed(config);
    let pins = if config.models.is_empty() { Vec::new() } else { pins(config) };
    let steps = pins.len() + environments.len() + config.artifacts.len();
    progress.on(Event::StageStarted { stage: Stage::Toolchain, steps });
    for artifact in &config.artifacts {
        let path = toolchain::ensure_artifact(artifact, cache, &*progress, cancel).await?;
        terminal.say(&format!("{}: {}\n", artifact.path().display(), path.display()));
    }
    for pin in pins {
        let tools = toolchain::ensure(pin, &lock, cache, &*progress, cancel).await?;
        terminal.say(&described(&tools));
    }
    let suite = SuitePackages::read(config);
    for environment in environments {
        let env = toolchain::ensure_python(environment, &suite, &lock, cache, &*progress, cancel).await?;
        terminal.say(&format!("{}: {}\n", environment.name(), env.python.display()));
    }
    progress.on(Event::StageFinished { stage: Stage::Toolchain });
    Ok(())
}

async fn verify(
    config: &Config,
    cache: &Path,
    terminal: &Terminal,
    cancel: &Cancel,
) -> Result<(), ToolchainError> {
    let progress = terminal.progress();
    let lock = Lock::read_for(&config.file)?;
    for pin in pins(config) {
        let tools = toolchain::verify(pin, &lock, cache, &*progress, cancel).await?;
        terminal.say(&described(&tools));
    }
    Ok(())
}

fn described(tools: &Installed) -> String {
    let identity = &tools.identity;
    format!("IREE {} ({}): {}\n", identity.version, identity.compiler_commit, tools.root.display())
}

fn remove(names: &[String], dry_run: bool, cache: &Path, terminal: &Terminal) -> Result<(), CliError> {
    let trees = toolchain::list(cache);
    let mut chosen = Vec::new();
    for name in names {
        let meant: Vec<_> = trees.iter().filter(|tree| is_named(&tree.what, name)).collect();
        if meant.is_empty() {
            return Err(CliError::usage(format!("{} has no tools called {name}", cache.display()))
                .hint("`benchgate tools list` lists the installed tools"));
        }
        chosen.extend(meant);
    }
    chosen.sort_by(|a, b| a.root.cmp(&b.root));
    chosen.dedup();
    for tree in chosen {
        let failed = |error: &dyn std::fmt::Display| {
            CliError::failed(format!("failed to remove {}: {error}", tree.root.display()))
        };
        let folder = KeptFolder::read(&tree.root).map_err(|error| failed(&error))?;
        let done = match dry_run {
            true => "would remove",
            false if toolchain::remove_tree(&folder).map_err(|error| failed(&error))? => "removed",
            false => "kept, because another benchgate is installing it:",
        };
        let bytes = quantity(folder.bytes as f64, &Unit::Bytes);
        terminal.say(&format!("{done} {} ({bytes})\n", tree.what));
    }
    Ok(())
}

/// Returns true if `name` refers to this tree: it is the beginning of the tree's name, or its version.
fn is_named(what: &str, name: &str) -> bool {
    what.starts_with(name) || what.split_whitespace().any(|word| word == name)
}

fn list(cache: &Path, terminal: &Terminal) {
    let trees = toolchain::list(cache);
    let mut text = String::new();
    for tree in &trees {
        let commit = tree.compiler_commit.as_deref().map(|commit| format!(" ({commit})")).unwrap_or_default();
        text.push_str(&format!(
            "{}{commit}: {}, {}\n",
            tree.what,
            quantity(tree.bytes as f64, &Unit::Bytes),
            tree.root.display()
        ));
        if let Some(problem) = &tree.problem {
            text.push_str(&format!("  damaged: {problem}\n"));
        }
    }
    if trees.is_empty() {
        text = format!("nothing is installed in {}\n", cache.display());
    }
    terminal.say(&text);
}
