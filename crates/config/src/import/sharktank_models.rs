//! sharktank_models: quality tests, which compile a program and compare its outputs, and benchmarks
//! of the modules that the quality tests compile. A ROCm test is imported once for each chip that
//! it names.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use benchgate_core::model::FailureKind;

use super::SuiteFiles;
use super::definition::{Definition, Untranslated};
use super::operators::RUN_FAILURES;
use super::suite::{
    Expected, ImportedLimit, ImportedModel, ImportedSuite, ImportedTarget, Judged, RemoteFiles,
    TOLERANCE_FACTOR, allowed_time,
};
use super::torch_models::{RunFlags, STATISTICS, machine};

/// The machines that the suite names, each with the architecture of its GPU.
const CHIPS: [(&str, &str); 4] =
    [("mi250", "gfx90a"), ("mi300", "gfx942"), ("mi308", "gfx942"), ("mi325", "gfx942")];
/// The architecture for which the suite compiles a test that names no machine.
const USUAL_CHIP: &str = "gfx942";
/// Tables with one value per machine.
const GOLDENS: [&str; 4] =
    ["golden_time_ms", "golden_time_tolerance_multiplier", "golden_dispatch", "golden_size"];
const BENCHMARK_KEYS: [&str; 5] =
    ["inputs", "function_run", "device", "benchmark_flags", "specific_chip_to_ignore"];
const QUALITY_KEYS: [&str; 13] = [
    "inputs",
    "outputs",
    "device",
    "real_weights",
    "mlir",
    "compiler_flags",
    "threshold_args",
    "run_function",
    "tuner_file",
    "compile_only",
    "run_test_expecting_to_fail",
    "compile_chip_expecting_to_fail",
    "add_pipeline_module",
];

pub(super) fn read(
    files: &SuiteFiles,
    outside: Option<&str>,
    definitions: Vec<Definition>,
    remote: &mut RemoteFiles<'_>,
    suite: &mut ImportedSuite,
    untranslated: &mut Vec<Untranslated>,
) {
    let (mut quality, mut benchmarks) = (BTreeMap::new(), Vec::new());
    for definition in definitions {
        let mut folders = definition.file.rsplit('/').skip(2);
        match folders.next() {
            Some("quality_tests") => drop(quality.insert(name_of(&definition), definition)),
            Some("benchmarks") => benchmarks.push(definition),
            _ => definition.listed(|_| "neither a benchmark nor a quality test".to_owned(), untranslated),
        }
    }
    let mut import = Import { files, outside, remote, suite };
    for benchmark in benchmarks {
        let partner = quality.get(&name_of(&benchmark));
        import.add(benchmark, |import, test, partly| import.benchmark(test, partner, partly), untranslated);
    }
    for test in quality.into_values() {
        import.add(test, |import, test, partly| import.quality(test, partly), untranslated);
    }
}

/// The name of a test, such as `sdxl-clip_rocm` for `…/sdxl/clip_rocm.json`. A benchmark has the same name as
/// the quality test that compiles its module.
fn name_of(definition: &Definition) -> String {
    let model = definition.file.rsplit('/').nth(1).unwrap_or_default();
    format!("{model}-{}", definition.stem())
}

/// The state of an import: the inputs, and the suite to which tests are added.
struct Import<'a, 'b> {
    files: &'a SuiteFiles,
    /// A folder of files that the configuration can't name, because it is outside the suite.
    outside: Option<&'a str>,
    remote: &'a mut RemoteFiles<'b>,
    suite: &'a mut ImportedSuite,
}

/// The program and flags of a test for one chip.
struct Program {
    mlir: String,
    /// The URL of the weights; without one, all weights are zero.
    weights: Option<String>,
    flags: Vec<String>,
}

impl Import<'_, '_> {
    /// Adds a test. If it can't be translated, everything in it is reported.
    fn add(
        &mut self,
        mut test: Definition,
        read: impl FnOnce(&mut Self, &mut Definition, &mut Vec<Untranslated>) -> Result<(), String>,
        untranslated: &mut Vec<Untranslated>,
    ) {
        let (whole, mut partly) = (test.clone(), Vec::new());
        match read(self, &mut test, &mut partly) {
            Ok(()) => {
                untranslated.append(&mut partly);
                test.unread(untranslated);
            }
            Err(why) => whole.listed(|_| why.clone(), untranslated),
        }
    }

    fn benchmark(
        &mut self,
        test: &mut Definition,
        quality: Option<&Definition>,
        partly: &mut Vec<Untranslated>,
    ) -> Result<(), String> {
        if test.has("modules") {
            return Err("the test calls several modules".to_owned());
        }
        let quality = quality.ok_or("no quality test has this name, so nothing compiles its module")?;
        let inputs = texts(test, "inputs")?.into_iter().map(|kind| format!("{kind}=0")).collect::<Vec<_>>();
        let ignored: BTreeSet<String> = texts(test, "specific_chip_to_ignore")?.into_iter().collect();
        let function = test.get("function_run").and_then(Value::as_str).unwrap_or("main").to_owned();
        let mut flags = RunFlags::read(texts(test, "benchmark_flags")?, test, partly);
        flags.device.extend(device(test)?);
        for chip in &ignored {
            partly.push(test.untranslated(
                &format!("specific_chip_to_ignore {chip}"),
                "benchgate makes no target for this chip",
            ));
        }
        let limits = limits(test)?;
        let machines: BTreeSet<&str> = limits.iter().map(|(machine, ..)| machine.as_str()).collect();
        let chips = chips(test, &machines)?
            .into_iter()
            .filter(|chip| !chip.is_some_and(|chip| ignored.contains(chip)));
        let chips: Vec<Option<&str>> = chips.collect();
        let programs = self.programs(quality, &chips)?;
        let named = test.get("real_weights_file_name").and_then(Value::as_str);
        for (chip, program) in chips.into_iter().zip(programs) {
            let archive = program.weights.as_deref().and_then(|url| url.rsplit('/').next());
            if named.is_some() && named != archive {
                return Err(format!("the quality test has other weights, {}", archive.unwrap_or("none")));
            }
            let name = placed_name(&format!("{}-benchmark", name_of(test)), chip);
            let benchmark = format!("{name}/{name}/{function}");
            for (sku, metric, max) in limits.iter().filter(|(sku, ..)| chip_of(sku) == chip) {
                let (benchmark, testbed) = (benchmark.clone(), machine(sku));
                self.suite.limits.push(ImportedLimit { benchmark, metric, max: max.clone(), testbed });
            }
            let model =
                ImportedModel { inputs: inputs.clone(), function: function.clone(), ..Default::default() };
            self.place(name, model, program, &flags, Judged::Latency)?;
        }
        GOLDENS
            .iter()
            .chain(&BENCHMARK_KEYS)
            .chain(&["real_weights_file_name"])
            .for_each(|key| test.drop_key(key));
        Ok(())
    }

    fn quality(&mut self, test: &mut Definition, partly: &mut Vec<Untranslated>) -> Result<(), String> {
        if test.get("add_pipeline_module") == Some(&Value::Bool(true)) {
            return Err("the test calls several modules".to_owned());
        }
        let flag = |key: &str| {
            test.get(key).map_or(Some(false), Value::as_bool).ok_or(format!("`{key}` is not a boolean"))
        };
        let (only_compiled, fails) = (flag("compile_only")?, flag("run_test_expecting_to_fail")?);
        let function = test.get("run_function").and_then(Value::as_str).unwrap_or("main").to_owned();
        let (inputs, outputs) = (data(test, "inputs")?, data(test, "outputs")?);
        let failing: BTreeSet<String> = texts(test, "compile_chip_expecting_to_fail")?.into_iter().collect();
        let mut flags = RunFlags::read(texts(test, "threshold_args")?, test, partly);
        flags.device.extend(device(test)?);
        let chips: Vec<Option<&str>> = chips(test, &BTreeSet::new())?.into_iter().collect();
        let programs = self.programs(test, &chips)?;
        self.remote.want(inputs.iter().chain(&outputs).map(|(url, _)| url.as_str()))?;
        let mut files = |list: &[(String, Option<String>)]| -> Vec<String> {
            let file = |(url, kind): &(String, Option<String>)| {
                let path = self.remote.place(url, self.suite);
                kind.as_ref().map_or_else(|| path.clone(), |kind| format!("{kind}=@{path}"))
            };
            list.iter().map(file).collect()
        };
        let (inputs, expected) = (files(&inputs), files(&outputs));
        let judged = if only_compiled { Judged::Code } else { Judged::Outputs };
        for (chip, program) in chips.into_iter().zip(programs) {
            let name = placed_name(&format!("{}-quality", name_of(test)), chip);
            let (inputs, expected) = (inputs.clone(), expected.clone());
            let benchmark = format!("{name}/{name}/{function}");
            let expectations = [
                (
                    chip.is_some_and(|chip| failing.contains(chip)),
                    "compile_chip_expecting_to_fail",
                    &[FailureKind::Compile][..],
                ),
                (fails, "run_test_expecting_to_fail", &RUN_FAILURES),
            ];
            for (_, key, failures) in expectations.into_iter().filter(|(applies, ..)| *applies) {
                self.suite.expectations.push(Expected {
                    failures: failures.to_vec(),
                    reason: format!("{key} of {}", test.file),
                    benchmarks: vec![benchmark.clone()],
                });
            }
            let model = ImportedModel { inputs, expected, function: function.clone(), ..Default::default() };
            self.place(name, model, program, &flags, judged)?;
        }
        for flag in texts(test, "compiler_flags")?.iter().filter(|flag| flag.starts_with(STATISTICS)) {
            partly.push(test.untranslated(flag, "benchgate reads these statistics itself"));
        }
        if let Some(group) = test.text("custom_real_weights_group") {
            partly.push(test.untranslated(
                &format!("custom_real_weights_group {group}"),
                "a folder of the suite's own cache",
            ));
        }
        QUALITY_KEYS.iter().for_each(|key| test.drop_key(key));
        Ok(())
    }

    /// The program of a quality test for each chip, once every file that it needs has been downloaded.
    fn programs(&mut self, quality: &Definition, chips: &[Option<&str>]) -> Result<Vec<Program>, String> {
        let text = |key: &str| quality.get(key).and_then(Value::as_str).map(str::to_owned);
        let (mlir, weights) = (text("mlir").ok_or("the quality test has no program")?, text("real_weights"));
        let mut compiled = texts(quality, "compiler_flags")?;
        compiled.retain(|flag| !flag.starts_with(STATISTICS));
        let mut programs = Vec::new();
        for chip in chips {
            let mut flags = compiled.clone();
            if let Some(spec) = self.tuner(quality, *chip)? {
                flags.push(format!("--iree-codegen-transform-dialect-library={spec}"));
            }
            flags.extend(chip.map(|chip| format!("--iree-rocm-target={chip}")));
            programs.push(Program { mlir: mlir.clone(), weights: weights.clone(), flags });
        }
        self.remote.want([mlir.as_str()].into_iter().chain(weights.as_deref()))?;
        Ok(programs)
    }

    /// The transform dialect library for a chip. The suite names one per machine, so machines with the same
    /// chip must agree.
    fn tuner(&self, quality: &Definition, chip: Option<&str>) -> Result<Option<String>, String> {
        let Some(table) = quality.get("tuner_file") else { return Ok(None) };
        let table = table.as_object().ok_or("`tuner_file` is not a table")?;
        let of_chip = table.iter().filter(|(sku, _)| chip_of(sku) == chip).map(|(_, file)| file);
        let names: BTreeSet<&str> =
            of_chip.map(Value::as_str).collect::<Option<_>>().ok_or("`tuner_file` has no file")?;
        let mut names = names.into_iter();
        let Some(name) = names.next() else { return Ok(None) };
        if names.next().is_some() {
            return Err("`tuner_file` differs between machines of one chip".to_owned());
        }
        let ending = format!("/{name}");
        let is_outside = |path: &str| self.outside.is_some_and(|outside| path.starts_with(outside));
        let found = self.files.keys().find(|path| path.ends_with(&ending) && !is_outside(path));
        found
            .cloned()
            .map(Some)
            .ok_or_else(|| format!("`{name}` of `tuner_file` is not below the suite's folder"))
    }

    fn place(
        &mut self,
        name: String,
        model: ImportedModel,
        program: Program,
        flags: &RunFlags,
        judged: Judged,
    ) -> Result<(), String> {
        let target = ImportedTarget::of_flags(&name, program.flags, flags.device.clone());
        let target = target.ok_or("the flags name no backend that benchgate knows")?;
        self.suite.targets.push(ImportedTarget { judged, allocators: flags.allocators.clone(), ..target });
        let benchmark = format!("{name}/{name}/{}", model.function);
        flags.add_thresholds(&benchmark, self.suite);
        let source = self.remote.place(&program.mlir, self.suite);
        let weights = match program.weights {
            Some(url) => self.remote.place(&url, self.suite),
            None => "zeros()".to_owned(),
        };
        let (parameters, targets) = (vec![format!("model={weights}")], vec![name.clone()]);
        let tags = vec!["sharktank_models".to_owned()];
        self.suite.models.push(ImportedModel { name, source, parameters, tags, targets, ..model });
        Ok(())
    }
}

fn placed_name(name: &str, chip: Option<&str>) -> String {
    chip.map_or_else(|| name.to_owned(), |chip| format!("{name}-{chip}"))
}

/// The GPU architecture of a machine; `None` if the suite's machines don't include it.
fn chip_of(sku: &str) -> Option<&'static str> {
    CHIPS.into_iter().find(|(known, _)| *known == sku).map(|(_, chip)| chip)
}

/// The chips that a test is compiled for; a CPU test has the single entry `None`.
fn chips<'a>(test: &'a Definition, machines: &BTreeSet<&str>) -> Result<BTreeSet<Option<&'a str>>, String> {
    match test.stem().rsplit('_').next() {
        Some("cpu") => return Ok(BTreeSet::from([None])),
        Some("rocm") => {}
        _ => return Err("the name does not end with a backend that the suite knows".to_owned()),
    }
    let mut chips: BTreeSet<Option<&str>> = machines.iter().map(|sku| chip_of(sku)).collect();
    if chips.contains(&None) {
        return Err(format!("one of the machines is unknown: {machines:?}"));
    }
    let failing = test.get("compile_chip_expecting_to_fail").and_then(Value::as_array);
    chips.extend(failing.into_iter().flatten().map(Value::as_str));
    chips.insert(Some(USUAL_CHIP));
    Ok(chips)
}

fn device(test: &Definition) -> Result<Option<String>, String> {
    let device =
        test.get("device").map(|device| device.as_str().ok_or("`device`: expected a string")).transpose()?;
    Ok(device.map(|device| format!("--device={device}")))
}

fn texts(test: &Definition, key: &str) -> Result<Vec<String>, String> {
    let text = |entry: &Value| {
        entry.as_str().map(str::to_owned).ok_or_else(|| format!("`{key}` is not a list of texts"))
    };
    test.entries(key)?.iter().map(text).collect()
}

/// The URLs of a test's data. Raw files also have a type.
fn data(test: &Definition, key: &str) -> Result<Vec<(String, Option<String>)>, String> {
    let entry = |entry: &Value| {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
        Ok((text("source").ok_or_else(|| format!("`{key}` has an entry without `source`"))?, text("value")))
    };
    test.entries(key)?.iter().map(entry).collect()
}

/// The machine, metric and limit (as TOML) of each golden value.
fn limits(test: &Definition) -> Result<Vec<(String, &'static str, String)>, String> {
    let table = |key: &str| {
        let table =
            test.get(key).map(|table| table.as_object().ok_or_else(|| format!("`{key}` is not a table")));
        let numbers = table.transpose()?.into_iter().flatten().map(|(sku, value)| {
            Ok((sku.clone(), value.as_f64().ok_or_else(|| format!("`{key}` of {sku} is not a number"))?))
        });
        numbers.collect::<Result<BTreeMap<String, f64>, String>>()
    };
    let [times, factors, counts, sizes] = GOLDENS.map(table);
    let factors = factors?;
    let time = |(sku, golden): (String, f64)| {
        let max = allowed_time(golden, factors.get(&sku).copied().unwrap_or(TOLERANCE_FACTOR));
        (sku, "latency", max)
    };
    let times = times?.into_iter().map(time);
    let counts = counts?.into_iter().map(|(sku, most)| (sku, "dispatch-count", most.to_string()));
    let sizes = sizes?.into_iter().map(|(sku, most)| (sku, "vmfb-size", most.to_string()));
    Ok(times.chain(counts).chain(sizes).collect())
}
