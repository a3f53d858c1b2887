//! The texts that report a verdict. They are rendered once, so that a dry run shows exactly the bytes that
//! would be posted.

use crate::config::CommentWhen;
use crate::exit_code::ExitCode;
use crate::gate::{Comparison, Row};
use crate::github::{self, Annotation, AnnotationLevel, Sha};
use crate::model::Verdict;
use crate::report::{self, Failure, MarkdownOptions, ResultSource, RowView, View};

use super::{CliError, ErrorKind};

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
