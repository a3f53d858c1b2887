//! `benchgate doctor`: its output and its exit code, and that it changes nothing.

use crate::harness::{World, without_digests};
use crate::suite::Suite;

fn findings(stdout: &str) -> Vec<(String, String, serde_json::Value)> {
    let diagnosis: serde_json::Value = serde_json::from_str(stdout).unwrap();
    assert_eq!(diagnosis["schema"], "benchgate/doctor/v1");
    ["machine", "repository"]
        .into_iter()
        .flat_map(|half| diagnosis[half].as_array().unwrap().clone())
        .map(|finding| {
            let text = |key: &str| finding[key].as_str().unwrap().to_owned();
            (text("id"), text("level"), finding.clone())
        })
        .collect()
}

fn level<'a>(found: &'a [(String, String, serde_json::Value)], id: &str) -> &'a str {
    found.iter().find(|(of, ..)| of == id).map_or("", |(_, level, _)| level)
}

#[test]
fn a_suite_that_can_be_measured_is_said_to_be_and_nothing_is_changed() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).write();
    let outcome = suite.world.run(["doctor", "--format", "json"]).expect_code(0);
    let found = findings(&outcome.stdout);
    for id in ["processor", "tools", "configuration"] {
        assert_eq!(level(&found, id), "ok", "{id}: {}", outcome.stdout);
    }
    assert!(!suite.world.work().join(".benchgate").exists());
    assert_eq!(std::fs::read_dir(suite.world.cache()).unwrap().count(), 0);
}

#[test]
fn a_suite_of_commands_needs_no_pinned_tools() {
    let world = World::new();
    let toml = "[suite]\nname = \"s\"\n\n[[command]]\nname = \"a\"\nrun = \"sh bench.sh\"\n";
    world.write("benchgate.toml", toml);
    let found = findings(&world.run(["doctor", "--format", "json"]).expect_code(0).stdout);
    assert_eq!(level(&found, "tools"), "", "{found:?}");
    let (_, _, configuration) = found.iter().find(|(id, ..)| id == "configuration").unwrap();
    assert_eq!(configuration["what"], "suite s; 1 command");
}

#[test]
fn tools_that_are_not_the_pinned_ones_are_an_error_with_its_fix_and_exit_20() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).write();
    let toml = suite.world.read("benchgate.toml").replace(crate::suite::COMMIT, &"2".repeat(40));
    suite.world.write("benchgate.toml", toml);
    let outcome = suite.world.run(["doctor", "--format", "json"]).expect_code(20);
    let found = findings(&outcome.stdout);
    assert_eq!(level(&found, "tools"), "error");
    let (_, _, tools) = found.iter().find(|(id, ..)| id == "tools").unwrap();
    insta::assert_snapshot!(without_digests(&format!("{tools:#}")), @r#"
    {
      "id": "tools",
      "level": "error",
      "what": "failed to verify the compiler in tools: expected commit [DIGEST], found [DIGEST]",
      "why": "benchgate measures only with the pinned tools.",
      "fix": "correct the pin in benchgate.toml: its commit or its version does not match these tools"
    }
    "#);
}

#[test]
fn each_target_is_listed_with_the_devices_that_the_runtime_finds() {
    let target = |backend: &str, more: &str| {
        format!("[[target]]\nname = \"{backend}\"\nbackend = \"{backend}\"\ndevice = \"{backend}\"\n{more}")
    };
    let suite = Suite::new()
        .model("a", &["latency-us=1000"])
        .toml(&target("vulkan", ""))
        .toml(&target("cuda", "required = false"))
        .devices("vulkan vulkan://GPU-1\n")
        .write();
    // A software device counts as a device, although no vendor's driver reports it.
    let outcome = suite.world.run(["doctor"]).expect_code(0);
    let lines: Vec<&str> = outcome.stdout.lines().map(str::trim).collect();
    for line in [
        "ok       drivers: cuda, local-task",
        "ok       target: cpu (local-task): local-task://",
        "ok       target: vulkan (vulkan): vulkan://GPU-1",
    ] {
        assert!(lines.contains(&line), "{line}\n{}", outcome.stdout);
    }
    assert!(outcome.stdout.contains("note     target: cuda (cuda): no CUDA device"), "{}", outcome.stdout);
    suite.world.write("tools/DEVICES", "");
    let found = findings(&suite.world.run(["doctor", "--format", "json"]).expect_code(20).stdout);
    assert!(found.iter().any(|(id, level, _)| id == "target" && level == "error"), "{found:?}");
}

#[test]
fn without_a_configuration_the_machine_is_looked_at_all_the_same() {
    let outcome = World::new().run(["doctor", "--format", "json"]).expect_code(0);
    let found = findings(&outcome.stdout);
    assert_eq!(level(&found, "configuration"), "note");
    assert_eq!(level(&found, "processor"), "ok");
}

/// The level of one finding about a repository with these files.
fn of_repository(files: &[(&str, &str)], id: &str) -> String {
    let suite = Suite::new().model("a", &["latency-us=1000"]).write();
    git2::Repository::init(suite.world.work()).unwrap();
    for (name, text) in files {
        suite.world.write(name, text);
    }
    level(&findings(&suite.world.run(["doctor", "--format", "json"]).stdout), id).to_owned()
}

#[test]
fn the_age_of_the_newest_stored_session_is_known() {
    assert_eq!(of_repository(&[], "staleness"), "note");
    let old = format!("baselines/fake/testbed/20200101T000000Z-{}.json", crate::suite::COMMIT);
    assert_eq!(of_repository(&[(&old, "{}")], "staleness"), "warning");
    let time = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
    let new = format!("baselines/fake/testbed/{time}-{}.json", crate::suite::COMMIT);
    assert_eq!(of_repository(&[(&old, "{}"), (&new, "{}")], "staleness"), "ok");
}

#[test]
fn an_owner_of_the_policy_is_looked_for() {
    let workflow = (".github/workflows/x.yml", "on: push\njobs: {}\n");
    assert_eq!(of_repository(&[workflow], "policy-owners"), "note");
    let owners = (".github/CODEOWNERS", "/benchgate.toml @o/compiler\n");
    assert_eq!(of_repository(&[workflow, owners], "policy-owners"), "ok");
}
