//! `publish` accepts only facts that agree with the event, GitHub and the base's configuration.

use std::process::Command;

use serde_json::{Value, json};

use crate::harness::Outcome;

use super::double::{Double, Fault, TOKEN};
use super::publish::{BASE, MERGE, Measured, proposed, reported};
use super::red::Red;

const HEAD: &str = "0123456789abcdef0123456789abcdef01234567";

/// A result, the GitHub server to which it is published, and the event that reports it.
struct Published {
    measured: Measured,
    double: Double,
    event: Value,
}

impl Published {
    fn new() -> Self {
        let double = Double::new();
        double.merge(MERGE, [BASE, HEAD], true);
        double.pull_request(proposed(HEAD, 5));
        Self { measured: Measured::new(), double, event: reported() }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.measured.command("workflow_run", &self.event, args);
        command.env("GITHUB_API_URL", self.double.api()).env("GITHUB_TOKEN", TOKEN);
        command
    }

    /// Publishes with a check run. If the check run shows the verdict, the job itself succeeds.
    fn publish(&self) -> Outcome {
        self.measured.suite.world.finish(self.command(&["--check-run"]))
    }

    fn conclusions(&self) -> Vec<String> {
        self.double.checks().iter().map(|check| check["conclusion"].as_str().unwrap().to_owned()).collect()
    }

    #[track_caller]
    fn is_refused(&self, what: &str) {
        let outcome = self.publish().expect_code(0);
        assert_eq!(self.conclusions(), ["failure"], "{what}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("failed to accept the result"), "{what}: {}", outcome.stderr);
    }
}

#[test]
fn a_result_that_agrees_with_everything_known_is_published_as_it_is() {
    let mut published = Published::new();
    published.measured.unchanged();
    published.event["workflow_run"]["conclusion"] = json!("success");
    published.publish().expect_code(0);
    assert_eq!(published.conclusions(), ["success"]);
    assert_eq!(published.double.checks()[0]["name"], "benchgate: fake (main)");
}

#[test]
fn a_result_that_passes_is_refused_when_the_run_that_measured_failed() {
    for conclusion in [json!("failure"), json!("timed_out"), json!("cancelled"), Value::Null] {
        let mut published = Published::new();
        published.measured.unchanged();
        published.event["workflow_run"]["conclusion"] = conclusion.clone();
        published.is_refused(&conclusion.to_string());
    }
}

/// A function that changes a result, or the event that reports it.
type Change = fn(&mut Value);

/// The time in this many hours.
fn hours(hours: i64) -> String {
    jiff::Timestamp::now().checked_add(jiff::SignedDuration::from_hours(hours)).unwrap().to_string()
}

#[test]
fn a_result_of_another_time_than_the_run_is_refused() {
    let changes: [(&str, Change, Change); 5] = [
        ("created before", |run| run["created"] = json!(hours(-3)), |_| {}),
        ("created after", |run| run["created"] = json!(hours(3)), |_| {}),
        (
            "a process before",
            |run| run["sides"][1]["benchmarks"][0]["processes"][0]["started"] = json!(hours(-3)),
            |_| {},
        ),
        ("a run without times", |_| {}, |event| event["workflow_run"]["run_started_at"] = Value::Null),
        (
            "a run that started later",
            |_| {},
            |event| {
                event["workflow_run"]["run_started_at"] = json!(hours(1));
            },
        ),
    ];
    for (what, result, event) in changes {
        let mut published = Published::new();
        published.measured.unchanged();
        published.event["workflow_run"]["conclusion"] = json!("success");
        published.measured.edit(result);
        event(&mut published.event);
        published.is_refused(what);
    }
}

#[test]
fn a_result_of_other_commits_is_refused() {
    let other = "2".repeat(40);
    for (base, head) in [(BASE, other.as_str()), (other.as_str(), MERGE), (other.as_str(), HEAD)] {
        let mut published = Published::new();
        published.measured.unchanged();
        published.event["workflow_run"]["conclusion"] = json!("success");
        published.measured.about(base, head);
        published.is_refused(&format!("{base} {head}"));
    }
    // One merge has a base that is not on the branch, and the other one has the head of another pull request.
    for (parents, on_branch) in [([other.as_str(), HEAD], false), ([BASE, other.as_str()], true)] {
        let mut published = Published::new();
        published.measured.unchanged();
        published.event["workflow_run"]["conclusion"] = json!("success");
        let merge = "3".repeat(40);
        published.double.merge(&merge, parents, on_branch);
        published.measured.about(parents[0], &merge);
        published.is_refused(&format!("{parents:?}"));
    }
    // The pull request was one to an older branch when it was measured.
    let mut published = Published::new();
    published.measured.unchanged();
    published.event["workflow_run"]["conclusion"] = json!("success");
    published.double.advance(&other);
    published.is_refused("an older base than the one from which the change started");
    // If the head itself is checked out, it is compared with its merge base.
    let mut published = Published::new();
    published.measured.unchanged();
    published.event["workflow_run"]["conclusion"] = json!("success");
    published.measured.about(BASE, HEAD);
    published.publish().expect_code(0);
    assert_eq!(published.conclusions(), ["success"]);
}

#[test]
fn no_check_run_is_posted_for_a_pull_request_that_moved_on_was_closed_or_is_ambiguous() {
    let closed = || {
        let mut pull = proposed(HEAD, 5);
        pull["state"] = json!("closed");
        pull
    };
    let second = || {
        let mut pull = proposed(HEAD, 5);
        pull["number"] = json!(8);
        pull["base"]["ref"] = json!("release");
        pull
    };
    for (what, pulls) in [
        ("moved on", vec![proposed(&"f".repeat(40), 5)]),
        ("closed", vec![closed()]),
        ("ambiguous", vec![proposed(HEAD, 5), second()]),
        ("none", Vec::new()),
    ] {
        let mut published = Published::new();
        published.double = Double::new();
        pulls.into_iter().for_each(|pull| published.double.pull_request(pull));
        published.publish();
        assert_eq!((published.conclusions().len(), published.double.comments().len()), (0, 0), "{what}");
    }
}

#[test]
fn a_github_that_can_not_list_pull_requests_leaves_a_summary() {
    let published = Published::new();
    let fault = Fault::Refuse { status: 422, headers: Vec::new(), message: "Validation Failed" };
    published.double.fail("GET", "pulls", fault);
    published.publish().expect_code(22);
    let summary = published.measured.suite.world.read("step-summary");
    assert!(summary.contains("Validation Failed"), "{summary}");
}

#[test]
fn a_token_with_a_line_break_is_an_error_and_not_a_crash() {
    let published = Published::new();
    let mut command = published.command(&[]);
    command.env("GITHUB_TOKEN", "ghs_first\nsecond");
    let outcome = published.measured.suite.world.finish(command).expect_code(22);
    assert!(!outcome.stderr.contains("ghs_"), "{}", outcome.stderr);
}

#[test]
fn a_command_whose_wrong_output_is_left_out_is_never_green() {
    let red = Red::of_wrong_command();
    let mut forgeries = Vec::new();
    let mut forge = |what: &str, change: &dyn Fn(&mut Vec<Value>)| {
        let mut run = red.run.clone();
        for benchmark in run["sides"][1]["benchmarks"].as_array_mut().unwrap() {
            let verification = &mut benchmark["verification"];
            *verification = json!({ "code": "PASS", "outputs": verification["outputs"] });
            change(verification["outputs"].as_array_mut().unwrap());
        }
        forgeries.push((what.to_owned(), run));
    };
    forge("the code alone", &|_| {});
    forge("one of two", &|outputs| drop(outputs.pop()));
    forge("the first one twice", &|outputs| outputs[1] = outputs[0].clone());
    forge("another number", &|outputs| {
        outputs[1] = outputs[0].clone();
        outputs[1]["index"] = json!(7);
    });
    assert_eq!(red.greens(&forgeries), [""; 0]);
}
