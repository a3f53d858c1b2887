//! The code that all measuring commands share: their options, the sides, and running the pipeline.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use regex::Regex;

use crate::config::{self, Config, Measure, Model, Side};
use crate::device;
use crate::gate::Policy;
use crate::git::{GitError, Repository};
use crate::model::{SideName, Testbed};
use crate::pipeline::{
    self, CalibrationSource, CommandRows, Filter, MeasuredRun, OpenBundle, PackedBundle, PrepareFrom,
    SideInput, SuiteRun,
};
use crate::toolchain::Lock;

use super::run_args::{BackendArgs, ShardArgs};
use super::terminal::is_ci;
use super::{CliError, Terminal, runtime};

/// A time limit for unattended jobs. Any user of a machine can hold its lock indefinitely, and a job would
/// wait until the runner ended it without a message.
const LOCK_TIMEOUT_IN_CI: Duration = Duration::from_secs(30 * 60);

/// Options of every command that measures.
#[derive(Debug, Clone, clap::Args)]
pub struct MeasureArgs {
    /// Configuration of the suite; `benchgate.lock` is next to it
    #[arg(long, short, value_name = "FILE", default_value = "benchgate.toml", env = "BENCHGATE_CONFIG")]
    pub config: PathBuf,
    /// Only benchmarks whose name (model/target/function) matches this regular expression; repeatable
    #[arg(long, value_name = "REGEX")]
    pub filter: Vec<Regex>,
    /// Only models with this tag; repeatable
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<String>,
    /// Cache directory for tools and compiled models [default: $XDG_CACHE_HOME/benchgate]
    #[arg(long, value_name = "FOLDER", env = "BENCHGATE_CACHE")]
    pub cache_dir: Option<PathBuf>,
    /// Folder for sessions and logs [default: .benchgate next to the configuration]
    #[arg(long, value_name = "FOLDER")]
    pub work_dir: Option<PathBuf>,
    /// Parallel compile jobs [default: one per processor]
    #[arg(long, value_name = "N", value_parser = at_least_one::<usize>)]
    pub jobs: Option<usize>,
    /// Keep the IR of every compiler phase, in `ir` of the working folder
    #[arg(long)]
    pub dump_ir: bool,
    /// Copy every compiled module to this folder, as MODEL-TARGET.vmfb (base's as MODEL-TARGET.base.vmfb)
    #[arg(long, value_name = "FOLDER")]
    pub keep_modules: Option<PathBuf>,
    /// Calibration that `benchgate noise` wrote [default: the calibration stored for this suite and machine]
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,
    #[command(flatten)]
    pub schedule: ScheduleArgs,
    #[command(flatten)]
    pub shard: ShardArgs,
}

/// Options for the time and number of processes.
#[derive(Debug, Clone, clap::Args)]
pub struct ScheduleArgs {
    /// Maximum time to wait until another measuring job on this machine ends, for example 2h [default: 30m if CI is
    /// set, otherwise no limit]
    #[arg(long, value_name = "TIME", value_parser = duration, env = "BENCHGATE_LOCK_TIMEOUT")]
    lock_timeout: Option<Duration>,
    /// Maximum blocks (two pairs of processes) per benchmark; measuring stops early once the benchmark is decided
    #[arg(long, value_name = "N", value_parser = at_least_one::<u32>)]
    pub max_blocks: Option<u32>,
    /// Time limit for measuring, for example 5m; after the first interim analysis, the undecided benchmarks that need
    /// the least time are measured first [default: no limit; --max-blocks ends measuring]
    #[arg(long, value_name = "TIME", value_parser = budget)]
    pub time_budget: Option<Duration>,
    /// Seed of all random choices [default: a random one; the results file records it]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: Option<u64>,
}

impl ScheduleArgs {
    /// Applies the settings that the command line overrides.
    pub fn adjust(&self, config: &mut Config) {
        if self.time_budget.is_some() {
            config.measure.time_budget = self.time_budget;
        }
        if self.seed.is_some() {
            config.measure.seed = self.seed;
        }
    }

    /// Applies `--max-blocks`. The caller pays for the measuring time, so this may override the policy.
    pub fn limit(&self, mut policy: Policy) -> Policy {
        if let Some(most) = self.max_blocks {
            let sequential = &mut policy.sequential;
            sequential.max_blocks = most;
            sequential.min_blocks = sequential.min_blocks.min(most);
        }
        policy
    }

    pub fn lock_timeout(&self) -> Option<Duration> {
        self.lock_timeout.or_else(|| is_ci().then_some(LOCK_TIMEOUT_IN_CI))
    }
}

fn budget(text: &str) -> Result<Duration, String> {
    config::parse_duration(text)
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| "expected a time such as `90s` or `5m`".to_owned())
}

/// Parses a number of compilers or blocks, which must not be zero.
fn at_least_one<T: std::str::FromStr + PartialEq + From<bool>>(text: &str) -> Result<T, String> {
    match text.parse::<T>() {
        Ok(count) if count != T::from(false) => Ok(count),
        _ => Err("expected a whole number of at least 1".to_owned()),
    }
}

pub fn duration(text: &str) -> Result<Duration, String> {
    config::parse_duration(text).ok_or_else(|| "expected a time like 90s, 30m or 2h".to_owned())
}

impl MeasureArgs {
    /// The path of the configuration, for commands that have no option for it.
    pub fn default_config() -> PathBuf {
        std::env::var_os("BENCHGATE_CONFIG").map_or_else(|| PathBuf::from("benchgate.toml"), PathBuf::from)
    }

    /// Reads the configuration and applies the settings that the command line overrides.
    pub fn load(&self) -> Result<Config, CliError> {
        let mut config = config::load(&self.config)?;
        self.adjust(&mut config);
        Ok(config)
    }

    /// Applies the settings that the command line overrides.
    pub fn adjust(&self, config: &mut Config) {
        if self.jobs.is_some() {
            config.measure.jobs = self.jobs;
        }
        self.schedule.adjust(config);
    }

    /// Applies `--max-blocks`.
    pub fn limit(&self, policy: Policy) -> Policy {
        self.schedule.limit(policy)
    }

    /// The absolute path of the working folder. Tools that write there run in other folders.
    fn work_dir(&self, root: &Path) -> Result<PathBuf, CliError> {
        let folder = self.work_dir.clone().unwrap_or_else(|| root.join(".benchgate"));
        super::paths::absolute("the working folder ", &folder)
    }

    /// The working folder, after preparing it for measurements.
    pub fn prepared_work_dir(&self, root: &Path) -> Result<PathBuf, CliError> {
        let work = self.work_dir(root)?;
        prepare_work_dir(&work)?;
        Ok(work)
    }

    /// The testbeds that a run of the sides on this machine may be recorded with.
    pub fn testbeds(&self, sides: &[SideInput]) -> Result<Vec<Testbed>, CliError> {
        let nowhere = PathBuf::new;
        let options = pipeline::Options {
            filter: self.selected(),
            shard: self.shard.of_suite(sides)?,
            ..pipeline::Options::new(nowhere(), nowhere(), nowhere())
        };
        Ok(options.testbeds(sides))
    }

    /// Returns whether all benchmarks of the suite are measured here.
    pub fn is_whole_suite(&self) -> bool {
        self.filter.is_empty() && self.tag.is_empty() && self.shard.planned().is_none()
    }

    fn selected(&self) -> Filter {
        Filter::new(&self.filter).with_tags(&self.tag)
    }

    /// Measures the sides and writes the record to `output`. A calibration passes the number of blocks to
    /// measure as `alike`: its sides are identical, and it uses no earlier calibration.
    pub fn measure(
        &self,
        sides: &[SideInput],
        output: &Path,
        alike: Option<u32>,
        backends: &BackendArgs,
        terminal: &Terminal,
    ) -> Result<MeasuredRun, CliError> {
        let Some(side) = sides.last() else {
            return Err(CliError::internal("no side to run"));
        };
        let calibration = match &self.calibration {
            _ if alike.is_some() => CalibrationSource::None,
            Some(file) => CalibrationSource::File(file.clone()),
            None => CalibrationSource::Kept,
        };
        if alike.is_some() {
            self.shard.refuse("a calibration belongs to one machine")?;
        }
        check_processors(&side.config.measure, &side.config.file.display())?;
        // Even a head that is identical to the anchor is measured, so that it has a ratio.
        let anchored = sides.iter().any(|side| side.anchor);
        let identical_blocks = alike.or_else(|| anchored.then_some(side.config.policy.sequential.min_blocks));
        let options = self.options(&side.config.root, output, identical_blocks, calibration, backends)?;
        let options = pipeline::Options { shard: self.shard.of_suite(sides)?, ..options };
        measure_sides(sides, PrepareFrom::Sources, &options, terminal)
    }

    /// Exports and compiles the sides into a bundle.
    pub fn make_bundle(
        &self,
        sides: &[SideInput],
        notices: &[String],
        output: &Path,
        terminal: &Terminal,
    ) -> Result<PackedBundle, CliError> {
        let Some(side) = sides.last() else {
            return Err(CliError::internal("no side to run"));
        };
        if sides.iter().any(|side| !side.config.commands.is_empty()) {
            return Err(CliError::usage(
                "failed to make a bundle: it can't contain commands, because these are built where they are measured",
            ));
        }
        let none = BackendArgs::default();
        let options = self.options(&side.config.root, output, None, CalibrationSource::None, &none)?;
        let shard = self.shard.of_suite(sides)?;
        let options = pipeline::Options { axes: None, shard, ..options };
        super::paths::check_writable(output)?;
        let progress = terminal.progress();
        runtime::block_on(async |cancel| {
            let run = SuiteRun::new(sides, &options, progress.as_ref(), &cancel);
            Ok(run.prepare(PrepareFrom::Sources).await?.pack(notices).await?)
        })
    }

    /// Unpacks a bundle and checks that it is complete. The bundle's own configuration defines what is
    /// measured.
    pub fn open_bundle(
        &self,
        bundle: &Path,
        sha256: Option<&str>,
        terminal: &Terminal,
    ) -> Result<OpenBundle, CliError> {
        let cache = super::paths::cache_dir(self.cache_dir.as_deref())?;
        let mut open = runtime::block_on(async |cancel| {
            Ok(pipeline::open_bundle(bundle, &cache, sha256, &cancel).await?)
        })?;
        terminal.note(&format!("the bundle is complete, sha256 {}", open.sha256));
        for side in &mut open.sides {
            self.adjust(&mut side.config);
            check_processors(&side.config.measure, &side.config.file.display())?;
        }
        Ok(open)
    }

    /// Verifies and measures the contents of a bundle. The working folder is not in the bundle's folder,
    /// which is temporary.
    pub fn measure_bundle(
        &self,
        open: &OpenBundle,
        output: &Path,
        terminal: &Terminal,
    ) -> Result<MeasuredRun, CliError> {
        let calibration = self.calibration.clone().map_or(CalibrationSource::Kept, CalibrationSource::File);
        let options = self.options(Path::new(""), output, None, calibration, &BackendArgs::default())?;
        let options = pipeline::Options { shard: self.shard.of_suite(&open.sides)?, ..options };
        measure_sides(&open.sides, PrepareFrom::Bundle(open), &options, terminal)
    }

    fn options(
        &self,
        root: &Path,
        output: &Path,
        identical_blocks: Option<u32>,
        calibration: CalibrationSource,
        backends: &BackendArgs,
    ) -> Result<pipeline::Options, CliError> {
        let work = self.prepared_work_dir(root)?;
        Ok(pipeline::Options {
            cache: super::paths::cache_dir(self.cache_dir.as_deref())?,
            axes: Some(backends.axes()?),
            extras: backends.extras(&work)?,
            work,
            output: output.to_owned(),
            filter: self.selected(),
            shard: None,
            lock_timeout: self.schedule.lock_timeout(),
            identical_blocks,
            claims_identity: !runtime::is_for_a_proposed_change(root)?,
            calibration,
            resume_commands: None,
            command_rows: CommandRows::BelowCommand,
            dump_ir: self.dump_ir,
            keep_modules: self.keep_modules.clone(),
        })
    }
}

/// Measures the sides and writes the record.
pub fn measure_sides(
    sides: &[SideInput],
    from: PrepareFrom<'_>,
    options: &pipeline::Options,
    terminal: &Terminal,
) -> Result<MeasuredRun, CliError> {
    super::paths::check_writable(&options.output)?;
    super::paths::is_earlier_result(&options.output)?;
    let progress = terminal.progress();
    runtime::block_on(async |cancel| {
        let run = SuiteRun::new(sides, options, progress.as_ref(), &cancel);
        let ready = run.prepare(from).await?.ready().await?;
        super::paths::remove_output(&options.output)?;
        Ok(ready.measure().await?)
    })
}

/// One side of a configuration, with its lock file and the git state of its folder.
pub fn side(name: SideName, config: &Config) -> Result<Option<SideInput>, CliError> {
    let Some(mut side) = config.side(name).cloned() else { return Ok(None) };
    // The tools run in the folder of the sources, so paths must not depend on the current folder.
    side.sources = std::path::absolute(config.root.join(&side.sources)).map_err(|error| {
        CliError::usage(format!("failed to find the sources {}: {error}", side.sources.display()))
    })?;
    let lock = Lock::read_for(&config.file)?;
    // A suite may be outside any repository; it then has no commit.
    let repository = Repository::open(&config.root).ok();
    let commit = repository.as_ref().and_then(|repository| repository.head().ok()).map(|head| head.commit);
    let of_models = config.models.iter().flat_map(Model::files).map(|file| side.sources.join(file));
    let is_pinned = |file: &PathBuf| {
        let name = file.strip_prefix(&side.sources).unwrap_or(file);
        config.artifacts.iter().any(|artifact| artifact.is_at(name))
    };
    let files = of_models.chain(pipeline::named_by_flags(config, &side)).filter(|file| !is_pinned(file));
    let untracked = repository.as_ref().map(|repository| repository.untracked_among(files)).transpose()?;
    let untracked = untracked.unwrap_or_default();
    let dirty = repository.as_ref().map(Repository::is_dirty).transpose()?;
    let dirty = dirty.map(|dirty| dirty || !untracked.is_empty());
    let config = config.clone();
    Ok(Some(SideInput { lock, commit, dirty, untracked, ..SideInput::new(name, config, side) }))
}

/// The head's sources with the fixed reference toolchain of `[baseline]`, if there is one. Compile flags of
/// `[side.head]` are left out, so that their effect shows against this anchor.
fn anchor(head: &SideInput) -> Option<SideInput> {
    let pin = head.config.anchor.clone()?;
    let side = Side { pin, flags: Vec::new(), ..head.side.clone() };
    // No toolchain builds a command, so its ratio to the anchor would always be one.
    let config = Config { commands: Vec::new(), ..head.config.clone() };
    Some(SideInput { name: SideName::Base, anchor: true, config, side, ..head.clone() })
}

/// The head alone, or its anchor followed by the head. With an anchor, every session measures the same number
/// of blocks, because the precision of a ratio must not depend on its value.
pub fn with_anchor(head: SideInput) -> Vec<SideInput> {
    let mut sides: Vec<SideInput> = anchor(&head).into_iter().chain([head]).collect();
    if sides.len() == 2 {
        for sequential in sides.iter_mut().map(|side| &mut side.config.policy.sequential) {
            sequential.max_blocks = sequential.min_blocks;
        }
    }
    sides
}

/// Refuses `cpus` that this machine does not have, before anything is compiled. `named_in` describes the
/// place that sets `cpus`.
pub fn check_processors(measure: &Measure, named_in: &dyn Display) -> Result<(), CliError> {
    let Some(asked) = &measure.cpus else { return Ok(()) };
    let here = device::pinnable();
    let Some(missing) = asked.iter().find(|cpu| !here.contains(cpu)) else { return Ok(()) };
    Err(CliError::usage(format!(
        "failed to use {named_in}: `cpus` names processor {missing}, but this machine has {}",
        device::ranges(&here)
    ))
    .hint("leave `cpus` out: benchgate then chooses processors, and leaves one to the host"))
}

/// Creates the working folder with a .gitignore for itself, so that a run never makes a repository dirty.
pub fn prepare_work_dir(work: &Path) -> Result<(), CliError> {
    // A committed link could redirect sessions and logs to a place outside the repository.
    let inside = ["sessions", "bisect", "logs", "profiles", "ir", ".gitignore"].map(|name| work.join(name));
    if let Some(link) =
        std::iter::once(work).chain(inside.iter().map(PathBuf::as_path)).find(|p| p.is_symlink())
    {
        return Err(CliError::usage(format!(
            "failed to use the working folder: {} is a symbolic link",
            link.display()
        ))
        .hint("remove the link, or name the folder itself with --work-dir"));
    }
    refuse_committed_sessions(work)?;
    let ignore = work.join(".gitignore");
    std::fs::create_dir_all(work)
        .and_then(|()| if ignore.exists() { Ok(()) } else { std::fs::write(&ignore, "*\n") })
        .map_err(|error| {
            CliError::failed(format!("failed to prepare the working folder {}: {error}", work.display()))
                .hint("name another one with --work-dir")
        })
}

/// Refuses measurements that are part of the repository: a committed session that looks interrupted would be
/// resumed, and its times would be judged.
fn refuse_committed_sessions(work: &Path) -> Result<(), CliError> {
    // A working folder outside any repository can't contain committed files. The search for a repository
    // starts above the folder, because the folder itself may be a submodule.
    let Some(above) = work.parent().and_then(|above| above.canonicalize().ok()) else { return Ok(()) };
    let Some(name) = work.file_name() else { return Ok(()) };
    let kept = ["sessions", "bisect"];
    if !kept.iter().any(|folder| work.join(folder).exists()) {
        return Ok(());
    }
    let repository = match Repository::open(&above) {
        Err(GitError::NotARepository(_) | GitError::Bare(_)) => return Ok(()),
        found => found?,
    };
    let tracked = kept.iter().map(|folder| repository.tracked_below(&above.join(name).join(folder)));
    match tracked.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().next() {
        None => Ok(()),
        Some(path) => Err(CliError::usage(format!(
            "failed to use the working folder: {} is committed, but measurements must not be part of the repository",
            path.display()
        ))
        .hint("remove the file from the repository, or name another folder with --work-dir")),
    }
}
