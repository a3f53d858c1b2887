//! Several results next to each other, as benchstat prints them: the first one's values, then a column for
//! each other result with its value, its change from the first, and its verdict.

use std::collections::HashMap;

use benchgate_core::exit_code::ExitCode;
use benchgate_core::model::Verdict;
use benchgate_gate::{Comparison, Method, Row};

use super::grid::{Grid, GridCell, GridColumn, RULED};
use super::terminal::{TerminalOptions, TerminalPage};
use super::{Order, RowView, View, clean, markdown_cell, markdown_code, quantity};

/// One result that was compared with the first.
#[derive(Debug)]
pub struct Compared {
    /// How the caller names the result.
    pub label: String,
    pub comparison: Comparison,
}

/// One benchmark and metric in every comparison.
struct ComparedRow<'a> {
    name: &'a str,
    metric: Option<&'a str>,
    /// One cell per comparison; `None` if it has no such row.
    rows: Vec<Option<&'a Row>>,
}

/// Renders the comparisons, which share their base, as one table.
pub fn columns(
    base: &str,
    all: &[Compared],
    order: Order,
    code: ExitCode,
    options: TerminalOptions,
) -> String {
    let mut page = TerminalPage::new(options);
    let views: Vec<View<'_>> =
        all.iter().map(|compared| View::new(&compared.comparison, None).sorted(order)).collect();
    let titles = all.iter().map(|compared| GridColumn::text(clean(&compared.label)));
    let first = [GridColumn::text("benchmark"), GridColumn::number(clean(base))];
    let mut grid = Grid::new(first.into_iter().chain(titles).collect(), RULED);
    for line in lines(&views, options.all) {
        let subject =
            line.metric.map_or_else(|| clean(line.name), |m| format!("{}\n{}", clean(line.name), clean(m)));
        let known = line.rows.iter().flatten().find_map(|row| base_value(row));
        let mut cells: Vec<GridCell> = vec![subject.into(), known.unwrap_or_default().into()];
        cells.extend(line.rows.iter().map(|row| row.map_or_else(GridCell::default, cell)));
        grid.push(cells);
    }
    page.grid(&grid);
    let mut notes: Vec<&str> = Vec::new();
    for note in all.iter().flat_map(|compared| &compared.comparison.notes) {
        if !notes.contains(&note.as_str()) {
            notes.push(note);
        }
    }
    page.prose("To see findings and intervals, compare two of the results.", "", "");
    for note in notes {
        page.prose(&clean(note), "  - ", "    ");
    }
    page.line("");
    for (compared, view) in all.iter().zip(&views) {
        page.prose(&clean(&format!("{}: {}", compared.label, view.headline)), "", "    ");
    }
    page.line(&format!("Exit code {}.", code.code()));
    page.into_text()
}

/// A table in GitHub Markdown, safe against hostile names.
pub fn columns_markdown(base: &str, all: &[Compared], order: Order, every: bool) -> String {
    let views: Vec<View<'_>> =
        all.iter().map(|compared| View::new(&compared.comparison, None).sorted(order)).collect();
    let mut text = String::new();
    for (compared, view) in all.iter().zip(&views) {
        text.push_str(&format!("- {}: {}\n", markdown_code(&compared.label), view.headline));
    }
    let titles = all.iter().map(|compared| markdown_cell(&compared.label)).collect::<Vec<_>>().join(" | ");
    text.push_str(&format!("\n| benchmark | {} | {titles} |\n|---|--:|", markdown_cell(base)));
    text.push_str(&"--:|".repeat(all.len()));
    text.push('\n');
    for line in lines(&views, every) {
        let metric = line.metric.map_or_else(String::new, |metric| format!(" {}", markdown_cell(metric)));
        let known = line.rows.iter().flatten().find_map(|row| base_value(row)).unwrap_or_default();
        text.push_str(&format!("| {}{metric} | {known} |", markdown_cell(line.name)));
        for row in &line.rows {
            let shown = row.map_or_else(String::new, |row| cell(row).text.replace('\n', "<br>"));
            text.push_str(&format!(" {shown} |"));
        }
        text.push('\n');
    }
    text
}

/// Every row that any of the tables of two would show, in their order.
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
    // A row that is shown in one column is shown in all.
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

/// The value is the base's times the effect, so that the percentage belongs to it: the base has one value in
/// this table, whatever it was paired with.
fn cell(row: &Row) -> GridCell {
    let ratio = row.estimate.as_ref().map(|estimate| estimate.ratio).filter(|ratio| ratio.is_finite());
    let own = row.head.as_ref().map(|side| side.location).filter(|value| value.is_finite());
    let value = match (value_of_base(row), ratio) {
        (Some(base), Some(ratio)) if base > 0.0 => Some(base * ratio),
        (None, Some(_)) => None,
        _ => own,
    };
    let value = value.zip(row.metric.as_ref()).map(|(value, metric)| quantity(value, &metric.unit));
    let effect = RowView::new(row).effect().map(|effect| effect.replace(' ', "\u{a0}"));
    let verdict = Some(row.verdict.to_string());
    let second = [effect, verdict].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let text =
        value.map_or_else(|| second.clone(), |value| format!("{}\n{second}", value.replace(' ', "\u{a0}")));
    GridCell::judged(text, row.verdict)
}
