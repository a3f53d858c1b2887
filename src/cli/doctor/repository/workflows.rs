//! Reads the workflows of a repository and checks the jobs that run benchgate: their tokens, forks' code, and the job
//! that publishes. `zizmor` audits the rest of a workflow.

use std::path::Path;

use crate::files;
use crate::github::{Permissions, Workflow, WorkflowJob, WorkflowStep};

use super::super::Finding;

/// The number of items that a message names; the others are counted.
const NAMED: usize = 3;

/// All findings about the workflows. `expected` is the name of the workflow whose results are published.
pub(super) fn findings(workflows: &Workflows, expected: Option<&str>) -> Vec<Finding> {
    let measuring = workflows.with(Role::Measures);
    let publishing = workflows.with(Role::Publishes);
    let mut found: Vec<Finding> = unread(workflows).into_iter().collect();
    found.push(present(&measuring));
    if !measuring.is_empty() {
        found.push(tokens(workflows, &measuring));
        found.push(forks(workflows, &measuring));
        found.push(published(workflows, &publishing, expected));
    }
    found
}

fn unread(workflows: &Workflows) -> Option<Finding> {
    let listed: Vec<String> = workflows.unread.iter().map(|(path, why)| format!("{path}: {why}")).collect();
    (!listed.is_empty()).then(|| {
        let why = "benchgate can't tell what this workflow runs.";
        Finding::warning("unread-workflow", some(&listed), why, "Correct it; GitHub can't read it either.")
    })
}

fn present(measuring: &[Placed<'_>]) -> Finding {
    const ID: &str = "workflows";
    if measuring.is_empty() {
        let why = "Pull requests are not measured.";
        return Finding::note(
            ID,
            "no workflow measures with benchgate",
            why,
            init!("writes them; it keeps the suite."),
        );
    }
    if !measuring.iter().any(Placed::meets_pull_requests) {
        let why = "A regression is only noticed after it is merged.";
        let fix = concat!("Measure on `pull_request`: ", init!("writes the workflow."));
        return Finding::note(ID, "nothing measures pull requests", why, fix);
    }
    Finding::ok(ID, format!("measuring: {}", placed(measuring)))
}

/// Checks for tokens and secrets that a pull request's code could steal from the job that measures it.
fn tokens(workflows: &Workflows, measuring: &[Placed<'_>]) -> Finding {
    const ID: &str = "permissions";
    // Jobs of these two events have the repository's secrets and a token that can write, whatever they declare.
    let privileged = |placed: &&Placed<'_>| {
        ["pull_request_target", "workflow_run"].iter().any(|event| placed.workflow.is_started_by(event))
    };
    let bad: Vec<Placed<'_>> = measuring.iter().filter(privileged).copied().collect();
    if !bad.is_empty() {
        return Finding::error(
            ID,
            format!("{} measures on pull_request_target or workflow_run", placed(&bad)),
            "Jobs of these events have the repository's secrets and a write token, and the pull request's code \
            would run with access to both.",
            concat!("Measure on `pull_request`, and publish on `workflow_run`: ", init!("writes both.")),
        );
    }
    let met: Vec<&Placed<'_>> = measuring.iter().filter(|placed| placed.meets_pull_requests()).collect();
    let mut writing = Vec::new();
    let mut secret = Vec::new();
    let mut unsaid = Vec::new();
    for placed in met {
        let job = placed.job;
        let scopes = job.permissions.writable();
        if !scopes.is_empty() {
            writing.push(format!("{placed} can write {}", scopes.join(", ")));
        }
        if job.permissions == Permissions::Unsaid {
            unsaid.push(placed.to_string());
        }
        let given = job.steps.iter().flat_map(|step| step.with.values().chain(step.env.values()));
        if given.into_iter().any(|value| value.contains("secrets.")) {
            secret.push(format!("{placed} has access to a secret"));
        }
    }
    // Measuring and publishing in one job is allowed, but `gate` itself only allows it in private
    // repositories.
    let one_job =
        |placed: &&Placed<'_>| placed.meets_pull_requests() && workflows.has(placed.job, Role::Publishes);
    let both: Vec<Placed<'_>> = measuring.iter().filter(one_job).copied().collect();
    if !both.is_empty() && writing.len() == both.len() && secret.is_empty() {
        return Finding::warning(
            ID,
            format!("{} measures and publishes in one job", placed(&both)),
            "Anyone who can push a branch to this repository could steal the job's token. \
            benchgate refuses such a job in public repositories and for forks.",
            concat!("Publish in a separate job, on `workflow_run`: ", init!("writes it.")),
        );
    }
    writing.extend(secret);
    if !writing.is_empty() {
        return Finding::error(
            ID,
            some(&writing),
            "The pull request's code runs in that job and can steal its token and secrets.",
            "Set `permissions: {contents: read}` for the job that measures, and give it no secret.",
        );
    }
    if !unsaid.is_empty() {
        return Finding::warning(
            ID,
            format!("{} sets no permissions, so the repository's default applies", some(&unsaid)),
            "In older repositories the default token can write everything.",
            "Set `permissions: {contents: read}` for the job that measures.",
        );
    }
    Finding::ok(ID, "the jobs that measure pull requests have no write access")
}

fn forks(workflows: &Workflows, measuring: &[Placed<'_>]) -> Finding {
    const ID: &str = "fork-policy";
    let met = measuring.iter().filter(|placed| placed.meets_pull_requests() && !placed.job.is_hosted());
    let (mut declared, mut refused, mut open) = (Vec::new(), Vec::new(), Vec::new());
    for placed in met {
        let steps = || placed.job.steps.iter().filter(|step| workflows.roles(step).contains(&Role::Measures));
        if steps().any(|step| !workflows.is_action(step)) {
            open.push(*placed);
        } else if steps().any(|step| step.with.contains_key("fork-runner")) {
            declared.push(*placed);
        } else {
            refused.push(*placed);
        }
    }
    if !open.is_empty() {
        return Finding::error(
            ID,
            format!("{} runs a fork's code on a self-hosted runner", placed(&open)),
            "Code from a fork can stay on that machine and reach the next job. Only the action refuses it; a command \
             line does not know whose code it measures.",
            "Use the action there.",
        );
    }
    if !declared.is_empty() {
        return Finding::note(
            ID,
            format!("{} declares that its runner is discarded after each job", placed(&declared)),
            "Because of this, forks are measured on it, and benchgate can't check the claim.",
            "Register it with `--ephemeral` on a machine that is created for each job, and require approval for all \
            external contributors (Settings, Actions).",
        );
    }
    if !refused.is_empty() {
        return Finding::note(
            ID,
            format!("forks are refused by {}", placed(&refused)),
            "GitHub runs the workflow file of the pull request, so a fork can remove the action from it.",
            "Require approval for all external contributors (Settings, Actions), and read a fork's changes below \
            .github/workflows before you approve its run.",
        );
    }
    Finding::ok(ID, "forks are measured on ephemeral GitHub-hosted runners")
}

/// Checks that a workflow publishes the results.
fn published(workflows: &Workflows, publishing: &[Placed<'_>], expected: Option<&str>) -> Finding {
    const ID: &str = "publishing";
    let Some(first) = publishing.first() else {
        let why = "The verdict is in the job's own summary, and pull requests get no comment.";
        return Finding::note(ID, "nothing publishes", why, init!("writes the workflow."));
    };
    let kept: Vec<Placed<'_>> = publishing
        .iter()
        .filter(|placed| !placed.job.is_hosted() && !workflows.has(placed.job, Role::Measures))
        .copied()
        .collect();
    if !kept.is_empty() {
        return Finding::warning(
            ID,
            format!("{} publishes on a self-hosted runner", placed(&kept)),
            "Leftovers of an earlier job on that machine could steal the write token.",
            "Set `runs-on: ubuntu-24.04` for the job that publishes, which measures nothing.",
        );
    }
    let of_others: Vec<&Placed<'_>> =
        publishing.iter().filter(|placed| placed.workflow.is_started_by("workflow_run")).collect();
    for placed in &of_others {
        let known = |name: &String| {
            workflows.read.iter().any(|(path, workflow)| workflow.name.as_ref().unwrap_or(path) == name)
        };
        if let Some(unknown) = placed.workflow.reports_on.iter().find(|name| !known(name)) {
            return Finding::error(
                ID,
                format!("{placed} waits for the workflow {unknown:?}, which does not exist"),
                "It never starts.",
                "In `workflow_run`, list workflows by name (`name:`), not by file.",
            );
        }
    }
    if let Some(expected) = expected.filter(|_| !of_others.is_empty()) {
        let measures = |placed: &Placed<'_>| placed.path == expected && placed.meets_pull_requests();
        if !workflows.with(Role::Measures).iter().any(measures) {
            return Finding::error(
                ID,
                format!(
                    "results of {expected} are published, but that workflow does not measure pull requests"
                ),
                "A result that another workflow measured is refused.",
                "Set `[github] workflow` to the path of the workflow that measures.",
            );
        }
    }
    let unable = publishing.iter().find(|placed| match &placed.job.permissions {
        Permissions::Listed(scopes) => !["pull-requests", "issues"]
            .iter()
            .any(|scope| scopes.get(*scope).is_some_and(|level| level == "write")),
        Permissions::All(level) => level != "write-all",
        Permissions::Unsaid => false,
    });
    if let Some(placed) = unable {
        return Finding::warning(
            ID,
            format!("{placed} has no permission to write comments"),
            "The verdict is only in the job summary, which few people open.",
            "Set `pull-requests: write` in its permissions, and `checks: write` for a check run.",
        );
    }
    Finding::ok(ID, format!("{first} comments"))
}

fn placed(jobs: &[Placed<'_>]) -> String {
    some(&jobs.iter().map(ToString::to_string).collect::<Vec<_>>())
}

/// The first few items, and the number of the others.
fn some(list: &[String]) -> String {
    let (shown, more) = list.split_at(list.len().min(NAMED));
    let mut text = shown.join(", ");
    if !more.is_empty() {
        text.push_str(&format!(" and {} more", more.len()));
    }
    text
}

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
