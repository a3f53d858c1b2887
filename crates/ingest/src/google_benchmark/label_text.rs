//! The text of a label: its words, which must be equal on both sides, and its numbers, which are compared.

use benchgate_core::model::{Metric, Quality, is_hash, is_in, states_rate, words};

use super::super::build::time_unit;
use super::super::values::{is_identity, is_place, is_version_number, number};

/// Units in labels; a measurement may change its unit.
const LABEL_UNITS: &str = "kb mb gb tb kib mib gib tib flop kflop mflop gflop tflop flops kflops mflops gflops tflops \
    op kop mop gop ops kops mops gops hz khz mhz ghz w j v watts joules";

/// Size from which a dimension in a label is not that of a tile.
const LARGER_THAN_TILES: u64 = 512;

/// Returns the words of a label that are equal in all runs of one experiment: its numbers, units, versions, hashes and
/// paths are left out, but not shapes such as `8x512x512`.
pub(in super::super) fn fixed_words(label: &str) -> String {
    let is_kept = |word: &String| {
        let rest = word.strip_prefix('v').unwrap_or(word);
        let is_unit = time_unit(word).is_some() || is_in(LABEL_UNITS, word);
        let is_size = |size: &str| !size.is_empty() && size.bytes().all(|byte| byte.is_ascii_digit());
        // Two numbers may be the size of a tile or a block, which the compiler chooses, and `0x…` is an address.
        let is_large = |size: &str| size.parse().is_ok_and(|size: u64| size >= LARGER_THAN_TILES);
        // `8x128xf32`
        let is_typed = word.rsplit_once('x').is_some_and(|(sides, of)| {
            let is_type = of.starts_with(|c: char| c.is_ascii_alphabetic())
                && of.ends_with(|c: char| c.is_ascii_digit());
            is_type && sides.split('x').all(is_size)
        });
        let is_shape = is_typed
            || word.split('x').all(is_size)
                && (word.split('x').count() > 2
                    || !word.starts_with("0x") && word.contains('x') && word.split('x').all(is_large));
        is_shape || !rest.starts_with(|c: char| c.is_ascii_digit()) && !is_hash(word) && !is_unit
    };
    let mut kept: Vec<String> = Vec::new();
    let mut follows_number = false;
    for text in lasting(label) {
        // A checksum looks like the hash of a version.
        let is_checksum = text.split_once(['=', ':']).is_some_and(|(name, _)| Quality::is_checksum(name));
        for word in words(text) {
            let lower = word.to_lowercase();
            // A letter can be the class or the size of a problem, or the unit of the number before it.
            let is_letter = word.len() == 1 && word.starts_with(|c: char| c.is_ascii_alphabetic());
            let is_class =
                is_letter && !follows_number && (word.starts_with(char::is_uppercase) || lower != "x");
            if is_checksum || is_class || word.len() > 1 && is_kept(&lower) {
                kept.push(lower);
            }
            follows_number = word.starts_with(|c: char| c.is_ascii_digit());
        }
    }
    kept.join(" ")
}

/// Returns whether a text of a label is a path, a date or a revision, or states one by its name: `branch=main`.
fn tells_runs_apart(text: &str) -> bool {
    let of_name = |name: &str| is_in("branch user host hostname date commit ref", &name.to_lowercase());
    let (name, value) = text.split_once(['=', ':']).unwrap_or(("", text));
    is_place(text)
        || of_name(name)
        || is_version_number(text) && !text.contains('-')
        || !Quality::is_checksum(name) && (is_identity(value) || is_place(value))
}

/// Returns the texts of a label without those that tell runs or revisions apart, and without dates (`Sun Nov 29 2026`).
fn lasting(label: &str) -> Vec<&str> {
    const DATES: &str = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec Mon Tue Wed Thu Fri Sat Sun";
    let plain = |text: &str| text.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
    let is_name = |text: &str| is_in(DATES, &plain(text));
    let is_number = |text: &str| {
        let text = plain(text);
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b':')
    };
    let all: Vec<&str> = label.split_whitespace().collect();
    let mut kept: Vec<&str> = Vec::new();
    // A date consists of names and numbers, among which are two names, a time or a year.
    for run in all.chunk_by(|one, two| [one, two].into_iter().all(|it| is_name(it) || is_number(it))) {
        let names = run.iter().filter(|text| is_name(text)).count();
        let has_year = || run.iter().any(|text| plain(text).len() == 4 && plain(text).starts_with("20"));
        let has_time = || run.iter().any(|text| plain(text).contains(':'));
        let is_date = names > 1 || names == 1 && (has_year() || has_time());
        kept.extend(run.iter().filter(|text| !is_date && !tells_runs_apart(text)));
    }
    kept
}

/// Largest number of words and of numbers to read from a label.
const MOST_TEXTS: usize = 256;
const MOST_NUMBERS: usize = 32;

/// Units of sizes, of amounts of work and of sample rates, which are not measured.
const SIZES: &str = "b bytes kb mb gb tb kib mib gib tib flop kflop mflop gflop tflop op kop mop gop khz";

/// Words for what a compiler chooses, before a shape or a number.
const CHOSEN: &str = "tile tiles tiling block blocks workgroup wg grid warp warps spill spills unroll vec vector vectorized vectorised lanes mma algo node";

/// Number of words before and after a percentage that can say what it is.
const NEAR: usize = 4;

/// Words next to a percentage of what a machine can do at most.
const PEAKS: &str = "peak roofline sol max maximum theoretical";

/// Words that say that a result is right.
const VERDICTS: &str = "verified passed pass valid validated correct";

/// Name of a number next to no word.
pub(in super::super) const UNNAMED: &str = "label value";

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
            let text = text.trim_start_matches('#');
            if !text.is_empty() {
                texts.push(Text { text, assigned, part });
            }
        }
    }
    texts
}

/// Suffixes of sizes and counts without a space: `64k`, `2MiB`.
const SUFFIXES: [(&str, f64); 14] = [
    ("k", 1e3),
    ("kb", 1e3),
    ("ki", 1024.0),
    ("kib", 1024.0),
    ("m", 1e6),
    ("mb", 1e6),
    ("mi", 1_048_576.0),
    ("mib", 1_048_576.0),
    ("g", 1e9),
    ("gb", 1e9),
    ("gi", 1_073_741_824.0),
    ("gib", 1_073_741_824.0),
    ("b", 1.0),
    ("tb", 1e12),
];

/// Returns the number of a text that consists of it and a suffix.
fn with_suffix(text: &str) -> Option<f64> {
    let (digits, suffix) = text.split_at_checked(text.find(|c: char| c.is_ascii_alphabetic())?)?;
    let (_, scale) = SUFFIXES.iter().find(|(known, _)| suffix.eq_ignore_ascii_case(known))?;
    Some(number(digits)? * scale)
}

/// Returns the numbers in a text of words and numbers, such as `llama-7b` and `1080p`, by the text without them: `llama-#b`. A
/// word that starts with a letter, such as `fp16`, is no number, and neither are a version, a hash and a measurement.
fn inner_numbers(text: &str) -> Option<(String, Vec<f64>)> {
    /// Maximum number of digits; longer numbers are dates, hashes and identifiers.
    const LONGEST: usize = 6;
    let is_word = |c: char| c.is_alphanumeric() || c == '.';
    let (mut name, mut values) = (String::new(), Vec::new());
    for part in text.split_inclusive(|c: char| !is_word(c)) {
        let word = part.trim_end_matches(|c: char| !is_word(c));
        let rest = word.strip_prefix('v').unwrap_or(word);
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (digits, unit) = rest.split_at(end);
        let is_number = digits.starts_with(|c: char| c.is_ascii_digit()) && digits.parse::<f64>().is_ok();
        let is_plain = digits.split('.').all(|digits| digits.len() <= LONGEST)
            && !unit.contains(|c: char| c.is_ascii_digit())
            && unit != "x"
            && (!is_unit(unit) || with_suffix(rest).is_some());
        if !is_number || digits.matches('.').count() > 1 {
            name.push_str(part);
            continue;
        }
        if !is_plain {
            return None;
        }
        values.extend(digits.parse::<f64>());
        name.push_str(&part.replacen(digits, "#", 1));
    }
    let is_version = text.strip_prefix('v').unwrap_or(text).chars().all(|c| c.is_ascii_digit() || c == '.');
    (!is_version && !values.is_empty() && name.contains(char::is_alphabetic)).then_some((name, values))
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
        (None, None) => {
            let one = number(text).or_else(|| with_suffix(text));
            one.map(|one| vec![one]).or_else(|| listed(&['x', 'X', '*', '×', '^']))
        }
    }
}

/// Returns the numbers in a label by the words next to them: `accuracy 0.93`, `err=1e-6`, `12 passed`, `256 tokens`, `64x64`.
/// A word that says that the result is right counts as one. Times, rates and readings of the machine are measurements.
pub(in super::super) fn numbers(label: &str) -> Vec<(String, f64)> {
    let plain = without_separators(&lasting(label).join(" "))
        .replace("==", "=")
        .replace(" = ", "=")
        .replace(" x ", "x")
        .replace(" × ", "x");
    let texts = Texts(texts(&plain));
    let mut found: Vec<(String, f64)> = Vec::new();
    let mut starts_with_number = false;
    for (at, text) in texts.0.iter().enumerate() {
        if let Some(verdict) = texts.verdict(at) {
            found.push((verdict, 1.0));
            continue;
        }
        let Some(values) = texts.numbers(at) else {
            if let Some((name, values)) = inner_numbers(text.text).filter(|(name, _)| !is_choice(name)) {
                add(&mut found, &name.to_lowercase(), values);
            }
            continue;
        };
        let next = texts.word(at.checked_add(1), text.part);
        if texts.is_at_start(at) {
            starts_with_number = next.is_some_and(|next| next != "%" && !is_unit(next));
        }
        let name = texts.name(at, starts_with_number);
        // An address, or the hash of a version, but no round number and none of several parts.
        let is_whole = label.contains(text.text) && !text.text.ends_with("000");
        let is_identity = name == UNNAMED && values.len() == 1 && text.text.len() > 6 && is_whole;
        // A line of a source file: `parse.cc:88`.
        let ending = text.assigned.and_then(|name| name.rsplit_once('.')).map_or("", |(_, ending)| ending);
        let is_line = is_in("c cc cpp cxx h hpp cu py rs go java js ts mlir", ending);
        let is_named = name.contains(char::is_alphabetic) && !is_line;
        // benchgate defines what its own names mean, and a checksum without a decimal point is a word.
        let is_own =
            Metric::built_in(&name).is_some() || Quality::is_checksum(&name) && !text.text.contains('.');
        if is_identity || is_own || !is_named || texts.is_measured(at, &name) || texts.is_chosen(at, &name) {
            continue;
        }
        add(&mut found, &name, values);
    }
    found
}

/// Adds the values of a name. Numbers of unknown meaning are compared one by one.
fn add(found: &mut Vec<(String, f64)>, name: &str, values: Vec<f64>) {
    let is_counted = Quality::of_name(name).is_none();
    for value in values.into_iter().take(MOST_NUMBERS.saturating_sub(found.len())) {
        let is_same = |known: &str| known == name || known.starts_with(&format!("{name} #"));
        let same = found.iter().filter(|(known, _)| is_same(known)).count();
        let name = if is_counted && same > 0 { format!("{name} #{}", same + 1) } else { name.to_owned() };
        found.push((name, value));
    }
}

/// The words and numbers of a label, in order.
struct Texts<'a>(Vec<Text<'a>>);

impl<'a> Texts<'a> {
    /// Returns the numbers of a text; `None` for a word.
    fn numbers(&self, at: usize) -> Option<Vec<f64>> {
        let text = self.0.get(at)?;
        number_or_shape(text.text, text.assigned.is_some())
    }

    /// Returns a text in this part of the label if it is a word, and no version, hash or path.
    fn word(&self, at: Option<usize>, part: usize) -> Option<&'a str> {
        let found = self.0.get(at?)?;
        let is_word = found.part == part
            && found.assigned.is_none()
            && number_or_shape(found.text, false).is_none()
            && (found.text == "%" || is_unit(found.text) || !fixed_words(found.text).is_empty());
        is_word.then_some(found.text)
    }

    /// Returns the name of a verdict. Only a part of its own is one: `fp32, verified`, but not `pass manager`.
    fn verdict(&self, at: usize) -> Option<String> {
        let text = self.0.get(at)?;
        let lower = text.text.to_lowercase();
        let is_other =
            |at: Option<usize>| at.and_then(|at| self.0.get(at)).is_none_or(|it| it.part != text.part);
        let is_alone = is_other(at.checked_sub(1)) && is_other(at.checked_add(1));
        let is_verdict = is_alone && text.assigned.is_none() && is_in(VERDICTS, &lower);
        is_verdict.then(|| if Quality::of_name(&lower).is_some() { lower } else { "passed".to_owned() })
    }

    /// Returns whether no word stands before this number in its part of the label.
    fn is_at_start(&self, at: usize) -> bool {
        let before = self.0.iter().take(at).rev();
        let of_part = before.take_while(|it| self.0.get(at).is_some_and(|text| text.part == it.part));
        !of_part.into_iter().any(|it| it.assigned.is_some() || number_or_shape(it.text, false).is_none())
    }

    /// Returns the name of a number. In `0.93 accuracy 0.31 loss`, which starts with a number, each belongs to the word after
    /// it.
    fn name(&self, at: usize, starts_with_number: bool) -> String {
        let Some(text) = self.0.get(at) else { return UNNAMED.to_owned() };
        let before = self.word(at.checked_sub(1), text.part);
        let next = self.word(at.checked_add(1), text.part);
        // The number of `resnet 50 top1 0.76` does not belong to the word after it, which has its own.
        let has_own = || {
            let after =
                at.checked_add(2).filter(|after| self.0.get(*after).is_some_and(|it| it.part == text.part));
            after.is_some_and(|after| self.numbers(after).is_some())
        };
        let is_judged = |word: &&str| {
            let quality = Quality::of_name(word);
            matches!(quality, Some(Quality::Score | Quality::Failures | Quality::Work)) && !has_own()
        };
        let is_known = |name: &str| Quality::of_name(name).is_some();
        let of_next = next.filter(|next| starts_with_number && !is_unit(next));
        let name = match (text.assigned, before, of_next.or(next.filter(is_judged))) {
            (None, Some(_), Some(next)) if of_next.is_some() => next.to_owned(),
            (Some(name), ..) => name.to_owned(),
            (None, None, Some(next)) => next.to_owned(),
            // The number of `verified 12 passed` belongs to the word after it.
            (None, Some(before), Some(next)) if !is_known(before) => next.to_owned(),
            (None, Some(before), _) if is_known(before) => before.to_owned(),
            (None, Some(before), _) => {
                let both = self.two_before(at).filter(|both| is_known(both));
                both.unwrap_or_else(|| before.to_owned())
            }
            (None, None, None) => next.filter(|next| !is_unit(next)).unwrap_or(UNNAMED).to_owned(),
        };
        let size = next.filter(|unit| is_in(SIZES, &unit.to_lowercase()));
        let unit = size.map_or_else(String::new, |unit| format!(" {unit}"));
        (name + &unit).to_lowercase()
    }

    /// Returns the two words before a number.
    fn two_before(&self, at: usize) -> Option<String> {
        let part = self.0.get(at)?.part;
        let before = self.word(at.checked_sub(1), part)?;
        Some(format!("{} {before}", self.word(Some(at.checked_sub(2)?), part)?))
    }

    /// Returns whether a number is a measurement: a time, a rate, or a reading of the machine in percent.
    fn is_measured(&self, at: usize, name: &str) -> bool {
        let Some(text) = self.0.get(at) else { return false };
        let next = self.word(at.checked_add(1), text.part);
        let has_unit = next.is_some_and(|unit| is_unit(unit) && !is_in(SIZES, &unit.to_lowercase()));
        let is_percentage = text.text.ends_with('%') || next == Some("%");
        let near = self.0.iter().take(at + 1 + NEAR).skip(at.saturating_sub(NEAR));
        let of_part = near.filter(|it| it.part == text.part).map(|it| it.text.to_lowercase());
        let is_reading = || {
            Quality::is_measurement(name)
                || of_part.into_iter().any(|word| Quality::is_measurement(&word) || is_in(PEAKS, &word))
        };
        // The size of what was built, and rates, which are measured.
        let is_built = || words(name).iter().any(|word| is_in("binary code peak", word));
        let is_size =
            next.is_some_and(|unit| is_in(SIZES, &unit.to_lowercase())) || with_suffix(text.text).is_some();
        has_unit
            || states_rate(name)
            || is_size && is_built()
            || is_percentage && Quality::of_name(name).is_none() && is_reading()
    }

    /// Returns whether a number is one that a compiler chooses.
    fn is_chosen(&self, at: usize, name: &str) -> bool {
        let Some(text) = self.0.get(at) else { return false };
        let before = self.word(at.checked_sub(1), text.part).unwrap_or_default().to_lowercase();
        // `vector width 8` and `vectorized by 8`, but not `vector sum 42`.
        let is_size_of = is_in("width size factor length count by", &before);
        let context = self.two_before(at).filter(|_| is_size_of).unwrap_or_default().to_lowercase();
        let may_be = text.assigned.is_some() || Quality::of_name(name).is_none() || is_size_of;
        may_be && [name, &context].into_iter().any(is_choice)
    }
}

/// Returns whether a name states something that a compiler chooses.
fn is_choice(name: &str) -> bool {
    words(name).into_iter().any(|word| is_in(CHOSEN, &word.to_lowercase()))
}

/// Returns a label without the commas and low lines in its numbers, which are decimal commas or separate thousands. All runs
/// write them alike. A comma after a decimal point separates two numbers.
fn without_separators(label: &str) -> String {
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
            ',' | '_' if is_inside => {}
            other => kept.push(*other),
        }
    }
    kept
}

/// Returns whether a word after a number is its unit, such as `GB/s`.
fn is_unit(word: &str) -> bool {
    time_unit(word).is_some() || word.contains('/') || is_in(LABEL_UNITS, &word.to_lowercase())
}

/// Returns the names and values in a label, of `name=value` and `name: value`.
pub(super) fn pairs(label: &str) -> impl Iterator<Item = (&str, &str)> {
    let separators = [' ', ',', ';', '|', '(', ')', '[', ']', '{', '}', '"', '\''];
    let texts: Vec<&str> = label.split(separators).filter(|text| !text.is_empty()).collect();
    (0..texts.len()).filter_map(move |at| match texts[at].split_once(['=', ':']) {
        Some((name, "")) if !name.is_empty() => Some((name, *texts.get(at + 1)?)),
        Some((name, value)) if !name.is_empty() => Some((name, value)),
        _ => None,
    })
}
