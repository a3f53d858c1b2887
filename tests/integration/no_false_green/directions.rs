//! Measures for which no tool states whether more or less is better. A wrong guess would turn half of the
//! throughput into an improvement.

use serde_json::json;

use crate::harness::{Outcome, World};

use super::{FAIL_ON, Greens};

/// Four repetitions of one benchmark with a counter. The samples of the two sides are never equal.
fn google(counter: &str, value: f64, nudge: f64) -> String {
    let rows = [0.0, 1.0, 2.0, 3.0].map(|at| {
        let near = |value: f64| value * (1.0 + 1e-4 * (at + nudge));
        json!({
            "name": "BM_a", "run_name": "BM_a", "run_type": "iteration", "repetitions": 4, "repetition_index": at,
            "threads": 1, "iterations": 10, "real_time": near(10.0), "cpu_time": near(10.0), "time_unit": "ms",
            (counter): near(value)
        })
    });
    json!({"context": {"num_cpus": 64, "library_build_type": "release"}, "benchmarks": rows}).to_string()
}

fn counted(counter: &str, head: f64, policy: &str) -> Outcome {
    let world = World::new();
    world.write("base.json", google(counter, 1000.0, 0.0));
    world.write("head.json", google(counter, head, 0.5));
    world.write("policy.toml", format!("[gate.metric.\"{counter}\"]\n{policy}"));
    let args = ["compare", "base.json", "head.json", "--between-cv", "0.1%", "--fail-on", FAIL_ON];
    world.run(args.iter().chain(&["--policy", "policy.toml"]))
}

#[test]
fn a_gating_counter_of_unknown_direction_is_not_green_once_it_changed() {
    let mut greens = Greens::default();
    for (case, head, policy) in [
        ("half", 500.0, ""),
        ("twice as much", 2000.0, ""),
        ("half, within a wider tolerance than that of the interval", 500.0, "tolerance = \"60%\"\n"),
        ("half of what is better if it is higher", 500.0, "better = \"higher\"\n"),
        ("twice of what is better if it is lower", 2000.0, "better = \"lower\"\n"),
    ] {
        greens.check(case, &counted("work", head, policy));
    }
    greens.none(5);
    counted("work", 1000.0, "").expect_code(0);
    counted("work", 500.0, "better = \"higher\"\n").expect_code(10);
    counted("work", 2000.0, "better = \"higher\"\n").expect_code(0);
    counted("work", 500.0, "better = \"lower\"\n").expect_code(0);
    counted("work", 500.0, "fatal = false\n").expect_code(0);
    counted("work/s", 500.0, "").expect_code(10);
    counted("work/s", 2000.0, "").expect_code(0);
}

#[test]
fn a_limit_needs_no_direction() {
    let world = World::new();
    for (side, value) in [("base", 1000.0), ("head", 2000.0)] {
        for file in 0..21 {
            let nudge = 0.37 * f64::from(file) + value * 1e-4;
            world.write(&format!("{side}-{file}.json"), google("work", value, nudge));
        }
    }
    world.write("policy.toml", "[[limit]]\nbenchmark = \"*\"\nmetric = \"work\"\nmax = 1500\n");
    let outcome = world.run(["compare", "base-*.json", "head-*.json", "--policy", "policy.toml"]);
    let said = outcome.expect_code(10).said();
    assert!(said.contains("limit"), "{said}");
}

#[test]
fn the_direction_of_benchgates_own_metrics_is_not_stated_again() {
    counted("latency", 1000.0, "better = \"higher\"\n").expect_code(2);
}

#[test]
fn no_measure_of_another_tool_is_judged_by_a_guess() {
    let asv = |value: f64| {
        json!({"version": 2, "commit_hash": "1", "result_columns": ["result", "samples"],
            "results": {"t.track_quality": [[value], [[value, value * 1.0001, value * 1.0002]]]}})
    };
    let jmh = |value: f64| {
        let score = |unit: &str, value: f64| json!({"score": value, "scoreUnit": unit, "rawData": [[value, value * 1.0001, value * 1.0002]]});
        json!([{"benchmark": "a.B.c", "mode": "avgt", "threads": 1, "forks": 1, "measurementIterations": 3,
            "primaryMetric": score("us/op", 10.0 * (1.0 + 1e-5 * value)),
            "secondaryMetrics": {"ipc": score("insns/clk", value)}}])
    };
    let go = |value: f64| {
        let line = |at: f64| format!("BenchmarkA-8\t1000\t{:.4} quality/frame\n", value * (1.0 + 1e-4 * at));
        format!("pkg: a\n{}PASS\n", [0.0, 1.0, 2.0, 3.0].map(line).concat())
    };
    let cases = [
        ("tracked-value", "", asv(10.0).to_string(), asv(5.0).to_string()),
        ("ipc", "ipc", jmh(3.0).to_string(), jmh(1.5).to_string()),
        ("quality", "", go(10.0), go(5.0)),
        // `MS/s` means samples per second, and the name `hr` does not mean hours.
        ("MS/s", "", go(10.0).replace("quality/frame", "MS/s"), go(5.0).replace("quality/frame", "MS/s")),
        (
            "tracked-value",
            "",
            asv(10.0).to_string().replace("track_quality", "hr"),
            asv(5.0).to_string().replace("track_quality", "hr"),
        ),
    ];
    let mut greens = Greens::default();
    for (metric, gating, base, head) in cases {
        let world = World::new();
        world.write("base", base);
        world.write("head", head);
        let args = ["compare", "base", "head", "--between-cv", "0.1%", "--fail-on", FAIL_ON];
        let gating = if gating.is_empty() { Vec::new() } else { vec!["--metric", gating] };
        let outcome = world.run(args.iter().chain(&gating));
        assert!(outcome.stdout.contains(metric), "{}\n{}", outcome.stdout, outcome.stderr);
        greens.check(metric, &outcome);
    }
    greens.none(5);
}

/// A list of github-action-benchmark has no direction; the user names it with the format, and can name the wrong one.
#[test]
fn no_list_whose_units_contradict_its_direction_is_green() {
    let judged = |format: &str, name: &str, unit: &str| {
        let world = World::new();
        for (file, value) in [("base.json", 100.0), ("head.json", 100.01)] {
            world.write(file, json!([{"name": name, "unit": unit, "value": value}]).to_string());
        }
        let args = ["compare", "base.json", "head.json", "--between-cv", "0.1%", "--fail-on", FAIL_ON];
        world.run(args.into_iter().chain(["--format-in", format]))
    };
    let (bigger, smaller) = ("custom-bigger-is-better", "custom-smaller-is-better");
    let mut greens = Greens::default();
    let wrong = [
        (bigger, "a", "Milliseconds"),
        (bigger, "a", "Seconds"),
        (bigger, "a", "nanos"),
        (bigger, "latency_ms", ""),
        (bigger, "Decode latency", ""),
        (smaller, "a", "MBps"),
        (smaller, "a", "Hz"),
        (smaller, "decode throughput", ""),
        (smaller, "fps", ""),
    ];
    for (format, name, unit) in wrong {
        greens.check(&format!("{format}: {name} in `{unit}`"), &judged(format, name, unit));
    }
    greens.none(wrong.len());
    for (format, name, unit) in [
        (smaller, "a", "Milliseconds"),
        (smaller, "latency_ms", ""),
        (bigger, "a", "MBps"),
        (bigger, "fps_min", ""),
        (bigger, "score", ""),
    ] {
        judged(format, name, unit).expect_code(0);
    }
}

#[test]
fn a_process_that_is_slower_than_a_declared_spread_allows_is_never_green() {
    let file = |time: f64| {
        let row = json!({
            "name": "BM_a", "run_name": "BM_a", "run_type": "iteration", "repetitions": 1, "repetition_index": 0,
            "threads": 1, "iterations": 10, "real_time": time, "cpu_time": time, "time_unit": "ms"
        });
        json!({"context": {"num_cpus": 64, "library_build_type": "release"}, "benchmarks": [row]}).to_string()
    };
    let mut greens = Greens::default();
    for (files, factor) in [(3, 1.0), (3, 1.5), (5, 1.1), (5, 100.0)] {
        let world = World::new();
        for side in ["base", "head"] {
            for number in 0..files {
                let slow = if side == "head" && number == 1 { factor } else { 1.0 };
                let nudge = if side == "head" { 0.001 } else { 0.0 };
                let time = slow * (10.0 + 0.004 * f64::from(number) + nudge);
                world.write(&format!("{side}/{number}.json"), file(time));
            }
        }
        let outcome = world.run(["compare", "base", "head", "--between-cv", "0.5%", "--fail-on", FAIL_ON]);
        if factor == 1.0 {
            outcome.expect_code(0);
        } else {
            greens.check(&format!("one of {files} files takes {factor} x as long"), &outcome);
        }
    }
    greens.none(3);
}
