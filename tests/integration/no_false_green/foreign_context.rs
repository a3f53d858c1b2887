//! Facts that a file of another tool states about all of its rows.

use super::foreign::{compared, none_is_green};

#[test]
fn no_configuration_line_of_a_go_benchmark_that_differs_is_green() {
    let go = "goos: linux\ngoarch: amd64\npkg: x\ncpu: E\nbackend: cuda\nsize: 1000\ncommit: a\n\
        BenchmarkA-2 \t1000\t100.2 ns/op\nBenchmarkA-2 \t1000\t100.1 ns/op\nBenchmarkA-2 \t1000\t100.6 ns/op\n\
        PASS\nok  \tx\t1.0s\n";
    let edits = [
        ("backend: cuda\n", "backend: cpu\n"),
        ("size: 1000\n", "size: 10\n"),
        ("size: 1000\n", ""),
        ("1000\t100.6 ns/op", "1000\t1.2 MB/s"),
    ];
    none_is_green("Go's text", go, &edits);
}

#[test]
fn no_benchmark_of_go_that_prints_between_its_name_and_its_values_is_lost() {
    let row = |name: &str, time: &str| format!("{name}-2   \t   14300\t       {time} ns/op\n");
    let rows = |name: &str| ["935.5", "936.1", "934.9"].map(|time| row(name, time)).concat();
    let log = |rows_of_b: &str| {
        format!("goos: linux\npkg: x\n{}{rows_of_b}PASS\nok  \tx\t1.0s\n", rows("BenchmarkA"))
    };
    let honest = log(&rows("BenchmarkB"));
    none_is_green(
        "Go's text",
        &honest,
        &[
            ("BenchmarkB-2   \t   14300", "BenchmarkB-2   \t\n--- starting with N=1\n   14300"),
            ("BenchmarkB-2   \t   14300", "BenchmarkB-2\n--- starting with N=1\n   14300"),
            ("BenchmarkB-2   \t   14300", "BenchmarkB-2   \t\nN=1    14300"),
            ("BenchmarkB-2   \t   14300", "BenchmarkB-2   \tN=1\n   14300"),
        ],
    );
    let printed = honest.replace("BenchmarkB-2   \t", "BenchmarkB-2   \t\n--- starting with N=1\n");
    compared(&printed, &printed.replace("93", "94")).expect_code(21);
    // With `-v`, the name is printed alone before the row, also that of a benchmark of which only some parts run.
    let verbose = log(&format!("BenchmarkB\n\n--- starting with N=1\n{}", rows("BenchmarkB")));
    compared(&verbose, &format!("{verbose}\n")).expect_code(0);
    let in_parts = log(&format!("BenchmarkB\nBenchmarkB/n=1\n{}BenchmarkC\n", rows("BenchmarkB/n=1")));
    compared(&in_parts, &format!("{in_parts}\n")).expect_code(0);
}

#[test]
fn no_context_of_google_benchmark_that_differs_is_green() {
    let row = |at: usize, time: f64| {
        format!(
            "{{\"name\": \"BM\", \"run_name\": \"BM\", \"run_type\": \"iteration\", \"repetitions\": 3, \"repetition_index\": {at}, \
             \"iterations\": 1000, \"real_time\": {time}, \"cpu_time\": {time}, \"time_unit\": \"us\"}}"
        )
    };
    let rows = [row(0, 100.2), row(1, 100.1), row(2, 100.6)].join(", ");
    let file = format!(
        "{{\"context\": {{\"num_cpus\": 2, \"backend\": \"cuda\", \"size\": \"1000\"}}, \"benchmarks\": [{rows}]}}"
    );
    let edits = [("\"cuda\"", "\"cpu\""), ("\"1000\"", "\"10\""), (", \"size\": \"1000\"", "")];
    none_is_green("Google Benchmark's context", &file, &edits);
}

/// A file of Google Benchmark whose context states this, and whose times vary with the seed.
fn in_context(key: &str, value: &str, seed: u32) -> String {
    let row = |at: u32| {
        let time = 100.0 + 0.01 * f64::from((at * 7 + seed) % 11);
        serde_json::json!({"name": "BM", "run_name": "BM", "run_type": "iteration", "repetitions": 12, "repetition_index": at,
            "iterations": 1000, "real_time": time, "cpu_time": time, "time_unit": "us"})
    };
    let rows: Vec<_> = (0..12).map(row).collect();
    let mut file = serde_json::json!({"context": {"num_cpus": 2}, "benchmarks": rows});
    file["context"][key] = value.into();
    file.to_string()
}

#[test]
fn no_command_data_or_mode_in_a_context_that_differs_is_green() {
    for (key, base, head) in [
        ("cmdline", "./bench --batch=32", "./bench --batch=1"),
        ("argv", "[\"./bench\",\"--batch=32\"]", "[\"./bench\", \"--batch=1\"]"),
        ("model_path", "/m/llama-70b.gguf", "/m/llama-1b.gguf"),
        ("input", "/data/big.npy", "/data/small.npy"),
        ("build", "debug", "release"),
        ("run", "full", "smoke"),
        ("note", "ok", "fell back to CPU"),
        ("max_iter", "100", "50"),
        ("N", "1000", "500"),
        ("file_size", "1000000", "1000"),
        ("checksum", "0011aabbccdd", "0011aabbccde"),
        ("batch", "[8, 128]", "[8, 64]"),
        ("backend", "onnxruntime 1.17.0 CUDA", "onnxruntime 1.17.0 CPU"),
        ("cmdline", "b.py --out-channels=512", "b.py --out-channels=8"),
        ("checkpoint", "opus-20240229", "haiku-20240307"),
        ("executor_backend", "cuda", "cpu"),
        ("label", "cuda", "cpu"),
        ("attention_head_checksum", "deadbee1", "cafe4bad"),
        ("input_file", "full.csv", "sample.csv"),
        ("data_file", "/a/full.csv", "/b/sample.csv"),
        ("dataset_url", "s3://b/full?X-Sig=1", "s3://b/tiny?X-Sig=2"),
        ("file", "full.txt", "sample.txt"),
        ("timeout", "false", "true"),
        ("comment", "ran on gpu", "ran on CPU"),
        ("torch_version", "2.7.1+cu121", "2.7.1+cpu"),
    ] {
        let outcome = compared(&in_context(key, base, 0), &in_context(key, head, 3));
        assert!(matches!(outcome.code, Some(10 | 11)), "{key} {base} {head}: {}", outcome.said());
    }
}

#[test]
fn a_context_that_tells_runs_or_revisions_apart_changes_nothing() {
    for (key, base, head) in [
        (
            "GITHUB_SHA",
            "0123456789abcdef0123456789abcdef01234567",
            "fedcba9876543210fedcba9876543210fedcba98",
        ),
        ("GITHUB_RUN_ID", "123", "124"),
        ("ref", "refs/heads/main", "refs/pull/3/merge"),
        ("PR", "12", "13"),
        ("tag", "nightly-20261129", "nightly-20261130"),
        ("describe", "v1-3-gabcdef1", "v1-4-gdefabc2-dirty"),
        ("dirty", "false", "true"),
        ("build_time", "12:00", "13:00"),
        ("compiled", "Nov 29 2026", "Nov 30 2026"),
        ("cmdline", "./base/bench --benchmark_out=a.json", "./head/bench --benchmark_out=b.json"),
        ("output", "/tmp/a/out.bin", "/tmp/b/out.bin"),
        ("lib", "fmt 10.1.0", "fmt 10.1.1"),
        ("TRAVIS_BUILD_NUMBER", "1", "2"),
        ("mem_free", "12345678 kB", "12300000 kB"),
        ("side", "base", "head"),
        ("input_file", "/tmp/base/full.csv", "/tmp/head/full.csv"),
        ("log_file", "a.log", "b.log"),
        ("file", "a.json", "b.json"),
        ("torch_version", "2.7.1+cu121", "2.7.2+cu121"),
    ] {
        let outcome = compared(&in_context(key, base, 0), &in_context(key, head, 3));
        assert_eq!(outcome.code, Some(0), "{key} {base} {head}: {}", outcome.said());
    }
}

#[test]
fn no_text_around_a_table_that_differs_is_green() {
    let rows = |run: u32| format!("| eager | 1.00{run}2 | 0.0001 |\n");
    let table = format!(
        "# Results\n\n## resnet50 on cuda\n\naccuracy: 0.93, dtype f32\n\n| backend | latency (ms) | stddev (ms) |\n\
         |---|---|---|\n{}",
        rows(0)
    );
    let edits = [("resnet50", "resnet18"), ("accuracy: 0.93", "accuracy: 0.41"), ("dtype f32", "dtype f16")];
    for (from, to) in edits {
        let head = table.replace(from, to).replace("1.0002", "1.0003");
        let outcome = compared(&table, &head);
        assert!(!matches!(outcome.code, Some(0)), "{from} {to}: {}", outcome.said());
        assert!(
            ["workload-changed", "reported-problem", "fact-changed", "missing"]
                .iter()
                .any(|it| outcome.stdout.contains(it)),
            "{from} {to}: {}",
            outcome.said()
        );
    }
}

#[test]
fn no_header_of_a_table_or_log_that_states_another_machine_or_build_is_green() {
    let console = "Run on (8 X 3000 MHz CPU s)\nCPU Caches:\n  L1 Data 32 KiB (x8)\n  L3 Unified 16384 KiB (x1)\n\
        Benchmark        Time       CPU   Iterations\n\
        BM_a/repeats:3    100.1 us    100.1 us    700\nBM_a/repeats:3    100.2 us    100.2 us    700\n\
        BM_a/repeats:3    100.3 us    100.3 us    700\n";
    none_is_green("the console", console, &[("L1 Data 32 KiB", "L1 Data 48 KiB"), ("16384 KiB", "8192 KiB")]);
    let cargo = "    Finished `bench` profile [optimized] target(s) in 0.05s\n     Running benches/a.rs\n\n\
        running 1 test\ntest sum ... bench:       1,148.71 ns/iter (+/- 110.41)\n\n\
        test result: ok. 0 passed; 0 failed; 0 ignored; 1 measured; 0 filtered out\n";
    let outcome =
        compared(cargo, &cargo.replace("[optimized]", "[unoptimized + debuginfo]").replace("8.71", "8.72"));
    assert!(outcome.code != Some(0) && outcome.stdout.contains("cargo-profile"), "{}", outcome.said());
}

#[test]
fn no_word_about_a_result_that_differs_is_green() {
    let csv = "model,device,time,accuracy\nm,cpu,1.0002,pass\nm,cpu,1.0003,pass\nm,cpu,1.0001,pass\n";
    let words = ["eager_two_runs_differ", "not ok", "differs", "xfail", "unverified", "-"];
    let edits: Vec<(&str, String)> =
        words.iter().map(|word| ("1.0003,pass", format!("1.0003,{word}"))).collect();
    let edits: Vec<(&str, &str)> = edits.iter().map(|(from, to)| (*from, to.as_str())).collect();
    none_is_green("a column of verdicts", csv, &edits);
    let line = "{\"model\": {\"model_name\": \"m\"}, \"experiment\": {\"accelerator\": \"cuda\"}, \"iterations_per_run\": 1, \
        \"metrics\": {\"total_time\": [9, 9, 9, 1.0002, 1.0001, 1.0004], \"accuracy\": \"pass\", \"max_diff\": 0.5}}\n";
    let edits =
        [("\"pass\"", "\"fail_accuracy\""), ("\"pass\"", "\"skipped\""), ("0.5", "NaN"), ("0.5", "null")];
    none_is_green("metrics in words", line, &edits);
    let pytest = "{\"machine_info\": {\"gpu\": \"H100\", \"processor\": \"x\"}, \"benchmarks\": [{\"name\": \"a\", \"params\": {\"n\": 1000}, \
        \"options\": {\"timer\": \"perf_counter\"}, \"stats\": {\"rounds\": 3, \"data\": [1.0002, 1.0001, 1.0006]}}]}";
    none_is_green("pytest-benchmark", pytest, &[("\"H100\"", "\"A100\""), ("1000", "10")]);
}
