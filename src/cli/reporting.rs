//! Reports for GitHub Actions: the options of its commands, the files that a job's runner reads, and the
//! folder that keeps a copy.

use std::path::{Path, PathBuf};

use strum::VariantArray;

use crate::config::{CommentWhen, GitHub};
use crate::files;
use crate::github::{self, Check};
use crate::model::hex;

use super::announce::Texts;
use super::{CliError, Terminal, choices, secrets};

/// The places where a verdict is reported, except GitHub's API.
pub struct Reporting {
    /// True if the job's files are written and annotations printed.
    pub job: bool,
    /// The folder that gets a copy of everything.
    pub folder: Option<PathBuf>,
}

/// The texts that are posted to GitHub.
pub struct Posts<'a> {
    pub comment: &'a str,
    pub check: Option<&'a Check>,
}

impl Reporting {
    /// Writes all reports except the posts, and keeps a copy of the posts.
    pub fn report(
        &self,
        texts: &Texts,
        posts: Option<&Posts<'_>>,
        comment_url: Option<&str>,
        terminal: &Terminal,
    ) -> Result<(), CliError> {
        let folder = self.kept();
        let mut report = None;
        if let Some(folder) = &folder {
            std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
            keep(folder, "summary.md", &texts.summary)?;
            keep(folder, "comment.md", posts.map_or(&texts.comment, |posts| posts.comment))?;
            keep(folder, "annotations.txt", &texts.annotations)?;
            if let Some(check) = posts.and_then(|posts| posts.check) {
                keep(folder, "check.json", &format!("{:#}\n", check.body()))?;
            }
            if let Some(json) = &texts.report {
                report = Some(keep(folder, "report.json", json)?);
            }
        }
        let outputs = outputs(texts, report.as_deref(), comment_url);
        if let Some(folder) = &folder {
            let lines: String = outputs.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
            keep(folder, "outputs.txt", &lines)?;
        }
        if self.job {
            append("GITHUB_STEP_SUMMARY", &texts.summary)?;
            append("GITHUB_OUTPUT", &github::outputs(&outputs, &delimiter()?))?;
            // Only a runner understands annotations; on a terminal they would repeat the error that is shown
            // anyway.
            if secrets::get("GITHUB_OUTPUT").is_some() {
                terminal.print(&texts.annotations);
            }
        }
        Ok(())
    }

    /// The requested folder. In a job it defaults to the runner's temporary folder, because a later step
    /// reads the report.
    fn kept(&self) -> Option<PathBuf> {
        let temporary = || std::env::var_os("RUNNER_TEMP").filter(|folder| !folder.is_empty());
        let kept = || Some(PathBuf::from(temporary().filter(|_| self.job)?).join("benchgate"));
        self.folder.clone().or_else(kept)
    }
}

/// Appends a report to the job's summary.
pub fn summary(report: &str) -> Result<(), CliError> {
    append("GITHUB_STEP_SUMMARY", report)
}

/// Sets one output of the job's step.
pub fn output(name: &str, value: String) -> Result<(), CliError> {
    append("GITHUB_OUTPUT", &github::outputs(&[(name, value)], &delimiter()?))
}

fn outputs(texts: &Texts, report: Option<&Path>, comment_url: Option<&str>) -> Vec<(&'static str, String)> {
    vec![
        ("verdict", texts.verdict.to_string()),
        ("regressions", texts.regressions.to_string()),
        ("improvements", texts.improvements.to_string()),
        ("report-json", report.map(|path| path.display().to_string()).unwrap_or_default()),
        ("comment-url", comment_url.unwrap_or_default().to_owned()),
        ("baseline-sha", texts.baseline.as_ref().map(|sha| sha.as_str().to_owned()).unwrap_or_default()),
    ]
}

fn keep(folder: &Path, name: &str, text: &str) -> Result<PathBuf, CliError> {
    let path = folder.join(name);
    files::write(&path, text.as_bytes()).map_err(|error| unwritable(&path, &error))?;
    Ok(path)
}

fn unwritable(path: &Path, error: &std::io::Error) -> CliError {
    CliError::failed(format!("failed to write {}: {error}", path.display()))
}

/// Appends to one of the files that a runner reads. Outside a job, there are none.
fn append(variable: &str, text: &str) -> Result<(), CliError> {
    use std::io::Write;
    let Some(path) = secrets::get(variable).map(PathBuf::from) else { return Ok(()) };
    let file = std::fs::OpenOptions::new().append(true).create(true).open(&path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| unwritable(&path, &error))
}

/// A delimiter that no value can contain.
fn delimiter() -> Result<String, CliError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        CliError::internal(format!("failed to get random numbers from the system: {error}"))
    })?;
    Ok(format!("benchgate-{}", hex(&bytes)))
}

/// Options of every command that ends in a comparison: what the job itself gets.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "GitHub")]
pub struct GithubArgs {
    /// Report to the GitHub Actions job that runs this; step summary, annotations and outputs
    #[arg(long)]
    pub github: bool,
    /// Folder for the output files; they are report.json, summary.md, comment.md, annotations.txt and outputs.txt
    #[arg(long, value_name = "FOLDER")]
    pub output_dir: Option<PathBuf>,
}

impl GithubArgs {
    /// Returns true if any of these options was given.
    pub fn wanted(&self) -> bool {
        self.github || self.output_dir.is_some()
    }

    pub fn reporting(&self) -> Reporting {
        Reporting { job: self.github, folder: self.output_dir.clone() }
    }
}

/// Options of every command that posts to GitHub. The token comes only from GITHUB_TOKEN.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "GitHub")]
pub struct PostArgs {
    /// When to comment on the pull request [default: the key `comment` of [github], otherwise on-change]
    #[arg(long, value_name = "WHEN", value_parser = choices::named(CommentWhen::VARIANTS, Into::into))]
    pub comment: Option<CommentWhen>,
    /// Also post a check run [default: the key `check-run` of [github], otherwise false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub check_run: Option<bool>,
}

impl PostArgs {
    /// Applies these options to the configuration.
    pub fn over(&self, mut configured: GitHub) -> GitHub {
        configured.comment = self.comment.unwrap_or(configured.comment);
        configured.check_run = self.check_run.unwrap_or(configured.check_run);
        configured
    }
}
