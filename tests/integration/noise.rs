//! `benchgate noise` with fake tools.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::Pid;

use crate::suite::Suite;

#[test]
fn a_machine_is_calibrated_with_its_own_code_against_itself() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).write();
    let args = ["noise", "--blocks", "6", "--resamples", "20"];
    let outcome = suite.world.run(args).expect_code(0);
    assert!(outcome.said().contains("a/cpu"), "{}", outcome.stdout);

    // The recorded session gives the same figures again without any tools.
    std::fs::remove_dir_all(suite.world.work().join("tools")).unwrap();
    let again = [
        "noise",
        "--no-measure",
        "--run",
        "noise.json",
        "--resamples",
        "20",
        "--max-blocks",
        "6",
        "--format",
        "json",
    ];
    let read: serde_json::Value =
        serde_json::from_str(&suite.world.run(again).expect_code(0).stdout).unwrap();
    assert_eq!(read["false_reds"]["of"], 20);
    let run: serde_json::Value = serde_json::from_str(&suite.world.read("noise.json")).unwrap();
    let processes = |side: usize| run["sides"][side]["benchmarks"][0]["processes"].as_array().unwrap().len();
    assert_eq!([processes(0), processes(1)], [12, 12], "two processes a side and block");
}

#[test]
fn resampling_ends_when_its_figures_are_precise_and_says_what_they_mean() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).write();
    let outcome = suite.world.run(["noise", "--blocks", "6"]).expect_code(0);
    let last = outcome.stdout.trim_end().rsplit("\n\n").next().unwrap().replace('\n', " ");
    assert!(last.starts_with("This machine can gate slowdowns of 3 % and more:"), "{}", outcome.stdout);
    let asked = outcome.stderr.lines().filter(|line| line.contains("simulating sessions")).count();
    assert_eq!(asked, 1, "{}", outcome.stderr);
    let again = ["noise", "--no-measure", "--run", "noise.json", "--max-blocks", "6", "--format", "json"];
    let read: serde_json::Value =
        serde_json::from_str(&suite.world.run(again).expect_code(0).stdout).unwrap();
    let judged = read["false_reds"]["of"].as_u64().unwrap();
    assert!((100..500).contains(&judged), "{read}");
}

#[test]
fn resampling_that_takes_long_is_ended_by_a_signal() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).write();
    let mut command = suite.world.command(["noise", "--blocks", "6", "--resamples", "10000000"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while !suite.world.work().join("noise.json").exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing was measured");
        std::thread::sleep(Duration::from_millis(10));
    }
    // The signal may arrive while the files of the last tool are removed, or while resampling.
    let ended = (0..600).find_map(|_| {
        nix::sys::signal::kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).ok()?;
        std::thread::sleep(Duration::from_millis(100));
        child.try_wait().unwrap()
    });
    child.kill().unwrap();
    assert!(ended.is_some_and(|status| !status.success()), "{ended:?}");
}

#[test]
fn a_calibration_is_stored_in_every_later_run_of_its_suite_on_its_machine() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).base("").write();
    suite.world.run(["noise", "--blocks", "4", "--resamples", "5"]).expect_code(0);
    let spreads = |file: &str| {
        let run: serde_json::Value = serde_json::from_str(&suite.world.read(file)).unwrap();
        run["calibration"].clone()
    };
    suite.world.run(["gate"]).expect_no_failure();
    assert_eq!(spreads("run.json"), spreads("noise.json"));
    assert_eq!(spreads("run.json")["spreads"][0]["benchmark"], "a/cpu/main");

    // A calibration that the user named must fit. A stored one that does not fit is ignored with a warning.
    let mut other: serde_json::Value = serde_json::from_str(&suite.world.read("noise.json")).unwrap();
    other["suite"] = "another".into();
    suite.world.write("other.json", other.to_string());
    let refused = suite.world.run(["gate", "--calibration", "other.json"]).expect_code(2);
    insta::assert_snapshot!(refused.messages(), @r#"
    error: failed to use the calibration other.json: it was made for the suite "another", but this suite is "fake"
    hint: `benchgate noise` measures one for this suite on this machine
    "#);
    let only = |folder: &Path| std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let kept = only(&suite.world.cache().join("benchgate/calibration"));
    for (field, value, why) in [("created", "2020-01-01T00:00:00Z", "90"), ("schema", "?", "schema")] {
        let mut old: serde_json::Value = serde_json::from_str(&suite.world.read("noise.json")).unwrap();
        old[field] = value.into();
        std::fs::write(&kept, old.to_string()).unwrap();
        let outcome = suite.world.run(["gate"]).expect_no_failure();
        let warned = outcome.stderr.lines().any(|line| line.contains("warning:") && line.contains(why));
        assert!(warned, "{}", outcome.stderr);
        assert!(spreads("run.json").is_null());
    }
}

#[test]
fn other_programs_that_ran_meanwhile_are_said_with_the_conclusion() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).write();
    suite.world.run(["noise", "--blocks", "4", "--resamples", "5"]).expect_code(0);
    let recorded = |share: f64| {
        let mut run: serde_json::Value = serde_json::from_str(&suite.world.read("noise.json")).unwrap();
        for side in run["sides"].as_array_mut().unwrap() {
            for process in side["benchmarks"][0]["processes"].as_array_mut().unwrap() {
                process["telemetry"]["cpu"] =
                    serde_json::json!({ "foreign": share, "stolen": 0.0, "resolution": 0.01 });
            }
        }
        suite.world.write("recorded.json", run.to_string());
        let args = ["noise", "--no-measure", "--run", "recorded.json", "--resamples", "5"];
        suite.world.run(args).expect_code(0).said()
    };
    assert!(recorded(0.63).contains("16 of 16 processes and used 63 % of the measured processors"));
    assert!(!recorded(0.0).contains("Other programs"));
}

#[test]
fn sides_that_differ_calibrate_nothing() {
    let suite = Suite::new()
        .model("a", &["latency-us=1000"])
        .base("")
        .head("flags = [\"--fake=latency-us=1200\"]")
        .write();
    suite.world.run(["run"]).expect_code(0);
    let outcome = suite.world.run(["noise", "--no-measure", "--run", "run.json"]).expect_code(2);
    insta::assert_snapshot!(outcome.messages(), @"
    error: failed to calibrate from run.json: the sides of a/cpu/main are different programs
    hint: leave --no-measure out, and benchgate measures the head against itself
    ");
}

#[test]
fn one_free_block_does_not_calibrate() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).base("").write();
    suite.world.run(["gate"]).expect_no_failure();
    let outcome = suite.world.run(["noise", "--no-measure", "--run", "run.json"]).expect_code(20);
    insta::assert_snapshot!(outcome.messages(), @"
    error: failed to calibrate from run.json: it has 1 paired block and needs at least 4
    hint: measure more: `benchgate noise --blocks 12`
    ");
}
