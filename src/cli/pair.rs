//! `benchgate pair`: measures two commands in pairs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::{CommandLine, CommandSpec, Config, OutputReading, command_device};
use crate::exit_code::ExitCode;
use crate::gate::{self, CompareOptions};
use crate::ingest::Format;
use crate::model::{GpuClock, SideName};
use crate::pipeline::{self, CommandRows, PrepareFrom, SideInput};

use super::paths::absolute;
use super::policy_args::PolicyArgs;
use super::rendering::ComparisonArgs;
use super::result_args::format_parser;
use super::session::{ScheduleArgs, check_processors, duration, measure_sides, prepare_work_dir};
use super::{CliError, Terminal, runtime};

/// Measure two commands in pairs, compare and judge
///
/// Runs BASE and HEAD alternately, each time in a fresh process and in random order, until the verdict is clear.
/// Reads their output in any format that `compare` reads, one row for each benchmark; a command without such output is
/// timed as a whole. The same command twice is an A/A test.
///
/// Commands are split into words without a shell; --shell starts one. `{output}` stands for a file to which the
/// command writes its results, and `{filter}` for the pattern that makes Google Benchmark, pytest, criterion and `go
/// test` run only the undecided benchmarks.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  benchgate pair './bench_base --benchmark_format=json' './bench_head --benchmark_format=json'
  benchgate pair 'python old.py' 'python new.py'        whole processes
  benchgate pair --cwd-base old --cwd-head new './bench --benchmark_out={output}'
  benchgate pair 'pytest bench.py --benchmark-json={output}' --cwd-base ../main
  benchgate pair './base --benchmark_filter={filter}' './head --benchmark_filter={filter}'
  benchgate pair './bench' './bench'                    an A/A test

Exit codes: 0 pass, 2 usage, 10 regressed, 11 inconclusive, 12 a benchmark is
missing, 20 a command failed, 130 interrupted.")]
pub struct CommandPairArgs {
    /// Command of the base side
    #[arg(value_name = "BASE")]
    base: String,
    /// Command of the head side [default: the base's command; use this to compare two folders (--cwd-base, --cwd-head) or environments (--env-base, --env-head)]
    #[arg(value_name = "HEAD")]
    head: Option<String>,
    /// Format of the results; detected from the commands' output by default
    #[arg(long, value_name = "FORMAT", conflicts_with = "whole", value_parser = format_parser())]
    format_in: Option<Format>,
    /// Time whole processes and ignore their output
    #[arg(long)]
    whole: bool,
    /// Start the commands with `sh -c`
    #[arg(long)]
    shell: bool,
    /// Command that runs once on each side before measuring
    #[arg(long, value_name = "COMMAND")]
    setup: Option<String>,
    /// Command that runs before each measured process, untimed
    #[arg(long, value_name = "COMMAND")]
    prepare: Option<String>,
    /// Processes of each side that run first and are not counted
    #[arg(long, value_name = "N", default_value_t = 1)]
    warmup: u32,
    /// Working folder of the base's command [default: the current one]
    #[arg(long, value_name = "FOLDER")]
    cwd_base: Option<PathBuf>,
    /// Working folder of the head's command [default: the current one]
    #[arg(long, value_name = "FOLDER")]
    cwd_head: Option<PathBuf>,
    /// Set a variable for both commands; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    /// Set a variable for the base's command; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    env_base: Vec<(String, String)>,
    /// Set a variable for the head's command; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    env_head: Vec<(String, String)>,
    /// Time limit of one process
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "5m")]
    timeout: Duration,
    /// Processors to pin the commands to, for example 2,3 [default: all but the first core]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    cpus: Option<Vec<usize>>,
    /// Device that the commands use: cpu, or a GPU such as cuda, hip://0 or vulkan; a GPU is observed, and the
    /// commands are then not pinned to processors
    #[arg(long, value_name = "DEVICE", default_value = "cpu", value_parser = device)]
    device: String,
    /// Lock the GPU's clock while measuring: `base` for its base clock, or a clock such as 1410MHz
    #[arg(long, value_name = "CLOCK", value_parser = clock)]
    lock_clocks: Option<GpuClock>,
    /// Results file [default: pair.json in the folder of --work-dir]
    #[arg(long, value_name = "FILE")]
    run: Option<PathBuf>,
    /// Continue an interrupted session of the same commands; the programs must be unchanged
    #[arg(long)]
    resume: bool,
    /// Folder for sessions and logs
    #[arg(long, value_name = "FOLDER", default_value = ".benchgate")]
    work_dir: PathBuf,
    #[command(flatten)]
    schedule: ScheduleArgs,
    #[command(flatten)]
    report: ComparisonArgs,
    #[command(flatten)]
    policy: PolicyArgs,
}

/// Prefixes of the runner's variables, through which the commands could write the job's summary and outputs.
const OF_THE_RUNNER: [&str; 3] = ["GITHUB_", "ACTIONS_", "RUNNER_"];

/// The number of blocks after which an undecided row is inconclusive. The number is higher than in a suite,
/// because a whole process gives less information than the repetitions in a module's process.
const MAX_BLOCKS: u32 = 48;

pub fn run(args: &CommandPairArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let work = absolute("the folder ", &args.work_dir)?;
    let output = args.run.clone().unwrap_or_else(|| work.join("pair.json"));
    runtime::leave_no_earlier_result(&output)?;
    let destination = args.report.output.open()?;
    let mut policy = args.policy.resolve()?;
    policy.sequential.max_blocks = policy.sequential.max_blocks.max(MAX_BLOCKS);
    let policy = args.schedule.limit(policy);
    let mut sides = Vec::new();
    for name in SideName::BOTH {
        let mut side = args.side(name)?;
        side.config.policy = policy.clone();
        sides.push(side);
    }
    prepare_work_dir(&work)?;
    let options = pipeline::Options {
        lock_timeout: args.schedule.lock_timeout(),
        resume_commands: Some(args.resume),
        command_rows: CommandRows::AsPrinted,
        ..pipeline::Options::new(work.join("cache"), work, output)
    };
    let run = options.output.clone();
    let session = measure_sides(&sides, PrepareFrom::Sources, &options, terminal)?;
    let compared =
        CompareOptions { today: runtime::today(), measured_here: true, ..CompareOptions::default() };
    let mut comparison = gate::compare(&session.base, &session.head, &policy, &compared);
    args.policy.downgrade(&mut comparison);
    crate::report::withhold(&mut comparison, args.report.disclose.unwrap_or_default());
    args.report.write_measured(&comparison, (&run, true), destination, terminal)?;
    Ok(comparison.exit_code)
}

impl CommandPairArgs {
    fn side(&self, name: SideName) -> Result<SideInput, CliError> {
        let (command, folder, own) = match name {
            SideName::Base => (&self.base, &self.cwd_base, &self.env_base),
            SideName::Head => (self.head.as_ref().unwrap_or(&self.base), &self.cwd_head, &self.env_head),
        };
        let folder = absolute("the folder ", folder.as_deref().unwrap_or(Path::new(".")))?;
        if !folder.is_dir() {
            return Err(CliError::usage(format!("failed to use {}: not a folder", folder.display())));
        }
        let line = |text: &String| self.line(text);
        let spec = CommandSpec {
            rows: Vec::new(),
            metrics: Vec::new(),
            outputs: Vec::new(),
            name: "command".to_owned(),
            build: Vec::new(),
            run: self.line(command)?,
            setup: self.setup.as_ref().map(line).transpose()?,
            prepare: self.prepare.as_ref().map(line).transpose()?,
            warmup: self.warmup,
            folder: folder.clone(),
            reading: match self.format_in {
                Some(format) => OutputReading::Format(format),
                None if self.whole => OutputReading::Whole,
                None => OutputReading::Detected,
            },
            device: self.device.clone(),
            env: inherited().chain(self.env.iter().chain(own).cloned()).collect(),
            timeout: self.timeout,
        };
        let mut config = Config::of_commands("pair", vec![spec]);
        config.measure.cpus.clone_from(&self.cpus);
        config.measure.lock_clocks = self.lock_clocks;
        self.schedule.adjust(&mut config);
        check_processors(&config.measure, &"--cpus")?;
        let mut side = config.head.clone();
        side.sources = folder;
        Ok(SideInput::new(name, config, side))
    }

    fn line(&self, text: &str) -> Result<CommandLine, CliError> {
        let line = self.split(text)?;
        match line.misspelled_placeholder() {
            Some((word, meant)) => Err(CliError::usage(format!(
                "{text:?}: unknown placeholder `{{{word}}}`; did you mean `{{{meant}}}`?"
            ))),
            None => Ok(line),
        }
    }

    fn split(&self, text: &str) -> Result<CommandLine, CliError> {
        if self.shell {
            return Ok(CommandLine::Shell(text.to_owned()));
        }
        CommandLine::words(text)
            .map_err(|why| CliError::usage(format!("failed to read the command `{text}`: {why}")))
    }
}

/// The variables of this process, except those of the job's runner. Tokens were already removed at startup.
fn inherited() -> impl Iterator<Item = (String, String)> {
    let readable = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let own: BTreeMap<String, String> = std::env::vars_os().filter_map(readable).collect();
    own.into_iter().filter(|(name, _)| !OF_THE_RUNNER.iter().any(|prefix| name.starts_with(prefix)))
}

fn device(text: &str) -> Result<String, String> {
    command_device(text).map_err(str::to_owned)
}

fn clock(text: &str) -> Result<GpuClock, String> {
    GpuClock::parse(text).ok_or_else(|| "expected `base` or a clock such as `1410MHz`".to_owned())
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}
