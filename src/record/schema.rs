//! Schema names and versions as types.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{
    AcceptanceFile, BaselineFile, BisectionFile, BundleFile, ComparisonFile, PlanFile, RecordError, RunFile,
};

macro_rules! schema_field {
    ($type:ident, $what:literal, $family:literal, $version:literal) => {
        #[doc = concat!("The `schema` field of a ", $what, " file. Having one proves that the text was read.")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $type;

        impl $type {
            pub const NAME: &'static str = concat!($family, $version);
            const FORMAT: Format =
                Format { what: $what, family: $family, version: $version, name: Self::NAME };
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

/// What a `schema` field is compared with.
struct Format {
    what: &'static str,
    /// What stands before the version.
    family: &'static str,
    version: u32,
    name: &'static str,
}

/// Only the two fields that every version of every record has.
#[derive(Deserialize)]
struct Head {
    schema: Option<String>,
    benchgate: Option<String>,
}

pub(super) fn explain(bytes: &[u8], error: &serde_json::Error) -> RecordError {
    explain_as(&RunSchema::FORMAT, bytes, error)
}

pub(super) fn explain_comparison(bytes: &[u8], error: &serde_json::Error) -> RecordError {
    explain_as(&ComparisonSchema::FORMAT, bytes, error)
}

pub(super) fn explain_baseline(bytes: &[u8], error: &serde_json::Error) -> RecordError {
    explain_as(&BaselineSchema::FORMAT, bytes, error)
}

pub(super) fn explain_acceptance(bytes: &[u8], error: &serde_json::Error) -> RecordError {
    explain_as(&AcceptanceSchema::FORMAT, bytes, error)
}

pub(super) fn explain_bisection(bytes: &[u8], error: &serde_json::Error) -> RecordError {
    explain_as(&BisectionSchema::FORMAT, bytes, error)
}

pub(super) fn explain_plan(bytes: &[u8], error: &serde_json::Error) -> RecordError {
    explain_as(&PlanSchema::FORMAT, bytes, error)
}

pub(super) fn explain_bundle(bytes: &[u8], error: &serde_json::Error) -> RecordError {
    explain_as(&BundleSchema::FORMAT, bytes, error)
}

/// Why a file that did not parse as this version did not: another version is said before anything else.
fn explain_as(format: &Format, bytes: &[u8], error: &serde_json::Error) -> RecordError {
    let Ok(Head { schema: Some(found), benchgate }) = serde_json::from_slice::<Head>(bytes) else {
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

/// The JSON Schema of a run file, as `schemas/run.json` holds it.
pub fn run_json_schema() -> String {
    pretty(&schemars::schema_for!(RunFile))
}

/// The JSON Schema of a comparison, as `schemas/comparison.json` holds it.
pub fn comparison_json_schema() -> String {
    pretty(&schemars::schema_for!(ComparisonFile))
}

/// The JSON Schema of a file of a baseline, as `schemas/baseline.json` holds it.
pub fn baseline_json_schema() -> String {
    pretty(&schemars::schema_for!(BaselineFile))
}

/// The JSON Schema of an acceptance, as `schemas/acceptance.json` holds it.
pub fn acceptance_json_schema() -> String {
    pretty(&schemars::schema_for!(AcceptanceFile))
}

/// The JSON Schema of a bisection, as `schemas/bisection.json` holds it.
pub fn bisection_json_schema() -> String {
    pretty(&schemars::schema_for!(BisectionFile))
}

/// The JSON Schema of a bundle's manifest, as `schemas/bundle.json` holds it.
pub fn bundle_json_schema() -> String {
    pretty(&schemars::schema_for!(BundleFile))
}

/// The JSON Schema of a plan, as `schemas/plan.json` holds it.
pub fn plan_json_schema() -> String {
    pretty(&schemars::schema_for!(PlanFile))
}

fn pretty(schema: &Schema) -> String {
    let mut text = serde_json::to_string_pretty(schema).unwrap_or_default();
    text.push('\n');
    text
}
