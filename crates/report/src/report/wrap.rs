//! Lines that fit: a word is never split, a name only after its separators.

/// Joins what must stay on one line.
pub(super) const JOIN: char = '\u{a0}';

pub(super) fn width_of(text: &str) -> usize {
    text.chars().count()
}

/// The parts of a line between which it may wrap: words, and inside a word the parts of a name with their
/// separators.
pub(super) fn pieces(line: &str) -> Vec<&str> {
    const SEPARATORS: [char; 7] = [' ', '/', '-', '_', '@', '#', ','];
    let mut pieces = Vec::new();
    let (mut start, mut letters) = (0, line.char_indices().peekable());
    while let Some((at, letter)) = letters.next() {
        // A dot belongs to a number where a digit follows, but for the second one of a range of commits.
        let range = line[..at].ends_with('.');
        let dot = letter == '.'
            && letters.peek().is_some_and(|(_, next)| next.is_alphabetic() || range && next.is_ascii_digit());
        if dot || SEPARATORS.contains(&letter) {
            let end = at + letter.len_utf8();
            pieces.push(&line[start..end]);
            start = end;
        }
    }
    pieces.push(&line[start..]);
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// The parts of a line between which it wraps where a piece is wider than the column.
pub(super) fn small_pieces(line: &str) -> Vec<&str> {
    pieces(line).into_iter().flat_map(humps).collect()
}

/// A wide piece as the words of its camel case and the parts of a path or a parameter.
fn humps(piece: &str) -> Vec<&str> {
    const WIDE: usize = 24;
    let mut humps = Vec::new();
    let (mut start, mut last) = (0, ' ');
    for (at, letter) in piece.char_indices().filter(|_| width_of(piece) > WIDE) {
        let is_mark = |letter| ":=[]<>(){}|".contains(letter);
        let is_between = last.is_lowercase() && letter.is_uppercase() || is_mark(last) && !is_mark(letter);
        if is_between && at > start {
            humps.push(&piece[start..at]);
            start = at;
        }
        last = letter;
    }
    humps.push(&piece[start..]);
    humps
}

/// A word as lines that are at most this wide, wrapped between pieces.
fn wrapped(line: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut current = String::new();
    for piece in small_pieces(line) {
        if !current.is_empty() && width_of(&current) + width_of(piece) > width {
            lines.push(std::mem::take(&mut current));
        }
        current.push_str(piece);
        // A word that is wider than the column: it has to go on somewhere.
        while width_of(&current) > width {
            let at = current.char_indices().nth(width.max(1)).map_or(current.len(), |(at, _)| at);
            let rest = current.split_off(at);
            lines.push(std::mem::replace(&mut current, rest));
        }
    }
    lines.push(current);
    lines
}

/// A paragraph whose lines are at most this wide: the first starts with `first`, the others with `rest`. A name that
/// is wider continues after one of its separators. A command in backticks is never divided, so that it can be copied, and
/// nothing that unbreakable spaces join.
pub fn paragraph(text: &str, width: usize, first: &str, rest: &str) -> String {
    let room = width.saturating_sub(width_of(first).max(width_of(rest)));
    let is_whole = |word: &str| word.contains(JOIN) || word.contains('`') && word.contains(' ');
    let lines: Vec<String> = (words_and_commands(text).into_iter())
        .flat_map(|word| if is_whole(word) { vec![word.to_owned()] } else { wrapped(word, room) })
        .collect();
    filled(lines.iter().map(String::as_str), width, first, rest)
}

/// The words of a text, where a space between two backticks ends no word.
fn words_and_commands(text: &str) -> Vec<&str> {
    // Untrusted text with longer fences or a lone backtick is wrapped like any other.
    let is_paired = text.matches('`').count().is_multiple_of(2) && !text.contains("``");
    let mut in_command = false;
    let is_end = |letter: char| {
        in_command ^= letter == '`' && is_paired;
        letter.is_whitespace() && letter != JOIN && !in_command
    };
    text.split(is_end).filter(|word| !word.is_empty()).collect()
}

/// Lines, of which those that are wider than this go on further to the right. A path or a command is kept in one piece,
/// so that it can be copied.
pub fn fitted(text: &str, width: usize) -> String {
    let fit = |line: &str| {
        if width_of(line) <= width {
            return line.to_owned();
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        filled(line.split_whitespace(), width, indent, &format!("{indent}    "))
    };
    text.split('\n').map(fit).collect::<Vec<_>>().join("\n")
}

fn filled<'a>(words: impl Iterator<Item = &'a str>, width: usize, first: &str, rest: &str) -> String {
    let mut lines = first.to_owned();
    let (mut column, mut empty) = (width_of(first), true);
    for word in words {
        if !empty && column + 1 + width_of(word) > width {
            lines.push('\n');
            lines.push_str(rest);
            (column, empty) = (width_of(rest), true);
        }
        if !empty {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        (column, empty) = (column + width_of(word), false);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_wrap_after_their_separators_and_never_inside_a_word() {
        let wrapped = |text, width| wrapped(text, width).join("\n");
        assert_eq!(wrapped("transformer-layer/cpu/main", 18), "transformer-layer/\ncpu/main");
        assert_eq!(wrapped("transformer-layer/cpu/main", 13), "transformer-\nlayer/cpu/\nmain");
        assert_eq!(wrapped("peak-device-memory", 12), "peak-device-\nmemory");
        assert_eq!(wrapped("fs2.benchmarks.streamParJoin", 18), "fs2.benchmarks.\nstreamParJoin");
        assert_eq!(
            wrapped("BM_streamParJoinUnboundedWithErrors", 20),
            "BM_streamParJoin\nUnboundedWithErrors"
        );
        assert_eq!(
            wrapped("std::vector<std::pair<K::V>>::insert", 20),
            "std::vector<std::\npair<K::V>>::insert"
        );
        assert_eq!(wrapped("4a8ff7505283..28f6c2ec1e93", 15), "4a8ff7505283..\n28f6c2ec1e93");
    }

    #[test]
    fn a_value_is_never_apart_from_its_unit() {
        assert_eq!(
            paragraph("an interval of 99.60\u{a0}% confidence", 20, "", ""),
            "an interval of\n99.60\u{a0}% confidence"
        );
    }

    #[test]
    fn a_line_that_fits_is_kept_and_a_wider_one_goes_on_further_right() {
        let text = "short  line\n  hint: one two three four\n";
        assert_eq!(fitted(text, 80), text);
        assert_eq!(fitted(text, 16), "short  line\n  hint: one two\n      three four\n");
    }
}
