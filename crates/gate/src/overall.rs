//! Combines rows into one verdict and one exit code.

use std::collections::BTreeSet;

use benchgate_core::exit_code::ExitCode;
use benchgate_core::model::{BenchmarkName, Metric, Verdict};
use benchgate_stats::Effect;

use super::{FailOn, Geomean, Interval, Reason, Row};

/// The exit codes in order of precedence.
const PRECEDENCE: [ExitCode; 6] = [
    ExitCode::Error,
    ExitCode::Diverged,
    ExitCode::Regressed,
    ExitCode::BaselineMissing,
    ExitCode::Inconclusive,
    ExitCode::Pass,
];

/// Returns the overall verdict, and its exit code if `fail_on` contains it.
///
/// A waived row still shows its verdict and counts as judged. If nothing fatal was judged, nothing can pass:
/// the overall verdict is *missing* if a benchmark of head or base has no partner, otherwise *error*.
pub fn overall(rows: &[Row], fail_on: &FailOn) -> (Verdict, ExitCode) {
    let waived = |row: &Row| row.waiver.as_ref().is_some_and(|waiver| !waiver.expired);
    let mut counted: Vec<Verdict> = rows.iter().filter(|row| row.fatal).map(|row| row.verdict).collect();
    if counted.is_empty() && !rows.iter().any(waived) {
        let lonely = rows.iter().any(|row| row.verdict == Verdict::Missing);
        counted.push(if lonely { Verdict::Missing } else { Verdict::Error });
    }
    let verdict = counted.iter().copied().max_by_key(|v| v.precedence()).unwrap_or(Verdict::Pass);
    let asked =
        |code: &ExitCode| counted.iter().any(|v| fail_on.0.contains(v) && ExitCode::for_verdict(*v) == *code);
    (verdict, PRECEDENCE.into_iter().find(asked).unwrap_or(ExitCode::Pass))
}

/// Returns the exit code of several comparisons together.
pub fn first_of(codes: impl Iterator<Item = ExitCode> + Clone) -> ExitCode {
    PRECEDENCE.into_iter().find(|code| codes.clone().any(|other| other == *code)).unwrap_or(ExitCode::Error)
}

/// Returns geometric means per target and metric over rows whose numbers can be used, in order of first
/// appearance. Benchmarks with wrong outputs are left out, because their speed has no meaning. The interval
/// is for these benchmarks, not for benchmarks in general: it includes the errors of the rows, but not the
/// spread between rows.
pub fn geomeans(rows: &[Row], effects: &[Option<Effect>], alpha: f64) -> Vec<Geomean> {
    let is_wrong = |row: &&Row| {
        matches!(row.reason, Reason::WrongOutput | Reason::WrongOutputOnBase | Reason::ExpectedFailure { .. })
    };
    let wrong: BTreeSet<&BenchmarkName> = rows.iter().filter(is_wrong).map(|row| &row.benchmark).collect();
    let usable = |row: &Row| {
        !matches!(row.reason, Reason::Unusable(_) | Reason::TooLittle(_)) && !wrong.contains(&row.benchmark)
    };
    let mut groups: Vec<Group> = Vec::new();
    for (row, effect) in rows.iter().zip(effects) {
        let Some(metric) = &row.metric else { continue };
        let is_of_row = |group: &Group| *group.target == row.target && group.metric == metric;
        let at = groups.iter().position(is_of_row).unwrap_or_else(|| {
            groups.push(Group { target: &row.target, metric, effects: Vec::new(), left_out: Vec::new() });
            groups.len() - 1
        });
        match effect {
            Some(effect) if usable(row) => groups[at].effects.push(*effect),
            _ => groups[at].left_out.push(row.benchmark.clone()),
        }
    }
    groups.retain(|group| !group.effects.is_empty());
    groups
        .into_iter()
        .map(|Group { target, metric, effects, left_out }| {
            let mean = mean_effect(&effects);
            let level = alpha / 2.0;
            Geomean {
                target: target.clone(),
                metric: metric.clone(),
                ratio: mean.center.exp(),
                interval: Some(Interval {
                    low: mean.lower(level).exp(),
                    high: mean.upper(level).exp(),
                    level: 1.0 - alpha,
                }),
                rows: effects.len() as u32,
                left_out,
            }
        })
        .collect()
}

/// The rows of one target and metric.
struct Group<'a> {
    target: &'a Option<String>,
    metric: &'a Metric,
    /// The effects of the rows whose numbers can be used.
    effects: Vec<Effect>,
    /// The benchmarks of the other rows.
    left_out: Vec<BenchmarkName>,
}

/// Returns the mean of independent effects, with Satterthwaite's degrees of freedom.
fn mean_effect(effects: &[Effect]) -> Effect {
    let n = effects.len() as f64;
    let variances = || effects.iter().map(|e| e.se * e.se);
    let total: f64 = variances().sum();
    let denominator: f64 = effects.iter().map(|e| e.se.powi(4) / e.df).sum();
    Effect {
        center: effects.iter().map(|e| e.center).sum::<f64>() / n,
        se: total.sqrt() / n,
        df: if denominator > 0.0 { total * total / denominator } else { f64::INFINITY },
    }
}
