//! `benchgate bisect --from-history`: the stored sessions determine the range of commits to search.

use git2::Repository;
use serde_json::Value;

use crate::bisect::{bisect, culprits, history};
use crate::harness::{Outcome, without_digests};
use crate::suite::Suite;

const GOLDEN: &str = include_str!("../fixtures/record/run-v1.json");

/// Stores a session of the suite's benchmark as it would have been measured at a commit.
fn store(suite: &Suite, day: u8, commit: &str, microseconds: f64) -> Outcome {
    let mut run: Value = serde_json::from_str(GOLDEN).unwrap();
    run["suite"] = "fake".into();
    run["session"] = format!("session-{day}").into();
    run["created"] = format!("2026-10-{day:02}T12:00:00Z").into();
    let mut side = run["sides"][0].take();
    side["name"] = "head".into();
    side["commit"] = commit.into();
    let mut benchmark = side["benchmarks"][0].take();
    benchmark["name"] = "a/cpu/main".into();
    benchmark["labels"]["model"] = "a".into();
    benchmark["artifact"]["vmfb_sha256"] = format!("{:064x}", microseconds as u64).into();
    let latency = (microseconds + f64::from(day % 3)) * 1e3;
    for process in benchmark["processes"].as_array_mut().unwrap() {
        process["samples"]["latency"] = vec![latency, latency + 25.0, latency + 50.0].into();
    }
    side["benchmarks"] = vec![benchmark].into();
    run["sides"] = vec![side].into();
    run.as_object_mut().unwrap().remove("calibration");
    suite.world.write("run.json", run.to_string());
    suite.world.run(["baseline", "update"])
}

/// The last commits of the branch, oldest first.
fn last_commits(repository: &Repository, count: usize) -> Vec<String> {
    let mut walk = repository.revwalk().unwrap();
    walk.push_head().unwrap();
    walk.simplify_first_parent().unwrap();
    let mut found: Vec<String> = walk.take(count).map(|id| id.unwrap().to_string()).collect();
    found.reverse();
    found
}

/// Five commits, the fourth of which is slower, and ten nights at the first two.
fn nights() -> (Suite, Vec<String>) {
    let (suite, repository) = history(&[0, 0, 0, 1100, 0]);
    let commits = last_commits(&repository, 5);
    for day in 1..=10 {
        store(&suite, day, &commits[usize::from(day > 5)], 1000.0).expect_code(0);
    }
    (suite, commits)
}

#[test]
fn the_night_that_turned_red_is_searched_from_the_last_good_night() {
    let (suite, commits) = nights();
    store(&suite, 11, &commits[4], 1100.0).expect_code(10);
    let (found, _) = bisect(&suite, &["--from-history"], 0);
    // The range is from the second commit to the fifth; the fourth one is slower.
    assert_eq!((culprits(&found), found["candidates"].as_array().unwrap().len()), (vec![(1, 2)], 4));
    assert_eq!(found["candidates"][2]["title"], "commit 3");
    assert_eq!(found["benchmark"], "a/cpu/main");
}

#[test]
fn a_level_that_changed_among_nights_that_were_accepted_is_searched_too() {
    let (suite, commits) = nights();
    store(&suite, 11, &commits[4], 1100.0).expect_code(10);
    let why = ["--why", "on purpose", "--who", "kim"];
    suite.world.run(["baseline", "accept"].iter().chain(&why)).expect_code(0);
    for day in 12..=16 {
        store(&suite, day, &commits[4], 1100.0).expect_code(0);
    }
    let shown = suite.world.run(["baseline", "show", "--changes"]).expect_code(0).stdout;
    let range = format!("{}..{}", &commits[1][..8], &commits[4][..8]);
    assert!(shown.contains(&range), "{shown}");
    let (found, _) = bisect(&suite, &["--from-history"], 0);
    assert_eq!(culprits(&found), [(1, 2)]);
}

#[test]
fn a_history_without_a_slowdown_or_without_a_range_is_said_and_measures_nothing() {
    let (suite, commits) = nights();
    let said = |arguments: &[&str], code: i32| without_digests(&bisect(&suite, arguments, code).1.messages());
    insta::assert_snapshot!(said(&["--from-history"], 2), @"
    error: failed to find a range to search: no latency in fake/9c1f0e57 got worse by 1 % or more
    hint: name both ends with --good and --bad; `benchgate baseline show --changes` lists the stored changes
    ");
    insta::assert_snapshot!(said(&["--from-history", "--observe", "failure"], 2), @"
    error: failed to find a range to search: stored sessions show changes of metrics, but not of failure
    hint: name both ends with --good and --bad
    ");
    said(&["--from-history", "--testbed", "another"], 12);
    said(&["--from-history", "--good", "main"], 2);
    // The machine got slower, not the code.
    store(&suite, 11, &commits[1], 1100.0).expect_code(10);
    insta::assert_snapshot!(said(&["--from-history"], 2), @"
    error: failed to find a range to search: latency of a/cpu/main changed by +10.1 % between 20261010T120000Z-[DIGEST] and 20261011T120000Z-[DIGEST], which measured the same commit [DIGEST]
    hint: look at the machine, or name two toolchains with --good and --bad
    ");
    assert!(!suite.world.work().join(".benchgate/bisect").exists());
}

#[test]
fn a_clone_that_lacks_the_stored_commits_is_one_clear_error() {
    let (suite, commits) = nights();
    store(&suite, 11, &commits[4], 1100.0).expect_code(10);
    // The history after a checkout of one commit.
    suite.world.write(".git/shallow", format!("{}\n", commits[3]));
    let (_, outcome) = bisect(&suite, &["--from-history"], 2);
    assert!(outcome.stderr.contains("--unshallow") && outcome.stdout.is_empty(), "{}", outcome.stderr);
}
