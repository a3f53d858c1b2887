//! `benchgate pair` with commands whose results don't depend on the load of this machine. The noise in their
//! output is the time of day.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::harness::{World, row};

/// Prints two benchmarks in Google Benchmark's format. Their times consist of the digits in `$1` and `$2`,
/// followed by the time of day.
const PRINT: &str = r#"
row() { printf '{"name":"%s","run_type":"iteration","iterations":10,"real_time":%s%s,"cpu_time":90,"time_unit":"us"}' "$1" "$2" "$(date +%N)"; }
printf '{"context":{},"benchmarks":['; row BM_a "$1"; printf ','; row BM_b "$2"; printf ']}'
"#;

fn world() -> World {
    let world = World::new();
    world.write("bench.sh", PRINT);
    world
}

/// Each benchmark's verdict about its latency.
pub fn verdicts(report: &Value) -> Vec<(&str, &str)> {
    let of_latency = |row: &&Value| row["metric"]["name"] == "latency";
    let rows = report["rows"].as_array().unwrap().iter().filter(of_latency);
    rows.map(|row| (row["benchmark"].as_str().unwrap(), row["verdict"].as_str().unwrap())).collect()
}

#[test]
fn each_printed_benchmark_is_a_row_and_a_slowdown_of_one_is_red() {
    let world = world();
    let report = world
        .run([
            "pair",
            "sh bench.sh 100. 20.",
            "sh bench.sh 100. 21.",
            "--format",
            "json",
            "--run",
            "run.json",
        ])
        .expect_code(10)
        .json();
    assert_eq!(verdicts(&report), [("BM_a", "pass"), ("BM_b", "regressed")]);
    let run: Value = serde_json::from_str(&world.read("run.json")).unwrap();
    let head = &run["sides"][1]["commands"][0];
    assert_eq!(head["command"], "sh bench.sh 100. 21.");
    assert!(head["program_sha256"].as_str().is_some_and(|sha256| sha256.len() == 64), "{head}");
}

#[test]
fn the_same_command_twice_is_green() {
    let report = world().run(["pair", "sh bench.sh 100. 20.", "--format", "json"]).expect_code(0).json();
    assert_eq!(verdicts(&report), [("BM_a", "pass"), ("BM_b", "pass")]);
}

/// Each process has its own label, counter and number.
#[test]
fn labels_that_differ_from_process_to_process_are_no_difference() {
    let world = World::new();
    let print = PRINT.replace(
        "\"time_unit\":\"us\"}' \"$1\" \"$2\" \"$(date +%N)\"",
        "\"time_unit\":\"us\",\"label\":\"pid %s crc=%08x\"}' \"$1\" \"$2\" \"$(date +%N)\" $$ $$",
    );
    assert_ne!(print, PRINT);
    world.write("bench.sh", print);
    let report = world.run(["pair", "sh bench.sh 100. 20.", "--format", "json"]).expect_code(0).json();
    assert_eq!(verdicts(&report), [("BM_a", "pass"), ("BM_b", "pass")]);
}

#[test]
fn the_stored_run_gives_the_same_rows_to_the_byte() {
    let world = world();
    for (base, head, code) in [("20.", "20.", 0), ("20.", "21.", 10)] {
        let (base, head) = (format!("sh bench.sh 100. {base}"), format!("sh bench.sh 100. {head}"));
        let rows = |text: &str| text[text.find("\"rows\"").unwrap()..].to_owned();
        let measured = world.run(["pair", &base, &head, "--format", "json", "--run", "run.json"]);
        let compared = world.run(["compare", "run.json", "--format", "json"]).expect_code(code);
        assert_eq!(rows(&measured.expect_code(code).stdout), rows(&compared.stdout));
    }
}

#[test]
fn a_command_that_prints_no_benchmark_is_timed_as_a_whole() {
    let world = World::new();
    let options = ["--max-blocks", "2", "--format", "json", "--run", "run.json"];
    let report = world.run([["pair", "sleep 0.15", "sleep 0.3"].as_slice(), &options].concat()).json();
    let latency = row(&report, "command", Some("latency"));
    assert!(latency["base"]["location"].as_f64().unwrap() > 1.5e8, "{latency}");
    assert!(latency["estimate"]["ratio"].as_f64().unwrap() > 1.3, "{latency}");
    row(&report, "command", Some("peak-host-memory"));
    // The number of processes per slot depends on base's time, of which at least a third counts even if base
    // waits.
    let run: Value = serde_json::from_str(&world.read("run.json")).unwrap();
    for side in [0, 1] {
        let benchmark = &run["sides"][side]["benchmarks"][0];
        let count = benchmark["timing"]["repetitions"].as_u64().unwrap();
        assert!((3..=10).contains(&count), "{count}");
        assert_eq!(run["sides"][0]["benchmarks"][0]["timing"], benchmark["timing"]);
        let processes = benchmark["processes"].as_array().unwrap();
        assert_eq!(processes.len(), 4);
        for process in processes {
            assert_eq!(process["samples"]["latency"].as_array().unwrap().len() as u64, count);
        }
    }
}

#[test]
fn words_folders_variables_and_outputs_reach_each_side_without_a_shell() {
    let world = world();
    for (folder, word) in [("a", "100."), ("b", "101.")] {
        let script = format!("cp ../bench.sh 'x y.sh'; sh 'x y.sh' \"$1\" {word} > \"$2\"");
        world.write(&format!("{folder}/own.sh"), script);
    }
    let report = world
        .run([
            "pair",
            r#"sh own.sh "$X 1" {output}"#,
            "--cwd-base=a",
            "--cwd-head=b",
            "--max-blocks=2",
            "--format=json",
            "--env=X=unused",
        ])
        .expect_code(20);
    // No shell expanded `$X 1`, so it is one word and not a number, and the output is not valid JSON.
    assert!(report.stdout.contains("output"), "{}", report.stdout);
    let report = world
        .run([
            "pair",
            "--shell",
            "sh own.sh $X {output}",
            "--cwd-base=a",
            "--cwd-head=b",
            "--env-base=X=20.",
            "--env-head=X=40.",
            "--max-blocks=4",
            "--format=json",
        ])
        .json();
    let ratio = |name| row(&report, name, Some("latency"))["estimate"]["ratio"].as_f64().unwrap();
    assert!((1.8..2.2).contains(&ratio("BM_a")), "{report:#}");
    assert!((0.99..1.03).contains(&ratio("BM_b")), "{report:#}");
}

/// Prints the benchmarks BM_quiet and BM_noisy if the pattern in `$1` selects them, and records the pattern.
/// The noisy time varies by up to a factor of two between processes.
const SELECTIVE: &str = r#"
echo "$1" >> patterns
row() { if echo "$1" | grep -qE "$3"; then printf '%s{"name":"%s","run_type":"iteration","iterations":10,"real_time":%s%s,"cpu_time":90,"time_unit":"us"}' "$comma" "$1" "$2" "$digits"; comma=,; fi; }
digits=$(printf %03d $(($(wc -l < patterns) * 367 % 1000)))
printf '{"context":{},"benchmarks":['; row BM_quiet 100. "$1"; row BM_noisy 1 "$1"; printf ']}'
"#;

#[test]
fn later_blocks_run_the_undecided_benchmarks_alone() {
    let world = World::new();
    world.write("bench.sh", SELECTIVE);
    let options = ["--warmup=0", "--max-blocks=18", "--seed=1", "--format=json", "--run=run.json"];
    let report =
        world.run([["pair", "sh bench.sh {filter}"].as_slice(), &options].concat()).expect_code(11).json();
    assert_eq!(verdicts(&report), [("BM_quiet", "pass"), ("BM_noisy", "inconclusive")]);
    let blocks = |name| row(&report, name, Some("latency"))["estimate"]["blocks"].as_u64().unwrap();
    assert_eq!((blocks("BM_quiet"), blocks("BM_noisy")), (12, 18));
    let patterns = world.read("patterns");
    let of_looks: Vec<(&str, usize)> = ["", r"^(BM_noisy)$"]
        .map(|pattern| (pattern, patterns.lines().filter(|line| *line == pattern).count()))
        .to_vec();
    assert_eq!(of_looks, [("", 0), (r"^(BM_noisy)$", 24)], "{patterns}");
}

/// Starts a session and sends this signal to benchgate once some processes are measured. Returns the exit
/// code and the last message.
fn interrupted(world: &World, signal: &str) -> (Option<i32>, String) {
    let mut session = world.command(["pair", "sh bench.sh 100. 20."]).stderr(Stdio::piped()).spawn().unwrap();
    let sessions = world.work().join(".benchgate/sessions");
    let measured = || {
        let found = std::fs::read_dir(&sessions).ok()?.flatten().next()?;
        Some(found.path().join("processes/00005.json").exists())
    };
    while measured() != Some(true) {
        assert!(session.try_wait().unwrap().is_none(), "it ended before it was interrupted");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    send(signal, &session);
    let ended = session.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    (ended.status.code(), said.lines().last().unwrap_or_default().to_owned())
}

fn send(signal: &str, process: &Child) {
    let sent = Command::new("kill").args([signal, &process.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Holds the lock, like another job that measures on this machine.
fn other_job(world: &World) -> File {
    std::fs::create_dir_all(world.locks()).unwrap();
    let file = File::create(world.locks().join("benchgate-host.lock")).unwrap();
    file.lock().unwrap();
    file
}

#[test]
fn waiting_for_another_job_keeps_the_earlier_result_and_has_nothing_to_resume() {
    let world = world();
    world.run(["pair", "sh bench.sh 100. 20."]).expect_code(0);
    let before = world.read(".benchgate/pair.json");
    let other = other_job(&world);
    world.run(["pair", "sh bench.sh 100. 20.", "--lock-timeout", "1s"]).expect_code(20);
    assert_eq!(world.read(".benchgate/pair.json"), before);

    let mut waits = world.command(["pair", "sh bench.sh 100. 20."]).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(waits.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(said.any(|line| line.ends_with("waiting for it")));
    send("-INT", &waits);
    assert_eq!(said.collect::<Vec<_>>(), ["error: interrupted"]);
    assert_eq!(waits.wait().unwrap().code(), Some(130));
    assert_eq!(world.read(".benchgate/pair.json"), before);

    drop(other);
    world.run(["pair", "sh bench.sh 100. 20."]).expect_code(0);
    assert_ne!(world.read(".benchgate/pair.json"), before);
}

#[test]
fn a_program_that_is_absent_is_known_before_the_wait_for_another_job() {
    let world = world();
    let _other = other_job(&world);
    for (command, absent) in
        [("nosuchprog x", "nosuchprog"), ("./nosuch x", "./nosuch"), ("bench.sh", "bench.sh")]
    {
        let refused = world.run(["pair", "sh bench.sh 100. 20.", command, "--lock-timeout", "1s"]);
        let expected = format!("error: failed to start {absent}: there is no such program");
        assert_eq!(refused.expect_code(20).messages().trim(), expected);
    }
}

#[test]
fn an_interrupted_session_goes_on_only_where_that_is_asked_for() {
    let world = world();
    let again = |more: &[&str]| {
        world.run([["pair", "sh bench.sh 100. 20."].as_slice(), more].concat()).expect_code(0)
    };
    let (code, said) = interrupted(&world, "-INT");
    assert_eq!(code, Some(130));
    assert_eq!(
        said,
        "hint: run the command again with `--resume` to continue, if the programs are unchanged"
    );
    assert!(!again(&[]).stderr.contains("resuming"), "the commands may do something else by now");
    assert!(!again(&["--resume"]).stderr.contains("resuming"), "there is nothing to go on with");
}

#[test]
fn a_session_that_was_killed_goes_on() {
    let world = world();
    assert_eq!(interrupted(&world, "-KILL").0, None);
    let again = world.run(["pair", "sh bench.sh 100. 20.", "--resume"]).expect_code(0);
    assert!(again.stderr.contains("resuming"), "{}", again.stderr);
}

#[test]
fn a_list_without_a_direction_is_refused_at_the_first_process_and_never_timed_as_a_whole() {
    let world = World::new();
    world.write("list.json", r#"[{"name": "a", "unit": "ms", "value": 5.0}]"#);
    for command in ["cat list.json", "cp list.json {output}"] {
        // With a stated format the list is read. The list is only refused because all values are equal.
        world
            .run(["pair", command, "--format-in=custom-smaller-is-better", "--max-blocks=2"])
            .expect_code(20);
        let refused = world.run(["pair", command]).expect_code(21);
        insta::allow_duplicates! { insta::assert_snapshot!(refused.messages(), @"
        error: failed to recognize the format of the command's output: a list of names, values and units does not state whether less or more is better
        hint: choose: `--format-in custom-smaller-is-better` or `--format-in custom-bigger-is-better`
        ") };
    }
    world.run(["pair", "cat list.json", "--whole", "--max-blocks=2"]).expect_no_failure();
}

#[test]
fn a_quote_that_is_not_closed_is_refused() {
    World::new().run(["pair", "echo 'a", "echo b"]).expect_code(2);
}
