//! Suites whose programs or data are downloaded and are not in the repository.

use serde_json::Value;

use super::definition::{Definition, Untranslated};

/// Lists every key of a definition, and every entry of its lists, with the reason.
pub(super) fn list(family: &str, definition: Definition, untranslated: &mut Vec<Untranslated>) {
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
            "an absolute limit: the gate compares with the base instead"
        }
        ("torch_ops", "flat_args" | "seed") => {
            "the inputs are random numbers of NumPy, made when the test runs"
        }
        ("torch_ops", "expected_output") => "the reference is downloaded, and no SHA-256 of it is recorded",
        ("torch_ops", _) => "its reference is downloaded, and no SHA-256 of it is recorded",
        ("onnx_models", _) => {
            "the model is downloaded, and its reference is computed by ONNX Runtime when the test runs"
        }
        ("onnx_ops", _) => "not a key of a test configuration",
        _ => "its program, weights or data are downloaded, and no SHA-256 of them is recorded",
    }
}

/// A value as one short line.
fn short(value: &Value) -> String {
    const LONGEST: usize = 120;
    let text = value.to_string();
    if text.chars().count() <= LONGEST { text } else { text.chars().take(LONGEST).chain(['…']).collect() }
}
