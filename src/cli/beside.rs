//! Files next to results that say how the runs of these results ended.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use crate::ingest;
use crate::model::{Lint, LintCode};

use super::numbered;

/// Size limit for a file that nobody named.
const LARGEST: u64 = 64 << 20;

/// The findings of the files that have the name of a result: `head-07.log` next to `head-07.json`. `results` are all results,
/// which are read anyway.
pub fn of_result(result: &str, results: &HashSet<&str>) -> Vec<Lint> {
    let read = |path: &String| {
        let is_small = fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() <= LARGEST);
        // Nobody named this file, so an unreadable one is no error.
        let bytes = fs::read(path).ok().filter(|_| is_small)?;
        // A program can have the name of its result.
        (!bytes.contains(&0)).then_some(bytes)
    };
    let paths = names(result).into_iter().filter(|path| !results.contains(path.as_str()));
    paths.filter_map(|path| Some(said(&path, &read(&path)?, results))).flatten().collect()
}

/// The names of files that can say how the run of a result ended.
fn names(result: &str) -> Vec<String> {
    const ENDINGS: [&str; 9] = ["log", "err", "out", "stderr", "stdout", "failed", "rc", "exit", "xml"];
    let stem = Path::new(result).with_extension("");
    let stems = [Path::new(result), &stem].map(|path| path.display().to_string());
    let names = stems.iter().flat_map(|stem| ENDINGS.iter().map(move |ending| format!("{stem}.{ending}")));
    names.filter(|name| name != result).collect()
}

/// Returns the findings about the runs of the results that a file which is none of them states.
pub fn said(path: &str, bytes: &[u8], results: &HashSet<&str>) -> Vec<Lint> {
    let text = String::from_utf8_lossy(bytes);
    if numbered::marks_failure_of_result(path, results) {
        return vec![Lint::new(LintCode::ReportedProblem, "a file marks a run as failed")];
    }
    if numbered::is_log(path) || numbered::is_text_of_result(path, results) {
        return ingest::logged_problems(&text);
    }
    ingest::beside(path, &text)
}
