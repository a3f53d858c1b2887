//! The metric that decides about a benchmark: its time, or whatever it measures instead.

use benchgate::exit_code::ExitCode;
use benchgate::gate::{CompareOptions, Policy, Row, Waiver, compare};
use benchgate::model::{Artifact, Benchmark, LintCode, Metric, Series, Verdict};

use super::build::{judged, judged_by, paired, process, run, session, with};

const STEADY: &[f64] = &[100.0, 101.0, 99.0, 100.0, 100.5];

#[test]
fn a_file_whose_metrics_are_not_judged_never_passes() {
    let of = |samples: &[f64]| {
        let series = Series::Processes(vec![process(samples, None)]);
        run(vec![with("a", Metric::PEAK_HOST_MEMORY, series)])
    };
    let mut policy = Policy::default();
    let memory = policy.metrics.iter_mut().find(|(name, _)| *name == Metric::PEAK_HOST_MEMORY.name);
    // The suite's own rule says that memory does not decide.
    memory.unwrap().1.tolerance = 0.5;
    let comparison = judged_by(&policy, &of(STEADY), &of(STEADY));
    assert_eq!((comparison.verdict, comparison.exit_code), (Verdict::Error, ExitCode::Error));
    assert!(comparison.notes.iter().any(|note| note.contains("nothing was judged")), "{comparison:?}");
}

/// A benchmark with one process of these steady values, multiplied by `factor`.
fn of_values(name: &str, metric: Metric, factor: f64) -> Benchmark {
    let values: Vec<f64> = STEADY.iter().map(|value| value * factor).collect();
    with(name, metric, Series::Processes(vec![process(&values, None)]))
}

/// Compares a benchmark that got worse, next to one whose time did not change; the comparison must not pass. Returns
/// its row.
fn next_to_a_time(base: Benchmark, head: Benchmark) -> Row {
    let name = base.name.clone();
    let (time, same_time) = paired("time", &[100.0; 12], &[100.0; 12], 0.0001);
    let comparison = judged(&session(vec![time, base]), &session(vec![same_time, head]));
    assert_ne!(comparison.exit_code, ExitCode::Pass);
    comparison.rows.into_iter().find(|row| row.benchmark == name).unwrap()
}

/// asv has benchmarks of memory next to those of time.
#[test]
fn a_benchmark_that_measures_nothing_but_memory_is_judged_by_it() {
    let of = |factor| of_values("memory", Metric::PEAK_HOST_MEMORY, factor);
    let row = next_to_a_time(of(1.0), of(2.0));
    assert!(row.policy.as_ref().unwrap().fatal, "{row:?}");
}

fn artifact(name: &str) -> Artifact {
    Artifact { vmfb_sha256: name.repeat(64), execution_sha256: name.repeat(64), workload: None }
}

#[test]
fn a_compiled_module_that_only_head_names_does_not_leave_a_throughput_unjudged() {
    let of = |factor| of_values("rate", Metric::THROUGHPUT, factor);
    let row = next_to_a_time(of(1.0), Benchmark { artifact: Some(artifact("b")), ..of(0.5) });
    assert!(row.policy.as_ref().is_none_or(|policy| policy.fatal), "{row:?}");
}

#[test]
fn a_module_that_ran_and_was_not_timed_does_not_pass_next_to_another_one() {
    let untimed = |name: &str| Benchmark {
        artifact: Some(artifact(name)),
        ..with("untimed", Metric::VMFB_SIZE, Series::Exact(8.0))
    };
    let (base, head) = paired("time", &[100.0; 12], &[100.0; 12], 0.0001);
    let comparison = judged(&session(vec![base, untimed("a")]), &session(vec![head, untimed("b")]));
    assert_eq!((comparison.verdict, comparison.exit_code), (Verdict::Error, ExitCode::Error));
    // The row does not pass either if only base was not timed.
    let (base, head) = paired("time", &[100.0; 12], &[100.0; 12], 0.0001);
    let (_, timed) = paired("untimed", &[100.0; 12], &[1000.0; 12], 0.0001);
    let timed = Benchmark { artifact: Some(artifact("b")), ..timed };
    let comparison = judged(&session(vec![base, untimed("a")]), &session(vec![head, timed]));
    assert_eq!(comparison.exit_code, ExitCode::Error);
}

#[test]
fn a_waiver_that_matches_no_benchmark_of_the_whole_suite_is_noted() {
    let both = run(vec![of_values("a", Metric::LATENCY, 1.0)]);
    let noted = |benchmark: &str, whole_suite: bool| {
        let waiver = Waiver {
            benchmark: benchmark.to_owned(),
            metric: None,
            owner: "kim".to_owned(),
            reason: "known".to_owned(),
            expires: "2026-11-20".to_owned(),
        };
        let policy = Policy { waivers: vec![waiver], ..Policy::default() };
        let options = CompareOptions { whole_suite, ..CompareOptions::default() };
        let comparison = compare(&both, &both, &policy, &options);
        comparison.lints.iter().any(|lint| lint.code == LintCode::UnmatchedWaiver)
    };
    assert!(noted("b*", true));
    assert!(!noted("b*", false) && !noted("a*", true) && !noted("*", true));
}
