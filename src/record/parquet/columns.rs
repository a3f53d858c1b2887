//! The columns, and the rows of a session in them. Writing and checking use the same rows.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::model::Metric;
use crate::record::{BaselineBenchmark, BaselineFile, BaselineProcess, RecordError, SummaryRecord};

use super::wrong;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    /// Microseconds since 1970, UTC.
    Time,
    Int,
    Float,
    Bool,
}

/// A column: its name, what it holds, and whether a row may lack it.
pub(super) struct Column {
    pub name: &'static str,
    pub kind: Kind,
    pub optional: bool,
}

const fn required(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, optional: false }
}

const fn optional(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, optional: true }
}

pub(super) const COLUMNS: [Column; 17] = [
    required("session", Kind::Text),
    required("started", Kind::Time),
    optional("commit", Kind::Text),
    // Whether the benchmark was quarantined when it was stored.
    required("quarantined", Kind::Bool),
    required("benchmark", Kind::Text),
    required("outcome", Kind::Text),
    // Absent for a metric with one value for the benchmark.
    optional("process", Kind::Int),
    // Absent in the one row of a benchmark or process without values.
    optional("metric", Kind::Text),
    optional("unit", Kind::Text),
    optional("better", Kind::Text),
    // Repetitions.
    optional("n", Kind::Int),
    // The median of the repetitions, or the one value.
    optional("value", Kind::Float),
    optional("undisturbed", Kind::Float),
    optional("stddev", Kind::Float),
    optional("min", Kind::Float),
    // JSON: the state of the machine around a process.
    optional("state", Kind::Text),
    // JSON: the rest of the benchmark.
    required("detail", Kind::Text),
];

/// Columns that the session is rebuilt from; the others are derived from it and only compared.
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

/// One value of a row.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cell<'a> {
    None,
    Text(&'a str),
    Int(i64),
    Float(f64),
    Bool(bool),
}

impl Cell<'_> {
    /// Equal where they would be stored alike: NaN equals NaN, and 0 differs from -0.
    pub(super) fn is(self, other: Cell<'_>) -> bool {
        match (self, other) {
            (Cell::None, Cell::None) => true,
            (Cell::Text(a), Cell::Text(b)) => a == b,
            (Cell::Int(a), Cell::Int(b)) => a == b,
            (Cell::Float(a), Cell::Float(b)) => a.to_bits() == b.to_bits(),
            (Cell::Bool(a), Cell::Bool(b)) => a == b,
            _ => false,
        }
    }
}

pub(super) type Row<'a> = [Cell<'a>; COLUMNS.len()];

/// What the rows of a session share.
pub(super) struct Shared<'a> {
    file: &'a BaselineFile,
    started: i64,
    metrics: BTreeMap<&'a str, &'a Metric>,
}

impl<'a> Shared<'a> {
    /// `file` may lack its benchmarks.
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
        mut each: impl FnMut(&Row<'_>) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        let detail = detail(benchmark)?;
        let mut quarantine = self.file.quarantine.iter();
        let quarantined =
            quarantine.any(|held| held.benchmark.as_ref().is_none_or(|name| *name == benchmark.name));
        let mut common = [Cell::None; COLUMNS.len()];
        common[0] = Cell::Text(&self.file.session);
        common[1] = Cell::Int(self.started);
        common[2] = text(self.file.commit.as_deref());
        common[3] = Cell::Bool(quarantined);
        common[BENCHMARK] = Cell::Text(&benchmark.name);
        common[5] = Cell::Text(benchmark.outcome.status.into_str());
        common[DETAIL] = Cell::Text(&detail);
        for (at, process) in benchmark.processes.iter().enumerate() {
            let state = state(process)?;
            let mut row = common;
            row[PROCESS] = Cell::Int(at as i64);
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
            row[VALUE] = Cell::Float(value.value.0);
            each(&row)?;
        }
        if benchmark.processes.is_empty() && benchmark.values.is_empty() {
            each(&common)?;
        }
        Ok(())
    }

    fn name<'b>(&self, row: &mut Row<'b>, metric: &'b str)
    where
        'a: 'b,
    {
        row[METRIC] = Cell::Text(metric);
        if let Some(described) = self.metrics.get(metric) {
            row[METRIC + 1] = Cell::Text(described.unit.as_str());
            row[METRIC + 2] = Cell::Text(described.better.as_str());
        }
    }
}

fn text(text: Option<&str>) -> Cell<'_> {
    text.map_or(Cell::None, Cell::Text)
}

fn numbers(row: &mut Row<'_>, summary: &SummaryRecord) -> Result<(), RecordError> {
    let float = |number: Option<crate::record::Number>| number.map_or(Cell::None, |it| Cell::Float(it.0));
    row[N] = Cell::Int(i64::try_from(summary.n).map_err(|_| wrong("a process has too many repetitions"))?);
    row[VALUE] = Cell::Float(summary.median.0);
    row[UNDISTURBED] = float(summary.undisturbed);
    row[STDDEV] = float(summary.stddev);
    row[MIN] = float(summary.min);
    Ok(())
}

/// The benchmark without the values that have their own rows.
fn detail(benchmark: &BaselineBenchmark) -> Result<String, RecordError> {
    let rest = BaselineBenchmark {
        name: benchmark.name.clone(),
        labels: benchmark.labels.clone(),
        outcome: benchmark.outcome.clone(),
        artifact: benchmark.artifact.clone(),
        verification: benchmark.verification,
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
