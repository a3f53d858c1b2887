//! A file that contradicts itself can't be judged. No file of a real tool contradicts itself.

use benchgate::model::LintCode;

use super::fixtures::readable_fixtures;
use super::{codes, read};

fn contradicts(text: &str) -> bool {
    let run = read(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    codes(&run.benchmarks[0]).contains(&LintCode::Contradictory)
}

/// Checks that the text is consistent, and that it contradicts itself after each replacement.
fn check(text: &str, replacements: &[(&str, &str)]) {
    assert!(!contradicts(text), "{text}");
    for (from, to) in replacements {
        assert!(text.contains(from), "{from}");
        assert!(contradicts(&text.replacen(from, to, 1)), "{from} to {to}");
    }
}

#[test]
fn no_file_of_a_real_tool_contradicts_itself() {
    for (name, run) in readable_fixtures() {
        for benchmark in &run.benchmarks {
            assert!(!codes(benchmark).contains(&LintCode::Contradictory), "{name}: {:?}", benchmark.lints);
        }
    }
}

#[test]
fn google_benchmark_states_iterations_repetitions_threads_and_the_mean() {
    let row = |index: u32, time: &str| {
        format!(
            "{{\"name\": \"a\", \"run_type\": \"iteration\", \"repetitions\": 3, \"repetition_index\": {index}, \
             \"threads\": 1, \"iterations\": 10, \"real_time\": {time}, \"time_unit\": \"ns\"}}"
        )
    };
    let mean = "{\"name\": \"a_mean\", \"run_name\": \"a\", \"run_type\": \"aggregate\", \"aggregate_name\": \"mean\", \
        \"repetitions\": 3, \"iterations\": 3, \"real_time\": 100.5, \"time_unit\": \"ns\"}";
    let rows = [row(0, "100.1"), row(1, "100.4"), row(2, "101.0"), mean.to_owned()].join(", ");
    check(
        &format!("{{\"benchmarks\": [{rows}]}}"),
        &[
            ("\"iterations\": 10", "\"iterations\": 0"),
            ("\"iterations\": 10", "\"iterations\": -1"),
            ("\"threads\": 1", "\"threads\": 2"),
            ("\"repetitions\": 3", "\"repetitions\": 5"),
            (&row(1, "100.4"), &row(1, "400.4")),
            (&format!("{}, ", row(2, "101.0")), ""),
            ("100.5", "200.5"),
        ],
    );
    let csv = "name,iterations,real_time,cpu_time,time_unit\n\"a\",10,100.1,1,ns\n\"a\",10,100.4,1,ns\n\"a\",10,101,1,ns\n\
        \"a_mean\",3,100.5,1,ns\n\"a_median\",3,100.4,1,ns\n\"a_stddev\",3,0.4,0,ns\n\"a_cv\",3,0.01,0,\n";
    check(
        csv,
        &[
            ("\"a\",10,101,1,ns\n", ""),
            ("\"a\",10", "\"a\",0"),
            ("100.5", "200.5"),
            ("median\",3,100.4", "median\",3,90.4"),
            ("0.4,0,ns", "9.4,0,ns"),
        ],
    );
}

#[test]
fn every_summary_of_google_benchmark_agrees_with_its_repetitions() {
    let row = |kind: &str, of: &str, real: &str, cpu: &str| {
        format!(
            "{{\"name\": \"a{of}\", \"run_name\": \"a\", {kind}, \"repetitions\": 4, \"threads\": 1, \"iterations\": 10, \
             \"real_time\": {real}, \"cpu_time\": {cpu}, \"time_unit\": \"us\"}}"
        )
    };
    let times = [("100.1", "50.1"), ("100.4", "50.3"), ("101.0", "50.2"), ("104.0", "60.1")];
    let repetitions = (0..).zip(times).map(|(index, (real, cpu))| {
        row(&format!("\"run_type\": \"iteration\", \"repetition_index\": {index}"), "", real, cpu)
    });
    let summaries = [
        ("mean", "101.375", "52.675"),
        ("median", "100.7", "50.25"),
        ("stddev", "1.7914", "4.951"),
        ("cv", "0.0177", "0.094"),
        ("min", "100.1", "50.1"),
        ("max", "104.0", "60.1"),
        ("p90", "1.5", "1.5"),
    ];
    let summaries = summaries.map(|(name, real, cpu)| {
        row(
            &format!("\"run_type\": \"aggregate\", \"aggregate_name\": \"{name}\""),
            &format!("_{name}"),
            real,
            cpu,
        )
    });
    let rows: Vec<String> = repetitions.chain(summaries).collect();
    check(
        &format!("{{\"benchmarks\": [{}]}}", rows.join(", ")),
        &[
            ("101.375", "121.375"),
            ("52.675", "12.675"),
            ("100.7", "90.7"),
            ("50.25", "60.25"),
            ("1.7914", "7.7914"),
            ("4.951", "0.951"),
            // The first minimum in the file belongs to a single repetition, so more of the line is replaced.
            (
                "\"a_min\", \"run_name\": \"a\", \"run_type\": \"aggregate\", \"aggregate_name\": \"min\", \"repetitions\": 4, \"threads\": 1, \"iterations\": 10, \"real_time\": 100.1",
                "\"a_min\", \"run_name\": \"a\", \"run_type\": \"aggregate\", \"aggregate_name\": \"min\", \"repetitions\": 4, \"threads\": 1, \"iterations\": 10, \"real_time\": 80.1",
            ),
            (
                "\"real_time\": 104.0, \"cpu_time\": 60.1, \"time_unit\": \"us\"}, {\"name\": \"a_p90",
                "\"real_time\": 124.0, \"cpu_time\": 60.1, \"time_unit\": \"us\"}, {\"name\": \"a_p90",
            ),
        ],
    );
    let mut earlier = rows.clone();
    earlier.rotate_left(4);
    let run = read(&format!("{{\"benchmarks\": [{}]}}", earlier.join(", "))).unwrap();
    assert!(codes(&run.benchmarks[0]).contains(&LintCode::DuplicateName));
}

#[test]
fn hyperfine_states_the_mean_and_an_exit_code_for_each_time() {
    let text =
        "{\"results\": [{\"command\": \"a\", \"mean\": 2, \"times\": [1, 2, 3], \"exit_codes\": [0, 0, 0]}]}";
    check(text, &[("\"mean\": 2", "\"mean\": 4"), ("[0, 0, 0]", "[0]"), ("[1, 2, 3]", "[2, 2]")]);
}

/// Each statistic is changed by more than its rounding allows.
#[test]
fn every_statistic_of_every_tool_agrees_with_its_samples() {
    let hyperfine = "{\"results\": [{\"command\": \"a\", \"mean\": 1.03, \"stddev\": 0.0216, \"median\": 1.025, \
        \"min\": 1.01, \"max\": 1.06, \"times\": [1.02, 1.01, 1.06, 1.03], \"exit_codes\": [0, 0, 0, 0]}]}";
    let pytest = "{\"machine_info\": {}, \"benchmarks\": [{\"name\": \"a\", \"stats\": {\"rounds\": 4, \"mean\": 1.03, \
        \"stddev\": 0.0216, \"median\": 1.025, \"min\": 1.01, \"max\": 1.06, \"q1\": 1.015, \"q3\": 1.045, \
        \"total\": 4.12, \"data\": [1.02, 1.01, 1.06, 1.03]}}]}";
    let jmh = "[{\"jmhVersion\": \"1.37\", \"benchmark\": \"a\", \"mode\": \"avgt\", \"threads\": 1, \"forks\": 1, \
        \"measurementIterations\": 4, \"primaryMetric\": {\"score\": 1.03, \"scoreUnit\": \"us/op\", \
        \"scorePercentiles\": {\"0.0\": 1.01, \"50.0\": 1.025, \"100.0\": 1.06}, \
        \"rawData\": [[1.02, 1.01, 1.06, 1.03]]}}]";
    let compiler = "{\"model\": \"m\", \"device\": \"d\", \"results\": [{\"backend\": \"a\", \"mean_ms\": 1.03, \
        \"std_ms\": 0.0216, \"median_ms\": 1.025, \"times_ms\": [1.02, 1.01, 1.06, 1.03]}]}";
    let asv = "{\"version\": 2, \"commit_hash\": \"1\", \"result_columns\": [\"result\", \"stats_q_25\", \
        \"stats_q_75\", \"samples\"], \"results\": {\"t.time_a\": [[1.0225], [1.0175], [1.0375], [[1.02, 1.01, 1.06, 1.03]]]}}";
    for text in [hyperfine, pytest, jmh, compiler, asv] {
        // One sample is changed, and one is removed.
        check(text, &[("[1.02,", "[1.2,"), ("1.01, 1.06", "1.06")]);
        for (from, wrong) in [
            ("1.03,", "1.04,"),
            ("1.025", "1.055"),
            ("1.0225", "1.055"),
            ("0.0216", "0.0516"),
            (": 1.01,", ": 1.001,"),
            (": 1.06", ": 1.07"),
            ("1.015", "1.07"),
            ("1.045", "1.001"),
            ("4.12", "4.2"),
        ] {
            if text.contains(from) {
                check(text, &[(from, wrong)]);
            }
        }
    }
    // A standard deviation that divides by n instead of n − 1 is accepted too.
    assert!(!contradicts(&compiler.replace("0.0216", "0.0187")));
}

#[test]
fn a_statistic_that_is_printed_with_few_digits_contradicts_nothing() {
    let hyperfine = |mean: &str, stddev: &str, times: &str| {
        format!(
            "{{\"results\": [{{\"command\": \"a\", \"mean\": {mean}, \"stddev\": {stddev}, \"times\": [{times}]}}]}}"
        )
    };
    for (mean, stddev, times) in [
        ("1.0", "0.0", "1.0412, 1.0388, 1.0456"),
        ("12", "0.4", "12.41, 12.02, 11.55"),
        ("0.0123", "1.7e-4", "0.012134, 0.012288, 0.012481"),
        // The samples are rounded, but their statistics are exact.
        ("0.14733333333333332", "0.0068068592855540463", "0.15, 0.14, 0.15"),
        ("84.46666666666667", "0.1527525231651947", "84.3, 84.6, 84.5"),
        ("101.23", "1.1672", "99.9, 101.8, 102.0"),
    ] {
        assert!(!contradicts(&hyperfine(mean, stddev, times)), "{mean} {stddev} {times}");
    }
}

#[test]
fn jmh_states_the_score_forks_and_iterations() {
    let text = "[{\"jmhVersion\": \"1.37\", \"benchmark\": \"a\", \"mode\": \"avgt\", \"threads\": 1, \"forks\": 2, \
        \"measurementIterations\": 3, \"primaryMetric\": {\"score\": 2, \"scoreUnit\": \"us/op\", \
        \"rawData\": [[1, 2, 3], [1, 2, 3]]}}]";
    check(
        text,
        &[
            ("\"score\": 2", "\"score\": 3"),
            ("[[1, 2, 3], ", "["),
            ("[[1, 2, 3]", "[[2]"),
            ("[[1, 2, 3]", "[[]"),
        ],
    );
    assert!(!contradicts(&text.replacen("\"forks\": 2", "\"forks\": 0", 1).replacen("[[1, 2, 3], ", "[", 1)));
}

#[test]
fn asv_states_the_median_and_how_many_samples_there_are() {
    let text = "{\"version\": 2, \"commit_hash\": \"1\", \"result_columns\": [\"result\", \"stats_repeat\", \"samples\"], \
        \"results\": {\"t.time_a\": [[0.02], [3], [[0.01, 0.02, 0.04]]]}}";
    check(text, &[("[0.02]", "[0.03]"), ("[3]", "[4]"), ("[0.01, ", "[")]);
}

#[test]
fn torchbench_states_totals_of_its_iterations() {
    let text = "{\"model\": {\"model_name\": \"m\"}, \"experiment\": {}, \"iterations_per_run\": 2, \"metrics\": \
        {\"total_time\": [2, 2, 2, 2, 2], \"per_iter_time\": [1, 1, 1, 1, 1]}}\n";
    check(
        text,
        &[
            ("\"iterations_per_run\": 2", "\"iterations_per_run\": 1"),
            ("[2, 2, ", "[2, 9, "),
            ("[2, 2, ", "[2, "),
        ],
    );
}

#[test]
fn pytest_benchmark_states_rounds_and_their_mean() {
    let text = "{\"machine_info\": {}, \"benchmarks\": [{\"name\": \"a\", \"stats\": {\"rounds\": 3, \"mean\": 2, \"data\": [1, 2, 3]}}]}";
    check(
        text,
        &[
            ("\"rounds\": 3", "\"rounds\": 5"),
            ("\"mean\": 2", "\"mean\": 4"),
            ("[1, 2, 3]", "[2, 2]"),
            // The statistics belong to rounds that the file lacks.
            ("[1, 2, 3]", "[]"),
        ],
    );
}

#[test]
fn a_mean_is_within_the_extremes() {
    let text = "{\"machine_info\": {}, \"benchmarks\": [{\"name\": \"a\", \"stats\": {\"mean\": 2, \"min\": 1, \"max\": 3}}]}";
    check(text, &[("\"mean\": 2", "\"mean\": 4"), ("\"min\": 1", "\"min\": 2.5")]);
}

#[test]
fn statistics_without_samples_agree_with_each_other() {
    let pytest = "{\"machine_info\": {}, \"benchmarks\": [{\"name\": \"a\", \"stats\": {\"rounds\": 9, \"mean\": 1.03, \
        \"stddev\": 0.021, \"median\": 1.025, \"min\": 1.01, \"max\": 1.06, \"q1\": 1.015, \"q3\": 1.045}}]}";
    check(
        pytest,
        &[
            ("1.03,", "1.07,"),
            ("1.025", "1.005"),
            ("1.015", "1.03"),
            ("0.021", "0.091"),
            ("0.021", "0.001"),
            ("\"min\": 1.01", "\"min\": 1.04"),
        ],
    );
    let google = "name,iterations,real_time,cpu_time,time_unit\n\"a_mean\",9,100.5,1,ns\n\"a_median\",9,100.4,1,ns\n\
        \"a_stddev\",9,0.4,0,ns\n\"a_cv\",9,0.004,0,\n";
    check(google, &[("100.5", "102.5"), ("100.4", "90.4")]);
}

#[test]
fn the_harness_of_cargo_bench_counts_its_results() {
    let text = "running 2 tests\ntest a ... bench:  1,148 ns/iter (+/- 11)\ntest b ... bench:  2,148 ns/iter (+/- 11)\n\n\
        test result: ok. 0 passed; 0 failed; 0 ignored; 2 measured; 0 filtered out; finished in 1.23s\n\n\
        running 1 test\ntest c ... ignored\n\n\
        test result: ok. 0 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
    let is_cut =
        |text: &str| read(text).unwrap().lints.iter().any(|lint| lint.code == LintCode::TruncatedInput);
    assert!(!is_cut(text));
    assert!(is_cut(&text.replacen("test b ... bench:  2,148 ns/iter (+/- 11)\n", "", 1)));
}

#[test]
fn go_never_runs_a_benchmark_for_no_iterations() {
    assert!(read("BenchmarkA-8 0 10 ns/op\nBenchmarkB-8 1 10 ns/op\n").is_err());
}
