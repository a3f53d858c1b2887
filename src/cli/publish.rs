//! `benchgate publish`: judges a result that was measured elsewhere, and posts the verdict.

use std::path::PathBuf;

use crate::config::{self, Config, ConfigError, GitHub};
use crate::exit_code::ExitCode;
use crate::gate::Comparison;
use crate::model::{Disclose, SideName};

use super::policy_args::PolicyArgs;
use super::posting::{self, PostingPlan, Situation};
use super::provenance::{self, TrustedInputs};
use super::rendering::RunFileArgs;
use super::reporting::{PostArgs, Reporting, Story, Texts};
use super::{CliError, Terminal, choices, inputs, runtime};

/// Judge a result that was measured elsewhere, and post the verdict to GitHub
///
/// This is the trusted half of a pull request's check: it has a write token, so it runs no code of the pull request.
/// The result is read as hostile input: its commits, times, tools, benchmarks and schedule must agree with the event,
/// GitHub and the configuration in this folder (check out the default branch). The verdict is computed again
/// from the samples of the result under that configuration's policy, and posted as one comment that is
/// kept up to date, a check run, a job summary,
/// annotations and outputs.
///
/// The token comes from GITHUB_TOKEN. Without a token that can write, there is a summary but no comment. After a
/// workflow_run event the reported run must be one of the pull request workflow (its path, event and head commit are
/// checked), and the pull request must still be open and at that commit; otherwise nothing is posted.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  benchgate publish                             in a job of GitHub Actions
  benchgate publish --dry-run                   what it would post, anywhere
  benchgate publish --dry-run --output-dir dry  the same, as files
  benchgate publish --run run.json --comment always --check-run

Exit codes: those of the verdict (0, 10, 11, 12, 13, 20), but 0 after a
workflow_run event if the check run was posted; 2 usage or config,
21 the measurements are absent or can't be read, 22 GitHub failed.")]
pub struct PublishArgs {
    #[command(flatten)]
    run: RunFileArgs,
    /// Configuration of the suite; check out the default branch, because its policy and [github] settings apply
    #[arg(long, short, value_name = "FILE", default_value = "benchgate.toml", env = "BENCHGATE_CONFIG")]
    config: PathBuf,
    /// Show what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Folder for the output files; they are report.json, summary.md, comment.md, check.json, annotations.txt and
    /// outputs.txt
    #[arg(long, value_name = "FOLDER", help_heading = "GitHub")]
    output_dir: Option<PathBuf>,
    /// The pull request, if the event does not name it; its head must be the measured commit
    #[arg(long, value_name = "NUMBER", help_heading = "GitHub")]
    pull_request: Option<u64>,
    /// Values to report; `ratios` omits absolute times, sizes and counts [default: the key `disclose` of [report], otherwise all]
    #[arg(long, value_name = "WHAT", value_parser = choices::named(&Disclose::ALL, Disclose::as_str))]
    disclose: Option<Disclose>,
    #[command(flatten)]
    post: PostArgs,
    #[command(flatten)]
    policy: PolicyArgs,
}

pub fn run(args: &PublishArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let config = match config::load_judging(&args.config) {
        Ok(config) => Some(config),
        // The suite is new, so there is no policy yet that could judge it.
        Err(ConfigError::Unreadable { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    let configured = config.as_ref().map(|config| config.github.clone()).unwrap_or_default();
    let github = args.post.over(configured);
    let situation = match Situation::find(&github, args.pull_request, args.dry_run) {
        Ok(situation) => situation,
        Err(error) => {
            // Nothing can be posted on the pull request, so the job's summary gives the reason.
            let texts = Texts::new(&Story::Failed(&error), None, github.annotations);
            Reporting { job: !args.dry_run, folder: args.output_dir.clone() }
                .report(&texts, None, None, terminal)?;
            return Err(error);
        }
    };
    let judged = judge(args, config.as_ref(), &situation);
    if let Err(error) = &judged {
        terminal.error(error);
    }
    let suite = config.as_ref().map_or("", |config| &config.suite);
    let story = match &judged {
        Ok((comparison, alerts)) => {
            let reproduce = situation.reproduce(&args.config);
            Story::Compared { comparison, reproduce, alerts }
        }
        Err(error) => Story::Failed(error),
    };
    if args.dry_run {
        return dry_run(args, &story, suite, &github, &situation, terminal);
    }
    posting::publish(&story, suite, &github, &situation, args.output_dir.clone(), terminal)
}

/// Shows the plan without posting anything.
fn dry_run(
    args: &PublishArgs,
    story: &Story<'_>,
    suite: &str,
    github: &GitHub,
    situation: &Situation,
    terminal: &Terminal,
) -> Result<ExitCode, CliError> {
    let texts = Texts::new(story, situation.source(), github.annotations);
    let plan = PostingPlan::new(suite, &texts, github, situation);
    Reporting { job: false, folder: args.output_dir.clone() }.report(
        &texts,
        Some(&plan.posts()),
        None,
        terminal,
    )?;
    if args.output_dir.is_none() {
        terminal.print(plan.posts().comment);
    }
    if !texts.wants_comment(github.comment) {
        terminal.note(&format!(
            "no first comment would be posted, because `comment` is {}",
            github.comment.into_str()
        ));
    }
    terminal.note(&texts.headline);
    Ok(texts.code)
}

/// Judges the samples of the result by the configuration's policy. Also returns the settings that the change
/// made.
fn judge(
    args: &PublishArgs,
    config: Option<&Config>,
    situation: &Situation,
) -> Result<(Comparison, Vec<String>), CliError> {
    let Some(config) = config else {
        return Err(CliError::baseline_missing(format!(
            "the base has no {}, so nothing can be judged yet",
            args.config.display()
        ))
        .hint("once the file is merged, later pull requests are judged by it"));
    };
    let policy = args.policy.over(config.policy.clone())?;
    let run = &args.run.run;
    if !run.exists() {
        return Err(CliError::input(format!(
            "failed to find a result: the job that measured left no {}",
            run.display()
        ))
        .hint("its log says why"));
    }
    let file = inputs::load_run(run)?;
    let head = file.side(SideName::Head).and_then(|side| side.commit.as_deref());
    let known = TrustedInputs {
        config,
        policy: &policy,
        commits: &situation.commits(head)?,
        reported: situation.reported(),
        today: runtime::today(),
    };
    let notices: Vec<String> = provenance::command_changes(&file).into_iter().collect();
    let mut comparison = provenance::judge(file, &run.to_string_lossy(), &known)?;
    ended_alike(&comparison, situation)?;
    comparison.notes.splice(0..0, notices.iter().cloned());
    args.policy.downgrade(&mut comparison);
    crate::report::withhold(&mut comparison, args.disclose.unwrap_or(config.disclose));
    Ok((comparison, notices))
}

/// Rejects a result that passes although the run that measured it failed: it can't be the result that the run
/// judged.
fn ended_alike(comparison: &Comparison, situation: &Situation) -> Result<(), CliError> {
    let Some(run) = situation.reported() else { return Ok(()) };
    let conclusion = run.conclusion.as_deref().unwrap_or("unknown");
    if conclusion == "success" || comparison.exit_code != ExitCode::Pass {
        return Ok(());
    }
    Err(CliError::failed(format!(
            "failed to accept the result: its verdict is {}, but the run that measured it ended with {conclusion}",
            comparison.verdict
        )).hint("the log of the measuring run says why it failed"))
}
