use benchgate::ingest::{self, ExportFormat, Format};
use benchgate::model::{Consequence, Lint, LintCode, Outcome, Run, Series, VerifyCode};

use super::fixtures::readable_fixtures;
use super::{benchmark, fixture};
use crate::harness::World;

const NOW: &str = "2026-11-20T12:00:00Z";

/// Every latency, by name, that a format with one process per file can store.
fn latencies(run: &Run) -> Vec<(String, Vec<f64>)> {
    let mut all = Vec::new();
    for benchmark in run.benchmarks.iter().filter(|benchmark| benchmark.outcome.is_ok()) {
        if let Some(latency) = benchmark.metric("latency") {
            let values = match &latency.series {
                Series::Processes(processes) => {
                    processes.iter().flat_map(|process| process.samples.clone()).collect()
                }
                Series::Summaries(summaries) => {
                    summaries.iter().filter_map(|summary| summary.mean.or(summary.median)).collect()
                }
                Series::Exact(value) => vec![*value],
            };
            all.push((benchmark.name.to_string(), values));
        }
    }
    all
}

/// The latencies of those benchmarks of `run` that can be judged. The other latencies may be written as
/// failed or skipped rows.
fn judgeable(run: &Run, of: &Run) -> Vec<(String, Vec<f64>)> {
    let bearable =
        |lint: &Lint| lint.code.consequence() == Consequence::Note || lint.code == LintCode::SingleRepetition;
    let sound = |name: &str| {
        let benchmark = benchmark(run, name);
        let wrong = benchmark.verification.as_ref().is_some_and(|it| it.code == VerifyCode::Fail);
        !wrong && run.lints.iter().chain(&benchmark.lints).all(bearable)
    };
    latencies(of).into_iter().filter(|(name, _)| sound(name)).collect()
}

#[test]
fn what_is_written_is_read_back_with_the_same_names_and_latencies() {
    for (name, run) in readable_fixtures() {
        for format in [ExportFormat::RunJson, ExportFormat::GoogleBenchmark] {
            let written = ingest::export(&run, format, NOW);
            let back =
                ingest::read_detected(&written.bytes, "back").unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(judgeable(&run, &back), judgeable(&run, &run), "{name} as {format}");
            let names = |run: &Run| run.benchmarks.iter().map(|b| b.name.clone()).collect::<Vec<_>>();
            assert_eq!(names(&back), names(&run), "{name} as {format}");
        }
    }
}

#[test]
fn no_conversion_turns_a_failure_into_a_measurement() {
    for (name, run) in readable_fixtures() {
        for format in [ExportFormat::RunJson, ExportFormat::GoogleBenchmark, ExportFormat::ResultsJsonl] {
            let written = ingest::export(&run, format, NOW);
            let back = ingest::read_detected(&written.bytes, "back").unwrap();
            assert_eq!(back.benchmarks.len(), run.benchmarks.len(), "{name} as {format}");
            for (before, after) in run.benchmarks.iter().zip(&back.benchmarks) {
                if !before.outcome.is_ok() {
                    assert!(!after.outcome.is_ok(), "{name} as {format}: {}", before.name);
                }
                if before.metric("latency").is_none() {
                    assert!(after.metric("latency").is_none(), "{name} as {format}: {}", before.name);
                }
            }
        }
    }
}

#[test]
fn a_torchbench_file_survives_its_own_format() {
    let run = fixture("torchbench/results.jsonl");
    let written = ingest::export(&run, ExportFormat::ResultsJsonl, NOW);
    let back = ingest::read(&written.bytes, Format::ResultsJsonl, "back").unwrap();
    for (before, after) in run.benchmarks.iter().zip(&back.benchmarks) {
        assert_eq!(before.name, after.name);
        let round = |values: Vec<(String, Vec<f64>)>| {
            values
                .into_iter()
                .map(|(name, v)| (name, v.into_iter().map(f64::round).collect()))
                .collect::<Vec<(String, Vec<f64>)>>()
        };
        assert_eq!(round(judgeable(&run, &run)), round(judgeable(&run, &back)));
    }
}

#[test]
fn what_distinguishes_experiments_of_one_name_survives_conversion() {
    for file in ["pytest_benchmark/5.3.1.json", "torchbench/results.jsonl"] {
        let run = fixture(file);
        let back = ingest::read(
            &ingest::export(&run, ExportFormat::GoogleBenchmark, NOW).bytes,
            Format::GoogleBenchmarkJson,
            "back",
        )
        .unwrap();
        let mut compared = 0;
        for (before, after) in run.benchmarks.iter().zip(&back.benchmarks) {
            assert_eq!(before.differing_axis(after), None);
            compared += before.axes().count();
            let mut other = after.clone();
            other.labels.iter_mut().for_each(|(_, value)| value.push('2'));
            assert_eq!(before.axes().count() > 0, before.differing_axis(&other).is_some());
        }
        assert!(compared > 0, "{file}");
    }
}

#[test]
fn no_foreign_file_says_how_a_benchmark_is_judged_or_what_it_was_called() {
    let reserved = r#"{\"BM\": {\"timer\": \"t\", \"judged-by\": \"outputs\", \"renamed-from\": \"slow\"}}"#;
    let google = format!(
        r#"{{"context": {{"benchgate_axes": "{reserved}"}}, "benchmarks": [{{"name": "BM", "run_type": "iteration",
        "iterations": 1, "real_time": 1, "cpu_time": 1, "time_unit": "ns"}}]}}"#
    );
    let run = super::read(&google).unwrap();
    assert_eq!(run.benchmarks[0].labels.keys().collect::<Vec<_>>(), ["timer"]);
    let torchbench = r#"{"model": {"model_name": "m"}, "experiment": {"accelerator": "cuda", "renamed-from": "slow"},
        "metrics": {"per_iter_time": [9, 9, 9, 1, 1]}}"#;
    assert!(!super::read(torchbench).unwrap().benchmarks[0].labels.contains_key("renamed-from"));
}

#[test]
fn several_processes_in_one_google_benchmark_file_are_said_to_be_lost() {
    let run = fixture("jmh/results.json");
    let written = ingest::export(&run, ExportFormat::GoogleBenchmark, NOW);
    insta::assert_snapshot!(written.lost.join("\n"), @"
    the format stores one process per file, so processes became repetitions in org.example.Matmul.multiply/avgt/n=256
    the format can't store these metrics: throughput
    ");
    assert_eq!(ingest::export(&run, ExportFormat::Csv, NOW).lost, Vec::<String>::new());
}

#[test]
fn a_summary_written_to_run_json_can_not_be_judged_as_if_it_had_been_measured_well() {
    let run = fixture("google_benchmark/aggregates-only.json");
    let written = ingest::export(&run, ExportFormat::RunJson, NOW);
    let back = ingest::read_detected(&written.bytes, "back").unwrap();
    let codes = super::codes(benchmark(&back, "BM_abs/process_time/real_time"));
    assert!(codes.contains(&LintCode::SingleRepetition), "{codes:?}");
}

#[test]
fn csv_has_one_line_for_each_value() {
    let run = fixture("google_benchmark/errored.json");
    let text = String::from_utf8(ingest::export(&run, ExportFormat::Csv, NOW).bytes).unwrap();
    insta::assert_snapshot!(text);
    let run = fixture("google_benchmark/abs.csv");
    insta::assert_snapshot!(String::from_utf8(ingest::export(&run, ExportFormat::Csv, NOW).bytes).unwrap());
}

#[test]
fn the_command_writes_the_file_whole_and_says_what_was_lost() {
    let world = World::new();
    world.write("jmh.json", std::fs::read(super::fixture_path("jmh/results.json")).unwrap());
    let outcome = world.run(["convert", "jmh.json", "out.json", "--to", "google-benchmark"]).expect_code(0);
    insta::assert_snapshot!(outcome.stderr, @"
    note: the format stores one process per file, so processes became repetitions in org.example.Matmul.multiply/avgt/n=256
    note: the format can't store these metrics: throughput
    wrote 4 benchmarks as google-benchmark to out.json
    ");
    let back = ingest::read_detected(world.read("out.json").as_bytes(), "out").unwrap();
    assert_eq!(back.origin.format, "google-benchmark-json");
    assert!(matches!(back.benchmarks[3].outcome, Outcome::Failed { .. }));
}

#[test]
fn the_command_reads_standard_input_and_tells_the_format_from_the_ending() {
    let world = World::new();
    let input = std::fs::read(super::fixture_path("google_benchmark/abs.console")).unwrap();
    world.run_with_input(["convert", "-", "out.csv"], &input).expect_code(0);
    assert!(world.read("out.csv").starts_with("benchmark,outcome,why,metric"));
    let outcome = world.run_with_input(["convert", "-", "out.xyz"], &input).expect_code(2);
    assert!(outcome.stderr.contains("--to"), "{}", outcome.stderr);
}

#[test]
fn an_unreadable_input_leaves_no_file_and_exits_with_21() {
    let world = World::new();
    world.write("bad.csv", std::fs::read(super::fixture_path("latency_csv/bad-time.csv")).unwrap());
    let outcome = world.run(["convert", "bad.csv", "out.json"]).expect_code(21);
    insta::assert_snapshot!(outcome.stderr, @"error: failed to read bad.csv as latency-csv, line 2: expected a time, `error` or `unsupported`");
    assert!(!world.work().join("out.json").exists());
    world.write("odd.txt", "nothing here\n");
    let outcome = world.run(["convert", "odd.txt", "out.json"]).expect_code(21);
    assert!(outcome.stderr.contains("--format-in"), "{}", outcome.stderr);
}

#[test]
fn a_name_that_a_spreadsheet_would_run_is_written_as_text() {
    let text = "Benchmark Time CPU Iterations\n=HYPERLINK(\"x\") 1.00 ns 1.00 ns 1\n";
    let run = ingest::read_detected(text.as_bytes(), "x").unwrap();
    let csv = String::from_utf8(ingest::export(&run, ExportFormat::Csv, NOW).bytes).unwrap();
    assert!(csv.contains("\"'=HYPERLINK(\"\"x\"\")\",ok"), "{csv}");
}

#[test]
fn a_hyperfine_file_is_written_in_every_format() {
    let world = World::new();
    let input = super::fixture_path("hyperfine/two-commands.json").to_str().unwrap().to_owned();
    let run = fixture("hyperfine/two-commands.json");
    for format in ["run-json", "results-jsonl", "google-benchmark"] {
        let outcome = world.run(["convert", &input, "out", "--to", format]).expect_code(0);
        // hyperfine states only the mean of the processor time, so there are no repetitions to write.
        let said = match format {
            "google-benchmark" => "the format can't store these metrics: cpu-time",
            _ => "only the mean of each summary is kept in 2 benchmarks",
        };
        assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
        let back = ingest::read_detected(world.read("out").as_bytes(), "back").unwrap();
        for (before, after) in run.benchmarks.iter().zip(&back.benchmarks) {
            assert!(after.outcome.is_ok(), "{format}: {after:?}");
            assert_eq!(after.metric("cpu-time").is_some(), format != "google-benchmark");
            let withheld = |lint: &Lint| lint.code.consequence() != Consequence::Note;
            assert_eq!(
                after.lints.iter().any(withheld),
                before.lints.iter().any(withheld),
                "{format}: {:?}",
                after.lints
            );
        }
    }
}

#[test]
fn a_refusal_recommends_a_format_only_where_it_keeps_the_evidence() {
    let world = World::new();
    let summaries = super::fixture_path("google_benchmark/aggregates-only.json").to_str().unwrap().to_owned();
    let outcome = world.run(["convert", &summaries, "out.json"]).expect_code(2);
    insta::assert_snapshot!(outcome.stderr.replace(&summaries, "FILE"), @"
    error: failed to write FILE as run-json: the format can't store the spread and the kind of the summaries of BM_abs/process_time/real_time
    hint: `--to google-benchmark` keeps it; `--lossy` leaves this information out; a comparison of such files may then pass although a comparison of the originals does not
    ");
    let mut run = fixture("google_benchmark/aggregates-only.json");
    assert_eq!(ingest::format_that_keeps(&run, NOW), Some(ExportFormat::GoogleBenchmark));
    // A rate can't be stored in rows of times, so its row would be a failed one.
    run.benchmarks.extend(fixture("jmh/results.json").benchmarks);
    assert_eq!(ingest::format_that_keeps(&run, NOW), None);
}

/// The console output of ten repetitions, rounded to three digits, with their mean and standard deviation.
fn console(times: [&str; 2], stddev: &str) -> String {
    let row = |name: &str, time: &str, count| format!("{name}  {time} ms  {time} ms  {count}\n");
    let repetitions: String = (0..10).map(|at| row("BM_a", times[at % 2], 100)).collect();
    let (mean, stddev) = (row("BM_a_mean", times[0], 10), row("BM_a_stddev", stddev, 10));
    format!("Benchmark  Time  CPU  Iterations\n{repetitions}{mean}{stddev}")
}

#[test]
fn a_converted_console_is_judged_as_the_console_is() {
    let world = World::new();
    world.write("base.txt", console(["1.00", "1.01"], "0.003"));
    world.write("head.txt", console(["1.11", "1.12"], "0.003"));
    let of_console = world.run(["compare", "base.txt", "head.txt", "--format", "json"]).json();
    for side in ["base", "head"] {
        world.run(["convert", &format!("{side}.txt"), &format!("{side}.json")]).expect_code(0);
    }
    let of_converted = world.run(["compare", "base.json", "head.json", "--format", "json"]).json();
    assert_eq!(of_converted["rows"], of_console["rows"]);
    let run: serde_json::Value = serde_json::from_str(&world.read("head.json")).unwrap();
    let process = &run["sides"][0]["benchmarks"][0]["processes"][0];
    let stated = process["stated_stddev"]["latency"].as_f64().unwrap();
    assert!((stated - 3000.0).abs() < 1e-6, "{process}");
    // A run.json is untrusted input.
    let wrong = world.read("head.json").replace("\"stated_stddev\": {", "\"stated_stddev\": {\"x\": 1,");
    world.write("wrong.json", wrong);
    world.run(["compare", "base.json", "wrong.json"]).expect_code(21);
}
