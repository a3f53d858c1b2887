//! Schema names and versions as types, and the code that reading any version shares.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::RecordError;

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
