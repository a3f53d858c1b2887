//! Counts the lines of test definitions that `benchgate import iree-test-suites` loses.
//!
//! `cargo bench --bench import_lines -- CHECKOUT LISTS` takes checkouts of iree-org/iree-test-suites and of
//! iree-org/iree's `tests/external/iree-test-suites`. Every file that is referred to by URL counts as
//! downloaded. Each line of each definition (a value of its JSON, or a flag of onnx_ops) is changed, and then
//! removed, one at a time. If the configuration and the list of untranslated items stay the same, the import
//! lost that line. Prints the counts of each suite, and every lost line.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench may panic, and prints its figures")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use benchgate::import::{self, FetchedFile, Imported, SuiteFiles};
use serde_json::Value;

const SUITES: [&str; 5] = ["torch_models", "sharktank_models", "torch_ops", "onnx_models", "onnx_ops"];
const FLAGS: &str = "run_module_io_flags.txt";

fn main() {
    let folders: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let [checkout, lists] = &folders[..] else {
        println!("usage: cargo bench --bench import_lines -- CHECKOUT LISTS");
        return;
    };
    let mut all = SuiteFiles::new();
    collect(Path::new(checkout), "", &mut all);
    collect(Path::new(lists), "lists/", &mut all);
    let whole = imported(&all);
    benchgate::config::parse(&whole.config, Path::new("benchgate.toml")).unwrap();
    println!(
        "{} models, {} targets, {} limits, {} expected failures; {} lines listed with a reason\n",
        whole.models,
        whole.targets,
        whole.limits,
        whole.expectations,
        whole.untranslated.len()
    );
    println!(
        "{:17} {:>11} {:>8} {:>7} {:>7} {:>5}",
        "suite", "definitions", "whole", "listed", "lines", "lost"
    );
    let mut is_complete = true;
    for suite in SUITES {
        let files: SuiteFiles = all
            .iter()
            .filter(|(path, _)| in_suite(path, suite))
            .map(|(path, text)| (path.clone(), text.clone()))
            .collect();
        let (counts, lost) = check(&files, suite);
        let [definitions, whole, listed, lines] = counts;
        println!("{suite:17} {definitions:>11} {whole:>8} {listed:>7} {lines:>7} {:>5}", lost.len());
        lost.iter().for_each(|line| println!("  lost: {line}"));
        is_complete &= lost.is_empty();
    }
    if !is_complete {
        std::process::exit(1);
    }
}

fn in_suite(path: &str, suite: &str) -> bool {
    path.split('/').any(|folder| folder == suite || folder == "test_suite_files")
}

/// Returns the numbers of definitions, of definitions without listed lines, of listed lines, of all lines,
/// and of lost lines; and the lost lines themselves.
fn check(files: &SuiteFiles, suite: &str) -> ([usize; 4], Vec<String>) {
    let before = imported(files);
    let definitions: Vec<(&String, &String)> = files
        .iter()
        .filter(|(path, _)| path.ends_with(".json") || path.ends_with(FLAGS))
        .filter_map(|(path, text)| Some((path, text.as_ref()?)))
        .collect();
    let listed: BTreeSet<&str> = before.untranslated.iter().map(|line| line.file.as_str()).collect();
    let whole = definitions.iter().filter(|(path, _)| !listed.contains(path.as_str())).count();
    let (mut lines, mut lost) = (0, Vec::new());
    for (path, text) in &definitions {
        // Each test of onnx_ops has a separate folder, which does not affect other tests.
        let folder = path.strip_suffix(FLAGS);
        let (files, before) = match folder {
            Some(folder) => {
                let own = files.range(folder.to_owned()..).take_while(|(path, _)| path.starts_with(folder));
                let own: SuiteFiles = own.map(|(path, text)| (path.clone(), text.clone())).collect();
                let before = imported(&own);
                (own, before)
            }
            None => (files.clone(), before.clone()),
        };
        let is_listed = before.untranslated.iter().any(|line| line.file == **path && line.what.is_empty());
        for (what, variants) in variants(text, folder.is_some()) {
            lines += 1;
            let is_held = variants.into_iter().any(|variant| {
                let mut files = files.clone();
                files.insert((*path).clone(), Some(variant));
                let after = imported(&files);
                (&after.config, &after.untranslated) != (&before.config, &before.untranslated)
            });
            if !is_held && !is_listed {
                lost.push(format!("{suite}: {path}: {what}"));
            }
        }
    }
    ([definitions.len(), whole, before.untranslated.len(), lines], lost)
}

/// Returns each line of a definition with two variants of the definition: one with another line in
/// its place, and one without the line.
fn variants(text: &str, is_flags: bool) -> Vec<(String, [String; 2])> {
    if is_flags {
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let variant = |at: usize, instead: &str| {
            let with = lines.iter().enumerate().map(|(other, line)| if other == at { instead } else { line });
            with.collect::<Vec<_>>().join("\n")
        };
        let both =
            |at: usize| (lines[at].to_owned(), [variant(at, &format!("{}x", lines[at])), variant(at, "")]);
        return (0..lines.len()).map(both).collect();
    }
    let Ok(value) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    let mut places = Vec::new();
    leaves(&value, &mut Vec::new(), &mut places);
    let both = |place: &Vec<String>| {
        let variant = |is_changed| {
            let mut value = value.clone();
            edit(&mut value, place, is_changed);
            value.to_string()
        };
        (place.join("."), [variant(true), variant(false)])
    };
    places.iter().map(both).collect()
}

/// Finds the positions of all values that contain no others.
fn leaves(value: &Value, place: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    let parts: Vec<(String, &Value)> = match value {
        Value::Object(parts) => parts.iter().map(|(key, part)| (key.clone(), part)).collect(),
        Value::Array(parts) => parts.iter().enumerate().map(|(at, part)| (at.to_string(), part)).collect(),
        // A null contains no information that an import could lose.
        Value::Null => return,
        _ => return found.push(place.clone()),
    };
    for (key, part) in parts {
        place.push(key);
        leaves(part, place, found);
        place.pop();
    }
}

/// Changes the value at a position, or removes it.
fn edit(value: &mut Value, place: &[String], is_changed: bool) {
    let [first, rest @ ..] = place else {
        *value = match &*value {
            Value::String(text) => Value::from(format!("{text}x")),
            Value::Number(number) => Value::from(number.as_f64().unwrap() * 3.0 + 1.0),
            Value::Bool(value) => Value::from(!value),
            _ => Value::from("x"),
        };
        return;
    };
    let is_removed = rest.is_empty() && !is_changed;
    match value {
        Value::Object(parts) if is_removed => drop(parts.remove(first)),
        Value::Array(parts) if is_removed => drop(parts.remove(first.parse::<usize>().unwrap())),
        Value::Object(parts) => edit(&mut parts[first], rest, is_changed),
        Value::Array(parts) => edit(&mut parts[first.parse::<usize>().unwrap()], rest, is_changed),
        _ => {}
    }
}

/// Imports as if each file that is referred to by URL had been downloaded.
fn imported(files: &SuiteFiles) -> Imported {
    let mut fetched: BTreeMap<String, FetchedFile> = BTreeMap::new();
    loop {
        let imported = import::iree_test_suites(files, &fetched, Some("lists/"));
        if imported.missing.is_empty() {
            return imported;
        }
        for url in imported.missing {
            fetched.insert(url, FetchedFile { sha256: "0".repeat(64), size: 1 });
        }
    }
}

fn collect(folder: &Path, prefix: &str, found: &mut SuiteFiles) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = format!("{prefix}{name}");
        let kind = entry.file_type().unwrap();
        if kind.is_dir() && name != ".git" {
            collect(&entry.path(), &format!("{path}/"), found);
        } else if kind.is_file() && name != "benchgate.toml" {
            // Files that a test's flags name must be below the suite's folder, so they are copied there
            // before an import.
            let path = path
                .strip_prefix("lists/")
                .filter(|path| path.starts_with("test_suite_files/"))
                .unwrap_or(&path);
            let text =
                import::is_definition(path).then(|| std::fs::read_to_string(entry.path()).ok()).flatten();
            found.insert(path.to_owned(), text);
        }
    }
}
