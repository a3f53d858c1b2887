//! Renders a document for a terminal or a log: lines as wide as the terminal, and tables in the widest layout
//! that fits.

use std::borrow::Cow;

use anstyle::{AnsiColor, Style};
use comfy_table::{
    CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, TableStyle, Width, presets,
};

use benchgate_core::model::{Unit, clean};

use super::{Block, Cell, Item, Part, Rules, Table, Text, Tone, first_lines};
use crate::report::quantity;
use crate::report::wrap::{JOIN, paragraph, pieces, small_pieces, width_of};

#[derive(Debug, Clone, Copy)]
pub struct TerminalOptions {
    /// Width of the terminal in columns.
    pub width: u16,
    pub color: bool,
    /// True to show everything: all rows and columns, informational rows, each case of a finding, and the
    /// machine.
    pub all: bool,
}

impl Default for TerminalOptions {
    fn default() -> Self {
        Self { width: 80, color: false, all: false }
    }
}

/// Maximum width of sentences: longer lines are hard to read.
const PROSE: usize = 100;
/// Maximum number of entries in a list; the others are only counted.
const ENTRIES: usize = 20;
/// Maximum number of rows in a table, unless everything is requested; the others are only counted.
const ROWS: usize = 50;
/// Largest number of lines of a table whose first column is widened, and of columns that are added to it.
const MOST_WIDENED: usize = 4 * ROWS;
const MOST_ADDED: u16 = 30;
/// Marks where a line of a table may wrap. The mark has no width, can't occur in text (it is a hidden
/// character), and is removed after wrapping.
const BREAK: char = '\u{200b}';
/// Letters of a colored cell are followed by one of these marks, which have no width, and are colored after wrapping.
/// They are variation selectors, so that wrapping keeps them with their letter. Only mathematics uses them.
const TONES: [(char, Style); 3] = [
    ('\u{fe00}', AnsiColor::Green.on_default()),
    ('\u{fe01}', AnsiColor::Yellow.on_default()),
    ('\u{fe02}', AnsiColor::Red.on_default().bold()),
];

/// Renders a document. No line begins with `::`, wherever it comes from, because a log of GitHub Actions
/// would execute it.
pub(in crate::report) fn terminal(blocks: &[Block<'_>], options: TerminalOptions) -> String {
    let mut page = Page { text: String::new(), options, titled: false, below: false };
    blocks.iter().for_each(|block| page.block(block));
    let text = page.text.replace(BREAK, "").replace(JOIN, " ");
    let text: String = text.split_inclusive('\n').map(disarm).collect();
    if options.color { colored(&text) } else { text }
}

/// Replaces the marks of [`TONES`] by the codes of a terminal.
fn colored(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut now: Option<Style> = None;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let tone = letters.peek().and_then(|next| TONES.iter().find(|(mark, _)| mark == next));
        let tone = tone.map(|(_, style)| *style);
        if tone.is_some() {
            letters.next();
        }
        if tone != now {
            out.extend(now.map(|style| style.render_reset().to_string()));
            out.extend(tone.map(|style| style.render().to_string()));
            now = tone;
        }
        out.push(letter);
    }
    out
}

/// Makes a message of several lines safe for a terminal and a log; it may quote untrusted text.
pub fn harmless(text: &str) -> String {
    text.split('\n').map(|line| disarm(&clean(line)).into_owned()).collect::<Vec<_>>().join("\n")
}

fn disarm(line: &str) -> Cow<'_, str> {
    let start = line.len() - line.trim_start().len();
    if line[start..].starts_with("::") {
        Cow::Owned(format!("{}∷ {}", &line[..start], &line[start + 2..]))
    } else {
        Cow::Borrowed(line)
    }
}

/// Renders one safe line, in which numbers with their units and texts to be copied do not wrap.
fn plain(text: &Text<'_>) -> String {
    let part = |part: &Part<'_>| match part {
        Part::Ours(text) | Part::Strong(text, _) => clean(text).replace(" %", "\u{a0}%"),
        Part::Name(name) => clean(beginning(name)),
        Part::Message(message) => clean(&first_lines(message)),
        Part::Copied(text) => clean(text).replace(' ', &JOIN.to_string()),
        Part::Icon(_) => String::new(),
        Part::Link(_, address) => clean(address),
    };
    text.0.iter().map(part).collect::<String>().trim_start_matches(' ').to_owned()
}

/// Maximum number of characters of a name: no terminal is wider, and tables use 16-bit widths.
const NAME: usize = 10_000;

fn beginning(name: &str) -> &str {
    name.char_indices().nth(NAME).map_or(name, |(end, _)| &name[..end])
}

/// A text that grows line by line.
struct Page {
    text: String,
    options: TerminalOptions,
    /// True if there is a title above, so that entries and tables are indented.
    titled: bool,
    /// True if the first table is finished and the text about it has begun.
    below: bool,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn styled(&self, tone: Tone, text: &str) -> String {
        if !self.options.color {
            return text.to_owned();
        }
        let color = match tone {
            Tone::Bad => Some(AnsiColor::Red),
            Tone::Doubt => Some(AnsiColor::Yellow),
            Tone::Good => Some(AnsiColor::Green),
            Tone::Plain | Tone::Strong => None,
        };
        let style = Style::new().bold().fg_color(color.map(Into::into));
        format!("{style}{text}{style:#}")
    }

    /// Writes a wrapped paragraph: the first line starts with `first`, the others with `rest`.
    fn prose(&mut self, text: &Text<'_>, first: &str, rest: &str) {
        let width = PROSE.min(usize::from(self.options.width.max(40)));
        let start = self.text.len();
        self.line(&paragraph(&plain(text), width, first, rest));
        // Colors are added after wrapping, because their codes have no width.
        if let Some(Part::Strong(word, tone)) = text.0.first()
            && self.text[start..].starts_with(&**word)
        {
            let styled = self.styled(*tone, word);
            self.text.replace_range(start..start + word.len(), &styled);
        }
    }

    fn title(&mut self, title: &str) {
        let title = self.styled(Tone::Strong, title);
        self.line(&format!("\n{title}"));
        self.titled = true;
    }

    fn block(&mut self, block: &Block<'_>) {
        match block {
            Block::Title(text) => self.title(&plain(text)),
            Block::Prose(text) | Block::Callout(_, text) => self.prose(text, "", "    "),
            Block::Commands(lines) => lines.lines().for_each(|line| self.line(&format!("        {line}"))),
            Block::List(items) => self.list(items),
            Block::Table(layouts) => self.table(layouts),
            Block::Section { title, blocks, .. } => {
                // Below a table without titles, a blank line is enough, because each entry names its subject.
                if self.options.all {
                    self.title(title);
                } else if !self.below && !self.text.is_empty() {
                    self.line("");
                }
                self.below = true;
                blocks.iter().for_each(|block| self.block(block));
            }
            Block::Small(text) => {
                self.line("");
                self.prose(text, "", "");
            }
            Block::Picture(_) => {}
            Block::Break => {
                self.line("");
                self.titled = false;
            }
        }
    }

    /// Returns the indentation below a title.
    fn indent(&self) -> &'static str {
        if self.titled { "  " } else { "" }
    }

    fn list(&mut self, items: &[Item<'_>]) {
        let first = self.indent();
        let rest = &format!("{first}    ");
        for item in items.iter().take(ENTRIES) {
            self.prose(&item.text, first, rest);
            for detail in &item.details {
                self.prose(detail, &format!("{rest}- "), &format!("{rest}  "));
            }
        }
        if items.len() > ENTRIES {
            self.line(&format!("{first}… and {} more", items.len() - ENTRIES));
        }
    }

    /// Writes a table in the widest layout in which no word has to be split.
    fn table(&mut self, layouts: &[Table<'_>]) {
        let width = usize::from(self.options.width);
        let fits = |lines: &[String]| lines.iter().all(|line| width_of_row(line) <= width);
        let mut lines = Vec::new();
        for (at, layout) in layouts.iter().enumerate() {
            if layout.one_line && !fits(&self.arranged(layout, u16::MAX, Some(0))) {
                continue;
            }
            lines = self.arranged(layout, self.options.width, Some(0));
            if fits(&lines) {
                lines = self.widened(layout, lines);
                break;
            }
            if at + 1 == layouts.len() {
                lines = self.arranged(layout, self.options.width, None);
            }
        }
        lines.iter().for_each(|line| self.line(line));
        let rows = layouts.first().map_or(0, |layout| layout.rows.len());
        let shown = self.shown(rows);
        if shown < rows {
            let rest = quantity((rows - shown) as f64, &Unit::Count);
            self.line(&format!("… and {rest} more (--all)"));
        }
    }

    /// Widens the first column, which contains the names, if that makes the table shorter: what is left of the
    /// terminal's width is not distributed otherwise.
    fn widened(&self, layout: &Table<'_>, lines: Vec<String>) -> Vec<String> {
        let widest = lines.iter().map(|line| width_of_row(line)).max().unwrap_or(0);
        let left = self.options.width.saturating_sub(u16::try_from(widest).unwrap_or(u16::MAX));
        // Nothing is wrapped, or arranging the table that often takes long.
        if lines.len() <= layout.rows.len() + 3 || lines.len() > MOST_WIDENED {
            return lines;
        }
        let wider =
            (1..=left.min(MOST_ADDED)).map(|more| self.arranged(layout, self.options.width, Some(more)));
        let fitting = wider
            .filter(|wider| wider.iter().all(|line| width_of_row(line) <= usize::from(self.options.width)));
        [lines].into_iter().chain(fitting).min_by_key(Vec::len).unwrap_or_default()
    }

    fn shown(&self, rows: usize) -> usize {
        if self.options.all { rows } else { rows.min(ROWS) }
    }

    /// Returns the lines of a table in a terminal of this width. With `whole_words`, words are not split, so the table may
    /// become wider; the first column is wider than its words by this number.
    fn arranged(&self, layout: &Table<'_>, width: u16, whole_words: Option<u16>) -> Vec<String> {
        let mut table = comfy_table::Table::new();
        table.load_style(style(layout.rules));
        let width = width.saturating_sub(u16::try_from(self.indent().len()).unwrap_or(0));
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width).set_delimiter(BREAK);
        let shown = &layout.rows[..self.shown(layout.rows.len())];
        let alignment = |number: bool| if number { CellAlignment::Right } else { CellAlignment::Left };
        table.set_header(layout.columns.iter().map(|column| {
            let title = Cell { lines: column.title.clone(), tone: Tone::Plain };
            self.cell(&title, column.whole).set_alignment(alignment(column.number))
        }));
        for row in shown {
            let cells = row.iter().zip(&layout.columns);
            table.add_row(
                cells.map(|(cell, column)| {
                    self.cell(cell, column.whole).set_alignment(alignment(column.number))
                }),
            );
        }
        for (at, column) in table.column_iter_mut().enumerate() {
            let padding = u16::from(at + 1 < layout.columns.len());
            column.set_padding((0, padding));
            if layout.columns[at].whole {
                column.set_constraint(ColumnConstraint::ContentWidth);
            } else if let Some(more) = whole_words {
                let cells = shown.iter().filter_map(|row| row.get(at)).flat_map(|cell| &cell.lines);
                let texts = layout.columns[at].title.iter().chain(cells);
                let least = texts.map(|text| longest_piece(&plain(text))).max().unwrap_or(0);
                let least = u16::try_from(least).unwrap_or(u16::MAX).saturating_add(padding);
                column.set_constraint(match (at, more) {
                    (0, 1..) => ColumnConstraint::Absolute(Width::Fixed(least.saturating_add(more))),
                    _ => ColumnConstraint::LowerBoundary(Width::Fixed(least)),
                });
            }
        }
        table.lines().map(|line| format!("{}{}", self.indent(), line.trim_end())).collect()
    }

    fn cell(&self, cell: &Cell<'_>, whole: bool) -> comfy_table::Cell {
        let lines = cell.lines.iter().map(plain);
        let lines = lines.map(|line| if whole { line } else { small_pieces(&line).join(&BREAK.to_string()) });
        let shown = lines.collect::<Vec<_>>().join("\n");
        let shown = shown.trim_end_matches('\n');
        let [good, doubt, bad] = TONES.map(|(mark, _)| mark);
        let mark = match cell.tone {
            _ if !self.options.color => return comfy_table::Cell::new(shown),
            Tone::Plain | Tone::Strong => return comfy_table::Cell::new(shown),
            Tone::Good => good,
            Tone::Doubt => doubt,
            Tone::Bad => bad,
        };
        let is_letter = |letter: char| letter != BREAK && !letter.is_whitespace();
        let marked = shown.chars().flat_map(|letter| [Some(letter), is_letter(letter).then_some(mark)]);
        comfy_table::Cell::new(marked.flatten().collect::<String>())
    }
}

fn longest_piece(line: &str) -> usize {
    pieces(line).into_iter().map(width_of).max().unwrap_or(0)
}

/// Returns the width of a table's line without marks.
fn width_of_row(line: &str) -> usize {
    line.chars().filter(|letter| *letter != BREAK && TONES.iter().all(|(mark, _)| mark != letter)).count()
}

const fn style(rules: Rules) -> TableStyle {
    match rules {
        Rules::Header => TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─')),
        Rules::Ends => TableStyle::new()
            .header_separator(LineStyle::none().fill('═').junction('═'))
            .bottom_border(LineStyle::none().fill('─').junction('─')),
        Rules::Rows => presets::UTF8_HORIZONTAL_ONLY,
    }
}
