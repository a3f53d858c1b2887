//! The GitHub Actions job in which benchgate runs, read from the runner's variables and the event's file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::git::Repository;
use crate::github::{CodeOrigin, EventError, GitHubEvent, Job};

use super::{CliError, paths};

/// The current job; `None` outside GitHub Actions.
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

/// Removes an earlier result if this is a job: a result in the checkout was committed or left by another job.
/// The result is removed before any check can fail, so that no later step mistakes it for this job's result.
/// On a user's machine, an earlier result belongs to the user and stays.
pub fn leave_no_earlier_result(output: &Path) -> Result<(), CliError> {
    if is_ci() { paths::remove_output(output) } else { Ok(()) }
}

/// Returns true in a job of any service for CI. Most of them set `CI`.
pub fn is_ci() -> bool {
    ["GITHUB_EVENT_NAME", "CI"].into_iter().any(|name| variable(name).is_some())
}

/// Returns true if, in this job, the code in a folder is a change that has not been merged, whose own
/// configuration must not judge it. The origin of the code decides this, not the kind of event.
pub fn is_for_a_proposed_change(folder: &Path) -> Result<bool, CliError> {
    let Some(job) = current()? else { return Ok(false) };
    Ok(origin(&job, folder) != CodeOrigin::Merged && !is_merged(&job, folder))
}

/// Refuses a bundle whose head is another commit than the one that the job's event proposes: the verdict would be about
/// that commit, and the job would pass for this one. The event of a finished workflow run does not name the merge
/// commit that was packed; `publish` asks GitHub for it.
pub fn require_proposed(bundle: &Path, commit: Option<&str>) -> Result<(), CliError> {
    let Some(job) = current()? else { return Ok(()) };
    // The suite may be in another repository than the event, and a job can check out the merge commit itself.
    let checked_out = open(Path::new(".")).and_then(|repository| repository.resolve("HEAD").ok());
    let known: BTreeSet<&str> =
        [job.commit.as_str(), job.head().as_str()].into_iter().chain(checked_out.as_deref()).collect();
    let is_unknown = matches!(job.event, GitHubEvent::WorkflowRun(_)) || job.origin() == CodeOrigin::Merged;
    if is_unknown || commit.is_some_and(|commit| known.contains(commit)) {
        return Ok(());
    }
    Err(CliError::usage(format!(
        "the head of {} is {}, but the job is about {}",
        bundle.display(),
        commit.unwrap_or("not a commit"),
        known.into_iter().collect::<Vec<_>>().join(" or ")
    ))
    .hint("compile and measure the commit that the job has checked out"))
}

/// Returns true if a file belongs to the repository of an unmerged change, which could therefore edit it.
pub fn is_part_of_a_proposed_change(file: &Path, folder: &Path) -> Result<bool, CliError> {
    let Some(repository) = open(folder).filter(|_| file.exists()) else { return Ok(false) };
    if !is_for_a_proposed_change(folder)? {
        return Ok(false);
    }
    // A link counts as well, because the change could make it point to another file.
    let own_folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let link = std::fs::canonicalize(own_folder.unwrap_or(Path::new(".")));
    let link = link.ok().zip(file.file_name()).map(|(folder, name)| folder.join(name));
    for path in std::fs::canonicalize(file).into_iter().chain(link) {
        if repository.tracked_below(&path)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns true if a job of the default branch has checked out a commit of that branch other than the
/// event's, for example the newest one.
fn is_merged(job: &Job, folder: &Path) -> bool {
    let branch = job.default_branch.as_ref().filter(|_| job.origin() == CodeOrigin::Merged);
    branch.zip(open(folder)).is_some_and(|(branch, repository)| {
        let url = repository.remote_url("origin").unwrap_or_default();
        let url = url.trim_end_matches('/').trim_end_matches(".git");
        // A fork can have a branch of the same name.
        let place = url.strip_suffix(&job.repository.to_string());
        let is_own = place.is_some_and(|place| place.ends_with(['/', ':']));
        let base = repository.merge_base(&format!("refs/remotes/origin/{branch}")).ok();
        is_own && base.is_some_and(|base| repository.resolve("HEAD").is_ok_and(|head| head == base))
    })
}

fn open(folder: &Path) -> Option<Repository> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    Repository::open(folder).ok()
}

/// The origin of the code in a folder. If a commit other than the event's is checked out, it may be
/// untrusted.
pub fn origin(job: &Job, folder: &Path) -> CodeOrigin {
    let head = open(folder).and_then(|repository| repository.resolve("HEAD").ok());
    let known = [job.commit.as_str(), job.head().as_str()];
    match head {
        Some(head) if !known.contains(&head.as_str()) => CodeOrigin::Unknown,
        _ => job.origin(),
    }
}

/// The job, or an error for commands that only work in one.
pub fn needed(job: Option<Job>) -> Result<Job, CliError> {
    job.ok_or_else(|| not_understood(format!("failed to {}", EventError::Absent("GITHUB_EVENT_NAME"))))
}

/// A variable that the runner sets. An empty one counts as absent.
pub fn variable(name: &'static str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

fn not_understood(message: String) -> CliError {
    CliError::usage(message)
        .hint("the runner of GitHub Actions sets these variables; elsewhere, unset GITHUB_EVENT_NAME, or use `benchgate publish --dry-run`")
}
