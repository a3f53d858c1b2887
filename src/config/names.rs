//! Names inside a configuration: of its tables, which are unique, and of the files that it is about.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::problems::{Collector, did_you_mean, shown};
use super::view::ConfigView;

/// A file that the configuration names, to be looked at by [`super::load`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedFile {
    /// Position of the name.
    pub at: usize,
    /// Its kind, in words.
    pub what: String,
    /// Relative to a side's sources.
    pub path: PathBuf,
}

/// Reports a name that was there before.
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
