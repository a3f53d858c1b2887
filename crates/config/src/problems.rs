//! Problems of a configuration, all reported at once and each with its position, and the checks of its names.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use benchgate_core::model::counted;

use super::values::{ConfigView, shown};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub file: PathBuf,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// A lowercase fragment without control or hidden characters, even if the file contains some.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file.display(), self.line, self.column, self.message)
    }
}

/// All problems of a configuration, sorted by position. There is at least one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigProblems {
    pub file: PathBuf,
    pub problems: Vec<Problem>,
}

impl fmt::Display for ConfigProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "use {}: {}", self.file.display(), counted(self.problems.len(), "problem"))?;
        for problem in &self.problems {
            write!(f, "\n{problem}")?;
        }
        Ok(())
    }
}

/// Reasons why a configuration could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("read {}: it is too large (the limit is {limit} bytes)", path.display())]
    TooLarge { path: PathBuf, limit: u64 },
    #[error("read {}: it is not UTF-8 text (first at byte {at})", path.display())]
    NotText { path: PathBuf, at: usize },
    #[error(transparent)]
    Invalid(#[from] ConfigProblems),
}

/// Collects problems while a text is read. Their positions are byte offsets until `finish` converts them.
#[derive(Debug, Default)]
pub(super) struct Collector {
    found: Vec<(usize, String)>,
}

impl Collector {
    pub(super) fn add(&mut self, offset: usize, message: impl Into<String>) {
        self.found.push((offset, message.into()));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Appends advice to the problem that was added last.
    pub(super) fn extend_last(&mut self, advice: &str) {
        if let Some((_, message)) = self.found.last_mut() {
            message.push_str(advice);
        }
    }

    /// Returns the problems with their lines and columns in `text`.
    pub(super) fn finish(mut self, text: &str, file: &Path) -> Vec<Problem> {
        self.found.sort();
        self.found.dedup();
        self.found
            .into_iter()
            .map(|(offset, message)| {
                let (line, column) = position(text, offset);
                Problem { file: file.to_owned(), line, column, message }
            })
            .collect()
    }
}

/// Line and column of a byte offset. An offset inside a character counts as the start of that character.
fn position(text: &str, offset: usize) -> (usize, usize) {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// The known word that is most similar to `word`, if any is similar enough.
pub(super) fn suggestion<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Writing underscores instead of dashes is the most common mistake, so it doesn't count as a difference.
    let word = word.replace('_', "-").to_ascii_lowercase();
    // If more than about a third of the letters differ, the suggestion would be noise.
    let most = (word.chars().count() / 3).clamp(1, 4);
    known
        .map(|candidate| (strsim::damerau_levenshtein(&word, candidate), candidate))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// A hint such as ``; did you mean `x`?``, if a similar name is known.
pub(super) fn did_you_mean<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> String {
    suggestion(word, known).map_or_else(String::new, |close| format!("; did you mean `{close}`?"))
}

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
