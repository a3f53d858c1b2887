//! Lines that fit: a word is never split, a name only after its separators.

pub(super) fn width_of(text: &str) -> usize {
    text.chars().count()
}

/// Continued lines of a finding are aligned with its code, not with its mark.
pub(super) fn hanging(line: &str) -> usize {
    if line.starts_with("!\u{a0}") { 2 } else { 0 }
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

/// Text whose lines are at most this wide, wrapped between pieces.
pub(super) fn wrapped(text: &str, width: usize) -> String {
    text.lines().flat_map(|line| wrapped_line(line, width)).collect::<Vec<_>>().join("\n")
}

fn wrapped_line(line: &str, width: usize) -> Vec<String> {
    let hang = "\u{a0}".repeat(hanging(line));
    let mut lines = Vec::new();
    let mut current = String::new();
    for piece in pieces(line) {
        if !current.trim().is_empty() && width_of(&current) + width_of(piece.trim_end()) > width {
            lines.push(std::mem::replace(&mut current, hang.clone()));
        }
        current.push_str(piece);
        // A word that is wider than the column: it has to go on somewhere.
        while width_of(current.trim_end()) > width {
            let at = current.char_indices().nth(width.max(1)).map_or(current.len(), |(at, _)| at);
            let rest = current.split_off(at);
            lines.push(std::mem::replace(&mut current, rest));
        }
    }
    lines.push(current);
    lines.iter().map(|line| line.trim_end_matches(' ').to_owned()).collect()
}

/// A paragraph whose lines are at most this wide: the first starts with `first`, the others with `rest`. A wider name
/// continues after one of its separators. A command in backticks is never divided, so that it can be copied.
pub fn paragraph(text: &str, width: usize, first: &str, rest: &str) -> String {
    let room = width.saturating_sub(width_of(first).max(width_of(rest)));
    let whole = |word: &&str| word.contains('`') && word.contains(' ');
    let words = words_and_commands(text);
    let lines = words.iter().map(|word| if whole(word) { (*word).to_owned() } else { wrapped(word, room) });
    let lines = lines.collect::<Vec<_>>();
    filled(lines.iter().flat_map(|word| word.lines()), width, first, rest)
}

/// The words of a text, where a space between two backticks ends no word.
fn words_and_commands(text: &str) -> Vec<&str> {
    // Untrusted text with longer fences or a lone backtick is wrapped like any other.
    let is_paired = text.matches('`').count().is_multiple_of(2) && !text.contains("``");
    let mut in_command = false;
    let is_end = |letter: char| {
        in_command ^= letter == '`' && is_paired;
        letter.is_whitespace() && !in_command
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
        assert_eq!(wrapped("transformer-layer/cpu/main", 18), "transformer-layer/\ncpu/main");
        assert_eq!(wrapped("transformer-layer/cpu/main", 13), "transformer-\nlayer/cpu/\nmain");
        assert_eq!(wrapped("peak-device-memory", 12), "peak-device-\nmemory");
        assert_eq!(wrapped("fs2.benchmarks.streamParJoin", 18), "fs2.benchmarks.\nstreamParJoin");
        assert_eq!(wrapped("took 13.25", 6), "took\n13.25");
        assert_eq!(wrapped("4a8ff7505283..28f6c2ec1e93", 15), "4a8ff7505283..\n28f6c2ec1e93");
        assert_eq!(wrapped("!\u{a0}single-repetition", 12), "!\u{a0}single-\n\u{a0}\u{a0}repetition");
    }

    #[test]
    fn a_line_that_fits_is_kept_and_a_wider_one_goes_on_further_right() {
        let text = "short  line\n  hint: one two three four\n";
        assert_eq!(fitted(text, 80), text);
        assert_eq!(fitted(text, 16), "short  line\n  hint: one two\n      three four\n");
    }
}
