//! Markdown tables with a latency column. A blank model cell repeats the one above. The heading before a
//! table names the device. `-` stands for no value, and `**Failed:** why` for a failure, which must not look
//! like a missing number.

use benchgate_core::model::{Benchmark, Metric, Run, Stage, Summary};

use super::super::build::{ByName, carried, fail, summary, time_unit};
use super::super::error::{LineFault, line_fault};
use super::super::facts::{self, Commits, Field};
use super::super::text::lines;
use super::named;

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

/// Reads every latency table of a document.
pub(crate) fn read(text: &str) -> Result<Run, LineFault> {
    let (mut benchmarks, mut commits) = (ByName::default(), Commits::default());
    let mut device: Option<String> = None;
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
                let read = benchmark(row, columns, model.as_deref(), device.as_deref());
                let mut read = read.map_err(|what| line_fault(line.number, what))?;
                let others = columns.others.iter();
                let others: Vec<Field> =
                    others.map(|(at, title)| (title.clone(), row[*at].to_owned())).collect();
                commits.add(facts::borrowed(&others));
                facts::state(&mut read, &others);
                benchmarks.push_once(read);
            }
        } else if table.is_some() && line.text.trim_start().starts_with('|') {
            return Err(line_fault(line.number, "a table row without a closing bar"));
        } else if table.is_some() && line.text.contains('|') {
            return Err(line_fault(line.number, "a row of a table without a bar at each end"));
        } else if !line.text.trim().is_empty() {
            table = None;
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

/// Returns the device in the last heading of a line.
fn heading_device(text: &str) -> Option<String> {
    let (_, heading) = text.rsplit_once("# ")?;
    let words = heading.split(|c: char| !c.is_ascii_alphanumeric()).take(16);
    words.map(str::to_ascii_lowercase).find(|word| DEVICES.contains(&word.as_str()))
}

fn benchmark(
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
