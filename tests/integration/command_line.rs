//! What the binary does before any command does its work.

use crate::harness::World;

#[test]
fn help_goes_to_stdout_and_exits_with_0() {
    let outcome = World::new().run(["--help"]).expect_code(0);
    assert!(outcome.stdout.contains("benchgate compare"), "{}", outcome.stdout);
    assert_eq!(outcome.stderr, "");
}

#[test]
fn an_unknown_option_is_a_usage_error() {
    let outcome = World::new().run(["compare", "--no-such-option"]).expect_code(2);
    assert_eq!(outcome.stdout, "");
    assert!(outcome.stderr.contains("--no-such-option"), "{}", outcome.stderr);
}

#[test]
fn output_into_a_pipe_has_no_colours() {
    let outcome = World::new().run(["--help"]).expect_code(0);
    assert!(!outcome.stdout.contains('\u{1b}'));
}

#[test]
fn completions_need_no_input_and_leave_the_folder_and_the_cache_alone() {
    let world = World::new();
    world.write("benchgate.toml", "not = [toml");
    let outcome = world.run_with_input(["completions", "bash"], b"ignored").expect_code(0);
    assert!(outcome.stdout.contains("_benchgate"));
    assert_eq!(world.read("benchgate.toml"), "not = [toml");
    assert_eq!(std::fs::read_dir(world.cache()).unwrap().count(), 0);
}
