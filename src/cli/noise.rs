//! `benchgate noise`: measures the noise of this machine.

use std::num::NonZero;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::exit_code::ExitCode;
use crate::gate::noise::{Calibrating, NoiseOptions, NoiseReport, Recording};
use crate::gate::{Policy, SequentialPolicy};
use crate::model::{Calibration, Run, SideName, counted};
use crate::record::{CalibrationRecord, RunFile};
use crate::{pipeline, report};

use super::rendering::{Destination, OutputArgs, OutputFormat};
use super::run_args::BackendArgs;
use super::session::{MeasureArgs, side};
use super::{CliError, Terminal, inputs, policy_args, progress, runtime};

/// The minimum number of blocks. Fewer don't show the spread, and resampling them would make the machine look
/// quiet.
const LEAST_BLOCKS: u32 = 4;

/// Measure this machine's noise: unchanged code against itself
///
/// Measures the head side against itself (an A/A session), and simulates many sessions from the
/// measured blocks. Each simulated session is judged as `gate` would judge it: sessions of
/// unchanged code show the false-positive rate, and sessions with an added slowdown show the power.
/// Prints the spread of each benchmark and the smallest slowdown that would be detected.
#[derive(Debug, clap::Args)]
#[command(mut_arg("format", |format| OutputFormat::limit(format, OutputFormat::PEOPLE_OR_PROGRAMS)))]
#[command(after_help = "\
Examples:
  benchgate noise                              measure ./benchgate.toml
  benchgate noise --blocks 24
  benchgate noise --run aa.json --no-measure   judge an existing session

Exit codes: 0 calibrated, 2 usage or config, 20 a benchmark could not be
calibrated or unchanged code turns red too often, 21 input unreadable, 130 interrupted.")]
pub struct NoiseArgs {
    #[command(flatten)]
    measure: MeasureArgs,
    /// Blocks of the A/A session
    #[arg(long, value_name = "N", default_value_t = 12,
        value_parser = clap::value_parser!(u32).range(i64::from(LEAST_BLOCKS)..=1000))]
    blocks: u32,
    /// Results file
    #[arg(long, value_name = "FILE", default_value = "noise.json")]
    run: PathBuf,
    /// Judge the measurements in --run instead of measuring; both sides must be the same program
    #[arg(long, conflicts_with = "blocks")]
    no_measure: bool,
    /// Use the policy of this benchgate.toml instead of the defaults; needs --no-measure
    #[arg(long, value_name = "FILE", requires = "no_measure")]
    policy: Option<PathBuf>,
    /// Number of simulated sessions, for unchanged code and for each slowdown [default: as many as the figures need, in at most 20 s]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    resamples: Option<u32>,
    #[command(flatten)]
    output: OutputArgs,
}

/// An arbitrary but fixed seed, so that the same session and options give the same report.
const RESAMPLING_SEED: u64 = 1;

pub fn run(args: &NoiseArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    // An invalid path is reported before hours of measuring.
    let destination = args.output.open()?;
    let NoiseSession { base, head, policy, source, measured } =
        if args.no_measure { recorded(args)? } else { measured(args, terminal)? };
    enough(&base, &head, &source)?;
    let defaults = NoiseOptions::default();
    let options = NoiseOptions {
        seed: args.measure.schedule.seed.unwrap_or(RESAMPLING_SEED),
        resamples: args.resamples.unwrap_or(defaults.resamples),
        until_precise: args.resamples.is_none(),
        threads: std::thread::available_parallelism().map_or(defaults.threads, NonZero::get),
        source,
        ..defaults
    };
    let block = measured.as_ref().and_then(|file| block_time(file, head.benchmarks.len(), args.blocks));
    let report = resampled(Calibrating::new(&base, &head, &policy, &options), &options, terminal);
    let calibration = report.calibration(policy.alpha);
    if let (Some(file), Some(calibration)) = (measured, calibration) {
        keep(args, file, calibration, terminal)?;
    }
    let text = match args.output.format {
        OutputFormat::Json => report::noise_json(&report),
        _ => report::noise_table(&report, terminal.width(), block),
    };
    destination.write(&text, terminal)?;
    let mut code = ExitCode::Pass;
    if calibration.is_none() {
        terminal.warn(&format!(
            "unchanged code turns red in {} of sessions, but the policy allows \
            {}: the calibration is not kept; measure \
             more blocks (--blocks {}) on a quieter machine",
            report::percent(report.red_suites.value()),
            report::percent(policy.alpha),
            report.rounds.saturating_mul(2)
        ));
        code = ExitCode::Error;
    }
    for benchmark in &head.benchmarks {
        if !report.rows.iter().any(|row| row.benchmark == benchmark.name) {
            terminal
                .warn(&format!("{} was not measured on both sides and is not calibrated", benchmark.name));
            code = ExitCode::Error;
        }
    }
    Ok(code)
}

/// The maximum time spent on resampling unless `--resamples` is given.
const LONGEST: Duration = Duration::from_secs(20);

/// Interval of the lines about resampling in a log.
const BETWEEN_LINES: Duration = Duration::from_secs(30);

/// Resamples and judges sessions until the figures are precise or the requested number is reached, and shows
/// progress.
fn resampled(mut calibrating: Calibrating<'_>, options: &NoiseOptions, terminal: &Terminal) -> NoiseReport {
    let bar = progress::waiting_bar(terminal.interactive && !terminal.quiet, "resample");
    report::spread_lines(calibrating.rows()).iter().for_each(|line| bar.println(line));
    if !terminal.interactive && !calibrating.is_done() {
        let most = if options.until_precise {
            format!("{} s at most", LONGEST.as_secs())
        } else {
            format!("{} sessions for each figure", options.resamples)
        };
        terminal.note(&format!("simulating sessions from the measured blocks: {most}"));
    }
    let began = Instant::now();
    let mut said = began;
    let mut is_late = |calibrating: &Calibrating<'_>| {
        let passed = began.elapsed();
        let (mut share, (judged, most)) = (calibrating.progress(), calibrating.sessions());
        let mut count = format!("{judged} of {most} sessions");
        if options.until_precise {
            share = share.max(passed.as_secs_f64() / LONGEST.as_secs_f64());
            count = counted(usize::try_from(judged).unwrap_or(usize::MAX), "session");
        }
        let so_far = progress::advance(&bar, &count, share, passed);
        if !terminal.interactive && said.elapsed() >= BETWEEN_LINES {
            said = Instant::now();
            terminal.note(&format!("resample: {so_far}"));
        }
        options.until_precise && passed >= LONGEST
    };
    while !calibrating.is_done() && !is_late(&calibrating) {
        calibrating.judge_more(&mut is_late);
    }
    bar.finish_and_clear();
    calibrating.into_report()
}

/// The average time that one block of one row took.
fn block_time(file: &RunFile, rows: usize, blocks: u32) -> Option<Duration> {
    let seconds: f64 = file.processes().map(|process| process.seconds.0).sum();
    let all = rows as f64 * f64::from(blocks);
    Duration::try_from_secs_f64(seconds / all).ok().filter(|block| !block.is_zero())
}

/// An A/A session, and the policy that judges it.
struct NoiseSession {
    base: Run,
    head: Run,
    policy: Policy,
    /// The origin of the session, for the report.
    source: String,
    /// The record of the session, if this command measured it.
    measured: Option<RunFile>,
}

/// Stores the calibration in the run's own file, and in the place where later runs of this suite on this
/// machine look for it.
fn keep(
    args: &NoiseArgs,
    mut file: RunFile,
    calibration: &Calibration,
    terminal: &Terminal,
) -> Result<(), CliError> {
    let blocks = args.blocks;
    let mut calibration = CalibrationRecord::from(calibration);
    calibration.source = format!("an A/A session of {blocks} blocks, {}", file.created);
    file.calibration = Some(calibration);
    Destination::file(&args.run)?.write(&String::from_utf8_lossy(&file.to_json()), terminal)?;
    let cache = super::paths::cache_dir(args.measure.cache_dir.as_deref())?;
    let kept = pipeline::keep_calibration(&cache, &file)?;
    terminal.note(&format!("later runs of this suite on this machine use {}", kept.display()));
    Ok(())
}

/// Reads an A/A session from a file.
fn recorded(args: &NoiseArgs) -> Result<NoiseSession, CliError> {
    let file = args.run.to_string_lossy().into_owned();
    let policy = match &args.policy {
        None => Policy::default(),
        Some(file) => policy_args::load(file)?,
    };
    let found = inputs::expand(std::slice::from_ref(&file))?;
    let [input] = found.as_slice() else {
        return Err(CliError::usage(format!("{file} names more than one file")));
    };
    let (base, head) = inputs::load_both(input, None)?;
    let (mut base, mut head) = (base.run, head.run);
    // A session must not be judged with its own calibration.
    (base.calibration, head.calibration) = (None, None);
    for benchmark in &head.benchmarks {
        let partner = base.benchmarks.iter().find(|base| base.name == benchmark.name);
        let both = partner.and_then(|base| base.artifact.as_ref()).zip(benchmark.artifact.as_ref());
        if both.is_some_and(|(base, head)| base != head) {
            return Err(CliError::usage(format!(
                "failed to calibrate from {file}: the sides of {} are different programs",
                benchmark.name
            ))
            .hint("leave --no-measure out, and benchgate measures the head against itself"));
        }
    }
    let policy = args.measure.limit(policy);
    Ok(NoiseSession { base, head, policy, source: file, measured: None })
}

/// Measures an A/A session of the suite's head.
fn measured(args: &NoiseArgs, terminal: &Terminal) -> Result<NoiseSession, CliError> {
    runtime::leave_no_earlier_result(&args.run)?;
    let mut config = args.measure.load()?;
    // Other backends are only context for a report, and a calibration has no such report.
    config.backends.clear();
    config.policy = args.measure.limit(config.policy);
    let policy = config.policy.clone();
    // All rows get the same number of blocks: stopping early depends on the noise, which this command
    // measures.
    config.policy.sequential = SequentialPolicy { min_blocks: args.blocks, max_blocks: args.blocks };
    let Some(head) = side(SideName::Head, &config)? else {
        return Err(CliError::internal("every configuration has a head"));
    };
    let mut base = head.clone();
    base.name = SideName::Base;
    let session = args.measure.measure(
        &[base, head],
        &args.run,
        Some(args.blocks),
        &BackendArgs::default(),
        terminal,
    )?;
    Ok(NoiseSession {
        base: session.base,
        head: session.head,
        policy,
        source: args.run.display().to_string(),
        measured: Some(session.file),
    })
}

/// Refuses a session with too few blocks to estimate anything.
fn enough(base: &Run, head: &Run, source: &str) -> Result<(), CliError> {
    let metric = NoiseOptions::default().metric;
    let blocks = Recording::new(base, head, &metric).rounds();
    if blocks >= LEAST_BLOCKS as usize {
        return Ok(());
    }
    Err(CliError::failed(format!(
        "failed to calibrate from {source}: it has {} and needs at least {LEAST_BLOCKS}",
        counted(blocks, "paired block")
    ))
    .hint("measure more: `benchgate noise --blocks 12`"))
}
