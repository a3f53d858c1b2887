//! Base's benchmark can't be compared, while head is ten times slower.

use std::path::Path;

use crate::pull_request::{commit, repository};
use crate::suite::{Suite, npy};

use super::{FAIL_ON, Greens, Sides};

/// Failures of base's tools. The left side names the case.
const OF_BASE: &[(&str, &[&str])] = &[
    ("base's compiler never ends", &["compile-hang=1"]),
    ("base's compiler is killed", &["kill-compile=9"]),
    ("base's compiler is terminated", &["kill-compile=15"]),
    ("base's compiler crashes", &["kill-compile=11"]),
    ("base's compiler aborts", &["kill-compile=6", "compile-stderr=LLVM ERROR: out of memory"]),
    ("base's compiler fails without a word", &["compile-exit=1"]),
    ("base's compiler runs out of memory", &["compile-exit=1", "compile-stderr=LLVM ERROR: out of memory"]),
    (
        "base's compiler runs out of memory at a place in the program",
        &["compile-exit=1", "compile-stderr=a.mlir:1:1: error: std::bad_alloc"],
    ),
    (
        "base's linker is killed",
        &[
            "compile-exit=1",
            "compile-stderr=<unknown>:0: error: linking failed: Killed\\na.mlir:1:1: error: failed to serialize executables",
        ],
    ),
    (
        "base's compiler can't open a file",
        &["compile-exit=1", "compile-stderr=a.mlir:1:1: error: failed to open file 'weights.irpa'"],
    ),
    ("base's compiler writes no module", &["compile-no-output=1"]),
    ("base's compiler prints an error and exits 0", &["compile-stderr=a.mlir:1:1: error: no such op"]),
    ("base can't be run", &["run-error=expected 2 arguments"]),
    ("base runs out of memory where it is verified", &["kill-run=9"]),
    ("base's runtime crashes", &["kill-run=11"]),
    ("base's runtime writes no output", &["run-no-output=1"]),
    ("base's runtime fails", &["run-exit=1"]),
    ("base's benchmark crashes", &["crash=1"]),
    ("base's benchmark never ends", &["benchmark-hang=1"]),
];

/// Two models: `b` passes, and `a` is ten times slower at head.
fn sides(base: &[&str]) -> Sides {
    let sides = Sides::new();
    for side in ["base", "head"] {
        sides.model(side, "b", &["latency-us=500", &format!("revision={side}")]);
    }
    sides.configuration(
        "[[model]]\nname = \"b\"\nsource = \"models/b.mlir\"\ninputs = [\"3xf32=1\"]\nexpected = [\"data/y.npy\"]\n",
    );
    sides.model("base", "a", &[&["latency-us=1000"], base].concat());
    sides.head(&["latency-us=10000"]);
    sides
}

#[test]
fn no_failure_of_bases_tools_makes_a_slower_head_green() {
    sides(&[]).gate().expect_code(10);
    // A head that repairs a program which the compiler rejects must be accepted.
    sides(&["compile-error=no such op"]).gate().expect_code(0);
    let mut greens = Greens::default();
    for (case, directives) in OF_BASE {
        greens.check(case, &sides(directives).gate());
    }
    greens.none(19);
}

#[test]
fn a_file_that_is_only_a_pointer_of_git_lfs_is_an_error_that_names_it() {
    let sides = sides(&[]);
    sides
        .world
        .write("base/data/y.npy", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 140\n");
    let outcome = sides.gate().expect_code(2);
    assert!(outcome.stderr.contains("base/data/y.npy"), "{}", outcome.stderr);
}

#[test]
fn large_modules_are_verified_one_at_a_time_on_a_device() {
    let suite = Suite::new();
    let lock = suite.world.work().join("lock");
    let alone = format!("run-shell=mkdir {0} && sleep 0.2 && rmdir {0}", lock.display());
    let target = "[[target]]\nname = \"cuda\"\nbackend = \"cuda\"\n";
    let suite = suite
        .model("a", &["latency-us=1000", &alone])
        .model("b", &["latency-us=1000", &alone])
        .toml(target)
        .devices("cuda cuda://GPU-1\n")
        .base("")
        .head("flags = [\"--fake=note=head\"]")
        .measure("jobs = 8\n")
        .write();
    suite.world.run(["gate", "--filter", "cuda"]).expect_no_failure();
}

#[test]
fn base_starved_by_heads_compilers_is_not_green() {
    let mut greens = Greens::default();
    let sides = sides(&["compile-hang=1"]);
    sides.edit("compile-timeout = \"3s\"", "compile-timeout = \"1s\"\njobs = 64");
    greens.check("head sets jobs and a timeout", &sides.gate());
    greens.none(1);
}

#[test]
fn a_shard_that_says_base_did_not_compile_is_not_green() {
    let sides = sides(&["compile-hang=1"]);
    let mut greens = Greens::default();
    sides.world.run(["plan", "--shards", "2"]).expect_code(0);
    for shard in ["1", "2"] {
        let run = format!("shard-{shard}.json");
        sides.world.run(["run", "--plan", "plan.json", "--shard", shard, "--run", &run]);
    }
    sides
        .world
        .run(["merge", "--plan", "plan.json", "shard-1.json", "shard-2.json", "--output", "whole.json"])
        .expect_code(0);
    let compare = ["compare", "whole.json#base", "whole.json#head", "--fail-on", FAIL_ON];
    greens.check("the merged run", &sides.world.run(compare));
    greens.none(1);
}

/// Runs git in the suite's repository, with the same configuration as benchgate.
fn git(suite: &Suite, arguments: &[&str]) {
    let mut command = std::process::Command::new("git");
    command.args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"]);
    command.args(arguments).current_dir(suite.world.work()).env("HOME", suite.world.work().join("../home"));
    let output = command.env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A suite with the models `a` and `b`, whose base is modified by `change`. On the branch, `a` has no such
/// modification and is ten times slower.
fn changed(change: impl FnOnce(&Suite)) -> Suite {
    let (suite, repository) = repository();
    suite.source("b", &["latency-us=500"]);
    let model = "[[model]]\nname = \"b\"\nsource = \"models/b.mlir\"\ninputs = [\"3xf32=1\"]\nexpected = [\"data/b.npy\"]\n\n";
    suite.world.write("data/b.npy", npy(&[1.0, 2.0, 3.0]));
    let toml = suite.world.read("benchgate.toml").replacen("[[target]]", &format!("{model}[[target]]"), 1);
    suite.world.write("benchgate.toml", toml);
    git(&suite, &["checkout", "--quiet", "main"]);
    change(&suite);
    git(&suite, &["add", "--all"]);
    git(&suite, &["commit", "--quiet", "--message=base"]);
    git(&suite, &["checkout", "--quiet", "-B", "change"]);
    suite.source("a", &["latency-us=10000"]);
    suite.source("b", &["latency-us=500", "revision=2"]);
    drop(repository);
    suite
}

/// Makes `a` fail unless this file has more than 1000 bytes.
fn reads(suite: &Suite, file: &str) {
    suite.source("a", &["latency-us=1000", &format!("run-shell=test $(wc -c < {file}) -gt 1000")]);
}

#[test]
fn no_file_that_a_checkout_of_base_lacks_makes_a_slower_head_green() {
    let mut greens = Greens::default();
    let mut check = |case: &str, expected: i32, suite: &Suite| {
        let outcome = suite.world.run(["gate", "--base", "main", "--fail-on", FAIL_ON]);
        greens.check(case, &outcome);
        outcome.expect_code(expected);
    };
    check("nothing is missing", 10, &changed(|_| {}));

    let in_lfs = |suite: &Suite| {
        suite.world.write("../home/lfs", "if [ $1 = smudge ]; then cat \"$HOME/object\"; else cat > \"$HOME/object\"; printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%064d\\nsize 2000\\n' 0; fi\n");
        git(suite, &["config", "filter.lfs.clean", "sh $HOME/lfs clean"]);
        git(suite, &["config", "filter.lfs.smudge", "sh $HOME/lfs smudge"]);
        suite.world.write(".gitattributes", "*.bin filter=lfs -text\n");
        suite.world.write("data/w.bin", [1; 2000]);
        reads(suite, "data/w.bin");
    };
    check("base's data are in git-lfs", 10, &changed(in_lfs));
    let suite = changed(in_lfs);
    git(&suite, &["config", "--unset", "filter.lfs.smudge"]);
    check("git-lfs is not installed", 12, &suite);
    let suite = changed(in_lfs);
    std::fs::remove_file(suite.world.work().join("../home/object")).unwrap();
    check("git-lfs has lost the content", 12, &suite);
    let suite = changed(in_lfs);
    suite.world.write("data/w.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 2000\n");
    check("the working tree has only pointers", 20, &suite);

    let outside = |suite: &Suite| {
        suite.world.write("../outside/w.bin", [1; 2000]);
        let link = suite.world.work().join("data/w.bin");
        std::os::unix::fs::symlink(Path::new("../../outside/w.bin"), link).unwrap();
        reads(suite, "data/w.bin");
    };
    check("base reads through a link out of the repository", 10, &changed(outside));

    let with_submodule = |suite: &Suite| {
        let inner = suite.world.work().join("../inner");
        std::fs::create_dir(&inner).unwrap();
        suite.world.write("../inner/w.bin", [1; 2000]);
        let at = inner.to_str().unwrap();
        git(suite, &["-C", at, "init", "--quiet"]);
        git(suite, &["-C", at, "add", "--all"]);
        git(suite, &["-C", at, "commit", "--quiet", "--message=inner"]);
        git(suite, &["submodule", "--quiet", "add", at, "weights"]);
        reads(suite, "weights/w.bin");
    };
    check("base's data are in a submodule", 10, &changed(with_submodule));
    let suite = changed(with_submodule);
    git(&suite, &["submodule", "--quiet", "deinit", "--all"]);
    std::fs::remove_dir_all(suite.world.work().join(".git/modules")).unwrap();
    check("the submodule is not initialized", 20, &suite);
    let suite = changed(with_submodule);
    let inner = suite.world.work().join("weights");
    std::fs::remove_file(inner.join(".git")).unwrap();
    git(&suite, &["-C", inner.to_str().unwrap(), "init", "--quiet"]);
    check("the submodule's commit is not in this clone", 12, &suite);
    let suite = changed(with_submodule);
    let inner = suite.world.work().join("weights");
    suite.world.write("weights/w.bin", [2; 2000]);
    git(&suite, &["-C", inner.to_str().unwrap(), "commit", "--quiet", "--all", "--message=slow"]);
    git(&suite, &["commit", "--quiet", "--all", "--message=the slow submodule"]);
    git(&suite, &["-C", inner.to_str().unwrap(), "checkout", "--quiet", "HEAD~1"]);
    check("head's submodule is still at base's commit", 20, &suite);
    greens.none(10);
}

#[test]
fn a_commit_is_not_compared_with_itself() {
    let (suite, repository) = repository();
    let gate = |options: &[&str]| suite.world.run([&["gate", "--base", "change"], options].concat());
    let refused = |options: &[&str]| {
        let outcome = gate(options).expect_code(12);
        assert!(outcome.stderr.contains("there is no change to measure"), "{}", outcome.stderr);
    };
    refused(&[]);
    refused(&["--until", "compile", "--bundle", "../suite.bundle"]);
    // An earlier result in the working tree is not a change.
    suite.world.write("report.json", "{\"schema\": \"benchgate/report-v1\"}");
    refused(&[]);
    suite.world.write("new.txt", "not committed yet");
    let outcome = gate(&[]).expect_no_failure();
    assert!(outcome.said().contains("untracked files (new.txt)"), "{}", outcome.said());
    let mut command = suite.world.command(["gate", "--base", "change"]);
    command.env("CI", "true");
    suite.world.finish(command).expect_code(12);
    suite.source("a", &["latency-us=1300"]);
    gate(&[]).expect_code(10);
    commit(&repository, "slower");
    refused(&[]);
    suite.world.run(["gate", "--base", "main"]).expect_code(10);
}
