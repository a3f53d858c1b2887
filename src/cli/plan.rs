//! `benchgate plan` splits a suite into shards, and `benchgate merge` joins them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::exit_code::ExitCode;
use crate::fleet::{Cut, Place, PlanFormat, ShardCommand};
use crate::model::{BenchmarkName, SideName, counted};
use crate::pipeline::{self, Filter, SideInput};
use crate::record::{
    Design, Number, PlanFile, PlanSchema, PlannedBenchmarkRecord, PlannedSideRecord, RunFile,
};
use crate::stats::describe;
use crate::{config, fleet};

use super::rendering::{Destination, OutputFile};
use super::session::side;
use super::{CliError, Terminal, choices, gate, inputs, run_args};

/// Split a suite into shards for several runners
///
/// Writes a plan for measuring every shard (`benchgate gate --plan plan.json --shard K`, or `run`), and prints it in
/// the format of the system that starts the shards. The longest benchmarks are assigned first, each to the shard with
/// the least work; all blocks of a benchmark are measured on one machine. The same suite, durations and options give
/// the same plan.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  benchgate plan --shards 4                            plan.json and a matrix
  benchgate plan --max-minutes 30 --durations run.json --base origin/main
  benchgate plan --shards 8 --runner self-hosted --runner gpu=self-hosted,h100
  benchgate plan --shards 8 --format slurm             options for sbatch

Exit codes: 0 planned, 2 usage or config, 12 no base to compare with,
21 an input can't be read.")]
#[command(group(clap::ArgGroup::new("cut").required(true).args(["shards", "max_minutes"])))]
pub struct PlanArgs {
    /// Configuration of the suite; `benchgate.lock` is next to it
    #[arg(long, short, value_name = "FILE", default_value = "benchgate.toml", env = "BENCHGATE_CONFIG")]
    config: PathBuf,
    /// Compare with the merge base of HEAD and this commit, branch or tag
    #[arg(long, value_name = "REF")]
    base: Option<String>,
    /// Cache directory for tools and compiled models [default: $XDG_CACHE_HOME/benchgate]
    #[arg(long, value_name = "FOLDER", env = "BENCHGATE_CACHE")]
    cache_dir: Option<PathBuf>,
    /// Number of shards
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    shards: Option<u16>,
    /// Maximum measuring time of a shard in minutes; uses as few shards as possible
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u32).range(1..))]
    max_minutes: Option<u32>,
    /// Results of earlier runs with the duration of each benchmark: run.json, a folder, or a quoted glob
    #[arg(long, value_name = "FILE")]
    durations: Vec<String>,
    /// Labels of the runner that measures, separated by commas; TARGET=LABELS for one target or command only
    #[arg(long, value_name = "LABELS", value_parser = runner)]
    runner: Vec<RunnerLabels>,
    /// Plan file written by `benchgate plan`
    #[arg(long, value_name = "FILE", default_value = "plan.json")]
    plan: PathBuf,
    /// Format of the output
    #[arg(long, value_name = "FORMAT", default_value = "github", value_parser = choices::documented::<PlanFormat>())]
    format: PlanFormat,
    #[command(flatten)]
    output: OutputFile,
}

/// The maximum number of jobs that GitHub Actions starts from one matrix.
const MOST_JOBS: usize = 256;

/// The runner labels of one target, or of all targets without labels of their own.
#[derive(Debug, Clone)]
struct RunnerLabels {
    target: Option<String>,
    labels: Vec<String>,
}

fn runner(text: &str) -> Result<RunnerLabels, String> {
    let (target, labels) = match text.split_once('=') {
        Some((target, labels)) => (Some(target.to_owned()), labels),
        None => (None, text),
    };
    let labels: Vec<String> = labels.split(',').map(str::to_owned).collect();
    let known = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let good = |label: &String| !label.is_empty() && label.chars().all(known);
    if labels.iter().all(good) {
        Ok(RunnerLabels { target, labels })
    } else {
        Err("expected labels of letters, digits, `.`, `_` and `-`, separated by commas".to_owned())
    }
}

pub fn run(args: &PlanArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let measured = inputs::expand(&args.durations)?;
    for output in args.output.output.iter().chain([&args.plan]) {
        super::paths::refuse_input_as_output(output, measured.iter().map(|input| Path::new(input.path())))?;
    }
    let destination = args.output.open()?;
    let sides = sides(args, terminal)?;
    let (undivided, places) = undivided(args, &sides)?;
    let durations = durations(&args.durations)?;
    let cut = match (args.shards, args.max_minutes) {
        (Some(shards), _) => Cut::Shards(usize::from(shards)),
        (None, minutes) => Cut::Seconds(f64::from(minutes.unwrap_or(1)) * 60.0),
    };
    let (plan, notes) = fleet::plan(undivided, &places, &durations, cut)
        .map_err(|error| CliError::usage(format!("failed to plan: {error}")))?;
    if args.format == PlanFormat::Github && plan.shards.len() > MOST_JOBS {
        return Err(CliError::usage(format!(
            "failed to plan: a GitHub Actions matrix has at most {MOST_JOBS} jobs, but the plan has {} shards",
            plan.shards.len()
        ))
        .hint("ask for fewer shards, or for another --format"));
    }
    Destination::file(&args.plan)?.write(&String::from_utf8_lossy(&plan.to_json()), terminal)?;
    for note in notes.into_iter().chain(described(&plan)) {
        terminal.note(&note);
    }
    terminal.note(&format!("wrote {}, sha256 {}", args.plan.display(), plan.sha256));
    destination.write(&fleet::render(&plan, args.format, &commands(args)), terminal)?;
    Ok(ExitCode::Pass)
}

/// The command that starts a shard of this plan.
fn commands(args: &PlanArgs) -> ShardCommand {
    ShardCommand {
        plan: args.plan.display().to_string(),
        config: args.config.display().to_string(),
        base: args.base.clone(),
    }
}

fn sides(args: &PlanArgs, terminal: &Terminal) -> Result<Vec<SideInput>, CliError> {
    let config = config::load(&args.config)?;
    if let Some(reference) = &args.base {
        return Ok(gate::against_merge_base(args.cache_dir.as_deref(), config, reference, terminal)?.0);
    }
    if config.base.is_some() {
        // The policy that goes into the plan judges its shards.
        gate::only_merged(&config.root)?;
    }
    let mut sides = Vec::new();
    for name in SideName::BOTH {
        sides.extend(side(name, &config)?);
    }
    Ok(sides)
}

/// The plan before it is divided, and what each benchmark needs to be placed.
fn undivided(args: &PlanArgs, sides: &[SideInput]) -> Result<(PlanFile, Vec<Place>), CliError> {
    let benchmarks = pipeline::declared_benchmarks(sides, &Filter::default())?;
    let Some(lead) = sides.iter().find(|side| side.name == SideName::Head) else {
        return Err(CliError::internal("every configuration has a head"));
    };
    let names: Vec<BenchmarkName> = benchmarks.iter().map(|benchmark| benchmark.name.clone()).collect();
    let suite_sha256 = run_args::suite_digest(sides, &names)?;
    let config = &lead.config;
    let labels = |target: &str| {
        let own = args.runner.iter().find(|runner| runner.target.as_deref() == Some(target));
        let any = || args.runner.iter().find(|runner| runner.target.is_none());
        own.or_else(any).map(|runner| runner.labels.clone()).unwrap_or_default()
    };
    if let Some(unknown) = args
        .runner
        .iter()
        .filter_map(|runner| runner.target.as_ref())
        .find(|target| !benchmarks.iter().any(|benchmark| benchmark.target == **target))
    {
        return Err(CliError::usage(format!(
            "failed to plan: no benchmark has the target {unknown:?} that --runner names, and no command \
            has this name"
        )));
    }
    let places = benchmarks.iter();
    let places = places.map(|it| Place { rows: it.rows, runner: labels(&it.target) }).collect();
    let benchmarks = benchmarks.into_iter().map(|benchmark| PlannedBenchmarkRecord {
        name: benchmark.name.to_string(),
        target: benchmark.target,
        sides: benchmark.sides,
        seconds: Number(0.0),
    });
    let file = PlanFile {
        schema: PlanSchema,
        benchgate: benchgate_core::VERSION.to_owned(),
        sha256: String::new(),
        suite: config.suite.clone(),
        seed: config.measure.seed.unwrap_or_else(|| seed(&suite_sha256)),
        suite_sha256,
        design: if sides.len() == 2 { Design::Pairs } else { Design::Single },
        processes: config.measure.processes,
        min_blocks: config.policy.sequential.min_blocks,
        max_blocks: config.policy.sequential.max_blocks,
        time_budget_ns: run_args::time_budget_ns(config),
        rows: 0,
        gate: config.policy.stored(),
        sides: sides.iter().map(planned_side).collect(),
        benchmarks: benchmarks.collect(),
        shards: Vec::new(),
    };
    Ok((file, places))
}

fn planned_side(side: &SideInput) -> PlannedSideRecord {
    PlannedSideRecord {
        name: side.name,
        commit: side.commit.clone(),
        version: side.side.pin.version.clone(),
        tools_commit: side.side.pin.commit.clone(),
    }
}

/// The seed for a suite. The seed is derived from the suite, so that every plan measures the suite in the
/// same order.
fn seed(suite_sha256: &str) -> u64 {
    let digest = Sha256::digest(suite_sha256.as_bytes());
    let first = digest.iter().take(8).fold(0_u64, |seed, byte| seed << 8 | u64::from(*byte));
    // Some JSON parsers only read integers of up to 53 bits.
    first >> 11
}

/// The duration of every benchmark in seconds: the median over these results.
fn durations(names: &[String]) -> Result<BTreeMap<String, f64>, CliError> {
    let mut all: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for input in inputs::expand(names)? {
        let file = inputs::run_file(inputs::read_contents(input.path())?, input.path())?;
        for (name, seconds) in measured_seconds(&file) {
            all.entry(name).or_default().push(seconds);
        }
    }
    Ok(all.into_iter().filter_map(|(name, seconds)| Some((name, describe::median(&seconds)?))).collect())
}

/// The total time of each benchmark's processes on all sides.
fn measured_seconds(file: &RunFile) -> BTreeMap<String, f64> {
    let mut processes: BTreeMap<&str, BTreeMap<u32, f64>> = BTreeMap::new();
    for record in file.sides.iter().flat_map(|side| &side.benchmarks) {
        let took = record.processes.iter().map(|process| (process.order, process.seconds.0));
        // A process of a command appears in the record of every benchmark that it printed, but counts once.
        processes.entry(file.declared_name(&record.name)).or_default().extend(took);
    }
    let took = processes.into_iter().map(|(name, processes)| {
        let usable = processes.into_values().filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
        (name.to_owned(), usable.sum())
    });
    took.filter(|(_, seconds)| *seconds > 0.0).collect()
}

fn described(plan: &PlanFile) -> Vec<String> {
    let shards = plan.shards.iter().map(|shard| {
        let runner =
            if shard.runner.is_empty() { String::new() } else { format!(" on {}", shard.runner.join(",")) };
        format!(
            "shard {} of {}{runner}: {}, about {:.0} s",
            shard.shard,
            plan.shards.len(),
            counted(shard.benchmarks.len(), "benchmark"),
            shard.seconds.0
        )
    });
    shards.collect()
}

/// Join the shards of a plan into one complete run.json
///
/// Every benchmark of the plan must be present exactly once, on each of its sides, with all of its blocks. The newest
/// of several attempts at a shard counts. The result does not depend on the order of the files.
/// Every other command reads run.json: judge it with `benchgate compare run.json` or `benchgate publish`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  benchgate merge --plan plan.json 'shards/*.json' --output run.json
  benchgate merge --plan plan.json shards --output run.json    a folder
  benchgate merge --plan plan.json shards --status     which shards are left to run

Exit codes: 0 complete, 2 usage, 20 something is missing, repeated or not of
this plan (each is named, and nothing is written), 21 a file can't be read.")]
pub struct MergeArgs {
    /// Files of shards: PATH, a folder, or a quoted glob
    #[arg(value_name = "SHARDS", required = true)]
    shards: Vec<String>,
    /// Plan file written by `benchgate plan`
    #[arg(long, value_name = "FILE", default_value = "plan.json")]
    plan: PathBuf,
    /// Print which shards are done, refused or missing, and write nothing
    #[arg(long, conflicts_with = "output")]
    status: bool,
    #[command(flatten)]
    output: OutputFile,
}

pub fn merge(args: &MergeArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let plan = run_args::read_plan(&args.plan)?;
    let policy = plan.policy();
    let found = inputs::expand(&args.shards)?;
    if let Some(output) = &args.output.output {
        let shards = found.iter().map(|input| Path::new(input.path()));
        super::paths::refuse_input_as_output(output, shards.chain([args.plan.as_path()]))?;
    }
    let read = |found: Vec<inputs::Input>| -> Result<Vec<(String, RunFile)>, CliError> {
        let file = |input: inputs::Input| {
            let bytes = inputs::read_contents(input.path())?;
            Ok((input.path().to_owned(), inputs::run_file(bytes, input.path())?))
        };
        found.into_iter().map(file).collect()
    };
    if args.status {
        let status = fleet::status(&plan, &policy, read(found)?);
        for other in &status.others {
            terminal.warn(other);
        }
        let shards: String = status.shards.iter().map(|shard| format!("{shard}\n")).collect();
        terminal.say(&format!("{shards}{}\n", status.summary()));
        return Ok(if status.is_complete() { ExitCode::Pass } else { ExitCode::Error });
    }
    let destination = args.output.open()?;
    if let Some(output) = &args.output.output {
        super::runtime::leave_no_earlier_result(output)?;
    }
    let files = read(found)?;
    if let Some(output) = &args.output.output {
        // The result of an earlier merge could be mistaken for the result of this one.
        super::paths::remove_output(output)?;
    }
    let count = counted(files.len(), "file");
    let merged = fleet::merge(&plan, &policy, files).map_err(|fleet::NotMergeable(wrong)| {
        for what in &wrong {
            terminal.warn(what);
        }
        CliError::failed(format!("failed to merge {count}: together they don't make up the planned run"))
            .hint("run missing shards again (a later attempt replaces an earlier one), and leave out files of other plans")
    })?;
    for note in &merged.notes {
        terminal.note(note);
    }
    destination.write(&String::from_utf8_lossy(&merged.file.to_json()), terminal)?;
    terminal.note(&format!(
        "complete: {} with {}",
        counted(plan.shards.len(), "shard"),
        counted(plan.benchmarks.len(), "benchmark")
    ));
    Ok(ExitCode::Pass)
}
