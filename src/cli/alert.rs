//! `benchgate alert`: issues and a webhook for slowdowns and missing benchmarks.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::site::HistoryArgs;
use super::store_args::StoreArgs;
use super::{CliError, Terminal, inputs, runtime};
use crate::config::GitHub;
use crate::exit_code::ExitCode;
use crate::git::Repository;
use crate::github::{
    self, Client, CommentRequest, GitHubError, GitHubToken, Issue, IssueChange, Job, Marker, RetryPolicy,
    RunAttempt, Webhook,
};
use crate::model::{counted, hex};
use crate::record::BisectionFile;
use crate::report;
use crate::site::{
    self, Action, AlertPlan, AlertPolicy, BenchmarkOwner, Cause, IssueContext, IssueTrace, KnownIssue,
    Silence, Timeline,
};

/// Open, update and close issues about slowdowns in the stored sessions
///
/// Opens one GitHub issue for each cause: all benchmarks that got worse at the same change. An issue is updated when a
/// night adds information, closed when the benchmarks are back at their earlier level or the change is accepted, and
/// reopened if the slowdown returns. The token comes from GITHUB_TOKEN. If BENCHGATE_WEBHOOK_URL is set, it receives
/// the actions as JSON, signed with BENCHGATE_WEBHOOK_SECRET.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  benchgate alert --branch --dry-run            what would be done
  benchgate alert --branch --owner 'vit*=@org/vision'
  benchgate alert --branch --bisection bisect.json   link the search's result
  benchgate alert --branch --fail-on missing    exit code 12 if something
                                                stopped reporting")]
pub struct AlertArgs {
    /// Show what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Maximum number of issues to open; further causes wait for the next night
    #[arg(long, value_name = "N", default_value_t = 5)]
    limit: usize,
    /// Smallest slowdown that opens an issue, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percent)]
    min_slowdown: f64,
    /// Mention a user or team in issues about benchmarks that match; repeatable
    #[arg(long, value_name = "GLOB=@HANDLE", value_parser = BenchmarkOwner::parse)]
    owner: Vec<BenchmarkOwner>,
    /// Result of `benchgate bisect --format json`, posted as a comment on the issue about its benchmark
    #[arg(long, value_name = "FILE")]
    bisection: Option<PathBuf>,
    /// URL of the published site; the issues link to its pages
    #[arg(long, value_name = "URL", value_parser = site_url)]
    site: Option<String>,
    /// Repository for links to commits [default: the repository of the job, or the remote `origin`]
    #[arg(long, value_name = "URL", value_parser = super::site::repository)]
    repository: Option<site::RepositoryUrl>,
    #[command(flatten)]
    history: HistoryArgs,
    #[command(flatten)]
    store: StoreArgs,
}

/// The label by which benchgate finds the issues that it opened.
const LABEL: &str = "benchgate-alert";

fn percent(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.trim_end_matches('%').trim().parse().ok();
    number.filter(|number| (0.1..=50.0).contains(number)).ok_or_else(|| "expected 0.1 to 50".to_owned())
}

fn site_url(text: &str) -> Result<String, String> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-._~/:%".contains(letter);
    let good = text.starts_with("https://") && text.chars().all(plain);
    if good { Ok(format!("{}/", text.trim_end_matches('/'))) } else { Err("expected https://…".to_owned()) }
}

pub fn run(args: &AlertArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let git = Repository::open(Path::new(".")).ok();
    let job = runtime::job()?;
    let token = runtime::secret("GITHUB_TOKEN").as_deref().and_then(GitHubToken::new);
    if !args.dry_run && (job.is_none() || token.is_none()) {
        return Err(CliError::usage(
            "issues can only be opened by a job of GitHub Actions with GITHUB_TOKEN",
        )
        .hint("give the step `GITHUB_TOKEN: ${{ github.token }}`; --dry-run runs anywhere"));
    }
    let hook = if args.dry_run { None } else { webhook()? };
    let bisection = args.bisection.as_deref().map(inputs::load_bisection).transpose()?;
    let timelines = args.history.read(&args.store, git.as_ref(), terminal)?;
    let now = args.history.now();
    let origin = git.as_ref().and_then(|git| git.remote_url("origin").ok());
    let own = job.as_ref().map(|job| format!("{}/{}", job.server, job.repository));
    let repository = args.repository.clone();
    let repository = repository.or_else(|| own.or(origin).as_deref().and_then(site::RepositoryUrl::parse));
    let context =
        IssueContext { repository: repository.as_ref(), site: args.site.as_deref(), owners: &args.owner };
    let policy =
        AlertPolicy { floor: args.min_slowdown / 100.0, limit: args.limit, ..AlertPolicy::default() };
    let silent = args.history.silent(&timelines);
    let bisection = bisection.as_ref().map(|file| Bisection { file, job: job.as_ref() });
    let dry_run = args.dry_run;
    let attempt = job.as_ref().map(|job| job.attempt);
    let night =
        Night { timelines: &timelines, silent: &silent, now, policy, context, bisection, attempt, dry_run };
    let said = match (&job, &token) {
        (Some(job), Some(token)) => runtime::block_on(async |cancel| {
            let client = Client::new(&job.api, job.repository.clone(), token, RetryPolicy::default())?;
            tokio::select! {
                done = night.speak(&client, hook.as_ref()) => done.map_err(failed),
                () = cancel.requested() => Err(CliError::interrupted()),
            }
        })?,
        // Without a token, a dry run can't look up existing issues.
        _ => night.said(&site::plan(&timelines, &[], now, &policy), &[], &[]),
    };
    terminal.say(&said);
    Ok(args.history.judge(&site::unstable(&timelines), &silent, terminal))
}

fn failed(error: GitHubError) -> CliError {
    if error.is_forbidden() {
        return CliError::github(format!("failed to {error}"))
            .hint("give the job `permissions: issues: write`");
    }
    CliError::from(error)
}

fn webhook() -> Result<Option<Webhook>, CliError> {
    let Some(url) = runtime::secret("BENCHGATE_WEBHOOK_URL") else { return Ok(None) };
    let secret = runtime::secret("BENCHGATE_WEBHOOK_SECRET");
    Ok(Some(Webhook::new(&url, secret.as_deref(), RetryPolicy::default())?))
}

/// The input of one night's alerts.
struct Night<'a> {
    timelines: &'a [Timeline],
    silent: &'a [Silence],
    now: Timestamp,
    policy: AlertPolicy,
    context: IssueContext<'a>,
    bisection: Option<Bisection<'a>>,
    /// The job attempt that posts the comments. Without one, nothing is posted to GitHub.
    attempt: Option<RunAttempt>,
    dry_run: bool,
}

impl Night<'_> {
    async fn speak(&self, client: &Client, hook: Option<&Webhook>) -> Result<String, GitHubError> {
        let author = GitHub::default().author;
        let issues = client.issues(LABEL, &author).await?;
        let known = issues.iter().filter_map(|issue| {
            Some(KnownIssue {
                number: issue.number,
                open: issue.open,
                trace: IssueTrace::from_body(&issue.body)?,
            })
        });
        let known: Vec<KnownIssue> = known.collect();
        let plan = site::plan(self.timelines, &known, self.now, &self.policy);
        let said = self.said(&plan, &issues, &known);
        if self.dry_run {
            return Ok(said);
        }
        let mut events: Vec<Value> = Vec::new();
        let target = self.bisection.as_ref().and_then(|found| found.target(self.timelines, &plan, &known));
        for (at, action) in plan.actions.iter().enumerate() {
            let (number, event) = self.carry_out(client, action, &issues, &author).await?;
            events.extend(event);
            if let (Some(found), true) = (&self.bisection, target == Some(CommentTarget::Action(at))) {
                found.comment(client, number, &author).await?;
            }
        }
        if let (Some(found), Some(CommentTarget::Issue(number))) = (&self.bisection, target) {
            found.comment(client, number, &author).await?;
        }
        let missing: Vec<&Silence> =
            self.silent.iter().filter(|silence| silence.explained.is_none()).collect();
        if let Some(hook) = hook.filter(|_| !events.is_empty() || !missing.is_empty()) {
            let missing: Vec<Value> = missing
                .iter()
                .map(|silence| {
                    json!({ "suite": silence.suite, "testbed": silence.testbed, "benchmark": silence.benchmark,
                        "since": silence.since.to_string() })
                })
                .collect();
            let body = json!({ "schema": "benchgate/alert/v1", "time": self.now.to_string(), "issues": events,
                "missing": missing, "waiting": plan.waiting });
            let body = body.to_string().into_bytes();
            let delivery = hex(&Sha256::digest(&body)[..16]);
            hook.send(&delivery, &body).await?;
        }
        Ok(said)
    }

    /// Performs an action. Returns the issue's number and the webhook's message, which is `None` for an
    /// update that reports nothing new.
    async fn carry_out(
        &self,
        client: &Client,
        action: &Action<'_>,
        issues: &[Issue],
        author: &str,
    ) -> Result<(u64, Option<Value>), GitHubError> {
        let old = |number: u64| issues.iter().find(|issue| issue.number == number);
        let event = |action: &str, number: u64, cause: &Cause<'_>| {
            let benchmarks: Vec<&str> = cause.members.iter().map(|member| member.benchmark).collect();
            json!({ "action": action, "number": number, "title": site::issue_title(cause), "benchmarks": benchmarks,
                "total": cause.total().exp(), "steps": cause.steps().count(),
                "after": cause.after().to_string(), "until": cause.until().to_string() })
        };
        match action {
            Action::Open { cause, trace } => {
                let body = site::issue_body(cause, trace, &self.context);
                let number = client.open_issue(&site::issue_title(cause), &body, LABEL, author).await?;
                Ok((number, Some(event("opened", number, cause))))
            }
            Action::Update { number, cause, trace, .. } | Action::Reopen { number, cause, trace } => {
                let (title, body) = (site::issue_title(cause), site::issue_body(cause, trace, &self.context));
                let reopened = matches!(action, Action::Reopen { .. });
                let same = old(*number).is_some_and(|old| old.title == title && old.body == body);
                if reopened || !same {
                    let change = IssueChange { title: Some(&title), body: &body, open: true, reopened };
                    client.change_issue(*number, change).await?;
                }
                if let Action::Update { grew: Some(before), .. } = action {
                    let body = site::issue_growth(cause, *before, &self.context);
                    self.comment(client, *number, trace, &body, author).await?;
                    return Ok((*number, Some(event("grew", *number, cause))));
                }
                Ok((*number, reopened.then(|| event("reopened", *number, cause))))
            }
            Action::Close { number, trace, why } => {
                let before = old(*number).map_or("", |old| old.body.as_str());
                let body = site::issue_closing(trace, why, self.now, before);
                let change = IssueChange { title: None, body: &body, open: false, reopened: false };
                client.change_issue(*number, change).await?;
                Ok((*number, Some(json!({ "action": "closed", "number": number }))))
            }
        }
    }

    /// Comments on an issue, but only once for each slowdown.
    async fn comment(
        &self,
        client: &Client,
        number: u64,
        trace: &IssueTrace,
        body: &str,
        author: &str,
    ) -> Result<(), GitHubError> {
        let Some(attempt) = self.attempt else { return Ok(()) };
        let marker = Marker::new(&format!("slowdown of {:.0}", trace.total * 1e4), attempt);
        let request = CommentRequest { pull_request: number, marker: &marker, body, create: true, author };
        client.comment(&request).await.map(drop)
    }

    fn said(&self, plan: &AlertPlan<'_>, issues: &[Issue], known: &[KnownIssue]) -> String {
        let will = if self.dry_run { "would " } else { "" };
        let mut text = String::new();
        for action in &plan.actions {
            let line = match action {
                Action::Open { cause, .. } => format!("open: {}", site::issue_title(cause)),
                Action::Update { number, cause, grew, .. } => {
                    let what = if grew.is_some() { "comment on and update" } else { "update" };
                    format!("{what} #{number}: {}", site::issue_title(cause))
                }
                Action::Reopen { number, cause, .. } => {
                    format!("reopen #{number}: {}", site::issue_title(cause))
                }
                Action::Close { number, why, .. } => format!("close #{number}: {why}"),
            };
            text.push_str(&format!("{will}{line}\n"));
        }
        if let Some(found) = &self.bisection {
            text.push_str(&format!("{will}{}\n", found.said(found.target(self.timelines, plan, known))));
        }
        if plan.waiting > 0 {
            text.push_str(&format!(
                "waiting: {} (above --limit, or too recent to distinguish from a cause that began at the same time)\n",
                counted(plan.waiting, "cause")
            ));
        }
        // No issue can tell these from the sessions that were read.
        let open = site::open_slowdowns(self.timelines, self.now, &self.policy);
        for red in site::red_rows(self.timelines, &open) {
            text.push_str(&format!(
                "red, without an earlier value to compare with: {} of {} on {}: {}\n",
                red.benchmark.unwrap_or("all benchmarks"),
                red.timeline.suite,
                red.timeline.machine,
                red.why
            ));
        }
        // With fewer sessions no change can be detected, so an empty result would say nothing.
        let longest = self.timelines.iter().map(|timeline| timeline.sessions.len()).max().unwrap_or(0);
        if text.is_empty() && longest < site::LEAST_SESSIONS {
            text = format!(
                "too few sessions: no suite has more than {} on one testbed, and an issue needs at least {}\n",
                counted(longest, "session"),
                site::LEAST_SESSIONS
            );
        }
        if text.is_empty() {
            text = format!(
                "nothing to do; {}\n",
                counted(issues.iter().filter(|i| i.open).count(), "open issue")
            );
        }
        text
    }
}

pub struct Bisection<'a> {
    pub file: &'a BisectionFile,
    /// The job that comments. In a workflow, the search was part of the same workflow run.
    pub job: Option<&'a Job>,
}

/// The issue that gets the comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommentTarget {
    /// The issue that the plan's action with this index opens or updates; it may not have a number yet.
    Action(usize),
    /// An issue that the plan leaves unchanged.
    Issue(u64),
}

/// Bytes of a comment that are reserved for the link below the result.
const LINK_BYTES: usize = 1000;

impl Bisection<'_> {
    /// The newest issue about the benchmark that is open once the plan has been carried out.
    pub fn target(
        &self,
        timelines: &[Timeline],
        plan: &AlertPlan<'_>,
        known: &[KnownIssue],
    ) -> Option<CommentTarget> {
        let suite = timelines.iter().filter(|timeline| timeline.suite == self.file.suite);
        let keys: Vec<String> = suite.map(|timeline| site::key(timeline, &self.file.benchmark)).collect();
        let is_about = |trace: &IssueTrace| trace.members.iter().any(|member| keys.contains(member));
        let changed = plan.actions.iter().enumerate().filter_map(|(at, action)| {
            let (number, trace) = match action {
                Action::Open { trace, .. } => (u64::MAX, trace),
                Action::Update { number, trace, .. } | Action::Reopen { number, trace, .. } => {
                    (*number, trace)
                }
                Action::Close { .. } => return None,
            };
            is_about(trace).then_some((number, CommentTarget::Action(at)))
        });
        let acted_on = |wanted: u64| {
            plan.actions.iter().any(|action| match action {
                Action::Open { .. } => false,
                Action::Update { number, .. }
                | Action::Reopen { number, .. }
                | Action::Close { number, .. } => *number == wanted,
            })
        };
        let left =
            known.iter().filter(|issue| issue.open && is_about(&issue.trace) && !acted_on(issue.number));
        let left = left.map(|issue| (issue.number, CommentTarget::Issue(issue.number)));
        changed.chain(left).max_by_key(|(number, _)| *number).map(|(_, target)| target)
    }

    /// A description of the action for the output.
    pub fn said(&self, target: Option<CommentTarget>) -> String {
        let name = report::clean(&self.file.benchmark);
        match target {
            Some(CommentTarget::Issue(number)) => format!("link the bisection of {name} on #{number}"),
            Some(CommentTarget::Action(_)) => format!("link the bisection of {name} on its issue"),
            None => format!("link nothing: no open issue is about the bisected benchmark {name}"),
        }
    }

    /// Comments on an issue. An earlier comment about the same benchmark is replaced.
    pub async fn comment(&self, client: &Client, issue: u64, author: &str) -> Result<(), GitHubError> {
        let Some(job) = self.job else { return Ok(()) };
        let text = report::bisection_markdown(self.file, github::COMMENT_BYTES - LINK_BYTES);
        let body = format!("{text}\n[The run]({}) of this search.\n", job.run_page());
        let marker =
            Marker::new(&format!("bisection of {} in {}", self.file.benchmark, self.file.suite), job.attempt);
        let request =
            CommentRequest { pull_request: issue, marker: &marker, body: &body, create: true, author };
        client.comment(&request).await.map(drop)
    }
}
