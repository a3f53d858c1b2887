//! `benchgate compare`, as run by a user or by a job.

use std::path::PathBuf;

use benchgate::model::{BlockSlot, Metric, SideName, Testbed};
use benchgate::record::{
    BenchmarkRecord, CpuTelemetryRecord, Design, MeasureRecord, Number, OutcomeRecord, OutcomeStatus,
    ProcessRecord, RunFile, RunSchema, SideRecord, TelemetryRecord,
};

use crate::harness::{World, lint_detail};

const GOLDEN: &str = include_str!("../fixtures/record/run-v1.json");

fn captured(name: &str) -> String {
    let folder =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tool_output/google_benchmark");
    folder.join(name).to_str().unwrap().to_owned()
}

/// A paired run of 12 blocks: `mlp` has the given ratio, and `conv` is unchanged. The noise is a fixed
/// sequence, so that every run of the tests uses the same files.
fn paired(ratio: f64) -> RunFile {
    let names = [("mlp/cpu/main", ratio), ("conv/cpu/main", 1.0)];
    let side = |name: SideName| {
        let benchmarks = names.iter().enumerate().map(|(which, (benchmark, ratio))| {
            let ratio = if name == SideName::Head { *ratio } else { 1.0 };
            let slots = if name == SideName::Base { [0, 3] } else { [1, 2] };
            let processes =
                (0..12_u32).flat_map(|block| slots.map(|slot| (block, slot))).map(|(block, slot)| {
                    let order = block * 8 + u32::from(slot) * 2 + which as u32;
                    // Between −0.4 % and +0.4 %, different in every slot.
                    let noise = f64::from((order * 7919 + 13) % 17) / 17.0 * 0.008 - 0.004;
                    let sample = |repetition: u32| {
                        // No two processes have exactly equal times.
                        let other = f64::from(order) * 1e-3;
                        1e6 * ratio * (1.0 + noise) + f64::from(repetition % 3) * 100.0 + other
                    };
                    ProcessRecord {
                        slot: Some(BlockSlot { block, slot }),
                        order,
                        started: "2026-11-20T21:00:00Z".to_owned(),
                        seconds: Number(0.3),
                        samples: [("latency".to_owned(), (0..8).map(sample).collect())].into_iter().collect(),
                        ..ProcessRecord::default()
                    }
                });
            BenchmarkRecord {
                name: (*benchmark).to_owned(),
                labels: [("target".to_owned(), "cpu".to_owned())].into(),
                outcome: OutcomeRecord { status: OutcomeStatus::Ok, stage: None, why: None },
                artifact: None,
                stages: Vec::new(),
                verification: None,
                processes: processes.collect(),
                values: Vec::new(),
                profile: None,
                code: None,
                timing: None,
                compiler: std::collections::BTreeMap::new(),
                lints: Vec::new(),
            }
        });
        SideRecord {
            name,
            anchor: false,
            commit: None,
            dirty: None,
            toolchain: None,
            flags: Vec::new(),
            run_flags: Vec::new(),
            commands: Vec::new(),
            context: None,
            benchmarks: benchmarks.collect(),
        }
    };
    RunFile {
        schema: RunSchema,
        benchgate: "0.1.0".to_owned(),
        suite: "two".to_owned(),
        session: "s1".to_owned(),
        created: "2026-11-20T21:00:00Z".to_owned(),
        complete: true,
        design: Design::Abba,
        seed: 1,
        measure: MeasureRecord {
            repetitions: Some(8),
            iterations: None,
            min_time_ns: Some(50_000_000),
            warmup_ns: Some(0),
            processes: None,
            min_blocks: Some(4),
            max_blocks: Some(12),
            cpus: None,
        },
        testbed: Testbed { id: "t1".to_owned(), ..Testbed::default() },
        metrics: vec![Metric::LATENCY.clone()],
        sides: SideName::BOTH.map(side).into(),
        backends: Vec::new(),
        bundle: None,
        shard: None,
        shards: Vec::new(),
        gate: None,
        calibration: None,
        lints: Vec::new(),
    }
}

#[test]
fn a_slower_head_exits_with_10_and_an_unchanged_one_with_0() {
    let world = World::new();
    world.write("slow.json", paired(1.2).to_json());
    // Returns the line of the changed benchmark, and the verdict.
    let said = |file: &str, code: i32| {
        let outcome = world.run(["compare", file]).expect_code(code);
        let lines: Vec<&str> = outcome.stdout.lines().collect();
        let rows = lines.iter().filter(|line| line.starts_with("mlp")).chain(lines.last());
        rows.map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(said("slow.json", 10), @"
    mlp          999.8 → 1200 µs  +20.0 % (+19.7 … +20.3)      regressed
    Regressed (exit code 10): 1 of 2 benchmarks regressed, 1 passed.
    ");
    world.write("same.json", paired(1.0).to_json());
    insta::assert_snapshot!(said("same.json", 0), @"
    mlp/cpu/main   999.8 → 999.8 µs    ±0 %     −0.3 … +0.3 %  pass: within 3 %
    Pass (exit code 0): 2 of 2 benchmarks passed.
    ");
    world.write("fast.json", paired(0.25).to_json());
    insta::assert_snapshot!(said("fast.json", 0), @"
    mlp         999.6 → 250.0 µs  4.00× faster (3.99 … 4.01)   improved
    Improved (exit code 0): 1 of 2 benchmarks improved, 1 passed.
    ");
}

/// The machine was busy during the run, which affected both sides.
#[test]
fn sides_that_convert_wrote_have_the_verdicts_of_the_run_they_are_of() {
    let world = World::new();
    let mut file = paired(1.2);
    let processes =
        file.sides.iter_mut().flat_map(|side| &mut side.benchmarks).flat_map(|it| &mut it.processes);
    for process in processes {
        let (foreign, none) = (Number(0.4), Number(0.0));
        let cpu = CpuTelemetryRecord { foreign, stolen: none, resolution: none, throttled: None, by: None };
        process.telemetry = Some(TelemetryRecord { cpu: Some(cpu), gpus: Vec::new() });
    }
    world.write("run.json", file.to_json());
    for side in SideName::BOTH.map(SideName::as_str) {
        world.run(["convert", "run.json", &format!("{side}.json"), "--side", side]).expect_code(0);
    }
    let rows = |files: &[&str]| {
        let outcome = world.run([&["compare", "--format", "json"], files].concat()).expect_code(10);
        let comparison: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
        comparison["rows"].clone()
    };
    let sides = rows(&["run.json#base", "run.json#head"]);
    assert!(sides.to_string().contains("disturbed"), "{sides}");
    assert_eq!(rows(&["base.json", "head.json"]), sides);
    let verdicts = |rows: serde_json::Value| -> Vec<serde_json::Value> {
        rows.as_array().unwrap().iter().map(|row| row["verdict"].clone()).collect()
    };
    assert_eq!(verdicts(rows(&["run.json"])), verdicts(sides));
}

#[test]
fn the_same_files_give_the_same_bytes_in_every_format() {
    let world = World::new();
    world.write("run.json", paired(1.02).to_json());
    for format in ["terminal", "markdown", "json", "csv", "junit"] {
        let once = world.run(["compare", "run.json", "--format", format]);
        let again = world.run(["compare", "run.json", "--format", format]);
        assert_eq!(once.stdout, again.stdout, "{format}");
        assert_eq!(once.code, again.code, "{format}");
        assert_eq!(once.stderr, "", "{format}");
    }
}

#[test]
fn two_files_of_one_side_compare_like_one_file_of_two() {
    let world = World::new();
    let mut both = paired(1.2);
    // A file with one side does not contain the number of looks that its session was allowed.
    (both.measure.min_blocks, both.measure.max_blocks) = (None, None);
    for (name, side) in [("base.json", SideName::Base), ("head.json", SideName::Head)] {
        let mut one = both.clone();
        one.sides.retain(|record| record.name == side);
        world.write(name, one.to_json());
    }
    world.write("both.json", both.to_json());
    let rows = |text: &str| {
        text.lines().filter(|line| line.contains("latency")).map(str::to_owned).collect::<Vec<_>>()
    };
    let together = world.run(["compare", "both.json", "--format", "csv"]).expect_code(10);
    let apart = world.run(["compare", "base.json", "head.json", "--format", "csv"]).expect_code(10);
    assert_eq!(rows(&together.stdout), rows(&apart.stdout));
    let chosen =
        world.run(["compare", "both.json#base", "both.json#head", "--format", "csv"]).expect_code(10);
    assert_eq!(rows(&together.stdout), rows(&chosen.stdout));
    // If the sides are swapped, slower becomes faster.
    world.run(["compare", "both.json#head", "both.json#base"]).expect_code(0);
}

#[test]
fn both_sides_as_one_operand_of_two_must_be_chosen() {
    let world = World::new();
    world.write("both.json", paired(1.0).to_json());
    let outcome = world.run(["compare", "both.json", "both.json#head"]).expect_code(2);
    insta::assert_snapshot!(outcome.stderr, @"
    error: both.json has both sides
    hint: choose one: both.json#base or both.json#head; alone, `benchgate compare both.json` compares them
    ");
}

#[test]
fn one_sided_files_alone_have_nothing_to_be_compared_with() {
    let world = World::new();
    let mut one = paired(1.0);
    one.sides.remove(0);
    world.write("head.json", one.to_json());
    let outcome = world.run(["compare", "head.json"]).expect_code(2);
    insta::assert_snapshot!(outcome.stderr, @"
    error: head.json has only one side
    hint: give a second result: `benchgate compare BASE HEAD`
    ");
    world.run(["compare", &captured("abs.csv")]).expect_code(2);
}

#[test]
fn files_of_the_tool_itself_are_read_in_any_of_its_formats() {
    let world = World::new();
    let outcome = world.run(["compare", &captured("abs.csv"), &captured("abs.console"), "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(report["base"]["format"], "google-benchmark-csv");
    assert_eq!(report["head"]["format"], "google-benchmark-console");
    assert_eq!(report["exit_code"], outcome.code.unwrap());
}

#[test]
fn an_errored_row_is_never_faster() {
    // The tool prints 0.0 ms for this benchmark and exits with 0.
    let files = ["compare", &captured("abs.csv"), &captured("errored.csv"), "--format", "json"];
    let outcome = World::new().run(files);
    assert!(matches!(outcome.code, Some(10 | 20)), "{outcome:?}");
    let comparison = outcome.json();
    let rows = comparison["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["verdict"] != "improved"), "{comparison:#}");
}

#[test]
fn stdin_is_a_file_like_any_other_and_only_one() {
    let world = World::new();
    let json = std::fs::read(captured("vit.3.9.0.json")).unwrap();
    let base = captured("vit.3.13.0.json");
    let from_stdin = world.run_with_input(["compare", &base, "-", "--format", "csv"], &json);
    let from_file = world.run(["compare", &base, &captured("vit.3.9.0.json"), "--format", "csv"]);
    assert_eq!(from_stdin.stdout, from_file.stdout);
    assert_eq!(from_stdin.code, from_file.code);
    let twice = world.run(["compare", "-", "-"]).expect_code(2);
    insta::assert_snapshot!(twice.stderr, @"
    error: stdin (-) was given more than once
    hint: write one of the results to a file
    ");
}

#[test]
fn a_quoted_glob_joins_files_as_processes_of_one_side() {
    let world = World::new();
    for (at, name) in ["base-0.json", "base-1.json", "out/base-9.json"].into_iter().enumerate() {
        let text = std::fs::read_to_string(captured("vit.3.9.0.json")).unwrap();
        world.write(name, text.replace("22.1", &format!("22.{at}")));
    }
    let head = captured("vit.3.13.0.json");
    let joined = world.run(["compare", "base-*.json", &head, "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&joined.stdout).unwrap();
    assert_eq!(report["rows"][0]["base"]["processes"], 2);
    let deep =
        world.run(["compare", "--base-file", "**/base-*.json", "--head-file", &head, "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&deep.stdout).unwrap();
    assert_eq!(report["rows"][0]["base"]["processes"], 3);
    let none = world.run(["compare", "nothing-*.json", &head]).expect_code(21);
    assert!(none.stderr.contains("nothing-*.json"), "{}", none.stderr);
}

#[test]
fn runs_of_different_machines_are_not_one_side() {
    let world = World::new();
    let mut one = paired(1.0);
    one.sides.remove(0);
    world.write("head-1.json", one.to_json());
    world.write("other.json", one.to_json());
    one.testbed.id = "t2".to_owned();
    world.write("head-2.json", one.to_json());
    let outcome =
        world.run(["compare", "--base-file", "other.json", "--head-file", "head-*.json"]).expect_code(20);
    insta::assert_snapshot!(outcome.stderr, @"
    error: head-1.json and head-2.json come from different machines
    hint: files of one side must be sessions of one program on one machine; compare these with each other instead
    ");
}

#[test]
fn a_file_is_one_process_however_often_it_is_named() {
    let world = World::new();
    world.write("run.json", paired(1.0).to_json());
    let twice = ["run.json#base", "./run.json#base"];
    let head = ["compare", "--base-file", twice[0], "--head-file", twice[0], "--head-file", twice[1]];
    let outcome = world.run(head).expect_code(2);
    assert!(outcome.stderr.contains("./run.json was given twice for one side"), "{}", outcome.stderr);
    world.run(["compare", "run.json#base", "run.json#base"]).expect_code(20);
}

#[test]
fn joined_runs_are_processes_and_their_blocks_no_longer_pair_up() {
    let world = World::new();
    for (name, session, speed) in [("run-1.json", "s1", 1.0), ("run-2.json", "s2", 1.001)] {
        let mut run = paired(1.2);
        run.session = session.to_owned();
        let processes =
            run.sides.iter_mut().flat_map(|side| &mut side.benchmarks).flat_map(|b| &mut b.processes);
        for sample in processes.flat_map(|process| process.samples.get_mut("latency").unwrap()) {
            *sample *= speed;
        }
        world.write(name, run.to_json());
    }
    let files =
        ["compare", "--base-file", "run-*.json#base", "--head-file", "run-*.json#head", "--format", "json"];
    let outcome = world.run(files).expect_code(10);
    let report: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(report["rows"][0]["estimate"]["method"], "unpaired");
    assert_eq!(report["rows"][0]["base"]["processes"], 48);
}

/// The list of readable formats is tested elsewhere, so it is removed from the text around it.
fn without_formats(text: &str) -> String {
    let names: Vec<&str> = benchgate::ingest::Format::ALL.iter().map(|format| format.into_str()).collect();
    let words: Vec<String> = text
        .split('\n')
        .map(|line| {
            let words =
                line.split(' ').filter(|word| !names.contains(&word.trim_matches([',', ']', ';', ':'])));
            words.collect::<Vec<_>>().join(" ").trim_end().to_owned()
        })
        .collect();
    words.join("\n")
}

#[test]
fn unreadable_input_is_one_clear_error_and_exit_21() {
    let world = World::new();
    world.write("truncated.json", &GOLDEN.as_bytes()[..GOLDEN.len() / 2]);
    world.write("newer.json", GOLDEN.replace("benchgate/run/v1", "benchgate/run/v9"));
    world.write("unknown-field.json", GOLDEN.replace("\"seed\"", "\"sead\""));
    world.write("not-json.txt", "hello\n");
    world.write("other.json", "{\"hello\": 1}");
    world.write("empty", "");
    world.write("no-rows.json", "{\"context\": {}, \"benchmarks\": []}");
    let cut = std::fs::read(captured("vit.3.9.0.json")).unwrap();
    world.write("cut.json", &cut[..cut.len() / 2]);
    let names = [
        "truncated.json",
        "newer.json",
        "unknown-field.json",
        "not-json.txt",
        "other.json",
        "empty",
        "no-rows.json",
        "cut.json",
        "absent.json",
        ".",
    ];
    let mut said = String::new();
    for name in names {
        let outcome = world.run(["compare", name, &captured("abs.csv")]).expect_code(21);
        assert_eq!(outcome.stdout, "");
        said.push_str(&format!("{name}\n{}\n", outcome.stderr));
    }
    insta::assert_snapshot!(without_formats(&said));
}

#[test]
fn an_interrupted_run_is_not_judged() {
    let world = World::new();
    let mut run = paired(1.0);
    run.complete = false;
    world.write("run.json", run.to_json());
    let outcome = world.run(["compare", "run.json"]).expect_code(20);
    insta::assert_snapshot!(outcome.stderr, @"
    error: run.json is an interrupted run; it can't be judged
    hint: run the suite again: it resumes where it stopped
    ");
}

#[test]
fn the_output_file_is_opened_before_the_work_and_replaced_at_its_end() {
    let world = World::new();
    world.write("run.json", paired(1.2).to_json());
    let nowhere =
        world.run(["compare", "absent.json", "--output", "no/such/folder/report.md"]).expect_code(2);
    assert!(nowhere.stderr.contains("no/such/folder"), "{}", nowhere.stderr);
    world.write("report.md", "the old report");
    world.run(["compare", "absent.json", "--output", "report.md"]).expect_code(21);
    assert_eq!(world.read("report.md"), "the old report");
    let written =
        world.run(["compare", "run.json", "--format", "markdown", "--output", "report.md"]).expect_code(10);
    assert_eq!(written.stdout, "");
    assert!(world.read("report.md").starts_with("### 🔴 Regressed"));
    let left: Vec<String> = std::fs::read_dir(world.work())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(".benchgate-"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn options_loosen_and_tighten_the_verdict() {
    let world = World::new();
    world.write("run.json", paired(1.2).to_json());
    world.run(["compare", "run.json", "--floor", "30%"]).expect_code(0);
    let warned = world.run(["compare", "run.json", "--warn-only"]).expect_code(0);
    insta::assert_snapshot!(warned.stdout.split("\n\n").last().unwrap(), @"
    Regressed (exit code 0; this verdict is not set to fail): 1 of 2 benchmarks
        regressed, 1 passed.
    ");
    world.run(["compare", "run.json", "--fail-on", "missing,error"]).expect_code(0);
    world.run(["compare", "run.json", "--fail-on", "passed"]).expect_code(2);
    world.run(["compare", "run.json", "--floor", "5%", "--tolerance", "1%"]).expect_code(2);
    world.run(["compare", "run.json", "--floor", "1"]).expect_code(2);
    for test in ["welch", "mann-whitney"] {
        world.run(["compare", "run.json", "--test", test]).expect_code(10);
    }
}

#[test]
fn a_policy_file_judges_and_an_option_overrides_it() {
    let world = World::new();
    world.write("run.json", paired(1.2).to_json());
    world.write("loose.toml", "[gate.metric.latency]\nfloor = \"30%\"\ntolerance = \"40%\"\n");
    world.run(["compare", "run.json", "--policy", "loose.toml"]).expect_code(0);
    world.run(["compare", "run.json", "--policy", "loose.toml", "--floor", "1%"]).expect_code(10);
    world.write("wrong.toml", "[gate]\nalfa = 0.01\n");
    let outcome = world.run(["compare", "run.json", "--policy", "wrong.toml"]).expect_code(2);
    assert!(outcome.stderr.contains("wrong.toml:2"), "{}", outcome.stderr);
}

#[test]
fn every_finding_can_be_explained() {
    let world = World::new();
    for code in benchgate::model::LintCode::ALL {
        let outcome = world.run(["compare", "--explain", code.as_str()]).expect_code(0);
        assert!(outcome.stdout.starts_with(code.as_str()), "{}", outcome.stdout);
    }
    let outcome = world.run(["compare", "--explain", "single-repetitio"]).expect_code(2);
    insta::assert_snapshot!(outcome.stderr, @"
    error: there is no finding with the code single-repetitio
    hint: did you mean single-repetition?
    ");
}

#[test]
fn the_help_of_compare() {
    let help = World::new().run(["compare", "-h"]).expect_code(0).stdout;
    // The list of formats is tested elsewhere.
    let (before, formats) = help.split_once("      --format-in").unwrap();
    let (_, after) = formats.split_once("      --seed").unwrap();
    insta::assert_snapshot!(format!("{before}      --seed{after}"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_report_that_can_t_be_written_is_never_a_pass() {
    let world = World::new();
    world.write("run.json", paired(1.0).to_json());
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = world.command(["compare", "run.json"]);
    command.stdout(full());
    let outcome = world.finish(command).expect_code(20);
    assert!(outcome.stderr.contains("stdout"), "{}", outcome.stderr);
    let outcome = world.run(["compare", "run.json", "--output", "/dev/full"]).expect_code(20);
    assert!(outcome.stderr.contains("/dev/full"), "{}", outcome.stderr);
}

/// Two results that were once posted to argue that one kernel is faster than another. Both files are the
/// tool's console output, with one repetition because of a misspelled flag, from a debug build on a loaded
/// host.
#[test]
fn a_posted_result_of_one_repetition_on_a_loaded_host_decides_nothing() {
    let world = World::new();
    let (base, head) = (captured("mi300-conv-iree.console"), captured("mi300-conv-misa.console"));
    let report = world.run(["compare", &base, &head, "--format", "json"]).expect_code(11).json();
    assert_eq!(report["verdict"], "inconclusive");

    let said = world.run(["compare", &base, &head]).expect_code(11).said();
    for finding in ["single-repetition", "debug-build", "host-overloaded", "cpu-scaling"] {
        assert!(said.contains(finding), "{finding} is not said:\n{said}");
    }
    insta::assert_snapshot!(lint_detail(&report, "host-overloaded"), @"base: load average 125.1 on 128 processors");
    // The comparison passes only if the policy leaves out `inconclusive`.
    world.run(["compare", &base, &head, "--fail-on", "regressed,diverged,error,missing"]).expect_code(0);
}

/// The number of looks that a session was allowed is recorded with its measurement.
#[test]
fn a_session_is_judged_with_the_blocks_it_was_allowed() {
    let world = World::new();
    let level = |max_blocks: Option<u32>| {
        let mut run = paired(1.0);
        run.measure.min_blocks = max_blocks.map(|_| 12);
        run.measure.max_blocks = max_blocks;
        world.write("run.json", run.to_json());
        let outcome = world.run(["compare", "run.json", "--format", "json"]);
        let file: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
        file["rows"][0]["estimate"]["interval"]["level"].as_f64().unwrap()
    };
    // The look at twelve blocks is the last one of a session of twelve, and an early one of a longer session.
    assert_eq!(level(Some(24)), level(None));
    assert_ne!(level(Some(12)), level(Some(48)));
}

/// Judging a stored run gives the verdict that measuring and judging in one step gave.
#[test]
fn the_policy_that_a_run_records_judges_it_unless_another_is_named() {
    let world = World::new();
    let mut run = paired(1.2);
    let floor = benchgate::model::Floor { relative: 0.3, absolute: 0.0 };
    let metric = benchgate::model::MetricPolicy { floor, tolerance: 0.4, fatal: true, better: None };
    run.gate = Some(benchgate::model::Policy {
        fail_on: benchgate::model::FailOn(vec![benchgate::model::Verdict::Regressed]),
        metrics: vec![("latency".to_owned(), metric)],
        ..benchgate::model::Policy::default()
    });
    world.write("run.json", run.to_json());
    world.run(["compare", "run.json"]).expect_code(0);
    let page = world.run(["report", "run.json", "--format", "html"]).expect_code(0);
    let comparison = world.run(["compare", "run.json", "--format", "json"]).expect_code(0).json();
    // The page uses the same policy.
    let headline = comparison["headline"].as_str().unwrap();
    assert!(page.stdout.contains(headline), "{headline}\n{}", page.stdout);
    world.run(["compare", "run.json", "--floor", "1%"]).expect_code(10);
    world.write("strict.toml", "[gate.metric.latency]\nfloor = \"1%\"\n");
    world.run(["compare", "run.json", "--policy", "strict.toml"]).expect_code(10);
    let guessed =
        String::from_utf8(run.to_json()).unwrap().replace("\"test\": \"auto\"", "\"test\": \"guess\"");
    world.write("run.json", guessed);
    world.run(["compare", "run.json"]).expect_code(21);
    world.run(["report", "run.json"]).expect_code(21);
}

#[test]
fn a_report_without_options_is_the_table_of_what_was_measured() {
    let world = World::new();
    world.write("run.json", paired(1.2).to_json());
    insta::assert_snapshot!(world.run(["report", "run.json"]).expect_code(0).stdout);
}

#[test]
fn a_report_that_is_written_to_a_file_says_so() {
    let world = World::new();
    world.write("run.json", paired(1.2).to_json());
    let outcome = world.run(["report", "run.json", "--format", "html", "-o", "r.html"]).expect_code(0);
    assert_eq!((outcome.stdout.as_str(), outcome.messages().trim()), ("", "wrote r.html"));
}

#[test]
fn transcripts_of_iree_run_module_are_compared_by_the_values_that_they_print() {
    let world = World::new();
    let transcript =
        |values: &str| format!("EXEC @add\nresult[0]: hal.buffer_view\n{values}\nresult[1]: i32=7\n");
    world.write("base.txt", transcript("2x2xf32=[3 4][5 6]"));
    for (values, code, part) in [
        ("2x2xf32=[3 4][5 6]", 0, "add pass outputs verified"),
        ("2x2xf32=[3 4][5 7]", 13, "1 of 4 elements beyond the tolerance"),
        ("2x2xf32=[3 4][5 ...]", 11, "truncated"),
        ("4xf32=3 4 5 6", 13, "shape 4, but base's output has 2x2"),
    ] {
        world.write("head.txt", transcript(values));
        let outcome = world.run(["compare", "base.txt", "head.txt", "--all"]).expect_code(code);
        let said = outcome.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(part), "{values}: {said}");
    }
    world.write("head.txt", "EXEC @add\n[SUCCESS] all function outputs matched their expected values.\n");
    world.run(["compare", "base.txt", "head.txt"]).expect_code(0);
}
