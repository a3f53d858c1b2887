//! Result files given to `compare` that lost, contradict or hide something.

use serde_json::{Value, json};

use crate::harness::{Outcome, World};

use super::{FAIL_ON, Greens};

/// A paired session of two benchmarks with 24 blocks and 0.2 % of noise. Head is slower by `slower`.
fn session(slower: f64) -> Value {
    let side = |name: &str, factor: f64| {
        let benchmark = |benchmark: &str, level: f64, factor: f64| {
            let processes: Vec<Value> = (0..96)
                .filter(|at| (matches!(at % 4, 1 | 2) == (at / 4 % 2 == 0)) == (name == "head"))
                .map(|at| {
                    let noise = |index: u32| 0.002 * (f64::from((at * 7 + index * 13) % 17) / 17.0 - 0.5);
                    // No two processes have exactly equal times.
                    let other = 1.0 + 1e-9 * f64::from(at);
                    let samples: Vec<f64> =
                        (0..4).map(|index| level * factor * other * (1.0 + noise(index))).collect();
                    json!({
                        "slot": {"block": at / 4, "slot": at % 4}, "order": at,
                        "started": format!("2026-11-20T21:{:02}:{:02}Z", at / 60, at % 60),
                        "seconds": 0.3, "iterations": 400, "samples": {"latency": samples},
                    })
                })
                .collect();
            let digest =
                |tag: &str| format!("{}{}", tag.repeat(31), if name == "base" { "00" } else { "11" });
            json!({
                "name": format!("{benchmark}/cpu/main"),
                "labels": {"function": "main", "model": benchmark, "target": "cpu"},
                "outcome": {"status": "ok"},
                "artifact": {"vmfb_sha256": digest("aa"), "vmfb_bytes": 50_000, "execution_sha256": digest("ab"), "dispatch_count": 3},
                "verification": {"code": "PASS", "outputs": [{"index": 0, "code": "PASS"}]},
                "processes": processes,
            })
        };
        let commit = if name == "base" { "1" } else { "2" };
        json!({
            "name": name, "commit": commit.repeat(40), "dirty": false,
            "toolchain": {
                "version": "3.13.0", "source": "pypi",
                "compiler_commit": "89ece87b89852100c0a4ac3d515e14842d090967",
                "runtime_commit": "89ece87b89852100c0a4ac3d515e14842d090967",
            },
            "context": {"num_cpus": 64, "load_avg": [0.1, 0.1, 0.1], "library_build_type": "release", "cpu_scaling_enabled": false},
            "benchmarks": [benchmark("a", 100_000.0, factor), benchmark("b", 250_000.0, 1.0)],
        })
    };
    json!({
        "schema": "benchgate/run/v1", "benchgate": "0.1.0", "suite": "s", "session": "20261120T210000Z-5f2c",
        "created": "2026-11-20T21:00:00Z", "complete": true, "design": "abba", "seed": 42,
        "measure": {"repetitions": 4, "min_time_ns": 12_000_000, "warmup_ns": 5_000_000, "processes": 48, "min_blocks": 4, "max_blocks": 24, "cpus": [1]},
        "testbed": {"id": "9c1f0e57", "facts": {"cpu-model": "Example"}},
        "metrics": [{"name": "latency", "unit": "ns", "better": "lower", "kind": "noisy"}],
        "sides": [side("base", 1.0), side("head", 1.0 + slower)],
    })
}

/// The first benchmark of a side: 0 is base, 1 is head.
fn first(run: &mut Value, side: usize) -> &mut Value {
    &mut run["sides"][side]["benchmarks"][0]
}

fn processes(run: &mut Value, side: usize) -> &mut Vec<Value> {
    first(run, side)["processes"].as_array_mut().unwrap()
}

/// Changes every sample of the first benchmark of a side, by its position in the session.
fn resample(run: &mut Value, side: usize, of: impl Fn(usize, f64) -> Value) {
    for (process, at) in processes(run, side).iter_mut().zip((0..).step_by(4)) {
        for (index, sample) in process["samples"]["latency"].as_array_mut().unwrap().iter_mut().enumerate() {
            *sample = of(at + index, sample.as_f64().unwrap());
        }
    }
}

/// Sets the start times of the processes of head's first benchmark, by their order.
fn started(run: &mut Value, when: impl Fn(usize) -> String) {
    for (at, process) in processes(run, 1).iter_mut().enumerate() {
        process["started"] = json!(when(at));
    }
}

type Spoil = fn(&mut Value);

/// Disturbances of a session in which nothing changed.
const SPOILED: &[(&str, Spoil)] = &[
    ("head lost a benchmark", |run| drop(run["sides"][1]["benchmarks"].as_array_mut().unwrap().remove(0))),
    ("head lost all benchmarks", |run| run["sides"][1]["benchmarks"] = json!([])),
    ("both sides lost all benchmarks", |run| {
        run["sides"][0]["benchmarks"] = json!([]);
        run["sides"][1]["benchmarks"] = json!([]);
    }),
    ("base lost all benchmarks", |run| run["sides"][0]["benchmarks"] = json!([])),
    ("head is missing", |run| drop(run["sides"].as_array_mut().unwrap().pop())),
    ("there are no sides", |run| run["sides"] = json!([])),
    ("head was measured after base, and its slots say in turns", |run| {
        for process in processes(run, 1) {
            process["order"] = json!(process["order"].as_u64().unwrap() + 1000);
        }
    }),
    ("head was measured a day later, and its slots say in turns", |run| {
        for process in processes(run, 1) {
            process["started"] = json!(process["started"].as_str().unwrap().replace("11-20T", "11-21T"));
        }
    }),
    ("a stage of head failed", |run| {
        first(run, 1)["stages"] = json!([{"stage": "verify", "status": "failed", "seconds": 1.0}]);
    }),
    ("a process of head ended before it began", |run| processes(run, 1)[0]["seconds"] = json!(-1.0)),
    ("a process of head ran nothing", |run| processes(run, 1)[0]["iterations"] = json!(0)),
    ("the session has no name", |run| run["session"] = json!("")),
    ("head has one process", |run| processes(run, 1).truncate(1)),
    ("head has no process", |run| processes(run, 1).clear()),
    ("head's samples are empty", |run| {
        for process in processes(run, 1) {
            process["samples"]["latency"] = json!([]);
        }
    }),
    ("head lost its latency", |run| {
        for process in processes(run, 1) {
            process["samples"] = json!({});
        }
    }),
    ("a sample of head is zero", |run| resample(run, 1, |at, v| json!(if at == 5 { 0.0 } else { v }))),
    ("a sample of head is negative", |run| resample(run, 1, |at, v| json!(if at == 5 { -v } else { v }))),
    ("a sample of head is null", |run| {
        resample(run, 1, |at, v| if at == 5 { Value::Null } else { json!(v) })
    }),
    ("a sample of base is zero", |run| resample(run, 0, |at, v| json!(if at == 5 { 0.0 } else { v }))),
    ("head lost half of its processes", |run| processes(run, 1).truncate(24)),
    ("both sides lost a pair of each block", |run| {
        for side in 0..2 {
            processes(run, side).retain(|process| {
                process["slot"]["slot"].as_u64().unwrap() < 2
                    || process["slot"]["block"].as_u64().unwrap() > 3
            });
        }
    }),
    ("head kept every second block", |run| {
        processes(run, 1).retain(|process| process["slot"]["block"].as_u64().unwrap() % 2 == 0);
    }),
    ("head is too fast to be true", |run| resample(run, 1, |_, _| json!(1e-300))),
    ("half of head's samples are in another unit", |run| {
        resample(run, 1, |at, v| json!(if at % 2 == 0 { v } else { v / 1000.0 }));
    }),
    ("half of head's processes are in another unit", |run| {
        resample(run, 1, |at, v| json!(if at / 4 % 2 == 0 { v } else { v / 1000.0 }));
    }),
    ("head failed to compile", |run| {
        first(run, 1)["outcome"] = json!({"status": "failed", "stage": "compile", "message": "no such op"});
    }),
    ("head failed to run and kept its samples", |run| {
        first(run, 1)["outcome"] = json!({"status": "failed", "stage": "benchmark", "message": "crash"});
    }),
    ("head is unsupported", |run| {
        first(run, 1)["outcome"] = json!({"status": "unsupported", "reason": "no device"});
    }),
    ("head was skipped", |run| first(run, 1)["outcome"] = json!({"status": "skipped", "reason": "filter"})),
    ("every benchmark was skipped on both sides", |run| {
        for side in 0..2 {
            for benchmark in run["sides"][side]["benchmarks"].as_array_mut().unwrap() {
                benchmark["outcome"] = json!({"status": "skipped", "reason": "filter"});
                benchmark["processes"] = json!([]);
            }
        }
    }),
    ("every benchmark is unsupported on both sides", |run| {
        for side in 0..2 {
            for benchmark in run["sides"][side]["benchmarks"].as_array_mut().unwrap() {
                benchmark["outcome"] = json!({"status": "unsupported", "reason": "no device"});
                benchmark["processes"] = json!([]);
            }
        }
    }),
    ("head's output is wrong", |run| {
        first(run, 1)["verification"] = json!({"code": "FAIL", "outputs": [{"index": 0, "code": "FAIL"}]});
    }),
    ("one output of head is wrong although the sum says it passed", |run| {
        first(run, 1)["verification"] = json!({"code": "PASS", "outputs": [{"index": 0, "code": "FAIL"}]});
    }),
    ("head's output raised an exception", |run| {
        first(run, 1)["verification"] = json!({"code": "EXCEPTION_RAISED", "outputs": []});
    }),
    ("two benchmarks have one name", |run| {
        let copy = run["sides"][1]["benchmarks"][0].clone();
        run["sides"][1]["benchmarks"].as_array_mut().unwrap().push(copy);
    }),
    ("two processes have one slot", |run| {
        let copy = processes(run, 1)[0].clone();
        processes(run, 1).push(copy);
    }),
    ("the same samples were recorded for two benchmarks", |run| {
        for side in 0..2 {
            let copy = run["sides"][side]["benchmarks"][0]["processes"].clone();
            run["sides"][side]["benchmarks"][1]["processes"] = copy;
        }
    }),
    ("head's processes all recorded what the first one did", |run| {
        let first = processes(run, 1)[0]["samples"].clone();
        processes(run, 1).iter_mut().for_each(|process| process["samples"] = first.clone());
    }),
    ("head recorded base's samples", |run| {
        let base: Vec<Value> = processes(run, 0).iter().map(|process| process["samples"].clone()).collect();
        processes(run, 1).iter_mut().zip(base).for_each(|(process, samples)| process["samples"] = samples);
    }),
    ("the second half of the blocks repeats the first", |run| {
        for side in 0..2 {
            for at in 24..48 {
                processes(run, side)[at]["samples"] = processes(run, side)[at - 24]["samples"].clone();
            }
        }
    }),
    ("no output of head was compared", |run| {
        first(run, 1)["verification"] = json!({"code": "PASS", "outputs": []});
    }),
    ("one of two outputs of head was compared", |run| {
        first(run, 0)["verification"]["outputs"] =
            json!([{"index": 0, "code": "PASS"}, {"index": 1, "code": "PASS"}]);
    }),
    ("head's unit is unknown", |run| run["metrics"][0]["unit"] = json!("fortnights")),
    ("head stalls in one repetition of fifty", |run| {
        resample(run, 1, |at, v| json!(if at % 50 == 7 { 50.0 * v } else { v }));
    }),
    ("head stalls three times, and its typical time is 2 % better", |run| {
        resample(run, 1, |at, v| json!(if at % 64 == 7 { 20.0 * v } else { 0.98 * v }));
    }),
    ("identical programs are ten times apart", |run| {
        let copy = first(run, 0)["artifact"].clone();
        first(run, 1)["artifact"] = copy;
        resample(run, 1, |_, v| json!(v * 10.0));
    }),
    ("the measuring was cut short", |run| run["complete"] = json!(false)),
    ("the host was overloaded while head was measured", |run| {
        run["design"] = json!("single");
        for process in processes(run, 1) {
            process.as_object_mut().unwrap().remove("slot");
        }
        run["sides"][1]["context"]["load_avg"] = json!([900.0, 900.0, 900.0]);
    }),
    ("the format is of a newer version", |run| run["schema"] = json!("benchgate/run/v9")),
    ("the format is another one", |run| run["schema"] = json!("benchgate/comparison/v1")),
];

/// Manipulations that hide a head which is 10 % slower.
const HIDDEN: &[(&str, Spoil)] = &[
    ("nothing", |_| ()),
    ("latency is declared to be better when higher", |run| run["metrics"][0]["better"] = json!("higher")),
    ("some samples are tiny on head", |run| {
        resample(run, 1, |at, v| json!(if at % 3 == 0 { v / 1e6 } else { v }));
    }),
    ("latency is declared to be exact", |run| run["metrics"][0]["kind"] = json!("exact")),
    ("the metric has another name", |run| {
        run["metrics"][0]["name"] = json!("speed");
        for side in 0..2 {
            for process in processes(run, side) {
                let samples = process["samples"]["latency"].take();
                process["samples"] = json!({"speed": samples});
            }
        }
    }),
    ("head has another name", |run| first(run, 1)["name"] = json!("c/cpu/main")),
    ("the slow benchmark is gone on head", |run| {
        drop(run["sides"][1]["benchmarks"].as_array_mut().unwrap().remove(0))
    }),
    ("the slow benchmark is unsupported on both sides", |run| {
        for side in 0..2 {
            first(run, side)["outcome"] = json!({"status": "unsupported", "reason": "no device"});
        }
    }),
    ("only a few blocks are left", |run| {
        for side in 0..2 {
            processes(run, side).truncate(4);
        }
    }),
    ("one slow process is left", |run| processes(run, 1).truncate(1)),
    ("some samples are enormous on base", |run| {
        resample(run, 0, |at, v| json!(if at % 3 == 0 { v * 1e6 } else { v }));
    }),
    ("a calibration claims that everything is noisy", |run| {
        run["calibration"] = json!({"source": "x", "spreads": [{"benchmark": "a/cpu/main", "metric": "latency",
            "within_process": 9.0, "between_processes": 9.0, "between_blocks": 9.0, "between_sessions": 9.0}]});
    }),
    ("the run says that one block is the last", |run| run["measure"]["max_blocks"] = json!(1)),
    ("the run says that a million blocks were planned", |run| {
        run["measure"]["max_blocks"] = json!(1_000_000)
    }),
    ("head's clock was a year behind", |run| started(run, |_| "2025-11-20T21:00:00Z".into())),
    ("head's clock was years ahead", |run| started(run, |_| "2099-11-20T21:00:00Z".into())),
    ("head's clock ran backwards", |run| {
        started(run, |at| format!("2026-11-20T20:{:02}:{:02}Z", 59 - at / 60, 59 - at % 60));
    }),
    ("head's clock stood still", |run| started(run, |_| "2026-11-20T21:00:00Z".into())),
    ("head's clock gave no time", |run| started(run, |_| "soon".into())),
    ("the run was made in the future", |run| run["created"] = json!("2099-01-01T00:00:00Z")),
    ("the run was made before there were computers", |run| run["created"] = json!("1900-01-01T00:00:00Z")),
    ("the slots are those of a run with one side", |run| run["design"] = json!("single")),
];

fn compared(run: &Value) -> Outcome {
    let world = World::new();
    world.write("run.json", run.to_string());
    world.run(["compare", "run.json", "--fail-on", FAIL_ON])
}

#[test]
fn an_honest_session_passes() {
    compared(&session(0.0)).expect_code(0);
}

#[test]
fn a_host_that_stalls_both_sides_passes() {
    let mut run = session(0.0);
    for side in 0..2 {
        resample(&mut run, side, |at, v| json!(if at % 50 == 7 + side { 50.0 * v } else { v }));
    }
    compared(&run).expect_code(0);
}

#[test]
fn no_session_that_lost_or_contradicts_something_is_green() {
    let mut greens = Greens::default();
    for (case, spoil) in SPOILED {
        let mut run = session(0.0);
        spoil(&mut run);
        greens.check(case, &compared(&run));
    }
    greens.none(40);
}

#[test]
fn no_edit_of_a_regressed_session_hides_it() {
    let mut greens = Greens::default();
    for (case, spoil) in HIDDEN {
        let mut run = session(0.1);
        spoil(&mut run);
        greens.check(case, &compared(&run));
    }
    greens.none(22);
}

/// A session in JSON that different readers interpret differently.
#[test]
fn no_spelling_of_json_hides_anything() {
    let text = session(0.0).to_string();
    let (before, rest) = text.rsplit_once("\"latency\":[").unwrap();
    let (sample, after) = rest.split_once(',').unwrap();
    let spelled = |value: &str| format!("{before}\"latency\":[{value},{after}");
    let mut cases: Vec<(String, String)> = [
        "NaN",
        "\"NaN\"",
        "Infinity",
        "\"Infinity\"",
        "\"-Infinity\"",
        "1e999",
        "1e308",
        "-0.0",
        "0e5",
        "1e-320",
        "true",
    ]
    .iter()
    .map(|value| (format!("a sample is {value}"), spelled(value)))
    .collect();
    let twice = format!("{before}\"latency\":[1.0],\"latency\":[{sample},{after}");
    cases.push(("one metric of a process stands there twice".to_owned(), twice));
    for field in ["\"complete\":true", "\"outcome\":{\"status\":\"ok\"}", "\"suite\":\"s\""] {
        cases.push((
            format!("{field} stands there twice"),
            text.replacen(field, &format!("{field},{field}"), 1),
        ));
    }
    cases.push(("two documents stand in one file".to_owned(), format!("{text}{text}")));
    let named =
        text.replacen("a/cpu/main", "\u{e9}/cpu/main", 1).replacen("a/cpu/main", "e\u{301}/cpu/main", 1);
    cases.push(("head's name has another Unicode form".to_owned(), named));
    let mut greens = Greens::default();
    for (case, text) in cases {
        let world = World::new();
        world.write("run.json", text);
        greens.check(&case, &world.run(["compare", "run.json", "--fail-on", FAIL_ON]));
    }
    greens.none(17);
}

/// Every proper prefix of a file is a truncated file.
#[test]
fn no_truncated_file_is_green() {
    let text = session(0.0).to_string();
    let mut greens = Greens::default();
    for part in 0..12 {
        let world = World::new();
        world.write("run.json", &text.as_bytes()[..text.len() * part / 12]);
        greens.check(
            &format!("{part}/12 of the file"),
            &world.run(["compare", "run.json", "--fail-on", FAIL_ON]),
        );
    }
    greens.none(12);
}
