//! `[[limit]]`: absolute limits next to the comparison with base.

use serde_json::Value;

use crate::harness::{lint_codes, row};
use crate::pull_request::{commit, policy_on_main, repository};
use crate::suite::Suite;

fn latency(comparison: &Value) -> &Value {
    row(comparison, "a/cpu/main", Some("latency"))
}

fn limit(max: &str) -> String {
    format!("\n[[limit]]\nbenchmark = \"a/*\"\nmetric = \"latency\"\nmax = \"{max}\"\nowner = \"@ada\"\n")
}

const GATE: [&str; 5] = ["gate", "--base", "main", "--format", "json"];

#[test]
fn a_value_beyond_the_bases_limit_is_red_whatever_the_change_is() {
    for (max, code) in [("2ms", 0), ("900us", 10)] {
        let (suite, repository) = repository();
        policy_on_main(&suite, &repository, &limit(max));
        suite.source("a", &["latency-us=1000", "revision=2"]);
        commit(&repository, "as fast as before");
        // The limit is read from the base, so removing or moving it at head has no effect yet.
        suite
            .world
            .write("benchgate.toml", suite.world.read("benchgate.toml").replace(&limit(max), &limit("5ms")));
        let outcome = suite.world.run(GATE).expect_code(code);
        let comparison = outcome.json();
        let found = latency(&comparison);
        assert_eq!(lint_codes(found).contains(&"limit-exceeded"), code == 10, "{found:#}");
        if code == 10 {
            let said = found["reason"]["text"].as_str().unwrap();
            assert!(said.contains("is above the limit of 900"), "{said}");
            assert_eq!(found["reason"]["detail"], "owner: @ada");
            let page = suite.world.run(["gate", "--base", "main", "--format", "markdown"]).expect_code(10);
            assert!(
                page.stdout.contains("Beyond a limit") && page.stdout.contains("@ada"),
                "{}",
                page.stdout
            );
            // The change itself does not make the benchmark slower.
            assert!(!page.stdout.contains("% slower"), "{}", page.stdout);
        }
        assert!(outcome.stdout.contains("limit added: `a/*` (latency), max 5000000"), "{}", outcome.stdout);
    }
}

#[test]
fn a_report_of_ratios_shows_a_limit_without_absolute_values() {
    let (suite, repository) = repository();
    policy_on_main(&suite, &repository, &(limit("900us") + "[report]\ndisclose = \"ratios\"\n"));
    suite.source("a", &["latency-us=1000", "revision=2"]);
    commit(&repository, "as fast as before");
    for format in ["json", "markdown"] {
        let outcome = suite.world.run(["gate", "--base", "main", "--format", format]).expect_code(10);
        assert!(outcome.stdout.contains("× the limit"), "{}", outcome.stdout);
        // The text "900" alone would be found in one of twenty reports by chance, because reports contain
        // hashes.
        for value in ["900000", "900.0", "900 µs", "0.9 ms"] {
            assert!(!outcome.stdout.contains(value), "{}", outcome.stdout);
        }
    }
}

#[test]
fn a_limit_that_matches_no_benchmark_is_an_error() {
    let suite =
        Suite::new().model("a", &["latency-us=1000"]).toml(&limit("1ms").replace("a/*", "b/*")).write();
    let refused = suite.world.run(["run"]).expect_code(2);
    assert!(refused.stderr.contains("the [[limit]] of `b/*` matches no benchmark"), "{}", refused.stderr);
}

#[test]
fn a_metric_that_was_not_measured_is_not_within_its_limit() {
    let (suite, repository) = repository();
    let table = limit("1ms").replace("latency", "compile-instructions").replace("\"1ms\"", "1000");
    policy_on_main(&suite, &repository, &table);
    suite.source("a", &["latency-us=1000", "revision=2"]);
    commit(&repository, "as fast as before");
    let outcome = suite.world.run(GATE).expect_code(11);
    assert!(outcome.stdout.contains("the limit can't be judged"), "{}", outcome.stdout);
}
