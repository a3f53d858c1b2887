//! Values that state how right a result is, in every format that can hold them.

use serde_json::{Value, json};

use crate::harness::{Outcome, World};

use super::{FAIL_ON, Greens};

/// Name of a value, and the value; `None` if the file doesn't state it.
type Stated<'a> = Option<(&'a str, f64)>;

/// Returns a file that states the value next to its times, which differ a little from seed to seed.
type File = fn(Stated<'_>, usize) -> String;

const FORMATS: [(&str, File); 14] = [
    ("google-benchmark-json", google),
    ("google-benchmark-console", console),
    ("benchfmt", go),
    ("benchfmt", go_configured),
    ("jmh-json", jmh),
    ("nvbench-json", nvbench),
    ("bencher-json", bencher),
    ("custom-smaller-is-better", custom),
    ("pytest-benchmark-json", pytest),
    ("compile-benchmark-json", compile),
    ("latency-csv", csv),
    ("hyperfine-json", hyperfine),
    ("hyperfine-json", hyperfine_document),
    ("results-jsonl", experiment),
];

fn times(seed: usize) -> Vec<f64> {
    (0..12).map(|at| 1.0 + 1e-4 * ((at * 7 + seed) % 11) as f64 + 1e-6 * seed as f64).collect()
}

/// Returns an object with the value as one of its fields.
fn with(mut object: Value, stated: Stated<'_>, field: impl Fn(f64) -> Value) -> Value {
    if let (Some(fields), Some((name, value))) = (object.as_object_mut(), stated) {
        fields.insert(name.to_owned(), field(value));
    }
    object
}

fn google(stated: Stated<'_>, seed: usize) -> String {
    let row = |(at, time): (usize, f64)| {
        let row = json!({"name": "a", "run_name": "a", "run_type": "iteration", "repetitions": 12, "repetition_index": at,
            "threads": 1, "iterations": 10, "real_time": time, "cpu_time": time, "time_unit": "ms"});
        with(row, stated, Value::from)
    };
    let rows: Vec<Value> = times(seed).into_iter().enumerate().map(row).collect();
    json!({"context": {"num_cpus": 8}, "benchmarks": rows}).to_string()
}

fn console(stated: Stated<'_>, seed: usize) -> String {
    let counter = stated.map_or_else(String::new, |(name, value)| format!(" {name}={value}"));
    let row = |time: f64| format!("BM_a/repeats:12    {0:.1} us    {0:.1} us    700{counter}\n", time * 1e4);
    let rows: String = times(seed).into_iter().map(row).collect();
    format!("Running ./bench\nBenchmark        Time       CPU   Iterations\n{rows}")
}

fn go(stated: Stated<'_>, seed: usize) -> String {
    let unit = stated.map_or_else(String::new, |(name, value)| format!("\t{value} {name}"));
    let row = |time: f64| format!("BenchmarkA-8\t100\t{:.2} ns/op{unit}\n", time * 1e4);
    format!("goos: linux\npkg: a\n{}PASS\n", times(seed).into_iter().map(row).collect::<String>())
}

fn go_configured(stated: Stated<'_>, seed: usize) -> String {
    let line = stated.map_or_else(String::new, |(name, value)| format!("{name}: {value}\n"));
    line + &go(None, seed)
}

fn jmh(stated: Stated<'_>, seed: usize) -> String {
    let times = times(seed);
    let score = times.iter().sum::<f64>() / 12.0;
    let secondary = with(
        json!({}),
        stated,
        |value| json!({"score": value, "scoreUnit": "counts", "rawData": [vec![value; 12]]}),
    );
    json!([{"jmhVersion": "1.37", "benchmark": "a", "mode": "avgt", "threads": 1, "forks": 1, "measurementIterations": 12,
        "primaryMetric": {"score": score, "scoreUnit": "ms/op", "rawData": [times]}, "secondaryMetrics": secondary}])
    .to_string()
}

fn nvbench(stated: Stated<'_>, seed: usize) -> String {
    let summary = |tag: &str, value: f64| json!({"tag": tag, "name": tag, "data": [{"name": "value", "type": "float64", "value": value.to_string()}]});
    let mut summaries =
        vec![summary("nv/cold/sample_size", 100.0), summary("nv/cold/time/gpu/mean", times(seed)[0] / 1e3)];
    summaries.extend(stated.map(|(name, value)| summary(name, value)));
    json!({"devices": [{"id": 0, "name": "H100"}], "benchmarks": [{"name": "a", "states": [
        {"name": "Device=0", "device": 0, "axis_values": [], "is_skipped": false, "summaries": summaries}]}]})
    .to_string()
}

fn bencher(stated: Stated<'_>, seed: usize) -> String {
    let measures = json!({"latency": {"value": times(seed)[0] * 1e6}});
    json!({"a": with(measures, stated, |value| json!({"value": value}))}).to_string()
}

fn custom(stated: Stated<'_>, seed: usize) -> String {
    let extra = stated.map_or_else(String::new, |(name, value)| format!("{name}: {value}"));
    json!([{"name": "a", "unit": "ms", "value": times(seed)[0], "extra": extra}]).to_string()
}

fn pytest(stated: Stated<'_>, seed: usize) -> String {
    let info = with(json!({}), stated, Value::from);
    json!({"machine_info": {}, "benchmarks": [{"name": "a", "options": {"timer": "perf_counter"}, "extra_info": info,
        "stats": {"rounds": 12, "data": times(seed)}}]})
    .to_string()
}

fn compile(stated: Stated<'_>, seed: usize) -> String {
    let result = json!({"backend": "eager", "latencies_ms": times(seed)});
    json!({"model": "m", "device": "cuda", "results": [with(result, stated, Value::from)]}).to_string()
}

fn csv(stated: Stated<'_>, seed: usize) -> String {
    let (name, value) =
        stated.map_or_else(Default::default, |(name, value)| (format!(",{name}"), format!(",{value}")));
    let row = |time: f64| format!("2026-05-01,m,cpu,{time:.6}{value}\n");
    let rows: String = times(seed).into_iter().map(row).collect();
    format!("timestamp,model,device,time{name}\n{rows}")
}

fn hyperfine(stated: Stated<'_>, seed: usize) -> String {
    let times = times(seed);
    let command = json!({"command": "a", "mean": times.iter().sum::<f64>() / 12.0, "times": times, "exit_codes": vec![0; 12]});
    json!({"results": [with(command, stated, Value::from)]}).to_string()
}

fn hyperfine_document(stated: Stated<'_>, seed: usize) -> String {
    let document = serde_json::from_str(&hyperfine(None, seed)).unwrap();
    with(document, stated, Value::from).to_string()
}

fn experiment(stated: Stated<'_>, seed: usize) -> String {
    let line = json!({"model": {"suite_name": "s", "model_name": "m"}, "experiment": {"accelerator": "cuda", "accelerator_model": "A"},
        "metrics": {"total_time": times(seed)}, "repeat": 12, "iterations_per_run": 1, "warmup_repetitions": 0});
    with(line, stated, Value::from).to_string() + "\n"
}

fn compared((format, file): (&str, File), base: Stated<'_>, head: Stated<'_>) -> Outcome {
    let world = World::new();
    world.write("base", file(base, 0));
    world.write("head", file(head, 3));
    let args =
        ["compare", "base", "head", "--format-in", format, "--between-cv", "0.1%", "--fail-on", FAIL_ON];
    world.run(args)
}

#[test]
fn a_number_of_unknown_meaning_that_head_changed_is_not_green_until_the_policy_names_it() {
    let world = World::new();
    for (offset, (side, retries)) in [("base", 0.0), ("same", 0.0), ("head", 500.0)].into_iter().enumerate() {
        for file in 0..3 {
            world
                .write(&format!("{side}/{file}.json"), google(Some(("retries", retries)), 5 * file + offset));
        }
    }
    world.write("named.toml", "[gate.metric.retries]\nfatal = false\n");
    let compared = |args: &[&str]| {
        let usual = ["compare", "base", "--between-cv", "0.1%", "--fail-on", FAIL_ON];
        world.run(usual.into_iter().chain(args.iter().copied()))
    };
    compared(&["same"]).expect_code(0);
    let outcome = compared(&["head"]).expect_code(11);
    assert!(outcome.stdout.contains("`retries` 0 → 500"), "{}", outcome.said());
    compared(&["head", "--policy", "named.toml"]).expect_code(0);
    // It must not hide that head is slower.
    for file in 0..3 {
        let mut slow: Value = serde_json::from_str(&google(Some(("retries", 500.0)), 5 * file + 9)).unwrap();
        for row in slow["benchmarks"].as_array_mut().unwrap() {
            row["real_time"] = Value::from(1.5 * row["real_time"].as_f64().unwrap());
        }
        world.write(&format!("slow/{file}.json"), slow.to_string());
    }
    compared(&["slow"]).expect_code(10);
}

/// The order of additions, the number of iterations, a device and a compiler's choice are no other results.
#[test]
fn a_number_that_may_differ_between_equal_programs_changes_nothing() {
    let numbers = [
        ("sum", 1234.56, 1234.58),
        ("tile_size", 64.0, 128.0),
        ("build", 1841.0, 1842.0),
        ("allocs_per_iter", 12.0, 10.0),
        ("memory_mb", 100.5, 90.5),
        ("gpu_index", 0.0, 1.0),
        ("gpu_util", 97.0, 96.0),
        ("vec", 8.0, 16.0),
    ];
    for (name, base, head) in numbers {
        let world = World::new();
        for (offset, (side, value)) in [("base", base), ("head", head)].into_iter().enumerate() {
            for file in 0..3 {
                let document = google(Some((name, value)), 5 * file + offset);
                world.write(&format!("{side}/{file}.json"), document);
            }
        }
        world.run(["compare", "base", "head", "--between-cv", "0.1%", "--fail-on", FAIL_ON]).expect_code(0);
    }
}

#[test]
fn no_label_whose_numbers_head_changed_is_green() {
    for [base, head] in [
        ["sum=1234", "sum=99"],
        ["right: 93/100", "right: 41/100"],
        ["verdicts=0,93", "verdicts=0,41"],
        ["share=93%", "share=41%"],
        ["fp32 result=1.5 tile 64x64", "fp32 result=0 tile 64x64"],
        ["fp32 (sum=1234)", "fp32 (sum=99)"],
        ["a:sum = 1,234,567", "a:sum = 9,999,999"],
        ["sum=0x1a2b", "sum=0x1a2c"],
        ["sum=-1234", "sum=99"],
        ["sum=1234", "sum="],
        ["", "cpu fallback"],
        ["12 ms", "cpu fallback"],
        ["right=0,93", "right=0,12"],
        ["256 tokens", "128 tokens"],
        ["resnet 50 top1 0.76", "resnet 50 top1 0.30"],
        ["seed 42 accuracy==0.93", "seed 42 accuracy==0.41"],
        ["layers 12 mismatches 0", "layers 12 mismatches 9"],
        ["fp32 64 tokens", "fp32 32 tokens"],
        ["10 layers, 64 MiB", "2 layers, 1 MiB"],
        ["512,512,512", "64,64,64"],
        ["224x224", "112x112"],
        ["matrix 256 x 256", "matrix 16 x 16"],
        ["[256,256]", "[16,16]"],
        ["4096", "8192"],
        ["ok 120/120", "ok 60/120"],
        ["checked 1000", "checked 10"],
        ["acc=[0.9,0.91]", "acc=[0.4,0.41]"],
        ["acc 0.90/0.91", "acc 0.40/0.41"],
        ["err<1e-6", "err<1e-1"],
        ["hits 100 misses 0", "hits 0 misses 100"],
        ["64k tokens", "32k tokens"],
        ["100MB", "50MB"],
        ["8.6 GFLOP", "4.3 GFLOP"],
        ["16 kHz", "8 kHz"],
        ["llama-7b", "llama-1b"],
        ["mobilenet_v2_1.0_224", "mobilenet_v2_0.35_96"],
        ["1080p", "720p"],
        ["sm_80", "sm_90"],
        ["#1024", "#512"],
        ["file_1024.bin", "file_512.bin"],
        ["sparsity 50%", "sparsity 10%"],
        ["html (22.31 %)", "html (41.31 %)"],
        ["fp32", ""],
        ["Enc 12 Dec 12", "Enc 6 Dec 1"],
        ["v1.2.3-cuda", "v1.2.3-cpu"],
        ["model.layers=12 cfg.hidden=4096", "model.layers=12 cfg.hidden=16"],
        ["image 512KB", "image 4KB"],
        ["class C", "class A"],
    ] {
        let world = World::new();
        for (offset, (side, label)) in
            [("base", base), ("same", base), ("head", head)].into_iter().enumerate()
        {
            for file in 0..3 {
                let mut document: Value = serde_json::from_str(&google(None, 5 * file + offset)).unwrap();
                for row in document["benchmarks"].as_array_mut().unwrap() {
                    row["label"] = Value::from(label);
                }
                world.write(&format!("{side}/{file}.json"), document.to_string());
            }
        }
        let compared =
            |head: &str| world.run(["compare", "base", head, "--between-cv", "0.1%", "--fail-on", FAIL_ON]);
        compared("same").expect_code(0);
        let outcome = compared("head");
        assert_eq!(outcome.code, Some(11), "{base} {head}: {}", outcome.said());
        let found = ["fact-changed", "workload-changed", "reported-problem"];
        assert!(found.iter().any(|code| outcome.stdout.contains(code)), "{}", outcome.said());
    }
}

#[test]
fn no_list_with_a_worse_result_is_green_because_its_direction_is_that_of_another_value() {
    let (smaller, bigger) = ("custom-smaller-is-better", "custom-bigger-is-better");
    for (name, unit, format, [base, head]) in [
        ("x accuracy", "%", smaller, [93.0, 41.0]),
        ("x", "top1", smaller, [93.0, 41.0]),
        ("tests passed", "", smaller, [100.0, 41.0]),
        ("x", "speedup", smaller, [3.0, 1.0]),
        ("x loss", "", bigger, [0.5, 4.1]),
        ("x errors", "count", bigger, [1.0, 400.0]),
        ("peak memory", "MB", bigger, [10.0, 20.0]),
    ] {
        let world = World::new();
        for (side, value) in [("base", base), ("head", head)] {
            world.write(side, json!([{"name": name, "unit": unit, "value": value}]).to_string());
        }
        let args = ["compare", "base", "head", "--format-in", format, "--between-cv", "0.1%"];
        let outcome = world.run(args).expect_code(20);
        assert!(outcome.stdout.contains("contradict"), "{}", outcome.said());
    }
}

#[test]
fn no_head_with_a_worse_result_is_green_in_any_format() {
    let worse = [
        ("accuracy", 0.93, 0.41),
        ("top1", 93.0, 41.0),
        ("loss", 0.1, 2.3),
        ("loss", -1.5, -0.5),
        ("reward", -1.5, -9.0),
        ("max_err", 0.0, 1.5),
        ("rel_err", 1e-6, 0.5),
        ("cosine", 0.9999, 0.1),
        ("mismatches", 3.0, 500.0),
        ("exact_match", 0.93, 0.41),
        ("recall", 0.93, 41.0),
        ("ndcg@10", 0.71, 0.12),
        ("nll", 2.1, 9.7),
        ("non_finite", 0.0, 512.0),
        ("verified", 1.0, 0.0),
        ("passed", 10.0, 0.0),
        ("success_rate", 1.0, 0.03),
        ("checksum", 1234.0, 999.0),
        ("bad_pixels", 0.0, 500.0),
    ];
    let mut greens = Greens::default();
    for format in FORMATS {
        for (name, base, head) in worse {
            let outcome = compared(format, Some((name, base)), Some((name, head)));
            greens.check(&format!("{} {name} {base} to {head}", format.0), &outcome);
            assert!(outcome.stdout.contains(name), "{} {name}: {}", format.0, outcome.said());
        }
        let outcome = compared(format, Some(("accuracy", 0.93)), None);
        greens.check(&format!("{} without its accuracy", format.0), &outcome);
    }
    greens.none(FORMATS.len() * (worse.len() + 1));
}

/// Results vary with the seed of a run, and the last digits with the order of additions.
#[test]
fn a_result_that_is_as_good_changes_nothing_in_any_format() {
    let alike = [
        ("accuracy", 0.93, 0.927),
        ("accuracy", 0.41, 0.93),
        ("loss", 0.1, 0.1005),
        ("loss", -1.5, -1.6),
        ("loss", 2.3, 0.1),
        ("max_err", 1e-7, 4e-7),
        ("max_err", 0.0, 1e-7),
        ("cosine", 0.99999, 0.999995),
        ("memory_mb", 100.5, 150.5),
        ("gpu_temp", 50.5, 70.5),
        ("latency_std", 0.1, 0.3),
    ];
    for format in FORMATS {
        for (name, base, head) in alike {
            // A column with an unknown word is part of the name.
            if format.0 == "latency-csv" && matches!(name, "max_err" | "cosine") {
                continue;
            }
            let outcome = compared(format, Some((name, base)), Some((name, head)));
            assert_eq!(outcome.code, Some(0), "{} {name} {base} to {head}: {}", format.0, outcome.said());
        }
    }
}

/// Of many files, one with a wrong result is a finding; values that vary as much as base's are none.
#[test]
fn one_wrong_result_among_many_is_found_if_those_of_base_are_alike() {
    let judged = |base: &[f64], head: &[f64]| {
        let world = World::new();
        for (side, values, start) in [("base", base, 0), ("head", head, 50)] {
            for (at, value) in values.iter().enumerate() {
                world.write(&format!("{side}-{at:02}.json"), google(Some(("loss", *value)), start + at));
            }
        }
        world.run(["compare", "base-*.json", "head-*.json", "--fail-on", FAIL_ON]).code
    };
    let varying = |shift: f64| -> Vec<f64> { (0..24).map(|at| shift + 0.01 * f64::from(at % 5)).collect() };
    let one_of = |mut values: Vec<f64>, wrong: f64| {
        values[7] = wrong;
        values
    };
    assert_eq!(judged(&varying(0.5), &varying(0.51)), Some(0));
    assert_eq!(judged(&varying(0.5), &one_of(varying(0.5), 0.56)), Some(0));
    assert_eq!(judged(&varying(0.5), &one_of(varying(0.5), 2.5)), Some(11));
    assert_eq!(judged(&varying(0.5), &varying(0.6)), Some(11));
}

/// A frame rate that a program keeps does not hide that a frame takes longer.
#[test]
fn a_rate_that_was_set_hides_no_slowdown() {
    let world = World::new();
    for (offset, (side, factor)) in [("base", 1.0), ("head", 1.5)].into_iter().enumerate() {
        for file in 0..3 {
            let mut document: Value =
                serde_json::from_str(&google(Some(("target_fps", 60.0)), 5 * file + offset)).unwrap();
            for row in document["benchmarks"].as_array_mut().unwrap() {
                row["real_time"] = Value::from(factor * row["real_time"].as_f64().unwrap());
                row["cpu_time"] = row["real_time"].clone();
            }
            world.write(&format!("{side}/{file}.json"), document.to_string());
        }
    }
    world.run(["compare", "base", "head", "--between-cv", "0.1%"]).expect_code(10);
}
