//! What `benchgate doctor` says of a repository's workflows. Each workflow here is one that people write.

use crate::harness::World;
use crate::suite::{COMMIT, Suite};

const PINNED: &str = "o/benchgate@1111111111111111111111111111111111111111";

/// A repository with these files below `.github/`.
fn repository(files: &[(&str, &str)]) -> World {
    let suite = Suite::new().model("a", &["latency-us=1000"]).write();
    git2::Repository::init(suite.world.work()).unwrap();
    for (name, text) in files {
        suite.world.write(&format!(".github/{name}"), text);
    }
    suite.world
}

/// A workflow whose one job takes these steps, on these events.
fn workflow(events: &str, job: &str, steps: &str) -> String {
    format!("name: benchgate\non: {events}\njobs:\n  gate:\n{job}    steps:\n{steps}")
}

/// Level and text of a finding.
fn finding(world: &World, id: &str) -> (String, String) {
    let said = world.run(["doctor", "--format", "json"]).stdout;
    let diagnosis: serde_json::Value = serde_json::from_str(&said).unwrap();
    let found = diagnosis["repository"].as_array().unwrap().iter().find(|finding| finding["id"] == id);
    let Some(found) = found else { return (String::new(), said) };
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    // What is wrong comes with its fix.
    if ["warning", "error"].contains(&text("level").as_str()) {
        assert!(!text("why").is_empty() && !text("fix").is_empty(), "{found}");
    }
    (text("level"), text("what"))
}

fn level(workflow: &str, id: &str) -> String {
    finding(&repository(&[("workflows/benchgate.yml", workflow)]), id).0
}

const HOSTED: &str = "    runs-on: ubuntu-24.04\n    permissions: {contents: read}\n";
const OWN: &str = "    runs-on: [self-hosted, gpu]\n    permissions: {contents: read}\n";

#[test]
fn a_repository_without_workflows_is_told_how_to_get_them() {
    let (level, what) = finding(&repository(&[]), "workflows");
    assert_eq!((level.as_str(), what.as_str()), ("note", "none measures with benchgate"));
}

#[test]
fn measuring_beside_a_token_that_can_write_is_an_error() {
    let steps = format!("      - uses: {PINNED}\n");
    let writing = "    runs-on: ubuntu-24.04\n    permissions: {contents: write}\n";
    assert_eq!(level(&workflow("pull_request", writing, &steps), "permissions"), "error");
    let unsaid = "    runs-on: ubuntu-24.04\n";
    assert_eq!(level(&workflow("pull_request", unsaid, &steps), "permissions"), "warning");
    assert_eq!(level(&workflow("pull_request", HOSTED, &steps), "permissions"), "ok");
    let secret = format!("{steps}        env: {{X: \"${{{{ secrets.X }}}}\"}}\n");
    assert_eq!(level(&workflow("pull_request", HOSTED, &secret), "permissions"), "error");
    let kept = format!("      - uses: actions/checkout@v5\n{steps}");
    assert_eq!(level(&workflow("pull_request", HOSTED, &kept), "permissions"), "warning");
    // Its own code on a schedule is nobody else's.
    assert_eq!(level(&workflow("schedule", writing, &steps), "permissions"), "ok");
}

#[test]
fn one_job_that_measures_and_publishes_is_a_warning() {
    let both = "    runs-on: ubuntu-24.04\n    permissions: {contents: read, pull-requests: write}\n";
    let steps =
        format!("      - uses: {PINNED}\n        with: {{github-token: \"${{{{ github.token }}}}\"}}\n");
    assert_eq!(level(&workflow("pull_request", both, &steps), "permissions"), "warning");
}

#[test]
fn measuring_on_an_event_with_secrets_is_an_error() {
    for steps in
        [format!("      - uses: {PINNED}\n"), "      - run: ./benchgate gate --base main\n".to_owned()]
    {
        for event in ["pull_request_target", "workflow_run"] {
            assert_eq!(level(&workflow(event, HOSTED, &steps), "triggers"), "error", "{event}: {steps}");
        }
        assert_eq!(level(&workflow("push", HOSTED, &steps), "triggers"), "note");
        assert_eq!(level(&workflow("[pull_request, merge_group]", HOSTED, &steps), "triggers"), "ok");
    }
}

#[test]
fn a_fork_s_code_on_a_runner_that_is_kept_is_an_error_where_nothing_refuses_it() {
    let action = format!("      - uses: {PINNED}\n");
    let declared = format!("{action}        with: {{fork-runner: ephemeral}}\n");
    let script = "      - run: benchgate gate --base origin/main\n";
    assert_eq!(level(&workflow("pull_request", OWN, script), "fork-policy"), "error");
    assert_eq!(level(&workflow("pull_request", OWN, &declared), "fork-policy"), "note");
    assert_eq!(level(&workflow("pull_request", OWN, &action), "fork-policy"), "ok");
    assert_eq!(level(&workflow("pull_request", HOSTED, script), "fork-policy"), "ok");
}

#[test]
fn another_job_on_the_measuring_runner_is_a_neighbour() {
    let measuring = workflow("pull_request", OWN, &format!("      - uses: {PINNED}\n"));
    let other = |runner: &str| {
        format!("on: push\njobs:\n  build:\n    runs-on: {runner}\n    steps: [{{run: make}}]\n")
    };
    let isolation = |runner: &str| {
        let files =
            [("workflows/benchgate.yml", measuring.as_str()), ("workflows/other.yml", &other(runner))];
        finding(&repository(&files), "runner-isolation").0
    };
    assert_eq!(isolation("self-hosted"), "warning");
    assert_eq!(isolation("[self-hosted, gpu]"), "warning");
    assert_eq!(isolation("[self-hosted, tpu]"), "ok");
    assert_eq!(isolation("ubuntu-24.04"), "ok");
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
        finding(&repository(&[(path, measuring.as_str()), ("workflows/publish.yml", text)]), "publishing").0
    };
    let usual = "workflows/benchgate.yml";
    assert_eq!(published(usual, &publish("benchgate", "write")), "ok");
    assert_eq!(published(usual, &publish("benchgate", "read")), "warning");
    assert_eq!(published(usual, &publish("bench", "write")), "error");
    // [github] workflow names benchgate.yml, and results of another file are refused.
    assert_eq!(published("workflows/other.yml", &publish("benchgate", "write")), "error");
}

#[test]
fn an_action_by_its_tag_is_a_warning() {
    let tagged = workflow("push", HOSTED, "      - uses: actions/checkout@v5\n");
    assert_eq!(level(&tagged, "pins"), "warning");
    let pinned = workflow("push", HOSTED, &format!("      - uses: {PINNED}\n      - uses: ./here\n"));
    assert_eq!(level(&pinned, "pins"), "ok");
}

#[test]
fn a_workflow_that_is_no_yaml_is_said_to_be_unread() {
    assert_eq!(level("on: [", "unread-workflow"), "warning");
    // Aliases of aliases would fill any memory.
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for at in 1..12 {
        let inside = vec![format!("*a{}", at - 1); 9].join(", ");
        bomb.push_str(&format!("a{at}: &a{at} [{inside}]\n"));
    }
    bomb.push_str("on: push\njobs: {}\n");
    assert_eq!(level(&bomb, "unread-workflow"), "warning");
}

#[test]
fn the_age_of_the_newest_stored_session_is_known() {
    let world = repository(&[]);
    assert_eq!(finding(&world, "staleness").0, "note");
    let old = format!("baselines/fake/testbed/20200101T000000Z-{COMMIT}.json");
    world.write(&old, "{}");
    assert_eq!(finding(&world, "staleness").0, "warning");
    let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    world.write(&format!("baselines/fake/testbed/{now}-{COMMIT}.json"), "{}");
    assert_eq!(finding(&world, "staleness").0, "ok");
}

#[test]
fn a_pull_request_must_not_write_the_baseline() {
    let store = format!("      - uses: {PINNED}\n        with: {{command: baseline-update}}\n");
    assert_eq!(level(&workflow("pull_request", HOSTED, &store), "baseline-writer"), "error");
    assert_eq!(level(&workflow("schedule", HOSTED, &store), "baseline-writer"), "ok");
    let cancelled = workflow("schedule", HOSTED, &store)
        .replace("jobs:", "concurrency: {group: g, cancel-in-progress: true}\njobs:");
    assert_eq!(level(&cancelled, "baseline-writer"), "warning");
}

#[test]
fn an_owner_of_the_policy_is_looked_for() {
    let files = [("workflows/x.yml", "on: push\njobs: {}\n")];
    assert_eq!(finding(&repository(&files), "policy-owners").0, "note");
    let owned = [files[0], ("CODEOWNERS", "/benchgate.toml @o/compiler\n")];
    assert_eq!(finding(&repository(&owned), "policy-owners").0, "ok");
}
