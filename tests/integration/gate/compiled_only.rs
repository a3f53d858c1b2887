//! Benchmarks whose device is missing: compiled modules are compared, but no times.

use benchgate::gate::{CompareOptions, Policy, Reason, compare_with_history};
use benchgate::model::{Artifact, Benchmark, Metric, MetricSeries, Outcome, Run, Series, Stage, Verdict};

use super::build::{judged, measured, run};

const SAMPLES: [f64; 4] = [100.0, 101.0, 100.5, 100.2];

fn compiled(mut benchmark: Benchmark, dispatches: f64) -> Benchmark {
    benchmark.artifact = Some(Artifact {
        vmfb_sha256: format!("module of {dispatches}"),
        execution_sha256: "same".to_owned(),
        workload: None,
    });
    let series = Series::Exact(dispatches);
    benchmark.metrics.push(MetricSeries { metric: Metric::DISPATCH_COUNT, series });
    benchmark
}

fn no_device(dispatches: f64) -> Benchmark {
    let mut benchmark = compiled(Benchmark::new("a"), dispatches);
    benchmark.outcome = Outcome::Unsupported { reason: "no CUDA device (compiled only)".to_owned() };
    benchmark
}

/// The subject of each row, and its verdict.
fn rows(base: Benchmark, head: Benchmark) -> Vec<(Option<String>, Verdict, bool)> {
    let comparison = judged(&run(vec![base]), &run(vec![head]));
    let of = |row: &benchgate::gate::Row| row.metric.as_ref().map(|metric| metric.name.to_string());
    comparison.rows.iter().map(|row| (of(row), row.verdict, row.fatal)).collect()
}

#[test]
fn its_dispatches_are_compared_and_the_benchmark_is_not_measured() {
    let dispatches = || Some("dispatch-count".to_owned());
    assert_eq!(
        rows(no_device(3.0), no_device(4.0)),
        [(None, Verdict::Missing, false), (dispatches(), Verdict::Regressed, false)]
    );
    assert_eq!(
        rows(no_device(3.0), no_device(3.0)),
        [(None, Verdict::Missing, false), (dispatches(), Verdict::Pass, false)]
    );
}

#[test]
fn a_device_that_only_base_had_is_a_regression_of_measuring() {
    let base = compiled(measured("a", &SAMPLES), 3.0);
    let comparison = judged(&run(vec![base.clone()]), &run(vec![no_device(3.0)]));
    assert_eq!(comparison.verdict, Verdict::Regressed);
    let Reason::FailsAtHead { stage, why } = &comparison.rows[0].reason else {
        panic!("{:?}", comparison.rows[0])
    };
    assert_eq!((*stage, why.as_str()), (Stage::Benchmark, "no CUDA device (compiled only)"));
    assert_eq!(rows(base, no_device(4.0)).len(), 2, "what was compiled is still compared");
}

#[test]
fn a_night_without_the_device_does_not_teach_the_gate_to_expect_nothing() {
    let night = |benchmark: Benchmark| run(vec![benchmark]);
    let stored: Vec<Run> =
        vec![night(compiled(measured("a", &SAMPLES), 3.0)), night(no_device(3.0)), night(no_device(3.0))];
    let judge = |sessions: &[Run]| {
        compare_with_history(&night(no_device(3.0)), sessions, &Policy::default(), &CompareOptions::default())
    };
    assert_eq!(judge(&stored).verdict, Verdict::Regressed);
    assert_eq!(
        judge(&stored[1..]).verdict,
        Verdict::Missing,
        "it was never measured, so it does not pass either"
    );
}
