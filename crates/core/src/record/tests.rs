//! Guarantees of the stored format.

use proptest::prelude::*;

use crate::model::{Outcome, Series, SideName, Stage, VerifyCode};

use super::{AcceptanceFile, BaselineFile, BisectionFile, RecordError, RunFile};

const GOLDEN: &str = include_str!("../../../../tests/fixtures/record/run-v1.json");

/// Reads the golden file with one piece of text replaced.
fn golden_with(from: &str, to: &str) -> Result<RunFile, RecordError> {
    assert!(GOLDEN.contains(from), "the golden file has no {from:?}");
    RunFile::from_slice(GOLDEN.replacen(from, to, 1).as_bytes())
}

fn message(result: Result<RunFile, RecordError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn the_golden_file_reads_and_writes_back_byte_for_byte() {
    let file = RunFile::from_slice(GOLDEN.as_bytes()).unwrap();
    let written = String::from_utf8(file.to_json()).unwrap();
    assert_eq!(written, GOLDEN);
}

#[test]
fn a_run_keeps_what_a_verdict_needs() {
    let file = RunFile::from_slice(GOLDEN.as_bytes()).unwrap();
    let runs = file.runs("run.json");
    assert_eq!(runs.iter().map(|(side, _)| *side).collect::<Vec<_>>(), SideName::BOTH);
    let (base, head) = (&runs[0].1, &runs[1].1);
    assert_eq!(base.session, head.session);
    assert_eq!(base.context.num_cpus, Some(2));
    assert_eq!(base.testbed.as_ref().unwrap().id, "9c1f0e57");
    assert_eq!(base.toolchain.as_ref().unwrap().version, "3.9.0");
    assert_eq!(base.calibration.as_ref().unwrap().spreads.len(), 1);
    let mlp = &base.benchmarks[0];
    let names: Vec<&str> = mlp.metrics.iter().map(|m| m.metric.name.as_ref()).collect();
    assert_eq!(
        names,
        [
            "latency",
            "cpu-time",
            "peak-device-memory",
            "compile-time",
            "vmfb-size",
            "dispatch-count",
            "peak-host-memory"
        ]
    );
    let Series::Processes(processes) = &mlp.metric("latency").unwrap().series else {
        panic!("latency has samples");
    };
    assert_eq!(processes[0].samples, [121_034.25, 120_987.5, 121_250.0]);
    assert_eq!(processes[0].slot.unwrap().block, 0);
    let Series::Processes(compile) = &mlp.metric("compile-time").unwrap().series else {
        panic!("compile time is noisy");
    };
    assert_eq!(compile[0].samples, [1.25e9]);
    assert_eq!(mlp.metric("dispatch-count").unwrap().series, Series::Exact(3.0));
}

#[test]
fn a_failed_process_adds_no_sample_and_a_nan_survives() {
    let file = RunFile::from_slice(GOLDEN.as_bytes()).unwrap();
    let head = &file.runs("run.json")[1].1;
    let mlp = &head.benchmarks[0];
    assert!(mlp.metrics.is_empty());
    assert!(matches!(mlp.outcome, Outcome::Failed { stage: Stage::Benchmark, .. }));
    let verification = mlp.verification.as_ref().unwrap();
    assert_eq!(verification.code, VerifyCode::Fail);
    let divergence = verification.outputs[0].divergence.unwrap();
    assert!(divergence.max_abs.is_nan() && divergence.max_rel.is_infinite());
}

#[test]
fn finding_a_cached_module_is_not_a_compile_time() {
    let file = golden_with(
        "\"status\": \"ok\",\n              \"seconds\": 1.25",
        "\"status\": \"cached\",\n              \"seconds\": 0.01",
    );
    let base = &file.unwrap().runs("run.json")[0].1;
    assert!(base.benchmarks[0].metric("compile-time").is_none());
}

#[test]
fn a_truncated_file_is_called_truncated_wherever_it_ends() {
    for end in (1..GOLDEN.trim_end().len()).step_by(97) {
        let error = RunFile::from_slice(&GOLDEN.as_bytes()[..end]).unwrap_err();
        assert!(matches!(error, RecordError::Truncated { .. }), "cut at {end}: {error}");
        assert!(error.place().is_some());
    }
}

#[test]
fn a_newer_version_is_refused_and_names_what_is_needed() {
    let newer = golden_with("benchgate/run/v1", "benchgate/run/v7");
    insta::assert_snapshot!(message(newer), @r#"the file has schema "benchgate/run/v7" and this benchgate reads "benchgate/run/v1"; reading version 7 needs benchgate 0.1.0 or newer"#);
    let other = golden_with("benchgate/run/v1", "benchgate/comparison/v1");
    insta::assert_snapshot!(message(other), @r#"the file has schema "benchgate/comparison/v1" and this benchgate reads "benchgate/run/v1"; it is not a run file"#);
}

#[test]
fn an_unknown_field_or_word_is_refused_at_its_line() {
    let field = golden_with("\"seed\": 42", "\"sead\": 42");
    insta::assert_snapshot!(message(field), @"line 9, column 8: unknown field `sead`, expected one of `schema`, `benchgate`, `suite`, `session`, `created`, `complete`, `design`, `seed`, `measure`, `testbed`, `metrics`, `sides`, `backends`, `bundle`, `shard`, `shards`, `gate`, `calibration`, `lints`");
    let lint = golden_with("\"cpu-scaling\"", "\"cpu-on-fire\"");
    insta::assert_snapshot!(message(lint), @r#"line 173, column 35: unknown lint code "cpu-on-fire""#);
    let null = golden_with("121034.25", "null");
    insta::assert_snapshot!(message(null), @r#"line 158, column 22: invalid type: null, expected a number, "NaN", "inf" or "-inf""#);
}

#[test]
fn a_file_that_contradicts_itself_is_refused() {
    let cases = [
        ("\"name\": \"conv/cpu/main\"", "\"name\": \"vit/cpu/main\"", "named \"vit/cpu/main\""),
        ("\"slot\": 1\n", "\"slot\": 0\n", "block 0 already has a process in slot 0"),
        ("\"slot\": 1\n", "\"slot\": 4\n", "a block has the slots 0 to 3, found slot 4"),
        (
            "\"name\": \"peak-device-memory\"",
            "\"name\": \"other\"",
            "\"peak-device-memory\" is not described",
        ),
        ("\"stage\": \"benchmark\",", "", "needs a stage"),
        ("\"2026-11-20T21:00:06Z\"", "\"yesterday\"", "expected an RFC 3339 time"),
        ("\"name\": \"head\"", "\"name\": \"base\"", "base followed by head"),
        (
            "\"status\": \"ok\",\n              \"seconds\": 1.25",
            "\"status\": \"failed\",\n              \"seconds\": 1.25",
            "the outcome is ok although this stage failed",
        ),
        ("\"seconds\": 1.25", "\"seconds\": -1.25", "expected a duration, found -1.25 seconds"),
        ("\"seconds\": 0.31", "\"seconds\": -0.31", "expected a duration, found -0.31 seconds"),
        ("\"seconds\": 0.31", "\"seconds\": \"NaN\"", "expected a duration, found NaN seconds"),
        ("\"iterations\": 412", "\"iterations\": 0", "expected at least 1 iteration, found 0"),
        (
            "\"seconds\": 0.31,",
            "\"seconds\": 0.31, \"failure\": \"ended with signal 9\",",
            "the outcome is ok although a process failed",
        ),
    ];
    for (from, to, expected) in cases {
        let message = message(golden_with(from, to));
        assert!(message.contains(expected), "{message:?} does not say {expected:?}");
    }
}

#[test]
fn bytes_of_any_kind_are_an_error_and_never_a_panic() {
    for bytes in [&b""[..], b"[]", b"null", b"{}", b"\xff\xfe", b"{\"schema\":3}", b"name,iterations\n"] {
        assert!(RunFile::from_slice(bytes).is_err());
    }
}

proptest! {
    #[test]
    fn a_damaged_file_never_panics_and_what_is_read_can_be_written(
        damage in prop::collection::vec((0..GOLDEN.len(), any::<u8>()), 1..4)
    ) {
        let mut bytes = GOLDEN.as_bytes().to_vec();
        for (at, byte) in damage {
            bytes[at] = byte;
        }
        if let Ok(file) = RunFile::from_slice(&bytes) {
            let runs = file.runs("damaged");
            prop_assert!(!runs.is_empty());
            // The bytes are compared, because a NaN is not equal to itself.
            let written = file.to_json();
            prop_assert_eq!(RunFile::from_slice(&written).unwrap().to_json(), written);
        }
    }
}

const BASELINE: &str = include_str!("../../../../tests/fixtures/record/baseline-v1.json");
const ACCEPTANCE: &str = include_str!("../../../../tests/fixtures/record/acceptance-v1.json");

#[test]
fn the_golden_files_of_a_baseline_read_and_write_back_byte_for_byte() {
    let file = BaselineFile::from_slice(BASELINE.as_bytes()).unwrap();
    assert_eq!(String::from_utf8(file.to_json()).unwrap(), BASELINE);
    let file = AcceptanceFile::from_slice(ACCEPTANCE.as_bytes()).unwrap();
    assert_eq!(String::from_utf8(file.to_json()).unwrap(), ACCEPTANCE);
}

#[test]
fn a_stored_session_keeps_what_a_comparison_needs() {
    let run = BaselineFile::from_slice(BASELINE.as_bytes()).unwrap().run("stored");
    let mlp = &run.benchmarks[0];
    let Series::Summaries(latency) = &mlp.metric("latency").unwrap().series else {
        panic!("latency has summaries");
    };
    assert_eq!((latency[0].median, latency[0].n), (Some(121_034.25), Some(3)));
    // A value that is equal in every process becomes one value; a single time becomes a summary of one
    // repetition.
    assert_eq!(mlp.metric("peak-device-memory").unwrap().series, Series::Exact(8192.0));
    assert_eq!(mlp.metric("dispatch-count").unwrap().series, Series::Exact(3.0));
    let Series::Summaries(compile) = &mlp.metric("compile-time").unwrap().series else {
        panic!("compile time is noisy");
    };
    assert_eq!(compile[0].median, Some(1.25e9));
    assert_eq!(run.testbed.unwrap().id, "9c1f0e57");
}

#[test]
fn an_edited_baseline_is_refused_and_another_line_ending_is_not_an_edit() {
    let edited = BASELINE.replacen("121034.25", "121034.5", 1);
    let error = BaselineFile::from_slice(edited.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("damaged or edited after it was written"), "{error}");
    let accepted = ACCEPTANCE.replace("example.org", "example.com");
    assert!(AcceptanceFile::from_slice(accepted.as_bytes()).is_err());
    assert!(BaselineFile::from_slice(BASELINE.replace('\n', "\r\n").as_bytes()).is_ok());
}

#[test]
fn a_newer_baseline_is_refused_and_names_what_is_needed() {
    let newer = BASELINE.replace("benchgate/baseline/v1", "benchgate/baseline/v3");
    let error = BaselineFile::from_slice(newer.as_bytes()).unwrap_err();
    insta::assert_snapshot!(error.to_string(), @r#"the file has schema "benchgate/baseline/v3" and this benchgate reads "benchgate/baseline/v1"; reading version 3 needs benchgate 0.1.0 or newer"#);
}

const BISECTION: &str = include_str!("../../../../tests/fixtures/record/bisection-v1.json");

#[test]
fn the_golden_file_of_a_bisection_reads_and_writes_back_byte_for_byte() {
    let file = BisectionFile::from_slice(BISECTION.as_bytes()).unwrap();
    assert_eq!(String::from_utf8(file.to_json()).unwrap(), BISECTION);
    let changed = |from: &str, to: &str| {
        assert!(BISECTION.contains(from), "the golden file has no {from:?}");
        BisectionFile::from_slice(BISECTION.replacen(from, to, 1).as_bytes()).unwrap_err().to_string()
    };
    assert!(
        changed("benchgate/bisection/v1", "benchgate/bisection/v2")
            .contains("reading version 2 needs benchgate")
    );
    assert!(changed("\"seconds\"", "\"minutes\"").contains("unknown field `minutes`"));
    assert!(changed("\"culprit\"", "\"guilty\"").contains("unknown variant `guilty`"));
}
