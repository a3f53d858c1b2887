//! A comparison as CSV, one line a row, for spreadsheets and scripts.

use benchgate_core::model::Unit;
use benchgate_core::record::RowRecord;
use benchgate_gate::{Interval, Row};

use super::{RowView, View, clean, json, view::unit};

/// A column's name, and its field of a row.
type CsvColumn = (&'static str, fn(&Row, &RowRecord) -> String);

/// The columns. New ones are added at the end.
const COLUMNS: [CsvColumn; 33] = [
    ("benchmark", |row, _| text(row.benchmark.as_str())),
    ("metric", |row, _| text(row.metric.as_ref().map(|metric| metric.name.as_ref()).unwrap_or_default())),
    ("unit", |row, _| text(unit(row).map(Unit::as_str).unwrap_or_default())),
    ("target", |row, _| text(row.target.as_deref().unwrap_or_default())),
    ("verdict", |row, _| row.verdict.to_string()),
    ("reason", |_, record| word(&record.reason.code)),
    ("fatal", |row, _| row.fatal.to_string()),
    ("ratio", |row, _| of(row.estimate.as_ref(), |estimate| estimate.ratio)),
    ("interval_low", |row, _| of(interval(row), |interval| interval.low)),
    ("interval_high", |row, _| of(interval(row), |interval| interval.high)),
    ("interval_level", |row, _| of(interval(row), |interval| interval.level)),
    ("p_worse", |row, _| shown(row.estimate.as_ref().and_then(|estimate| estimate.p_worse))),
    ("p_adjusted", |row, _| shown(row.estimate.as_ref().and_then(|estimate| estimate.p_adjusted))),
    ("method", |_, record| {
        record.estimate.as_ref().map(|estimate| word(&estimate.method)).unwrap_or_default()
    }),
    ("blocks", |row, _| of(row.estimate.as_ref(), |estimate| estimate.blocks)),
    ("minimum_detectable", |row, _| {
        shown(row.estimate.as_ref().and_then(|estimate| estimate.minimum_detectable))
    }),
    ("floor", |row, _| of(row.policy.as_ref(), |policy| policy.floor.relative)),
    ("tolerance", |row, _| of(row.policy.as_ref(), |policy| policy.tolerance)),
    ("base_processes", |row, _| of(row.base.as_ref(), |side| side.processes)),
    ("base_samples", |row, _| of(row.base.as_ref(), |side| side.samples)),
    ("base_location", |row, _| of(row.base.as_ref(), |side| side.location)),
    ("base_mean", |row, _| of(row.base.as_ref(), |side| side.mean)),
    ("base_stddev", |row, _| shown(row.base.as_ref().and_then(|side| side.stddev))),
    ("base_cv", |row, _| shown(row.base.as_ref().and_then(|side| side.cv))),
    ("head_processes", |row, _| of(row.head.as_ref(), |side| side.processes)),
    ("head_samples", |row, _| of(row.head.as_ref(), |side| side.samples)),
    ("head_location", |row, _| of(row.head.as_ref(), |side| side.location)),
    ("head_mean", |row, _| of(row.head.as_ref(), |side| side.mean)),
    ("head_stddev", |row, _| shown(row.head.as_ref().and_then(|side| side.stddev))),
    ("head_cv", |row, _| shown(row.head.as_ref().and_then(|side| side.cv))),
    ("why", |row, _| text(&RowView::new(row).sentence())),
    ("base_typical", |row, _| shown(row.typical.base)),
    ("head_typical", |row, _| shown(row.typical.head)),
];

/// Renders a view as CSV with a header line. Numbers are plain, in the unit of their row.
pub fn csv(view: &View<'_>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    // Memory has no IO errors, and every record has the header's length.
    drop(writer.write_record(COLUMNS.map(|(name, _)| name)));
    for (row, record) in view.comparison.rows.iter().zip(&json::comparison_file(view).rows) {
        drop(writer.write_record(COLUMNS.map(|(_, field)| field(row, record))));
    }
    String::from_utf8_lossy(&writer.into_inner().unwrap_or_default()).into_owned()
}

fn interval(row: &Row) -> Option<Interval> {
    row.estimate.as_ref()?.interval
}

fn of<T, N: ToString>(part: Option<T>, value: impl FnOnce(T) -> N) -> String {
    shown(part.map(value))
}

fn shown(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// The kebab-case word of a stored enum.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

/// Untrusted text. A spreadsheet runs a cell that begins like a formula, so such a cell gets an
/// apostrophe in front (OWASP, "CSV Injection"); a log of GitHub Actions obeys a line that begins with
/// `::`, so that gets one too. The exact text is in the JSON report.
fn text(text: &str) -> String {
    let flat = clean(&text.replace(['\r', '\n'], " "));
    let obeyed = flat.trim_start().starts_with(['=', '+', '-', '@']) || flat.trim_start().starts_with("::");
    if obeyed { format!("'{flat}") } else { flat }
}
