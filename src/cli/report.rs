//! `benchgate report`.

use std::path::{Path, PathBuf};

use crate::exit_code::ExitCode;
use crate::files;
use crate::gate::{self, CompareOptions, Comparison, Policy};
use crate::ingest::{self, ExportFormat, Format};
use crate::record::RunFile;
use crate::report::{self, DrawnRun, Picture, Theme};

use super::{CliError, Terminal, inputs, reading};

/// Pictures and a page from any runs
///
/// Draws latency, compile time, speed-up and memory, each light and dark, as SVG and PNG, and writes a
/// self-contained HTML page, or IREE beside other backends as a table in Markdown. Reads run.json and every format that `compare` reads.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  benchgate report run.json --out pictures
  benchgate report monday.json tuesday.json --out week --image svg
  benchgate report run.json --html report.html
  benchgate report run.json --markdown - >> \"$GITHUB_STEP_SUMMARY\"")]
pub struct Args {
    /// The runs; globs are expanded
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<String>,
    /// Folder for the pictures
    #[arg(long, value_name = "FOLDER", required_unless_present_any = ["html", "markdown"])]
    out: Option<PathBuf>,
    /// What the pictures are written as
    #[arg(long, value_name = "FORMAT", value_delimiter = ',', default_values = ["svg", "png"])]
    image: Vec<Image>,
    /// Also write a page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Also write IREE beside other backends as a table in Markdown; `-` for standard output
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// Formats of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Image {
    Svg,
    Png,
}

pub fn run(args: &Args, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let mut runs = Vec::new();
    for input in inputs::expand(&args.runs)? {
        let path = input.path();
        let stem = Path::new(path).file_stem();
        let name = stem.map_or_else(|| path.to_owned(), |stem| stem.to_string_lossy().into_owned());
        let file = load(path)?;
        let comparison = compared(&name, &file);
        runs.push(DrawnRun::new(name, file, comparison));
    }
    if let Some(folder) = &args.out {
        let drawn = pictures(&runs, folder, &args.image)?;
        if drawn.is_empty() {
            return Err(CliError::Failed {
                message: "failed to draw anything: the runs hold no time and no memory".to_owned(),
                hint: None,
            });
        }
        for path in &drawn {
            terminal.print(&format!("{}\n", path.display()));
        }
    }
    if let Some(file) = &args.html {
        write(file, report::html(&runs).as_bytes())?;
        terminal.print(&format!("{}\n", file.display()));
    }
    if let Some(file) = &args.markdown {
        let tables: Vec<String> =
            runs.iter().map(report::backends_markdown).filter(|text| !text.is_empty()).collect();
        if tables.is_empty() {
            return Err(CliError::Failed {
                message: "failed to write a table: the runs hold no other backend".to_owned(),
                hint: Some(
                    "name backends as `[[backend]]` in the suite, or with `benchgate run --backend`"
                        .to_owned(),
                ),
            });
        }
        let text = tables.join("\n");
        if file.as_os_str() == "-" {
            terminal.print(&text);
        } else {
            write(file, text.as_bytes())?;
            terminal.print(&format!("{}\n", file.display()));
        }
    }
    Ok(ExitCode::Pass)
}

/// A run of any format, as the record that reports are made of.
fn load(path: &str) -> Result<RunFile, CliError> {
    let unreadable = |why: String, hint: Option<&str>| CliError::Input {
        message: format!("failed to read {path}: {why}"),
        hint: hint.map(str::to_owned),
    };
    let bytes = reading::file(Path::new(path))?;
    match Format::detect(&bytes) {
        Some(Format::RunJson) => inputs::run_file(bytes, path),
        Some(format) => {
            let run = ingest::read(&bytes, format, path)
                .map_err(|error| CliError::Input { message: format!("failed to {error}"), hint: None })?;
            let now = jiff::Timestamp::now().to_string();
            let exported = ingest::export(&run, ExportFormat::RunJson, &now);
            RunFile::from_slice(&exported.bytes).map_err(|error| unreadable(error.to_string(), None))
        }
        None => Err(unreadable(
            "no format that benchgate knows".to_owned(),
            Some("it reads its own run.json and every format that `benchgate compare` reads"),
        )),
    }
}

fn pictures(runs: &[DrawnRun], folder: &Path, images: &[Image]) -> Result<Vec<PathBuf>, CliError> {
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, &error.to_string()))?;
    let mut drawn = Vec::new();
    for picture in Picture::ALL {
        for theme in Theme::BOTH {
            let Some(svg) = report::picture(runs, picture, theme) else { continue };
            for image in images {
                let (ending, bytes) = match image {
                    Image::Svg => ("svg", svg.clone().into_bytes()),
                    Image::Png => ("png", report::png(&svg).map_err(|why| failed(folder, &why))?),
                };
                let path = folder.join(format!("{}{}.{ending}", picture.as_str(), theme.suffix()));
                write(&path, &bytes)?;
                drawn.push(path);
            }
        }
    }
    Ok(drawn)
}

/// The verdict of a run that has two sides, under the default policy.
pub fn compared(name: &str, file: &RunFile) -> Option<Comparison> {
    if !file.complete {
        return None;
    }
    match file.runs(name).as_slice() {
        [(_, base), (_, head)] => {
            Some(gate::compare(base, head, &Policy::default(), &CompareOptions::default()))
        }
        _ => None,
    }
}

fn failed(path: &Path, why: &str) -> CliError {
    CliError::Failed {
        message: format!("failed to write {}: {why}", path.display()),
        hint: Some("name a folder that can be written to".to_owned()),
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    files::write(path, bytes).map_err(|error| failed(path, &error.to_string()))
}
