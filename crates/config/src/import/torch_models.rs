//! torch_models: tests that name a module, which is a definition with the URL of an MLIR program and its
//! compile flags.

use std::collections::BTreeMap;

use serde_json::Value;

use benchgate_core::numerics::ParameterFill;

use super::definition::{Definition, Untranslated};
use super::suite::{
    ImportedLimit, ImportedModel, ImportedSuite, ImportedTarget, Judged, RemoteFiles, TOLERANCE_FACTOR,
    Tolerance, allowed_time,
};

const FAMILY: &str = "torch_models/";
/// Prefix of flags that the import drops, because benchgate collects these statistics itself.
pub(super) const STATISTICS: &str = "--iree-scheduling-dump-statistics-";
const BENCHMARK_FLAG: &str = "--benchmark_";
/// The keys that are read from each type of test.
const KEYS: [(&str, &[&str]); 3] = [
    (
        "benchmark",
        &["markers", "modules", "weights", "inputs", "run_args", "golden_time_ms", "tolerance_factor"],
    ),
    ("quality", &["markers", "modules", "weights", "inputs", "run_args", "expected_outputs"]),
    ("compstat", &["markers", "module", "golden_dispatch_count", "golden_binary_size"]),
];

/// A module that tests name: a program and its compile flags.
struct Module {
    file: String,
    mlir: String,
    flags: Vec<String>,
    /// A function that one of the module's tests calls.
    function: Option<String>,
    is_used: bool,
}

pub(super) fn read(
    definitions: Vec<Definition>,
    remote: &mut RemoteFiles<'_>,
    suite: &mut ImportedSuite,
    untranslated: &mut Vec<Untranslated>,
) {
    let (mut modules, mut tests) = (BTreeMap::new(), Vec::new());
    for mut definition in definitions {
        if definition.has("type") {
            tests.push(definition);
            continue;
        }
        let Some(mlir) = definition.text("mlir") else {
            untranslated.push(definition.untranslated("mlir", "expected a text"));
            continue;
        };
        let (mine, flags): (Vec<String>, Vec<String>) = definition
            .texts("compiler_flags", untranslated)
            .into_iter()
            .partition(|flag| flag.starts_with(STATISTICS));
        for flag in mine {
            untranslated.push(definition.untranslated(&flag, "benchgate reads these statistics itself"));
        }
        definition.unread(untranslated);
        let file = definition.file.clone();
        modules.insert(name_of(&file), Module { file, mlir, flags, function: None, is_used: false });
    }
    for test in &tests {
        if let (Some(module), Some(function)) = (only_module(test), function(test))
            && let Some(module) = modules.get_mut(module)
        {
            module.function = Some(function.to_owned());
        }
    }
    for test in tests {
        let whole = test.clone();
        let (mut model, mut partly) = (Test { suite, remote, modules: &mut modules }, Vec::new());
        match model.read(test, &mut partly) {
            Ok(()) => untranslated.append(&mut partly),
            // The error concerns the whole test, so every key of it is reported.
            Err(why) => whole.listed(|_| why.clone(), untranslated),
        }
    }
    for module in modules.into_values().filter(|module| !module.is_used) {
        let why = "no test that is imported uses this module".to_owned();
        untranslated.push(Untranslated { file: module.file, what: String::new(), why });
    }
}

/// The name that tests use for a module, such as `sdxl/modules/clip_cpu` for
/// `torch_models/sdxl/modules/clip_cpu.json`.
fn name_of(file: &str) -> String {
    let below = file.split_once(FAMILY).map_or(file, |(_, below)| below);
    below.strip_suffix(".json").unwrap_or(below).to_owned()
}

fn only_module(test: &Definition) -> Option<&str> {
    match (test.get("module"), test.get("modules")) {
        (Some(Value::String(module)), None) => Some(module),
        (None, Some(Value::Array(modules))) if modules.len() == 1 => modules[0].as_str(),
        _ => None,
    }
}

fn function(test: &Definition) -> Option<&str> {
    let arguments = test.get("run_args")?.as_array()?;
    arguments.iter().filter_map(Value::as_str).find_map(|argument| argument.strip_prefix("--function="))
}

/// The state that reading a test changes: the suite to which the test is added, the files that it
/// needs, and the modules that it can name.
struct Test<'a, 'b> {
    suite: &'a mut ImportedSuite,
    remote: &'a mut RemoteFiles<'b>,
    modules: &'a mut BTreeMap<String, Module>,
}

/// The source of the weights of one scope.
enum Weights {
    Archive(String),
    Made(ParameterFill),
}

/// The run flags of a test, sorted by the configuration key that they become.
#[derive(Default)]
pub(super) struct RunFlags {
    /// Flags for the runtime, including `--device`.
    pub(super) device: Vec<String>,
    pub(super) allocators: Vec<String>,
    /// The largest allowed absolute difference for each element type.
    thresholds: Vec<(String, f64)>,
}

impl Test<'_, '_> {
    /// Adds the test. If an error is returned, nothing of the test has been added.
    fn read(&mut self, mut test: Definition, untranslated: &mut Vec<Untranslated>) -> Result<(), String> {
        let kind = test.text("type").unwrap_or_default();
        let Some((_, keys)) = KEYS.into_iter().find(|(name, _)| *name == kind) else {
            return Err(format!("unknown type of test `{kind}`"));
        };
        let named = only_module(&test).ok_or("a benchmark has one module")?.to_owned();
        let module = self.modules.get(&named).ok_or_else(|| format!("there is no module `{named}`"))?;
        let (mlir, compile) = (module.mlir.clone(), module.flags.clone());
        // A test of compile statistics calls no function.
        let called = function(&test).map(str::to_owned).or_else(|| module.function.clone());
        let weights = Self::weights(&test)?;
        let typed = |key| arguments(&test, key);
        let (inputs, outputs) = (typed("inputs")?, typed("expected_outputs")?);
        let goldens = goldens(&test)?;
        let arguments = test.texts("run_args", untranslated);
        let flags = RunFlags::read(arguments, &test, untranslated);
        let name = name_of(&test.file).replace('/', "-");
        let judged = match kind.as_str() {
            "benchmark" => Judged::Latency,
            "quality" => Judged::Outputs,
            _ => Judged::Code,
        };
        let mut target = ImportedTarget::of_flags(&name, compile, flags.device.clone())
            .ok_or("the flags name no backend that benchgate knows")?;
        // All URLs are collected before any file is required, so that one download fetches every missing
        // file.
        let archives = weights.iter().filter_map(|(_, weights)| match weights {
            Weights::Archive(url) => Some(url.as_str()),
            Weights::Made(_) => None,
        });
        let urls = [mlir.as_str()].into_iter().chain(archives);
        let data = inputs.iter().chain(&outputs).filter_map(|(_, url)| url.as_deref());
        self.remote.want(urls.chain(data))?;
        let mut place = |url: &str| self.remote.place(url, self.suite);
        let source = place(&mlir);
        let parameters = weights.iter().map(|(scope, weights)| match weights {
            Weights::Archive(url) => format!("{scope}={}", place(url)),
            Weights::Made(fill) => format!("{scope}={fill}"),
        });
        let parameters = parameters.collect();
        let mut values = |list: Vec<(String, Option<String>)>| -> Vec<String> {
            let value = |(kind, url): (String, Option<String>)| match url {
                Some(url) => format!("{kind}=@{}", place(&url)),
                // The runtime fills a shape without values with zeros.
                None if !kind.contains('=') => format!("{kind}=0"),
                None => kind,
            };
            list.into_iter().map(value).collect()
        };
        let (inputs, expected) = (values(inputs), values(outputs));
        let markers = test.texts("markers", untranslated);
        let testbed = markers.iter().find_map(|marker| machine(marker));
        let tags = ["torch_models".to_owned()].into_iter().chain(markers).collect();
        let function = called.unwrap_or_else(|| "main".to_owned());
        let benchmark = format!("{name}/{name}/{function}");
        for (metric, max) in goldens {
            let (benchmark, testbed) = (benchmark.clone(), testbed.clone());
            self.suite.limits.push(ImportedLimit { benchmark, metric, max, testbed });
        }
        flags.add_thresholds(&benchmark, self.suite);
        (target.judged, target.allocators) = (judged, flags.allocators);
        self.suite.targets.push(target);
        let targets = vec![name.clone()];
        let model = ImportedModel { name, source, function, inputs, expected, parameters, tags, targets };
        self.suite.models.push(model);
        keys.iter().for_each(|key| test.drop_key(key));
        test.unread(untranslated);
        if let Some(module) = self.modules.get_mut(&named) {
            module.is_used = true;
        }
        Ok(())
    }

    /// The scopes of a test, each with its weights.
    fn weights(test: &Definition) -> Result<Vec<(String, Weights)>, String> {
        let archive = |entry: &Value| {
            let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
            let scope = text("scope").ok_or("the weights have no scope")?;
            let weights = match text("type").as_deref() {
                Some("url") => Weights::Archive(text("url").ok_or("the weights have no address")?),
                Some("random") if text("module").as_deref() == only_module(test) => {
                    let seed =
                        entry.get("seed").and_then(Value::as_u64).and_then(|seed| u32::try_from(seed).ok());
                    Weights::Made(ParameterFill::Random { seed: seed.ok_or("the weights have no seed")? })
                }
                Some("random") => return Err("the weights are those of another module".to_owned()),
                _ => return Err(format!("the weights have an unknown type: {entry}")),
            };
            Ok((scope, weights))
        };
        test.entries("weights")?.iter().map(archive).collect()
    }
}

impl RunFlags {
    /// Sorts the run flags of a test.
    pub(super) fn read(
        arguments: Vec<String>,
        test: &Definition,
        untranslated: &mut Vec<Untranslated>,
    ) -> Self {
        let mut flags = Self::default();
        for flag in arguments {
            let (key, value) = flag.split_once('=').unwrap_or((&flag, ""));
            let dtype = key.strip_prefix("--expected_").and_then(|rest| rest.strip_suffix("_threshold"));
            let threshold = value.trim_end_matches('f').parse::<f64>().ok();
            if let Some((dtype, threshold)) = dtype.zip(threshold) {
                flags.thresholds.push((dtype.to_owned(), threshold));
            } else if key == "--device_allocator" {
                flags.allocators.push(value.to_owned());
            } else if key.starts_with(BENCHMARK_FLAG) {
                untranslated.push(test.untranslated(&flag, "[measure] decides how often and how long"));
            } else if key != "--function" {
                flags.device.push(flag);
            }
        }
        flags
    }

    pub(super) fn add_thresholds(&self, benchmark: &str, suite: &mut ImportedSuite) {
        for (dtype, atol) in self.thresholds.iter().cloned() {
            suite.overrides.push((benchmark.to_owned(), Tolerance { dtype, atol, rtol: 0.0 }));
        }
    }
}

/// The types of a test's inputs or outputs, each with its value or the URL of its file.
fn arguments(test: &Definition, key: &str) -> Result<Vec<(String, Option<String>)>, String> {
    let argument = |entry: &Value| {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
        text("value")
            .map(|value| (value, text("url")))
            .ok_or_else(|| format!("`{key}` has an entry without `value`"))
    };
    test.entries(key)?.iter().map(argument).collect()
}

/// The metrics that a test limits, with their limits as TOML.
fn goldens(test: &Definition) -> Result<Vec<(&'static str, String)>, String> {
    let number = |key: &str| {
        let number = |value: &Value| value.as_f64().ok_or_else(|| format!("`{key}` is not a number"));
        test.get(key).map(number).transpose()
    };
    let factor = number("tolerance_factor")?.unwrap_or(TOLERANCE_FACTOR);
    let time = number("golden_time_ms")?.map(|golden| ("latency", allowed_time(golden, factor)));
    let count = number("golden_dispatch_count")?.map(|most| ("dispatch-count", most.to_string()));
    let size = number("golden_binary_size")?.map(|most| ("vmfb-size", most.to_string()));
    Ok(time.into_iter().chain(count).chain(size).collect())
}

/// The glob of the machines that a marker names: `mi325` is AMD's Instinct MI325X, which `*MI325*` matches.
pub(super) fn machine(marker: &str) -> Option<String> {
    let number = marker.strip_prefix("mi")?;
    let is_number = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| format!("*MI{number}*"))
}
