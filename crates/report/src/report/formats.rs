//! Renders a comparison for programs: JSON (version 1), CSV for spreadsheets, JUnit XML for dashboards.

use std::fmt::Write as _;

use benchgate_core::model::{SideName, Unit, Verdict};
use benchgate_core::record::{
    ComparisonFile, ComparisonSchema, GeomeanRecord, MovedCode, Number, PolicyRecord, ReasonCode,
    ReasonRecord, RowRecord,
};
use benchgate_gate::{Comparison, Interval, Reason, Row, Typical};

use super::document::{escape, json_for_logs};
use super::view::unit;
use super::{RowView, View, clean, words};

/// Renders a view as `benchgate/comparison/v1`. Equal comparisons give equal bytes.
pub fn json(view: &View<'_>) -> String {
    // serde_json writes UTF-8, so the fallback is never used.
    let text = String::from_utf8(comparison_file(view).to_json())
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    json_for_logs(&text)
}

/// Returns the stored form of a comparison.
pub fn comparison_file(view: &View<'_>) -> ComparisonFile {
    let comparison: &Comparison = view.comparison;
    let policy = &comparison.policy;
    ComparisonFile {
        schema: ComparisonSchema,
        benchgate: benchgate_core::VERSION.to_owned(),
        suite: comparison.suite.clone(),
        verdict: comparison.verdict,
        exit_code: comparison.exit_code.code(),
        headline: view.headline.clone(),
        base: comparison.base.clone(),
        head: comparison.head.clone(),
        rows: comparison.rows.iter().map(row).collect(),
        geomeans: comparison
            .geomeans
            .iter()
            .map(|geomean| GeomeanRecord {
                target: geomean.target.clone(),
                metric: geomean.metric.name.to_string(),
                ratio: Number(geomean.ratio),
                interval: geomean.interval,
                rows: geomean.rows,
            })
            .collect(),
        policy: PolicyRecord {
            alpha: Number(policy.alpha),
            test: policy.test.as_str().to_owned(),
            fail_on: policy.fail_on.0.to_vec(),
            between_cv: policy.between_cv.map(Number),
        },
        lints: comparison.lints.to_vec(),
        notes: comparison.notes.iter().chain(&comparison.method).cloned().collect(),
    }
}

fn row(row: &Row) -> RowRecord {
    RowRecord {
        benchmark: row.benchmark.to_string(),
        metric: row.metric.clone(),
        target: row.target.clone(),
        verdict: row.verdict,
        reason: reason(row),
        fatal: row.fatal,
        estimate: row.estimate.clone(),
        base: row.base.clone(),
        head: row.head.clone(),
        typical: (row.typical != Typical::WITHHELD).then_some(row.typical),
        floor: row.policy.as_ref().map(|policy| policy.floor),
        tolerance: row.policy.as_ref().map(|policy| Number(policy.tolerance)),
        base_verification: row.base_verification.clone(),
        head_verification: row.head_verification.clone(),
        lints: row.lints.to_vec(),
        waiver: row.waiver.clone(),
    }
}

fn reason(row: &Row) -> ReasonRecord {
    let words = words::reason(row);
    let side = match &row.reason {
        Reason::OnlyOn(side) | Reason::MetricOnlyOn(side) => Some(*side),
        Reason::FailsAtHead { .. } | Reason::WrongOutput => Some(SideName::Head),
        Reason::FailsAtBase { .. } | Reason::WrongOutputOnBase => Some(SideName::Base),
        _ => None,
    };
    let moved = match &row.reason {
        Reason::BeyondFloor | Reason::BelowFloor => Some(MovedCode::Typical),
        Reason::Stability => Some(MovedCode::Stability),
        Reason::Tail => Some(MovedCode::Tail),
        _ => None,
    };
    ReasonRecord { code: code(&row.reason), text: words.sentence, detail: words.detail, side, moved }
}

pub(super) fn code(reason: &Reason) -> ReasonCode {
    match reason {
        Reason::BeyondFloor => ReasonCode::BeyondFloor,
        Reason::BelowFloor => ReasonCode::BelowFloor,
        Reason::WithinTolerance => ReasonCode::WithinTolerance,
        Reason::Open => ReasonCode::Open,
        Reason::Identical => ReasonCode::Identical,
        // Version 1 has a fixed set of reasons; `moved` distinguishes these two.
        Reason::Stability | Reason::Tail => ReasonCode::Stability,
        // Version 1 has a fixed set of reasons; the text distinguishes these two.
        Reason::Exact | Reason::Verified => ReasonCode::Exact,
        Reason::ExpectedFailure { .. } => ReasonCode::FailsOnBoth,
        Reason::OnlyOn(_) => ReasonCode::OnlyOn,
        Reason::MetricOnlyOn(_) => ReasonCode::MetricOnlyOn,
        Reason::FailsAtHead { .. } => ReasonCode::FailsAtHead,
        Reason::FailsAtBase { .. } => ReasonCode::FailsAtBase,
        Reason::FailsOnBoth { .. } => ReasonCode::FailsOnBoth,
        Reason::NotMeasured(_) => ReasonCode::NotMeasured,
        Reason::WrongOutput => ReasonCode::WrongOutput,
        Reason::WrongOutputOnBase => ReasonCode::WrongOutputOnBase,
        Reason::Unusable(_) => ReasonCode::Unusable,
        Reason::TooLittle(_) => ReasonCode::TooLittle,
        Reason::UnitMismatch { .. } => ReasonCode::UnitMismatch,
        // Version 1 has a fixed set of reasons; the finding `limit-exceeded` and the text identify this one.
        Reason::Limit(_) => ReasonCode::BeyondFloor,
    }
}

/// A column's name, and the function that returns its text for a row.
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
    ("p_worse", |row, _| probability(row.estimate.as_ref().and_then(|estimate| estimate.p_worse))),
    ("p_adjusted", |row, _| probability(row.estimate.as_ref().and_then(|estimate| estimate.p_adjusted))),
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
    // Writing to memory can't fail, and every record has as many fields as the header.
    drop(writer.write_record(COLUMNS.map(|(name, _)| name)));
    for (row, record) in view.comparison.rows.iter().zip(&comparison_file(view).rows) {
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

/// Writes a probability, which may have dozens of zeros after its point, with an exponent.
fn probability(value: Option<f64>) -> String {
    value.map(|value| if value < 1e-4 { format!("{value:e}") } else { value.to_string() }).unwrap_or_default()
}

/// Returns the kebab-case name of a stored enum.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

/// Makes untrusted text safe. A spreadsheet executes a cell that begins like a formula, so such a cell gets
/// an apostrophe in front (OWASP, "CSV Injection"). A cell that begins with `::` gets one too, because a log
/// of GitHub Actions would execute the line. The exact text is in the JSON report.
fn text(text: &str) -> String {
    let flat = clean(&text.replace(['\r', '\n'], " "));
    let obeyed = flat.trim_start().starts_with(['=', '+', '-', '@']) || flat.trim_start().starts_with("::");
    if obeyed { format!("'{flat}") } else { flat }
}

/// Renders a view as one test suite with a test case for each row that decides. A row that fails the gate is
/// a failure, one that can't be judged is an error, and an open one is skipped, never passed.
pub fn junit(view: &View<'_>) -> String {
    let sections = [&view.changed, &view.open, &view.diverged, &view.failed, &view.unchanged];
    let rows: Vec<&Row> = sections.into_iter().flatten().map(|row| row.row).collect();
    let count = |kind: CaseKind| rows.iter().filter(|row| CaseKind::from_row(view, row) == kind).count();
    let suite = view.comparison.suite.as_deref().unwrap_or("benchgate");
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a `String` can't fail.
    let _ = writeln!(
        text,
        "<testsuites><testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">",
        escape(suite),
        rows.len(),
        count(CaseKind::Failure),
        count(CaseKind::Error),
        count(CaseKind::Skipped)
    );
    for row in &rows {
        let metric = row.metric.as_ref().map(|metric| metric.name.as_ref()).unwrap_or("benchmark");
        let words = words::reason(row);
        let effect = RowView::new(row).effect().map(|effect| format!("{effect}: ")).unwrap_or_default();
        let message = escape(&format!("{}: {effect}{}", row.verdict, words.sentence));
        let detail = escape(words.detail.as_deref().unwrap_or_default());
        let case =
            format!("<testcase classname=\"{}\" name=\"{}\"", escape(row.benchmark.as_str()), escape(metric));
        let _ = match CaseKind::from_row(view, row) {
            CaseKind::Passed => writeln!(text, "{case}/>"),
            CaseKind::Failure => {
                writeln!(text, "{case}><failure message=\"{message}\">{detail}</failure></testcase>")
            }
            CaseKind::Error => {
                writeln!(text, "{case}><error message=\"{message}\">{detail}</error></testcase>")
            }
            CaseKind::Skipped => writeln!(text, "{case}><skipped message=\"{message}\"/></testcase>"),
        };
    }
    text.push_str("</testsuite></testsuites>\n");
    text
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CaseKind {
    Passed,
    Failure,
    Error,
    Skipped,
}

impl CaseKind {
    fn from_row(view: &View<'_>, row: &Row) -> Self {
        let fails = row.fatal && view.comparison.policy.fail_on.0.contains(&row.verdict);
        match row.verdict {
            Verdict::Pass | Verdict::Improved => Self::Passed,
            Verdict::Error if fails => Self::Error,
            _ if fails => Self::Failure,
            _ => Self::Skipped,
        }
    }
}
