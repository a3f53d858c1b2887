//! Which report is wanted, and where it goes.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::files::{self, Draft};
use crate::gate::Comparison;
use crate::model::Disclose;
use crate::report::{self, MarkdownOptions, Order, TerminalOptions, View};

use super::{CliError, Terminal};

/// The formats a comparison is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum ReportFormat {
    /// An aligned table for people
    #[default]
    Table,
    /// GitHub Markdown, safe against hostile names
    Markdown,
    /// benchgate/comparison/v1, for programs (schemas/comparison.json)
    Json,
    /// One line a row, for spreadsheets
    Csv,
    /// Test cases, for dashboards
    Junit,
}

/// Options of every command that ends in a comparison.
#[derive(Debug, Clone, clap::Args)]
pub struct ReportArgs {
    /// How to write the comparison
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: ReportFormat,
    /// Write it to this file instead of stdout; the file is replaced at once, when all is done
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Also show unchanged rows of metrics that don't decide
    #[arg(long)]
    pub all: bool,
    /// Order of the rows in tables: what changed most, the benchmark's name, or the largest slowdown
    #[arg(long, value_name = "ORDER", default_value = "importance", value_parser = order_parser())]
    pub sort: Order,
    /// What a report may say: `ratios` keeps absolute times, sizes and counts out [default: [report]
    /// disclose, or all]
    #[arg(long, value_name = "WHAT", value_parser = disclose_parser())]
    pub disclose: Option<Disclose>,
}

fn order_parser() -> impl clap::builder::TypedValueParser<Value = Order> {
    use clap::builder::{PossibleValuesParser, TypedValueParser};
    // Every possible value is one of the words.
    PossibleValuesParser::new(Order::ALL.map(Order::as_str))
        .try_map(|word| Order::parse(&word).ok_or("no such order"))
}

pub fn disclose_parser() -> impl clap::builder::TypedValueParser<Value = Disclose> {
    use clap::builder::{PossibleValuesParser, TypedValueParser};
    // Every possible value is one of the words.
    PossibleValuesParser::new(Disclose::ALL.map(Disclose::as_str))
        .try_map(|word| Disclose::parse(&word).ok_or("no such amount"))
}

impl ReportArgs {
    /// Opens what will be written, before anything else is done, so that a wrong path costs nothing.
    pub fn open(&self) -> Result<Destination, CliError> {
        self.output.as_deref().map_or(Ok(Destination::Stdout), Destination::file)
    }

    /// Writes the report.
    pub fn write(
        &self,
        comparison: &Comparison,
        reproduce: Option<String>,
        destination: Destination,
        terminal: &Terminal,
    ) -> Result<(), CliError> {
        let view = View::new(comparison, reproduce).sorted(self.sort);
        let text = match self.format {
            ReportFormat::Table => {
                let color = matches!(destination, Destination::Stdout) && terminal.colors_stdout();
                report::terminal(&view, TerminalOptions { width: terminal.width(), color, all: self.all })
            }
            ReportFormat::Markdown => report::markdown(&view, MarkdownOptions::default()),
            ReportFormat::Json => report::json(&view),
            ReportFormat::Csv => report::csv(&view),
            ReportFormat::Junit => report::junit(&view),
        };
        let to_file = !matches!(destination, Destination::Stdout);
        destination.write(&text, terminal)?;
        if to_file {
            terminal.note(&view.headline);
        }
        Ok(())
    }
}

/// Where a report goes, opened.
#[derive(Debug)]
pub enum Destination {
    Stdout,
    File { draft: Draft, path: PathBuf },
}

impl Destination {
    pub fn file(path: &Path) -> Result<Self, CliError> {
        files::sweep_drafts(path);
        let draft = Draft::open(path).map_err(|error| CliError::Usage {
            message: format!("failed to write {}: {error}", path.display()),
            hint: Some("`--output` needs a folder that exists and can be written to".to_owned()),
        })?;
        Ok(Self::File { draft, path: path.to_owned() })
    }

    pub fn write(self, text: &str, terminal: &Terminal) -> Result<(), CliError> {
        let (mut draft, path) = match self {
            Self::Stdout => {
                terminal.print(text);
                return Ok(());
            }
            Self::File { draft, path } => (draft, path),
        };
        draft.write_all(text.as_bytes()).and_then(|()| draft.commit()).map_err(|error| CliError::Failed {
            message: format!("failed to write {}: {error}", path.display()),
            hint: Some("nothing was replaced; make room or choose another `--output`".to_owned()),
        })
    }
}
