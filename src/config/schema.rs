//! The JSON Schema of `benchgate.toml`, for editors: made from [`super::sections`], so that it always agrees with the
//! parser.

use serde_json::{Map, Value, json};

use super::fields::{Field, Section, ValueKind};
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
    let (any_name, own): (Vec<_>, Vec<_>) = section.fields.iter().partition(|field| field.is_any_name());
    for field in own {
        properties.insert(field.key.to_owned(), property(field));
    }
    let required: Vec<_> = section.fields.iter().filter(|f| f.is_required()).map(|f| f.key).collect();
    let mut object = json!({ "type": "object", "additionalProperties": false });
    if !section.doc.is_empty() {
        object["description"] = json!(section.about());
    }
    object["properties"] = Value::Object(properties);
    if let Some(field) = any_name.first() {
        object["additionalProperties"] = kind(&field.kind);
    }
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}

fn property(field: &Field) -> Value {
    let mut schema = kind(&field.kind);
    schema["description"] = json!(field.doc);
    // The defaults are TOML values that JSON writes the same way.
    if let Some(default) = field.default().and_then(|text| serde_json::from_str::<Value>(&text).ok()) {
        schema["default"] = default;
    }
    schema
}

fn kind(kind_of: &ValueKind) -> Value {
    let text = |pattern: &str| json!({ "type": "string", "pattern": pattern });
    match kind_of {
        ValueKind::Line | ValueKind::AnyPath | ValueKind::Relative | ValueKind::Inside | ValueKind::Glob => {
            json!({ "type": "string", "minLength": 1 })
        }
        ValueKind::Name => text("^[A-Za-z0-9_][A-Za-z0-9._-]*$"),
        ValueKind::Version => text("^[0-9][A-Za-z0-9.+]*$"),
        ValueKind::Commit => text("^[0-9a-f]{40}$"),
        ValueKind::Sha256 => text("^[0-9a-f]{64}$"),
        ValueKind::Url => text("^https?://"),
        ValueKind::StoreUrl => text("^(s3|gs|az|file)://"),
        ValueKind::Date => text("^[0-9]{4}-[0-9]{2}-[0-9]{2}$"),
        ValueKind::Duration => text(DURATION),
        ValueKind::Bool => json!({ "type": "boolean" }),
        ValueKind::Integer { min, max } if *max == i64::MAX => json!({ "type": "integer", "minimum": min }),
        ValueKind::Integer { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        ValueKind::Number { min, max } if *max == f64::MAX => json!({ "type": "number", "minimum": min }),
        ValueKind::Number { min, max } => json!({ "type": "number", "minimum": min, "maximum": max }),
        ValueKind::Fraction | ValueKind::Spread => json!({ "anyOf": [
            { "type": "string", "pattern": "^[0-9.]+ *%$" },
            { "type": "number", "minimum": 0, "exclusiveMaximum": LARGEST_BARE },
        ] }),
        ValueKind::Magnitude => json!({ "anyOf": [
            { "type": "string", "pattern": DURATION },
            { "type": "number", "minimum": 0 },
        ] }),
        ValueKind::Choice(choices) => json!({ "enum": choices }),
        ValueKind::List(item) => json!({ "type": "array", "items": kind(item) }),
        ValueKind::OneOrMore(item) => json!({ "anyOf": [
            kind(item),
            { "type": "array", "items": kind(item), "minItems": 1 },
        ] }),
        ValueKind::Texts => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        ValueKind::Renames => json!({
            "type": "object",
            "propertyNames": { "pattern": "^--[A-Za-z0-9_-]+$" },
            "additionalProperties": { "type": "string", "pattern": "^--[A-Za-z0-9_-]+$" },
        }),
        ValueKind::Scalars => json!({
            "type": "object",
            "additionalProperties": { "type": ["string", "number", "boolean"] },
        }),
        ValueKind::Table(section) => table(section),
        ValueKind::Tables(section) => json!({ "type": "array", "items": table(section) }),
        ValueKind::Named(section) => json!({ "type": "object", "additionalProperties": table(section) }),
    }
}

const DURATION: &str = "^[0-9.]+ *(ns|us|µs|ms|s|m|h)$";
