//! The compile benchmark, which compares eager, jit, torch.compile, ONNX and TensorRT: its JSON artifacts,
//! and the Markdown tables that people keep of them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use benchgate_core::model::{Benchmark, Metric, Run, Stage, Summary};

use super::build::{carried, check_summary, fail, processes, summary, time_unit};
use super::facts::{self, Commits, Field};
use super::google_benchmark::{fixed_words, numbers};
use super::join::ByName;
use super::json::{parse, unique_map};
use super::text::lines;
use super::{LineFault, line_fault};

/// Creates a benchmark named `model/device/backend`, leaving out unknown parts.
fn named(model: Option<&str>, device: Option<&str>, backend: &str) -> Benchmark {
    let parts: Vec<&str> = [model, device, Some(backend)].into_iter().flatten().collect();
    let mut benchmark = Benchmark::new(parts.join("/"));
    for (label, value) in [("model", model), ("target", device), ("backend", Some(backend))] {
        if let Some(value) = value {
            benchmark.labels.insert(label.to_owned(), value.to_owned());
        }
    }
    benchmark
}

#[derive(Deserialize)]
struct CompileBenchmarkFile {
    model: Option<String>,
    device: Option<String>,
    #[serde(alias = "runs")]
    num_runs: Option<u64>,
    results: Vec<CompileBenchmarkEntry>,
    #[serde(flatten, deserialize_with = "unique_map")]
    other: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
struct CompileBenchmarkEntry {
    backend: String,
    #[serde(alias = "mean_ms", alias = "latency_ms")]
    mean_latency_ms: Option<f64>,
    #[serde(alias = "std_ms", alias = "stddev_ms")]
    std_latency_ms: Option<f64>,
    #[serde(alias = "median_ms")]
    median_latency_ms: Option<f64>,
    #[serde(alias = "times_ms", alias = "samples_ms")]
    latencies_ms: Option<Vec<Option<f64>>>,
    #[serde(alias = "compile_time", alias = "compile_s")]
    compile_time_s: Option<f64>,
    success: Option<bool>,
    #[serde(alias = "reason", alias = "failure")]
    error: Option<String>,
    #[serde(flatten, deserialize_with = "unique_map")]
    other: BTreeMap<String, Value>,
}

/// The JSON artifact for one model on one device: `{"model", "device", "results": [{"backend", …}]}`. Its
/// versions spell the same field differently, so every known spelling is accepted.
pub(crate) fn read_json(text: &str) -> Result<Run, LineFault> {
    let file: CompileBenchmarkFile = parse(text)?;
    for name in [&file.model, &file.device].into_iter().flatten() {
        carried(name).map_err(|what| line_fault(1, what))?;
    }
    let of_file = facts::of_json(&file.other);
    let mut commits = Commits::default();
    commits.add(facts::borrowed(&of_file));
    let shared = facts::shared(of_file).map_err(|what| line_fault(1, what))?;
    let mut benchmarks = ByName::default();
    for entry in &file.results {
        let mut benchmark = of_entry(entry, &file);
        let of_row = facts::of_json(&entry.other);
        commits.add(facts::borrowed(&of_row));
        let is_of_file = |(name, _): &&Field| of_row.iter().all(|(of_row, _)| of_row != name);
        let fields: Vec<Field> = of_row.iter().chain(shared.iter().filter(is_of_file)).cloned().collect();
        facts::state(&mut benchmark, &fields);
        benchmarks.push_once(benchmark);
    }
    let mut run = Run { benchmarks: benchmarks.finish(), ..Run::default() };
    commits.finish(&mut run);
    Ok(run)
}

fn of_entry(entry: &CompileBenchmarkEntry, file: &CompileBenchmarkFile) -> Benchmark {
    let mut benchmark = named(file.model.as_deref(), file.device.as_deref(), &entry.backend);
    let error = entry.error.as_deref().filter(|error| !error.is_empty());
    if error.is_some() || entry.success == Some(false) {
        fail(&mut benchmark, Stage::Compile, error.unwrap_or_default());
        return benchmark;
    }
    let mut stated = Summary {
        mean: entry.mean_latency_ms,
        median: entry.median_latency_ms,
        stddev: entry.std_latency_ms,
        ..Summary::default()
    };
    match (&entry.latencies_ms, entry.mean_latency_ms.or(entry.median_latency_ms)) {
        (Some(times), _) if !times.is_empty() => {
            let samples: Vec<f64> = times.iter().map(|time| time.unwrap_or(f64::NAN)).collect();
            check_summary(&mut benchmark, &samples, &stated);
            processes(&mut benchmark, Metric::LATENCY, 1e6, vec![samples]);
        }
        (Some(_), _) => {
            fail(&mut benchmark, Stage::Benchmark, "the list of latencies is empty");
            return benchmark;
        }
        (None, Some(_)) => {
            stated.n = file.num_runs;
            summary(&mut benchmark, Metric::LATENCY, 1e6, stated);
        }
        (None, None) => {
            fail(&mut benchmark, Stage::Benchmark, "no latency");
            return benchmark;
        }
    }
    if let Some(time) = entry.compile_time_s {
        let stated = Summary { mean: Some(time), ..Summary::default() };
        summary(&mut benchmark, Metric::COMPILE_TIME, 1e9, stated);
    }
    benchmark
}

/// Devices that a heading can name.
const DEVICES: [&str; 8] = ["cpu", "cuda", "gpu", "rocm", "hip", "vulkan", "metal", "mps"];

/// The columns of the current table.
#[derive(Clone)]
struct MarkdownColumns {
    model: Option<usize>,
    backend: usize,
    mean: (usize, f64),
    stddev: Option<(usize, f64)>,
    compile: Option<(usize, f64)>,
    notes: Option<usize>,
    /// Position and title of each other column.
    others: Vec<(usize, String)>,
    count: usize,
}

/// Returns whether this line is the header of a table of latencies by backend.
pub(crate) fn is_header(line: &str) -> bool {
    cells(line).is_some_and(|(cells, _)| columns(&cells).is_some())
}

/// Returns the cells of a table row, and the text after the last bar.
fn cells(line: &str) -> Option<(Vec<&str>, &str)> {
    let inner = line.trim().strip_prefix('|')?;
    let (inner, rest) = inner.rsplit_once('|')?;
    Some((inner.split('|').map(str::trim).take(64).collect(), rest.trim()))
}

fn columns(cells: &[&str]) -> Option<MarkdownColumns> {
    let lower: Vec<String> = cells.iter().map(|cell| cell.to_ascii_lowercase()).collect();
    let find = |wanted: &dyn Fn(&str) -> bool| lower.iter().position(|cell| wanted(cell));
    let with_unit = |at: usize| -> Option<(usize, f64)> {
        let unit = lower[at].rsplit_once('(')?.1.trim_end_matches(')');
        Some((at, time_unit(unit)?))
    };
    let mut columns = MarkdownColumns {
        model: find(&|cell| cell == "model"),
        backend: find(&|cell| cell == "backend")?,
        mean: with_unit(find(&is_time)?)?,
        stddev: find(&|cell| cell.starts_with("std")).and_then(with_unit),
        compile: find(&|cell| cell.starts_with("compile")).and_then(with_unit),
        notes: find(&|cell| cell == "notes"),
        others: Vec::new(),
        count: cells.len(),
    };
    let MarkdownColumns { model, backend, mean, stddev, compile, notes, .. } = columns;
    let read = [model, Some(backend), Some(mean.0), stddev.map(|it| it.0), compile.map(|it| it.0), notes];
    columns.others = lower.into_iter().enumerate().filter(|(at, _)| !read.contains(&Some(*at))).collect();
    Some(columns)
}

/// Returns whether a column with this title, in lower case, states the time that decides.
fn is_time(title: &str) -> bool {
    title.contains("latency") || title.starts_with("mean")
}

/// Reads every latency table of a Markdown document. A blank model cell repeats the one above. The heading before a
/// table names the device. `-` stands for no value, and `**Failed:** why` for a failure, which must not look
/// like a missing number.
pub(crate) fn read_markdown(text: &str) -> Result<Run, LineFault> {
    let (mut benchmarks, mut commits) = (ByName::default(), Commits::default());
    let mut device: Option<String> = None;
    // The heading before a table, and the lines of pairs (`dtype: f32`) after it.
    let (mut above, mut level) = (String::new(), 1);
    let mut table: Option<MarkdownColumns> = None;
    let mut model: Option<String> = None;
    for line in lines(text) {
        let row = cells(line.text);
        if let Some((row, _)) = &row {
            if let Some(found) = columns(row) {
                if row.iter().filter(|cell| is_time(&cell.to_ascii_lowercase())).count() > 1 {
                    return Err(line_fault(line.number, "a table with several columns of times"));
                }
                table = Some(found);
                model = None;
            } else if row.iter().any(|cell| cell.eq_ignore_ascii_case("backend")) {
                let what = "a table of backends whose time has no column such as `Latency (ms)`";
                return Err(line_fault(line.number, what));
            } else if row.iter().all(|cell| cell.bytes().all(|byte| matches!(byte, b'-' | b':'))) {
                // The line of dashes below the header.
            } else if let Some(columns) = &table {
                if row.len() != columns.count {
                    let what = format!("{} cells, but the header has {}", row.len(), columns.count);
                    return Err(line_fault(line.number, what));
                }
                let named = columns.model.map(|at| row[at].trim_matches('`')).filter(|name| !name.is_empty());
                if let Some(named) = named {
                    let named = carried(named).map_err(|what| line_fault(line.number, what))?;
                    model = Some(named.to_owned());
                }
                let read = of_cells(row, columns, model.as_deref(), device.as_deref());
                let mut read = read.map_err(|what| line_fault(line.number, what))?;
                let others = columns.others.iter();
                let others: Vec<Field> =
                    others.map(|(at, title)| (title.clone(), row[*at].to_owned())).collect();
                commits.add(facts::borrowed(&others));
                facts::state(&mut read, &others);
                state_text(&mut read, &above);
                benchmarks.push_once(read);
            }
        } else if table.is_some() && line.text.trim_start().starts_with('|') {
            return Err(line_fault(line.number, "a table row without a closing bar"));
        } else if table.is_some() && line.text.contains('|') {
            return Err(line_fault(line.number, "a row of a table without a bar at each end"));
        } else if !line.text.trim().is_empty() {
            table = None;
        }
        let depth = line.text.trim_start().chars().take_while(|c| *c == '#').count();
        if row.is_none() && depth > 0 {
            // The text above a heading also belongs to deeper ones.
            if depth <= level {
                above.clear();
            }
            level = depth;
        }
        if row.is_none() && line.text.contains(['#', ':', '=']) && above.len() < LONGEST_TEXT {
            above.push_str(", ");
            above.push_str(line.text);
        }
        // If line breaks were lost, a heading may follow on the line of the last row.
        if let Some(found) = heading_device(row.map_or(line.text, |(_, rest)| rest)) {
            device = Some(found);
            table = None;
        }
    }
    let mut run = Run { benchmarks: benchmarks.finish(), ..Run::default() };
    commits.finish(&mut run);
    Ok(run)
}

/// Number of bytes of the text above a table from which no further line is read.
const LONGEST_TEXT: usize = 1024;

/// States the words and numbers of a text about a benchmark, which must be equal on both sides.
fn state_text(benchmark: &mut Benchmark, text: &str) {
    let words = fixed_words(text);
    if !words.is_empty() {
        facts::state(benchmark, &[("text".to_owned(), words)]);
    }
    for (name, value) in numbers(text) {
        facts::state_values(benchmark, &name, vec![value]);
    }
}

/// Returns the device in the last heading of a line.
fn heading_device(text: &str) -> Option<String> {
    let (_, heading) = text.rsplit_once("# ")?;
    let words = heading.split(|c: char| !c.is_ascii_alphanumeric()).take(16);
    words.map(str::to_ascii_lowercase).find(|word| DEVICES.contains(&word.as_str()))
}

fn of_cells(
    row: &[&str],
    columns: &MarkdownColumns,
    model: Option<&str>,
    device: Option<&str>,
) -> Result<Benchmark, String> {
    let backend = row[columns.backend].trim_matches('`');
    if backend.is_empty() {
        return Err("a row without a backend".to_owned());
    }
    let number = |(at, scale): (usize, f64)| -> Result<Option<(f64, f64)>, String> {
        match row[at] {
            "" | "-" | "–" | "n/a" => Ok(None),
            cell => match cell.parse() {
                Ok(value) => Ok(Some((value, scale))),
                Err(_) => Err("a cell that is neither a number nor `-`".to_owned()),
            },
        }
    };
    let mut benchmark = named(model, device, backend);
    let notes = columns.notes.map_or("", |at| row[at]);
    if let Some((_, why)) = notes.split_once("**Failed:**") {
        fail(&mut benchmark, Stage::Compile, why.trim());
        return Ok(benchmark);
    }
    let Some((mean, scale)) = number(columns.mean)? else {
        fail(&mut benchmark, Stage::Benchmark, if notes.is_empty() { "no latency" } else { notes });
        return Ok(benchmark);
    };
    let stddev = columns.stddev.map(number).transpose()?.flatten();
    let stated = Summary {
        mean: Some(mean),
        stddev: stddev.map(|(value, of)| value * of / scale),
        ..Summary::default()
    };
    summary(&mut benchmark, Metric::LATENCY, scale, stated);
    if let Some((time, scale)) = columns.compile.map(number).transpose()?.flatten() {
        let stated = Summary { mean: Some(time), ..Summary::default() };
        summary(&mut benchmark, Metric::COMPILE_TIME, scale, stated);
    }
    Ok(benchmark)
}
