//! `benchgate explain`.

use crate::exit_code::ExitCode;
use crate::gate::{CompareOptions, compare, explain};
use crate::pipeline::Filter;
use crate::report::{self, TerminalOptions};

use super::policy_args::PolicyArgs;
use super::{CliError, Terminal, inputs};

/// Which kernel, count of the compiler or machine state moved
///
/// Looks inside benchmarks for what a comparison only sees from outside. Time per kernel is there where the run
/// profiled it (`profile` in [measure], docs/profiling.md). It judges nothing: the verdicts are those of
/// `benchgate compare` on the same runs, and the exit code is 0.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  benchgate explain run.json                          both sides of one run
  benchgate explain old.json#head run.json#head       the heads of two runs
  benchgate explain run.json --filter '^vit' --all    one benchmark, every kernel
  benchgate explain run.json --format json            for programs")]
pub struct Args {
    /// The run to compare with: PATH, PATH#base, PATH#head. A run.json that holds both sides needs no second
    #[arg(value_name = "BASE")]
    base: String,
    /// The run to explain
    #[arg(value_name = "HEAD")]
    head: Option<String>,
    /// Only benchmarks whose name matches this regular expression; also those that did not move
    #[arg(long, value_name = "REGEX")]
    filter: Vec<String>,
    /// Also benchmarks that did not move, and every kernel
    #[arg(long)]
    all: bool,
    /// How to write it
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: ExplainFormat,
    #[command(flatten)]
    policy: PolicyArgs,
}

/// The formats of an explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ExplainFormat {
    /// Tables for people
    Table,
    /// A list of benchmarks, for programs
    Json,
}

pub fn run(args: &Args, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let filter = Filter::new(&args.filter).map_err(|error| CliError::Usage {
        message: format!("failed to read --filter: {error}"),
        hint: Some("a filter is a regular expression, for example --filter '^vit'".to_owned()),
    })?;
    args.policy.resolve()?;
    let named: Vec<String> = std::iter::once(&args.base).chain(&args.head).cloned().collect();
    let inputs = inputs::expand(&named)?;
    let (base, mut head) = match inputs.as_slice() {
        [both] => inputs::load_both(both, None)?,
        [base, head] => (
            inputs::load_side(std::slice::from_ref(base), None)?,
            inputs::load_side(std::slice::from_ref(head), None)?,
        ),
        _ => {
            return Err(CliError::Usage {
                message: "a pattern matches several files; explain takes one run a side".to_owned(),
                hint: None,
            });
        }
    };
    let policy = args.policy.again(head.recorded.take())?;
    let comparison = compare(&base.run, &head.run, &policy, &CompareOptions::default());
    let mut explanations = explain(&base.run, &head.run, &comparison);
    explanations.retain(|explanation| {
        let chosen = filter.selects(explanation.benchmark.as_str());
        chosen && (args.all || !args.filter.is_empty() || explanation.moved())
    });
    match args.format {
        ExplainFormat::Json => terminal.print(&report::explanations_json(&explanations)),
        ExplainFormat::Table if explanations.is_empty() => {
            terminal.print("nothing moved; --all explains every benchmark\n");
        }
        ExplainFormat::Table => {
            let options =
                TerminalOptions { width: terminal.width(), color: terminal.colors_stdout(), all: args.all };
            terminal.print(&report::explanations(&explanations, options));
        }
    }
    Ok(ExitCode::Pass)
}
