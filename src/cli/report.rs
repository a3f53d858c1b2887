//! `benchgate report`: renders results without judging them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use strum::VariantArray;

use crate::exit_code::ExitCode;
use crate::files;
use crate::gate::{self, CompareOptions, Comparison};
use crate::record::RunFile;
use crate::report::{self, DrawnRun, Outcomes, Picture, TerminalOptions, Theme};

use super::rendering::{OutputArgs, OutputFormat};
use super::result_args::SourceArgs;
use super::select::KeptNames;
use super::{CliError, Terminal, inputs};

/// Render results as charts, HTML or tables
///
/// Prints the measurements. With --output-dir it draws latency, compile time, speed-up and memory as SVG files, each
/// in a light and a dark theme, and prints their paths. `--format html` is a self-contained page; `--format markdown`
/// is the table; if the results contain other backends, it compares IREE with them.
#[derive(Debug, clap::Args)]
#[command(mut_arg("format", |format| OutputFormat::limit(format, FORMATS)))]
#[command(after_help = "\
Examples:
  benchgate report                                   run.json as a table
  benchgate report --output-dir pictures             run.json, drawn
  benchgate report monday.json tuesday.json --output-dir week
  benchgate report --format html --output report.html
  benchgate report --format markdown >> \"$GITHUB_STEP_SUMMARY\"")]
pub struct ReportArgs {
    /// The results: files, folders or quoted patterns; each file is drawn on its own [default: --run]
    #[arg(value_name = "RESULT", conflicts_with = "run")]
    results: Vec<String>,
    #[command(flatten)]
    source: SourceArgs,
    /// Folder for the output files; they are an SVG file per chart and theme
    #[arg(long, value_name = "FOLDER")]
    output_dir: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

const FORMATS: &[OutputFormat] = &[OutputFormat::Terminal, OutputFormat::Html, OutputFormat::Markdown];

pub fn run(args: &ReportArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let destination = args.output.open()?;
    let inputs = inputs::expand(&args.source.or_run(&args.results))?;
    inputs::refuse_shared_stdin(&[&inputs])?;
    let mut files = Vec::new();
    for input in &inputs {
        let Some(file) = inputs::load_record(input, args.source.format_in)? else { continue };
        files.push((input.path().to_owned(), file));
    }
    name(&mut files);
    let sides = files.iter().flat_map(|(_, file)| &file.sides);
    let names = sides.flat_map(|side| &side.benchmarks).map(|benchmark| benchmark.name.as_str());
    let kept = args.source.names.kept(names)?;
    let drawn = |(name, mut file): (String, RunFile)| -> Result<DrawnRun, CliError> {
        let left_out = keep(&mut file, &kept);
        let mut comparison = compared(&name, &file)?;
        if let Some(comparison) = &mut comparison {
            comparison.notes.extend(kept.notes(left_out.iter().map(String::as_str)));
        }
        Ok(DrawnRun::new(name, file, comparison))
    };
    let runs = files.into_iter().map(drawn).collect::<Result<Vec<DrawnRun>, CliError>>()?;
    let mut text = String::new();
    if let Some(folder) = &args.output_dir {
        let drawn = pictures(&runs, folder)?;
        if drawn.is_empty() {
            return Err(CliError::failed("nothing to draw: the results contain neither times nor memory"));
        }
        for path in &drawn {
            text.push_str(&format!("{}\n", path.display()));
        }
    }
    let options = destination.options(terminal, false);
    destination.write(
        &match args.output.format {
            OutputFormat::Html => report::html(&runs),
            OutputFormat::Markdown => runs.iter().map(markdown).collect::<Vec<_>>().join("\n"),
            _ if args.output_dir.is_some() => text,
            _ => runs.iter().map(|run| table(run, options)).collect(),
        },
        terminal,
    )?;
    if let Some(file) = args.output.path() {
        terminal.note(&format!("wrote {}", file.display()));
    }
    Ok(ExitCode::Pass)
}

/// Replaces paths by the names of their files. If these are not different, the folders are part of them.
fn name(files: &mut [(String, RunFile)]) {
    let stem = |path: &str| {
        let stem = Path::new(path).file_stem();
        stem.map_or_else(|| path.to_owned(), |stem| stem.to_string_lossy().into_owned())
    };
    let stems: BTreeSet<String> = files.iter().map(|(path, _)| stem(path)).collect();
    let are_different = stems.len() == files.len();
    for (path, _) in files {
        *path = match Path::new(path.as_str()).parent().filter(|_| !are_different) {
            Some(folder) => folder.join(stem(path)).to_string_lossy().into_owned(),
            None => stem(path),
        };
    }
}

/// The measurements without a verdict: one line per benchmark and side, followed by the other backends.
fn table(run: &DrawnRun, options: TerminalOptions) -> String {
    let outcomes = Outcomes::of_run(run);
    format!(
        "{}\n{}{}",
        run.name,
        report::outcomes_table(&outcomes, options),
        report::backends_table(run, options)
    )
}

/// The table of the backends. If IREE is the only one, the measurements.
fn markdown(run: &DrawnRun) -> String {
    match report::backends_markdown(run) {
        table if table.is_empty() => {
            format!("{}\n", report::outcomes_markdown(&Outcomes::of_run(run)))
        }
        table => table,
    }
}

/// Keeps only the benchmarks with these names, and their results on other backends. Returns the names that were
/// removed.
fn keep(file: &mut RunFile, kept: &KeptNames) -> BTreeSet<String> {
    let mut left_out = BTreeSet::new();
    for side in &mut file.sides {
        for benchmark in side.benchmarks.extract_if(.., |benchmark| !kept.has(&benchmark.name)) {
            left_out.insert(benchmark.name);
        }
    }
    file.backends.retain(|backend| backend.benchmarks.iter().any(|name| kept.has(name)));
    left_out
}

fn pictures(runs: &[DrawnRun], folder: &Path) -> Result<Vec<PathBuf>, CliError> {
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, &error.to_string()))?;
    let mut drawn = Vec::new();
    for &picture in Picture::VARIANTS {
        for (theme, svg) in Theme::BOTH.into_iter().zip(report::picture(runs, picture).into_iter().flatten())
        {
            let path = folder.join(format!("{picture}{}.svg", theme.suffix()));
            write(&path, svg.as_bytes())?;
            drawn.push(path);
        }
    }
    Ok(drawn)
}

/// Compares the sides of a two-sided run as `benchgate compare` does, by the policy recorded in it.
pub fn compared(name: &str, file: &RunFile) -> Result<Option<Comparison>, CliError> {
    let runs = file.runs(name);
    let ([(_, base), (_, head)], true) = (runs.as_slice(), file.complete) else { return Ok(None) };
    let policy = file.policy();
    let options = CompareOptions { seed: 0, today: super::runtime::today(), ..CompareOptions::default() };
    Ok(Some(gate::compare(base, head, &policy, &options)))
}

fn failed(path: &Path, why: &str) -> CliError {
    CliError::failed(format!("failed to write {}: {why}", path.display()))
        .hint("name a folder that can be written to")
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    files::write(path, bytes).map_err(|error| failed(path, &error.to_string()))
}
