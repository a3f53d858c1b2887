//! Reasons that forbid a pass for a run, and how formats without findings store them.

use benchgate_core::model::{
    Benchmark, BlockSlot, Consequence, Lint, LintCode, Metric, MetricSeries, Run, Series, Summary,
    Verification, VerifyCode,
};

use super::count_benchmarks;

/// A finding that forbids a pass, as a row for formats without findings.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RowMark {
    /// The benchmark can't be judged: a failed row.
    Failed(String),
    /// A skipped row among measured ones, which can neither pass nor regress.
    Skipped(String),
}

/// The worst finding about a benchmark or its whole run. Readers find by themselves that a process measured only once.
pub(super) fn mark(run: &Run, benchmark: &Benchmark) -> Option<RowMark> {
    let single = samples(benchmark, &Metric::LATENCY.name) == 1;
    let lints = benchmark.lints.iter().chain(&run.lints);
    worst(lints.filter(|lint| !(single && lint.code == LintCode::SingleRepetition)))
}

/// The worst of these findings, if one of them forbids a pass.
pub(super) fn worst<'a>(lints: impl Iterator<Item = &'a Lint> + Clone) -> Option<RowMark> {
    let worst = |consequence| {
        let found = lints.clone().find(|lint| lint.code.consequence() == consequence)?;
        Some(format!("{}: {}", found.code, found.detail))
    };
    worst(Consequence::Error)
        .map(RowMark::Failed)
        .or_else(|| worst(Consequence::Inconclusive).map(RowMark::Skipped))
}

/// A verification that fails its benchmark, if the format has no code for it.
pub(super) fn wrong_output(benchmark: &Benchmark) -> Option<RowMark> {
    let verification = benchmark.verification.as_ref()?;
    let code = verification.supported_code();
    let wrong = match code {
        VerifyCode::Pass | VerifyCode::NondeterministicEagerRun => false,
        VerifyCode::VerifierSkipped => verification.differs_from_base(),
        VerifyCode::Fail
        | VerifyCode::EagerFailed
        | VerifyCode::ExceptionRaised
        | VerifyCode::VerifierDidntRun => true,
    };
    let why = verification.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    wrong.then(|| RowMark::Failed(format!("verification {code}{why}")))
}

/// Evidence that only run.json holds and a verdict may depend on.
pub(super) fn only_in_run_json(run: &Run) -> Vec<String> {
    let any = |has: fn(&Benchmark) -> bool| run.benchmarks.iter().any(has);
    let facts = [
        ("what was executed", any(|benchmark| benchmark.artifact.is_some())),
        ("the pairing of processes", any(|benchmark| slots(benchmark).next().is_some())),
        ("the calibration", run.calibration.is_some()),
    ];
    facts.into_iter().filter(|(_, held)| *held).map(|(fact, _)| fact.to_owned()).collect()
}

/// The metrics that determine the verdict: latency, or all if there is none.
pub(super) fn deciding(benchmark: &Benchmark) -> impl Iterator<Item = &MetricSeries> {
    let timed = benchmark.metric(&Metric::LATENCY.name).is_some();
    benchmark.metrics.iter().filter(move |series| !timed || series.metric.name == Metric::LATENCY.name)
}

/// The loss in formats that keep only repetitions.
pub(super) fn spread_of_summaries(run: &Run) -> Option<String> {
    // A mean alone shows no skew; together with a median it does.
    let has_spread =
        |it: &Summary| [it.mean, it.median, it.stddev, it.min, it.max].iter().flatten().count() > 1;
    let lossy = |benchmark: &Benchmark| {
        deciding(benchmark)
            .any(|it| matches!(&it.series, Series::Summaries(all) if all.iter().any(has_spread)))
    };
    let (count, first) = count_benchmarks(run, lossy)?;
    let of = if count == 1 { first.to_owned() } else { format!("{count} benchmarks (the first is {first})") };
    Some(format!("the spread that the summaries of {of} state"))
}

/// Whether a benchmark was measured and would be a failed row of a format in which every row has a latency.
pub(super) fn has_untimed(run: &Run) -> bool {
    run.benchmarks.iter().any(|it| {
        let latency = it.metric(&Metric::LATENCY.name).map(|latency| &latency.series);
        it.outcome.is_ok() && !it.metrics.is_empty() && matches!(latency, None | Some(Series::Exact(_)))
    })
}

/// Outputs that were proved right: the other side may be one that did not prove them.
pub(super) fn is_verified(benchmark: &Benchmark) -> bool {
    benchmark.verification.as_ref().map(Verification::supported_code) == Some(VerifyCode::Pass)
}

fn slots(benchmark: &Benchmark) -> impl Iterator<Item = BlockSlot> {
    let processes = benchmark.metrics.iter().filter_map(|metric| match &metric.series {
        Series::Processes(processes) => Some(processes),
        Series::Summaries(_) | Series::Exact(_) => None,
    });
    processes.flatten().filter_map(|process| process.slot)
}

/// Values of a metric over all processes.
fn samples(benchmark: &Benchmark, metric: &str) -> usize {
    match benchmark.metric(metric).map(|metric| &metric.series) {
        Some(Series::Processes(processes)) => processes.iter().map(|process| process.samples.len()).sum(),
        Some(Series::Summaries(summaries)) => summaries.len(),
        Some(Series::Exact(_)) => 1,
        None => 0,
    }
}
