//! Text functions: cleaning untrusted text for display (control sequences for a terminal or a log, invisible
//! characters), quoting for a shell, counts with their nouns, dates, and digests in hexadecimal.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::Write;

use sha2::{Digest, Sha256};

/// Returns whether a character controls a terminal or is invisible: control characters, bidirectional marks,
/// zero-width characters and line separators.
pub fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Returns one line of untrusted text in which hidden characters are replaced and workflow commands are
/// defused.
pub fn clean(text: &str) -> String {
    let letters = text.chars().map(|letter| match letter {
        '\t' => ' ',
        letter if is_hidden(letter) => char::REPLACEMENT_CHARACTER,
        letter => letter,
    });
    without_commands(&letters.collect::<String>())
}

/// Removes the control sequences (colors and cursor movements) from a line of a terminal's log.
pub fn without_colors(line: &str) -> Cow<'_, str> {
    let mut parts = line.split("\u{1b}[");
    let mut plain = Cow::Borrowed(parts.next().unwrap_or_default());
    for part in parts {
        plain += part.split_once(|letter: char| letter.is_ascii_alphabetic()).unwrap_or_default().1;
    }
    plain
}

/// Returns at most `most` characters of untrusted text, cleaned like [`clean`] does.
pub fn excerpt(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => clean(&text[..end]) + "…",
        None => clean(text),
    }
}

/// Returns whether a word is a hash, and no word or number: at least seven hexadecimal digits, after the `g` of `git describe`.
pub fn is_hash(word: &str) -> bool {
    let digits = word.strip_prefix('g').unwrap_or(word);
    (7..=64).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        && digits.bytes().any(|byte| byte.is_ascii_digit())
        && digits.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// Quotes one word of a command for a shell.
pub fn shell_word(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref().display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./:,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Returns text without workflow commands. A GitHub runner accepts their older form, `##[…]`, anywhere in a
/// line.
pub fn without_commands(text: &str) -> String {
    text.replace("##[", "# #[")
}

/// Formats a fraction in percent. Outliers can make it arbitrarily large, so its digits mean nothing beyond a
/// factor of ten.
pub fn percents(fraction: f64) -> String {
    if fraction > 10.0 { "more than 1000 %".to_owned() } else { format!("{:.0} %", fraction * 100.0) }
}

/// Formats a value with this many significant digits, never in scientific notation between a thousandth and a
/// million.
pub fn significant(value: f64, digits: i32) -> String {
    if !value.is_finite() {
        return if value.is_nan() {
            "NaN"
        } else if value > 0.0 {
            "∞"
        } else {
            "−∞"
        }
        .to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let magnitude = rounded(value, digits).abs().log10().floor();
    if !(-4.0..=6.0).contains(&magnitude) {
        return format!("{value:.*e}", usize::try_from(digits - 1).unwrap_or(0));
    }
    let decimals = (digits - 1 - magnitude as i32).max(0);
    format!("{value:.*}", usize::try_from(decimals).unwrap_or(0))
}

/// Rounds a value to this many significant digits.
pub fn rounded(value: f64, digits: i32) -> f64 {
    let text = format!("{value:.*e}", usize::try_from(digits - 1).unwrap_or(0));
    text.parse().unwrap_or(value)
}

/// Formats `1 benchmark`, `34 benchmarks`.
pub fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {}", plural(noun)) }
}

fn plural(noun: &str) -> String {
    const HISSING: [&str; 4] = ["s", "x", "ch", "sh"];
    let after_a_vowel = |stem: &str| stem.ends_with(['a', 'e', 'i', 'o', 'u']);
    match noun {
        _ if HISSING.iter().any(|end| noun.ends_with(end)) => format!("{noun}es"),
        _ => match (noun.strip_suffix("lf"), noun.strip_suffix('y')) {
            (Some(stem), _) => format!("{stem}lves"),
            (_, Some(stem)) if !after_a_vowel(stem) => format!("{stem}ies"),
            _ => format!("{noun}s"),
        },
    }
}

/// Returns whether this is a calendar day as `YYYY-MM-DD` and nothing else, so that comparing the texts
/// compares the days.
pub fn is_date(text: &str) -> bool {
    let day = text.parse::<jiff::civil::Date>();
    text.len() == 10 && day.is_ok_and(|day| day.to_string() == text)
}

/// Formats bytes as lowercase hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string can't fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Returns one digest over several texts. Each is preceded by its length, so that different lists never have the
/// same digest.
pub fn digest_of(parts: impl IntoIterator<Item = impl AsRef<[u8]>>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        let part = part.as_ref();
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hex(&hash.finalize())
}

/// Returns the beginning of a commit's hash, as long as git abbreviates hashes in a large repository.
pub fn short_commit(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

/// Returns whether a text consists of lowercase hexadecimal digits.
pub fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns whether a text is a SHA-256 as [`hex`] writes it.
pub fn is_sha256(text: &str) -> bool {
    text.len() == 64 && is_hex(text)
}

/// Returns whether a text is the hash of a commit, SHA-1 or SHA-256, or an abbreviation of one.
pub fn is_commit(text: &str) -> bool {
    (7..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_obeyed_or_hidden_remains() {
        assert_eq!(clean("a\u{1b}[2Jb\r\nc\u{202e}\t"), "a\u{fffd}[2Jb\u{fffd}\u{fffd}c\u{fffd} ");
        assert_eq!(clean("##[error] ###[x] \u{200b}"), "# #[error] ## #[x] \u{fffd}");
    }

    #[test]
    fn an_excerpt_counts_characters_and_marks_what_is_left_out() {
        assert_eq!(excerpt("\u{1b}ü", 2), "\u{fffd}ü");
        assert_eq!(excerpt("\u{1b}üb", 2), "\u{fffd}ü…");
    }

    #[test]
    fn one_is_singular_and_everything_else_is_plural() {
        assert_eq!(counted(1, "shelf"), "1 shelf");
        let several = [(0, "shelf"), (2, "process"), (1204, "benchmark"), (3, "entry"), (4, "day")];
        assert_eq!(
            several.map(|(count, noun)| counted(count, noun)),
            ["0 shelves", "2 processes", "1204 benchmarks", "3 entries", "4 days"]
        );
    }

    #[test]
    fn only_days_that_sort_as_text_are_days() {
        for day in ["2026-11-23", "2024-02-29"] {
            assert!(is_date(day), "{day}");
        }
        for other in ["", "2026-02-30", "20261123", "2026-1-23", "2026-11-23T00:00", "-002026-11-23", "soon"]
        {
            assert!(!is_date(other), "{other}");
        }
    }
}
