//! Converts bytes to text: UTF-8 is checked once, the byte-order mark removed, lines are numbered.

use benchgate_core::model::{Lint, LintCode};

use super::{IngestError, line_of};

/// Returns the whole input as text without a byte-order mark.
pub(super) fn utf8<'a>(bytes: &'a [u8], label: &str) -> Result<&'a str, IngestError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    std::str::from_utf8(bytes).map_err(|error| IngestError::NotUtf8 {
        label: label.to_owned(),
        line: line_of(bytes, error.valid_up_to()),
    })
}

/// One line, without its line ending.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    /// Counted from 1.
    pub number: u64,
    pub text: &'a str,
    /// False for a last line without a newline: its end may be missing.
    pub terminated: bool,
}

/// Returns the lines of a text, which end with `\n` or `\r\n`.
pub(super) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    text.split_inclusive('\n').zip(1u64..).map(|(raw, number)| {
        let terminated = raw.ends_with('\n');
        let text = raw.strip_suffix('\n').unwrap_or(raw);
        Line { number, text: text.strip_suffix('\r').unwrap_or(text), terminated }
    })
}

/// Returns the finding that the last line may lack its end.
pub(super) fn cut_line() -> Lint {
    Lint::new(LintCode::TruncatedInput, "the last line does not end with a newline")
}

/// Shortens a word for a message.
pub(super) fn short(word: &str) -> &str {
    word.get(..40).unwrap_or(word)
}
