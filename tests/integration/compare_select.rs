//! `compare` with a part of a result, with one file that has both sides, with folders, and with compressed
//! files.

use std::io::Write;

use serde_json::Value;

use crate::harness::{Outcome, World};

/// A CSV file of Google Benchmark in which each benchmark has five repetitions of about this time, and a
/// counter.
pub fn csv(rows: &[(&str, f64, f64)]) -> String {
    let mut text = "name,iterations,real_time,cpu_time,time_unit,\"visits\"\n".to_owned();
    for (which, (name, time, visits)) in (1..).zip(rows) {
        for repetition in 0..5 {
            // No two benchmarks have exactly equal times.
            let time = time * (1.0 + 0.0001 * f64::from(repetition) + 0.00001 * f64::from(which));
            text.push_str(&format!("\"{name}\",10,{time},{time},ns,{visits}\n"));
        }
    }
    text
}

/// The (benchmark, metric, verdict) of each row in a comparison's JSON, and the notes.
fn rows(outcome: &Outcome) -> (Vec<(String, String, String)>, Vec<String>) {
    let json: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let row = |row: &Value| (text(&row["benchmark"]), text(&row["metric"]["name"]), text(&row["verdict"]));
    let rows = json["rows"].as_array().unwrap().iter().map(row).collect();
    (rows, json["notes"].as_array().into_iter().flatten().map(text).collect())
}

fn latencies(outcome: &Outcome) -> Vec<(String, String)> {
    let rows = rows(outcome).0.into_iter().filter(|(_, metric, _)| metric == "latency");
    rows.map(|(benchmark, _, verdict)| (benchmark, verdict)).collect()
}

const SURE: [&str; 4] = ["--between-cv", "0.1%", "--format", "json"];

#[test]
fn what_a_filter_leaves_out_is_not_judged_and_is_counted() {
    let world = World::new();
    world.write("a.csv", csv(&[("conv/1", 100.0, 1.0), ("conv/2", 100.0, 1.0), ("mlp", 100.0, 1.0)]));
    world.write("b.csv", csv(&[("conv/1", 100.0, 1.0), ("conv/2", 100.0, 1.0), ("mlp", 200.0, 1.0)]));
    world.run(["compare", "a.csv", "b.csv"].into_iter().chain(SURE)).expect_code(10);
    let outcome = world.run(["compare", "a.csv", "b.csv", "--filter", "^conv/"].into_iter().chain(SURE));
    let outcome = outcome.expect_code(0);
    let pass = |name: &str| (name.to_owned(), "pass".to_owned());
    assert_eq!(latencies(&outcome), [pass("conv/1"), pass("conv/2")]);
    assert!(
        rows(&outcome).1.iter().any(|note| note.contains("leaves out 1 benchmark,")),
        "{}",
        outcome.stdout
    );
}

#[test]
fn compare_explain_and_report_choose_their_inputs_alike() {
    let world = World::new();
    world.write("a.csv", csv(&[("conv", 100.0, 1.0), ("mlp", 100.0, 1.0)]));
    world.write("b.csv", csv(&[("conv", 100.0, 1.0), ("mlp", 200.0, 1.0)]));
    let commands = [&["compare", "a.csv", "b.csv"][..], &["explain", "a.csv", "b.csv"], &["report", "b.csv"]];
    for command in commands {
        let chosen = ["--format-in", "google-benchmark-csv", "--filter", "^mlp"];
        let text = world.run(command.iter().chain(&chosen)).stdout;
        assert!(text.contains("mlp") && !text.contains("conv"), "{command:?}: {text}");
        world.run(command.iter().chain(&["--filter", "nothing"])).expect_code(2);
        world.run(command.iter().chain(&["--format-in", "hyperfine-json"])).expect_code(21);
    }
}

#[test]
fn a_pattern_or_a_metric_that_matches_nothing_is_an_error() {
    let world = World::new();
    world.write("a.csv", csv(&[("conv", 100.0, 1.0)]));
    for option in [
        &["--filter", "nothing"][..],
        &["--filter", "conv", "--filter", "nothing"],
        &["--metric", "nothing"],
        &["--base-filter", "nothing"],
        &["--head-filter", "nothing"],
        &["--rename", "nothing", "conv"],
    ] {
        world.run(["compare", "a.csv", "a.csv"].into_iter().chain(option.iter().copied())).expect_code(2);
    }
}

#[test]
fn a_chosen_metric_decides() {
    let world = World::new();
    world.write("a.csv", csv(&[("conv", 100.0, 50.0)]));
    world.write("b.csv", csv(&[("conv", 100.0, 90.0)]));
    world.run(["compare", "a.csv", "b.csv"].into_iter().chain(SURE)).expect_code(0);
    let chosen = ["compare", "a.csv", "b.csv", "--metric", "visits"].into_iter().chain(SURE);
    let verdict = |verdict: &str| [("conv".to_owned(), "visits".to_owned(), verdict.to_owned())];
    // It is unknown whether more visits are better.
    let outcome = world.run(chosen.clone()).expect_code(11);
    assert_eq!(rows(&outcome).0, verdict("inconclusive"));
    world.write("policy.toml", "[gate.metric.visits]\nbetter = \"lower\"\n");
    let outcome = world.run(chosen.chain(["--policy", "policy.toml"])).expect_code(10);
    assert_eq!(rows(&outcome).0, verdict("regressed"));
}

/// If a name in a policy is misspelled, its rule would never be applied.
#[test]
fn a_policy_whose_rules_match_nothing_is_refused() {
    let world = World::new();
    world.write("a.csv", csv(&[("conv", 100.0, 50.0)]));
    world.write("b.csv", csv(&[("conv", 100.0, 50.5)]));
    let compare = |policy: &str, more: &[&'static str]| {
        world.write("policy.toml", policy);
        let all = ["compare", "a.csv", "b.csv", "--policy", "policy.toml"].into_iter().chain(SURE);
        world.run(all.chain(more.iter().copied()))
    };
    for (policy, said) in [
        (
            "[[limit]]\nbenchmark = \"convv*\"\nmetric = \"latency\"\nmax = \"1 ms\"\n",
            "the [[limit]] of `convv*`",
        ),
        ("[gate.metric.vists]\nfatal = true\nbetter = \"lower\"\n", "the gating metric `vists`"),
        (
            "[[gate.override]]\nbenchmark = \"mlp\"\nmetric = \"visits\"\nfatal = true\n",
            "no benchmark that matches `mlp`",
        ),
    ] {
        let refused = compare(policy, &[]).expect_code(2);
        assert!(refused.stderr.contains(said), "{}", refused.stderr);
        assert_ne!(compare(policy, &["--filter", "conv"]).code, Some(2));
    }
    let met = "[[limit]]\nbenchmark = \"conv*\"\nmetric = \"latency\"\nmax = \"1 ms\"\n";
    assert_ne!(compare(met, &[]).code, Some(2));
}

#[test]
fn a_failed_benchmark_stays_when_a_metric_is_chosen() {
    let world = World::new();
    world.write("a.csv", csv(&[("conv", 100.0, 50.0), ("mlp", 100.0, 50.0)]));
    let failed = "name,iterations,real_time,cpu_time,time_unit,error_occurred,error_message\n\"mlp\",,,,,true,\"no\"\n";
    world.write("conv.csv", csv(&[("conv", 100.0, 50.0)]));
    world.write("mlp.csv", failed);
    let args = [
        "compare",
        "--base-file",
        "a.csv",
        "--head-file",
        "conv.csv",
        "--head-file",
        "mlp.csv",
        "--metric",
        "visits",
    ];
    world.run(args.into_iter().chain(SURE)).expect_code(10);
}

#[test]
fn two_programs_in_one_file_are_compared() {
    let world = World::new();
    let two = r#"{"results": [
        {"command": "old", "mean": 1, "times": [1.0, 1.01, 1.02, 1.0, 1.01]},
        {"command": "new", "mean": 2, "times": [2.0, 2.01, 2.02, 2.0, 2.01]}]}"#;
    world.write("two.json", two);
    let pair =
        ["compare", "two.json", "--base-filter", "old", "--head-filter", "new"].into_iter().chain(SURE);
    let outcome = world.run(pair).expect_code(10);
    assert_eq!(latencies(&outcome), [("new".to_owned(), "regressed".to_owned())]);
    world.write(
        "many.csv",
        csv(&[("old/1", 1.0, 1.0), ("old/2", 1.0, 1.0), ("new/1", 1.0, 1.0), ("new/2", 2.0, 1.0)]),
    );
    let many = [
        "compare",
        "many.csv",
        "--base-filter",
        "^old/",
        "--head-filter",
        "^new/",
        "--rename",
        "old/*",
        "new/*",
    ];
    let outcome = world.run(many.into_iter().chain(SURE)).expect_code(10);
    let wanted = [("new/1", "pass"), ("new/2", "regressed")];
    assert_eq!(latencies(&outcome), wanted.map(|(name, verdict)| (name.to_owned(), verdict.to_owned())));
    // Without the renames no benchmarks are paired, and the comparison does not pass.
    let unpaired = &many[..6];
    world.run(unpaired.iter().copied()).expect_code(12);
    let clash = ["compare", "many.csv", "many.csv", "--rename", "old/1", "old/2"];
    world.run(clash).expect_code(2);
}

#[test]
fn sorting_changes_the_order_and_nothing_else() {
    let world = World::new();
    world.write("a.csv", csv(&[("c", 100.0, 1.0), ("a", 100.0, 1.0), ("b", 100.0, 1.0)]));
    world.write("b.csv", csv(&[("c", 100.0, 1.0), ("a", 150.0, 1.0), ("b", 200.0, 1.0)]));
    let order = |sort: &str| -> Vec<String> {
        let args =
            ["compare", "a.csv", "b.csv", "--between-cv", "0.1%", "--format", "markdown", "--sort", sort];
        let text = world.run(args).expect_code(10).stdout;
        let names = text.lines().filter_map(|line| line.split('`').nth(1)).filter(|name| name.len() == 1);
        let mut seen = Vec::new();
        names.for_each(|name| {
            if !seen.contains(&name.to_owned()) {
                seen.push(name.to_owned())
            }
        });
        seen
    };
    assert_eq!(order("importance")[..2], ["b", "a"]);
    assert_eq!(order("name")[..2], ["a", "b"]);
    assert_eq!(order("change")[..2], ["b", "a"]);
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn compressed_results_are_read_as_what_is_in_them() {
    let world = World::new();
    let text = csv(&[("conv", 100.0, 1.0)]);
    world.write("a.csv.gz", gzip(text.as_bytes()));
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    world.write("b.csv.zst", ruzstd::encoding::compress_to_vec(text.as_bytes(), level));
    world.run(["compare", "a.csv.gz", "b.csv.zst"].into_iter().chain(SURE)).expect_code(0);
    world
        .run_with_input(["compare", "a.csv.gz", "-"].into_iter().chain(SURE), &gzip(text.as_bytes()))
        .expect_code(0);
    world.run(["convert", "a.csv.gz", "out.json"]).expect_code(0);
    // Concatenated compressed files are one file, and a frame may be empty.
    let slow = csv(&[("conv", 200.0, 1.0)]);
    let frame = |text: &str| ruzstd::encoding::compress_to_vec(text.as_bytes(), level);
    let both = [b"\x50\x2a\x4d\x18\x02\x00\x00\x00xy".as_slice(), &frame(&text), &frame(&slow)].concat();
    world.write("both.csv.zst", &both);
    world.write("both.csv", [text.as_bytes(), slow.as_bytes()].concat());
    let [packed, plain] =
        ["both.csv.zst", "both.csv"].map(|file| world.run(["compare", "a.csv.gz", file]).code);
    assert_eq!(packed, plain);
    assert_ne!(packed, Some(0));
    world.write("cut.csv.zst", &both[..both.len() - 3]);
    world.run(["compare", "a.csv.gz", "cut.csv.zst"]).expect_code(21);
}

#[test]
fn a_compressed_file_that_is_cut_or_grows_without_bound_is_unreadable() {
    let world = World::new();
    let text = csv(&[("conv", 100.0, 1.0)]);
    world.write("a.csv", &text);
    let whole = gzip(text.as_bytes());
    world.write("cut.gz", &whole[..whole.len() - 9]);
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let whole = ruzstd::encoding::compress_to_vec(text.as_bytes(), level);
    world.write("cut.zst", &whole[..whole.len() - 9]);
    // The 17 KiB file expands to 17 MiB of one character.
    world.write("bomb.gz", gzip(&vec![b' '; 17 << 20]));
    for file in ["cut.gz", "cut.zst", "bomb.gz"] {
        world.run(["compare", "a.csv", file]).expect_code(21);
    }
}

#[test]
fn the_results_of_a_folder_are_one_side() {
    let world = World::new();
    for (side, time) in [("base", 100.0), ("head", 200.0)] {
        for part in 1..=3 {
            world.write(
                &format!("{side}/{part}.csv"),
                csv(&[("conv", time * (1.0 + 0.001 * f64::from(part)), 1.0)]),
            );
        }
        world.write(&format!("{side}/notes/readme.txt"), "nothing of interest\n");
    }
    let outcome = world.run(["compare", "base", "head"].into_iter().chain(SURE)).expect_code(10);
    let notes = rows(&outcome).1;
    assert!(notes.iter().any(|note| note == "both sides: 3 files, each read as one session"), "{notes:?}");
    assert!(
        notes
            .iter()
            .any(|note| note == "both sides: 1 other file of the folder is not a result and was left out"),
        "{notes:?}"
    );
    world.write("empty/readme.txt", "nothing of interest\n");
    world.run(["compare", "base", "empty"]).expect_code(21);
    // A truncated result is an error and is not skipped.
    world.write("base/4.json", "{\"context\": {}, \"benchmarks\": [{\"name\": \"conv\", ");
    world.run(["compare", "base", "head"]).expect_code(21);
    std::fs::remove_file(world.work().join("base/4.json")).unwrap();
    // A session that failed wrote its error under the name of a result.
    world.write("head/4.csv", "error\nCUDA out of memory\n");
    let outcome = world.run(["compare", "base", "head"]).expect_code(21);
    assert!(outcome.stderr.contains("head/4.csv"), "{}", outcome.stderr);
}

#[test]
fn a_link_out_of_a_folder_is_an_error_and_one_within_it_names_a_result_again() {
    let world = World::new();
    world.write("base/1.csv", csv(&[("conv", 100.0, 1.0)]));
    world.write("head/1.csv", csv(&[("conv", 100.1, 1.0)]));
    std::os::unix::fs::symlink("1.csv", world.work().join("base/latest.csv")).unwrap();
    let outcome = world.run(["compare", "base", "head"].into_iter().chain(SURE)).expect_code(0);
    assert_eq!(latencies(&outcome), [("conv".to_owned(), "pass".to_owned())]);
    // The link may lead to a result, so the comparison does not pass without it. It may also lead to any
    // other file, so it is not read.
    let secret = world.write("secret.csv", csv(&[("secret", 100.0, 1.0)]));
    std::os::unix::fs::symlink(secret, world.work().join("base/2.csv")).unwrap();
    let outcome = world.run(["compare", "base", "head"].into_iter().chain(SURE)).expect_code(21);
    assert!(outcome.stderr.contains("a link out of the folder"), "{}", outcome.stderr);
}

#[test]
fn a_criterion_folder_is_its_newest_samples() {
    let world = World::new();
    let fixture = super::ingest::fixture_path("criterion/sum/wrapping/new");
    for name in ["sample.json", "estimates.json"] {
        let bytes = std::fs::read(fixture.join(name)).unwrap();
        for state in ["new", "base"] {
            world.write(&format!("criterion/sum/wrapping/{state}/{name}"), &bytes);
        }
    }
    let outcome = world.run(["compare", "criterion", "criterion"].into_iter().chain(SURE));
    let notes = rows(&outcome).1;
    assert!(!notes.iter().any(|note| note.contains("joined")), "{notes:?}");
    assert_eq!(latencies(&outcome).len(), 1);
    assert_eq!(latencies(&outcome)[0].0, "sum/wrapping");
}

#[test]
fn a_numbered_folder_without_a_result_is_a_session_that_failed() {
    let world = World::new();
    let fixture = super::ingest::fixture_path("criterion/sum/wrapping/new");
    for (side, session) in [("base", 1), ("base", 2), ("head", 1), ("head", 2)] {
        for name in ["sample.json", "estimates.json", "benchmark.json"] {
            let Ok(bytes) = std::fs::read(fixture.join(name)) else { continue };
            world.write(&format!("{side}/{session}/sum/new/{name}"), &bytes);
        }
    }
    world.write("head/report/index.html", "<html></html>\n");
    world.write("head/3/log.txt", "error: could not compile `b`\n");
    let outcome = world.run(["compare", "base/*", "head/*"]).expect_code(21);
    assert!(
        outcome.stderr.contains("failed to find the result of the run that wrote head/3/log.txt"),
        "{}",
        outcome.stderr
    );
    std::fs::remove_dir_all(world.work().join("head/3")).unwrap();
    let outcome = world.run(["compare", "base/*", "head/*"]);
    assert_ne!(outcome.code, Some(21), "{}", outcome.stderr);
}

#[test]
fn several_results_stand_next_to_each_other() {
    let world = World::new();
    world.write("base.csv", csv(&[("conv", 100.0, 1.0), ("mlp", 100.0, 1.0), ("gone", 100.0, 1.0)]));
    world.write("a.csv", csv(&[("conv", 100.0, 1.0), ("mlp", 80.0, 1.0), ("gone", 100.0, 1.0)]));
    world.write("b.csv", csv(&[("conv", 150.0, 1.0), ("mlp", 100.0, 1.0), ("new", 1.0, 1.0)]));
    let args = ["compare", "base.csv", "a.csv", "b.csv", "--between-cv", "0.1%"];
    let outcome = world.run(args).expect_code(10);
    insta::assert_snapshot!(outcome.stdout);
    let markdown = world.run(args.into_iter().chain(["--format", "markdown"])).expect_code(10);
    insta::assert_snapshot!("several_results_in_markdown", markdown.stdout);
    for (name, speed) in [("c.csv", 1.0001), ("d.csv", 1.0002)] {
        let rows = ["conv", "mlp", "gone"].map(|row| (row, 100.0 * speed, 1.0));
        world.write(name, csv(&rows));
    }
    let unchanged = ["compare", "base.csv", "c.csv", "d.csv", "--between-cv", "0.1%"];
    world.run(unchanged).expect_code(0);
    world.run(args.into_iter().chain(["--format", "json"])).expect_code(2);
}

fn jmh(score: f64) -> String {
    let raw: Vec<f64> = [1.0, 1.001, 0.999, 1.0, 1.002].iter().map(|part| score * part).collect();
    let score = raw.iter().sum::<f64>() / 5.0;
    serde_json::json!([{
        "jmhVersion": "1.37", "benchmark": "org.example.Matmul.multiply", "mode": "thrpt", "threads": 1, "forks": 1,
        "measurementIterations": 5,
        "primaryMetric": {"score": score, "scoreError": 1.0, "scoreUnit": "ops/s", "rawData": [raw]},
        "secondaryMetrics": {}
    }])
    .to_string()
}

#[test]
fn the_only_metric_of_foreign_results_decides() {
    let world = World::new();
    world.write("a.json", jmh(1000.0));
    world.write("b.json", jmh(500.0));
    world.write("c.json", jmh(1000.1));
    world.run(["compare", "a.json", "c.json"].into_iter().chain(SURE)).expect_code(0);
    let slower = world.run(["compare", "a.json", "b.json"].into_iter().chain(SURE)).expect_code(10);
    let wanted = [("org.example.Matmul.multiply/thrpt", "throughput", "regressed")];
    assert_eq!(
        rows(&slower).0,
        wanted.map(|(name, metric, verdict)| (name.into(), metric.into(), verdict.into()))
    );
}

#[test]
fn a_geometric_mean_is_over_rows_whose_numbers_can_be_used() {
    let world = World::new();
    for (name, once) in [("a.csv", 100.0), ("b.csv", 100_000.0)] {
        let rows = csv(&[("conv", 100.0, 1.0), ("mlp", 200.0, 1.0)]);
        world.write(name, format!("{rows}\"once\",10,{once},{once},ns,1\n"));
    }
    // With a declared spread, a single repetition could be used.
    let json = world.run(["compare", "a.csv", "b.csv", "--format", "json"]).json();
    let means = json["geomeans"].as_array().unwrap();
    let latency = means.iter().find(|mean| mean["metric"] == "latency").unwrap();
    assert_eq!((latency["rows"].as_u64(), latency["ratio"].as_f64()), (Some(2), Some(1.0)), "{latency}");
}

#[test]
fn compare_without_a_result_does_not_judge_whatever_lies_here() {
    let world = World::new();
    world.write("run.json", csv(&[("conv", 100.0, 1.0)]));
    world.run(["compare"]).expect_code(2);
}

#[test]
fn a_selected_metric_is_judged_without_the_times_that_were_left_out() {
    let suite = crate::suite::Suite::new()
        .model("a", &[])
        .base("flags = [\"--fake=note=base\"]")
        .head("flags = [\"--fake=note=head\"]")
        .write();
    suite.world.run(["gate", "--warn-only"]).expect_code(0);
    for metric in ["vmfb-size", "dispatch-count"] {
        let outcome = suite.world.run(["compare", "run.json", "--metric", metric]);
        assert!(!outcome.stdout.contains("was not timed"), "{}", outcome.stdout);
        outcome.expect_code(0);
    }
    // An override that makes all metrics of a benchmark gating does not require the metrics that were left
    // out.
    suite.world.write("gating.toml", "[[gate.override]]\nbenchmark = \"**\"\nfatal = true\n");
    suite
        .world
        .run(["compare", "run.json", "--metric", "vmfb-size", "--policy", "gating.toml"])
        .expect_code(0);
}

#[test]
fn a_name_that_is_longer_than_any_terminal_is_cut() {
    let world = World::new();
    let name = "n".repeat(70_000);
    for (side, time) in [("a", 10.0), ("b", 20.0)] {
        world.write(
            &format!("{side}.csv"),
            format!("name,iterations,real_time,cpu_time,time_unit\n\"{name}\",10,{time},{time},ns\n"),
        );
    }
    world.run(["compare", "a.csv", "b.csv", "--all"]).expect_code(11);
}

#[test]
fn a_selected_metric_does_not_hide_that_head_does_less_or_does_it_worse() {
    let world = World::new();
    for (name, of_base, of_head) in
        [("accuracy", 0.93, 0.41), ("max_err", 1e-6, 0.5), ("checksum", 42.0, 17.0)]
    {
        let result = |value: f64| csv(&[("conv", 100.0, value)]).replace("visits", name);
        world.write("a.csv", result(of_base));
        for (head, code) in [(of_base, 0), (of_head, 11)] {
            world.write("b.csv", result(head));
            let compare = ["compare", "a.csv", "b.csv", "--metric", "latency"];
            let outcome = world.run(compare.into_iter().chain(SURE)).expect_code(code);
            let rows = rows(&outcome).0;
            assert!(rows.iter().all(|(_, metric, _)| metric == "latency"), "{name}: {rows:?}");
        }
    }
}

#[test]
fn a_selected_metric_that_only_head_has_is_missing_although_another_benchmark_passes() {
    let world = World::new();
    let results = |benchmarks: [(&str, f64, Option<f64>); 2]| {
        let mut text = "name,iterations,real_time,cpu_time,time_unit,\"visits\"\n".to_owned();
        for (name, time, visits) in benchmarks {
            for repetition in 0..5 {
                let noise = 1.0 + 0.0003 * f64::from(2 * repetition % 5);
                let visits = visits.map_or_else(String::new, |visits| (visits * noise).to_string());
                text.push_str(&format!("\"{name}\",10,{0},{0},ns,{visits}\n", time * noise));
            }
        }
        text
    };
    world.write("a.csv", results([("conv", 100.0, Some(1000.0)), ("mlp", 300.0, None)]));
    world.write("b.csv", results([("conv", 100.01, Some(1001.0)), ("mlp", 300.02, Some(5003.0))]));
    let compare =
        |metric| world.run(["compare", "a.csv", "b.csv", "--metric", metric].into_iter().chain(SURE));
    compare("latency").expect_code(0);
    let outcome = compare("visits").expect_code(12);
    let of = |benchmark: &str, verdict: &str| (benchmark.to_owned(), "visits".to_owned(), verdict.to_owned());
    let mut rows = rows(&outcome).0;
    rows.sort();
    assert_eq!(rows, [of("conv", "pass"), of("mlp", "missing")]);
}

/// Writes the results of two programs for each of 24 sessions of both sides.
fn two_programs(world: &World) {
    for session in 0..24 {
        for (side, factor) in [("base", 1.0), ("head", 1.0005)] {
            for (program, time) in [("alpha", 100.0), ("beta", 300.0)] {
                let time = time * factor * (1.0 + 0.0003 * f64::from(17 * session % 24));
                world.write(&format!("{side}/{session:02}/{program}.csv"), csv(&[(program, time, 1.0)]));
            }
        }
    }
}

#[test]
fn folders_with_the_files_of_several_programs_lack_nothing() {
    let world = World::new();
    two_programs(&world);
    let compare = ["compare", "base", "head", "--format", "json"];
    world.run(compare).expect_code(0);
    let is_incomplete = || {
        let lost = world.run(compare).expect_code(11);
        assert!(lost.stdout.contains("incomplete-join"), "{}", lost.stdout);
    };
    std::fs::remove_file(world.work().join("head/07/beta.csv")).unwrap();
    is_incomplete();
    // Each program lost another session.
    std::fs::remove_file(world.work().join("head/09/alpha.csv")).unwrap();
    is_incomplete();
    // A row of another name is not the benchmark.
    two_programs(&world);
    world.write("head/07/beta.csv", csv(&[("beta_v2", 900.0, 1.0)]));
    is_incomplete();
    // A file with a part of another file's benchmarks may have lost the others.
    two_programs(&world);
    for session in 0..24 {
        for (side, factor) in [("base", 1.0), ("head", 1.0005)] {
            let time = factor * (1.0 + 0.0003 * f64::from(17 * session % 24));
            let both = csv(&[("alpha", 100.0 * time, 1.0), ("gamma", 50.0 * time, 1.0)]);
            world.write(&format!("{side}/{session:02}/alpha.csv"), both);
        }
    }
    world.write("head/07/alpha.csv", csv(&[("alpha", 103.0, 1.0)]));
    is_incomplete();
}

#[test]
fn a_waiver_of_a_metric_does_not_cover_a_session_that_was_lost() {
    let world = World::new();
    for session in 0..24 {
        for (side, time) in [("base", 100.0), ("head", 100.05)] {
            let time = time * (1.0 + 0.0003 * f64::from(17 * session % 24));
            world.write(&format!("{side}-{session:02}.csv"), csv(&[("conv", time, 1.0)]));
        }
    }
    let expires = jiff::Zoned::now().date().saturating_add(jiff::Span::new().days(9));
    let waiver = |metric: &str| {
        format!(
            "[suite]\nname = \"k\"\n[[waiver]]\nbenchmark = \"conv\"\n{metric}owner = \"@x\"\n\
             reason = \"slower on purpose\"\nexpires = \"{expires}\"\n"
        )
    };
    world.write("metric.toml", waiver("metric = \"latency\"\n"));
    world.write("all.toml", waiver(""));
    let compare = |policy: &str| world.run(["compare", "base-*.csv", "head-*.csv", "--policy", policy]).code;
    assert_eq!([compare("metric.toml"), compare("all.toml")], [Some(0); 2]);
    std::fs::remove_file(world.work().join("head-07.csv")).unwrap();
    assert_eq!([compare("metric.toml"), compare("all.toml")], [Some(11), Some(0)]);
    // The same session is missing in a column.
    let columns = ["compare", "--columns", "base-*.csv", "head-*.csv", "head-*.csv"];
    assert_eq!(world.run(columns).code, Some(11));
    // A slowdown that the waiver covers can't excuse the lost session either.
    for session in (0..24).filter(|session| *session != 7) {
        let time = 120.0 * (1.0 + 0.0003 * f64::from(17 * session % 24));
        world.write(&format!("head-{session:02}.csv"), csv(&[("conv", time, 1.0)]));
    }
    assert_eq!(compare("metric.toml"), Some(11));
    world.write("head-07.csv", csv(&[("conv", 120.3, 1.0)]));
    assert_eq!(compare("metric.toml"), Some(0));
}
