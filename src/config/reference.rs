//! `docs/configuration.md`: made from [`super::sections`], so that it can't fall behind.

use std::fmt::Write;

use super::fields::{Kind, Section};
use super::sections;

/// A configuration that uses every table; the reference shows it and a test parses it.
pub const EXAMPLE: &str = include_str!("example.toml");

const INTRODUCTION: &str = "\
# Configuration: `benchgate.toml`

<!-- Written by the tests from src/config/sections.rs: UPDATE_SCHEMAS=1 cargo test schemas -->

One file describes a suite: models, targets, the tools they are measured with, how measuring is done, and
what counts as a regression. Unknown keys are errors, and every problem of the file is reported at once with
its line and column. `schemas/config.json` makes editors complete it: with the Even Better TOML extension,
put `#:schema https://raw.githubusercontent.com/benchgate/benchgate/main/schemas/config.json` on the first
line.

Values that are text in TOML and more than that here:

- *duration*: a number and `ns`, `us`, `ms`, `s`, `m` or `h`: `\"40ms\"`, `\"1.5s\"`
- *fraction*: `\"1%\"` or `0.01`
- *name*: letters, digits, `.`, `_` and `-`; names appear in paths and tables
- *path inside*: relative to the side's `sources`, without `..`

Every file that is named must exist, for each side, and lie inside the repository once symbolic links are
resolved.

**Policy** is `[gate]`, `[[waiver]]` and `[numerics]`. On a pull request it is read from the base commit, so a
change can't loosen the gate that judges it. `policy = \"policy.toml\"` moves the three into a file of their
own, which CODEOWNERS can guard.

## Example

";

/// The page.
pub fn reference() -> String {
    let mut page = format!("{INTRODUCTION}```toml\n{EXAMPLE}```\n");
    let mut done = Vec::new();
    section(&sections::ROOT, "Top level", &mut done, &mut page);
    page
}

fn section(
    section_of: &'static Section,
    title: &'static str,
    done: &mut Vec<&'static str>,
    page: &mut String,
) {
    // A section that stands in two places, such as a toolchain, is described once.
    if done.contains(&title) {
        return;
    }
    done.push(title);
    put(
        page,
        format_args!("\n## {}\n\n", if title.starts_with('[') { format!("`{title}`") } else { title.into() }),
    );
    if !section_of.doc.is_empty() {
        put(page, format_args!("{}\n\n", section_of.doc));
    }
    page.push_str("| key | value | default | |\n|---|---|---|---|\n");
    for field in section_of.fields {
        let default = match (field.default, field.required) {
            (Some(default), _) => format!("`{default}`"),
            (None, true) => "required".to_owned(),
            (None, false) => String::new(),
        };
        let doc = field.doc.replace('|', "\\|");
        put(page, format_args!("| `{}` | {} | {default} | {doc} |\n", field.key, kind(&field.kind)));
    }
    for field in section_of.fields {
        if let Kind::Table(inner) | Kind::Tables(inner) | Kind::Named(inner) = field.kind {
            section(inner, inner.title, done, page);
        }
    }
}

/// Writing to a `String` can't fail.
fn put(page: &mut String, text: std::fmt::Arguments<'_>) {
    let _infallible = page.write_fmt(text);
}

fn kind(kind_of: &Kind) -> String {
    match kind_of {
        Kind::Line => "text".into(),
        Kind::Name => "name".into(),
        Kind::Version => "version".into(),
        Kind::Commit => "40 digits".into(),
        Kind::Sha256 => "64 digits".into(),
        Kind::Url => "address".into(),
        Kind::Inside => "path inside".into(),
        Kind::Relative | Kind::AnyPath => "path".into(),
        Kind::Bool => "boolean".into(),
        Kind::Integer { min, max } if *max == i64::MAX => format!("integer from {min}"),
        Kind::Integer { min, max } => format!("integer, {min} to {max}"),
        Kind::Number { min, max } if *max == f64::MAX => format!("number from {min}"),
        Kind::Number { min, max } => format!("number, {min} to {max}"),
        Kind::Duration => "duration".into(),
        Kind::Fraction => "fraction".into(),
        Kind::Magnitude => "duration or number".into(),
        Kind::Date => "day".into(),
        Kind::Glob => "glob".into(),
        Kind::Choice(choices) => format!("`{}`", choices.join("`, `")),
        Kind::List(item) => format!("list of {}", kind(item)),
        Kind::OneOrMore(item) => format!("one or a list of {}", kind(item)),
        Kind::Texts => "table of text".into(),
        Kind::Scalars => "table of text, numbers, booleans".into(),
        Kind::Table(_) => "table".into(),
        Kind::Tables(_) => "tables".into(),
        Kind::Named(_) => "tables by name".into(),
    }
}
