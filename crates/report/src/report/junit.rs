//! A comparison as JUnit XML, for the dashboards that read it.

use std::fmt::Write as _;

use benchgate_core::model::Verdict;
use benchgate_gate::Row;

use super::markup::escape;
use super::{RowView, View, words};

/// Renders a view as one test suite with one test case a row that decides: a row that fails the gate
/// is a failure, one that can't be judged an error, an open one is skipped, never passed.
pub fn junit(view: &View<'_>) -> String {
    let sections = [&view.changed, &view.open, &view.diverged, &view.failed, &view.unchanged];
    let rows: Vec<&Row> = sections.into_iter().flatten().map(|row| row.row).collect();
    let count = |kind: CaseKind| rows.iter().filter(|row| CaseKind::from_row(view, row) == kind).count();
    let suite = view.comparison.suite.as_deref().unwrap_or("benchgate");
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a String can't fail.
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
