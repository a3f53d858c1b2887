//! The requested format of a report, and its destination.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use strum::VariantArray;

use crate::files::FileDraft;
use crate::gate::Comparison;
use crate::model::Disclose;
use crate::report::{self, MarkdownOptions, Order, TerminalOptions, View};

use super::{CliError, Terminal, choices};

/// Output formats of commands; each command has some of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum OutputFormat {
    /// Aligned tables for people
    Terminal,
    /// For programs
    Json,
    /// GitHub Markdown, safe against hostile names
    Markdown,
    /// A self-contained page
    Html,
    /// One line per row, for spreadsheets
    Csv,
    /// Test cases, for dashboards
    Junit,
}

impl OutputFormat {
    pub const PEOPLE_OR_PROGRAMS: &[Self] = &[Self::Terminal, Self::Json];
    pub const OF_COMPARISONS: &[Self] = &[Self::Terminal, Self::Json, Self::Markdown, Self::Csv, Self::Junit];

    /// Restricts an argument to these formats.
    pub fn limit(argument: clap::Arg, known: &'static [Self]) -> clap::Arg {
        let names = known.iter().filter_map(ValueEnum::to_possible_value);
        argument.value_parser(PossibleValuesParser::new(names).try_map(|name| Self::from_str(&name, false)))
    }
}

/// Options of every command that prints a result. A command names its formats with [`OutputFormat::limit`].
#[derive(Debug, Clone, clap::Args)]
pub struct OutputArgs {
    /// Format of the output
    #[arg(long, value_name = "FORMAT", default_value = "terminal")]
    pub format: OutputFormat,
    #[command(flatten)]
    file: OutputFile,
}

impl OutputArgs {
    /// Opens the output like [`OutputFile::open`].
    pub fn open(&self) -> Result<Destination, CliError> {
        self.file.open()
    }

    /// The path of the output file; `None` for stdout.
    pub fn path(&self) -> Option<&Path> {
        self.file.output.as_deref()
    }
}

/// The option of every command that prints anything.
#[derive(Debug, Clone, clap::Args)]
pub struct OutputFile {
    /// Write to this file instead of stdout, atomically at the end
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

impl OutputFile {
    /// Opens the output before anything else is done, so that an invalid path is reported immediately.
    pub fn open(&self) -> Result<Destination, CliError> {
        self.output.as_deref().map_or(Ok(Destination::Stdout), Destination::file)
    }
}

/// The file of measurements, which `run`, `gate` and `noise` write and every other command reads.
#[derive(Debug, Clone, clap::Args)]
pub struct RunFileArgs {
    /// Results file
    #[arg(long, value_name = "FILE", default_value = "run.json")]
    pub run: PathBuf,
}

/// Options of every command that ends in a comparison.
#[derive(Debug, Clone, clap::Args)]
#[command(mut_arg("format", |format| OutputFormat::limit(format, OutputFormat::OF_COMPARISONS)))]
pub struct ComparisonArgs {
    #[command(flatten)]
    pub output: OutputArgs,
    /// Show everything; includes unchanged and informational rows
    #[arg(long)]
    pub all: bool,
    /// Order of the rows in tables: by importance of the change, by name, or by slowdown
    #[arg(long, value_name = "ORDER", default_value = "importance", value_parser = choices::named(Order::VARIANTS, Into::into))]
    pub sort: Order,
    /// Values to report; `ratios` omits absolute times, sizes and counts [default: the key `disclose` of [report], otherwise all]
    #[arg(long, value_name = "WHAT", value_parser = choices::named(&Disclose::ALL, Disclose::as_str))]
    pub disclose: Option<Disclose>,
}

impl ComparisonArgs {
    /// Writes the report of a comparison.
    pub fn write(
        &self,
        comparison: &Comparison,
        reproduce: Option<String>,
        destination: Destination,
        terminal: &Terminal,
    ) -> Result<(), CliError> {
        self.write_of(View::new(comparison, reproduce), destination, terminal)
    }

    /// Writes the report of a comparison whose measurements are in the file `run`. If that file has both
    /// sides, the report names the command that shows all rows.
    pub fn write_measured(
        &self,
        comparison: &Comparison,
        (run, both): (&Path, bool),
        destination: Destination,
        terminal: &Terminal,
    ) -> Result<(), CliError> {
        let run = run.display();
        let written = match both && !self.all {
            true => format!("wrote {run}; `benchgate compare {run} --all` shows everything"),
            false => format!("wrote {run}"),
        };
        let view = View { written: Some(written), ..View::new(comparison, None) };
        self.write_of(view, destination, terminal)
    }

    fn write_of(
        &self,
        view: View<'_>,
        destination: Destination,
        terminal: &Terminal,
    ) -> Result<(), CliError> {
        let view = view.sorted(self.sort);
        let text = match self.output.format {
            OutputFormat::Markdown => report::markdown(&view, MarkdownOptions::default()),
            OutputFormat::Json => report::json(&view),
            OutputFormat::Csv => report::csv(&view),
            OutputFormat::Junit => report::junit(&view),
            OutputFormat::Terminal | OutputFormat::Html => {
                report::terminal(&view, destination.options(terminal, self.all))
            }
        };
        let to_file = !matches!(destination, Destination::Stdout);
        destination.write(&text, terminal)?;
        if to_file {
            terminal.note(&view.headline);
        }
        Ok(())
    }
}

/// An opened destination of a report.
#[derive(Debug)]
pub enum Destination {
    Stdout,
    File { draft: FileDraft, path: PathBuf },
}

impl Destination {
    /// The layout of a table in this destination.
    pub fn options(&self, terminal: &Terminal, all: bool) -> TerminalOptions {
        let color = matches!(self, Self::Stdout) && terminal.colors_stdout();
        TerminalOptions { width: terminal.width(), color, all }
    }

    pub fn file(path: &Path) -> Result<Self, CliError> {
        super::paths::check_writable(path)?;
        let draft = FileDraft::open(path).map_err(|error| {
            CliError::usage(format!("failed to write {}: {}", path.display(), error.kind()))
        })?;
        Ok(Self::File { draft, path: path.to_owned() })
    }

    /// Writes lines that are not a table. On a terminal, lines that are too wide are wrapped.
    pub fn write_lines(self, text: &str, terminal: &Terminal) -> Result<(), CliError> {
        if matches!(self, Self::Stdout) {
            terminal.say(text);
            return Ok(());
        }
        self.write(&report::harmless(text), terminal)
    }

    pub fn write(self, text: &str, terminal: &Terminal) -> Result<(), CliError> {
        let (mut draft, path) = match self {
            Self::Stdout => {
                terminal.print(text);
                return Ok(());
            }
            Self::File { draft, path } => (draft, path),
        };
        draft.write_all(text.as_bytes()).and_then(|()| draft.commit()).map_err(|error| {
            CliError::unwritable(&path)(error)
                .hint("nothing was replaced; free some space or choose another `--output`")
        })
    }
}
