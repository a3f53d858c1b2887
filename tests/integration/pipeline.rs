//! `benchgate run` and `benchgate gate` with fake tools: outcomes, caching, resuming, and every kind of
//! failure.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::harness::{lint_codes, reason, row};
use crate::pull_request::{commit, repository};
use crate::suite::Suite;

/// A flag that the fake compiler writes into the module.
fn flags(directive: &str) -> String {
    format!("flags = [\"--fake={directive}\"]")
}

#[test]
fn a_slower_head_is_a_regression_and_an_unchanged_row_is_green() {
    let suite = Suite::new()
        .model("slow", &["latency-us=1000"])
        .model("same", &["latency-us=1000", "pinned-latency-us=1000"])
        .base("")
        .head(&flags("latency-us=1200"))
        .write();
    let comparison = suite.world.run(["gate", "--format", "json"]).expect_code(10).json();
    assert_eq!(row(&comparison, "slow/cpu/main", Some("latency"))["verdict"], "regressed");
    assert_eq!(row(&comparison, "same/cpu/main", Some("latency"))["verdict"], "pass");
}

#[test]
fn the_log_and_the_report_of_a_gate_fit_a_screen_and_say_nothing_twice() {
    let mut suite = Suite::new().base("").head(&flags("latency-us=1200"));
    for name in ["a", "b", "c", "d", "e"] {
        suite = suite.model(name, &["latency-us=1000"]);
    }
    let outcome = suite.write().world.run(["gate"]).expect_code(10);
    let lines: Vec<&str> = outcome.stderr.lines().chain(outcome.stdout.lines()).collect();
    assert!(lines.len() <= 25, "{} lines\n{}{}", lines.len(), outcome.stderr, outcome.stdout);
    let said: Vec<&str> = lines.into_iter().filter(|line| line.contains(char::is_alphabetic)).collect();
    assert_eq!(said.iter().collect::<BTreeSet<_>>().len(), said.len(), "{said:#?}");
}

#[test]
fn a_faster_head_passes() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).base("").head(&flags("latency-us=800")).write();
    let outcome = suite.world.run(["gate", "--format", "json"]).expect_no_failure();
    assert_eq!(row(&outcome.json(), "a/cpu/main", Some("latency"))["verdict"], "improved");
    assert!(outcome.stderr.contains("toolchain: 2 steps"), "{}", outcome.stderr);
}

#[test]
fn sides_that_execute_the_same_bytes_are_measured_little_and_pass() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).base("").write();
    let comparison = suite.world.run(["gate", "--format", "json"]).expect_no_failure().json();
    assert_eq!(reason(row(&comparison, "a/cpu/main", Some("latency"))).0, "identical");
    assert_eq!(suite.results().len(), 4, "one block is a free A/A sample");
}

#[test]
fn the_second_run_compiles_nothing() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).model("b", &["latency-us=10"]).write();
    suite.world.run(["run"]).expect_code(0);
    // A compiler that always fails shows that the compiler is not called.
    let statuses = |suite: &Suite| -> Vec<String> {
        let run = suite.run_json();
        let benchmarks = run["sides"][0]["benchmarks"].as_array().unwrap().clone();
        benchmarks
            .iter()
            .flat_map(|benchmark| benchmark["stages"].as_array().unwrap().clone())
            .filter(|stage| stage["stage"] == "compile")
            .map(|stage| stage["status"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(statuses(&suite), ["ok", "ok"]);
    suite.world.run(["run"]).expect_code(0);
    assert_eq!(statuses(&suite), ["cached", "cached"]);
}

#[test]
fn mlir_that_does_not_compile_fails_alone_and_says_why() {
    let suite = Suite::new()
        .model("bad", &["compile-error=custom op 'x' is unknown"])
        .model("good", &["latency-us=1000"])
        .write();
    let outcomes = suite.world.run(["run", "--format", "json"]).expect_code(20).json();
    assert_eq!((&outcomes["counts"]["ok"], &outcomes["counts"]["failed"]), (&1.into(), &1.into()));
    let run = suite.run_json();
    let [bad, good] = run["sides"][0]["benchmarks"].as_array().unwrap().as_slice() else { panic!("{run:#}") };
    assert_eq!((&bad["name"], &bad["outcome"]["stage"]), (&"bad/cpu/main".into(), &"compile".into()));
    let (_, why) = bad["outcome"]["why"].as_str().unwrap().split_once("/work/").unwrap();
    insta::assert_snapshot!(why, @"models/bad.mlir:1:1: error: custom op 'x' is unknown");
    assert_eq!((&good["outcome"]["status"], &good["verification"]["code"]), (&"ok".into(), &"PASS".into()));
    assert_eq!(suite.results().len(), 2, "the other model was measured");
}

#[test]
fn the_reason_of_a_long_error_is_the_compiler_s_sentence() {
    // An ONNX operator with the attributes of a tree ensemble, as IREE 3.13 prints it.
    let values = ["1.000000e+00 : f32"; 400].join(", ");
    let error = "compile-error=failed to legalize operation 'torch.operator' that was explicitly marked illegal: \
                 %2:2 = \"torch.operator\"(%1) <{name = \"onnx.TreeEnsembleClassifier\"}>";
    let suite =
        Suite::new().model("forest", &[&format!("{error} {{torch.onnx.weights = [{values}]}}")]).write();
    suite.world.run(["run"]).expect_code(20);
    let why = suite.run_json()["sides"][0]["benchmarks"][0]["outcome"]["why"].as_str().unwrap().to_owned();
    insta::assert_snapshot!(why.split_once("/work/").unwrap().1, @r#"models/forest.mlir:1:1: error: failed to legalize operation 'torch.operator' that was explicitly marked illegal: %2:2 = "torch.operator"(%1) <{name = "onnx.TreeEnsembleClassifier"}> {torch.onnx.weights = [1.000000e+00 : f32, 1.000000e+00 : f32, 1.000000e+00 : f32, 1.000000e+00 :…"#);
}

#[test]
fn a_failure_that_only_head_has_is_a_regression_of_that_stage() {
    let suite = Suite::new()
        .model("a", &["latency-us=1000"])
        .base("")
        .head(&flags("error-occurred=input0 shape dimension 0 mismatch"))
        .write();
    let comparison = suite.world.run(["gate", "--format", "json"]).expect_code(10).json();
    let (code, text) = reason(row(&comparison, "a/cpu/main", None));
    assert_eq!(code, "fails-at-head");
    insta::assert_snapshot!(text, @"
    benchmark fails only at head
    input0 shape dimension 0 mismatch
    ");
}

#[test]
fn a_failed_row_of_zero_milliseconds_is_never_a_speed_up() {
    let suite =
        Suite::new().model("a", &["error-occurred=wrong shape"]).base("").head("flags = [\"--x\"]").write();
    let comparison = suite.world.run(["gate", "--format", "json"]).expect_code(20).json();
    let (code, text) = reason(row(&comparison, "a/cpu/main", None));
    assert_eq!(code, "fails-on-both");
    insta::assert_snapshot!(text, @"
    benchmark fails on both sides
    wrong shape
    ");
    let rows = comparison["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["verdict"] != "improved"), "{comparison:#}");
}

#[test]
fn a_nan_output_at_head_is_a_divergence() {
    let suite = Suite::new()
        .model("a", &["latency-us=1000", "output=1,2,3"])
        .base("")
        .head(&flags("output=1,NaN,3"))
        .write();
    let comparison = suite.world.run(["gate", "--format", "json"]).expect_code(13).json();
    assert_eq!(row(&comparison, "a/cpu/main", None)["verdict"], "diverged");
}

#[test]
fn a_run_with_a_wrong_output_does_not_pass() {
    let suite = Suite::new().model("a", &["latency-us=1000", "output=1,NaN,3"]).write();
    suite.world.run(["run"]).expect_code(13);
    let verification = &suite.run_json()["sides"][0]["benchmarks"][0]["verification"];
    assert_eq!(verification["code"], "FAIL");
    insta::assert_snapshot!(verification["why"].as_str().unwrap(), @"output 0: 1 of 3 elements is NaN or infinite, but the reference is not, at [1]");
}

#[test]
fn a_reference_that_can_t_be_read_fails_the_benchmark_on_both_sides() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).base("").head("flags = [\"--x\"]").write();
    suite.world.write("data/y.npy", "not a tensor");
    let comparison = suite.world.run(["gate", "--format", "json"]).expect_code(20).json();
    let (code, text) = reason(row(&comparison, "a/cpu/main", None));
    assert_eq!(code, "fails-on-both");
    insta::assert_snapshot!(text, @"
    verify fails on both sides
    the reference can't be read: [WORLD]/work/data/y.npy: not an .npy file
    ");
}

#[test]
fn benchmarks_that_share_a_module_have_logs_of_their_own() {
    let suite = Suite::new()
        .model("a", &["output=1,2,3", "run-error=of the first"])
        .model("b", &["output=1,2,3", "run-error=of the second"])
        .write();
    let outcome = suite.world.run(["run"]).expect_code(20);
    let log = |name: &str| {
        let whole = outcome.stdout.split_once("In full").unwrap().1.split_once(name).unwrap().1;
        let log = whole.lines().find_map(|line| line.split_once("log: ")).unwrap().1;
        suite.world.read(log)
    };
    assert!(log("a/").contains("of the first"), "{}", log("a/"));
    assert!(log("b/").contains("of the second"), "{}", log("b/"));
}

#[test]
fn no_compilers_and_no_blocks_are_refused() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).write();
    let jobs = suite.world.run(["run", "--jobs", "0"]).expect_code(2);
    insta::assert_snapshot!(jobs.stderr, @"
    error: invalid value '0' for '--jobs <N>': expected a whole number of at least 1

    For more information, try '--help'.
    ");
    let blocks = suite.world.run(["run", "--max-blocks", "0"]).expect_code(2);
    insta::assert_snapshot!(blocks.stderr, @"
    error: invalid value '0' for '--max-blocks <N>': expected a whole number of at least 1

    For more information, try '--help'.
    ");
}

#[test]
fn an_output_that_is_a_folder_is_refused_before_anything_is_measured() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).write();
    let folder = suite.world.run(["run", "--run", "data"]).expect_code(2);
    insta::assert_snapshot!(folder.messages(), @"
    error: failed to write data: it is a folder
    hint: name a file in a folder that exists and can be written to
    ");
    // The error names the requested file and not the temporary one.
    let nowhere = suite.world.run(["run", "--run", "nowhere/run.json"]).expect_code(2);
    insta::assert_snapshot!(nowhere.messages(), @"
    error: failed to write nowhere/run.json: the folder `nowhere` does not exist
    hint: name a file in a folder that exists and can be written to
    ");
}

#[test]
fn a_tool_that_hangs_is_stopped_and_the_rest_is_measured() {
    let suite = Suite::new()
        .model("hangs", &["benchmark-hang=1"])
        .model("good", &["latency-us=1000"])
        .measure("")
        .write();
    let toml = suite.world.read("benchgate.toml").replace("timeout = \"20s\"", "timeout = \"1s\"");
    suite.world.write("benchgate.toml", toml);
    suite.world.run(["run"]).expect_code(20);
    let run = suite.run_json();
    let [hangs, good] = run["sides"][0]["benchmarks"].as_array().unwrap().as_slice() else {
        panic!("{run:#}")
    };
    assert_eq!((&hangs["name"], &hangs["outcome"]["stage"]), (&"hangs/cpu/main".into(), &"benchmark".into()));
    insta::assert_snapshot!(hangs["outcome"]["why"].as_str().unwrap(), @"timed out after 1 s");
    assert_eq!((&good["outcome"]["status"], &good["verification"]["code"]), (&"ok".into(), &"PASS".into()));
}

#[test]
fn a_benchmark_that_crashes_is_reported_with_its_signal() {
    let suite = Suite::new().model("a", &["crash=1"]).write();
    suite.world.run(["run"]).expect_code(20);
    let outcome = &suite.run_json()["sides"][0]["benchmarks"][0]["outcome"];
    insta::assert_snapshot!(outcome["why"].as_str().unwrap(), @"was killed by signal 6 (SIGABRT)");
}

#[test]
fn a_damaged_cache_entry_is_noticed_and_made_again() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).write();
    suite.world.run(["run"]).expect_code(0);
    let module = find(&suite.world.cache(), "module.vmfb");
    std::fs::write(&module, "garbage").unwrap();
    suite.world.run(["run"]).expect_code(0);
    let benchmark = &suite.run_json()["sides"][0]["benchmarks"][0];
    assert!(lint_codes(benchmark).contains(&"cache-discarded"), "{benchmark:#}");
    assert_eq!(benchmark["verification"]["code"], "PASS");
}

#[test]
fn a_filter_that_selects_nothing_is_an_error_not_a_pass() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).base("").write();
    let outcome = suite.world.run(["gate", "--filter", "nothing"]).expect_code(2);
    insta::assert_snapshot!(outcome.messages(), @"
    error: failed to select benchmarks: no benchmark of the suite matches the filter
    hint: --filter is matched against model/target/function
    ");
}

#[test]
fn a_command_that_is_refused_removes_no_result_and_no_foreign_file_is_replaced() {
    let suite = Suite::new().model("a", &["latency-us=500"]).write();
    suite.world.run(["run"]).expect_code(0);
    let before = suite.world.read("run.json");
    for refused in
        [&["run", "-c", "nope.toml"][..], &["run", "--filter", "nothing"], &["gate", "-c", "nope.toml"]]
    {
        suite.world.run(refused).expect_code(2);
        assert_eq!(suite.world.read("run.json"), before, "{refused:?}");
    }
    suite.world.write("notes.txt", "do not lose this");
    suite.world.run(["run", "--run", "notes.txt"]).expect_code(2);
    assert_eq!(suite.world.read("notes.txt"), "do not lose this");
    // A new run replaces the earlier result.
    suite.world.run(["run"]).expect_code(0);
    assert_ne!(suite.world.read("run.json"), before);
}

#[test]
fn waiting_for_another_job_keeps_the_earlier_result_except_in_a_job_of_github() {
    let suite = Suite::new().model("a", &["latency-us=500"]).write();
    suite.world.run(["run"]).expect_code(0);
    let before = suite.world.read("run.json");
    // The changed model is compiled before the run waits.
    suite.source("a", &["latency-us=600"]);
    let measuring = std::fs::File::open(suite.world.locks().join("benchgate-host.lock")).unwrap();
    measuring.lock().unwrap();
    let commands = [&["run"][..], &["noise", "--run", "run.json"], &["baseline", "update", "--measure"]];
    for command in commands {
        let command = [command, &["--lock-timeout", "1s"]].concat();
        let outcome = suite.world.run(&command).expect_code(20);
        assert!(outcome.stderr.contains("still holds"), "{}", outcome.stderr);
        assert_eq!(suite.world.read("run.json"), before, "{command:?}");
        let mut in_job = suite.world.command(&command);
        in_job.env("GITHUB_EVENT_NAME", "schedule");
        suite.world.finish(in_job);
        assert!(!suite.world.work().join("run.json").exists(), "{command:?} leaves an earlier job's result");
        suite.world.write("run.json", &before);
    }
}

#[test]
fn a_head_that_is_not_built_is_red_without_waiting_for_another_job() {
    let (suite, repository) = repository();
    suite.source("a", &["compile-error=broken"]);
    commit(&repository, "does not compile");
    std::fs::create_dir_all(suite.world.locks()).unwrap();
    let measuring = std::fs::File::create(suite.world.locks().join("benchgate-host.lock")).unwrap();
    measuring.lock().unwrap();
    suite.world.run(["gate", "--base", "main", "--filter", "^a/", "--lock-timeout", "1s"]).expect_code(10);
}

#[test]
fn a_gate_without_a_base_says_what_to_name() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).write();
    let outcome = suite.world.run(["gate"]).expect_code(12);
    insta::assert_snapshot!(outcome.messages(), @"
    error: failed to find a git repository at . or above it: without a usable repository, no stored session can be related to this commit, and there is no base to measure
    hint: name a base: `benchgate gate --base origin/main`, or add [side.base]
    ");
}

/// The first file with this name below a folder.
fn find(folder: &std::path::Path, name: &str) -> std::path::PathBuf {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for item in std::fs::read_dir(folder).unwrap() {
            let path = item.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|file| file == name) {
                return path;
            }
        }
    }
    panic!("no {name}");
}

/// A suite whose benchmark tool adds a line to `starts` whenever it is started, and hangs at the start whose
/// number is in `stop`. So a run can be killed at the same point on every host.
fn stopping_suite() -> Suite {
    let suite = Suite::new();
    let starts = suite.world.write("starts", "");
    let stop = suite.world.write("stop", "0");
    let count = format!(
        "shell=echo >> {starts}; test $(wc -l < {starts}) -ne $(cat {stop}) || sleep 600",
        starts = starts.display(),
        stop = stop.display()
    );
    let suite = suite
        .model("a", &["latency-us=1000", &count])
        .model("b", &["latency-us=500", &count])
        .base("")
        .head(&flags("latency-us=2000"))
        .measure("seed = 1\n")
        .write();
    let toml = suite.world.read("benchgate.toml").replace("timeout = \"20s\"", "timeout = \"600s\"");
    suite.world.write("benchgate.toml", toml);
    suite
}

fn starts(suite: &Suite) -> usize {
    suite.world.read("starts").lines().count()
}

/// Kills a gate during this start of its benchmark tool. Returns the session, and the finished processes in
/// its journal.
fn kill_at_start(suite: &Suite, number: usize) -> (String, Vec<serde_json::Value>) {
    suite.world.write("stop", number.to_string());
    let mut child =
        suite.world.command(["gate"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while starts(suite) < number {
        assert!(begun.elapsed() < Duration::from_secs(300), "the tool was started {} times", starts(suite));
        assert_eq!(child.try_wait().unwrap(), None, "it ended before start {number}");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    suite.world.write("stop", "0");
    let read = |path: &std::path::Path| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    };
    let head = find(&suite.world.work().join(".benchgate/sessions"), "session.json");
    let processes = std::fs::read_dir(head.with_file_name("processes")).unwrap();
    let mut kept: Vec<_> = processes
        .map(|item| item.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| read(&path))
        .collect();
    kept.sort_by_key(|entry| entry["process"]["order"].as_u64());
    (read(&head)["session"].as_str().unwrap().to_owned(), kept)
}

/// A run is killed in its first block, resumed, and killed in its second block. Complete blocks are kept, and
/// the final set of results is the same as without a kill.
#[test]
fn a_killed_run_goes_on_and_ends_with_the_same_set_of_results() {
    let whole = stopping_suite();
    whole.world.run(["gate"]).expect_code(10);

    let cut = stopping_suite();
    let (session, kept) = kill_at_start(&cut, 3);
    assert_eq!(kept.len(), 2, "{kept:?}");
    // The interrupted block is measured again. In the next block, two of four processes are finished.
    let (resumed, kept) = kill_at_start(&cut, 3 + 7);
    assert_eq!((&resumed, kept.len()), (&session, 6), "{kept:?}");
    let before = starts(&cut);
    let outcome = cut.world.run(["gate"]).expect_code(10);
    let resuming = format!("resuming session {session} with 6 processes");
    assert!(outcome.stderr.lines().any(|line| line.ends_with(&resuming)), "{}", outcome.stderr);
    assert_eq!(cut.run_json()["session"], session);
    assert_eq!(starts(&cut) - before, starts(&whole) - 4, "four processes were not started again");
    assert_eq!(cut.results(), whole.results());

    let run = cut.run_json();
    let measured: Vec<_> = run["sides"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|side| side["benchmarks"].as_array().unwrap())
        .flat_map(|benchmark| benchmark["processes"].as_array().unwrap())
        .map(|process| (&process["order"], &process["started"]))
        .collect();
    for (at, entry) in kept.iter().enumerate() {
        let process = (&entry["process"]["order"], &entry["process"]["started"]);
        assert_eq!(measured.contains(&process), at < 4, "{entry:#}");
    }
}

#[test]
fn an_interrupt_ends_with_130_leaves_no_tool_behind_and_the_next_run_resumes() {
    let suite = Suite::new();
    let count = format!("shell=echo >> {}", suite.world.write("starts", "").display());
    let suite = suite.model("a", &["latency-us=1000", "pause-ms=200", &count]).measure("").write();
    let toml = suite.world.read("benchgate.toml").replace("processes = 2", "processes = 8");
    suite.world.write("benchgate.toml", toml);
    let mut command = suite.world.command(["run"]);
    command.stderr(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let begun = lines.by_ref().map(Result::unwrap).find(|line| line.contains("verify: "));
    assert!(begun.is_some(), "nothing was verified");
    let wait = Instant::now();
    // When a process starts, the one before it has finished.
    while starts(&suite) < 3 && wait.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    let asked = Instant::now();
    let rest: String = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    assert!(asked.elapsed() < Duration::from_secs(10), "it took {:?}", asked.elapsed());
    let outcome = suite.world.run(["run"]).expect_code(0);
    assert!(outcome.stderr.contains("resuming"), "{}", outcome.stderr);
    let (_, resuming) = outcome.stderr.split_once("resuming session").unwrap();
    let (_, kept) = resuming.split_once(" with ").unwrap();
    let kept: usize = kept.split(' ').next().unwrap().parse().unwrap();
    let steps = if kept == 7 { "step" } else { "steps" };
    assert!(outcome.stderr.contains(&format!("benchmark: {} {steps}", 8 - kept)), "{}", outcome.stderr);
    assert_eq!(suite.results().len(), 8);
}

#[test]
fn a_signal_ends_hashing_a_file_that_takes_hours() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).write();
    let reference = suite.world.work().join("data/y.npy");
    std::fs::OpenOptions::new().write(true).open(&reference).unwrap().set_len(1 << 40).unwrap();
    let mut command = suite.world.command(["run"]);
    let mut child = command.stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let files = format!("/proc/{}/fd", child.id());
    let is_read = || {
        let mut open = std::fs::read_dir(&files).unwrap().filter_map(Result::ok);
        open.any(|file| std::fs::read_link(file.path()).is_ok_and(|path| path == reference))
    };
    let begun = Instant::now();
    while !is_read() {
        assert_eq!(child.try_wait().unwrap(), None, "it ended before it read the reference");
        assert!(begun.elapsed() < Duration::from_secs(60), "the reference was never read");
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    let asked = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if asked.elapsed() > Duration::from_secs(20) {
            child.kill().unwrap();
            panic!("it went on");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn the_order_of_processes_is_drawn_by_each_session_unless_a_seed_is_named() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).base("").head(&flags("latency-us=800")).write();
    let seed = |args: &[&str]| {
        suite.world.run(["gate", "--max-blocks", "4"].iter().chain(args)).expect_no_failure();
        suite.run_json()["seed"].as_u64().unwrap()
    };
    assert_ne!(seed(&[]), seed(&[]));
    assert_eq!(seed(&["--seed", "7"]), 7);
    let toml = suite.world.read("benchgate.toml").replace("[measure]", "[measure]\nseed = 9");
    suite.world.write("benchgate.toml", toml);
    assert_eq!(seed(&[]), 9);
    assert_eq!(seed(&["--seed", "7"]), 7);
}

/// Removes the settings of the measuring time, so that benchgate chooses it.
fn with_chosen_timing(suite: Suite) -> Suite {
    let toml = suite.world.read("benchgate.toml");
    let fixed = "repetitions = 4\nmin-time = \"1ms\"\nwarmup = \"0ms\"\n";
    assert!(toml.contains(fixed), "{toml}");
    suite.world.write("benchgate.toml", toml.replace(fixed, ""));
    suite
}

#[test]
fn a_process_measures_as_long_as_suits_its_benchmark() {
    let suite = Suite::new().model("long", &["latency-us=30000"]).model("short", &["latency-us=100"]);
    let suite = with_chosen_timing(suite.write());
    suite.world.run(["run"]).expect_code(0);
    let run = suite.run_json();
    assert_eq!(run["measure"].get("repetitions"), None);
    let repetitions = |name: &str| {
        let mut benchmarks = run["sides"][0]["benchmarks"].as_array().unwrap().iter();
        let benchmark = benchmarks.find(|benchmark| benchmark["name"] == name).unwrap();
        let chosen = benchmark["timing"]["repetitions"].as_u64().unwrap();
        for process in benchmark["processes"].as_array().unwrap() {
            assert_eq!(process["samples"]["latency"].as_array().unwrap().len() as u64, chosen);
        }
        chosen
    };
    assert!(repetitions("long/cpu/main") < repetitions("short/cpu/main"));
}

#[test]
fn a_trial_that_crashes_fails_its_benchmark() {
    let suite = Suite::new().model("a", &["crash=1"]).model("b", &["latency-us=100"]);
    let suite = with_chosen_timing(suite.base("").head(&flags("latency-us=101")).write());
    suite.world.run(["gate"]).expect_code(20);
    let failed = |benchmark: &serde_json::Value| benchmark["outcome"]["status"] == "failed";
    let run = suite.run_json();
    let benchmarks = run["sides"][1]["benchmarks"].as_array().unwrap();
    assert_eq!(benchmarks.iter().filter(|benchmark| failed(benchmark)).count(), 1);
}
