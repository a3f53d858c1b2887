//! Tables for a terminal. No word is ever split: text wraps between words and after the separators of names.

use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ContentArrangement, LineStyle, Table, TableStyle, presets,
};

use benchgate_core::model::Verdict;

use super::wrap::{hanging, pieces, width_of, wrapped};

/// A column of a grid.
#[derive(Debug, Clone)]
pub(super) struct GridColumn {
    title: String,
    alignment: CellAlignment,
    /// Text that may wrap. Numbers stay whole.
    wraps: bool,
}

impl GridColumn {
    pub(super) fn text(title: impl Into<String>) -> Self {
        Self { title: title.into(), alignment: CellAlignment::Left, wraps: true }
    }

    pub(super) fn number(title: impl Into<String>) -> Self {
        Self { title: title.into(), alignment: CellAlignment::Right, wraps: false }
    }

    pub(super) fn whole(self) -> Self {
        Self { wraps: false, ..self }
    }
}

/// One cell; `\n` begins a new line.
#[derive(Debug, Clone, Default)]
pub(super) struct GridCell {
    pub(super) text: String,
    pub(super) color: Option<Color>,
    pub(super) bold: bool,
}

impl GridCell {
    /// A cell in a verdict's color.
    pub(super) fn judged(text: String, verdict: Verdict) -> Self {
        let color = verdict_color(verdict);
        Self { text, color, bold: color == Some(Color::DarkRed) }
    }
}

/// The color of a verdict. Unchanged values have none. The bright ones can't be read on a light background.
pub(super) const fn verdict_color(verdict: Verdict) -> Option<Color> {
    match verdict {
        Verdict::Pass => None,
        Verdict::Improved => Some(Color::DarkGreen),
        Verdict::Inconclusive | Verdict::Missing => Some(Color::DarkYellow),
        Verdict::Regressed | Verdict::Diverged | Verdict::Error => Some(Color::DarkRed),
    }
}

impl From<String> for GridCell {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

impl From<&str> for GridCell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// Lines between rows, for rows of several lines.
pub(super) const RULED: TableStyle = presets::UTF8_HORIZONTAL_ONLY;
/// No lines between rows, because long tables exceed a screen.
pub(super) const PLAIN: TableStyle = TableStyle::new()
    .header_separator(LineStyle::none().fill('═').junction('═'))
    .bottom_border(LineStyle::none().fill('─').junction('─'));
/// Only a line below the header.
pub(super) const BARE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// A table before it has a width.
#[derive(Debug, Clone)]
pub(super) struct Grid {
    columns: Vec<GridColumn>,
    rows: Vec<Vec<GridCell>>,
    style: TableStyle,
    /// Blanks before the first column.
    indent: u16,
}

impl Grid {
    pub(super) fn new(columns: Vec<GridColumn>, style: TableStyle) -> Self {
        Self { columns, rows: Vec::new(), style, indent: 0 }
    }

    pub(super) fn indented(self, indent: u16) -> Self {
        Self { indent, ..self }
    }

    pub(super) fn push(&mut self, cells: Vec<GridCell>) {
        self.rows.push(cells);
    }

    /// This grid without the columns in which no row has a text.
    pub(super) fn without_empty_columns(mut self) -> Self {
        let filled: Vec<bool> = (0..self.columns.len())
            .map(|at| self.rows.iter().any(|row| row.get(at).is_some_and(|cell| !cell.text.is_empty())))
            .collect();
        let kept = |at: &mut usize| {
            *at += 1;
            filled[*at - 1]
        };
        let mut at = 0;
        self.columns.retain(|_| kept(&mut at));
        for row in &mut self.rows {
            let mut at = 0;
            row.retain(|_| kept(&mut at));
        }
        self
    }

    /// The narrowest that it can be without splitting a word.
    pub(super) fn least_width(&self) -> usize {
        (0..self.columns.len()).map(|at| self.least(at)).sum::<usize>() + self.padding()
    }

    /// The width at which no line wraps.
    pub(super) fn full_width(&self) -> usize {
        (0..self.columns.len()).map(|at| self.full(at)).sum::<usize>() + self.padding()
    }

    /// Two blanks between columns: one of the column on the left, one of the style.
    fn padding(&self) -> usize {
        usize::from(self.indent) + (2 * self.columns.len()).saturating_sub(2)
    }

    fn texts(&self, at: usize) -> impl Iterator<Item = &str> {
        let cells = self.rows.iter().filter_map(move |row| row.get(at)).map(|cell| cell.text.as_str());
        std::iter::once(self.columns[at].title.as_str()).chain(cells)
    }

    fn full(&self, at: usize) -> usize {
        self.texts(at).flat_map(str::lines).map(width_of).max().unwrap_or(0)
    }

    fn least(&self, at: usize) -> usize {
        if !self.columns[at].wraps {
            return self.full(at);
        }
        let lines = self.texts(at).flat_map(str::lines);
        let longest = |line: &str| {
            let hang = hanging(line);
            let pieces = pieces(line).into_iter().map(|piece| width_of(piece.trim_end()));
            // A piece that begins a continued line stands behind its indentation.
            pieces
                .enumerate()
                .map(|(at, width)| if at == 0 { width } else { width + hang })
                .max()
                .unwrap_or(0)
        };
        lines.map(longest).max().unwrap_or(0)
    }

    /// The width of every column in a table this wide.
    fn widths(&self, width: usize) -> Vec<usize> {
        let least: Vec<usize> = (0..self.columns.len()).map(|at| self.least(at)).collect();
        let full: Vec<usize> = (0..self.columns.len()).map(|at| self.full(at)).collect();
        let room = width.saturating_sub(self.padding() + least.iter().sum::<usize>());
        let wanted: usize = full.iter().zip(&least).map(|(full, least)| full - least).sum();
        // If even words don't fit, the widest column is narrowed: a terminal would break its lines anyway.
        let missing = (self.padding() + least.iter().sum::<usize>()).saturating_sub(width);
        let widest = (0..least.len()).filter(|at| self.columns[*at].wraps).max_by_key(|at| least[*at]);
        let mut left = room;
        (0..least.len())
            .map(|at| {
                let want = full[at] - least[at];
                let share = if wanted <= room { want } else { (room * want).div_ceil(wanted).min(left) };
                left = left.saturating_sub(share);
                let short = if Some(at) == widest { missing } else { 0 };
                (least[at] + share).saturating_sub(short).max(1)
            })
            .collect()
    }

    /// The lines of the table.
    pub(super) fn lines(&self, width: u16, color: bool) -> Vec<String> {
        let widths = self.widths(usize::from(width));
        let mut table = Table::new();
        table.load_style(self.style);
        table.set_content_arrangement(ContentArrangement::Disabled);
        if color {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        let wrapped_at = |at: usize, text: &str| {
            let column = &self.columns[at];
            if column.wraps { wrapped(text, widths[at]) } else { text.to_owned() }
        };
        let titles = self.columns.iter().enumerate();
        table
            .set_header(titles.map(|(at, column)| {
                Cell::new(wrapped_at(at, &column.title)).set_alignment(column.alignment)
            }));
        for row in &self.rows {
            table.add_row(row.iter().enumerate().map(|(at, cell)| {
                let styled = Cell::new(wrapped_at(at, &cell.text)).set_alignment(self.columns[at].alignment);
                let styled = match cell.color.filter(|_| color) {
                    Some(color) => styled.fg(color),
                    None => styled,
                };
                if cell.bold && color { styled.add_attribute(Attribute::Bold) } else { styled }
            }));
        }
        for (at, column) in table.column_iter_mut().enumerate() {
            let last = at + 1 == self.columns.len();
            column.set_padding((if at == 0 { self.indent } else { 0 }, u16::from(!last)));
        }
        table.lines().map(|line| line.trim_end().to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_says_how_narrow_it_can_be_and_is_never_wider_than_asked() {
        let columns =
            vec![GridColumn::text("benchmark"), GridColumn::number("time"), GridColumn::text("verdict")];
        let mut grid = Grid::new(columns, RULED);
        let cells = ["transformer-layer/cpu/main", "12.4 → 13.9 ms", "regressed\nbeyond 1 %"];
        grid.push(cells.map(GridCell::from).to_vec());
        let least = u16::try_from(grid.least_width()).unwrap();
        for width in least..least + 40 {
            let lines = grid.lines(width, false);
            assert!(lines.iter().all(|line| width_of(line) <= usize::from(width)), "{width}\n{lines:#?}");
            let text = lines.join("\n");
            let words = ["transformer-", "layer/", "12.4 → 13.9 ms", "regressed", "beyond"];
            assert!(words.iter().all(|word| text.contains(word)), "{width}\n{text}");
        }
    }
}
