//! Benchmarks of one file with different measures: each benchmark is judged by its own measures.

use serde_json::json;

use crate::harness::{Outcome, World};

use super::{FAIL_ON, Greens};

/// Output of Go in which the benchmark `Time` always takes the same time, and `Other` has these measures.
fn go(measures: &[(f64, &str)], nudge: f64) -> String {
    let line = |name: &str, measures: &[(f64, &str)], at: f64| {
        let measures: String = measures
            .iter()
            .map(|(value, unit)| format!("\t{:.5} {unit}", value * (1.0 + 1e-4 * (at + nudge))))
            .collect();
        format!("Benchmark{name}-8\t1000{measures}\n")
    };
    let lines: String = [0.0, 1.0, 2.0, 3.0]
        .into_iter()
        .map(|at| {
            let other = if measures.is_empty() { String::new() } else { line("Other", measures, at) };
            line("Time", &[(100.0, "ns/op")], at) + &other
        })
        .collect();
    format!("goos: linux\npkg: a\n{lines}PASS\n")
}

fn compared(base: &[(f64, &str)], head: &[(f64, &str)], options: &[&str]) -> Outcome {
    let world = World::new();
    world.write("base.txt", go(base, 0.0));
    world.write("head.txt", go(head, 0.5));
    let args = ["compare", "base.txt", "head.txt", "--between-cv", "0.1%", "--fail-on", FAIL_ON];
    world.run(args.iter().chain(options))
}

#[test]
fn no_benchmark_without_a_time_passes_because_another_one_has_a_time() {
    let rate: &[_] = &[(1000.0, "req/s")];
    let sizes: &[_] = &[(64.0, "B/op"), (3.0, "allocs/op")];
    let unchanged = [rate, sizes, &[(1000.0, "req/s"), (64.0, "B/op")]];
    for measures in unchanged {
        compared(measures, measures, &[]).expect_code(0);
    }
    let mut greens = Greens::default();
    let mut check = |case: &str, base: &[(f64, &str)], head: &[(f64, &str)], code: i32| {
        let outcome = compared(base, head, &[]);
        assert!(outcome.code.is_none_or(|found| found == 0 || found == code), "{case}: {}", outcome.said());
        greens.check(case, &outcome);
    };
    check("half of a throughput", rate, &[(500.0, "req/s")], 10);
    check("a size twice as large", sizes, &[(128.0, "B/op"), (3.0, "allocs/op")], 10);
    check("twice as many allocations", sizes, &[(64.0, "B/op"), (6.0, "allocs/op")], 10);
    check("a time instead of a throughput", rate, &[(70.0, "ns/op")], 12);
    check("half of a throughput, and a time", rate, &[(500.0, "req/s"), (70.0, "ns/op")], 10);
    check("another unit", rate, &[(1.0, "MB/s")], 12);
    greens.none(6);
}

#[test]
fn a_throughput_decides_alone_and_a_tolerance_of_the_caller_is_its_own() {
    let base: &[_] = &[(1000.0, "req/s"), (64.0, "B/op")];
    compared(base, &[(1000.0, "req/s"), (128.0, "B/op")], &[]).expect_code(0);
    compared(base, &[(800.0, "req/s"), (64.0, "B/op")], &[]).expect_code(10);
    compared(base, &[(800.0, "req/s"), (64.0, "B/op")], &["--floor", "40%"]).expect_code(0);
}

#[test]
fn a_policy_can_leave_a_benchmark_without_a_gating_metric() {
    let world = World::new();
    world.write("base.txt", go(&[(1000.0, "req/s")], 0.0));
    world.write("head.txt", go(&[(500.0, "req/s")], 0.5));
    world.write("policy.toml", "[gate.metric.\"req/s\"]\nfatal = false\n");
    let args = ["compare", "base.txt", "head.txt", "--between-cv", "0.1%", "--policy", "policy.toml"];
    world.run(args).expect_code(0);
}

#[test]
fn a_benchmark_whose_base_has_no_measure_at_all_is_an_error() {
    let timed = |value: f64| json!({"latency": {"value": value}});
    let measured = |other: serde_json::Value| json!({"time": timed(1.0), "other": other}).to_string();
    let world = World::new();
    world.write("base.json", measured(json!({})));
    world.write("head.json", measured(json!({"latency": {"value": 5.0}})));
    let args = ["compare", "base.json", "head.json", "--between-cv", "0.1%", "--format", "json"];
    let json = world.run(args).json();
    let row = json["rows"].as_array().unwrap().iter().find(|row| row["benchmark"] == "other").unwrap();
    assert_eq!((row["verdict"].as_str(), row["fatal"].as_bool()), (Some("error"), Some(true)), "{row}");
}

#[test]
fn every_measure_of_a_build_decides_in_its_direction() {
    let file = |time: f64, size: u32| {
        let build = json!({"build-time": {"value": time}, "file-size": {"value": size}});
        json!({"time": {"latency": {"value": 1.0}}, "build": build}).to_string()
    };
    let world = World::new();
    world.write("base.json", file(87.5, 4_194_304));
    world.write("head.json", file(87.5, 4_194_304));
    let args = ["compare", "base.json", "head.json", "--between-cv", "0.1%", "--format", "json"];
    let json = world.run(args).json();
    let rows = json["rows"].as_array().unwrap().iter().filter(|row| row["benchmark"] == "build");
    let deciding: Vec<_> =
        rows.filter(|row| row["fatal"] == true).map(|row| row["metric"].to_string()).collect();
    assert_eq!(deciding.len(), 2, "{deciding:?}");
}
