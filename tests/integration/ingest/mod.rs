//! Reads captured output of every foreign format through the public functions.

mod compiled_code;
mod converted;
mod experiments;
pub(crate) mod fixtures;
mod foreign;
mod google_benchmark;
mod hostile;
mod joined;
mod stated;
mod units;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use benchgate::ingest::{self, IngestError};
use benchgate::model::{Benchmark, LintCode, Run, Series};

pub(crate) fn fixture_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tool_output").join(name)
}

fn fixture(name: &str) -> Run {
    ingest::read_detected(&std::fs::read(fixture_path(name)).unwrap(), name).unwrap()
}

fn read(text: &str) -> Result<Run, IngestError> {
    ingest::read_detected(text.as_bytes(), "input")
}

fn benchmark<'a>(run: &'a Run, name: &str) -> &'a Benchmark {
    run.benchmarks.iter().find(|benchmark| benchmark.name.as_str() == name).unwrap()
}

/// The samples of a metric that has a single process.
fn samples(run: &Run, name: &str, metric: &str) -> Vec<f64> {
    match &benchmark(run, name).metric(metric).unwrap().series {
        Series::Processes(processes) if processes.len() == 1 => processes[0].samples.clone(),
        other => panic!("not one process: {other:?}"),
    }
}

fn codes(benchmark: &Benchmark) -> Vec<LintCode> {
    benchmark.lints.iter().map(|lint| lint.code).collect()
}

/// Describes a run in a form that a person can compare with the original file.
fn describe(run: &Run) -> String {
    let mut out = format!("format {}\n", run.origin.format);
    let context = &run.context;
    writeln!(
        out,
        "context date={:?} host={:?} executable={:?} cpus={:?} mhz={:?} scaling={:?} aslr={:?} build={:?} version={:?} load={:?}",
        context.date,
        context.host_name,
        context.executable,
        context.num_cpus,
        context.mhz_per_cpu,
        context.cpu_scaling_enabled,
        context.aslr_enabled,
        context.library_build_type,
        context.library_version,
        context.load_avg
    )
    .unwrap();
    if let Some(testbed) = &run.testbed {
        writeln!(out, "testbed {:?}", testbed.facts).unwrap();
    }
    for lint in &run.lints {
        writeln!(out, "lint {}: {}", lint.code, lint.detail).unwrap();
    }
    for benchmark in &run.benchmarks {
        writeln!(out, "\n{}  {:?}", benchmark.name, benchmark.outcome).unwrap();
        for (key, value) in &benchmark.labels {
            writeln!(out, "  label {key}={value}").unwrap();
        }
        for series in &benchmark.metrics {
            let metric = &series.metric;
            writeln!(out, "  {} [{}, {:?} is better]", metric.name, metric.unit, metric.better).unwrap();
            match &series.series {
                Series::Processes(processes) => {
                    for process in processes {
                        writeln!(out, "    {:?}", process.samples).unwrap();
                    }
                }
                Series::Summaries(summaries) => {
                    for summary in summaries {
                        writeln!(out, "    {summary:?}").unwrap();
                    }
                }
                Series::Exact(value) => writeln!(out, "    exactly {value}").unwrap(),
            }
        }
        if let Some(verification) = &benchmark.verification {
            writeln!(out, "  verification {} {:?}", verification.code, verification.why).unwrap();
            for output in &verification.outputs {
                writeln!(out, "    output {} {} {:?}", output.index, output.code, output.why).unwrap();
            }
        }
        for lint in &benchmark.lints {
            writeln!(out, "  lint {}: {}", lint.code, lint.detail).unwrap();
        }
    }
    out
}
