//! Untrusted text that is safe to show: without control sequences for a terminal or a log, and without invisible
//! characters.

/// Whether a terminal obeys a character or a reader can't see it: control characters, bidirectional marks, zero-width
/// characters and line separators.
pub fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// One line of untrusted text in which hidden characters are replaced and workflow commands do nothing.
pub fn clean(text: &str) -> String {
    let letters = text.chars().map(|letter| match letter {
        '\t' => ' ',
        letter if is_hidden(letter) => char::REPLACEMENT_CHARACTER,
        letter => letter,
    });
    without_commands(&letters.collect::<String>())
}

/// At most `most` characters of untrusted text, cleaned as by [`clean`].
pub fn excerpt(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => clean(&text[..end]) + "…",
        None => clean(text),
    }
}

/// Text that a runner does not obey: it reads the older form of a workflow command, `##[…]`, anywhere in a line.
pub fn without_commands(text: &str) -> String {
    text.replace("##[", "# #[")
}

#[cfg(test)]
mod tests {
    use super::{clean, excerpt};

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
}
