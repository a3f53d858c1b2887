//! The behavior of the binary that does not depend on a command.

use crate::harness::World;

#[test]
fn help_goes_to_stdout_and_exits_with_0() {
    let outcome = World::new().run(["--help"]).expect_code(0);
    assert!(outcome.stdout.contains("benchgate compare"), "{}", outcome.stdout);
    assert_eq!(outcome.stderr, "");
}

/// Automatic wrapping would break an example, so its lines must be short enough.
#[test]
fn help_is_readable_at_80_columns_and_shows_an_example() {
    let commands: &[&[&str]] = &[
        &[],
        &["run"],
        &["gate"],
        &["publish"],
        &["noise"],
        &["compare"],
        &["convert"],
        &["doctor"],
        &["clean"],
        &["init"],
        &["completions"],
        &["man"],
        &["baseline"],
        &["limits"],
        &["tools"],
        &["tools", "pin"],
        &["tools", "install"],
        &["tools", "verify"],
        &["tools", "list"],
        &["tools", "remove"],
    ];
    for command in commands {
        let mut args = command.to_vec();
        args.push("--help");
        let help = World::new().run(args).expect_code(0).stdout;
        let (_, examples) =
            help.split_once("Example").unwrap_or_else(|| panic!("{command:?} has no example"));
        for line in examples.lines().skip(1).take_while(|line| !line.is_empty()) {
            assert!(line.starts_with("  benchgate") || line.starts_with("  iree-"), "wrapped: {line}");
            assert!(line.chars().count() <= 80, "{command:?} is too wide: {line}");
        }
    }
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

#[test]
fn every_command_has_a_manual_page() {
    let world = World::new();
    world.run(["man", "--output-dir", "man"]).expect_code(0);
    let page = world.read("man/benchgate-gate.1");
    assert!(page.contains(".TH") && page.contains("benchgate"), "{page}");
    let pages = std::fs::read_dir(world.work().join("man")).unwrap().count();
    assert!(pages > 12, "{pages} pages");
}
