//! Converts a run to a baseline file, with one summary per process.

use std::collections::{BTreeMap, BTreeSet};

use benchgate_core::model::{Anchor, Benchmark, BenchmarkName, Better, Metric, Series, SideName};
use benchgate_core::record::{
    AnchoredRecord, BaselineBenchmark, BaselineFile, BaselineProcess, BaselineSchema, BenchmarkRecord,
    Number, ProcessRecord, QuarantineRecord, RunFile, SummaryRecord, ValueRecord,
};
use benchgate_stats::describe;

/// Number of significant digits kept of a measured time. Clocks are accurate to six or seven.
const DIGITS: usize = 9;

/// Converts one side of a run to a baseline file, with its hash. `None` if the run has no such side.
pub fn summarise(
    run: &RunFile,
    side: SideName,
    anchor: Option<&Anchor>,
    quarantine: Vec<QuarantineRecord>,
) -> Option<BaselineFile> {
    let record = run.side(side)?;
    let (_, words) = run.runs("").into_iter().find(|(name, _)| *name == side)?;
    let mut metrics: Vec<Metric> = Vec::new();
    for series in words.benchmarks.iter().flat_map(|benchmark| &benchmark.metrics) {
        if metrics.iter().all(|known| known.name != series.metric.name) {
            metrics.push(series.metric.clone());
        }
    }
    let better: BTreeMap<&str, Better> =
        metrics.iter().map(|metric| (metric.name.as_ref(), metric.better)).collect();
    let benchmarks = record.benchmarks.iter().zip(&words.benchmarks);
    let benchmarks = benchmarks.map(|(record, words)| BaselineBenchmark {
        anchored: anchor.and_then(|anchor| anchored(anchor, &words.name)),
        ..benchmark(record, words, &better)
    });
    let benchmarks = benchmarks.collect();
    let mut lints = run.lints.clone();
    lints.extend(words.context.debug_build());
    let mut file = BaselineFile {
        schema: BaselineSchema,
        benchgate: run.benchgate.clone(),
        sha256: String::new(),
        suite: run.suite.clone(),
        session: run.session.clone(),
        created: run.created.clone(),
        commit: record.commit.clone(),
        testbed: run.testbed.clone(),
        toolchain: record.toolchain.clone(),
        anchor: anchor.map(|anchor| anchor.toolchain.clone()),
        quarantine,
        metrics,
        benchmarks,
        lints,
    };
    file.seal();
    Some(file)
}

/// The ratios of one benchmark to the reference toolchain. `None` if the artifacts of the reference are
/// unknown, because these ratios could then not be compared with other sessions' ratios.
fn anchored(anchor: &Anchor, name: &BenchmarkName) -> Option<AnchoredRecord> {
    let artifact = anchor.artifacts.get(name)?.clone();
    let ratios = anchor.ratios.iter().filter(|((benchmark, _), _)| benchmark == name);
    let ratios = ratios.map(|((_, metric), ratio)| (metric.clone(), Number(rounded(*ratio)))).collect();
    Some(AnchoredRecord { artifact, ratios })
}

fn benchmark(
    record: &BenchmarkRecord,
    words: &Benchmark,
    better: &BTreeMap<&str, Better>,
) -> BaselineBenchmark {
    let worked = record.processes.iter().filter(|process| process.failure.is_none());
    let processes: Vec<BaselineProcess> = worked.map(|record| process(record, better)).collect();
    let sampled: BTreeSet<&str> =
        processes.iter().flat_map(|process| process.summaries.keys().map(String::as_str)).collect();
    let values = words.metrics.iter().filter(|series| !sampled.contains(series.metric.name.as_ref()));
    let values = values.filter_map(|series| {
        let value = match &series.series {
            Series::Exact(value) => *value,
            Series::Processes(processes) => rounded(*processes.first()?.samples.first()?),
            Series::Summaries(_) => return None,
        };
        Some(ValueRecord { metric: series.metric.name.to_string(), value: Number(value) })
    });
    let codes: BTreeSet<_> = record.lints.iter().map(|lint| lint.code).collect();
    BaselineBenchmark {
        name: record.name.clone(),
        labels: words.labels.clone(),
        outcome: record.outcome.clone(),
        artifact: record.artifact.clone(),
        verification: record.verification.as_ref().map(|verification| verification.code),
        sketches: record.verification.as_ref().and_then(|verification| verification.sketches.clone()),
        values: values.collect(),
        processes,
        anchored: None,
        lints: codes.into_iter().collect(),
    }
}

fn process(record: &ProcessRecord, better: &BTreeMap<&str, Better>) -> BaselineProcess {
    let mut state = BTreeMap::new();
    if let Some(load) = record.load_avg.first() {
        state.insert("load-1m".to_owned(), Number(*load));
    }
    let mut summaries = BTreeMap::new();
    for (metric, samples) in record.samples.iter() {
        let better = better.get(metric).copied().unwrap_or(Better::Lower);
        summaries.extend(summary(samples, better).map(|summary| (metric.to_owned(), summary)));
    }
    if let Some(bytes) = record.peak_memory_bytes {
        let summary =
            SummaryRecord { n: 1, median: Number(bytes as f64), undisturbed: None, stddev: None, min: None };
        summaries.entry(Metric::PEAK_HOST_MEMORY.name.into_owned()).or_insert(summary);
    }
    BaselineProcess { state, summaries }
}

fn summary(samples: &[f64], better: Better) -> Option<SummaryRecord> {
    let sorted = describe::sorted(samples);
    let quartile = if better == Better::Higher { 0.75 } else { 0.25 };
    let several = samples.len() > 1;
    let kept = |value: Option<f64>| value.filter(|_| several).map(|value| Number(rounded(value)));
    Some(SummaryRecord {
        n: samples.len() as u64,
        median: Number(rounded(describe::quantile_sorted(&sorted, 0.5)?)),
        undisturbed: kept(describe::quantile_sorted(&sorted, quartile)),
        stddev: kept(describe::stddev(samples)),
        min: kept(sorted.first().copied()),
    })
}

/// Rounds to [`DIGITS`] significant digits. Whole numbers stay unchanged, because sizes and counts are
/// compared exactly.
fn rounded(value: f64) -> f64 {
    if !value.is_finite() || value.fract() == 0.0 {
        return value;
    }
    format!("{value:.*e}", DIGITS - 1).parse().unwrap_or(value)
}
