//! The event that started this job, parsed from environment variables and the payload. This module does no
//! IO.

use serde::Deserialize;

use benchgate_core::model::{is_hex, short_commit};

/// The reason why the job's event can't be determined.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum EventError {
    #[error("find {0}: this is not a GitHub Actions job")]
    Absent(&'static str),
    #[error("parse {name}: expected {expected}, found {found:?}")]
    Unexpected { name: &'static str, found: String, expected: &'static str },
    #[error("read the payload of the event {event}: {why}")]
    Payload { event: String, why: String },
}

/// The name of a repository as `owner/name`, with only characters that are safe in a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryName {
    pub owner: String,
    pub name: String,
}

impl RepositoryName {
    pub fn parse(text: &str) -> Option<Self> {
        let plain = |part: &str| {
            !part.is_empty()
                && part != "."
                && part != ".."
                && part.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter))
        };
        let (owner, name) = text.split_once('/')?;
        (plain(owner) && plain(name)).then(|| Self { owner: owner.to_owned(), name: name.to_owned() })
    }
}

impl std::fmt::Display for RepositoryName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)
    }
}

/// A full commit hash, SHA-1 or SHA-256.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Sha(String);

impl Sha {
    pub fn parse(text: &str) -> Option<Self> {
        (matches!(text.len(), 40 | 64) && is_hex(text)).then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The abbreviated hash for messages.
    pub fn short(&self) -> &str {
        short_commit(&self.0)
    }
}

impl TryFrom<String> for Sha {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("{text:?} is not a commit hash"))
    }
}

/// An attempt of a workflow run. Later attempts compare as greater. The run number comes first, so a re-run
/// of an old run counts as older than a new run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunAttempt {
    pub run: u64,
    pub attempt: u64,
}

/// A pull request as an event or the API describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest {
    pub number: u64,
    /// The proposed commit. GITHUB_SHA is not this commit but a merge commit created by GitHub.
    pub head: Sha,
    /// The branch to merge into.
    pub base_ref: String,
    /// The latest commit of that branch at the time of the event.
    pub base: Sha,
    /// True if the head is in another repository, which may have been deleted.
    pub fork: bool,
}

/// The run that a `workflow_run` event reports. That run measured, and this job publishes its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowRun {
    pub attempt: RunAttempt,
    /// Path of the run's workflow file.
    pub path: String,
    /// The event that started the run.
    pub event: String,
    pub head: Sha,
    pub head_branch: Option<String>,
    /// Owner of the head's repository, if that still exists.
    pub head_owner: Option<String>,
    pub head_repository: Option<u64>,
    pub fork: bool,
    /// The numbers of the pull requests that the event names; empty for forks.
    pub pull_requests: Vec<u64>,
    /// Conclusion: `success`, `failure`, `cancelled`, `timed_out` …
    pub conclusion: Option<String>,
    /// The time at which the first attempt started, in RFC 3339.
    pub created: Option<String>,
    /// The time at which this attempt started, in RFC 3339.
    pub started: Option<String>,
    /// The time of the last update, which is when the run ended, in RFC 3339.
    pub updated: Option<String>,
}

/// The event that started the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GitHubEvent {
    PullRequest(PullRequest),
    /// An event for a pull request whose job gets a token with write access.
    PullRequestTarget(PullRequest),
    MergeGroup {
        head: Sha,
        base: Sha,
        /// The branch to merge into.
        base_ref: Option<String>,
    },
    Push {
        /// The previous commit of the branch; `None` if the branch is new.
        before: Option<Sha>,
    },
    Schedule,
    WorkflowDispatch,
    WorkflowRun(WorkflowRun),
    /// Any other event. benchgate writes a summary for it but posts nothing.
    Other(String),
}

/// The origin of a job's code, which determines how far it is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeOrigin {
    /// Code that is on the default branch.
    Merged,
    /// Code proposed by a user with write access to the repository.
    Proposed,
    /// Code that may come from a fork, and is untrusted.
    Unknown,
}

/// The current job of GitHub Actions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub repository: RepositoryName,
    /// True if the repository is private; `None` if the payload does not contain that.
    pub private: Option<bool>,
    /// `https://api.github.com`, or `https://HOST/api/v3` for GitHub Enterprise Server.
    pub api: String,
    /// `https://github.com`, or the URL of a GitHub Enterprise Server.
    pub server: String,
    pub attempt: RunAttempt,
    pub commit: Sha,
    /// The repository's default branch; `None` if the payload does not contain it.
    pub default_branch: Option<String>,
    /// True if GITHUB_REF is the repository's default branch.
    pub on_default_branch: bool,
    pub event: GitHubEvent,
}

impl Job {
    /// Reads the runner's variables and the event's payload.
    ///
    /// # Errors
    /// A variable is missing or invalid, or the payload lacks a field of its event.
    pub fn read(
        variable: &dyn Fn(&'static str) -> Option<String>,
        payload: &[u8],
    ) -> Result<Self, EventError> {
        let needed = |name| variable(name).filter(|text| !text.is_empty()).ok_or(EventError::Absent(name));
        let number = |name| {
            let text = needed(name)?;
            text.parse::<u64>().map_err(|_| unexpected(name, &text, "a number"))
        };
        let name = needed("GITHUB_EVENT_NAME")?;
        let text = needed("GITHUB_REPOSITORY")?;
        let repository = RepositoryName::parse(&text)
            .ok_or_else(|| unexpected("GITHUB_REPOSITORY", &text, "owner/name"))?;
        let text = needed("GITHUB_SHA")?;
        let commit = Sha::parse(&text).ok_or_else(|| unexpected("GITHUB_SHA", &text, "a commit"))?;
        let failed = |why: String| EventError::Payload { event: name.clone(), why };
        let payload: Payload = serde_json::from_slice(payload).map_err(|error| failed(error.to_string()))?;
        let private = payload.repository.as_ref().and_then(|repository| repository.private);
        let reference = variable("GITHUB_REF");
        let branch = reference.as_deref().and_then(|text| text.strip_prefix("refs/heads/"));
        let default = payload.repository.as_ref().and_then(|repository| repository.default_branch.clone());
        // A scheduled job runs on the default branch, but its payload may not name that branch.
        let default = default.or_else(|| branch.filter(|_| name == "schedule").map(str::to_owned));
        let on_default_branch = default.is_some() && default.as_deref() == branch;
        let event = payload.event(&name).map_err(|what| failed(format!("it has no {what}")))?;
        Ok(Self {
            repository,
            private,
            api: address(needed("GITHUB_API_URL")?, "GITHUB_API_URL")?,
            server: address(needed("GITHUB_SERVER_URL")?, "GITHUB_SERVER_URL")?,
            attempt: RunAttempt { run: number("GITHUB_RUN_ID")?, attempt: number("GITHUB_RUN_ATTEMPT")? },
            commit,
            default_branch: default,
            on_default_branch,
            event,
        })
    }

    /// The attempt that measured. If this job publishes the result of another run, that is an attempt of the
    /// other run.
    pub fn measured(&self) -> RunAttempt {
        match &self.event {
            GitHubEvent::WorkflowRun(run) => run.attempt,
            _ => self.attempt,
        }
    }

    /// The commit to which the verdict applies.
    pub fn head(&self) -> &Sha {
        match &self.event {
            GitHubEvent::PullRequest(pull) | GitHubEvent::PullRequestTarget(pull) => &pull.head,
            GitHubEvent::MergeGroup { head, .. } => head,
            GitHubEvent::WorkflowRun(run) => &run.head,
            GitHubEvent::Push { .. }
            | GitHubEvent::Schedule
            | GitHubEvent::WorkflowDispatch
            | GitHubEvent::Other(_) => &self.commit,
        }
    }

    /// The base commit that the event names, if any.
    pub fn base(&self) -> Option<&Sha> {
        match &self.event {
            GitHubEvent::PullRequest(pull) | GitHubEvent::PullRequestTarget(pull) => Some(&pull.base),
            GitHubEvent::MergeGroup { base, .. } => Some(base),
            GitHubEvent::Push { before } => before.as_ref(),
            GitHubEvent::Schedule
            | GitHubEvent::WorkflowDispatch
            | GitHubEvent::WorkflowRun(_)
            | GitHubEvent::Other(_) => None,
        }
    }

    /// The origin of this event's code. Code of an event that is not listed here is untrusted.
    pub fn origin(&self) -> CodeOrigin {
        match &self.event {
            GitHubEvent::PullRequest(pull) | GitHubEvent::PullRequestTarget(pull) if pull.fork => {
                CodeOrigin::Unknown
            }
            GitHubEvent::WorkflowRun(run) if run.fork => CodeOrigin::Unknown,
            GitHubEvent::Schedule => CodeOrigin::Merged,
            GitHubEvent::Push { .. } | GitHubEvent::WorkflowDispatch if self.on_default_branch => {
                CodeOrigin::Merged
            }
            GitHubEvent::PullRequest(_)
            | GitHubEvent::PullRequestTarget(_)
            | GitHubEvent::WorkflowRun(_)
            | GitHubEvent::MergeGroup { .. }
            | GitHubEvent::Push { .. }
            | GitHubEvent::WorkflowDispatch => CodeOrigin::Proposed,
            GitHubEvent::Other(_) => CodeOrigin::Unknown,
        }
    }

    /// The branch that the event proposes to change, if any.
    pub fn base_branch(&self) -> Option<&str> {
        match &self.event {
            GitHubEvent::PullRequest(pull) | GitHubEvent::PullRequestTarget(pull) => Some(&pull.base_ref),
            GitHubEvent::MergeGroup { base_ref, .. } => base_ref.as_deref(),
            _ => None,
        }
    }

    /// The web page of the run that measured.
    pub fn run_page(&self) -> String {
        format!("{}/{}/actions/runs/{}", self.server, self.repository, self.measured().run)
    }
}

fn unexpected(name: &'static str, found: &str, expected: &'static str) -> EventError {
    EventError::Unexpected { name, found: found.to_owned(), expected }
}

/// Checks a URL to which the token is sent: it must use https or be on this machine.
fn address(text: String, name: &'static str) -> Result<String, EventError> {
    let local = ["http://127.0.0.1:", "http://localhost:", "http://[::1]:"];
    let plain = text.chars().all(|letter| letter.is_ascii_graphic()) && !text.contains(['@', '?', '#']);
    if plain && (text.starts_with("https://") || local.iter().any(|start| text.starts_with(start))) {
        Ok(text.trim_end_matches('/').to_owned())
    } else {
        Err(unexpected(name, &text, "an https URL"))
    }
}

/// The fields of a payload that are used.
#[derive(Debug, Deserialize)]
struct Payload {
    repository: Option<RepositoryPart>,
    pull_request: Option<PullRequestPart>,
    merge_group: Option<MergeGroupPart>,
    /// The previous commit; present for pushes and for new commits in a pull request.
    before: Option<String>,
    workflow_run: Option<WorkflowRunPart>,
}

#[derive(Debug, Deserialize)]
struct RepositoryPart {
    id: u64,
    private: Option<bool>,
    default_branch: Option<String>,
    owner: Option<OwnerPart>,
}

#[derive(Debug, Deserialize)]
struct OwnerPart {
    login: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct PullRequestPart {
    number: u64,
    state: String,
    head: HeadPart,
    base: BasePart,
}

impl PullRequestPart {
    /// Returns whether this pull request is still open, with `head` as its latest commit.
    pub(super) fn is_still_at(&self, head: &Sha) -> bool {
        self.state == "open" && self.head.sha == *head
    }

    /// Returns whether this pull request is open and its head is the commit, in the same repository, that a
    /// run measured.
    pub(super) fn matches_run(&self, run: &WorkflowRun) -> bool {
        let repository = self.head.repo.as_ref().map(|repository| repository.id);
        self.is_still_at(&run.head) && repository == run.head_repository
    }
}

#[derive(Debug, Deserialize)]
struct HeadPart {
    sha: Sha,
    /// Absent if the fork was deleted.
    repo: Option<RepositoryPart>,
}

#[derive(Debug, Deserialize)]
struct BasePart {
    #[serde(rename = "ref")]
    name: String,
    sha: Sha,
    repo: RepositoryPart,
}

#[derive(Debug, Deserialize)]
struct MergeGroupPart {
    head_sha: Sha,
    base_sha: Sha,
    base_ref: Option<String>,
}

#[derive(Debug, Deserialize)]
struct WorkflowRunPart {
    id: u64,
    run_attempt: u64,
    /// Absent on old servers; then the run is not accepted.
    path: Option<String>,
    event: String,
    head_sha: Sha,
    head_branch: Option<String>,
    head_repository: Option<RepositoryPart>,
    #[serde(default)]
    pull_requests: Vec<NumberPart>,
    conclusion: Option<String>,
    created_at: Option<String>,
    run_started_at: Option<String>,
    updated_at: Option<String>,
}

#[derive(Debug, Deserialize)]
struct NumberPart {
    number: u64,
}

impl Payload {
    /// Returns the event, or the name of a required field that the payload lacks.
    fn event(self, name: &str) -> Result<GitHubEvent, &'static str> {
        let pull = |part: Option<PullRequestPart>| part.map(PullRequest::from).ok_or("pull_request");
        Ok(match name {
            "pull_request" => GitHubEvent::PullRequest(pull(self.pull_request)?),
            "pull_request_target" => GitHubEvent::PullRequestTarget(pull(self.pull_request)?),
            "merge_group" => {
                let group = self.merge_group.ok_or("merge_group")?;
                let base_ref = group.base_ref.map(|text| match text.strip_prefix("refs/heads/") {
                    Some(branch) => branch.to_owned(),
                    None => text,
                });
                GitHubEvent::MergeGroup { head: group.head_sha, base: group.base_sha, base_ref }
            }
            "push" => {
                // For a new branch, this field contains only zeros.
                let before = self.before.as_deref().and_then(Sha::parse);
                GitHubEvent::Push {
                    before: before.filter(|sha| sha.as_str().bytes().any(|digit| digit != b'0')),
                }
            }
            "schedule" => GitHubEvent::Schedule,
            "workflow_dispatch" => GitHubEvent::WorkflowDispatch,
            "workflow_run" => {
                let run = self.workflow_run.ok_or("workflow_run")?;
                let here = self.repository.ok_or("repository")?.id;
                let elsewhere = run.head_repository.as_ref().is_none_or(|head| head.id != here);
                GitHubEvent::WorkflowRun(WorkflowRun {
                    attempt: RunAttempt { run: run.id, attempt: run.run_attempt },
                    path: run.path.unwrap_or_default(),
                    event: run.event,
                    head: run.head_sha,
                    head_branch: run.head_branch,
                    head_repository: run.head_repository.as_ref().map(|head| head.id),
                    head_owner: run.head_repository.and_then(|head| head.owner).map(|owner| owner.login),
                    fork: elsewhere,
                    pull_requests: run.pull_requests.into_iter().map(|pull| pull.number).collect(),
                    conclusion: run.conclusion,
                    created: run.created_at,
                    started: run.run_started_at,
                    updated: run.updated_at,
                })
            }
            other => GitHubEvent::Other(other.to_owned()),
        })
    }
}

impl From<PullRequestPart> for PullRequest {
    fn from(part: PullRequestPart) -> Self {
        let fork = part.head.repo.as_ref().is_none_or(|head| head.id != part.base.repo.id);
        Self { number: part.number, head: part.head.sha, base_ref: part.base.name, base: part.base.sha, fork }
    }
}
