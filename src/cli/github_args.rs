//! Options of the commands that GitHub Actions runs.

use std::path::PathBuf;

use strum::VariantArray;

use crate::config::{CommentWhen, GitHub};

use super::choices;
use super::reporting::Reporting;

/// Options of every command that ends in a comparison: what the job itself gets.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "GitHub")]
pub struct GithubArgs {
    /// Report to the GitHub Actions job that runs this; step summary, annotations and outputs
    #[arg(long)]
    pub github: bool,
    /// Folder for the output files; report.json, summary.md, comment.md, annotations.txt, outputs.txt
    #[arg(long, value_name = "FOLDER")]
    pub output_dir: Option<PathBuf>,
}

impl GithubArgs {
    /// Whether any of it was requested.
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
    /// When to comment on the pull request [default: [github] comment, or on-change]
    #[arg(long, value_name = "WHEN", value_parser = choices::named(CommentWhen::VARIANTS, Into::into))]
    pub comment: Option<CommentWhen>,
    /// Also post a check run [default: [github] check-run, or false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub check_run: Option<bool>,
}

impl PostArgs {
    /// These options over the configuration.
    pub fn over(&self, mut configured: GitHub) -> GitHub {
        configured.comment = self.comment.unwrap_or(configured.comment);
        configured.check_run = self.check_run.unwrap_or(configured.check_run);
        configured
    }
}
