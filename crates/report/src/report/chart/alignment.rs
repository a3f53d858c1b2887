//! Draws both sides of each row that has changed or is undecided: as measured, and with head moved
//! back by the estimated change.

use super::super::DrawnRun;
use super::super::human::{change, quantity};
use super::super::row_view::RowView;
use super::super::view::unit;
use super::Theme;
use super::svg::{Svg, TextAnchor, WIDTH, fitted};
use benchgate_gate::Alignment;

const MARGIN: f64 = 20.0;
const HEAD: f64 = 92.0;
const ROW: f64 = 158.0;
/// Height of a curve at its highest point.
const CURVE: f64 = 84.0;
const PANEL: f64 = 414.0;
const PANELS: [f64; 2] = [MARGIN, WIDTH - MARGIN - PANEL];
/// Maximum number of rows: nobody reads more, and the page has to load.
const MOST_ROWS: usize = 8;
/// Positions of the labels of a scale, as shares of its length.
const TICKS: [f64; 3] = [0.08, 0.5, 0.92];

pub(super) fn draw(runs: &[DrawnRun], theme: Theme) -> Option<String> {
    let rows: Vec<(String, RowView<'_>, &Alignment)> = runs
        .iter()
        .flat_map(|run| run.comparison.iter().map(move |comparison| (run, comparison)))
        .flat_map(|(run, comparison)| comparison.rows.iter().map(move |row| (run, RowView::new(row))))
        .filter_map(|(run, row)| {
            let of = if runs.len() > 1 { format!("{}: ", run.name) } else { String::new() };
            let metric = row.metric.map(|metric| format!(" {metric}")).unwrap_or_default();
            Some((format!("{of}{}{metric}", row.name), row, row.row.alignment.as_ref()?))
        })
        .collect();
    if rows.is_empty() {
        return None;
    }
    let shown = &rows[..rows.len().min(MOST_ROWS)];
    let left_out = rows.len() - shown.len();
    let height = HEAD + shown.len() as f64 * ROW + if left_out > 0 { 30.0 } else { 0.0 };
    let mut svg = Svg::new(height, theme);
    let palette = svg.palette;
    const TITLE: &str = "How base and head align";
    let subtitle = "Density of all repetitions on a log scale. If the estimate is right, the curves on the right coincide.";
    svg.title(MARGIN, TITLE, subtitle);
    let captions = ["as measured", "head moved back by the estimated change"];
    for (left, caption) in PANELS.into_iter().zip(captions) {
        svg.text((left, 76.0), 12.5, TextAnchor::Start, palette.ink, caption);
        for (at, (name, color)) in [("base", palette.other), ("head", palette.slower)].into_iter().enumerate()
        {
            let x = left + PANEL - if at == 0 { 110.0 } else { 50.0 };
            svg.rect(x, 67.0, 10.0, 10.0, color);
            svg.text((x + 15.0, 76.0), 12.0, TextAnchor::Start, palette.muted, name);
        }
    }
    let mut y = HEAD;
    for (name, row, alignment) in shown {
        draw_row(&mut svg, y, name, row, alignment);
        y += ROW;
    }
    if left_out > 0 {
        let text = format!("and {}", benchgate_core::model::counted(left_out, "more row"));
        svg.text((MARGIN, y + 14.0), 12.5, TextAnchor::Start, palette.muted, &text);
    }
    Some(svg.finish(TITLE))
}

fn draw_row(svg: &mut Svg, y: f64, name: &str, row: &RowView<'_>, alignment: &Alignment) {
    let palette = svg.palette;
    let interval = row.interval().map(|interval| format!(" ({interval})")).unwrap_or_default();
    let found = format!("{}, {}{interval}", row.row.verdict, row.effect().unwrap_or_default());
    svg.text((WIDTH - MARGIN, y + 16.0), 13.0, TextAnchor::End, palette.ink, &found);
    let space = WIDTH - 3.0 * MARGIN - super::svg::width_of(&found, 13.0);
    svg.text((MARGIN, y + 16.0), 13.0, TextAnchor::Start, palette.ink, &fitted(name, 13.0, space));
    let floor = y + 32.0 + CURVE;
    let curves = [&alignment.base, &alignment.head, &alignment.aligned];
    let highest = curves.into_iter().flatten().copied().fold(f64::MIN_POSITIVE, f64::max);
    for (left, head) in PANELS.into_iter().zip([&alignment.head, &alignment.aligned]) {
        svg.line((left, floor), (left + PANEL, floor), palette.grid, 1.0);
        for share in TICKS {
            let x = left + share * PANEL;
            svg.line((x, floor), (x, floor + 4.0), palette.grid, 1.0);
            svg.text(
                (x, floor + 17.0),
                11.0,
                TextAnchor::Middle,
                palette.muted,
                &label(share, row, alignment),
            );
        }
        for (curve, color) in [(&alignment.base, palette.other), (head, palette.slower)] {
            svg.area(&points(curve, left, floor, highest), floor, color, 1.6);
        }
    }
}

fn points(curve: &[f64], left: f64, floor: f64, highest: f64) -> Vec<(f64, f64)> {
    let step = PANEL / curve.len().saturating_sub(1).max(1) as f64;
    let point = |(at, height): (usize, &f64)| {
        let x = left + at as f64 * step;
        (x, floor - height / highest * CURVE)
    };
    curve.iter().enumerate().map(point).collect()
}

/// Labels a position on the scale with its value or, if values are withheld, with its distance from base's
/// median.
fn label(share: f64, row: &RowView<'_>, alignment: &Alignment) -> String {
    let (low, high) = alignment.range;
    let ratio = (low + share * (high - low)).exp();
    match (alignment.reference, unit(row.row)) {
        (Some(reference), Some(unit)) => quantity(reference * ratio, unit),
        _ => change(ratio),
    }
}
