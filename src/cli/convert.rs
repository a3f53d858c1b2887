//! `benchgate convert`: writes a result in another format.

use std::path::{Path, PathBuf};

use strum::VariantArray;

use crate::exit_code::ExitCode;
use crate::files;
use crate::gate;
use crate::ingest::{self, ExportFormat, Format, IngestError};
use crate::model::{Run, SideName, counted};

use super::result_args::format_parser;
use super::{CliError, Terminal, choices, inputs};

/// Write a result in another format
///
/// Reads one file of any format that `compare` reads, strictly: untrustworthy values are errors or findings. `csv` is for
/// spreadsheets, and no command reads it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  benchgate convert bench.json results.jsonl
  benchgate convert run.json head.csv --side head
  iree-benchmark-module … | benchgate convert - out.json --to google-benchmark")]
pub struct ConvertArgs {
    /// The result to read; `-` is standard input
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// The file to write; `-` is standard output
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// Format of the results; detected from the content by default
    #[arg(long, value_name = "FORMAT", value_parser = format_parser())]
    format_in: Option<Format>,
    /// Format of OUT; by default that of its file extension: .json (run-json), .jsonl, .csv
    #[arg(long, value_name = "FORMAT", value_parser = choices::named(ExportFormat::VARIANTS, Into::into))]
    to: Option<ExportFormat>,
    /// Side to use; needed for a run.json with two sides
    #[arg(long, value_name = "SIDE", value_parser = choices::named(&SideName::BOTH, SideName::as_str))]
    side: Option<SideName>,
    /// Allow a format that can't store all evidence: a comparison of its files may then pass although a comparison of
    /// the input does not
    #[arg(long)]
    lossy: bool,
}

pub fn run(args: &ConvertArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let to = args.to.or_else(|| by_extension(&args.output)).ok_or_else(|| {
        CliError::usage(format!(
            "failed to choose a format for {}: unknown file extension",
            args.output.display()
        ))
        .hint("name the format with `--to`: run-json, google-benchmark, results-jsonl or csv")
    })?;
    let label = if is_dash(&args.input) { "-".to_owned() } else { args.input.display().to_string() };
    let bytes = inputs::read(&label)?;
    let bytes = inputs::contents(&bytes, &label)?;
    let (mut run, from) = pick_side(&bytes, args, &label)?;
    if from == Format::RunJson && to == ExportFormat::RunJson {
        let record = record_of_side(bytes.to_vec(), args.side, &label)?;
        return write(args, to, &record, &run, &[], terminal);
    }
    gate::record_unfit(&mut run);
    let now = jiff::Timestamp::now().to_string();
    let exported = ingest::export(&run, to, &now);
    if !args.lossy && !exported.evidence_lost.is_empty() {
        let lost = exported.evidence_lost.join(", ");
        let better =
            ingest::format_that_keeps(&run, &now).map(|format| format!("`--to {format}` keeps it; "));
        return Err(CliError::usage(format!(
            "failed to write {label} as {to}: the format can't store {lost}"
        ))
        .hint(format!(
            "{}`--lossy` leaves this information out; a comparison of such files may then pass although \
                a comparison of the originals does not",
            better.unwrap_or_default()
        )));
    }
    write(args, to, &exported.bytes, &run, &exported.lost, terminal)
}

/// Extracts one side of a run.json. It keeps the state of the machine during the measurement, because a
/// comparison checks that it was equal on both sides.
fn record_of_side(bytes: Vec<u8>, wanted: Option<SideName>, label: &str) -> Result<Vec<u8>, CliError> {
    let mut file = inputs::run_file(bytes, label)?;
    file.sides.retain(|side| !side.anchor && wanted.is_none_or(|wanted| side.name == wanted));
    // A single side is always the head.
    file.sides.iter_mut().for_each(|side| side.name = SideName::Head);
    Ok(file.to_json())
}

fn write(
    args: &ConvertArgs,
    to: ExportFormat,
    bytes: &[u8],
    run: &Run,
    lost: &[String],
    terminal: &Terminal,
) -> Result<ExitCode, CliError> {
    write_output(&args.output, bytes, terminal)?;
    for sentence in lost {
        terminal.note(&format!("note: {sentence}"));
    }
    if !is_dash(&args.output) {
        let benchmarks = counted(run.benchmarks.len(), "benchmark");
        terminal.note(&format!("wrote {benchmarks} as {to} to {}", args.output.display()));
    }
    Ok(ExitCode::Pass)
}

fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The format that a file extension stands for. `.json` is ambiguous and means benchgate's own format, which
/// is lossless.
fn by_extension(output: &Path) -> Option<ExportFormat> {
    match output.extension()?.to_str()? {
        "jsonl" => Some(ExportFormat::ResultsJsonl),
        "csv" => Some(ExportFormat::Csv),
        "json" => Some(ExportFormat::RunJson),
        _ => None,
    }
}

fn pick_side(bytes: &[u8], args: &ConvertArgs, label: &str) -> Result<(Run, Format), CliError> {
    let unreadable = |error: IngestError| {
        let hint = match &error {
            IngestError::Unrecognised { content, .. } => Some(content.hint()),
            IngestError::SeveralSides { .. } => Some("choose one: `--side base` or `--side head`"),
            _ => None,
        };
        CliError::input(format!("failed to {error}")).maybe_hint(hint)
    };
    let format = match args.format_in.or_else(|| ingest::detect(bytes)) {
        Some(format) => format,
        None => return Err(unreadable(ingest::unrecognised(bytes, label))),
    };
    let Some(wanted) = args.side else {
        return ingest::read(bytes, format, label).map(|run| (run, format)).map_err(unreadable);
    };
    let sides = ingest::read_sides(bytes, format, label).map_err(unreadable)?;
    let found = sides.into_iter().find(|(side, _)| *side == Some(wanted));
    found.map(|(_, run)| (run, format)).ok_or_else(|| {
        CliError::input(format!("failed to find the side {} in {label}", wanted.as_str()))
            .hint("`--side` selects a side of a run.json that has two sides; leave the option out")
    })
}

/// Writes the file completely or not at all.
fn write_output(output: &Path, bytes: &[u8], terminal: &Terminal) -> Result<(), CliError> {
    if is_dash(output) {
        terminal.print(&String::from_utf8_lossy(bytes));
        return Ok(());
    }
    files::sweep_drafts(output);
    files::write(output, bytes)
        .map_err(|error| CliError::usage(format!("failed to write {}: {error}", output.display())))
}
