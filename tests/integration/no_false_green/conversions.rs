//! `benchgate convert`: if a comparison of the original files does not pass, one of the converted files does
//! not pass either.

use benchgate::gate::{self, CompareOptions, Comparison, Policy};
use benchgate::ingest::{self, ExportFormat};
use benchgate::model::{
    Benchmark, BenchmarkName, Consequence, Lint, LintCode, Metric, MetricSeries, OutputCheck, Process, Run,
    Series, Testbed, Verdict, Verification, VerifyCode,
};

use crate::harness::World;
use crate::ingest::fixtures::readable_fixtures;

const NOW: &str = "2026-11-20T12:00:00Z";
/// The formats that `compare` reads.
const FORMATS: [ExportFormat; 3] =
    [ExportFormat::RunJson, ExportFormat::GoogleBenchmark, ExportFormat::ResultsJsonl];
/// With this many files per side, equal programs pass.
const FILES: usize = 30;

/// A repetition of the run in which all samples are a little faster or slower, by the same factor.
fn again(run: &Run, number: usize) -> Run {
    let factor = 1.0 + 0.002 * ((number * 7919 % 101) as f64 / 50.0 - 1.0);
    let mut run = run.clone();
    for series in run.benchmarks.iter_mut().flat_map(|benchmark| &mut benchmark.metrics) {
        match &mut series.series {
            Series::Processes(processes) => {
                processes.iter_mut().flat_map(|it| &mut it.samples).for_each(|sample| *sample *= factor);
            }
            Series::Summaries(summaries) => {
                for summary in summaries {
                    for value in [&mut summary.mean, &mut summary.median, &mut summary.min, &mut summary.max]
                    {
                        *value = value.map(|value| value * factor);
                    }
                }
            }
            Series::Exact(_) => {}
        }
    }
    run
}

/// Sixty runs, which belong to base and head alternately.
fn sessions(run: &Run) -> [Vec<Run>; 2] {
    [0, 1].map(|side| (0..FILES).map(|at| again(run, 2 * at + side)).collect())
}

/// The runs after they were written by `convert` and read by `compare`; `None` if a conversion loses
/// evidence.
fn converted(runs: &[Run], format: ExportFormat) -> Option<Vec<Run>> {
    let convert = |run: &Run| {
        let mut run = run.clone();
        gate::record_unfit(&mut run);
        let written = ingest::export(&run, format, NOW);
        let mut back = ingest::read_detected(&written.bytes, &run.origin.label).unwrap();
        // Several files of one side are read without their session.
        back.session = None;
        written.evidence_lost.is_empty().then_some(back)
    };
    runs.iter().map(convert).collect()
}

/// Returns for each benchmark of the converted files whether it would pass.
fn converted_greens([base, head]: &[Vec<Run>; 2], format: ExportFormat) -> Option<Vec<bool>> {
    Some(greens(&compare([converted(base, format)?, converted(head, format)?])))
}

fn compare([base, head]: [Vec<Run>; 2]) -> (Comparison, Vec<BenchmarkName>) {
    let [base, head] = [base, head].map(|runs| ingest::join(runs).unwrap().unwrap());
    let names = head.benchmarks.iter().map(|benchmark| benchmark.name.clone()).collect();
    (gate::compare(&base, &head, &Policy::default(), &CompareOptions::default()), names)
}

/// Returns for each benchmark whether it would pass alone.
fn greens((comparison, names): &(Comparison, Vec<BenchmarkName>)) -> Vec<bool> {
    let is_green = |name: &BenchmarkName| {
        let mut rows = comparison.rows.iter().filter(|row| row.fatal && row.benchmark == *name).peekable();
        rows.peek().is_some() && rows.all(|row| matches!(row.verdict, Verdict::Pass | Verdict::Improved))
    };
    names.iter().map(is_green).collect()
}

#[test]
fn no_conversion_of_any_format_turns_a_benchmark_green() {
    let mut found = Vec::new();
    let (mut before, mut after) = (0, 0);
    for (file, run) in readable_fixtures() {
        let sessions = sessions(&run);
        let original = compare(sessions.clone());
        let original = (greens(&original), original.1);
        before += original.0.iter().filter(|green| **green).count();
        for format in FORMATS {
            let Some(back) = converted_greens(&sessions, format) else { continue };
            assert_eq!(back.len(), original.0.len(), "{file} as {format}");
            after += back.iter().filter(|green| **green).count();
            for ((was, is), name) in original.0.iter().zip(back).zip(&original.1) {
                if is && !was {
                    found.push(format!("{file} as {format}: {name}"));
                }
            }
        }
    }
    assert!(found.is_empty(), "{} false greens:\n{}", found.len(), found.join("\n"));
    assert!(before > 70 && after > 140, "{before} originals and {after} conversions are green");
}

fn measured() -> Run {
    let mut benchmark = Benchmark::new("BM_a");
    let process = Process { samples: vec![100.0, 100.2, 99.9, 100.1], ..Process::default() };
    let series = Series::Processes(vec![process]);
    benchmark.metrics.push(MetricSeries { metric: Metric::LATENCY, series });
    let mut run = Run { benchmarks: vec![benchmark], ..Run::default() };
    run.context.num_cpus = Some(8);
    run.context.load_avg = vec![0.1; 3];
    run.context.host_name = Some("h".to_owned());
    run
}

fn testbed(id: &str) -> Option<Testbed> {
    Some(Testbed {
        id: id.to_owned(),
        facts: [("cpu".to_owned(), id.to_owned())].into(),
        ..Testbed::default()
    })
}

/// Runs that prove nothing for each possible reason, with the names of the reasons.
fn weak_runs() -> Vec<(String, Run)> {
    let mut all = Vec::new();
    let mut add = |name: String, change: &dyn Fn(&mut Run)| {
        let mut run = measured();
        change(&mut run);
        all.push((name, run));
    };
    for code in LintCode::ALL.iter().copied().filter(|code| code.consequence() != Consequence::Note) {
        add(format!("{code} of a row"), &|run| run.benchmarks[0].lints.push(Lint::new(code, "seen")));
        add(format!("{code} of the run"), &|run| run.lints.push(Lint::new(code, "seen")));
    }
    for code in VerifyCode::ALL {
        let verification = |code| Some(Verification::bare(code, None));
        add(format!("verification {code}"), &|run| run.benchmarks[0].verification = verification(code));
        let output = OutputCheck { index: 0, code, why: None, divergence: None };
        add(format!("an output {code}"), &|run| {
            run.benchmarks[0].verification = verification(VerifyCode::Pass)
                .map(|total| Verification { outputs: vec![output.clone()], ..total });
        });
        add(format!("against base {code}"), &|run| {
            run.benchmarks[0].verification = verification(VerifyCode::VerifierSkipped)
                .map(|total| Verification { against_base: vec![output.clone()], ..total });
        });
    }
    add("overloaded".to_owned(), &|run| run.context.load_avg = vec![8.0; 3]);
    add("other processors".to_owned(), &|run| run.context.num_cpus = Some(2));
    add("other testbed".to_owned(), &|run| run.testbed = testbed("b"));
    for value in [0.0, f64::NAN, f64::INFINITY, 1e300] {
        add(format!("a time of {value}"), &|run| {
            let Series::Processes(processes) = &mut run.benchmarks[0].metrics[0].series else { return };
            processes[0].samples[2] = value;
        });
    }
    all
}

#[test]
fn what_a_run_says_against_itself_survives_every_conversion() {
    let mut good = measured();
    good.testbed = testbed("a");
    let control = sessions(&good);
    assert_eq!(greens(&compare(control.clone())), [true]);
    let mut found = Vec::new();
    let mut cases = 0;
    for format in FORMATS {
        assert_eq!(converted_greens(&control, format), Some(vec![true]), "{format}");
        for (name, mut bad) in weak_runs() {
            bad.testbed = bad.testbed.or_else(|| testbed("a"));
            for side in [0, 1] {
                let mut changed = control.clone();
                changed[side] = sessions(&bad)[side].clone();
                if greens(&compare(changed.clone())) == [true] {
                    continue;
                }
                cases += 1;
                if converted_greens(&changed, format) == Some(vec![true]) {
                    found.push(format!("{name} on side {side} as {format}"));
                }
            }
        }
    }
    assert!(found.is_empty(), "{} false greens:\n{}", found.len(), found.join("\n"));
    assert!(cases > 150, "only {cases} cases");
}

#[test]
fn files_of_one_name_are_not_converted_to_one_session() {
    let (mut one, mut two) = (measured(), measured());
    two.benchmarks[0].lints.push(Lint::new(LintCode::HighCv, "seen"));
    for run in [&mut one, &mut two] {
        run.origin.label = "-".to_owned();
    }
    let session = |run: &Run| {
        let written = ingest::export(run, ExportFormat::RunJson, NOW);
        ingest::read_detected(&written.bytes, "x").unwrap().session
    };
    assert_ne!(session(&one), session(&two));
    assert_eq!(session(&one), session(&one));
}

#[test]
fn a_metric_that_a_format_would_read_in_the_wrong_direction_is_left_out_and_named() {
    let mut run = measured();
    let series = run.benchmarks[0].metrics[0].series.clone();
    run.benchmarks[0].metrics.push(MetricSeries { metric: Metric::THROUGHPUT, series });
    let written = ingest::export(&run, ExportFormat::ResultsJsonl, NOW);
    assert_eq!(written.lost, ["the format can't store these metrics: items-per-second"]);
    let back = ingest::read_detected(&written.bytes, "x").unwrap();
    assert!(back.benchmarks[0].metric("items-per-second").is_none());
}

#[test]
fn evidence_that_only_run_json_holds_is_not_left_out_unasked() {
    let world = World::new();
    world.write("run.json", include_str!("../../fixtures/record/run-v1.json"));
    for format in ["google-benchmark", "results-jsonl"] {
        let refused =
            world.run(["convert", "run.json", "out", "--side", "base", "--to", format]).expect_code(2);
        assert!(refused.stderr.contains("what was executed, the pairing of processes"), "{}", refused.stderr);
        assert!(refused.stderr.contains("--lossy"), "{}", refused.stderr);
        assert!(!world.work().join("out").exists());
        world.run(["convert", "run.json", "out", "--side", "base", "--to", format, "--lossy"]).expect_code(0);
        std::fs::remove_file(world.work().join("out")).unwrap();
    }
    for format in ["run-json", "csv"] {
        world.run(["convert", "run.json", "out", "--side", "base", "--to", format]).expect_code(0);
    }
    world.write("list.json", r#"[{"name": "a", "unit": "ms", "value": 1.5, "extra": "accuracy: 0.93"}]"#);
    let convert = ["convert", "list.json", "out", "--format-in", "custom-smaller-is-better", "--to"];
    let refused = world.run(convert.into_iter().chain(["google-benchmark"])).expect_code(2);
    assert!(refused.stderr.contains("how right the results are (accuracy)"), "{}", refused.stderr);
    world.run(convert.into_iter().chain(["run-json"])).expect_code(0);
}

#[test]
fn rates_and_facts_that_a_format_does_not_show_are_not_left_out_unasked() {
    let world = World::new();
    let google = |fields: &str| {
        let row = |at: usize| {
            format!(
                r#"{{"name": "a", "run_name": "a", "run_type": "iteration", "repetitions": 2, "repetition_index": {at},
                "iterations": 10, "real_time": 10{at}, "cpu_time": 10{at}, "time_unit": "ns"{fields}}}"#
            )
        };
        format!(r#"{{"context": {{}}, "benchmarks": [{}, {}]}}"#, row(0), row(1))
    };
    let libtest = |rate: &str| {
        format!(
            "running 1 test\ntest a ... bench:   1,200 ns/iter (+/- 12){rate}\n\ntest result: ok. 1 measured\n"
        )
    };
    let [run_json, google_benchmark, jsonl] = ["run-json", "google-benchmark", "results-jsonl"];
    let all = [run_json, google_benchmark, jsonl];
    for (input, refusing) in [
        (google(""), &[][..]),
        (google(r#", "items_per_second": 1e7"#), &[jsonl]),
        (google(r#", "label": "sum=1234""#), &[google_benchmark]),
        (google(r#", "label": "f32""#), &[]),
        (libtest(""), &[]),
        (libtest(" = 833 MB/s"), &all),
    ] {
        world.write("in", &input);
        for format in all {
            let convert = world.run(["convert", "in", "out", "--to", format]);
            let code = if refusing.contains(&format) { 2 } else { 0 };
            assert_eq!(convert.code, Some(code), "{format}: {input}\n{}", convert.said());
            world.run(["convert", "in", "out", "--to", format, "--lossy"]).expect_code(0);
        }
    }
}
