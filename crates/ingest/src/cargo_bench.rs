//! Results of `cargo bench`. Its text has lines of libtest's harness and of criterion.rs. Each bench target is a
//! process. For each benchmark, libtest prints the median, and criterion its estimate.
//!
//! criterion.rs also writes `estimates.json` and `sample.json`. Neither file names its benchmark. The name is in
//! `benchmark.json` next to them or, failing that, in the path
//! `target/criterion/GROUP/BENCHMARK/new/sample.json`, which is the label.

use serde::Deserialize;

use benchgate_core::model::{
    Benchmark, BenchmarkName, Better, Lint, LintCode, Metric, Run, Series, Stage, Summary, Unit,
};

use super::build::{carried, check_summary, fail, own_metric, processes, summary, time_unit};
use super::facts::footer;
use super::join::ByName;
use super::json::parse;
use super::text::{cut_line, lines, short};
use super::{LineFault, line_fault};

/// The content of one line about a benchmark.
enum CargoLine<'a> {
    /// `test sum ... bench:       1,148.71 ns/iter (+/- 110.41)`. The number after the median is not read: libtest prints
    /// the whole range of 50 samples, of which it moved the outer 5 % inward, and criterion's imitation of the line
    /// (`--output-format bencher`) prints their standard deviation. The line does not show which of the two wrote it.
    /// `megabytes` is the rate after `=`.
    Libtest { name: &'a str, value: &'a str, unit: &'a str, megabytes: Option<f64> },
    /// `sum time: [9.1 ns 9.2 ns 9.3 ns]`: the estimate between the ends of its interval. If the name is
    /// long, it is on the previous line.
    Criterion { name: &'a str, interval: [(&'a str, &'a str); 3] },
    /// `test sum ... FAILED`
    Failed { name: &'a str },
}

pub(super) fn is_result(line: &str) -> bool {
    matches!(cargo_line(line), Some(CargoLine::Libtest { .. } | CargoLine::Criterion { .. }))
}

fn cargo_line(line: &str) -> Option<CargoLine<'_>> {
    if let Some((name, result)) = line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... ")) {
        let name = name.trim_end();
        if result.trim_end() == "FAILED" {
            return Some(CargoLine::Failed { name });
        }
        let mut words = result.strip_prefix("bench:")?.split_ascii_whitespace();
        let (value, unit) = (words.next()?, words.next()?.strip_suffix("/iter")?);
        let rate = result.rsplit_once(" = ").and_then(|(_, rate)| rate.trim().strip_suffix(" MB/s"));
        return Some(CargoLine::Libtest {
            name,
            value,
            unit,
            megabytes: rate.and_then(|rate| rate.parse().ok()),
        });
    }
    let (name, interval) = line.split_once("time:   [")?;
    let words: Vec<&str> = interval.split_once(']')?.0.split(' ').collect();
    // The line for the change since the last run has percentages: `[-50.128% -42.912% -35.246%]`.
    let [low, its, value, unit, high, other] = words[..] else { return None };
    Some(CargoLine::Criterion { name: name.trim_end(), interval: [(low, its), (value, unit), (high, other)] })
}

/// A rate that a benchmark states next to its time, which shows the work of one call.
struct Rate {
    /// The unit of the work: `B`, `elem`.
    of: String,
    per_second: f64,
    /// Largest error of the number due to rounding.
    rounding: f64,
}

/// The slowest rate of libtest that is read: it is printed without decimals, so a slower one shows neither itself nor
/// the work of a call.
const LEAST_MEGABYTES: f64 = 25.0;

impl Rate {
    /// libtest divides by whole nanoseconds and rounds the quotient down.
    fn of_libtest(megabytes: f64, nanoseconds: f64) -> Self {
        let scale = 1e6 * nanoseconds.trunc().max(1.0) / nanoseconds;
        Self { of: "B".to_owned(), per_second: (megabytes + 0.5) * scale, rounding: 0.5 * scale }
    }

    /// Reads criterion's `thrpt:  [35.917 GiB/s 37.961 GiB/s 40.268 GiB/s]`, whose second rate is that of the second time.
    fn of_criterion(line: &str) -> Option<Self> {
        let rates = line.trim_start().strip_prefix("thrpt:")?.trim_start().strip_prefix('[')?;
        let words: Vec<&str> = rates.split_once(']')?.0.split(' ').collect();
        let [_, _, value, unit, _, _] = words[..] else { return None };
        let unit = unit.strip_suffix("/s")?;
        let prefix = unit.chars().next().and_then(|prefix| "KMGTP".find(prefix)).filter(|_| unit.len() > 1);
        let (of, scale) = match (prefix, unit.get(1..).and_then(|rest| rest.strip_prefix('i'))) {
            (Some(power), Some(of)) => (of, 1024f64.powi(power as i32 + 1)),
            (Some(power), None) => (&unit[1..], 1e3f64.powi(power as i32 + 1)),
            (None, _) => (unit, 1.0),
        };
        let decimals = value.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        Some(Self {
            of: of.to_owned(),
            per_second: value.parse::<f64>().ok()? * scale,
            rounding: 0.5 * 0.1f64.powi(i32::try_from(decimals).ok()?) * scale,
        })
    }

    /// Adds the rate to its benchmark. Its interval is the error due to rounding.
    fn add_to(self, benchmark: &mut Benchmark) {
        let Some(stated) = benchmark.metric(&Metric::LATENCY.name).map(|it| &it.series) else { return };
        let Series::Summaries(times) = stated else { return };
        let is_median = times.iter().any(|time| time.median.is_some());
        let name = format!("{}/s", self.of);
        if !self.per_second.is_normal() || carried(&name).is_err() || benchmark.metric(&name).is_some() {
            return;
        }
        let stated = Some(self.per_second);
        let rate = Summary {
            mean: stated.filter(|_| !is_median),
            median: stated.filter(|_| is_median),
            interval: Some((self.per_second - self.rounding, self.per_second + self.rounding)),
            ..Summary::default()
        };
        summary(benchmark, own_metric(name.clone(), Unit::Other(name.into()), Better::Higher), 1.0, rate);
    }
}

pub(super) fn read(text: &str) -> Result<Run, LineFault> {
    let mut benchmarks = ByName::default();
    // The newest benchmark, whose rate may be in the next line.
    let mut newest: Option<Benchmark> = None;
    let mut lints = Vec::new();
    let (mut above, mut measured, mut is_optimized) = ("", 0, true);
    // The benchmarks of libtest's harness whose target has not printed its last line yet.
    let mut unended: Vec<String> = Vec::new();
    for line in lines(text) {
        let (name, interval, megabytes, is_median) = match cargo_line(line.text) {
            None => {
                if line.text.starts_with("test result: FAILED") || line.text.starts_with("error: ") {
                    let detail =
                        format!("the test framework reports `{}`", line.text.get(..80).unwrap_or(line.text));
                    lints.push(Lint::new(LintCode::TruncatedInput, detail));
                }
                // Cargo's line about the build of the profile: `Finished `dev` profile [unoptimized + debuginfo]`.
                is_optimized &=
                    !(line.text.trim_start().starts_with("Finished ") && line.text.contains("[unoptimized"));
                if line.text.starts_with("test result: ") {
                    unended.clear();
                }
                // Result lines may be missing, but the harness states how many there were.
                let counted = line.text.starts_with("test result: ").then(|| counted(line.text)).flatten();
                if counted.is_some_and(|counted| counted > std::mem::take(&mut measured)) {
                    let detail = format!("`{}` counts more results than there are", short(line.text));
                    lints.push(Lint::new(LintCode::TruncatedInput, detail));
                }
                if let (Some(rate), Some(benchmark)) = (Rate::of_criterion(line.text), &mut newest) {
                    rate.add_to(benchmark);
                }
                above = line.text;
                continue;
            }
            Some(CargoLine::Failed { name }) => {
                let mut benchmark =
                    Benchmark::new(carried(name).map_err(|what| line_fault(line.number, what))?);
                fail(&mut benchmark, Stage::Benchmark, "the test framework reports FAILED");
                newest.replace(benchmark).into_iter().for_each(|before| benchmarks.push_once(before));
                continue;
            }
            Some(CargoLine::Libtest { name, value, unit, megabytes }) => {
                measured += 1;
                unended.push(name.to_owned());
                (name, [(value, unit); 3], megabytes, true)
            }
            Some(CargoLine::Criterion { name: "", interval }) => (above.trim_end(), interval, None, false),
            Some(CargoLine::Criterion { name, interval }) => (name, interval, None, false),
        };
        let fault = |what: String| line_fault(line.number, what);
        if name.is_empty() {
            return Err(fault("a result without a name".to_owned()));
        }
        let number = |value: &str| {
            let number = without_groups(value).and_then(|value| value.parse::<f64>().ok());
            number.ok_or_else(|| fault(format!("expected a time, found `{}`", short(value))))
        };
        let [low, (value, unit), high] = interval;
        let printed = number(value)?;
        let mut benchmark = Benchmark::new(carried(name).map_err(|what| fault(what.to_owned()))?);
        let stated = if is_median {
            Summary { median: Some(printed), ..Summary::default() }
        } else {
            Summary { mean: Some(printed), ..Summary::default() }
        };
        match time_unit(unit) {
            Some(scale) => {
                // Each end of criterion's interval has its own unit.
                let end = |(value, unit)| Ok(number(value)? * time_unit(unit).unwrap_or(scale) / scale);
                let interval = Some((end(low)?, end(high)?));
                check_summary(&mut benchmark, &[], &Summary { interval, ..stated });
                summary(&mut benchmark, Metric::LATENCY, scale, stated);
                if let Some(megabytes) = megabytes.filter(|megabytes| *megabytes >= LEAST_MEGABYTES) {
                    Rate::of_libtest(megabytes, printed * scale).add_to(&mut benchmark);
                }
            }
            None => {
                benchmark
                    .lints
                    .push(Lint::new(LintCode::UnknownUnit, format!("time unit `{}`", short(unit))));
            }
        }
        if !line.terminated {
            benchmark.lints.push(cut_line());
        }
        newest.replace(benchmark).into_iter().for_each(|before| benchmarks.push_once(before));
    }
    newest.into_iter().for_each(|last| benchmarks.push_once(last));
    let mut benchmarks = benchmarks.finish();
    for benchmark in &mut benchmarks {
        let is_ended = !unended.iter().any(|name| name == benchmark.name.as_str());
        footer(benchmark, is_ended);
        let build = if is_optimized { "optimized" } else { "unoptimized" };
        benchmark.labels.insert("cargo-profile".to_owned(), build.to_owned());
    }
    Ok(Run { benchmarks, lints, ..Run::default() })
}

/// Returns the number of benchmarks in `test result: ok. 0 passed; 0 failed; 0 ignored; 5 measured; 0
/// filtered out`.
fn counted(line: &str) -> Option<u64> {
    line.split(';').find_map(|part| part.trim().strip_suffix(" measured")?.parse().ok())
}

/// Returns a number without the commas between groups of three digits. If the commas are placed differently,
/// the number is in another notation, in which a comma may be the decimal point.
fn without_groups(value: &str) -> Option<String> {
    let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
    let mut groups = whole.split(',');
    let first = groups.next()?;
    let others: Vec<&str> = groups.collect();
    let is_grouped =
        others.is_empty() || ((1..=3).contains(&first.len()) && others.iter().all(|group| group.len() == 3));
    (is_grouped && !fraction.contains(',')).then(|| value.replace(',', ""))
}

/// Nanoseconds.
#[derive(Deserialize)]
struct Estimates {
    mean: CriterionEstimate,
    median: CriterionEstimate,
    std_dev: CriterionEstimate,
}

#[derive(Deserialize)]
struct CriterionEstimate {
    point_estimate: Option<f64>,
    confidence_interval: Option<ConfidenceInterval>,
}

#[derive(Deserialize)]
struct ConfidenceInterval {
    lower_bound: f64,
    upper_bound: f64,
}

/// Each sample ran `iters` iterations in `times` nanoseconds.
#[derive(Deserialize)]
struct CriterionSample {
    iters: Vec<f64>,
    times: Vec<Option<f64>>,
}

/// Reads `estimates.json`, which is a summary.
pub(super) fn read_estimates(text: &str, label: &str) -> Result<Run, LineFault> {
    let file: Estimates = parse(text)?;
    let mut benchmark = Benchmark::new(name_from(label));
    let stated = file.summary();
    if stated.mean.is_none() && stated.median.is_none() {
        return Err(line_fault(1, "neither mean nor median has a point estimate"));
    }
    for estimate in [&file.mean, &file.median] {
        let interval = estimate.confidence_interval.as_ref();
        let interval = interval.map(|interval| (interval.lower_bound, interval.upper_bound));
        let median = estimate.point_estimate;
        check_summary(&mut benchmark, &[], &Summary { median, interval, ..Summary::default() });
    }
    summary(&mut benchmark, Metric::LATENCY, 1.0, stated);
    Ok(Run { benchmarks: vec![benchmark], ..Run::default() })
}

/// Reads `sample.json`, which has every sample of one process.
pub(super) fn read_sample(text: &str, label: &str) -> Result<Run, LineFault> {
    let file: CriterionSample = parse(text)?;
    if file.iters.len() != file.times.len() {
        let what = format!("{} iteration counts and {} times", file.iters.len(), file.times.len());
        return Err(line_fault(1, what));
    }
    if file.iters.iter().any(|&iterations| iterations.is_nan() || iterations < 1.0) {
        return Err(line_fault(1, "a sample with zero iterations"));
    }
    if file.times.is_empty() {
        return Err(line_fault(1, "no samples"));
    }
    let samples =
        file.times.iter().zip(&file.iters).map(|(time, iterations)| time.unwrap_or(f64::NAN) / iterations);
    let mut benchmark = Benchmark::new(name_from(label));
    processes(&mut benchmark, Metric::LATENCY, 1.0, vec![samples.collect()]);
    Ok(Run { benchmarks: vec![benchmark], ..Run::default() })
}

/// Compares the samples of a run with the estimates that criterion wrote next to them.
///
/// # Errors
/// The bytes are not valid estimates.
pub fn check_criterion(run: &mut Run, estimates: &[u8]) -> Result<(), String> {
    let file: Estimates = serde_json::from_slice(estimates).map_err(|error| error.to_string())?;
    for benchmark in &mut run.benchmarks {
        let samples = match benchmark.metric(&Metric::LATENCY.name).map(|found| &found.series) {
            Some(Series::Processes(processes)) => {
                processes.iter().flat_map(|each| each.samples.clone()).collect()
            }
            _ => Vec::new(),
        };
        check_summary(benchmark, &samples, &file.summary());
    }
    Ok(())
}

impl Estimates {
    fn summary(&self) -> Summary {
        Summary {
            mean: self.mean.point_estimate,
            median: self.median.point_estimate,
            stddev: self.std_dev.point_estimate,
            ..Summary::default()
        }
    }
}

#[derive(Deserialize)]
struct CriterionBenchmark {
    full_id: String,
    /// The work of one iteration: `{"Elements": 1024}`.
    throughput: Option<serde_json::Value>,
}

/// Sets a run's benchmark name and its work per iteration from a `benchmark.json`. The work must be equal on
/// both sides.
///
/// # Errors
/// The bytes do not state a name.
pub fn describe_criterion(run: &mut Run, description: &[u8]) -> Result<(), String> {
    let file: CriterionBenchmark = serde_json::from_slice(description).map_err(|error| error.to_string())?;
    let name = BenchmarkName::new(carried(&file.full_id)?);
    let work = file.throughput.map_or_else(|| "not stated".to_owned(), |work| work.to_string());
    for benchmark in &mut run.benchmarks {
        benchmark.rename(name.clone());
        benchmark.labels.insert("throughput".to_owned(), work.clone());
    }
    Ok(())
}

/// Returns `GROUP/BENCHMARK` for `…/criterion/GROUP/BENCHMARK/new/sample.json`.
fn name_from(label: &str) -> String {
    let parts: Vec<&str> = label.split(['/', '\\']).filter(|part| !part.is_empty() && *part != ".").collect();
    let folders = &parts[..parts.len().saturating_sub(1)];
    // The last folder is the name of the baseline: `new`, `base`, or one that the user chose.
    let folders = &folders[..folders.len().saturating_sub(1)];
    let start = folders.iter().rposition(|part| *part == "criterion").map_or(0, |at| at + 1);
    let name = folders[start..].join("/");
    if name.is_empty() { "criterion".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commas_between_groups_of_three_digits_are_left_out() {
        let read = |value: &str| {
            read(&format!("test a ... bench: {value} ns/iter (+/- 1.0)\n")).map(|run| run.benchmarks.len())
        };
        for value in ["110", "110.5", "1,148.71", "12,345,678", "0.5"] {
            assert_eq!(read(value).unwrap(), 1, "{value}");
        }
        for value in ["110.000,00", "1,1,0,000.12", "110,00", ",110", "1148,710", "1.234,567", "1,,000"] {
            assert!(read(value).is_err(), "{value}");
        }
    }
}
