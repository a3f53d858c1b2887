//! Findings that forbid a pass for a run, and how formats without findings store them.

use benchgate_core::model::{
    Benchmark, BlockSlot, Consequence, Lint, LintCode, Metric, MetricSeries, Run, Series, Summary,
    Verification, VerifyCode,
};

use super::affected_benchmarks;

/// The row for a finding that forbids a pass, in formats without findings.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RowMark {
    /// A failed row: the benchmark can't be judged.
    Failed(String),
    /// A skipped row among measured ones, which can neither pass nor regress.
    Skipped(String),
}

/// Returns the worst finding about a benchmark or its whole run. That a process was measured only once is not
/// included, because readers detect it themselves.
pub(super) fn mark(run: &Run, benchmark: &Benchmark) -> Option<RowMark> {
    let single = samples(benchmark, &Metric::LATENCY.name) == 1;
    let lints = benchmark.lints.iter().chain(&run.lints);
    worst(lints.filter(|lint| !(single && lint.code == LintCode::SingleRepetition)))
}

/// Returns the worst of these findings, if one of them forbids a pass.
pub(super) fn worst<'a>(lints: impl Iterator<Item = &'a Lint> + Clone) -> Option<RowMark> {
    let worst = |consequence| {
        let found = lints.clone().find(|lint| lint.code.consequence() == consequence)?;
        Some(format!("{}: {}", found.code, found.detail))
    };
    worst(Consequence::Error)
        .map(RowMark::Failed)
        .or_else(|| worst(Consequence::Inconclusive).map(RowMark::Skipped))
}

/// Returns the verification result that fails a benchmark, for a format that has no code for it.
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

/// Returns the evidence that only run.json can store and on which a verdict may depend.
pub(super) fn only_in_run_json(run: &Run) -> Vec<String> {
    let any = |has: fn(&Benchmark) -> bool| run.benchmarks.iter().any(has);
    let facts = [
        ("what was executed", any(|benchmark| benchmark.artifact.is_some())),
        ("the pairing of processes", any(|benchmark| slots(benchmark).next().is_some())),
        ("the calibration", run.calibration.is_some()),
    ];
    facts.into_iter().filter(|(_, held)| *held).map(|(fact, _)| fact.to_owned()).collect()
}

/// Returns the metrics that determine the verdict: latency or, without one, all of them.
pub(super) fn deciding(benchmark: &Benchmark) -> impl Iterator<Item = &MetricSeries> {
    let timed = benchmark.metric(&Metric::LATENCY.name).is_some();
    benchmark.metrics.iter().filter(move |series| !timed || series.metric.name == Metric::LATENCY.name)
}

/// Describes the loss in formats that only store repetitions.
pub(super) fn spread_of_summaries(run: &Run) -> Option<String> {
    // A mean alone shows no skew, but a mean and a median do.
    let has_spread =
        |it: &Summary| [it.mean, it.median, it.stddev, it.min, it.max].iter().flatten().count() > 1;
    let lossy = |benchmark: &Benchmark| {
        deciding(benchmark)
            .any(|it| matches!(&it.series, Series::Summaries(all) if all.iter().any(has_spread)))
    };
    let which = affected_benchmarks(run, lossy)?;
    Some(format!("the spread in the summaries of {which}"))
}

/// Returns whether a benchmark was measured but would be a failed row in a format in which every row has a
/// latency.
pub(super) fn has_untimed(run: &Run) -> bool {
    run.benchmarks.iter().any(|it| {
        let latency = it.metric(&Metric::LATENCY.name).map(|latency| &latency.series);
        it.outcome.is_ok() && !it.metrics.is_empty() && matches!(latency, None | Some(Series::Exact(_)))
    })
}

/// Returns whether the outputs were shown to be right. The other side of a comparison may not have shown
/// this.
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

/// Returns the number of values of a metric in all processes.
fn samples(benchmark: &Benchmark, metric: &str) -> usize {
    match benchmark.metric(metric).map(|metric| &metric.series) {
        Some(Series::Processes(processes)) => processes.iter().map(|process| process.samples.len()).sum(),
        Some(Series::Summaries(summaries)) => summaries.len(),
        Some(Series::Exact(_)) => 1,
        None => 0,
    }
}
