//! Labels of Google Benchmark: free text in which a program says how it ran and how right the result is, and labels that
//! the context states.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use benchgate_core::model::{
    Benchmark, LABEL, LABEL_WORDS, Lint, LintCode, Metric, Quality, excerpt, is_axis, is_in, name_words,
    words,
};

use super::super::build::time_unit;
use super::super::facts::{self, Field, is_place, number, state};
use super::super::join::SEVERAL_LABELS;
use super::super::{document, logs::stated_problem};

/// The labels of one benchmark's rows.
#[derive(Debug, Default)]
pub(super) struct Labels {
    first: Option<String>,
    /// Their words, which must equal those of the other side.
    words: Option<String>,
    numbers: BTreeMap<String, Vec<f64>>,
    problem: Option<Lint>,
}

impl Labels {
    /// Adds the label of a row; returns the failure that it reports.
    pub(super) fn take(&mut self, label: Cow<'_, str>) -> Option<String> {
        if self.first.as_deref() == Some(label.as_ref()) {
            return None;
        }
        self.problem = self.problem.take().or_else(|| problem(&label));
        // No honest program uses so many names.
        if self.numbers.len() < MOST_NAMES {
            for (name, value) in numbers(&label) {
                self.numbers.entry(name).or_default().push(value);
            }
        }
        let words = fixed_words(&label);
        let is_other = self.words.as_ref().is_some_and(|known| *known != words);
        self.words = Some(if is_other { SEVERAL_LABELS.to_owned() } else { words });
        let failure = facts::failure("label", &label);
        self.first.get_or_insert(label.into_owned());
        failure
    }

    /// Adds the first label, the words and the problem of all labels to the benchmark.
    pub(super) fn describe(&self, benchmark: &mut Benchmark) {
        let first = self.first.iter().filter(|text| !text.is_empty());
        benchmark.labels.extend(first.map(|text| (LABEL.to_owned(), text.clone())));
        benchmark.labels.extend(self.words.iter().map(|words| (LABEL_WORDS.to_owned(), words.clone())));
        benchmark.lints.extend(self.problem.clone());
    }

    /// Adds the numbers to a benchmark that was measured.
    pub(super) fn state_numbers(self, benchmark: &mut Benchmark) {
        for (name, values) in self.numbers {
            facts::state_quality(benchmark, &name, values);
        }
    }
}

/// Units in labels; a measurement may change its unit.
const LABEL_UNITS: &str = "kb mb gb tb kib mib gib tib flop kflop mflop gflop tflop flops kflops mflops gflops tflops \
    op kop mop gop ops kops mops gops hz khz mhz ghz";

/// Size from which a dimension in a label is not that of a tile.
const LARGER_THAN_TILES: u64 = 512;

/// Returns the words of a label that are equal in all runs of one experiment: its numbers, units, versions, hashes and
/// paths are left out, but not shapes such as `8x512x512`.
fn fixed_words(label: &str) -> String {
    let is_kept = |word: &String| {
        let rest = word.strip_prefix('v').unwrap_or(word);
        // `git describe` puts a `g` before the hash.
        let hash = word.strip_prefix('g').unwrap_or(word);
        let is_hash = hash.len() > 6 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_unit = time_unit(word).is_some() || is_in(LABEL_UNITS, word);
        let is_size = |size: &str| !size.is_empty() && size.bytes().all(|byte| byte.is_ascii_digit());
        // Two numbers may be the size of a tile or a block, which the compiler chooses, and `0x…` is an address.
        let is_large = |size: &str| size.parse().is_ok_and(|size: u64| size >= LARGER_THAN_TILES);
        let is_shape = word.split('x').all(is_size)
            && (word.split('x').count() > 2
                || !word.starts_with("0x") && word.contains('x') && word.split('x').all(is_large));
        is_shape || !rest.starts_with(|c: char| c.is_ascii_digit()) && word.len() > 1 && !is_hash && !is_unit
    };
    let texts = label.split_whitespace().filter(|text| !is_place(text));
    let kept = texts.flat_map(|text| {
        // A checksum looks like the hash of a version.
        let is_checksum = text.split_once(['=', ':']).is_some_and(|(name, _)| states_checksum(name));
        words(text).into_iter().map(str::to_lowercase).filter(move |word| is_checksum || is_kept(word))
    });
    kept.collect::<Vec<_>>().join(" ")
}

/// Returns whether a name states a checksum of results, and not the hash of a commit or a build.
fn states_checksum(name: &str) -> bool {
    let lower = name_words(name);
    let of_source = "git commit build source src repo code head rev revision tree version binary";
    Quality::of_name(name) == Some(Quality::Checksum)
        && !matches!(words(&lower).as_slice(), ["hash"])
        && !words(&lower).iter().any(|word| is_in(of_source, word))
}

/// Returns the numbers in a label that state how right the result is, or how much work is done: `accuracy 0.93`,
/// `err=1e-6`, `12 passed`, `batch=64`. A word that says that the result is right counts as one.
fn quality(label: &str) -> Vec<(String, f64)> {
    let texts: Vec<&str> = label
        .split(|c: char| c.is_whitespace() || "=:,;()".contains(c))
        .filter(|text| !text.is_empty())
        .collect();
    let quality = |at: usize| Quality::of_name(texts[at]);
    let value = |at: usize| {
        let text = texts.get(at)?;
        match text.strip_suffix('%') {
            Some(percentage) => number(percentage).map(|value| value / 100.0),
            None => number(text),
        }
    };
    let between = |at: usize| {
        let place = |text: &str| text.as_ptr() as usize - label.as_ptr() as usize;
        &label[place(texts[at]) + texts[at].len()..place(texts[at + 1])]
    };
    let is_assigned = |at: usize| match quality(at) {
        Some(Quality::Work | Quality::Checksum) => {
            let is_equal = between(at).contains(['=', ':']) || texts[at].contains('_');
            // In `1000 images 12 ms`, the number after the word is not its own.
            let is_counted = || at.checked_sub(1).is_some_and(|before| value(before).is_some());
            let is_unit =
                || texts.get(at + 2).is_some_and(|unit| time_unit(unit).is_some() || unit.contains('/'));
            is_equal || is_in(COUNTED, &texts[at].to_lowercase()) && !is_counted() && !is_unit()
        }
        _ => true,
    };
    // The number of `12 passed` belongs to no word before it.
    let is_counted = |at: usize| {
        let is_count = value(at).is_some_and(|count| count.fract() == 0.0) || texts[at].ends_with('%');
        let is_free = at
            .checked_sub(1)
            .is_none_or(|before| quality(before).is_none() && !between(before).contains(['=', ':']));
        is_count && is_free && between(at).trim().is_empty()
    };
    // Only a part of its own is a verdict: `fp32, verified`, but not `pass manager`.
    let parts: Vec<&str> = label.split([',', ';', '|']).map(str::trim).collect();
    let is_word = |at: usize| is_in(VERDICTS, &texts[at].to_lowercase());
    let is_verdict = |at: usize| is_word(at) && parts.contains(&texts[at]);
    let stated = |at: usize| -> Option<(String, f64)> {
        quality(at).or(is_verdict(at).then_some(Quality::Score))?;
        let is_last = at + 1 == texts.len();
        let is_equal = !is_last && between(at).contains(['=', ':']);
        // In `verified 12 ms`, the number is a time.
        let after = || value(at + 1).filter(|_| is_equal || is_assigned(at) && !is_word(at));
        let before = || {
            let before = at.checked_sub(1).filter(|before| is_counted(*before))?;
            value(before).filter(|_| matches!(quality(at), Some(Quality::Score | Quality::Failures)))
        };
        let said = || is_verdict(at).then_some(1.0).filter(|_| !is_equal);
        let value = after().or_else(before).or_else(said)?;
        let name = if quality(at).is_some() { texts[at].to_lowercase() } else { "passed".to_owned() };
        Some((name, value))
    };
    (0..texts.len()).filter_map(stated).collect()
}

/// Largest number of numbers to read from a label, and of their names from which no further label is read.
const MOST_NUMBERS: usize = 32;
const MOST_NAMES: usize = 64;

/// Returns the numbers of [`quality`] and those of other pairs (`sum=1234`, `right: 93/100`), whose meaning is unknown. Those
/// with a unit are measurements.
fn numbers(label: &str) -> Vec<(String, f64)> {
    // A comma between two digits is a decimal one, or separates thousands. All runs write it alike, so it is left out.
    let bytes = label.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let is_in_number = |at: usize| bytes[at] == b',' && at > 0 && is_digit(at - 1) && is_digit(at + 1);
    let label: String = label
        .char_indices()
        .filter(|(at, _)| !is_in_number(*at))
        .map(|(_, c)| c)
        .collect::<String>()
        .replace(" = ", "=");
    let mut found = quality(&label);
    let one = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(|value| value as f64),
        None => number(text),
    };
    let value = |text: &str| match text.split_once('/') {
        Some((part, all)) => Some(number(part)? / number(all)?),
        None => one(text.trim_end_matches(['!', '.'])),
    };
    for (name, text, next) in pairs(&label) {
        let is_measured = next.is_some_and(|unit| time_unit(unit).is_some() || is_unit(unit));
        // The last of `a:sum=1234`.
        let (name, text) = text.rsplit_once(['=', ':']).map_or((name, text), |(inner, text)| (inner, text));
        let name = name.to_lowercase();
        let is_named = name.contains(|c: char| c.is_alphabetic()) || !name.is_ascii();
        let is_known = found.iter().any(|(known, _)| *known == name);
        if found.len() >= MOST_NUMBERS || is_measured || is_known || !is_named {
            continue;
        }
        found.extend(value(text).filter(|value| value.is_finite()).map(|value| (name, value)));
    }
    // benchgate defines what its own names mean.
    found.retain(|(name, _)| Metric::built_in(name).is_none());
    found
}

/// Returns whether a word after a number is its unit, such as `GB/s`.
fn is_unit(word: &str) -> bool {
    word.contains('/') || is_in(LABEL_UNITS, &word.to_lowercase())
}

/// Amounts of work whose number may follow after a space.
const COUNTED: &str = "batch rows images tokens items elements frames requests";

/// Words that say that a result is right.
const VERDICTS: &str = "verified passed pass valid validated correct";

/// Returns the problem that a label reports as a whole or in one of its pairs (`correct=false`, `exit_code: 139`). The
/// detail is the same on both sides, because a pair can also be a mode: `exact_match=false`.
fn problem(label: &str) -> Option<Lint> {
    let stated = || stated_problem(label).map(str::to_owned);
    let in_pair = || {
        pairs(label).find_map(|(name, value, _)| {
            let is_literal = matches!(value, "true" | "false") || number(value).is_some();
            let json =
                if is_literal { value.to_owned() } else { Value::String(value.to_owned()).to_string() };
            // `False` is Python's.
            document::finding(name, &json.replace("False", "false")).map(|_| format!("{name}={value}"))
        })
    };
    let lint = |said: String| {
        Lint::new(LintCode::ReportedProblem, format!("the label says `{}`", excerpt(&said, 80)))
    };
    facts::problem("label", label).or_else(|| stated().or_else(in_pair).map(lint))
}

/// Returns the names and values in a label, of `name=value` and `name: value`, with the word after each.
fn pairs(label: &str) -> impl Iterator<Item = (&str, &str, Option<&str>)> {
    let separators = [' ', ',', ';', '|', '(', ')', '[', ']', '{', '}', '"', '\''];
    let texts: Vec<&str> = label.split(separators).filter(|text| !text.is_empty()).collect();
    (0..texts.len()).filter_map(move |at| match texts[at].split_once(['=', ':']) {
        Some((name, "")) if !name.is_empty() => Some((name, *texts.get(at + 1)?, texts.get(at + 2).copied())),
        Some((name, value)) if !name.is_empty() => Some((name, value, texts.get(at + 1).copied())),
        _ => None,
    })
}

/// Context key for the labels that distinguish experiments with equal names, such as pytest-benchmark's
/// timer: [`Axes`] as JSON text.
pub(crate) const AXES: &str = "benchgate_axes";

/// Labels of each benchmark.
pub(crate) type Axes = BTreeMap<String, BTreeMap<String, String>>;

/// Labels of benchmarks that a file states outside of their rows.
#[derive(Debug, Default)]
pub(super) struct StatedLabels {
    /// The labels of each benchmark of a converted file.
    pub(super) axes: Axes,
    /// The user's own context (`--benchmark_context=backend=cuda`), which all benchmarks share.
    pub(super) fields: Vec<Field>,
}

impl StatedLabels {
    pub(super) fn add_to(&mut self, benchmark: &mut Benchmark) {
        if !self.fields.is_empty() {
            state(benchmark, &self.fields);
        }
        // Other labels state how benchgate built or judges a benchmark, which a file must not decide.
        let stated = self.axes.remove(benchmark.name.as_str()).unwrap_or_default();
        benchmark.labels.extend(stated.into_iter().filter(|(axis, _)| is_axis(axis)));
    }
}
