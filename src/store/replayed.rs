//! Finds sessions that were stored before, under another name or commit. Such a copy is not a measurement: it would
//! show that a change has no effect.

use std::collections::BTreeSet;

use crate::model::{MetricKind, MetricSeries, Run, Series, Summary};

/// Number of different fractions that two sessions don't have in common by chance, in one order.
const ENOUGH: usize = 8;

/// Describes the benchmark of a session of which a stored session has exactly the values.
pub(super) fn replayed<'a>(session: &Run, stored: impl IntoIterator<Item = &'a Run>) -> Option<String> {
    let measured = session.benchmarks.iter().flat_map(|benchmark| {
        let noisy = benchmark.metrics.iter().filter(|series| series.metric.kind == MetricKind::Noisy);
        noisy.map(move |series| (benchmark, series, values(series)))
    });
    let telling: Vec<_> = measured.filter(|(.., values)| is_telling(values)).collect();
    stored.into_iter().find_map(|stored| {
        let known = stored.by_name();
        let (benchmark, series, _) = telling.iter().find(|(benchmark, series, ours)| {
            let theirs = known.get(&benchmark.name).and_then(|known| known.metric(&series.metric.name));
            theirs.is_some_and(|theirs| values(theirs) == *ours)
        })?;
        Some(format!(
            "its values of {} ({}) are exactly those of {}, so one of the two was not measured",
            benchmark.name, series.metric.name, stored.origin.label
        ))
    })
}

/// Returns the bits of the values that a stored session keeps of each process.
fn values(series: &MetricSeries) -> Vec<u64> {
    let Series::Summaries(summaries) = &series.series else { return Vec::new() };
    let of_process = |it: &Summary| [it.median, it.q1, it.q3, it.stddev, it.min, it.max];
    summaries.iter().flat_map(of_process).flatten().map(f64::to_bits).collect()
}

/// Returns whether equal values are not chance: sizes and counts repeat, and so do the times of a coarse clock or a
/// simulator.
fn is_telling(values: &[u64]) -> bool {
    let fractions = values.iter().filter(|bits| f64::from_bits(**bits).fract() != 0.0);
    fractions.collect::<BTreeSet<_>>().len() >= ENOUGH
}
