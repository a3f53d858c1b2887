//! Imports made-up definitions in the formats of the suites, and shows how each line is translated.

use std::collections::BTreeMap;

use super::{FetchedFile, Imported, SuiteFiles, iree_test_suites};

fn files(definitions: &[(&str, &str)]) -> SuiteFiles {
    definitions.iter().map(|(path, text)| ((*path).to_owned(), Some((*text).to_owned()))).collect()
}

/// Imports as if every file that a definition names by URL had been downloaded.
fn imported(files: &SuiteFiles) -> Imported {
    let mut fetched = BTreeMap::new();
    loop {
        let imported = iree_test_suites(files, &fetched, Some("lists/"));
        if imported.missing.is_empty() {
            return imported;
        }
        let file = FetchedFile { sha256: "0".repeat(64), size: 1 };
        fetched.extend(imported.missing.into_iter().map(|url| (url, file.clone())));
    }
}

/// The configuration without its header, followed by everything that was not translated.
fn shown(imported: &Imported) -> String {
    let untranslated: Vec<String> = imported.untranslated.iter().map(ToString::to_string).collect();
    let config =
        imported.config.split_once("0967\"\n\n").map_or(imported.config.as_str(), |(_, config)| config);
    format!("{config}\n--- not translated ---\n{}\n", untranslated.join("\n"))
}

const QUALITY: &str = r#"{
  "inputs": [{"source": "https://example.org/x.0.bin", "value": "1x4xf16"}, {"source": "https://example.org/x.1.npy"}],
  "outputs": [{"source": "https://example.org/y.0.bin", "value": "1x4xf16"}],
  "device": "hip", "real_weights": "https://example.org/weights.irpa", "mlir": "https://example.org/model.mlir",
  "compiler_flags": ["--iree-hal-target-device=hip", "--iree-scheduling-dump-statistics-format=json"],
  "threshold_args": ["--expected_f16_threshold=0.2f"], "run_function": "encode",
  "tuner_file": {"mi300": "spec.mlir", "mi308": "spec.mlir"}, "compile_chip_expecting_to_fail": ["gfx90a"],
  "run_test_expecting_to_fail": true, "owner": "someone"
}"#;
const BENCHMARK: &str = r#"{
  "inputs": ["1x4xf16", "4xi64"], "function_run": "encode", "device": "hip",
  "benchmark_flags": ["--benchmark_repetitions=10", "--device_allocator=caching", "--hip_use_streams=true"],
  "specific_chip_to_ignore": ["gfx90a"], "real_weights_file_name": "weights.irpa",
  "golden_time_tolerance_multiplier": {"mi300": 1.2}, "golden_time_ms": {"mi250": 9.0, "mi300": 5.0, "mi308": 6.0},
  "golden_dispatch": {"mi300": 7}, "golden_size": {"mi308": 1000}
}"#;
const CPU: &str = r#"{
  "mlir": "https://example.org/scheduler.mlir", "compile_only": true,
  "compiler_flags": ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"]
}"#;

#[test]
fn a_sharktank_test_is_one_for_each_chip_and_a_benchmark_calls_what_its_quality_test_compiles() {
    let suite = imported(&files(&[
        ("sharktank_models/quality_tests/sdxl/clip_rocm.json", QUALITY),
        ("sharktank_models/quality_tests/sdxl/scheduler_cpu.json", CPU),
        ("sharktank_models/benchmarks/sdxl/clip_rocm.json", BENCHMARK),
        ("sharktank_models/benchmarks/sdxl/e2e_rocm.json", r#"{"modules": ["a", "b"], "device": "hip"}"#),
        ("sharktank_models/benchmarks/sdxl/vae_rocm.json", r#"{"device": "hip"}"#),
        ("test_suite_files/spec.mlir", "// a transform spec"),
    ]));
    insta::assert_snapshot!(shown(&suite));
}

#[test]
fn a_spec_that_the_suite_s_folder_does_not_hold_keeps_its_test_out() {
    let quality = "sharktank_models/quality_tests/sdxl/clip_rocm.json";
    let suite = imported(&files(&[(quality, QUALITY), ("lists/test_suite_files/spec.mlir", "")]));
    assert_eq!(suite.models, 0);
    let whys: Vec<&str> = suite.untranslated.iter().map(|line| line.why.as_str()).collect();
    assert!(
        whys.iter().all(|why| *why == "`spec.mlir` of `tuner_file` is not below the suite's folder"),
        "{whys:?}"
    );
}

const COMPARE: &str = r#"{
  "function_name": "main", "seed": 3, "rtol": 1e-3, "atol": 1e-4, "equal_nan": false, "mode": "compare",
  "flat_args": [{"Formula": {"shape": [4, 8], "dtype": "float16", "coeff": 2, "offset": -1}},
                {"Formula": {"shape": [8], "dtype": "int8", "coeff": 1, "offset": 0}}],
  "file_name": "test.mlir", "vmfb_name": "out.vmfb",
  "expected_output": [{"url": "https://example.org/AB/expected.npy", "value": null}, {"value": "second.npy"}]
}"#;
const TIMED: &str = r#"{"flat_args": [{"Formula": {"shape": [64, 64]}}], "seed": 1, "mode": "benchmark"}"#;
const OPERATORS: &str = r#"{
  "config_name": "simple", "iree_compile_flags": ["--iree-hal-target-device=hip", "--iree-rocm-target=gfx1201"],
  "iree_run_module_flags": ["--device=hip"], "skip_compile_tests": ["AB/skipped"], "skip_run_tests": [],
  "expected_compile_failures": [], "expected_run_failures": ["AB/64x64"],
  "golden_times_ms": {"AB/64x64_bench": 0.1, "AB/skipped": 1, "AB/gone": 1}, "tolerance_factor": 1.5
}"#;
const MLIR: &str = "func.func @main(%a: tensor<4xsi64>) -> (tensor<4x8xf16>, !torch.vtensor<[8],f16>) {\n";

#[test]
fn torch_ops_have_numpy_s_inputs_and_a_target_for_each_criterion() {
    let suite = imported(&files(&[
        ("torch_ops/generated/AB/64x64/run_module_io.json", COMPARE),
        ("torch_ops/generated/AB/64x64/test.mlir", MLIR),
        ("torch_ops/generated/AB/64x64_bench/run_module_io.json", TIMED),
        ("torch_ops/generated/AB/64x64_bench/test.mlir", MLIR),
        ("torch_ops/generated/AB/skipped/run_module_io.json", TIMED),
        ("torch_ops/generated/AB/skipped/test.mlir", MLIR),
        (
            "torch_ops/generated/AB/random/run_module_io.json",
            r#"{"flat_args": [{"Normal": {}}], "mode": "compare"}"#,
        ),
        ("torch_ops/generated/AB/random/test.mlir", MLIR),
        ("torch_ops/configs/gpu.json", r#"{"config_name": "an example of the list below"}"#),
        ("lists/torch_ops/gpu.json", OPERATORS),
    ]));
    insta::assert_snapshot!(shown(&suite));
}

const PYTHON: &str = r#"
BASE_PATH = "validated/vision/classification/"
        pytest.param("resnet/model/resnet50-v1-12.onnx"),
        pytest.param("vgg/model/vgg19-7.onnx", marks=pytest.mark.size_large),
        pytest.param("new/model/new-1.onnx"),
"#;
const OUTCOMES: &str = r#"{
  "config_name": "cpu", "iree_compile_flags": ["--iree-hal-target-backends=llvm-cpu"], "iree_run_module_flags": [],
  "tests_and_expected_outcomes": {
    "default": "skip",
    "tests/a_test.py::test_models[resnet/model/resnet50-v1-12.onnx]": "pass",
    "tests/a_test.py::test_models[vgg/model/vgg19-7.onnx]": "fail-compile",
    "tests/a_test.py::test_models[gone.onnx]": "pass",
    "tests/a_test.py::test_models[new/model/new-1.onnx]": "skip"
  }
}"#;

#[test]
fn onnx_models_are_artifacts_with_the_outcomes_of_their_configuration() {
    let definitions = [("onnx_models/tests/a_test.py", PYTHON), ("onnx_models/configs/cpu.json", OUTCOMES)];
    let suite = imported(&files(&definitions));
    insta::assert_snapshot!(shown(&suite));
    // Without downloads nothing can be imported, and every line gives the reason.
    let listed = iree_test_suites(&files(&definitions), &BTreeMap::new(), None);
    assert_eq!((listed.models, listed.targets), (0, 0));
    insta::assert_snapshot!("onnx_models_that_are_missing", shown(&listed));
}
