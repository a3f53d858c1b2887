//! A GPU that only a fake driver library reports; the library is loaded like the real one. The tests check
//! what is read and changed, and that changes are undone however a run ends.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::harness::{Outcome, built_library};
use crate::suite::Suite;

/// A suite that uses the fake GPU.
struct Machine {
    suite: Suite,
    uuid: String,
}

impl Machine {
    fn new(suite: Suite) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let uuid = format!("GPU-fake-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        // The runtime lists the GPU too, because a target without its device would only be compiled.
        let suite = suite.devices(&format!("cuda cuda://{uuid}\n"));
        let machine = Self { suite: suite.write(), uuid };
        let toml = machine.suite.world.read("benchgate.toml");
        let target = "backend = \"llvm-cpu\"\ndevice = \"local-task\"";
        machine.suite.world.write("benchgate.toml", toml.replace(target, "backend = \"cuda\""));
        let driver = machine.suite.world.work().join("driver");
        std::fs::create_dir_all(&driver).unwrap();
        std::fs::copy(built_library("fake_nvml"), driver.join("libnvidia-ml.so.1")).unwrap();
        machine.set("");
        machine
    }

    /// Replaces the description of the GPU atomically, so that a run never reads half of it.
    fn set(&self, lines: &str) {
        let new = self.driver().join("gpu.new");
        std::fs::write(&new, format!("uuid={}\n{lines}\n", self.uuid)).unwrap();
        std::fs::rename(new, self.driver().join("gpu")).unwrap();
    }

    fn driver(&self) -> PathBuf {
        self.suite.world.work().join("driver")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.suite.world.command(args);
        command.env("LD_LIBRARY_PATH", self.driver()).env("FAKE_NVML", self.driver());
        command
    }

    fn run(&self, args: &[&str]) -> Outcome {
        self.suite.world.finish(self.command(args))
    }

    /// Starts a run and waits until the clock is locked.
    fn start_and_lock(&self) -> Child {
        let child = self.command(&["run"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        while !self.locked() {
            assert!(begun.elapsed() < Duration::from_secs(60), "the clock was never locked");
            std::thread::sleep(Duration::from_millis(10));
        }
        child
    }

    fn locked(&self) -> bool {
        self.driver().join("locked").exists()
    }

    /// The changes that were made to the GPU, in order.
    fn changes(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.driver().join("log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    /// The file about a lock of this GPU, which a later run uses to undo the lock.
    fn written_down(&self) -> Option<PathBuf> {
        Some(self.suite.world.locks().join(format!("benchgate-clock-{}.json", self.uuid)))
            .filter(|file| file.exists())
    }

    /// The GPU's telemetry in every process of the stored run.
    fn seen(&self) -> Vec<Value> {
        let run = self.suite.run_json();
        let sides = run["sides"].as_array().unwrap().clone();
        let benchmarks = sides.iter().flat_map(|side| side["benchmarks"].as_array().unwrap().clone());
        let processes: Vec<Value> =
            benchmarks.flat_map(|benchmark| benchmark["processes"].as_array().unwrap().clone()).collect();
        processes.iter().map(|process| process["telemetry"]["gpus"][0].clone()).collect()
    }
}

const LOCK: &str = "lock-clocks = \"1300MHz\"\n";

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
}

#[test]
fn the_gpu_is_part_of_the_testbed_and_watched_during_every_process() {
    let machine = Machine::new(Suite::new().model("a", &["latency-us=1000", "pause-ms=400"]));
    machine.set("temperature=63\nreasons=4");
    machine.run(&["run"]).expect_code(0);
    let run = machine.suite.run_json();
    let facts = &run["testbed"]["facts"];
    assert_eq!(facts["gpu"], "NVIDIA Fake 100");
    assert_eq!(facts["gpu-driver"], "570.133.20");
    assert_eq!(facts["gpu-vbios"], "92.00.36.00.04");
    assert_eq!(facts["gpu-power-limit-watts"], "400");
    assert_eq!(facts["gpu-mig"], "off");
    assert_eq!(facts["gpu-ecc"], Value::Null, "this card has none");
    assert_eq!(run["testbed"]["notes"]["gpu-id"], machine.uuid.as_str());
    let seen = machine.seen();
    assert_eq!(seen.len(), 2);
    for gpu in seen {
        assert_eq!(gpu["id"], machine.uuid.as_str());
        assert!(gpu["readings"].as_u64().unwrap() >= 3, "none while it ran: {gpu}");
        assert_eq!(gpu["temperature_celsius"]["last"], 63);
        assert_eq!(gpu["power_watts"]["max"], 61.5);
        assert_eq!(gpu["clock_mhz"]["min"], 1410);
        assert_eq!(gpu["throttled"], serde_json::json!(["power"]));
        assert_eq!(gpu["clock_held"], false);
    }
    assert_eq!(run["lints"][0]["code"], "clock-unlocked");
    assert!(machine.changes().is_empty(), "nothing is changed without being asked");
}

#[test]
fn a_clock_is_held_for_the_run_and_let_go_after_it() {
    let machine = Machine::new(Suite::new().model("a", &["pause-ms=300"]).measure(LOCK));
    machine.run(&["run"]).expect_code(0);
    assert_eq!(machine.changes(), ["lock 1300 1300", "unlock"]);
    assert!(!machine.locked() && machine.written_down().is_none());
    let run = machine.suite.run_json();
    assert_eq!(run["testbed"]["facts"]["gpu-clock"], "1300MHz", "another clock is another machine");
    assert_eq!(run["lints"], Value::Null);
    for gpu in machine.seen() {
        assert_eq!(gpu["clock_mhz"]["max"], 1300);
        assert_eq!(gpu["clock_held"], true);
    }
}

#[test]
fn the_base_clock_is_the_one_the_driver_names() {
    let machine = Machine::new(Suite::new().model("a", &[]).measure("lock-clocks = \"base\"\n"));
    machine.run(&["run"]).expect_code(0);
    let tdp = 0xffff_ff01_u32;
    assert_eq!(machine.changes(), [format!("lock {tdp} {tdp}"), "unlock".to_owned()]);
}

#[test]
fn a_run_that_fails_lets_go() {
    let machine = Machine::new(Suite::new().model("a", &["disk-full=1"]).measure(LOCK));
    let outcome = machine.run(&["run"]).expect_code(20);
    assert!(outcome.stderr.contains("error"), "{}", outcome.stderr);
    assert_eq!(machine.changes(), ["lock 1300 1300", "unlock"]);
    assert!(machine.written_down().is_none());
}

#[test]
fn an_interrupted_run_lets_go() {
    for asked in [Signal::SIGINT, Signal::SIGTERM] {
        let machine = Machine::new(Suite::new().model("a", &["pause-ms=60000"]).measure(LOCK));
        let mut child = machine.start_and_lock();
        signal(&child, asked);
        assert_eq!(child.wait().unwrap().code(), Some(130), "{asked}");
        assert_eq!(machine.changes(), ["lock 1300 1300", "unlock"], "{asked}");
        assert!(!machine.locked() && machine.written_down().is_none(), "{asked}");
    }
}

#[test]
fn what_a_killed_run_left_locked_the_next_start_undoes_and_says_so() {
    let machine = Machine::new(Suite::new().model("a", &["pause-ms=60000"]).measure(LOCK));
    let mut child = machine.start_and_lock();
    signal(&child, Signal::SIGKILL);
    child.wait().unwrap();
    assert!(machine.locked(), "no process was left to undo it");
    assert!(machine.written_down().is_some());
    let outcome = machine.run(&["doctor"]);
    assert!(outcome.said().contains("was locked to 1300 MHz"), "{}", outcome.stdout);
    assert!(machine.locked(), "doctor changes nothing");
    // The next run does not request a lock.
    machine.suite.source("a", &[]);
    let toml = machine.suite.world.read("benchgate.toml").replace(LOCK, "");
    machine.suite.world.write("benchgate.toml", toml);
    let outcome = machine.run(&["run"]).expect_code(0);
    assert!(outcome.stderr.contains("benchgate unlocked the clock"), "{}", outcome.stderr);
    assert_eq!(machine.changes(), ["lock 1300 1300", "unlock"]);
    assert!(!machine.locked() && machine.written_down().is_none());
}

#[test]
fn what_another_program_has_set_since_is_left_alone() {
    let machine = Machine::new(Suite::new().model("a", &["pause-ms=60000"]).measure(LOCK));
    let mut child = machine.start_and_lock();
    signal(&child, Signal::SIGKILL);
    child.wait().unwrap();
    std::fs::write(machine.driver().join("locked"), "1410 1410").unwrap();
    machine.suite.source("a", &[]);
    let toml = machine.suite.world.read("benchgate.toml").replace(LOCK, "");
    machine.suite.world.write("benchgate.toml", toml);
    let outcome = machine.run(&["run"]).expect_code(0);
    assert!(outcome.stderr.contains("1410 MHz"), "{}", outcome.stderr);
    assert_eq!(machine.changes(), ["lock 1300 1300"]);
    assert!(machine.locked() && machine.written_down().is_none());
}

#[test]
fn without_permission_it_says_so_and_goes_on() {
    let machine = Machine::new(Suite::new().model("a", &[]).measure(LOCK));
    machine.set("denied=1");
    let outcome = machine.run(&["run"]).expect_code(0);
    assert!(outcome.stderr.contains("the GPU's clock is not locked"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("permission"), "{}", outcome.stderr);
    assert_eq!(machine.suite.run_json()["lints"][0]["code"], "clock-unlocked");
    assert!(machine.changes().is_empty() && machine.written_down().is_none());
}

#[test]
fn a_process_that_appears_on_the_gpu_in_the_middle_of_a_block_is_seen_and_said() {
    let suite =
        Suite::new().model("a", &["pause-ms=700"]).base("").head("flags = [\"--fake=latency-us=1000\"]");
    let machine = Machine::new(suite.measure(""));
    let toml = machine.suite.world.read("benchgate.toml");
    let toml = toml.replace("min-blocks = 4\nmax-blocks = 12", "min-blocks = 1\nmax-blocks = 1");
    machine.suite.world.write("benchgate.toml", toml);
    let mut child = machine
        .command(&["gate", "--warn-only", "--all", "--run", "run.json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // When the first process has a result, the second one is starting.
    let begun = Instant::now();
    while !first_result(&machine.suite.world.work().join(".benchgate/sessions")) {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing was measured");
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(200));
    machine.set(&format!("processes={}", std::process::id()));
    std::thread::sleep(Duration::from_millis(400));
    machine.set("");
    let output = child.wait_with_output_of();
    let said: String = output.split_whitespace().collect::<Vec<_>>().join(" ");
    let foreign: Vec<bool> = machine.seen().iter().map(|gpu| !gpu["foreign"].is_null()).collect();
    assert_eq!(foreign.iter().filter(|seen| **seen).count(), 1, "{foreign:?}");
    assert!(said.contains(&format!("process {}", std::process::id())), "{said}");
    assert!(said.contains("disturbed") || said.contains("foreign-process"), "{said}");
}

/// Returns true if a process of an unfinished session has ended.
fn first_result(sessions: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(sessions) else { return false };
    entries.flatten().any(|session| session.path().join("processes/00000.json").exists())
}

trait Finish {
    fn wait_with_output_of(&mut self) -> String;
}

impl Finish for Child {
    fn wait_with_output_of(&mut self) -> String {
        use std::io::Read;
        let mut said = String::new();
        self.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        self.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        self.wait().unwrap();
        said
    }
}
