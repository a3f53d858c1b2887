//! A user's counters: the metric for each, and a parser for the text that the console prints after the
//! iterations of a row.
//!
//! `NAME=VALUE NAME=VALUE LABEL`, or, with `--benchmark_counters_tabular`, columns under the names in the
//! header. Names and labels may contain spaces, and neither is quoted.

use std::borrow::Cow;

use benchgate_core::model::{Lint, LintCode, Metric, MetricKind, Unit};

use super::super::build::direction_of_name;

/// Maximum number of counters in one row: more of them are an attack.
pub(super) const MAX_COUNTERS: usize = 256;

/// The parts of a table's header that are needed to read the counters in its rows.
#[derive(Debug, Default)]
pub(super) struct TableHeader {
    /// The text after `Iterations`, if counters have their own columns.
    columns: Option<String>,
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct Counters<'a> {
    /// Name and value of each counter; NaN if the value is not a number.
    pub counters: Vec<(&'a str, f64)>,
    pub label: Option<&'a str>,
}

impl TableHeader {
    /// Parses a line that [`super::console::is_header`] accepts.
    pub(super) fn parse(line: &str) -> Self {
        let columns = line.split_once("Iterations").map_or("", |(_, columns)| columns.trim_end());
        let tabular = !columns.is_empty() && columns.trim() != "UserCounters...";
        Self { columns: tabular.then(|| columns.to_owned()) }
    }

    /// Reads the rest of a row, after the iterations.
    pub(super) fn read<'a>(&'a self, rest: &'a str) -> Counters<'a> {
        match &self.columns {
            Some(columns) => tabular(columns, rest),
            None => pairs(rest),
        }
    }
}

/// Reads counters in columns. Names and values are right-aligned in their columns, so the ends of the values
/// show where a name with spaces ends. A value wider than its column shifts the rest; then the names are
/// assumed to have no spaces and are counted.
fn tabular<'a>(columns: &'a str, rest: &'a str) -> Counters<'a> {
    let words: Vec<(usize, &str)> = words_with_ends(rest).collect();
    let mut names = Vec::new();
    let mut start = 0;
    for &(end, _) in words.iter().take_while(|(end, _)| *end <= columns.len()) {
        names.push(columns.get(start..end).unwrap_or_default().trim());
        start = end;
    }
    if start != columns.len() || names.contains(&"") {
        names = columns.split_ascii_whitespace().collect();
    }
    names.truncate(MAX_COUNTERS);
    let mut values = words.iter().map(|(_, word)| *word);
    let counters: Vec<(&str, f64)> = names
        .iter()
        .map(|&name| (name, values.next().and_then(|word| scaled(name, word)).unwrap_or(f64::NAN)))
        .collect();
    let last =
        names.len().checked_sub(1).and_then(|last| words.get(last)).map_or(rest.len(), |(end, _)| *end);
    Counters { counters, label: some(&rest[last..]) }
}

/// Reads `NAME=VALUE` pairs. The tool sorts counters by name, so the first pair that is out of order or has
/// no value belongs to the label.
fn pairs(rest: &str) -> Counters<'_> {
    let mut counters: Vec<(&str, f64)> = Vec::new();
    let mut start = 0;
    while counters.len() < MAX_COUNTERS
        && let Some((name, value)) = rest[start..].split_once('=')
    {
        let name = name.trim();
        let value = value.split_ascii_whitespace().next().filter(|word| value.starts_with(word));
        let after = counters.last().is_none_or(|(before, _)| *before < name);
        match value.and_then(|word| Some((word, scaled(name, word)?))) {
            Some((word, value)) if after && !name.is_empty() => {
                counters.push((name, value));
                start = word.as_ptr() as usize + word.len() - rest.as_ptr() as usize;
            }
            _ => break,
        }
    }
    Counters { counters, label: some(&rest[start..]) }
}

fn some(label: &str) -> Option<&str> {
    Some(label.trim()).filter(|label| !label.is_empty())
}

fn words_with_ends(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_ascii_whitespace()
        .map(|word| (word.as_ptr() as usize + word.len() - text.as_ptr() as usize, word))
}

/// Parses a counter's value: `1.46409k/s`, `11.8633/s`, `0.21%`, `1.5Gi`, `520ps` (an inverted rate).
fn scaled(name: &str, word: &str) -> Option<f64> {
    let (word, percent) = match word.strip_suffix('%') {
        Some(word) => (word, 0.01),
        None => (word.strip_suffix("/s").or(word.strip_suffix('s')).unwrap_or(word), 1.0),
    };
    if let Ok(value) = word.parse::<f64>() {
        return Some(value * percent);
    }
    let binary = word.strip_suffix('i');
    let word = binary.unwrap_or(word);
    let prefix = word.chars().next_back()?;
    let value: f64 = word[..word.len() - prefix.len_utf8()].parse().ok()?;
    if let Some(power) = "kMGTPEZY".find(if prefix == 'K' { 'k' } else { prefix }) {
        // Releases before 1.8 count bytes in powers of 1024 but omit the `i`.
        let base: f64 = if binary.is_some() || name == "bytes_per_second" { 1024.0 } else { 1000.0 };
        return Some(value * base.powi(power as i32 + 1));
    }
    let power = "munpfazy".find(prefix).filter(|_| binary.is_none())?;
    Some(value * 1e-3f64.powi(power as i32 + 1))
}

/// Returns the reason why a counter's value can't be compared.
pub(super) fn unusable_counter(value: f64) -> Option<&'static str> {
    (!value.is_finite()).then_some(NOT_FINITE)
}

const NOT_FINITE: &str = "NaN or infinite";

/// Returns the finding that a counter is not a number. It doesn't count if base has the same finding.
pub(super) fn reported_counter(name: &str, unusable: &str) -> Lint {
    Lint::new(LintCode::ReportedProblem, format!("`{name}` is {unusable}"))
}

/// Name that Google Benchmark prints for [`Metric::THROUGHPUT`].
const ITEMS_PER_SECOND: &str = "items_per_second";

/// Returns benchgate's name of a metric that a tool printed under this name.
pub fn metric_name(printed: &str) -> &str {
    if printed == ITEMS_PER_SECOND { "items-per-second" } else { printed }
}

/// Returns a counter's metric: its name in benchgate, and its better direction.
pub(crate) fn counter_metric(name: &str) -> Metric {
    match name {
        ITEMS_PER_SECOND => Metric::THROUGHPUT,
        _ => Metric {
            // benchgate defines what its own names mean.
            name: Cow::Owned(match Metric::built_in(name) {
                Some(_) => format!("counter {name}"),
                None => name.to_owned(),
            }),
            // No format states in all of its outputs whether a counter is a rate, so no unit is assumed.
            unit: Unit::Other(Cow::Borrowed("counter")),
            better: direction_of_name(name),
            kind: MetricKind::Noisy,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_labels_may_hold_spaces() {
        let read = TableHeader::default();
        let row = read.read(" cache misses=0 seconds per tile=520ps tile 64 x 64");
        assert_eq!(row.counters, [("cache misses", 0.0), ("seconds per tile", 520.0 * 1e-3f64.powi(4))]);
        assert_eq!(row.label, Some("tile 64 x 64"));
        let row = read.read(" b=2 a=1");
        assert_eq!((row.counters, row.label), (vec![("b", 2.0)], Some("a=1")), "counters are sorted");
        let row = read.read(" a=1 shape=4x4 z=2");
        assert_eq!((row.counters, row.label), (vec![("a", 1.0)], Some("shape=4x4 z=2")));
        let row = read.read(" a= 1");
        assert_eq!((row.counters, row.label), (vec![], Some("a= 1")));
    }

    #[test]
    fn tabular_counters_are_read_by_where_their_columns_end() {
        let read =
            TableHeader::parse("Benchmark  Time  CPU  Iterations cache misses      depth items_per_second");
        let row = read.read("            0        3.5       3.59395G/s tile 64");
        let wanted = [("cache misses", 0.0), ("depth", 3.5), ("items_per_second", 3.59395e9)];
        assert_eq!((row.counters.as_slice(), row.label), (wanted.as_slice(), Some("tile 64")));
        // One value is wider than its column.
        let read = TableHeader::parse("Benchmark  Time  CPU  Iterations      depth      width");
        let row = read.read(" -1.234567890        3.5 label");
        assert_eq!(row.counters, [("depth", -1.23456789), ("width", 3.5)]);
        let row = read.read("        x.y        3.5");
        assert!(row.counters[0].1.is_nan());
    }

    #[test]
    fn bytes_are_counted_in_powers_of_1024_with_or_without_the_i() {
        assert_eq!(scaled("bytes_per_second", "2G/s"), Some(2.0 * 1024f64.powi(3)));
        assert_eq!(scaled("bytes_per_second", "2Gi/s"), Some(2.0 * 1024f64.powi(3)));
        assert_eq!(scaled("items_per_second", "2G/s"), Some(2e9));
    }
}
