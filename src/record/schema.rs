//! Schema names and versions as types.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{RecordError, RunFile};

/// The `schema` field of a run file, version 1. Having one proves that the text was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunSchema;

impl RunSchema {
    /// What stands before the version.
    const FAMILY: &'static str = "benchgate/run/v";
    pub const NAME: &'static str = "benchgate/run/v1";
    const VERSION: u32 = 1;
}

impl Serialize for RunSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(Self::NAME)
    }
}

impl<'de> Deserialize<'de> for RunSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Cow::<str>::deserialize(deserializer)?;
        if name == Self::NAME {
            Ok(Self)
        } else {
            Err(serde::de::Error::custom(format_args!("schema {name:?} is not {:?}", Self::NAME)))
        }
    }
}

impl JsonSchema for RunSchema {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "RunSchema".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "const": Self::NAME })
    }
}

/// Only the two fields that every version of every record has.
#[derive(Deserialize)]
struct Head {
    schema: Option<String>,
    benchgate: Option<String>,
}

/// Why a file that did not parse as version 1 did not: another version is said before anything else.
pub(super) fn explain(bytes: &[u8], error: &serde_json::Error) -> RecordError {
    let Ok(Head { schema: Some(found), benchgate }) = serde_json::from_slice::<Head>(bytes) else {
        return RecordError::from_json(error);
    };
    if found == RunSchema::NAME {
        return RecordError::from_json(error);
    }
    let version = found.strip_prefix(RunSchema::FAMILY).and_then(|version| version.parse::<u32>().ok());
    let need = match (version, benchgate) {
        (Some(version), Some(writer)) if version > RunSchema::VERSION => {
            format!("reading version {version} needs benchgate {writer} or newer")
        }
        (Some(version), None) if version > RunSchema::VERSION => {
            format!("reading version {version} needs a newer benchgate")
        }
        _ => "it is not a run file".to_owned(),
    };
    RecordError::Version { found, known: RunSchema::NAME, need }
}

/// The JSON Schema of a run file, as `schemas/run.json` holds it.
pub fn run_json_schema() -> String {
    pretty(&schemars::schema_for!(RunFile))
}

fn pretty(schema: &Schema) -> String {
    let mut text = serde_json::to_string_pretty(schema).unwrap_or_default();
    text.push('\n');
    text
}
