//! `--test` gives the numbers that scipy gives.

use std::path::Path;

use benchgate::gate::{Method, Policy, TestKind};
use benchgate::model::Verdict;
use benchgate::stats::classical::{Moments, TestResult, UMethod, mann_whitney, welch};
use serde_json::Value;

use super::build::{judged_by, measured, run};

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
        // Far out, nine decimals are nothing: the digits must agree too.
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
        let test = welch(Moments::of(&x).unwrap(), Moments::of(&y).unwrap());
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
        assert_eq!(judge(&base, &base).verdict, Verdict::Pass);
        // Three repetitions can't be significant at any level a gate would use.
        assert_eq!(judge(&base[..2], &head[..2]).verdict == Verdict::Regressed, test == TestKind::Welch);
    }
}
