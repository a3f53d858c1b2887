//! `benchgate bisect`: finds the change that made a benchmark slower.

mod candidates;
mod driver;
mod history;
mod visits;

use std::path::PathBuf;

use self::candidates::Candidates;
use self::driver::Driver;
use super::rendering::{Destination, OutputArgs, OutputFormat};
use super::session::MeasureArgs;
use super::store_args::StoreArgs;
use super::{CliError, Terminal};
use crate::exit_code::ExitCode;
use crate::model::Metric;
use crate::record::BisectionResult;
use crate::report;
use history::Observable;

pub fn run(args: &BisectArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let destination = args.output.open()?;
    let args = if args.from_history { &history::with_ends(args, terminal)? } else { args };
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
