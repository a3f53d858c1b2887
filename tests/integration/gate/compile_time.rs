//! The compile time is a property of the compiler, so equal modules prove nothing about it. If it is gating,
//! it is judged or refused.

use benchgate::gate::{
    CompareOptions, Expected, Method, Policy, Reason, Row, compare_untrusted, open_compile_times, open_rows,
};
use benchgate::model::{Artifact, Benchmark, BenchmarkName, Metric, MetricSeries, Run, Series, Verdict};

use super::build::{judged_by, measured, process, run, session};

const SAMPLES: [f64; 4] = [100.0, 101.0, 100.5, 100.2];
const SECOND: f64 = 1e9;

/// A benchmark with the same module on every side, whose compilations took these seconds.
fn compiled(seconds: &[f64]) -> Benchmark {
    let mut benchmark = measured("a", &SAMPLES);
    benchmark.artifact = Some(Artifact {
        vmfb_sha256: "module".to_owned(),
        execution_sha256: "same".to_owned(),
        workload: None,
    });
    if !seconds.is_empty() {
        let processes = seconds.iter().map(|seconds| process(&[seconds * SECOND], None)).collect();
        benchmark
            .metrics
            .push(MetricSeries { metric: Metric::COMPILE_TIME, series: Series::Processes(processes) });
    }
    benchmark
}

fn policy(fatal: bool) -> Policy {
    let mut policy = Policy::default();
    let (_, rule) = policy.metrics.iter_mut().find(|(name, _)| *name == Metric::COMPILE_TIME.name).unwrap();
    rule.fatal = fatal;
    policy
}

fn row(fatal: bool, base: &[f64], head: &[f64]) -> Row {
    of_runs(&policy(fatal), &run(vec![compiled(base)]), &run(vec![compiled(head)]))
}

fn of_runs(policy: &Policy, base: &Run, head: &Run) -> Row {
    let comparison = judged_by(policy, base, head);
    let is_compile_time = |row: &&Row| row.metric.as_ref().is_some_and(|it| *it == Metric::COMPILE_TIME);
    let rows: Vec<&Row> = comparison.rows.iter().filter(is_compile_time).collect();
    assert_eq!(rows.len(), 1, "{:#?}", comparison.rows);
    rows[0].clone()
}

#[test]
fn equal_modules_are_judged_by_the_time_they_took() {
    for (head, verdict) in [(2.0, Verdict::Pass), (6.0, Verdict::Regressed)] {
        let row =
            row(true, &[2.0, 2.02, 1.98, 2.01, 1.99], &[1.0, 1.01, 0.99, 1.005, 0.995].map(|x| x * head));
        assert_eq!(row.verdict, verdict, "{head} s: {:?}", row.reason);
        let estimate = row.estimate.unwrap();
        assert_eq!(estimate.method, Method::Unpaired);
        let shown = row.typical.head.unwrap() / row.typical.base.unwrap();
        assert!((shown - estimate.ratio).abs() < 1e-9, "{shown}");
    }
    let jitter = row(false, &[2.0], &[3.2]);
    assert!(matches!(jitter.verdict, Verdict::Inconclusive | Verdict::Regressed) && !jitter.fatal);
}

#[test]
fn a_time_that_decides_and_was_not_taken_is_refused() {
    for (base, head) in [(&[][..], &[2.0][..]), (&[2.0], &[]), (&[], &[])] {
        let row = row(true, base, head);
        assert_eq!((row.verdict, row.fatal), (Verdict::Inconclusive, true));
        assert!(matches!(row.reason, Reason::TooLittle(_)), "{:?}", row.reason);
    }
}

/// Paired compilations on a host whose speed varies by a factor of three meanwhile. Head's take `ratio` times
/// as long as base's, with some jitter.
fn in_pairs(pairs: u32, ratio: f64, jitter: f64) -> [Run; 2] {
    [1.0, ratio].map(|ratio| {
        let head = ratio != 1.0;
        let compilation = |pair: u32| {
            let host = 2.0 + (f64::from(pair) * 0.7).sin();
            let jitter = 1.0 + jitter * (f64::from(pair * 2 + u32::from(head)) * 1.9).cos();
            process(&[host * jitter * ratio * SECOND], Some((pair, u8::from(head))))
        };
        let mut benchmark = compiled(&[]);
        let series = Series::Processes((0..pairs).map(compilation).collect());
        benchmark.metrics.push(MetricSeries { metric: Metric::COMPILE_TIME, series });
        session(vec![benchmark])
    })
}

#[test]
fn compilations_in_pairs_are_judged_by_their_pairs() {
    for (ratio, verdict) in [(1.02, Verdict::Pass), (1.9, Verdict::Regressed), (0.5, Verdict::Improved)] {
        let [base, head] = in_pairs(12, ratio, 0.03);
        let row = of_runs(&policy(true), &base, &head);
        assert_eq!(row.verdict, verdict, "{ratio}: {:?} {:?}", row.reason, row.estimate);
        assert_eq!(row.estimate.unwrap().method, Method::Paired);
    }
}

#[test]
fn more_pairs_are_wanted_until_the_compile_time_is_decided() {
    let asked = |pairs: u32, ratio: f64, jitter: f64| {
        let [base, head] = in_pairs(pairs, ratio, jitter);
        // No more processes of the benchmark are needed.
        let modules = open_rows(&base, &head, &policy(true));
        assert!(!modules.open.contains(&BenchmarkName::new("a")), "{modules:?}");
        open_compile_times(&base, &head, &policy(true), 1).next_blocks
    };
    assert_eq!(asked(12, 1.9, 0.03), None);
    let unclear = [12, 18, 24].map(|pairs| asked(pairs, 1.4, 0.4));
    assert_eq!(unclear, [Some(18), Some(24), None]);
}

#[test]
fn pairs_that_an_untrusted_result_leaves_out_are_missed() {
    let expected = Expected {
        benchmark: BenchmarkName::new("a"),
        judged_as: BenchmarkName::new("a"),
        device: None,
        on_gpu: false,
        has_reference: false,
        names_reference: false,
        is_timed: false,
        printed: None,
    };
    let verdict = |[base, head]: [Run; 2]| {
        let options = CompareOptions::default();
        let found = compare_untrusted(&base, &head, std::slice::from_ref(&expected), &policy(true), &options);
        let of_compiler = |row: &&Row| row.metric.as_ref().is_some_and(Metric::is_compile_time);
        found.rows.iter().find(of_compiler).unwrap().verdict
    };
    assert_eq!(verdict(in_pairs(12, 1.02, 0.03)), Verdict::Pass);
    assert_eq!(
        verdict(in_pairs(13, 1.02, 0.03)),
        Verdict::Inconclusive,
        "no look of the schedule ends there"
    );
}
