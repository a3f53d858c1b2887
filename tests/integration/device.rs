//! The lock that keeps two measurements apart, tested with real processes, and other programs on the measured
//! processor.

use std::process::Stdio;
use std::time::Duration;

use benchgate::device::{default_cpus, lock};
use benchgate::model::Quiet;
use benchgate::process::Cancel;

use crate::suite::Suite;

use super::process::{assert_gone, fake_tool, wait_for_note};

#[tokio::test]
async fn a_killed_measurement_gives_its_device_back() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("pids");
    let device = format!("test-{}", std::process::id());
    let mut job = std::process::Command::new(fake_tool())
        .args(["measure", &device, "hang-ignoring-sigterm", note.to_str().unwrap()])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for_note(&note);
    let cancel = Cancel::new();
    let held = tokio::time::timeout(Duration::from_millis(300), lock(&device, None, &Quiet, &cancel)).await;
    assert!(held.is_err(), "two measurements at once");
    job.kill().unwrap();
    job.wait().unwrap();
    tokio::time::timeout(Duration::from_secs(10), lock(&device, None, &Quiet, &cancel))
        .await
        .unwrap()
        .unwrap();
    assert_gone(&note, Duration::from_secs(5));
    for folder in ["/run/lock", "/var/lock", "/tmp"] {
        drop(std::fs::remove_file(format!("{folder}/benchgate-{device}.lock")));
    }
}

/// Keeps a processor busy with a thread of this test that is pinned to it.
fn burn_on(cpu: usize, stop: &std::sync::atomic::AtomicBool) {
    use nix::sched::{CpuSet, sched_setaffinity};
    let mut set = CpuSet::new();
    set.set(cpu).unwrap();
    sched_setaffinity(nix::unistd::Pid::from_raw(0), &set).unwrap();
    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
        std::hint::spin_loop();
    }
}

/// For each process of a run, the share of the measured processor that other programs used.
fn foreign_shares(suite: &Suite) -> Vec<f64> {
    let run = suite.run_json();
    let sides = run["sides"].as_array().unwrap().clone();
    let benchmarks: Vec<_> =
        sides.iter().flat_map(|side| side["benchmarks"].as_array().unwrap().clone()).collect();
    let mut processes: Vec<_> =
        benchmarks.iter().flat_map(|benchmark| benchmark["processes"].as_array().unwrap().clone()).collect();
    processes.sort_by_key(|process| process["order"].as_u64());
    processes
        .iter()
        .map(|process| process["telemetry"]["cpu"]["foreign"].as_f64().unwrap_or_default())
        .collect()
}

/// A program keeps the measured processor of the real machine busy from the middle of a block until before
/// its end. The telemetry of the affected processes and the report must show this.
#[test]
fn a_program_that_burns_the_measured_processor_in_the_middle_of_a_block_is_seen_and_said() {
    let Some(cpu) = default_cpus().and_then(|cpus| cpus.last().copied()) else {
        return;
    };
    let suite = Suite::new()
        .model("a", &["burn-ms=600", "latency-us=1000"])
        .base("")
        .head("flags = [\"--fake=latency-us=1001\"]")
        .measure(&format!("cpus = [{cpu}]\n"))
        .write();
    let toml = suite.world.read("benchgate.toml");
    let toml = toml.replace("min-blocks = 4\nmax-blocks = 12", "min-blocks = 1\nmax-blocks = 1");
    suite.world.write("benchgate.toml", toml);
    let mut child = suite
        .world
        .command(["gate", "--warn-only", "--all"])
        .env_remove("BENCHGATE_PROC_DIR")
        .stderr(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let sessions = suite.world.work().join(".benchgate/sessions");
    let begun = std::time::Instant::now();
    while !has_result(&sessions, "00000.json") {
        assert!(begun.elapsed() < Duration::from_secs(120), "nothing was measured");
        std::thread::sleep(Duration::from_millis(5));
    }
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| burn_on(cpu, &stop));
        // Waits for two processes, because on a busy machine this thread may sleep through one.
        while !has_result(&sessions, "00002.json") {
            std::thread::sleep(Duration::from_millis(5));
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take().unwrap(), &mut said).unwrap();
    child.wait().unwrap();
    let shares = foreign_shares(&suite);
    assert_eq!(shares.len(), 4);
    // Two programs on one processor get half of it each, unless other programs of this machine use it too.
    assert!(shares[1].max(shares[2]) > 0.3, "{shares:?}");
    assert!(said.contains("disturbed") || said.contains("foreign-process"), "{said}");
    let said: String = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("of the measured processors"), "{said}");
}

#[test]
fn a_processor_that_is_not_there_is_a_mistake_that_names_those_that_are() {
    let suite = Suite::new().model("a", &[]).measure("cpus = [4000]\n").write();
    let outcome = suite.world.run(["run"]).expect_code(2);
    let here = benchgate::device::ranges(&benchgate::device::pinnable());
    let expected = format!("`cpus` names processor 4000, but this machine has {here}");
    assert!(outcome.stderr.contains(&expected), "{}", outcome.stderr);
    assert!(!suite.world.work().join(".benchgate").exists(), "nothing was begun");
}

fn has_result(sessions: &std::path::Path, name: &str) -> bool {
    let Ok(entries) = std::fs::read_dir(sessions) else { return false };
    entries.flatten().any(|session| session.path().join("processes").join(name).exists())
}
