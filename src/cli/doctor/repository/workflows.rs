//! Checks the jobs that run benchgate: their tokens, forks' code, and the job that publishes. `zizmor` audits the rest of a
//! workflow.

use crate::github::Permissions;

use super::super::finding::Finding;
use super::roles::{Placed, Role, Workflows};

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
