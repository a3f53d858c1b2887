//! Sides of several files that were measured in other conditions: in one session, with another clock, with a program
//! that was built otherwise, or with other work.

use serde_json::{Value, json};

use crate::harness::{Outcome, World};

use super::{FAIL_ON, Greens};

/// Number of files per side that a pass needs.
const FILES: usize = 21;

/// A number between −1 and 1 that looks random.
fn noise(seed: usize) -> f64 {
    (seed.wrapping_mul(2_654_435_761) % 100_003) as f64 / 50_001.0 - 1.0
}

/// Five times of a process, in its unit, within 1 %.
fn times(process: usize, typical: f64) -> Vec<f64> {
    let of_process = typical * (1.0 + 0.003 * noise(process + 17));
    (0..5).map(|at| of_process * (1.0 + 0.005 * noise(1000 * process + at))).collect()
}

fn google(process: usize, typical: f64) -> Value {
    let row = |(at, time): (usize, f64)| {
        json!({"name": "a", "run_name": "a", "run_type": "iteration", "repetitions": 5, "repetition_index": at, "threads": 1,
            "iterations": 1000, "real_time": time, "cpu_time": time, "time_unit": "ns"})
    };
    let rows: Vec<Value> = times(process, typical).into_iter().enumerate().map(row).collect();
    json!({"context": {"host_name": "a", "num_cpus": 2, "mhz_per_cpu": 2600, "library_build_type": "release"}, "benchmarks": rows})
}

fn pytest(process: usize, typical: f64) -> Value {
    json!({"machine_info": {"node": "a", "python_build": ["main", "x"], "cpu": {"brand_raw": "X", "hz_advertised": [2_600_000_000_u64, 0]}},
        "benchmarks": [{"name": "a", "options": {"timer": "perf_counter"}, "stats": {"data": times(process, 1e-6 * typical)}}]})
}

fn jmh(process: usize, typical: f64) -> Value {
    let times = times(process, typical);
    json!([{"benchmark": "a", "mode": "avgt", "threads": 1, "forks": 1, "measurementIterations": 5, "jvmArgs": ["-Xmx1g", "-Dtmp=/a"],
        "vmVersion": "17+1", "primaryMetric": {"score": times.iter().sum::<f64>() / 5.0, "scoreUnit": "ns/op", "rawData": [times]}}])
}

fn nvbench(process: usize, typical: f64) -> Value {
    let times = times(process, 1e-9 * typical);
    let tagged =
        |tag: &str, value: f64| json!({"tag": tag, "data": [{"name": "value", "value": value.to_string()}]});
    let summaries = [
        tagged("nv/cold/sample_size", 5.0),
        tagged("nv/cold/time/gpu/mean", times[0]),
        tagged("nv/cold/time/gpu/stdev/relative", 0.005),
        tagged("nv/cold/sm_clock_rate/mean", 1.1e9),
    ];
    json!({"devices": [{"id": 0, "name": "H100"}], "benchmarks": [{"name": "a", "states": [{"device": 0, "summaries": summaries}]}]})
}

/// Writes the files of one side; each is the result of its own process.
fn write(world: &World, side: &str, count: usize, file: impl Fn(usize) -> Value) {
    for at in 0..count {
        let process = at + if side == "head" { 2 * FILES } else { 0 };
        world.write(&format!("{side}-{at:02}.json"), file(process).to_string());
    }
}

fn compared(world: &World) -> Outcome {
    world.run(["compare", "base-*.json", "head-*.json", "--fail-on", FAIL_ON])
}

type Tool = fn(usize, f64) -> Value;

/// Compares a base with a head that takes less time, and whose files are edited.
fn quicker(tool: Tool, edits: &[(&str, Value)]) -> Outcome {
    let world = World::new();
    write(&world, "base", FILES, |process| tool(process, 1000.0));
    write(&world, "head", FILES, |process| {
        let mut file = tool(process, 900.0);
        for (place, value) in edits {
            *file.pointer_mut(place).unwrap() = value.clone();
        }
        file
    });
    compared(&world)
}

#[test]
fn one_file_of_a_side_is_one_session_whatever_the_other_side_has() {
    let sides = |[base, head]: [(usize, f64); 2]| {
        let world = World::new();
        write(&world, "base", base.0, |process| google(process, base.1));
        write(&world, "head", head.0, |process| google(process, head.1));
        compared(&world)
    };
    let many = |typical: f64| (FILES, typical);
    sides([many(1000.0), many(1000.0)]).expect_code(0);
    sides([many(1000.0), many(1050.0)]).expect_code(10);
    // The only session of a side was 5 % slower or faster than others.
    for pair in [
        [(1, 1050.0), many(1050.0)],
        [(1, 950.0), many(1000.0)],
        [(1, 1050.0), many(1000.0)],
        [many(1000.0), (1, 1050.0)],
        [many(1000.0), (1, 950.0)],
        [many(1000.0), (1, 1000.0)],
    ] {
        sides(pair).expect_code(11);
    }
    for pair in [[(1, 1000.0), many(2000.0)], [many(1000.0), (1, 2000.0)], [(1, 1000.0), (1, 2000.0)]] {
        sides(pair).expect_code(10);
    }
}

#[test]
fn no_head_whose_files_state_another_clock_is_green() {
    let mut greens = Greens::default();
    for tool in [google, pytest, nvbench] as [Tool; 3] {
        quicker(tool, &[]).expect_code(0);
    }
    let other = json!("b");
    // The clock that a tool states varies a little, and machines of one kind have other names.
    quicker(google, &[("/context/host_name", other.clone())]).expect_code(0);
    quicker(google, &[("/context/mhz_per_cpu", json!(3600))]).expect_code(0);
    quicker(google, &[("/context/host_name", other.clone()), ("/context/mhz_per_cpu", json!(2700))])
        .expect_code(0);
    let outcome =
        quicker(google, &[("/context/host_name", other.clone()), ("/context/mhz_per_cpu", json!(3600))]);
    greens.check("Google Benchmark", &outcome);
    let clock = "/machine_info/cpu/hz_advertised";
    let faster = json!([3_600_000_000_u64, 0]);
    greens.check("pytest-benchmark", &quicker(pytest, &[("/machine_info/node", other), (clock, faster)]));
    let clock = "/benchmarks/0/states/0/summaries/3/data/0/value";
    for slower in ["1.14e9", "0.9e9"] {
        quicker(nvbench, &[(clock, json!(slower))]).expect_code(0);
    }
    greens.check("nvbench", &quicker(nvbench, &[(clock, json!("1.98e9"))]));
    greens.none(3);
}

#[test]
fn no_head_whose_files_state_another_kind_of_build_is_green() {
    let mut greens = Greens::default();
    quicker(jmh, &[]).expect_code(0);
    let build = "/context/library_build_type";
    greens.check("Google Benchmark", &quicker(google, &[(build, json!("debug"))]));
    let build = "/machine_info/python_build";
    quicker(pytest, &[(build, json!(["main", "y"]))]).expect_code(0);
    greens.check("pytest-benchmark", &quicker(pytest, &[(build, json!(["main:debug", "x"]))]));
    let flags = "/0/jvmArgs";
    quicker(jmh, &[(flags, json!(["-Xmx1g", "-Dtmp=/b"]))]).expect_code(0);
    greens.check("JMH: another flag", &quicker(jmh, &[(flags, json!(["-Xmx1g", "-Dtmp=/a", "-Xint"]))]));
    greens.check("JMH: assertions", &quicker(jmh, &[(flags, json!(["-Xmx1g", "-ea"]))]));
    quicker(jmh, &[("/0/vmVersion", json!("18+1"))]).expect_code(0);
    greens.check("JMH: another build", &quicker(jmh, &[("/0/vmVersion", json!("17-internal-fastdebug"))]));
    let of_run =
        ["-Dfile.encoding=UTF-8", "-Djava.io.tmpdir=x", "-Duser.name=b", "-Drun.id=7", "-Drmi.port=9010"];
    quicker(jmh, &[(flags, json!(["-Xmx1g", "-Dtmp=/a"].into_iter().chain(of_run).collect::<Vec<_>>()))])
        .expect_code(0);
    for word in ["-Dbench.n=1000", "-Dkernel=stub", "-javaagent:/a/stub-1.2.jar"] {
        greens.check(&format!("JMH: {word}"), &quicker(jmh, &[(flags, json!(["-Xmx1g", word]))]));
    }
    greens.none(8);
}

#[test]
fn no_head_that_lacks_a_numbered_file_of_base_is_green() {
    let world = World::new();
    let side = |side: &str| write(&world, side, FILES + 2, |process| google(process, 1000.0));
    side("base");
    side("head");
    compared(&world).expect_code(0);
    std::fs::remove_file(world.work().join("head-05.json")).unwrap();
    let mut greens = Greens::default();
    let outcome = compared(&world);
    assert!(outcome.stdout.contains("incomplete-join"), "{}", outcome.said());
    greens.check("a lost file", &outcome);
    greens.none(1);
}

#[test]
fn no_head_whose_loop_is_empty_is_green() {
    let mut greens = Greens::default();
    let sides = |base: f64, head: f64| {
        let world = World::new();
        write(&world, "base", FILES, |process| google(process, base));
        write(&world, "head", FILES, |process| google(process, head));
        compared(&world)
    };
    sides(0.3, 0.25).expect_code(0);
    sides(4.0, 0.6).expect_code(0);
    greens.check("3 µs", &sides(3000.0, 0.25));
    greens.none(1);
}

#[test]
fn arguments_whose_names_are_swapped_are_refused() {
    let world = World::new();
    write(&world, "base", FILES, |process| google(process, 1000.0));
    write(&world, "head", FILES, |process| google(process, 1050.0));
    let refused = world.run(["compare", "head-*.json", "base-*.json"]).expect_code(2);
    insta::assert_snapshot!(refused.stderr, @"
    error: head-*.json was given as the base, and base-*.json as the head
    hint: swap the arguments; if the order is intended, use `--base-file` and `--head-file`
    ");
    let named = ["compare", "--base-file", "head-*.json", "--head-file", "base-*.json"];
    world.run(named).expect_code(0);
}

#[test]
fn no_label_of_google_benchmark_that_states_other_work_is_green() {
    let base = "batch=64, seq_len 2048, 8x512x512, 1024x1024, rows 64, tile 32x64, 12.5 GFLOPS, v1.2";
    let compared = |head: &str| {
        let world = World::new();
        for (side, label) in [("base", base), ("head", head)] {
            write(&world, side, FILES, |process| {
                let mut file = google(process, 1000.0);
                for row in file["benchmarks"].as_array_mut().unwrap() {
                    row["label"] = json!(label);
                }
                file
            });
        }
        compared(&world)
    };
    compared(&base.replace("12.5", "12.75").replace("v1.2", "v1.3").replace("32x64", "64x64")).expect_code(0);
    let mut greens = Greens::default();
    for (from, to) in [
        ("batch=64", "batch=1"),
        ("seq_len 2048", "seq_len 16"),
        ("8x512x512", "1x64x64"),
        ("1024x1024", "16x16"),
        ("rows 64", "rows 1"),
    ] {
        greens.check(to, &compared(&base.replace(from, to)));
    }
    greens.none(5);
}
