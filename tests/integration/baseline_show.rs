//! What `benchgate baseline` says about quarantined results and changes of level.

use serde_json::{Value, json};

use crate::baseline::run;
use crate::harness::{Outcome, World};

/// Stores the session of a day with two benchmarks. `share` is the share of the processors that other programs used.
fn store(world: &World, day: u8, latency: f64, share: f64) -> Outcome {
    let mut run: Value = serde_json::from_str(&run(day, 'a', latency)).unwrap();
    let benchmarks = run["sides"][0]["benchmarks"].as_array_mut().unwrap();
    for process in benchmarks[0]["processes"].as_array_mut().unwrap() {
        process["telemetry"] = json!({"cpu": { "foreign": share, "stolen": 0.0, "resolution": 0.01 }});
    }
    let mut second = benchmarks[0].clone();
    second["name"] = "vit/cpu/main".into();
    second["labels"]["model"] = "vit".into();
    for process in second["processes"].as_array_mut().unwrap() {
        let samples = process["samples"]["latency"].as_array_mut().unwrap();
        samples.iter_mut().for_each(|sample| *sample = (2.0 * sample.as_f64().unwrap() + 0.125).into());
    }
    benchmarks.push(second);
    world.write("run.json", run.to_string());
    world.run(["baseline", "update"])
}

fn ten_days(world: &World) {
    for day in 1..=10 {
        store(world, day, 120_000.0 + f64::from(day % 3) * 90.0, 0.0).expect_code(0);
    }
}

#[test]
fn benchmarks_of_a_session_that_share_a_reason_share_a_line() {
    let world = World::new();
    ten_days(&world);
    let shown = || world.run(["baseline", "show", "--changes"]).expect_code(0).stdout;
    assert!(shown().ends_with("\nno change of level in 10 sessions\n"), "{}", shown());
    store(&world, 11, 180_000.0, 0.0).expect_code(10);
    let shown = shown();
    let quarantined: Vec<&str> = shown.lines().filter(|line| line.contains("quarantined")).collect();
    assert!(quarantined.iter().any(|line| line.contains(": all 2 benchmarks: regressed: ")), "{shown}");
}

#[test]
fn only_a_change_that_may_be_intended_is_proposed_for_acceptance() {
    let world = World::new();
    ten_days(&world);
    let disturbed = store(&world, 11, 120_000.0, 0.6).expect_code(11).stdout;
    assert!(
        disturbed.contains("no acceptance is needed") && !disturbed.contains("baseline accept"),
        "{disturbed}"
    );
    let slower = store(&world, 12, 180_000.0, 0.0).expect_code(10).stdout;
    assert!(slower.contains("benchgate baseline accept"), "{slower}");
}
