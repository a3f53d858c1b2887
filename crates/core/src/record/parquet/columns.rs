//! The columns, and the conversion of a session to rows. Writing and checking use the same rows.

use std::collections::BTreeMap;

use parquet::data_type::ByteArray;
use serde_json::Value;

use crate::model::Metric;
use crate::record::{BaselineBenchmark, BaselineFile, BaselineProcess, RecordError, SummaryRecord};

use super::wrong;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnKind {
    Text,
    /// Microseconds since 1970, UTC.
    Time,
    Int,
    Float,
    Bool,
}

/// A column: its name, its type, and whether a row may lack it.
pub(super) struct ParquetColumn {
    pub name: &'static str,
    pub kind: ColumnKind,
    pub optional: bool,
}

const fn required(name: &'static str, kind: ColumnKind) -> ParquetColumn {
    ParquetColumn { name, kind, optional: false }
}

const fn optional(name: &'static str, kind: ColumnKind) -> ParquetColumn {
    ParquetColumn { name, kind, optional: true }
}

pub(super) const COLUMNS: [ParquetColumn; 17] = [
    required("session", ColumnKind::Text),
    required("started", ColumnKind::Time),
    optional("commit", ColumnKind::Text),
    // Whether the benchmark was quarantined when it was stored.
    required("quarantined", ColumnKind::Bool),
    required("benchmark", ColumnKind::Text),
    required("outcome", ColumnKind::Text),
    // Absent for a metric that has one value for the whole benchmark.
    optional("process", ColumnKind::Int),
    // Absent in the only row of a benchmark or process that has no values.
    optional("metric", ColumnKind::Text),
    optional("unit", ColumnKind::Text),
    optional("better", ColumnKind::Text),
    // Number of repetitions.
    optional("n", ColumnKind::Int),
    // The median of the repetitions, or the only value.
    optional("value", ColumnKind::Float),
    optional("undisturbed", ColumnKind::Float),
    optional("stddev", ColumnKind::Float),
    optional("min", ColumnKind::Float),
    // JSON: the state of the machine around a process.
    optional("state", ColumnKind::Text),
    // JSON: the rest of the benchmark.
    required("detail", ColumnKind::Text),
];

/// Columns from which the session is rebuilt; the other columns are derived from them and only compared.
pub(super) const BENCHMARK: usize = 4;
pub(super) const PROCESS: usize = 6;
pub(super) const METRIC: usize = 7;
pub(super) const N: usize = 10;
pub(super) const VALUE: usize = 11;
pub(super) const UNDISTURBED: usize = 12;
pub(super) const STDDEV: usize = 13;
pub(super) const MIN: usize = 14;
pub(super) const STATE: usize = 15;
pub(super) const DETAIL: usize = 16;

/// The values of one column of a row group.
pub(super) enum ColumnValues {
    Text(Vec<ByteArray>),
    Int(Vec<i64>),
    Float(Vec<f64>),
    Bool(Vec<bool>),
}

/// One value of a row.
#[derive(Debug, Clone, Copy)]
pub(super) enum ParquetCell<'a> {
    None,
    Text(&'a str),
    Int(i64),
    Float(f64),
    Bool(bool),
}

impl ParquetCell<'_> {
    /// Returns whether two values are stored alike: NaN equals NaN, and 0 differs from -0.
    pub(super) fn is(self, other: ParquetCell<'_>) -> bool {
        match (self, other) {
            (ParquetCell::None, ParquetCell::None) => true,
            (ParquetCell::Text(a), ParquetCell::Text(b)) => a == b,
            (ParquetCell::Int(a), ParquetCell::Int(b)) => a == b,
            (ParquetCell::Float(a), ParquetCell::Float(b)) => a.to_bits() == b.to_bits(),
            (ParquetCell::Bool(a), ParquetCell::Bool(b)) => a == b,
            _ => false,
        }
    }
}

pub(super) type ParquetRow<'a> = [ParquetCell<'a>; COLUMNS.len()];

/// The columns that have one value for all rows of a session.
pub(super) struct Shared<'a> {
    file: &'a BaselineFile,
    started: i64,
    metrics: BTreeMap<&'a str, &'a Metric>,
}

impl<'a> Shared<'a> {
    /// Prepares the shared columns. The benchmarks of `file` are not needed yet.
    pub(super) fn new(file: &'a BaselineFile) -> Result<Self, RecordError> {
        let created: jiff::Timestamp = file
            .created
            .parse()
            .map_err(|_| wrong(format!("expected an RFC 3339 time, found {:?}", file.created)))?;
        let metrics = file.metrics.iter().map(|metric| (metric.name.as_ref(), metric)).collect();
        Ok(Self { file, started: created.as_microsecond(), metrics })
    }

    /// Calls `each` with every row of a benchmark.
    pub(super) fn rows(
        &self,
        benchmark: &BaselineBenchmark,
        mut each: impl FnMut(&ParquetRow<'_>) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        let detail = detail(benchmark)?;
        let mut quarantine = self.file.quarantine.iter();
        let quarantined =
            quarantine.any(|held| held.benchmark.as_ref().is_none_or(|name| *name == benchmark.name));
        let mut common = [ParquetCell::None; COLUMNS.len()];
        common[0] = ParquetCell::Text(&self.file.session);
        common[1] = ParquetCell::Int(self.started);
        common[2] = text(self.file.commit.as_deref());
        common[3] = ParquetCell::Bool(quarantined);
        common[BENCHMARK] = ParquetCell::Text(&benchmark.name);
        common[5] = ParquetCell::Text(benchmark.outcome.status.into_str());
        common[DETAIL] = ParquetCell::Text(&detail);
        for (at, process) in benchmark.processes.iter().enumerate() {
            let state = state(process)?;
            let mut row = common;
            row[PROCESS] = ParquetCell::Int(at as i64);
            row[STATE] = text(state.as_deref());
            if process.summaries.is_empty() {
                each(&row)?;
            }
            for (metric, summary) in &process.summaries {
                let mut row = row;
                self.name(&mut row, metric);
                numbers(&mut row, summary)?;
                each(&row)?;
            }
        }
        for value in &benchmark.values {
            let mut row = common;
            self.name(&mut row, &value.metric);
            row[VALUE] = ParquetCell::Float(value.value.0);
            each(&row)?;
        }
        if benchmark.processes.is_empty() && benchmark.values.is_empty() {
            each(&common)?;
        }
        Ok(())
    }

    fn name<'b>(&self, row: &mut ParquetRow<'b>, metric: &'b str)
    where
        'a: 'b,
    {
        row[METRIC] = ParquetCell::Text(metric);
        if let Some(described) = self.metrics.get(metric) {
            row[METRIC + 1] = ParquetCell::Text(described.unit.as_str());
            row[METRIC + 2] = ParquetCell::Text(described.better.as_str());
        }
    }
}

fn text(text: Option<&str>) -> ParquetCell<'_> {
    text.map_or(ParquetCell::None, ParquetCell::Text)
}

fn numbers(row: &mut ParquetRow<'_>, summary: &SummaryRecord) -> Result<(), RecordError> {
    let float = |number: Option<crate::record::Number>| {
        number.map_or(ParquetCell::None, |it| ParquetCell::Float(it.0))
    };
    row[N] =
        ParquetCell::Int(i64::try_from(summary.n).map_err(|_| wrong("a process has too many repetitions"))?);
    row[VALUE] = ParquetCell::Float(summary.median.0);
    row[UNDISTURBED] = float(summary.undisturbed);
    row[STDDEV] = float(summary.stddev);
    row[MIN] = float(summary.min);
    Ok(())
}

/// Returns the benchmark as JSON, without the values that have their own rows.
fn detail(benchmark: &BaselineBenchmark) -> Result<String, RecordError> {
    let rest = BaselineBenchmark {
        name: benchmark.name.clone(),
        labels: benchmark.labels.clone(),
        outcome: benchmark.outcome.clone(),
        artifact: benchmark.artifact.clone(),
        verification: benchmark.verification,
        sketches: benchmark.sketches.clone(),
        processes: Vec::new(),
        values: Vec::new(),
        anchored: benchmark.anchored.clone(),
        lints: benchmark.lints.clone(),
    };
    serde_json::to_string(&rest).map_err(|error| wrong(error.to_string()))
}

fn state(process: &BaselineProcess) -> Result<Option<String>, RecordError> {
    if process.state.is_empty() {
        return Ok(None);
    }
    serde_json::to_value(&process.state)
        .map(|state: Value| Some(state.to_string()))
        .map_err(|error| wrong(error.to_string()))
}
