//! Lines of logs and labels that state a problem, or another experiment.

use serde_json::{Value, json};

use crate::harness::World;

use super::foreign::{compared, none_is_green};
use super::{FAIL_ON, Greens};

const ROWS: [(&str, &str); 3] = [
    (
        "Google Benchmark",
        "Running ./bench\nBenchmark        Time       CPU   Iterations\n\
         BM_a/repeats:3    100.1 us    100.1 us    700\nBM_a/repeats:3    100.2 us    100.2 us    700\n\
         BM_a/repeats:3    100.3 us    100.3 us    700\n",
    ),
    (
        "Go",
        "goos: linux\npkg: a\nBenchmarkA-8 \t 100 \t 100.1 ns/op\nBenchmarkA-8 \t 100 \t 100.2 ns/op\n\
         BenchmarkA-8 \t 100 \t 100.3 ns/op\nPASS\n",
    ),
    (
        "libtest",
        "running 1 test\ntest a ... bench:         100.25 ns/iter (+/- 1.25)\n\n\
         test result: ok. 0 passed; 0 failed; 0 ignored; 1 measured; 0 filtered out; finished in 3.01s\n",
    ),
];

#[test]
fn no_log_that_states_a_problem_is_green_unless_base_states_it_too() {
    let lines = [
        "verification: FAILED",
        "MISMATCH at 3: 1.0 vs 2.0",
        "max error 3.0 exceeds tolerance",
        "results incorrect!",
        "Error: outputs do not match the reference",
        "2026/11/28 10:00:00 ERROR validation failed",
        "AssertionError: 3 != 4",
        "==12== Invalid read of size 4",
        "==12== ERROR SUMMARY: 3 errors from 3 contexts (suppressed: 0 from 0)",
        "runtime error: signed integer overflow: 1 + 2",
        "Assertion failed: (x), function f, file a.c, line 3.",
        "MemoryError",
        "java.lang.OutOfMemoryError: Java heap space",
        "CUBLAS_STATUS_NOT_INITIALIZED",
        "no GPU found, falling back to CPU",
        "E20261128 10:00:00.1 1 x.cc:3] bad",
        "=== 3 failed, 7 passed in 0.12s ===",
        "Validation: FAIL",
        "softmax ... FAIL",
        "Mismatched elements: 512 / 512 (100%)",
        "softmax: tolerance exceeded",
    ];
    let harmless = [
        "=== 7 passed, 1 xfailed in 0.12s ===",
        "FAIL: 0",
        "0 failed, 7 passed",
        "XFAIL",
        "failover done",
        "expected FAIL",
        "Mismatched elements: 0 / 512 (0%)",
    ];
    for (tool, log) in ROWS {
        let first = log.split_inclusive('\n').next().unwrap();
        let edited = lines.map(|line| format!("{line}\n{first}"));
        let edits: Vec<_> = edited.iter().map(|to| (first, to.as_str())).collect();
        none_is_green(tool, log, &edits);
        let honest = compared(log, &format!("{log}\n")).code;
        for (base, head) in
            [(Some(lines[2]), Some("max error 4.0 exceeds tolerance")), (Some(lines[14]), None)]
        {
            let [base, head] =
                [base, head].map(|line| line.map_or_else(|| log.to_owned(), |line| format!("{line}\n{log}")));
            assert_eq!(compared(&base, &format!("{head}\n")).code, honest, "{tool}: {base}");
        }
        let remarks = harmless.map(|line| format!("{line}\n")).concat();
        assert_eq!(compared(log, &format!("{remarks}{log}")).code, honest, "{tool}");
    }
}

/// Returns a Google Benchmark file whose rows have this label.
fn labeled(label: &str, seed: usize) -> String {
    let row = |at: usize| {
        let time = 1.0 + 1e-4 * ((at * 7 + seed) % 11) as f64;
        let mut row = serde_json::json!({"name": "a", "run_name": "a", "run_type": "iteration", "repetitions": 12,
            "repetition_index": at, "threads": 1, "iterations": 10, "real_time": time, "cpu_time": time, "time_unit": "ms"});
        if !label.is_empty() {
            row["label"] = label.into();
        }
        row
    };
    let rows: Vec<_> = (0..12).map(row).collect();
    serde_json::json!({"context": {"num_cpus": 8}, "benchmarks": rows}).to_string()
}

#[test]
fn no_label_that_denies_a_result_or_names_another_experiment_is_green() {
    let mut greens = Greens::default();
    let edits = [
        ("", "results differ"),
        ("", "not verified"),
        ("", "validation: no"),
        ("", "0/100 correct"),
        ("", "NG"),
        ("", "inf"),
        ("", "no GPU found, using CPU"),
        ("", "fallback to reference kernel"),
        ("fp32", "fp16"),
        ("verified", "unverified"),
        ("ok", "ko"),
        ("100/100 correct", "3/100 correct"),
        ("accuracy 0.93", "accuracy 0.41"),
        ("err=1e-6", "err=3.0"),
        ("AVX512 64 KiB", "SSE2 64 KiB"),
        ("", "correct=false"),
        ("", "correct: False"),
        ("", "passed=0"),
        ("", "exit_code=139"),
        ("", "signal=SIGSEGV"),
        ("", "exception=RuntimeError: x"),
        ("", "timed_out=true"),
        ("", "512 mismatches"),
        ("12 passed", "3 passed"),
        ("0 mismatches", "512 mismatches"),
        ("93% accuracy", "41% accuracy"),
        ("verified", ""),
        ("PASS", ""),
        ("md5=d41d8cd98f00b204", "md5=0cc175b9c0f1b6a8"),
    ];
    for (base, head) in edits {
        greens.check(&format!("`{base}` becomes `{head}`"), &compared(&labeled(base, 0), &labeled(head, 3)));
    }
    greens.none(edits.len());
}

#[test]
fn labels_that_measure_or_number_change_nothing() {
    for (base, head) in [
        ("fp32", "fp32"),
        ("980.5 KB/s", "1.1 MB/s"),
        ("gcc 13.2 a91c3f2d", "gcc 14.1 b02d4e3c"),
        ("1234567", "7654321"),
        ("g1a2b3c4d 8 threads", "g9f8e7d6c 8 threads"),
        ("v3.1.0 64 tokens /tmp/b1/m 3 layers", "v3.1.1 64 tokens /tmp/b2/m 3 layers"),
        ("iter=12 thread 3", "iter=15 thread 4"),
        ("occupancy 50%", "occupancy 62%"),
        ("45% of peak, 12.4x", "48% of peak, 12.9x"),
        ("gcc-13.2.0 run-3 build 12", "gcc-14.1.0 run-4 build 13"),
        ("branch=main 3f2a91c-dirty", "branch=faster-sort a91c3f2"),
        ("v1.2-3-gabc1234 tile-64x64", "v1.2-4-gdef4567-dirty tile-32x32"),
        ("vectorized by 8, 12ms", "vectorized by 16, 11ms"),
        ("3f2a91c v1.2.3 /tmp/a", "a91c3f2 v1.2.4 /tmp/b"),
        ("0x7ffe01", "0x7ffe02"),
        ("100/100 correct", "100/100 correct"),
        ("errors: 0", "errors: 0"),
        ("accuracy 0.93", "accuracy 0.931"),
        ("verified 12 ms", "verified 11 ms"),
        ("accuracy=0.93, passed", "accuracy=93%, PASSED"),
        ("1000 images, 12 ms", "1000 images, 13 ms"),
        ("pass 3 of 4: fast path", "pass 3 of 4: fast path"),
        ("block=512x1 vector width 8", "block=1024x1 vector width 16"),
        ("batch 12 ms, md5 12 ms", "batch 13 ms, md5 13 ms"),
        ("exact_match=false errors=abs", "exact_match=false errors=abs"),
        ("mismatches: 0", "mismatches: 0"),
        ("tile=32x64 unroll: 4", "tile=64x64 unroll: 8"),
    ] {
        let outcome = compared(&labeled(base, 0), &labeled(head, 3));
        assert_eq!(outcome.code, Some(0), "`{base}`, `{head}`: {}", outcome.said());
    }
    // A new label is a new fact, but no problem.
    for label in ["fp32", "mismatches: 0, processed 0 errors", "tile=64x64 status=ok"] {
        let outcome = compared(&labeled("", 0), &labeled(label, 3));
        let found = outcome.code == Some(11) && !outcome.stdout.contains("reported-problem");
        assert!(found && outcome.stdout.contains("a new label says"), "`{label}`: {}", outcome.said());
    }
}

/// The lines of a run of `go test -bench`; `seed` varies the times.
fn go_run(package: &str, seed: usize) -> String {
    let row = |at: usize| {
        format!("BenchmarkA-8 \t 100 \t {:.1} ns/op\n", 100.0 + 0.1 * ((at * 7 + seed) % 11) as f64)
    };
    let rows: String = (0..6).map(row).collect();
    format!("goos: linux\ngoarch: amd64\npkg: {package}\n{rows}PASS\nok  \t{package}\t1.234s\n")
}

/// The same text inside the events of `go test -json`, which runs each package once.
fn go_events(text: &str, package: &str, ended: bool) -> String {
    let event = |line: &str| {
        serde_json::json!({"Action": "output", "Package": package, "Output": line}).to_string() + "\n"
    };
    let start = serde_json::json!({"Action": "start", "Package": package}).to_string() + "\n";
    let end = serde_json::json!({"Action": "pass", "Package": package, "Elapsed": 1.5}).to_string() + "\n";
    let output: String = text.split_inclusive('\n').map(event).collect();
    start + &output + if ended { end.as_str() } else { "" }
}

#[test]
fn no_second_run_that_was_cut_is_green_in_a_log_of_go() {
    let [base, head] = [0, 3].map(|seed| go_run("a", seed) + &go_run("a", seed + 1));
    compared(&base, &head).expect_code(0);
    let packages = go_run("a", 3) + &go_run("b", 4);
    compared(&(go_run("a", 0) + &go_run("b", 1)), &packages).expect_code(0);
    let second = go_run("a", 4);
    let lines: Vec<&str> = second.split_inclusive('\n').collect();
    let mut greens = Greens::default();
    for kept in [1, 2, 3, 4, 7, 9] {
        let head = go_run("a", 3) + &lines[..kept].concat();
        greens.check(&format!("{kept} lines of the second run"), &compared(&base, &head));
    }
    let rows = lines[3..6].concat();
    greens.check("rows without a header", &compared(&base, &(go_run("a", 3) + &rows)));
    let packages = go_run("a", 3) + lines[0];
    greens.check("the header of a package", &compared(&(go_run("a", 0) + &go_run("b", 1)), &packages));
    greens.none(8);
}

#[test]
fn no_events_of_go_with_a_cut_run_or_a_problem_are_green() {
    let events = |seed: usize| go_events(&go_run("a", seed), "a", true);
    let build =
        "{\"ImportPath\": \"a\", \"Action\": \"build-output\", \"Output\": \"ld: warning: -no_pie\\n\"}\n";
    let [base, head] = [0, 3].map(|seed| build.to_owned() + &events(seed) + &events(seed + 1));
    compared(&base, &head).expect_code(0);
    let mut greens = Greens::default();
    for kept in [0, 4, 8] {
        let cut: String = go_run("a", 4).split_inclusive('\n').take(kept).collect();
        let head = events(3) + &go_events(&cut, "a", false);
        greens.check(&format!("{kept} lines of the second run"), &compared(&base, &head));
    }
    for line in ["verification: FAILED", "2026/11/28 10:00:00 ERROR validation failed", "WARNING: DATA RACE"]
    {
        let text = go_run("a", 3).replacen("goarch", &format!("{line}\ngoarch"), 1);
        greens.check(line, &compared(&events(0), &go_events(&text, "a", true)));
    }
    let failed = build.replace("build-output", "build-fail");
    greens.check("a failed build", &compared(&base, &(failed + &events(3) + &events(4))));
    greens.none(7);
}

/// Fields at the top of a document that say that the run failed or was cut.
const AGAINST: [&str; 9] = [
    "\"error\": \"no device\"",
    "\"errors\": [\"no device\"]",
    "\"exit_code\": 1",
    "\"status\": \"failed\"",
    "\"success\": false",
    "\"timed_out\": true",
    "\"interrupted\": true",
    "\"completed\": false",
    "\"notes\": \"diverged\"",
];
const FINE: &str = "\"error\": null, \"errors\": [], \"exit_code\": 0, \"status\": \"ok\", \"success\": true, \
    \"timed_out\": false, \"timeout\": 30, \"completed\": true, \"notes\": \"no errors\"";

#[test]
fn no_document_that_says_that_the_run_failed_or_was_cut_is_green() {
    let times = "[1.0002, 1.0001, 1.0006, 1.0003]";
    let row = |time: &&str| {
        format!("{{\"name\": \"a\", \"iterations\": 10, \"real_time\": {time}, \"time_unit\": \"ms\"}}")
    };
    let rows = ["1.0002", "1.0001", "1.0006"].iter().map(row).collect::<Vec<_>>().join(", ");
    let google = format!("{{\"context\": {{\"num_cpus\": 8}}, \"benchmarks\": [{rows}]}}");
    let documents = [
        ("Google Benchmark", google.replacen('{', "{FIELDS, ", 1)),
        ("its context", google.replacen("\"context\": {", "\"context\": {FIELDS, ", 1)),
        (
            "hyperfine",
            format!("{{FIELDS, \"results\": [{{\"command\": \"./a\", \"mean\": 1.0003, \"times\": {times}, \
                     \"exit_codes\": [0, 0, 0, 0]}}]}}"),
        ),
        (
            "a row of hyperfine",
            format!("{{\"results\": [{{\"command\": \"./a\", FIELDS, \"mean\": 1.0003, \"times\": {times}, \
                     \"exit_codes\": [0, 0, 0, 0]}}]}}"),
        ),
        (
            "pytest-benchmark",
            format!("{{\"machine_info\": {{}}, FIELDS, \"benchmarks\": [{{\"name\": \"a\", \"options\": \
                     {{\"timer\": \"perf_counter\"}}, \"stats\": {{\"rounds\": 4, \"mean\": 1.0003, \"data\": {times}}}}}]}}"),
        ),
        (
            "JMH",
            "[{\"jmhVersion\": \"1.37\", \"benchmark\": \"a\", \"mode\": \"avgt\", \"threads\": 1, FIELDS, \"forks\": 2, \
             \"measurementIterations\": 2, \"primaryMetric\": {\"score\": 1.0003, \"scoreUnit\": \"us/op\", \
             \"rawData\": [[1.0002, 1.0001], [1.0006, 1.0003]]}}]"
                .to_owned(),
        ),
        (
            "criterion",
            "{\"sampling_mode\": \"Flat\", FIELDS, \"iters\": [10.0, 10.0, 10.0, 10.0], \
             \"times\": [1000.25, 1000.125, 1000.5, 1000.75]}"
                .to_owned(),
        ),
        (
            "asv",
            "{\"version\": 2, \"commit_hash\": \"1\", \"env_name\": \"e\", FIELDS, \"result_columns\": [\"result\", \"params\", \
             \"samples\"], \"results\": {\"t.time_a\": [[1.00025], [], [[1.0002, 1.0001, 1.0006, 1.0003]]]}}"
                .to_owned(),
        ),
    ];
    for (tool, document) in documents {
        assert!(document.contains("FIELDS"), "{document}");
        let honest = document.replace("FIELDS", FINE);
        let edits = AGAINST.map(|against| (FINE, against));
        none_is_green(tool, &honest, &edits);
    }
}

/// The settings with which a tool warms a program up are part of the work that it measures.
#[test]
fn no_side_that_is_warmed_up_differently_is_green() {
    let jmh = "[{\"jmhVersion\": \"1.37\", \"benchmark\": \"a\", \"mode\": \"avgt\", \"threads\": 1, \"forks\": 1, \
        \"warmupIterations\": 5, \"warmupTime\": \"10 s\", \"warmupBatchSize\": 1, \"measurementIterations\": 4, \
        \"measurementTime\": \"10 s\", \"primaryMetric\": {\"score\": 1.0003, \"scoreUnit\": \"us/op\", \
        \"rawData\": [[1.0002, 1.0001, 1.0006, 1.0003]]}}]";
    let edits = [
        ("\"forks\": 1", "\"forks\": 0"),
        ("\"warmupIterations\": 5", "\"warmupIterations\": 0"),
        ("\"warmupTime\": \"10 s\"", "\"warmupTime\": \"1 ms\""),
        ("\"warmupBatchSize\": 1", "\"warmupBatchSize\": 100"),
        ("\"warmupIterations\": 5, ", ""),
        ("\"measurementTime\": \"10 s\"", "\"measurementTime\": \"10 min\""),
        ("\"threads\": 1", "\"threads\": 4"),
        ("avgt", "sample"),
    ];
    none_is_green("JMH", jmh, &edits);
    let pytest = "{\"machine_info\": {}, \"benchmarks\": [{\"name\": \"a\", \"options\": {\"timer\": \"perf_counter\", \
        \"warmup\": false}, \"stats\": {\"rounds\": 4, \"mean\": 1.0003, \"data\": [1.0002, 1.0001, 1.0006, 1.0003]}}]}";
    none_is_green(
        "pytest-benchmark",
        pytest,
        &[("\"warmup\": false", "\"warmup\": true"), (", \"warmup\": false", "")],
    );
}

#[test]
fn no_noise_of_nvbench_that_is_not_a_number_is_green() {
    let nvbench = "{\"devices\": [{\"id\": 0, \"name\": \"g\", \"ecc_state\": false}], \"benchmarks\": [{\"name\": \"a\", \"states\": [{\"device\": 0, \
        \"axis_values\": [], \"is_skipped\": false, \"summaries\": [{\"tag\": \"nv/cold/sample_size\", \"data\": [{\"name\": \"value\", \
        \"value\": \"1024\"}]}, {\"tag\": \"nv/cold/time/gpu/mean\", \"data\": [{\"name\": \"value\", \"value\": \"1.25e-05\"}]}, \
        {\"tag\": \"nv/cold/time/gpu/stdev/relative\", \"data\": [{\"name\": \"value\", \"value\": \"0.013\"}]}]}]}]}";
    let mut greens = Greens::default();
    for noise in ["\"inf\"", "null", "\"nan\""] {
        let unknown = nvbench.replace("\"0.013\"", noise);
        greens.check(noise, &compared(nvbench, &unknown));
        greens.check(noise, &compared(&unknown, &format!("{unknown}\n")));
    }
    greens.none(6);
}

/// Returns a latency.csv with another column, and a Google Benchmark file of which the last row has other fields.
fn with_column(name: &str, value: &str, seed: usize) -> String {
    let row = |at: usize| {
        let time = 1.0 + 1e-4 * ((at * 7 + seed) % 11) as f64;
        format!("2026-05-{:02},m,cpu,{time:.4},{value}\n", at + 1)
    };
    format!("timestamp,model,device,time,{name}\n{}", (0..12).map(row).collect::<String>())
}

fn with_fields(fields: &Value, seed: usize) -> String {
    let row = |at: usize| {
        let time = 1.0 + 1e-4 * ((at * 7 + seed) % 11) as f64;
        let mut row = json!({"name": "a", "run_name": "a", "run_type": "iteration", "repetitions": 12, "repetition_index": at,
            "threads": 1, "iterations": 10, "real_time": time, "cpu_time": time, "time_unit": "ms"});
        if at == 11 {
            row.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        }
        row
    };
    json!({"context": {"num_cpus": 8}, "benchmarks": (0..12).map(row).collect::<Vec<_>>()}).to_string()
}

#[test]
fn no_head_that_reports_a_problem_which_base_does_not_is_green() {
    let mut greens = Greens::default();
    for (name, fine, bad) in [
        ("notes", "", "diverged"),
        ("notes", "", "[FAILED] no device"),
        ("notes", "no errors", "two errors"),
        ("comment", "", "CUDA error: an illegal memory access"),
        ("log", "/tmp/log", "run.sh: line 3:  4711 Killed   ./bench"),
        ("loss", "0.5", "nan"),
        ("loss", "0.5", "-inf"),
        ("loss", "0.5", ""),
        ("loss", "0.5", "diverged"),
        ("accuracy", "76.1%", "nan%"),
        ("latency_std", "0.1", "NaN"),
        ("memory_mb", "100", "failed"),
    ] {
        let base = with_column(name, fine, 0);
        compared(&base, &with_column(name, fine, 3)).expect_code(0);
        greens.check(&format!("{name}: {bad}"), &compared(&base, &with_column(name, bad, 3)));
    }
    let nan = || Value::Null;
    for (fine, bad) in [
        (json!({}), json!({"label": "FAILED"})),
        (json!({"label": "errors: 0"}), json!({"label": "skipped: no GPU"})),
        (json!({"label": "tile 4"}), json!({"label": "2 errors"})),
        (json!({}), json!({"status": "failed"})),
        (json!({"correct": true}), json!({"correct": false})),
        (json!({"errors": 0}), json!({"errors": 3})),
        (json!({}), json!({"error_count": 0.25})),
        (json!({"nan_count": 0}), json!({"nan_count": 1})),
        (json!({"failed_requests": 0}), json!({"failed_requests": 1})),
        (json!({"loss": 0.5}), json!({"loss": nan()})),
    ] {
        let base = with_fields(&fine, 0);
        compared(&base, &with_fields(&fine, 3)).expect_code(0);
        greens.check(&bad.to_string(), &compared(&base, &with_fields(&bad, 3)));
    }
    greens.none(22);
}

#[test]
fn no_problem_in_a_file_of_another_tool_is_green() {
    let go = "goos: linux\npkg: a\nBenchmarkA-8 \t 100 \t 100.1 ns/op\t 0.5 loss\t 0 errors/op\n\
        BenchmarkA-8 \t 100 \t 100.2 ns/op\t 0.5 loss\t 0 errors/op\n--- BENCH: BenchmarkA-8\n    a_test.go:7: seed 3\nPASS\n";
    let edits = [("0.5 loss", "NaN loss"), ("0 errors", "2 errors"), ("seed 3", "diverged at step 3")];
    none_is_green("Go", go, &edits);
    let hyperfine = r#"{"results": [{"command": "./a", "mean": 1.0003, "times": [1.0002, 1.0001, 1.0006, 1.0003],
        "exit_codes": [0, 0, 0, 0]}]}"#;
    let edits = [("[0, 0, 0, 0]", "[0, null, 0, 0]"), ("[0, 0, 0, 0]", "[]"), ("exit_codes", "exit_status")];
    none_is_green("hyperfine", hyperfine, &edits);
    let jmh = r#"[{"jmhVersion": "1.37", "benchmark": "a", "mode": "avgt", "threads": 1, "forks": 2, "measurementIterations": 2,
        "primaryMetric": {"score": 1.0003, "scoreUnit": "us/op", "rawData": [[1.0002, 1.0001], [1.0006, 1.0003]]},
        "secondaryMetrics": {"errors": {"score": 0, "scoreUnit": "\u0023", "rawData": [[0, 0], [0, 0]]}}}]"#;
    none_is_green("JMH", jmh, &[("[[0, 0], [0, 0]]", "[[0, 0], [3, 0]]")]);
    let pytest = r#"{"machine_info": {}, "benchmarks": [{"name": "a", "options": {"timer": "perf_counter"},
        "extra_info": {"losses": 3, "loss": [0.5, 0.25], "max_abs_err": 1.5e-7, "error": null},
        "stats": {"rounds": 4, "mean": 1.0003, "data": [1.0002, 1.0001, 1.0006, 1.0003]}}]}"#;
    none_is_green("pytest-benchmark", pytest, &[("0.25]", "NaN]"), ("1.5e-7", "NaN"), ("1.5e-7", "null")]);
    let compared = |format: &str, base: &str, head: &str| {
        let world = World::new();
        world.write("base", base);
        world.write("head", head);
        world.run([
            "compare",
            "base",
            "head",
            "--format-in",
            format,
            "--between-cv",
            "0.1%",
            "--fail-on",
            FAIL_ON,
        ])
    };
    let mut greens = Greens::default();
    let list = |range: &str, extra: &str| {
        format!(r#"[{{"name": "a", "unit": "ms", "value": 1.0002, "range": "{range}", "extra": "{extra}"}}]"#)
    };
    let bencher = |errors: u32| {
        format!(r#"{{"a": {{"latency": {{"value": 1000.2}}, "errors": {{"value": {errors}}}}}}}"#)
    };
    let honest = list("± 1", "10 runs");
    compared("custom-smaller-is-better", &honest, &format!("{honest}\n")).expect_code(0);
    for head in
        [list("± nan", "10 runs"), list("± 1", "10 runs, 2 failed"), list("± 1", "diverged at step 3")]
    {
        greens.check(&head, &compared("custom-smaller-is-better", &honest, &head));
    }
    compared("bencher-json", &bencher(0), &format!("{}\n", bencher(0))).expect_code(0);
    greens.check("Bencher", &compared("bencher-json", &bencher(0), &bencher(3)));
    greens.none(4);
}

#[test]
fn a_problem_that_both_sides_report_is_no_difference() {
    for (name, base, head) in [
        ("notes", "the path of an error", "the path of an error"),
        ("notes", "0 failed", "errors: 0"),
        ("notes", "timeout=30", "timeout=30 error: 1.5e-7"),
        ("branch", "main", "fix-crash"),
        ("host", "a", "nan"),
        ("loss", "nan", "nan"),
        ("loss", "nan", "0.5"),
        ("latency_std", "", "0.1"),
    ] {
        compared(&with_column(name, base, 0), &with_column(name, head, 3)).expect_code(0);
    }
    for (base, head) in [
        (json!({"label": "error path"}), json!({"label": "error path"})),
        (json!({"errors": 3}), json!({"errors": 4})),
        (json!({"errors": 3}), json!({"errors": 0})),
        (json!({"max_error": 0}), json!({"max_error": 1e-7})),
        (json!({"loss": Value::Null}), json!({"loss": Value::Null})),
    ] {
        compared(&with_fields(&base, 0), &with_fields(&head, 3)).expect_code(0);
    }
}
