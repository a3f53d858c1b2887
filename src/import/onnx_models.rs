//! onnx_models: Python tests, each of which downloads a model, and a configuration with each test's expected
//! outcome.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::model::FailureKind;

use super::SuiteFiles;
use super::definition::{Definition, Untranslated};
use super::operators::{OperatorTest, RUN_FAILURES, Targets};
use super::suite::{ImportedModel, ImportedSuite, Judged, RemoteFiles};

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
