//! Errors when reading a stored file, and the checks that stored files share.

use std::collections::BTreeSet;

use crate::model::{Metric, is_date};

use super::Number;

/// The reason why bytes are not a usable record. Each message is a fragment that fits "failed to read PATH:
/// …".
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The bytes end before the document does.
    #[error("line {line}, column {column}: the file ends in the middle; it is truncated")]
    Truncated { line: usize, column: usize },
    /// The bytes are not JSON.
    #[error("line {line}, column {column}: not JSON: {what}")]
    Syntax { line: usize, column: usize, what: String },
    /// The JSON does not have the record's shape.
    #[error("line {line}, column {column}: {what}")]
    Shape { line: usize, column: usize, what: String },
    /// The record has a version that this program does not know.
    #[error("the file has schema {found:?} and this benchgate reads {known:?}; {need}")]
    Version { found: String, known: &'static str, need: String },
    /// The shape is right, but the content contradicts itself. `at` is the path inside the document.
    #[error("{at}: {what}")]
    Inconsistent { at: String, what: String },
    /// A Parquet file is damaged, has another shape, or contradicts itself.
    #[error("not a usable Parquet file: {0}")]
    Parquet(String),
    /// The records would take several times the file's size in memory.
    #[error(
        "it has too many small records for a file of {mebibytes} MiB: reading them would take several times as much memory"
    )]
    TooDense { mebibytes: usize },
}

/// Returns the error for a contradiction at this path inside the document.
pub(super) fn wrong(at: impl Into<String>, what: impl Into<String>) -> RecordError {
    RecordError::Inconsistent { at: at.into(), what: what.into() }
}

impl RecordError {
    /// Returns line and column, counted from 1, if the error has a position.
    pub fn place(&self) -> Option<(usize, usize)> {
        match *self {
            Self::Truncated { line, column }
            | Self::Syntax { line, column, .. }
            | Self::Shape { line, column, .. } => Some((line, column)),
            Self::Version { .. } | Self::Inconsistent { .. } | Self::Parquet(_) | Self::TooDense { .. } => {
                None
            }
        }
    }

    pub(super) fn from_json(error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        // The position has its own field, but serde_json repeats it at the end of its message.
        let text = error.to_string();
        let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what).to_owned();
        match error.classify() {
            serde_json::error::Category::Eof => Self::Truncated { line, column },
            serde_json::error::Category::Syntax | serde_json::error::Category::Io => {
                Self::Syntax { line, column, what }
            }
            serde_json::error::Category::Data => Self::Shape { line, column, what },
        }
    }
}

/// Returns the names of the metrics that a file describes. A file that calls latency a throughput would turn
/// a regression into an improvement, so a built-in metric must be described correctly.
pub(super) fn described(metrics: &[Metric]) -> Result<BTreeSet<&str>, RecordError> {
    let mut names = BTreeSet::new();
    for metric in metrics {
        if !names.insert(metric.name.as_ref()) {
            return Err(wrong("metrics", format!("{:?} is described twice", metric.name)));
        }
        if let Some(known) = Metric::built_in(&metric.name)
            && known != *metric
        {
            let what = format!(
                "the built-in metric {:?} has the unit {}, but the file describes it differently",
                metric.name, known.unit
            );
            return Err(wrong("metrics", what));
        }
    }
    Ok(names)
}

pub(super) fn known_metric(at: &str, name: &str, metrics: &BTreeSet<&str>) -> Result<(), RecordError> {
    if metrics.contains(name) {
        Ok(())
    } else {
        Err(wrong(at, format!("{name:?} is not described in metrics")))
    }
}

pub(super) fn timestamp(at: &str, text: &str) -> Result<jiff::Timestamp, RecordError> {
    text.parse().map_err(|_| wrong(at, format!("expected an RFC 3339 time, found {text:?}")))
}

/// Checks that a clock can have measured this duration.
pub(super) fn duration(at: &str, Number(seconds): Number) -> Result<(), RecordError> {
    if seconds.is_finite() && seconds >= 0.0 {
        Ok(())
    } else {
        Err(wrong(at, format!("expected a duration, found {seconds} seconds")))
    }
}

pub(super) fn date(at: &str, text: &str) -> Result<(), RecordError> {
    if is_date(text) { Ok(()) } else { Err(wrong(at, format!("expected a day, YYYY-MM-DD, found {text:?}"))) }
}
