//! A session of a baseline as a Parquet file, for object stores: the same content as the JSON form, in columns that query
//! engines read directly.
//!
//! A row is one metric of one process of one benchmark; [`columns`] lists its columns. Everything else is
//! JSON: the rest of a benchmark in the column `detail`, the rest of the session in the file's metadata.
//! Reading rebuilds the whole session and checks the hash of its content, so that verdicts and queries always
//! use the same numbers.
//!
//! Nothing is compressed. The files are small (numbers hardly compress, repeated text is in dictionaries), and a reader
//! that decompresses nothing can't be made to decompress gigabytes.

mod columns;
mod read;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use parquet::basic::Compression;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnPath, Type};

use super::{BaselineFile, RecordError};

use columns::{COLUMNS, ColumnKind, ColumnValues, DETAIL, ParquetCell, ParquetColumn, STATE, Shared};

/// The metadata key of the session without its benchmarks.
const SESSION_KEY: &str = "benchgate.session";

/// Maximum number of rows in a file. A suite of 20,000 benchmarks with ten processes and five metrics has a
/// million.
const MOST_ROWS: usize = 1 << 22;
/// Maximum number of rows in a row group, which is held in memory while it is read.
const MOST_GROUP_ROWS: usize = 1 << 18;
/// A row group is closed at the first benchmark after this many rows.
const GROUP_ROWS: usize = 1 << 16;

impl BaselineFile {
    /// Returns the session as Parquet. Equal values give equal bytes. Fails if a file can't hold this many
    /// values.
    pub fn to_parquet(&self) -> Result<Vec<u8>, RecordError> {
        written(self)
    }

    /// Reads a session from Parquet and checks its hash.
    pub fn from_parquet(bytes: &[u8]) -> Result<Self, RecordError> {
        // If the Parquet reader panics on foreign bytes, the file can't be used; the panic must not end the
        // program.
        std::panic::catch_unwind(|| read::file(bytes))
            .unwrap_or_else(|_| Err(wrong("its structure contradicts itself")))
    }
}

fn wrong(what: impl Into<String>) -> RecordError {
    RecordError::Parquet(what.into())
}

fn failed(error: ParquetError) -> RecordError {
    wrong(error.to_string())
}

struct Filled {
    values: ColumnValues,
    /// Definition levels of an optional column: 1 for a row that has a value.
    levels: Vec<i16>,
}

fn written(session: &BaselineFile) -> Result<Vec<u8>, RecordError> {
    let header = BaselineFile { benchmarks: Vec::new(), ..session.clone() };
    let header = serde_json::to_string(&header).map_err(|error| wrong(error.to_string()))?;
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_created_by("benchgate".to_owned())
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_key_value_metadata(Some(vec![KeyValue::new(SESSION_KEY.to_owned(), header)]));
    for column in COLUMNS.iter().filter(|column| column.kind == ColumnKind::Float) {
        // A dictionary does not pay off, because almost every number differs.
        properties = properties.set_column_dictionary_enabled(path(column), false);
    }
    for column in [&COLUMNS[STATE], &COLUMNS[DETAIL]] {
        properties = properties.set_column_statistics_enabled(path(column), EnabledStatistics::None);
    }
    let schema = Arc::new(schema()?);
    let mut writer =
        SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties.build())).map_err(failed)?;
    let shared = Shared::new(session)?;
    let mut columns = empty();
    let (mut rows, mut all) = (0, 0);
    for benchmark in &session.benchmarks {
        shared.rows(benchmark, |row| {
            for (filled, cell) in columns.iter_mut().zip(row) {
                filled.push(*cell)?;
            }
            rows += 1;
            Ok(())
        })?;
        if rows > MOST_GROUP_ROWS {
            return Err(wrong(format!("{} has too many values", benchmark.name)));
        }
        if rows >= GROUP_ROWS {
            all += rows;
            rows = 0;
            group(&mut writer, std::mem::replace(&mut columns, empty()))?;
        }
    }
    all += rows;
    if all > MOST_ROWS {
        return Err(wrong(format!("the session has more than {MOST_ROWS} values")));
    }
    if rows > 0 {
        group(&mut writer, columns)?;
    }
    writer.into_inner().map_err(failed)
}

/// The columns as Parquet describes them.
fn schema() -> Result<Type, RecordError> {
    let columns = COLUMNS.iter().map(|column| {
        let repetition = if column.optional { "optional" } else { "required" };
        let name = column.name;
        match column.kind {
            ColumnKind::Text => format!("{repetition} binary {name} (STRING);"),
            ColumnKind::Time => format!("{repetition} int64 {name} (TIMESTAMP(MICROS,true));"),
            ColumnKind::Int => format!("{repetition} int64 {name};"),
            ColumnKind::Float => format!("{repetition} double {name};"),
            ColumnKind::Bool => format!("{repetition} boolean {name};"),
        }
    });
    let message = format!("message session {{ {} }}", columns.collect::<String>());
    parse_message_type(&message).map_err(failed)
}

fn path(column: &ParquetColumn) -> ColumnPath {
    ColumnPath::from(column.name)
}

fn empty() -> Vec<Filled> {
    let empty = COLUMNS.iter().map(|column| Filled {
        values: match column.kind {
            ColumnKind::Text => ColumnValues::Text(Vec::new()),
            ColumnKind::Time | ColumnKind::Int => ColumnValues::Int(Vec::new()),
            ColumnKind::Float => ColumnValues::Float(Vec::new()),
            ColumnKind::Bool => ColumnValues::Bool(Vec::new()),
        },
        levels: Vec::new(),
    });
    empty.collect()
}

impl Filled {
    fn push(&mut self, cell: ParquetCell<'_>) -> Result<(), RecordError> {
        self.levels.push(i16::from(!matches!(cell, ParquetCell::None)));
        match (&mut self.values, cell) {
            (_, ParquetCell::None) => {}
            (ColumnValues::Text(values), ParquetCell::Text(text)) => {
                // Neighboring values are often equal, and then share their bytes.
                match values.last() {
                    Some(last) if last.data() == text.as_bytes() => values.push(last.clone()),
                    _ => values.push(ByteArray::from(text)),
                }
            }
            (ColumnValues::Int(values), ParquetCell::Int(value)) => values.push(value),
            (ColumnValues::Float(values), ParquetCell::Float(value)) => values.push(value),
            (ColumnValues::Bool(values), ParquetCell::Bool(value)) => values.push(value),
            _ => return Err(wrong("a value is not of its column's type")),
        }
        Ok(())
    }
}

fn group(writer: &mut SerializedFileWriter<Vec<u8>>, columns: Vec<Filled>) -> Result<(), RecordError> {
    let mut group = writer.next_row_group().map_err(failed)?;
    for (column, filled) in COLUMNS.iter().zip(columns) {
        let mut chunk = group.next_column().map_err(failed)?.ok_or_else(|| wrong("it lacks a column"))?;
        let levels = column.optional.then_some(filled.levels.as_slice());
        match (chunk.untyped(), filled.values) {
            (ColumnWriter::ByteArrayColumnWriter(to), ColumnValues::Text(values)) => {
                to.write_batch(&values, levels, None).map_err(failed)?;
            }
            (ColumnWriter::Int64ColumnWriter(to), ColumnValues::Int(values)) => {
                to.write_batch(&values, levels, None).map_err(failed)?;
            }
            (ColumnWriter::DoubleColumnWriter(to), ColumnValues::Float(values)) => {
                to.write_batch(&values, levels, None).map_err(failed)?;
            }
            (ColumnWriter::BoolColumnWriter(to), ColumnValues::Bool(values)) => {
                to.write_batch(&values, levels, None).map_err(failed)?;
            }
            _ => return Err(wrong("a column is not of its type")),
        }
        chunk.close().map_err(failed)?;
    }
    group.close().map_err(failed)?;
    Ok(())
}
