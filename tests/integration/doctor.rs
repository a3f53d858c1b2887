//! `benchgate doctor`: what it says, how it ends, and that it changes nothing.

use crate::harness::World;
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
fn tools_that_are_not_the_pinned_ones_are_an_error_with_its_fix_and_exit_20() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).write();
    let toml = suite.world.read("benchgate.toml").replace(crate::suite::COMMIT, &"2".repeat(40));
    suite.world.write("benchgate.toml", toml);
    let outcome = suite.world.run(["doctor"]).expect_code(20);
    assert!(outcome.said().contains("error tools: failed to trust"), "{}", outcome.stdout);
    assert!(outcome.said().contains("fix: correct the pin's commit"), "{}", outcome.stdout);
}

#[test]
fn without_a_configuration_the_machine_is_looked_at_all_the_same() {
    let outcome = World::new().run(["doctor", "--format", "json"]).expect_code(0);
    let found = findings(&outcome.stdout);
    assert_eq!(level(&found, "configuration"), "note");
    assert_eq!(level(&found, "processor"), "ok");
}
