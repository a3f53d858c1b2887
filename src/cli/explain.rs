//! `benchgate explain`.

use regex::Regex;

use crate::exit_code::ExitCode;
use crate::gate::{CompareOptions, compare, explain};
use crate::pipeline::Filter;
use crate::report;

use super::policy_args::PolicyArgs;
use super::rendering::{Format, OutputArgs, RunArgs};
use super::{CliError, Terminal, inputs, invocation};

/// Which kernel, count of the compiler or machine state moved
///
/// Looks inside benchmarks for what a comparison only sees from outside. Time per kernel is there where the run
/// profiled it (`profile` in [measure], docs/profiling.md). It judges nothing: the verdicts are those of
/// `benchgate compare` on the same runs, and the exit code is 0.
#[derive(Debug, clap::Args)]
#[command(mut_arg("format", |format| Format::limit(format, Format::PEOPLE_OR_PROGRAMS)))]
#[command(after_help = "\
Examples:
  benchgate explain                                   both sides of run.json
  benchgate explain old.json#head run.json#head       the heads of two runs
  benchgate explain run.json --filter '^vit' --all    one benchmark, every kernel
  benchgate explain run.json --format json            for programs")]
pub struct Args {
    /// The result to compare with, as `benchgate compare` takes it [default: both sides of --run]
    #[arg(value_name = "BASE", conflicts_with = "run")]
    base: Option<String>,
    /// The result to explain
    #[arg(value_name = "HEAD")]
    head: Option<String>,
    /// Only benchmarks whose name (model/target/function) matches this regular expression; also those that did
    /// not move
    #[arg(long, value_name = "REGEX")]
    filter: Vec<Regex>,
    /// Show everything; also what did not move and every kernel
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    policy: PolicyArgs,
}

pub fn run(args: &Args, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let filter = Filter::new(&args.filter);
    args.policy.resolve()?;
    let destination = args.output.open()?;
    let base = args.base.clone().unwrap_or_else(|| args.run.run.to_string_lossy().into_owned());
    let (base, mut head) = inputs::load_pair(&[base], args.head.as_slice(), None)?;
    let policy = args.policy.again(head.recorded.take())?;
    // As `benchgate compare` judges by default, so that both count the same reds.
    let options = CompareOptions { seed: 0, today: invocation::today(), ..CompareOptions::default() };
    let comparison = compare(&base.run, &head.run, &policy, &options);
    let mut explanations = explain(&base.run, &head.run, &comparison);
    explanations.retain(|explanation| {
        let chosen = filter.selects(explanation.benchmark.as_str());
        chosen && (args.all || !args.filter.is_empty() || explanation.moved())
    });
    let text = match args.output.format {
        Format::Json => report::explanations_json(&explanations),
        _ if explanations.is_empty() => "nothing moved; --all explains every benchmark\n".to_owned(),
        _ => report::explanations(&explanations, destination.options(terminal, args.all)),
    };
    destination.write(&text, terminal)?;
    Ok(ExitCode::Pass)
}
