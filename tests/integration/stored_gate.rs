//! `benchgate gate` without a base: compares head with the stored baseline.

use std::path::Path;
use std::process::Command;

use crate::harness::{row, without_digests};
use crate::suite::Suite;

/// Runs git in the suite's folder, without the configuration of the user who runs the tests.
pub fn git(suite: &Suite, arguments: &[&str]) {
    git_output(suite, arguments);
}

fn git_output(suite: &Suite, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .current_dir(suite.world.work())
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

pub fn commit(suite: &Suite) {
    git(suite, &["add", "-A"]);
    git(suite, &["commit", "--quiet", "--allow-empty", "-m", "m"]);
}

pub fn committed() -> Suite {
    committed_with(&["a"])
}

pub fn committed_with(models: &[&str]) -> Suite {
    let suite = models.iter().fold(Suite::new(), |suite, model| suite.model(model, &["latency-us=1000"]));
    let suite = suite.write().with_tools_outside();
    suite.world.write(".gitignore", "/run.json\n");
    git(&suite, &["init", "--quiet"]);
    commit(&suite);
    suite
}

/// Stores a session of the committed state, and commits the session.
fn store(suite: &Suite) {
    suite.run_on_a_quiet_host();
    suite.world.run(["baseline", "update"]).expect_code(0);
    commit(suite);
}

fn stored_files(suite: &Suite) -> Vec<std::path::PathBuf> {
    fn below(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { below(&path, found) } else { found.push(path) }
        }
    }
    let mut found = Vec::new();
    below(&suite.world.work().join("baselines"), &mut found);
    found
}

#[test]
fn without_a_base_or_a_stored_session_nothing_is_measured() {
    let suite = committed();
    suite.world.run(["gate"]).expect_code(12);
    assert!(!suite.world.work().join("run.json").exists());
}

#[test]
fn a_base_that_git_does_not_know_is_a_mistake_on_the_command_line() {
    let suite = committed();
    suite.world.run(["gate", "--base", "orign/main"]).expect_code(2);
}

#[test]
fn a_head_is_judged_by_what_was_stored() {
    let suite = committed();
    let nothing = suite.world.run(["gate"]).expect_code(12);
    insta::assert_snapshot!(without_digests(&nothing.messages()), @"
    no --base: compared with stored sessions of HEAD ([DIGEST]) and its ancestors, under the current policy in benchgate.toml
    error: failed to find a session of the suite fake in baselines at commit [DIGEST], and no base was named
    hint: measure both sides: `benchgate gate --base main`, or add [side.base]; or store a session first: `benchgate baseline update --measure`
    ");
    store(&suite);
    suite.world.run(["gate"]).expect_no_failure();
    suite.source("a", &["latency-us=3000"]);
    let slower = suite.world.run(["gate", "--format", "json"]).expect_code(10).json();
    assert_eq!(row(&slower, "a/cpu/main", Some("latency"))["estimate"]["method"], "history");
}

#[test]
fn outputs_without_a_reference_are_compared_with_those_of_the_stored_session() {
    let suite = committed();
    let toml = suite.world.read("benchgate.toml");
    suite.world.write("benchgate.toml", toml.replace("expected = [\"data/y.npy\"]\n", ""));
    commit(&suite);
    store(&suite);
    suite.world.run(["gate"]).expect_no_failure();
    let wrong = ["output=1,2,3.1", "output=1,2,nan", "output=1,2", "random-output=1"];
    for (output, code) in wrong.into_iter().zip([13, 13, 13, 11]) {
        suite.source("a", &["latency-us=1000", output]);
        let outcome = suite.world.run(["gate", "--stored"]);
        assert_eq!(outcome.code, Some(code), "{output}: {}", outcome.stdout);
    }
    suite.source("a", &["latency-us=1000", "output=1,2,3.00000001", "revision=2"]);
    suite.world.run(["gate", "--stored"]).expect_no_failure();
    // A commit that changes the results on purpose needs an acceptance.
    suite.source("a", &["latency-us=1000", "output=1,2,4"]);
    commit(&suite);
    suite.run_on_a_quiet_host();
    let night = suite.world.run(["baseline", "update"]);
    assert_eq!(night.code, Some(13), "{}", night.stdout);
    assert!(night.stdout.contains("differs"), "{}", night.stdout);
}

#[test]
fn a_change_that_brings_its_own_baseline_is_not_judged_by_it() {
    let suite = committed();
    store(&suite);
    git(&suite, &["checkout", "--quiet", "-b", "change"]);
    for file in stored_files(&suite) {
        std::fs::remove_file(file).unwrap();
    }
    suite.source("a", &["latency-us=3000"]);
    commit(&suite);
    suite.run_on_a_quiet_host();
    suite.world.run(["baseline", "update"]).expect_code(0);
    commit(&suite);
    suite.world.run(["gate", "--stored", "--base", "main"]).expect_code(10);
}

#[test]
fn sessions_of_another_branch_are_no_history() {
    let suite = committed();
    git(&suite, &["checkout", "--quiet", "-b", "elsewhere"]);
    git(&suite, &["commit", "--quiet", "--allow-empty", "-m", "elsewhere"]);
    suite.run_on_a_quiet_host();
    suite.world.run(["baseline", "update"]).expect_code(0);
    git(&suite, &["checkout", "--quiet", "main"]);
    commit(&suite);
    let outcome = measures_nothing(&suite, 12);
    insta::assert_snapshot!(without_digests(&outcome.messages()), @"
    no --base: compared with stored sessions of HEAD ([DIGEST]) and its ancestors, under the current policy in benchgate.toml
    error: failed to find a stored session of suite fake on testbed [DIGEST] from an ancestor of [DIGEST] in baselines at commit [DIGEST]; left out: 1 stored session of commits that are not ancestors of this one
    hint: store one from the base's commit: `benchgate run` and `benchgate baseline update`; or measure both sides here: `benchgate gate --base main`
    ");
}

/// Gates a head that can't be compared with any stored session.
fn measures_nothing(suite: &Suite, code: i32) -> crate::harness::Outcome {
    std::fs::remove_file(suite.world.work().join("run.json")).unwrap();
    let outcome = suite.world.run(["gate", "--stored"]).expect_code(code);
    assert!(!suite.world.work().join("run.json").exists(), "{}", outcome.stderr);
    outcome
}

#[test]
fn sessions_of_another_testbed_are_refused_before_anything_is_measured() {
    let suite = committed();
    store(&suite);
    let [file] = stored_files(&suite).try_into().unwrap();
    let session = std::fs::read_to_string(&file).unwrap();
    let here = file.parent().unwrap();
    let id = here.file_name().unwrap().to_str().unwrap();
    std::fs::rename(here, here.with_file_name("0123456789ab")).unwrap();
    let moved = here.with_file_name("0123456789ab").join(file.file_name().unwrap());
    std::fs::write(moved, session.replace(id, "0123456789ab")).unwrap();
    commit(&suite);
    measures_nothing(&suite, 12);
}

#[test]
fn sessions_that_are_all_damaged_are_refused_before_anything_is_measured() {
    let suite = committed();
    store(&suite);
    let [file] = stored_files(&suite).try_into().unwrap();
    std::fs::write(file, "{").unwrap();
    commit(&suite);
    measures_nothing(&suite, 20);
}

#[test]
fn a_gate_says_what_reading_a_branch_cost() {
    let suite = committed();
    let server = crate::git_server::GitServer::new();
    let remote = server.url();
    let with_token = |arguments: &[&str]| {
        let mut command = suite.world.command(arguments);
        command.env("BENCHGATE_TOKEN", crate::git_server::TOKEN);
        suite.world.finish(command)
    };
    suite.run_on_a_quiet_host();
    with_token(&["baseline", "update", "--branch", "--remote", &remote]).expect_code(0);
    let outcome = with_token(&["gate", "--stored", "--branch", "--remote", &remote]).expect_no_failure();
    let account = outcome.stderr.lines().find(|line| line.starts_with("compared 1 benchmark with "));
    let account = account.unwrap_or_else(|| panic!("{}", outcome.stderr));
    assert!(account.contains("kB fetched"), "{account}");
    assert!(!outcome.stderr.contains(crate::git_server::TOKEN), "{}", outcome.stderr);
}

#[test]
fn the_configuration_says_where_the_baseline_is_and_the_command_line_wins() {
    let suite = committed();
    let toml = suite.world.read("benchgate.toml");
    suite.world.write("benchgate.toml", format!("{toml}\n[store]\nfolder = \"nights\"\n"));
    commit(&suite);
    store(&suite);
    let listed = suite.world.run(["baseline", "list"]).expect_code(0);
    assert!(listed.stdout.contains("fake"), "{}", listed.stdout);
    assert!(suite.world.work().join("nights/fake").is_dir());
    suite.world.run(["gate"]).expect_no_failure();
    suite.world.run(["gate", "--store", "elsewhere"]).expect_code(12);
}

#[test]
fn a_change_that_moves_the_baseline_is_judged_by_the_one_that_was() {
    let suite = committed();
    store(&suite);
    git(&suite, &["checkout", "--quiet", "-b", "change"]);
    let toml = suite.world.read("benchgate.toml");
    suite.world.write("benchgate.toml", format!("{toml}\n[store]\nfolder = \"nowhere\"\n"));
    suite.source("a", &["latency-us=3000"]);
    commit(&suite);
    suite.world.run(["gate", "--stored", "--base", "main"]).expect_code(10);
}

/// A proposed change is judged by the policy and the baseline of its base.
#[test]
fn a_proposed_change_is_not_judged_by_its_own_policy_or_baseline() {
    let suite = committed();
    store(&suite);
    let toml = suite.world.read("benchgate.toml");
    let head = git_output(&suite, &["rev-parse", "HEAD"]);
    let head = head.trim();
    let in_job_of = |event: &str, branch: &str, commit: &str, args: &[&str]| {
        let mut payload = crate::github::event::payload("pull_request");
        payload["merge_group"] = crate::github::event::payload("merge_group")["merge_group"].clone();
        payload["before"] = "0".repeat(40).into();
        payload["repository"]["default_branch"] = "main".into();
        if event == "schedule" {
            payload.as_object_mut().unwrap().remove("repository");
        }
        let file = suite.world.locks().join("event.json");
        std::fs::write(&file, payload.to_string()).unwrap();
        let mut command = suite.world.command(args);
        command
            .env("GITHUB_EVENT_NAME", event)
            .env("GITHUB_EVENT_PATH", file)
            .env("GITHUB_REPOSITORY", "o/r")
            .env("GITHUB_SHA", commit)
            .env("GITHUB_REF", format!("refs/heads/{branch}"))
            .env("GITHUB_API_URL", "https://api.github.com")
            .env("GITHUB_SERVER_URL", "https://github.com")
            .env("GITHUB_RUN_ID", "77")
            .env("GITHUB_RUN_ATTEMPT", "1");
        suite.world.finish(command)
    };
    let other = "2".repeat(40);
    let in_job = |event: &str, args: &[&str]| in_job_of(event, "main", head, args);
    let paired = toml.replace("[side.head]", "[side.base]\n\n[side.head]");
    for event in ["pull_request", "pull_request_target", "merge_group", "issue_comment"] {
        for (toml, args) in [
            (&toml, &["gate", "--stored"][..]),
            (&toml, &["gate"]),
            (&paired, &["gate"]),
            (&paired, &["gate", "--until", "compile", "--bundle", "suite.bundle"]),
        ] {
            suite.world.write("benchgate.toml", toml);
            in_job(event, args).expect_code(2);
        }
        assert!(!suite.world.work().join("run.json").exists(), "{event}");
    }
    // The origin of the code decides, and not the name of the event. The cases are a new branch, a manual run
    // on a branch, and other checkouts.
    for (event, branch, commit) in [
        ("push", "change", head),
        ("workflow_dispatch", "change", head),
        ("workflow_dispatch", "main", &other),
        ("schedule", "main", &other),
    ] {
        suite.world.write("benchgate.toml", &paired);
        for args in [&["gate"][..], &["gate", "--stored"], &["plan", "--shards", "1"]] {
            in_job_of(event, branch, commit, args).expect_code(2);
        }
    }
    suite.world.write("benchgate.toml", &paired);
    in_job("workflow_dispatch", &["gate"]).expect_no_failure();
    in_job("push", &["gate"]).expect_no_failure();
    // The change itself chose the base of this run.
    in_job("push", &["compare", "run.json"]).expect_no_failure();
    in_job("pull_request", &["compare", "run.json"]).expect_code(2);
    suite.world.write("benchgate.toml", &toml);
    in_job_of("workflow_dispatch", "main", &other, &["gate", "--stored", "--base", "HEAD"])
        .expect_no_failure();
    in_job("pull_request", &["gate", "--stored", "--base", "HEAD"]).expect_no_failure();
    let measured = suite.world.read("run.json");
    // A policy in the working tree belongs to the change.
    let own = ["gate", "--stored", "--base", "HEAD", "--policy", "benchgate.toml"];
    in_job("pull_request", &own).expect_code(2);
    // `compare` has no base with another policy, so its report names the origin of the policy.
    suite.world.write("one.json", &measured);
    suite.world.write("two.json", &measured);
    let compare = |policy: &str| {
        let args = ["compare", "one.json", "two.json", "--policy", policy, "--format", "json"];
        in_job("pull_request", &args).stdout.contains("which the change itself can edit")
    };
    assert!(compare("benchgate.toml"));
    suite.world.write("of-main.toml", &toml);
    assert!(!compare("of-main.toml"));
    in_job("schedule", &["gate", "--stored"]).expect_no_failure();
    // A nightly job may check out an older commit of its own branch, but no other commit.
    git(&suite, &["remote", "add", "origin", "https://github.com/o/r"]);
    git(&suite, &["update-ref", "refs/remotes/origin/main", "HEAD"]);
    in_job_of("schedule", "main", &other, &["gate", "--stored"]).expect_no_failure();
    git(&suite, &["remote", "set-url", "origin", "https://github.com/fork/r"]);
    in_job_of("schedule", "main", &other, &["gate", "--stored"]).expect_code(2);
}

#[test]
fn without_a_base_it_is_said_which_commit_and_which_policy_judge() {
    let suite = committed();
    store(&suite);
    let said = |args: &[&str]| suite.world.run(args).expect_no_failure().stderr;
    let head = git_output(&suite, &["rev-parse", "--short=12", "HEAD"]);
    let named = |stderr: &str, file: &str| {
        stderr.lines().any(|line| line.contains("no --base") && line.contains(&head) && line.contains(file))
    };
    let stderr = said(&["gate", "--stored"]);
    assert!(named(&stderr, "benchgate.toml"), "{stderr}");
    suite.world.write("policy.toml", "[gate]\nalpha = 0.02\n");
    let toml = suite.world.read("benchgate.toml");
    suite.world.write("benchgate.toml", format!("policy = \"policy.toml\"\n{toml}"));
    let stderr = said(&["gate", "--stored"]);
    assert!(named(&stderr, "policy.toml"), "{stderr}");
    suite.world.write("benchgate.toml", toml);
    let stderr = said(&["gate", "--stored", "--policy", "policy.toml"]);
    assert!(named(&stderr, "policy.toml"), "{stderr}");
    let stderr = said(&["gate", "--stored", "--base", "HEAD"]);
    assert!(!stderr.contains("no --base"), "{stderr}");
}

#[test]
fn sessions_that_are_not_committed_are_counted_with_the_command_that_commits_them() {
    let suite = committed();
    suite.run_on_a_quiet_host();
    suite.world.run(["baseline", "update", "--store", "nights"]).expect_code(0);
    let gate = ["gate", "--stored", "--store", "nights"];
    let outcome = suite.world.run(gate).expect_code(12);
    insta::assert_snapshot!(without_digests(&outcome.messages()), @"
    no --base: compared with stored sessions of HEAD ([DIGEST]) and its ancestors, under the current policy in benchgate.toml
    error: failed to find a session of the suite fake in nights at commit [DIGEST]; uncommitted: 1 session in nights, but a gate reads only committed sessions
    hint: commit the sessions: `git add nights`, then `git commit`
    ");
    git(&suite, &["checkout", "--quiet", "-b", "change"]);
    commit(&suite);
    let outcome = suite.world.run([&gate[..], &["--base", "main"]].concat()).expect_code(12);
    insta::assert_snapshot!(without_digests(&outcome.messages()), @"
    base: [DIGEST], the merge base of HEAD and main
    error: failed to find a session of the suite fake in nights at commit [DIGEST]; the base commit does not contain 1 session in nights
    hint: commit the sessions on the base's branch: a change can't be judged by a baseline that it adds itself
    ");
    suite.world.run(gate).expect_no_failure();
}

#[test]
fn a_store_outside_of_the_repository_is_named_with_what_can_be_used_instead() {
    let suite = committed();
    suite.run_on_a_quiet_host();
    suite.world.run(["baseline", "update", "--store", "../nights"]).expect_code(0);
    let outcome = suite.world.run(["gate", "--stored", "--store", "../nights"]).expect_code(2);
    insta::assert_snapshot!(without_digests(&outcome.messages()), @"
    no --base: compared with stored sessions of HEAD ([DIGEST]) and its ancestors, under the current policy in benchgate.toml
    error: failed to use the store ../nights: it is outside the repository at [WORLD]/work, and a gate reads a folder only from a commit
    hint: store in a folder of the repository and commit it; or use an object store: copy the sessions to it with `benchgate baseline export --store ../nights --parquet file://[WORLD]/nights-parquet`, then pass `--store file://[WORLD]/nights-parquet`
    ");
    // The advice in the hint works.
    let outside = suite.world.work().canonicalize().unwrap().parent().unwrap().display().to_string();
    let url = format!("file://{outside}/nights-parquet");
    suite.world.run(["baseline", "export", "--store", "../nights", "--parquet", &url]).expect_code(0);
    suite.world.run(["gate", "--stored", "--store", &url]).expect_no_failure();
}

#[test]
fn without_the_remote_of_its_branch_a_gate_names_a_branch_to_compare_with() {
    let suite = committed();
    let toml = suite.world.read("benchgate.toml");
    suite.world.write("benchgate.toml", format!("{toml}\n[store]\nbranch = \"nights\"\n"));
    commit(&suite);
    let outcome = suite.world.run(["gate"]).expect_code(22);
    insta::assert_snapshot!(without_digests(&outcome.messages()), @"
    no --base: compared with stored sessions of HEAD ([DIGEST]) and its ancestors, under the current policy in benchgate.toml
    error: failed to find the remote `origin` in this repository's configuration
    hint: compare with a branch: `benchgate gate --base main`; or name the remote of the stored baseline: `git remote add origin URL`
    ");
    suite.world.write("new.txt", "not committed yet");
    suite.world.run(["gate", "--base", "main"]).expect_no_failure();
    suite.run_on_a_quiet_host();
    let outcome = suite.world.run(["baseline", "update"]).expect_code(22);
    insta::assert_snapshot!(without_digests(&outcome.messages()), @r#"
    error: failed to find the remote `origin` in this repository's configuration
    hint: store in a folder: `--store baselines`, or `folder = "baselines"` instead of `branch` in [store]; or name the remote: `git remote add origin URL`, or its address with --remote
    "#);
    suite.world.run(["baseline", "update", "--store", "nights"]).expect_code(0);
    let doctor = suite.world.run(["doctor"]).stdout;
    assert!(doctor.contains("git remote add") && !doctor.contains("can be reached"), "{doctor}");
}

/// The nightly job checks out a few commits, so the sessions of the older ones, which show a gradual slowdown, would be
/// left out.
#[test]
fn a_shallow_clone_that_does_not_reach_all_sessions_neither_passes_nor_stores() {
    let suite = committed();
    store(&suite);
    let first = git_output(&suite, &["rev-parse", "HEAD"]);
    store(&suite);
    suite.run_on_a_quiet_host();
    suite.world.write(".git/shallow", format!("{first}\n"));
    for arguments in [["baseline", "update"], ["gate", "--stored"]] {
        let outcome = suite.world.run(arguments).expect_code(12);
        assert!(outcome.stderr.contains("--unshallow"), "{}", outcome.stderr);
    }
    assert_eq!(stored_files(&suite).len(), 2);
    std::fs::remove_file(suite.world.work().join(".git/shallow")).unwrap();
    suite.world.run(["baseline", "update"]).expect_code(0);
    suite.world.run(["gate", "--stored"]).expect_no_failure();
}

#[test]
fn a_renamed_model_is_compared_with_what_was_stored_under_its_old_name() {
    let suite = committed();
    store(&suite);
    let rename = |declared: &str| {
        let toml = suite.world.read("benchgate.toml");
        suite
            .world
            .write("benchgate.toml", toml.replace("name = \"a\"\n", &format!("name = \"b\"\n{declared}")));
        git(&suite, &["commit", "--quiet", "-am", "rename"]);
    };
    let gate = |options: &[&str], code: i32| {
        let arguments = [&["gate", "--stored", "--format", "json"][..], options].concat();
        suite.world.run(&arguments).expect_code(code).json()
    };
    git(&suite, &["checkout", "--quiet", "-b", "undeclared"]);
    rename("");
    suite.source("a", &["latency-us=3000"]);
    assert_eq!(row(&gate(&["--base", "main"], 12), "a/cpu/main", None)["verdict"], "missing");
    let slower = gate(&["--base", "main", "--rename", "a", "b"], 10);
    assert_eq!(row(&slower, "b/cpu/main", Some("latency"))["estimate"]["method"], "history");
    assert!(slower["rows"].as_array().unwrap().iter().all(|row| row["benchmark"] != "a/cpu/main"));
    git(&suite, &["checkout", "--quiet", "--force", "main"]);
    git(&suite, &["checkout", "--quiet", "-b", "declared"]);
    rename("renamed-from = \"a\"\n");
    suite.source("a", &["latency-us=3000"]);
    let slower = gate(&["--base", "main"], 10);
    assert_eq!(row(&slower, "b/cpu/main", Some("latency"))["verdict"], "regressed");
    suite.source("a", &["latency-us=1000"]);
    suite.world.run(["gate", "--stored", "--base", "main"]).expect_no_failure();
}
