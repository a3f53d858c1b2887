//! Closed sets of names: one table gives an enum its names, its parser, its JSON and its schema.

/// Makes a set of names storable. An unknown name is rejected, so that no reader judges a result that it does
/// not understand.
macro_rules! stored_word {
    ($type:ty, $what:literal, $schema:expr) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = <std::borrow::Cow<'_, str> as serde::Deserialize>::deserialize(deserializer)?;
                Self::parse(&word).ok_or_else(|| {
                    serde::de::Error::custom(format_args!(concat!("unknown ", $what, " {:?}"), word))
                })
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $what.replace(' ', "-").into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $schema
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

/// Declares an enum whose variants have names.
macro_rules! words {
    ($(#[$meta:meta])* pub enum $type:ident: $what:literal { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        pub enum $type { $($(#[$doc])* $variant,)+ }

        impl $type {
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant,)+];
            pub const WORDS: &[&str] = &[$($word),+];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|known| known.as_str() == word)
            }
        }

        stored_word!($type, $what, schemars::json_schema!({
            "type": "string", "enum": [$($word),+]
        }));
    };
}
