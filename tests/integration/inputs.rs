//! Cache keys contain everything that affects a result, and an error that a tool prints makes its stage fail.

use crate::suite::Suite;

/// The status of a stage of head's first benchmark.
fn stage(suite: &Suite, stage: &str) -> String {
    let run = suite.run_json();
    let stages = run["sides"][0]["benchmarks"][0]["stages"].as_array().unwrap();
    let found = stages.iter().find(|report| report["stage"] == stage).unwrap();
    found["status"].as_str().unwrap().to_owned()
}

/// The digest of the files that are executed, including the module.
fn execution(suite: &Suite) -> String {
    let run = suite.run_json();
    run["sides"][0]["benchmarks"][0]["artifact"]["execution_sha256"].as_str().unwrap().to_owned()
}

fn compiled_with(flags: &str) -> Suite {
    Suite::new().model("a", &["latency-us=1000"]).head(&format!("flags = [{flags}]")).write()
}

/// Runs a suite, changes a file, and runs the suite again. Returns the status of the second compile stage.
fn compile_after_a_change(flags: &str, files: &[(&str, &str)], changed: &str) -> String {
    let suite = compiled_with(flags);
    for (name, text) in files {
        suite.world.write(name, text);
    }
    suite.world.run(["run"]).expect_code(0);
    suite.world.run(["run"]).expect_code(0);
    assert_eq!(stage(&suite, "compile"), "cached", "nothing has changed yet");
    suite.world.write(changed, "// fake latency-us=3000\n");
    suite.world.run(["run"]).expect_code(0);
    stage(&suite, "compile")
}

const LIBRARY: &str = "--iree-codegen-transform-dialect-library=";

#[test]
fn another_transform_library_is_another_module() {
    let flag = format!("\"{LIBRARY}spec.mlir@sequence\"");
    let files = [("spec.mlir", "// fake latency-us=1000\n")];
    assert_eq!(compile_after_a_change(&flag, &files, "spec.mlir"), "ok");
}

#[test]
fn a_file_that_is_named_inside_a_file_of_flags_is_part_of_the_key() {
    let named = format!("{LIBRARY}spec.mlir@sequence\n");
    let directly = [("flags.txt", named.as_str()), ("spec.mlir", "//\n")];
    assert_eq!(compile_after_a_change("\"@flags.txt\"", &directly, "spec.mlir"), "ok");
    let nested = [("flags.txt", "@more.txt\n"), ("more.txt", named.as_str()), ("spec.mlir", "//\n")];
    assert_eq!(compile_after_a_change("\"@flags.txt\"", &nested, "spec.mlir"), "ok");
}

#[test]
fn a_file_in_a_folder_that_a_flag_names_is_part_of_the_key() {
    let files = [("bc/ocml.bc", "//\n"), ("bc/ockl.bc", "//\n")];
    assert_eq!(compile_after_a_change("\"--iree-rocm-bc-dir=bc\"", &files, "bc/ocml.bc"), "ok");
    // An added file changes the key too.
    assert_eq!(compile_after_a_change("\"--iree-rocm-bc-dir=bc\"", &files, "bc/zzz.bc"), "ok");
}

#[test]
fn an_object_that_a_program_links_is_part_of_the_key() {
    let suite = Suite::new().model("a", &["latency-us=1000", "reads=data/kernel.o"]).write();
    suite.world.write("data/kernel.o", "one");
    suite.world.run(["run"]).expect_code(0);
    suite.world.run(["run"]).expect_code(0);
    assert_eq!(stage(&suite, "compile"), "cached");
    suite.world.write("data/kernel.o", "two");
    suite.world.run(["run"]).expect_code(0);
    assert_eq!(stage(&suite, "compile"), "ok");
}

#[test]
fn sides_with_different_libraries_behind_one_flag_are_not_identical() {
    let flag = format!("flags = [\"{LIBRARY}spec.mlir@s\"]");
    let suite = Suite::new()
        .model("a", &["latency-us=1000"])
        .base(&format!("sources = \"b\"\n{flag}"))
        .head(&format!("sources = \"h\"\n{flag}"))
        .write();
    for (side, latency) in [("b", 1000), ("h", 2000)] {
        suite.world.write(&format!("{side}/models/a.mlir"), "//\n");
        suite.world.write(&format!("{side}/data/y.npy"), crate::suite::npy(&[1.0, 2.0, 3.0]));
        suite.world.write(&format!("{side}/spec.mlir"), format!("// fake latency-us={latency}\n"));
    }
    suite.world.run(["gate"]).expect_code(10);
}

#[test]
fn files_behind_runtime_flags_decide_what_is_executed() {
    for (flags, file) in [
        ("\"--flagfile=run.txt\"", "run.txt"),
        ("\"--flagfile=run.txt\"", "inner.txt"),
        ("\"--parameters=model=weights.irpa\"", "weights.irpa"),
    ] {
        let suite =
            Suite::new().model("a", &["latency-us=1000"]).head(&format!("run-flags = [{flags}]")).write();
        suite.world.write("run.txt", "--flagfile=inner.txt\n");
        suite.world.write("inner.txt", "--x=1\n");
        suite.world.write("weights.irpa", "1");
        suite.world.run(["run"]).expect_code(0);
        let before = execution(&suite);
        let text = suite.world.read(file);
        suite.world.write(file, format!("{text}\n"));
        suite.world.run(["run"]).expect_code(0);
        assert_ne!(before, execution(&suite), "{flags}: {file}");
    }
}

#[test]
fn nothing_that_a_process_reads_may_change_after_it_was_hashed() {
    for (head, target, file) in [
        ("run-flags = [\"--flagfile=run.txt\"]", "", "run.txt"),
        ("run-flags = [\"--flagfile=run.txt\"]", "", "inner.txt"),
        ("run-flags = [\"--parameters=model=weights.irpa\"]", "", "weights.irpa"),
        ("", "[target.env]\nTUNING = \"weights.irpa\"\n", "weights.irpa"),
    ] {
        for during in ["run-shell", "shell"] {
            let suite = Suite::new().model("a", &["latency-us=1000"]).head(head).toml(target).write();
            suite.world.write("run.txt", "--flagfile=inner.txt\n");
            suite.world.write("inner.txt", "--x=1\n");
            suite.world.write("weights.irpa", "1");
            suite.world.run(["run"]).expect_code(0);
            let path = suite.world.work().join(file);
            suite.source("a", &["latency-us=1000", &format!("{during}=echo --y=1 >> {}", path.display())]);
            suite.world.run(["run"]).expect_code(20);
        }
    }
}

#[test]
fn a_flag_that_names_a_missing_file_fails_its_benchmark() {
    for side in [
        format!("flags = [\"{LIBRARY}missing.mlir@s\"]"),
        "flags = [\"@missing.txt\"]".to_owned(),
        "flags = [\"--iree-rocm-bc-dir=nothere\"]".to_owned(),
        "run-flags = [\"--flagfile=missing.txt\"]".to_owned(),
    ] {
        let suite = Suite::new().model("a", &["latency-us=1000"]).head(&side).write();
        suite.world.run(["run"]).expect_code(20);
        assert_eq!(suite.results(), [], "{side}");
    }
}

/// A dump of the program, as the compiler prints it after an error. It is longer than the stored part of
/// stderr.
fn dump() -> String {
    "\\n    %1 = arith.constant 1.0".repeat(2_000)
}

#[test]
fn a_tool_that_prints_an_error_and_ends_with_success_has_failed() {
    for (tool, said) in [
        ("compile-stderr", format!("models/a.mlir:5:8: error: Failed to load transform library{}", dump())),
        ("compile-stderr", "missing.mlir:0:0: error: cannot open input file".to_owned()),
        ("run-stderr", "c/runtime/x.c:12: INVALID_ARGUMENT; input0 has another shape".to_owned()),
        ("benchmark-stderr", "error: the device was lost".to_owned()),
    ] {
        let suite = Suite::new().model("a", &["latency-us=1000", &format!("{tool}={said}")]).write();
        suite.world.run(["run"]).expect_code(20);
        // The result is not taken from the cache the second time either.
        suite.world.run(["run"]).expect_code(20);
    }
}

#[test]
fn an_error_that_only_head_prints_is_a_regression() {
    let suite = Suite::new()
        .model("a", &["latency-us=1000"])
        .base("")
        .head("flags = [\"--fake=run-stderr=error: lost the device\"]")
        .write();
    suite.world.run(["gate"]).expect_code(10);
}

#[test]
fn a_warning_that_quotes_an_error_is_no_failure() {
    for tool in ["compile-stderr", "run-stderr", "benchmark-stderr"] {
        let said = "a.mlir:1:1: warning: the last error: none\\n***WARNING*** 0 errors";
        let suite = Suite::new().model("a", &["latency-us=1000", &format!("{tool}={said}")]).write();
        suite.world.run(["run"]).expect_code(0);
    }
}

/// The result of verifying head's only benchmark.
fn verification(suite: &Suite) -> (String, bool) {
    let run = suite.run_json();
    let benchmark = &run["sides"].as_array().unwrap().last().unwrap()["benchmarks"][0];
    let lints = benchmark["lints"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_linted = lints.iter().any(|lint| lint["code"] == "vacuous-reference");
    (benchmark["verification"]["code"].as_str().unwrap().to_owned(), is_linted)
}

#[test]
fn a_reference_that_a_constant_would_agree_with_verifies_nothing() {
    for (output, reference) in [
        ("0,0,0", crate::suite::npy(&[0.0, 0.0, 0.0])),
        ("5,5,5", crate::suite::npy(&[5.0, 5.0, 5.0])),
        ("5,5,5.000001", crate::suite::npy(&[5.0, 5.0, 5.000_001])),
        ("0", crate::suite::npy(&[0.0])),
    ] {
        let suite = Suite::new()
            .model("a", &["latency-us=1000", &format!("output={output}")])
            .base("")
            .head("flags = [\"--fake=latency-us=900\"]")
            .write();
        suite.world.write("data/y.npy", reference);
        let outcome = suite.world.run(["gate"]);
        assert_eq!(verification(&suite), ("VERIFIER_SKIPPED".to_owned(), true), "{output}");
        assert!(outcome.said().contains("inconclusive"), "{output}: {}", outcome.stdout);
    }
}

#[test]
fn one_number_that_is_not_zero_is_a_reference() {
    let suite = Suite::new().model("a", &["latency-us=1000", "output=0.693"]).write();
    suite.world.write("data/y.npy", crate::suite::npy(&[0.693]));
    suite.world.run(["run"]).expect_code(0);
    assert_eq!(verification(&suite), ("PASS".to_owned(), false));
}

#[test]
fn a_head_that_makes_its_reference_vacuous_has_not_passed() {
    let suite = Suite::new()
        .model("a", &["latency-us=1000"])
        .base("sources = \"b\"")
        .head("sources = \"h\"\nflags = [\"--fake=output=0,0,0\"]")
        .write();
    for (side, values) in [("b", [1.0, 2.0, 3.0]), ("h", [0.0; 3])] {
        suite.world.write(&format!("{side}/models/a.mlir"), "// fake output=1,2,3\n");
        suite.world.write(&format!("{side}/data/y.npy"), crate::suite::npy(&values));
    }
    suite.world.run(["gate"]).expect_code(13);
}
