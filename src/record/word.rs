//! A word of the model (stage, side, code …) as a JSON string.

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model::{Better, LintCode, MetricKind, SideName, Stage, Verdict, VerifyCode};

/// A closed set of names.
pub trait Named: Copy + 'static {
    /// What the set is called in messages and in the schema.
    const WHAT: &'static str;
    /// Whether schemas list the names. A set that grows with every release is an open string there, so that
    /// a file with a new name is still valid for programs that only pass it on.
    const LISTED: bool = true;
    fn all() -> Vec<Self>;
    fn name(self) -> &'static str;
}

/// A word of the model, stored as its name. An unknown name is refused where it stands, so that
/// nothing is judged by a reader that does not know what was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Word<T>(pub T);

impl<T> From<T> for Word<T> {
    fn from(word: T) -> Self {
        Self(word)
    }
}

impl<T: Named> Serialize for Word<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name())
    }
}

impl<'de, T: Named> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WordVisitor<T>(PhantomData<T>);
        impl<T: Named> Visitor<'_> for WordVisitor<T> {
            type Value = Word<T>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "a {}", T::WHAT)
            }

            fn visit_str<E: Error>(self, value: &str) -> Result<Word<T>, E> {
                T::all()
                    .into_iter()
                    .find(|word| word.name() == value)
                    .map(Word)
                    .ok_or_else(|| E::custom(format_args!("unknown {} {value:?}", T::WHAT)))
            }
        }
        deserializer.deserialize_str(WordVisitor(PhantomData))
    }
}

impl<T: Named> JsonSchema for Word<T> {
    fn schema_name() -> Cow<'static, str> {
        T::WHAT.replace(' ', "-").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        if !T::LISTED {
            return json_schema!({ "type": "string" });
        }
        let names: Vec<&str> = T::all().into_iter().map(Named::name).collect();
        json_schema!({ "type": "string", "enum": names })
    }
}

impl Named for Stage {
    const WHAT: &'static str = "stage";
    fn all() -> Vec<Self> {
        Self::ALL.to_vec()
    }
    fn name(self) -> &'static str {
        self.as_str()
    }
}

impl Named for SideName {
    const WHAT: &'static str = "side";
    fn all() -> Vec<Self> {
        Self::BOTH.to_vec()
    }
    fn name(self) -> &'static str {
        self.as_str()
    }
}

impl Named for VerifyCode {
    const WHAT: &'static str = "verification code";
    fn all() -> Vec<Self> {
        Self::ALL.to_vec()
    }
    fn name(self) -> &'static str {
        self.as_str()
    }
}

impl Named for LintCode {
    const WHAT: &'static str = "lint code";
    const LISTED: bool = false;
    fn all() -> Vec<Self> {
        Self::ALL.to_vec()
    }
    fn name(self) -> &'static str {
        self.as_str()
    }
}

impl Named for Verdict {
    const WHAT: &'static str = "verdict";
    fn all() -> Vec<Self> {
        Self::ALL.to_vec()
    }
    fn name(self) -> &'static str {
        self.as_str()
    }
}

impl Named for Better {
    const WHAT: &'static str = "direction";
    fn all() -> Vec<Self> {
        vec![Self::Lower, Self::Higher]
    }
    fn name(self) -> &'static str {
        match self {
            Self::Lower => "lower",
            Self::Higher => "higher",
        }
    }
}

impl Named for MetricKind {
    const WHAT: &'static str = "metric kind";
    fn all() -> Vec<Self> {
        vec![Self::Noisy, Self::Exact]
    }
    fn name(self) -> &'static str {
        match self {
            Self::Noisy => "noisy",
            Self::Exact => "exact",
        }
    }
}
