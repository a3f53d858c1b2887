//! Schema names and versions as types, and the code that reading and writing any version shares. Equal values give
//! equal bytes, with a newline at the end.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::model::hex;

use super::{RecordError, wrong};

macro_rules! schema_field {
    ($type:ident, $what:literal, $family:literal, $version:literal) => {
        #[doc = concat!("The `schema` field of a ", $what, " file. Having one proves that the text was read.")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $type;

        impl $type {
            pub const NAME: &'static str = concat!($family, $version);
            pub(super) const FORMAT: RecordFormat =
                RecordFormat { what: $what, family: $family, version: $version, name: Self::NAME };
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(Self::NAME)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let name = Cow::<str>::deserialize(deserializer)?;
                if name == Self::NAME {
                    Ok(Self)
                } else {
                    Err(serde::de::Error::custom(format_args!("schema {name:?} is not {:?}", Self::NAME)))
                }
            }
        }

        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "const": Self::NAME })
            }
        }
    };
}

schema_field!(RunSchema, "run", "benchgate/run/v", 1);
schema_field!(ComparisonSchema, "comparison", "benchgate/comparison/v", 1);
schema_field!(BaselineSchema, "baseline", "benchgate/baseline/v", 1);
schema_field!(AcceptanceSchema, "acceptance", "benchgate/acceptance/v", 1);
schema_field!(BisectionSchema, "bisection", "benchgate/bisection/v", 1);
schema_field!(BundleSchema, "bundle", "benchgate/bundle/v", 1);
schema_field!(PlanSchema, "plan", "benchgate/plan/v", 1);

/// The value that a `schema` field must have, in parts.
pub(super) struct RecordFormat {
    what: &'static str,
    /// The name without its version.
    family: &'static str,
    version: u32,
    name: &'static str,
}

/// The two fields that every version of every record has.
#[derive(Deserialize)]
struct RecordHead {
    schema: Option<String>,
    benchgate: Option<String>,
}

/// Reads a file of this version and rejects one that contradicts itself.
pub(super) fn read<T: DeserializeOwned>(
    bytes: &[u8],
    format: &RecordFormat,
    check: impl FnOnce(&T) -> Result<(), RecordError>,
) -> Result<T, RecordError> {
    let file = serde_json::from_slice(bytes).map_err(|error| explain(format, bytes, &error))?;
    check(&file)?;
    Ok(file)
}

/// Returns why a file did not parse as this version. Another version is reported before anything else.
fn explain(format: &RecordFormat, bytes: &[u8], error: &serde_json::Error) -> RecordError {
    let Ok(RecordHead { schema: Some(found), benchgate }) = serde_json::from_slice::<RecordHead>(bytes)
    else {
        return RecordError::from_json(error);
    };
    if found == format.name {
        return RecordError::from_json(error);
    }
    let version = found.strip_prefix(format.family).and_then(|version| version.parse::<u32>().ok());
    let need = match (version, benchgate) {
        (Some(version), Some(writer)) if version > format.version => {
            format!("reading version {version} needs benchgate {writer} or newer")
        }
        (Some(version), None) if version > format.version => {
            format!("reading version {version} needs a newer benchgate")
        }
        _ => format!("it is not a {} file", format.what),
    };
    RecordError::Version { found, known: format.name, need }
}

/// Returns the JSON Schema of a stored file, as `schemas/` holds it.
pub fn json_schema_of<T: JsonSchema>() -> String {
    let mut text = serde_json::to_string_pretty(&schemars::schema_for!(T)).unwrap_or_default();
    text.push('\n');
    text
}

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
                super::schema::content_hash(&Self { sha256: String::new(), ..self.clone() })
            }

            /// Rejects a file whose content does not match its hash.
            fn check_seal(&self) -> Result<(), RecordError> {
                super::schema::check(&self.sha256, &self.content_hash())
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
