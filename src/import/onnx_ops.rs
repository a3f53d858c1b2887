//! onnx_ops: a folder for each test, with an MLIR program, raw data and a file of flags for `iree-run-module`.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::FailureKind;
use crate::numerics::TensorFile;

use super::SuiteFiles;
use super::definition::{Definition, Untranslated};
use super::suite::{Expected, ImportedModel, ImportedSuite, ImportedTarget, Tolerance};

/// The file with a test's arguments: its presence makes a folder a test.
pub(super) const FLAG_FILE: &str = "run_module_io_flags.txt";
/// The folder of the suite, from which its lists name tests.
const FAMILY: &str = "onnx_ops/";

/// The defaults of `iree-run-module`, which the suite is written for: |a − b| ≤ atol + rtol·|b|.
const RTOL: f64 = 1e-5;
/// The lists of a configuration, and the failures that each one declares; none for tests that are left out. The
/// suite's failed runs include wrong outputs.
const LISTS: [(&str, &[FailureKind]); 4] = [
    ("skip_compile_tests", &[]),
    ("skip_run_tests", &[]),
    ("expected_compile_failures", &[FailureKind::Compile]),
    ("expected_run_failures", &[FailureKind::Run, FailureKind::Divergence]),
];
const ATOL: [(&str, f64); 4] = [("f64", 1e-4), ("f32", 1e-4), ("f16", 1e-3), ("bf16", 1e-2)];

pub(super) fn read(
    files: &SuiteFiles,
    configs: Vec<Definition>,
    suite: &mut ImportedSuite,
    untranslated: &mut Vec<Untranslated>,
) {
    // By the name that the lists use.
    let mut tests: BTreeMap<String, ImportedModel> = BTreeMap::new();
    for (path, text) in files {
        let Some(folder) = path.strip_suffix(FLAG_FILE).and_then(|folder| folder.strip_suffix('/')) else {
            continue;
        };
        match test(files, folder, text.as_deref().unwrap_or_default(), untranslated) {
            Ok(model) => drop(tests.insert(listed_as(folder), model)),
            Err(why) => untranslated.push(why),
        }
    }
    if tests.is_empty() && configs.is_empty() {
        return;
    }
    let mut excluded: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for config in configs {
        target(config, &tests, &mut excluded, suite, untranslated);
    }
    let targets: Vec<String> = suite.targets.iter().map(|target| target.name.clone()).collect();
    for (test, mut model) in tests {
        let excluded = excluded.get(&test);
        let is_included = |target: &&String| excluded.is_none_or(|excluded| !excluded.contains(*target));
        // Those of other suites come later.
        model.targets = targets.iter().filter(is_included).cloned().collect();
        if model.targets.is_empty() && !targets.is_empty() {
            // Each of its targets was listed when it was excluded.
            continue;
        }
        suite.models.push(model);
    }
    suite.tolerances =
        ATOL.map(|(dtype, atol)| Tolerance { dtype: dtype.to_owned(), atol, rtol: RTOL }).to_vec();
}

/// `onnx/node/generated/test_abs` of `onnx_ops/onnx/node/generated/test_abs`.
fn listed_as(folder: &str) -> String {
    folder.split_once(FAMILY).map_or(folder, |(_, test)| test).to_owned()
}

fn test(
    files: &SuiteFiles,
    folder: &str,
    flags: &str,
    untranslated: &mut Vec<Untranslated>,
) -> Result<ImportedModel, Untranslated> {
    let failed = |what: &str, why: &str| Untranslated {
        file: format!("{folder}/{FLAG_FILE}"),
        what: what.to_owned(),
        why: why.to_owned(),
    };
    let prefix = format!("{folder}/");
    let below = files.range(prefix.clone()..).take_while(|(path, _)| path.starts_with(&prefix));
    let mut programs = below.filter(|(path, _)| path.ends_with(".mlir") || path.ends_with(".mlirbc"));
    let Some((source, text)) = programs.next() else {
        return Err(failed("", "the folder has no MLIR program"));
    };
    if programs.next().is_some() {
        return Err(failed("", "the folder has several MLIR programs"));
    }
    let Some(function) = text.as_deref().and_then(public_function) else {
        return Err(failed("", "its MLIR program has no public function"));
    };
    let (mut inputs, mut expected) = (Vec::new(), Vec::new());
    for line in flags.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (flag, value) = line.split_once('=').unwrap_or((line, ""));
        let data = match value.split_once("=@") {
            Some((kind, file)) => format!("{kind}=@{folder}/{file}"),
            None => value.to_owned(),
        };
        match flag {
            "--input" => inputs.push(data),
            "--expected_output" if TensorFile::parse(&data).is_some() => expected.push(data),
            "--expected_output" => return Err(failed(line, "the reference is not a file")),
            _ => untranslated.push(failed(line, "only `--input` and `--expected_output` are known")),
        }
    }
    let name = folder.rsplit('/').next().unwrap_or(folder).to_owned();
    Ok(ImportedModel {
        name,
        source: source.clone(),
        function: function.to_owned(),
        inputs,
        expected,
        parameters: Vec::new(),
        tags: vec!["onnx_ops".to_owned()],
        targets: Vec::new(),
    })
}

/// The first function that the module exports.
fn public_function(mlir: &str) -> Option<&str> {
    let mut functions =
        mlir.match_indices("func.func ").map(|(at, word)| mlir[at + word.len()..].trim_start());
    let public = functions.find_map(|rest| rest.strip_prefix("public ").unwrap_or(rest).strip_prefix('@'))?;
    let end = public.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$' | '-')))?;
    Some(&public[..end]).filter(|name| !name.is_empty())
}

fn target(
    mut config: Definition,
    tests: &BTreeMap<String, ImportedModel>,
    excluded: &mut BTreeMap<String, BTreeSet<String>>,
    suite: &mut ImportedSuite,
    untranslated: &mut Vec<Untranslated>,
) {
    // The file's name is unique, and the name that it gives itself is not.
    config.drop_key("config_name");
    let name = config.stem().to_owned();
    let compile = config.texts("iree_compile_flags", untranslated);
    let run = config.texts("iree_run_module_flags", untranslated);
    let Some(target) = ImportedTarget::of_flags(&name, compile, run) else {
        untranslated
            .push(config.untranslated("iree_compile_flags", "they name no backend that benchgate knows"));
        return;
    };
    let file = config.file.clone();
    let mut without = |test: &str| excluded.entry(test.to_owned()).or_default().insert(name.clone());
    for (key, use_of) in LISTS {
        let entries = config.texts(key, untranslated);
        let mut expected = Expected {
            failures: use_of.to_vec(),
            reason: format!("{key} of {file}"),
            benchmarks: Vec::new(),
        };
        for test in entries {
            let Some(model) = tests.get(&test) else {
                untranslated.push(entry(&file, key, &test, "there is no such test"));
                continue;
            };
            if use_of.is_empty() {
                without(&test);
                let why = if key == "skip_run_tests" {
                    "the suite only compiles it; it is left out of this target"
                } else {
                    "the suite skips it; it is left out of this target"
                };
                untranslated.push(entry(&file, key, &test, why));
            } else {
                expected.benchmarks.push(format!("{}/{name}/{}", model.name, model.function));
            }
        }
        if !expected.benchmarks.is_empty() {
            suite.expectations.push(expected);
        }
    }
    config.unread(untranslated);
    suite.targets.push(target);
}

fn entry(file: &str, key: &str, test: &str, why: &str) -> Untranslated {
    Untranslated { file: file.to_owned(), what: format!("{key} {test}"), why: why.to_owned() }
}
