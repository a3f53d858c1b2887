//! The columns of a row group.

use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{BoolType, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::file::reader::RowGroupReader;

use crate::record::RecordError;

use super::columns::{COLUMNS, ColumnKind, ColumnValues, ParquetCell};
use super::pages::CheckedPages;
use super::{failed, wrong};

/// One column of a row group.
pub(super) struct ReadColumn {
    values: ColumnValues,
    /// Index of the value of each row; `None` if it has none.
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
    // `check_structure` has bounded it.
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
