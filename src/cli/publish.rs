//! `benchgate publish`.

use std::path::{Path, PathBuf};

use crate::config::{self, Config, ConfigError};
use crate::exit_code::ExitCode;
use crate::gate::{CompareOptions, Comparison, compare};

use super::announce::{Reporting, Story, Texts};
use super::github_args::PostArgs;
use super::inputs;
use super::policy_args::PolicyArgs;
use super::{CliError, Terminal};

/// Judge a result that was measured elsewhere, and post the verdict to GitHub
///
/// The trusted half of a pull request's check: it runs beside a token that can write, so it runs nothing
/// of the pull request. RUN.json is read as hostile input, the verdict is computed again from its samples
/// under the policy of the configuration that lies here (check out the base), and posted as one comment
/// that is kept up to date, a check run, a job summary, annotations and outputs.
///
/// The token comes from GITHUB_TOKEN. Without one, or where it may only read, there is a summary and no
/// comment. After a workflow_run event the reported run must be one of the pull request workflow (its
/// path, event and head commit are checked) and the pull request must still be at that commit.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  benchgate publish run.json                       in a job of GitHub Actions
  benchgate publish run.json --dry-run             what it would post, anywhere
  benchgate publish run.json --dry-run --out told  the same as files
  benchgate publish run.json --comment always --check-run

Exit codes: those of the verdict (0, 10, 11, 12, 13, 20), 2 usage or config,
21 RUN.json is absent or can't be read, 22 GitHub failed.")]
pub struct Args {
    /// What was measured, as `benchgate run` or `gate` wrote it
    #[arg(value_name = "RUN.json")]
    run: PathBuf,
    /// The base's configuration: the suite, the policy and [github]
    #[arg(long, short, value_name = "FILE", default_value = "benchgate.toml", env = "BENCHGATE_CONFIG")]
    config: PathBuf,
    /// Show what would be posted, and reach for no network and no file of the job
    #[arg(long)]
    dry_run: bool,
    /// Also write what is told into this folder: report.json, summary.md, comment.md, check.json,
    /// annotations.txt, outputs.txt
    #[arg(long, value_name = "DIR", help_heading = "GitHub")]
    out: Option<PathBuf>,
    /// The pull request, where the event does not name it; believed only if its head is the commit that
    /// was measured
    #[arg(long, value_name = "NUMBER", help_heading = "GitHub")]
    pull_request: Option<u64>,
    #[command(flatten)]
    post: PostArgs,
    #[command(flatten)]
    policy: PolicyArgs,
}

pub fn run(args: &Args, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let config = match config::load_judging(&args.config) {
        Ok(config) => Some(config),
        // The suite is new: nothing was merged that could judge it.
        Err(ConfigError::Unreadable { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    let github = args.post.over(config.as_ref().map(|config| config.github.clone()).unwrap_or_default());
    let judged = judge(args, config.as_ref());
    let (texts, code) = match &judged {
        Ok(comparison) => {
            let story = Story::Compared { comparison, reproduce: None };
            (Texts::new(&story, github.annotations), comparison.exit_code)
        }
        Err(error) => (Texts::new(&Story::failed(error), github.annotations), error.exit_code()),
    };
    if !args.dry_run {
        return Err(CliError::Usage {
            message: "posting is not supported yet".to_owned(),
            hint: Some("--dry-run shows what it will be".to_owned()),
        });
    }
    Reporting { job: false, out: args.out.clone() }.tell(&texts, None, terminal)?;
    if !texts.wants_comment(github.comment) {
        terminal.note(&format!("no new comment: [github] comment is {}", github.comment.as_str()));
    } else if args.out.is_none() {
        terminal.print(&texts.comment);
    }
    if let Err(error) = &judged {
        terminal.error(error);
    }
    terminal.note(&texts.headline);
    Ok(code)
}

/// The verdict, from the samples and the base's policy.
fn judge(args: &Args, config: Option<&Config>) -> Result<Comparison, CliError> {
    let Some(config) = config else {
        return Err(CliError::BaselineMissing {
            message: format!("the base has no {}, so nothing can be judged yet", args.config.display()),
            hint: Some("once it is merged, the next pull request is judged by it".to_owned()),
        });
    };
    let policy = args.policy.over(config.policy.clone())?;
    let (base, head) = inputs::load_two_sided(&args.run)?;
    for side in [&base, &head] {
        same_suite(side.run.suite.as_deref(), config, &args.run)?;
    }
    let options = CompareOptions { seed: config.measure.seed, today: super::compare::today() };
    let mut comparison = compare(&base.run, &head.run, &policy, &options);
    args.policy.soften(&mut comparison);
    Ok(comparison)
}

/// A result of another suite would be judged by a policy that was never meant for it.
fn same_suite(found: Option<&str>, config: &Config, run: &Path) -> Result<(), CliError> {
    if found == Some(config.suite.as_str()) {
        return Ok(());
    }
    Err(CliError::Input {
        message: format!(
            "{} is a result of the suite {}, and {} describes {}",
            run.display(),
            found.unwrap_or("without a name"),
            config.file.display(),
            config.suite
        ),
        hint: None,
    })
}
