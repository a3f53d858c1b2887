//! Checks of workflows that people actually write.

use super::workflows;
use super::workflows::Workflows;
use crate::cli::doctor::{Finding, FindingLevel};
use crate::config::Store;

const PINNED: &str = "o/benchgate@1111111111111111111111111111111111111111";
const USUAL: &str = ".github/workflows/benchgate.yml";

/// A workflow with these events, and one job with these steps.
fn workflow(events: &str, job: &str, steps: &str) -> String {
    format!("name: benchgate\non: {events}\njobs:\n  gate:\n{job}    steps:\n{steps}")
}

fn finding(files: &[(&str, &str)], id: &str) -> Finding {
    finding_with(files, &on_a_branch(), id)
}

fn on_a_branch() -> Store {
    Store { branch: Some("benchgate-baselines".to_owned()), ..Store::default() }
}

fn finding_with(files: &[(&str, &str)], store: &Store, id: &str) -> Finding {
    let mut read = Workflows::new(false);
    for (path, text) in files {
        read.add(path, Ok(text.as_bytes().to_vec()));
    }
    let mut found = workflows::findings(&read, Some(USUAL));
    found.extend(super::writers(&read, store));
    // Every problem must have a reason and a fix.
    let wrong = |finding: &&Finding| finding.level >= FindingLevel::Warning;
    assert!(found.iter().filter(wrong).all(|wrong| !wrong.why.is_empty() && !wrong.fix.is_empty()));
    found.into_iter().find(|finding| finding.id == id).unwrap()
}

fn level(workflow: &str, id: &str) -> FindingLevel {
    finding(&[(USUAL, workflow)], id).level
}

const HOSTED: &str = "    runs-on: ubuntu-24.04\n    permissions: {contents: read}\n";
const OWN: &str = "    runs-on: [self-hosted, gpu]\n    permissions: {contents: read}\n";

#[test]
fn a_repository_without_workflows_learns_how_to_get_them() {
    let found = finding(&[], "workflows");
    assert_eq!(
        (found.level, found.fix),
        (
            FindingLevel::Note,
            "`benchgate init --action OWNER/REPO@COMMIT --runner LABELS`, in the suite's folder, writes them; it keeps the \
             suite."
        )
    );
}

#[test]
fn measuring_where_a_write_token_is_is_an_error() {
    let steps = format!("      - uses: {PINNED}\n");
    let writing = "    runs-on: ubuntu-24.04\n    permissions: {contents: write}\n";
    assert_eq!(level(&workflow("pull_request", writing, &steps), "permissions"), FindingLevel::Error);
    let unsaid = "    runs-on: ubuntu-24.04\n";
    assert_eq!(level(&workflow("pull_request", unsaid, &steps), "permissions"), FindingLevel::Warning);
    assert_eq!(level(&workflow("pull_request", HOSTED, &steps), "permissions"), FindingLevel::Ok);
    let secret = format!("{steps}        env: {{X: \"${{{{ secrets.X }}}}\"}}\n");
    assert_eq!(level(&workflow("pull_request", HOSTED, &secret), "permissions"), FindingLevel::Error);
    // A scheduled workflow only runs the repository's own code.
    assert_eq!(level(&workflow("schedule", writing, &steps), "permissions"), FindingLevel::Ok);
}

#[test]
fn one_job_that_measures_and_publishes_is_a_warning() {
    let both = "    runs-on: ubuntu-24.04\n    permissions: {contents: read, pull-requests: write}\n";
    let steps =
        format!("      - uses: {PINNED}\n        with: {{github-token: \"${{{{ github.token }}}}\"}}\n");
    assert_eq!(level(&workflow("pull_request", both, &steps), "permissions"), FindingLevel::Warning);
}

#[test]
fn measuring_on_an_event_with_secrets_is_an_error() {
    for steps in
        [format!("      - uses: {PINNED}\n"), "      - run: ./benchgate gate --base main\n".to_owned()]
    {
        for event in ["pull_request_target", "workflow_run"] {
            let found = level(&workflow(event, HOSTED, &steps), "permissions");
            assert_eq!(found, FindingLevel::Error, "{event}: {steps}");
        }
        assert_eq!(level(&workflow("push", HOSTED, &steps), "workflows"), FindingLevel::Note);
        let queued = workflow("[pull_request, merge_group]", HOSTED, &steps);
        assert_eq!(level(&queued, "workflows"), FindingLevel::Ok);
    }
}

#[test]
fn a_fork_s_code_on_a_runner_that_is_kept_is_an_error_where_nothing_refuses_it() {
    let action = format!("      - uses: {PINNED}\n");
    let declared = format!("{action}        with: {{fork-runner: ephemeral}}\n");
    let script = "      - run: benchgate gate --base origin/main\n";
    assert_eq!(level(&workflow("pull_request", OWN, script), "fork-policy"), FindingLevel::Error);
    assert_eq!(level(&workflow("pull_request", OWN, &declared), "fork-policy"), FindingLevel::Note);
    assert_eq!(level(&workflow("pull_request", OWN, &action), "fork-policy"), FindingLevel::Note);
    assert_eq!(level(&workflow("pull_request", HOSTED, script), "fork-policy"), FindingLevel::Ok);
}

#[test]
fn a_publisher_that_never_starts_or_may_not_write_is_found() {
    let measuring = workflow("pull_request", HOSTED, &format!("      - uses: {PINNED}\n"));
    let publish = |name: &str, permission: &str| {
        format!(
            "name: p\non: {{workflow_run: {{workflows: [{name}], types: [completed]}}}}\njobs:\n  publish:\n    runs-on: \
             ubuntu-24.04\n    permissions: {{pull-requests: {permission}}}\n    steps:\n      - uses: {PINNED}\n        \
             with: {{command: publish}}\n"
        )
    };
    let published = |path: &str, text: &str| {
        finding(&[(path, measuring.as_str()), (".github/workflows/publish.yml", text)], "publishing").level
    };
    assert_eq!(published(USUAL, &publish("benchgate", "write")), FindingLevel::Ok);
    assert_eq!(published(USUAL, &publish("benchgate", "read")), FindingLevel::Warning);
    assert_eq!(published(USUAL, &publish("bench", "write")), FindingLevel::Error);
    let kept = publish("benchgate", "write").replace("ubuntu-24.04", "self-hosted");
    assert_eq!(published(USUAL, &kept), FindingLevel::Warning);
    // By default, results are only accepted from benchgate.yml ([github] workflow).
    assert_eq!(published(".github/workflows/other.yml", &publish("benchgate", "write")), FindingLevel::Error);
}

#[test]
fn a_workflow_that_is_no_yaml_is_said_to_be_unread() {
    assert_eq!(level("on: [", "unread-workflow"), FindingLevel::Warning);
    // Nested aliases expand to more data than any memory can hold.
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for at in 1..12 {
        let inside = vec![format!("*a{}", at - 1); 9].join(", ");
        bomb.push_str(&format!("a{at}: &a{at} [{inside}]\n"));
    }
    bomb.push_str("on: push\njobs: {}\n");
    assert_eq!(level(&bomb, "unread-workflow"), FindingLevel::Warning);
}

#[test]
fn a_pull_request_must_not_write_the_baseline() {
    let store = format!("      - uses: {PINNED}\n        with: {{command: baseline-update}}\n");
    assert_eq!(level(&workflow("pull_request", HOSTED, &store), "baseline-writer"), FindingLevel::Error);
    assert_eq!(level(&workflow("schedule", HOSTED, &store), "baseline-writer"), FindingLevel::Ok);
    let cancelled = workflow("schedule", HOSTED, &store)
        .replace("jobs:", "concurrency: {group: g, cancel-in-progress: true}\njobs:");
    assert_eq!(level(&cancelled, "baseline-writer"), FindingLevel::Warning);
}

#[test]
fn a_session_stored_in_a_checkout_that_ends_with_its_job_is_lost() {
    let store = format!("      - uses: {PINNED}\n        with: {{command: baseline-update}}\n");
    let nightly = workflow("schedule", HOSTED, &store);
    let found = finding_with(&[(USUAL, &nightly)], &Store::default(), "baseline-writer");
    assert_eq!(found.level, FindingLevel::Warning);
    assert!(found.what.contains("baselines"), "{}", found.what);
}

#[test]
fn this_repository_s_own_workflows_are_as_they_should_be() {
    let read = Workflows::read(std::path::Path::new(env!("CARGO_MANIFEST_DIR")));
    let mut found = workflows::findings(&read, Some(USUAL));
    found.extend(super::writers(&read, &on_a_branch()));
    let levels: Vec<_> = found.iter().map(|finding| (finding.id, finding.level)).collect();
    assert!(levels.iter().all(|(_, level)| *level < FindingLevel::Warning), "{levels:?}");
    assert!(levels.contains(&("publishing", FindingLevel::Ok)), "{levels:?}");
}
