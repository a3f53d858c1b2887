//! From a file of a baseline to the words of the model.

use std::collections::BTreeMap;

use crate::model::{
    Anchor, Artifact, Benchmark, BenchmarkName, Lint, Metric, MetricKind, MetricSeries, Origin, Outcome, Run,
    Series, Summary, Toolchain, Verification,
};

use super::{BaselineBenchmark, BaselineFile, BaselineSchema, SummaryRecord};

impl BaselineFile {
    /// The session as a [`Run`]. `label` is how the reader names the file.
    pub fn run(&self, label: &str) -> Run {
        Run {
            suite: Some(self.suite.clone()),
            session: Some(self.session.clone()),
            origin: Origin { format: BaselineSchema::NAME.to_owned(), label: label.to_owned() },
            testbed: Some(self.testbed.clone()),
            toolchain: self.toolchain.clone(),
            commit: self.commit.clone(),
            benchmarks: self.benchmarks.iter().map(|record| words(record, &self.metrics)).collect(),
            anchor: self.anchor.clone().map(|toolchain| anchor(toolchain, &self.benchmarks)),
            lints: self.lints.to_vec(),
            ..Run::default()
        }
    }
}

fn anchor(toolchain: Toolchain, benchmarks: &[BaselineBenchmark]) -> Anchor {
    let mut anchor = Anchor { toolchain, ..Anchor::default() };
    for (benchmark, record) in benchmarks.iter().filter_map(|it| Some((it, it.anchored.as_ref()?))) {
        let name = BenchmarkName::new(&benchmark.name);
        let ratios = record.ratios.iter();
        anchor.ratios.extend(ratios.map(|(metric, ratio)| ((name.clone(), metric.clone()), ratio.0)));
        anchor.artifacts.insert(name, record.artifact.clone());
    }
    anchor
}

fn words(record: &BaselineBenchmark, metrics: &[Metric]) -> Benchmark {
    let metrics = metrics.iter().filter_map(|metric| {
        Some(MetricSeries { series: series(record, &metric.name, metric.kind)?, metric: metric.clone() })
    });
    Benchmark {
        name: BenchmarkName::new(&record.name),
        labels: record.labels.clone(),
        outcome: Outcome::from(&record.outcome),
        metrics: metrics.collect(),
        artifact: record.artifact.as_ref().map(Artifact::from),
        verification: record.verification.map(|code| Verification::bare(code, None)),
        lints: record.lints.iter().map(|code| Lint::new(*code, "when it was stored")).collect(),
        telemetry: Vec::new(),
        profile: None,
        code: None,
        compiler: BTreeMap::new(),
        code_sha256: None,
        printed: Vec::new(),
    }
}

fn series(record: &BaselineBenchmark, metric: &str, kind: MetricKind) -> Option<Series> {
    let summaries: Vec<Summary> = record
        .processes
        .iter()
        .filter_map(|process| process.summaries.get(metric))
        .map(Summary::from)
        .collect();
    let single = record.values.iter().find(|value| value.metric == metric).map(|value| value.value.0);
    match (kind, summaries.first().and_then(|first| first.median), single) {
        // A value that was the same in every process is exact; one that differed can't be compared exactly.
        (MetricKind::Exact, Some(first), _) if summaries.iter().all(|s| s.median == Some(first)) => {
            Some(Series::Exact(first))
        }
        (_, Some(_), _) => Some(Series::Summaries(summaries)),
        (MetricKind::Exact, None, Some(value)) => Some(Series::Exact(value)),
        (MetricKind::Noisy, None, Some(value)) => {
            Some(Series::Summaries(vec![Summary { n: Some(1), median: Some(value), ..Summary::default() }]))
        }
        (_, None, None) => None,
    }
}

impl From<&SummaryRecord> for Summary {
    fn from(record: &SummaryRecord) -> Self {
        Self {
            n: Some(record.n),
            median: Some(record.median.0),
            stddev: record.stddev.map(f64::from),
            min: record.min.map(f64::from),
            ..Self::default()
        }
    }
}
