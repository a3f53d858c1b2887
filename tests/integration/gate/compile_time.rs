//! The compiler's time is a duration of the compiler: equal modules say nothing about it, and where it decides it is
//! judged or refused.

use benchgate::gate::{Method, Policy, Reason, Row};
use benchgate::model::{Artifact, Benchmark, Metric, MetricSeries, Series, Verdict};

use super::build::{judged_by, measured, process, run};

const SAMPLES: [f64; 4] = [100.0, 101.0, 100.5, 100.2];
const SECOND: f64 = 1e9;

/// A module, the same one on every side, whose compilations took these seconds.
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

fn row(fatal: bool, base: &[f64], head: &[f64]) -> Row {
    let mut policy = Policy::default();
    let (_, rule) = policy.metrics.iter_mut().find(|(name, _)| *name == Metric::COMPILE_TIME.name).unwrap();
    rule.fatal = fatal;
    let comparison = judged_by(&policy, &run(vec![compiled(base)]), &run(vec![compiled(head)]));
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
