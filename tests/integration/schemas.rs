//! The schemas in the repository agree with those that the code generates. `UPDATE_SCHEMAS=1 cargo test
//! schemas` rewrites them.

use std::path::Path;

use benchgate::record::{
    AcceptanceFile, BaselineFile, BisectionFile, BundleFile, ComparisonFile, PlanFile, RunFile,
    json_schema_of,
};
use serde_json::Value;

fn assert_same_as_file(name: &str, schema: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, schema).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == schema,
        "{name} is not what the code describes; UPDATE_SCHEMAS=1 cargo test schemas rewrites it"
    );
}

#[test]
fn run_json_is_described_by_its_schema() {
    assert_same_as_file("schemas/run.json", &json_schema_of::<RunFile>());
}

#[test]
fn the_configuration_is_described_by_its_schema() {
    assert_same_as_file("schemas/config.json", &benchgate::config::json_schema());
}

#[test]
fn the_reference_page_describes_every_key_of_the_configuration() {
    assert_same_as_file("docs/configuration.md", &benchgate::config::reference());
}

#[test]
fn comparison_json_is_described_by_its_schema() {
    assert_same_as_file("schemas/comparison.json", &json_schema_of::<ComparisonFile>());
}

#[test]
fn a_bisection_is_described_by_its_schema() {
    assert_same_as_file("schemas/bisection.json", &json_schema_of::<BisectionFile>());
    let golden = include_str!("../fixtures/record/bisection-v1.json");
    assert_eq!(faults("bisection.json", &serde_json::from_str(golden).unwrap()), Vec::<String>::new());
}

#[test]
fn a_plan_is_described_by_its_schema() {
    assert_same_as_file("schemas/plan.json", &json_schema_of::<PlanFile>());
}

#[test]
fn a_bundle_is_described_by_its_schema() {
    assert_same_as_file("schemas/bundle.json", &json_schema_of::<BundleFile>());
    let golden = include_str!("../fixtures/record/bundle-v1.json");
    assert_eq!(faults("bundle.json", &serde_json::from_str(golden).unwrap()), Vec::<String>::new());
}

#[test]
fn the_golden_run_and_a_comparison_of_its_sides_obey_their_schemas() {
    let golden = include_str!("../fixtures/record/run-v1.json");
    let run: Value = serde_json::from_str(golden).unwrap();
    assert_eq!(faults("run.json", &run), Vec::<String>::new());
    let world = crate::harness::World::new();
    world.write("run.json", golden);
    let outcome = world.run(["compare", "run.json", "--format", "json"]);
    let comparison: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(faults("comparison.json", &comparison), Vec::<String>::new());
}

#[test]
fn a_run_that_breaks_its_schema_is_seen() {
    let golden = include_str!("../fixtures/record/run-v1.json");
    let broken = golden
        .replace("\"seed\": 42", "\"sead\": 42")
        .replace("\"lower\"", "\"smaller\"")
        .replace("121034.25", "null");
    let found = faults("run.json", &serde_json::from_str(&broken).unwrap());
    for fault in ["lacks seed", "sead is not allowed", "\"smaller\" is not one of", "samples.latency.0"] {
        assert!(found.iter().any(|found| found.contains(fault)), "{fault}: {found:#?}");
    }
}

/// The ways in which a value violates a schema in `schemas/`.
pub fn faults(schema: &str, value: &Value) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas").join(schema);
    let root: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut found = Vec::new();
    check(&root, &root, value, "", &mut found);
    found
}

/// Supports the keywords that these schemas use. An unknown keyword fails, so that it is not ignored.
fn check(root: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    let Some(keywords) = schema.as_object() else {
        if schema == &Value::Bool(false) {
            found.push(format!("{at}: is not allowed"));
        }
        return;
    };
    for (keyword, rule) in keywords {
        match keyword.as_str() {
            "$schema" | "title" | "description" | "default" | "format" | "$defs" => {}
            "$ref" => {
                let pointer = rule.as_str().unwrap().trim_start_matches('#');
                check(root, root.pointer(pointer).unwrap(), value, at, found);
            }
            "type" => {
                let names = rule.as_array().cloned().unwrap_or_else(|| vec![rule.clone()]);
                if !names.iter().any(|name| is_of_type(value, name.as_str().unwrap())) {
                    found.push(format!("{at}: {value} is not of type {rule}"));
                }
            }
            "const" if value != rule => found.push(format!("{at}: {value} is not {rule}")),
            "enum" if !rule.as_array().unwrap().contains(value) => {
                found.push(format!("{at}: {value} is not one of {rule}"));
            }
            "const" | "enum" => {}
            "minimum" | "maximum" => {
                let (limit, number) = (rule.as_f64().unwrap(), value.as_f64());
                let outside =
                    |number: f64| if keyword == "minimum" { number < limit } else { number > limit };
                if number.is_some_and(outside) {
                    found.push(format!("{at}: {value} is beyond the {keyword} {limit}"));
                }
            }
            "minItems" | "maxItems" => {
                let (limit, length) = (rule.as_u64().unwrap(), value.as_array().map(|all| all.len() as u64));
                let outside =
                    |length: u64| if keyword == "minItems" { length < limit } else { length > limit };
                if length.is_some_and(outside) {
                    found.push(format!("{at}: {value} is beyond the {keyword} {limit}"));
                }
            }
            "anyOf" | "oneOf" => {
                let fits = rule.as_array().unwrap().iter().any(|option| {
                    let mut inside = Vec::new();
                    check(root, option, value, at, &mut inside);
                    inside.is_empty()
                });
                if !fits {
                    found.push(format!("{at}: {value} fits no option"));
                }
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, rule, item, &format!("{at}.{index}"), found);
                }
            }
            "properties" => {
                for (name, property) in rule.as_object().unwrap() {
                    if let Some(inner) = value.get(name) {
                        check(root, property, inner, &format!("{at}.{name}"), found);
                    }
                }
            }
            "additionalProperties" => {
                let named = schema.get("properties").and_then(Value::as_object);
                for (name, inner) in value.as_object().into_iter().flatten() {
                    if named.is_some_and(|named| named.contains_key(name)) {
                        continue;
                    }
                    if rule == &Value::Bool(false) {
                        found.push(format!("{at}: {name} is not allowed"));
                    } else {
                        check(root, rule, inner, &format!("{at}.{name}"), found);
                    }
                }
            }
            "required" => {
                for name in rule.as_array().unwrap().iter().map(|name| name.as_str().unwrap()) {
                    if value.is_object() && value.get(name).is_none() {
                        found.push(format!("{at}: lacks {name}"));
                    }
                }
            }
            other => panic!("the schemas use {other}, which this check does not know"),
        }
    }
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        other => panic!("{other} is no type"),
    }
}

#[test]
fn the_files_of_a_baseline_are_described_by_their_schemas() {
    assert_same_as_file("schemas/baseline.json", &json_schema_of::<BaselineFile>());
    assert_same_as_file("schemas/acceptance.json", &json_schema_of::<AcceptanceFile>());
}
