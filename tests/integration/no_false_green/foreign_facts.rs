//! Results of other tools whose rows state that they failed, or that the sides are not the same experiment.

use serde_json::{Value, json};

use crate::harness::World;

use super::foreign::{compared, none_is_green};
use super::{FAIL_ON, Greens};

/// Fields of a row that say something against it, or about another experiment.
const AGAINST: [(&str, &str); 14] = [
    ("accuracy", "\"fail\""),
    ("accuracy", "\"fail_to_run\""),
    ("correct", "false"),
    ("passed", "0"),
    ("status", "\"failed\""),
    ("status", "\"timeout\""),
    ("error", "\"out of memory\""),
    ("errorMessage", "\"x\""),
    ("exit_code", "137"),
    ("batch_size", "8"),
    ("dtype", "\"f16\""),
    ("gpu", "\"H200\""),
    ("mode", "\"inference\""),
    ("shape", "[1, 3, 112, 112]"),
];

const FIELDS: &str = "\"accuracy\": \"pass\", \"correct\": true, \"passed\": 1, \"status\": \"ok\", \"error\": \"\", \
    \"errorMessage\": null, \"exit_code\": 0, \"batch_size\": 16, \"dtype\": \"f32\", \"gpu\": \"A100\", \
    \"mode\": \"training\", \"shape\": [1, 3, 224, 224], \"speedup\": 1.25, \"run_id\": 7, \"memory_mb\": 12.5, \
    \"started_at\": \"2026-05-01T10:00:00Z\", \"torch_version\": \"2.9\", \"samples_per_second\": 81.5";

/// Each of [`AGAINST`] as an edit of [`FIELDS`]; and fields that are missing, or stated twice.
fn edits() -> Vec<(String, String)> {
    let field = |name: &str| {
        let start = FIELDS.find(&format!("\"{name}\"")).unwrap();
        let end = FIELDS[start..].find(", \"").map_or(FIELDS.len(), |end| start + end);
        FIELDS[start..end].to_owned()
    };
    let mut edits: Vec<(String, String)> =
        AGAINST.iter().map(|(name, value)| (field(name), format!("\"{name}\": {value}"))).collect();
    edits.push((format!("{}, ", field("dtype")), String::new()));
    edits.push((field("correct"), "\"correct\": false, \"correct\": true".to_owned()));
    edits
}

fn none_of_the_edits_is_green(tool: &str, honest: &str) {
    let edits = edits();
    let edits: Vec<(&str, &str)> = edits.iter().map(|(from, to)| (from.as_str(), to.as_str())).collect();
    none_is_green(tool, honest, &edits);
}

const TIMES: &str = "[1.0002, 1.0001, 1.0006, 1.0003]";

#[test]
fn no_row_with_a_field_that_denies_it_or_differs_is_green() {
    let compile = format!(
        "{{\"model\": \"m\", \"device\": \"cuda\", \"results\": [{{\"backend\": \"a\", \"latencies_ms\": {TIMES}, {FIELDS}}}]}}"
    );
    none_of_the_edits_is_green("the compile benchmark", &compile);
    let of_file = format!(
        "{{\"model\": \"m\", \"device\": \"cuda\", {FIELDS}, \"results\": [{{\"backend\": \"a\", \"latencies_ms\": {TIMES}}}]}}"
    );
    none_of_the_edits_is_green("the file of a compile benchmark", &of_file);
    let pytest = format!(
        "{{\"machine_info\": {{}}, \"benchmarks\": [{{\"name\": \"a\", \"options\": {{\"timer\": \"perf_counter\"}}, \
         \"extra_info\": {{{FIELDS}}}, \"stats\": {{\"rounds\": 4, \"mean\": 1.0003, \"data\": {TIMES}}}}}]}}"
    );
    none_of_the_edits_is_green("pytest-benchmark", &pytest);
}

#[test]
fn no_column_of_a_table_that_denies_its_row_is_green() {
    let table = "# CPU\n\n| Backend | Latency (ms) | Success | Accuracy | Batch | Speedup |\n| - | - | - | - | - | - |\n\
        | a | 1.0002 | True | pass | 8 | 1.1 |\n| b | 2.0002 | True | pass | 8 | 1.2 |\n";
    let edits =
        [("| True |", "| False |"), ("| pass |", "| fail |"), ("| 8 |", "| 16 |"), ("| Batch |", "| Size |")];
    none_is_green("a Markdown table", table, &edits);
    let csv = "timestamp,model,device,time,accuracy,status\n2026-05-01,m,cpu,1.0002,pass,ok\n\
        2026-05-01,m,cpu,1.0003,pass,ok\n2026-05-01,m,cpu,1.0001,pass,ok\n";
    none_is_green("latency.csv", csv, &[(",pass,ok", ",fail,ok"), (",pass,ok", ",pass,failed")]);
}

/// Fields of nested objects and lists, and words next to the digits of free text.
#[test]
fn no_nested_field_that_denies_a_result_or_differs_is_green() {
    let pytest = format!(
        "{{\"machine_info\": {{}}, \"benchmarks\": [{{\"name\": \"a\", \"options\": {{\"timer\": \"perf_counter\"}}, \
         \"extra_info\": {{\"cases\": [{{\"case\": \"x\", \"status\": \"ok\", \"accuracy\": 0.93}}], \
         \"shapes\": [[8, 128], [4, 4]]}}, \"stats\": {{\"rounds\": 4, \"mean\": 1.0003, \"data\": {TIMES}}}}}]}}"
    );
    let edits = [("\"ok\"", "\"failed\""), ("0.93", "0.41"), ("[8, 128]", "[8, 64]")];
    none_is_green("pytest-benchmark", &pytest, &edits);
    let line = "{\"model\": {\"model_name\": \"m\", \"dtype\": \"f32\"}, \"experiment\": {\"accelerator\": \"cuda\"}, \
        \"iterations_per_run\": 1, \"metrics\": {\"total_time\": [9, 9, 9, 1.0002, 1.0001, 1.0004], \"correct\": true}}\n";
    none_is_green("results.jsonl", line, &[("\"f32\"", "\"f16\""), ("true", "false")]);
}

#[test]
fn no_entry_of_a_list_whose_other_fields_differ_is_green() {
    let honest = "[{\"name\": \"a\", \"unit\": \"ms\", \"value\": 1.0002, \"range\": \"± 1\", \"extra\": \"cold cache\\nthreads: 4\\nfp32 in 3 runs\", \
        \"device\": \"a\"}]";
    let world = World::new();
    let mut greens = Greens::default();
    let mut compare = |head: &str| {
        world.write("base", honest);
        world.write("head", head);
        let args =
            ["compare", "base", "head", "--format-in", "custom-smaller-is-better", "--between-cv", "0.1%"];
        let outcome = world.run(args.into_iter().chain(["--fail-on", FAIL_ON, "--all"]));
        let is_expected = head == honest || outcome.stdout.contains("workload-changed");
        assert!(is_expected, "{}", outcome.said());
        greens.check(head, &outcome);
    };
    for (from, to) in [
        ("cold", "warm"),
        ("threads: 4", "threads: 8"),
        ("fp32", "fp16"),
        ("\"device\": \"a\"", "\"device\": \"b\""),
    ] {
        assert!(honest.contains(from));
        compare(&honest.replacen(from, to, 1));
    }
    greens.none(4);
}

#[test]
fn fields_that_differ_between_two_honest_runs_change_nothing() {
    let [base, head] = [
        ("\"run_id\": 7, \"memory_mb\": 12.5, \"started_at\": \"2026-05-01T10:00:00Z\", \"gitSha\": \"a1\"", "1.0003"),
        ("\"run_id\": 8, \"memory_mb\": 12.75, \"started_at\": \"2026-05-02T10:00:00Z\", \"gitSha\": \"b2\"", "1.0004"),
    ]
    .map(|(fields, time)| {
        format!(
            "{{\"model\": \"m\", \"torch_version\": \"2.{time}\", \"results\": [{{\"backend\": \"a\", {fields}, \
             \"max_abs_error\": {time}, \"batch_size\": 8, \"samples_per_second\": {time}, \"gpu_temp\": {time}, \
             \"error\": null, \"status\": \"no errors\", \"log\": \"/tmp/{time}\", \
             \"latencies_ms\": [1.0002, 1.0001, 1.0006, {time}]}}]}}"
        )
    });
    compared(&base, &head).expect_code(0);
}

#[test]
fn no_side_of_several_commits_or_programs_is_green() {
    let csv = "timestamp,model,device,time,git_sha\n2026-05-01,m,cpu,1.0002,a1\n2026-05-01,m,cpu,1.0003,a1\n\
        2026-05-01,m,cpu,1.0001,a1\n";
    none_is_green("latency.csv", csv, &[("1.0002,a1", "1.0002,b2"), ("1.0002,a1", "1.0002,")]);
    let row = |backend: &str, sha: &str| {
        format!("{{\"backend\": \"{backend}\", \"latencies_ms\": {TIMES}, \"git_sha\": \"{sha}\"}}")
    };
    let file = format!("{{\"model\": \"m\", \"results\": [{}]}}", row("a", "a1"));
    let mixed = file.replace("]}", &format!(", {}]}}", row("b", "b2")));
    let head = (&*file, &*mixed);
    none_is_green("a compile benchmark", &file, &[head]);
}

/// Compares two files of each side; the last of head is edited.
fn two_files(file: impl Fn(f64) -> Value, edit: impl Fn(&mut Value)) -> crate::harness::Outcome {
    let world = World::new();
    for (name, time) in [("base-1", 1.00021), ("base-2", 1.00032), ("head-1", 1.00013)] {
        world.write(&format!("{name}.json"), file(time).to_string());
    }
    let mut last = file(1.00024);
    edit(&mut last);
    world.write("head-2.json", last.to_string());
    world.run(["compare", "base-*.json", "head-*.json", "--between-cv", "0.1%", "--fail-on", FAIL_ON])
}

fn google(time: f64) -> Value {
    let row = |index: usize| {
        let time = time * (1.0 + 1e-5 * index as f64);
        json!({"name": "a", "run_name": "a", "run_type": "iteration", "repetitions": 3, "repetition_index": index, "threads": 1,
            "iterations": 10, "real_time": time, "cpu_time": time, "time_unit": "ms"})
    };
    json!({"context": {"executable": "./bench", "commit": "a1", "num_cpus": 8}, "benchmarks": [row(0), row(1), row(2)]})
}

#[test]
fn no_side_whose_files_come_from_several_programs_is_green() {
    let mut greens = Greens::default();
    two_files(google, |_| {}).expect_code(0);
    greens.check(
        "Google Benchmark: another executable",
        &two_files(google, |file| {
            file["context"]["executable"] = json!("./other/bench");
        }),
    );
    greens.check(
        "Google Benchmark: another commit",
        &two_files(google, |file| {
            file["context"]["commit"] = json!("b2");
        }),
    );
    let run = |time: f64| {
        let world = World::new();
        world.write("google.json", google(time).to_string());
        world.run(["convert", "google.json", "--to", "run-json", "run.json"]).expect_code(0);
        let mut run: Value = serde_json::from_str(&world.read("run.json")).unwrap();
        let side = &mut run["sides"][0];
        side["dirty"] = json!(false);
        side["commands"] = json!([{"name": "a", "command": "./bench", "program_sha256": "1a", "warmup": 0}]);
        side["context"]["executable"] = Value::Null;
        run
    };
    two_files(run, |_| {}).expect_code(0);
    let edits: [(&str, &str, Value); 3] = [
        ("/sides/0/dirty", "uncommitted changes", json!(true)),
        ("/sides/0/commands/0/program_sha256", "another program", json!("2b")),
        ("/sides/0/commands/0/command", "another command", json!("./bench --fast")),
    ];
    for (place, what, value) in edits {
        greens.check(what, &two_files(run, |file| *file.pointer_mut(place).unwrap() = value.clone()));
    }
    greens.none(5);
}

#[test]
fn no_head_with_less_work_in_a_call_is_green() {
    let jmh = r#"[{"jmhVersion": "1.37", "benchmark": "a", "mode": "avgt", "threads": 1, "forks": 2, "measurementIterations": 2,
        "measurementBatchSize": 4, "operationsPerInvocation": 8,
        "primaryMetric": {"score": 1.0003, "scoreUnit": "us/op", "rawData": [[1.0002, 1.0001], [1.0006, 1.0003]]}}]"#;
    let edits = [
        ("\"measurementBatchSize\": 4", "\"measurementBatchSize\": 2"),
        ("\"measurementBatchSize\": 4,", ""),
        ("\"operationsPerInvocation\": 8", "\"operationsPerInvocation\": 4"),
    ];
    none_is_green("JMH", jmh, &edits);
    let world = World::new();
    let write = |side: &str, work: &str, last: &str| {
        let folder = format!("{side}/criterion/a/new");
        let sample =
            format!(r#"{{"sampling_mode": "Flat", "iters": [1, 1, 1], "times": [1000.1, 1000.2, {last}]}}"#);
        world.write(&format!("{folder}/sample.json"), sample);
        let described = format!(r#"{{"group_id": "a", "throughput": {work}, "full_id": "a"}}"#);
        world.write(&format!("{folder}/benchmark.json"), described);
        world.run(["compare", "base", side, "--between-cv", "0.1%", "--fail-on", FAIL_ON])
    };
    write("base", r#"{"Elements": 1024}"#, "1000.3");
    write("again", r#"{"Elements": 1024}"#, "1000.4").expect_code(0);
    let mut greens = Greens::default();
    for work in [r#"{"Elements": 512}"#, r#"{"Bytes": 1024}"#, "null"] {
        greens.check(work, &write("head", work, "1000.4"));
    }
    greens.none(3);
}

/// Returns a Google Benchmark file whose rate is `items` for each call of `time` milliseconds.
fn rated(rate: &str, items: f64, time: f64, iterations: u32) -> Value {
    let row = |at: usize| {
        let time = time * (1.0 + 1e-5 * ((at * 7 + iterations as usize) % 11) as f64);
        json!({"name": "a", "run_name": "a", "run_type": "iteration", "repetitions": 12, "repetition_index": at, "threads": 1,
            "iterations": iterations, "real_time": time * 1.001, "cpu_time": time, "time_unit": "ms", rate: items / time * 1e3})
    };
    json!({"context": {"num_cpus": 8}, "benchmarks": (0..12).map(row).collect::<Vec<_>>()})
}

/// Returns a Google Benchmark file that has only statistics of the repetitions. `deviation` is a share of the time.
fn aggregated(items: f64, time: f64, deviation: f64, mean: f64) -> String {
    let row = |name: &str, of: f64| {
        json!({"name": format!("a_{name}"), "run_name": "a", "run_type": "aggregate", "aggregate_name": name,
            "repetitions": 9, "threads": 1, "iterations": 9, "real_time": time * of, "cpu_time": time * of,
            "time_unit": "ms", "items_per_second": items / time * 1e3 * of})
    };
    let rows = [row("mean", mean), row("median", 1.0), row("stddev", deviation)];
    json!({"context": {"num_cpus": 8}, "benchmarks": rows}).to_string()
}

#[test]
fn no_head_whose_rate_shows_less_work_in_a_call_is_green() {
    let mut greens = Greens::default();
    for rate in ["items_per_second", "bytes_per_second", "FLOPS"] {
        let base = rated(rate, 4096.0, 1.0, 1000);
        let file = |items: f64, time: f64, iterations: u32| {
            compared(&base.to_string(), &rated(rate, items, time, iterations).to_string())
        };
        file(4096.0, 1.0001, 1003).expect_code(0);
        file(4096.0, 0.9, 1103).expect_code(0);
        greens.check(&format!("{rate}: half"), &file(2048.0, 0.5, 2003));
        greens.check(&format!("{rate}: as slow"), &file(2048.0, 1.0, 1003));
        greens.check(&format!("{rate}: 3 % less"), &file(3973.0, 1.0, 1003));
        let mut without = rated(rate, 2048.0, 0.5, 2003);
        for row in without["benchmarks"].as_array_mut().unwrap() {
            row.as_object_mut().unwrap().remove(rate);
        }
        greens.check(&format!("{rate}: not stated"), &compared(&base.to_string(), &without.to_string()));
    }
    compared(&aggregated(64.0, 1.00012345, 1e-3, 1.0), &aggregated(64.0, 1.00019876, 1e-3, 1.0))
        .expect_code(0);
    greens.check(
        "aggregates",
        &compared(&aggregated(64.0, 1.00012345, 1e-3, 1.0), &aggregated(32.0, 0.50012345, 1e-3, 1.0)),
    );
    let go = |bytes: f64, time: f64| {
        let line = |at: usize| {
            let time = time + 0.1 * ((at * 7) % 5) as f64;
            format!("BenchmarkA-8 \t 100 \t {time:.1} ns/op\t {:.2} MB/s\n", bytes / time * 1e3)
        };
        format!("goos: linux\npkg: a\n{}PASS\n", (0..6).map(line).collect::<String>())
    };
    compared(&go(65536.0, 100.1), &go(65536.0, 100.2)).expect_code(0);
    greens.check("Go", &compared(&go(65536.0, 100.1), &go(32768.0, 50.1)));
    // Exactly twice as many calls, each with half of the work.
    let [base, head] =
        [rated("items_per_second", 64.0, 1.0, 1000), rated("items_per_second", 32.0, 0.5, 2000)];
    greens.check("the same rate", &compared(&base.to_string(), &head.to_string()));
    // A rate that is not one of a call: the number of items does not depend on the number of calls, or is measured.
    let total = |iterations: u32| rated("items_per_second", 1e6 / f64::from(iterations), 1.0, iterations);
    compared(&total(1000).to_string(), &total(1730).to_string()).expect_code(0);
    let measured = |off: f64| {
        let mut file = rated("items_per_second", 64.0, 1.0, 1000);
        for (at, row) in file["benchmarks"].as_array_mut().unwrap().iter_mut().enumerate() {
            row["items_per_second"] = json!(64e3 * off * (1.0 + 1e-4 * ((at * 5) % 7) as f64));
            for clock in ["real_time", "cpu_time"] {
                row[clock] = json!(1.0 + 1e-5 * ((at as f64 + off) * 7.0 % 11.0));
            }
        }
        file.to_string()
    };
    compared(&measured(1.0), &measured(0.97)).expect_code(0);
    greens.none(15);
}

#[test]
fn no_head_whose_text_of_cargo_bench_shows_less_work_in_a_call_is_green() {
    let criterion = |rate: &str, time: f64| {
        let rate = format!("{:24}thrpt:  [{rate} {rate} {rate}]\n", "");
        format!("sum{:21}time:   [{time:.4} µs {time:.4} µs {time:.4} µs]\n{rate}", "")
    };
    let libtest = |bytes: u64, time: f64| {
        let megabytes = bytes * 1000 / (time as u64);
        format!(
            "running 1 test\ntest sum ... bench: {time:.2} ns/iter (+/- 1.10) = {megabytes} MB/s\n\n\
            test result: ok. 0 passed; 0 failed; 0 ignored; 1 measured; 0 filtered out; finished in 1.0s\n"
        )
    };
    let mut greens = Greens::default();
    let mut check = |what: &str, base: &str, honest: &[String], changed: &[String]| {
        for head in honest {
            compared(base, head).expect_code(0);
        }
        for head in changed {
            greens.check(&format!("{what}: {head}"), &compared(base, head));
        }
    };
    let base = criterion("5.0000 Melem/s", 12.3456);
    let honest = [criterion("5.0011 Melem/s", 12.3429), criterion("5000.4 Kelem/s", 12.3446)];
    let half = [criterion("2.5000 Melem/s", 12.3446), criterion("4.7684 MiB/s", 12.3446)];
    check("criterion", &base, &honest, &half);
    check("criterion", &base, &[], &[criterion("5.0000 Melem/s", 6.1728)]);
    for (bytes, time) in [(32_768, 1148.71), (100, 9.91), (40_960, 400_000.4)] {
        let honest = [libtest(bytes, time * 1.0003)];
        check("libtest", &libtest(bytes, time), &honest, &[libtest(bytes / 2, time * 1.0003)]);
    }
    // 5 MB/s are too coarse to show the work.
    check("libtest", &libtest(2048, 400_000.4), &[libtest(2048, 400_040.4)], &[]);
    greens.none(6);
}

/// A test of pytest-benchmark keeps its name if it has `ids`, whatever its arguments are.
#[test]
fn no_test_with_another_argument_of_pytest_is_green() {
    let pytest = r#"{"machine_info": {}, "benchmarks": [{"name": "test_b[large]", "param": "large", "params": {"n": 1000},
        "options": {"timer": "perf_counter"}, "stats": {"rounds": 4, "data": [1.0002, 1.0001, 1.0006, 1.0003]}}]}"#;
    let edits = [
        (r#"{"n": 1000}"#, r#"{"n": 500}"#),
        (r#"{"n": 1000}"#, r#"{"size": 500}"#),
        (r#"{"n": 1000}"#, r#"{"n": 1000, "threads": 8}"#),
        (r#"{"n": 1000}"#, "null"),
        (r#""params": {"n": 1000},"#, ""),
    ];
    none_is_green("pytest-benchmark", pytest, &edits);
}

#[test]
fn no_head_whose_stated_deviation_is_many_times_that_of_base_is_green() {
    let judged = |base: f64, head: f64, mean: f64| {
        compared(&aggregated(64.0, 1.00012345, base, 1.0), &aggregated(64.0, 1.00019876, head, mean))
    };
    judged(5e-5, 0.01, 1.0).expect_code(0);
    judged(0.01, 0.02, 1.0).expect_code(0);
    // One repetition of nine took 9 % longer.
    judged(5e-5, 0.03, 1.01).expect_code(0);
    let mut greens = Greens::default();
    for (base, head) in [(5e-5, 0.03), (5e-3, 0.03), (0.0, 0.04)] {
        greens.check(&format!("{base} to {head}"), &judged(base, head, 1.0));
    }
    greens.none(3);
}

/// Compares two files that pass; returns the report.
fn passes(base: &str, head: &str) -> String {
    let world = World::new();
    world.write("base", base);
    world.write("head", head);
    let args = ["compare", "base", "head", "--between-cv", "0.1%", "--fail-on", FAIL_ON, "--all"];
    world.run(args).expect_code(0).stdout
}

#[test]
fn another_environment_is_reported_and_another_clock_or_collector_is_other_work() {
    let pytest = r#"{"machine_info": {"python_version": "3.11.7"}, "commit_info": {"id": "a1"}, "benchmarks": [{"name": "a",
        "options": {"timer": "perf_counter", "disable_gc": false}, "stats": {"rounds": 4, "mean": 1.0003,
        "data": [1.0002, 1.0001, 1.0006, 1.0003]}}]}"#;
    let edits = [("\"disable_gc\": false", "\"disable_gc\": true"), ("perf_counter", "process_time")];
    none_is_green("pytest-benchmark", pytest, &edits);
    let asv = r#"{"version": 2, "commit_hash": "1", "env_name": "virtualenv-py3.11-numpy", "python": "3.11",
        "requirements": {"numpy": "1.26"}, "result_columns": ["result", "params", "samples"], "results": {
        "t.time_a": [[1.00025], [], [[1.0002, 1.0001, 1.0006, 1.0003]]]}}"#;
    let jmh = r#"[{"jmhVersion": "1.37", "benchmark": "a", "mode": "avgt", "threads": 1, "forks": 2, "measurementIterations": 2,
        "jvm": "/opt/jdk-21/bin/java", "jvmArgs": ["-Xmx1g"], "vmVersion": "21",
        "primaryMetric": {"score": 1.0003, "scoreUnit": "us/op", "rawData": [[1.0002, 1.0001], [1.0006, 1.0003]]}}]"#;
    for (honest, from, to, shown) in [
        (pytest, "3.11.7", "3.12.1", "python_version: 3.11.7 / 3.12.1"),
        (asv, "1.26", "2.0", "requirements: numpy=1.26 / numpy=2.0"),
        (asv, "-numpy", "", "env_name: virtualenv-py3.11-numpy / virtualenv-py3.11"),
        (jmh, "-Xmx1g", "-Xmx2g", "jvmArgs: -Xmx1g / -Xmx2g"),
        (jmh, "\"21\"", "\"22\"", "vmVersion: 21 / 22"),
    ] {
        let head = honest.replace(from, to).replace("1.0006", "1.0005").replace("1.0003", "1.00027");
        let head = head.replace("1.00025]", "1.000235]").replace("\"mean\": 1.00027", "\"mean\": 1.0002675");
        let head = head.replace("\"score\": 1.00027", "\"score\": 1.0002675");
        assert!(passes(honest, &head).contains(shown), "{shown}");
        assert!(!passes(honest, &format!("{honest}\n")).contains(shown), "{shown}");
    }
}

#[test]
fn no_rounded_copy_of_base_is_green_and_an_equal_commit_is_reported() {
    let times = |seed: u32| -> Vec<f64> {
        (0..12)
            .map(|at| 1.0 + 1e-3 * f64::from((at * 7 + seed * 5) % 13) / 13.0 + 1e-6 * f64::from(at + seed))
            .collect()
    };
    let file = |times: Vec<f64>| {
        json!({"machine_info": {}, "commit_info": {"id": "a1b2"}, "benchmarks": [{"name": "a",
            "options": {"timer": "perf_counter"}, "stats": {"rounds": times.len(), "data": times}}]})
        .to_string()
    };
    let base = file(times(1));
    assert!(passes(&base, &file(times(2))).contains("same-commit"));
    let mut greens = Greens::default();
    for step in [1e-5, 1e-6, 1e-9] {
        let copy = times(1).into_iter().map(|time| (time / step).round() * step).collect();
        greens.check(&format!("rounded to {step}"), &compared(&base, &file(copy)));
    }
    greens.none(3);
}

/// Versions of the compile benchmark add fields; those that a reader doesn't know still say what was measured.
#[test]
fn no_unknown_field_of_a_compile_benchmark_that_differs_is_green() {
    let times: Vec<String> =
        (0..24).map(|at| format!("{:.4}", 2.0 * (1.0 + 1e-4 * f64::from(at % 5)))).collect();
    let base = format!(
        "{{\"model\": \"m\", \"device\": \"cuda\", \"gpu\": \"A100\", \"results\": [{{\"backend\": \"eager\", \"batch_size\": 8, \
         \"dtype\": \"fp32\", \"correct\": true, \"accuracy\": \"pass\", \"status\": \"ok\", \"config\": {{\"mode\": \"default\"}}, \
         \"peak_memory_mb\": 811, \"latencies_ms\": [{}]}}]}}",
        times.join(", ")
    );
    let edits = [
        ("\"A100\"", "\"H200\""),
        ("\"batch_size\": 8", "\"batch_size\": 1"),
        ("fp32", "fp16"),
        ("\"correct\": true", "\"correct\": false"),
        ("\"pass\"", "\"fail_accuracy\""),
        ("\"ok\"", "\"Failed\""),
        ("\"status\"", "\"error\": \"device lost\", \"status\""),
        ("\"default\"", "\"reduce-overhead\""),
    ];
    none_is_green("compile benchmark", &base, &edits);
    let table = "## CUDA\n\n| Model | Backend | Batch | Latency (ms) | Speedup | Correct |\n|---|---|---|---|---|---|\n\
                 | m | eager | 8 | 2.013 | 1.00x | yes |\n";
    none_is_green("table of a compile benchmark", table, &[("| 8 |", "| 1 |"), ("yes", "no"), ("yes", "❌")]);
}

/// A pattern that is too wide, or a file to which every night appends, mixes base and head into one side.
#[test]
fn no_side_that_mixes_programs_is_green() {
    let rows = |start: usize, commits: [&str; 2]| {
        let row = |at: usize| {
            let time = 2.0 + 1e-4 * (2 * at + start) as f64;
            format!("2026-11-{:02},m,cuda,{time:.4},{}\n", at + 1, commits[at % 2])
        };
        format!("date,model,device,time,git_sha\n{}", (0..24).map(row).collect::<String>())
    };
    let base = rows(0, ["aaaa", "aaaa"]);
    compared(&base, &rows(1, ["bbbb", "bbbb"])).expect_code(0);
    compared(&base, &rows(1, ["aaaa", "bbbb"])).expect_code(11);
    let google = |executable: &str, at: usize| {
        let row = |i: usize| {
            json!({ "name": "BM_a", "run_name": "BM_a", "run_type": "iteration", "repetitions": 8, "repetition_index": i,
                "iterations": 100, "real_time": 100.0 + 0.01 * (at * 8 + i) as f64, "cpu_time": 100.0, "time_unit": "us" })
        };
        json!({ "context": { "executable": executable, "num_cpus": 8 }, "benchmarks": (0..8).map(row).collect::<Vec<_>>() })
            .to_string()
    };
    let judged = |second: &str| {
        let world = World::new();
        for (side, start) in [("base", 0), ("head", 2)] {
            world.write(&format!("{side}-1.json"), google("./bench", start));
            world.write(&format!("{side}-2.json"), google(second, start + 1));
        }
        world.run(["compare", "base-*.json", "head-*.json", "--between-cv", "0.1%", "--fail-on", FAIL_ON])
    };
    judged("./bench").expect_code(0);
    let mixed = judged("./bench-old").expect_code(11);
    assert!(mixed.stdout.contains("./bench-old"), "{}", mixed.stdout);
}
