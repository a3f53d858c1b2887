//! Reads a session, a row group at a time.

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::schema::types::SchemaDescriptor;

use crate::record::{BaselineBenchmark, BaselineFile, BaselineSchema, RecordError, schema};

use super::columns::{COLUMNS, Shared};
use super::group::{ReadColumn, columns};
use super::rebuild::Rebuilder;
use super::{MOST_GROUP_ROWS, MOST_ROWS, SESSION_KEY, failed, write, wrong};

pub(super) fn file(bytes: &[u8]) -> Result<BaselineFile, RecordError> {
    let reader = SerializedFileReader::new(Bytes::copy_from_slice(bytes)).map_err(failed)?;
    let metadata = reader.metadata();
    // Another version is reported first, because its columns may differ.
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

/// The session without its benchmarks.
fn header(metadata: &ParquetMetaData) -> Result<BaselineFile, RecordError> {
    let entries = metadata.file_metadata().key_value_metadata().map_or(&[][..], Vec::as_slice);
    let header =
        entries.iter().find(|entry| entry.key == SESSION_KEY).and_then(|entry| entry.value.as_deref());
    let header = header.ok_or_else(|| wrong(format!("its metadata has no {SESSION_KEY}")))?;
    schema::read(header.as_bytes(), &BaselineSchema::FORMAT, |file: &BaselineFile| {
        if file.benchmarks.is_empty() { Ok(()) } else { Err(wrong("its metadata holds benchmarks")) }
    })
}

/// The columns are the expected ones, they lie inside the file, and there are not too many rows.
fn check_structure(metadata: &ParquetMetaData, size: usize) -> Result<(), RecordError> {
    let found = metadata.file_metadata().schema_descr();
    let expected = SchemaDescriptor::new(write::schema()?.into());
    let same = found.num_columns() == expected.num_columns()
        && found.columns().iter().zip(expected.columns()).all(|(found, expected)| {
            found.path() == expected.path()
                && found.physical_type() == expected.physical_type()
                && found.max_def_level() == expected.max_def_level()
                && found.max_rep_level() == 0
        });
    if !same {
        return Err(wrong("its columns are not those of a session"));
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
                return Err(wrong(format!("it is compressed with {}", chunk.compression())));
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
