//! The content of a report without its form: titles, sentences, lists, tables, sections and charts. Three
//! renderers give it a form; only they escape, shorten, wrap and arrange text.

mod html;
mod markdown;
mod terminal;

use std::borrow::Cow;

use benchgate_core::model::{Verdict, is_hidden};

pub(super) use html::page as html_page;
pub use markdown::{cell, code};
pub(super) use markdown::{icon, markdown};
pub(super) use terminal::terminal;
pub use terminal::{TerminalOptions, harmless};

#[cfg(test)]
pub(super) use markdown::text as markdown_text;

/// A part of a text. Every renderer escapes all parts; untrusted ones are also marked if the form allows it.
#[derive(Debug, Clone)]
pub(super) enum Part<'a> {
    /// A sentence by benchgate. It may quote a unit or a metric.
    Ours(Cow<'a, str>),
    /// A sentence by benchgate in bold, in this color if the form has colors.
    Strong(Cow<'a, str>, Tone),
    /// An untrusted name or value.
    Name(Cow<'a, str>),
    /// A tool's message: untrusted, and possibly a whole log, of which the beginning is shown.
    Message(Cow<'a, str>),
    /// Untrusted text that readers copy, so no line break is inserted into it.
    Copied(Cow<'a, str>),
    /// An icon for forms that can show it; the words next to it say the same.
    Icon(&'static str),
    /// A link with an address that benchgate chose.
    Link(&'static str, Cow<'a, str>),
}

#[derive(Debug, Clone, Default)]
pub(super) struct Text<'a>(Vec<Part<'a>>);

impl<'a> Text<'a> {
    pub(super) fn named(name: impl Into<Cow<'a, str>>) -> Self {
        Self::default().name(name)
    }

    pub(super) fn message_of(message: impl Into<Cow<'a, str>>) -> Self {
        Self::default().message(message)
    }

    pub(super) fn say(self, text: impl Into<Cow<'a, str>>) -> Self {
        self.with(Part::Ours(text.into()))
    }

    pub(super) fn name(self, name: impl Into<Cow<'a, str>>) -> Self {
        self.with(Part::Name(name.into()))
    }

    pub(super) fn message(self, message: impl Into<Cow<'a, str>>) -> Self {
        self.with(Part::Message(message.into()))
    }

    /// Appends `: ` and an untrusted message, if there is one.
    pub(super) fn detail(self, detail: Option<impl Into<Cow<'a, str>>>) -> Self {
        match detail {
            Some(detail) => self.say(": ").message(detail),
            None => self,
        }
    }

    pub(super) fn with(mut self, part: Part<'a>) -> Self {
        self.0.push(part);
        self
    }

    pub(super) fn then(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|part| matches!(part, Part::Ours(text) if text.is_empty()))
    }

    pub(super) fn joined(texts: impl IntoIterator<Item = Self>, separator: &'static str) -> Self {
        let mut joined = Self::default();
        for text in texts {
            if !joined.0.is_empty() {
                joined = joined.say(separator);
            }
            joined = joined.then(text);
        }
        joined
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Self(vec![Part::Ours(text.into())])
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self(vec![Part::Ours(text.into())])
    }
}

/// The appearance of a text if there are colors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Tone {
    #[default]
    Plain,
    Strong,
    Good,
    Doubt,
    Bad,
}

impl Tone {
    /// Returns the tone for a verdict; unchanged rows have no color.
    pub(super) const fn of_verdict(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Pass => Self::Plain,
            Verdict::Improved => Self::Good,
            Verdict::Inconclusive | Verdict::Missing => Self::Doubt,
            Verdict::Regressed | Verdict::Diverged | Verdict::Error => Self::Bad,
        }
    }
}

/// A part of a page.
#[derive(Debug, Clone)]
pub(super) enum Block<'a> {
    Title(Text<'a>),
    Prose(Text<'a>),
    /// Shell commands by benchgate, to be copied as they are.
    Commands(&'a str),
    /// Something that a reader must know first, with GitHub's keyword for its kind.
    Callout(&'static str, Text<'a>),
    List(Vec<Item<'a>>),
    /// One table in several layouts: a terminal uses the first that fits.
    Table(Vec<Table<'a>>),
    /// Blocks below a title; a section with a count is folded if the form can fold.
    Section {
        title: &'static str,
        count: Option<usize>,
        blocks: Vec<Block<'a>>,
    },
    /// One SVG for light pages and one for dark pages.
    Picture([String; 2]),
    /// Text at the end of a page.
    Small(Text<'a>),
    /// The end of a section, for forms that don't show it otherwise.
    Break,
}

impl<'a> Block<'a> {
    pub(super) fn list(items: impl IntoIterator<Item = Text<'a>>) -> Self {
        Self::List(items.into_iter().map(Item::from).collect())
    }

    pub(super) fn section(title: &'static str, items: Vec<Item<'a>>) -> Self {
        Self::Section { title, count: None, blocks: vec![Self::List(items)] }
    }

    pub(super) fn folded(title: &'static str, items: Vec<Item<'a>>) -> Self {
        Self::counted(title, items.len(), items)
    }

    /// Creates a folded section whose count differs from its number of entries.
    pub(super) fn counted(title: &'static str, count: usize, items: Vec<Item<'a>>) -> Self {
        Self::Section { title, count: Some(count), blocks: vec![Self::List(items)] }
    }
}

/// An entry of a list, and the text below it.
#[derive(Debug, Clone)]
pub(super) struct Item<'a> {
    pub(super) text: Text<'a>,
    pub(super) details: Vec<Text<'a>>,
}

impl<'a> From<Text<'a>> for Item<'a> {
    fn from(text: Text<'a>) -> Self {
        Self { text, details: Vec::new() }
    }
}

/// The positions of horizontal lines in a terminal's table. Other forms ignore them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Rules {
    /// A line below the header.
    #[default]
    Header,
    /// A line at the end as well, for tables that are longer than a screen.
    Ends,
    /// A line below each row, for rows that have several lines.
    Rows,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Table<'a> {
    pub(super) columns: Vec<Column<'a>>,
    pub(super) rows: Vec<Vec<Cell<'a>>>,
    pub(super) rules: Rules,
    /// True if a terminal uses this layout only if every row fits on one line.
    pub(super) one_line: bool,
}

/// A column. `number` aligns it to the right, and `whole` keeps each of its lines in one piece.
#[derive(Debug, Clone)]
pub(super) struct Column<'a> {
    pub(super) title: Vec<Text<'a>>,
    pub(super) number: bool,
    pub(super) whole: bool,
}

impl<'a> Column<'a> {
    pub(super) fn text(title: impl Into<Text<'a>>) -> Self {
        Self { title: vec![title.into()], number: false, whole: false }
    }

    pub(super) fn number(title: impl Into<Text<'a>>) -> Self {
        Self { title: vec![title.into()], number: true, whole: true }
    }
}

/// A cell: its first line, and smaller lines below it.
#[derive(Debug, Clone, Default)]
pub(super) struct Cell<'a> {
    pub(super) lines: Vec<Text<'a>>,
    pub(super) tone: Tone,
}

impl<'a, T: Into<Text<'a>>> From<T> for Cell<'a> {
    fn from(text: T) -> Self {
        Self { lines: vec![text.into()], tone: Tone::Plain }
    }
}

impl<'a> Table<'a> {
    /// Creates a table with columns of text, followed by columns of numbers.
    pub(super) fn new(texts: &[&'a str], numbers: &[&'a str], rules: Rules) -> Self {
        let texts = texts.iter().map(|title| Column::text(*title));
        let numbers = numbers.iter().map(|title| Column::number(*title));
        Self { columns: texts.chain(numbers).collect(), rules, ..Self::default() }
    }

    /// Returns this table without the columns, and the lines of columns, that are empty in every row.
    pub(super) fn without_empty_columns(mut self) -> Self {
        if self.rows.is_empty() {
            return self;
        }
        let has_line = |column: usize, line: usize, is_wanted: fn(&Text<'_>) -> bool| {
            let mut lines = self.rows.iter().filter_map(|row| row.get(column)?.lines.get(line));
            lines.any(is_wanted)
        };
        let is_filled = |column, line| has_line(column, line, |text| !text.is_empty());
        // A title may have more lines than the cells.
        let is_kept = |column, line| is_filled(column, line) || !has_line(column, line, |_| true);
        let kept: Vec<Vec<bool>> = (self.columns.iter().enumerate())
            .map(|(at, column)| {
                let lines = 0..column.title.len();
                if !lines.clone().any(|line| is_filled(at, line)) {
                    return vec![false; column.title.len()];
                }
                lines.map(|line| is_kept(at, line)).collect()
            })
            .collect();
        fn retain<T>(list: &mut Vec<T>, kept: impl IntoIterator<Item = bool>) {
            let mut kept = kept.into_iter();
            list.retain(|_| kept.next().unwrap_or(true));
        }
        let columns = || kept.iter().map(|lines| lines.contains(&true));
        for (column, lines) in self.columns.iter_mut().zip(&kept) {
            retain(&mut column.title, lines.iter().copied());
        }
        retain(&mut self.columns, columns());
        for row in &mut self.rows {
            for (cell, lines) in row.iter_mut().zip(&kept) {
                retain(&mut cell.lines, lines.iter().copied());
            }
            retain(row, columns());
        }
        self
    }
}

/// Escapes text for an element or a quoted attribute in HTML, SVG or XML, without characters that are
/// invisible or not allowed in XML 1.0.
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
            // GitHub Actions would execute `##[` in a log.
            '#' => escaped.push_str("&#35;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            letter if is_hidden(letter) => escaped.push('\u{fffd}'),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// Returns JSON that is safe in a log of GitHub Actions, which would execute `##[`. In JSON, `##[` can only
/// be inside a string, where an escape has the same meaning.
pub(super) fn json_for_logs(json: &str) -> String {
    json.replace("##[", "#\\u0023[")
}

/// Renders JSON for programs, which may go to a log.
pub(super) fn json(value: &impl serde::Serialize) -> String {
    // The values have only strings and numbers, which JSON can always represent.
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    json_for_logs(&(text + "\n"))
}

/// Leaves out those of the keys that have no value.
pub(super) fn without_null(mut json: serde_json::Value, keys: &[&str]) -> serde_json::Value {
    if let Some(fields) = json.as_object_mut() {
        fields.retain(|key, value| !value.is_null() || !keys.contains(&key.as_str()));
    }
    json
}

/// Returns the beginning of a message that may be a whole log.
pub(super) fn first_lines(text: &str) -> String {
    const LETTERS: usize = 300;
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if flat.chars().count() <= LETTERS {
        flat
    } else {
        format!("{} …", flat.chars().take(LETTERS).collect::<String>())
    }
}

/// Properties that every document must have, whatever its content.
#[cfg(test)]
mod tests {
    use super::*;

    /// Texts that try to make each form do something.
    const HOSTILE: [&str; 7] = [
        "a|b\\|c @everyone #1 https://evil.example/?q=1",
        "`` ` ``</details><script>alert(1)</script>",
        "::error::x\n::add-mask::y\u{1b}[2J\r\n- [link](https://evil.example)",
        "\u{202e}desrever\u{202c} zero\u{200b}width ##[error]x",
        "<!-- comment --> <b onclick='x()'>&amp; \"quoted\"",
        "![image](https://evil.example/a.png) www.evil.example gh-1",
        "",
    ];

    /// Returns every kind of block with the text in every kind of part.
    fn document(text: &str) -> Vec<Block<'_>> {
        let all = || {
            let tones = [Tone::Plain, Tone::Strong, Tone::Good, Tone::Doubt, Tone::Bad];
            let strong = tones
                .into_iter()
                .fold(Text::default(), |all, tone| all.with(Part::Strong(text.into(), tone)));
            let text = strong.say(text).name(text).message(text).with(Part::Copied(text.into()));
            text.with(Part::Icon("✅"))
        };
        let cell = || Cell { lines: vec![all(), text.into(), Text::named(text)], tone: Tone::Strong };
        let table = Table {
            columns: vec![Column::text(Text::named(text)), Column::number("one"), Column::text("other")],
            rows: vec![vec![cell(), Text::named("9.5 %").into(), cell()]; 3],
            ..Table::default()
        };
        let list = || Block::List(vec![Item { text: text.into(), details: vec![all(), text.into()] }; 3]);
        vec![
            Block::Title(all()),
            Block::Prose(all()),
            Block::Callout("NOTE", all()),
            list(),
            Block::Table(vec![table]),
            Block::Section { title: "Open", count: None, blocks: vec![list()] },
            Block::Section { title: "Folded", count: Some(3), blocks: vec![list()] },
            Block::Break,
            Block::Small(all()),
        ]
    }

    #[test]
    fn untrusted_text_is_text_in_every_form() {
        for text in HOSTILE {
            let blocks = document(text);
            let options = TerminalOptions::default();
            let lines = terminal(&blocks, options);
            for form in [&lines, &markdown(&blocks, usize::MAX), &html_page(text, &blocks)] {
                let hidden = form.chars().find(|letter| *letter != '\n' && is_hidden(*letter));
                assert_eq!(hidden, None, "{form}");
                assert!(!form.contains("##["), "{form}");
                assert!(form.lines().all(|line| !line.trim_start().starts_with("::")), "{form}");
            }
            let page = html_page(text, &blocks);
            assert!(
                !page.contains("<script") && !page.contains("onclick='") && !page.contains("<!--"),
                "{page}"
            );
            // Outside of code spans, nothing may be a mention, a link or markup.
            let markdown = markdown(&blocks, usize::MAX);
            for line in markdown.lines() {
                let bare = without_entities(&without_code(line));
                for markup in ["@everyone", "#1", "https://", "](", "<script", "<b", "<!--", "www.e", "gh-1"]
                {
                    let ours = markup == "<b" && bare.replace("<br>", "").find("<b").is_none();
                    assert!(ours || !bare.contains(markup), "{markup}: {line}");
                }
            }
            let rows: Vec<&str> = markdown.lines().filter(|line| line.starts_with('|')).collect();
            assert!(rows.len() == 5 && rows.iter().all(|row| row.matches('|').count() == 4), "{rows:#?}");
        }
    }

    /// Returns a line with each entity replaced by one harmless letter.
    fn without_entities(line: &str) -> String {
        let mut parts = line.split("&#");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |bare, part| bare + "·" + part.split_once(';').expect("an entity ends").1)
    }

    /// Returns a line without its code spans, as GitHub detects them.
    fn without_code(line: &str) -> String {
        let (mut bare, mut rest) = (String::new(), line);
        while let Some(start) = rest.find('`') {
            bare.push_str(&rest[..start]);
            let fence: String = rest[start..].chars().take_while(|letter| *letter == '`').collect();
            let mut inside = &rest[start + fence.len()..];
            loop {
                let at = inside.find('`').expect("a code span ends");
                let run = inside[at..].chars().take_while(|letter| *letter == '`').count();
                inside = &inside[at + run..];
                if run == fence.len() {
                    break;
                }
            }
            rest = inside;
        }
        bare + rest
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_no_word_is_split_that_fits() {
        let name = "transformer-layer/peak-device-memory/single_repetition";
        let row = || vec![Text::named(name).into(), "12.4 → 13.9 ms".into(), "regressed: beyond 1 %".into()];
        let columns = vec![Column::text("benchmark"), Column::number("base → head"), Column::text("verdict")];
        let table = |one_line| Table {
            columns: columns.clone(),
            rows: vec![row(), row()],
            one_line,
            ..Table::default()
        };
        for width in 50..120 {
            let blocks = [Block::Table(vec![table(true), table(false)])];
            let text = terminal(&blocks, TerminalOptions { width, ..TerminalOptions::default() });
            assert!(text.lines().all(|line| line.chars().count() <= usize::from(width)), "{width}\n{text}");
            let words =
                ["transformer-", "device-", "memory/", "repetition", "12.4 → 13.9 ms", "regressed:", "1 %"];
            assert!(words.iter().all(|word| text.contains(word)), "{width}\n{text}");
        }
        for text in HOSTILE {
            for width in [40, 60, 80, 160] {
                let blocks =
                    [Block::Prose(text.into()), Block::list([Text::named(text), Text::message_of(text)])];
                let shown = terminal(&blocks, TerminalOptions { width, ..TerminalOptions::default() });
                assert!(
                    shown.lines().all(|line| line.chars().count() <= usize::from(width)),
                    "{width}\n{shown}"
                );
            }
        }
    }

    #[test]
    fn a_page_keeps_to_its_bytes_and_counts_what_it_left_out() {
        let items = || (0..500).map(|at| Text::named(format!("name {at}")));
        let blocks = [Block::Title("Title".into()), Block::list(items()), Block::list(items())];
        for most in [1_000, 5_000, 12_000] {
            let page = markdown(&blocks, most);
            assert!(page.len() <= most && page.len() > most / 2, "{} of {most}", page.len());
            assert!(page.contains("more, in the JSON report."), "{page}");
        }
        assert!(markdown(&blocks, 20).len() <= 20);
    }
}
