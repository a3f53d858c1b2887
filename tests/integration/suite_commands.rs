//! `[[command]]`: programs of a repository that are built and measured on both sides of a change.

use benchgate::record::RunFile;
use serde_json::Value;

use crate::bisect::culprits;
use crate::harness::World;
use crate::pair::verdicts;
use crate::pull_request::{branch, commit};
use crate::suite::{COMMIT, npy};

/// A program in place of a tool that measures itself. The noise in its output is the time of day.
const BENCH: &str = r#"
row() { printf '{"name":"%s","run_type":"iteration","iterations":10,"real_time":%s%s,"cpu_time":90.0%s,"time_unit":"us"}' "$1" "$2" "$(date +%N)" "$(date +%N)"; }
printf '{"context":{},"benchmarks":['; row BM_a 100.; printf ','; row BM_b 20.; printf ']}'
"#;

const CONFIG: &str = "[suite]\nname = \"micro\"\n\n[[command]]\nname = \"micro\"\nbuild = \"cp bench.sh {build}/bench\"\n\
                      run = \"sh {build}/bench\"\nformat = \"google-benchmark-json\"\n";

fn change() -> World {
    let world = World::new();
    world.write("bench.sh", BENCH);
    world.write("benchgate.toml", CONFIG);
    branch(&world.work());
    world
}

#[test]
fn an_unchanged_head_is_green_and_a_slow_one_is_red() {
    let world = change();
    let gate = ["gate", "--base=main", "--format=json"];
    let report = world.run(gate).expect_code(0).json();
    assert_eq!(verdicts(&report), [("micro/BM_a", "pass"), ("micro/BM_b", "pass")]);
    world.write("bench.sh", BENCH.replace("BM_b 20.", "BM_b 21."));
    let report = world.run(gate).expect_code(10).json();
    assert_eq!(verdicts(&report), [("micro/BM_a", "pass"), ("micro/BM_b", "regressed")]);
    assert!(std::fs::read_dir(world.work().join("../cache/benchgate/commands")).unwrap().next().is_none());
}

/// `items_per_second` has the name of a built-in metric.
#[test]
fn a_rate_that_a_program_prints_is_stored_and_judged() {
    let world = World::new();
    let rated = |rate: &str| {
        let field = format!(r#""items_per_second":{rate}.%s,"time_unit""#);
        BENCH.replace(r#""time_unit""#, &field).replace("; }\n", &format!(" {}; }}\n", r#""$(date +%N)""#))
    };
    world.write("bench.sh", rated("64"));
    world.write("benchgate.toml", CONFIG);
    let repository = branch(&world.work());
    world.run(["run"]).expect_code(0);
    let stored = RunFile::from_slice(world.read("run.json").as_bytes()).unwrap();
    assert!(stored.metrics.iter().any(|metric| metric.name == "items-per-second"));
    for metrics in ["", "metrics = [\"items_per_second\"]\n", "metrics = [\"items-per-second\"]\n"] {
        world.write(
            "benchgate.toml",
            format!("{CONFIG}{metrics}[gate.metric.items-per-second]\nfatal = true\n"),
        );
        world.write("bench.sh", rated("64"));
        commit(&repository, "base");
        world.write("bench.sh", rated("32"));
        let report = world.run(["gate", "--base=HEAD", "--format=json"]).expect_code(10).json();
        let rows = report["rows"].as_array().unwrap().iter();
        let slower =
            rows.filter(|row| row["metric"]["name"] == "items-per-second" && row["verdict"] == "regressed");
        assert_eq!(slower.count(), 2, "{metrics}: {report}");
    }
}

/// The time of a whole process contains its start, which can hide a change of the result that it prints.
#[test]
fn a_command_whose_output_has_no_known_format_is_timed_as_a_whole_with_a_note() {
    let world = World::new();
    world.write("bench.sh", "sleep 0.05; echo gemm: 1.5 ms\n");
    let notes = |toml: &str| {
        world.write("benchgate.toml", toml);
        world.run(["run"]).expect_code(0);
        let run: Value = serde_json::from_str(&world.read("run.json")).unwrap();
        run["sides"][0]["benchmarks"][0]["lints"].to_string().contains("unread-output")
    };
    assert!(notes(&CONFIG.replace("format = \"google-benchmark-json\"\n", "")));
    assert!(!notes(&CONFIG.replace("google-benchmark-json", "whole")));
}

/// A program that measures itself usually runs for a fixed time, whatever its speed is.
#[test]
fn a_command_that_prints_the_time_of_an_operation_in_no_known_format_is_not_timed_as_a_whole() {
    let world = World::new();
    for line in [
        "MyBench.sort  avgt  4  6.948 ± 0.012  us/op",
        "| 1.3 ns/iter | x |",
        "done: 12.5 ops/s.",
        "Requests/sec:   1234.56",
        "[I] Throughput: 812.3 qps",
        "eval time = 12.3 ms (  0.42 ms per token,  2380.95 tokens per second)",
        "Samples per second: 1200",
        "[ INFO ] Throughput:          800.12 FPS",
        "tps = 1234.5 (without initial connection time)",
        "latency average = 1.2 ms",
        "    transactions:   1000   (99.9 per sec.)",
        "100000 loops, best of 5: 2.3 usec per loop",
        "| llama 7B | CPU | 4 | pp512 | 800.1 ± 0.1 | t/s |",
        "{\"name\": \"a\", \"latency\": {\"mean\": 3}, \"throughput\": {\"mean\": 3}}",
    ] {
        world.write("bench.sh", format!("echo '{line}'\n"));
        world.write("benchgate.toml", CONFIG.replace("format = \"google-benchmark-json\"\n", ""));
        world.run(["run"]).expect_code(20);
        world.run(["pair", "sh bench.sh", "sh bench.sh", "--max-blocks", "2"]).expect_code(20);
        world.write("benchgate.toml", CONFIG.replace("google-benchmark-json", "whole"));
        world.run(["run"]).expect_code(0);
    }
    let fixed = "read 1024 MB at 500 MB/s, clip fps 30, see us-east/us, requests per second: off, as per US law, \
         Throughput: 512 MB/s\nsimulated latency: 12 ns\nlatency of the graph: 350 cycles\n| Data | Mean |";
    world.write("bench.sh", format!("sleep 0.01; printf '{fixed}\\n'\n"));
    world.write("benchgate.toml", CONFIG.replace("format = \"google-benchmark-json\"\n", ""));
    world.run(["run"]).expect_code(0);
}

#[test]
fn a_build_of_either_side_can_ask_git_for_its_version() {
    let world = World::new();
    world.write("bench.sh", BENCH);
    world.write("benchgate.toml", CONFIG.replace("cp bench.sh", "sh build.sh"));
    let asks = "set -e\ngit describe --tags --dirty >> $HOME/versions\ngit rev-parse HEAD >> $HOME/commits\n\
                [ -d .git ] || git tag of-base\ncp bench.sh $1\n";
    world.write("build.sh", asks);
    let repository = branch(&world.work());
    let [base, head] = ["main", "change"].map(|name| {
        let id = repository.refname_to_id(&format!("refs/heads/{name}")).unwrap();
        repository.find_object(id, None).unwrap()
    });
    repository.tag_lightweight("v1.2", &base, false).unwrap();
    let gate = ["gate", "--base=main", "--max-blocks=2", "--fail-on=regressed,error"];
    world.run(gate).expect_code(0);
    let home = |name: &str| world.read(&format!("../home/{name}"));
    assert_eq!(home("commits"), format!("{}\n{}\n", base.id(), head.id()));
    let of_head = format!("v1.2-1-g{}", &head.id().to_string()[..7]);
    assert_eq!(home("versions"), format!("v1.2\n{of_head}\n"));
    assert_eq!(repository.tag_names(None).unwrap().len(), 1);
}

#[test]
fn a_build_that_fails_at_head_alone_is_a_regression_that_names_its_log() {
    let world = change();
    world.write(
        "benchgate.toml",
        CONFIG.replace("cp bench.sh {build}/bench", "sh -c 'echo error: no such thing >&2; exit 3'"),
    );
    let report = world.run(["gate", "--base=main", "--format=json", "--run=run.json"]).expect_code(10).json();
    assert!(report.to_string().contains("no such thing"), "{report:#}");
    let run: Value = serde_json::from_str(&world.read("run.json")).unwrap();
    let stage = &run["sides"][1]["benchmarks"][0]["stages"][0];
    assert_eq!((&stage["stage"], &stage["status"]), (&"compile".into(), &"failed".into()), "{stage}");
    assert!(world.read(stage["log"].as_str().unwrap()).contains("no such thing"));
}

#[test]
fn head_chooses_what_runs_and_base_how_it_is_judged() {
    let world = change();
    let edited =
        CONFIG.replace("run = \"sh", "env = { X = \"1\" }\nwarmup = 7\ntimeout = \"1s\"\nrun = \"sh");
    world.write("benchgate.toml", edited.replace("google-benchmark-json", "whole"));
    let gate = ["gate", "--base=main", "--format=json", "--max-blocks=2", "--run=run.json"];
    let outcome = world.run(gate);
    let text = outcome.stdout.clone() + &outcome.stderr;
    for (key, list) in [
        ("warmup: 1 → 7", "base chooses"),
        ("timeout: 300s → 1s", "base chooses"),
        ("env: ", "this change sets"),
    ] {
        assert!(text.contains(key) && text.contains(list), "{key}: {text}");
    }
    assert_eq!(verdicts(&outcome.json()).len(), 2, "the rows of base's format: {text}");
    let run: Value = serde_json::from_str(&world.read("run.json")).unwrap();
    assert_eq!(run["sides"][1]["commands"][0]["warmup"], 1);
}

#[test]
fn one_side_is_described() {
    let world = change();
    let toml = format!("{CONFIG}\n[measure]\nprocesses = 2\n");
    world.write("benchgate.toml", toml);
    world.run(["run", "--run=run.json"]).expect_code(0);
    let run: Value = serde_json::from_str(&world.read("run.json")).unwrap();
    let names: Vec<&Value> =
        run["sides"][0]["benchmarks"].as_array().unwrap().iter().map(|row| &row["name"]).collect();
    assert_eq!(names, ["micro/BM_a", "micro/BM_b"]);
}

#[test]
fn what_needs_a_compiler_refuses_commands() {
    let world = change();
    for arguments in [
        &["gate", "--base=main", "--until=compile", "--bundle=b"][..],
        &["run", "--until=compile", "--bundle=b"],
        &["bisect", "--good=3.0.0", "--bad=3.1.0"],
        &["tools", "install"],
    ] {
        let outcome = world.run(arguments);
        assert_eq!(outcome.code, Some(2), "{arguments:?}: {} {}", outcome.stdout, outcome.stderr);
        assert!(outcome.stderr.contains("command"), "{arguments:?}: {}", outcome.stderr);
    }
    world.write(
        "benchgate.toml",
        format!("{CONFIG}[baseline]\nanchor = {{ version = \"1\", commit = \"{COMMIT}\" }}\n"),
    );
    let outcome = world.run(["baseline", "update", "--measure"]).expect_code(2);
    assert!(outcome.stderr.contains("anchor"), "{}", outcome.stderr);
}

#[test]
fn what_the_command_line_sets_is_no_edit_of_the_change() {
    let world = change();
    let outcome = world.run(["gate", "--base=main", "--time-budget=1h", "--seed=3"]).expect_no_failure();
    assert!(!outcome.said().contains("edits"), "{}", outcome.said());
}

#[test]
fn unchanged_commands_calibrate_a_machine() {
    let world = change();
    let report = world.run(["noise", "--blocks=6", "--resamples=20", "--format=json"]).expect_code(0).json();
    let rows: Vec<&Value> = report["rows"].as_array().unwrap().iter().map(|row| &row["benchmark"]).collect();
    assert_eq!(rows, ["micro/BM_a", "micro/BM_b"], "{report:#}");
    let run: Value = serde_json::from_str(&world.read("noise.json")).unwrap();
    assert_eq!(
        run["sides"][0]["benchmarks"][1]["processes"].as_array().unwrap().len(),
        12,
        "two of each block"
    );
}

#[test]
fn a_head_is_judged_by_stored_sessions_of_the_command() {
    let world = change();
    let commit_all = |message| commit(&git2::Repository::open(world.work()).unwrap(), message);
    world.run(["baseline", "update", "--measure"]).expect_code(0);
    commit_all("night");
    world.run(["gate", "--stored"]).expect_no_failure();
    world.write("bench.sh", BENCH.replace("BM_b 20.", "BM_b 60."));
    let report = world.run(["gate", "--stored", "--format=json"]).expect_code(10).json();
    assert!(verdicts(&report).contains(&("micro/BM_b", "regressed")), "{report:#}");
}

#[test]
fn a_debug_build_is_compared_with_stored_sessions_of_debug_builds() {
    let world = World::new();
    let debug = |build: &str| {
        BENCH.replace(r#""context":{}"#, &format!(r#""context":{{"library_build_type":"{build}"}}"#))
    };
    world.write("bench.sh", debug("debug"));
    world.write("benchgate.toml", CONFIG);
    branch(&world.work());
    world.run(["baseline", "update", "--measure"]).expect_code(0);
    commit(&git2::Repository::open(world.work()).unwrap(), "night");
    let differs = |outcome: &str| outcome.contains("benchmark library of");
    let same = world.run(["gate", "--stored"]).stdout;
    assert!(!differs(&same), "{same}");
    world.write("bench.sh", debug("release"));
    let other = world.run(["gate", "--stored"]).expect_code(11).stdout;
    assert!(differs(&other), "{other}");
}

#[test]
fn commands_are_split_over_machines_and_merged() {
    let world = World::new();
    world.write("bench.sh", BENCH);
    world.write("benchgate.toml", format!("{CONFIG}\n{}", other()));
    branch(&world.work());
    world.write("bench.sh", BENCH.replace("BM_b 20.", "BM_b 21."));
    commit(&git2::Repository::open(world.work()).unwrap(), "slower");
    world.write("shards/.keep", "");
    std::fs::remove_file(world.work().join("shards/.keep")).unwrap();
    let plan = ["plan", "--shards=2", "--base=main", "--runner=micro=big", "--runner=small"];
    let matrix: Value = serde_json::from_str(&world.run(plan).expect_code(0).stdout).unwrap();
    assert_eq!(matrix["include"].as_array().unwrap().len(), 2, "{matrix}");
    assert!(matrix.to_string().contains("\"big\""), "{matrix}");
    for shard in ["1", "2"] {
        let run = format!("--run=shards/{shard}.json");
        let code = world.run(["gate", "--base=main", "--plan=plan.json", "--shard", shard, &run]).code;
        assert!([0, 10, 11].contains(&code.unwrap()), "{code:?}");
    }
    world.run(["merge", "shards", "--output=merged.json"]).expect_code(0);
    let report =
        world.run(["compare", "merged.json", "--format=json", "--fail-on=error"]).expect_code(0).json();
    let rows = verdicts(&report);
    assert!(rows.contains(&("micro/BM_b", "regressed")), "{rows:?}");
    assert_eq!(rows.len(), 3, "{rows:?}");
    let file = RunFile::from_slice(world.read("merged.json").as_bytes()).unwrap();
    let (all, once) = (file.sides.iter().flat_map(|side| &side.benchmarks), file.processes().count());
    assert!(once < all.map(|record| record.processes.len()).sum(), "a process of two rows is one");
    assert_eq!(file.sides[0].commands.len(), 2);
}

/// A second command, of which only one benchmark is used.
fn other() -> &'static str {
    "[[command]]\nname = \"other\"\nrun = \"sh bench.sh\"\nformat = \"google-benchmark-json\"\nrows = [\"BM_a\"]\n"
}

#[test]
fn the_commit_that_made_a_command_slower_is_found() {
    let world = change();
    let repository = git2::Repository::open(world.work()).unwrap();
    for (message, script) in [
        ("docs", BENCH.to_owned()),
        ("does not build", "exit 1".to_owned()),
        ("slower", BENCH.replace("BM_b 20.", "BM_b 23.")),
        ("more docs", BENCH.replace("BM_b 20.", "BM_b 23.")),
    ] {
        world.write("bench.sh", format!("{script}\n# {message}\n"));
        let build = if message == "does not build" { "false" } else { "cp bench.sh {build}/bench" };
        world.write("benchgate.toml", CONFIG.replace("cp bench.sh {build}/bench", build));
        commit(&repository, message);
    }
    let found = world.run(["bisect", "--good=main", "--bad=HEAD", "--format=json"]).expect_code(0).json();
    assert_eq!(found["benchmark"], "micro/BM_b", "{found:#}");
    assert_eq!(culprits(&found).len(), 1, "{found:#}");
    let (_, last) = culprits(&found)[0];
    assert_eq!(found["candidates"][usize::try_from(last).unwrap()]["title"], "slower", "{found:#}");
}

#[test]
fn only_the_rows_and_metrics_that_count_are_measured_and_all_of_them_have_to_be_there() {
    let world = World::new();
    world.write("bench.sh", BENCH);
    world.write("benchgate.toml", format!("{CONFIG}rows = [\"BM_b\"]\nmetrics = [\"latency\"]\n"));
    branch(&world.work());
    world.write("bench.sh", BENCH.replace("BM_a 100.", "BM_a 300."));
    let gate = ["gate", "--base=main", "--format=json", "--run=run.json"];
    let report = world.run(gate).expect_code(0).json();
    assert_eq!(verdicts(&report), [("micro/BM_b", "pass")]);
    let run: Value = serde_json::from_str(&world.read("run.json")).unwrap();
    let samples = run["sides"][1]["benchmarks"][0]["processes"][0]["samples"].as_object().unwrap();
    assert_eq!(samples.keys().collect::<Vec<_>>(), ["latency"]);
    for (from, to) in [("BM_b", "BM_c"), ("\"real_time\":%s%s,", "")] {
        world.write("bench.sh", BENCH.replace(from, to));
        let report = world.run(gate).json();
        let row = report["rows"].as_array().unwrap().iter().find(|row| row["benchmark"] == "micro/BM_b");
        assert!(
            !["pass", "improved"].contains(&row.unwrap()["verdict"].as_str().unwrap()),
            "{from}: {report:#}"
        );
        assert_ne!(report["exit-code"], 0);
    }
}

#[test]
fn a_metric_that_does_not_count_still_shows_a_worse_result() {
    let world = World::new();
    let with_accuracy =
        |accuracy: &str| BENCH.replace("\"time_unit\"", &format!("\"accuracy\":{accuracy},\"time_unit\""));
    world.write("bench.sh", with_accuracy("0.93"));
    world.write("benchgate.toml", format!("{CONFIG}metrics = [\"latency\"]\n"));
    branch(&world.work());
    world.write("bench.sh", format!("{}# unchanged\n", with_accuracy("0.93")));
    let gate = ["gate", "--base=main", "--format=json"];
    let report = world.run(gate).expect_code(0).json();
    assert_eq!(verdicts(&report), [("micro/BM_a", "pass"), ("micro/BM_b", "pass")]);
    world.write("bench.sh", with_accuracy("0.41"));
    world.run(gate).expect_code(11);
    // A rate that doesn't count does not decide instead of the metric that does.
    world.write("benchgate.toml", format!("{CONFIG}metrics = [\"cycles\"]\n"));
    let counted = with_accuracy("0.93")
        .replace("\"time_unit\"", "\"frames_per_second\":60.0,\"cycles\":100,\"time_unit\"");
    world.write("bench.sh", counted.clone());
    commit(&git2::Repository::open(world.work()).unwrap(), "rates");
    world.write("bench.sh", counted.replace("\"cycles\":100", "\"cycles\":140"));
    world.run(["gate", "--base=HEAD"]).expect_code(10);
    // Facts of unknown meaning and losses below zero show it too.
    world.write("benchgate.toml", format!("{CONFIG}metrics = [\"latency\"]\n"));
    let facts = |loss: &str, found: &str| {
        BENCH.replace("\"time_unit\"", &format!("\"loss\":{loss},\"found\":{found},\"time_unit\""))
    };
    world.write("bench.sh", facts("-1.5", "50"));
    commit(&git2::Repository::open(world.work()).unwrap(), "facts");
    world.write("bench.sh", format!("{}# unchanged\n", facts("-1.5", "50")));
    world.run(["gate", "--base=HEAD"]).expect_code(0);
    for (loss, found, said) in [("-0.5", "50", "reported-problem"), ("-1.5", "1", "fact-changed")] {
        world.write("bench.sh", facts(loss, found));
        let outcome = world.run(["gate", "--base=HEAD"]).expect_code(11);
        assert!(outcome.stdout.contains(said), "{}", outcome.said());
    }
    // Text in place of base's number shows nothing.
    world.write("bench.sh", BENCH.replace("\"time_unit\"", "\"accuracy\":\"high\",\"time_unit\""));
    world.run(gate).expect_code(11);
}

#[test]
fn a_result_is_published_only_where_base_says_which_benchmarks_it_has() {
    let world = change();
    world.run(["gate", "--base=main", "--run=run.json"]).expect_code(0);
    let event = world.write("event.json", crate::github::event::payload("merge_group").to_string());
    let mut command = world.command(["publish", "--dry-run"]);
    command
        .env("GITHUB_EVENT_NAME", "merge_group")
        .env("GITHUB_EVENT_PATH", event)
        .env("GITHUB_REPOSITORY", "o/r");
    command.env("GITHUB_SHA", "2".repeat(40)).env("GITHUB_API_URL", "https://api.github.com");
    command
        .env("GITHUB_SERVER_URL", "https://github.com")
        .env("GITHUB_RUN_ID", "77")
        .env("GITHUB_RUN_ATTEMPT", "1");
    let outcome = world.finish(command);
    assert_eq!(outcome.code, Some(20), "{}", outcome.said());
    assert!(outcome.stderr.contains("`rows`"), "{}", outcome.stderr);
}

#[test]
fn a_published_comment_names_what_the_change_sets_in_a_command() {
    let world = World::new();
    world.write("bench.sh", BENCH);
    world.write(".gitignore", "/run.json\n");
    let toml = CONFIG.replace("run = ", "rows = [\"BM_a\", \"BM_b\"]\nrun = ");
    world.write("benchgate.toml", &toml);
    let repository = branch(&world.work());
    let gate = |head: &str| {
        world.write("benchgate.toml", head);
        commit(&repository, "change");
        world.run(["gate", "--base=main", "--run=run.json"]).expect_no_failure();
        world.write("benchgate.toml", &toml);
        world.run(["publish", "--dry-run"]).said()
    };
    let said = gate(&toml);
    assert!(!said.contains("this change sets"), "{said}");
    let said =
        gate(&toml.replace("\"sh {build}/bench\"", "\"sh {build}/bench --size 10\"\nenv = { SIZE = \"1\" }"));
    for text in ["env.SIZE: none → 1", "/bench' → ", "/bench' --size 10"] {
        assert!(said.contains("this change sets") && said.contains(text), "{text}: {said}");
    }
}

#[test]
fn mistakes_in_a_command_are_reported_at_their_place() {
    let world = World::new();
    world.write(
        "benchgate.toml",
        "[suite]\nname = \"s\"\n\n[[command]]\nname = \"a\"\nrun = \"{build}/x 'open\"\n\n[[command]]\nname = \"a\"\n\
         run = \"{build}/x\"\nformat = \"xml\"\ndevice = \"moon\"\n",
    );
    let outcome = world.run(["gate", "--base=main"]).expect_code(2);
    insta::assert_snapshot!(outcome.stderr, @"
    error: failed to use benchgate.toml: 5 problems
    benchgate.toml:6:8: `run`: a quote is not closed
    benchgate.toml:9:9: a second command is named `a`
    benchgate.toml:10:8: `run`: `{build}` is valid only with `build` or `outputs`
    benchgate.toml:11:11: `format`: expected `whole` or a format of docs/formats.md, found `xml`
    benchgate.toml:12:11: `device`: expected cpu, or cuda, hip, vulkan or metal, optionally with a number as in cuda://0, found `moon`
    hint: see https://github.com/benchgate/benchgate/blob/main/docs/configuration.md for every key
    ");
}

/// A program would get the literal text.
#[test]
fn a_build_folder_that_nothing_makes_is_reported_wherever_it_is_named() {
    let world = World::new();
    let toml = |makes: &str| {
        format!(
            "[suite]\nname = \"s\"\n\n[[command]]\nname = \"a\"\nrun = \"true\"\nsetup = \"{{build}}/s\"\n\
             prepare = \"{{build}}/p\"\nenv = {{ A = \"a\", B = \"x/{{build}}\" }}\n{makes}"
        )
    };
    world.write("benchgate.toml", toml(""));
    let outcome = world.run(["gate", "--base=main"]).expect_code(2);
    insta::assert_snapshot!(outcome.stderr, @"
    error: failed to use benchgate.toml: 3 problems
    benchgate.toml:7:10: `setup`: `{build}` is valid only with `build` or `outputs`
    benchgate.toml:8:12: `prepare`: `{build}` is valid only with `build` or `outputs`
    benchgate.toml:9:23: `env`: `{build}` is valid only with `build` or `outputs`
    hint: see https://github.com/benchgate/benchgate/blob/main/docs/configuration.md for every key
    ");
    for makes in ["build = \"true\"\n", "outputs = [\"y.npy\"]\n"] {
        world.write("benchgate.toml", toml(makes));
        let outcome = world.run(["gate", "--base=main"]);
        assert!(!outcome.stderr.contains("is valid only with"), "{}", outcome.stderr);
    }
}

/// A program in place of pytest with pytest-benchmark. It writes that tool's JSON, with times in seconds, to
/// the file in `$1`.
const PYTEST: &str = r#"
printf '{"machine_info":{},"benchmarks":[{"name":"test_a","fullname":"t.py::test_a","stats":{"data":[0.020%s,0.020%s]}}]}' "$(date +%N)" "$(date +%N)" > "$1"
"#;

#[test]
fn a_repository_goes_from_init_to_a_green_and_a_red_result() {
    let google = ["--build-command", "cp bench.sh {build}/bench", "--command", "sh {build}/bench"];
    let pytest = ["--command", "sh bench.sh {output}"];
    for (script, slower, options, row) in [
        (BENCH, ["BM_a 100.", "BM_a 105."], &google[..], "bench/BM_a"),
        (PYTEST, ["[0.020%s,0.020%s]", "[0.021%s,0.021%s]"], &pytest[..], "bench/t.py::test_a"),
    ] {
        let world = World::new();
        world.write("bench.sh", script);
        let said =
            world.run([["init", "--suite", "micro"].as_slice(), options].concat()).expect_code(0).said();
        // The repository has no commit and no remote.
        assert!(said.contains("benchgate gate --base HEAD measure what a later edit changed"), "{said}");
        branch(&world.work());
        let gate = ["gate", "--base=main", "--format=json"];
        let report = world.run(gate).expect_code(0).json();
        assert!(verdicts(&report).contains(&(row, "pass")), "{report:#}");
        world.write("bench.sh", script.replace(slower[0], slower[1]));
        let report = world.run(gate).expect_code(10).json();
        assert!(verdicts(&report).contains(&(row, "regressed")), "{report:#}");
    }
}

#[test]
fn init_writes_no_command_that_can_not_be_split() {
    let world = World::new();
    world.run(["init", "--command", "./bench 'open"]).expect_code(2);
    assert!(!world.work().join("benchgate.toml").exists());
}

#[test]
fn a_head_that_is_as_fast_and_writes_other_files_diverges() {
    let world = World::new();
    world.write("y.npy", npy(&[1.0, 2.0, 3.0]));
    world.write("bench.sh", format!("cp y.npy \"$1/y.npy\"; echo 3 > \"$1/count.txt\"\n{BENCH}"));
    let config = "[suite]\nname = \"micro\"\n\n[[command]]\nname = \"micro\"\nrun = \"sh bench.sh {build}\"\n\
                  outputs = [\"y.npy\", \"count.txt\"]\n";
    world.write("benchgate.toml", config);
    branch(&world.work());
    let script = world.read("bench.sh");
    let gate = [
        "gate",
        "--base=main",
        "--format=json",
        "--max-blocks=2",
        "--fail-on=regressed,diverged,error,missing",
    ];
    world.run(gate).expect_code(0);
    // Without another side, the files must exist, and the report says that nothing else was checked.
    let alone = world.run(["run", "--run=alone.json"]).expect_code(0).said();
    assert!(
        alone.contains("ok, not verified") && world.read("alone.json").contains("\"unverified\""),
        "{alone}"
    );
    world.write("bench.sh", script.replace("echo 3 > \"$1/count.txt\"", "true"));
    let missing = world.run(["run", "--run=alone.json"]).expect_code(20).said();
    assert!(missing.contains("left no file `count.txt`"), "{missing}");
    world.write("bench.sh", &script);
    world.write("y.npy", npy(&[1.000_000_1, 2.0, 3.0]));
    world.run(gate).expect_code(0);
    let mut greens = Vec::new();
    for (case, y, script, config, expected) in [
        ("another tensor", npy(&[1.0, 2.5, 3.0]), script.clone(), config.to_owned(), 13),
        ("another shape", npy(&[1.0, 2.0]), script.clone(), config.to_owned(), 13),
        ("another text", npy(&[1.0, 2.0, 3.0]), script.replace("echo 3", "echo 4"), config.to_owned(), 13),
        (
            "no file",
            npy(&[1.0, 2.0, 3.0]),
            script.replace("echo 3 > \"$1/count.txt\"", "true"),
            config.to_owned(),
            20,
        ),
        (
            "files of the first process only",
            npy(&[1.0, 2.0, 3.0]),
            format!(
                "[ -e \"$1/done\" ] || {{ cp y.npy \"$1/y.npy\"; echo 3 > \"$1/count.txt\"; }}; touch \"$1/done\"\n{BENCH}"
            ),
            config.to_owned(),
            20,
        ),
        ("no tensor", b"text".to_vec(), script.clone(), config.to_owned(), 20),
        (
            "base's own file",
            npy(&[1.0, 2.5, 3.0]),
            script.replace("cp y.npy \"$1/y.npy\"", "ln -s ../base/y.npy \"$1/y.npy\""),
            config.to_owned(),
            20,
        ),
        (
            "outputs that head forgets",
            npy(&[1.0, 2.5, 3.0]),
            script.clone(),
            config.replace("\"y.npy\", ", ""),
            13,
        ),
    ] {
        world.write("y.npy", y);
        world.write("bench.sh", script);
        world.write("benchgate.toml", config);
        let outcome = world.run(gate);
        if outcome.code != Some(expected) {
            greens.push(format!("{case}: {:?} {}", outcome.code, outcome.said()));
        }
    }
    assert!(greens.is_empty(), "{}", greens.join("\n"));
}
