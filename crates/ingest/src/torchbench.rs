//! `results.jsonl` of the PyTorch/XLA torchbench runner: one experiment per line, with its axes, a list of
//! values for each metric, and a verification code.
//!
//! Source: the runner's README and `experiment_runner.py`. Like the runner's own `aggregate.py`, this reader
//! leaves out the first three repetitions: the first one compiles, and the next two warm caches.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use benchgate_core::model::{
    Benchmark, Better, Consequence, Context, Lint, LintCode, Metric, Outcome, Run, Stage, Testbed, Unit,
    Verification, VerifyCode,
};

use super::build::{agree, check_count, contradict, direction_of_name, fail, own_metric, processes};
use super::document::finding;
use super::join::ByName;
use super::join::merge_run;
use super::json::{parse_stream, unique_map};
use super::{LineFault, facts};

/// Number of repetitions that compile and warm up.
const WARMUP: usize = 3;

#[derive(Deserialize)]
struct TorchbenchLine {
    model: TorchbenchModel,
    #[serde(deserialize_with = "unique_map")]
    experiment: BTreeMap<String, serde_json::Value>,
    #[serde(deserialize_with = "unique_map")]
    metrics: BTreeMap<String, TorchbenchMetric>,
    /// Number of repetitions in each list.
    repeat: Option<u64>,
    iterations_per_run: Option<u64>,
    /// benchgate writes this field, because its repetitions are warm from the first one on.
    warmup_repetitions: Option<usize>,
    timestamp: Option<serde_json::Value>,
    verification_code: Option<String>,
    benchgate: Option<MeasuredOn>,
    /// Fields that the runner doesn't write.
    #[serde(flatten)]
    others: BTreeMap<String, serde_json::Value>,
}

/// Written by benchgate: the machine on which a line was measured, for which the runner has no field.
#[derive(Deserialize)]
struct MeasuredOn {
    context: Context,
    testbed: Option<Testbed>,
}

#[derive(Deserialize)]
struct TorchbenchModel {
    suite_name: Option<String>,
    model_name: String,
    /// Fields that the runner doesn't write.
    #[serde(flatten)]
    others: BTreeMap<String, serde_json::Value>,
}

/// A list of values, one value, a message (`error`), or a dictionary of counters.
#[derive(Deserialize)]
#[serde(untagged)]
enum TorchbenchMetric {
    Many(Vec<Option<f64>>),
    One(f64),
    Text(String),
    Flag(bool),
    /// A NaN is read as null.
    Null(()),
    Other(IgnoredAny),
}

impl TorchbenchMetric {
    /// Returns the number of repetitions that a list describes.
    fn repetitions(&self) -> Option<usize> {
        match self {
            Self::Many(values) => Some(values.len()),
            _ => None,
        }
    }

    fn values(&self) -> usize {
        self.repetitions().unwrap_or_else(|| usize::from(matches!(self, Self::One(_))))
    }
}

/// Reads the whole file; a repeated experiment counts as one more process.
pub(super) fn read(text: &str) -> Result<Run, LineFault> {
    let mut benchmarks = ByName::default();
    let mut place: Option<Run> = None;
    parse_stream(text, |mut line: TorchbenchLine| {
        if let Some(MeasuredOn { context, testbed }) = line.benchgate.take() {
            let here = Run { context, testbed, ..Run::default() };
            match &mut place {
                None => place = Some(here),
                Some(place) if place.context == here.context && place.testbed == here.testbed => {}
                Some(place) => merge_run(place, &here),
            }
        }
        benchmarks.push(benchmark(line)?);
        Ok(())
    })?;
    Ok(Run { benchmarks: benchmarks.finish(), ..place.unwrap_or_default() })
}

fn benchmark(line: TorchbenchLine) -> Result<Benchmark, String> {
    let mut labels = BTreeMap::new();
    let mut name = String::new();
    if let Some(suite) = &line.model.suite_name {
        name.push_str(suite);
        name.push('/');
        labels.insert("suite".to_owned(), suite.clone());
    }
    name.push_str(&line.model.model_name);
    labels.insert("model".to_owned(), line.model.model_name.clone());
    let mut axes = String::new();
    for (axis, value) in &line.experiment {
        let value = match value {
            // An axis with its default value is not part of the name; old files lack the axis entirely.
            serde_json::Value::Null | serde_json::Value::Bool(false) => continue,
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        match axis.as_str() {
            "accelerator" => {
                name.push('/');
                name.push_str(&value);
                labels.insert("target".to_owned(), value.clone());
            }
            // The machine is not part of the benchmark's identity.
            "accelerator_model" => {}
            _ => {
                axes.push_str(if axes.is_empty() { "/" } else { "," });
                axes.push_str(&format!("{axis}={value}"));
            }
        }
        labels.insert(axis.clone(), value);
    }
    name.push_str(&axes);
    let mut benchmark = Benchmark::new(&name);
    benchmark.labels = labels;
    // The runner states both facts in every line, so a line without one was edited: it may come from another
    // machine, or cover more iterations.
    let unstated = || "not stated".to_owned();
    benchmark.labels.entry("accelerator_model".to_owned()).or_insert_with(unstated);
    let of_run = if line.metrics.contains_key("per_iter_time") { "" } else { ", and only `total_time`" };
    let iterations = line.iterations_per_run.map_or_else(|| unstated() + of_run, |count| count.to_string());
    benchmark.labels.insert("iterations_per_run".to_owned(), iterations);
    if let Some(timestamp) = &line.timestamp {
        benchmark.labels.insert("timestamp".to_owned(), timestamp.to_string().trim_matches('"').to_owned());
    }
    verify(&mut benchmark, line.verification_code.as_deref())?;
    if let Some(lint) = line.others.iter().find_map(|(name, value)| finding(name, &value.to_string())) {
        fail(&mut benchmark, Stage::Benchmark, &lint.detail);
        return Ok(benchmark);
    }
    match line.metrics.get("error") {
        Some(TorchbenchMetric::Text(why)) if why == "SKIP" => {
            benchmark.outcome =
                Outcome::Skipped { reason: "the runner skips this model and configuration".to_owned() };
            return Ok(benchmark);
        }
        Some(TorchbenchMetric::Text(why)) => {
            // The last line of a Python traceback states the error.
            let last = why.trim().lines().next_back().unwrap_or_default().trim();
            fail(&mut benchmark, Stage::Benchmark, last);
            return Ok(benchmark);
        }
        Some(_) => {
            fail(&mut benchmark, Stage::Benchmark, "");
            return Ok(benchmark);
        }
        None => {}
    }
    check_totals(&mut benchmark, &line);
    add_metrics(&mut benchmark, &line);
    let is_explained = benchmark.lints.iter().any(|lint| lint.code.consequence() != Consequence::Note);
    if benchmark.metric(&Metric::LATENCY.name).is_none() && !is_explained {
        fail(&mut benchmark, Stage::Benchmark, "neither `per_iter_time` nor `total_time`");
    }
    Ok(benchmark)
}

/// Checks that each total is consistent with the time per iteration: the runner divides the total by the
/// iterations of a run.
fn check_totals(benchmark: &mut Benchmark, line: &TorchbenchLine) {
    let list = |name: &str| match line.metrics.get(name) {
        Some(TorchbenchMetric::Many(values)) => Some(values),
        _ => None,
    };
    let (Some(totals), Some(each)) = (list("total_time"), list("per_iter_time")) else { return };
    let Some(iterations) = line.iterations_per_run else {
        contradict(benchmark, "`total_time` and `per_iter_time` without `iterations_per_run`");
        return;
    };
    check_count(benchmark, Some(totals.len() as u64), each.len(), "values of `per_iter_time`");
    let fits = |(total, each): (&Option<f64>, &Option<f64>)| match (total, each) {
        (Some(total), Some(each)) => agree(*total, each * iterations as f64),
        _ => true,
    };
    if !totals.iter().zip(each).all(fits) {
        contradict(benchmark, format!("`total_time` is not `per_iter_time` times {iterations} iterations"));
    }
}

fn verify(benchmark: &mut Benchmark, code: Option<&str>) -> Result<(), String> {
    let Some(code) = code else { return Ok(()) };
    let parsed = VerifyCode::parse(code).ok_or_else(|| format!("unknown verification code `{code}`"))?;
    let why = match parsed {
        VerifyCode::Pass | VerifyCode::VerifierSkipped => None,
        other => Some(format!("the runner's verifier reports {other}")),
    };
    benchmark.verification = Some(Verification::bare(parsed, why));
    Ok(())
}

fn add_metrics(benchmark: &mut Benchmark, line: &TorchbenchLine) {
    let metrics = &line.metrics;
    // No line may leave out more than the runner's own reports do.
    let warmup = line.warmup_repetitions.map_or(WARMUP, |stated| stated.min(WARMUP));
    // The latency comes first; a file without one has the total of each repetition.
    let latency = ["per_iter_time", "total_time"].into_iter().find(|name| metrics.contains_key(*name));
    if let Some(latency) = latency.and_then(|name| metrics.get(name)) {
        check_count(benchmark, line.repeat, latency.values(), "repetitions");
    }
    let repetitions = latency.and_then(|name| metrics.get(name)).and_then(TorchbenchMetric::repetitions);
    let ordered =
        latency.into_iter().chain(metrics.keys().map(String::as_str).filter(|name| Some(*name) != latency));
    let mut said_in_words = Vec::new();
    for name in ordered {
        let values: Vec<f64> = match metrics.get(name) {
            Some(TorchbenchMetric::Many(values)) => {
                values.iter().map(|value| value.unwrap_or(f64::NAN)).collect()
            }
            Some(TorchbenchMetric::One(value)) => vec![*value],
            Some(TorchbenchMetric::Flag(flag)) => {
                said_in_words.push((name.to_owned(), flag.to_string()));
                continue;
            }
            Some(
                other @ (TorchbenchMetric::Text(_) | TorchbenchMetric::Null(()) | TorchbenchMetric::Other(_)),
            ) => {
                let detail = format!("{name}: neither a number nor a list of them");
                benchmark.lints.push(Lint::new(LintCode::DroppedMetric, detail));
                match other {
                    TorchbenchMetric::Text(said) if Some(name) != latency => {
                        said_in_words.push((name.to_owned(), said.clone()));
                    }
                    TorchbenchMetric::Null(()) => {
                        let detail = format!("`{name}` is no number");
                        benchmark.lints.push(Lint::new(LintCode::ReportedProblem, detail));
                    }
                    _ => {}
                }
                continue;
            }
            None => continue,
        };
        let timed = name.ends_with("_time") || name.ends_with("_time_s");
        let metric = if Some(name) == latency {
            Metric::LATENCY
        } else if name == "xla_CompileTime_time_s" {
            Metric::COMPILE_TIME
        } else if timed {
            own_metric(name.trim_end_matches("_s").replace('_', "-"), Unit::Nanoseconds, Better::Lower)
        } else {
            let name = name.replace('_', "-");
            let better = direction_of_name(&name);
            own_metric(name, Unit::Count, better)
        };
        // A list that is as long as the latency's has one value per repetition, whatever its name.
        let per_repetition = metrics.get(name).and_then(TorchbenchMetric::repetitions) == repetitions;
        // A graph is compiled once per process, in the first repetition that needs it.
        let values = if name.starts_with("xla_CompileTime") {
            vec![values.iter().sum()]
        } else if per_repetition {
            without_warmup(benchmark, values, warmup, Some(name) == latency)
        } else {
            values
        };
        let iterations = match line.iterations_per_run {
            Some(iterations) if Some(name) == latency && name == "total_time" => iterations as f64,
            _ => 1.0,
        };
        processes(benchmark, metric, if timed { 1e9 / iterations } else { 1.0 }, vec![values]);
    }
    facts::state(benchmark, &said_in_words);
    let others = [&line.others, &line.model.others];
    let fields: Vec<_> = others.into_iter().flat_map(facts::of_json).collect();
    facts::state(benchmark, &fields);
}

fn without_warmup(benchmark: &mut Benchmark, mut values: Vec<f64>, warmup: usize, main: bool) -> Vec<f64> {
    let all = values.len();
    if warmup == 0 {
        return values;
    }
    if all > warmup {
        values.drain(..warmup);
        if main {
            let detail = format!("the first {warmup} of {all} repetitions");
            benchmark.lints.push(Lint::new(LintCode::WarmupDropped, detail));
        }
    } else if main && all > 0 {
        let detail = format!("only {all} repetitions, but the first {warmup} compile and warm up");
        benchmark.lints.push(Lint::new(LintCode::WarmupIncluded, detail));
    }
    values
}
