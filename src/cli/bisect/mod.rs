//! `benchgate bisect`.

mod args;
mod builds;
mod candidates;
mod driver;
mod flags;
mod history;
mod observe;
mod unusable;
mod visits;

use crate::exit_code::ExitCode;
use crate::record::BisectionResult;
use crate::report;

pub use self::args::BisectArgs;
use self::candidates::Candidates;
use self::driver::Driver;
use super::rendering::{Destination, OutputFormat};
use super::{CliError, Terminal};

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
