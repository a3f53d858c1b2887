//! `benchgate run`.

use std::path::PathBuf;

use crate::exit_code::ExitCode;
use crate::model::{Outcome, SideName};
use crate::pipeline::Session;

use super::session::{MeasureArgs, side};
use super::{CliError, Terminal};

/// Export, compile, verify and benchmark a suite, and write run.json
///
/// A suite with [side.base] and [side.head] is measured paired: the processes of the two sides
/// alternate in blocks of four. An interrupted run goes on where it stopped.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  benchgate run                                        ./benchgate.toml → run.json
  benchgate run -c examples/torch/benchgate.toml --side head
  benchgate run --filter '^vit' --output vit.json")]
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

/// A failure on any side makes the run an error; what was measured is in the file all the same.
fn exit_code(session: &Session) -> ExitCode {
    let failed = [&session.base, &session.head]
        .into_iter()
        .flat_map(|run| &run.benchmarks)
        .any(|benchmark| matches!(benchmark.outcome, Outcome::Failed { .. }));
    if failed { ExitCode::Error } else { ExitCode::Pass }
}

fn summary(session: &Session, output: &std::path::Path) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    for side in &session.file.sides {
        for benchmark in &side.benchmarks {
            let name = &benchmark.name;
            let verify = benchmark.verification.as_ref().map_or("not verified", |v| v.code.0.as_str());
            let outcome = match (&benchmark.outcome.stage, &benchmark.outcome.why) {
                (Some(stage), Some(why)) => format!("failed: {}: {why}", stage.0),
                (None, Some(why)) => why.clone(),
                _ => format!("ok, {verify}, {} processes", benchmark.processes.len()),
            };
            // Writing to a String can't fail.
            let _ = writeln!(text, "{name} {}: {outcome}", side.name.0);
        }
    }
    let _ = writeln!(text, "wrote {}", output.display());
    text
}
