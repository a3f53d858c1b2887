//! pytest-benchmark's JSON (`--benchmark-json`, `--benchmark-save`): the rounds of one Python process, in
//! seconds, with their times (`data`) or only their statistics.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use benchgate_core::model::{Benchmark, Context, ENVIRONMENT, Metric, Run, Stage, Summary};

use super::build::{carried, check_count, check_summary, fail, processes, summary, testbed};
use super::join::ByName;
use super::json::{parse, unique_map};
use super::values::without_addresses;
use super::{LineFault, facts, line_fault};

#[derive(Deserialize)]
struct PytestBenchmarkFile {
    machine_info: Option<PytestMachine>,
    commit_info: Option<Commit>,
    benchmarks: Vec<PytestBenchmarkEntry>,
    datetime: Option<String>,
    /// Fields that pytest-benchmark doesn't write, and its version.
    #[serde(flatten)]
    others: BTreeMap<String, serde_json::Value>,
}

#[derive(Deserialize)]
struct PytestMachine {
    node: Option<String>,
    machine: Option<String>,
    system: Option<String>,
    release: Option<String>,
    cpu: Option<serde_json::Value>,
    python_version: Option<String>,
    python_implementation: Option<String>,
    python_compiler: Option<String>,
    python_build: Option<serde_json::Value>,
    /// Keys that pytest-benchmark writes and benchgate does not need.
    #[serde(rename = "processor")]
    _processor: Option<IgnoredAny>,
    #[serde(rename = "python_implementation_version")]
    _implementation_version: Option<IgnoredAny>,
    /// Keys that a hook of the user adds, such as `gpu`.
    #[serde(flatten)]
    own: BTreeMap<String, serde_json::Value>,
}

impl PytestMachine {
    fn cpu(&self, key: &str) -> Option<&serde_json::Value> {
        self.cpu.as_ref()?.get(key)
    }

    fn cpu_count(&self) -> Option<u32> {
        self.cpu("count")?.as_u64()?.try_into().ok()
    }

    /// Returns the nominal clock in megahertz. If it is unknown, pytest-benchmark states the clock of the moment instead.
    fn clock(&self) -> Option<f64> {
        let stated = |key: &str| self.cpu(key)?.get(0)?.as_f64();
        let nominal =
            stated("hz_advertised").filter(|hertz| *hertz > 0.0 && stated("hz_actual") != Some(*hertz));
        Some(nominal? * 1e-6)
    }

    /// Returns the interpreter as labels.
    fn environment(&self) -> Result<Vec<(String, String)>, &'static str> {
        let facts = [
            ("python_version", &self.python_version),
            ("python_implementation", &self.python_implementation),
            ("python_compiler", &self.python_compiler),
        ];
        let facts = facts.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        let facts =
            facts.map(|(name, value)| Ok((format!("{ENVIRONMENT}{name}"), carried(value)?.to_owned())));
        // Another version may be the change, but a debug build is slower whatever the change is.
        let build = self.python_build.as_ref().map(|build| {
            let build = if build.to_string().contains("debug") { "debug" } else { "release" };
            Ok(("python-build".to_owned(), build.to_owned()))
        });
        facts.chain(build).collect()
    }

    fn facts(&self) -> BTreeMap<String, String> {
        let brand = self.cpu("brand_raw").or(self.cpu("brand")).and_then(serde_json::Value::as_str);
        let facts = [
            ("cpu", brand.map(str::to_owned)),
            ("cpus", self.cpu_count().map(|count| count.to_string())),
            ("l2-cache", self.cpu("l2_cache_size").map(ToString::to_string)),
            ("l3-cache", self.cpu("l3_cache_size").map(ToString::to_string)),
            ("arch", self.machine.clone()),
            ("os", self.system.clone()),
            ("kernel", self.release.clone()),
        ];
        facts.into_iter().filter_map(|(fact, value)| Some((fact.to_owned(), value?))).collect()
    }
}

#[derive(Deserialize)]
struct Commit {
    id: Option<String>,
    dirty: Option<bool>,
}

#[derive(Deserialize)]
struct PytestBenchmarkEntry {
    group: Option<String>,
    name: String,
    fullname: Option<String>,
    param: Option<serde_json::Value>,
    /// The arguments of a parametrized test, which its name need not show.
    params: Option<BTreeMap<String, serde_json::Value>>,
    options: Option<Options>,
    #[serde(default, deserialize_with = "unique_map")]
    extra_info: BTreeMap<String, serde_json::Value>,
    #[serde(default)]
    has_error: bool,
    stats: Option<Stats>,
    /// Fields that pytest-benchmark doesn't write.
    #[serde(flatten)]
    others: BTreeMap<String, serde_json::Value>,
}

#[derive(Deserialize)]
struct Options {
    timer: Option<String>,
    #[serde(default)]
    disable_gc: bool,
    /// A flag, or the word `auto`.
    warmup: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Stats {
    min: Option<f64>,
    max: Option<f64>,
    mean: Option<f64>,
    stddev: Option<f64>,
    median: Option<f64>,
    q1: Option<f64>,
    q3: Option<f64>,
    total: Option<f64>,
    rounds: Option<u64>,
    data: Option<Vec<Option<f64>>>,
}

pub(super) fn read(text: &str) -> Result<Run, LineFault> {
    let file: PytestBenchmarkFile = parse(text)?;
    let environment = file.machine_info.as_ref().map(PytestMachine::environment).transpose();
    let environment = environment.map_err(|what| line_fault(1, what))?.unwrap_or_default();
    let own = file.machine_info.as_ref().map(|machine| facts::of_json(&machine.own)).unwrap_or_default();
    let own = facts::shared(own).map_err(|what| line_fault(1, what))?;
    let of_file = facts::results_of_file(&file.others)?;
    let mut benchmarks = ByName::default();
    for mut entry in file.benchmarks {
        let others = std::mem::take(&mut entry.others);
        let mut stated = facts::of_json(&entry.extra_info);
        stated.extend(own.iter().cloned());
        // Values that JSON can't express are printed with their address.
        let is_shown =
            |(_, value): &(String, String)| !value.starts_with("UNSERIALIZABLE") && !value.contains(" at 0x");
        // An argument of another name, or one that only one side has, is other work too.
        let names: Vec<&str> = entry.params.iter().flatten().map(|(name, _)| name.as_str()).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let arguments = facts::of_json(entry.params.iter().flatten()).into_iter().filter(is_shown);
        let arguments: Vec<(String, String)> =
            arguments.map(|(name, value)| (format!("argument {name}"), value)).collect();
        let mut benchmark = benchmark(entry);
        benchmark.labels.extend(arguments);
        benchmark.labels.insert("arguments".to_owned(), names);
        facts::state(&mut benchmark, &stated);
        facts::state_results(&mut benchmark, &others, &of_file);
        benchmark.labels.extend(environment.clone());
        benchmarks.push_once(benchmark);
    }
    let machine = file.machine_info;
    let testbed = machine.as_ref().and_then(|machine| testbed(machine.facts()));
    let context = Context {
        date: file.datetime,
        num_cpus: machine.as_ref().and_then(PytestMachine::cpu_count),
        mhz_per_cpu: machine.as_ref().and_then(PytestMachine::clock),
        host_name: machine.and_then(|machine| machine.node),
        ..Context::default()
    };
    let commit = file.commit_info.and_then(|commit| {
        let changed = if commit.dirty == Some(true) { "-dirty" } else { "" };
        // This word stands for a folder without version control.
        let id = commit.id.filter(|id| id != "unversioned")?;
        Some(format!("{id}{changed}"))
    });
    Ok(Run { benchmarks: benchmarks.finish(), context, testbed, commit, ..Run::default() })
}

fn benchmark(entry: PytestBenchmarkEntry) -> Benchmark {
    let mut benchmark = Benchmark::new(entry.fullname.as_ref().unwrap_or(&entry.name));
    if let Some(group) = entry.group {
        benchmark.labels.insert("group".to_owned(), group);
    }
    if let Some(param) = entry.param.as_ref().and_then(serde_json::Value::as_str) {
        benchmark.labels.insert("param".to_owned(), param.to_owned());
    }
    // Every release states the timer, so a file without one was edited, and its clock may differ from the
    // other side's.
    let (timer, disable_gc, warmup) = entry
        .options
        .map_or((None, false, None), |options| (options.timer, options.disable_gc, options.warmup));
    let warmup = warmup.map_or_else(|| "not stated".to_owned(), |warmup| warmup.to_string());
    benchmark.labels.insert("warmup".to_owned(), warmup);
    benchmark.labels.insert("disable_gc".to_owned(), disable_gc.to_string());
    benchmark.labels.insert(
        "timer".to_owned(),
        timer.map_or_else(|| "not stated".to_owned(), |timer| without_addresses(&timer)),
    );
    if entry.has_error {
        fail(&mut benchmark, Stage::Benchmark, "the benchmark raised an error");
        return benchmark;
    }
    let Some(stats) = entry.stats else {
        fail(&mut benchmark, Stage::Benchmark, "no statistics");
        return benchmark;
    };
    let stated = Summary {
        n: stats.rounds,
        mean: stats.mean,
        median: stats.median,
        stddev: stats.stddev,
        q1: stats.q1,
        q3: stats.q3,
        min: stats.min,
        max: stats.max,
        ..Summary::default()
    };
    if stats.data.as_ref().is_some_and(Vec::is_empty) {
        check_count(&mut benchmark, stats.rounds, 0, "rounds");
    }
    match stats.data.filter(|data| !data.is_empty()) {
        Some(data) => {
            let samples: Vec<f64> = data.into_iter().map(|round| round.unwrap_or(f64::NAN)).collect();
            check_summary(&mut benchmark, &samples, &stated);
            let mean = stats.total.map(|total| total / samples.len() as f64);
            check_summary(&mut benchmark, &samples, &Summary { mean, ..Summary::default() });
            processes(&mut benchmark, Metric::LATENCY, 1e9, vec![samples]);
        }
        None if stats.mean.is_none() && stats.median.is_none() => {
            fail(&mut benchmark, Stage::Benchmark, "neither rounds nor a mean");
        }
        None => summary(&mut benchmark, Metric::LATENCY, 1e9, stated),
    }
    benchmark
}
