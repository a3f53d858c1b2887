//! The workflows of a repository, and the ways in which their jobs use benchgate.

use std::path::Path;

use crate::files;
use crate::github::{Workflow, WorkflowJob, WorkflowStep};

/// The maximum size of a workflow in bytes. A larger file is not a workflow.
const MOST_BYTES: u64 = 1 << 20;

/// The workflows of a repository, by their path in it.
pub struct Workflows {
    pub read: Vec<(String, Workflow)>,
    /// Paths of the workflows that could not be read, each with the reason.
    pub unread: Vec<(String, String)>,
    /// True if the action in this repository (`uses: ./`) is benchgate's own.
    is_own_action: bool,
}

/// A way in which a step uses benchgate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Runs the code of the repository at the job's commit.
    Measures,
    /// Posts results with a token.
    Publishes,
    /// Adds sessions to the baseline.
    Stores,
}

/// A job with its workflow and the workflow's path.
#[derive(Clone, Copy)]
pub struct Placed<'a> {
    pub path: &'a str,
    pub workflow: &'a Workflow,
    pub job: &'a WorkflowJob,
}

impl std::fmt::Display for Placed<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.path.rsplit('/').next().unwrap_or(self.path);
        write!(f, "{} of {name}", self.job.id)
    }
}

impl Placed<'_> {
    /// Returns true if the job runs code of a pull request.
    pub fn meets_pull_requests(&self) -> bool {
        self.workflow.is_started_by("pull_request") || self.workflow.is_started_by("pull_request_target")
    }
}

impl Workflows {
    pub fn read(root: &Path) -> Self {
        let mut found = Self::new(is_own(root));
        let Ok(entries) = std::fs::read_dir(root.join(".github/workflows")) else { return found };
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.retain(|name| name.ends_with(".yml") || name.ends_with(".yaml"));
        names.sort();
        for name in names {
            let path = format!(".github/workflows/{name}");
            found.add(&path, bytes(&root.join(&path)));
        }
        found
    }

    pub fn new(is_own_action: bool) -> Self {
        Self { read: Vec::new(), unread: Vec::new(), is_own_action }
    }

    pub fn add(&mut self, path: &str, content: Result<Vec<u8>, String>) {
        match content.and_then(|bytes| Workflow::read(&bytes)) {
            Ok(workflow) => self.read.push((path.to_owned(), workflow)),
            Err(why) => self.unread.push((path.to_owned(), why)),
        }
    }

    pub fn jobs(&self) -> impl Iterator<Item = Placed<'_>> {
        self.read
            .iter()
            .flat_map(|(path, workflow)| workflow.jobs.iter().map(move |job| Placed { path, workflow, job }))
    }

    /// The jobs that have a step with this role.
    pub fn with(&self, role: Role) -> Vec<Placed<'_>> {
        self.jobs().filter(|placed| self.has(placed.job, role)).collect()
    }

    pub fn has(&self, job: &WorkflowJob, role: Role) -> bool {
        job.steps.iter().any(|step| self.roles(step).contains(&role))
    }

    /// The roles of a step. Most steps have none.
    pub fn roles(&self, step: &WorkflowStep) -> Vec<Role> {
        if self.is_action(step) {
            let input = |name: &str| step.with.get(name).map(String::as_str).unwrap_or_default();
            let publishing = !input("github-token").is_empty();
            return match input("command") {
                "" | "gate" if publishing => vec![Role::Measures, Role::Publishes],
                "" | "gate" | "run" | "bisect" => vec![Role::Measures],
                "publish" => vec![Role::Publishes],
                "baseline-update" => vec![Role::Stores],
                _ => Vec::new(),
            };
        }
        commands(step.run.as_deref().unwrap_or_default())
    }

    /// Returns true if a step uses benchgate's action. Unlike a command line, the action reads the event and
    /// refuses unsafe uses.
    pub fn is_action(&self, step: &WorkflowStep) -> bool {
        let Some(uses) = &step.uses else { return false };
        let repository = uses.split('@').next().unwrap_or(uses);
        (uses == "./" && self.is_own_action)
            || repository.split('/').nth(1).is_some_and(|name| name.contains("benchgate"))
    }
}

/// The roles of the benchgate commands in a script. It recognizes `path/to/benchgate gate …`, but not `cargo
/// run -- gate …`.
fn commands(script: &str) -> Vec<Role> {
    let mut roles = Vec::new();
    for line in script.lines() {
        let mut words = line.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
        if !words.any(|word| word.rsplit('/').next() == Some("benchgate")) {
            continue;
        }
        let rest: Vec<&str> = words.collect();
        match rest.iter().find(|word| !word.starts_with('-')) {
            Some(&"gate") if rest.contains(&"--publish") => roles.extend([Role::Measures, Role::Publishes]),
            Some(&("gate" | "run" | "noise" | "bisect")) => roles.push(Role::Measures),
            Some(&"publish") if !rest.contains(&"--dry-run") => roles.push(Role::Publishes),
            Some(&"baseline") if rest.contains(&"update") => roles.push(Role::Stores),
            _ => {}
        }
    }
    roles
}

fn is_own(root: &Path) -> bool {
    let action = bytes(&root.join("action.yml")).unwrap_or_default();
    String::from_utf8_lossy(&action).lines().any(|line| line.trim_end() == "name: benchgate")
}

fn bytes(path: &Path) -> Result<Vec<u8>, String> {
    files::read_bounded(path, MOST_BYTES).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_s_commands_are_seen() {
        assert_eq!(commands("cargo build\n./target/release/benchgate gate --base main"), [Role::Measures]);
        assert_eq!(commands("benchgate --quiet publish --run run.json"), [Role::Publishes]);
        assert_eq!(commands("benchgate publish --run run.json --dry-run"), []);
        assert_eq!(commands("benchgate gate --publish"), [Role::Measures, Role::Publishes]);
        assert_eq!(commands("\"$X/benchgate\" baseline update --branch"), [Role::Stores]);
        assert_eq!(commands("cd benchgate-tools && make"), []);
    }
}
