//! Rebuilds the benchmarks of a session from its rows.

use std::collections::{BTreeMap, BTreeSet};

use crate::record::{BaselineBenchmark, BaselineProcess, Number, RecordError, SummaryRecord, ValueRecord};

use super::columns::{
    BENCHMARK, DETAIL, METRIC, MIN, N, PROCESS, ParquetCell, STATE, STDDEV, UNDISTURBED, VALUE,
};
use super::read::ReadColumn;
use super::wrong;

/// Maximum number of bytes of text that are copied out of a file. A dictionary holds a text once, and a
/// million rows can refer to it.
const MOST_TEXT: usize = 128 << 20;

/// Rebuilds the row groups of one file in order.
#[derive(Default)]
pub(super) struct Rebuilder {
    names: BTreeSet<String>,
    text: usize,
}

impl Rebuilder {
    /// Rebuilds the benchmarks of a row group. The caller checks that the rows contain nothing else.
    pub(super) fn benchmarks(
        &mut self,
        columns: &[ReadColumn],
        rows: usize,
    ) -> Result<Vec<BaselineBenchmark>, RecordError> {
        let mut benchmarks: Vec<BaselineBenchmark> = Vec::new();
        for row in 0..rows {
            let name = text(columns, BENCHMARK, row)?.ok_or_else(|| wrong("a row has no benchmark"))?;
            if benchmarks.last().is_none_or(|last| last.name != name) {
                benchmarks.push(self.begin(name, columns, row)?);
            }
            let Some(benchmark) = benchmarks.last_mut() else { continue };
            self.add(benchmark, columns, row)?;
        }
        Ok(benchmarks)
    }

    fn begin(
        &mut self,
        name: &str,
        columns: &[ReadColumn],
        row: usize,
    ) -> Result<BaselineBenchmark, RecordError> {
        let detail = text(columns, DETAIL, row)?.unwrap_or_default();
        self.copy(detail)?;
        if !self.names.insert(name.to_owned()) {
            return Err(wrong(format!("the rows of benchmark {name:?} are in two places")));
        }
        let benchmark: BaselineBenchmark =
            serde_json::from_str(detail).map_err(|error| wrong(format!("detail: {error}")))?;
        if benchmark.name != name || !benchmark.processes.is_empty() || !benchmark.values.is_empty() {
            return Err(wrong(format!("the detail of benchmark {name:?} contradicts its rows")));
        }
        Ok(benchmark)
    }

    fn add(
        &mut self,
        benchmark: &mut BaselineBenchmark,
        columns: &[ReadColumn],
        row: usize,
    ) -> Result<(), RecordError> {
        let metric = text(columns, METRIC, row)?;
        let float = |at: usize| match columns[at].cell(row)? {
            ParquetCell::Float(value) => Ok(Some(Number(value))),
            _ => Ok::<_, RecordError>(None),
        };
        let value = || float(VALUE)?.ok_or_else(|| wrong("a metric has no value"));
        let process = match columns[PROCESS].cell(row)? {
            ParquetCell::Int(process) => {
                Some(usize::try_from(process).map_err(|_| wrong("a process has no number"))?)
            }
            _ => None,
        };
        if let Some(metric) = metric {
            self.copy(metric)?;
        }
        match (process, metric) {
            (Some(process), metric) => {
                if process == benchmark.processes.len() {
                    let state = self.state(text(columns, STATE, row)?)?;
                    benchmark.processes.push(BaselineProcess { state, summaries: BTreeMap::new() });
                }
                let last = benchmark.processes.len().checked_sub(1);
                let current = benchmark.processes.last_mut().filter(|_| last == Some(process));
                let current = current.ok_or_else(|| wrong("processes are out of order"))?;
                let Some(metric) = metric else { return Ok(()) };
                let ParquetCell::Int(n) = columns[N].cell(row)? else {
                    return Err(wrong("a process has no number of repetitions"));
                };
                let summary = SummaryRecord {
                    n: u64::try_from(n)
                        .map_err(|_| wrong("a process has a negative number of repetitions"))?,
                    median: value()?,
                    undisturbed: float(UNDISTURBED)?,
                    stddev: float(STDDEV)?,
                    min: float(MIN)?,
                };
                if current.summaries.insert(metric.to_owned(), summary).is_some() {
                    return Err(wrong(format!("a process has {metric:?} twice")));
                }
            }
            (None, Some(metric)) => {
                benchmark.values.push(ValueRecord { metric: metric.to_owned(), value: value()? });
            }
            (None, None) => {}
        }
        Ok(())
    }

    fn state(&mut self, state: Option<&str>) -> Result<BTreeMap<String, Number>, RecordError> {
        let Some(state) = state else { return Ok(BTreeMap::new()) };
        self.copy(state)?;
        serde_json::from_str(state).map_err(|error| wrong(format!("state: {error}")))
    }

    fn copy(&mut self, text: &str) -> Result<(), RecordError> {
        self.text += text.len();
        if self.text > MOST_TEXT {
            return Err(wrong(format!("its text takes more than {} MiB", MOST_TEXT >> 20)));
        }
        Ok(())
    }
}

fn text(columns: &[ReadColumn], at: usize, row: usize) -> Result<Option<&str>, RecordError> {
    Ok(match columns[at].cell(row)? {
        ParquetCell::Text(text) => Some(text),
        _ => None,
    })
}
