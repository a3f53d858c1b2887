//! The sides of a comparison have different units, which is not a change.

use benchgate::ingest::{self, Format};
use benchgate::model::{Better, Series};

/// Every metric of base with its ratio head / base (NaN if head lacks it), its unit and its direction.
fn changes(format: Format, base: &str, head: &str) -> Vec<(String, f64, String, Better)> {
    let read = |text: &str| ingest::read(text.as_bytes(), format, "input").unwrap().benchmarks.remove(0);
    let (base, head) = (read(base), read(head));
    let metrics = base.metrics.iter().map(|series| {
        let metric = &series.metric;
        let partner = head.metric(&metric.name).filter(|other| other.metric == *metric);
        let ratio = partner.map_or(f64::NAN, |other| value(&other.series) / value(&series.series));
        (metric.name.to_string(), ratio, metric.unit.to_string(), metric.better)
    });
    metrics.collect()
}

fn value(series: &Series) -> f64 {
    match series {
        Series::Summaries(summaries) => summaries[0].mean.or(summaries[0].median).unwrap(),
        Series::Processes(processes) => processes[0].samples[0],
        other => panic!("{other:?}"),
    }
}

/// Asserts that these files have this one metric, and that it did not change.
#[track_caller]
fn assert_alike(format: Format, base: &str, head: &str, name: &str, unit: &str, better: Better) {
    let found = changes(format, base, head);
    let [(found_name, ratio, found_unit, found_better)] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((found_name.as_str(), found_unit.as_str(), *found_better), (name, unit, better));
    assert!((ratio - 1.0).abs() < 1e-9, "{name}: {ratio}");
}

#[test]
fn rates_of_jmh_are_compared_per_second_and_its_times_in_nanoseconds() {
    let file = |mode: &str, score: f64, unit: &str| {
        format!(
            r#"[{{"benchmark": "a", "mode": "{mode}", "forks": 1, "primaryMetric": {{
                "score": {score}, "scoreUnit": "{unit}", "rawData": [[{score}, {score}]]}}}}]"#
        )
    };
    let alike = |mode: &str, [base, head]: [(f64, &str); 2], name: &str, unit: &str, better| {
        let [base, head] = [base, head].map(|(score, unit)| file(mode, score, unit));
        assert_alike(Format::JmhJson, &base, &head, name, unit, better);
    };
    for head in [(5000.0, "ops/s"), (0.005, "ops/us"), (5e-6, "ops/ns"), (3e5, "ops/min"), (1.8e7, "ops/hr")]
    {
        alike("thrpt", [(5.0, "ops/ms"), head], "throughput", "1/s", Better::Higher);
    }
    for head in [(0.2, "ms/op"), (2e5, "ns/op"), (0.0002, "s/op")] {
        alike("avgt", [(200.0, "us/op"), head], "latency", "ns", Better::Lower);
    }
    let grouped = |value: f64, unit: &str| {
        let score = |value: f64, unit: &str| {
            format!(r#"{{"score": {value}, "scoreUnit": "{unit}", "rawData": [[{value}, {value}]]}}"#)
        };
        format!(
            r#"[{{"benchmark": "a", "mode": "thrpt", "forks": 1, "primaryMetric": {},
                "secondaryMetrics": {{"put": {}}}}}]"#,
            score(5.0, "ops/s"),
            score(value, unit)
        )
    };
    let found = changes(Format::JmhJson, &grouped(2.0, "ops/ms"), &grouped(2000.0, "ops/s"));
    let put = found.iter().find(|(name, ..)| name == "put").unwrap();
    assert_eq!((put.2.as_str(), put.3), ("ops/s", Better::Higher));
    assert!((put.1 - 1.0).abs() < 1e-9, "{put:?}");
}

#[test]
fn lists_of_values_in_different_units_of_time_agree() {
    let file =
        |(value, unit): (f64, &str)| format!(r#"[{{"name": "a", "unit": "{unit}", "value": {value}}}]"#);
    let (smaller, bigger) = (Format::CustomSmallerIsBetter, Format::CustomBiggerIsBetter);
    for head in [(5000.0, "ops/sec"), (0.005, "ops/us"), (3e5, "ops/min")] {
        assert_alike(bigger, &file((5.0, "ops/ms")), &file(head), "ops/s", "ops/s", Better::Higher);
    }
    for head in [(41_500.0, "us"), (41_500_000.0, "ns/iter"), (0.0415, "s/op")] {
        assert_alike(smaller, &file((41.5, "ms")), &file(head), "latency", "ns", Better::Lower);
    }
    assert_alike(
        smaller,
        &file((12.0, "ms/step")),
        &file((12e6, "ns/step")),
        "ns/step",
        "ns/step",
        Better::Lower,
    );
    // Other units are compared only by their names.
    let found = changes(smaller, &file((1.0, "MB")), &file((1000.0, "kB")));
    assert!(!found.is_empty() && found.iter().all(|(_, ratio, ..)| ratio.is_nan()), "{found:?}");
}

#[test]
fn metrics_of_go_in_different_units_of_time_agree() {
    let file = |values: &str| format!("BenchmarkA-8 100 {values}\n").repeat(3);
    let alike = |base, head, name, unit, better| {
        assert_alike(Format::Benchfmt, &file(base), &file(head), name, unit, better);
    };
    alike("5 ms/op", "5000 us/op", "latency", "ns", Better::Lower);
    alike("12 ms/step", "12000 us/step", "ns/step", "ns/step", Better::Lower);
    alike("40 ops/ms", "40000 ops/s", "ops/s", "ops/s", Better::Higher);
    // Two values of one metric in a line would be two repetitions.
    let twice =
        ingest::read(b"BenchmarkA-8 100 20000000 ns/op 1 us/op\n", Format::Benchfmt, "input").unwrap_err();
    assert!(twice.to_string().contains("two values in ns/op"), "{twice}");
}

#[test]
fn cargo_bench_prints_a_time_in_any_unit() {
    let criterion =
        |unit: &str, time: f64| format!("a time:   [{time} {unit} {time} {unit} {time} {unit}]\n");
    for head in [criterion("ps", 1.5e6), criterion("ns", 1500.0), criterion("ms", 0.0015)] {
        assert_alike(Format::CargoBench, &criterion("µs", 1.5), &head, "latency", "ns", Better::Lower);
    }
    let libtest = "test a ... bench:       1,500 ns/iter (+/- 56)\n";
    assert_alike(Format::CargoBench, libtest, &criterion("µs", 1.5), "latency", "ns", Better::Lower);
}

#[test]
fn bencher_and_asv_have_one_unit_for_each_measure() {
    let bencher = |latency: f64| format!(r#"{{"a": {{"latency": {{"value": {latency}}}}}}}"#);
    let asv = |name: &str, value: f64| {
        format!(
            r#"{{"version": 2, "commit_hash": "c", "result_columns": ["result", "params"], "results": {{"{name}": [[{value}], []]}}}}"#
        )
    };
    let value = |text: &str, format| {
        value(&ingest::read(text.as_bytes(), format, "input").unwrap().benchmarks[0].metrics[0].series)
    };
    assert!((value(&bencher(5e6), Format::BencherJson) - 5e6).abs() < 1e-3, "nanoseconds");
    assert!((value(&asv("time_a", 0.005), Format::AsvJson) - 5e6).abs() < 1e-3, "seconds");
    assert!((value(&asv("mem_a", 2104.0), Format::AsvJson) - 2104.0).abs() < 1e-9, "bytes");
}
