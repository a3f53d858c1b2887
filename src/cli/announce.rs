//! A verdict on its way to GitHub: the texts, the job they are told to, the folder they are kept in.

use std::path::{Path, PathBuf};

use crate::config::CommentWhen;
use crate::gate::{Comparison, FailOn, Reason, Row};
use crate::github::{self, Annotation, Level};
use crate::model::Verdict;
use crate::report::{self, MarkdownOptions, View};

use super::{CliError, Terminal};

/// What there is to tell.
pub enum Story<'a> {
    Compared {
        comparison: &'a Comparison,
        reproduce: Option<String>,
    },
    /// There is no comparison: a first run, a result that can't be read, a stage before it that failed.
    Failed {
        verdict: Verdict,
        message: String,
    },
}

impl Story<'_> {
    /// What became of a command that ends without a comparison.
    pub fn failed(error: &CliError) -> Self {
        let verdict = match error {
            CliError::BaselineMissing { .. } => Verdict::Missing,
            _ => Verdict::Error,
        };
        Self::Failed { verdict, message: error.to_string() }
    }
}

/// Everything that is told, rendered once: a dry run shows the bytes that would be posted.
pub struct Texts {
    pub verdict: Verdict,
    /// One sentence, no names.
    pub headline: String,
    /// Whether anything is worth a comment under `on-change`.
    pub changed: bool,
    /// Without its marker.
    pub comment: String,
    pub summary: String,
    pub annotations: String,
    /// Of the whole comparison; absent where there is none.
    pub report: Option<String>,
    regressions: usize,
    improvements: usize,
    baseline: Option<String>,
}

impl Texts {
    pub fn new(story: &Story<'_>, annotate: bool) -> Self {
        match story {
            Story::Compared { comparison, reproduce } => compared(comparison, reproduce.clone(), annotate),
            Story::Failed { verdict, message } => failed(*verdict, message, annotate),
        }
    }

    /// Whether the pull request is to get a comment that it does not have yet.
    pub fn wants_comment(&self, when: CommentWhen) -> bool {
        match when {
            CommentWhen::Always => true,
            CommentWhen::OnChange => self.changed,
            CommentWhen::OnFailure => !matches!(self.verdict, Verdict::Pass | Verdict::Improved),
            CommentWhen::Never => false,
        }
    }

    fn outputs(&self, report: Option<&Path>, comment_url: Option<&str>) -> Vec<(&'static str, String)> {
        vec![
            ("verdict", self.verdict.to_string()),
            ("regressions", self.regressions.to_string()),
            ("improvements", self.improvements.to_string()),
            ("report-json", report.map(|path| path.display().to_string()).unwrap_or_default()),
            ("comment-url", comment_url.unwrap_or_default().to_owned()),
            ("baseline-sha", self.baseline.clone().unwrap_or_default()),
        ]
    }
}

fn compared(comparison: &Comparison, reproduce: Option<String>, annotate: bool) -> Texts {
    let view = View::new(comparison, reproduce);
    let page = |bytes| report::markdown(&view, MarkdownOptions { max_bytes: Some(bytes) });
    let count = |verdict| {
        let mut names: Vec<&str> = comparison
            .rows
            .iter()
            .filter(|row| row.fatal && row.verdict == verdict)
            .map(|row| row.benchmark.as_str())
            .collect();
        names.sort_unstable();
        names.dedup();
        names.len()
    };
    let mut notes: Vec<Annotation> = Vec::new();
    if annotate {
        let told = view.failed.iter().chain(&view.diverged).chain(&view.changed).chain(&view.open);
        notes.extend(told.filter_map(|row| annotation(row.row, &row.sentence(), &comparison.policy.fail_on)));
    }
    // A note is what the policy's change or an assumption says; it is not a change of what was measured.
    let changed = comparison.verdict != Verdict::Pass || comparison.rows.iter().any(news);
    Texts {
        verdict: comparison.verdict,
        headline: view.headline.clone(),
        changed,
        comment: page(github::COMMENT_BYTES),
        summary: page(github::SUMMARY_BYTES),
        annotations: github::annotations(&notes),
        report: Some(report::json(&view)),
        regressions: count(Verdict::Regressed),
        improvements: count(Verdict::Improved),
        baseline: comparison.base.commit.clone(),
    }
}

/// A row that somebody would want to hear of although the whole passes: a waived red, a new benchmark.
fn news(row: &Row) -> bool {
    row.waiver.is_some() || (row.metric.is_none() && row.verdict != Verdict::Pass)
}

fn annotation(row: &Row, sentence: &str, fail_on: &FailOn) -> Option<Annotation> {
    let good = matches!(row.verdict, Verdict::Pass | Verdict::Improved);
    if good || !row.fatal {
        return None;
    }
    let level = if fail_on.0.contains(&row.verdict) { Level::Error } else { Level::Warning };
    let metric = match (&row.metric, &row.reason) {
        (Some(metric), reason) if *reason != Reason::Identical => format!(" {}", metric.name),
        _ => String::new(),
    };
    let title = format!("{}{metric}: {}", report::clean(row.benchmark.as_str()), row.verdict);
    Some(Annotation { level, title, message: report::clean(sentence) })
}

fn failed(verdict: Verdict, message: &str, annotate: bool) -> Texts {
    let page = report::failure(verdict, message);
    let note =
        Annotation { level: Level::Error, title: "benchgate".to_owned(), message: report::clean(message) };
    Texts {
        verdict,
        headline: page.headline,
        changed: true,
        comment: page.text.clone(),
        summary: page.text,
        annotations: if annotate { github::annotations(&[note]) } else { String::new() },
        report: None,
        regressions: 0,
        improvements: 0,
        baseline: None,
    }
}

/// The job that is told: the files that its runner reads.
pub struct Reporting {
    /// Write to the job's files and print annotations.
    pub job: bool,
    /// Keep what is told here.
    pub out: Option<PathBuf>,
}

impl Reporting {
    /// Tells everything but what is posted.
    pub fn tell(
        &self,
        texts: &Texts,
        comment_url: Option<&str>,
        terminal: &Terminal,
    ) -> Result<(), CliError> {
        let folder = self.folder();
        let mut report = None;
        if let Some(folder) = &folder {
            std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
            for (name, text) in [("summary.md", &texts.summary), ("comment.md", &texts.comment)] {
                keep(folder, name, text)?;
            }
            keep(folder, "annotations.txt", &texts.annotations)?;
            if let Some(json) = &texts.report {
                report = Some(keep(folder, "report.json", json)?);
            }
        }
        let outputs = texts.outputs(report.as_deref(), comment_url);
        if let Some(folder) = &folder {
            let lines: String = outputs.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
            keep(folder, "outputs.txt", &lines)?;
        }
        if self.job {
            append("GITHUB_STEP_SUMMARY", &texts.summary)?;
            append("GITHUB_OUTPUT", &github::outputs(&outputs, &delimiter()?))?;
            terminal.print(&texts.annotations);
        }
        Ok(())
    }

    /// As asked for; in a job the runner's own temporary folder, because a step reads the report later.
    fn folder(&self) -> Option<PathBuf> {
        let temporary = || std::env::var_os("RUNNER_TEMP").filter(|folder| !folder.is_empty());
        let kept = || Some(PathBuf::from(temporary().filter(|_| self.job)?).join("benchgate"));
        self.out.clone().or_else(kept)
    }
}

fn keep(folder: &Path, name: &str, text: &str) -> Result<PathBuf, CliError> {
    let path = folder.join(name);
    std::fs::write(&path, text).map_err(|error| unwritable(&path, &error))?;
    Ok(path)
}

fn unwritable(path: &Path, error: &std::io::Error) -> CliError {
    CliError::Failed { message: format!("failed to write {}: {error}", path.display()), hint: None }
}

/// Adds to one of the files through which a runner listens. Outside a job there is none.
fn append(variable: &str, text: &str) -> Result<(), CliError> {
    use std::io::Write;
    let Some(path) = std::env::var_os(variable).filter(|path| !path.is_empty()) else { return Ok(()) };
    let path = PathBuf::from(path);
    let file = std::fs::OpenOptions::new().append(true).create(true).open(&path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| unwritable(&path, &error))
}

/// What no value contains by chance or by malice.
fn delimiter() -> Result<String, CliError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| CliError::Internal {
        message: format!("failed to get random numbers from the system: {error}"),
    })?;
    Ok(bytes.iter().fold("benchgate-".to_owned(), |text, byte| format!("{text}{byte:02x}")))
}
