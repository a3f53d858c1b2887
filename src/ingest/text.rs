//! Bytes to text: UTF-8 checked once, the byte-order mark taken off, lines numbered.

use super::IngestError;
use super::error::line_of;

/// The whole input as text without a byte-order mark.
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
    /// False for a last line without its newline: what stands at its end may be cut.
    pub terminated: bool,
}

/// The lines of a text, `\n` or `\r\n`.
pub(super) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    text.split_inclusive('\n').zip(1u64..).map(|(raw, number)| {
        let terminated = raw.ends_with('\n');
        let text = raw.strip_suffix('\n').unwrap_or(raw);
        Line { number, text: text.strip_suffix('\r').unwrap_or(text), terminated }
    })
}
