//! The suites' own `latency.csv` and `iree_latency.csv`: `timestamp, model, device or target, time`.
//!
//! Other columns are axes of the experiment (`batch`, `size_mb`), unless their names show that they number
//! the rows or measure something else, such as a rate. The time is in milliseconds unless the header states another unit;
//! `error` or `unsupported` can replace it. Each run appends rows, so every row with a name is one more
//! process.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use benchgate_core::model::{
    Benchmark, BenchmarkName, ENVIRONMENT, Lint, LintCode, Metric, MetricSeries, Outcome, Process, Run,
    Series, Stage, excerpt, is_in, words,
};

use super::build::{carried, fail, has_room, time_unit};
use super::facts::{self, Commits, is_axis, is_percentile};
use super::text::{cut_line, lines};
use super::{LineFault, line_fault};

/// The combined rows with one name.
struct LatencyRows {
    benchmark: Benchmark,
    times: Vec<Process>,
    rows: u64,
    errors: u64,
    /// The failure that another column of a row states.
    failed: Option<String>,
    /// The words of columns that say whether a result is right, which must be equal on both sides.
    verdicts: BTreeMap<String, BTreeSet<String>>,
    /// The numbers of columns that say how right a result is, and rates.
    compared: BTreeMap<String, Vec<f64>>,
    unsupported: u64,
    zero: u64,
    not_finite: u64,
}

/// Maximum number of different words of a column that are kept, and of their characters.
const MOST_WORDS: usize = 16;
const LONGEST_WORDS: usize = 200;

struct LatencyColumns {
    model: usize,
    target: usize,
    time: usize,
    /// Position and name of each axis; its values are part of a benchmark's name.
    axes: Vec<(usize, String)>,
    /// Position and name of each column that can state a failure.
    others: Vec<(usize, String)>,
    /// Positions of the columns that date a row.
    dates: Vec<usize>,
    count: usize,
    /// Nanoseconds in the unit of the time column.
    scale: f64,
    /// The name of the time column, if it states which statistic the time is.
    statistic: Option<String>,
}

/// Returns whether this line is the header or a row of such a file.
pub(super) fn is_row(line: &str) -> bool {
    header(line).is_some() || is_dated_row(line)
}

/// Returns whether this line is a row that begins with a date.
pub(super) fn is_dated_row(line: &str) -> bool {
    let cells: Vec<&str> = line.split(',').map(str::trim).take(5).collect();
    cells.len() == 4
        && cells[0].len() >= 8
        && cells[0].starts_with(|c: char| c.is_ascii_digit())
        && cells[0].contains(['-', ':'])
        && !cells[1].is_empty()
        && !cells[2].is_empty()
        && (matches!(cells[3], "error" | "unsupported") || cells[3].parse::<f64>().is_ok())
}

fn bare(cell: &str) -> &str {
    cell.trim().trim_matches('"')
}

/// Returns the fields of a line in which a quoted field may contain a comma (RFC 4180).
fn record(line: &str) -> Option<csv::StringRecord> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(line.as_bytes());
    reader.records().next()?.ok()
}

/// Returns the columns that a header names; `None` if the line is not a header.
///
/// # Errors
/// Several columns could be the time.
fn header(line: &str) -> Option<Result<LatencyColumns, String>> {
    let cells: Vec<String> =
        line.split(',').map(|cell| cell.trim().trim_matches('"').to_ascii_lowercase()).take(32).collect();
    let find = |names: &[&str]| cells.iter().position(|cell| names.contains(&cell.as_str()));
    let named = |scale: fn(&[&str]) -> Option<f64>| -> Vec<(usize, f64)> {
        cells.iter().enumerate().filter_map(|(at, cell)| Some((at, scale(&words(cell))?))).collect()
    };
    let times =
        Some(named(time_scale)).filter(|found| !found.is_empty()).unwrap_or_else(|| named(milliseconds));
    // If several columns match, `tile_ms` and `time_limit_ms` can be axes of the experiment.
    let mut measured: Vec<(u8, usize, f64)> = Vec::new();
    for (at, scale) in &times {
        let words = words(&cells[*at]);
        if times.len() == 1 || !is_axis(&words) {
            measured.push((rank(&words), *at, *scale));
        }
    }
    measured.sort_by_key(|(rank, at, _)| (*rank, *at));
    let (best, time, scale) = *measured.first()?;
    let (model, target) = (find(&["model"])?, find(&["device", "target", "backend"])?);
    if let Some((_, other, _)) = measured.get(1).filter(|(rank, ..)| *rank == best) {
        return Some(Err(format!("`{}` and `{}` may both be the time", cells[time], cells[*other])));
    }
    let others = cells.iter().cloned().enumerate();
    let others: Vec<_> = others.filter(|(at, _)| ![model, target, time].contains(at)).collect();
    let axes = others.iter().filter(|(_, cell)| {
        is_axis(&words(cell)) && !is_tool_version(cell) && !facts::is_measured_rate(cell)
    });
    let dates = others.iter().filter(|(_, cell)| words(cell).iter().any(|word| is_in(DATES, word)));
    Some(Ok(LatencyColumns {
        model,
        target,
        time,
        axes: axes.cloned().collect(),
        dates: dates.map(|(at, _)| *at).collect(),
        others,
        count: cells.len(),
        scale,
        statistic: (best > 0).then(|| cells[time].clone()),
    }))
}

impl LatencyColumns {
    /// Leaves columns out of the axes that contain measured times in the rows after the header: times of parts
    /// (`first_token_ms`) have more digits than settings.
    fn leave_out_times(&mut self, rows: &str) {
        /// Maximum number of rows that are looked at.
        const MOST: usize = 64;
        let is_time = |name: &str| words(name).last().is_some_and(|unit| time_unit(unit).is_some());
        self.axes.retain(|(at, name)| {
            let all = lines(rows).map(|line| line.text).take_while(|line| header(line).is_none()).take(MOST);
            let values: Vec<&str> = all.filter_map(|line| line.split(',').nth(*at).map(bare)).collect();
            // `0.250` has two decimals.
            let decimals = |value: &str| {
                let (_, decimals) = value.parse::<f64>().ok().and(value.split_once('.'))?;
                Some(decimals.trim_end_matches('0').len())
            };
            let is_number = |value: &&str| decimals(value).is_some();
            let is_fine = |value: &&&str| {
                decimals(value)
                    .is_some_and(|count| count > 2 || count > 0 && value.trim_end_matches('0').len() > 4)
            };
            let fine = values.iter().filter(is_fine).count();
            let different = values.iter().collect::<BTreeSet<_>>().len();
            let mut sorted: Vec<f64> = values.iter().filter_map(|value| value.parse().ok()).collect();
            sorted.sort_by(f64::total_cmp);
            sorted.dedup();
            let steps: Vec<f64> = sorted.windows(2).map(|pair| pair[1] - pair[0]).collect();
            // A sweep has equal steps.
            let is_sweep = steps.len() > 1 && steps.iter().all(|step| (step / steps[0] - 1.0).abs() < 1e-6);
            let is_measured = !is_sweep
                && values.iter().all(is_number)
                && 2 * fine > values.len()
                && 2 * different > values.len();
            !(is_time(name) && is_measured)
        });
    }
}

/// Words in the names of columns that date a row.
const DATES: &str = "timestamp datetime date";

/// Programs whose version is part of the environment. The version of a model or of data tells experiments apart.
const TOOLS: &str = "compiler toolchain framework runtime iree torch pytorch xla jax onnx onnxruntime ort tensorrt tvm triton llvm \
    clang gcc cuda rocm python numpy";

fn is_tool_version(name: &str) -> bool {
    let words = words(name);
    let is_known = |word: &&str| matches!(*word, "version") || is_in(TOOLS, word);
    words.len() > 1 && words.contains(&"version") && words.iter().all(is_known)
}

/// Returns how well a time column states the typical time of its row; 0 is best. Two columns of the same rank
/// contradict each other.
fn rank(words: &[&str]) -> u8 {
    let has = |known: &[&str]| words.iter().any(|word| known.contains(word));
    if has(&["std", "stddev", "stdev", "var", "cv", "max"]) || words.iter().any(|word| is_percentile(word)) {
        5
    } else if has(&["min"]) && words.last() != Some(&"min") {
        4
    } else if has(&["median"]) {
        2
    } else if has(&["mean", "avg", "average"]) {
        1
    } else if words.first().is_some_and(|word| matches!(*word, "time" | "latency")) {
        0
    } else {
        3
    }
}

/// Returns the nanoseconds in the unit of a time column: `time`, `latency_mean_us`, `latency (s)`. The
/// default unit is the millisecond; a column whose unit is unknown is not read.
fn time_scale(words: &[&str]) -> Option<f64> {
    match words {
        ["time" | "latency"] => time_unit("ms"),
        // At this position, `min` is a statistic and not a unit.
        ["time" | "latency", rest @ .., _]
            if rest.iter().any(|word| *word != "min" && time_unit(word).is_some()) =>
        {
            None
        }
        ["time" | "latency", .., unit] => time_unit(unit),
        _ => None,
    }
}

/// Recognizes a column of milliseconds with another name: `wall_ms`, but not a limit.
fn milliseconds(words: &[&str]) -> Option<f64> {
    match words {
        [_, .., "ms"] if !words.contains(&"timeout") => time_unit("ms"),
        _ => None,
    }
}

pub(super) fn read(text: &str) -> Result<Run, LineFault> {
    let mut columns = LatencyColumns {
        model: 1,
        target: 2,
        time: 3,
        axes: Vec::new(),
        others: Vec::new(),
        dates: vec![0],
        count: 4,
        scale: 1e6,
        statistic: None,
    };
    let mut list: Vec<LatencyRows> = Vec::new();
    let mut commits = Commits::default();
    let mut index: HashMap<String, usize> = HashMap::new();
    for line in lines(text) {
        if line.text.trim().is_empty() {
            continue;
        }
        if let Some(found) = header(line.text) {
            columns = found.map_err(|what| line_fault(line.number, what))?;
            let end = line.text.as_ptr() as usize - text.as_ptr() as usize + line.text.len();
            columns.leave_out_times(&text[end..]);
            for (_, axis) in &columns.others {
                carried(axis).map_err(|what| line_fault(line.number, what))?;
            }
            continue;
        }

        let quoted = if line.text.contains('"') { record(line.text) } else { None };
        let cells: Vec<&str> = match quoted.as_ref().filter(|record| record.len() == columns.count) {
            Some(record) => record.iter().map(bare).collect(),
            None => line.text.split(',').map(bare).take(33).collect(),
        };
        if cells.len() != columns.count {
            let what = format!("{} fields, but the header has {}", cells.len(), columns.count);
            return Err(line_fault(line.number, what));
        }
        let (model, target, time) = (cells[columns.model], cells[columns.target], cells[columns.time]);
        if model.is_empty() || target.is_empty() {
            return Err(line_fault(line.number, "a row without a model or a device"));
        }
        let axes = || columns.axes.iter().map(|(at, axis)| (axis, cells[*at]));
        let mut name = format!("{model}/{target}");
        for (axis, value) in axes() {
            name.push_str(&format!("/{axis}={value}"));
        }
        if !index.contains_key(&name) && !has_room(list.len()) {
            break;
        }
        let at = *index.entry(name).or_insert_with_key(|name| {
            let mut rows = LatencyRows::new(name, model, target);
            rows.benchmark.labels.extend(axes().map(|(axis, value)| (axis.clone(), value.to_owned())));
            // The label keeps sides that state different statistics from being compared.
            rows.benchmark.labels.extend(columns.statistic.clone().map(|it| ("column".to_owned(), it)));
            list.push(rows);
            list.len() - 1
        });
        let rows = &mut list[at];
        let dated = columns.dates.iter().map(|at| cells[*at]).collect::<Vec<_>>().join(" ");
        rows.take(time, columns.scale, dated).map_err(|what| line_fault(line.number, what))?;
        // A commit that is an axis is part of the name.
        let is_axis = |at: usize| columns.axes.iter().any(|(axis, _)| *axis == at);
        let others = || columns.others.iter().filter(|(at, _)| !is_axis(*at));
        commits.add(others().map(|(at, name)| (name.as_str(), cells[*at])));
        let compared = others().filter_map(|(at, name)| Some((name, facts::compared(name, cells[*at])?)));
        for (name, value) in compared {
            rows.compared.entry(name.clone()).or_default().push(value);
        }
        for (name, value) in columns.others.iter().map(|(at, name)| (name, cells[*at])) {
            rows.failed = rows.failed.take().or_else(|| facts::failure(name, value));
            if facts::is_verdict(name, value) {
                rows.verdicts.entry(name.clone()).or_default().insert(value.to_owned());
            }
            let Benchmark { labels, lints, .. } = &mut rows.benchmark;
            if is_tool_version(name) {
                let known = labels.entry(format!("{ENVIRONMENT}{name}")).or_insert_with(|| value.to_owned());
                let other =
                    Lint::new(LintCode::SeveralPrograms, format!("`{name}` is not the same in all rows"));
                lints.extend(Some(other).filter(|other| known != value && !lints.contains(other)));
            }
            lints.extend(facts::problem(name, value).filter(|problem| !lints.contains(problem)));
        }
        // The time may be the last column, and a truncated number still looks like a number.
        if !line.terminated {
            rows.benchmark.lints.push(cut_line());
        }
    }
    let benchmarks = list.into_iter().map(LatencyRows::finish).collect();
    let mut run = Run { benchmarks, ..Run::default() };
    commits.finish(&mut run);
    Ok(run)
}

impl LatencyRows {
    fn new(name: &str, model: &str, target: &str) -> Self {
        let mut benchmark = Benchmark::new("");
        benchmark.name = BenchmarkName::new(name);
        benchmark.labels.insert("model".to_owned(), model.to_owned());
        benchmark.labels.insert("target".to_owned(), target.to_owned());
        Self {
            benchmark,
            times: Vec::new(),
            rows: 0,
            errors: 0,
            failed: None,
            verdicts: BTreeMap::new(),
            compared: BTreeMap::new(),
            unsupported: 0,
            zero: 0,
            not_finite: 0,
        }
    }

    fn take(&mut self, time: &str, scale: f64, dated: String) -> Result<(), &'static str> {
        self.rows += 1;
        match time {
            "error" => self.errors += 1,
            "unsupported" => self.unsupported += 1,
            _ => {
                let value =
                    time.parse::<f64>().map_err(|_| "expected a time, `error` or `unsupported`")? * scale;
                if !value.is_finite() {
                    self.not_finite += 1;
                } else if value <= 0.0 {
                    self.zero += 1;
                } else {
                    let dated = Some(dated).filter(|dated| !dated.is_empty()).map(Arc::from);
                    self.times.push(Process { samples: vec![value], dated, ..Process::default() });
                }
            }
        }
        Ok(())
    }

    fn finish(self) -> Benchmark {
        let Self { mut benchmark, times, rows, errors, unsupported, .. } = self;
        for (name, words) in self.verdicts {
            let words: Vec<&str> = words.iter().map(String::as_str).take(MOST_WORDS).collect();
            benchmark.labels.insert(format!("field {name}"), excerpt(&words.join(", "), LONGEST_WORDS));
        }
        if errors > 0 {
            fail(&mut benchmark, Stage::Benchmark, format!("`error` in {errors} of {rows} rows"));
            return benchmark;
        }
        if let Some(why) = self.failed {
            fail(&mut benchmark, Stage::Benchmark, why);
            return benchmark;
        }
        if unsupported == rows {
            benchmark.outcome =
                Outcome::Unsupported { reason: "declared unsupported in the file".to_owned() };
            return benchmark;
        }
        let mut lint = |code, count: u64, what: &str| {
            if count > 0 {
                benchmark.lints.push(Lint::new(code, format!("{count} of {rows} {what}")));
            }
        };
        lint(LintCode::SkippedRow, unsupported, "rows say unsupported");
        lint(LintCode::ZeroTime, self.zero, "times are zero or less");
        lint(LintCode::NonFinite, self.not_finite, "times are NaN or infinite");
        if times.len() == 1 && rows == 1 {
            benchmark.lints.push(Lint::new(LintCode::SingleRepetition, "one row"));
        }
        if !times.is_empty() {
            let series = Series::Processes(times);
            benchmark.metrics.push(MetricSeries { metric: Metric::LATENCY, series });
        }
        for (name, values) in self.compared {
            facts::state_values(&mut benchmark, &name, values);
        }
        benchmark
    }
}
