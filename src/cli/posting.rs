//! Posts a verdict to GitHub: makes a plan, which a dry run prints, and carries it out.

use std::path::PathBuf;

use crate::config::{CommentWhen, GitHub};
use crate::exit_code::ExitCode;
use crate::github::{
    Check, Client, CommentRequest, Conclusion, GitHubError, GitHubEvent, GitHubToken, Job, Marker, Posted,
    PostedCheck, PullRequest, RetryPolicy, RunAttempt, Sha, WorkflowRun,
};
use crate::model::{Verdict, shell_word};
use crate::report::ResultSource;

use super::provenance::Commits;
use super::reporting::{Posts, Reporting, Story, Texts};
use super::{CliError, ErrorKind, Terminal, runtime};

/// The job that posts, and the pull request that it posts to.
pub struct Situation {
    /// Absent on a user's machine, where only a dry run is possible.
    pub job: Option<Job>,
    pub pull_request: Option<PullRequest>,
    token: Option<GitHubToken>,
    /// The reason why nothing is posted to the expected pull request.
    silent: Option<String>,
}

impl Situation {
    /// Reads the job, and finds the pull request that was measured. `named` is its number, if the user gave
    /// it.
    ///
    /// # Errors
    /// An invalid job, a reported run that must not be published, or a failure of GitHub.
    pub fn find(config: &GitHub, named: Option<u64>, dry_run: bool) -> Result<Self, CliError> {
        let mut situation = Self { job: None, pull_request: None, token: None, silent: None };
        let job = match runtime::job()? {
            None if dry_run => return Ok(situation),
            current => runtime::required_job(current)?,
        };
        if !dry_run {
            let given = runtime::secret("GITHUB_TOKEN");
            situation.token = given.as_deref().and_then(GitHubToken::new);
            if situation.token.is_none() && given.is_some_and(|text| !text.trim().is_empty()) {
                return Err(CliError::github(
                    "failed to use GITHUB_TOKEN: it has a character that is not valid in a token",
                )
                .hint("give `${{ github.token }}`, with nothing around it"));
            }
            if situation.token.is_none() {
                situation.silent = Some("GITHUB_TOKEN is empty, so nothing is posted".to_owned());
            }
        }
        let event = job.event.clone();
        situation.job = Some(job);
        match event {
            GitHubEvent::PullRequest(pull) | GitHubEvent::PullRequestTarget(pull) => {
                if let Some(named) = named.filter(|named| *named != pull.number) {
                    return Err(CliError::usage(format!(
                        "--pull-request names pull request {named}, but the event is about pull request {}",
                        pull.number
                    ))
                    .hint("omit --pull-request: the event names the pull request"));
                }
                // Measuring takes time, and the pull request may have changed since the event.
                let current =
                    situation.ask(async |client| client.is_still_at(pull.number, &pull.head).await)?;
                if current == Some(false) {
                    situation.silent = Some(moved_on(&pull.head));
                } else {
                    situation.pull_request = Some(pull);
                }
            }
            GitHubEvent::WorkflowRun(run) => {
                run.accept(&config.workflow)?;
                let found = situation.ask(async |client| client.pull_request_of(&run, named).await)?;
                if let Some(None) = found {
                    situation.silent = Some(moved_on(&run.head));
                }
                situation.pull_request = found.flatten();
            }
            GitHubEvent::MergeGroup { .. }
            | GitHubEvent::Push { .. }
            | GitHubEvent::Schedule
            | GitHubEvent::WorkflowDispatch
            | GitHubEvent::Other(_) => {}
        }
        Ok(situation)
    }

    /// The commits that a result may be about, according to the event and GitHub. `measured` is the head
    /// commit in the result.
    ///
    /// # Errors
    /// A failure of GitHub, or a measured commit that is neither the proposed commit nor GitHub's merge of
    /// it.
    pub fn commits(&self, measured: Option<&str>) -> Result<Commits, CliError> {
        let (Some(job), pull) = (&self.job, &self.pull_request) else { return Ok(Commits::default()) };
        let (Some(pull), Some(measured)) = (pull, measured.and_then(Sha::parse)) else {
            return Ok(Commits::from_job(job));
        };
        let base = self.ask(async |client| client.base_of(&measured, job.head(), &pull.base_ref).await)?;
        match base {
            // Without a token nothing is posted, so the event's commits are enough.
            None => Ok(Commits::from_job(job)),
            Some(Some(base)) => {
                Ok(Commits { head: vec![measured.as_str().to_owned()], base: vec![base.as_str().to_owned()] })
            }
            Some(None) => Err(CliError::failed(format!(
                "failed to accept the result: it was measured at {}, which is neither the pull request's head {} nor GitHub's merge commit of that head into {} since the change started from it",
                measured.short(),
                job.head().short(),
                pull.base_ref
            ))
            .hint("run the measuring workflow again, on the pull request's current commit")),
        }
    }

    /// The run that a workflow_run event reports.
    pub fn reported(&self) -> Option<&WorkflowRun> {
        match &self.job.as_ref()?.event {
            GitHubEvent::WorkflowRun(run) => Some(run),
            _ => None,
        }
    }

    /// Returns true if a verdict may be posted at its commit. The verdict of a pull request may only be
    /// posted while the pull request is open and its head is still this commit.
    fn may_check(&self) -> bool {
        let proposed = self.job.as_ref().is_some_and(|job| {
            matches!(
                job.event,
                GitHubEvent::PullRequest(_) | GitHubEvent::PullRequestTarget(_) | GitHubEvent::WorkflowRun(_)
            )
        });
        !proposed || self.pull_request.is_some()
    }

    /// Sends requests to GitHub; does nothing without a token.
    fn ask<T>(
        &self,
        work: impl AsyncFnOnce(&Client) -> Result<T, GitHubError>,
    ) -> Result<Option<T>, CliError> {
        let (Some(job), Some(token)) = (&self.job, &self.token) else { return Ok(None) };
        runtime::block_on(async |cancel| {
            // The client is created here, because its connections belong to this runtime.
            let client = Client::new(&job.api, job.repository.clone(), token, RetryPolicy::default())?;
            tokio::select! {
                done = work(&client) => Ok(Some(done?)),
                () = cancel.requested() => Err(CliError::interrupted()),
            }
        })
    }

    /// The origin of the measured code, if known.
    pub fn source(&self) -> Option<ResultSource> {
        let job = self.job.as_ref()?;
        let fork = match &job.event {
            GitHubEvent::PullRequest(pull) | GitHubEvent::PullRequestTarget(pull) => Some(pull.fork),
            GitHubEvent::WorkflowRun(run) => Some(run.fork),
            _ => None,
        };
        Some(ResultSource {
            commit: job.head().as_str().to_owned(),
            pull_request: fork.is_some(),
            fork: fork.unwrap_or(false),
            page: Some(job.run_page()),
        })
    }

    fn reports_another_run(&self) -> bool {
        self.reported().is_some()
    }

    /// A command that measures the same change again.
    pub fn reproduce(&self, config: &std::path::Path) -> Option<String> {
        let job = self.job.as_ref()?;
        let pull = self.pull_request.as_ref()?;
        let config = match config.to_str()? {
            "benchgate.toml" => String::new(),
            other => format!(" --config {}", shell_word(other)),
        };
        let base = shell_word(format!("origin/{}", pull.base_ref));
        let repository = &job.repository;
        Some(format!(
            "gh pr checkout {} --repo {repository} && benchgate gate --base {base}{config}",
            pull.number
        ))
    }
}

fn moved_on(head: &Sha) -> String {
    format!("no open pull request is at {} any more, so nothing is posted", head.short())
}

/// Everything that is to be posted.
pub struct PostingPlan {
    marker: Marker,
    comment: String,
    create: bool,
    when: CommentWhen,
    author: String,
    check: Option<Check>,
}

impl PostingPlan {
    pub fn new(suite: &str, texts: &Texts, config: &GitHub, situation: &Situation) -> Self {
        let job = situation.job.as_ref();
        let attempt = job.map_or(RunAttempt { run: 0, attempt: 0 }, Job::measured);
        let marker = Marker::new(suite, attempt);
        let check = job.filter(|_| config.check_run && situation.may_check()).map(|job| {
            // A commit can be proposed to several branches, and each of them has its own verdict.
            let base =
                situation.pull_request.as_ref().map(|pull| pull.base_ref.as_str()).or(job.base_branch());
            let base = base.map(|base| format!(" ({})", crate::report::clean(base))).unwrap_or_default();
            let name = format!("benchgate: {}{base}", crate::report::clean(suite));
            Check {
                marker: Marker::new(&name, attempt),
                name,
                head: job.head().clone(),
                conclusion: conclusion(texts.code, texts.verdict),
                title: texts.headline.clone(),
                summary: texts.check.clone(),
                page: Some(job.run_page()),
            }
        });
        Self {
            comment: marker.comment(&texts.comment),
            marker,
            create: texts.wants_comment(config.comment),
            when: config.comment,
            author: config.author.clone(),
            check,
        }
    }

    pub fn posts(&self) -> Posts<'_> {
        Posts { comment: &self.comment, check: self.check.as_ref() }
    }

    /// Posts the comment and the check run of the plan.
    fn post(
        &self,
        texts: &Texts,
        situation: &Situation,
        terminal: &Terminal,
    ) -> Result<PostedParts, CliError> {
        if let Some(why) = &situation.silent {
            terminal.note(why);
        }
        let mut parts = PostedParts { url: None, check: false };
        if let Some(pull) = situation.pull_request.as_ref().filter(|_| self.when != CommentWhen::Never) {
            let wanted = CommentRequest {
                pull_request: pull.number,
                marker: &self.marker,
                body: &texts.comment,
                create: self.create,
                author: &self.author,
            };
            let posted = situation.ask(async |client| client.comment(&wanted).await);
            if let Some(posted) = allowed(posted, "comment", terminal)? {
                say(&posted, terminal);
                parts.url = posted.url().map(str::to_owned);
            }
        }
        if let Some(check) = &self.check {
            let posted = situation.ask(async |client| client.check(check).await);
            let posted = allowed(posted, "check run", terminal)?;
            match posted {
                Some(PostedCheck::Newer) => terminal.note("a later run has already posted its check run"),
                Some(PostedCheck::Failed) => terminal.note(
                    "the check run stays a failure, because another result of this attempt failed: run the job that failed \
                     again",
                ),
                Some(PostedCheck::Posted) | None => {}
            }
            parts.check = posted.is_some();
        }
        Ok(parts)
    }
}

struct PostedParts {
    /// The URL of the comment, if there is one.
    url: Option<String>,
    check: bool,
}

fn say(posted: &Posted, terminal: &Terminal) {
    match posted {
        Posted::Created { url } => terminal.note(&format!("commented: {url}")),
        Posted::Updated { url } => terminal.note(&format!("updated {url}")),
        Posted::Newer { url } => terminal.note(&format!("a later run has already commented: {url}")),
        Posted::NotWanted => terminal.note("nothing to comment on"),
    }
}

/// Converts a permission error into a note: the token of a fork is always read-only, so its job writes a
/// summary instead of a comment and does not fail.
fn allowed<T>(
    result: Result<Option<T>, CliError>,
    what: &str,
    terminal: &Terminal,
) -> Result<Option<T>, CliError> {
    match result {
        Err(error) if error.kind() == ErrorKind::Forbidden => {
            terminal.note(&format!(
                "this token is read-only, so there is no {what}; the summary contains everything"
            ));
            Ok(None)
        }
        result => result,
    }
}

/// The conclusion is a failure only if the job fails, and a success only for a good verdict; otherwise it is
/// neutral.
fn conclusion(code: ExitCode, verdict: Verdict) -> Conclusion {
    match (code, verdict) {
        (ExitCode::Pass, Verdict::Pass | Verdict::Improved) => Conclusion::Success,
        (ExitCode::Pass, _) => Conclusion::Neutral,
        _ => Conclusion::Failure,
    }
}

/// Reports to GitHub's API, the job's files and the output folder. Returns the exit code of the verdict or,
/// if that is 0 and GitHub failed, the code of that failure.
pub fn publish(
    story: &Story<'_>,
    suite: &str,
    config: &GitHub,
    situation: &Situation,
    folder: Option<PathBuf>,
    terminal: &Terminal,
) -> Result<ExitCode, CliError> {
    let texts = Texts::new(story, situation.source(), config.annotations);
    let plan = PostingPlan::new(suite, &texts, config, situation);
    let posted = plan.post(&texts, situation, terminal);
    let url = posted.as_ref().ok().and_then(|parts| parts.url.as_deref());
    Reporting { job: true, folder }.report(&texts, Some(&plan.posts()), url, terminal)?;
    match posted {
        Err(error) if texts.code == ExitCode::Pass => Err(error),
        Err(error) => {
            terminal.error(&error);
            Ok(texts.code)
        }
        // The check run shows the verdict at its commit, so this job succeeds: its own status would appear on
        // the default branch and not on the pull request.
        Ok(parts) if parts.check && situation.reports_another_run() => Ok(ExitCode::Pass),
        Ok(_) => Ok(texts.code),
    }
}

/// Refuses to measure in a job with a token, unless the event's code comes from people who can write to the
/// repository anyway. Every unlisted event is refused.
pub fn one_job() -> Result<(), CliError> {
    let job = runtime::required_job(runtime::job()?)?;
    let refused = |why: &str| {
        Err(CliError::usage(format!("failed to accept --publish: {why}"))
            .hint("measure in one job and publish in another: `benchgate init` writes both"))
    };
    let private = job.private == Some(true);
    match &job.event {
        // This code was merged, or pushed by someone with write access.
        GitHubEvent::Push { .. } | GitHubEvent::Schedule => Ok(()),
        GitHubEvent::PullRequest(pull) if pull.fork => {
            refused("a fork's code would run in a job with the token")
        }
        GitHubEvent::PullRequest(_) | GitHubEvent::MergeGroup { .. } | GitHubEvent::WorkflowDispatch
            if private =>
        {
            Ok(())
        }
        GitHubEvent::PullRequest(_) | GitHubEvent::MergeGroup { .. } | GitHubEvent::WorkflowDispatch => {
            refused("this repository is not private, and proposed code would run in a job with the token")
        }
        GitHubEvent::PullRequestTarget(_) | GitHubEvent::WorkflowRun(_) | GitHubEvent::Other(_) => {
            refused("for this event, a job with a token must not measure anything")
        }
    }
}

impl From<GitHubError> for CliError {
    fn from(error: GitHubError) -> Self {
        let message = format!("failed to {error}");
        match &error {
            GitHubError::Untrusted(_) => {
                Self::failed(message).hint("[github] workflow names the workflow whose results are published")
            }
            GitHubError::Refused { status: 403, .. } => Self::forbidden(message),
            GitHubError::Refused { status: 401, .. } => {
                Self::github(message).hint("GITHUB_TOKEN is not valid here: give `${{ github.token }}`")
            }
            GitHubError::Refused { status: 404, .. } => Self::github(message).hint(
                "the token lacks access: set `permissions: pull-requests: write`, and `checks: write` for a check run",
            ),
            _ => Self::github(message).hint("the job summary has the whole verdict"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::FailOn;

    #[test]
    fn an_inconclusive_result_is_never_a_green_check() {
        let code = |fail_on: &FailOn| {
            if fail_on.0.contains(&Verdict::Inconclusive) { ExitCode::Inconclusive } else { ExitCode::Pass }
        };
        let check = |fail_on: &FailOn| conclusion(code(fail_on), Verdict::Inconclusive);
        assert_eq!(check(&FailOn::default()), Conclusion::Failure);
        assert_eq!(check(&FailOn(vec![Verdict::Regressed])), Conclusion::Neutral);
        assert_eq!(conclusion(ExitCode::Pass, Verdict::Pass), Conclusion::Success);
    }
}
