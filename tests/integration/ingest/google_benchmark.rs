use benchgate::ingest::IngestError;
use benchgate::model::{LintCode, Outcome, Series, Stage};

use super::{benchmark, codes, fixture, read, samples};

fn row(more: &str) -> String {
    format!("{{\"benchmarks\": [\n{{\"name\": \"a\", \"iterations\": 1{more}}}\n]}}\n")
}

#[test]
fn repetitions_become_one_process_and_aggregates_among_them_are_ignored() {
    let run = fixture("google_benchmark/vit.pinned.json");
    assert_eq!(run.benchmarks.len(), 1);
    let latency = samples(&run, "BM_main/process_time/real_time", "latency");
    assert_eq!(latency.len(), 8);
    assert_eq!(latency[0], 57_112_747.999_781_28);
    assert_eq!(samples(&run, "BM_main/process_time/real_time", "cpu-time")[0], 57_030_789.999_999_99);
    assert_eq!(samples(&run, "BM_main/process_time/real_time", "items-per-second")[0], 17.509_225_786_226_04);
    assert_eq!(run.context.num_cpus, Some(2));
    assert_eq!(run.context.load_avg, [0.871582, 1.3208, 1.71729]);
}

#[test]
fn an_errored_row_is_a_failure_and_never_a_fast_benchmark() {
    let run = fixture("google_benchmark/errored.json");
    let row = benchmark(&run, "BM_abs/process_time/real_time");
    assert!(row.metrics.is_empty());
    let Outcome::Failed { stage: Stage::Benchmark, why } = &row.outcome else { panic!("{:?}", row.outcome) };
    assert!(why.contains("input0 shape dimension 0 mismatch"), "{why}");
    assert_eq!(codes(row), [LintCode::Errored]);
}

#[test]
fn aggregates_alone_become_a_summary_and_the_cv_is_never_a_time() {
    let run = fixture("google_benchmark/aggregates-only.json");
    let row = benchmark(&run, "BM_abs/process_time/real_time");
    let Series::Summaries(summaries) = &row.metric("latency").unwrap().series else { panic!() };
    assert_eq!(summaries.len(), 1);
    assert_eq!(summaries[0].n, Some(3));
    assert!(summaries[0].stddev.unwrap() > 1.0, "{summaries:?}");
    assert_eq!(codes(row), [LintCode::AggregatesOnly]);
}

#[test]
fn what_is_no_measurement_is_a_lint_and_leaves_no_number() {
    let run = fixture("google_benchmark/edge-rows.json");
    for (name, code) in [
        ("BM_nan", LintCode::NonFinite),
        ("BM_zero", LintCode::ZeroTime),
        ("BM_negative", LintCode::ZeroTime),
        ("BM_weeks", LintCode::UnknownUnit),
        ("BM_huge", LintCode::NonFinite),
    ] {
        let row = benchmark(&run, name);
        assert!(codes(row).contains(&code), "{name}: {:?}", row.lints);
        assert!(row.metric("latency").is_none(), "{name}");
    }
    assert_eq!(
        benchmark(&run, "BM_skipped").outcome,
        Outcome::Skipped { reason: "no such device".to_owned() }
    );
    assert!(codes(benchmark(&run, "BM_twice")).contains(&LintCode::DuplicateName));
    assert!(codes(benchmark(&run, "BM_counter")).contains(&LintCode::DroppedMetric));
}

#[test]
fn all_time_units_become_nanoseconds() {
    let run = fixture("google_benchmark/edge-rows.json");
    assert_eq!(samples(&run, "BM_seconds", "latency"), [1.5e9]);
    assert_eq!(samples(&run, "BM_micros", "latency"), [1.5e3]);
    assert_eq!(samples(&run, "BM_twice", "latency"), [1.5, 2.5]);
}

#[test]
fn files_older_than_run_type_tell_aggregates_by_their_names_and_only_in_company() {
    let run = fixture("google_benchmark/before-run-type.json");
    let names: Vec<_> = run.benchmarks.iter().map(|benchmark| benchmark.name.as_str()).collect();
    assert_eq!(names, ["BM_sum", "BM_geometric_mean"]);
    assert_eq!(samples(&run, "BM_sum", "latency"), [100.0, 104.0]);
    assert_eq!(samples(&run, "BM_geometric_mean", "latency"), [7000.0]);
}

#[test]
fn a_broken_row_is_an_error_that_names_file_and_line() {
    let time = ", \"real_time\": 1, \"time_unit\": \"ns\"";
    assert!(read(&row(time)).is_ok());
    for (broken, wanted) in [
        (row(", \"time_unit\": \"ns\""), "a row without a `real_time`"),
        (row(", \"real_time\": 1"), "a row without a `time_unit`"),
        (row(&format!("{time}, \"real_time\": 2")), "a row has two values of `real_time`"),
        (row(&format!("{time}, \"run_type\": \"other\"")), "neither iteration nor aggregate"),
        (row(", \"real_time\": \"1\", \"time_unit\": \"ns\""), "expected a number"),
        (row(", \"real_time\": 01, \"time_unit\": \"ns\""), "leading zero"),
    ] {
        let error = read(&broken).unwrap_err();
        let IngestError::Malformed { line, what, .. } = &error else { panic!("{error}") };
        assert_eq!(*line, 2, "{error}");
        assert!(what.contains(wanted), "{what}");
        assert!(error.to_string().starts_with("read input as google-benchmark-json, line 2: "), "{error}");
    }
}

#[test]
fn no_rows_at_all_is_an_error_and_no_vacuous_pass() {
    let error = read("{\"context\": {}, \"benchmarks\": []}").unwrap_err();
    assert!(matches!(error, IngestError::NoResults { .. }), "{error}");
}

#[test]
fn a_file_cut_at_any_byte_is_an_error() {
    let whole = std::fs::read(super::fixture_path("google_benchmark/edge-rows.json")).unwrap();
    let end = whole.trim_ascii_end().len();
    for cut in 0..end {
        let error = benchgate::ingest::read_detected(&whole[..cut], "cut").unwrap_err();
        assert!(error.to_string().contains("cut"), "{error}");
    }
}

/// The standard deviation of these rounded times is 0.153 ms.
#[test]
fn a_consoles_own_deviation_is_kept_next_to_its_rounded_times() {
    let rows = "Benchmark   Time   CPU   Iterations\nBM_a   84.3 ms   166 ms   8\nBM_a   84.6 ms   168 ms   8\n\
        BM_a   84.5 ms   167 ms   8\nBM_a_mean   84.5 ms   167 ms   3\nBM_a_median   84.5 ms   167 ms   3\n\
        BM_a_stddev   0.175 ms   0.915 ms   3\nBM_a_cv   0.21 %   0.55 %   3\n";
    let run = read(rows).unwrap();
    assert!(benchmark(&run, "BM_a").lints.is_empty(), "{:?}", benchmark(&run, "BM_a").lints);
    let latency = benchmark(&run, "BM_a").metric("latency").unwrap();
    let stated = benchgate::gate::described(latency).unwrap();
    assert_eq!(format!("{:.2}", 100.0 * stated.cv.unwrap()), "0.21");
}
