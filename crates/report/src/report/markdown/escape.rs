//! Untrusted text inside Markdown: it can't mention, link, break a table, close a comment or be HTML.

use crate::report::markup::first_lines;
use benchgate_core::model::clean;

/// Bytes that a name or a value may take; the JSON report has it whole.
const LONGEST: usize = 240;

/// Bytes of a message.
const LONGEST_MESSAGE: usize = 600;

/// Untrusted text as a code span, where GitHub looks for no mentions, links, emoji or HTML. The
/// fence is longer than any run of backticks inside.
pub fn code(text: &str) -> String {
    span(text, LONGEST)
}

/// A code span for a tool's message, which is longer.
pub(super) fn message(text: &str) -> String {
    span(text, LONGEST_MESSAGE)
}

fn span(text: &str, longest: usize) -> String {
    let flat = clipped(first_lines(&visible(text)), longest);
    if flat.is_empty() {
        return "(empty)".to_owned();
    }
    let longest = flat.split(|letter| letter != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    // A space inside keeps a backtick at either end apart from the fence; Markdown drops it again.
    let space = if flat.starts_with('`') || flat.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{flat}{space}{fence}")
}

fn clipped(mut text: String, longest: usize) -> String {
    if text.len() > longest {
        text.truncate(text.floor_char_boundary(longest));
        // A space at the end is not visible, and before the fence it is dropped.
        text.truncate(text.trim_end().len());
        text.push('…');
    }
    text
}

/// A code span inside a table. A bar ends a cell even in a code span, and `\|` is only safe if no backslash stands
/// before it, so a bar becomes the box-drawing one that looks like it.
pub fn cell(text: &str) -> String {
    code(text).replace('|', "│")
}

/// Lines run together: a line end would begin another block.
fn visible(text: &str) -> String {
    clean(&text.replace(['\n', '\r'], " "))
}

/// Text outside a code span: every character that Markdown or HTML reads as more than itself becomes
/// an entity, and what GitHub would link after rendering gets an invisible space.
pub(crate) fn text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let shown = visible(text);
    for (at, letter) in shown.char_indices() {
        let (before, after) = (&shown[..at], &shown[at + letter.len_utf8()..]);
        let linked = match letter {
            '@' | '#' => true,
            '.' => before.to_ascii_lowercase().ends_with("www"),
            ':' => after.starts_with("//"),
            '-' => before.to_ascii_lowercase().ends_with("gh"),
            _ => false,
        };
        let plain = ".:-+%,;/()?'\"=".contains(letter);
        if letter.is_ascii_punctuation() && (linked || !plain) {
            escaped.push_str(&format!("&#{};", u32::from(letter)));
        } else {
            escaped.push(letter);
        }
        if linked {
            escaped.push_str("&#8203;");
        }
    }
    escaped
}

/// A paragraph of limited length.
pub(super) fn paragraph(paragraph: &str) -> String {
    const LONGEST_PARAGRAPH: usize = 2_000;
    text(&clipped(paragraph.to_owned(), LONGEST_PARAGRAPH))
}
