//! The first pass: reports unknown keys, missing keys and wrong types, using only the declarations of the
//! tables.

use toml_span::Value;
use toml_span::value::{Table, ValueInner};

use benchgate_core::model::{StoreUrl, is_date, is_hex, is_sha256};

use super::fields::{Field, Section, ValueKind};
use super::problems::{Collector, did_you_mean, suggestion};
use super::values::shown;
use super::{sections, values};

/// Reports everything in `value` that the declaration of `section` does not allow.
pub(super) fn check_table(value: &Value<'_>, section: &'static Section, problems: &mut Collector) {
    let Some(table) = value.as_table() else {
        problems.add(value.span.start, format!("expected a table, found {}", values::found(value)));
        return;
    };
    let missing =
        || section.fields.iter().filter(|field| field.is_required() && !table.contains_key(field.key));
    // A required key that was probably misspelled is not reported as missing too.
    let mut meant = Vec::new();
    for (key, inner) in table {
        if let Some(field) = section.field(&key.name) {
            check(inner, &field.kind, &key.name, problems);
            continue;
        }
        let fits = |field: &'static Field| {
            let mut tried = Collector::default();
            check(inner, &field.kind, field.key, &mut tried);
            tried.is_empty()
        };
        let close = suggestion(&key.name, section.fields.iter().map(|field| field.key));
        let advice = match close {
            Some(_) => String::new(),
            None => elsewhere(&key.name, section, &fits),
        };
        // The only key that is still missing may have another name elsewhere.
        let only = || match missing().collect::<Vec<_>>().as_slice() {
            [only] if fits(only) => Some(only.key),
            _ => None,
        };
        let close = close.or_else(|| if advice.is_empty() { only() } else { None });
        let advice = close.map_or(advice, |close| format!("; did you mean `{close}`?"));
        meant.extend(close);
        let message = format!("unknown key `{}` in {}{advice}", shown(&key.name), section.title);
        problems.add(key.span.start, message);
    }
    for field in missing().filter(|field| !meant.contains(&field.key)) {
        let message = match field.kind {
            ValueKind::Tables(_) => format!("no [[{}]]: a suite needs at least one", field.key),
            _ => format!("`{}` is missing in {}", field.key, section.title),
        };
        problems.add(value.span.start, message);
    }
}

/// A hint such as `; it belongs in [measure]`, if another table has this key and the value is valid there.
fn elsewhere(key: &str, here: &Section, fits: &dyn Fn(&'static Field) -> bool) -> String {
    fn search(
        key: &str,
        section: &'static Section,
        fits: &dyn Fn(&'static Field) -> bool,
    ) -> Option<&'static str> {
        let mut tables = section.fields.iter().filter_map(|field| field.kind.section());
        tables.find_map(|inner| {
            let field = inner.field(key).filter(|field| !field.is_any_name() && fits(field));
            field.map(|_| inner.title).or_else(|| search(key, inner, fits))
        })
    }
    if sections::ROOT.field(key).is_some_and(fits) && here.title != sections::ROOT.title {
        return "; it belongs at the top level".to_owned();
    }
    search(key, &sections::ROOT, fits)
        .filter(|title| *title != here.title)
        .map_or_else(String::new, |title| format!("; it belongs in {title}"))
}

/// Reports a `value` that does not match `kind`.
pub(super) fn check(value: &Value<'_>, kind: &'static ValueKind, key: &str, problems: &mut Collector) {
    let at = value.span.start;
    let wrong = |expected: &str, problems: &mut Collector| {
        let found = match value.as_str() {
            Some(text) => format!("`{}`", shown(text)),
            None => values::found(value).to_owned(),
        };
        problems.add(at, format!("`{}`: expected {expected}, found {found}", shown(key)));
    };
    let text = |expected: &str, right: fn(&str) -> bool, problems: &mut Collector| {
        if !value.as_str().is_some_and(right) {
            wrong(expected, problems);
        }
    };
    match kind {
        ValueKind::Line => text("one line of text", values::is_line, problems),
        ValueKind::Name => text("a name of letters, digits, `.`, `_` and `-`", values::is_name, problems),
        ValueKind::Version => text("a version such as `3.13.0`", values::is_version, problems),
        ValueKind::Commit => {
            text("a commit of 40 lowercase hexadecimal digits", |t| t.len() == 40 && is_hex(t), problems)
        }
        ValueKind::Sha256 => text("a SHA-256 of 64 lowercase hexadecimal digits", is_sha256, problems),
        ValueKind::Url => text("an http(s) address without credentials", values::is_url, problems),
        ValueKind::StoreUrl => match value.as_str().map(str::parse::<StoreUrl>) {
            Some(Ok(_)) => {}
            Some(Err(error)) => wrong(error.expected(), problems),
            None => wrong("the address of an object store", problems),
        },
        ValueKind::Inside => {
            text("a relative path that stays inside the sources folder", values::is_inside, problems);
        }
        ValueKind::Relative => text("a relative path", values::is_relative, problems),
        ValueKind::AnyPath => text("a path", values::is_line, problems),
        ValueKind::Date => text("a day, `YYYY-MM-DD`", is_date, problems),
        ValueKind::Bool => {
            if value.as_bool().is_none() {
                wrong("true or false", problems);
            }
        }
        ValueKind::Integer { min, max } => match value.as_integer() {
            Some(n) if (*min..=*max).contains(&n) => {}
            Some(n) if *max == i64::MAX => {
                problems.add(at, format!("`{key}`: expected at least {min}, found {n}"));
            }
            Some(n) => problems.add(at, format!("`{key}`: expected {min} to {max}, found {n}")),
            None => wrong("an integer", problems),
        },
        ValueKind::Number { min, max } => match values::number(value) {
            Some(n) if (*min..=*max).contains(&n) => {}
            Some(n) if *max == f64::MAX => {
                problems.add(at, format!("`{key}`: expected at least {min}, found {n}"));
            }
            Some(n) => problems.add(at, format!("`{key}`: expected {min} to {max}, found {n}")),
            None => wrong("a finite number", problems),
        },
        ValueKind::Duration => {
            text(
                "a duration such as \"40ms\", \"2s\" or \"5m\"",
                |t| values::duration(t).is_some(),
                problems,
            );
        }
        ValueKind::Fraction => report_fraction(values::fraction_of(value), value, key, problems),
        ValueKind::Spread => report_fraction(values::spread_of(value), value, key, problems),
        ValueKind::Magnitude => {
            let right = match value.as_str() {
                Some(text) => values::duration(text).is_some(),
                None => values::number(value).is_some_and(|n| n >= 0.0),
            };
            if !right {
                wrong("a duration such as \"5us\", or a number from 0", problems);
            }
        }
        ValueKind::Glob => {
            match value.as_str().filter(|text| values::is_line(text)).map(globset::Glob::new) {
                Some(Ok(_)) => {}
                Some(Err(error)) => {
                    problems
                        .add(at, format!("`{key}`: not a valid glob: {}", shown(&error.kind().to_string())));
                }
                None => wrong("a glob such as `vit*/cpu/*`", problems),
            }
        }
        ValueKind::Choice(choices) => {
            if !value.as_str().is_some_and(|text| choices.contains(&text)) {
                let advice = value
                    .as_str()
                    .map_or_else(String::new, |text| did_you_mean(text, choices.iter().copied()));
                wrong(&format!("one of `{}`", choices.join("`, `")), problems);
                problems.extend_last(&advice);
            }
        }
        ValueKind::List(item) => match value.as_array() {
            Some(items) => items.iter().for_each(|inner| check(inner, item, key, problems)),
            None => wrong("a list", problems),
        },
        ValueKind::OneOrMore(item) => match value.as_array() {
            Some(items) if items.is_empty() => problems.add(at, format!("`{key}`: the list is empty")),
            Some(items) => items.iter().for_each(|inner| check(inner, item, key, problems)),
            None => check(value, item, key, problems),
        },
        ValueKind::Renames | ValueKind::Texts | ValueKind::Scalars => match (value.as_table(), kind) {
            (Some(table), ValueKind::Renames) => check_renames(table, key, problems),
            (Some(table), _) => check_map(table, matches!(kind, ValueKind::Scalars), key, problems),
            (None, _) => {
                problems.add(at, format!("`{key}`: expected a table, found {}", values::found(value)));
            }
        },
        ValueKind::Table(section) => check_table(value, section, problems),
        ValueKind::Tables(section) => match value.as_array() {
            Some(items) => items.iter().for_each(|inner| check_table(inner, section, problems)),
            None => wrong(&format!("tables, each starting with {}", section.title), problems),
        },
        ValueKind::Named(section) => match value.as_table() {
            Some(table) => table.values().for_each(|inner| check_table(inner, section, problems)),
            None => wrong(&format!("tables, each starting with {}", section.title), problems),
        },
    }
}

fn report_fraction(read: Result<f64, String>, value: &Value<'_>, key: &str, problems: &mut Collector) {
    if let Err(expected) = read {
        problems.add(value.span.start, format!("`{key}`: {expected}"));
    }
}

/// Reports names in a table of renamed flags that are not flags, on either side of the `=`.
fn check_renames(table: &Table<'_>, key: &str, problems: &mut Collector) {
    let is_flag = |text: &str| {
        let name = text.strip_prefix("--").unwrap_or_default();
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
    };
    for (name, inner) in table {
        for (at, text) in [(name.span, Some(name.name.as_ref())), (inner.span, inner.as_str())] {
            if !text.is_some_and(is_flag) {
                let message = format!("`{key}`: expected the names of a flag, such as `--iree-hip-target`");
                problems.add(at.start, message);
            }
        }
    }
}

fn check_map(table: &Table<'_>, scalars: bool, key: &str, problems: &mut Collector) {
    for (name, inner) in table {
        let right_name = name.name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !right_name {
            let message =
                format!("`{}` in `{key}`: expected a name of letters, digits and `_`", shown(&name.name));
            problems.add(name.span.start, message);
        }
        let right_value = match inner.as_ref() {
            ValueInner::String(text) => text.is_empty() || values::is_line(text),
            ValueInner::Integer(_) | ValueInner::Boolean(_) => scalars,
            ValueInner::Float(n) => scalars && n.is_finite(),
            ValueInner::Array(_) | ValueInner::Table(_) => false,
        };
        if !right_value {
            let expected =
                if scalars { "one line of text, a number or a boolean" } else { "one line of text" };
            let message = format!("`{}` in `{key}`: expected {expected}", shown(&name.name));
            problems.add(inner.span.start, message);
        }
    }
}
