//! onnx_models: Python tests, each of which downloads a model, and a configuration with each test's expected
//! outcome. onnx_ops: one folder per test, with an MLIR program, raw data and a file of flags for `iree-run-module`.

use std::collections::BTreeMap;

use serde_json::Value;

use benchgate_core::model::FailureKind;
use benchgate_core::numerics::TensorFile;

use super::SuiteFiles;
use super::definition::{Definition, Untranslated};
use super::operators::{self, OperatorTest, RUN_FAILURES, Targets};
use super::suite::{ImportedModel, ImportedSuite, Judged, RemoteFiles, Tolerance};

const FAMILY: &str = "onnx_models/";
/// The URL from which the suite downloads its models.
const MODELS: &str = "https://huggingface.co/onnxmodelzoo/legacy_models/resolve/main/";
const OUTCOMES: &str = "tests_and_expected_outcomes";

/// Returns true if a file contains tests.
pub(super) fn is_test(path: &str) -> bool {
    path.ends_with("_test.py") && path.split('/').any(|folder| folder == "onnx_models")
}

pub(super) fn read(
    files: &SuiteFiles,
    configs: Vec<Definition>,
    remote: &mut RemoteFiles<'_>,
    suite: &mut ImportedSuite,
    untranslated: &mut Vec<Untranslated>,
) {
    let tests: BTreeMap<String, PythonTest> = files
        .iter()
        .filter(|(path, _)| is_test(path))
        .flat_map(|(path, text)| tests(path, text.as_deref().unwrap_or_default()))
        .collect();
    let mut placed = BTreeMap::new();
    for config in configs {
        target(config, &tests, remote, suite, &mut placed, untranslated);
    }
    for (name, test) in tests.iter().filter(|(name, _)| !placed.contains_key(*name)) {
        let what = name.rsplit("::").next().unwrap_or(name).to_owned();
        let why = "no configuration runs it, or its file is not there".to_owned();
        untranslated.push(Untranslated { file: test.file.clone(), what, why });
    }
    suite.models.extend(placed.into_values().map(|test: OperatorTest| test.model));
}

/// One parameter of a parametrized pytest test, which is one model.
struct PythonTest {
    file: String,
    url: String,
}

/// The tests of a file, keyed by the name that configurations use for them, such as
/// `tests/…_test.py::test_models[resnet/model/resnet50-v1-12.onnx]`.
fn tests(path: &str, text: &str) -> Vec<(String, PythonTest)> {
    let below = path.split_once(FAMILY).map_or(path, |(_, below)| below);
    let base =
        text.lines().find_map(|line| line.strip_prefix("BASE_PATH = ")).map(|value| value.trim_matches('"'));
    let parameters = text.lines().filter_map(|line| {
        let parameter = line.trim_start().strip_prefix("pytest.param(\"")?;
        Some(parameter.split_once('"')?.0)
    });
    let test = |parameter: &str| {
        let url = format!("{MODELS}{}{parameter}", base.unwrap_or_default());
        (format!("{below}::test_models[{parameter}]"), PythonTest { file: path.to_owned(), url })
    };
    parameters.map(test).collect()
}

fn target(
    mut config: Definition,
    tests: &BTreeMap<String, PythonTest>,
    remote: &mut RemoteFiles<'_>,
    suite: &mut ImportedSuite,
    placed: &mut BTreeMap<String, OperatorTest>,
    untranslated: &mut Vec<Untranslated>,
) {
    let mut whole = config.clone();
    let Some(targets) = Targets::of(&mut config, untranslated) else { return };
    let Some(Value::Object(outcomes)) = config.get(OUTCOMES).cloned() else {
        return whole.listed(|_| format!("it has no table `{OUTCOMES}`"), untranslated);
    };
    let mut is_used = false;
    for (name, outcome) in &outcomes {
        let outcome = outcome.as_str().unwrap_or_default();
        let entry = format!("{OUTCOMES} {name} {outcome}");
        let failures = match outcome {
            "pass" => &[][..],
            "fail-import" | "fail-compile" => &[FailureKind::Compile][..],
            "fail-run" => &RUN_FAILURES,
            "skip" if name == "default" => continue,
            "skip" => {
                untranslated
                    .push(config.untranslated(&entry, "the suite skips it; it is left out of this target"));
                continue;
            }
            _ => {
                untranslated.push(config.untranslated(&entry, "unknown outcome"));
                continue;
            }
        };
        let Some(test) = tests.get(name) else {
            let why = if name == "default" {
                "only `skip` is known as the default"
            } else {
                "no test of this name is imported"
            };
            untranslated.push(config.untranslated(&entry, why));
            continue;
        };
        if let Err(why) = remote.want([test.url.as_str()].into_iter()) {
            untranslated.push(config.untranslated(&entry, why));
            continue;
        }
        let source = remote.place(&test.url, suite);
        let of_model =
            placed.entry(name.clone()).or_insert_with(|| OperatorTest::of_onnx(test.file.clone(), source));
        of_model.model.targets.push(targets.name_for(Judged::Outputs));
        targets.expect(suite, failures, format!("{OUTCOMES} of {}", config.file), of_model);
        is_used = true;
    }
    config.drop_key(OUTCOMES);
    config.unread(untranslated);
    if is_used {
        targets.add_to(suite, [Judged::Outputs].into());
        return;
    }
    // The entries of the outcome table were already reported one by one.
    [OUTCOMES, "config_name"].iter().for_each(|key| whole.drop_key(key));
    whole.listed(|_| "no test that is imported uses this configuration".to_owned(), untranslated);
}

impl OperatorTest {
    fn of_onnx(file: String, source: String) -> Self {
        let name = source.rsplit('/').next().unwrap_or_default();
        let name = name.strip_suffix(".onnx").unwrap_or(name).to_owned();
        let (function, tags) = ("main".to_owned(), vec!["onnx_models".to_owned()]);
        let model = ImportedModel { name, source, function, tags, ..ImportedModel::default() };
        Self { file, model, judged: Judged::Outputs }
    }
}

/// The file with a test's arguments. A folder that contains it is a test.
pub(super) const FLAG_FILE: &str = "run_module_io_flags.txt";
/// The suite's folder. The suite's lists name tests by their path below it.
const OPERATORS: &str = "onnx_ops/";

/// The default tolerances of `iree-run-module`, on which the suite relies: |a − b| ≤ atol + rtol·|b|.
const RTOL: f64 = 1e-5;
const ATOL: [(&str, f64); 4] = [("f64", 1e-4), ("f32", 1e-4), ("f16", 1e-3), ("bf16", 1e-2)];

/// onnx_ops: one folder per test, with an MLIR program, raw data and a file of flags for `iree-run-module`.
pub(super) fn read_operators(
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
        match operator_test(files, folder, text.as_deref().unwrap_or_default(), untranslated) {
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
    folder.split_once(OPERATORS).map_or(folder, |(_, test)| test).to_owned()
}

fn operator_test(
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
