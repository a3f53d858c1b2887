//! A comparison as JSON, version 1, for programs.

use benchgate_core::model::SideName;
use benchgate_core::record::{
    ComparisonFile, ComparisonSchema, GeomeanRecord, MovedCode, Number, PolicyRecord, ReasonCode,
    ReasonRecord, RowRecord,
};
use benchgate_gate::{Comparison, Reason, Row, Typical};

use super::markup::json_for_logs;
use super::{View, words};

/// Renders a view as `benchgate/comparison/v1`. The same comparison gives the same bytes.
pub fn json(view: &View<'_>) -> String {
    // serde_json writes UTF-8, so nothing is lost here.
    let text = String::from_utf8(comparison_file(view).to_json())
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    json_for_logs(&text)
}

/// The stored form of a comparison.
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
        notes: comparison.notes.clone(),
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
        // The reasons of version 1 are fixed; `moved` distinguishes the two.
        Reason::Stability | Reason::Tail => ReasonCode::Stability,
        // The reasons of version 1 are fixed; the text distinguishes them.
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
    }
}
