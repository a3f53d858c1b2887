//! torch_ops: one folder per test, with an MLIR program and a JSON file with its inputs, references and
//! tolerance.

use std::collections::BTreeMap;

use serde_json::Value;

use benchgate_core::numerics::{IntegerFlaw, RandomTensor};

use super::SuiteFiles;
use super::definition::{Definition, Untranslated};
use super::operators::{self, OperatorTest};
use super::suite::{ImportedModel, ImportedSuite, Judged, RemoteFiles, Tolerance};

/// The JSON file of a test.
pub(super) const TEST_FILE: &str = "run_module_io.json";
/// Keys that are dropped only after the whole test has been read, so that an invalid test is reported with
/// all of them.
const KEYS: [&str; 9] = [
    "function_name",
    "flat_args",
    "seed",
    "rtol",
    "atol",
    "mode",
    "file_name",
    "equal_nan",
    "expected_output",
];
/// NumPy's names of element types, each with IREE's name.
const TYPES: [(&str, &str); 13] = [
    ("float64", "f64"),
    ("float32", "f32"),
    ("float16", "f16"),
    ("bfloat16", "bf16"),
    ("int64", "i64"),
    ("int32", "i32"),
    ("int16", "i16"),
    ("int8", "i8"),
    ("uint64", "ui64"),
    ("uint32", "ui32"),
    ("uint16", "ui16"),
    ("uint8", "ui8"),
    ("bool", "i1"),
];

pub(super) fn read(
    files: &SuiteFiles,
    definitions: Vec<Definition>,
    remote: &mut RemoteFiles<'_>,
    suite: &mut ImportedSuite,
    untranslated: &mut Vec<Untranslated>,
) {
    let (tests, configs): (Vec<_>, Vec<_>) =
        definitions.into_iter().partition(|definition| definition.file.ends_with(TEST_FILE));
    let mut named = BTreeMap::new();
    for mut definition in tests {
        match test(files, &definition, remote, suite) {
            Ok((name, test)) => {
                for key in ["rtol", "atol"].into_iter().filter(|key| definition.has(key)) {
                    if test.judged == Judged::Latency {
                        untranslated.push(definition.untranslated(key, "a benchmark compares no outputs"));
                    }
                }
                if let Some(name) = definition.text("vmfb_name") {
                    let why = "benchgate names the compiled module";
                    untranslated.push(definition.untranslated(&format!("vmfb_name {name}"), why));
                }
                if definition.get("equal_nan").is_some_and(|value| *value == Value::Bool(false)) {
                    let why = "NaN in both the output and the reference counts as equal";
                    untranslated.push(definition.untranslated("equal_nan false", why));
                }
                KEYS.iter().for_each(|key| definition.drop_key(key));
                definition.unread(untranslated);
                named.insert(name, test);
            }
            // The whole test is lost, so every key of it is reported.
            Err(why) => definition.listed(|_| why.clone(), untranslated),
        }
    }
    operators::add(named, configs, suite, untranslated);
}

/// A test, with the name that lists use for it, such as `AB/64x64xf32`.
fn test(
    files: &SuiteFiles,
    definition: &Definition,
    remote: &mut RemoteFiles<'_>,
    suite: &mut ImportedSuite,
) -> Result<(String, OperatorTest), String> {
    let folder = definition.file.strip_suffix(TEST_FILE).and_then(|folder| folder.strip_suffix('/'));
    let folder = folder.ok_or("the test needs a separate folder")?;
    let mut parts = folder.rsplit('/');
    let (Some(test), Some(class)) = (parts.next(), parts.next()) else {
        return Err("the test is not in the folder of a class".to_owned());
    };
    let text = |key: &str, otherwise: &str| match definition.get(key) {
        None => Ok(otherwise.to_owned()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(format!("`{key}`: expected a string")),
    };
    let number = |key: &str, otherwise: f64| match definition.get(key) {
        None => Ok(otherwise),
        Some(value) => value.as_f64().ok_or_else(|| format!("`{key}` is not a number")),
    };
    let judged = match text("mode", "compare")?.as_str() {
        "compare" => Judged::Outputs,
        "benchmark" => Judged::Latency,
        other => return Err(format!("unknown mode `{other}`")),
    };
    let source = format!("{folder}/{}", text("file_name", "test.mlir")?);
    let Some(program) = files.get(&source) else { return Err(format!("there is no file `{source}`")) };
    let function = text("function_name", "main")?;
    let inputs = inputs(definition)?;
    let references = references(definition, folder)?;
    let tolerance = match (judged, references.is_empty()) {
        (Judged::Outputs, false) => {
            let dtype = program
                .as_deref()
                .and_then(|text| result_type(text, &function))
                .ok_or("the program has no result of a known type")?;
            Some(Tolerance { dtype, atol: number("atol", 1e-8)?, rtol: number("rtol", 1e-5)? })
        }
        _ => None,
    };
    remote.want(references.iter().filter_map(|file| file.as_ref().err().map(String::as_str)))?;
    let expected = references.into_iter().map(|file| file.unwrap_or_else(|url| remote.place(&url, suite)));
    let model = ImportedModel {
        name: format!("{class}-{test}"),
        source,
        function,
        inputs,
        expected: expected.collect(),
        tags: vec!["torch_ops".to_owned()],
        ..ImportedModel::default()
    };
    if let Some(tolerance) = tolerance {
        suite.overrides.push((format!("{}/*", model.name), tolerance));
    }
    let file = definition.file.clone();
    Ok((format!("{class}/{test}"), OperatorTest { file, model, judged }))
}

/// The random inputs. The suite draws all of them from one NumPy generator, so each input skips the numbers
/// that the earlier ones used.
fn inputs(definition: &Definition) -> Result<Vec<String>, String> {
    let seed = match definition.get("seed") {
        None => 0,
        Some(seed) => {
            seed.as_u64().and_then(|seed| u32::try_from(seed).ok()).ok_or("`seed` is not a number")?
        }
    };
    let mut skip = 0_u64;
    let mut inputs = Vec::new();
    for argument in definition.entries("flat_args")? {
        let formula = argument.get("Formula").and_then(Value::as_object);
        let formula =
            formula.ok_or_else(|| format!("`flat_args` has an entry without a formula: {argument}"))?;
        let number = |key: &str, otherwise: f64| formula.get(key).map_or(Some(otherwise), Value::as_f64);
        let dtype = formula.get("dtype").map_or(Some("float32"), Value::as_str);
        let dtype = dtype.and_then(|dtype| TYPES.into_iter().find(|(numpy, _)| *numpy == dtype));
        let sides = formula.get("shape").and_then(Value::as_array);
        let sides =
            sides.and_then(|sides| sides.iter().map(|side| Some(format!("{}x", side.as_u64()?))).collect());
        let is_known = |key: &String| ["shape", "dtype", "coeff", "offset"].contains(&key.as_str());
        let parts = (dtype, sides, number("coeff", 1.0), number("offset", 0.0));
        let (Some((_, dtype)), Some(sides), Some(scale), Some(offset), true) =
            (parts.0, parts.1, parts.2, parts.3, formula.keys().all(is_known))
        else {
            return Err(format!("`flat_args` has a formula that is not known: {argument}"));
        };
        let sides: Vec<String> = sides;
        let random = RandomTensor { kind: format!("{}{dtype}", sides.concat()), seed, skip, scale, offset };
        skip += random.elements().ok_or_else(|| format!("an input is larger than any memory: {argument}"))?;
        inputs.push(match random.integer_flaw() {
            None => random.to_string(),
            // NumPy's numbers below 1 are zero as integers.
            Some(IntegerFlaw::Constant(value)) if dtype != "i1" => format!("{}={value}", random.kind),
            Some(flaw) => {
                return Err(format!("`flat_args` has integers that are not random ({flaw}): {argument}"));
            }
        });
    }
    Ok(inputs)
}

/// The reference of each result: `Ok` with a file of the checkout, or `Err` with a URL.
fn references(definition: &Definition, folder: &str) -> Result<Vec<Result<String, String>>, String> {
    let reference = |entry: &Value| match (entry.get("url"), entry.get("value")) {
        (Some(Value::String(url)), _) => Ok(Err(url.clone())),
        (_, Some(Value::String(file))) => Ok(Ok(format!("{folder}/{file}"))),
        _ => Err("`expected_output` has an entry without an address and a file".to_owned()),
    };
    definition.entries("expected_output")?.iter().map(reference).collect()
}

/// The element type of a function's results, if all have the same type.
fn result_type(mlir: &str, function: &str) -> Option<String> {
    let signature = mlir.split_once(&format!("func @{function}("))?.1;
    let results = signature.split_once("->")?.1;
    let results = results.split(['{', '\n']).next()?.split(" attributes").next()?;
    let mut types: Vec<&str> = results
        .split("tensor<")
        .skip(1)
        .filter_map(|kind| kind.split('>').next()?.rsplit([',', 'x']).next())
        .collect();
    types.dedup();
    let [kind] = types[..] else { return None };
    // torch writes `si8` for a type that IREE calls `i8`.
    Some(kind.strip_prefix('s').unwrap_or(kind).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_s_type_is_read_from_torch_and_builtin_types() {
        for (mlir, expected) in [
            (
                "func.func @main(%a: !torch.vtensor<[2],si64>) -> !torch.vtensor<[?,?],f32> attributes {",
                Some("f32"),
            ),
            ("func.func @main(%a: tensor<2xf32>) -> (tensor<2x3xf16>, tensor<4xf16>) {", Some("f16")),
            ("func.func @main() -> !torch.vtensor<[4],si8> {", Some("i8")),
            ("func.func @main() -> (tensor<2xf32>, tensor<2xf16>) {", None),
            ("func.func @main() {", None),
        ] {
            assert_eq!(result_type(mlir, "main").as_deref(), expected, "{mlir}");
        }
    }
}
