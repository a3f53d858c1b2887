//! Messages of `compare` about other tools' files. Each message names what was found and a remedy that works.

use serde_json::{Value, json};

use crate::compare_select::csv;
use crate::harness::{World, row};

/// A hyperfine file with one command and ten runs of about this time in seconds.
fn hyperfine(time: f64) -> String {
    let times: Vec<f64> = (0..10u8).map(|run| time * (1.0 + 0.001 * f64::from(run))).collect();
    let mean = times.iter().sum::<f64>() / 10.0;
    json!({"results": [{"command": "./a", "mean": mean, "times": times, "exit_codes": vec![0; 10]}]})
        .to_string()
}

/// A file for github-action-benchmark with one value.
fn list(value: f64) -> String {
    json!([{"name": "a", "unit": "ms", "value": value}]).to_string()
}

#[test]
fn a_pattern_that_matches_files_and_folders_is_refused_and_a_slash_selects_the_folders() {
    let world = World::new();
    for side in ["base", "head"] {
        for at in 1..=2u8 {
            let time = 0.1 + 0.01 * f64::from(at) + if side == "head" { 0.003 } else { 0.0 };
            world.write(&format!("{side}-{at}.json"), hyperfine(time));
            world.write(&format!("{side}-{at}/result.json"), hyperfine(time + 0.1));
        }
    }
    let refused = world.run(["compare", "base-*", "head-*"]).expect_code(2);
    insta::assert_snapshot!(refused.stderr, @"
    error: base-* matches 2 files and 2 folders
    hint: match only one kind: `'base-*/'` selects the folders, and a pattern with the file extension selects the files
    ");
    for (patterns, first) in
        [(["base-*/", "head-*/"], "base-1/result.json"), (["base-*.json", "head-*.json"], "base-1.json")]
    {
        let report = world.run(["compare", patterns[0], patterns[1], "--format", "json"]).json();
        assert_eq!(report["base"]["label"], format!("{first} and 1 more"));
    }
}

#[test]
fn a_pattern_without_a_match_says_where_it_was_looked_for() {
    let world = World::new();
    world.write("d/base-1.json", hyperfine(0.1));
    let failed = |head: &str| world.run(["compare", "d/base-*.json", head]).expect_code(21).stderr;
    insta::assert_snapshot!(failed("d/hed-*.json"), @"
    error: failed to find a file that matches d/hed-*.json
    hint: no name in the folder d matches `hed-*.json`
    ");
    insta::assert_snapshot!(failed("e/head-*.json"), @"
    error: failed to find a file that matches e/head-*.json
    hint: the folder `e` does not exist
    ");
    insta::assert_snapshot!(failed("d/*/new.json"), @"
    error: failed to find a file that matches d/*/new.json
    hint: no path below the folder d matches `*/new.json`
    ");
}

#[test]
fn a_single_value_a_side_is_judged_by_a_declared_spread_alone() {
    let world = World::new();
    world.write("base.json", list(5.03));
    let compare = |value: f64, more: &[&str]| {
        world.write("head.json", list(value));
        let args = ["compare", "base.json", "head.json", "--format-in", "custom-smaller-is-better"];
        world.run(args.iter().chain(more)).code
    };
    let declared = ["--between-cv", "0.01%"];
    assert_eq!(compare(6.04, &declared), Some(10));
    assert_eq!(compare(5.03, &declared), Some(0));
    assert_eq!(compare(5.03, &["--between-cv", "5%"]), Some(11));
    assert_eq!(compare(6.04, &[]), Some(11));
}

#[test]
fn a_value_that_asv_tracks_has_no_unit_and_needs_files_rather_than_samples() {
    let world = World::new();
    let asv = |value: f64| {
        json!({
            "commit_hash": "a", "env_name": "e", "version": 2, "result_columns": ["result", "params", "version"],
            "results": {"b.track_size": [[value], [], "v"]}
        })
    };
    world.write("base.json", asv(100.0).to_string());
    world.write("head.json", asv(110.0).to_string());
    let said = world.run(["compare", "base.json", "head.json"]).expect_code(11).said();
    assert!(said.contains("100.0 → 110.0 +10 %") || said.contains("100.0 → 110.0 +10.0 %"), "{said}");
    assert!(said.contains("give 21 files per side") && !said.contains("Keep the samples"), "{said}");
}

#[test]
fn the_remedy_for_a_wrong_direction_is_the_other_format() {
    let world = World::new();
    world.write("base.json", list(5.0));
    world.write("head.json", list(6.0));
    let args = ["compare", "base.json", "head.json", "--format-in", "custom-bigger-is-better"];
    let said = world.run(args).expect_code(20).said();
    assert!(said.contains("use `--format-in custom-smaller-is-better`"), "{said}");
    assert!(!said.contains("Measure both sides again"), "{said}");
}

#[test]
fn values_are_called_medians_only_if_they_are() {
    let world = World::new();
    for (at, time) in [0.1, 0.13, 0.102, 0.109].into_iter().enumerate() {
        world.write(&format!("base-{at}.json"), hyperfine(time));
        world.write(&format!("head-{at}.json"), hyperfine(time * [1.01, 1.3, 0.97, 1.1][at]));
    }
    let said = |base: &str, head: &str| world.run(["compare", base, head, "--all"]).said();
    let one = said("base-0.json", "head-0.json");
    assert!(one.contains("median, base → head") && one.contains("(repetitions alone: p"), "{one}");
    let several = said("base-*.json", "head-*.json");
    assert!(several.contains("can differ from the ratio of the values"), "{several}");
    assert!(several.contains("median, base") && !one.contains("can differ"), "{one}\n{several}");
}

#[test]
fn a_finding_about_two_measures_of_a_benchmark_names_neither() {
    let world = World::new();
    let bencher =
        |size: f64| json!({"p": {"file-size": {"value": size}, "build-time": {"value": size / 9.0}}});
    world.write("base.json", bencher(100.0).to_string());
    world.write("head.json", bencher(101.0).to_string());
    let said = world.run(["compare", "base.json", "head.json"]).expect_code(11).said();
    assert!(said.contains("(no verdict): p: base: a process measured only once"), "{said}");
}

#[test]
fn a_copied_file_is_named_with_its_original() {
    let world = World::new();
    for (name, time) in [("base-1", 0.1), ("base-2", 0.1003), ("base-3", 0.1), ("head-1", 0.1007)] {
        world.write(&format!("{name}.json"), hyperfine(time));
    }
    let said = world.run(["compare", "base-*.json", "head-*.json"]).expect_code(20).said();
    let expected = "repeated-samples (error): base-1.json and base-3.json recorded exactly the same samples in 1 of 1 rows";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn a_single_repetition_is_explained_for_every_tool() {
    let said = World::new().run(["compare", "--explain", "single-repetition"]).expect_code(0).stdout;
    for tool in ["Google Benchmark", "pytest-benchmark", "hyperfine", "JMH", "asv"] {
        assert!(said.contains(tool), "{tool}: {said}");
    }
}

#[test]
fn advice_for_a_list_names_its_format() {
    let world = World::new();
    world.write("base.json", list(5.0));
    world.write("head.json", list(5.1));
    let args = ["compare", "base.json", "head.json", "--format-in", "custom-smaller-is-better"];
    let said = world.run(args).expect_code(11).said();
    assert!(said.contains("benchgate pair --format-in custom-smaller-is-better"), "{said}");
    let report: Value = world.run(args.iter().chain(&["--format", "json"])).json();
    assert_eq!(row(&report, "a", Some("latency"))["verdict"], "inconclusive");
}

#[test]
fn a_head_that_is_slower_than_bases_undisturbed_sessions_does_not_pass_because_others_were_disturbed() {
    let world = World::new();
    for at in 0..24u8 {
        let jitter = 1.0 + 0.001 * f64::from(at * 7 % 24);
        let disturbed = if at < 15 { 1.3 } else { 1.0 };
        world.write(&format!("base-{at}.json"), hyperfine(0.1 * jitter * disturbed));
        world.write(&format!("head-{at}.json"), hyperfine(0.105 * jitter));
    }
    let report =
        world.run(["compare", "base-*.json", "head-*.json", "--format", "json"]).expect_code(11).json();
    let text = report.to_string();
    assert!(text.contains("6 of base's processes are faster than all of head's"), "{report:#}");
}

#[test]
fn a_counter_that_grows_with_the_iterations_is_no_other_work_and_one_of_each_call_is() {
    let world = World::new();
    let file = |iterations: u32, items: u32| {
        let row = |at: u32| {
            let time = 1e6 * (1.0 + 0.001 * f64::from(at * iterations));
            json!({"name": "a", "run_name": "a", "run_type": "iteration", "repetitions": 5, "repetition_index": at,
                "iterations": iterations, "real_time": time, "cpu_time": time, "time_unit": "ns", "num_items": items})
        };
        json!({"context": {}, "benchmarks": (0..5).map(row).collect::<Vec<_>>()}).to_string()
    };
    world.write("base.json", file(7, 7000));
    for (head, is_other) in [(file(9, 9000), false), (file(9, 4500), true), (file(9, 3500), true)] {
        world.write("head.json", head);
        let report = world.run(["compare", "base.json", "head.json", "--format", "json"]).json();
        assert_eq!(report.to_string().contains("workload-changed"), is_other, "{report:#}");
    }
}

#[test]
fn a_benchmark_that_some_files_lack_names_the_first_of_them() {
    let world = World::new();
    for (side, by) in [("base", 100.0), ("head", 100.003)] {
        for file in 0..5 {
            let time = by + 0.01 * f64::from(file);
            let second = (side == "base" || ![2, 4].contains(&file)).then_some(("mlp", 2.0 * time, 1.0));
            let rows: Vec<_> = [("conv", time, 1.0)].into_iter().chain(second).collect();
            world.write(&format!("{side}/{file}.csv"), csv(&rows));
        }
    }
    let said = world.run(["compare", "base", "head"]).expect_code(11).stdout;
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("mlp: in 3 of 5 files, not in head/2.csv"), "{said}");
}

#[test]
fn benchmarks_that_share_processes_make_their_geometric_mean_no_surer() {
    let world = World::new();
    // All benchmarks of a file are as fast or slow as its process was.
    let of_process = [0.0, 2.1, 0.7, 1.3, 0.4, 1.9];
    for (side, by) in [("base", 1.0), ("head", 1.02)] {
        for (process, slower) in of_process.iter().enumerate() {
            for count in [1, 4] {
                let rows = (0..count).map(|row| {
                    let time =
                        by * (100.0 + 10.0 * f64::from(row)) * (100.0 + slower + 0.013 * f64::from(row))
                            / 100.0;
                    format!("\"b{row}\",10,{time:.5},{time:.5},ns,1\n")
                });
                let name = format!("{side}-{count}/{process}.csv");
                world.write(&name, csv(&[]) + &rows.collect::<String>());
            }
        }
    }
    let width = |count: u32| {
        let [base, head] = ["base", "head"].map(|side| format!("{side}-{count}"));
        let json = world.run(["compare", &base, &head, "--format", "json"]).json();
        let mean =
            json["geomeans"].as_array().unwrap().iter().find(|mean| mean["metric"] == "latency").unwrap();
        assert_eq!(mean["rows"].as_u64(), Some(count.into()), "{json:#}");
        (mean["interval"]["high"].as_f64().unwrap() / mean["interval"]["low"].as_f64().unwrap()).ln()
    };
    let [alone, together] = [1, 4].map(width);
    assert!(together > 0.8 * alone, "{together} {alone}");
}
