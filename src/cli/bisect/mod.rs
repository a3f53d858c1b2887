//! `benchgate bisect`: finds the change that made a benchmark slower.

mod candidates;
mod driver;
mod visits;

use std::fmt;
use std::path::PathBuf;

use self::candidates::Candidates;
use self::driver::Driver;
use super::rendering::{Destination, OutputArgs, OutputFormat};
use super::session::MeasureArgs;
use super::site::read_timeline;
use super::store_args::{StoreArgs, runner};
use super::{CliError, Terminal};
use crate::cli::store_args::ShelfArgs;
use crate::exit_code::ExitCode;
use crate::gate::Policy;
use crate::gate::bisect::{BisectOptions, Observed};
use crate::git::Repository;
use crate::model::{Benchmark, Metric, MetricKind, Outcome, Series, Stage, Verdict, VerifyCode};
use crate::pipeline::Filter;
use crate::record::{BisectionResult, QuarantineCause};
use crate::report;
use crate::site::{BenchmarkHistory, Session, Timeline};

use driver::only;

pub fn run(args: &BisectArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let destination = args.output.open()?;
    let args = if args.from_history { &with_ends(args, terminal)? } else { args };
    let candidates = Candidates::find(args, terminal)?;
    let file = Driver::new(args, candidates, terminal)?.drive()?;
    let text = match args.output.format {
        OutputFormat::Json => String::from_utf8_lossy(&file.to_json()).into_owned(),
        OutputFormat::Markdown => report::bisection_markdown(&file, usize::MAX),
        OutputFormat::Html => report::bisection_html(&file),
        OutputFormat::Terminal | OutputFormat::Csv | OutputFormat::Junit => {
            report::bisection_terminal(&file, terminal.width())
        }
    };
    let to_file = !matches!(destination, Destination::Stdout);
    destination.write(&text, terminal)?;
    if to_file {
        terminal.note(&file.headline);
    }
    Ok(match file.result {
        BisectionResult::Found => ExitCode::Pass,
        BisectionResult::NotWorse => ExitCode::Usage,
        _ => ExitCode::Inconclusive,
    })
}

/// Default maximum number of blocks per pair. Measuring stops earlier once the result is clear.
pub const MAX_BLOCKS: u32 = 96;

/// Find the change that made a benchmark slower
///
/// Searches the candidates between a good and a bad end: IREE releases, toolchains from a file, commits of this
/// repository, or builds of another repository. The ends are compared first; if the bad end is not worse than the good
/// end, the search ends. Every comparison is a paired measurement that stops once the result is clear, and a change is
/// named only after a direct comparison with its predecessor. If there are several changes, the search finds all of
/// them. An interrupted search is resumed.
#[derive(Debug, Clone, clap::Args)]
#[command(mut_arg("format", |format| OutputFormat::limit(format, FORMATS)))]
#[command(after_help = "\
Examples:
  benchgate bisect --good 3.9.0 --bad 3.13.0 --filter 'vit-block/cpu'
  benchgate bisect --good main~40 --bad main --filter attention
  benchgate bisect --from-history                    the newest stored slowdown
  benchgate bisect --toolchains builds.toml --format html -o bisect.html
  benchgate bisect --good v1 --bad main --build-repository ../iree \\
    --build './build-iree.sh'                        builds of another checkout
  benchgate bisect --good main~40 --bad main --observe dispatch-count
  benchgate bisect --good main~40 --bad main --observe outputs

Exit codes: 0 every change was found, 2 usage or config, or the bad end is not
worse, 11 not decided, 20 an end could not be measured, 130 interrupted.")]
pub struct BisectArgs {
    #[command(flatten)]
    pub measure: MeasureArgs,
    /// Good end: an IREE release such as 3.9.0, or a commit, branch or tag
    #[arg(long, value_name = "END", required_unless_present_any = ["toolchains", "from_history"])]
    pub good: Option<String>,
    /// Bad end of the range, of the same kind as the good end
    #[arg(long, value_name = "END", required_unless_present_any = ["toolchains", "from_history"])]
    pub bad: Option<String>,
    /// Search the range of the newest slowdown of 1 % or more in the stored sessions of this suite
    #[arg(long, conflicts_with_all = ["good", "bad", "toolchains", "build"])]
    pub from_history: bool,
    /// The testbed, or the beginning of its name; with --from-history, needed if there are several
    #[arg(long, value_name = "ID", requires = "from_history")]
    pub testbed: Option<String>,
    /// File of [[toolchain]] tables to search, the good end first
    #[arg(long, value_name = "FILE", conflicts_with_all = ["good", "bad", "build"])]
    pub toolchains: Option<PathBuf>,
    /// Shell command that builds the tools of a commit of --build-repository; see docs/bisect.md for its environment
    #[arg(long, value_name = "COMMAND", requires = "build_repository")]
    pub build: Option<String>,
    /// Repository whose commits --build builds
    #[arg(long, value_name = "FOLDER", requires = "build")]
    pub build_repository: Option<PathBuf>,
    /// Value that got worse: a metric (latency, dispatch-count, vmfb-size, …), `outputs` (wrong results) or `failure`
    #[arg(long, value_name = "WHAT", default_value_t = Observable::Metric(Metric::LATENCY), value_parser = Observable::parse)]
    pub observe: Observable,
    #[command(flatten)]
    pub store: StoreArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

const FORMATS: &[OutputFormat] =
    &[OutputFormat::Terminal, OutputFormat::Json, OutputFormat::Markdown, OutputFormat::Html];

/// The smallest slowdown that is searched for, as a ratio. `benchgate alert` ignores smaller ones as well.
const LEAST: f64 = 1.01;
/// The number of newest sessions that are read.
const SESSIONS: usize = 200;

/// A slowdown between two sessions.
struct Slowdown<'a> {
    benchmark: &'a str,
    ratio: f64,
    /// The last session that certainly has the old level. `after` is the first that certainly has the new
    /// one.
    before: usize,
    after: usize,
}

/// The arguments completed with both ends, from the newest slowdown in the stored sessions (`--from-history`), and with
/// the benchmark that got slower between them.
fn with_ends(args: &BisectArgs, terminal: &Terminal) -> Result<BisectArgs, CliError> {
    let Observable::Metric(metric) = &args.observe else {
        return Err(no_range(&format!(
            "stored sessions show changes of metrics, but not of {}",
            args.observe.name()
        ))
        .hint("name both ends with --good and --bad"));
    };
    let config = args.measure.load()?;
    let root = std::path::absolute(&config.root).unwrap_or_else(|_| config.root.clone());
    let repository = Repository::open(&root)?;
    let files = args.store.over(&config.store, &config.root).open(Some(&repository), &runner, terminal)?;
    let shelf = ShelfArgs::of_suite(&config.suite, args.testbed.as_deref()).open(files.as_ref())?;
    let timeline = read_timeline(files.as_ref(), &shelf, SESSIONS, terminal)?;
    let filter = Filter::new(&args.measure.filter);
    let newest = timeline.as_ref().and_then(|timeline| newest_slowdown(timeline, metric, &filter));
    let (Some(timeline), Some(found)) = (&timeline, newest) else {
        return Err(no_range(&format!("no {} in {} got worse by 1 % or more", metric.name, shelf.folder))
            .hint(
                "name both ends with --good and --bad; `benchgate baseline show --changes` lists the stored \
            changes",
            ));
    };
    let (old, new) = (&timeline.sessions[found.before], &timeline.sessions[found.after]);
    let (good, bad) = (commit(old)?, commit(new)?);
    let change = format!("{} of {} changed by {}", metric.name, found.benchmark, report::change(found.ratio));
    if good == bad {
        return Err(no_range(&format!(
            "{change} between {} and {}, which measured the same commit {good}",
            old.name, new.name
        ))
        .hint("look at the machine, or name two toolchains with --good and --bad"));
    }
    terminal.note(&format!("{change} between the stored sessions {} and {}", old.name, new.name));
    let mut args = args.clone();
    (args.good, args.bad) = (Some(good), Some(bad));
    args.measure.filter = vec![only(config.declared_name(found.benchmark))?];
    Ok(args)
}

fn no_range(why: &str) -> CliError {
    CliError::usage(format!("failed to find a range to search: {why}"))
}

fn commit(session: &Session) -> Result<String, CliError> {
    session.commit.clone().ok_or_else(|| {
        no_range(&format!("the stored session {} does not name the commit that it measured", session.name))
            .hint("name both ends with --good and --bad")
    })
}

/// The slowdown that ends last; if several do, the largest of them.
fn newest_slowdown<'a>(timeline: &'a Timeline, metric: &Metric, filter: &Filter) -> Option<Slowdown<'a>> {
    let selected = timeline.benchmarks.iter().filter(|(name, _)| filter.selects(name));
    let all = selected.flat_map(|(name, history)| slowdowns(timeline, name, history, metric));
    all.filter(|found| found.ratio >= LEAST)
        .max_by(|x, y| x.after.cmp(&y.after).then(x.ratio.total_cmp(&y.ratio)))
}

fn slowdowns<'a>(
    timeline: &Timeline,
    benchmark: &'a str,
    history: &BenchmarkHistory,
    metric: &Metric,
) -> Vec<Slowdown<'a>> {
    let Some(track) = history.tracks.get(metric.name.as_ref()) else { return Vec::new() };
    // A regressed session can be searched immediately, whereas detecting a change of level takes three
    // sessions.
    let red = |session: usize| {
        timeline.sessions[session].held.iter().any(|reason| {
            reason.cause == QuarantineCause::Regressed
                && reason.benchmark.as_deref().is_none_or(|held| held == benchmark)
        })
    };
    let reds = track.points.iter().rev().take_while(|point| red(point.session)).count();
    if let Some(first) = track.points.len().checked_sub(reds).filter(|first| reds > 0 && *first > 0)
        && let Some(costs) = track.costs()
    {
        let (before, after) = (track.points[first - 1].session, track.points[first].session);
        return vec![Slowdown { benchmark, ratio: (costs[first] - costs[first - 1]).exp(), before, after }];
    }
    let moves = track.moves().into_iter();
    moves
        .map(|found| Slowdown {
            benchmark,
            ratio: found.cost_ratio,
            before: found.before,
            after: found.latest,
        })
        .collect()
}

/// A value that can get worse.
#[derive(Debug, Clone, PartialEq)]
pub enum Observable {
    Metric(Metric),
    /// 1 if the outputs are wrong, otherwise 0.
    Outputs,
    /// 1 if a stage fails, otherwise 0.
    Failure,
}

impl fmt::Display for Observable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Observable {
    pub fn parse(word: &str) -> Result<Self, String> {
        match word {
            "outputs" => Ok(Self::Outputs),
            "failure" => Ok(Self::Failure),
            // Each candidate is compiled only once, in parallel with others, which is too unreliable for a
            // search.
            name if name == Metric::COMPILE_TIME.name => {
                Err("compile time is measured once and can't be bisected".to_owned())
            }
            name => Metric::built_in(name).map(Self::Metric).ok_or_else(|| {
                let all = Metric::BUILT_IN;
                let known = all.iter().map(|metric| metric.name.as_ref());
                let known =
                    known.filter(|name| *name != Metric::COMPILE_TIME.name).collect::<Vec<_>>().join(", ");
                format!("expected {known}, outputs or failure")
            }),
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Self::Metric(metric) => &metric.name,
            Self::Outputs => "outputs",
            Self::Failure => "failure",
        }
    }

    /// The metric under which the search compares values. Wrong outputs and failures are treated as counts.
    pub fn metric(&self) -> Metric {
        match self {
            Self::Metric(metric) => metric.clone(),
            Self::Outputs | Self::Failure => Metric::DISPATCH_COUNT,
        }
    }

    /// Returns true if one observation per candidate is enough.
    pub fn is_exact(&self) -> bool {
        !matches!(self, Self::Metric(metric) if metric.kind == MetricKind::Noisy)
    }

    pub fn options(&self, policy: &Policy, max_blocks: u32) -> BisectOptions {
        BisectOptions::new(policy, self.metric(), max_blocks)
    }

    /// The exact value of a candidate, or the reason why there is none.
    pub fn value(&self, benchmark: &Benchmark) -> Result<f64, String> {
        let flag = |bad: bool| f64::from(u8::from(bad));
        match (self, &benchmark.outcome) {
            (Self::Failure, outcome) => Ok(flag(matches!(outcome, Outcome::Failed { .. }))),
            (_, Outcome::Failed { stage, why }) if *stage != Stage::Verify || *self != Self::Outputs => {
                Err(format!("{stage}: {why}"))
            }
            (Self::Outputs, _) => match benchmark.verification.as_ref().map(|found| found.code) {
                Some(VerifyCode::Pass) => Ok(0.0),
                Some(VerifyCode::Fail) => Ok(1.0),
                code => Err(format!(
                    "the outputs were not verified ({})",
                    code.map_or("no reference", VerifyCode::as_str)
                )),
            },
            (Self::Metric(metric), _) => match benchmark.metric(&metric.name).map(|series| &series.series) {
                Some(Series::Exact(value)) => Ok(*value),
                _ => Err(format!("the benchmark has no {}", metric.name)),
            },
        }
    }

    pub fn compare(&self, base: f64, head: f64, options: &BisectOptions) -> Observed {
        match self {
            Self::Metric(_) => Observed::of_values(base, head, options),
            Self::Outputs | Self::Failure => {
                let verdict = if head > base { Verdict::Regressed } else { Verdict::Pass };
                Observed::exact(head - base, verdict)
            }
        }
    }
}
