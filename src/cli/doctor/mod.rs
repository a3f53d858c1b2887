//! `benchgate doctor`: checks the machine and the repository.

mod machine;
mod repository;
mod software;

use std::path::PathBuf;

use serde::Serialize;

use crate::config::{self, Config};
use crate::exit_code::ExitCode;
use crate::model::counted;
use crate::report::{TerminalOptions, harmless, paragraph};

use super::rendering::{OutputArgs, OutputFormat};
use super::{CliError, Terminal};

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

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
enum FindingLevel {
    /// The check found no problem.
    Ok,
    /// Information. No action is needed unless it is unexpected.
    Note,
    /// Measurements work, but they take longer or are less reliable than they could be.
    Warning,
    /// Measurements and publications can't be trusted until this is fixed.
    Error,
}

impl FindingLevel {
    const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }

    const fn color(self) -> Option<anstyle::Style> {
        let color = match self {
            Self::Ok | Self::Note => return None,
            Self::Warning => anstyle::AnsiColor::Yellow,
            Self::Error => anstyle::AnsiColor::Red,
        };
        Some(anstyle::Style::new().fg_color(Some(anstyle::Color::Ansi(color))))
    }
}

/// The result of a check: the observation, its consequence and the fix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Finding {
    /// A stable identifier in kebab case, by which scripts can filter.
    pub id: &'static str,
    pub level: FindingLevel,
    /// The observation on one line without a full stop, such as `load average 1.9 on 2 processors`.
    pub what: String,
    /// The consequence; empty for `ok`.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub why: &'static str,
    /// The fix; empty if there is nothing to do.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub fix: &'static str,
}

impl Finding {
    /// A check that found no problem.
    pub fn ok(id: &'static str, what: impl Into<String>) -> Self {
        Self { id, level: FindingLevel::Ok, what: what.into(), why: "", fix: "" }
    }

    pub fn note(id: &'static str, what: impl Into<String>, why: &'static str, fix: &'static str) -> Self {
        Self { id, level: FindingLevel::Note, what: what.into(), why, fix }
    }

    pub fn warning(id: &'static str, what: impl Into<String>, why: &'static str, fix: &'static str) -> Self {
        Self { id, level: FindingLevel::Warning, what: what.into(), why, fix }
    }

    pub fn error(id: &'static str, what: impl Into<String>, why: &'static str, fix: &'static str) -> Self {
        Self { id, level: FindingLevel::Error, what: what.into(), why, fix }
    }
}

/// All findings, for each of the two halves of `doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Diagnosis {
    pub schema: &'static str,
    pub benchgate: &'static str,
    pub machine: Vec<Finding>,
    pub repository: Vec<Finding>,
}

impl Diagnosis {
    pub fn new(machine: Vec<Finding>, repository: Vec<Finding>) -> Self {
        Self { schema: "benchgate/doctor/v1", benchgate: benchgate_core::VERSION, machine, repository }
    }

    fn count(&self, level: FindingLevel) -> usize {
        self.machine.iter().chain(&self.repository).filter(|finding| finding.level == level).count()
    }

    pub fn has_errors(&self) -> bool {
        self.count(FindingLevel::Error) > 0
    }

    /// The findings as JSON, for programs.
    pub fn json(&self) -> String {
        // Every key and value is text, so serializing can't fail.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// The findings as text for people: one line each, with the reason and the fix below it if there are any.
    pub fn text(&self, options: TerminalOptions) -> String {
        let width = usize::from(options.width);
        let mut text = String::new();
        for (half, findings) in [("machine", &self.machine), ("repository", &self.repository)] {
            if findings.is_empty() {
                continue;
            }
            text.push_str(&format!("{half}\n"));
            for finding in findings {
                let word = finding.level.word();
                let first = format!("  {word:<8} ");
                let what =
                    paragraph(&format!("{}: {}", finding.id, harmless(&finding.what)), width, &first, BELOW);
                // Colors are added after wrapping, because their codes have no width.
                text.push_str(&match finding.level.color().filter(|_| options.color) {
                    Some(color) => what.replacen(word, &format!("{color}{word}{color:#}"), 1),
                    None => what,
                });
                text.push('\n');
                for (label, sentence) in [("why", finding.why), ("fix", finding.fix)] {
                    if !sentence.is_empty() {
                        let first = format!("{BELOW}{label}: ");
                        text.push_str(&paragraph(sentence, width, &first, &format!("{BELOW}     ")));
                        text.push('\n');
                    }
                }
            }
        }
        let (errors, warnings) = (self.count(FindingLevel::Error), self.count(FindingLevel::Warning));
        let conclusion = match (errors, warnings) {
            (0, 0) => "Ready to measure.".to_owned(),
            (0, _) => format!("Ready to measure; {} above.", counted(warnings, "warning")),
            (_, 0) => format!("Not ready: fix {} first.", counted(errors, "error")),
            _ => {
                let (errors, warnings) = (counted(errors, "error"), counted(warnings, "warning"));
                format!("Not ready: fix {errors} first; there are {warnings} as well.")
            }
        };
        text.push_str(&format!("{conclusion}\n"));
        text
    }
}

/// Indentation of the lines below a finding.
const BELOW: &str = "             ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_shown_with_its_reason_and_its_fix() {
        let bad = Finding::error("host-lock", "held by 7", "It waits.", "Wait.");
        let diagnosis = Diagnosis::new(vec![Finding::ok("cpu", "fine"), bad], Vec::new());
        insta::assert_snapshot!(diagnosis.text(TerminalOptions::default()), @r"
        machine
          ok       cpu: fine
          error    host-lock: held by 7
                     why: It waits.
                     fix: Wait.
        Not ready: fix 1 error first.
        ");
        assert!(diagnosis.has_errors());
    }
}
