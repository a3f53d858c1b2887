//! A suite on several machines: `plan`, `--shard`, `merge`.

use std::collections::BTreeMap;
use std::process::{Child, Stdio};
use std::time::Duration;

use benchgate::fleet;
use benchgate::gate::{CompareOptions, compare};
use benchgate::model::{SideName, Unit};
use benchgate::record::{Number, PlanFile, PlannedShardRecord, RunFile, ShardRecord};
use benchgate::report::{self, View};
use proptest::prelude::*;
use serde_json::Value;

use crate::suite::Suite;

/// A suite with this many models, whose head does the same work with different bytes.
fn suite(models: usize) -> Suite {
    let names: Vec<String> = (0..models).map(|model| format!("m{model}")).collect();
    let with_models = names.iter().fold(Suite::new(), |suite, name| suite.model(name, &["latency-us=500"]));
    with_models.base("").head("flags = [\"--fake=note=head\"]").write()
}

fn shard_command(suite: &Suite, shard: usize, attempt: u32) -> std::process::Command {
    let (shard, attempt) = (shard.to_string(), attempt.to_string());
    let (run, work) = (format!("shards/{shard}-{attempt}.json"), format!("work-{shard}"));
    let args = ["run", "--plan", "plan.json", "--shard", &shard, "--attempt", &attempt, "--run", &run];
    let mut command = suite.world.command(args);
    command.args(["--work-dir", &work]);
    command
}

fn run_shards(suite: &Suite, count: usize) {
    suite.world.write("shards/.keep", "");
    std::fs::remove_file(suite.world.work().join("shards/.keep")).unwrap();
    for shard in 1..=count {
        suite.world.finish(shard_command(suite, shard, 1)).expect_code(0);
    }
}

fn merge(suite: &Suite) -> Option<i32> {
    suite.world.run(["merge", "shards", "--output", "merged.json"]).code
}

#[test]
fn the_options_of_slurm_are_words_that_a_shell_passes_as_they_are() {
    let suite = suite(2);
    let plan = ["plan", "--shards", "2", "--format", "slurm", "--runner", "x86,avx512"];
    let options = suite.world.run(plan).expect_code(0).stdout;
    let words: Vec<&str> = options.split_whitespace().collect();
    assert!(words.contains(&"--constraint=x86&avx512"), "{words:?}");
}

#[test]
fn a_step_of_buildkite_needs_nothing_but_a_checkout() {
    let suite = suite(2);
    let plan = ["plan", "-c", "./benchgate.toml", "--shards", "2", "--format", "buildkite"];
    let steps: Value = serde_json::from_str(&suite.world.run(plan).expect_code(0).stdout).unwrap();
    for step in steps["steps"].as_array().unwrap() {
        let command = step["command"].as_str().unwrap();
        assert!(command.starts_with("buildkite-agent artifact download plan.json . && "), "{command}");
        assert!(command.contains("merge") || command.contains("--config ./benchgate.toml"), "{command}");
    }
}

#[test]
fn a_plan_says_where_a_number_of_shards_does_not_fit() {
    let suite = suite(2);
    let more = suite.world.run(["plan", "--shards", "9"]).expect_code(0).stderr;
    assert!(
        more.contains("2 benchmarks can fill only 2 shards") && more.contains(": 1 benchmark,"),
        "{more}"
    );
}

#[test]
fn more_shards_than_a_matrix_of_github_has_jobs_are_refused_for_github_alone() {
    let suite = suite(257);
    let plan = |more: &[&str]| suite.world.run([&["plan", "--shards", "257"], more].concat());
    let refused = plan(&[]).expect_code(2);
    assert!(refused.stderr.contains("at most 256 jobs"), "{}", refused.stderr);
    assert!(!suite.world.work().join("plan.json").exists());
    plan(&["--format", "slurm"]).expect_code(0);
}

#[test]
fn a_step_of_buildkite_puts_a_plan_back_where_it_was_made() {
    let suite = suite(2);
    let file = suite.world.work().join("plan.json");
    let plan = ["plan", "--shards", "2", "--format", "buildkite", "--plan", file.to_str().unwrap()];
    let steps = suite.world.run(plan).expect_code(0).stdout;
    let steps: Value = serde_json::from_str(&steps).unwrap();
    for step in steps["steps"].as_array().unwrap() {
        // The artifact is downloaded to `/`, by its path without the leading `/`.
        let command = step["command"].as_str().unwrap();
        let fetched = command.strip_prefix("buildkite-agent artifact download ").unwrap();
        assert!(!fetched.starts_with('/') && fetched.contains("/plan.json / && "), "{command}");
    }
}

#[test]
fn a_step_quotes_what_a_shell_would_expand() {
    let plan = ["plan", "--shards", "2", "--format", "buildkite", "--plan", "~plan.json"];
    let steps = suite(2).world.run(plan).expect_code(0).stdout;
    assert!(steps.contains("download '~plan.json'") && steps.contains("--plan '~plan.json'"), "{steps}");
}

#[test]
fn a_single_shard_is_not_stored_as_a_session() {
    let suite = suite(2);
    suite.world.run(["plan", "--shards", "2"]).expect_code(0);
    run_shards(&suite, 1);
    let refused = suite.world.run(["baseline", "update", "--run", "shards/1-1.json"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("benchgate merge") && !suite.world.work().join("baselines").exists());
}

fn plan(suite: &Suite) -> PlanFile {
    PlanFile::from_slice(suite.world.read("plan.json").as_bytes()).unwrap()
}

#[test]
fn a_plan_is_the_matrix_of_a_job_and_the_same_every_time() {
    let suite = suite(5);
    let first = suite.world.run(["plan", "--shards", "2", "--runner", "cpu=self-hosted,big"]).expect_code(0);
    let plan = suite.world.read("plan.json");
    let matrix: Value = serde_json::from_str(&first.stdout).unwrap();
    assert_eq!(first.stdout.lines().count(), 1, "an output of a step is a line");
    let shards: Vec<u64> =
        matrix["include"].as_array().unwrap().iter().map(|job| job["shard"].as_u64().unwrap()).collect();
    assert_eq!(shards, [1, 2]);
    assert_eq!(matrix["include"][0]["runner"], serde_json::json!(["self-hosted", "big"]));
    let again = suite.world.run(["plan", "--shards", "2", "--runner", "cpu=self-hosted,big"]).expect_code(0);
    assert_eq!((again.stdout, suite.world.read("plan.json")), (first.stdout, plan));
}

#[test]
fn a_shard_of_another_suite_is_refused() {
    let suite = suite(2);
    suite.world.run(["plan", "--shards", "2"]).expect_code(0);
    let toml = suite.world.read("benchgate.toml");
    suite.world.write("benchgate.toml", format!("{toml}\n[gate]\nalpha = 0.05\n"));
    suite.world.run(["run", "--plan", "plan.json", "--shard", "1"]).expect_code(2);
    suite.world.write("benchgate.toml", toml);
    suite.world.run(["run", "--plan", "plan.json", "--shard", "3"]).expect_code(2);
    let edited = suite.world.read("plan.json").replace("\"max_blocks\": 12", "\"max_blocks\": 4");
    suite.world.write("plan.json", edited);
    suite.world.run(["run", "--plan", "plan.json", "--shard", "1"]).expect_code(21);
}

#[test]
fn shards_of_one_suite_are_merged_to_a_run_that_every_command_reads() {
    let suite = suite(3);
    suite.world.run(["plan", "--shards", "2"]).expect_code(0);
    run_shards(&suite, 2);
    suite.world.run(["compare", "shards/1-1.json"]).expect_code(20);
    let status = |files: &[&str]| suite.world.run([&["merge", "--status"], files].concat());
    let all = status(&["shards"]).expect_code(0).stdout;
    assert_eq!(all, "shard 1: done, 2 benchmarks\nshard 2: done, 1 benchmark\nall 2 shards done\n");
    let one = status(&["shards/1-1.json"]).expect_code(20).stdout;
    assert_eq!(
        one,
        "shard 1: done, 2 benchmarks\nshard 2: missing, 1 benchmark\n1 of 2 shards done; to run: 2\n"
    );
    let edited = suite.world.read("shards/2-1.json").replace("\"attempt\": 1", "\"attempt\": 2");
    suite.world.write("edited.json", edited);
    let refused = status(&["shards/1-1.json", "edited.json"]).expect_code(20).stdout;
    assert!(
        refused.contains(
            "shard 2: can't be merged: edited.json was changed: its content does not match its digest"
        ),
        "{refused}"
    );
    assert_eq!(merge(&suite), Some(0));
    suite.world.run(["compare", "merged.json"]).expect_code(0);
    let merged: Value = serde_json::from_str(&suite.world.read("merged.json")).unwrap();
    let names: Vec<&str> = merged["sides"][1]["benchmarks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|benchmark| benchmark["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["m0/cpu/main", "m1/cpu/main", "m2/cpu/main"]);
    assert_eq!(merged["shards"].as_array().unwrap().len(), 2);
    let first = suite.world.read("merged.json");
    suite
        .world
        .run(["merge", "shards/2-1.json", "shards/1-1.json", "--output", "merged.json"])
        .expect_code(0);
    assert_eq!(suite.world.read("merged.json"), first, "the order of the files does not matter");

    // Files that are read are neither removed nor replaced.
    let read = ["shards/1-1.json", "plan.json", "merged.json"].map(|file| (file, suite.world.read(file)));
    suite.world.run(["merge", "shards", "--output", "shards/1-1.json"]).expect_code(2);
    suite.world.run(["merge", "shards", "--output", "plan.json"]).expect_code(2);
    let plan = ["plan", "--shards", "2", "--durations", "merged.json", "--plan", "./merged.json"];
    suite.world.run(plan).expect_code(2);
    for (file, content) in read {
        assert_eq!(suite.world.read(file), content, "{file}");
    }
}

#[test]
fn shards_of_sides_that_are_identical_in_two_places_are_merged() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).model("b", &["latency-us=500"]);
    let suite = suite.base("sources = \"base\"").head("sources = \"head\"").write();
    for side in ["base", "head"] {
        for file in ["models/a.mlir", "models/b.mlir", "data/y.npy"] {
            let content = std::fs::read(suite.world.work().join(file)).unwrap();
            suite.world.write(&format!("{side}/{file}"), content);
        }
    }
    suite.world.run(["plan", "--shards", "2"]).expect_code(0);
    run_shards(&suite, 2);
    assert_eq!(merge(&suite), Some(0));
    suite.world.run(["compare", "merged.json"]).expect_code(0);
}

#[test]
fn eight_workers_that_are_killed_lost_and_repeated_are_green_only_when_complete() {
    let suite = suite(8);
    suite.world.run(["plan", "--shards", "8"]).expect_code(0);
    suite.world.write("shards/.keep", "");
    std::fs::remove_file(suite.world.work().join("shards/.keep")).unwrap();
    let start =
        |shard| shard_command(&suite, shard, 1).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut workers: Vec<Child> = (1..=8).map(start).collect();
    // Each worker is killed at an arbitrary point.
    for (worker, wait) in [(1, 0), (4, 300), (6, 300)] {
        std::thread::sleep(Duration::from_millis(wait));
        workers[worker].kill().unwrap();
    }
    for worker in &mut workers {
        worker.wait().unwrap();
    }
    let done = |shard: usize| suite.world.work().join(format!("shards/{shard}-1.json")).exists();
    let lost: Vec<usize> = (1..=8).filter(|shard| !done(*shard)).collect();
    assert!(lost.contains(&2), "a worker that is killed at once has no result");
    assert_eq!(merge(&suite), Some(20));
    assert!(!suite.world.work().join("merged.json").exists());

    for shard in &lost {
        suite.world.finish(shard_command(&suite, *shard, 2)).expect_code(0);
    }
    assert_eq!(merge(&suite), Some(0));
    let whole = suite.world.read("merged.json");

    // Uploading the same file again changes nothing; a different result of the same attempt is refused.
    let first = suite.world.read("shards/2-2.json");
    suite.world.write("shards/copy.json", &first);
    assert_eq!(merge(&suite), Some(0));
    assert_eq!(suite.world.read("merged.json"), whole);
    let mut other = RunFile::from_slice(first.as_bytes()).unwrap();
    other.session.push('x');
    other.seal_shard();
    suite.world.write("shards/copy.json", other.to_json());
    assert_eq!(merge(&suite), Some(20));
    std::fs::remove_file(suite.world.work().join("shards/copy.json")).unwrap();

    // An older attempt doesn't replace a newer one, and a failed merge leaves no old result behind.
    other.shard.as_mut().unwrap().attempt = 1;
    other.seal_shard();
    suite.world.write("shards/zzz.json", other.to_json());
    assert_eq!(merge(&suite), Some(0));
    assert_eq!(suite.world.read("merged.json"), whole);
    std::fs::remove_file(suite.world.work().join("shards/zzz.json")).unwrap();
    std::fs::remove_file(suite.world.work().join("shards/2-2.json")).unwrap();
    assert_eq!(merge(&suite), Some(20));
    assert!(!suite.world.work().join("merged.json").exists());
}

/// The plan of this run, in which benchmark `i` belongs to shard `cut[i]`.
fn recut(plan: &PlanFile, seed: u64, cut: &[usize]) -> PlanFile {
    let mut shards: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (benchmark, shard) in plan.benchmarks.iter().zip(cut) {
        shards.entry(*shard).or_default().push(benchmark.name.clone());
    }
    let shards = (1..).zip(shards.into_values()).map(|(shard, benchmarks)| PlannedShardRecord {
        shard,
        runner: Vec::new(),
        benchmarks,
        seconds: Number(1.0),
    });
    let mut plan = PlanFile { seed, shards: shards.collect(), ..plan.clone() };
    plan.seal();
    plan
}

/// Splits a run into the records of the plan's shards.
fn pieces(run: &RunFile, plan: &PlanFile) -> Vec<RunFile> {
    let piece = |shard: &PlannedShardRecord| {
        let mut file = run.clone();
        file.session = format!("session {}", shard.shard);
        file.shard =
            Some(ShardRecord { plan: plan.sha256.clone(), shard: shard.shard, attempt: 1, sha256: None });
        for side in &mut file.sides {
            side.benchmarks.retain(|benchmark| shard.benchmarks.contains(&benchmark.name));
        }
        let mut orders: Vec<&mut u32> = file
            .sides
            .iter_mut()
            .flat_map(|side| &mut side.benchmarks)
            .flat_map(|benchmark| &mut benchmark.processes)
            .map(|process| &mut process.order)
            .collect();
        orders.sort();
        for (own, order) in (0..).zip(orders) {
            *order = own;
        }
        file.seal_shard();
        file
    };
    plan.shards.iter().map(piece).collect()
}

fn report_of(run: &RunFile) -> String {
    let runs: BTreeMap<SideName, _> = run.runs("run.json").into_iter().collect();
    let policy = run.policy();
    let options = CompareOptions::default();
    let comparison = compare(&runs[&SideName::Base], &runs[&SideName::Head], &policy, &options);
    report::json(&View::new(&comparison, None))
}

#[test]
fn the_verdict_does_not_depend_on_how_the_suite_was_cut() {
    let suite = Suite::new()
        .model("same", &["latency-us=400", "pinned-latency-us=400"])
        .model("slower", &["latency-us=300"])
        .model("other", &["latency-us=200", "pinned-latency-us=200"])
        .model("uneven", &["latency-us=250", "pinned-latency-us=250", "slow-every=3", "slow-by=30"])
        .model("broken", &["compile-error=no"])
        .model("long", &["latency-us=900", "pinned-latency-us=900"])
        .base("")
        .head("flags = [\"--fake=latency-us=330\"]")
        .write();
    // Every merge repeats the looks. Few repetitions keep 200 merges fast.
    let toml = suite.world.read("benchgate.toml").replace("repetitions = 4", "repetitions = 2");
    suite.world.write("benchgate.toml", toml);
    suite.world.run(["plan", "--shards", "1"]).expect_code(0);
    suite.world.run(["run", "--plan", "plan.json", "--shard", "1"]).expect_code(20);
    let run = RunFile::from_slice(suite.world.read("run.json").as_bytes()).unwrap();
    let (plan, whole) = (plan(&suite), report_of(&run));
    let policy = plan.policy();
    let benchmarks = plan.benchmarks.len();
    let cuts = (
        proptest::collection::vec(0..benchmarks, benchmarks),
        Just(()).prop_perturb(|(), mut random| random.next_u64()),
    );
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    runner
        .run(&cuts, |(cut, order)| {
            let plan = recut(&plan, run.seed, &cut);
            let pieces = pieces(&run, &plan);
            let mut labelled: Vec<(String, RunFile)> =
                (0..).zip(pieces).map(|(at, file): (usize, _)| (format!("{at}.json"), file)).collect();
            let count = labelled.len();
            labelled.rotate_left(usize::try_from(order % 7).unwrap() % count);
            if order % 2 == 0 {
                labelled.reverse();
            }
            let mut merged = fleet::merge(&plan, &policy, labelled)
                .map_err(|wrong| TestCaseError::fail(format!("{wrong:?}")))?
                .file;
            prop_assert_eq!(merged.shards.len(), count);
            // The gate is a pure function of the runs, which differ only in the session's name. A few reports
            // show that the name is not part of a report.
            if order % 16 == 0 {
                prop_assert_eq!(report_of(&merged), whole.clone());
            }
            merged.session.clone_from(&run.session);
            prop_assert!(merged.runs("run.json") == run.runs("run.json"), "cut {cut:?} changed the run");
            Ok(())
        })
        .unwrap();
}

/// A function that edits the file of a shard.
type Forgery = fn(&mut RunFile);

#[test]
fn a_forged_shard_is_never_part_of_a_run() {
    let suite = suite(2);
    suite.world.run(["plan", "--shards", "2"]).expect_code(0);
    run_shards(&suite, 2);
    let honest = RunFile::from_slice(suite.world.read("shards/1-1.json").as_bytes()).unwrap();
    let forgeries: &[(&str, Forgery)] = &[
        ("a block is left out", |file| {
            for side in &mut file.sides {
                side.benchmarks[0].processes.retain(|process| process.slot.unwrap().block != 1);
            }
        }),
        ("a process is left out", |file| {
            file.sides[1].benchmarks[0].processes.pop();
        }),
        ("fewer blocks than the first look", |file| {
            for side in &mut file.sides {
                side.benchmarks[0].processes.retain(|process| process.slot.unwrap().block < 2);
            }
        }),
        ("an open row is cut back to an earlier look", |file| {
            for side in &mut file.sides {
                side.benchmarks[0].processes.retain(|process| process.slot.unwrap().block < 8);
            }
        }),
        ("it is of another version", |file| file.benchgate.push_str("-dev")),
        ("more blocks than the plan allows", |file| {
            for side in &mut file.sides {
                let more: Vec<_> = (1..9)
                    .flat_map(|round| {
                        side.benchmarks[0].processes.clone().into_iter().map(move |mut process| {
                            process.slot.as_mut().unwrap().block += round * 4;
                            process
                        })
                    })
                    .collect();
                side.benchmarks[0].processes = more;
            }
        }),
        ("a benchmark is left out on one side", |file| file.sides[0].benchmarks.clear()),
        ("a benchmark of another shard is there", |file| {
            let mut other = file.sides[1].benchmarks[0].clone();
            other.name = "m1/cpu/main".to_owned();
            file.sides[1].benchmarks.push(other);
        }),
        ("the policy is another one", |file| file.gate.as_mut().unwrap().alpha = 0.5),
        ("the seed is another one", |file| file.seed += 1),
        ("the tools are others", |file| {
            file.sides[1].toolchain.as_mut().unwrap().runtime_commit = "2".repeat(40);
        }),
        ("the commit is another one", |file| file.sides[1].commit = Some("2".repeat(40))),
        ("its tree had changes", |file| {
            file.sides[1].commit = Some("1".repeat(40));
            file.sides[1].dirty = Some(true);
        }),
        ("it was interrupted", |file| file.complete = false),
        ("it is of another plan", |file| file.shard.as_mut().unwrap().plan = "0".repeat(64)),
        ("it says it is the other shard", |file| file.shard.as_mut().unwrap().shard = 2),
        ("it is no shard", |file| file.shard = None),
        ("it is on another kind of machine", |file| {
            file.testbed.facts.insert("cpu".to_owned(), "another".to_owned());
        }),
        ("a metric is described in another way", |file| file.metrics[1].unit = Unit::Count),
    ];
    for (what, forge) in forgeries {
        let mut file = honest.clone();
        forge(&mut file);
        // A person who edits a file can write its digest too.
        file.seal_shard();
        suite.world.write("shards/1-1.json", file.to_json());
        let code = merge(&suite);
        assert!(matches!(code, Some(20 | 21)), "{what}: {code:?}");
        assert!(!suite.world.work().join("merged.json").exists(), "{what}");
    }
    // Every changed digit is noticed, even if any other value would be plausible.
    let text = String::from_utf8(honest.to_json()).unwrap();
    let digits: Vec<usize> = text.match_indices(|c: char| c.is_ascii_digit()).map(|(at, _)| at).collect();
    for at in digits.iter().step_by(digits.len() / 20) {
        let mut changed = text.clone().into_bytes();
        changed[*at] = if changed[*at] == b'9' { b'8' } else { changed[*at] + 1 };
        // Changing the last digit of a long number may not change its value.
        if RunFile::from_slice(&changed).is_ok_and(|file| file == honest) {
            continue;
        }
        suite.world.write("shards/1-1.json", changed);
        let code = merge(&suite);
        assert!(matches!(code, Some(20 | 21)), "{code:?}: {}", &text[at.saturating_sub(60)..at + 1]);
    }
    suite.world.write("shards/1-1.json", &suite.world.read("shards/2-1.json")[..200]);
    assert_eq!(merge(&suite), Some(21), "a file that was cut short");
    suite.world.write("shards/1-1.json", honest.to_json());
    assert_eq!(merge(&suite), Some(0));
}

/// A copy of the shard with only the first blocks of these benchmarks.
fn cut_back(file: &RunFile, blocks: &[(&str, u32)]) -> RunFile {
    let mut file = file.clone();
    for record in file.sides.iter_mut().flat_map(|side| &mut side.benchmarks) {
        if let Some((_, most)) = blocks.iter().find(|(name, _)| record.name.starts_with(name)) {
            record.processes.retain(|process| process.slot.unwrap().block < *most);
        }
    }
    file
}

#[test]
fn a_row_is_merged_only_if_it_was_measured_as_long_as_its_samples_ask() {
    let suite = Suite::new()
        .model("open", &["latency-us=400", "pinned-latency-us=400"])
        .model("slower", &["latency-us=300", "pinned-latency-us=300"])
        .model("cheap", &["latency-us=200", "pinned-latency-us=200"])
        .base("")
        .head("flags = [\"--fake=note=head\"]")
        .write();
    suite.world.run(["plan", "--shards", "1"]).expect_code(0);
    suite.world.run(["run", "--plan", "plan.json", "--shard", "1"]).expect_code(0);
    let mut run = RunFile::from_slice(suite.world.read("run.json").as_bytes()).unwrap();
    // The samples are replaced, so that the load of the host has no effect: all processes are alike, and one
    // model is twice as slow.
    for (at, side) in run.sides.iter_mut().enumerate() {
        for record in &mut side.benchmarks {
            let slow = at == 1 && record.name.starts_with("slower");
            for (process, place) in record.processes.iter_mut().zip(0_u32..) {
                process.seconds = Number(1.0);
                process.telemetry = None;
                process.load_avg.clear();
                let typical = if slow { 2e6 } else { 1e6 };
                let values = process.samples.get_mut("latency").unwrap();
                for (value, repetition) in values.iter_mut().zip(0_u32..) {
                    let noise = f64::from((place * 7 + repetition * 13 + 5) % 17) * 300.0;
                    // No two processes have exactly equal times.
                    *value = typical + noise + f64::from(2 * place + u32::from(at == 1)) * 0.01;
                }
            }
        }
    }
    let plan = plan(&suite);
    let policy = plan.policy();
    let merges = |plan: &PlanFile, file: &RunFile| {
        let mut file = file.clone();
        file.shard.as_mut().unwrap().plan.clone_from(&plan.sha256);
        file.seal_shard();
        fleet::merge(plan, &policy, vec![("shard.json".to_owned(), file)]).map(|_| ())
    };
    let honest = cut_back(&run, &[("slower", 8)]);
    assert_eq!(merges(&plan, &honest), Ok(()));
    let refused =
        |plan: &PlanFile, file: &RunFile, what: &str| assert!(merges(plan, file).is_err(), "{what}");
    refused(&plan, &cut_back(&honest, &[("open", 8)]), "cut back to an earlier look");
    refused(&plan, &cut_back(&honest, &[("slower", 7)]), "no look");
    refused(&plan, &run, "measured on after it was decided");

    // Twelve blocks of three rows take 144 s, and eight of them 96 s.
    let with_budget = |seconds: u64| {
        let mut plan = PlanFile { time_budget_ns: Some(seconds * 1_000_000_000), ..plan.clone() };
        plan.seal();
        plan
    };
    let short = cut_back(&run, &[("open", 8), ("slower", 8), ("cheap", 12)]);
    assert_eq!(merges(&with_budget(120), &short), Ok(()), "one of two open rows can be measured further");
    refused(&with_budget(200), &short, "there was time for both");
    let all = cut_back(&run, &[("open", 5), ("slower", 5), ("cheap", 5)]);
    assert_eq!(merges(&with_budget(60), &all), Ok(()), "the time is spent after five rounds");
    refused(&with_budget(61), &all, "there was a second left");
}

/// Two models that stay undecided at every look, with this time budget.
fn with_budget(budget: &str) -> Suite {
    let suite = suite(2);
    let toml = suite.world.read("benchgate.toml");
    let measure = format!("[measure]\ntime-budget = \"{budget}\"\n");
    suite.world.write("benchgate.toml", toml.replace("[measure]\n", &measure));
    suite
}

#[test]
fn a_shard_that_spent_its_time_budget_is_merged_and_not_green() {
    let suite = with_budget("1ms");
    suite.world.run(["plan", "--shards", "2"]).expect_code(0);
    run_shards(&suite, 2);
    // The first round of each shard is always measured.
    let blocks = |file: &str| {
        let run = RunFile::from_slice(suite.world.read(file).as_bytes()).unwrap();
        let processes = run.sides.into_iter().flat_map(|side| side.benchmarks).flat_map(|row| row.processes);
        processes.map(|process| process.slot.unwrap().block + 1).max()
    };
    assert_eq!((blocks("shards/1-1.json"), blocks("shards/2-1.json")), (Some(1), Some(1)));
    assert_eq!(merge(&suite), Some(0));
    suite.world.run(["compare", "merged.json"]).expect_code(11);
}

#[test]
fn every_shard_has_the_whole_time_budget_of_the_plan_and_no_other() {
    let suite = with_budget("10m");
    suite.world.run(["plan", "--shards", "2"]).expect_code(0);
    assert_eq!(plan(&suite).time_budget_ns, Some(600_000_000_000));
    let shard = ["run", "--plan", "plan.json", "--shard", "1"];
    for other in ["1s", "20m"] {
        suite.world.run(shard.iter().chain(&["--time-budget", other])).expect_code(2);
    }
    // One shard does not use up the budget of the other.
    run_shards(&suite, 2);
    assert_eq!(merge(&suite), Some(0));
}
