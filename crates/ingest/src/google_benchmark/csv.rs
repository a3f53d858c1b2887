//! Google Benchmark CSV (`--benchmark_format=csv`), preceded by the lines about the host if both output
//! streams were kept. CSV does not mark aggregates: they are recognized by their names, and a `_cv` row has
//! no unit. Rows that were not measured end with their message, before the columns of the counters.

use std::borrow::Cow;

use benchgate_core::model::Run;

use super::super::text::lines;
use super::super::{LineFault, line_fault};
use super::TimeUnit;
use super::counters::MAX_COUNTERS;
use super::rows::{Families, GoogleBenchmarkRow};
use super::summaries::{Instance, Statistic};

/// The beginning of the header, which is the same in every release.
pub(crate) const HEADER: &str = "name,iterations,real_time,cpu_time,time_unit";

#[derive(Debug, Clone)]
enum CsvColumn {
    Name,
    Iterations,
    RealTime,
    CpuTime,
    TimeUnit,
    Label,
    ErrorOccurred,
    ErrorMessage,
    Counter(String),
}

/// Reads the whole file into context and benchmarks.
pub(crate) fn read(text: &str) -> Result<Run, LineFault> {
    let mut run = Run::default();
    let mut before = 0;
    let mut start = None;
    for line in lines(text) {
        if line.text.starts_with(HEADER) {
            start = Some(line);
            break;
        }
        super::read_line(line.text, &mut run.context);
        before = line.number;
    }
    let Some(header) = start else {
        return Err(line_fault(before.max(1), "it has no Google Benchmark CSV header"));
    };
    let table = &text[header.text.as_ptr() as usize - text.as_ptr() as usize..];
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(table.as_bytes());
    let mut columns: Vec<CsvColumn> = Vec::new();
    let mut families = Families::default();
    let mut tables = 0;
    let mut record = csv::StringRecord::new();
    loop {
        let more = reader.read_record(&mut record).map_err(|error| {
            let line = error.position().map_or(0, csv::Position::line);
            line_fault(before + line.max(1), "not valid CSV")
        })?;
        if !more {
            break;
        }
        let line = before + record.position().map_or(1, csv::Position::line);
        if columns.is_empty() {
            columns = record.iter().map(column).collect();
            if columns.len() > MAX_COUNTERS {
                return Err(line_fault(line, format!("more than {MAX_COUNTERS} columns")));
            }
        } else if record.len() != columns.len() && !is_without_counters(&record, &columns) {
            let what = format!("{} fields, but the header has {}", record.len(), columns.len());
            return Err(line_fault(line, what));
        } else if record.get(0) == Some("name") {
            // If files were concatenated, the header is repeated.
            tables += 1;
        } else {
            let mut row = read_row(&record, &columns, line)?;
            row.instance = Instance::of_table(tables);
            families.push(&mut row);
        }
    }
    // If a quoted last field is cut off, it parses as if the quote were closed, so only a newline proves that
    // the row is complete.
    if !text.ends_with('\n') {
        families.mark_last_as_cut();
    }
    run.benchmarks = families.finish();
    Ok(run)
}

/// Returns whether the row gives a reason for not being measured and ends there.
fn is_without_counters(record: &csv::StringRecord, columns: &[CsvColumn]) -> bool {
    let is_last = matches!(columns.get(record.len() - 1), Some(CsvColumn::ErrorMessage));
    let marked = columns
        .iter()
        .zip(record)
        .any(|(column, cell)| matches!(column, CsvColumn::ErrorOccurred) && mark(cell).is_some());
    is_last && marked
}

/// Returns whether a row is marked as an error. Spreadsheets write `TRUE`, and scripts `1`.
fn mark(cell: &str) -> Option<bool> {
    match cell.to_ascii_lowercase().as_str() {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

fn column(name: &str) -> CsvColumn {
    match name {
        "name" => CsvColumn::Name,
        "iterations" => CsvColumn::Iterations,
        "real_time" => CsvColumn::RealTime,
        "cpu_time" => CsvColumn::CpuTime,
        "time_unit" => CsvColumn::TimeUnit,
        "label" => CsvColumn::Label,
        "error_occurred" => CsvColumn::ErrorOccurred,
        "error_message" => CsvColumn::ErrorMessage,
        counter => CsvColumn::Counter(counter.to_owned()),
    }
}

fn read_row(
    record: &csv::StringRecord,
    columns: &[CsvColumn],
    line: u64,
) -> Result<GoogleBenchmarkRow<'static>, LineFault> {
    let mut row = GoogleBenchmarkRow::default();
    let mut real = None;
    let (mut errored, mut message) = ("", "");
    let mut unit = "";
    for (column, cell) in columns.iter().zip(record) {
        let number = || -> Result<Option<f64>, LineFault> {
            if cell.is_empty() {
                return Ok(None);
            }
            cell.parse().map(Some).map_err(|_| line_fault(line, "a number was expected"))
        };
        match column {
            CsvColumn::Name => row.family = Cow::Owned(cell.to_owned()),
            CsvColumn::Iterations => {
                row.count = number()?;
                row.iterations = row.count.unwrap_or(f64::NAN);
            }
            CsvColumn::RealTime => real = number()?,
            CsvColumn::CpuTime => row.cpu = number()?,
            CsvColumn::TimeUnit => unit = cell,
            CsvColumn::Label => row.label = (!cell.is_empty()).then(|| Cow::Owned(cell.to_owned())),
            CsvColumn::ErrorOccurred => errored = cell,
            CsvColumn::ErrorMessage => message = cell,
            CsvColumn::Counter(name) => {
                if let Some(value) = number()? {
                    row.counters.push((Cow::Owned(name.clone()), value));
                }
            }
        }
    }
    if row.family.is_empty() {
        return Err(line_fault(line, "a row without a name"));
    }
    let is_error = mark(errored);
    if is_error.is_none() && !errored.is_empty() {
        return Err(line_fault(line, "an error_occurred that is neither true nor false"));
    }
    // Only rows that were skipped with a message have the value `false`.
    if is_error == Some(false) && real.is_none() {
        row.skipped = Some(Cow::Owned(message.to_owned()));
        return Ok(row);
    }
    if is_error == Some(true) || !message.is_empty() {
        row.error = Some(Cow::Owned(message.to_owned()));
        return Ok(row);
    }
    row.real = real.ok_or_else(|| line_fault(line, "a row without a real_time"))?;
    let ratio = Statistic::split_suffix(&row.family)
        .is_some_and(|(_, statistic)| matches!(statistic, Statistic::Cv | Statistic::Fit));
    row.unit = if unit.is_empty() && ratio {
        TimeUnit::Ratio(1.0)
    } else {
        TimeUnit::parse(Cow::Owned(unit.to_owned()))
    };
    Ok(row)
}
