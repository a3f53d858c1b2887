//! `--github` and `publish --dry-run`: reports of a job that need no network.

use crate::harness::{Outcome, World};
use crate::suite::Suite;

/// A suite whose head is slower.
fn slower() -> Suite {
    let slow = "flags = [\"--fake=latency-us=1300\"]";
    Suite::new().model("a", &["latency-us=1000"]).base("").head(slow).write()
}

fn in_job(world: &World, args: &[&str]) -> Outcome {
    let mut command = world.command(args);
    for (name, file) in [("GITHUB_STEP_SUMMARY", "step-summary"), ("GITHUB_OUTPUT", "step-output")] {
        world.write(file, "");
        command.env(name, world.work().join(file));
    }
    command.env("RUNNER_TEMP", world.work().join("temporary"));
    world.finish(command)
}

/// The outputs as a runner reads them.
fn outputs(world: &World) -> Vec<(String, String)> {
    let text = world.read("step-output");
    let mut lines = text.lines();
    let mut found = Vec::new();
    while let Some((name, fence)) = lines.next().and_then(|line| line.split_once("<<")) {
        let value: Vec<&str> = lines.by_ref().take_while(|line| *line != fence).collect();
        found.push((name.to_owned(), value.join("\n")));
    }
    found
}

fn output(world: &World, name: &str) -> String {
    outputs(world).into_iter().find(|(known, _)| known == name).map(|(_, value)| value).unwrap()
}

#[test]
fn a_gate_tells_its_job_what_it_found() {
    let suite = slower();
    let outcome = in_job(&suite.world, &["gate", "--github"]).expect_code(10);
    let summary = suite.world.read("step-summary");
    assert!(summary.contains("Regressed") && summary.contains("`a/cpu/main`"), "{summary}");
    assert_eq!(output(&suite.world, "verdict"), "regressed");
    assert_eq!(output(&suite.world, "regressions"), "1");
    assert_eq!(output(&suite.world, "improvements"), "0");
    let report = output(&suite.world, "report-json").replace("[WORLD]", "");
    let report: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&report).unwrap()).unwrap();
    assert_eq!(report["verdict"], "regressed");
    let annotation = outcome.stdout.lines().find(|line| line.starts_with("::error ")).unwrap();
    assert!(annotation.contains("title=a/cpu/main latency%3A regressed::"), "{annotation}");
}

#[test]
fn nothing_is_reported_to_a_job_that_did_not_ask() {
    let suite = slower();
    let outcome = in_job(&suite.world, &["gate"]).expect_code(10);
    assert_eq!((suite.world.read("step-summary"), suite.world.read("step-output")), Default::default());
    assert!(!outcome.stdout.contains("::error"), "{}", outcome.stdout);
}

#[test]
fn publish_outside_of_a_job_is_one_error_and_prints_no_annotation() {
    let suite = slower();
    suite.world.run(["gate"]).expect_code(10);
    let outcome = suite.world.run(["publish", "--run", "run.json"]).expect_code(2);
    assert_eq!(outcome.stdout, "");
}

#[test]
fn a_gate_that_can_not_judge_says_so_to_its_job() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).write();
    let outcome = in_job(&suite.world, &["gate", "--github"]).expect_code(12);
    assert_eq!(output(&suite.world, "verdict"), "missing");
    assert!(suite.world.read("step-summary").contains("Missing"));
    assert!(outcome.stdout.starts_with("::error title=benchgate::"), "{}", outcome.stdout);
}

#[test]
fn a_dry_run_shows_the_comment_and_touches_nothing() {
    let suite = slower();
    suite.world.run(["gate"]).expect_code(10);
    let outcome = in_job(&suite.world, &["publish", "--run", "run.json", "--dry-run"]).expect_code(10);
    assert!(outcome.stdout.contains("Regressed") && outcome.stdout.contains("`a/cpu/main`"));
    assert_eq!((suite.world.read("step-summary"), suite.world.read("step-output")), Default::default());
    in_job(&suite.world, &["publish", "--run", "run.json", "--dry-run", "--output-dir", "out"])
        .expect_code(10);
    assert_eq!(suite.world.read("out/comment.md"), outcome.stdout);
    for file in ["summary.md", "report.json", "annotations.txt", "outputs.txt"] {
        assert!(!suite.world.read(&format!("out/{file}")).is_empty(), "{file}");
    }
}

#[test]
fn the_policy_that_judges_is_that_of_the_configuration_not_of_the_result() {
    let suite = slower();
    suite.world.run(["gate"]).expect_code(10);
    let toml = suite.world.read("benchgate.toml");
    suite.world.write(
        "benchgate.toml",
        format!("{toml}\n[gate.metric.latency]\nfloor = \"40%\"\ntolerance = \"50%\"\n"),
    );
    // Measuring stopped as soon as the slowdown was certain, which is too early to rule out a change of 40 %.
    suite.world.run(["publish", "--run", "run.json", "--dry-run"]).expect_code(11);
}

#[test]
fn a_result_of_another_suite_is_not_judged() {
    let suite = slower();
    suite.world.run(["gate"]).expect_code(10);
    suite.world.write("benchgate.toml", suite.world.read("benchgate.toml").replace("\"fake\"", "\"other\""));
    let outcome = suite.world.run(["publish", "--run", "run.json", "--dry-run"]).expect_code(21);
    assert!(outcome.stdout.contains("Error"), "{}", outcome.stdout);
}

#[test]
fn an_absent_result_is_an_error_that_is_reported() {
    let suite = slower();
    let outcome = suite.world.run(["publish", "--run", "run.json", "--dry-run"]).expect_code(21);
    assert!(outcome.stdout.contains("Error"), "{}", outcome.stdout);
}

#[test]
fn a_base_without_the_suite_is_a_first_run() {
    let suite = slower();
    suite.world.run(["gate"]).expect_code(10);
    let outcome = suite
        .world
        .run(["publish", "--run", "run.json", "--dry-run", "--config", "new.toml"])
        .expect_code(12);
    assert!(outcome.stdout.contains("Missing"), "{}", outcome.stdout);
}
