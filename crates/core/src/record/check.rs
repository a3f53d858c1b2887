//! Checks that stored files share: metrics, times and days.

use std::collections::BTreeSet;

use crate::model::{Metric, is_date};

use super::error::wrong;
use super::{Number, RecordError};

/// The names of the metrics that a file describes. A file that calls latency a throughput would turn a
/// regression into an improvement.
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
                "{:?} is a built-in metric in {}, and the file describes it differently",
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

/// A duration that a clock can have measured.
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
