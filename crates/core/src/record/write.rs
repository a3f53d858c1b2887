//! The layouts of JSON in stored files. The same value gives the same bytes, with a newline at the end.

use serde::Serialize;
use serde_json::Value;

/// Indented, a line for each value.
pub(super) fn indented(document: &impl Serialize) -> Vec<u8> {
    indented_into(Vec::new(), document)
}

/// As [`indented`], into an empty buffer that may have room already.
pub(super) fn indented_into(mut bytes: Vec<u8>, document: &impl Serialize) -> Vec<u8> {
    // Keys are strings and numbers are finite or words, so there is nothing JSON can't hold.
    if serde_json::to_writer_pretty(&mut bytes, document).is_err() {
        bytes.clear();
    }
    bytes.push(b'\n');
    bytes
}

/// A line for each field of the document and each entry of its lists: small, and a person can still read it and a diff
/// still shows what changed.
pub(super) fn line_per_entry(document: &impl Serialize) -> Vec<u8> {
    // Keys are strings and numbers are finite or words, so there is nothing JSON can't hold.
    let Ok(Value::Object(fields)) = serde_json::to_value(document) else { return Vec::new() };
    let mut text = String::from("{\n");
    let last = fields.len().saturating_sub(1);
    for (at, (name, value)) in fields.iter().enumerate() {
        text.push_str(&format!("{}: ", Value::from(name.as_str())));
        match value {
            Value::Array(entries) if !entries.is_empty() => {
                let entries: Vec<String> = entries.iter().map(Value::to_string).collect();
                text.push_str(&format!("[\n{}\n]", entries.join(",\n")));
            }
            other => text.push_str(&other.to_string()),
        }
        text.push_str(if at == last { "\n" } else { ",\n" });
    }
    text.push_str("}\n");
    text.into_bytes()
}
