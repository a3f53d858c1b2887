//! `benchgate publish` in a job: the binary with the runner's variables and a fake GitHub.

use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Outcome, World};
use crate::stored_gate::{commit, git};
use crate::suite::Suite;

use super::double::{BOT, Double, Fault, TOKEN};
use super::event::payload;

/// A measured suite whose head is slower.
pub struct Measured {
    pub suite: Suite,
}

const HEAD: &str = "0123456789abcdef0123456789abcdef01234567";

/// GITHUB_SHA: GitHub's merge of HEAD onto BASE.
pub const MERGE: &str = "89ece87b89852100c0a4ac3d515e14842d090967";
pub const BASE: &str = "1111111111111111111111111111111111111111";

impl Measured {
    pub fn new() -> Self {
        let slow = "flags = [\"--fake=latency-us=1300\"]";
        let suite = Suite::new().model("a", &["latency-us=1000"]).base("").head(slow).write();
        // All blocks that a pass needs are measured, even if a regression is clear earlier.
        let toml = suite.world.read("benchgate.toml").replace("min-blocks = 4", "min-blocks = 12");
        suite.world.write("benchgate.toml", toml);
        suite.world.run(["gate"]).expect_code(10);
        let this = Self { suite };
        this.about(BASE, MERGE);
        this
    }

    /// Records these commits in the result, as a checkout would.
    pub fn about(&self, base: &str, head: &str) {
        self.edit(|run| {
            for (at, commit) in [base, head].into_iter().enumerate() {
                run["sides"][at]["commit"] = json!(commit);
                run["sides"][at]["dirty"] = json!(false);
            }
        });
    }

    pub fn edit(&self, change: impl FnOnce(&mut Value)) {
        let mut run = self.suite.run_json();
        change(&mut run);
        self.suite.world.write("run.json", run.to_string());
    }

    /// Gives both sides the same times, so that nothing regressed.
    pub fn unchanged(&self) {
        self.edit(|run| {
            let base = run["sides"][0]["benchmarks"][0]["processes"].clone();
            let processes = run["sides"][1]["benchmarks"][0]["processes"].as_array_mut().unwrap();
            for (process, base) in processes.iter_mut().zip(base.as_array().unwrap()) {
                process["samples"] = base["samples"].clone();
                // Samples that are exactly equal on both sides would count as copies.
                for samples in process["samples"].as_object_mut().unwrap().values_mut() {
                    for sample in samples.as_array_mut().unwrap() {
                        *sample = (sample.as_f64().unwrap() * 1.000_001).into();
                    }
                }
            }
        });
    }

    /// The `publish` command as a job runs it, without the addresses of GitHub.
    pub fn command(&self, event: &str, payload: &Value, args: &[&str]) -> Command {
        self.in_job(event, payload, &[&["publish", "--run", "run.json"], args].concat())
    }

    fn in_job(&self, event: &str, payload: &Value, args: &[&str]) -> Command {
        let world = &self.suite.world;
        let mut command = world.command(args);
        world.write("event.json", payload.to_string());
        for file in ["step-summary", "step-output"] {
            world.write(file, "");
        }
        let at = |name: &str| world.work().join(name);
        command
            .env("GITHUB_EVENT_NAME", event)
            .env("GITHUB_EVENT_PATH", at("event.json"))
            .env("GITHUB_STEP_SUMMARY", at("step-summary"))
            .env("GITHUB_OUTPUT", at("step-output"))
            .env("RUNNER_TEMP", at("temporary"))
            .env("GITHUB_REPOSITORY", "o/r")
            .env("GITHUB_SHA", MERGE)
            .env("GITHUB_SERVER_URL", "https://github.com")
            .env("GITHUB_RUN_ID", "77")
            .env("GITHUB_RUN_ATTEMPT", "1");
        command
    }
}

/// A measured suite with a fake GitHub server.
struct Job {
    measured: Measured,
    double: Double,
}

impl Job {
    fn new() -> Self {
        let double = Double::new();
        double.merge(MERGE, [BASE, HEAD], true);
        Self { measured: Measured::new(), double }
    }

    fn world(&self) -> &World {
        &self.measured.suite.world
    }

    fn command(&self, event: &str, payload: &Value, args: &[&str]) -> Command {
        if event == "pull_request" && !self.double.has_pulls() {
            self.double.pull_request(proposed(HEAD, 1));
        }
        let mut command = self.measured.in_job(event, payload, args);
        command.env("GITHUB_API_URL", self.double.api()).env("GITHUB_TOKEN", TOKEN);
        command
    }

    /// Runs `publish`, and checks that nothing it wrote contains the token.
    fn publish(&self, event: &str, payload: &Value, args: &[&str], code: i32) -> Outcome {
        let outcome = self
            .world()
            .finish(self.command(event, payload, &[&["publish", "--run", "run.json"], args].concat()))
            .expect_code(code);
        let mut shown = vec![outcome.stdout.clone(), outcome.stderr.clone()];
        shown.extend(["step-summary", "step-output"].map(|file| self.world().read(file)));
        shown.extend(self.double.comments().into_iter().map(|comment| comment.body));
        shown.extend(self.double.log());
        for text in shown {
            assert!(!text.contains(TOKEN) && !text.contains("ghs_"), "{text}");
        }
        outcome
    }

    fn bodies(&self) -> Vec<String> {
        self.double.comments().into_iter().filter(|c| c.login == BOT).map(|comment| comment.body).collect()
    }

    fn output(&self, name: &str) -> String {
        let text = self.world().read("step-output");
        let (_, rest) = text.split_once(&format!("{name}<<")).unwrap();
        rest.lines().nth(1).unwrap().to_owned()
    }
}

/// The payload of pull request 7 of this repository.
pub fn pull() -> Value {
    let mut payload = payload("pull_request");
    payload["pull_request"]["number"] = json!(7);
    payload["pull_request"]["head"]["sha"] = json!(HEAD);
    payload
}

/// The event about a measuring run of a fork's pull request that ended with a regression.
pub fn reported() -> Value {
    let mut payload = payload("workflow_run");
    let now = jiff::Timestamp::now();
    let hour = jiff::SignedDuration::from_hours(1);
    payload["workflow_run"]["run_started_at"] = json!(now.checked_sub(hour).unwrap().to_string());
    payload["workflow_run"]["updated_at"] = json!(now.to_string());
    payload["workflow_run"]["conclusion"] = json!("failure");
    let run = &mut payload["workflow_run"];
    run["path"] = json!(".github/workflows/benchgate.yml");
    run["event"] = json!("pull_request");
    run["head_sha"] = json!(HEAD);
    run["head_branch"] = json!("faster");
    run["head_repository"] = json!({ "id": 5, "owner": { "login": "kim" } });
    payload
}

/// The API's response about pull request 7.
pub fn proposed(head: &str, repository: u64) -> Value {
    json!({
        "number": 7, "state": "open",
        "head": { "sha": head, "repo": { "id": repository } },
        "base": { "ref": "main", "sha": "1".repeat(40), "repo": { "id": 1 } },
    })
}

#[test]
fn a_pull_request_gets_one_comment_a_check_and_a_summary() {
    let job = Job::new();
    for _ in 0..2 {
        job.publish("pull_request", &pull(), &["--check-run"], 10);
    }
    let [body] = job.bodies().try_into().unwrap();
    assert!(body.starts_with("<!-- benchgate/v1 ") && body.contains("### 🔴 Regressed"), "{body}");
    assert!(body.contains("gh pr checkout 7 --repo o/r && benchgate gate --base origin/"), "{body}");
    let [check] = job.double.checks().try_into().unwrap();
    assert_eq!((check["conclusion"].as_str(), check["head_sha"].as_str()), (Some("failure"), Some(HEAD)));
    assert!(job.world().read("step-summary").contains("### 🔴 Regressed"));
    assert!(job.output("comment-url").contains("#issuecomment-"), "{}", job.output("comment-url"));
    assert_eq!(job.double.unauthorized(), 0);
}

#[test]
fn a_dry_run_shows_the_very_bytes_and_sends_no_request() {
    let job = Job::new();
    let shown = job.publish("pull_request", &pull(), &["--dry-run"], 10).stdout;
    assert_eq!(job.double.log(), Vec::<String>::new());
    job.publish("pull_request", &pull(), &[], 10);
    assert_eq!(job.bodies(), [shown]);
}

#[test]
fn a_reader_s_token_means_a_summary_and_no_error() {
    let job = Job::new();
    job.double.read_only();
    let outcome = job.publish("pull_request", &pull(), &["--check-run", "--warn-only"], 0);
    assert!(outcome.stderr.contains("this token is read-only"), "{}", outcome.stderr);
    assert!(job.world().read("step-summary").contains("Regressed"));
    assert_eq!(job.output("comment-url"), "");
}

#[test]
fn without_a_token_no_request_is_sent() {
    let job = Job::new();
    let mut command = job.command("pull_request", &pull(), &["publish", "--run", "run.json"]);
    command.env("GITHUB_TOKEN", "");
    job.world().finish(command).expect_code(10);
    assert_eq!(job.double.log(), Vec::<String>::new());
    assert!(job.world().read("step-summary").contains("Regressed"));
}

#[test]
fn a_fork_s_run_reaches_the_pull_request_that_is_at_its_commit() {
    let job = Job::new();
    job.double.pull_request(proposed(HEAD, 5));
    job.publish("workflow_run", &reported(), &[], 10);
    let [body] = job.bodies().try_into().unwrap();
    assert!(body.contains("code of a fork, at `0123456789ab`"), "{body}");
    assert_eq!(job.double.count("GET /api/v3/repos/o/r/pulls?state=open&head=kim:faster"), 1);
}

#[test]
fn a_number_from_an_artifact_is_believed_only_at_the_measured_commit() {
    for (head, repository) in [("f".repeat(40).as_str(), 5), (HEAD, 6)] {
        let job = Job::new();
        job.double.pull_request(proposed(head, repository));
        let outcome = job.publish("workflow_run", &reported(), &["--pull-request", "7"], 10);
        assert_eq!(job.bodies(), Vec::<String>::new());
        assert!(outcome.stderr.contains("no open pull request is at"), "{}", outcome.stderr);
    }
    let job = Job::new();
    job.double.pull_request(proposed(HEAD, 5));
    job.publish("workflow_run", &reported(), &["--pull-request", "7"], 10);
    assert_eq!((job.bodies().len(), job.double.count("GET /api/v3/repos/o/r/pulls/7")), (1, 1));
}

#[test]
fn a_run_of_another_workflow_is_not_published() {
    let job = Job::new();
    let mut payload = reported();
    payload["workflow_run"]["path"] = json!(".github/workflows/evil.yml");
    let outcome = job.publish("workflow_run", &payload, &[], 20);
    assert!(outcome.stderr.contains("evil.yml"), "{}", outcome.stderr);
    assert_eq!(job.double.log(), Vec::<String>::new());
}

#[test]
fn events_without_a_pull_request_get_a_summary_and_a_check() {
    for (event, payload) in [
        ("push", payload("push")),
        ("merge_group", payload("merge_group")),
        ("schedule", json!({})),
        ("workflow_dispatch", payload("workflow_dispatch")),
    ] {
        let job = Job::new();
        let base = match event {
            "push" => payload["before"].as_str(),
            "merge_group" => payload["merge_group"]["base_sha"].as_str(),
            _ => None,
        };
        let head = payload["merge_group"]["head_sha"].as_str();
        job.measured.about(base.unwrap_or(BASE), head.unwrap_or(MERGE));
        job.publish(event, &payload, &["--check-run"], 10);
        assert_eq!((job.bodies().len(), job.double.checks().len()), (0, 1), "{event}");
        assert!(job.world().read("step-summary").contains("Regressed"), "{event}");
    }
}

#[test]
fn an_absent_result_is_reported_on_the_pull_request() {
    let job = Job::new();
    std::fs::remove_file(job.world().work().join("run.json")).unwrap();
    job.publish("pull_request", &pull(), &["--check-run"], 21);
    let [body] = job.bodies().try_into().unwrap();
    assert!(body.contains("### ⛔ Error") && body.contains("run.json"), "{body}");
    assert_eq!(job.double.checks()[0]["conclusion"], "failure");
}

#[test]
fn a_github_that_fails_is_22_unless_the_verdict_is_worse() {
    for (args, code) in [(&["--warn-only"][..], 22), (&[], 10)] {
        let job = Job::new();
        let fault = Fault::Refuse { status: 422, headers: Vec::new(), message: "Validation Failed" };
        job.double.fail("POST", "comments", fault);
        let outcome = job.publish("pull_request", &pull(), args, code);
        assert!(outcome.stderr.contains("422: Validation Failed"), "{}", outcome.stderr);
        assert!(job.world().read("step-summary").contains("Regressed"));
    }
}

#[test]
fn a_bad_token_is_named_and_not_shown() {
    let job = Job::new();
    let mut command = job.command("pull_request", &pull(), &["publish", "--run", "run.json", "--warn-only"]);
    command.env("GITHUB_TOKEN", "ghs_wrong_token");
    let outcome = job.world().finish(command).expect_code(22);
    assert!(outcome.stderr.contains("401") && !outcome.stderr.contains("ghs_"), "{}", outcome.stderr);
}

#[test]
fn measuring_with_a_token_that_can_write_is_only_for_private_repositories() {
    let job = Job::new();
    let mut fork = pull();
    fork["repository"]["private"] = json!(true);
    fork["pull_request"]["head"]["repo"] = Value::Null;
    for (event, payload) in [
        ("pull_request", pull()),
        ("pull_request", fork),
        ("pull_request_target", pull()),
        ("workflow_run", reported()),
    ] {
        let command = job.command(event, &payload, &["gate", "--publish"]);
        let outcome = job.world().finish(command).expect_code(2);
        assert!(outcome.stderr.contains("--publish"), "{}", outcome.stderr);
    }
    let mut private = pull();
    private["repository"]["private"] = json!(true);
    let suite = &job.measured.suite;
    let tools = suite.world.locks().join("tools");
    std::fs::rename(suite.world.work().join("tools"), &tools).unwrap();
    let toml = suite.world.read("benchgate.toml").replace("\"tools\"", &format!("{tools:?}"));
    suite.world.write("benchgate.toml", toml.replace("flags = [\"--fake=latency-us=1300\"]", ""));
    suite.world.write(".gitignore", "/run.json\n/event.json\n/step-*\n");
    git(suite, &["init", "--quiet"]);
    commit(suite);
    suite.source("a", &["latency-us=1300"]);
    let gate = |base: &str| {
        job.world().finish(job.command("pull_request", &private, &["gate", "--publish", "--base", base]))
    };
    let edited = gate("HEAD").expect_code(20).stderr;
    assert!(edited.contains("tracked files of head differed"), "{edited}");
    commit(suite);
    gate("HEAD~1").expect_code(10);
    assert_eq!(job.bodies().len(), 1);
}

#[test]
fn events_that_no_rule_allows_are_not_measured_in_a_job_with_a_token() {
    let job = Job::new();
    let public = json!({ "repository": { "id": 1, "private": false } });
    let private = json!({ "repository": { "id": 1, "private": true } });
    let refused = |event: &str, payload: &Value| {
        let mut command = job.command(event, payload, &["gate", "--publish"]);
        command.env("GITHUB_REF", "refs/heads/main");
        job.world().finish(command).expect_code(2);
        let left = job.world().work().join("run.json");
        assert!(!left.exists(), "{event} leaves the previous result");
    };
    for event in ["issue_comment", "pull_request_review", "discussion", "repository_dispatch"] {
        refused(event, &public);
        refused(event, &private);
    }
    refused("workflow_dispatch", &public);
    let mut group = payload("merge_group");
    group["repository"]["private"] = json!(false);
    refused("merge_group", &group);
}
