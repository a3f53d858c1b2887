//! `benchgate explain`: shows the causes of changes.

use crate::exit_code::ExitCode;
use crate::gate::{CompareOptions, compare, explain};
use crate::report;

use super::exchange::{self, ExchangeArgs};
use super::policy_args::PolicyArgs;
use super::rendering::{OutputArgs, OutputFormat};
use super::result_args::PairArgs;
use super::select::SelectArgs;
use super::{CliError, Terminal, runtime};

/// Show which kernel, compiler statistic or machine state changed
///
/// Shows the causes of changes inside benchmarks. Time per kernel is available if the run profiled it (`profile` in
/// [measure], docs/profiling.md). With --filter, unchanged benchmarks are explained too. It does not judge: the
/// verdicts are those of `benchgate compare` with the same arguments, and the exit code is 0.
///
/// With --swap, it measures which kernels cause the change, by replacing kernels in a captured call of base's
/// module with head's, one by one, in paired blocks.
#[derive(Debug, clap::Args)]
#[command(mut_arg("format", |format| OutputFormat::limit(format, OutputFormat::PEOPLE_OR_PROGRAMS)))]
#[command(after_help = "\
Examples:
  benchgate explain                                   both sides of run.json
  benchgate explain old.json#head run.json#head       the heads of two runs
  benchgate explain run.json --filter '^vit' --all    one benchmark, every kernel
  benchgate explain run.json --format json            for programs
  benchgate explain --swap vit-block/cpu/main         measure each kernel's share
  benchgate explain --swap vit-block/cpu/main --merge-base origin/main")]
pub struct ExplainArgs {
    #[command(flatten)]
    inputs: PairArgs,
    /// Show everything; includes unchanged benchmarks and every kernel
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    select: SelectArgs,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    exchange: ExchangeArgs,
}

pub fn run(args: &ExplainArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    args.policy.resolve()?;
    let destination = args.output.open()?;
    if let Some(benchmark) = &args.exchange.swap {
        let exchange = exchange::measure(&args.exchange, benchmark, terminal)?;
        let text = match args.output.format {
            OutputFormat::Json => report::exchange_json(&exchange),
            _ => report::exchange(&exchange, destination.options(terminal, true)),
        };
        destination.write(&text, terminal)?;
        return Ok(ExitCode::Pass);
    }
    let (mut base, mut head) = args.inputs.load(&args.select)?;
    let mut policy = args.policy.again(head.recorded.take())?;
    let filter = &args.inputs.source.filter;
    for note in args.select.apply(filter, &mut base.run, &mut head.run, &mut policy)? {
        terminal.note(&note);
    }
    // Judges like `benchgate compare` with its defaults, so that both report the same regressions.
    let options = CompareOptions { seed: 0, today: runtime::today(), ..CompareOptions::default() };
    let comparison = compare(&base.run, &head.run, &policy, &options);
    let mut explanations = explain(&base.run, &head.run, &comparison);
    explanations.retain(|explanation| args.all || !filter.is_empty() || explanation.moved());
    let text = match args.output.format {
        OutputFormat::Json => report::explanations_json(&explanations),
        _ if explanations.is_empty() => "nothing changed; --all explains every benchmark\n".to_owned(),
        _ => report::explanations(&explanations, destination.options(terminal, args.all)),
    };
    destination.write(&text, terminal)?;
    Ok(ExitCode::Pass)
}
