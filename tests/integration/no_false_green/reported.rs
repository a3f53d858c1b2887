//! Lines of logs and labels that state a problem, or another experiment.

use super::Greens;
use super::foreign::{compared, none_is_green};

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
        ("4096", "8192"),
        ("iter=12 thread 3", "iter=15 thread 4"),
        ("html (22.31 %)", "html (22.35 %)"),
        ("3f2a91c v1.2.3 /tmp/a", "a91c3f2 v1.2.4 /tmp/b"),
        ("0x7ffe01", "0x7ffe02"),
        ("100/100 correct", "100/100 correct"),
        ("errors: 0", "errors: 0"),
        ("accuracy 0.93", "accuracy 0.931"),
        ("fp32", ""),
        ("", "fp32"),
    ] {
        let outcome = compared(&labeled(base, 0), &labeled(head, 3));
        assert_eq!(outcome.code, Some(0), "`{base}`, `{head}`: {}", outcome.said());
    }
}
