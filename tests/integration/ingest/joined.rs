use benchgate::ingest::join;
use benchgate::model::{LintCode, Outcome, Run, Series, Verification, VerifyCode};

use super::{benchmark, codes, read};

fn file(rows: &[(&str, f64)]) -> Run {
    let rows: Vec<String> = rows
        .iter()
        .map(|(name, time)| {
            format!("{{\"name\": \"{name}\", \"run_type\": \"iteration\", \"real_time\": {time}, \"time_unit\": \"ns\"}}")
        })
        .collect();
    read(&format!("{{\"context\": {{}}, \"benchmarks\": [{}]}}", rows.join(","))).unwrap()
}

#[test]
fn every_file_of_a_side_is_one_more_process() {
    let run = join([file(&[("a", 1.0)]), file(&[("a", 2.0)]), file(&[("a", 3.0)])]).unwrap().unwrap();
    let Series::Processes(processes) = &benchmark(&run, "a").metric("latency").unwrap().series else {
        panic!()
    };
    let samples: Vec<_> = processes.iter().map(|process| process.samples.clone()).collect();
    assert_eq!(samples, [[1.0], [2.0], [3.0]]);
    assert_eq!(codes(benchmark(&run, "a")), []);
}

#[test]
fn a_load_of_a_quarter_of_the_files_is_not_that_of_the_side() {
    let busy = |files: usize, busy: usize| {
        let file = |at: usize| {
            let mut run = file(&[("a", 1.0)]);
            run.context.load_avg = vec![if at < busy { 90.0 } else { 0.5 }, at as f64];
            run
        };
        join((0..files).map(file)).unwrap().unwrap().context.load_avg
    };
    assert_eq!(busy(21, 5), [0.5, 15.0]);
    assert_eq!(busy(21, 6), [90.0, 15.0]);
    assert_eq!(busy(4, 1), [0.5, 2.0]);
    assert_eq!(busy(3, 1), [90.0, 2.0]);
    assert_eq!(busy(1, 1), [90.0, 0.0]);
}

#[test]
fn a_file_without_a_number_of_a_benchmark_is_not_one_process_fewer() {
    let file = |measure: &str| read(&format!("{{\"a\": {{\"{measure}\": {{\"value\": 10.0}}}}}}")).unwrap();
    for order in [["speed", "latency", "latency"], ["latency", "speed", "latency"]] {
        let run = join(order.map(file)).unwrap().unwrap();
        assert!(codes(benchmark(&run, "a")).contains(&LintCode::IncompleteJoin), "{order:?}");
    }
    let measures = |names: &[&str]| {
        let values: Vec<String> =
            names.iter().map(|name| format!("\"{name}\": {{\"value\": 10.0}}")).collect();
        read(&format!("{{\"a\": {{{}}}}}", values.join(","))).unwrap()
    };
    let both = || measures(&["latency", "speed"]);
    let run = join([both(), measures(&["speed"]), both()]).unwrap().unwrap();
    assert!(codes(benchmark(&run, "a")).contains(&LintCode::IncompleteJoin));
    let run = join([both(), measures(&["latency"]), both()]).unwrap().unwrap();
    assert!(!codes(benchmark(&run, "a")).contains(&LintCode::IncompleteJoin));
    assert!(benchmark(&run, "a").metric("speed").is_none());
    // Files that have different measures of a benchmark complement each other.
    let run = join(["latency", "file-size"].map(file)).unwrap().unwrap();
    assert!(!codes(benchmark(&run, "a")).contains(&LintCode::IncompleteJoin));
}

#[test]
fn one_failed_process_among_good_ones_fails_the_benchmark() {
    let failed = "{\"context\": {}, \"benchmarks\": [{\"name\": \"a\", \"run_type\": \"iteration\", \"error_occurred\": true, \"error_message\": \"no\"}]}";
    for order in [[0, 1], [1, 0]] {
        let files = [file(&[("a", 1.0)]), read(failed).unwrap()];
        let run = join(order.map(|at| files[at].clone())).unwrap().unwrap();
        assert!(matches!(benchmark(&run, "a").outcome, Outcome::Failed { .. }));
        assert!(benchmark(&run, "a").metrics.is_empty());
    }
}

#[test]
fn a_benchmark_missing_from_some_files_is_said() {
    let run = join([file(&[("a", 1.0), ("b", 1.0)]), file(&[("a", 2.0)]), file(&[("a", 2.0), ("b", 1.0)])])
        .unwrap()
        .unwrap();
    assert_eq!(codes(benchmark(&run, "b")), [LintCode::IncompleteJoin]);
    assert_eq!(codes(benchmark(&run, "a")), []);
}

#[test]
fn processes_without_a_verification_are_not_proved_by_one_that_passed() {
    let with = |verification: Option<Verification>| {
        let mut run = file(&[("a", 1.0)]);
        run.benchmarks[0].verification = verification;
        run
    };
    let code = |files: [bool; 3]| {
        let passed = || Verification::bare(VerifyCode::Pass, None);
        let run = join(files.map(|verified| with(verified.then(passed)))).unwrap().unwrap();
        benchmark(&run, "a").verification.as_ref().map(|verification| verification.code)
    };
    for files in [[true, false, false], [false, true, false], [false, false, true], [true, true, false]] {
        assert_eq!(code(files), Some(VerifyCode::VerifierDidntRun), "{files:?}");
    }
    assert_eq!(code([true; 3]), Some(VerifyCode::Pass));
    assert_eq!(code([false; 3]), None);
}

#[test]
fn one_wrong_output_among_right_ones_is_kept_in_any_order() {
    let with = |code| {
        let mut run = file(&[("a", 1.0)]);
        run.benchmarks[0].verification = Some(Verification::bare(code, None));
        run
    };
    for order in [[0, 1, 2], [1, 0, 2], [2, 1, 0]] {
        let files = [with(VerifyCode::Fail), with(VerifyCode::Pass), file(&[("a", 1.0)])];
        let run = join(order.map(|at| files[at].clone())).unwrap().unwrap();
        assert_eq!(benchmark(&run, "a").verification.as_ref().unwrap().code, VerifyCode::Fail);
    }
}

#[test]
fn a_process_that_skipped_among_measured_ones_forbids_a_verdict() {
    let skipped = "{\"context\": {}, \"benchmarks\": [{\"name\": \"a\", \"run_type\": \"iteration\", \"skipped\": true, \"skip_message\": \"no\"}]}";
    for order in [[0, 1], [1, 0]] {
        let files = [file(&[("a", 1.0)]), read(skipped).unwrap()];
        let run = join(order.map(|at| files[at].clone())).unwrap().unwrap();
        assert_eq!(benchmark(&run, "a").outcome, Outcome::Ok);
        assert!(codes(benchmark(&run, "a")).contains(&LintCode::SkippedRow), "{order:?}");
    }
}
