//! Text inside HTML, SVG, XML and JSON, and the beginning of a long one.

use benchgate_core::model::is_hidden;

/// Text for an element or a quoted attribute of HTML, SVG or XML: never markup, and without characters that a reader
/// can't see or XML 1.0 can't hold.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push_str("&#9;"),
            // GitHub Actions obeys `##[` in a log.
            '#' => escaped.push_str("&#35;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            letter if is_hidden(letter) => escaped.push('\u{fffd}'),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// JSON that a log of GitHub Actions does not obey. `##[` can only be inside a string, where an escape means the same.
pub(super) fn json_for_logs(json: &str) -> String {
    json.replace("##[", "#\\u0023[")
}

/// The beginning of a message that may be a whole log.
pub(super) fn first_lines(text: &str) -> String {
    const LETTERS: usize = 300;
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if flat.chars().count() <= LETTERS {
        flat
    } else {
        format!("{} …", flat.chars().take(LETTERS).collect::<String>())
    }
}
