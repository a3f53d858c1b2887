//! `benchgate run`: measures a suite.

use std::path::Path;

use crate::exit_code::ExitCode;
use crate::gate::{Expectations, Met, Policy};
use crate::model::{Outcome, Run, SideName, VerifyCode};
use crate::pipeline::MeasuredRun;
use crate::record::StageStatus;
use crate::report::{self, DrawnRun, Outcomes, TerminalOptions, outcomes_json, outcomes_table};

use super::bundle_args::{BundleArgs, Half};
use super::rendering::{Destination, OutputArgs, OutputFormat, RunFileArgs};
use super::run_args::BackendArgs;
use super::session::{MeasureArgs, side};
use super::{CliError, Terminal, choices, runtime};

/// Export, compile, verify and benchmark a suite, and write run.json
///
/// A suite with [side.base] and [side.head] is measured paired: the processes of the two sides alternate in blocks of
/// four. An interrupted run is resumed.
#[derive(Debug, clap::Args)]
#[command(mut_arg("format", |format| OutputFormat::limit(format, OutputFormat::PEOPLE_OR_PROGRAMS)))]
#[command(after_help = "\
Examples:
  benchgate run                                    ./benchgate.toml → run.json
  benchgate run -c examples/torch/benchgate.toml --side head
  benchgate run --filter '^vit' --run vit.json
  benchgate run --format json                      the outcomes, for a program
  benchgate run --until compile --bundle b       here, with compiler and Python
  benchgate run --from verify --bundle b         on the device, without them

Exit codes: 0 measured and correct, 2 usage or config, 13 an output is wrong,
20 a stage failed or the tools can't be verified, 130 interrupted.")]
pub struct RunArgs {
    #[command(flatten)]
    measure: MeasureArgs,
    #[command(flatten)]
    backends: BackendArgs,
    #[command(flatten)]
    halves: BundleArgs,
    #[command(flatten)]
    run: RunFileArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// Side to use; by default every side of the suite
    #[arg(long, value_name = "SIDE", value_parser = choices::named(&SideName::BOTH, SideName::as_str), conflicts_with = "from")]
    side: Option<SideName>,
}

pub fn run(args: &RunArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    runtime::leave_no_earlier_result(&args.run.run)?;
    let destination = args.output.open()?;
    if let Half::FromVerify(bundle) = args.halves.half() {
        return from_bundle(args, bundle, destination, terminal);
    }
    let mut config = args.measure.load()?;
    config.policy = args.measure.limit(config.policy);
    args.backends.apply(&mut config);
    let wanted = |name: SideName| args.side.is_none_or(|side| side == name);
    let mut sides = Vec::new();
    for name in SideName::BOTH.into_iter().filter(|name| wanted(*name)) {
        sides.extend(side(name, &config)?);
    }
    if sides.is_empty() {
        return Err(CliError::usage(format!("{} has no [side.base]", config.file.display()))
            .hint("add it, or run --side head"));
    }
    if let Half::UntilCompile(bundle) = args.halves.half() {
        let json = args.output.format == OutputFormat::Json;
        let (text, code) = args.halves.make(bundle, &sides, &[], &args.measure, json, terminal)?;
        destination.write(&text, terminal)?;
        return Ok(code);
    }
    let session = args.measure.measure(&sides, &args.run.run, None, &args.backends, terminal)?;
    print(&session, &config.policy, args, destination, terminal)
}

/// Verifies and measures modules that another machine compiled.
fn from_bundle(
    args: &RunArgs,
    bundle: &Path,
    destination: Destination,
    terminal: &Terminal,
) -> Result<ExitCode, CliError> {
    let mut open = args.halves.open(bundle, &args.measure, terminal)?;
    for side in &mut open.sides {
        side.config.policy = args.measure.limit(side.config.policy.clone());
        args.backends.apply(&mut side.config);
    }
    let session = args.measure.measure_bundle(&open, &args.run.run, terminal)?;
    let policy = open.sides.last().map(|side| side.config.policy.clone()).unwrap_or_default();
    print(&session, &policy, args, destination, terminal)
}

fn print(
    session: &MeasuredRun,
    policy: &Policy,
    args: &RunArgs,
    destination: Destination,
    terminal: &Terminal,
) -> Result<ExitCode, CliError> {
    let text = summary(session, args, destination.options(terminal, false))?;
    destination.write(&text, terminal)?;
    args.backends.append(&session.file, terminal)?;
    Ok(exit_code(session, policy))
}

/// The exit code of a run. Unless the suite expects it, a failure on any side is an error, and so is a check of
/// outputs that could not be made; a wrong output means that the run diverged. A benchmark that works although it
/// is expected to fail is an error as well. The measurements are stored in any case.
fn exit_code(session: &MeasuredRun, policy: &Policy) -> ExitCode {
    let expectations = Expectations::new(policy);
    let mut code = ExitCode::Pass;
    for benchmark in [&session.base, &session.head].into_iter().flat_map(|run| &run.benchmarks) {
        let verified = benchmark.verification.as_ref().map(|found| found.code);
        let of_benchmark = match (expectations.met(benchmark), &benchmark.outcome, verified) {
            (Some(Met::Fails(_)), ..) => ExitCode::Pass,
            (Some(Met::Works), ..)
            | (None, Outcome::Failed { .. }, _)
            | (
                None,
                _,
                Some(VerifyCode::EagerFailed | VerifyCode::ExceptionRaised | VerifyCode::VerifierDidntRun),
            ) => return ExitCode::Error,
            (None, _, Some(VerifyCode::Fail)) => ExitCode::Diverged,
            (None, ..) => ExitCode::Pass,
        };
        if of_benchmark != ExitCode::Pass {
            code = of_benchmark;
        }
    }
    code
}

fn summary(session: &MeasuredRun, args: &RunArgs, options: TerminalOptions) -> Result<String, CliError> {
    let file = &args.run.run;
    let ran = |name: &SideName| session.file.side(*name).is_some();
    let sides: Vec<(SideName, &Run)> = [(SideName::Base, &session.base), (SideName::Head, &session.head)]
        .into_iter()
        .filter(|(name, _)| ran(name))
        .collect();
    let name = file.display().to_string();
    // The comparison only provides the displayed values, which `benchgate compare` shows too.
    let comparison = super::report::compared(&name, &session.file)?;
    let outcomes = Outcomes::new(&sides, comparison.as_ref(), |side, benchmark| {
        log_of_failure(session, side, benchmark, file)
    });
    Ok(match args.output.format {
        OutputFormat::Json => outcomes_json(&outcomes),
        _ => {
            let run = DrawnRun::new(name, session.file.clone(), comparison);
            let backends = report::backends_table(&run, options);
            let backends = if backends.is_empty() { backends } else { format!("{backends}\n") };
            format!("{}{backends}wrote {}\n", outcomes_table(&outcomes, options), file.display())
        }
    })
}

/// The path of the tool's complete message. In the record, paths of logs are relative to the record's file.
fn log_of_failure(session: &MeasuredRun, side: SideName, benchmark: &str, output: &Path) -> Option<String> {
    let benchmarks = &session.file.side(side)?.benchmarks;
    let record = benchmarks.iter().find(|record| record.name == benchmark)?;
    let failed = record.stages.iter().find(|stage| stage.status == StageStatus::Failed);
    let log = failed.and_then(|stage| stage.log.as_ref()).or_else(|| {
        let mut processes = record.processes.iter();
        processes.find(|process| process.failure.is_some())?.log.as_ref()
    })?;
    Some(output.with_file_name(log).display().to_string())
}
