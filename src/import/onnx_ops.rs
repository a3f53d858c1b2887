//! onnx_ops: one folder per test, with an MLIR program, raw data and a file of flags for `iree-run-module`.

use std::collections::BTreeMap;

use crate::numerics::TensorFile;

use super::SuiteFiles;
use super::definition::{Definition, Untranslated};
use super::operators::{self, OperatorTest};
use super::suite::{ImportedModel, ImportedSuite, Judged, Tolerance};

/// The file with a test's arguments. A folder that contains it is a test.
pub(super) const FLAG_FILE: &str = "run_module_io_flags.txt";
/// The suite's folder. The suite's lists name tests by their path below it.
const FAMILY: &str = "onnx_ops/";

/// The default tolerances of `iree-run-module`, on which the suite relies: |a − b| ≤ atol + rtol·|b|.
const RTOL: f64 = 1e-5;
const ATOL: [(&str, f64); 4] = [("f64", 1e-4), ("f32", 1e-4), ("f16", 1e-3), ("bf16", 1e-2)];

pub(super) fn read(
    files: &SuiteFiles,
    configs: Vec<Definition>,
    suite: &mut ImportedSuite,
    untranslated: &mut Vec<Untranslated>,
) {
    // The key is the name that the suite's lists use.
    let mut tests: BTreeMap<String, OperatorTest> = BTreeMap::new();
    for (path, text) in files {
        let Some(folder) = path.strip_suffix(FLAG_FILE).and_then(|folder| folder.strip_suffix('/')) else {
            continue;
        };
        match test(files, folder, text.as_deref().unwrap_or_default(), untranslated) {
            Ok(model) => {
                let test = OperatorTest { file: path.clone(), model, judged: Judged::Outputs };
                tests.insert(listed_as(folder), test);
            }
            Err(why) => untranslated.push(why),
        }
    }
    if tests.is_empty() && configs.is_empty() {
        return;
    }
    operators::add(tests, configs, suite, untranslated);
    suite.tolerances =
        ATOL.map(|(dtype, atol)| Tolerance { dtype: dtype.to_owned(), atol, rtol: RTOL }).to_vec();
}
/// The name that the suite's lists use for a test: `onnx/node/generated/test_abs` for the folder
/// `onnx_ops/onnx/node/generated/test_abs`.
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
        return Err(failed("", "the MLIR program has no public function"));
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
