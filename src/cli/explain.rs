//! `benchgate explain`: shows the causes of changes.
//!
//! `benchgate explain --swap`: measures the base with one kernel of the head at a time.

use std::path::PathBuf;

use crate::config::{self, CommandLine, CommandSpec, Config, OutputReading};
use crate::exit_code::ExitCode;
use crate::gate::{CompareOptions, Exchange, REVERSED, SequentialPolicy, compare, explain};
use crate::git::Repository;
use crate::ingest::Format;
use crate::model::{BenchmarkName, Metric, SideName, counted, is_cpu, shell_word};
use crate::pipeline::{self, ExchangePlan, Filter, PrepareFrom, SideInput, SuiteRun};
use crate::report::{self, ExchangeReport};

use super::gate::{against_merge_base, configured_sides};
use super::policy_args::PolicyArgs;
use super::rendering::{OutputArgs, OutputFormat};
use super::result_args::PairArgs;
use super::select::SelectArgs;
use super::session::{ScheduleArgs, check_processors, measure_sides, prepare_work_dir};
use super::{CliError, Terminal, paths, runtime};

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
        let exchange = measure(&args.exchange, benchmark, terminal)?;
        let text = match args.output.format {
            OutputFormat::Json => report::exchange_json(&exchange),
            _ => report::exchange(&exchange, destination.options(terminal, true)),
        };
        destination.write(&text, terminal)?;
        return Ok(ExitCode::Pass);
    }
    let (mut base, mut head) = args.inputs.load(&args.select)?;
    let mut policy = args.policy.again(head.recorded.take())?;
    let names = &args.inputs.source.names;
    for note in args.select.apply(names, &mut base.run, &mut head.run, &mut policy)? {
        terminal.note(&note);
    }
    // Judges like `benchgate compare` with its defaults, so that both report the same regressions.
    let metrics = args.select.metrics().to_vec();
    let options = CompareOptions { seed: 0, today: runtime::today(), metrics, ..CompareOptions::default() };
    let comparison = compare(&base.run, &head.run, &policy, &options);
    let mut explanations = explain(&base.run, &head.run, &comparison);
    explanations.retain(|explanation| args.all || names.is_filtered() || explanation.moved());
    let text = match args.output.format {
        OutputFormat::Json => report::explanations_json(&explanations),
        _ if explanations.is_empty() => "nothing changed; --all explains every benchmark\n".to_owned(),
        _ => report::explanations(&explanations, destination.options(terminal, args.all)),
    };
    destination.write(&text, terminal)?;
    Ok(ExitCode::Pass)
}

/// Options that select the benchmark whose kernels are exchanged.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Exchange")]
pub struct ExchangeArgs {
    /// Measure how much time each changed kernel of this benchmark (model/target/function) adds: both sides of the
    /// suite are compiled again, a call of base is captured, and head's kernels are put into it one by one
    #[arg(long, value_name = "BENCHMARK", conflicts_with_all = ["base_file", "base", "run"])]
    pub swap: Option<String>,
    /// Configuration of the suite
    #[arg(long, short, value_name = "FILE", default_value = "benchgate.toml", env = "BENCHGATE_CONFIG")]
    config: PathBuf,
    /// The base is the merge base of HEAD and this commit, branch or tag [default: [side.base], or else HEAD if the
    /// working tree has uncommitted changes]
    #[arg(long, value_name = "REF")]
    merge_base: Option<String>,
    /// Cache directory for tools and compiled models [default: $XDG_CACHE_HOME/benchgate]
    #[arg(long, value_name = "FOLDER", env = "BENCHGATE_CACHE")]
    cache_dir: Option<PathBuf>,
    /// Folder for sessions and logs; its subfolder `exchange` keeps the capture [default: .benchgate next to
    /// the configuration]
    #[arg(long, value_name = "FOLDER")]
    work_dir: Option<PathBuf>,
    #[command(flatten)]
    schedule: ScheduleArgs,
}

/// Gives each kernel its own executable; kernels that are linked together could only be exchanged together.
const UNLINKED: &str = "--iree-hal-link-executables=false";

/// The name for exchanging all kernels at once. No kernel can have this name.
const WHOLE: &str = "all-kernels";

/// The number of blocks of each exchange. It is the same for all, so that their intervals are comparable.
const BLOCKS: u32 = 6;

pub fn measure(
    args: &ExchangeArgs,
    benchmark: &str,
    terminal: &Terminal,
) -> Result<ExchangeReport, CliError> {
    let config = config::load(&args.config)?;
    let is_edited = || Repository::open(&config.root).is_ok_and(|at| at.is_dirty().is_ok_and(|dirty| dirty));
    let reference = args.merge_base.as_deref().or_else(|| {
        // Uncommitted changes are compared with HEAD.
        (config.base.is_none() && is_edited()).then_some("HEAD")
    });
    let mut sides = match reference {
        Some(reference) => against_merge_base(args.cache_dir.as_deref(), config, reference, terminal)?.0,
        None => configured_sides(&config, &format!("explain --swap {benchmark} --merge-base"))?,
    };
    for side in &mut sides {
        side.side.flags.push(UNLINKED.to_owned());
        args.schedule.adjust(&mut side.config);
        // Commands and other backends have no kernels to exchange, so they are not run.
        side.config.commands.clear();
        side.config.backends.clear();
    }
    let Some(lead) = sides.last() else { return Err(CliError::internal("no side to run")) };
    let settings = lead.config.measure.clone();
    check_processors(&settings, &lead.config.file.display())?;
    let work = args.work_dir.clone().unwrap_or_else(|| lead.config.root.join(".benchgate"));
    let work = paths::absolute("", &work)?;
    prepare_work_dir(&work)?;
    let name = BenchmarkName::new(benchmark);
    // Without its slashes, a benchmark's name can't lead out of the folder.
    let folder = work.join("exchange").join(name.as_str().replace('/', "-"));
    let only = regex::Regex::new(&format!("^{}$", regex::escape(benchmark)))
        .map_err(|error| CliError::usage(format!("failed to read `{benchmark}`: {error}")))?;
    let cache = paths::cache_dir(args.cache_dir.as_deref())?;
    let options = pipeline::Options {
        filter: Filter::new(&[only]),
        lock_timeout: args.schedule.lock_timeout(),
        resume_commands: Some(false),
        ..pipeline::Options::new(cache, work, folder.join("run.json"))
    };
    let progress = terminal.progress();
    let plan = runtime::block_on(async |cancel| {
        let run = SuiteRun::new(&sides, &options, progress.as_ref(), &cancel);
        let ready = run.prepare(PrepareFrom::Sources).await?.ready().await?;
        Ok(ready.capture(&name, &folder).await?)
    })?;
    if plan.kernels.is_empty() {
        return Err(CliError::usage(format!(
            "failed to exchange kernels of {benchmark}: no kernel differs that both sides have ({} identical)",
            plan.identical
        )));
    }
    terminal.note(&format!("exchanging {} of base for head's", counted(plan.kernels.len(), "kernel")));
    let mut commands = commands(&plan, &settings, &sides)?;
    for side in &mut commands {
        side.config.policy.sequential = SequentialPolicy { min_blocks: BLOCKS, max_blocks: BLOCKS };
        side.config.policy = args.schedule.limit(side.config.policy.clone());
        // A row that stopped early would have a wider interval than the others.
        let sequential = &mut side.config.policy.sequential;
        sequential.min_blocks = sequential.max_blocks;
    }
    let options = pipeline::Options { filter: Filter::default(), ..options };
    let measured = measure_sides(&commands, PrepareFrom::Sources, &options, terminal)?;
    let time = if is_cpu(&plan.device) { Metric::CPU_TIME } else { Metric::LATENCY };
    let Some(exchange) = Exchange::new(&measured.base, &measured.head, WHOLE, &time) else {
        return Err(CliError::failed(format!(
            "failed to exchange kernels of {benchmark}: the call with all of head's kernels was not measured"
        ))
        .hint(format!("the messages of the call are in {}", folder.join("run.json").display())));
    };
    Ok(ExchangeReport {
        benchmark: benchmark.to_owned(),
        exchange,
        identical: plan.identical,
        unmatched: plan.unmatched.clone(),
        reproduce: reproduce(&plan),
    })
}

/// The kernels of both sides of every exchange: base with head, and each step of two paths from base to head.
/// One path replaces the kernels in order, the other in reverse order. The steps of each path add up to the
/// total even if kernels interact, and the mean over both paths divides the effect of an interaction equally
/// between two kernels. The runtime spends time on every kernel that it replaces, so kernels of the base are
/// replaced by themselves.
fn exchanges(plan: &ExchangePlan) -> Vec<(String, [Vec<&str>; 2])> {
    let with = |exchanged: &dyn Fn(usize) -> bool| -> Vec<&str> {
        let kernels = plan.kernels.iter().enumerate();
        kernels.map(|(at, kernel)| if exchanged(at) { &*kernel.head } else { &*kernel.base }).collect()
    };
    let mut found = vec![(WHOLE.to_owned(), [with(&|_| false), with(&|_| true)])];
    for (at, kernel) in plan.kernels.iter().enumerate() {
        found.push((kernel.name.clone(), [with(&|other| other < at), with(&|other| other <= at)]));
        let reversed = format!("{}{REVERSED}", kernel.name);
        found.push((reversed, [with(&|other| other > at), with(&|other| other >= at)]));
    }
    found
}

/// Both sides of every exchange, as commands to measure.
fn commands(
    plan: &ExchangePlan,
    settings: &config::Measure,
    sides: &[SideInput],
) -> Result<Vec<SideInput>, CliError> {
    let exchanges = exchanges(plan);
    let Some(sources) = sides.first().map(|side| side.side.sources.clone()) else {
        return Err(CliError::internal("no side to run"));
    };
    let side = |name: SideName| {
        let command = |(exchange, [base, head]): &(String, [Vec<&str>; 2])| {
            let arguments = if name == SideName::Head { head } else { base };
            let mut words = plan.replay.clone();
            words.extend(arguments.iter().map(|&argument| argument.to_owned()));
            words.push(format!("--benchmark_out={}", CommandLine::OUTPUT));
            words.push("--benchmark_out_format=json".to_owned());
            CommandSpec {
                name: exchange.clone(),
                build: Vec::new(),
                run: CommandLine::Words(words),
                setup: None,
                prepare: None,
                warmup: 1,
                folder: sources.clone(),
                reading: OutputReading::Format(Format::GoogleBenchmarkJson),
                rows: Vec::new(),
                metrics: [Metric::LATENCY, Metric::CPU_TIME].map(|it| it.name.into_owned()).to_vec(),
                outputs: Vec::new(),
                device: plan.device.clone(),
                env: plan.env.clone(),
                timeout: settings.timeout,
            }
        };
        let mut config = Config::of_commands("exchange", exchanges.iter().map(command).collect());
        config.measure = settings.clone();
        let mut side = config.head.clone();
        side.sources.clone_from(&sources);
        SideInput::new(name, config, side)
    };
    Ok(SideName::BOTH.map(side).to_vec())
}

/// The command that times the captured call with all of head's kernels.
fn reproduce(plan: &ExchangePlan) -> String {
    let words = plan.replay.iter().chain(plan.kernels.iter().map(|kernel| &kernel.head));
    words.map(shell_word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exchanges_lead_from_base_to_head_on_two_ways() {
        let kernel = |name: &str| pipeline::Exchangeable {
            name: name.to_owned(),
            head: format!("{name}=head"),
            base: format!("{name}=base"),
        };
        let plan = ExchangePlan {
            capture: PathBuf::new(),
            replay: Vec::new(),
            device: "local-sync".to_owned(),
            env: std::collections::BTreeMap::new(),
            kernels: vec![kernel("a"), kernel("b"), kernel("c")],
            identical: 0,
            unmatched: Vec::new(),
        };
        let found = exchanges(&plan);
        let step = |name: &str| {
            let (_, sides) = found.iter().find(|(exchange, _)| exchange == name).unwrap();
            sides.each_ref().map(|side| side.join(" "))
        };
        let (base, head) = ("a=base b=base c=base", "a=head b=head c=head");
        assert_eq!((found.len(), step(WHOLE)), (7, [base, head].map(str::to_owned)));
        let ways = [
            (["a", "b", "c"], "a=head b=base c=base", "a=head b=head c=base"),
            (["c-reversed", "b-reversed", "a-reversed"], "a=base b=base c=head", "a=base b=head c=head"),
        ];
        for (steps, first, second) in ways {
            let expected = [[base, first], [first, second], [second, head]];
            assert_eq!(steps.map(step), expected.map(|sides| sides.map(str::to_owned)));
        }
    }
}
