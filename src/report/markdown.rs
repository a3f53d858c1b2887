//! A comparison as GitHub Markdown: verdict first, what changed, then the rest collapsed.

use crate::model::{Consequence, Verdict};

use super::terminal::{first_lines, hides};
use super::{RowView, View};

/// How to lay it out.
#[derive(Debug, Clone, Copy, Default)]
pub struct MarkdownOptions {
    /// Bytes the whole may have (a comment 60,000, a job summary 900 KiB). Rows are left out, and
    /// counted, until it fits.
    pub max_bytes: Option<usize>,
}

/// Renders a view as Markdown.
pub fn markdown(view: &View<'_>, options: MarkdownOptions) -> String {
    let most = view.comparison.rows.len().max(view.lints.len());
    let whole = page(view, most);
    let Some(max_bytes) = options.max_bytes.filter(|max| whole.len() > *max) else { return whole };
    // The largest number of rows a section that still fits; fewer rows are never more bytes.
    let (mut fits, mut too_many) = (0, most);
    while too_many - fits > 1 {
        let middle = fits + (too_many - fits) / 2;
        if page(view, middle).len() <= max_bytes {
            fits = middle;
        } else {
            too_many = middle;
        }
    }
    page(view, fits)
}

fn page(view: &View<'_>, rows: usize) -> String {
    let mut page = Page { text: String::new(), rows };
    let (word, rest) = view.headline.split_once(':').unwrap_or((&view.headline, ""));
    page.line(&format!("**{word}**:{rest}"));
    page.table("What changed", &view.changed);
    for geomean in view.geomeans(false) {
        let target = geomean.target.as_ref().map(|name| format!(" on {}", code(name))).unwrap_or_default();
        let (metric, change) = (code(&geomean.metric.name), text(&super::view::geomean(geomean)));
        page.line(&format!("\nGeometric mean of {} {metric} rows{target}: {change}", geomean.rows));
    }
    page.list("Wrong outputs", &view.diverged);
    page.list("Failed or missing", &view.failed);
    page.table("Still open", &view.open);
    page.list("Why it is still open", &view.open);
    page.waived(view);
    page.list("Not compared", &view.told);
    page.folded("Unchanged", view.unchanged.len(), |page| page.table_body(&view.unchanged));
    page.folded("Reported, not judged", view.reported.len(), |page| page.table_body(&view.reported));
    page.findings(view);
    page.facts(view);
    page.notes(view);
    page.reproduce(view);
    page.text
}

/// A page about a comparison that could not be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// One sentence without anybody's words.
    pub headline: String,
    pub text: String,
}

/// Renders why there is no comparison. The message may quote anything.
pub fn failure(verdict: Verdict, message: &str) -> Failure {
    let headline = match verdict {
        Verdict::Missing => "Missing: there is nothing to compare with yet.",
        _ => "Error: there is no verdict.",
    };
    let (word, rest) = headline.split_once(':').unwrap_or((headline, ""));
    let text = format!("**{word}**:{rest}\n\n{}\n", code(message));
    Failure { headline: headline.to_owned(), text }
}

struct Page {
    text: String,
    /// Rows a section may show.
    rows: usize,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn more(&mut self, all: usize) {
        if all > self.rows {
            self.line(&format!("\n… and {} more, in the JSON report.", all - self.rows));
        }
    }

    fn table(&mut self, title: &str, rows: &[RowView<'_>]) {
        if !rows.is_empty() {
            self.line(&format!("\n### {title}\n"));
            self.table_body(rows);
        }
    }

    fn table_body(&mut self, rows: &[RowView<'_>]) {
        self.line("| benchmark | base → head | CV | effect | interval | n | floor | verdict |");
        self.line("|---|--:|--:|--:|--:|--:|--:|---|");
        for row in rows.iter().take(self.rows) {
            let (processes, method) = (row.processes(), row.method());
            let separator = if processes.is_empty() || method.is_empty() { "" } else { ", " };
            let n = format!("{processes}{separator}{method}");
            let waived = if row.waived() { ", waived" } else { "" };
            let findings: String = row.findings().into_iter().map(|code| format!(" `{code}`")).collect();
            self.line(&format!(
                "| {} | {} | {} | {} | {} | {} | {} | {}{waived}: {}{findings} |",
                subject(row),
                text(&row.mean()),
                text(&row.cv()),
                text(&row.effect().unwrap_or_default()),
                text(&row.interval().unwrap_or_default()),
                text(&n),
                text(&row.floor()),
                row.row.verdict,
                text(&row.words().short),
            ));
        }
        self.more(rows.len());
    }

    fn list(&mut self, title: &str, rows: &[RowView<'_>]) {
        if rows.is_empty() {
            return;
        }
        self.line(&format!("\n### {title}\n"));
        for row in rows.iter().take(self.rows) {
            let words = row.words();
            let detail = words.detail.map(|detail| format!(": {}", code(&detail))).unwrap_or_default();
            let line = format!("- {} ({}): {}{detail}", subject(row), row.row.verdict, text(&words.sentence));
            self.line(&line);
        }
        self.more(rows.len());
    }

    fn waived(&mut self, view: &View<'_>) {
        let sections =
            [&view.changed, &view.open, &view.diverged, &view.failed, &view.unchanged, &view.reported];
        let waived: Vec<&RowView<'_>> =
            sections.into_iter().flatten().filter(|row| row.row.waiver.is_some()).collect();
        if waived.is_empty() {
            return;
        }
        self.line("\n### Waivers\n");
        for row in waived.iter().take(self.rows) {
            if let Some(waiver) = &row.row.waiver {
                let state = if waiver.expired { "expired on" } else { "in force until" };
                let line = format!(
                    "- {}: {state} {}, {}: {}",
                    subject(row),
                    text(&waiver.expires),
                    code(&waiver.owner),
                    code(&waiver.reason)
                );
                self.line(&line);
            }
        }
        self.more(waived.len());
    }

    fn folded(&mut self, title: &str, count: usize, body: impl FnOnce(&mut Self)) {
        if count == 0 {
            return;
        }
        self.line(&format!("\n<details><summary>{title} ({count})</summary>\n"));
        body(self);
        self.line("\n</details>");
    }

    fn findings(&mut self, view: &View<'_>) {
        self.folded("Findings", view.lints.len(), |page| {
            for group in view.lints.iter().take(page.rows) {
                let consequence = match group.code.consequence() {
                    Consequence::Note => "note",
                    Consequence::Inconclusive => "no verdict",
                    Consequence::Error => "error",
                };
                page.line(&format!(
                    "- `{}` ({consequence}): {} {}",
                    group.code,
                    text(group.code.description()),
                    text(group.code.fix())
                ));
                let cases = page.rows.min(3);
                for (benchmark, detail) in group.found.iter().take(cases) {
                    let place =
                        benchmark.as_ref().map(|name| format!("{}: ", code(name))).unwrap_or_default();
                    page.line(&format!("  - {place}{}", code(detail)));
                }
                if group.found.len() > cases {
                    page.line(&format!("  - … and {} more", group.found.len() - cases));
                }
            }
        });
    }

    fn facts(&mut self, view: &View<'_>) {
        self.folded("Machine and tools", view.facts.len(), |page| {
            page.line("| | base | head |");
            page.line("|---|---|---|");
            for fact in &view.facts {
                let side =
                    |value: &Option<String>| value.as_ref().map(|value| cell(value)).unwrap_or_default();
                page.line(&format!("| {} | {} | {} |", fact.name, side(&fact.base), side(&fact.head)));
            }
        });
    }

    fn notes(&mut self, view: &View<'_>) {
        let notes: Vec<&String> = view.legend.iter().chain(&view.comparison.notes).collect();
        self.folded("Notes", notes.len(), |page| {
            for note in notes {
                // Nothing may follow the dash that would begin a list of its own.
                let guard = if note.starts_with(char::is_alphabetic) { "" } else { "&#8203;" };
                page.line(&format!("- {guard}{}", text(note)));
            }
        });
    }

    fn reproduce(&mut self, view: &View<'_>) {
        if let Some(command) = &view.reproduce {
            self.line(&format!("\nTo repeat this: {}", code(command)));
        }
    }
}

fn subject(row: &RowView<'_>) -> String {
    match row.metric {
        Some(metric) => format!("{} {}", cell(row.name), cell(metric)),
        None => cell(row.name),
    }
}

/// A stranger's text as a code span, where GitHub looks for no mentions, links, emoji or HTML. The
/// fence is longer than any run of backticks inside.
pub(super) fn code(text: &str) -> String {
    let flat = first_lines(&visible(text));
    if flat.is_empty() {
        return "(empty)".to_owned();
    }
    let longest = flat.split(|letter| letter != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    // A space inside keeps a backtick at either end apart from the fence; Markdown drops it again.
    let space = if flat.starts_with('`') || flat.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{flat}{space}{fence}")
}

/// The same inside a table. A bar ends a cell even in a code span, and `\|` is only safe where no
/// backslash stands before it, so a bar becomes the box-drawing one that looks like it.
pub(super) fn cell(text: &str) -> String {
    code(text).replace('|', "│")
}

fn visible(text: &str) -> String {
    let letters = text.chars().map(|letter| match letter {
        '\n' | '\r' | '\t' => ' ',
        letter if letter.is_control() || hides(letter) => '\u{fffd}',
        letter => letter,
    });
    // A runner that prints this to its log obeys the older command form anywhere in a line.
    letters.collect::<String>().replace("##[", "# #[")
}

/// Text outside a code span: every character that Markdown or HTML reads as more than itself becomes
/// an entity, and what GitHub would link after rendering gets an invisible space.
pub(super) fn text(text: &str) -> String {
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
