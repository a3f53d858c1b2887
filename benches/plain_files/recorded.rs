//! Sessions that other tools recorded, read in the same way as users' files.

use std::path::{Path, PathBuf};

use benchgate::ingest::{self, Joiner};
use benchgate::model::{Metric, Process, Run, Series};
use benchgate::stats::describe;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/corpus/plain")
}

/// Returns all sessions of one recording, each read as `compare` reads it.
pub fn sessions(name: &str) -> Vec<Run> {
    let bytes = std::fs::read(folder().join(format!("{name}.jsonl.gz"))).unwrap();
    let text = String::from_utf8(ingest::decompressed(&bytes, name).unwrap().into_owned()).unwrap();
    text.lines().map(session).collect()
}

fn session(line: &str) -> Run {
    let files: std::collections::BTreeMap<String, String> = serde_json::from_str(line).unwrap();
    let mut joiner = Joiner::new();
    for (path, content) in files.iter().filter(|(path, _)| !path.ends_with("benchmark.json")) {
        joiner.push(ingest::read_detected(content.as_bytes(), path).unwrap()).unwrap();
    }
    joiner.finish().unwrap()
}

/// Returns the same session with one benchmark slower by `factor`, in whatever form its tool stored it.
pub fn slowed(run: &Run, row: usize, factor: f64) -> Run {
    let mut run = run.clone();
    let benchmark = &mut run.benchmarks[row];
    for series in benchmark.metrics.iter_mut().filter(|series| is_time(&series.metric)) {
        scale(&mut series.series, factor);
    }
    run
}

fn is_time(metric: &Metric) -> bool {
    [Metric::LATENCY, Metric::CPU_TIME].iter().any(|time| time.name == metric.name)
}

pub fn scale(series: &mut Series, factor: f64) {
    match series {
        Series::Processes(processes) => {
            processes
                .iter_mut()
                .flat_map(|process| &mut process.samples)
                .for_each(|sample| *sample *= factor);
        }
        Series::Summaries(summaries) => {
            for summary in summaries {
                let single = [
                    &mut summary.mean,
                    &mut summary.median,
                    &mut summary.stddev,
                    &mut summary.q1,
                    &mut summary.q3,
                    &mut summary.min,
                    &mut summary.max,
                ];
                single.into_iter().flatten().for_each(|value| *value *= factor);
                if let Some((low, high)) = &mut summary.interval {
                    (*low, *high) = (*low * factor, *high * factor);
                }
            }
        }
        Series::Exact(value) => *value *= factor,
    }
}

/// Returns the logarithm of a benchmark's median time in one session.
pub fn level(run: &Run, row: usize) -> f64 {
    let series = &run.benchmarks[row].metric(&Metric::LATENCY.name).unwrap().series;
    let value = match series {
        Series::Processes(processes) => {
            let middles: Vec<f64> =
                processes.iter().filter_map(|process| describe::median(&process.samples)).collect();
            describe::median(&middles).unwrap()
        }
        Series::Summaries(summaries) => summaries[0].median.or(summaries[0].mean).unwrap(),
        Series::Exact(value) => *value,
    };
    value.ln()
}

/// Returns the repetitions of a benchmark in one session, as logarithms relative to their median.
pub fn residuals(run: &Run, row: usize) -> Vec<f64> {
    let series = &run.benchmarks[row].metric(&Metric::LATENCY.name).unwrap().series;
    let level = level(run, row);
    match series {
        Series::Processes(processes) => {
            processes.iter().flat_map(|process| &process.samples).map(|sample| sample.ln() - level).collect()
        }
        Series::Summaries(_) | Series::Exact(_) => Vec::new(),
    }
}

/// Returns a benchmark with simulated processes.
pub fn benchmark(name: &str, processes: Vec<Vec<f64>>) -> benchgate::model::Benchmark {
    let mut benchmark = benchgate::model::Benchmark::new(name);
    let processes = processes.into_iter().zip(0..).map(|(samples, session)| Process {
        samples,
        session,
        ..Process::default()
    });
    let series = Series::Processes(processes.collect());
    benchmark.metrics.push(benchgate::model::MetricSeries { metric: Metric::LATENCY, series });
    benchmark
}
