//! L2: the definitions of other projects' test suites as a configuration. Reads no file itself: it takes the text of
//! the definitions, and returns the configuration and everything of them that it does not hold.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod definition;
mod onnx_ops;
mod suite;

use std::collections::BTreeMap;

use serde_json::Value;

pub use definition::Untranslated;

use definition::Definition;
use suite::ImportedSuite;

/// The files below a folder, by path relative to the configuration that is written. The text is there for the
/// definitions; of other files it is enough to know that they exist.
pub type SuiteFiles = BTreeMap<String, Option<String>>;

/// A configuration made of another project's definitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The text of benchgate.toml.
    pub config: String,
    pub models: usize,
    pub targets: usize,
    pub expectations: usize,
    /// Definitions that the configuration does not hold, with the reason for each.
    pub untranslated: Vec<Untranslated>,
}

/// Whether a file's text is needed, and not only its name.
pub fn is_definition(path: &str) -> bool {
    [".json", ".mlir"].iter().any(|ending| path.ends_with(ending)) || path.ends_with(onnx_ops::FLAG_FILE)
}

/// The suites of iree-org/iree-test-suites, with the lists that iree-org/iree keeps of them.
pub fn iree_test_suites(files: &SuiteFiles) -> Imported {
    let mut suite = ImportedSuite::default();
    let mut untranslated = Vec::new();
    let mut of_onnx_ops = Vec::new();
    for (path, text) in files {
        let Some(text) = text.as_ref().filter(|_| path.ends_with(".json")) else { continue };
        let definition = match Definition::parse(path, text) {
            Ok(definition) => definition,
            Err(why) => {
                untranslated.push(why);
                continue;
            }
        };
        match definition.family() {
            Some("onnx_ops") if definition.has("iree_compile_flags") => of_onnx_ops.push(definition),
            Some(family) => list(family, definition, &mut untranslated),
            // Settings of editors and test runners.
            None => {}
        }
    }
    onnx_ops::read(files, of_onnx_ops, &mut suite, &mut untranslated);
    Imported {
        config: suite.to_toml(),
        models: suite.models.len(),
        targets: suite.targets.len(),
        expectations: suite.expectations.iter().map(|expected| expected.benchmarks.len()).sum(),
        untranslated,
    }
}

/// Lists every key of a definition, and every entry of its lists, with the reason.
fn list(family: &str, definition: Definition, untranslated: &mut Vec<Untranslated>) {
    for (key, value) in definition.rest() {
        let why = reason(family, key);
        match value {
            Value::Array(items) => {
                untranslated.extend(
                    items.iter().enumerate().map(|(at, item)| {
                        definition.untranslated(&format!("{key}[{at}] {}", short(item)), why)
                    }),
                );
            }
            Value::Object(entries) => {
                untranslated.extend(entries.iter().map(|(name, item)| {
                    definition.untranslated(&format!("{key}.{name} {}", short(item)), why)
                }));
            }
            _ => untranslated.push(definition.untranslated(&format!("{key} {}", short(value)), why)),
        }
    }
}

fn reason(family: &str, key: &str) -> &'static str {
    match (family, key) {
        (_, key) if key.starts_with("golden_") || key.starts_with("tolerance") => {
            "an absolute limit of one machine: the gate compares with the base, and a [[limit]] with `testbed` adds it"
        }
        ("torch_ops", "flat_args" | "seed") => {
            "the inputs are random numbers of NumPy, made when the test runs"
        }
        ("torch_ops", "expected_output") => {
            "the reference is downloaded, and no SHA-256 of it is recorded, which an [[artifact]] needs"
        }
        ("torch_ops", _) => {
            "its reference is downloaded, and no SHA-256 of it is recorded, which an [[artifact]] needs"
        }
        ("onnx_models", _) => {
            "the model is downloaded, and its reference is computed by ONNX Runtime when the test runs"
        }
        ("onnx_ops", _) => "not a key of a test configuration",
        _ => {
            "its program, weights or data are downloaded, and no SHA-256 of them is recorded, which an [[artifact]] needs"
        }
    }
}

/// A value as one short line.
fn short(value: &Value) -> String {
    const LONGEST: usize = 120;
    let text = value.to_string();
    if text.chars().count() <= LONGEST { text } else { text.chars().take(LONGEST).chain(['…']).collect() }
}
