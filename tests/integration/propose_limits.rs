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
