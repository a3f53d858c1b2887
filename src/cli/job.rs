//! The job of GitHub Actions that this runs in, read from the runner's variables and the event's file.

use std::path::{Path, PathBuf};

use crate::github::{EventError, GitHubEvent, Job};

use super::{CliError, paths};

/// The job; `None` outside of GitHub Actions.
pub fn current() -> Result<Option<Job>, CliError> {
    if variable("GITHUB_EVENT_NAME").is_none() {
        return Ok(None);
    }
    let payload = match std::env::var_os("GITHUB_EVENT_PATH").filter(|path| !path.is_empty()) {
        Some(path) => std::fs::read(&path).map_err(|error| {
            not_understood(format!("failed to read {}: {error}", PathBuf::from(&path).display()))
        })?,
        None => b"{}".to_vec(),
    };
    let job = Job::read(&variable, &payload);
    job.map(Some).map_err(|error| not_understood(format!("failed to {error}")))
}

/// In a job the workspace is a checkout, and a result in it was committed or left by another job: it is removed before
/// anything can be refused, so that no later step takes it for this one's. On a user's machine it is the user's.
pub fn leave_no_earlier_result(output: &Path) -> Result<(), CliError> {
    if variable("GITHUB_EVENT_NAME").is_some() { paths::remove_output(output) } else { Ok(()) }
}

/// Whether this is a job for a change that is not merged yet.
pub fn is_for_a_proposed_change() -> Result<bool, CliError> {
    Ok(current()?.is_some_and(|job| match job.event {
        GitHubEvent::Push { .. } | GitHubEvent::Schedule | GitHubEvent::WorkflowDispatch => false,
        GitHubEvent::PullRequest(_)
        | GitHubEvent::PullRequestTarget(_)
        | GitHubEvent::MergeGroup { .. }
        | GitHubEvent::WorkflowRun(_)
        | GitHubEvent::Other(_) => true,
    }))
}

/// The job, for commands that only work in one.
pub fn needed(job: Option<Job>) -> Result<Job, CliError> {
    job.ok_or_else(|| not_understood(format!("failed to {}", EventError::Absent("GITHUB_EVENT_NAME"))))
}

/// A variable that the runner sets; an empty one counts as absent.
pub fn variable(name: &'static str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

fn not_understood(message: String) -> CliError {
    CliError::usage(message)
        .hint("the runner of GitHub Actions sets these variables; elsewhere, unset GITHUB_EVENT_NAME, or use `benchgate publish --dry-run`")
}
