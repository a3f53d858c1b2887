//! `benchgate explain --swap`: kernels of head in a captured call of base.

use serde_json::Value;

use crate::harness::World;
use crate::pull_request::{branch, commit, repository};
use crate::real_tools;
use crate::suite::Suite;

const SWAP: [&str; 3] = ["explain", "--swap", "m/cpu/main"];

fn suite() -> Suite {
    Suite::new().model("m", &["latency-us=1000"]).base("").head("").write()
}

#[test]
fn a_runtime_that_cannot_exchange_kernels_is_named() {
    let outcome = suite().world.run(SWAP).expect_code(20);
    let said = "failed to exchange kernels: IREE 9.9.9 does not include iree-benchmark-replay";
    assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
}

#[test]
fn a_module_that_cannot_be_read_is_named_before_anything_is_measured() {
    let suite = suite();
    let tools = suite.world.work().join("tools");
    std::fs::copy(tools.join("iree-profile"), tools.join("iree-benchmark-replay")).unwrap();
    let outcome = suite.world.run(SWAP).expect_code(20);
    assert!(
        outcome.stderr.contains("failed to exchange kernels: the module of base: "),
        "{}",
        outcome.stderr
    );
}

#[test]
fn a_benchmark_that_does_not_compile_is_named_with_the_reason() {
    let suite = Suite::new().model("m", &["compile-error=no such op"]).base("").head("").write();
    let outcome = suite.world.run(SWAP).expect_code(20);
    assert!(outcome.stderr.contains("m/cpu/main base: "), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("no such op"), "{}", outcome.stderr);
}

#[test]
fn a_benchmark_that_is_not_in_the_suite_and_a_suite_without_base_are_refused() {
    let outcome = suite().world.run(["explain", "--swap", "m/cpu/mai."]).expect_code(2);
    assert!(outcome.stderr.contains("no benchmark of the suite"), "{}", outcome.stderr);
    let alone = Suite::new().model("m", &["latency-us=1000"]).write();
    let outcome = alone.world.run(SWAP).expect_code(12);
    insta::assert_snapshot!(outcome.messages(), @"
    error: benchgate.toml has no [side.base], so there is nothing to compare with
    hint: name a base: `benchgate explain --swap m/cpu/main --merge-base origin/main`, or add [side.base]
    ");
}

#[test]
fn a_branch_is_exchanged_against_its_merge_base() {
    let (suite, repository) = repository();
    let base = repository.revparse_single("main").unwrap().id();
    suite.source("a", &["compile-error=no such op"]);
    commit(&repository, "does not compile");
    let args = ["explain", "--swap", "a/cpu/main", "--merge-base", "main"];
    let outcome = suite.world.run(args).expect_code(20);
    let said = [format!("base: {base}, the merge base of HEAD and main"), "a/cpu/main head: ".to_owned()];
    assert!(said.iter().all(|said| outcome.stderr.contains(said)), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("a/cpu/main base: "), "{}", outcome.stderr);
}

#[test]
fn the_command_that_a_gate_prints_exchanges_kernels_of_the_base_of_that_gate() {
    let kernels =
        |softmax: u32| format!("kernels=main_dispatch_0_matmul:600,main_dispatch_1_softmax:{softmax}");
    let suite = Suite::new().model("m", &["latency-us=1000", &kernels(400)]).write().with_tools_outside();
    let repository = branch(&suite.world.work());
    let head = repository.head().unwrap().peel_to_commit().unwrap();
    repository.branch("main", &head, true).unwrap();
    let base = head.id();
    suite.source("m", &["latency-us=1500", &kernels(900)]);
    let printed = regex::Regex::new(r"benchgate (explain --swap \S+( --merge-base \S+)?)").unwrap();
    // The first round has uncommitted edits, and the second one has a commit with them.
    for whose in ["HEAD", "the merge base of HEAD and"] {
        let gate = suite.world.run(["gate", "--base", "main"]).expect_code(10).said();
        let command = printed.captures(&gate).unwrap_or_else(|| panic!("{gate}"))[1].to_owned();
        let outcome = suite.world.run(command.split(' ')).expect_code(20);
        let base = format!("base: {base}, {whose}");
        assert!(outcome.stderr.contains(&base), "{command}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("does not include iree-benchmark-replay"), "{}", outcome.stderr);
        commit(&repository, "slower");
    }
}

const V3: &str = "flags = [\"--iree-llvmcpu-target-cpu=x86-64-v3\"]\n";
const GENERIC: &str = "flags = [\"--iree-llvmcpu-target-cpu=generic\"]\n";

/// Exchanges the kernels of a real suite, and checks the properties of every exchange.
fn exchanged(world: &World, args: &[&str]) {
    let swap = ["explain", "--swap", "mlp/cpu/main", "--max-blocks", "4", "--format", "json"];
    let outcome = world.finish(real_tools::command(world, &[&swap, args].concat()));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let found: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let kernels = found["kernels"].as_array().unwrap();
    assert!(kernels.len() >= 2, "{found}");
    assert!(kernels.iter().all(|kernel| kernel["blocks"] == 4), "{found}");
    assert!(
        kernels.iter().all(|kernel| kernel["kernel"].as_str().unwrap().contains("_dispatch_")),
        "{found}"
    );
    assert_eq!(
        (found["missing"].as_array().unwrap().len(), &found["all"]["kernel"]),
        (0, &"all-kernels".into())
    );
    assert!(world.work().join(".benchgate/exchange/mlp-cpu-main/base.ireereplay").is_file());
}

#[test]
#[ignore = "downloads IREE from the Python package index"]
fn kernels_of_real_modules_are_exchanged_and_the_capture_is_kept() {
    let world = real_tools::quickstart_mlp("");
    let toml = world.read("benchgate.toml");
    let sides = format!("[side.base]\n{V3}\n[side.head]\n{GENERIC}");
    world.write("benchgate.toml", toml.replace("[side.head]\n", &sides));
    exchanged(&world, &[]);
}

#[test]
#[ignore = "downloads IREE from the Python package index"]
fn real_kernels_of_a_branch_are_exchanged_against_its_merge_base() {
    let world = real_tools::quickstart_mlp("");
    let toml = world.read("benchgate.toml");
    let with = |flags: &str| toml.replace("[side.head]\n", &format!("[side.head]\n{flags}"));
    world.write("benchgate.toml", with(V3));
    let repository = branch(&world.work());
    world.write("benchgate.toml", with(GENERIC));
    commit(&repository, "another processor");
    exchanged(&world, &["--merge-base", "main"]);
}
