//! `benchgate run`.

use std::path::{Path, PathBuf};

use crate::exit_code::ExitCode;
use crate::model::{Outcome, SideName, VerifyCode};
use crate::pipeline::Session;
use crate::record::{BenchmarkRecord, OutcomeStatus, OutputRecord, StageStatus, VerificationRecord};

use super::session::{MeasureArgs, side};
use super::{CliError, Terminal};

/// Export, compile, verify and benchmark a suite, and write run.json
///
/// A suite with [side.base] and [side.head] is measured paired: the processes of the two sides
/// alternate in blocks of four. An interrupted run goes on where it stopped.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  benchgate run                                    ./benchgate.toml → run.json
  benchgate run -c examples/torch/benchgate.toml --side head
  benchgate run --filter '^vit' --output vit.json

Exit codes: 0 measured and right, 2 usage or config, 13 an output is wrong,
20 a stage failed or the tools can't be verified, 130 interrupted.")]
pub struct Args {
    #[command(flatten)]
    measure: MeasureArgs,
    /// Where the result goes
    #[arg(long, short, value_name = "FILE", default_value = "run.json")]
    output: PathBuf,
    /// Run one side only
    #[arg(long, value_name = "SIDE", value_parser = parse_side)]
    side: Option<SideName>,
}

fn parse_side(text: &str) -> Result<SideName, String> {
    SideName::BOTH
        .into_iter()
        .find(|side| side.as_str() == text)
        .ok_or_else(|| "a side is `base` or `head`".to_owned())
}

pub fn run(args: &Args, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let mut config = args.measure.load()?;
    config.policy = args.measure.limit(config.policy);
    let wanted = |name: SideName| args.side.is_none_or(|side| side == name);
    let mut sides = Vec::new();
    for name in SideName::BOTH.into_iter().filter(|name| wanted(*name)) {
        sides.extend(side(name, &config)?);
    }
    if sides.is_empty() {
        return Err(CliError::Usage {
            message: format!("{} has no [side.base]", config.file.display()),
            hint: Some("add it, or run --side head".to_owned()),
        });
    }
    let session = args.measure.measure(&sides, &args.output, terminal)?;
    terminal.print(&summary(&session, &args.output));
    Ok(exit_code(&session))
}

/// A failure on any side makes the run an error, and a wrong output makes it diverged; what was measured
/// is in the file all the same.
fn exit_code(session: &Session) -> ExitCode {
    let benchmarks = || [&session.base, &session.head].into_iter().flat_map(|run| &run.benchmarks);
    let verified = |code: VerifyCode| {
        benchmarks().any(|benchmark| benchmark.verification.as_ref().is_some_and(|v| v.code == code))
    };
    let failed = benchmarks().any(|benchmark| matches!(benchmark.outcome, Outcome::Failed { .. }));
    if failed || verified(VerifyCode::EagerFailed) || verified(VerifyCode::ExceptionRaised) {
        ExitCode::Error
    } else if verified(VerifyCode::Fail) {
        ExitCode::Diverged
    } else {
        ExitCode::Pass
    }
}

fn summary(session: &Session, output: &Path) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    for side in &session.file.sides {
        for benchmark in &side.benchmarks {
            let name = &benchmark.name;
            let processes = benchmark.processes.len();
            let outcome = match (&benchmark.outcome.stage, &benchmark.outcome.why) {
                (Some(stage), Some(why)) => {
                    format!("failed: {}: {why}{}", stage.0, log_of_failure(benchmark, output))
                }
                (None, Some(why)) if benchmark.outcome.status == OutcomeStatus::Unsupported => {
                    format!("unsupported: {why}")
                }
                (None, Some(why)) => why.clone(),
                _ => match &benchmark.verification {
                    None => format!("ok, not verified, {processes} processes"),
                    Some(v) if v.code.0 == VerifyCode::Pass => {
                        format!("ok, {}, {processes} processes", v.code.0)
                    }
                    Some(v) => format!("{}{}, {processes} processes", v.code.0, unverified(v)),
                },
            };
            // Writing to a String can't fail.
            let _ = writeln!(text, "{name} {}: {outcome}", side.name.0);
        }
    }
    let _ = writeln!(text, "wrote {}", output.display());
    text
}

/// Why the outputs are not known to be right: of the first output that is not, else of the whole.
fn unverified(verification: &VerificationRecord) -> String {
    let bad = verification.outputs.iter().find(|output| output.code.0 != VerifyCode::Pass);
    match (bad, &verification.why) {
        (Some(OutputRecord { index, why: Some(why), .. }), _) => format!(" (output {index}: {why})"),
        (_, Some(why)) => format!(" ({why})"),
        _ => String::new(),
    }
}

/// Where the tool's whole message is. The record names logs relative to itself.
fn log_of_failure(benchmark: &BenchmarkRecord, output: &Path) -> String {
    benchmark
        .stages
        .iter()
        .filter(|stage| stage.status == StageStatus::Failed)
        .find_map(|stage| stage.log.as_ref())
        .map(|log| format!(" (log: {})", output.with_file_name(log).display()))
        .unwrap_or_default()
}
