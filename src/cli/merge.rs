//! `benchgate merge`: joins the shards of a plan.

use std::path::{Path, PathBuf};

use crate::exit_code::ExitCode;
use crate::fleet;
use crate::model::counted;
use crate::record::RunFile;

use super::rendering::OutputFile;
use super::{CliError, Terminal, inputs, shard_args};

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

pub fn run(args: &MergeArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let plan = shard_args::read(&args.plan)?;
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
        super::job::leave_no_earlier_result(output)?;
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
