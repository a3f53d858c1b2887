//! Files that lie next to results and say how the run that wrote these ended: reports of tests, exit codes, and objects with
//! a status.

use std::collections::BTreeMap;

use serde_json::Value;

use benchgate_core::model::{Lint, LintCode, excerpt, is_in, name_words, words};

use super::facts::{failure, of_json};

/// Words in the names of files that contain an exit code and nothing else.
const OF_CODES: &str = "rc exit exitcode exitstatus code status ret retcode returncode";

/// Words in the names of files that state how a run ended.
const OF_STATES: &str = "status meta metadata exit outcome";

/// Words of the fields in such a file that state it.
const STATES: &str = "exit code exitcode exitstatus return returncode rc status state outcome success succeeded passed ok failed error errors \
    killed timed out timeout crashed signal";

/// Returns what a file that is no result states about its run. The details are the same for runs that report the same.
pub fn beside(name: &str, text: &str) -> Vec<Lint> {
    let text = text.trim_start_matches('\u{feff}').trim();
    let lint = |what: String| Lint::new(LintCode::ReportedProblem, what);
    if text.starts_with('<') {
        return failed_tests(text).map(lint).into_iter().collect();
    }
    let file = name.rsplit('/').next().unwrap_or(name).to_lowercase();
    let words_of_file: Vec<&str> =
        words(&file).into_iter().filter(|word| word.parse::<u64>().is_err()).collect();
    if let Ok(code) = text.parse::<i64>() {
        // `07.rc`, `exit_code.txt`
        let ending = file.rsplit_once('.').map_or("", |(_, ending)| ending);
        let mut named = words_of_file.iter().filter(|word| !matches!(**word, "txt" | "log")).peekable();
        let are_all = named.peek().is_some() && named.all(|word| is_in(OF_CODES, word));
        let is_code = code != 0 && (is_in(OF_CODES, ending) || are_all);
        return is_code
            .then(|| lint(format!("a file next to the results has exit code {code}")))
            .into_iter()
            .collect();
    }
    // Other documents, such as the event of a job, can state failures of anything else.
    if !words_of_file.iter().any(|word| is_in(OF_STATES, word)) {
        return Vec::new();
    }
    let Ok(object) = serde_json::from_str::<BTreeMap<String, Value>>(text) else { return Vec::new() };
    let states =
        object.iter().filter(|(name, _)| words(&name_words(name)).iter().all(|word| is_in(STATES, word)));
    let failed = of_json(states).iter().find_map(|(name, value)| failure(name, value));
    let said = |why: String| lint(format!("a file next to the results says: {}", excerpt(&why, 80)));
    failed.map(said).into_iter().collect()
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
            ("r-05.exit", "1"),
            ("exit_status.txt", "1"),
            ("status.json", "{\"exit_code\": 139, \"status\": \"failed\"}"),
            ("24.meta.json", "{\"returncode\": -11}"),
            ("run-3.exit.json", "{\"error\": \"Segmentation fault\"}"),
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
            ("meta.json", "{\"message\": \"Fix error when file missing\", \"conclusion\": \"failure\"}"),
            ("benchmarks.json", "{\"time_mm\": {\"code\": \"raise Error('failed')\"}, \"error\": \"x\"}"),
            ("code_size.txt", "4096"),
            ("http_status", "200"),
            ("README.md", "errors are listed here"),
        ] {
            assert_eq!(beside(name, text), [], "{name}: {text}");
        }
    }
}
