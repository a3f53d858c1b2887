//! Several results next to each other, as benchstat prints them: the values of the first one, then a column
//! for each other result with its value, its change from the first, and its verdict.

use std::collections::HashMap;

use benchgate_core::exit_code::ExitCode;
use benchgate_core::model::Verdict;
use benchgate_gate::{Comparison, Method, Row};

use super::document::{self, Block, Cell, Column, Rules, Table, TerminalOptions, Text, Tone};
use super::{Order, RowView, View, layout, quantity};

/// One result that was compared with the first.
#[derive(Debug)]
pub struct Compared {
    /// The result as the caller named it.
    pub label: String,
    pub comparison: Comparison,
}

/// One benchmark and metric in every comparison.
struct ComparedRow<'a> {
    name: &'a str,
    metric: Option<&'a str>,
    /// One row per comparison; `None` if the comparison has no such row.
    rows: Vec<Option<&'a Row>>,
}

/// Renders comparisons that share their base as one table.
pub fn columns(
    base: &str,
    all: &[Compared],
    order: Order,
    code: ExitCode,
    options: TerminalOptions,
) -> String {
    let views = views(all, order);
    let mut notes: Vec<&str> = Vec::new();
    for note in all.iter().flat_map(|compared| &compared.comparison.notes) {
        if !notes.contains(&note.as_str()) {
            notes.push(note);
        }
    }
    let blocks = [
        Block::Table(vec![table(base, all, &views, options.all)]),
        Block::Prose("To see findings and intervals, compare two of the results.".into()),
        Block::list(notes.into_iter().map(|note| Text::from("note: ").say(note))),
        Block::Break,
        headlines(all, &views),
        Block::Prose(format!("Exit code {}.", code.code()).into()),
    ];
    document::terminal(&blocks, options)
}

/// Renders a table in GitHub Markdown, safe against hostile names.
pub fn columns_markdown(base: &str, all: &[Compared], order: Order, every: bool) -> String {
    let views = views(all, order);
    let blocks = [headlines(all, &views), Block::Table(vec![table(base, all, &views, every)])];
    document::markdown(&blocks, usize::MAX)
}

fn views(all: &[Compared], order: Order) -> Vec<View<'_>> {
    all.iter().map(|compared| View::new(&compared.comparison, None).sorted(order)).collect()
}

fn headlines<'a>(all: &'a [Compared], views: &'a [View<'a>]) -> Block<'a> {
    let headline = |(compared, view): (&'a Compared, &'a View<'a>)| {
        Text::named(&compared.label).say(": ").say(view.headline.as_str())
    };
    Block::list(all.iter().zip(views).map(headline))
}

fn table<'a>(base: &'a str, all: &'a [Compared], views: &[View<'a>], every: bool) -> Table<'a> {
    let first = [Column::text("benchmark"), Column::number(Text::named(base))];
    let titles = all.iter().map(|compared| Column::text(Text::named(&compared.label)));
    let columns = first.into_iter().chain(titles).collect();
    let row = |line: ComparedRow<'a>| {
        let named = line.rows.iter().flatten().next().map(|row| layout::name(&RowView::new(row)));
        let known = line.rows.iter().flatten().find_map(|row| base_value(row));
        let first = [named.unwrap_or_default().into(), known.unwrap_or_default().into()];
        first.into_iter().chain(line.rows.iter().map(|row| row.map_or_else(Cell::default, cell))).collect()
    };
    let rows = lines(views, every).into_iter().map(row).collect();
    Table { columns, rows, rules: Rules::Rows, one_line: false }
}

/// Returns every row that the table of any single comparison would show, in the order of those
/// tables.
fn lines<'a>(views: &[View<'a>], all: bool) -> Vec<ComparedRow<'a>> {
    let mut lines: Vec<ComparedRow<'a>> = Vec::new();
    let mut index: HashMap<(&str, Option<&str>), usize> = HashMap::new();
    for (at, view) in views.iter().enumerate() {
        let changed = |row: &RowView<'_>| matches!(row.row.verdict, Verdict::Regressed | Verdict::Improved);
        let reported = view.reported.iter().filter(|row| all || changed(row)).copied();
        for row in view.deciding().into_iter().chain(view.not_compared.iter().copied()).chain(reported) {
            let place = *index.entry((row.name, row.metric)).or_insert_with(|| {
                lines.push(ComparedRow { name: row.name, metric: row.metric, rows: vec![None; views.len()] });
                lines.len() - 1
            });
            lines[place].rows[at].get_or_insert(row.row);
        }
    }
    // A row that one column shows is shown in all columns.
    for line in &mut lines {
        for (row, view) in line.rows.iter_mut().zip(views) {
            let same = |other: &&'a Row| {
                let view = RowView::new(other);
                (view.name, view.metric) == (line.name, line.metric)
            };
            *row = row.or_else(|| view.comparison.rows.iter().find(same));
        }
    }
    lines
}

fn value_of_base(row: &Row) -> Option<f64> {
    let side = row.base.as_ref()?;
    let welch = row.estimate.as_ref().is_some_and(|estimate| estimate.method == Method::Welch);
    Some(if welch { side.mean } else { side.location }).filter(|value| value.is_finite())
}

fn base_value(row: &Row) -> Option<String> {
    Some(quantity(value_of_base(row)?, &row.metric.as_ref()?.unit))
}

/// Returns the cell of a row. Its value is base's value times the effect, so that it agrees with the
/// percentage: base has a single value in this table, whichever result it was compared with.
fn cell<'a>(row: &Row) -> Cell<'a> {
    let ratio = row.estimate.as_ref().map(|estimate| estimate.ratio).filter(|ratio| ratio.is_finite());
    let own = row.head.as_ref().map(|side| side.location).filter(|value| value.is_finite());
    let value = match (value_of_base(row), ratio) {
        (Some(base), Some(ratio)) if base > 0.0 => Some(base * ratio),
        (None, Some(_)) => None,
        _ => own,
    };
    let value = value.zip(row.metric.as_ref()).map(|(value, metric)| quantity(value, &metric.unit));
    let second = [RowView::new(row).effect(), Some(row.verdict.to_string())];
    let second = second.into_iter().flatten().collect::<Vec<_>>().join(" ");
    let lines = value.into_iter().chain([second]);
    Cell {
        lines: lines.map(|line| line.replace(' ', "\u{a0}").into()).collect(),
        tone: Tone::of_verdict(row.verdict),
    }
}
