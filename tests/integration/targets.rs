//! Targets whose device is absent, modules with several functions, and repeated dispatches.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::harness::{reason, row};
use crate::suite::Suite;

/// A target with `required = false`, so that the tests have the same results on a machine with such a device.
fn target(backend: &str) -> String {
    format!("[[target]]\nname = \"{backend}\"\nbackend = \"{backend}\"\nrequired = false")
}

/// Head's record of a benchmark.
fn benchmark(suite: &Suite, name: &str) -> Value {
    let run = suite.run_json();
    let benchmarks =
        run["sides"].as_array().unwrap().last().unwrap()["benchmarks"].as_array().unwrap().clone();
    benchmarks.into_iter().find(|benchmark| benchmark["name"] == name).unwrap()
}

#[test]
fn a_target_without_its_device_is_compiled_and_unsupported() {
    let suite = ["cuda", "rocm", "vulkan"]
        .into_iter()
        .fold(Suite::new().model("a", &["latency-us=1000"]), |suite, name| suite.toml(&target(name)))
        .write();
    suite.world.run(["run"]).expect_code(0);
    for (name, why) in [
        ("a/cuda/main", "no CUDA device (compiled only)"),
        ("a/rocm/main", "no ROCm device (compiled only)"),
        ("a/vulkan/main", "no Vulkan device (compiled only)"),
    ] {
        let record = benchmark(&suite, name);
        assert_eq!(record["outcome"]["status"], "unsupported");
        assert_eq!(record["outcome"]["why"], why);
        assert_eq!(record["artifact"]["dispatch_count"], 3);
        assert_eq!(record["lints"][0]["code"], "no-device");
        assert!(record["processes"].is_null(), "nothing was measured");
    }
    assert_eq!(benchmark(&suite, "a/cpu/main")["outcome"]["status"], "ok");
}

#[test]
fn a_device_that_is_there_is_measured() {
    let suite = Suite::new()
        .model("a", &["latency-us=1000"])
        .toml(&target("cuda"))
        .devices("cuda cuda://GPU-1\n")
        .write();
    suite.world.run(["run"]).expect_code(0);
    assert_eq!(benchmark(&suite, "a/cuda/main")["processes"].as_array().unwrap().len(), 2);
}

#[test]
fn a_required_device_that_is_missing_is_a_failure_on_whatever_machine() {
    let required = target("cuda").replace("required = false", "required = true");
    let suite = Suite::new().model("a", &["latency-us=1000"]).toml(&required).write();
    suite.world.run(["run"]).expect_code(20);
    let record = benchmark(&suite, "a/cuda/main");
    assert_eq!(record["outcome"]["stage"], "benchmark");
    insta::assert_snapshot!(record["outcome"]["why"].as_str().unwrap(), @"no CUDA device, and the target requires it: UNAVAILABLE; cuda driver library 'cuda.so' not available");
    assert_eq!(record["artifact"]["dispatch_count"], 3, "what was compiled is known all the same");
}

#[test]
fn a_driver_that_fails_is_not_an_absent_device() {
    let suite = Suite::new()
        .model("a", &["latency-us=1000"])
        .toml(&target("cuda"))
        .devices("cuda !INTERNAL; CUDA driver error 'CUDA_ERROR_SYSTEM_DRIVER_MISMATCH' (803)\n")
        .write();
    suite.world.run(["run"]).expect_code(20);
    let record = benchmark(&suite, "a/cuda/main");
    assert_eq!(record["outcome"]["status"], "failed");
    insta::assert_snapshot!(record["outcome"]["why"].as_str().unwrap(), @"iree-run-module --list_devices=cuda ended with exit code 1: INTERNAL; CUDA driver error 'CUDA_ERROR_SYSTEM_DRIVER_MISMATCH' (803)");
}

/// A gate with a benchmark that can only be compiled here, and one that is measured.
fn compiled_only(gate: &str, head: &str) -> Suite {
    Suite::new()
        .model("a", &["pinned-latency-us=1000", "dispatch-count=3"])
        .toml(&target("cuda"))
        .toml(gate)
        .base("")
        .head(&format!("flags = [\"--fake={head}\"]"))
        .write()
}

#[test]
fn what_is_compiled_only_is_reported_and_never_passed() {
    let suite = compiled_only("", "dispatch-count=4");
    let comparison = suite.world.run(["gate", "--format", "json"]).expect_no_failure().json();
    let whole = row(&comparison, "a/cuda/main", None);
    let (code, text) = reason(whole);
    assert_eq!((code, &whole["verdict"]), ("not-measured", &"missing".into()));
    insta::assert_snapshot!(text, @"
    it is unsupported here, so nothing was measured
    no CUDA device (compiled only)
    ");
    let dispatches = row(&comparison, "a/cuda/main", Some("dispatch-count"));
    assert_eq!(dispatches["typical"]["base"], 3.0);
    assert_eq!(dispatches["typical"]["head"], 4.0);
}

#[test]
fn dispatches_and_size_of_what_is_compiled_only_are_gated_where_the_policy_asks() {
    let suite = compiled_only("[gate.metric.dispatch-count]\nfatal = true", "dispatch-count=4");
    let comparison = suite.world.run(["gate", "--format", "json"]).expect_code(10).json();
    assert_eq!(row(&comparison, "a/cuda/main", Some("dispatch-count"))["verdict"], "regressed");
    let suite = compiled_only("[gate.metric.vmfb-size]\nfatal = true", "bytes=5000");
    suite.world.run(["gate"]).expect_code(10);
}

#[test]
fn a_suite_that_could_only_be_compiled_does_not_pass() {
    let suite = compiled_only("", "dispatch-count=3");
    suite.world.run(["gate", "--filter", "cuda"]).expect_code(12);
}

#[test]
fn a_head_whose_runtime_finds_no_device_any_more_is_a_regression_of_that_stage() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).toml(&target("cuda")).write();
    crate::suite::install_fake_tools(&suite.world.work().join("other"));
    suite.world.write("other/DEVICES", "cuda cuda://GPU-1\n");
    let toml = suite.world.read("benchgate.toml").replace(
        "[side.head]",
        &format!(
            "[side.base]\ntoolchain = {{ version = \"9.9.9\", commit = \"{}\", path = \"other\" }}\n\n[side.head]",
            crate::suite::COMMIT
        ),
    );
    suite.world.write("benchgate.toml", toml);
    let comparison = suite.world.run(["gate", "--format", "json"]).expect_code(10).json();
    let (code, text) = reason(row(&comparison, "a/cuda/main", None));
    assert_eq!(code, "fails-at-head");
    insta::assert_snapshot!(text, @"
    benchmark fails only at head
    no CUDA device (compiled only)
    ");
}

#[test]
fn every_function_of_a_module_is_a_benchmark_with_its_own_data() {
    let suite = Suite::new();
    suite
        .source("two", &["latency-us-add=10", "latency-us-mul=2000", "output-add=1,2,3", "output-mul=4,5,6"]);
    suite.world.write("data/mul.npy", crate::suite::npy(&[4.0, 5.0, 6.0]));
    let suite = suite
        .toml(
            "[[model]]\nname = \"two\"\nsource = \"models/two.mlir\"\n\
             [model.functions.add]\ninputs = [\"3xf32=1\"]\nexpected = [\"data/y.npy\"]\n\
             [model.functions.mul]\ninputs = [\"3xf32=2\"]\nexpected = [\"data/mul.npy\"]",
        )
        .write();
    suite.world.run(["run"]).expect_code(0);
    let latency = |name: &str| {
        let record = benchmark(&suite, name);
        assert_eq!(record["verification"]["code"], "PASS", "{name}");
        record["processes"][0]["samples"]["latency"][0].as_f64().unwrap()
    };
    assert!((latency("two/cpu/add") / 10_000.0 - 1.0).abs() < 0.01);
    assert!((latency("two/cpu/mul") / 2_000_000.0 - 1.0).abs() < 0.01);
    let status = |name: &str| benchmark(&suite, name)["stages"][1]["status"].as_str().unwrap().to_owned();
    let mut statuses = [status("two/cpu/add"), status("two/cpu/mul")];
    statuses.sort();
    assert_eq!(statuses, ["cached", "ok"], "one module, compiled once");
}

#[test]
fn a_function_that_the_module_lacks_is_an_error_that_names_those_it_has() {
    let suite = Suite::new();
    suite.source("two", &["latency-us-add=10", "latency-us-mul=20"]);
    let suite =
        suite.toml("[[model]]\nname = \"two\"\nsource = \"models/two.mlir\"\nfunction = \"sub\"").write();
    suite.world.run(["run"]).expect_code(20);
    let record = benchmark(&suite, "two/cpu/sub");
    assert_eq!(record["outcome"]["why"], "the module exports `add`, `mul`, `main`, but no function `sub`");
    assert_eq!(record["lints"], Value::Null, "nothing is known of its state");
}

#[test]
fn functions_and_wrong_outputs_stay_apart_in_the_files_that_runs_append_to() {
    let suite = Suite::new();
    suite.source("two", &["latency-us-add=10", "latency-us-mul=2000"]);
    let suite = suite
        .toml(
            "[[model]]\nname = \"two\"\nsource = \"models/two.mlir\"\n\
             [model.functions.add]\ninputs = [\"3xf32=1\"]\nexpected = [\"data/y.npy\"]\n\
             [model.functions.mul]\ninputs = [\"3xf32=2\"]\nexpected = [\"data/y.npy\"]",
        )
        .model("wrong", &["output=1,2,4"])
        .write();
    suite.world.run(["run", "--append-results", "results"]).expect_code(13);
    let text = suite.world.read("results/iree_latency.csv");
    let mut rows: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(',').collect()).collect();
    rows.sort_by_key(|row| row[1]);
    let names: Vec<&str> = rows.iter().map(|row| row[1]).collect();
    assert_eq!(names, ["two/add", "two/add", "two/mul", "two/mul", "wrong", "wrong"]);
    for (row, expected) in rows.iter().zip([0.01, 0.01, 2.0, 2.0]) {
        assert!((row[3].parse::<f64>().unwrap() / expected - 1.0).abs() < 0.01, "{row:?}");
    }
    assert_eq!((rows[4][3], rows[5][3]), ("error", "error"));

    let read = |file: &str| {
        suite.world.run(["convert", &format!("results/{file}"), "read.json"]).expect_no_failure();
        let run: Value = serde_json::from_str(&suite.world.read("read.json")).unwrap();
        let benchmarks = run["sides"][0]["benchmarks"].as_array().unwrap();
        let mut read: Vec<String> = benchmarks
            .iter()
            .map(|read| {
                format!("{} {} {}", read["name"], read["outcome"]["status"], read["verification"]["code"])
            })
            .collect();
        read.sort();
        read.join("\n")
    };
    insta::assert_snapshot!(read("results.jsonl"), @r#"
    "fake/two/cpu/backend=iree,function=add,test=eval" "ok" "PASS"
    "fake/two/cpu/backend=iree,function=mul,test=eval" "ok" "PASS"
    "fake/wrong/cpu/backend=iree,test=eval" "ok" "FAIL"
    "#);
    insta::assert_snapshot!(read("iree_latency.csv"), @r#"
    "two/add/cpu" "ok" null
    "two/mul/cpu" "ok" null
    "wrong/cpu" "failed" null
    "#);
}

#[test]
fn a_flag_that_writes_files_says_when_the_module_was_compiled_by_an_earlier_run() {
    let suite = Suite::new()
        .model("a", &["latency-us=1000"])
        .head("flags = [\"--iree-hal-dump-executable-sources-to=sources\"]")
        .write();
    let notes = || {
        let said = suite.world.run(["run"]).expect_code(0).stderr;
        // The time since the start is removed.
        let notes = said.lines().filter(|line| line.contains("wrote nothing"));
        notes.map(|line| line.split_once("] ").unwrap().1.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(notes(), [""; 0]);
    insta::assert_snapshot!(notes().join("\n"), @"a/cpu/main head: `--iree-hal-dump-executable-sources-to=sources` wrote nothing, because the module was compiled by an earlier run; `--dump-ir` compiles again, and so does another --cache-dir");
}

#[test]
fn repeated_dispatches_are_timed_by_the_dispatch() {
    let suite = Suite::new();
    suite.source("short", &["latency-us=5"]);
    let suite = suite
        .toml(
            "[[model]]\nname = \"short\"\nsource = \"models/short.mlir\"\ndispatch-repeats = 20\n\
             inputs = [\"3xf32=1\"]\nexpected = [\"data/y.npy\"]",
        )
        .write();
    suite.world.run(["run"]).expect_code(0);
    let latency =
        benchmark(&suite, "short/cpu/main")["processes"][0]["samples"]["latency"][0].as_f64().unwrap();
    assert!((latency / 5_000.0 - 1.0).abs() < 0.01, "{latency}");
}

#[test]
fn half_of_a_repeat_count_is_refused() {
    let suite = Suite::new().model("a", &["latency-us=5"]).head("run-flags = [\"--batch_size=10\"]").write();
    let outcome = suite.world.run(["run"]).expect_code(2);
    insta::assert_snapshot!(outcome.messages(), @"
    error: failed to use benchgate.toml: 1 problem
    benchgate.toml:10:15: `--batch_size` alone makes the times wrong: use `dispatch-repeats` of the model, which also sets the compiler's repeat count
    hint: see https://github.com/benchgate/benchgate/blob/main/docs/configuration.md for every key
    ");
}

#[test]
fn the_device_s_memory_is_stored_and_its_growth_is_said() {
    let suite = Suite::new()
        .model("a", &["pinned-latency-us=1000", "device-memory=1000"])
        .base("")
        .head("flags = [\"--fake=device-memory=2000\"]")
        .write();
    let comparison = suite.world.run(["gate", "--format", "json"]).expect_no_failure().json();
    assert_eq!(benchmark(&suite, "a/cpu/main")["values"][0]["metric"], "peak-device-memory");
    assert_eq!(benchmark(&suite, "a/cpu/main")["values"][0]["value"], 2000.0);
    let memory = row(&comparison, "a/cpu/main", Some("peak-device-memory"));
    assert_eq!(memory["verdict"], "regressed");
    assert_eq!(memory["estimate"]["ratio"], 2.0);
}

#[test]
fn a_cached_module_has_no_compile_time() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).write();
    suite.world.run(["run"]).expect_code(0);
    suite.world.run(["run"]).expect_code(0);
    let stage = benchmark(&suite, "a/cpu/main")["stages"][1].clone();
    assert_eq!((stage["stage"].as_str(), stage["status"].as_str()), (Some("compile"), Some("cached")));
    assert!(stage["peak_memory_bytes"].is_null(), "the compiler did not run");
}

#[test]
fn a_compile_time_that_decides_is_measured_whatever_the_cache_holds() {
    let suite = Suite::new()
        .model("a", &["latency-us=1000"])
        .base("")
        .head("flags = [\"--fake=compile-pause-ms=500\"]")
        .toml("[gate.metric.compile-time]\nfatal = true\nfloor-absolute = \"10ms\"")
        .write();
    for cache in ["cold", "warm"] {
        let comparison = suite.world.run(["gate", "--format", "json"]).expect_code(10).json();
        let row = row(&comparison, "a/cpu/main", Some("compile-time"));
        assert_eq!(row["verdict"], "regressed", "{cache}: {row:#}");
        assert_eq!((&row["estimate"]["method"], &row["estimate"]["blocks"]), (&"paired".into(), &12.into()));
        let pairs = |side: &str| row[side]["processes"].as_u64();
        assert_eq!(
            (pairs("base"), pairs("head")),
            (Some(12), Some(12)),
            "{cache}: decided at the first look"
        );
    }
}

/// A fake valgrind that runs the compiler, and reports a larger count if the compiler has more work.
const COUNTER: &str = r#"#!/bin/sh
[ "$1" = --version ] && echo valgrind-9.9 && exit
for arg; do case $arg in --log-file=*) log=${arg#--log-file=};; *slow*) count=1100000;; esac; done
while [ "${1#--}" != "$1" ]; do shift; done
echo x >> COUNTED
"$@" && echo "==7== Collected : ${count:-1000000}" > "$log"
"#;

#[test]
fn the_compilers_instructions_are_an_exact_metric_where_they_are_asked_for() {
    let suite = Suite::new()
        .model("a", &["latency-us=1000"])
        .base("")
        .head("flags = [\"--fake=note=slow\"]")
        .toml("[gate.metric.compile-instructions]\nfatal = true")
        .measure("compile-instructions = true\n")
        .write();
    let program = suite.world.work().join("bin/valgrind");
    let times = suite.world.work().join("times");
    let gate = |code: i32| {
        let mut command = suite.world.command(["gate", "--format", "json"]);
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", program.parent().unwrap().display()));
        let comparison = suite.world.finish(command).expect_code(code).json();
        row(&comparison, "a/cpu/main", Some("compile-instructions")).clone()
    };
    // If the program can't count, the gate does not pass.
    let script = |text: &str| {
        suite.world.write("bin/valgrind", text.replace("COUNTED", times.to_str().unwrap()));
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    script("#!/bin/sh\n[ \"$1\" = --version ] && echo valgrind-9.8 && exit\nexit 1\n");
    assert_eq!(gate(11)["verdict"], "inconclusive");
    script(COUNTER);
    for cache in ["cold", "warm"] {
        let row = gate(10);
        assert_eq!(
            (&row["verdict"], &row["estimate"]["ratio"]),
            (&"regressed".into(), &1.1.into()),
            "{cache}"
        );
    }
    assert_eq!(std::fs::read_to_string(&times).unwrap().lines().count(), 2, "counts are cached");
}

/// A progress line without the numbers that depend on this host.
fn without_numbers(line: &str) -> String {
    let (_, text) = line.split_once("] ").unwrap();
    regex::Regex::new(r"[0-9]+(\.[0-9]+)?").unwrap().replace_all(text, "N").into_owned()
}

#[test]
fn the_ir_of_every_phase_is_kept_outside_the_cache_and_changes_nothing_in_it() {
    let suite = Suite::new()
        .model("a", &["latency-us=1000"])
        .model("bad", &["compile-error=custom op 'x' is unknown"])
        .write();
    suite.world.run(["run"]).expect_code(20);
    let plain = benchmark(&suite, "a/cpu/main")["artifact"].clone();
    let outcome = suite.world.run(["run", "--dump-ir"]).expect_code(20);
    let record = benchmark(&suite, "a/cpu/main");
    assert_eq!(record["stages"][1]["status"], "cached", "the IR of a cached module is there too");
    assert_eq!(record["artifact"], plain);
    let ir = |file: &str| suite.world.read(&format!(".benchgate/ir/head/{file}"));
    assert!(ir("a/cpu/main/module.6.flow.mlir").contains("latency-us=1000"));
    assert!(ir("a/cpu/main/0.source.mlir").starts_with("// a\n"));
    assert!(ir("bad/cpu/main/compile.log").contains("custom op 'x' is unknown"));
    let about_ir = outcome.stderr.lines().filter(|line| line.contains(" IR "));
    let mut about_ir: Vec<String> = about_ir.map(without_numbers).collect();
    about_ir.sort();
    insta::assert_snapshot!(about_ir.join("\n"), @"
    the IR of every phase is in [WORLD]/work/.benchgate/ir
    warning: bad/cpu/main head: the IR ends early, because the compiler ended with exit code N
    ");
}

#[test]
fn a_run_prints_its_rows_for_programs() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).toml(&target("cuda")).write();
    let outcome = suite.world.run(["run", "--format", "json"]).expect_code(0);
    let json = outcome.json();
    assert_eq!(json["counts"]["ok"], 1);
    assert_eq!(json["counts"]["unsupported"], 1);
    let metrics = json["rows"][1]["metrics"].as_array().unwrap();
    assert!(
        metrics.iter().any(|metric| metric["metric"] == "dispatch-count" && metric["value"] == 3.0),
        "{metrics:?}"
    );
}
