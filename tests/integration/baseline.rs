//! `benchgate baseline`, from the command line to the stored file.

use std::process::{Command, Stdio};

use crate::git_server::{GitServer, TOKEN};
use crate::harness::{Outcome, World, without_digests};

const GOLDEN: &str = include_str!("../fixtures/record/run-v1.json");

/// The `run.json` of one side with one benchmark, on a day of October.
pub fn run(day: u8, letter: char, latency: f64) -> String {
    let mut run: serde_json::Value = serde_json::from_str(GOLDEN).unwrap();
    run["session"] = format!("session-{day}").into();
    run["created"] = format!("2026-10-{day:02}T12:00:00Z").into();
    let mut side = run["sides"][0].take();
    side["name"] = "head".into();
    side["commit"] = letter.to_string().repeat(40).into();
    let mut benchmark = side["benchmarks"][0].take();
    benchmark["artifact"]["vmfb_sha256"] = letter.to_string().repeat(64).into();
    for process in benchmark["processes"].as_array_mut().unwrap() {
        process["samples"]["latency"] = vec![latency, latency + 0.25, latency + 0.5].into();
    }
    side["benchmarks"] = vec![benchmark].into();
    run["sides"] = vec![side].into();
    run.as_object_mut().unwrap().remove("calibration");
    run.to_string()
}

fn update(world: &World, day: u8, letter: char, latency: f64) -> Outcome {
    world.write("run.json", run(day, letter, latency));
    world.run(["baseline", "update"])
}

/// Ten quiet days, followed by a night in which everything is 50 % slower.
pub fn eleven_days(world: &World) {
    for day in 1..=10 {
        assert_eq!(update(world, day, 'a', 120_000.0 + f64::from(day % 3) * 90.0).code, Some(0));
    }
    assert_eq!(update(world, 11, 'b', 180_000.0).code, Some(10));
}

#[test]
fn a_red_night_is_stored_shown_and_released_by_an_acceptance() {
    let world = World::new();
    eleven_days(&world);
    let shown = world.run(["baseline", "show"]);
    insta::assert_snapshot!(shown.stdout);
    let accepted =
        world.run(["baseline", "accept", "--since", "bbbbbbb", "--why", "bigger tiles", "--who", "Ada"]);
    assert_eq!(accepted.code, Some(0), "{}", accepted.stderr);
    // The acceptance is dated today, so this night is older than the acceptance but newer than the accepted
    // change.
    assert_eq!(update(&world, 12, 'c', 180_100.0).code, Some(0));
    let shown = world.run(["baseline", "show"]).stdout;
    assert!(shown.contains("Ada: bigger tiles") && !shown.contains("quarantined"), "{shown}");
    assert!(
        shown.contains("0.04 % spread between 2 good sessions"),
        "only the accepted level counts: {shown}"
    );
}

#[test]
fn a_withdrawn_acceptance_no_longer_releases_anything() {
    let world = World::new();
    eleven_days(&world);
    let accept = ["baseline", "accept", "--who", "Ada", "--since", "bbbbbbb", "--why"];
    world.run(accept.into_iter().chain(["bigger tiles"])).expect_code(0);
    let mistaken = world.run(accept.into_iter().chain(["no", "--withdraw", "--benchmark", "mlp*"]));
    mistaken.expect_code(2);
    let withdrawn = world.run(accept.into_iter().chain(["not intended", "--withdraw"])).expect_code(0);
    assert!(
        withdrawn.stdout.starts_with("withdrew the acceptance of every benchmark from "),
        "{}",
        withdrawn.stdout
    );
    let shown = world.run(["baseline", "show"]).stdout;
    assert!(shown.contains("acceptance withdrawn: every benchmark"), "{shown}");
    assert!(shown.contains("Ada: not intended") && shown.contains("  quarantined 2026-10-11"), "{shown}");
    assert!(shown.contains("between 10 good sessions"), "{shown}");
    assert_eq!(update(&world, 12, 'c', 180_100.0).code, Some(10));
    let again = world.run(accept.into_iter().chain(["twice", "--withdraw"]));
    assert!(again.stderr.contains("no acceptance of every benchmark from 20261011T"), "{}", again.stderr);
    again.expect_code(2);
}

#[test]
fn an_acceptance_keeps_the_history_of_a_benchmark_that_the_session_did_not_measure() {
    let world = World::new();
    let night = |day: u8, letter: char, mlp: f64, vit: Option<f64>| {
        let mut both: serde_json::Value = serde_json::from_str(&run(day, letter, mlp)).unwrap();
        if let Some(latency) = vit {
            let other: serde_json::Value = serde_json::from_str(&run(day, letter, latency)).unwrap();
            let mut other = other["sides"][0]["benchmarks"][0].clone();
            other["name"] = "vit/cpu/main".into();
            both["sides"][0]["benchmarks"].as_array_mut().unwrap().push(other);
        }
        world.write("run.json", both.to_string());
        world.run(["baseline", "update"])
    };
    for day in 1..=10 {
        let latency = 120_000.0 + f64::from(day % 3) * 90.0;
        night(day, 'a', latency, Some(latency)).expect_code(0);
    }
    night(11, 'b', 180_000.0, None).expect_code(10);
    let without_vit = accepted(&world, "bbbbbbb");
    assert!(without_vit.contains("not accepted: vit/cpu/main: it was not measured"), "{without_vit}");
    // Twice as slow as before.
    night(12, 'c', 180_000.0, Some(240_000.0)).expect_code(10);

    let said = night(14, 'e', 180_000.0, None).expect_code(11).stdout;
    let mut commands = said.lines().filter_map(|line| line.trim().strip_prefix("benchgate baseline accept "));
    let command = commands.next().unwrap();
    assert!(command.contains("--benchmark vit/cpu/main") && commands.next().is_none(), "{said}");
    let words = shlex::split(command).unwrap();
    let accept = ["baseline", "accept"].into_iter().chain(words.iter().map(String::as_str));
    world.run(accept.chain(["--who", "Ada"])).expect_code(0);
    night(15, 'f', 180_000.0, None).expect_code(0);
}

/// If a session can't be trusted as a whole, the verdict of its rows would contradict the exit code.
#[test]
fn a_slow_session_of_edited_sources_is_an_error_in_the_last_line_too() {
    let world = World::new();
    for day in 1..=10 {
        update(&world, day, 'a', 120_000.0 + f64::from(day % 3) * 90.0);
    }
    let mut edited: serde_json::Value = serde_json::from_str(&run(11, 'b', 180_000.0)).unwrap();
    edited["sides"][0]["dirty"] = true.into();
    world.write("run.json", edited.to_string());
    let outcome = world.run(["baseline", "update"]).expect_code(20);
    let verdict = outcome.stdout.lines().find(|line| line.contains("exit code")).unwrap();
    assert_eq!(verdict, "Error (exit code 20): 1 of 1 benchmark regressed.");
    assert!(outcome.stdout.contains("quarantined: the whole run: unverified: "), "{}", outcome.stdout);
}

#[test]
fn a_pattern_that_matches_no_benchmark_is_a_mistake_on_the_command_line() {
    let world = World::new();
    update(&world, 1, 'a', 100.0);
    world.run(["baseline", "show", "--filter", "^resent"]).expect_code(2);
    world.run(["baseline", "show", "--filter", "^mlp"]).expect_code(0);
    let accept = ["baseline", "accept", "--why", "tiles", "--who", "Ada", "--benchmark"];
    world.run(accept.into_iter().chain(["resent*"])).expect_code(2);
    world.run(accept.into_iter().chain(["mlp*"])).expect_code(0);
}

#[test]
fn an_acceptance_is_in_the_name_that_git_knows() {
    let world = World::new();
    update(&world, 1, 'a', 100.0);
    for arguments in [&["init", "--quiet"][..], &["config", "user.name", "Ada Lovelace"]] {
        assert!(Command::new("git").args(arguments).current_dir(world.work()).status().unwrap().success());
    }
    world.run(["baseline", "accept", "--why", "bigger tiles"]).expect_code(0);
    let shown = world.run(["baseline", "show"]).expect_code(0).stdout;
    assert!(shown.contains("Ada Lovelace: bigger tiles"), "{shown}");
}

#[test]
fn the_same_run_twice_is_said_and_changes_nothing() {
    let world = World::new();
    update(&world, 1, 'a', 100.0);
    let again = update(&world, 1, 'a', 100.0);
    assert!(again.stdout.starts_with("already stored as "), "{}", again.stdout);
    assert!(world.run(["baseline", "list"]).stdout.contains("1 session,"));
}

#[test]
fn changes_are_placed_between_two_commits() {
    let world = World::new();
    for day in 1..=28 {
        let (letter, latency) = if day <= 14 { ('a', 120_000.0) } else { ('b', 126_000.0) };
        update(&world, day, letter, latency + f64::from(day % 4) * 150.0);
    }
    let shown = world.run(["baseline", "show", "quickstart", "--changes"]).stdout;
    let line = shown.lines().find(|line| line.contains("changed")).unwrap();
    insta::assert_snapshot!(line, @"  changed 2026-10-15 12:00: 5 % worse in aaaaaaaa..bbbbbbbb");
    let json = world.run(["baseline", "show", "--format", "json"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["benchmarks"][0]["changes"].as_array().unwrap().len(), 1);
}

#[test]
fn two_stored_runs_are_compared_as_files_are() {
    let world = World::new();
    eleven_days(&world);
    let diff = world.run(["baseline", "diff", "20261010", "20261011"]);
    assert_eq!(diff.code, Some(10), "{}", diff.stderr);
    let ambiguous = world.run(["baseline", "diff", "2026", "20261011"]);
    assert_eq!(ambiguous.code, Some(2));
}

#[test]
fn an_edited_file_is_named_also_when_quiet() {
    let world = World::new();
    let stored = update(&world, 1, 'a', 100.0).stdout;
    update(&world, 2, 'a', 100.0);
    let path = stored.split_whitespace().find(|word| word.ends_with(".json")).unwrap();
    let path = format!("baselines/{path}");
    world.write(&path, world.read(&path).replace("100.25", "50.25"));
    insta::assert_snapshot!(without_digests(&world.run(["baseline", "show", "--quiet"]).stderr), @"warning: quickstart/9c1f0e57/20261001T120000Z-[DIGEST].json is left out: sha256: the content has hash [DIGEST], not [DIGEST]: it was damaged or edited after it was written");
    insta::assert_snapshot!(without_digests(&world.run(["baseline", "verify", "--quiet"]).stderr), @"warning: quickstart/9c1f0e57/20261001T120000Z-[DIGEST].json is left out: sha256: the content has hash [DIGEST], not [DIGEST]: it was damaged or edited after it was written");
    assert_eq!(world.run(["baseline", "verify"]).code, Some(22));
}

#[test]
fn pruning_says_what_goes_before_it_goes() {
    let world = World::new();
    for day in 1..=8 {
        update(&world, day, 'a', 100.0);
    }
    let dry = world.run(["baseline", "prune", "--keep", "2", "--dry-run"]);
    assert_eq!(dry.stdout, "quickstart/9c1f0e57: would remove 1, 7 kept\n");
    world.run(["baseline", "prune", "--keep", "2"]);
    assert!(world.run(["baseline", "list"]).stdout.contains("7 sessions"));
    assert_eq!(world.run(["baseline", "prune", "--keep", "0"]).code, Some(2));
}

#[test]
fn a_slowdown_in_the_second_night_of_a_small_suite_is_red_within_a_week() {
    let world = World::new();
    let night =
        |day: u8, latency: f64| update(&world, day, 'a', latency + f64::from(day * 7 % 5) * 200.0).code;
    assert_eq!(night(1, 120_000.0), Some(0));
    let codes: Vec<Option<i32>> = (2..=9).map(|day| night(day, 132_000.0)).collect();
    assert_eq!(codes.last(), Some(&Some(10)), "{codes:?}");
    // An unchanged benchmark stays green.
    let world = World::new();
    let night = |day: u8| update(&world, day, 'a', 120_000.0 + f64::from(day * 7 % 5) * 200.0).code;
    assert!((1..=12).all(|day| night(day) == Some(0)));
}

#[test]
fn pruning_does_not_forget_an_open_slowdown() {
    let world = World::new();
    eleven_days(&world);
    world.run(["baseline", "prune", "--keep", "1"]).expect_code(0);
    assert_eq!(update(&world, 12, 'c', 180_100.0).code, Some(10));
    // Its newest good session is among those that are kept anyway.
    let world = World::new();
    for day in 1..=10 {
        update(&world, day, 'a', 120_000.0 + f64::from(day % 3) * 90.0);
    }
    update(&world, 11, 'b', 126_000.0);
    world.run(["baseline", "prune", "--keep", "2"]).expect_code(0);
    assert_eq!(update(&world, 12, 'c', 126_100.0).code, Some(10));
}

#[test]
fn nothing_to_show_is_exit_12_with_what_to_run() {
    let world = World::new();
    let outcome = world.run(["baseline", "show", "zoo"]);
    assert_eq!(outcome.code, Some(12));
    insta::assert_snapshot!(outcome.stderr, @"
    error: no such suite and testbed in baselines
    hint: `benchgate baseline list` lists the baselines; `benchgate baseline update` adds a session to one
    ");
}

/// Runs the binary on the server's branch.
fn on_branch(world: &World, server: &GitServer, token: &str, arguments: &[&str]) -> Outcome {
    let mut command: Command = world.command(arguments);
    command.args(["--branch", "--remote", &server.url()]).env("BENCHGATE_TOKEN", token);
    world.finish(command)
}

#[test]
fn a_branch_works_like_a_folder_and_the_token_shows_nowhere() {
    let (world, server) = (World::new(), GitServer::new());
    world.write("run.json", run(1, 'a', 100.0));
    let stored = on_branch(&world, &server, TOKEN, &["baseline", "update"]);
    assert_eq!(stored.code, Some(0), "{}", stored.stderr);
    let listed = on_branch(&world, &server, TOKEN, &["baseline", "list"]);
    assert!(listed.stdout.contains("quickstart  testbed 9c1f0e57  1 session,"), "{}", listed.stdout);
    assert_eq!(on_branch(&world, &server, TOKEN, &["baseline", "verify"]).code, Some(0));
    for outcome in [stored, listed] {
        assert!(!outcome.stdout.contains(TOKEN) && !outcome.stderr.contains(TOKEN));
    }
}

#[test]
fn a_refused_token_and_a_dead_server_are_exit_22_and_the_run_is_kept() {
    let (world, server) = (World::new(), GitServer::new());
    let before = run(1, 'a', 100.0);
    world.write("run.json", &before);
    let refused = on_branch(&world, &server, "ghs_wrong", &["baseline", "update"]);
    assert_eq!(refused.code, Some(22));
    assert!(
        refused.stderr.contains("BENCHGATE_TOKEN") && !refused.stderr.contains("ghs_wrong"),
        "{}",
        refused.stderr
    );
    let mut dead = world.command(["baseline", "update", "--branch", "--remote", "http://127.0.0.1:9/r.git"]);
    dead.env("BENCHGATE_TOKEN", TOKEN);
    let dead = world.finish(dead);
    assert_eq!(dead.code, Some(22));
    // The lines before the last one are git's own message.
    insta::assert_snapshot!(dead.stderr.lines().last().unwrap(), @"hint: nothing was changed there and your run.json is kept: run the same command again");
    assert_eq!(world.read("run.json"), before);
    assert_eq!(on_branch(&world, &server, TOKEN, &["baseline", "update"]).code, Some(0));
}

#[test]
fn a_kill_at_any_moment_leaves_a_baseline_that_the_next_update_finishes() {
    let (world, server) = (World::new(), GitServer::new());
    for moment in 0..8 {
        world.write("run.json", run(moment + 1, 'a', 100.0));
        let mut command = world.command(["baseline", "update", "--branch", "--remote", &server.url()]);
        let mut child = command
            .env("BENCHGATE_TOKEN", TOKEN)
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(u64::from(moment) * 60));
        // The process may have ended already.
        drop(child.kill());
        child.wait().unwrap();
        let again = on_branch(&world, &server, TOKEN, &["baseline", "update"]);
        assert_eq!(again.code, Some(0), "{}", again.stderr);
    }
    let verified = on_branch(&world, &server, TOKEN, &["baseline", "verify"]);
    assert!(verified.stdout.contains("8 runs in 1 baseline,"), "{}", verified.stdout);
    assert_eq!(verified.code, Some(0));
}

#[test]
fn a_night_is_judged_by_the_policy_of_its_suite() {
    let night = |gate: Option<serde_json::Value>| {
        let world = World::new();
        for day in 1..=10 {
            assert_eq!(update(&world, day, 'a', 120_000.0 + f64::from(day % 3) * 90.0).code, Some(0));
        }
        let mut slower: serde_json::Value = serde_json::from_str(&run(11, 'b', 150_000.0)).unwrap();
        if let Some(gate) = gate {
            slower["gate"] = gate;
        }
        world.write("run.json", slower.to_string());
        let outcome = world.run(["baseline", "update"]);
        // The report names the benchmark that was compared.
        assert!(outcome.said().contains("mlp/cpu/main"), "{}", outcome.stdout);
        let named = world.run(["baseline", "update", "--floor", "0.5"]);
        assert_eq!(named.code, Some(2));
        outcome.code
    };
    assert_eq!(night(None), Some(10));
    let latency = |floor: f64, tolerance: f64| {
        serde_json::json!([{
            "name": "latency", "floor": { "relative": floor, "absolute": 0 }, "tolerance": tolerance, "fatal": true,
        }])
    };
    let loose = serde_json::json!({
        "alpha": 0.01, "test": "auto", "fail_on": ["regressed"], "metrics": latency(0.3, 0.4),
    });
    assert_eq!(night(Some(loose)), Some(0));
}

/// A run that was measured elsewhere may state any policy.
#[test]
fn the_configuration_of_the_suite_judges_a_night_and_not_the_policy_in_its_file() {
    let world = World::new();
    for day in 1..=10 {
        assert_eq!(update(&world, day, 'a', 120_000.0 + f64::from(day % 3) * 90.0).code, Some(0));
    }
    let mut slower: serde_json::Value = serde_json::from_str(&run(11, 'b', 150_000.0)).unwrap();
    slower["gate"] = serde_json::json!({
        "alpha": 0.01, "test": "auto", "fail_on": ["regressed"], "metrics": [{
            "name": "latency", "floor": { "relative": 0.3, "absolute": 0 }, "tolerance": 0.4, "fatal": true,
        }],
    });
    let suite = slower["suite"].as_str().unwrap().to_owned();
    let toml = format!("[suite]\nname = \"{suite}\"\n\n[[command]]\nname = \"a\"\nrun = \"true\"\n");
    world.write("benchgate.toml", &toml);
    world.write("run.json", slower.to_string());
    let outcome = world.run(["baseline", "update"]).expect_code(10);
    assert!(outcome.stderr.contains("the policy of benchgate.toml applies"), "{}", outcome.said());
}

#[test]
fn a_first_session_and_one_that_is_stored_again_are_judged_by_limits() {
    let world = World::new();
    let limited = |day: u8, letter: char, max: f64| {
        let mut run: serde_json::Value = serde_json::from_str(&run(day, letter, 120_000.0)).unwrap();
        run["gate"] = serde_json::json!({
            "alpha": 0.01, "test": "auto", "fail_on": ["regressed"], "metrics": [],
            "limits": [{ "benchmark": "*", "metric": "latency", "max": max }],
        });
        for side in run["sides"].as_array_mut().unwrap() {
            let processes = side["benchmarks"][0]["processes"].as_array_mut().unwrap();
            let one = processes[0].clone();
            *processes = (0..12)
                .map(|at| {
                    let mut process = one.clone();
                    let time = 120_000.0 + f64::from(at) + f64::from(day) * 0.25;
                    process["samples"]["latency"] = vec![time, time + 0.25, time + 0.5].into();
                    process["order"] = at.into();
                    process.as_object_mut().unwrap().remove("slot");
                    process
                })
                .collect();
        }
        world.write("run.json", run.to_string());
        world.run(["baseline", "update"])
    };
    for (day, letter) in [(1, 'a'), (1, 'a'), (2, 'b'), (2, 'b')] {
        let outcome = limited(day, letter, 100_000.0).expect_code(10);
        assert!(outcome.said().contains("above the limit"), "{}", outcome.said());
    }
    limited(3, 'c', 200_000.0).expect_code(0);
    limited(3, 'c', 200_000.0).expect_code(0);
}

/// A session with eight processes, whose times depend on `seed`.
fn session(day: u8, letter: char, seed: u32) -> serde_json::Value {
    let mut run: serde_json::Value = serde_json::from_str(&run(day, letter, 120_000.0)).unwrap();
    let processes = run["sides"][0]["benchmarks"][0]["processes"].as_array_mut().unwrap();
    let one = processes[0].clone();
    *processes = (0..8u32)
        .map(|at| {
            let mut process = one.clone();
            let time = 120_000.125 + f64::from((at * 7919 + seed * 104_729) % 997);
            process["samples"]["latency"] = vec![time, time + 0.25, time + 0.5].into();
            process["order"] = at.into();
            process.as_object_mut().unwrap().remove("slot");
            process
        })
        .collect();
    run
}

#[test]
fn a_session_that_is_a_copy_of_a_stored_one_under_another_commit_is_refused() {
    let world = World::new();
    let update = |run: &serde_json::Value| {
        world.write("run.json", run.to_string());
        world.run(["baseline", "update"])
    };
    for (day, letter) in [(1, 'a'), (2, 'b'), (3, 'c')] {
        update(&session(day, letter, day.into())).expect_code(0);
    }
    let refused = update(&session(4, 'd', 2));
    assert!(!matches!(refused.code, Some(0 | 1)), "{}", refused.said());
    assert!(refused.stderr.contains("are exactly those of"), "{}", refused.said());
    update(&session(4, 'd', 4)).expect_code(0);
    // The machine of the folder is another one than the facts of the run say.
    let mut moved = session(5, 'e', 5);
    for fact in moved["testbed"]["facts"].as_object_mut().unwrap().values_mut() {
        *fact = "another".into();
    }
    assert_ne!(update(&moved).code, Some(0));
}

#[test]
fn a_session_in_the_folder_of_another_machine_or_commit_is_never_used() {
    let world = World::new();
    for (day, letter) in [(1, 'a'), (2, 'b')] {
        world.write("run.json", session(day, letter, day.into()).to_string());
        world.run(["baseline", "update"]).expect_code(0);
    }
    let suite = world.work().join("baselines");
    let only = |folder: &std::path::Path| std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let testbed = only(&only(&suite));
    let stored = std::fs::read_dir(&testbed).unwrap().map(|entry| entry.unwrap().path());
    let newest = stored.max().unwrap();
    let name = newest.file_name().unwrap().to_str().unwrap().to_owned();
    let refused = |path: &std::path::Path, why: &str| {
        let outcome = world.run(["baseline", "verify"]);
        assert_ne!(outcome.code, Some(0), "{}", outcome.said());
        assert!(outcome.stderr.contains(why), "{}: {}", path.display(), outcome.stderr);
    };
    let other = testbed.with_file_name("0000");
    std::fs::create_dir(&other).unwrap();
    std::fs::copy(&newest, other.join(&name)).unwrap();
    refused(&other, "it belongs in");
    std::fs::remove_dir_all(&other).unwrap();
    let renamed = testbed.join(name.replace('b', "c"));
    std::fs::rename(&newest, &renamed).unwrap();
    refused(&renamed, "its name should be");
}

#[test]
fn an_acceptance_says_which_sessions_it_releases_and_which_stay_in_quarantine() {
    let world = World::new();
    eleven_days(&world);
    assert_eq!(update(&world, 12, 'c', 180_100.0).code, Some(10));
    let mut edited: serde_json::Value = serde_json::from_str(&run(13, 'd', 180_000.0)).unwrap();
    edited["sides"][0]["dirty"] = true.into();
    world.write("run.json", edited.to_string());
    assert_eq!(world.run(["baseline", "update"]).code, Some(20));
    insta::assert_snapshot!(accepted(&world, "bbbbbbb"), @"
    released from quarantine: 20261011T120000Z-[DIGEST], 20261012T120000Z-[DIGEST]
    still in quarantine: 20261013T120000Z-[DIGEST]: the whole run: unverified: the sources differed from their commit
    in later sessions, an acceptance releases only slowdowns; to accept one of these results, name its session with `--since SESSION`
    later sessions are compared with the accepted ones, and can be quarantined again
    ");
    insta::assert_snapshot!(accepted(&world, "ddddddd"), @"
    released from quarantine: 20261013T120000Z-[DIGEST]
    released although not quarantined for a slowdown (1 unverified): 20261013T120000Z-[DIGEST]: the whole run: unverified: the sources differed from their commit
    later sessions are compared with the accepted ones, and can be quarantined again
    ");
}

#[test]
fn the_command_that_an_update_prints_releases_the_session_that_it_stored() {
    let world = World::new();
    let store = |day: u8, letter: char, latency: f64| {
        world.write("run.json", run(day, letter, latency));
        world.run(["baseline", "update", "--store", "my nights"])
    };
    (1..=10).for_each(|day| drop(store(day, 'a', 120_000.0 + f64::from(day % 3) * 90.0).expect_code(0)));
    let red = store(11, 'b', 180_000.0).expect_code(10);
    store(12, 'c', 180_100.0).expect_code(10);
    let command = red.stdout.lines().find_map(|line| line.trim().strip_prefix("benchgate ")).unwrap();
    assert_eq!(
        without_digests(command),
        "baseline accept quickstart --testbed 9c1f0e57 --store 'my nights' --since 20261011T120000Z-[DIGEST] --why REASON"
    );
    let words = shlex::split(command).unwrap();
    let accepted = world.run(words.iter().map(String::as_str).chain(["--who", "Ada"])).expect_code(0);
    assert!(accepted.said().contains("from 20261011T120000Z-"), "{}", accepted.stdout);
    assert!(accepted.said().contains("released from quarantine: 20261011T120000Z-"), "{}", accepted.stdout);
}

/// Accepts a session and returns the message without its first line, which contains the time of the acceptance.
fn accepted(world: &World, since: &str) -> String {
    let arguments = ["baseline", "accept", "--since", since, "--why", "bigger tiles", "--who", "Ada"];
    let said = without_digests(&world.run(arguments).expect_code(0).stdout);
    said.lines().skip(1).map(|line| format!("{line}\n")).collect()
}

#[test]
fn an_acceptance_that_releases_wrong_outputs_says_so() {
    let world = World::new();
    for day in 1..=10 {
        update(&world, day, 'a', 120_000.0 + f64::from(day % 3) * 90.0);
    }
    let mut wrong: serde_json::Value = serde_json::from_str(&run(11, 'b', 120_000.0)).unwrap();
    wrong["sides"][0]["benchmarks"][0]["verification"]["code"] = "FAIL".into();
    world.write("run.json", wrong.to_string());
    world.run(["baseline", "update"]).expect_code(13);
    insta::assert_snapshot!(accepted(&world, "bbbbbbb"), @"
    released from quarantine: 20261011T120000Z-[DIGEST]
    released although not quarantined for a slowdown (1 diverged): 20261011T120000Z-[DIGEST]: mlp/cpu/main: diverged: its outputs are wrong
    later sessions are compared with the accepted ones, and can be quarantined again
    ");
}

#[test]
fn an_acceptance_that_releases_nothing_says_why() {
    let world = World::new();
    eleven_days(&world);
    assert_eq!(update(&world, 12, 'c', 180_100.0).code, Some(10));
    accepted(&world, "ccccccc");
    insta::assert_snapshot!(accepted(&world, "bbbbbbb"), @"
    the acceptance releases no session from quarantine
    released by an earlier acceptance: 20261012T120000Z-[DIGEST]
    older than an accepted session, so not part of the baseline: 20261011T120000Z-[DIGEST]
    later sessions are compared with the accepted ones, and can be quarantined again
    ");
    let quiet = World::new();
    update(&quiet, 1, 'a', 100.0);
    insta::assert_snapshot!(accepted(&quiet, "aaaaaaa"), @"
    the acceptance releases no session from quarantine
    none of the accepted sessions is in quarantine
    later sessions are compared with the accepted ones, and can be quarantined again
    ");
}
