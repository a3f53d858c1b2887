//! `benchgate limits propose`, from stored sessions to a configuration with the limits.

use crate::baseline::run;
use crate::harness::World;

/// Stores sessions on these days of October, with one of a few latencies.
fn store(world: &World, days: std::ops::RangeInclusive<u8>, latency: f64) {
    for day in days {
        world.write("run.json", run(day, 'a', latency + f64::from(day % 7) * 60.0));
        world.run(["baseline", "update"]).expect_code(0);
    }
}

#[test]
fn limits_come_from_the_stored_sessions_and_state_their_rate() {
    let world = World::new();
    store(&world, 1..=24, 120_000.0);
    let proposed = world.run(["limits", "propose", "--owned-by", "@ada"]).expect_code(0).stdout;
    insta::assert_snapshot!(proposed);
    // If a rate needs more sessions than are stored, the error names the required number.
    let refused = world.run(["limits", "propose", "--distribution-free"]).expect_code(20).stderr;
    insta::assert_snapshot!("refused", refused);
    // A rate of 5 % needs 19 sessions. The limit is the largest of the 24 values.
    let free = world.run(["limits", "propose", "--distribution-free", "--rate", "5%"]).expect_code(0).stdout;
    assert!(free.contains("max = \"120.4us\""), "{free}");
}

#[test]
fn sessions_from_before_a_change_of_level_do_not_count() {
    let world = World::new();
    store(&world, 1..=20, 140_000.0);
    store(&world, 21..=28, 120_000.0);
    let refused = world.run(["limits", "propose"]).expect_code(20).stderr;
    assert!(refused.contains("8 sessions at the newest level, but a rate of 1 % needs 20"), "{refused}");
}

#[test]
fn a_proposal_is_a_valid_configuration() {
    let world = World::new();
    store(&world, 1..=20, 120_000.0);
    let metrics = ["--metric", "latency", "--metric", "dispatch-count", "--metric", "vmfb-size"];
    let proposed = world.run(["limits", "propose"].into_iter().chain(metrics)).expect_code(0).stdout;
    assert_eq!(proposed.matches("[[limit]]").count(), 3, "{proposed}");
    world.write("mlp.mlir", "func.func @main() { return }");
    let suite = format!(
        "[suite]\nname = \"quickstart\"\n[toolchain]\nversion = \"9.9.9\"\ncommit = \"{}\"\npath = \"tools\"\n\
         [[model]]\nname = \"mlp\"\nsource = \"mlp.mlir\"\n\
         [[target]]\nname = \"cpu\"\nbackend = \"llvm-cpu\"\ndevice = \"local-task\"\n",
        "1".repeat(40)
    );
    world.write("benchgate.toml", suite + &proposed);
    world.run(["plan", "--shards", "1"]).expect_code(0);
}

/// A metric of another tool can have any name.
#[test]
fn limits_for_metrics_of_other_tools_are_a_valid_configuration_or_left_out() {
    let world = World::new();
    let added = |day: u8| {
        let mut run: serde_json::Value = serde_json::from_str(&run(day, 'a', 120_000.0)).unwrap();
        for name in ["GB/s", "latancy"] {
            let metric = serde_json::json!({"name": name, "unit": name, "better": "higher", "kind": "noisy"});
            run["metrics"].as_array_mut().unwrap().push(metric);
            for benchmark in run["sides"][0]["benchmarks"].as_array_mut().unwrap() {
                for process in benchmark["processes"].as_array_mut().unwrap() {
                    let count = process["samples"]["latency"].as_array().unwrap().len();
                    process["samples"][name] = serde_json::json!(vec![100.5 + f64::from(day % 7); count]);
                }
            }
        }
        run.to_string()
    };
    for day in 1..=24 {
        world.write("run.json", added(day));
        world.run(["baseline", "update"]).expect_code(0);
    }
    let asked = ["limits", "propose", "--metric", "GB/s", "--metric", "latancy"];
    let proposed = world.run(asked).expect_code(0);
    assert!(proposed.stdout.contains("metric = \"GB/s\""), "{}", proposed.said());
    assert!(!proposed.stdout.contains("latancy"), "{}", proposed.said());
    assert!(proposed.stderr.contains("did you mean `latency`?"), "{}", proposed.said());
    let suite =
        "[suite]\nname = \"quickstart\"\n[[command]]\nname = \"mlp\"\nrun = \"true\"\nrows = [\"a\"]\n";
    let others = "[[gate.override]]\nbenchmark = \"*\"\nmetric = \"GB/s\"\nfloor = \"2%\"\n";
    let limits = proposed.stdout.lines().filter(|line| !line.starts_with("benchmark = "));
    let limits = limits.collect::<Vec<_>>().join("\n").replace("[[limit]]", "[[limit]]\nbenchmark = \"*\"");
    world.write("benchgate.toml", format!("{suite}{others}{limits}"));
    world.run(["plan", "--shards", "1"]).expect_code(0);
}
