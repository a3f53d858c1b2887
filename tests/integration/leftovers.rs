//! Files of runs that remain on the disk and are shared: outputs, caches, sessions.

use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::suite::Suite;

#[test]
fn an_output_that_is_a_pipe_is_written_to_and_not_replaced() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).write();
    suite.world.run(["run"]).expect_code(0);
    let pipe = suite.world.work().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    for command in [
        &["run", "--run", "pipe"][..],
        &["convert", "run.json", "pipe", "--to", "csv"],
        &["compare", "run.json", "run.json", "--format", "json", "--output", "pipe", "--warn-only"],
    ] {
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::read_to_string(pipe).unwrap()
        });
        let outcome = suite.world.run(command);
        assert!(
            std::fs::metadata(&pipe).unwrap().file_type().is_fifo(),
            "{command:?} replaced it: {}",
            outcome.stderr
        );
        assert!(!reader.join().unwrap().is_empty(), "{command:?}: {}", outcome.stderr);
    }
}

#[test]
fn an_output_that_is_a_device_is_written_to_and_not_replaced() {
    use nix::sys::stat::{Mode, SFlag, makedev, mknod};

    let suite = Suite::new().model("a", &["latency-us=1000"]).base("").write();
    suite.world.run(["run"]).expect_code(0);
    std::fs::rename(suite.world.work().join("run.json"), suite.world.work().join("kept.json")).unwrap();
    let own = suite.world.work().join("null");
    // With the right to create devices, a bug could replace the system's device, so the test creates its own.
    // Without this right, the system's device can't be replaced.
    let made = mknod(&own, SFlag::S_IFCHR, Mode::S_IRWXU, makedev(1, 3));
    let device = if made.is_ok() { own } else { PathBuf::from("/dev/null") };
    let name = device.to_str().unwrap();
    for command in [
        &["run", "--run", name][..],
        &["gate", "--run", name],
        &["compare", "kept.json", "--warn-only", "--output", name],
    ] {
        suite.world.run(command).expect_no_failure();
        assert!(std::fs::symlink_metadata(&device).unwrap().file_type().is_char_device(), "{command:?}");
    }
}

#[test]
fn results_and_cache_entries_have_the_rights_that_the_umask_leaves() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).write();
    suite.world.run(["run"]).expect_code(0);
    let plain = suite.world.write("plain", "");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&suite.world.work().join("run.json")), mode(&plain));
    for path in below(&suite.world.cache()) {
        let is_folder = path.is_dir();
        assert_eq!(mode(&path) & 0o444, 0o444 & mode(&plain), "{}", path.display());
        assert!(!is_folder || mode(&path) & 0o100 != 0);
    }
}

#[test]
fn a_run_that_finds_all_it_needs_only_marks_the_entries_of_the_cache_as_used() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).write();
    suite.world.run(["run"]).expect_code(0);
    // A folder's time changes when an entry is created or removed, even for a short time.
    let times = || {
        let is_entry = |path: &PathBuf| path.is_dir() && path.file_name().unwrap().len() == 64;
        let all = below(&suite.world.cache()).into_iter().filter(|path| !is_entry(path));
        all.map(|path| (std::fs::metadata(&path).unwrap().mtime_nsec(), path)).collect::<Vec<_>>()
    };
    let before = times();
    suite.world.run(["run"]).expect_code(0);
    assert_eq!(times(), before);
}

#[test]
fn the_next_run_removes_what_a_kill_left() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).write();
    let left = suite.world.write(".benchgate-Xy12Zz", "half of a run");
    let scratch = suite.world.write(".benchgate/scratch/dead/content/output0.npy", "half of an output");
    suite.world.run(["run"]).expect_code(0);
    assert!(!left.exists());
    assert!(!scratch.exists());
}

/// Two jobs share a working folder but can't see each other's locks, as in two containers.
#[test]
fn jobs_that_share_a_working_folder_and_no_lock_do_not_share_a_session() {
    let suite = Suite::new()
        .model("a", &["latency-us=1000", "pause-ms=50"])
        .model("b", &["latency-us=2000", "pause-ms=50"])
        .measure("")
        .write();
    let jobs: Vec<_> = ["one", "two"]
        .map(|name| {
            let locks = suite.world.work().join(format!("locks-{name}"));
            std::fs::create_dir(&locks).unwrap();
            let mut command = suite.world.command(["run", "--run", &format!("{name}.json")]);
            command.env("BENCHGATE_LOCK_DIR", locks).stderr(Stdio::null()).stdout(Stdio::null());
            command.spawn().unwrap()
        })
        .into();
    for mut job in jobs {
        assert!(job.wait().unwrap().success());
    }
    let runs =
        ["one.json", "two.json"].map(|name| serde_json::from_str::<Value>(&suite.world.read(name)).unwrap());
    assert_ne!(runs[0]["session"], runs[1]["session"]);
    let mut seen = Vec::new();
    for run in &runs {
        for benchmark in run["sides"][0]["benchmarks"].as_array().unwrap() {
            for process in benchmark["processes"].as_array().unwrap() {
                assert!(!seen.contains(&process["samples"]), "one process under two benchmarks");
                seen.push(process["samples"].clone());
            }
        }
    }
    assert_eq!(seen.len(), 8, "two processes of two benchmarks, twice");
}

/// All files and folders below a folder, sorted.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path.clone());
            }
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Makes the files below `folder` look unused for this many days. Their access times are current, as after a
/// search or a backup.
pub fn age(folder: &Path, days: u64) {
    let now = std::time::SystemTime::now();
    let then = now - std::time::Duration::from_secs(days * 24 * 3600);
    let times = std::fs::FileTimes::new().set_accessed(now).set_modified(then);
    for path in below(folder) {
        std::fs::File::open(&path).unwrap().set_times(times).unwrap();
    }
}

fn contents(folder: &Path) -> Vec<PathBuf> {
    below(folder).into_iter().filter(|path| path.is_file()).collect()
}

#[test]
fn clean_removes_what_nothing_used_for_a_while_and_it_is_made_again() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).write();
    suite.world.run(["run"]).expect_code(0);
    let all = contents(&suite.world.cache());
    let bystander = suite.world.cache().join("benchgate/notes/2026/mine.txt");
    std::fs::create_dir_all(bystander.parent().unwrap()).unwrap();
    std::fs::write(&bystander, "not benchgate's").unwrap();

    let said = suite.world.run(["clean", "--older-than", "7"]).expect_code(0).stdout;
    assert!(said.starts_with("nothing to remove"), "{said}");
    assert!(said.ends_with(", used in the last 24 hours; `--older-than 0` removes these too\n"), "{said}");
    age(&suite.world.cache(), 3);
    let said = suite.world.run(["clean", "--older-than", "7"]).expect_code(0).stdout;
    assert!(
        said.ends_with(", used in the last 7 days; `--older-than` and `--max-size` remove more\n"),
        "{said}"
    );
    age(&suite.world.cache(), 8);
    age(&suite.world.work().join(".benchgate"), 8);
    let said = suite.world.run(["clean", "--older-than", "7", "--dry-run"]).expect_code(0).stdout;
    assert!(said.contains("would remove"), "{said}");
    assert!(all.iter().all(|path| path.exists()), "a dry run removed something");

    // A file that a run uses again is no longer old.
    suite.world.run(["run"]).expect_code(0);
    suite.world.run(["clean", "--older-than", "7"]).expect_code(0);
    assert_eq!(contents(&suite.world.cache()).len(), all.len() + 1);

    age(&suite.world.cache(), 8);
    suite.world.run(["doctor"]);
    suite.world.run(["clean", "--older-than", "7"]).expect_code(0);
    assert_eq!(contents(&suite.world.cache()), [bystander]);
    suite.world.run(["run"]).expect_code(0);
    assert_eq!(contents(&suite.world.cache()).len(), all.len() + 1);
}

#[test]
fn clean_removes_what_was_used_today_only_if_asked_and_never_while_something_is_measured() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).write();
    suite.world.run(["run"]).expect_code(0);
    let all = contents(&suite.world.cache());
    let measuring = std::fs::File::open(suite.world.locks().join("benchgate-host.lock")).unwrap();
    measuring.lock().unwrap();
    suite.world.run(["clean", "--older-than", "0"]).expect_code(2);
    assert_eq!(contents(&suite.world.cache()), all);
    drop(measuring);
    suite.world.run(["clean", "--older-than", "0"]).expect_code(0);
    assert_eq!(contents(&suite.world.cache()), Vec::<PathBuf>::new());
    suite.world.run(["run"]).expect_code(0);
}

#[test]
fn a_cache_that_is_too_large_loses_what_was_unused_for_longest_and_nothing_of_today() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).model("b", &["latency-us=1000"]).write();
    suite.world.run(["run", "--filter", "a/*"]).expect_code(0);
    age(&suite.world.cache(), 3);
    suite.world.run(["run", "--filter", "b/*"]).expect_code(0);
    let before = contents(&suite.world.cache());
    suite.world.run(["clean", "--max-size", "0"]).expect_code(0);
    let after = contents(&suite.world.cache());
    assert!(!after.is_empty() && after.len() < before.len(), "{before:?}\n{after:?}");
    let outcome = suite.world.run(["run", "--filter", "b/*"]).expect_code(0);
    assert_eq!(contents(&suite.world.cache()), after, "{}", outcome.stderr);
}
