//! The test configurations of onnx_ops, torch_ops and onnx_models: flags for one target, and lists of tests.

use std::collections::{BTreeMap, BTreeSet};

use benchgate_core::model::FailureKind;

use super::definition::{Definition, Untranslated};
use super::suite::{Expected, ImportedLimit, ImportedModel, ImportedSuite, ImportedTarget, Judged};

/// The failure kinds that correspond to a run that a suite expects to fail. The suites count a
/// wrong output as a failed run.
pub(super) const RUN_FAILURES: [FailureKind; 2] = [FailureKind::Run, FailureKind::Divergence];
/// The lists of a configuration, with the failure kinds that each one declares. Tests in a list
/// without failure kinds are skipped.
const LISTS: [(&str, &[FailureKind]); 4] = [
    ("skip_compile_tests", &[]),
    ("skip_run_tests", &[]),
    ("expected_compile_failures", &[FailureKind::Compile]),
    ("expected_run_failures", &RUN_FAILURES),
];

pub(super) struct OperatorTest {
    /// The file that defines the test.
    pub(super) file: String,
    pub(super) model: ImportedModel,
    pub(super) judged: Judged,
}

/// Makes targets from configurations, and adds to each test the targets whose configuration does not skip it.
/// `tests` is keyed by the names that the lists use.
pub(super) fn add(
    mut tests: BTreeMap<String, OperatorTest>,
    configs: Vec<Definition>,
    suite: &mut ImportedSuite,
    untranslated: &mut Vec<Untranslated>,
) {
    // Without configurations, a test runs on the targets of the other suites.
    let is_placed = !configs.is_empty();
    for config in configs {
        target(config, &mut tests, suite, untranslated);
    }
    for OperatorTest { file, model, .. } in tests.into_values() {
        if is_placed && model.targets.is_empty() {
            let why = "every configuration leaves this test out".to_owned();
            untranslated.push(Untranslated { file, what: String::new(), why });
        } else {
            suite.models.push(model);
        }
    }
}

fn target(
    mut config: Definition,
    tests: &mut BTreeMap<String, OperatorTest>,
    suite: &mut ImportedSuite,
    untranslated: &mut Vec<Untranslated>,
) {
    let Some(targets) = Targets::of(&mut config, untranslated) else { return };
    let mut excluded = BTreeSet::new();
    for (key, failures) in LISTS {
        for name in config.texts(key, untranslated) {
            let Some(test) = tests.get(&name) else {
                untranslated
                    .push(config.untranslated(&format!("{key} {name}"), "no test of this name is imported"));
                continue;
            };
            targets.expect(suite, failures, format!("{key} of {}", config.file), test);
            if failures.is_empty() {
                let why = if key == "skip_run_tests" {
                    "the suite only compiles it; it is left out of this target"
                } else {
                    "the suite skips it; it is left out of this target"
                };
                untranslated.push(config.untranslated(&format!("{key} {name}"), why));
                excluded.insert(name);
            }
        }
    }
    for (name, max) in config.times("golden_times_ms", untranslated) {
        match tests.get(&name) {
            Some(test) if !excluded.contains(&name) => {
                let benchmark = targets.benchmark(test);
                suite.limits.push(ImportedLimit { benchmark, metric: "latency", max, testbed: None });
            }
            found => {
                let why =
                    if found.is_some() { "the test is left out" } else { "no test of this name is imported" };
                untranslated.push(config.untranslated(&format!("golden_times_ms {name}"), why));
            }
        }
    }
    config.unread(untranslated);
    let mut judged = BTreeSet::new();
    for (_, test) in tests.iter_mut().filter(|(name, _)| !excluded.contains(*name)) {
        test.model.targets.push(targets.name_for(test.judged));
        judged.insert(test.judged);
    }
    targets.add_to(suite, judged);
}

/// The targets made from one configuration: one for each criterion by which its tests are judged.
pub(super) struct Targets {
    name: String,
    target: ImportedTarget,
}

impl Targets {
    /// Returns `None`, and reports the whole configuration, if its flags name no backend.
    pub(super) fn of(config: &mut Definition, untranslated: &mut Vec<Untranslated>) -> Option<Self> {
        let name = config.stem().to_owned();
        if let Some(own) = config.text("config_name") {
            let why = "the target is named after the file, whose name is unique";
            untranslated.push(config.untranslated(&format!("config_name {own}"), why));
        }
        let whole = config.clone();
        let compile = config.texts("iree_compile_flags", untranslated);
        let run = config.texts("iree_run_module_flags", untranslated);
        let target = ImportedTarget::of_flags(&name, compile, run);
        if target.is_none() {
            whole.listed(|_| "the flags name no backend that benchgate knows".to_owned(), untranslated);
        }
        target.map(|target| Self { name, target })
    }

    pub(super) fn name_for(&self, judged: Judged) -> String {
        if judged == Judged::Latency { format!("{}-benchmark", self.name) } else { self.name.clone() }
    }

    fn benchmark(&self, test: &OperatorTest) -> String {
        let OperatorTest { model, judged, .. } = test;
        format!("{}/{}/{}", model.name, self.name_for(*judged), model.function)
    }

    /// Declares the failures that are expected of a test on this target; does nothing if there are none.
    pub(super) fn expect(
        &self,
        suite: &mut ImportedSuite,
        failures: &[FailureKind],
        reason: String,
        test: &OperatorTest,
    ) {
        if failures.is_empty() {
            return;
        }
        let benchmark = self.benchmark(test);
        match suite.expectations.iter_mut().find(|known| known.reason == reason && known.failures == failures)
        {
            Some(known) => known.benchmarks.push(benchmark),
            None => {
                let (failures, benchmarks) = (failures.to_vec(), vec![benchmark]);
                suite.expectations.push(Expected { failures, reason, benchmarks });
            }
        }
    }

    /// Adds a target for each criterion in `judged`.
    pub(super) fn add_to(&self, suite: &mut ImportedSuite, judged: BTreeSet<Judged>) {
        for judged in judged {
            suite.targets.push(ImportedTarget { name: self.name_for(judged), judged, ..self.target.clone() });
        }
    }
}
