//! A comparison as CSV, one line a row, for spreadsheets and scripts.

use benchgate_gate::SideStats;

use super::{View, clean, json, view::unit, words};

/// The columns. New ones are added at the end.
const HEADER: [&str; 33] = [
    "benchmark",
    "metric",
    "unit",
    "target",
    "verdict",
    "reason",
    "fatal",
    "ratio",
    "interval_low",
    "interval_high",
    "interval_level",
    "p_worse",
    "p_adjusted",
    "method",
    "blocks",
    "minimum_detectable",
    "floor",
    "tolerance",
    "base_processes",
    "base_samples",
    "base_location",
    "base_mean",
    "base_stddev",
    "base_cv",
    "head_processes",
    "head_samples",
    "head_location",
    "head_mean",
    "head_stddev",
    "head_cv",
    "why",
    "base_typical",
    "head_typical",
];

/// Renders a view as CSV with a header line. Numbers are plain, in the unit of their row.
pub fn csv(view: &View<'_>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut write = |fields: &[String]| {
        // Memory has no IO errors, and every record has the header's length.
        drop(writer.write_record(fields));
    };
    write(&HEADER.map(str::to_owned));
    let file = json::comparison_file(view);
    for (row, record) in view.comparison.rows.iter().zip(&file.rows) {
        let estimate = row.estimate.as_ref();
        let interval = estimate.and_then(|estimate| estimate.interval);
        let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        let reason = words::reason(row);
        let why = match reason.detail {
            Some(detail) => format!("{}: {detail}", reason.sentence),
            None => reason.sentence,
        };
        let mut fields = vec![
            text(row.benchmark.as_str()),
            text(row.metric.as_ref().map(|metric| metric.name.as_ref()).unwrap_or_default()),
            text(unit(row).map(benchgate_core::model::Unit::as_str).unwrap_or_default()),
            text(row.target.as_deref().unwrap_or_default()),
            row.verdict.to_string(),
            word(&record.reason.code),
            row.fatal.to_string(),
            number(estimate.map(|estimate| estimate.ratio)),
            number(interval.map(|interval| interval.low)),
            number(interval.map(|interval| interval.high)),
            number(interval.map(|interval| interval.level)),
            number(estimate.and_then(|estimate| estimate.p_worse)),
            number(estimate.and_then(|estimate| estimate.p_adjusted)),
            record.estimate.as_ref().map(|estimate| word(&estimate.method)).unwrap_or_default(),
            estimate.map(|estimate| estimate.blocks.to_string()).unwrap_or_default(),
            number(estimate.and_then(|estimate| estimate.minimum_detectable)),
            number(row.policy.as_ref().map(|policy| policy.floor.relative)),
            number(row.policy.as_ref().map(|policy| policy.tolerance)),
        ];
        for side in [&row.base, &row.head] {
            let value = |value: fn(&SideStats) -> Option<f64>| number(side.as_ref().and_then(value));
            fields.push(side.as_ref().map(|side| side.processes.to_string()).unwrap_or_default());
            fields.push(side.as_ref().map(|side| side.samples.to_string()).unwrap_or_default());
            fields.push(value(|side| Some(side.location)));
            fields.push(value(|side| Some(side.mean)));
            fields.push(value(|side| side.stddev));
            fields.push(value(|side| side.cv));
        }
        fields.push(text(&why));
        fields.extend([row.typical.base, row.typical.head].map(number));
        write(&fields);
    }
    String::from_utf8_lossy(&writer.into_inner().unwrap_or_default()).into_owned()
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
