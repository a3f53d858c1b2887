//! The words of a label, by the number of processes of which it is the label.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use super::benchmark::{Benchmark, LABEL_WORDS};

/// Separates the words of different labels, and words from their number; neither is part of a word.
const BETWEEN: &str = " | ";
const TIMES: &str = " ×";

/// Maximum number of different labels that are told apart.
const MOST: usize = 64;
/// Stands for all further ones.
const OTHERS: &str = "…";

/// The words of the labels of one side, with the number of processes that have each, as `fast path ×22 | slow path ×2`. A
/// process without a label has no words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelWords(pub BTreeMap<String, usize>);

impl LabelWords {
    /// Returns the words of a benchmark's labels; `None` if no process has a label.
    pub fn of(benchmark: &Benchmark) -> Option<Self> {
        benchmark.labels.get(LABEL_WORDS).map(|text| Self::parse(text))
    }

    fn parse(text: &str) -> Self {
        let counted = |part: &str| {
            let counted =
                part.rsplit_once(TIMES).and_then(|(words, count)| Some((words, count.parse().ok()?)));
            let (words, count) = counted.unwrap_or((part, 1));
            (words.to_owned(), count)
        };
        Self(text.split(BETWEEN).map(counted).collect())
    }

    /// Returns those of so many processes without a label.
    pub fn none(processes: usize) -> Self {
        Self(BTreeMap::from([(String::new(), processes)]))
    }

    /// Adds the labels of further processes.
    pub fn join(&mut self, more: Self) {
        for (words, count) in more.0 {
            let is_room = self.0.len() < MOST || self.0.contains_key(&words);
            *self.0.entry(if is_room { words } else { OTHERS.to_owned() }).or_default() += count;
        }
    }

    /// Returns the number of processes.
    pub fn processes(&self) -> usize {
        self.0.values().sum()
    }

    /// Returns the number of words that only one process has.
    pub fn seen_once(&self) -> usize {
        let once = self.0.iter().filter(|(words, count)| **count == 1 || *words == OTHERS);
        once.map(|(_, count)| count).sum()
    }

    /// Returns the words for readers, those of most processes first; without numbers if all have the same.
    pub fn shown(&self) -> String {
        let mut counted: Vec<(&String, &usize)> = self.0.iter().collect();
        counted.sort_by_key(|(_, count)| Reverse(**count));
        let is_single = counted.len() == 1;
        let shown = counted.into_iter().map(|(words, count)| match (words.as_str(), is_single) {
            ("", true) => "none".to_owned(),
            ("", false) => format!("none{TIMES}{count}"),
            (words, true) => format!("`{words}`"),
            (words, false) => format!("`{words}`{TIMES}{count}"),
        });
        shown.collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for LabelWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted: Vec<String> =
            self.0.iter().map(|(words, count)| format!("{words}{TIMES}{count}")).collect();
        f.write_str(&counted.join(BETWEEN))
    }
}
