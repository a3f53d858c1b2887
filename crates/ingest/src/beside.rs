//! Files that lie next to results and say how the run that wrote these ended: reports of tests, exit codes, and objects with
//! a status.

use std::collections::BTreeMap;

use serde_json::Value;

use benchgate_core::model::{Lint, LintCode, excerpt, is_in, words};

use super::facts::{failure, of_json, problem};

/// Words in the names of files that contain an exit code and nothing else.
const OF_CODES: &str = "rc exit exitcode exitstatus code status ret retcode returncode";

/// Returns what a file that is no result states about its run. The details are the same for runs that report the same.
pub fn beside(name: &str, text: &str) -> Vec<Lint> {
    let text = text.trim_start_matches('\u{feff}').trim();
    let lint = |what: String| Lint::new(LintCode::ReportedProblem, what);
    if text.starts_with('<') {
        return failed_tests(text).map(lint).into_iter().collect();
    }
    if let Ok(code) = text.parse::<i64>() {
        let file = name.rsplit('/').next().unwrap_or(name).to_lowercase();
        let is_code = code != 0 && words(&file).iter().any(|word| is_in(OF_CODES, word));
        return is_code
            .then(|| lint(format!("a file next to the results has exit code {code}")))
            .into_iter()
            .collect();
    }
    let Ok(object) = serde_json::from_str::<BTreeMap<String, Value>>(text) else { return Vec::new() };
    let fields = of_json(&object);
    let failed = fields.iter().find_map(|(name, value)| failure(name, value));
    let failed = failed.map(|why| lint(format!("a file next to the results says: {}", excerpt(&why, 80))));
    failed.into_iter().chain(fields.iter().filter_map(|(name, value)| problem(name, value))).collect()
}

/// Returns what a report of JUnit's form says about failed tests.
fn failed_tests(xml: &str) -> Option<String> {
    let (_, suites) = xml.split_once("<testsuite")?;
    ["failures", "errors"].into_iter().find_map(|what| {
        let attribute = format!("{what}=\"");
        let counts = suites.split(&attribute).skip(1);
        let failed =
            counts.filter_map(|rest| rest.split('"').next()?.parse::<u64>().ok()).any(|count| count > 0);
        failed.then(|| format!("a report of tests next to the results counts {what}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_states_a_failure_next_to_results_is_found() {
        for (name, text) in [
            (
                "07.xml",
                "<?xml version=\"1.0\"?><testsuites><testsuite name=\"pytest\" errors=\"0\" failures=\"1\" tests=\"2\">",
            ),
            ("05.rc", "139\n"),
            ("05/exit_code", "-11"),
            ("status.json", "{\"exit_code\": 139, \"status\": \"failed\"}"),
            ("24.meta.json", "{\"returncode\": -11}"),
            ("a.json", "{\"error\": \"Segmentation fault\"}"),
        ] {
            assert!(!beside(name, text).is_empty(), "{name}: {text}");
        }
        for (name, text) in [
            (
                "07.xml",
                "<testsuites><testsuite errors=\"0\" failures=\"0\" skipped=\"1\" tests=\"2\"></testsuite>",
            ),
            ("a.svg", "<svg><text>errors=\"3\"</text></svg>"),
            ("05.rc", "0\n"),
            ("seed", "139"),
            ("status.json", "{\"exit_code\": 0, \"status\": \"ok\", \"errors\": [], \"seconds\": 3}"),
            ("README.md", "errors are listed here"),
        ] {
            assert_eq!(beside(name, text), [], "{name}: {text}");
        }
    }
}
