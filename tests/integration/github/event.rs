//! Checks that GitHub's own event payloads are read correctly.

use std::path::Path;

use benchgate::github::{GitHubEvent, Job, RunAttempt};
use serde_json::{Value, json};

pub fn payload(name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/github");
    serde_json::from_slice(&std::fs::read(folder.join(format!("{name}.json"))).unwrap()).unwrap()
}

const COMMIT: &str = "89ece87b89852100c0a4ac3d515e14842d090967";

fn variables(event: &str) -> Vec<(&'static str, String)> {
    vec![
        ("GITHUB_EVENT_NAME", event.to_owned()),
        ("GITHUB_REPOSITORY", "Codertocat/Hello-World".to_owned()),
        ("GITHUB_SHA", COMMIT.to_owned()),
        ("GITHUB_API_URL", "https://api.github.com".to_owned()),
        ("GITHUB_SERVER_URL", "https://github.com".to_owned()),
        ("GITHUB_RUN_ID", "77".to_owned()),
        ("GITHUB_RUN_ATTEMPT", "2".to_owned()),
    ]
}

fn read(variables: &[(&'static str, String)], payload: &Value) -> Result<Job, String> {
    let variable = |name: &'static str| {
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
    };
    Job::read(&variable, payload.to_string().as_bytes()).map_err(|error| error.to_string())
}

fn job(event: &str, payload: &Value) -> Job {
    read(&variables(event), payload).unwrap()
}

#[test]
fn a_pull_request_is_about_its_head_and_not_about_the_merge_that_github_made() {
    let payload = payload("pull_request");
    let job = job("pull_request", &payload);
    let GitHubEvent::PullRequest(pull) = &job.event else { panic!("{job:?}") };
    assert_eq!(json!(pull.number), payload["number"]);
    assert_eq!(json!(job.head().as_str()), payload["pull_request"]["head"]["sha"]);
    assert_ne!(job.head(), &job.commit);
    assert_eq!(json!(pull.base_ref), payload["pull_request"]["base"]["ref"]);
    assert_eq!((pull.fork, job.private), (false, Some(false)));
    assert_eq!(job.measured(), RunAttempt { run: 77, attempt: 2 });
    assert_eq!(job.run_page(), "https://github.com/Codertocat/Hello-World/actions/runs/77");
}

#[test]
fn a_head_in_another_repository_or_in_none_is_a_fork() {
    for head in [json!({ "id": 1, "private": false, "owner": { "login": "kim" } }), Value::Null] {
        let mut payload = payload("pull_request");
        payload["pull_request"]["head"]["repo"] = head;
        let job = job("pull_request_target", &payload);
        assert!(matches!(&job.event, GitHubEvent::PullRequestTarget(pull) if pull.fork), "{job:?}");
    }
}

#[test]
fn a_server_of_one_s_own_has_its_own_addresses() {
    let mut variables = variables("pull_request");
    for (name, value) in &mut variables {
        match *name {
            "GITHUB_API_URL" => *value = "https://git.example.org/api/v3/".to_owned(),
            "GITHUB_SERVER_URL" => *value = "https://git.example.org".to_owned(),
            _ => {}
        }
    }
    let job = read(&variables, &payload("pull_request.ghes")).unwrap();
    assert_eq!(job.api, "https://git.example.org/api/v3");
    assert!(job.run_page().starts_with("https://git.example.org/"));
    assert!(matches!(job.event, GitHubEvent::PullRequest(_)));
}

#[test]
fn a_reported_run_is_judged_by_its_own_head_and_try() {
    let payload = payload("workflow_run");
    let job = job("workflow_run", &payload);
    let GitHubEvent::WorkflowRun(run) = &job.event else { panic!("{job:?}") };
    assert_eq!(json!(run.path), payload["workflow_run"]["path"]);
    assert_eq!(json!(job.head().as_str()), payload["workflow_run"]["head_sha"]);
    assert_eq!(json!(job.measured().run), payload["workflow_run"]["id"]);
    assert_eq!((run.fork, run.pull_requests.as_slice()), (false, [].as_slice()));
}

#[test]
fn only_the_measuring_workflow_s_pull_request_runs_are_accepted() {
    let mut payload = payload("workflow_run");
    let accept = |payload: &Value, workflow: &str| match job("workflow_run", payload).event {
        GitHubEvent::WorkflowRun(run) => run.accept(workflow).map_err(|error| error.to_string()),
        event => panic!("{event:?}"),
    };
    let path = ".github/workflows/test.yml";
    assert!(accept(&payload, path).unwrap_err().contains("repository_dispatch"));
    payload["workflow_run"]["event"] = json!("pull_request");
    assert_eq!(accept(&payload, path), Ok(()));
    assert!(accept(&payload, ".github/workflows/benchgate.yml").unwrap_err().contains(path));
    for path_of_run in [json!(".github/workflows/test.yml@x.yml"), Value::Null] {
        payload["workflow_run"]["path"] = path_of_run;
        accept(&payload, path).unwrap_err();
    }
}

#[test]
fn every_other_event_is_about_its_own_commit() {
    let head = |event: &str, payload: &Value| job(event, payload).head().as_str().to_owned();
    let group = payload("merge_group");
    assert_eq!(json!(head("merge_group", &group)), group["merge_group"]["head_sha"]);
    assert_eq!(head("push", &payload("push")), COMMIT);
    assert_eq!(head("workflow_dispatch", &payload("workflow_dispatch")), COMMIT);
    assert_eq!(head("schedule", &json!({ "schedule": "17 2 * * *" })), COMMIT);
    assert_eq!(job("watch", &json!({})).event, GitHubEvent::Other("watch".to_owned()));
}

#[test]
fn a_token_goes_to_no_address_that_others_can_listen_to() {
    for address in
        ["http://api.github.com", "ftp://x", "https://user@evil.example", "http://127.0.0.1.evil.example", ""]
    {
        let mut variables = variables("push");
        for (name, value) in &mut variables {
            if *name == "GITHUB_API_URL" {
                address.clone_into(value);
            }
        }
        read(&variables, &payload("push")).unwrap_err();
    }
}

#[test]
fn what_is_no_name_reaches_no_path() {
    for (wrong, value) in [
        ("GITHUB_REPOSITORY", "o/../x"),
        ("GITHUB_REPOSITORY", "o/r/x"),
        ("GITHUB_REPOSITORY", "o/.."),
        ("GITHUB_REPOSITORY", "o/r?x"),
        ("GITHUB_SHA", "HEAD"),
        ("GITHUB_RUN_ID", "-1"),
    ] {
        let mut variables = variables("push");
        for (name, known) in &mut variables {
            if *name == wrong {
                value.clone_into(known);
            }
        }
        assert!(read(&variables, &payload("push")).unwrap_err().contains(wrong));
    }
    let mut payload = payload("pull_request");
    payload["pull_request"]["head"]["sha"] = json!("main/../../x");
    read(&variables("pull_request"), &payload).unwrap_err();
}
