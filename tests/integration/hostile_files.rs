//! Files that may come from anyone are read with size limits, and committed links that lead out of the
//! repository are not followed.

use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::harness::World;
use crate::suite::Suite;

const GOLDEN: &str = include_str!("../fixtures/record/run-v1.json");

/// Every command that reads a result. `FILE` stands for the result.
const READERS: [&[&str]; 5] = [
    &["compare", "FILE"],
    &["explain", "FILE"],
    &["report", "FILE", "--format", "html"],
    &["publish", "--run", "FILE", "--dry-run"],
    &["baseline", "update", "--run", "FILE"],
];

fn world() -> World {
    let world = World::new();
    world.write("a.mlir", "// a\n");
    world.write(
        "benchgate.toml",
        "[suite]\nname = \"quickstart\"\n[toolchain]\nversion = \"3.13.0\"\n\
         commit = \"1111111111111111111111111111111111111111\"\n\
         [[model]]\nname = \"a\"\nsource = \"a.mlir\"\n[[target]]\nname = \"cpu\"\nbackend = \"llvm-cpu\"\n",
    );
    world
}

#[test]
fn what_is_not_a_regular_file_of_a_sensible_size_is_refused_at_once() {
    let world = world();
    let work = world.work();
    // The file is sparse: it takes no space on the disk, but reading it would take 3 GB of memory.
    std::fs::File::create(work.join("sparse")).unwrap().set_len(3 << 30).unwrap();
    assert!(Command::new("mkfifo").arg(work.join("pipe")).status().unwrap().success());
    symlink("/dev/zero", work.join("endless")).unwrap();
    symlink("/dev/tty", work.join("terminal")).unwrap();
    std::fs::create_dir(work.join("folder")).unwrap();
    for file in ["sparse", "pipe", "endless", "folder", "/dev/zero"] {
        for reader in READERS {
            let args = reader.iter().map(|word| if *word == "FILE" { file } else { *word });
            let started = Instant::now();
            let outcome = world.run(args);
            assert_eq!(outcome.code, Some(21), "{reader:?} {file}: {}", outcome.stderr);
            assert!(started.elapsed() < Duration::from_secs(60), "{reader:?} {file}");
        }
    }
}

#[test]
fn what_a_suite_reads_next_to_its_configuration_is_bounded_too() {
    let cases: [(&str, &[&str], i32); 4] = [
        ("benchgate.lock", &["run"], 20),
        ("benchgate.toml", &["run"], 2),
        ("calibration.json", &["run", "--calibration", "calibration.json"], 2),
        ("baselines", &["baseline", "show"], 0),
    ];
    for (name, args, code) in cases {
        for kind in ["sparse", "pipe", "endless"] {
            let suite = Suite::new().model("a", &["latency-us=1000"]).write();
            let mut place = suite.world.work().join(name);
            if name == "baselines" {
                place = place.join("fake/0123456789ab/2026-01-01T00-00-00Z-0123456789ab-0.json");
            }
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            drop(std::fs::remove_file(&place));
            match kind {
                "sparse" => std::fs::File::create(&place).unwrap().set_len(3 << 30).unwrap(),
                "pipe" => assert!(Command::new("mkfifo").arg(&place).status().unwrap().success()),
                _ => symlink("/dev/zero", &place).unwrap(),
            }
            let started = Instant::now();
            let outcome = suite.world.run(args);
            assert!(started.elapsed() < Duration::from_secs(60), "{name} {kind}");
            if name != "baselines" {
                assert_eq!(outcome.code, Some(code), "{name} {kind}: {}", outcome.stderr);
            }
        }
    }
}

#[test]
fn a_result_of_more_benchmarks_than_a_suite_can_have_is_refused() {
    let world = world();
    let mut run: serde_json::Value = serde_json::from_str(GOLDEN).unwrap();
    let one = serde_json::json!({"name": "", "outcome": {"status": "skipped", "why": "x"}});
    for side in run["sides"].as_array_mut().unwrap() {
        let many = (0..12_000).map(|at| {
            let mut row = one.clone();
            row["name"] = format!("{at}/cpu/main").into();
            row
        });
        side["benchmarks"] = many.collect();
    }
    world.write("many.json", run.to_string());
    for reader in READERS {
        let args = reader.iter().map(|word| if *word == "FILE" { "many.json" } else { *word });
        let outcome = world.run(args);
        assert_eq!(outcome.code, Some(21), "{reader:?}: {}", outcome.stderr);
    }
}

#[test]
fn a_link_that_was_committed_does_not_take_sessions_outside_the_repository() {
    for link in [".benchgate", ".benchgate/sessions", ".benchgate/logs"] {
        let suite = Suite::new().model("a", &["latency-us=1000"]).write();
        let outside = suite.world.locks().join("outside");
        std::fs::create_dir(&outside).unwrap();
        let place = suite.world.work().join(link);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        symlink(&outside, place).unwrap();
        suite.world.run(["run"]).expect_code(2);
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0, "{link}");
    }
}

/// A session that looks interrupted is resumed. A pull request could commit one with invented times, which
/// would decide the verdict wherever the pull request is checked out.
#[test]
fn a_session_that_was_committed_is_not_resumed() {
    let suite = Suite::new()
        .model("a", &["latency-us=1000"])
        .base("")
        .head("flags = [\"--fake=latency-us=1300\"]")
        .write();
    let work = suite.world.work();
    let git = |args: &[&str]| {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
        let done = Command::new("git").args(identity).args(args).current_dir(&work).output().unwrap();
        assert!(done.status.success(), "git {args:?}: {done:?}");
    };
    git(&["init", "--quiet"]);
    suite.world.run(["gate"]).expect_code(10);
    let sessions = work.join(".benchgate/sessions");
    let session = std::fs::read_dir(&sessions).unwrap().next().unwrap().unwrap().path();
    std::fs::remove_file(session.join("complete")).unwrap();
    let mut forged = 0;
    for entry in std::fs::read_dir(session.join("processes")).unwrap() {
        let path = entry.unwrap().path();
        let Ok(mut record) = serde_json::from_slice::<serde_json::Value>(&std::fs::read(&path).unwrap())
        else {
            continue;
        };
        if let Some(samples) = record["process"]["samples"]["latency"].as_array_mut() {
            for sample in samples {
                let time = sample.as_f64().unwrap();
                *sample = if time > 1_150_000.0 { time / 1.3 } else { time }.into();
                forged += 1;
            }
        }
        std::fs::write(path, record.to_string()).unwrap();
    }
    assert!(forged > 0, "the form of a session has changed");
    // A committed session is refused. Otherwise it is a session like any other.
    git(&["add", "--force", ".benchgate/sessions"]);
    let refused = suite.world.run(["gate"]).expect_code(2);
    assert!(refused.stderr.contains("is committed"), "{}", refused.stderr);
    git(&["rm", "--quiet", "-r", "--cached", ".benchgate"]);
    suite.world.run(["gate"]);
}

#[test]
fn a_refused_command_fails_and_leaves_an_earlier_result_alone() {
    // The action removes a committed result before it starts anything (tests/action).
    for (command, code) in [(&["gate"][..], 2), (&["run"], 2), (&["gate", "--publish"], 2)] {
        let world = World::new();
        world.write("run.json", GOLDEN);
        world.run(command).expect_code(code);
        assert_eq!(world.read("run.json"), GOLDEN, "{command:?}");
    }
}
