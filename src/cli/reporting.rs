//! Reports for GitHub Actions: the options of its commands, the files that a job's runner reads, and the
//! folder that keeps a copy.
//!
//! The texts that report a verdict. They are rendered once, so that a dry run shows exactly the bytes that
//! would be posted.

use std::path::{Path, PathBuf};

use strum::VariantArray;

use crate::config::{CommentWhen, GitHub};
use crate::exit_code::ExitCode;
use crate::files;
use crate::gate::{Comparison, Row};
use crate::github::{self, Annotation, AnnotationLevel, Check, Sha};
use crate::model::{Verdict, hex};
use crate::report::{self, Failure, MarkdownOptions, ResultSource, RowView, View};

use super::{CliError, ErrorKind, Terminal, choices, runtime};

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
            std::fs::create_dir_all(folder).map_err(CliError::unwritable(folder))?;
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
            if runtime::secret("GITHUB_OUTPUT").is_some() {
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
    files::write(&path, text.as_bytes()).map_err(CliError::unwritable(&path))?;
    Ok(path)
}

/// Appends to one of the files that a runner reads. Outside a job, there are none.
fn append(variable: &str, text: &str) -> Result<(), CliError> {
    use std::io::Write;
    let Some(path) = runtime::secret(variable).map(PathBuf::from) else { return Ok(()) };
    let file = std::fs::OpenOptions::new().append(true).create(true).open(&path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(CliError::unwritable(&path))
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

/// The result that is reported.
pub enum Story<'a> {
    Compared {
        comparison: &'a Comparison,
        /// A command that reproduces the comparison.
        reproduce: Option<String>,
        /// Warnings that come before everything else.
        alerts: &'a [String],
    },
    /// There is no comparison, for example because an earlier stage failed or a result can't be read.
    Failed(&'a CliError),
}

/// Every text of one report.
pub struct Texts {
    pub verdict: Verdict,
    pub code: ExitCode,
    /// One sentence that names no benchmark.
    pub headline: String,
    /// True if `on-change` posts a comment for this result.
    pub changed: bool,
    /// The comment without the marker by which it is found again.
    pub comment: String,
    pub summary: String,
    /// The text of the check run.
    pub check: String,
    pub annotations: String,
    /// The whole comparison as JSON, if there is one.
    pub report: Option<String>,
    pub regressions: usize,
    pub improvements: usize,
    /// The base's commit, if the base has one.
    pub baseline: Option<Sha>,
}

impl Texts {
    /// Renders the texts. `source` is the origin of the measured code, if known.
    pub fn new(story: &Story<'_>, source: Option<ResultSource>, annotate: bool) -> Self {
        let (comparison, view) = match story {
            Story::Failed(error) => return failed(error, source, annotate),
            Story::Compared { comparison, reproduce, alerts } => {
                let view = View::new(comparison, reproduce.clone());
                (*comparison, View { alerts: alerts.to_vec(), source, ..view })
            }
        };
        let page = |bytes| report::markdown(&view, MarkdownOptions { max_bytes: Some(bytes) });
        let count = |verdict| {
            let decided = comparison.rows.iter().filter(|row| row.fatal && row.verdict == verdict);
            let mut names: Vec<&str> = decided.map(|row| row.benchmark.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            names.len()
        };
        let mut notes: Vec<Annotation> = Vec::new();
        if annotate {
            let shown = [&view.diverged, &view.failed, &view.changed, &view.open];
            notes.extend(shown.into_iter().flatten().filter_map(|row| annotation(row, comparison)));
        }
        Self {
            verdict: comparison.verdict,
            code: comparison.exit_code,
            headline: view.headline.clone(),
            changed: comparison.verdict != Verdict::Pass
                || !view.alerts.is_empty()
                || comparison.rows.iter().any(is_notable),
            comment: page(github::COMMENT_BYTES),
            summary: page(github::SUMMARY_BYTES),
            check: page(github::CHECK_BYTES),
            annotations: github::annotations(&notes),
            report: Some(report::json(&view)),
            regressions: count(Verdict::Regressed),
            improvements: count(Verdict::Improved),
            baseline: comparison.base.commit.as_deref().and_then(Sha::parse),
        }
    }

    /// Returns true if a comment should be created on a pull request that has none yet.
    pub fn wants_comment(&self, when: CommentWhen) -> bool {
        match when {
            CommentWhen::Always => true,
            CommentWhen::OnChange => self.changed,
            CommentWhen::OnFailure => !matches!(self.verdict, Verdict::Pass | Verdict::Improved),
            CommentWhen::Never => false,
        }
    }
}

/// Returns true for a row that justifies a comment even if the suite passes: a waived regression or a new
/// benchmark.
fn is_notable(row: &Row) -> bool {
    row.waiver.is_some() || (row.metric.is_none() && row.verdict != Verdict::Pass)
}

fn annotation(view: &RowView<'_>, comparison: &Comparison) -> Option<Annotation> {
    let row = view.row;
    if !row.fatal || matches!(row.verdict, Verdict::Pass | Verdict::Improved) {
        return None;
    }
    let fails = comparison.policy.fail_on.0.contains(&row.verdict);
    let metric = row.metric.as_ref().map(|metric| format!(" {}", metric.name)).unwrap_or_default();
    Some(Annotation {
        level: if fails { AnnotationLevel::Error } else { AnnotationLevel::Warning },
        title: report::clean(&format!("{}{metric}: {}", view.name, row.verdict)),
        message: report::clean(&view.sentence()),
    })
}

fn failed(error: &CliError, source: Option<ResultSource>, annotate: bool) -> Texts {
    let verdict = match error.kind() {
        ErrorKind::BaselineMissing => Verdict::Missing,
        _ => Verdict::Error,
    };
    let message = error.to_string();
    let page = report::failure(&Failure { verdict, message: &message, hint: error.help(), source });
    let note = Annotation {
        level: AnnotationLevel::Error,
        title: "benchgate".to_owned(),
        message: report::clean(&message),
    };
    Texts {
        verdict,
        code: error.exit_code(),
        headline: report::failure_headline(verdict).to_owned(),
        changed: true,
        comment: page.clone(),
        summary: page.clone(),
        check: page,
        annotations: if annotate { github::annotations(&[note]) } else { String::new() },
        report: None,
        regressions: 0,
        improvements: 0,
        baseline: None,
    }
}
