//! Results of other tools given to `compare` that lost, contradict or hide something.

use serde_json::{Value, json};

use crate::harness::{Outcome, World};

use super::{FAIL_ON, Greens};

pub(super) fn compared(base: &str, head: &str) -> Outcome {
    let world = World::new();
    world.write("base", base);
    world.write("head", head);
    world.run(["compare", "base", "head", "--between-cv", "0.1%", "--fail-on", FAIL_ON])
}

/// Compares an honest file with itself, which passes (or is inconclusive, if the file has one value per
/// benchmark), and with each edit of the file, which must do neither.
pub(super) fn none_is_green(tool: &str, honest: &str, edits: &[(&str, &str)]) {
    let honestly = compared(honest, &format!("{honest}\n"));
    assert!(matches!(honestly.code, Some(0 | 11)), "{tool}: {}", honestly.said());
    let mut greens = Greens::default();
    for (from, to) in edits {
        assert!(honest.contains(from), "{tool}: {from}");
        let mut outcome = compared(honest, &honest.replacen(from, to, 1));
        outcome.code = outcome.code.filter(|code| Some(*code) != honestly.code);
        greens.check(&format!("{tool}: `{from}` becomes `{to}`"), &outcome);
    }
    greens.none(edits.len());
}

const CONSOLE: &str = "Running ./bench\nBenchmark        Time       CPU   Iterations\n\
    BM_a/repeats:3    100.1 us    100.1 us    700\nBM_a/repeats:3    100.2 us    100.2 us    700\n\
    BM_a/repeats:3    100.3 us    100.3 us    700\n";

const GO: &str = "goos: linux\npkg: a\nBenchmarkA-8 \t 100 \t 100.1 ns/op\nBenchmarkA-8 \t 100 \t 100.2 ns/op\n\
    BenchmarkA-8 \t 100 \t 100.3 ns/op\nPASS\n";

#[test]
fn no_log_that_reports_a_crash_is_green() {
    let lines = [
        "timeout: sending signal TERM to command 'bench'",
        "Command terminated by signal 11",
        "Process completed with exit code 139.",
        "make: *** [Makefile:2: bench] Error 1",
        "[1]+  Segmentation fault      (core dumped) ./bench",
        "[1]  + 4711 killed     ./bench",
        "CUDA error 700: an illegal memory access was encountered",
        "HIP error: hipErrorIllegalAddress",
        "Memory access fault by GPU node-1 on address 0x7f. Reason: Unknown.",
        "LLVM ERROR: out of memory",
        "iree/hal/drivers/hip/event_semaphore.c:675: ABORTED; the semaphore was aborted",
        "\u{1b}[31mSegmentation fault\u{1b}[0m",
    ];
    for (tool, log) in [("Google Benchmark", CONSOLE), ("Go", GO)] {
        let first = log.split_inclusive('\n').next().unwrap();
        let last = log.split_inclusive('\n').next_back().unwrap();
        let before = lines.map(|line| format!("{line}\n{first}"));
        let after = lines.map(|line| format!("{last}{line}\n"));
        let edits = before.iter().map(|to| (first, to.as_str()));
        let edits: Vec<_> = edits.chain(after.iter().map(|to| (last, to.as_str()))).collect();
        none_is_green(tool, log, &edits);
    }
}

const GOOGLE: &str =
    r#"{"context": {"num_cpus": 64, "library_build_type": "release"}, "benchmarks": [ROWS]}"#;

fn google(rows: &[&str]) -> String {
    GOOGLE.replace("ROWS", &rows.join(","))
}

/// Three repetitions of one benchmark; the last one also has the fields in `extra`.
fn row(name: &str, time: &str, extra: &str) -> String {
    let repetition = |index: usize| {
        let extra = if index == 2 { extra } else { "" };
        format!(
            r#"{{"name": "{name}", "run_name": "{name}", "run_type": "iteration", "repetitions": 3, "repetition_index": {index}, "threads": 1, "iterations": 10, "real_time": {time}, "cpu_time": {time}, "time_unit": "ms"{extra}}}"#
        )
    };
    [0, 1, 2].map(repetition).join(",")
}

#[test]
fn no_pair_of_foreign_files_that_lacks_something_is_green() {
    let honest = google(&[&row("BM_a", "10.013", ""), &row("BM_b", "20.027", "")]);
    let cases: &[(&str, String)] = &[
        ("head is empty", String::new()),
        ("head is white space", " \n".to_owned()),
        ("head is an empty object", "{}".to_owned()),
        ("head has no row", google(&[])),
        ("head lacks a row", google(&[&row("BM_a", "10.013", "")])),
        (
            "head does not state its machine",
            google(&[&row("BM_a", "10.013", ""), &row("BM_b", "20.027", "")])
                .replace("\"num_cpus\": 64, ", ""),
        ),
        ("head's rows have other names", google(&[&row("BM_c", "10.013", ""), &row("BM_d", "20.027", "")])),
        (
            "a row failed",
            google(&[
                &row("BM_a", "10.013", ""),
                &row("BM_b", "20.027", r#", "error_occurred": true, "error_message": "x""#),
            ]),
        ),
        (
            "a row was skipped",
            google(&[
                &row("BM_a", "10.013", ""),
                &row("BM_b", "20.027", r#", "skipped": true, "skip_message": "x""#),
            ]),
        ),
        ("a row takes no time", google(&[&row("BM_a", "10.013", ""), &row("BM_b", "0.0", "")])),
        ("a row takes negative time", google(&[&row("BM_a", "10.013", ""), &row("BM_b", "-20.0", "")])),
        ("a row's time is not a number", google(&[&row("BM_a", "10.013", ""), &row("BM_b", "NaN", "")])),
        ("a row's time is infinite", google(&[&row("BM_a", "10.013", ""), &row("BM_b", "Infinity", "")])),
        ("a row's time is null", google(&[&row("BM_a", "10.013", ""), &row("BM_b", "null", "")])),
        ("a row is in another unit", honest.replacen(r#""time_unit": "ms""#, r#""time_unit": "s""#, 1)),
        ("a row is of no iterations", honest.replacen(r#""iterations": 10"#, r#""iterations": 0"#, 1)),
        ("a repetition is missing", honest.replacen(r#""repetitions": 3"#, r#""repetitions": 4"#, 1)),
        ("rows of one name have other threads", honest.replacen(r#""threads": 1"#, r#""threads": 2"#, 1)),
        (
            "two benchmarks have one name",
            google(&[&row("BM_a", "9.6", ""), &row("BM_a", "10.4", ""), &row("BM_b", "20.027", "")]),
        ),
        ("head is a picture", "\u{89}PNG\r\n".to_owned()),
    ];
    let mut greens = Greens::default();
    for (case, head) in cases {
        let world = World::new();
        world.write("base.json", &honest);
        world.write("head.json", head);
        let args = ["compare", "base.json", "head.json", "--between-cv", "0.1%", "--fail-on", FAIL_ON];
        greens.check(case, &world.run(args));
    }
    let world = World::new();
    world.write("base.json", &honest);
    world.write("head.json", &honest);
    world
        .run(["compare", "base.json", "head.json", "--between-cv", "0.1%", "--fail-on", FAIL_ON])
        .expect_code(0);
    greens.none(20);
}

/// 21 files per side. `time` returns the time of a repetition by side, file and repetition. Both sides have
/// the same noise of 0.2 %.
fn several_files(time: impl Fn(bool, usize, usize) -> f64) -> Outcome {
    let world = World::new();
    for (head, side) in [(false, "base"), (true, "head")] {
        for file in 0..21 {
            let repetition = |index: usize| {
                let place = (file * 7 + index * 13 + usize::from(head) * 5) % 17;
                // No two repetitions have exactly equal times.
                let other = 1e-7 * (file * 8 + index * 2 + usize::from(head)) as f64;
                let time = time(head, file, index) * (1.0 + other + 0.002 * (place as f64 / 17.0 - 0.5));
                format!(
                    r#"{{"name": "BM_a", "run_name": "BM_a", "run_type": "iteration", "repetitions": 4, "repetition_index": {index}, "threads": 1, "iterations": 10, "real_time": {time}, "cpu_time": {time}, "time_unit": "ms"}}"#
                )
            };
            world.write(&format!("{side}-{file}.json"), google(&[&[0, 1, 2, 3].map(repetition).join(",")]));
        }
    }
    world.run(["compare", "base-*.json", "head-*.json", "--fail-on", FAIL_ON])
}

#[test]
fn no_head_that_is_slow_in_some_of_many_files_is_green() {
    several_files(|_, _, _| 10.0).expect_code(0);
    several_files(|_, file, index| if file == 4 && index == 1 { 20.0 } else { 10.0 }).expect_code(0);
    let mut greens = Greens::default();
    let slow = |when: bool, factor: f64| if when { 10.0 * factor } else { 10.0 };
    let one_repetition = several_files(|head, _, index| slow(head && index == 1, 100.0));
    greens.check("one repetition of four takes 100 times as long in each file", &one_repetition);
    let of_some = several_files(|head, file, index| slow(head && file % 4 == 0 && index == 1, 3.0));
    greens.check("one repetition of four takes three times as long in some files", &of_some);
    let processes = several_files(|head, file, _| slow(head && file % 6 == 1, 2.0));
    greens.check("four of 21 processes take twice as long", &processes);
    let longer = |of_base: f64, of_head: f64| {
        several_files(
            move |head, file, _| {
                if file % 5 < 2 { 10.0 * if head { of_head } else { of_base } } else { 10.0 }
            },
        )
    };
    greens.check("as many processes are slow as before, and take twice as long", &longer(1.3, 2.6));
    greens.none(4);
    // Runs with several speeds in hyperfine's format: 22 files of ten runs per side.
    let modes = |of_base: f64, of_head: f64| {
        let world = World::new();
        for (side, slow) in [("base", of_base), ("head", of_head)] {
            for file in 0..22 {
                let time = |at: usize| {
                    let place = (file * 7 + at * 13 + usize::from(side == "head") * 5) % 17;
                    let noise = 1.0 + 0.004 * (place as f64 / 17.0 - 0.5) + 1e-7 * (file * 20 + at) as f64;
                    noise * if at % 10 < 7 { 1.0 } else { slow }
                };
                let times: Vec<f64> = (0..10).map(|at| time(at + 10 * usize::from(side == "head"))).collect();
                let mean = times.iter().sum::<f64>() / 10.0;
                let result = json!({"command": "a", "mean": mean, "stddev": null, "user": 0.9 * mean, "system": 0.05, "times": times, "exit_codes": vec![0; 10]});
                world.write(&format!("{side}-{file}.json"), json!({ "results": [result] }).to_string());
            }
        }
        world.run(["compare", "base-*.json", "head-*.json", "--fail-on", FAIL_ON])
    };
    modes(3.0, 3.0).expect_code(0);
    let mut greens = Greens::default();
    greens.check("three runs of ten take 12 s instead of 3", &modes(3.0, 12.0));
    greens.check("three runs of ten take 3.6 s instead of 3", &modes(3.0, 3.6));
    greens.none(2);
}

#[test]
fn no_head_that_is_slow_in_some_runs_is_green_because_a_spread_is_declared() {
    let world = World::new();
    let file = |other: f64, slow: fn(usize) -> bool| {
        let time = |at: usize| {
            let noise = other * at as f64 + 0.002 * ((at * 7 % 17) as f64 / 17.0 - 0.5);
            (if slow(at) { 2.0 } else { 1.0 }) * (1.0 + noise)
        };
        let times: Vec<f64> = (0..50).map(time).collect();
        let mean = times.iter().sum::<f64>() / 50.0;
        json!({"results": [{
            "command": "sleep", "mean": mean, "stddev": null, "user": 0.9, "system": 0.05, "times": times, "exit_codes": vec![0; 50],
        }]})
        .to_string()
    };
    world.write("base.json", file(1e-7, |_| false));
    world.write("head.json", file(2e-7, |at| at % 5 == 2));
    let compare =
        |head| world.run(["compare", "base.json", head, "--between-cv", "1%", "--fail-on", FAIL_ON]);
    let mut greens = Greens::default();
    greens.check("ten of fifty runs take twice as long", &compare("head.json"));
    greens.none(1);
    world.write("again.json", file(3e-7, |_| false));
    compare("again.json").expect_code(0);
}

#[test]
fn no_file_whose_statistics_are_not_those_of_its_samples_is_green() {
    let hyperfine = r#"{"results": [{"command": "a", "mean": 1.0003, "stddev": 0.000216, "median": 1.00025, "user": 1.0,
        "system": 0.01, "min": 1.0001, "max": 1.0006, "times": [1.0002, 1.0001, 1.0006, 1.0003],
        "exit_codes": [0, 0, 0, 0]}]}"#;
    let edits = [
        ("1.00025", "1.00055"),
        ("0.000216", "0.000516"),
        ("\"min\": 1.0001", "\"min\": 1.2"),
        ("1.0006", "1.0003"),
    ];
    none_is_green("hyperfine", hyperfine, &edits);
    let pytest = r#"{"machine_info": {}, "benchmarks": [{"name": "a", "options": {"timer": "perf_counter"}, "stats": {
        "rounds": 4, "mean": 1.0003, "stddev": 0.000216, "median": 1.00025, "min": 1.0001, "max": 1.0006, "q1": 1.00015,
        "q3": 1.00045, "total": 4.0012, "data": [1.0002, 1.0001, 1.0006, 1.0003]}}]}"#;
    let more = [("1.00015", "1.0007"), ("1.00045", "1.00001"), ("4.0012", "5.0012")];
    none_is_green("pytest-benchmark", pytest, &[&edits[..], &more].concat());
}

#[test]
fn no_file_of_a_folder_that_can_not_be_read_is_passed_over() {
    let world = World::new();
    for (side, time) in [("base", "10.001"), ("head", "10.002")] {
        for file in 0..2 {
            world
                .write(&format!("{side}/{file}.json"), google(&[&row("BM_a", &format!("{time}{file}"), "")]));
        }
        // Other files that are stored next to results.
        world.write(&format!("{side}/machine.json"), r#"{"machine": "a", "cpu": "b"}"#);
        world.write(&format!("{side}/stderr.log"), "");
        world.write(&format!("{side}/build.log"), "Linking bench\n");
        world.write(&format!("{side}/inputs.npz"), b"PK\x03\x04\0");
        world.write(&format!("{side}/weights.bin"), b"\x01\0\x02");
    }
    let compare = || world.run(["compare", "base", "head", "--between-cv", "0.1%", "--fail-on", FAIL_ON]);
    compare().expect_code(0);
    let mut greens = Greens::default();
    let whole = google(&[&row("BM_a", "10.0", "")]);
    for (name, text) in [
        ("2.json", ""),
        ("2.json", " \n"),
        ("2.json", "{\"context\": {"),
        ("2.json", &whole[..whole.len() / 2]),
        ("2.json", "{"),
        ("2.json", "Segmentation fault\n"),
        ("2.log", "Running ./bench\n./run.sh: line 3:  4711 Killed                  ./bench\n"),
        ("2.json", "\u{feff}"),
    ] {
        let path = world.write(&format!("head/{name}"), text);
        greens.check(&format!("{name}: {text}"), &compare());
        std::fs::remove_file(path).unwrap();
    }
    let commented = ["{ // slow\n", "// slow\n{", "# slow\n{", "/* slow */ {"];
    for start in commented {
        let path = world.write("head/2.json", whole.replacen('{', start, 1));
        greens.check(start, &compare());
        std::fs::remove_file(path).unwrap();
    }
    for (name, start) in [
        ("2.json.xz", &b"\xfd7zXZ\0"[..]),
        ("2.json.bz2", b"BZh9"),
        ("2.xz", b"\xfd7zXZ\0"),
        ("2.json.lzma", b"\x5d\0\0\x80"),
        ("2.json.br", b"\x0b\0\0"),
        ("head.zip", b"PK\x03\x04"),
        ("2.json", b"PK\x03\x04"),
        ("2.json", b"<!DOCTYPE html>"),
    ] {
        let path = world.write(&format!("head/{name}"), start);
        greens.check(name, &compare());
        std::fs::remove_file(path).unwrap();
    }
    std::os::unix::fs::symlink("gone.json", world.work().join("head/2.json")).unwrap();
    greens.check("a link to nothing", &compare());
    std::fs::remove_file(world.work().join("head/2.json")).unwrap();
    world.write("slow/2.json", &whole);
    for (name, target) in [("2.json", "../slow/2.json"), ("more", "../slow")] {
        std::os::unix::fs::symlink(target, world.work().join("head").join(name)).unwrap();
        greens.check("a link out of the folder", &compare());
        std::fs::remove_file(world.work().join("head").join(name)).unwrap();
    }
    greens.none(23);
    std::os::unix::fs::symlink("1.json", world.work().join("head/latest.json")).unwrap();
    assert!(!compare().stderr.contains("link"), "a second name of a result of the folder");
}

#[test]
fn no_failed_run_among_the_logs_of_a_folder_is_passed_over() {
    let world = World::new();
    for side in ["base", "head"] {
        for file in 0..3 {
            let line = format!("BenchmarkA-8\t100\t100.00{file} ns/op\n");
            world.write(&format!("{side}/{file}.txt"), format!("goos: linux\n{}PASS\n", line.repeat(3)));
        }
        world.write(&format!("{side}/README.md"), "three runs\n");
    }
    let compare = || world.run(["compare", "base", "head", "--between-cv", "0.1%", "--fail-on", FAIL_ON]);
    compare().expect_code(0);
    let mut greens = Greens::default();
    let logs =
        ["goos: linux\nFAIL\tx\t0.1s\n", "goos: linux\n", "BenchmarkB-8 \t", "Failed to initialize CUDA\n"];
    for log in logs {
        world.write("head/3.txt", log);
        greens.check(log, &compare());
    }
    greens.none(logs.len());
}

/// Each edit makes a file contradict its own numbers.
#[test]
fn no_file_that_contradicts_itself_is_green() {
    let hyperfine = r#"{"results": [{"command": "a", "mean": 1.0003, "stddev": 0.000216, "median": 1.00025, "user": 1.0,
        "system": 0.01, "min": 1.0001, "max": 1.0006, "times": [1.0002, 1.0001, 1.0006, 1.0003],
        "memory_usage_byte": [1000, 1001, 1002, 1003], "exit_codes": [0, 0, 0, 0]}]}"#;
    let edits = [
        ("[1.0002, 1.0001, 1.0006, 1.0003]", "[]"),
        ("[0, 0, 0, 0]", "[0, 0, 137, 0]"),
        ("[0, 0, 0, 0]", "[0, 0, null, 0]"),
        ("[1000, 1001, 1002, 1003]", "[1000]"),
        ("\"mean\": 1.0003", "\"mean\": null"),
    ];
    none_is_green("hyperfine", hyperfine, &edits);

    let pytest = r#"{"machine_info": {}, "benchmarks": [{"name": "a", "has_error": false, "options": {"timer": "perf_counter"},
        "stats": {"rounds": 4, "mean": 1.0003, "data": [1.0002, 1.0001, 1.0006, 1.0003]}}]}"#;
    none_is_green(
        "pytest-benchmark",
        pytest,
        &[("\"has_error\": false", "\"has_error\": true"), ("\"rounds\": 4", "\"rounds\": 5")],
    );

    let jmh = r#"[{"jmhVersion": "1.37", "benchmark": "a", "mode": "avgt", "threads": 1, "forks": 2, "measurementIterations": 2,
        "primaryMetric": {"score": 1.0003, "scoreConfidence": [1.0001, 1.0005], "scoreUnit": "us/op",
        "scorePercentiles": {"0.0": 1.0001, "50.0": 1.00025, "100.0": 1.0006}, "rawData": [[1.0002, 1.0001], [1.0006, 1.0003]]}}]"#;
    let edits = [
        ("avgt", "thrpt"),
        ("us/op", "ops/us"),
        ("us/op", "ms/op"),
        ("\"score\": 1.0003", "\"score\": \"NaN\""),
        ("\"0.0\": 1.0001", "\"0.0\": 0.5"),
        ("\"100.0\": 1.0006", "\"100.0\": 1.1"),
        ("\"threads\": 1", "\"threads\": 4"),
    ];
    none_is_green("JMH", jmh, &edits);

    let asv = r#"{"version": 2, "commit_hash": "1", "result_columns": ["result", "params", "samples"], "results": {
        "t.time_a": [[1.00025, 1.0003], [["1", "2"]], [[1.0002, 1.0001, 1.0006, 1.0003], [1.0004, 1.0001, 1.0007, 1.0002]]]}}"#;
    let edits = [
        ("[1.0002, 1.0001, 1.0006, 1.0003], ", "[], "),
        ("\"2\"", "\"1\""),
        ("\"results\": {", "\"results\": {\"t.time_a(1)\": [[1.0]], "),
        ("[1.00025,", "[null,"),
    ];
    none_is_green("asv", asv, &edits);

    let bencher = r#"{"a": {"latency": {"value": 1000.3, "lower_value": 1000.1, "upper_value": 1000.6}}, "b": {"latency": {"value": 50.25}}}"#;
    let edits = [
        ("1000.1", "1000.5"),
        ("1000.6", "1000.0"),
        ("{\"latency\": {\"value\": 50.25}}", "{}"),
        ("\"latency\": {\"value\": 50.25}", "\"speed\": {\"value\": 50.25}"),
    ];
    none_is_green("Bencher", bencher, &edits);

    let cargo = "running 2 tests\ntest a ... bench:       1,148.71 ns/iter (+/- 1.41)\n\
        test b ... bench:       2,148.71 ns/iter (+/- 1.41)\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 2 measured; 0 filtered out\n\
        c                       time:   [998.01 ns 1.0013 µs 1.0031 µs]\n";
    let edits = [
        ("998.01 ns", "1.0020 µs"),
        ("1.0031 µs", "1.0031 ns"),
        ("test b ... bench:       2,148.71 ns/iter (+/- 1.41)\n", ""),
    ];
    none_is_green("cargo bench", cargo, &edits);

    let convolution = include_str!("../../fixtures/tool_output/conv_library/igemm.txt");
    let edits =
        [("cost:0.183ms", "cost:0.173ms"), ("tflops:329.672", "tflops:339.672"), ("group:1", "group:2")];
    none_is_green("a convolution library", convolution, &edits);

    let row = |index: u32| {
        row("a", "10.0", "").replace("\"repetition_index\": 0", &format!("\"repetition_index\": {index}"))
    };
    none_is_green("Google Benchmark", &google(&[&row(0)]), &[("\"threads\": 1", "\"threads\": 4")]);
    let all = google(&[&row(0)]);
    none_is_green("Google Benchmark", &all, &[]);
    let threads = all.replace("\"threads\": 1", "\"threads\": 4");
    let mut greens = Greens::default();
    greens.check("every row of head has four threads", &compared(&all, &threads));
    greens.none(1);
    let last = "BM_a/repeats:3    100.3 us    100.3 us    700\n";
    none_is_green("a console", CONSOLE, &[(last, "")]);
}

#[test]
fn no_rate_is_green_because_it_is_read_as_a_time() {
    let world = World::new();
    for (unit, format, [base, head]) in [
        ("ops/s", "custom-smaller-is-better", [1000.0, 500.0]),
        ("images/sec", "custom-smaller-is-better", [1000.0, 500.0]),
        ("TFLOPS", "custom-smaller-is-better", [1000.0, 500.0]),
        ("fps", "custom-smaller-is-better", [1000.0, 500.0]),
        ("ms", "custom-bigger-is-better", [1000.0, 2000.0]),
        ("us/op", "custom-bigger-is-better", [1000.0, 2000.0]),
    ] {
        let list = |value: f64| format!(r#"[{{"name": "a", "unit": "{unit}", "value": {value}}}]"#);
        world.write("base", list(base));
        world.write("head", list(head));
        let args = ["compare", "base", "head", "--format-in", format, "--between-cv", "0.1%"];
        let outcome = world.run(args);
        assert!(matches!(outcome.code, Some(10..=20)), "{unit} {format}: {}", outcome.said());
    }
    let go = |value: f64| {
        format!("BenchmarkA-8 \t 100 \t {value} images/sec\nBenchmarkA-8 \t 100 \t {value}1 images/sec\n")
    };
    world.write("base", go(1000.5));
    world.write("head", go(500.5));
    let outcome = world.run(["compare", "base", "head", "--between-cv", "0.1%"]);
    assert_eq!(outcome.code, Some(10), "{}", outcome.said());
}

#[test]
fn no_criterion_samples_that_their_estimates_contradict_are_green() {
    let world = World::new();
    let write = |side: &str, last: &str, mean: &str| {
        let sample =
            format!(r#"{{"sampling_mode": "Flat", "iters": [1, 1, 1], "times": [1000.1, 1000.2, {last}]}}"#);
        let estimate = |value: &str| format!(r#"{{"point_estimate": {value}}}"#);
        let estimates = format!(
            r#"{{"mean": {}, "median": {}, "std_dev": {}}}"#,
            estimate(mean),
            estimate("1000.2"),
            estimate("0.1")
        );
        world.write(&format!("{side}/criterion/a/new/sample.json"), sample);
        world.write(&format!("{side}/criterion/a/new/estimates.json"), estimates);
    };
    let compare = |side: &str| {
        for inputs in [
            ["base".to_owned(), side.to_owned()],
            ["base", side].map(|side| format!("{side}/criterion/a/new/sample.json")),
        ] {
            let args = ["--between-cv", "0.1%", "--fail-on", FAIL_ON].map(str::to_owned);
            let outcome = world.run(["compare".to_owned()].into_iter().chain(inputs).chain(args));
            assert_eq!(outcome.code, Some(if side == "again" { 0 } else { 20 }), "{}", outcome.said());
        }
    };
    write("base", "1000.3", "1000.2");
    write("again", "1000.30", "1000.20");
    compare("again");
    write("head", "1000.3", "1500.2");
    compare("head");
}

#[test]
fn no_line_of_torchbench_on_another_machine_or_of_other_repetitions_is_green() {
    let times = |scale: f64| {
        let times: Vec<String> =
            (0..24).map(|at| format!("{:.4}", scale * (1.0 + 1e-4 * f64::from(at % 5)))).collect();
        times.join(", ")
    };
    let (total, each) = (times(2.0), times(0.2));
    let line = |iterations: &str, metrics: &str| {
        format!(
            "{{\"model\": {{\"model_name\": \"m\"}}, \"experiment\": {{\"accelerator\": \"cuda\", \
             \"accelerator_model\": \"A100\"}}, \"repeat\": 24, {iterations}\"metrics\": {{{metrics}}}}}\n"
        )
    };
    let totals = format!("\"total_time\": [{total}]");
    let both = format!("{totals}, \"per_iter_time\": [{each}]");
    let faster = format!("\"per_iter_time\": [{}], \"total_time\"", times(0.1));
    let counted = "\"iterations_per_run\": 10, ";
    let edits = [
        ("\"A100\"", "\"H200\""),
        (", \"accelerator_model\": \"A100\"", ""),
        ("\"repeat\": 24", "\"repeat\": 25"),
        ("2.0004, ", ""),
        (counted, ""),
        (counted, "\"iterations_per_run\": 20, "),
        ("\"total_time\"", faster.as_str()),
        ("\"repeat\"", "\"exit_code\": 1, \"repeat\""),
        ("\"repeat\"", "\"status\": \"failed\", \"repeat\""),
        ("\"repeat\"", "\"timed_out\": true, \"repeat\""),
    ];
    none_is_green("torchbench", &line(counted, &both), &edits);
    none_is_green("torchbench with totals", &line(counted, &totals), &edits);
    none_is_green(
        "torchbench with totals of unknown runs",
        &line("", &totals),
        &[edits[6], ("total_time", "per_iter_time")],
    );
}

/// Aggregates don't show which repetitions were slow, only how much they vary.
#[test]
fn no_head_whose_aggregates_vary_much_more_is_green() {
    let row = |name: &str, value: f64| {
        json!({ "name": format!("BM_a_{name}"), "run_name": "BM_a", "run_type": "aggregate", "aggregate_name": name,
            "aggregate_unit": "time", "repetitions": 20, "iterations": 20, "real_time": value, "cpu_time": value,
            "time_unit": "ns" })
    };
    let file = |mean: f64, stddev: f64| {
        let rows = [row("mean", mean), row("median", mean), row("stddev", stddev)];
        json!({ "context": { "num_cpus": 8 }, "benchmarks": rows }).to_string()
    };
    compared(&file(10_000.0, 5.0), &file(10_001.0, 6.0)).expect_code(0);
    compared(&file(10_000.0, 5.0), &file(10_001.0, 3_000.0)).expect_code(11);
    let only = |names: &[&str]| {
        let rows: Vec<Value> = names.iter().map(|name| row(name, 10_000.0)).collect();
        json!({ "context": { "num_cpus": 8 }, "benchmarks": rows }).to_string()
    };
    compared(&only(&["mean"]), &format!("{}\n", only(&["mean"]))).expect_code(0);
    for (base, head) in [(["mean"], ["median"]), (["median"], ["mean"])] {
        let outcome = compared(&only(&base), &only(&head)).expect_code(11);
        assert!(outcome.stdout.contains("statistics of latency"), "{}", outcome.said());
    }
    // Repetitions have a median.
    let repetition = |index: u32| {
        json!({ "name": "BM_a", "run_name": "BM_a", "run_type": "iteration", "repetitions": 3,
            "repetition_index": index, "iterations": 20, "real_time": 10_000.0 + f64::from(index),
            "cpu_time": 10_000.0 + f64::from(index), "time_unit": "ns" })
    };
    let rows: Vec<Value> = (0..3).map(repetition).collect();
    let repeated = json!({ "context": { "num_cpus": 8 }, "benchmarks": rows }).to_string();
    for (base, head) in [(only(&["mean"]), &repeated), (repeated.clone(), &only(&["mean"]))] {
        let outcome = compared(&base, head).expect_code(11);
        assert!(outcome.stdout.contains("statistics of latency"), "{}", outcome.said());
    }
    compared(&only(&["mean", "median"]), &repeated).expect_code(0);
    compared(&file(10_000.0, 5.0), &only(&["median"])).expect_code(11);
    compared(&file(10_000.0, 5.0), &only(&["mean", "median"])).expect_code(11);
}

#[test]
fn no_row_that_is_marked_as_an_error_or_skipped_is_green() {
    let csv = "name,iterations,real_time,cpu_time,time_unit,error_occurred,error_message\n\
               \"BM_a\",100,10.0,10.0,ns,,\n\"BM_b\",100,10.0,10.0,ns,,\n";
    let marked = |mark: &str| {
        csv.replace("\"BM_b\",100,10.0,10.0,ns,,", &format!("\"BM_b\",100,10.0,10.0,ns,{mark},"))
    };
    let mut greens = Greens::default();
    for mark in ["true", "TRUE", "1", "yes"] {
        greens.check(&format!("error_occurred is {mark}"), &compared(csv, &marked(mark)));
    }
    greens.none(4);
    none_is_green("go test", GO, &[("PASS\n", "--- SKIP: BenchmarkA-8\n    a_test.go:4: no device\nPASS\n")]);
}

/// hyperfine times a whole process, and a list of values whatever a script measured.
#[test]
fn no_comparison_of_two_tools_is_green() {
    let hyperfine = |start: usize| {
        let times: Vec<f64> = (0..24).map(|at| 0.05 + 1e-5 * (2 * at + start) as f64).collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        json!({ "results": [{ "command": "a", "mean": mean, "times": times }] }).to_string()
    };
    let bencher = json!({ "a": { "latency": { "value": 20_000_000.0 } } }).to_string();
    compared(&hyperfine(0), &hyperfine(1)).expect_code(0);
    let mixed = compared(&hyperfine(0), &bencher).expect_code(11);
    assert!(mixed.stdout.contains("different tools time different things"), "{}", mixed.stdout);
    compared(&bencher, &hyperfine(0)).expect_code(11);
}
