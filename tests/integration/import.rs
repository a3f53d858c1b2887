//! `benchgate import`. The definitions have the format of iree-org/iree-test-suites, but their content is
//! invented.

use std::io::{Read, Write};
use std::net::TcpListener;

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
    // The tolerance is that of iree-run-module, so a difference of 5e-5 is accepted and one of 2e-4 is not.
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

/// Serves files locally until the test ends. Returns the server's address.
fn serve(files: Vec<(&'static str, Vec<u8>)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                request.extend(byte);
            }
            let request = String::from_utf8(request).unwrap();
            let path = request.split(' ').nth(1).unwrap();
            let found = files.iter().find(|(name, _)| *name == path);
            let status = if found.is_some() { "200 OK" } else { "404 Not Found" };
            let body = found.map_or(&[][..], |(_, body)| body);
            let head =
                format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            // The client may have disconnected.
            drop(stream.write_all(&[head.as_bytes(), body].concat()));
        }
    });
    address
}

/// A module and its three kinds of tests, in the format of torch_models.
fn torch_models(world: &World, address: &str) {
    let write = |name: &str, json: String| world.write(&format!("suites/torch_models/{name}.json"), json);
    write(
        "clip/modules/clip_cpu",
        format!(
            r#"{{"mlir": "{address}/clip/model.mlir", "compiler_flags": ["--iree-hal-target-device=local",
            "--iree-hal-local-target-device-backends=llvm-cpu", "--iree-scheduling-dump-statistics-format=json"]}}"#
        ),
    );
    let common = format!(
        r#""markers": ["cpu"], "modules": ["clip/modules/clip_cpu"],
        "weights": [{{"type": "url", "url": "{address}/clip/weights.irpa", "scope": "model"}}]"#
    );
    write(
        "clip/benchmark",
        format!(
            r#"{{"type": "benchmark", {common}, "inputs": [{{"value": "3xf32"}}], "golden_time_ms": 0.5,
            "run_args": ["--function=main", "--device=local-task", "--benchmark_repetitions=10"]}}"#
        ),
    );
    write(
        "clip/quality",
        format!(
            r#"{{"type": "quality", {common}, "inputs": [{{"value": "3xf32", "url": "{address}/clip/in.0.bin"}}],
            "expected_outputs": [{{"value": "3xf32", "url": "{address}/clip/out.0.bin"}}],
            "run_args": ["--function=main", "--device=local-task", "--expected_f32_threshold=0.5f"]}}"#
        ),
    );
    write(
        "clip/compstat",
        r#"{"type": "compstat", "markers": ["cpu"], "module": "clip/modules/clip_cpu",
        "golden_dispatch_count": 7, "golden_binary_size": 1000000}"#
            .to_owned(),
    );
    write(
        "clip/random",
        r#"{"type": "benchmark", "markers": ["hip", "mi325"], "modules": ["clip/modules/clip_cpu"], "run_args": [],
        "weights": [{"type": "random", "module": "clip/modules/clip_cpu", "seed": 42, "scope": "model"}], "inputs": []}"#
            .to_owned(),
    );
}

#[test]
fn files_that_definitions_name_by_address_are_recorded_and_the_suite_runs() {
    let floats = |values: [f32; 3]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let module = "// fake latency-us=1000\n// fake output=1.25,2,3\n// fake dispatch-count=7\n// module\n";
    let address = serve(vec![
        ("/clip/model.mlir", module.into()),
        ("/clip/weights.irpa", vec![0; 64]),
        ("/clip/in.0.bin", floats([0.0; 3])),
        ("/clip/out.0.bin", floats([1.0, 2.0, 3.0])),
    ]);
    let world = world();
    torch_models(&world, &address);
    // Without the option, each line is listed with the reason.
    let listed = world.run(["import", "iree-test-suites", "suites"]).expect_code(0).stdout;
    insta::assert_snapshot!("torch_models_untranslated", listed.replace(&address, "[ADDRESS]"));
    std::fs::remove_file(world.work().join("suites/benchgate.toml")).unwrap();
    let fetched = world.run(["import", "iree-test-suites", "suites", "--fetch"]).expect_code(0);
    insta::assert_snapshot!("torch_models_fetched", fetched.stdout.replace(&address, "[ADDRESS]"));
    let toml = world.read("suites/benchgate.toml");
    insta::assert_snapshot!("torch_models", toml.replace(&address, "[ADDRESS]"));
    install_fake_tools(&world.work().join("suites/tools"));
    let from = toml.split("[toolchain]").nth(1).unwrap().split("\n\n").next().unwrap();
    let tools = format!("\nversion = \"9.9.9\"\npath = \"tools\"\ncommit = \"{COMMIT}\"");
    world.write("suites/benchgate.toml", toml.replacen(from, &tools, 1));
    // The fake compiler's modules have no code that `clip-compstat` could judge.
    let timed_or_verified = "^clip-(benchmark|quality)/";
    world.run(["run", "-c", "suites/benchgate.toml", "--filter", timed_or_verified]).expect_code(0);
}

#[test]
fn a_file_that_is_not_there_ends_the_import_and_writes_nothing() {
    let address = serve(Vec::new());
    let world = world();
    torch_models(&world, &address);
    let refused = world.run(["import", "iree-test-suites", "suites", "--fetch"]).expect_code(20);
    assert!(refused.stderr.contains("the server answers 404 Not Found"), "{}", refused.stderr);
    assert!(!world.work().join("suites/benchgate.toml").exists());
}

#[test]
fn each_test_calls_its_own_function_of_a_module_and_a_golden_that_is_no_number_is_listed() {
    let address = serve(vec![("/vae/model.mlir", b"// module\n".to_vec())]);
    let world = world();
    let write = |name: &str, json: String| world.write(&format!("suites/torch_models/vae/{name}.json"), json);
    write(
        "modules/vae",
        format!(
            r#"{{"mlir": "{address}/vae/model.mlir", "compiler_flags": ["--iree-hal-target-backends=llvm-cpu"]}}"#
        ),
    );
    for (name, golden) in [("encode", "0.5"), ("decode", "0.5"), ("broken", "\"0.5 ms\"")] {
        write(
            name,
            format!(
                r#"{{"type": "benchmark", "modules": ["vae/modules/vae"], "run_args": ["--function={name}"], "golden_time_ms": {golden}}}"#
            ),
        );
    }
    let imported = world.run(["import", "iree-test-suites", "suites", "--fetch"]).expect_code(0);
    let toml = world.read("suites/benchgate.toml");
    for function in ["encode", "decode"] {
        assert!(
            toml.contains(&format!("benchmark = \"vae-{function}/vae-{function}/{function}\"")),
            "{toml}"
        );
    }
    assert!(!toml.contains("broken"), "{toml}");
    assert!(imported.stdout.contains("`golden_time_ms` is not a number"), "{}", imported.stdout);
}
