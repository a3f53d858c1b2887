//! Renders a document as GitHub Markdown. Untrusted text can't mention users, create links, break a table,
//! close a comment or become HTML.

use benchgate_core::model::{Verdict, clean};

use super::{Block, Cell, Column, Part, Text, Tone, first_lines};

/// Maximum number of bytes of a name or a value; the JSON report has all of it.
const LONGEST_NAME: usize = 240;
/// Maximum number of bytes of a message.
const LONGEST_MESSAGE: usize = 600;
/// Maximum number of bytes of a sentence, because a longer one would not be read.
const LONGEST_SENTENCE: usize = 2_000;

/// Returns the icon of a verdict. The word follows it, because not all readers see colors.
pub(in crate::report) const fn icon(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "✅",
        Verdict::Improved => "🟢",
        Verdict::Regressed => "🔴",
        Verdict::Diverged => "❌",
        Verdict::Inconclusive => "🟡",
        Verdict::Missing => "⚪",
        Verdict::Error => "⛔",
    }
}

/// Renders a document in at most `max_bytes` bytes: list entries and table rows are left out, and counted,
/// until it fits.
pub(in crate::report) fn markdown(blocks: &[Block<'_>], max_bytes: usize) -> String {
    let most = longest(blocks) + 1;
    let whole = page(blocks, most);
    if whole.len() <= max_bytes {
        return whole;
    }
    // Searches for the largest number of list entries that still fits; fewer entries never take more bytes.
    let (mut fits, mut too_many) = (0, most);
    while too_many - fits > 1 {
        let middle = fits + (too_many - fits) / 2;
        if page(blocks, middle).len() <= max_bytes {
            fits = middle;
        } else {
            too_many = middle;
        }
    }
    ended(page(blocks, fits), max_bytes)
}

/// Returns the whole lines that fit, with an ellipsis if there are more.
fn ended(text: String, max_bytes: usize) -> String {
    const REST: &str = "\n…\n";
    if text.len() <= max_bytes {
        return text;
    }
    let room = text.floor_char_boundary(max_bytes.saturating_sub(REST.len()));
    let end = text[..room].rfind('\n').unwrap_or(0);
    format!("{}{REST}", &text[..end])
}

/// Returns the number of entries of the longest list or table.
fn longest(blocks: &[Block<'_>]) -> usize {
    let length = |block: &Block<'_>| match block {
        Block::List(items) => items.len(),
        Block::Table(layouts) => layouts.first().map_or(0, |table| table.rows.len()),
        Block::Section { blocks, .. } => longest(blocks),
        _ => 0,
    };
    blocks.iter().map(length).max().unwrap_or(0)
}

/// Renders a page whose lists and tables have at most `entries` entries.
fn page(blocks: &[Block<'_>], entries: usize) -> String {
    let mut page = String::new();
    blocks.iter().for_each(|block| put(block, entries, &mut page));
    page
}

fn put(block: &Block<'_>, entries: usize, page: &mut String) {
    if !page.is_empty() && !matches!(block, Block::Picture(_) | Block::Break) {
        page.push('\n');
    }
    match block {
        Block::Title(title) => page.push_str(&format!("### {}\n", line(title))),
        Block::Prose(text) => page.push_str(&format!("{}\n", line(text))),
        Block::Commands(lines) => page.push_str(&format!("```sh\n{lines}\n```\n")),
        Block::Callout(kind, text) => page.push_str(&format!("> [!{kind}]\n> {}\n", line(text))),
        Block::List(items) => {
            for item in items.iter().take(entries) {
                page.push_str(&format!("- {}\n", entry(&item.text)));
                for detail in item.details.iter().take(entries) {
                    page.push_str(&format!("  - {}\n", entry(detail)));
                }
            }
            more(items.len(), entries, page);
        }
        Block::Table(layouts) => {
            let Some(table) = layouts.first() else { return };
            let put_row = |page: &mut String, cells: &mut dyn Iterator<Item = String>| {
                page.push_str(&format!("|{}\n", cells.map(|cell| format!(" {cell} |")).collect::<String>()));
            };
            put_row(page, &mut table.columns.iter().map(|it| stacked(&it.title, Tone::Plain, it.number)));
            let rules = table.columns.iter().map(|column| if column.number { "--:|" } else { "---|" });
            page.push_str(&format!("|{}\n", rules.collect::<String>()));
            for row in table.rows.iter().take(entries) {
                let cells = row.iter().zip(&table.columns);
                let cell =
                    |(cell, column): (&Cell<'_>, &Column<'_>)| stacked(&cell.lines, cell.tone, column.number);
                put_row(page, &mut cells.map(cell));
            }
            more(table.rows.len(), entries, page);
        }
        Block::Section { title, count: None, blocks } => {
            page.push_str(&format!("**{title}**\n"));
            blocks.iter().for_each(|block| put(block, entries, page));
        }
        Block::Section { title, count: Some(count), blocks } => {
            page.push_str(&format!("<details><summary>{title} ({count})</summary>\n"));
            blocks.iter().for_each(|block| put(block, entries, page));
            page.push_str("\n</details>\n");
        }
        Block::Small(text) => page.push_str(&format!("<sub>{}</sub>\n", line(text))),
        Block::Picture(_) | Block::Break => {}
    }
}

fn more(all: usize, entries: usize, page: &mut String) {
    if all > entries {
        page.push_str(&format!("\n… and {} more, in the JSON report.\n", all - entries));
    }
}

/// Renders an entry of a list. Text after the dash must not begin another list.
fn entry(entry: &Text<'_>) -> String {
    let line = line(entry);
    let numbered = line.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let is_list =
        line.starts_with(['-', '+']) || numbered.len() < line.len() && numbered.starts_with(['.', ')']);
    if is_list { format!("&#8203;{line}") } else { line }
}

fn line(text: &Text<'_>) -> String {
    joined(text.0.iter().map(|part| escaped(part, code)))
}

/// Joins parts. Two adjacent code spans without a separator would become one fence.
fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.fold(String::new(), |line, part| {
        let between = if line.ends_with('`') && part.starts_with('`') { "&#8203;" } else { "" };
        line + between + &part
    })
}

/// Renders a part; names and values are escaped by `name`.
fn escaped(part: &Part<'_>, name: fn(&str) -> String) -> String {
    match part {
        Part::Ours(ours) => text(ours),
        Part::Strong(ours, _) => format!("**{}**", text(ours)),
        Part::Name(untrusted) => name(untrusted),
        Part::Message(message) | Part::Copied(message) => span(message, LONGEST_MESSAGE),
        Part::Icon(icon) => format!("{icon} "),
        Part::Link(label, address) => format!("[{label}]({address})"),
    }
}

/// Renders the lines of a cell, which are smaller after the first. A narrow table must not separate numbers
/// from their units.
fn stacked(lines: &[Text<'_>], tone: Tone, number: bool) -> String {
    let line = |text: &Text<'_>| {
        let parts = text.0.iter().map(|part| match part {
            Part::Ours(_) if number => escaped(part, cell).replace(' ', "\u{a0}"),
            // A bar would end a cell even in a code span.
            _ => escaped(part, cell).replace('|', "│"),
        });
        joined(parts).trim_end().to_owned()
    };
    let mut lines = lines.iter().enumerate().filter(|(_, text)| !text.is_empty());
    let mut shown = match lines.next() {
        Some((0, first)) if tone == Tone::Strong => format!("**{}**", line(first)),
        Some((0, first)) => line(first),
        Some((_, second)) => format!("<sub>{}</sub>", line(second)),
        None => return String::new(),
    };
    for (_, text) in lines {
        shown.push_str(&format!("<br><sub>{}</sub>", line(text)));
    }
    shown
}

/// Renders untrusted text as a code span, in which GitHub does not interpret mentions, links, emoji or HTML.
/// The fence is longer than any run of backticks inside.
pub fn code(text: &str) -> String {
    span(text, LONGEST_NAME)
}

/// Renders a code span for a table cell. A bar ends a cell even in a code span, and `\|` is only safe if no
/// backslash precedes it, so a bar is replaced by the box-drawing character that looks like it.
pub fn cell(text: &str) -> String {
    code(text).replace('|', "│")
}

fn span(text: &str, longest: usize) -> String {
    let flat = clipped(first_lines(&visible(text)), longest);
    if flat.is_empty() {
        return "(empty)".to_owned();
    }
    let longest = flat.split(|letter| letter != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    // The spaces separate a backtick at either end from the fence; Markdown removes them again.
    let space = if flat.starts_with('`') || flat.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{flat}{space}{fence}")
}

fn clipped(mut text: String, longest: usize) -> String {
    if text.len() > longest {
        text.truncate(text.floor_char_boundary(longest));
        // A trailing space would be invisible, and would be lost before the fence.
        text.truncate(text.trim_end().len());
        text.push('…');
    }
    text
}

/// Replaces line breaks by spaces, because a line break would begin another block.
fn visible(text: &str) -> String {
    clean(&text.replace(['\n', '\r'], " "))
}

/// Escapes text outside a code span: every character with a meaning in Markdown or HTML becomes an entity,
/// and text that GitHub would link after rendering gets an invisible space.
pub(in crate::report) fn text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let shown = clipped(visible(text), LONGEST_SENTENCE);
    for (at, letter) in shown.char_indices() {
        let (before, after) = (&shown[..at], &shown[at + letter.len_utf8()..]);
        let is_digit = |letter: char| letter.is_ascii_digit();
        let linked = match letter {
            '@' | '#' => true,
            '.' => before.to_ascii_lowercase().ends_with("www"),
            ':' => after.starts_with("//"),
            '-' => before.to_ascii_lowercase().ends_with("gh") && after.starts_with(is_digit),
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
