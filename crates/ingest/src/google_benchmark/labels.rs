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
    op kop mop gop ops kops mops gops hz khz mhz ghz w j v watts joules";

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

/// Largest number of words and of numbers to read from a label, and of their names from which no further label is read.
const MOST_TEXTS: usize = 1024;
const MOST_NUMBERS: usize = 32;
const MOST_NAMES: usize = 64;

/// Units of sizes, which can be an amount of work.
const SIZES: &str = "b bytes kb mb gb tb kib mib gib tib";

/// Words for what a compiler chooses, before a shape or a number.
const CHOSEN: &str =
    "tile tiles tiling block blocks workgroup wg grid warp warps unroll vec vector lanes mma algo node";

/// Words that say that a result is right.
const VERDICTS: &str = "verified passed pass valid validated correct";

/// Name of a number next to no word.
const UNNAMED: &str = "label value";

/// A word or a number of a label.
#[derive(Clone, Copy)]
struct Text<'a> {
    text: &'a str,
    /// The name that an equals sign or a colon gives it.
    assigned: Option<&'a str>,
    /// Number of the part of the label that contains it. Commas, semicolons and bars separate parts.
    part: usize,
}

/// Returns the words and numbers of a label.
fn texts(label: &str) -> Vec<Text<'_>> {
    let mut texts: Vec<Text<'_>> = Vec::new();
    let mut assigned = None;
    for (part, said) in label.split([',', ';', '|']).enumerate() {
        let is_separator = |c: char| c.is_whitespace() || "()[]{}\"'".contains(c);
        for text in said.split(is_separator).filter(|text| !text.is_empty()) {
            // The last pair of `a:sum=1234`.
            let (name, text) =
                match text.trim_end_matches(['!', '.']).rsplit_once(['=', ':', '<', '>', '≤', '≥']) {
                    Some((name, text)) => {
                        (Some(name.rsplit(['=', ':', '<', '>', '≤', '≥']).next().unwrap_or(name)), text)
                    }
                    None => (None, text.trim_end_matches(['!', '.'])),
                };
            let name = name.filter(|name| !name.is_empty());
            assigned = name.or_else(|| assigned.filter(|_| number_or_shape(text, true).is_some()));
            if texts.len() == MOST_TEXTS {
                return texts;
            }
            if !text.is_empty() {
                texts.push(Text { text, assigned, part });
            }
        }
    }
    texts
}

/// Returns the numbers of a text: those of a shape, of a fraction or of a percentage, or a hexadecimal one that has a name.
fn number_or_shape(text: &str, is_assigned: bool) -> Option<Vec<f64>> {
    let hexadecimal = text.strip_prefix("0x").filter(|digits| is_assigned && !digits.is_empty());
    if let Some(digits) = hexadecimal {
        return Some(vec![u64::from_str_radix(digits, 16).ok()? as f64]);
    }
    if text.starts_with("0x") {
        return None;
    }
    let whole = |text: &str| text.parse::<u32>().ok().map(f64::from);
    let listed = |separator: &[char]| text.split(separator).map(whole).collect::<Option<Vec<f64>>>();
    match (text.strip_suffix('%'), text.split_once('/')) {
        (Some(percentage), _) => Some(vec![number(percentage)? / 100.0]),
        (None, Some((part, all))) => match (whole(part), whole(all)) {
            (Some(part), Some(all)) if all > 0.0 => Some(vec![part / all]),
            _ => Some(vec![number(part)?, number(all)?]),
        },
        (None, None) => number(text).map(|one| vec![one]).or_else(|| listed(&['x', 'X', '*', '×'])),
    }
}

/// Returns the numbers in a label by the words next to them: `accuracy 0.93`, `err=1e-6`, `12 passed`, `256 tokens`, `64x64`.
/// A word that says that the result is right counts as one. Times, rates and other percentages are measurements.
fn numbers(label: &str) -> Vec<(String, f64)> {
    let plain = without_commas_in_numbers(label)
        .replace("==", "=")
        .replace(" = ", "=")
        .replace(" x ", "x")
        .replace(" × ", "x");
    let texts = texts(&plain);
    let numbers_of = |at: usize| number_or_shape(texts[at].text, texts[at].assigned.is_some());
    let word = |at: Option<usize>, part: usize| {
        let found: &Text<'_> = texts.get(at?)?;
        // A version, a hash or a path is no name.
        let is_word = found.part == part
            && found.assigned.is_none()
            && number_or_shape(found.text, false).is_none()
            && (found.text == "%" || is_unit(found.text) || !fixed_words(found.text).is_empty());
        is_word.then_some(found.text)
    };
    let mut found: Vec<(String, f64)> = Vec::new();
    let mut starts_with_number = false;
    for (at, text) in texts.iter().enumerate() {
        let lower = text.text.to_lowercase();
        // Only a part of its own is a verdict: `fp32, verified`, but not `pass manager`.
        let is_other =
            |at: Option<usize>| at.and_then(|at| texts.get(at)).is_none_or(|it| it.part != text.part);
        let is_alone = is_other(at.checked_sub(1)) && is_other(at.checked_add(1));
        if is_alone && text.assigned.is_none() && is_in(VERDICTS, &lower) {
            let name = if Quality::of_name(&lower).is_some() { lower } else { "passed".to_owned() };
            found.push((name, 1.0));
            continue;
        }
        let Some(values) = numbers_of(at) else { continue };
        let before = word(at.checked_sub(1), text.part);
        let next = word(at.checked_add(1), text.part);
        // The number of `resnet 50 top1 0.76` does not belong to the word after it, which has its own.
        let has_own = || {
            let after =
                at.checked_add(2).filter(|after| texts.get(*after).is_some_and(|it| it.part == text.part));
            after.is_some_and(|after| numbers_of(after).is_some())
        };
        let is_judged = |word: &&str| {
            let quality = Quality::of_name(word);
            matches!(quality, Some(Quality::Score | Quality::Failures | Quality::Work)) && !has_own()
        };
        let both = at
            .checked_sub(2)
            .and_then(|first| Some(format!("{} {}", word(Some(first), text.part)?, before?)));
        let is_size = next.is_some_and(|unit| is_in(SIZES, &unit.to_lowercase()));
        // In `0.93 accuracy 0.31 loss`, each number belongs to the word after it.
        let is_first = !(0..at)
            .rev()
            .map_while(|at| texts.get(at))
            .take_while(|it| it.part == text.part)
            .any(|it| it.assigned.is_some() || number_or_shape(it.text, false).is_none());
        starts_with_number =
            if is_first { next.is_some_and(|next| !is_unit(next)) } else { starts_with_number };
        let of_next = next.filter(|next| starts_with_number && !is_unit(next));
        let name = match (text.assigned, before, of_next.or(next.filter(is_judged))) {
            (None, Some(_), Some(next)) if of_next.is_some() => next.to_owned(),
            (Some(name), ..) => name.to_owned(),
            (None, None, Some(next)) => next.to_owned(),
            // The number of `verified 12 passed` belongs to the word after it.
            (None, Some(before), Some(next)) if Quality::of_name(before).is_none() => next.to_owned(),
            (None, Some(before), _) if Quality::of_name(before).is_some() => before.to_owned(),
            (None, Some(before), _) => {
                let both = both.clone().filter(|both| Quality::of_name(both).is_some());
                both.unwrap_or_else(|| before.to_owned())
            }
            (None, None, None) => next.filter(|next| !is_unit(next)).unwrap_or(UNNAMED).to_owned(),
        };
        let unit = next.filter(|_| is_size).map_or_else(String::new, |unit| format!(" {unit}"));
        let name = (name + &unit).to_lowercase();
        let quality = Quality::of_name(&name);
        let is_percentage = text.text.ends_with('%') || next == Some("%");
        let is_measured = next.is_some_and(is_unit) && !is_size
            || is_percentage && quality.is_none() && text.assigned.is_none();
        // An address, or the hash of a version.
        let is_identity =
            name == UNNAMED && values.len() == 1 && text.text.len() > 6 && label.contains(text.text);
        // `vector width 8` and `vectorized by 8`, but not `vector sum 42`.
        let is_size_of =
            before.is_some_and(|before| is_in("width size factor length count by", &before.to_lowercase()));
        let context = both.filter(|_| is_size_of).unwrap_or_default().to_lowercase();
        let is_chosen = text.assigned.is_some() || quality.is_none() || is_size_of;
        let is_chosen = is_chosen
            && [name.as_str(), &context].into_iter().flat_map(words).any(|word| is_in(CHOSEN, word));
        let is_named = name.contains(char::is_alphabetic);
        // benchgate defines what its own names mean.
        let is_own = Metric::built_in(&name).is_some();
        if is_measured || is_identity || is_chosen || is_own || !is_named || found.len() >= MOST_NUMBERS {
            continue;
        }
        for value in values {
            let same = found
                .iter()
                .filter(|(known, _)| *known == name || known.starts_with(&format!("{name} #")))
                .count();
            // Numbers of unknown meaning are compared one by one.
            let is_further = same > 0 && quality.is_none();
            found.push((if is_further { format!("{name} #{}", same + 1) } else { name.clone() }, value));
        }
    }
    found
}

/// Returns a label without the commas in its numbers, which are decimal ones or separate thousands. All runs write them
/// alike. A comma after a decimal point separates two numbers.
fn without_commas_in_numbers(label: &str) -> String {
    let mut kept = String::with_capacity(label.len());
    let mut has_point = false;
    let letters: Vec<char> = label.chars().collect();
    for (at, letter) in letters.iter().enumerate() {
        let is_digit =
            |at: Option<usize>| at.and_then(|at| letters.get(at)).is_some_and(char::is_ascii_digit);
        let is_inside = is_digit(at.checked_sub(1)) && is_digit(at.checked_add(1));
        has_point = match letter {
            '.' => true,
            ',' => has_point && is_inside,
            digit => has_point && digit.is_ascii_digit(),
        };
        match letter {
            ',' if is_inside && has_point => kept.push(' '),
            ',' if is_inside => {}
            other => kept.push(*other),
        }
    }
    kept
}

/// Returns whether a word after a number is its unit, such as `GB/s`.
fn is_unit(word: &str) -> bool {
    time_unit(word).is_some() || word.contains('/') || is_in(LABEL_UNITS, &word.to_lowercase())
}

/// Returns the problem that a label reports as a whole or in one of its pairs (`correct=false`, `exit_code: 139`). The
/// detail is the same on both sides, because a pair can also be a mode: `exact_match=false`.
fn problem(label: &str) -> Option<Lint> {
    let stated = || stated_problem(label).map(str::to_owned);
    let in_pair = || {
        pairs(label).find_map(|(name, value)| {
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

/// Returns the names and values in a label, of `name=value` and `name: value`.
fn pairs(label: &str) -> impl Iterator<Item = (&str, &str)> {
    let separators = [' ', ',', ';', '|', '(', ')', '[', ']', '{', '}', '"', '\''];
    let texts: Vec<&str> = label.split(separators).filter(|text| !text.is_empty()).collect();
    (0..texts.len()).filter_map(move |at| match texts[at].split_once(['=', ':']) {
        Some((name, "")) if !name.is_empty() => Some((name, *texts.get(at + 1)?)),
        Some((name, value)) if !name.is_empty() => Some((name, value)),
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
