//! Wraps lines: words are never split, and names only after their separators.

/// Space between words that must stay on one line.
pub(super) const JOIN: char = '\u{a0}';

pub(super) fn width_of(text: &str) -> usize {
    text.chars().count()
}

/// Splits a line where it may wrap: between words, and after the separators inside a name.
pub(super) fn pieces(line: &str) -> Vec<&str> {
    const SEPARATORS: [char; 7] = [' ', '/', '-', '_', '@', '#', ','];
    let mut pieces = Vec::new();
    let (mut start, mut letters) = (0, line.char_indices().peekable());
    while let Some((at, letter)) = letters.next() {
        // A dot before a digit belongs to a number, except for the second dot in a range of commits.
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

/// Splits a line into smaller pieces, for columns that are narrower than one of the usual pieces.
pub(super) fn small_pieces(line: &str) -> Vec<&str> {
    pieces(line).into_iter().flat_map(humps).collect()
}

/// Splits a wide piece into the words of its camel case and the parts of a path or a parameter.
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

/// Returns a word as lines of at most this width, wrapped between pieces.
fn wrapped(line: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut current = String::new();
    for piece in small_pieces(line) {
        if !current.is_empty() && width_of(&current) + width_of(piece) > width {
            lines.push(std::mem::take(&mut current));
        }
        current.push_str(piece);
        // The word is wider than the column and has to be split somewhere.
        while width_of(&current) > width {
            let at = current.char_indices().nth(width.max(1)).map_or(current.len(), |(at, _)| at);
            let rest = current.split_off(at);
            lines.push(std::mem::replace(&mut current, rest));
        }
    }
    lines.push(current);
    lines
}

/// Wraps a paragraph to lines of at most this width: the first starts with `first`, the others with `rest`. A
/// wider name continues after one of its separators. Commands in backticks and texts with unbreakable spaces
/// are never split; a command can thus be copied.
pub fn paragraph(text: &str, width: usize, first: &str, rest: &str) -> String {
    let room = width.saturating_sub(width_of(first).max(width_of(rest)));
    let is_whole = |word: &str| word.contains(JOIN) || word.contains('`') && word.contains(' ');
    let lines: Vec<String> = (words_and_commands(text).into_iter())
        .flat_map(|word| if is_whole(word) { vec![word.to_owned()] } else { wrapped(word, room) })
        .collect();
    filled(lines.iter().map(String::as_str), width, first, rest)
}

/// Returns the words of a text; a space between two backticks does not end a word.
fn words_and_commands(text: &str) -> Vec<&str> {
    // Untrusted text with longer fences or a single backtick is wrapped like any other text.
    let is_paired = text.matches('`').count().is_multiple_of(2) && !text.contains("``");
    let mut in_command = false;
    let is_end = |letter: char| {
        in_command ^= letter == '`' && is_paired;
        letter.is_whitespace() && letter != JOIN && !in_command
    };
    text.split(is_end).filter(|word| !word.is_empty()).collect()
}

/// Wraps the lines that are too wide and indents their continuation. A path or a command is kept in one
/// piece, so that it can be copied.
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
