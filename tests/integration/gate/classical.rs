//! Checks that the results of `--test` agree with those of scipy.

use std::path::Path;

use benchgate::gate::{Method, Policy, Reason, Row, TestKind};
use benchgate::model::{LintCode, Metric, Process, Run, Series, Verdict};
use benchgate::stats::classical::{Moments, TestResult, UMethod, mann_whitney, welch};
use serde_json::Value;

use super::build::{judged_by, measured, process, run, with};

fn reference() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/scipy/reference.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn agrees(what: &str, ours: TestResult, theirs: &Value) {
    for (side, ours) in [("two-sided", ours.two_sided), ("less", ours.less), ("greater", ours.greater)] {
        let theirs = theirs[side].as_f64().unwrap();
        assert!((ours - theirs).abs() <= 1e-9, "{what} {side}: {ours} is not {theirs}");
        // For a tiny p-value nine decimals prove nothing, so its leading digits must agree too.
        assert!((ours / theirs - 1.0).abs() <= 1e-6, "{what} {side}: {ours} is not {theirs}");
    }
}

#[test]
fn welch_and_mann_whitney_agree_with_scipy() {
    let reference = reference();
    let cases = reference["cases"].as_array().unwrap();
    assert!(cases.len() > 30);
    for (at, case) in cases.iter().enumerate() {
        let (x, y) = (numbers(&case["x"]), numbers(&case["y"]));
        let test = welch(Moments::from_values(&x).unwrap(), Moments::from_values(&y).unwrap());
        assert!((test.statistic - case["t"].as_f64().unwrap()).abs() < 1e-9);
        agrees(&format!("case {at} welch"), test, &case["welch"]);
        for (name, method) in [
            ("auto", UMethod::Auto),
            ("exact", UMethod::Exact),
            ("asymptotic", UMethod::Asymptotic { continuity: true }),
            ("asymptotic-no-continuity", UMethod::Asymptotic { continuity: false }),
        ] {
            if case[name].is_null() {
                continue;
            }
            let test = mann_whitney(&x, &y, method).unwrap();
            assert_eq!(test.statistic, case["u"].as_f64().unwrap(), "case {at}");
            agrees(&format!("case {at} {name}"), test, &case[name]);
        }
    }
}

#[test]
fn the_classical_tests_decide_when_asked_and_say_which_they_are() {
    let base: Vec<f64> = (0..10).map(|i| 100.0 + f64::from(i) * 0.1).collect();
    let head: Vec<f64> = base.iter().map(|v| v * 1.2).collect();
    for (test, method) in [(TestKind::Welch, Method::Welch), (TestKind::MannWhitney, Method::MannWhitney)] {
        let policy = Policy { test, ..Policy::default() };
        let judge = |base: &[f64], head: &[f64]| {
            let mut comparison =
                judged_by(&policy, &run(vec![measured("a", base)]), &run(vec![measured("a", head)]));
            comparison.rows.remove(0)
        };
        let slower = judge(&base, &head);
        assert_eq!(slower.verdict, Verdict::Regressed);
        assert_eq!(slower.estimate.unwrap().method, method);
        assert_eq!(judge(&head, &base).verdict, Verdict::Improved);
        let unchanged: Vec<f64> = base.iter().map(|v| v * 1.00001).collect();
        assert_eq!(judge(&base, &unchanged).verdict, Verdict::Pass);
        // With so few repetitions, the rank test can't be significant at any level that a gate would use.
        assert_eq!(judge(&base[..2], &head[..2]).verdict == Verdict::Regressed, test == TestKind::Welch);
    }
}

/// A side with 24 processes of 10 repetitions each. `factor` slows single repetitions.
fn side(seed: usize, factor: fn(usize, usize) -> f64) -> Run {
    let time = |process: usize, at: usize| {
        let noise = (process * 7_919 + at * 104_729 + seed * 611_953).pow(2) % 10_007;
        100.0 * factor(process, at) * (1.0 + noise as f64 * 1e-6)
    };
    let processes =
        (0..24).map(|p| process(&(0..10).map(|i| time(p, i)).collect::<Vec<f64>>(), None)).collect();
    run(vec![with("a", Metric::LATENCY, Series::Processes(processes))])
}

/// A classical test replaces the evidence about the typical time, not the other conditions of a pass.
#[test]
fn a_classical_test_hides_neither_stalls_nor_slow_processes() {
    let base = side(0, |_, _| 1.0);
    for test in [TestKind::MannWhitney, TestKind::Welch] {
        let policy = Policy { test, ..Policy::default() };
        let verdict = |head| judged_by(&policy, &base, &head).rows.remove(0).verdict;
        assert_eq!(verdict(side(3, |_, _| 1.0)), Verdict::Pass, "{test:?}");
        let stalls = side(3, |process, at| if (process + at) % 20 == 0 { 20.0 } else { 1.0 });
        assert_ne!(verdict(stalls), Verdict::Pass, "{test:?}");
        let slow_starts = side(3, |process, _| if process % 5 == 0 { 2.0 } else { 1.0 });
        assert_ne!(verdict(slow_starts), Verdict::Pass, "{test:?}");
    }
}

/// The ranks of pooled repetitions don't show that all those of one file in five are a hundred times as slow.
#[test]
fn a_classical_test_over_few_files_hides_no_slow_file() {
    let files = |seed: usize, count: usize, slow: Option<usize>, factor: f64| {
        let time = |file: usize, at: usize| {
            let noise = (file * 7_919 + at * 104_729 + seed * 611_953).pow(2) % 10_007;
            100.0 * (if Some(file) == slow { factor } else { 1.0 }) * (1.0 + noise as f64 * 1e-6)
        };
        let processes = (0..count).map(|file| Process {
            session: file as u32,
            ..process(&(0..40).map(|at| time(file, at)).collect::<Vec<_>>(), None)
        });
        run(vec![with("a", Metric::LATENCY, Series::Processes(processes.collect()))])
    };
    for test in [TestKind::MannWhitney, TestKind::Welch] {
        let policy = Policy { test, ..Policy::default() };
        let verdict = |base: &Run, head: Run| judged_by(&policy, base, &head).rows.remove(0).verdict;
        let base = files(0, 5, None, 1.0);
        assert_eq!(verdict(&base, files(3, 5, None, 1.0)), Verdict::Pass, "{test:?}");
        for factor in [1.5, 100.0] {
            assert_ne!(verdict(&base, files(3, 5, Some(2), factor)), Verdict::Pass, "{test:?} {factor}");
        }
        // Base has such a file as well.
        if test == TestKind::MannWhitney {
            let base = files(0, 5, Some(1), 1.5);
            assert_eq!(verdict(&base, files(3, 5, Some(2), 1.5)), Verdict::Pass, "{test:?}");
        }
    }
}

/// The only row, judged by the rank test.
fn ranked(base: &[f64], head: &[f64]) -> Row {
    let policy = Policy { test: TestKind::MannWhitney, ..Policy::default() };
    judged_by(&policy, &run(vec![measured("a", base)]), &run(vec![measured("a", head)])).rows.remove(0)
}

/// Values distributed like real repetitions: skewed to the right, with one outlier.
fn repetitions(factor: f64, count: u32) -> Vec<f64> {
    let value = |i: u32| 100.0 + f64::from(i * 7919 % 1009) / 1009.0 + f64::from(i * 31 % 97) / 970.0;
    let mut values: Vec<f64> = (1..=count).map(|i| factor * value(i)).collect();
    if count >= 20 {
        values[0] *= 50.0;
    }
    values
}

#[test]
fn the_interval_of_the_rank_test_is_its_own() {
    let row = ranked(&repetitions(1.0, 20), &repetitions(1.2, 20));
    assert_eq!(row.verdict, Verdict::Regressed);
    let estimate = row.estimate.unwrap();
    let interval = estimate.interval.unwrap();
    // One outlier among twenty values moves neither the estimate nor the bounds. Welch's interval would be
    // far wider.
    assert!((estimate.ratio - 1.2).abs() < 0.01, "{estimate:?}");
    assert!(
        1.18 < interval.low && interval.low < 1.2 && 1.2 < interval.high && interval.high < 1.22,
        "{interval:?}"
    );
}

#[test]
fn neither_classical_test_speaks_of_an_assumed_spread() {
    for test in [TestKind::Welch, TestKind::MannWhitney] {
        let policy = Policy { test, ..Policy::default() };
        let (base, head) = (repetitions(1.0, 10), repetitions(1.0, 10));
        let comparison =
            judged_by(&policy, &run(vec![measured("a", &base)]), &run(vec![measured("a", &head)]));
        assert!(comparison.rows[0].lints.iter().all(|lint| lint.code != LintCode::AssumedSpread), "{test:?}");
    }
}

#[test]
fn samples_too_few_for_the_rank_test_are_said_to_be_too_few() {
    for count in [2, 3, 4] {
        let row = ranked(&repetitions(1.0, count), &repetitions(3.0, count));
        assert_eq!(row.verdict, Verdict::Inconclusive, "{count}");
        // With four values on each side, the smallest p-value is 1 in 70, but alpha is 1 in 100.
        assert!(matches!(row.reason, Reason::TooLittle(_)), "{count}: {:?}", row.reason);
    }
    assert_eq!(ranked(&repetitions(1.0, 6), &repetitions(3.0, 6)).verdict, Verdict::Regressed);
}

/// Forming every pair of these values would take hundreds of megabytes and many seconds. The time limit is
/// far above what sorting takes.
#[test]
fn thousands_of_repetitions_are_ranked_in_a_moment() {
    for (base, head) in [(4000, 4000), (8, 4000), (4000, 8)] {
        let started = std::time::Instant::now();
        let row = ranked(&repetitions(1.0, base), &repetitions(1.2, head));
        assert_eq!(row.verdict, Verdict::Regressed);
        assert!(started.elapsed().as_secs() < 60, "{base} and {head}: {:?}", started.elapsed());
    }
}
