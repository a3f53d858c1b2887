//! The environment of a command: the date, the command line, the secrets, the asynchronous runtime, and the GitHub Actions
//! job, read from the runner's variables and the event's file.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use crate::git::Repository;
use crate::github::{CodeOrigin, EventError, GitHubEvent, Job};
use crate::model::shell_word;
use crate::process::{self, Cancel};

use super::{CliError, paths};

/// The number of threads that the runtime requires: two workers (one listens for signals and pipes while the
/// other hashes), and one thread for blocking work such as starting a program.
const WORKERS: usize = 2;
const NEEDED: usize = WORKERS + 1;

/// Longer than any session, so that threads never end and restart.
const KEEP_ALIVE: Duration = Duration::from_secs(7 * 24 * 3600);

/// The maximum wait for the kernel to clean up after a thread.
const CLEANED_UP: Duration = Duration::from_secs(5);

/// Runs asynchronous work to its end. SIGINT and SIGTERM cancel the token that is passed to it.
pub fn block_on<T>(work: impl AsyncFnOnce(Cancel) -> Result<T, CliError>) -> Result<T, CliError> {
    let internal = |error: io::Error| CliError::internal(format!("failed to start the runtime: {error}"));
    check_threads().map_err(|error| {
        CliError::failed(format!("failed to start {NEEDED} threads: {error}"))
            .hint("raise the limit on processes of this user or container (`ulimit -u`, `pids.max`)")
    })?;
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .thread_keep_alive(KEEP_ALIVE)
        .enable_all()
        .build()
        .map_err(internal)?
        .block_on(async {
            // If tokio can't start another blocking thread, it waits for the existing one; without any, it
            // panics.
            tokio::task::spawn_blocking(|| ()).await.map_err(io::Error::other).map_err(internal)?;
            let interrupts = process::interrupts().map_err(internal)?;
            work(interrupts.cancel.clone()).await
        })
}

/// Checks that the threads which the runtime needs can run at the same time. Otherwise tokio would panic or
/// hang.
fn check_threads() -> io::Result<()> {
    let before = own_threads();
    let checked = start_threads();
    // An ended thread still counts until the kernel has cleaned up after it, which takes a while on a busy
    // machine.
    let until = Instant::now() + CLEANED_UP;
    while own_threads() > before && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
    checked
}

/// The number of threads of this process; zero if the system doesn't report it.
fn own_threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

fn start_threads() -> io::Result<()> {
    std::thread::scope(|scope| {
        let mut held = Vec::new();
        for _ in 0..NEEDED {
            // Each thread lives until its sender is dropped, after all have been started or one has failed to
            // start.
            let (hold, released) = channel::<()>();
            std::thread::Builder::new().spawn_scoped(scope, move || released.recv().is_err())?;
            held.push(hold);
        }
        Ok(())
    })
}

/// The current date in UTC, on which the expiry of waivers depends.
pub fn today() -> String {
    jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date().to_string()
}

/// The command line as it was given, quoted for a shell.
pub fn command_line() -> String {
    let words = std::env::args().skip(1).map(shell_word);
    std::iter::once("benchgate".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// The variables that contain benchgate's own tokens.
const NAMES: [&str; 4] =
    ["GITHUB_TOKEN", "BENCHGATE_TOKEN", "BENCHGATE_WEBHOOK_URL", "BENCHGATE_WEBHOOK_SECRET"];

/// The variables that name files from which the runner reads instructions for later steps of the job.
/// Measured code could use those files to set variables of the job.
const RUNNER_FILES: [&str; 5] =
    ["GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY"];

/// Parts of the names of other secrets, such as `ACTIONS_ID_TOKEN_REQUEST_TOKEN` or `AWS_SECRET_ACCESS_KEY`.
/// Measured code must not find them in its parent process.
const SECRET_WORDS: [&str; 10] = [
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSPHRASE",
    "PRIVATE_KEY",
    "ACCOUNT_KEY",
    "ACCESS_KEY",
    "MASTER_KEY",
    "SAS_KEY",
    "ENCRYPTION_KEY",
];

/// Prefixes of the variables of object stores. Their secrets are kept, because the history may be in such a
/// store.
const CLOUD_PREFIXES: [&str; 3] = ["AWS_", "AZURE_", "GOOGLE_"];

static TAKEN: OnceLock<BTreeMap<String, String>> = OnceLock::new();

/// Takes tokens, and the paths of files through which a runner can be controlled, out of the environment before anything
/// starts: no child inherits them, `/proc` does not show them, and only this process keeps them.
/// Also hides this process's memory from other processes of the same user. Further calls do nothing.
pub fn take_secrets() {
    TAKEN.get_or_init(|| {
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        let mut found = BTreeMap::new();
        for name in names.filter(|name| is_secret(name)) {
            // SAFETY: this is the first thing that `cli::main` does, before the runtime or anything else has
            // started a thread that could read the environment.
            let value = unsafe { process::take_variable(&name) };
            if let Some(value) = value.and_then(|value| value.into_string().ok())
                && (is_own(&name) || is_cloud(&name))
            {
                found.insert(name, value);
            }
        }
        if found.values().any(|token| !token.is_empty()) {
            // This only fails on a kernel without prctl, where there is no alternative.
            let _hidden: bool = process::hide_memory();
        }
        found
    });
}

fn is_own(name: &str) -> bool {
    NAMES.contains(&name) || RUNNER_FILES.contains(&name)
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    // The URL of a webhook is also a secret.
    is_own(&name) || SECRET_WORDS.iter().any(|word| name.contains(word))
}

fn is_cloud(name: &str) -> bool {
    CLOUD_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The variables that configure access to object stores, including secrets.
pub fn cloud_variables() -> Vec<(String, String)> {
    let open = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let kept = TAKEN.get().into_iter().flatten().map(|(name, value)| (name.clone(), value.clone()));
    open.chain(kept).filter(|(name, value)| is_cloud(name) && !value.is_empty()).collect()
}

/// A token, or the path of a runner's file, that was in the environment. An empty one counts as absent.
pub fn secret(name: &str) -> Option<String> {
    TAKEN.get()?.get(name).filter(|token| !token.is_empty()).cloned()
}

/// The current job; `None` outside GitHub Actions.
pub fn job() -> Result<Option<Job>, CliError> {
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
    let Some(job) = job()? else { return Ok(false) };
    Ok(code_origin(&job, folder) != CodeOrigin::Merged && !is_merged(&job, folder))
}

/// Refuses a bundle whose head is another commit than the one that the job's event proposes: the verdict would be about
/// that commit, and the job would pass for this one. The event of a finished workflow run does not name the merge
/// commit that was packed; `publish` asks GitHub for it.
pub fn require_proposed(bundle: &Path, commit: Option<&str>) -> Result<(), CliError> {
    let Some(job) = job()? else { return Ok(()) };
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
pub fn code_origin(job: &Job, folder: &Path) -> CodeOrigin {
    let head = open(folder).and_then(|repository| repository.resolve("HEAD").ok());
    let known = [job.commit.as_str(), job.head().as_str()];
    match head {
        Some(head) if !known.contains(&head.as_str()) => CodeOrigin::Unknown,
        _ => job.origin(),
    }
}

/// The job, or an error for commands that only work in one.
pub fn required_job(job: Option<Job>) -> Result<Job, CliError> {
    job.ok_or_else(|| {
        CliError::usage(format!("failed to {}", EventError::Absent("GITHUB_EVENT_NAME"))).hint(
            "only such a job can post; elsewhere, `benchgate publish --dry-run` shows what it would post",
        )
    })
}

/// A variable that the runner sets. An empty one counts as absent.
pub fn variable(name: &'static str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

fn not_understood(message: String) -> CliError {
    CliError::usage(message)
        .hint("the runner of GitHub Actions sets these variables; elsewhere, unset GITHUB_EVENT_NAME")
}
