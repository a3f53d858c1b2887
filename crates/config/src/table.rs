//! The declaration of a table. One line per key contains its field, default, type and documentation, and the
//! side that chooses it on a pull request. Reading, schema and reference page follow from it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use benchgate_core::model::StoreUrl;

use super::fields::{ChosenBy, KeyPresence};
use super::values::ConfigView;

/// A table that the macro `table!` declares.
pub(super) trait DeclaredTable: Sized {
    /// Reads every key whose value depends on nothing but its type.
    fn read(view: ConfigView<'_, '_>) -> Self;

    /// Takes from the base every key that the base chooses.
    fn judge_by(&mut self, base: &Self);

    /// Describes the keys in which this table differs from the base's.
    fn changes(&self, base: &Self) -> Vec<(ChosenBy, String)>;
}

/// A type that the value of a key can have.
pub(super) trait KeyValue: Sized {
    /// True if the key may be absent without having a default.
    const OPTIONAL: bool = false;
    /// The value that an absent key has, as TOML.
    const EMPTY: Option<&'static str> = None;

    /// The value in the document. `None` if the key is absent, or if its value is invalid and was reported.
    fn read(view: ConfigView<'_, '_>) -> Option<Self>;

    /// The value as TOML, for documenting defaults.
    fn written(&self) -> String {
        String::new()
    }
}

impl<T: KeyValue> KeyValue for Option<T> {
    const OPTIONAL: bool = true;

    fn read(view: ConfigView<'_, '_>) -> Option<Self> {
        T::read(view).map(Some)
    }
}

impl<T: KeyValue> KeyValue for Vec<T> {
    const OPTIONAL: bool = true;
    const EMPTY: Option<&'static str> = Some("[]");

    fn read(view: ConfigView<'_, '_>) -> Option<Self> {
        view.is_present().then(|| view.items().filter_map(T::read).collect())
    }
}

impl KeyValue for BTreeMap<String, String> {
    const OPTIONAL: bool = true;
    const EMPTY: Option<&'static str> = Some("{}");

    fn read(view: ConfigView<'_, '_>) -> Option<Self> {
        Some(view.scalars())
    }
}

/// Implements `KeyValue` for types. For each type, one function reads a value and another one writes a
/// default.
macro_rules! key_values {
    ($($type:ty: $read:expr, $written:expr;)+) => {
        $(impl $crate::table::KeyValue for $type {
            fn read(view: $crate::values::ConfigView<'_, '_>) -> Option<Self> {
                $read(view)
            }

            fn written(&self) -> String {
                $written(self)
            }
        })+
    };
}
pub(super) use key_values;

key_values! {
    u32: ConfigView::integer, Self::to_string;
    u64: ConfigView::integer, Self::to_string;
    usize: ConfigView::integer, Self::to_string;
    bool: ConfigView::bool, Self::to_string;
    String: |view: ConfigView<'_, '_>| view.text().map(str::to_owned), |text: &Self| format!("{text:?}");
    PathBuf: |view: ConfigView<'_, '_>| view.text().map(Self::from), |path: &Self| format!("{path:?}");
    Duration: ConfigView::duration, |duration: &Self| format!("\"{}m\"", duration.as_secs() / 60);
    StoreUrl: ConfigView::word, |url: &Self| format!("\"{url}\"");
}

/// The presence of a key without an explicit default, which follows from its type.
pub(super) const fn presence<T: KeyValue>() -> KeyPresence {
    match T::EMPTY {
        Some(text) => KeyPresence::Text(text),
        None if T::OPTIONAL => KeyPresence::Optional,
        None => KeyPresence::Required,
    }
}

/// A number of minutes, for the defaults of timeouts.
pub(super) const fn minutes(count: u64) -> Duration {
    Duration::from_secs(60 * count)
}

/// Declares a table. Each line has one of these forms:
/// - `"key" => field: Type, KIND, "doc";`, with `= default` after the type if there is a default: a field
///   that is read as its type says;
/// - `"key": presence => field: Type = initial, KIND, "doc";`: a field that the declaring file reads
///   itself;
/// - `"key": presence, KIND, "doc";`: a key whose value another struct holds.
///
/// On a pull request the base chooses the key, unless the line begins with `head`.
macro_rules! table {
    ($(#[$meta:meta])* pub struct $name:ident, $section:ident: $title:literal, $doc:expr; $($lines:tt)+) => {
        table!(@line [$(#[$meta])* $name $section $title $doc] [] [] [] [] $($lines)+);
    };
    (@line $table:tt $keys:tt $fields:tt $read:tt $made:tt head $($lines:tt)+) => {
        table!(@key Head $table $keys $fields $read $made $($lines)+);
    };
    (@line $table:tt $keys:tt $fields:tt $read:tt $made:tt $key:literal $($lines:tt)+) => {
        table!(@key Base $table $keys $fields $read $made $key $($lines)+);
    };
    (@key $by:ident $table:tt [$($keys:tt)*] [$($fields:tt)*] [$($read:tt)*] $made:tt
        $key:literal => $field:ident: $type:ty = $default:expr, $kind:expr, $doc:expr; $($lines:tt)*) => {
        table!(@line $table
            [$($keys)* {$key $by ($crate::fields::KeyPresence::Made(
                || <$type as $crate::table::KeyValue>::written(&$default)
            )) ($kind) ($doc)}]
            [$($fields)* {$key $field ($type) $by}]
            [$($read)* {$key $field ($type) (unwrap_or_else(|| $default))}]
            $made $($lines)*);
    };
    (@key $by:ident $table:tt [$($keys:tt)*] [$($fields:tt)*] [$($read:tt)*] $made:tt
        $key:literal => $field:ident: $type:ty, $kind:expr, $doc:expr; $($lines:tt)*) => {
        table!(@line $table
            [$($keys)* {$key $by ($crate::table::presence::<$type>()) ($kind) ($doc)}]
            [$($fields)* {$key $field ($type) $by}]
            [$($read)* {$key $field ($type) (unwrap_or_default())}]
            $made $($lines)*);
    };
    (@key $by:ident $table:tt [$($keys:tt)*] [$($fields:tt)*] $read:tt [$($made:tt)*]
        $key:literal: $presence:expr => $field:ident: $type:ty = $initial:expr, $kind:expr, $doc:expr; $($lines:tt)*) => {
        table!(@line $table
            [$($keys)* {$key $by ($presence) ($kind) ($doc)}]
            [$($fields)* {$key $field ($type) $by}]
            $read
            [$($made)* {$field ($initial)}] $($lines)*);
    };
    (@key $by:ident $table:tt [$($keys:tt)*] $fields:tt $read:tt $made:tt
        $key:literal: $presence:expr, $kind:expr, $doc:expr; $($lines:tt)*) => {
        table!(@line $table [$($keys)* {$key $by ($presence) ($kind) ($doc)}] $fields $read $made $($lines)*);
    };
    (@line [$(#[$meta:meta])* $name:ident $section:ident $title:literal $doc:expr]
        [$({$key:literal $key_by:ident ($presence:expr) ($kind:expr) ($text:expr)})*]
        [$({$field_key:literal $field:ident ($type:ty) $by:ident})*]
        [$({$read_key:literal $read:ident ($read_type:ty) ($($absent:tt)+)})*]
        [$({$made:ident ($initial:expr)})*]) => {
        $(#[$meta])*
        pub struct $name {
            $(pub $field: $type,)*
        }

        pub(super) static $section: $crate::fields::Section = $crate::fields::Section {
            title: $title,
            doc: $doc,
            fields: &[$($crate::fields::Field {
                key: $key,
                kind: $kind,
                by: $crate::fields::ChosenBy::$key_by,
                presence: $presence,
                doc: $text,
            }),*],
        };

        impl $crate::table::DeclaredTable for $name {
            fn read(view: $crate::values::ConfigView<'_, '_>) -> Self {
                Self {
                    $($read: <$read_type as $crate::table::KeyValue>::read(view.get($read_key)).$($absent)+,)*
                    $($made: $initial,)*
                }
            }

            fn judge_by(&mut self, base: &Self) {
                $($crate::fields::ChosenBy::$by.take(&mut self.$field, &base.$field);)*
            }

            fn changes(&self, base: &Self) -> Vec<($crate::fields::ChosenBy, String)> {
                let all = [$($crate::fields::ChosenBy::$by.change($field_key, &base.$field, &self.$field)),*];
                all.into_iter().flatten().collect()
            }
        }
    };
}
pub(super) use table;
