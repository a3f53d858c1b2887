//! The JSON Schema of `benchgate.toml`, for editors: made from [`super::sections`], so that it can't
//! say anything else than the parser does.

use serde_json::{Map, Value, json};

use super::fields::{Field, Kind, Section};
use super::fraction::LARGEST_BARE;
use super::sections;

/// The schema, draft 2020-12, with a newline at its end.
pub fn json_schema() -> String {
    let mut schema = table(&sections::ROOT);
    let mut top = Map::new();
    top.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    top.insert("title".into(), json!("benchgate.toml"));
    top.insert("description".into(), json!("The configuration of a benchgate suite."));
    if let Value::Object(fields) = &mut schema {
        fields.remove("description");
        top.append(fields);
    }
    let mut text = format!("{:#}", Value::Object(top));
    text.push('\n');
    text
}

fn table(section: &Section) -> Value {
    let mut properties = Map::new();
    for field in section.fields {
        properties.insert(field.key.to_owned(), property(field));
    }
    let required: Vec<_> = section.fields.iter().filter(|f| f.required).map(|f| f.key).collect();
    let mut object = json!({ "type": "object", "additionalProperties": false });
    if !section.doc.is_empty() {
        object["description"] = json!(section.doc);
    }
    object["properties"] = Value::Object(properties);
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}

fn property(field: &Field) -> Value {
    let mut schema = kind(&field.kind);
    schema["description"] = json!(field.doc);
    // The defaults are TOML values that JSON writes the same way.
    if let Some(default) = field.default.and_then(|text| serde_json::from_str::<Value>(text).ok()) {
        schema["default"] = default;
    }
    schema
}

fn kind(kind_of: &Kind) -> Value {
    let text = |pattern: &str| json!({ "type": "string", "pattern": pattern });
    match kind_of {
        Kind::Line | Kind::AnyPath | Kind::Relative | Kind::Inside | Kind::Glob => {
            json!({ "type": "string", "minLength": 1 })
        }
        Kind::Name => text("^[A-Za-z0-9_][A-Za-z0-9._-]*$"),
        Kind::Version => text("^[0-9][A-Za-z0-9.+]*$"),
        Kind::Commit => text("^[0-9a-f]{40}$"),
        Kind::Sha256 => text("^[0-9a-f]{64}$"),
        Kind::Url => text("^https?://"),
        Kind::Date => text("^[0-9]{4}-[0-9]{2}-[0-9]{2}$"),
        Kind::Duration => text(DURATION),
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::Integer { min, max } if *max == i64::MAX => json!({ "type": "integer", "minimum": min }),
        Kind::Integer { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Number { min, max } if *max == f64::MAX => json!({ "type": "number", "minimum": min }),
        Kind::Number { min, max } => json!({ "type": "number", "minimum": min, "maximum": max }),
        Kind::Fraction | Kind::Spread => json!({ "anyOf": [
            { "type": "string", "pattern": "^[0-9.]+ *%$" },
            { "type": "number", "minimum": 0, "exclusiveMaximum": LARGEST_BARE },
        ] }),
        Kind::Magnitude => json!({ "anyOf": [
            { "type": "string", "pattern": DURATION },
            { "type": "number", "minimum": 0 },
        ] }),
        Kind::Choice(choices) => json!({ "enum": choices }),
        Kind::List(item) => json!({ "type": "array", "items": kind(item) }),
        Kind::OneOrMore(item) => json!({ "anyOf": [
            kind(item),
            { "type": "array", "items": kind(item), "minItems": 1 },
        ] }),
        Kind::Texts => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        Kind::Scalars => json!({
            "type": "object",
            "additionalProperties": { "type": ["string", "number", "boolean"] },
        }),
        Kind::Table(section) => table(section),
        Kind::Tables(section) => json!({ "type": "array", "items": table(section) }),
        Kind::Named(section) => json!({ "type": "object", "additionalProperties": table(section) }),
    }
}

const DURATION: &str = "^[0-9.]+ *(ns|us|µs|ms|s|m|h)$";
