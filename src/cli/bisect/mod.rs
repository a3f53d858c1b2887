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

pub use self::args::Args;
use self::candidates::Candidates;
use self::driver::Driver;
use super::rendering::{Destination, Format};
use super::{CliError, Terminal};

pub fn run(args: &Args, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let destination = args.output.open()?;
    let args = if args.from_history { &history::with_ends(args, terminal)? } else { args };
    let candidates = Candidates::find(args, terminal)?;
    let file = Driver::new(args, candidates, terminal)?.drive()?;
    let text = match args.output.format {
        Format::Json => String::from_utf8_lossy(&file.to_json()).into_owned(),
        Format::Markdown => report::bisection_markdown(&file, usize::MAX),
        Format::Html => report::bisection_html(&file),
        Format::Terminal | Format::Csv | Format::Junit => report::bisection_terminal(&file, terminal.width()),
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
