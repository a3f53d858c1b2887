//! `[[expect]]`: expected failures, and which side may declare them.

use super::{FAIL_ON, Greens};
use crate::harness::row;
use crate::pull_request::{commit, repository};
use crate::suite::Suite;

const EXPECTED: &str =
    "[[expect]]\nbenchmark = \"a/*\"\nfailure = \"compile-failure\"\nreason = \"issue 1\"\n\n[toolchain]";
const FAILS: &[&str] = &["compile-error=no lowering"];
const WORKS: &[&str] = &["latency-us=1000"];

fn expect(suite: &Suite) {
    let toml = suite.world.read("benchgate.toml");
    suite.world.write("benchgate.toml", toml.replacen("[toolchain]", EXPECTED, 1));
}

/// Gates a pull request. Base may expect a failure, its model `a` has the directives `base`, and `change`
/// makes head. A second model works on both sides.
fn gated(
    expected_at_base: bool,
    base: &[&str],
    change: impl FnOnce(&Suite),
) -> (crate::harness::Outcome, Suite) {
    let (suite, repository) = repository();
    repository.set_head("refs/heads/main").unwrap();
    suite.source("a", base);
    suite.source("b", WORKS);
    let toml = suite.world.read("benchgate.toml");
    let b = "[[model]]\nname = \"b\"\nsource = \"models/b.mlir\"\ninputs = [\"3xf32=1\"]\n\
             expected = [\"data/y.npy\"]\n\n[toolchain]";
    suite.world.write("benchgate.toml", toml.replacen("[toolchain]", b, 1));
    if expected_at_base {
        expect(&suite);
    }
    commit(&repository, "base");
    let main = repository.head().unwrap().peel_to_commit().unwrap();
    repository.branch("change", &main, true).unwrap();
    repository.set_head("refs/heads/change").unwrap();
    drop(main);
    suite.source("b", &["latency-us=1000", "revision=2"]);
    change(&suite);
    commit(&repository, "change");
    (suite.world.run(["gate", "--base", "main", "--fail-on", FAIL_ON, "--format", "json"]), suite)
}

fn remove(suite: &Suite) {
    let toml = suite.world.read("benchgate.toml");
    suite.world.write("benchgate.toml", toml.replacen(EXPECTED, "[toolchain]", 1));
}

#[test]
fn a_failure_that_the_base_expects_passes_on_both_sides() {
    let (outcome, _) = gated(true, FAILS, |_| {});
    let comparison = outcome.expect_no_failure().json();
    let row = row(&comparison, "a/cpu/main", None);
    assert_eq!((row["verdict"].as_str(), row["fatal"].as_bool()), (Some("pass"), Some(true)));
    assert_eq!(row["reason"]["detail"], "issue 1");
}

#[test]
fn no_expectation_makes_a_head_green_that_broke_something() {
    let mut greens = Greens::default();
    let (outcome, _) = gated(false, WORKS, |suite| {
        suite.source("a", FAILS);
        expect(suite);
    });
    greens.check("an expectation that head adds", &outcome);
    let (outcome, _) = gated(true, WORKS, |suite| suite.source("a", FAILS));
    greens.check("an expectation that base did not meet", &outcome);
    let (outcome, _) = gated(true, FAILS, |suite| suite.source("a", &["run-error=out of memory"]));
    greens.check("a failure in another stage", &outcome);
    let (outcome, _) = gated(true, FAILS, |suite| suite.source("a", &["output=7,7,7"]));
    greens.check("an expected failure to compile that became a wrong output", &outcome);
    let (outcome, _) = gated(true, FAILS, |suite| suite.source("a", &["kill-compile=9"]));
    greens.check("a compiler that was ended from outside", &outcome);
    let (outcome, _) = gated(true, FAILS, remove);
    greens.check("an expectation that head removes, and still fails", &outcome);
    greens.none(6);
}

#[test]
fn wrong_outputs_that_are_expected_stay_as_they_are() {
    let diverges = |change: &'static [&'static str]| {
        let (suite, repository) = repository();
        repository.set_head("refs/heads/main").unwrap();
        suite.source("a", &["latency-us=1000", "output=1,2,4"]);
        let expected = EXPECTED.replace("\"compile-failure\"", "[\"divergence\", \"run-failure\"]");
        let toml = suite.world.read("benchgate.toml");
        suite.world.write("benchgate.toml", toml.replacen("[toolchain]", &expected, 1));
        commit(&repository, "base");
        let main = repository.head().unwrap().peel_to_commit().unwrap();
        repository.branch("change", &main, true).unwrap();
        repository.set_head("refs/heads/change").unwrap();
        suite.source("a", change);
        commit(&repository, "change");
        suite.world.run(["gate", "--base", "main", "--fail-on", FAIL_ON, "--format", "json"])
    };
    let mut greens = Greens::default();
    greens.check("other wrong outputs", &diverges(&["latency-us=100", "output=9,9,9"]));
    greens.check("a program that no longer runs", &diverges(&["run-error=boom"]));
    greens.none(2);
    diverges(&["latency-us=1000", "output=1,2,4", "revision=2"]).expect_no_failure();
}

#[test]
fn a_benchmark_that_works_against_expectation_fails_until_the_expectation_is_removed() {
    let (outcome, _) = gated(true, FAILS, |suite| suite.source("a", WORKS));
    let comparison = outcome.expect_code(20).json();
    let row = row(&comparison, "a/cpu/main", None);
    assert_eq!(row["reason"]["code"], "unusable");
    assert!(row["reason"]["text"].as_str().unwrap().contains("expects it to fail"), "{row}");
    let (outcome, _) = gated(true, FAILS, |suite| {
        suite.source("a", WORKS);
        remove(suite);
    });
    let comparison = outcome.expect_no_failure().json();
    let row = crate::harness::row(&comparison, "a/cpu/main", None);
    assert_eq!((row["reason"]["code"].as_str(), row["fatal"].as_bool()), (Some("only-on"), Some(false)));
}

#[test]
fn run_ends_with_the_code_of_what_was_not_expected() {
    let suite = Suite::new().model("a", FAILS).model("b", WORKS).write();
    suite.world.run(["run"]).expect_code(20);
    expect(&suite);
    suite.world.run(["run"]).expect_code(0);
    suite.source("a", WORKS);
    suite.world.run(["run"]).expect_code(20);
    remove(&suite);
    suite.world.run(["run"]).expect_code(0);
}
