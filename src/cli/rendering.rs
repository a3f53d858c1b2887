//! Which report is wanted, and where it goes.

use std::io::Write;
use std::path::{Path, PathBuf};

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
    /// A file that takes the place of `path` when it is whole.
    Replace {
        file: tempfile::NamedTempFile,
        path: PathBuf,
    },
    /// A device or a pipe, which can't be replaced.
    Stream {
        file: std::fs::File,
        path: PathBuf,
    },
}

impl Destination {
    pub fn file(path: &Path) -> Result<Self, CliError> {
        let failed = |error: std::io::Error| CliError::Usage {
            message: format!("failed to write {}: {error}", path.display()),
            hint: Some("`--output` needs a folder that exists and can be written to".to_owned()),
        };
        match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => return Err(failed(std::io::ErrorKind::IsADirectory.into())),
            Ok(found) if !found.is_file() => {
                let file = std::fs::OpenOptions::new().write(true).open(path).map_err(failed)?;
                return Ok(Self::Stream { file, path: path.to_owned() });
            }
            _ => {}
        }
        // A link stays a link: what it points to is replaced.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let file = named_file(folder).map_err(failed)?;
        Ok(Self::Replace { file, path })
    }

    pub fn write(self, text: &str, terminal: &Terminal) -> Result<(), CliError> {
        let (written, path) = match self {
            Self::Stdout => {
                terminal.print(text);
                return Ok(());
            }
            Self::Stream { mut file, path } => (file.write_all(text.as_bytes()), path),
            Self::Replace { mut file, path } => {
                let written = file
                    .write_all(text.as_bytes())
                    .and_then(|()| file.as_file().sync_all())
                    .and_then(|()| file.persist(&path).map(drop).map_err(|failed| failed.error));
                (written, path)
            }
        };
        written.map_err(|error| CliError::Failed {
            message: format!("failed to write {}: {error}", path.display()),
            hint: Some("nothing was replaced; make room or choose another `--output`".to_owned()),
        })
    }
}

/// A file of its own name, with the rights that any new file gets here.
#[cfg(unix)]
fn named_file(folder: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    use std::os::unix::fs::PermissionsExt;
    // The process's umask takes away what a new file must not have.
    let rights = std::fs::Permissions::from_mode(0o666);
    tempfile::Builder::new().prefix(".benchgate-").permissions(rights).tempfile_in(folder)
}

#[cfg(not(unix))]
fn named_file(folder: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    tempfile::Builder::new().prefix(".benchgate-").tempfile_in(folder)
}
