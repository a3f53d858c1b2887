//! Generates `docs/configuration.md` and the JSON Schema of `benchgate.toml` from [`super::sections`], so
//! that neither can become outdated.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use benchgate_gate::{NumericsTolerance, Policy};

use super::fields::{ChosenBy, Field, Section, ValueKind};
use super::policy::percent;
use super::sections;
use super::values::LARGEST_BARE;

/// An example configuration that uses every table. The reference page shows it, and a test parses it.
pub const EXAMPLE: &str = include_str!("example.toml");

const INTRODUCTION: &str = "\
# Configuration: `benchgate.toml`

<!-- Written by the tests from the tables of crates/config: UPDATE_SCHEMAS=1 cargo test schemas -->

One file describes a suite: models, targets, the tools they are measured with, measurement settings, and
what counts as a regression. Unknown keys are errors, and every problem of the file is reported at once with
its line and column. `schemas/config.json` lets editors complete keys: with the Even Better TOML extension,
put `#:schema https://raw.githubusercontent.com/benchgate/benchgate/main/schemas/config.json` on the first
line.

Some values have a special form:

- *duration*: a number and `ns`, `us`, `ms`, `s`, `m` or `h`: `\"40ms\"`, `\"1.5s\"`
- *fraction*: a percentage below 100 % (`\"1%\"`) or a number below 0.2 (`0.01`)
- *name*: letters, digits, `.`, `_` and `-`; names appear in paths and tables
- *path inside*: relative to the side's `sources`, without `..`

Every named file, except artifacts, must exist on each side and lie inside the repository once symbolic links
are resolved.

**Policy** is `[gate]`, `[[waiver]]`, `[[expect]]`, `[[limit]]`, `[numerics]` and `[[numerics-override]]`. On a pull request it is read from the base commit, so a
change can't loosen the gate that judges it. `policy = \"policy.toml\"` moves these six tables into a separate
file, which CODEOWNERS can guard.

";

/// The text of `docs/configuration.md`.
pub fn reference() -> String {
    let (head, of_each) = head_keys();
    let of_each =
        of_each.iter().map(|(table, keys)| format!("; in `[[{table}]]`: {keys}")).collect::<String>();
    let mut page = format!(
        "{INTRODUCTION}**On a pull request** (`gate --base`) every other key is read from the base commit too, except the following. Whole tables: {head}{of_each}.\n\
         The report lists every key that the change sets, including those without effect.\n\n\
         ## Example\n\n```toml\n{EXAMPLE}```\n"
    );
    let mut done = Vec::new();
    section(&sections::ROOT, "Top level", &mut done, &mut page);
    metric_defaults(&mut page);
    numerics_defaults(&mut page);
    page
}

/// The keys that a pull request may choose: top-level tables, and single keys of other tables.
pub fn head_keys() -> (String, Vec<(&'static str, String)>) {
    fn of_table(table: &'static Section) -> String {
        let own = table.fields.iter().filter(|field| field.by == ChosenBy::Head);
        own.map(|field| format!("`{}`", field.key)).collect::<Vec<_>>().join(", ")
    }
    let mixed = sections::ROOT.fields.iter().filter(|field| field.by == ChosenBy::Each);
    let of_each = mixed.filter_map(|field| Some((field.key, of_table(field.kind.section()?))));
    (of_table(&sections::ROOT), of_each.collect())
}

fn metric_defaults(page: &mut String) {
    page.push_str(
        "\n## Defaults of `[gate.metric.*]`\n\n| metric | floor | tolerance | fatal |\n|---|---|---|---|\n",
    );
    for (name, policy) in Policy::default().metrics {
        // Only metrics of time have an absolute floor by default, and times are in nanoseconds.
        let absolute = match policy.floor.absolute {
            0.0 => String::new(),
            nanoseconds => format!(" and {} s", nanoseconds / 1e9),
        };
        let floor = format!("{}{absolute}", percent(policy.floor.relative));
        let tolerance = percent(policy.tolerance);
        put(page, format_args!("| `{name}` | {floor} | {tolerance} | {} |\n", policy.fatal));
    }
}

fn numerics_defaults(page: &mut String) {
    page.push_str("\n## Defaults of `[numerics.*]`\n\n");
    page.push_str(NUMERICS);
    page.push_str("\n| type | atol | rtol | stol | max-error | min-cosine |\n|---|---|---|---|---|---|\n");
    // Integers and booleans have no tolerance: an element is equal or wrong.
    for tolerance in NumericsTolerance::defaults().into_iter().filter(|tolerance| tolerance.rtol > 0.0) {
        let NumericsTolerance { dtype, atol, rtol, stol, max_error, min_cosine } = tolerance;
        put(
            page,
            format_args!("| `{dtype}` | {atol:e} | {rtol:e} | {stol:e} | {max_error:e} | {min_cosine} |\n"),
        );
    }
    page.push_str("| integers, `bool` | 0 | 0 | 0 | | |\n");
}

const NUMERICS: &str = "\
The typical magnitude m is the root mean square of the reference's finite elements, but at most 16 times the
median of those that are not zero, so that a mask of −1e38 does not make every error small. Rounding error scales
with m and not with the element; `stol` covers it. `max-error` catches errors that are small but
present in every element, such as a scale of 1.001 or arithmetic in TF32 instead of f32.

NaN and Inf where the reference is finite fail, and so does the reverse. Where both are NaN, or the same Inf,
they agree. An output that is beyond its bounds still passes when an fp64 reference shows that it is about
as accurate as eager (root mean square within 2 times, largest error within 4 times).
A different shape, type or number of outputs fails; the signedness of integers is not compared, since MLIR has none.
";

fn section(
    section_of: &'static Section,
    title: &'static str,
    done: &mut Vec<&'static str>,
    page: &mut String,
) {
    // A section that is used in two places, such as a toolchain, is described only once.
    if done.contains(&title) {
        return;
    }
    done.push(title);
    put(
        page,
        format_args!("\n## {}\n\n", if title.starts_with('[') { format!("`{title}`") } else { title.into() }),
    );
    if !section_of.doc.is_empty() {
        put(page, format_args!("{}\n\n", section_of.about()));
    }
    page.push_str("| key | value | default | |\n|---|---|---|---|\n");
    for field in section_of.fields {
        let default = match field.default() {
            Some(default) => format!("`{default}`"),
            None if field.is_required() => "required".to_owned(),
            None => String::new(),
        };
        let doc = field.doc.replace('|', "\\|");
        put(page, format_args!("| `{}` | {} | {default} | {doc} |\n", field.key, kind(&field.kind)));
    }
    for field in section_of.fields {
        if let Some(inner) = field.kind.section() {
            section(inner, inner.title, done, page);
        }
    }
}

/// Appends to the page. Writing to a `String` can't fail.
fn put(page: &mut String, text: std::fmt::Arguments<'_>) {
    let _infallible = page.write_fmt(text);
}

fn kind(kind_of: &ValueKind) -> String {
    match kind_of {
        ValueKind::Line => "text".into(),
        ValueKind::Name => "name".into(),
        ValueKind::Version => "version".into(),
        ValueKind::Commit => "40 digits".into(),
        ValueKind::Sha256 => "64 digits".into(),
        ValueKind::Url | ValueKind::StoreUrl => "URL".into(),
        ValueKind::Inside => "path inside".into(),
        ValueKind::Relative | ValueKind::AnyPath => "path".into(),
        ValueKind::Bool => "boolean".into(),
        ValueKind::Integer { min, max } if *max == i64::MAX => format!("integer from {min}"),
        ValueKind::Integer { min, max } => format!("integer, {min} to {max}"),
        ValueKind::Number { min, max } if *max == f64::MAX => format!("number from {min}"),
        ValueKind::Number { min, max } => format!("number, {min} to {max}"),
        ValueKind::Duration => "duration".into(),
        ValueKind::Fraction | ValueKind::Spread => "fraction".into(),
        ValueKind::Magnitude => "duration or number".into(),
        ValueKind::Date => "day".into(),
        ValueKind::Glob => "glob".into(),
        ValueKind::Choice(choices) => format!("`{}`", choices.join("`, `")),
        ValueKind::List(item) => format!("list of {}", kind(item)),
        ValueKind::OneOrMore(item) => format!("one or a list of {}", kind(item)),
        ValueKind::Texts => "table of text".into(),
        ValueKind::Renames => "table of flags by flag".into(),
        ValueKind::Scalars => "table of text, numbers, booleans".into(),
        ValueKind::Table(_) => "table".into(),
        ValueKind::Tables(_) => "tables".into(),
        ValueKind::Named(_) => "tables by name".into(),
    }
}

/// The JSON Schema (draft 2020-12), with a newline at the end.
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
        object["additionalProperties"] = schema_of_kind(&field.kind);
    }
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}

fn property(field: &Field) -> Value {
    let mut schema = schema_of_kind(&field.kind);
    schema["description"] = json!(field.doc);
    // Defaults are written as TOML; those that are also valid JSON go into the schema.
    if let Some(default) = field.default().and_then(|text| serde_json::from_str::<Value>(&text).ok()) {
        schema["default"] = default;
    }
    schema
}

fn schema_of_kind(kind_of: &ValueKind) -> Value {
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
        ValueKind::List(item) => json!({ "type": "array", "items": schema_of_kind(item) }),
        ValueKind::OneOrMore(item) => json!({ "anyOf": [
            schema_of_kind(item),
            { "type": "array", "items": schema_of_kind(item), "minItems": 1 },
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
