//! `go test -json`: the output of `go test`, split into events. Packages run at the same time, so their events are
//! mixed.

use std::collections::HashMap;

use serde::Deserialize;

use benchgate_core::model::{Lint, LintCode, Run};

use super::benchfmt;
use super::build::carried;
use super::error::{LineFault, line_fault};
use super::json::parse_stream;
use super::text::crash;

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

/// Output of one package.
#[derive(Default)]
struct GoPackage {
    name: String,
    text: String,
    /// `pass`, `fail` or `skip` of the package as a whole has come.
    ended: bool,
    /// The package, or a test or benchmark of it, failed.
    failed: bool,
}

/// Reads the whole file.
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
        match event.action.as_str() {
            "output" => package.text.push_str(&event.output),
            action @ ("pass" | "fail" | "skip") => {
                package.ended |= event.test.is_none();
                // A package is skipped as a whole if it has no tests; then it has no results either.
                let has_results = || package.text.contains(" ns/op");
                package.failed |= action == "fail" || (action == "skip" && package.ended && has_results());
            }
            _ => {}
        }
        Ok(())
    })?;
    let texts: String = packages.iter().flat_map(|package| [package.text.as_str(), "\n"]).collect();
    // A line of the joined text is not one of the file.
    let mut run = benchfmt::read(&texts).map_err(|fault| line_fault(1, fault.what))?;
    run.lints.extend(crash(&texts, true));
    for package in packages.iter().filter(|package| !package.ended) {
        let detail = format!("package `{}` has no last event", package.name);
        run.lints.push(Lint::new(LintCode::TruncatedInput, detail));
    }
    for package in packages.iter().filter(|package| package.failed) {
        let detail =
            format!("an event says that package `{}` or a part of it failed or was skipped", package.name);
        run.lints.push(Lint::new(LintCode::TruncatedInput, detail));
    }
    Ok(run)
}
