//! The time per kernel, from the profiler of the fake tools.

use serde_json::Value;

use crate::real_tools;
use crate::suite::Suite;

const KERNELS: &str = "kernels=main_dispatch_0_matmul:600,main_dispatch_1_softmax:400";

/// Base takes 1 ms, and head takes `head` µs. The softmax accounts for the whole difference.
fn suite(head: u32, measure: &str) -> Suite {
    let softmax = head - 600;
    let flags = format!(
        "flags = [\"--fake=latency-us={head}\", \
         \"--fake=kernels=main_dispatch_0_matmul:600,main_dispatch_1_softmax:{softmax}\"]"
    );
    Suite::new().model("m", &["latency-us=1000", KERNELS]).base("").head(&flags).measure(measure).write()
}

fn profile(suite: &Suite, side: usize) -> Value {
    suite.run_json()["sides"][side]["benchmarks"][0]["profile"].clone()
}

#[test]
fn what_regressed_is_profiled_on_both_sides() {
    let suite = suite(1500, "");
    suite.world.run(["gate"]).expect_code(10);
    let (base, head) = (profile(&suite, 0), profile(&suite, 1));
    assert_eq!((&base["processes"], &head["processes"]), (&2.into(), &2.into()), "{base}");
    assert_eq!(head["kernels"][1]["name"], "main_dispatch_1_softmax");
    assert_eq!(head["kernels"][1]["calls"], 1.0);
    let softmax = |profile: &Value| profile["kernels"][1]["ns"].as_f64().unwrap().round();
    assert_eq!((softmax(&base), softmax(&head)), (400_000.0, 900_000.0));
    // The tool's own files are kept for further analysis.
    assert!(suite.world.work().join(".benchgate/profiles/head/m/cpu/main/b.ireeprof").is_file());
}

#[test]
fn what_did_not_move_is_profiled_only_where_that_is_asked_for() {
    let quiet = suite(1001, "");
    quiet.world.run(["gate"]).expect_no_failure();
    assert!(profile(&quiet, 1).is_null());
    let always = suite(1001, "profile = \"always\"\n");
    always.world.run(["gate"]).expect_no_failure();
    assert_eq!(profile(&always, 0)["kernels"].as_array().unwrap().len(), 2);
    let never = suite(1500, "profile = \"never\"\n");
    never.world.run(["gate"]).expect_code(10);
    assert!(profile(&never, 1).is_null());
}

#[test]
fn a_profiler_that_fails_fails_nothing_and_says_why() {
    let suite = suite(1001, "profile = \"always\"\n");
    suite.source("m", &["latency-us=1000", "no-profile=1"]);
    let outcome = suite.world.run(["gate"]).expect_no_failure();
    let problem = profile(&suite, 1)["problem"].as_str().unwrap().to_owned();
    assert!(problem.contains("UNIMPLEMENTED"), "{problem}");
    assert!(outcome.stderr.contains("no time per kernel for m/cpu/main base"), "{}", outcome.stderr);
}

#[test]
fn a_runtime_without_a_profiler_is_named() {
    let suite = suite(1001, "profile = \"always\"\n");
    std::fs::remove_file(suite.world.work().join("tools/iree-profile")).unwrap();
    let outcome = suite.world.run(["gate"]).expect_no_failure();
    let lines: Vec<&str> = outcome.stderr.lines().filter(|line| line.contains("time per kernel")).collect();
    let said =
        "separate processes; not available for base and head: IREE 9.9.9 does not include iree-profile";
    assert!(matches!(lines.as_slice(), [line] if line.ends_with(said)), "{}", outcome.stderr);
    assert_eq!(profile(&suite, 0)["problem"], "IREE 9.9.9 does not include iree-profile");
}

#[test]
fn explain_names_the_kernel_that_moved_and_its_share() {
    let suite = suite(1500, "");
    let gate = suite.world.run(["gate"]).expect_code(10);
    assert!(
        gate.said()
            .contains("main_dispatch_1_softmax takes 2.25 times as long: 100 % of the change in kernel time"),
        "{}",
        gate.stdout
    );
    assert!(gate.said().contains("benchgate explain --swap m/cpu/main"), "{}", gate.stdout);
    let text = suite.world.run(["explain", "run.json"]).expect_code(0).stdout;
    for part in [
        "m/cpu/main",
        "latency regressed: ",
        "main_dispatch_1_softmax ",
        "400.0 → 900.0 µs",
        "+500.0 µs",
        "kernels together: 1.000 → 1.500 ms",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(text.contains("1 kernel moved by less than 0.5 % of the latency"), "{text}");
    let all = suite.world.run(["explain", "run.json", "--all"]).expect_code(0).stdout;
    assert!(all.contains("main_dispatch_0_matmul"), "{all}");
    let json = suite.world.run(["explain", "run.json#base", "run.json#head", "--format", "json"]);
    let json: Value = serde_json::from_str(&json.expect_code(0).stdout).unwrap();
    assert_eq!(json[0]["kernels"][0]["kernel"], "main_dispatch_1_softmax");
    assert_eq!(json[0]["metrics"][0]["verdict"], "regressed");
}

#[test]
fn explain_tells_what_the_compiler_counted_and_why_there_are_no_kernels() {
    let suite = Suite::new()
        .model("m", &["latency-us=1000"])
        .base("")
        .head("flags = [\"--fake=dispatch-count=4\"]")
        .measure("profile = \"never\"\n")
        .write();
    suite.world.run(["gate"]);
    let text = suite.world.run(["explain", "run.json"]).expect_code(0).stdout;
    assert!(text.contains("compiler: execution.dispatch-count 3 → 4"), "{text}");
    assert!(text.contains("no time per kernel of head: the benchmark was not profiled"), "{text}");
}

#[test]
fn explain_shows_what_did_not_move_only_when_asked() {
    let suite = Suite::new().model("m", &["latency-us=1000"]).base("").head("").write();
    suite.world.run(["gate"]).expect_no_failure();
    let text = suite.world.run(["explain", "run.json"]).expect_code(0).stdout;
    assert_eq!(text, "nothing changed; --all explains every benchmark\n");
    for arguments in [["--filter", "^m/"].as_slice(), &["--all"]] {
        let text = suite.world.run(["explain", "run.json"].iter().chain(arguments)).expect_code(0).stdout;
        assert!(text.contains("m/cpu/main"), "{text}");
    }
}

#[test]
#[ignore = "downloads IREE from the Python package index"]
fn the_profiler_of_real_tools_is_read() {
    let world = real_tools::quickstart_mlp("profile = \"always\"\n");
    let outcome = world.finish(real_tools::command(&world, &["run"]));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let run: Value = serde_json::from_str(&world.read("run.json")).unwrap();
    let benchmark = &run["sides"][0]["benchmarks"][0];
    assert_eq!(benchmark["profile"]["processes"], 2, "{}", benchmark["profile"]);
    let kernels = benchmark["profile"]["kernels"].as_array().unwrap();
    let launches: f64 = kernels.iter().map(|kernel| kernel["calls"].as_f64().unwrap()).sum();
    // The profiler and the compiler report the same count.
    assert_eq!(Some(launches), benchmark["compiler"]["execution.dispatch-count"].as_f64());
    assert!(kernels.iter().all(|kernel| kernel["ns"].as_f64().unwrap() > 0.0), "{kernels:?}");
}
