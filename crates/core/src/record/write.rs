//! JSON layouts of stored files. Equal values give equal bytes, with a newline at the end.

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::model::hex;

use super::RecordError;
use super::error::wrong;

/// Writes indented JSON with one line for each value.
pub(super) fn indented(document: &impl Serialize) -> Vec<u8> {
    indented_into(Vec::new(), document)
}

/// Writes like [`indented`], into an empty buffer that may already have capacity.
pub(super) fn indented_into(mut bytes: Vec<u8>, document: &impl Serialize) -> Vec<u8> {
    // Keys are strings, and numbers are finite or written as words, so JSON can represent everything.
    if serde_json::to_writer_pretty(&mut bytes, document).is_err() {
        bytes.clear();
    }
    bytes.push(b'\n');
    bytes
}

/// Writes one line for each field of the document and each entry of its lists: small, yet a person can read
/// it and a diff shows the changes.
pub(super) fn line_per_entry(document: &impl Serialize) -> Vec<u8> {
    // Keys are strings, and numbers are finite or written as words, so JSON can represent everything.
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

// The seal of a file is a hash over everything else in it. It detects damage and manual edits; it is not a
// signature.

/// Gives a file with a `sha256` field its seal.
macro_rules! sealed {
    ($file:ident) => {
        impl $file {
            /// Writes the hash of the content into the file.
            pub fn seal(&mut self) {
                self.sha256 = self.content_hash();
            }

            fn content_hash(&self) -> String {
                super::write::content_hash(&Self { sha256: String::new(), ..self.clone() })
            }

            /// Rejects a file whose content does not match its hash.
            fn check_seal(&self) -> Result<(), RecordError> {
                super::write::check(&self.sha256, &self.content_hash())
            }
        }
    };
}
pub(super) use sealed;

/// Hashes bytes as they are written, so that a large file is never in memory as text.
struct HashWriter(Sha256);

impl std::io::Write for HashWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns the hash of the content, not of the bytes: changing the line endings is not an edit.
pub(super) fn content_hash(content: &impl Serialize) -> String {
    let mut hash = HashWriter(Sha256::new());
    // Serialization fails only for a map whose keys are not text, and no record has one.
    let written = serde_json::to_writer(&mut hash, content);
    debug_assert!(written.is_ok(), "{written:?}");
    hex(&hash.0.finalize())
}

pub(super) fn check(stated: &str, found: &str) -> Result<(), RecordError> {
    if stated == found {
        return Ok(());
    }
    let what =
        format!("the content has hash {found}, not {stated}: it was damaged or edited after it was written");
    Err(wrong("sha256", what))
}
