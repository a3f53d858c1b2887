//! `benchgate import`. The definitions have the format of iree-org/iree-test-suites; their content is made up.

use crate::harness::World;
use crate::suite::{COMMIT, install_fake_tools};

const FLAGS: &str = "--input=3xf32=@input_0.bin\n--expected_output=3xf32=@output_0.bin\n";
const CONFIG: &str = r#"{
  "config_name": "cpu_llvm_sync",
  "iree_compile_flags": ["--iree-hal-target-backends=llvm-cpu", "--iree-opt-level=O0"],
  "iree_run_module_flags": ["--device=local-sync", "--task_topology_group_count=1"],
  "skip_compile_tests": ["onnx/node/generated/test_skipped"],
  "skip_run_tests": ["onnx/node/generated/test_compiled"],
  "expected_compile_failures": ["onnx/node/generated/test_b", "onnx/node/generated/test_gone"],
  "expected_run_failures": ["onnx/node/generated/test_c"],
  "timeout": 30
}"#;

fn test(world: &World, name: &str, directives: &str) {
    let folder = format!("suites/onnx_ops/onnx/node/generated/{name}");
    let function =
        format!("func.func private @helper()\n  func.func @{name}(%arg0: !torch.vtensor<[3],f32>)");
    world.write(
        &format!("{folder}/model.mlir"),
        format!("// fake {directives}\nmodule {{\n  {function}\n}}\n"),
    );
    let data = |values: [f32; 3]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    world.write(&format!("{folder}/input_0.bin"), data([0.0; 3]));
    world.write(&format!("{folder}/output_0.bin"), data([1.0, 2.0, 3.0]));
    world.write(&format!("{folder}/run_module_io_flags.txt"), FLAGS);
}

fn world() -> World {
    let world = World::new();
    test(&world, "test_a", "output=1,2,3.00005");
    test(&world, "test_b", "compile-error=no lowering");
    test(&world, "test_c", "output=4,4,4");
    test(&world, "test_skipped", "");
    test(&world, "test_compiled", "");
    world.write("suites/onnx_ops/configs/onnx_ops_cpu.json", CONFIG);
    world
}

#[test]
fn every_definition_is_in_the_configuration_or_listed() {
    let world = world();
    world.write(
        "suites/torch_models/clip.json",
        r#"{"type": "benchmark", "modules": ["a"], "golden_time_ms": 4.5}"#,
    );
    world.write("suites/onnx_ops/broken.json", "{");
    let outcome = world.run(["import", "iree-test-suites", "suites"]).expect_code(0);
    insta::assert_snapshot!("untranslated", outcome.stdout);
    insta::assert_snapshot!("configuration", world.read("suites/benchgate.toml"));
    // Nothing is overwritten.
    world.run(["import", "iree-test-suites", "suites"]).expect_code(2);
}

#[test]
fn an_imported_suite_runs_as_its_lists_say() {
    let world = world();
    world.run(["import", "iree-test-suites", "suites"]).expect_code(0);
    install_fake_tools(&world.work().join("suites/tools"));
    let toml = world.read("suites/benchgate.toml");
    let from = toml.split("[toolchain]").nth(1).unwrap().split("\n\n").next().unwrap();
    let tools = format!("\nversion = \"9.9.9\"\npath = \"tools\"\ncommit = \"{COMMIT}\"");
    world.write("suites/benchgate.toml", toml.replacen(from, &tools, 1));
    world.run(["run", "-c", "suites/benchgate.toml"]).expect_code(0);
    // The tolerance is that of iree-run-module, so 5e-5 is right and 2e-4 is not.
    test(&world, "test_a", "output=1,2,3.0002");
    world.run(["run", "-c", "suites/benchgate.toml"]).expect_code(13);
}

#[test]
fn a_folder_without_tests_is_refused() {
    let world = World::new();
    world.write("other/README.md", "nothing");
    let refused = world.run(["import", "iree-test-suites", "other"]).expect_code(2);
    assert!(refused.stderr.contains("no test of other can be imported"), "{}", refused.stderr);
    assert!(!world.work().join("other/benchgate.toml").exists());
}
