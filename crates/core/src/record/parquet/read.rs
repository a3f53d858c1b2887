//! Reads a session, one row group at a time.
//!
//! Rebuilds the benchmarks of a session from its rows.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{BoolType, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::schema::types::SchemaDescriptor;

use crate::record::{
    BaselineBenchmark, BaselineFile, BaselineProcess, BaselineSchema, Number, RecordError, SummaryRecord,
    ValueRecord, schema,
};

use super::columns::{
    BENCHMARK, COLUMNS, ColumnKind, ColumnValues, DETAIL, METRIC, MIN, N, PROCESS, ParquetCell, STATE,
    STDDEV, Shared, UNDISTURBED, VALUE,
};
use super::{MOST_GROUP_ROWS, MOST_ROWS, SESSION_KEY, failed, wrong};

pub(super) fn file(bytes: &[u8]) -> Result<BaselineFile, RecordError> {
    let reader = SerializedFileReader::new(Bytes::copy_from_slice(bytes)).map_err(failed)?;
    let metadata = reader.metadata();
    // Another version is reported before anything else, because its columns may differ.
    let mut file = header(metadata)?;
    check_structure(metadata, bytes.len())?;
    let mut rebuilder = Rebuilder::default();
    let mut benchmarks = Vec::new();
    for at in 0..metadata.num_row_groups() {
        let group = reader.get_row_group(at).map_err(failed)?;
        let columns = columns(group.as_ref())?;
        let rows = columns.first().map_or(0, |column| column.rows);
        let rebuilt = rebuilder.benchmarks(&columns, rows)?;
        compare(&Shared::new(&file)?, &rebuilt, &columns, rows)?;
        benchmarks.extend(rebuilt);
    }
    file.benchmarks = benchmarks;
    file.check()?;
    Ok(file)
}

/// Reads the session without its benchmarks.
fn header(metadata: &ParquetMetaData) -> Result<BaselineFile, RecordError> {
    let entries = metadata.file_metadata().key_value_metadata().map_or(&[][..], Vec::as_slice);
    let header =
        entries.iter().find(|entry| entry.key == SESSION_KEY).and_then(|entry| entry.value.as_deref());
    let header = header.ok_or_else(|| wrong(format!("its metadata has no {SESSION_KEY}")))?;
    schema::read(header.as_bytes(), &BaselineSchema::FORMAT, |file: &BaselineFile| {
        if file.benchmarks.is_empty() { Ok(()) } else { Err(wrong("its metadata contains benchmarks")) }
    })
}

/// Checks that the columns are the expected ones and lie inside the file, and that there are not too many
/// rows.
fn check_structure(metadata: &ParquetMetaData, size: usize) -> Result<(), RecordError> {
    let found = metadata.file_metadata().schema_descr();
    let expected = SchemaDescriptor::new(super::schema()?.into());
    let same = found.num_columns() == expected.num_columns()
        && found.columns().iter().zip(expected.columns()).all(|(found, expected)| {
            found.path() == expected.path()
                && found.physical_type() == expected.physical_type()
                && found.max_def_level() == expected.max_def_level()
                && found.max_rep_level() == 0
        });
    if !same {
        return Err(wrong("it does not have a session's columns"));
    }
    let mut all = 0_usize;
    for group in metadata.row_groups() {
        let rows = usize::try_from(group.num_rows()).ok().filter(|rows| *rows <= MOST_GROUP_ROWS);
        let rows = rows.ok_or_else(|| wrong(format!("a row group has {} rows", group.num_rows())))?;
        all += rows;
        if all > MOST_ROWS {
            return Err(wrong(format!("it has more than {MOST_ROWS} rows")));
        }
        if group.num_columns() != COLUMNS.len() {
            return Err(wrong("a row group lacks columns"));
        }
        for chunk in group.columns() {
            if chunk.compression() != Compression::UNCOMPRESSED {
                return Err(wrong(format!(
                    "it is compressed with {}, but benchgate reads only uncompressed \
                files",
                    chunk.compression()
                )));
            }
            let start = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
            let end = start.checked_add(chunk.compressed_size());
            let inside = start >= 0
                && chunk.data_page_offset() >= 0
                && chunk.compressed_size() >= 0
                && end.and_then(|end| usize::try_from(end).ok()).is_some_and(|end| end <= size);
            if !inside {
                return Err(wrong("a column lies outside of the file"));
            }
        }
    }
    Ok(())
}

/// Rejects a file whose rows differ from those of the rebuilt session: queries and verdicts would use different data.
fn compare(
    shared: &Shared<'_>,
    benchmarks: &[BaselineBenchmark],
    columns: &[ReadColumn],
    rows: usize,
) -> Result<(), RecordError> {
    let mut at = 0;
    for benchmark in benchmarks {
        shared.rows(benchmark, |row| {
            for ((expected, found), column) in row.iter().zip(columns).zip(&COLUMNS) {
                if !expected.is(found.cell(at)?) {
                    return Err(wrong(format!("column {} of row {at} contradicts the session", column.name)));
                }
            }
            at += 1;
            Ok(())
        })?;
    }
    if at == rows { Ok(()) } else { Err(wrong("it has rows that belong to no benchmark")) }
}

/// One column of a row group.
pub(super) struct ReadColumn {
    values: ColumnValues,
    /// Index into `values` for each row; `None` if the row has no value.
    places: Vec<Option<usize>>,
    pub rows: usize,
}

impl ReadColumn {
    pub(super) fn cell(&self, row: usize) -> Result<ParquetCell<'_>, RecordError> {
        let Some(at) = self.places.get(row).copied().flatten() else { return Ok(ParquetCell::None) };
        let cell = match &self.values {
            ColumnValues::Text(values) => match values.get(at) {
                Some(bytes) => {
                    let text = std::str::from_utf8(bytes.data()).map_err(|_| wrong("a text is not UTF-8"))?;
                    Some(ParquetCell::Text(text))
                }
                None => None,
            },
            ColumnValues::Int(values) => values.get(at).copied().map(ParquetCell::Int),
            ColumnValues::Float(values) => values.get(at).copied().map(ParquetCell::Float),
            ColumnValues::Bool(values) => values.get(at).copied().map(ParquetCell::Bool),
        };
        cell.ok_or_else(|| wrong("a column ends early"))
    }
}

pub(super) fn columns(group: &dyn RowGroupReader) -> Result<Vec<ReadColumn>, RecordError> {
    // `check_structure` has limited this number.
    let rows = usize::try_from(group.metadata().num_rows()).map_err(|_| wrong("a row group has no size"))?;
    let mut columns = Vec::new();
    for (at, column) in COLUMNS.iter().enumerate() {
        let (levels, values) = match column.kind {
            ColumnKind::Text => {
                let (levels, values) = column_values::<ByteArrayType>(group, at, rows)?;
                (levels, ColumnValues::Text(values))
            }
            ColumnKind::Time | ColumnKind::Int => {
                let (levels, values) = column_values::<Int64Type>(group, at, rows)?;
                (levels, ColumnValues::Int(values))
            }
            ColumnKind::Float => {
                let (levels, values) = column_values::<DoubleType>(group, at, rows)?;
                (levels, ColumnValues::Float(values))
            }
            ColumnKind::Bool => {
                let (levels, values) = column_values::<BoolType>(group, at, rows)?;
                (levels, ColumnValues::Bool(values))
            }
        };
        let places = if column.optional {
            let mut next = 0..;
            levels.iter().map(|level| if *level > 0 { next.next() } else { None }).collect()
        } else {
            (0..rows).map(Some).collect()
        };
        columns.push(ReadColumn { values, places, rows });
    }
    Ok(columns)
}

fn column_values<T: DataType>(
    group: &dyn RowGroupReader,
    at: usize,
    rows: usize,
) -> Result<(Vec<i16>, Vec<T::T>), RecordError> {
    let pages = CheckedPages::new(group.get_column_page_reader(at).map_err(failed)?, rows);
    let description = group.metadata().schema_descr().column(at);
    let mut reader = ColumnReaderImpl::<T>::new(description, Box::new(pages));
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    let (read, ..) = reader.read_records(rows, Some(&mut levels), None, &mut values).map_err(failed)?;
    if read == rows { Ok((levels, values)) } else { Err(wrong("a column ends early")) }
}

/// The pages of one column of one row group, checked before they are decoded.
pub(super) struct CheckedPages {
    pages: Box<dyn PageReader>,
    /// Number of rows that later data pages can still hold; a flat column has one value per row.
    rows: usize,
}

impl CheckedPages {
    pub(super) fn new(pages: Box<dyn PageReader>, rows: usize) -> Self {
        Self { pages, rows }
    }

    fn check(&mut self, page: &Page) -> Result<()> {
        let wrong = |what: String| Err(ParquetError::General(what));
        let (encoding, values) = (page.encoding(), page.num_values() as usize);
        // Other encodings can expand without limit, and benchgate does not write them.
        let known = matches!(
            encoding,
            Encoding::PLAIN | Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY | Encoding::RLE
        );
        if !known {
            return wrong(format!("a page has the encoding {encoding}, which benchgate does not write"));
        }
        match page {
            // Every entry takes at least the four bytes of its length.
            Page::DictionaryPage { buf, .. } if values > buf.len() / 4 => {
                wrong(format!("a dictionary of {} bytes states {values} entries", buf.len()))
            }
            Page::DictionaryPage { .. } => Ok(()),
            Page::DataPage { .. } | Page::DataPageV2 { .. } => match self.rows.checked_sub(values) {
                Some(rest) => {
                    self.rows = rest;
                    Ok(())
                }
                None => wrong("a column has more values than its row group has rows".to_owned()),
            },
        }
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        if let Some(page) = &page {
            self.check(page)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

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
