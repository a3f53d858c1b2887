//! The row for the common shift in a comparison with stored sessions.

use benchgate_core::model::{BenchmarkName, Metric, MetricSeries, Series, Summary, Verdict};

use super::draft::{ComparedSession, Draft, Open, blank};
use super::evidence::Evidence;
use super::matching::Matched;
use super::rules::Rules;
use super::{Estimate, Method, Reason, context, history, series};

/// The name of the row. No benchmark can have it, because names of benchmarks are not in parentheses.
pub const ALL_BENCHMARKS: &str = "(all benchmarks)";

/// Returns the draft of the common row, if a common shift was removed from the others. The row is judged like
/// latency: a change that slows down everything is visible only here.
pub fn draft(session: &ComparedSession<'_>, rules: &Rules<'_>) -> Option<Draft> {
    let metric = Metric::LATENCY;
    let sessions = session.history.as_ref()?;
    let gpu = session.head.benchmarks.iter().any(context::on_gpu);
    let evidence = history::gather_common(sessions, &metric.name, gpu)?;
    let Evidence::History { stored, now, .. } = &evidence else { return None };
    let readings = |shifts: &[f64]| {
        let one = |shift: &f64| Summary { n: Some(1), median: Some(shift.exp()), ..Summary::default() };
        let series = Series::Summaries(shifts.iter().map(one).collect());
        series::read(&MetricSeries { metric: Metric::LATENCY, series }).ok()
    };
    let (base, head) = (readings(stored)?, readings(&[*now])?);
    let name = BenchmarkName::new(ALL_BENCHMARKS);
    let rule = rules.metric(&name, &metric);
    let nothing = Matched { base: None, head: None };
    let mut row = blank(&name, nothing, Verdict::Inconclusive, Reason::Open, rule.fatal);
    // The metric has a separate name, because its spread comes from days and chips and says nothing about the
    // spread of a row.
    row.metric = Some(Metric { name: "common-latency".into(), ..metric });
    row.policy = Some(rule.clone());
    row.estimate = Some(Estimate::unjudged(Method::History, head.stats.location / base.stats.location));
    let open = Open {
        evidence,
        forbidden: session.forbidden.clone(),
        worse: 1.0,
        floor: rule.floor.relative.max(0.0).ln_1p(),
        rule,
        readings: Some([base, head]),
    };
    Some(Draft { row, open: Some(Box::new(open)) })
}
