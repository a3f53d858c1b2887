//! If a tool is ended from outside, its result is unknown and is not a regression.

use crate::suite::Suite;

/// Judges two sides with these flags. Returns the exit code and the benchmark's findings.
fn judged(base: &str, head: &str) -> (Option<i32>, Vec<String>) {
    let suite = Suite::new()
        .model("a", &["pinned-latency-us=1000"])
        .base(&format!("flags = [\"--fake={base}\"]"))
        .head(&format!("flags = [\"--fake={head}\"]"))
        .write();
    let outcome = suite.world.run(["gate"]);
    let run = suite.run_json();
    let lints = run["sides"].as_array().unwrap().iter().flat_map(|side| {
        let lints = side["benchmarks"][0]["lints"].as_array().cloned().unwrap_or_default();
        lints
            .into_iter()
            .filter(|lint| lint["code"] == "killed")
            .map(|lint| lint["detail"].as_str().unwrap().to_owned())
    });
    (outcome.code, lints.collect())
}

const NOTHING: &str = "dispatch-count=4";

#[test]
fn a_tool_that_is_killed_at_head_is_an_error_and_no_regression() {
    for stage in ["compile", "run", "benchmark"] {
        let (code, lints) = judged(NOTHING, &format!("kill-{stage}=9"));
        assert_eq!(code, Some(20), "{stage}: {lints:?}");
        let [lint] = lints.as_slice() else { panic!("{stage}: {lints:?}") };
        assert!(lint.contains("SIGKILL"), "{lint}");
    }
}

#[test]
fn a_tool_that_is_killed_at_base_is_an_error_whatever_head_does() {
    for stage in ["compile", "run", "benchmark"] {
        let (code, lints) = judged(&format!("kill-{stage}=9"), NOTHING);
        assert_eq!((code, lints.len()), (Some(20), 1), "{stage}: {lints:?}");
    }
}

#[test]
fn a_signal_that_a_program_causes_itself_is_still_a_regression_and_one_from_outside_is_not() {
    // Signals 6 and 8 are SIGABRT and SIGFPE; 15 and 7 are SIGTERM and SIGBUS.
    for (signal, code) in [(6, 10), (8, 10), (15, 20), (7, 20)] {
        let (found, lints) = judged(NOTHING, &format!("kill-benchmark={signal}"));
        assert_eq!(found, Some(code), "signal {signal}: {lints:?}");
        assert_eq!(lints.is_empty(), code == 10);
    }
}
