//! `go test -json`: the output of `go test`, split into events. Packages run at the same time, so their
//! events are interleaved.

use std::collections::HashMap;

use serde::Deserialize;

use benchgate_core::model::{Lint, LintCode, Run};

use super::benchfmt;
use super::build::carried;
use super::error::{LineFault, line_fault};
use super::json::parse_stream;
use super::text::{crash, problems};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GoEvent {
    action: String,
    #[serde(default)]
    package: String,
    test: Option<String>,
    #[serde(default)]
    output: String,
}

#[derive(Default)]
struct GoPackage {
    name: String,
    text: String,
    /// True if the last event is the package's own `pass`, `fail` or `skip`.
    ended: bool,
    /// True if the package failed, or one of its tests or benchmarks.
    failed: bool,
}

pub(super) fn read(text: &str) -> Result<Run, LineFault> {
    let mut packages: Vec<GoPackage> = Vec::new();
    let mut index: HashMap<String, usize> = HashMap::new();
    parse_stream(text, |event: GoEvent| {
        let at = match index.get(&event.package) {
            Some(at) => *at,
            None => {
                let name = carried(&event.package)?.to_owned();
                packages.push(GoPackage { name, ..GoPackage::default() });
                index.insert(event.package, packages.len() - 1);
                packages.len() - 1
            }
        };
        let package = &mut packages[at];
        let is_final = matches!(event.action.as_str(), "pass" | "fail" | "skip") && event.test.is_none();
        // Building a package has events without a package.
        package.ended = is_final || event.action.starts_with("build-");
        match event.action.as_str() {
            "output" | "build-output" => package.text.push_str(&event.output),
            "build-fail" => package.failed = true,
            action @ ("pass" | "fail" | "skip") => {
                // A package without tests is skipped as a whole; it has no results either.
                let has_results = || package.text.contains(" ns/op");
                package.failed |= action == "fail" || (action == "skip" && package.ended && has_results());
            }
            _ => {}
        }
        Ok(())
    })?;
    let texts: String = packages.iter().flat_map(|package| [package.text.as_str(), "\n"]).collect();
    // A line number in the joined text doesn't exist in the file, so the error names line 1.
    let mut run = benchfmt::read(&texts).map_err(|fault| line_fault(1, fault.what))?;
    run.lints.extend(crash(&texts, true));
    run.lints.extend(problems(&texts));
    for package in packages.iter().filter(|package| !package.ended) {
        let detail = format!("the final event of package `{}` is missing", package.name);
        run.lints.push(Lint::new(LintCode::TruncatedInput, detail));
    }
    for package in packages.iter().filter(|package| package.failed) {
        let detail =
            format!("an event says that package `{}` or a part of it failed or was skipped", package.name);
        run.lints.push(Lint::new(LintCode::TruncatedInput, detail));
    }
    Ok(run)
}
