//! The commit of this release's action. The program was built from the commit before it, so only the tag knows it.

use std::time::Duration;

use crate::github::Sha;
use crate::process::{self, Command, Exit};

use super::super::runtime;
use super::super::store_args::git_environment;
use super::CliError;

/// A listing of two references.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The commit that the tag of `version` names in the repository at `url`.
///
/// # Errors
/// The repository can't be reached, or has no such tag.
pub(super) fn commit_of(version: &str, url: &str) -> Result<String, CliError> {
    let tag = format!("refs/tags/v{version}");
    // An annotated tag is an object of its own; the second name is the commit that it points to.
    let commit = format!("{tag}^{{}}");
    let mut command = Command::new("git", TIMEOUT)
        .args(["ls-remote", "--tags", "--", url, &tag, &commit])
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("LC_ALL", "C")
        .capture_stdout();
    for (name, value) in git_environment() {
        command = command.env(name, value);
    }
    let failed = |why: &str| {
        CliError::failed(format!("failed to read the tag v{version} of {url}: {why}"))
            .hint("name the action's commit: --action OWNER/REPO@COMMIT, with all 40 digits")
    };
    let finished = runtime::block_on(async |cancel| {
        process::run(&command, &cancel).await.map_err(|error| failed(&error.to_string()))
    })?;
    if finished.exit != Exit::Success {
        let why = finished.stderr_tail.lines().rev().find(|line| !line.trim().is_empty());
        return Err(failed(why.unwrap_or("git failed")));
    }
    let listed = String::from_utf8_lossy(&finished.stdout).into_owned();
    let named = |wanted: &str| {
        let mut lines = listed.lines().filter_map(|line| line.split_once('\t'));
        lines.find(|(_, name)| *name == wanted).map(|(commit, _)| commit)
    };
    named(&commit)
        .or_else(|| named(&tag))
        .filter(|commit| Sha::parse(commit).is_some())
        .map(str::to_owned)
        .ok_or_else(|| failed("there is no such tag"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_action_of_a_release_is_the_commit_that_its_tag_names() {
        let folder = tempfile::tempdir().unwrap();
        let repository = git2::Repository::init(folder.path()).unwrap();
        let author = git2::Signature::now("t", "t@example.com").unwrap();
        let tree = repository.find_tree(repository.index().unwrap().write_tree().unwrap()).unwrap();
        let commit = repository.commit(Some("HEAD"), &author, &author, "sums", &tree, &[]).unwrap();
        let object = repository.find_object(commit, None).unwrap();
        repository.tag("v1.2.3", &object, &author, "benchgate 1.2.3", false).unwrap();
        repository.tag_lightweight("v1.2.4", &object, false).unwrap();
        let url = folder.path().to_str().unwrap();
        for version in ["1.2.3", "1.2.4"] {
            assert_eq!(commit_of(version, url).unwrap(), commit.to_string());
        }
        let absent = commit_of("1.2", url).unwrap_err().to_string();
        assert!(absent.contains("there is no such tag"), "{absent}");
        assert!(commit_of("1.2.3", "/nowhere").unwrap_err().to_string().contains("/nowhere"));
    }
}
