//! `benchgate explain --swap`: kernels of head in a captured call of base.

use serde_json::Value;

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
    assert!(outcome.stderr.contains("no [side.base]"), "{}", outcome.stderr);
}

#[test]
#[ignore = "downloads IREE from the Python package index"]
fn kernels_of_real_modules_are_exchanged_and_the_capture_is_kept() {
    let world = real_tools::quickstart_mlp("");
    let toml = world.read("benchgate.toml").replace(
        "[side.head]",
        "[side.base]\nflags = [\"--iree-llvmcpu-target-cpu=x86-64-v3\"]\n\n\
         [side.head]\nflags = [\"--iree-llvmcpu-target-cpu=generic\"]",
    );
    world.write("benchgate.toml", toml);
    let args = ["explain", "--swap", "mlp/cpu/main", "--max-blocks", "4", "--format", "json"];
    let outcome = world.finish(real_tools::command(&world, &args));
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
