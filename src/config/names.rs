//! Names in a configuration: the unique names of its tables, and the files that it names.
//!
//! The names of the models that come with benchgate, one for each file in `python/benchgate_export/zoo`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::problems::{Collector, did_you_mean, shown};
use super::view::ConfigView;

/// A file that the configuration names, which [`super::load`] checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedFile {
    /// Offset of the name in the text.
    pub at: usize,
    /// A description of the file for messages.
    pub what: String,
    /// The path, relative to a side's sources.
    pub path: PathBuf,
}

/// Reports a name that an earlier table already has.
pub(super) fn unique<'a>(
    name: ConfigView<'a, '_>,
    what: &str,
    seen: &mut BTreeMap<&'a str, usize>,
    problems: &mut Collector,
) {
    if let Some(text) = name.text()
        && seen.insert(text, name.at()).is_some()
    {
        problems.add(name.at(), format!("a second {what} is named `{}`", shown(text)));
    }
}

/// Reports names that are not among `known`.
pub(super) fn among(names: ConfigView<'_, '_>, what: &str, known: &[&str], problems: &mut Collector) {
    for name in names.items() {
        let Some(text) = name.text() else { continue };
        if !known.contains(&text) {
            let advice = did_you_mean(text, known.iter().copied());
            problems.add(name.at(), format!("no {what} is named `{}`{advice}", shown(text)));
        }
    }
}

include!(concat!(env!("OUT_DIR"), "/zoo_keys.rs"));
