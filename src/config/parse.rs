//! Parses text into a [`Config`] without any access to the file system.

use std::path::Path;

use toml_span::Value;

use super::build::{self, Built};
use super::check::check_table;
use super::policy;
use super::problems::{Collector, ConfigProblems, shown};
use super::types::PolicyPart;
use super::view::ConfigView;
use super::{Config, Pin, side};
use super::{judging, sections};

/// Parses and validates a `benchgate.toml`. `file` is only used for messages and as the start of relative
/// paths.
///
/// A separate policy file is not read; [`super::load`] does that.
pub fn parse(text: &str, file: &Path) -> Result<Config, ConfigProblems> {
    let mut problems = Collector::default();
    let built = collect(text, file, &mut problems);
    let problems = problems.finish(text, file);
    match built {
        Some(built) if problems.is_empty() => Ok(built.config),
        _ => Err(ConfigProblems { file: file.to_owned(), problems }),
    }
}

/// Parses like [`parse`], but leaves `problems` open so that the caller can check more.
pub(super) fn collect(text: &str, file: &Path, problems: &mut Collector) -> Option<Built> {
    let document = document(text, problems)?;
    check_table(&document, &sections::ROOT, problems);
    Some(build::build(ConfigView::new(&document), file, problems))
}

/// Parses a file that contains only policy.
pub(super) fn collect_policy(text: &str, problems: &mut Collector) -> Option<PolicyPart> {
    let document = document(text, problems)?;
    check_table(&document, &judging::POLICY, problems);
    let root = ConfigView::new(&document);
    // The block counts belong to `[measure]`, which a policy file can't have.
    Some(policy::part(root, root.get("measure"), problems))
}

/// Reads only the policy of a whole configuration, and the name of its policy file.
pub(super) fn collect_policy_of_config(
    text: &str,
    problems: &mut Collector,
) -> Option<(PolicyPart, Option<String>)> {
    let document = document(text, problems)?;
    let root = ConfigView::new(&document);
    for field in judging::POLICY.fields.iter().chain(sections::ROOT.field("policy")) {
        if let Some(value) = document.as_table().and_then(|table| table.get(field.key)) {
            super::check::check(value, &field.kind, field.key, problems);
        }
    }
    let policy_file = root.get("policy").text().map(str::to_owned);
    Some((policy::part(root, root.get("measure"), problems), policy_file))
}

/// Parses a list of toolchains.
pub(super) fn collect_toolchains(text: &str, problems: &mut Collector) -> Option<Vec<Pin>> {
    let document = document(text, problems)?;
    check_table(&document, &side::TOOLCHAINS, problems);
    Some(ConfigView::new(&document).get("toolchain").items().map(|item| side::pin(item, problems)).collect())
}

fn document<'a>(text: &'a str, problems: &mut Collector) -> Option<Value<'a>> {
    match toml_span::parse(text) {
        Ok(document) => Some(document),
        Err(error) => {
            problems.add(error.span.start, format!("not valid TOML: {}", shown(&error.to_string())));
            None
        }
    }
}
