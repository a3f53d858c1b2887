//! A floating-point number that survives JSON.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A stored number: a JSON number if it is finite, otherwise one of the strings `"NaN"`, `"inf"`, `"-inf"`.
/// JSON has no such numbers, and writing `null` would lose a difference: an output that is NaN and one that
/// was never compared are different findings.
#[derive(Debug, Clone, Copy, Default)]
pub struct Number(pub f64);

/// Numbers are equal if they are stored alike: NaN equals NaN.
impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 || (self.0.is_nan() && other.0.is_nan())
    }
}

impl From<f64> for Number {
    fn from(value: f64) -> Self {
        Self(value)
    }
}

impl From<Number> for f64 {
    fn from(number: Number) -> Self {
        number.0
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Whole numbers are written without a fraction, as the tools and people write them. Above 2^53 an
        // `f64` can't represent every whole number, so larger ones keep the notation of floating-point
        // numbers.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if self.0.is_nan() {
            serializer.serialize_str("NaN")
        } else if self.0.is_infinite() {
            serializer.serialize_str(if self.0 > 0.0 { "inf" } else { "-inf" })
        } else if self.0.fract() == 0.0
            && self.0.abs() < EXACT
            && !(self.0 == 0.0 && self.0.is_sign_negative())
        {
            serializer.serialize_i64(self.0 as i64)
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberVisitor;
        impl Visitor<'_> for NumberVisitor {
            type Value = Number;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, \"NaN\", \"inf\" or \"-inf\"")
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Number, E> {
                Ok(Number(value))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Number, E> {
                Ok(Number(value as f64))
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Number, E> {
                Ok(Number(value as f64))
            }

            fn visit_str<E: Error>(self, value: &str) -> Result<Number, E> {
                match value {
                    "NaN" => Ok(Number(f64::NAN)),
                    "inf" => Ok(Number(f64::INFINITY)),
                    "-inf" => Ok(Number(f64::NEG_INFINITY)),
                    other => Err(E::invalid_value(serde::de::Unexpected::Str(other), &self)),
                }
            }
        }
        deserializer.deserialize_any(NumberVisitor)
    }
}

impl JsonSchema for Number {
    fn inline_schema() -> bool {
        false
    }

    fn schema_name() -> Cow<'static, str> {
        "Number".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number; NaN and the infinities, which JSON lacks, as strings.",
            "anyOf": [{ "type": "number" }, { "enum": ["NaN", "inf", "-inf"] }]
        })
    }
}

/// Serializes a field that is a plain number in the program: `#[serde(with = "number")]`.
pub(super) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    Number(*value).serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Number::deserialize(deserializer).map(f64::from)
}

/// Serialization of numbers that may be absent.
pub(super) mod optional {
    use super::{Deserialize, Deserializer, Number, Serialize, Serializer};

    pub(in crate::model) fn serialize<S: Serializer>(
        value: &Option<f64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.map(Number).serialize(serializer)
    }

    pub(in crate::model) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<f64>, D::Error> {
        Ok(Option::<Number>::deserialize(deserializer)?.map(f64::from))
    }
}

/// Serialization of lists of numbers.
pub mod list {
    use super::{Deserialize, Deserializer, Number, Serializer};

    pub fn serialize<S: Serializer>(values: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().copied().map(Number))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
        Ok(Vec::<Number>::deserialize(deserializer)?.into_iter().map(f64::from).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::Number;
    use proptest::prelude::*;

    #[test]
    fn what_json_lacks_is_kept_as_words() {
        let numbers = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.5, 3.0, -0.0].map(Number);
        let text = serde_json::to_string(&numbers).unwrap();
        assert_eq!(text, r#"["NaN","inf","-inf",1.5,3,-0.0]"#);
        assert_eq!(serde_json::from_str::<[Number; 6]>(&text).unwrap(), numbers);
    }

    #[test]
    fn null_is_not_a_number() {
        assert!(serde_json::from_str::<Number>("null").is_err());
        assert!(serde_json::from_str::<Number>("\"nan\"").is_err());
    }

    proptest! {
        #[test]
        fn every_number_survives_bit_for_bit(value in any::<f64>()) {
            let text = serde_json::to_string(&Number(value)).unwrap();
            let read: Number = serde_json::from_str(&text).unwrap();
            prop_assert!(value.is_nan() && read.0.is_nan() || value.to_bits() == read.0.to_bits());
        }
    }
}
