//! airspeed velocity's result files, `results/MACHINE/COMMIT-ENVIRONMENT.json`: one commit, every benchmark with
//! its combinations of parameters.
//!
//! The kind of a benchmark is stored in another file, so it is derived from the name, as asv itself does:
//! `time_…`, `mem_…`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use benchgate_core::model::{
    Benchmark, Better, Context, ENVIRONMENT, Metric, Outcome, Run, Stage, Summary, Unit,
};

use super::build::{
    carried, check_summary, direction_of_name, fail, own_metric, processes, summary, testbed,
};
use super::join::ByName;
use super::json::{parse_with_words, unique_entries};
use super::{LineFault, line_fault};

/// The version of the layout that this reader understands.
const VERSION: u64 = 2;

#[derive(Deserialize)]
struct AsvFile {
    version: u64,
    commit_hash: String,
    #[serde(default)]
    params: AsvMachine,
    /// The environment in which all benchmarks ran.
    env_name: Option<String>,
    python: Option<String>,
    #[serde(default)]
    requirements: BTreeMap<String, Value>,
    #[serde(default)]
    env_vars: BTreeMap<String, Value>,
    /// Names of the entries of a row; a row may omit its last entries if they are null.
    result_columns: Vec<String>,
    /// Entries in the order of the file; a repeated name is rejected.
    #[serde(deserialize_with = "unique_entries")]
    results: Vec<(String, Value)>,
}

#[derive(Default, Deserialize)]
struct AsvMachine {
    machine: Option<String>,
    arch: Option<String>,
    cpu: Option<String>,
    num_cpu: Option<String>,
    os: Option<String>,
    /// Text or, if a person wrote the file, possibly a number.
    ram: Option<Value>,
}

impl AsvFile {
    fn environment(&self) -> Result<Vec<(String, String)>, &'static str> {
        let map = |map: &BTreeMap<String, Value>| {
            let entries = map.iter().map(|(name, value)| match value {
                Value::String(text) if text.is_empty() => name.clone(),
                Value::String(text) => format!("{name}={text}"),
                other => format!("{name}={other}"),
            });
            entries.collect::<Vec<_>>().join(" ")
        };
        let facts = [
            ("env_name", self.env_name.clone()),
            ("python", self.python.clone()),
            ("requirements", Some(map(&self.requirements)).filter(|list| !list.is_empty())),
            ("env_vars", Some(map(&self.env_vars)).filter(|list| !list.is_empty())),
        ];
        let facts = facts.into_iter().filter_map(|(name, value)| Some((name, value?)));
        facts.map(|(name, value)| Ok((format!("{ENVIRONMENT}{name}"), carried(&value)?.to_owned()))).collect()
    }
}

impl AsvMachine {
    fn facts(&self) -> BTreeMap<String, String> {
        let ram = self.ram.as_ref().map(|ram| ram.as_str().map_or_else(|| ram.to_string(), str::to_owned));
        let facts = [
            ("machine", &self.machine),
            ("arch", &self.arch),
            ("cpu", &self.cpu),
            ("cpus", &self.num_cpu),
            ("os", &self.os),
            ("ram", &ram),
        ];
        facts.into_iter().filter_map(|(fact, value)| Some((fact.to_owned(), value.clone()?))).collect()
    }
}

pub(super) fn read(text: &str) -> Result<Run, LineFault> {
    let file: AsvFile = parse_with_words(text)?;
    if file.version != VERSION {
        return Err(line_fault(
            1,
            format!("unknown version {} of asv's results; only version {VERSION} is supported", file.version),
        ));
    }
    let mut benchmarks = ByName::default();
    for (name, row) in &file.results {
        let columns = AsvColumns { names: &file.result_columns, row };
        read_row(name, &columns, &mut benchmarks)
            .map_err(|what| line_fault(1, format!("{}: {what}", name.get(..80).unwrap_or("a benchmark"))))?;
    }
    let environment = file.environment().map_err(|what| line_fault(1, what))?;
    let testbed = testbed(file.params.facts());
    let context = Context {
        host_name: file.params.machine,
        num_cpus: file.params.num_cpu.and_then(|count| count.parse().ok()),
        ..Context::default()
    };
    let mut benchmarks = benchmarks.finish();
    benchmarks.iter_mut().for_each(|benchmark| benchmark.labels.extend(environment.clone()));
    Ok(Run { benchmarks, context, testbed, commit: Some(file.commit_hash), ..Run::default() })
}

/// One row, accessed by the names of its columns.
struct AsvColumns<'a> {
    names: &'a [String],
    row: &'a Value,
}

impl<'a> AsvColumns<'a> {
    fn entry(&self, name: &str) -> Option<&'a Value> {
        let at = self.names.iter().position(|known| known == name)?;
        self.row.get(at)
    }

    /// Returns a column's list; `None` if it is null or omitted.
    fn list(&self, name: &str) -> Result<Option<&'a [Value]>, String> {
        match self.entry(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Array(values)) => Ok(Some(values)),
            Some(_) => Err(format!("`{name}` is not a list")),
        }
    }

    /// Returns a column that has one entry for each of the `count` parameter combinations.
    fn of_combinations(&self, name: &str, count: usize) -> Result<Option<&'a [Value]>, String> {
        match self.list(name)? {
            Some(values) if values.len() != count => {
                Err(format!("`{name}` has {} entries for {count} results", values.len()))
            }
            values => Ok(values),
        }
    }
}

fn read_row(name: &str, columns: &AsvColumns<'_>, benchmarks: &mut ByName) -> Result<(), String> {
    if !columns.row.is_array() {
        return Err("the row is not a list".to_owned());
    }
    let Some(results) = columns.list("result")? else {
        let mut benchmark = Benchmark::new(name);
        fail(&mut benchmark, Stage::Benchmark, "asv kept no result");
        benchmarks.push_once(benchmark);
        return Ok(());
    };
    let parameters = parameters(columns.list("params")?.unwrap_or_default())?;
    let combinations = parameters.iter().try_fold(1usize, |all, values| all.checked_mul(values.len()));
    if combinations != Some(results.len()) {
        return Err(format!("{} results do not fit its parameters", results.len()));
    }
    // The hash of the benchmark's code: results of different code belong to different experiments.
    let version = columns.entry("version").and_then(Value::as_str);
    let samples = columns.of_combinations("samples", results.len())?;
    let [repeats, lower, upper] = ["stats_repeat", "stats_q_25", "stats_q_75"]
        .map(|column| columns.of_combinations(column, results.len()));
    let (repeats, lower, upper) = (repeats?, lower?, upper?);
    let interval =
        ["stats_ci_99_a", "stats_ci_99_b"].map(|column| columns.of_combinations(column, results.len()));
    let [least, most] = interval;
    let interval = [least?, most?];
    let (metric, scale) = metric(name);
    for (at, result) in results.iter().enumerate() {
        let full = combination(name, &parameters, at);
        let mut benchmark = Benchmark::new(carried(&full)?);
        // Every file of this layout states the version, so a file without it was edited.
        benchmark.labels.insert("version".to_owned(), carried(version.unwrap_or("not stated"))?.to_owned());
        let repeats = repeats.and_then(|repeats| repeats[at].as_u64());
        let stated = |median| {
            let column = |column: Option<&[Value]>| column.and_then(|values| values[at].as_f64());
            let interval = column(interval[0]).zip(column(interval[1]));
            let (q1, q3) = (column(lower), column(upper));
            Summary { n: repeats, median: Some(median), q1, q3, interval, ..Summary::default() }
        };
        match (number(result), samples.and_then(|samples| samples[at].as_array()).map(Vec::as_slice)) {
            (Stated::Failed, _) => fail(&mut benchmark, Stage::Benchmark, "asv kept no result"),
            (Stated::Skipped, _) => {
                let reason = "asv skips this combination of parameters".to_owned();
                benchmark.outcome = Outcome::Skipped { reason };
            }
            (Stated::Number(_), Some([])) => {
                fail(&mut benchmark, Stage::Benchmark, "the list of samples is empty");
            }
            (Stated::Number(median), Some(samples)) => {
                let samples: Vec<f64> =
                    samples.iter().map(|sample| sample.as_f64().unwrap_or(f64::NAN)).collect();
                let stated = stated(median);
                let [q1, q3] = [stated.q1, stated.q3].map(|it| it.map(|it| unrounded(it, &samples)));
                check_summary(&mut benchmark, &samples, &Summary { q1, q3, ..stated });
                processes(&mut benchmark, metric.clone(), scale, vec![samples]);
            }
            // Without `--record-samples`, asv keeps the median and the quartiles of a time.
            (Stated::Number(median), _) if metric.name == Metric::LATENCY.name => {
                summary(&mut benchmark, metric.clone(), scale, stated(median));
            }
            (Stated::Number(value), _) => processes(&mut benchmark, metric.clone(), scale, vec![vec![value]]),
        }
        benchmarks.push_once(benchmark);
    }
    Ok(())
}

/// Returns the sample that a quartile is without its rounding: asv writes quartiles with five digits, and samples with all.
fn unrounded(quartile: f64, samples: &[f64]) -> f64 {
    const ROUNDING: f64 = 6e-5;
    let nearest =
        samples.iter().copied().min_by(|one, two| (one - quartile).abs().total_cmp(&(two - quartile).abs()));
    nearest.filter(|sample| (sample - quartile).abs() <= ROUNDING * quartile.abs()).unwrap_or(quartile)
}

/// The value of one result.
enum Stated {
    Number(f64),
    /// `null`: the benchmark failed.
    Failed,
    /// `NaN`: `setup` raised `NotImplementedError`.
    Skipped,
}

fn number(value: &Value) -> Stated {
    match value {
        Value::String(word) if word == "NaN" => Stated::Skipped,
        value => value.as_f64().map_or(Stated::Failed, Stated::Number),
    }
}

fn parameters(lists: &[Value]) -> Result<Vec<Vec<&str>>, String> {
    let words = lists.iter().map(|list| list.as_array()?.iter().map(Value::as_str).collect());
    words.collect::<Option<_>>().ok_or_else(|| "`params` is not a list of lists of text".to_owned())
}

/// Returns a name such as `time_sum(64, 'row')`, as asv prints it; the last parameter changes fastest.
fn combination(name: &str, parameters: &[Vec<&str>], at: usize) -> String {
    let mut rest = at;
    let mut values = Vec::with_capacity(parameters.len());
    for list in parameters.iter().rev() {
        values.push(list[rest % list.len()]);
        rest /= list.len();
    }
    values.reverse();
    if values.is_empty() { name.to_owned() } else { format!("{name}({})", values.join(", ")) }
}

/// Returns the metric of a benchmark with this name, and the factor from its unit to the metric's unit.
fn metric(name: &str) -> (Metric, f64) {
    let own = name.rsplit('.').next().unwrap_or(name).to_ascii_lowercase();
    let kinds = [
        ("time", Metric::LATENCY, 1e9),
        ("peakmem", Metric::PEAK_HOST_MEMORY, 1.0),
        ("mem", own_metric("object-size", Unit::Bytes, Better::Lower), 1.0),
    ];
    let found = kinds.into_iter().find(|(kind, _, _)| own.starts_with(kind));
    let tracked = || own_metric("tracked-value", Unit::Other("asv".into()), direction_of_name(&own));
    found.map_or_else(|| (tracked(), 1.0), |(_, metric, scale)| (metric, scale))
}
