//! `benchgate doctor`: checks the machine and the repository.

mod finding;
mod gpu;
mod machine;
mod repository;
mod software;

use std::path::PathBuf;

use crate::config::{self, Config};
use crate::exit_code::ExitCode;
use crate::model::counted;

use super::rendering::{OutputArgs, OutputFormat};
use super::{CliError, Terminal};
use finding::{Diagnosis, Finding};

/// Check this machine and repository
///
/// Does not change anything. Checks the machine, the repository's jobs that run benchgate, and the age of the newest stored
/// session. Each finding has a reason and a fix; until findings of level `error` are fixed, results are not reliable.
#[derive(Debug, clap::Args)]
#[command(mut_arg("format", |format| OutputFormat::limit(format, OutputFormat::PEOPLE_OR_PROGRAMS)))]
#[command(after_help = "\
Examples:
  benchgate doctor
  benchgate doctor --format json

Exit codes: 0 no finding of level error, 2 usage, 20 at least one,
130 interrupted.")]
pub struct DoctorArgs {
    /// Configuration of the suite; without one, checks that need it are skipped
    #[arg(long, short, value_name = "FILE", default_value = "benchgate.toml", env = "BENCHGATE_CONFIG")]
    config: PathBuf,
    /// Cache directory for tools and compiled models [default: $XDG_CACHE_HOME/benchgate]
    #[arg(long, value_name = "FOLDER", env = "BENCHGATE_CACHE")]
    cache_dir: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

pub struct CheckContext {
    /// The folder of the configuration, even if the file does not exist. The search for the repository starts
    /// here.
    pub folder: PathBuf,
    /// `None` if the file does not exist or is invalid. An invalid file is a finding.
    pub config: Option<Config>,
    pub cache: PathBuf,
}

pub fn run(args: &DoctorArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let destination = args.output.open()?;
    let (config, unusable) = load(args);
    let context = CheckContext {
        folder: std::path::absolute(&args.config)
            .ok()
            .and_then(|file| file.parent().map(PathBuf::from))
            .unwrap_or_default(),
        config,
        cache: super::paths::cache_dir(args.cache_dir.as_deref())?,
    };
    let machine = super::runtime::block_on(async |cancel| {
        let mut found = machine::findings(&context);
        found.extend(software::findings(&context, &cancel).await?);
        Ok(found)
    })?;
    let mut about_repository: Vec<Finding> = unusable.into_iter().collect();
    about_repository.extend(repository::findings(&context, terminal));
    let diagnosis = Diagnosis::new(machine, about_repository);
    let text = match args.output.format {
        OutputFormat::Json => diagnosis.json(),
        _ => diagnosis.text(destination.options(terminal, false)),
    };
    destination.write(&text, terminal)?;
    Ok(if diagnosis.has_errors() { ExitCode::Error } else { ExitCode::Pass })
}

/// The configuration, or the reason why there is none.
fn load(args: &DoctorArgs) -> (Option<Config>, Option<Finding>) {
    const ID: &str = "configuration";
    if !args.config.exists() {
        let what = format!("there is no {}", args.config.display());
        let why = "Tools, targets and the policy can't be checked.";
        return (
            None,
            Some(Finding::note(
                ID,
                what,
                why,
                "Name the file with --config, or write one with `benchgate init`.",
            )),
        );
    }
    match config::load(&args.config) {
        Ok(config) => {
            let parts = [
                (config.models.len(), "model"),
                (config.commands.len(), "command"),
                (config.targets.len(), "target"),
            ];
            let parts = parts.into_iter().filter(|(count, _)| *count > 0);
            let parts: Vec<String> = parts.map(|(count, what)| counted(count, what)).collect();
            let what = format!("suite {}; {}", config.suite, parts.join(", "));
            (Some(config), Some(Finding::ok(ID, what)))
        }
        Err(error) => {
            let first = error.to_string();
            let first = first.lines().next().unwrap_or_default().to_owned();
            let why = "benchgate does not measure with an invalid configuration.";
            let fix = "`benchgate run` lists every problem with its line.";
            (None, Some(Finding::error(ID, first, why, fix)))
        }
    }
}
