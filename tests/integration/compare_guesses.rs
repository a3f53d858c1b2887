//! If two results don't fit together, one sentence says what the user probably meant, and names the command.

use crate::harness::{World, lint_detail};

/// A hyperfine file in which each command has ten runs of about this time in seconds.
fn hyperfine(commands: &[(&str, f64)]) -> String {
    let result = |(which, (command, time)): (usize, &(&str, f64))| {
        let times: Vec<f64> =
            (0..10u8).map(|run| time * (1.0 + 0.001 * (f64::from(run) + 0.1 * which as f64))).collect();
        let mean = times.iter().sum::<f64>() / 10.0;
        serde_json::json!({"command": command, "mean": mean, "times": times, "exit_codes": [0, 0, 0, 0, 0, 0, 0, 0, 0, 0]})
    };
    let results: Vec<serde_json::Value> = commands.iter().enumerate().map(result).collect();
    serde_json::json!({ "results": results }).to_string()
}

#[test]
fn patterns_that_the_shell_expanded_are_asked_about() {
    let world = World::new();
    let names = ["base-1.json", "base-2.json", "head-1.json", "head-2.json"];
    for name in names {
        world.write(name, hyperfine(&[("./a", 0.1)]));
    }
    let outcome = world.run(["compare"].into_iter().chain(names)).expect_code(2);
    insta::assert_snapshot!(outcome.stderr, @r"
    error: 4 results were given: did the shell expand two patterns?
    hint: quote them to compare two sides of several files: `benchgate compare 'base-*.json' 'head-*.json'`; `--columns` compares each file with the first
    ");
    let columns = world.run(["compare", "--columns"].into_iter().chain(names));
    assert!(columns.stdout.contains("head-2.json"), "{}", columns.said());
}

#[test]
fn two_commands_in_one_file_name_the_filters_that_compare_them() {
    let world = World::new();
    world.write("pair.json", hyperfine(&[("./sort.sh 10", 0.1), ("./sort.sh 20", 0.2)]));
    let outcome = world.run(["compare", "pair.json"]).expect_code(2);
    insta::assert_snapshot!(outcome.stderr, @r"
    error: pair.json alone has nothing to be compared with
    hint: to compare its two benchmarks: `benchgate compare pair.json --base-filter '^\./sort\.sh 10$' --head-filter '^\./sort\.sh 20$'`
    ");
    let filters = ["--base-filter", r"^\./sort\.sh 10$", "--head-filter", r"^\./sort\.sh 20$"];
    let outcome = world.run(["compare", "pair.json", "--between-cv", "1%"].into_iter().chain(filters));
    outcome.expect_code(10);
    // A file that is given twice leads to the same advice.
    let twice =
        world.run(["compare", "pair.json", "pair.json"]).expect_code(20).stdout.replace("\n    ", " ");
    assert!(
        twice.contains("pair.json was given for both sides; to compare its two benchmarks: `benchgate"),
        "{twice}"
    );
}

#[test]
fn a_command_of_another_name_proposes_the_rename() {
    let world = World::new();
    world.write("a.json", hyperfine(&[("./p0", 0.1)]));
    world.write("b.json", hyperfine(&[("./p20", 0.12)]));
    let outcome = world.run(["compare", "a.json", "b.json"]);
    assert!(
        outcome.stdout.replace("\n    ", " ").contains("add `--rename ./p0 ./p20`"),
        "{}",
        outcome.stdout
    );
    world
        .run(["compare", "a.json", "b.json", "--rename", "./p0", "./p20", "--between-cv", "1%"])
        .expect_code(10);
}

/// Writes the files of one benchmark that criterion leaves, in a copy of its folder.
fn criterion(world: &World, folder: &str, name: &str, time: f64) {
    let folder = format!("{folder}/a group_of/{name}");
    let times: Vec<f64> = (1..=20).map(|n| f64::from(n) * time * (1.0 + 1e-4 * f64::from(n % 7))).collect();
    let iters: Vec<f64> = (1..=20).map(f64::from).collect();
    let sample = serde_json::json!({"sampling_mode": "Linear", "iters": iters, "times": times});
    let estimate = |value: Option<f64>| serde_json::json!({"point_estimate": value});
    let estimates = serde_json::json!({
        "mean": estimate(Some(time * 1.000_315)), "median": estimate(Some(time * 1.0003)), "std_dev": estimate(None),
    });
    let stated = format!("{{\"group_id\": \"a group/of\", \"full_id\": \"a group/of/{name}\"}}");
    for (file, content) in [
        ("new/sample.json", sample.to_string()),
        ("new/estimates.json", estimates.to_string()),
        ("new/tukey.json", "[1, 2, 3, 4]".to_owned()),
        ("new/benchmark.json", stated.clone()),
        ("base/sample.json", sample.to_string()),
        ("base/benchmark.json", stated),
        ("report/index.html", "<html></html>\n".to_owned()),
    ] {
        world.write(&format!("{folder}/{file}"), content);
    }
}

#[test]
fn copies_of_criterions_folder_are_compared_by_the_names_that_it_states() {
    let world = World::new();
    criterion(&world, "base", "sum", 100.0);
    criterion(&world, "head", "sum", 150.0);
    let outcome =
        world.run(["compare", "base", "head", "--between-cv", "1%", "--format", "json"]).expect_code(10);
    let json = outcome.json();
    assert_eq!(json["rows"].as_array().unwrap().len(), 1, "{json}");
    assert_eq!(json["rows"][0]["benchmark"], "a group/of/sum");
    let notes = json["notes"].to_string();
    assert!(!notes.contains("left out"), "{notes}");
    world.write("head/a group_of/sum/new/benchmark.json", "{\"group_id\": 1}");
    world.run(["compare", "base", "head"]).expect_code(21);
}

#[test]
fn each_folder_of_criterion_is_a_session_as_the_advice_says() {
    let world = World::new();
    for (at, name) in ["base-0", "base-1", "base-2", "head-0", "head-1", "head-2"].into_iter().enumerate() {
        let factor = if at < 3 { 1.0 } else { 1.5 } * (1.0 + 0.001 * at as f64);
        criterion(&world, name, "sum", 100.0 * factor);
        // Some sessions lack this benchmark.
        if at % 3 != 1 {
            criterion(&world, name, "product", 70.0 * factor);
        }
    }
    let sessions = |args: &[&str]| {
        let json = world.run(["compare"].iter().chain(args).chain(&["--format", "json"])).json();
        let rows = json["rows"].as_array().unwrap();
        let counted: Vec<(String, u64)> = rows
            .iter()
            .map(|row| {
                (row["benchmark"].as_str().unwrap().to_owned(), row["estimate"]["sessions"].as_u64().unwrap())
            })
            .collect();
        let notes: Vec<String> =
            json["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap().to_owned()).collect();
        (counted, notes)
    };
    let of = |product: u64, sum: u64| {
        vec![("a group/of/product".to_owned(), product), ("a group/of/sum".to_owned(), sum)]
    };
    let (counted, notes) = sessions(&["base-*", "head-*"]);
    assert_eq!(counted, of(2, 3));
    assert_eq!(notes, ["both sides: 5 files of criterion: 2 benchmarks, 3 sessions"]);
    let files =
        ["--base-file", "base-0", "--base-file", "base-1", "--head-file", "head-0", "--head-file", "head-1"];
    assert_eq!(sessions(&files).0, of(1, 2));
    let (counted, notes) = sessions(&["base-0", "head-0"]);
    assert_eq!(counted, of(1, 1));
    assert_eq!(notes, ["both sides: 2 files of criterion: 2 benchmarks, 1 session"]);
}

#[test]
fn every_value_of_a_list_decides_in_the_direction_that_was_chosen() {
    let world = World::new();
    let list = |load: f64| serde_json::json!([{"name": "start", "unit": "MB", "value": 40.0}, {"name": "score", "unit": "points", "value": load}]);
    world.write("a.json", list(50.0).to_string());
    world.write("b.json", list(100.0).to_string());
    let compare = |format: &str| {
        let outcome = world.run(["compare", "a.json", "b.json", "--format-in", format, "--format", "json"]);
        let json = outcome.json();
        let rows: Vec<(String, bool, f64)> = json["rows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| {
                (
                    row["benchmark"].as_str().unwrap().to_owned(),
                    row["fatal"].as_bool().unwrap(),
                    row["estimate"]["ratio"].as_f64().unwrap(),
                )
            })
            .collect();
        assert!(rows.iter().all(|(_, fatal, _)| *fatal), "{rows:?}");
        json["rows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["metric"]["better"].to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(compare("custom-smaller-is-better"), ["\"lower\"", "\"lower\""]);
    assert_eq!(compare("custom-bigger-is-better"), ["\"higher\"", "\"higher\""]);
    let outcome = world.run(["compare", "a.json", "b.json"]).expect_code(21);
    insta::assert_snapshot!(outcome.stderr, @r"
    error: failed to recognize the format of a.json: a list of names, values and units does not state whether less or more is better
    hint: choose: `--format-in custom-smaller-is-better` or `--format-in custom-bigger-is-better`
    ");
}

#[test]
fn advice_names_the_flag_of_the_tool_that_wrote_the_file() {
    let world = World::new();
    let go = |time: f64| format!("goos: linux\nBenchmarkSum-8   1000   {time} ns/op\nPASS\n");
    world.write("a.txt", go(50.0));
    world.write("b.txt", go(55.0));
    let outcome = world.run(["compare", "a.txt", "b.txt"]);
    assert!(outcome.stdout.contains("-count=10"), "{}", outcome.stdout);
    assert!(!outcome.stdout.contains("--benchmark_repetitions"), "{}", outcome.stdout);
}

#[test]
fn an_inconclusive_comparison_of_plain_files_ends_with_the_way_out_in_the_tool_s_own_words() {
    let world = World::new();
    let go = |factor: f64| -> String {
        let line =
            |at: u32| format!("BenchmarkSort-2 100 {:.0} ns/op\n", 1000.0 * factor + 7.0 * f64::from(at % 5));
        (0..10).map(line).collect()
    };
    world.write("base.txt", go(1.0));
    world.write("head.txt", go(1.08));
    let outcome = world.run(["compare", "base.txt", "head.txt"]).expect_code(11);
    insta::assert_snapshot!(outcome.stdout);
}

/// The path of a tool's output that was posted or captured.
fn captured(name: &str) -> String {
    format!("{}/tests/fixtures/tool_output/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_device_in_a_pasted_command_does_not_narrow_the_interval_of_one_session() {
    let world = World::new();
    let names = ["mi300-unet-iree.console", "mi300-unet-misa.console"];
    let interval = |device: &str| {
        for name in names {
            let text = std::fs::read_to_string(captured(&format!("google_benchmark/{name}"))).unwrap();
            assert!(text.contains("--device=rocm"), "{name}");
            world.write(name, text.replace("--device=rocm", device));
        }
        let report = world.run(["compare", names[0], names[1], "--format", "json"]).expect_code(11).json();
        report["rows"][0]["estimate"]["interval"].clone()
    };
    let gpu = interval("--device=rocm");
    assert!(gpu["low"].is_number() && gpu == interval("--device=local-task"), "{gpu}");
    // If the user states the spread, the result passes.
    world.run(["compare", names[0], names[1], "--between-cv", "0.5%"]).expect_code(0);
}

#[test]
fn result_lines_of_a_kernel_library_are_compared_by_their_time_and_efficiency_is_in_percent() {
    let world = World::new();
    let igemm = std::fs::read_to_string(captured("conv_library/igemm.txt")).unwrap();
    let line = igemm.lines().find(|line| line.contains("329.672(41.27%)")).unwrap();
    world.write("base.txt", format!("{line}\n"));
    let faster = line.replace("cost:0.183ms", "cost:0.171ms").replace("329.672(41.27%)", "352.807(44.16%)");
    world.write("head.txt", format!("{faster}\n"));
    // One line in each file is one repetition.
    let said = world.run(["compare", "base.txt", "head.txt", "--all"]).expect_code(11).stdout;
    assert!(said.contains("183.0 → 171.0 µs") && said.contains("41.27 → 44.16 %"), "{said}");
    // Comparing a file with itself proves nothing.
    let report = world.run(["compare", "base.txt", "base.txt", "--format", "json"]).expect_code(20).json();
    assert_eq!(lint_detail(&report["rows"][0], "same-file"), "");
}

#[test]
fn one_file_on_both_sides_is_said_once_for_all_its_rows() {
    let world = World::new();
    world.write("a.json", hyperfine(&[("./x", 0.1), ("./y", 0.2), ("./z", 0.3), ("./w", 0.4), ("./v", 0.5)]));
    let said = world.run(["compare", "a.json", "a.json"]).expect_code(20).stdout.replace("\n    ", " ");
    let said: Vec<&str> = said.lines().skip_while(|line| !line.contains("(error)")).collect();
    insta::assert_snapshot!(said.join("\n"), @"
    ./x, ./y, ./z and 2 more (error): base and head contain the same samples, from one file
    note: a.json was given for both sides

    Error (exit code 20): 5 of 5 benchmarks could not be judged.
    ");
}

#[test]
fn a_verifier_that_base_skipped_is_no_failure_of_base() {
    let world = World::new();
    let line = |code: &str, times: [f64; 8]| {
        let experiment = serde_json::json!({
            "accelerator": "cuda", "accelerator_model": "NVIDIA A100", "xla": null, "xla_flags": null, "dynamo": null,
            "torch_xla2": null, "keep_model_data_on_cuda": false, "test": "eval", "batch_size": 1
        });
        let record = serde_json::json!({
            "model": {"suite_name": "torchbench", "model_name": "llama"}, "experiment": experiment, "repeat": 8,
            "iterations_per_run": 1, "metrics": {"total_time": times}, "timestamp": 1_700_000_000,
            "verification_code": code
        });
        format!("{record}\n")
    };
    world.write("base.jsonl", line("VERIFIER_SKIPPED", [1.01, 1.02, 1.0, 1.01, 1.03, 1.0, 1.02, 1.01]));
    for (code, exit, why) in [
        // The reference could not be computed, so nothing is known about head.
        ("EAGER_FAILED", 20, "verify fails at head"),
        ("EXCEPTION_RAISED", 10, "verify fails only at head"),
    ] {
        world.write("head.jsonl", line(code, [1.0, 1.01, 1.02, 1.03, 1.01, 1.02, 1.0, 1.011]));
        let said = world.run(["compare", "base.jsonl", "head.jsonl"]).expect_code(exit).said();
        assert!(said.contains(why), "{code}: {said}");
    }
}
