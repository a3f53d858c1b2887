//! A session of a baseline as a Parquet file, for object stores: the same content as the JSON form, in columns that query
//! engines read directly.
//!
//! A row is one metric of one process of one benchmark; [`columns`] lists its columns. Everything else is JSON: of a benchmark
//! in the column `detail`, of the whole session in the file's metadata. The file is read back completely and the
//! hash of the content is checked, so that a judgement and a query never go by different numbers.
//!
//! Nothing is compressed. The files are small (numbers hardly compress, repeated text is in dictionaries), and a reader
//! that decompresses nothing can't be made to decompress gigabytes.

mod columns;
mod read;
mod rebuild;
#[cfg(test)]
mod tests;
mod write;

use parquet::errors::ParquetError;

use super::{BaselineFile, RecordError};

/// The key of the session without its benchmarks, in the metadata of the file.
const SESSION_KEY: &str = "benchgate.session";

/// Rows of a file. A suite of 20,000 benchmarks with ten processes and five metrics has a million.
const MOST_ROWS: usize = 1 << 22;
/// Rows of a row group, which is held in memory while it is read.
const MOST_GROUP_ROWS: usize = 1 << 18;
/// A row group is closed at the first benchmark after this many rows.
const GROUP_ROWS: usize = 1 << 16;

impl BaselineFile {
    /// The session as Parquet: the same value gives the same bytes. Fails if a file can't hold this many values.
    pub fn to_parquet(&self) -> Result<Vec<u8>, RecordError> {
        write::file(self)
    }

    /// Reads a session from Parquet and checks its hash.
    pub fn from_parquet(bytes: &[u8]) -> Result<Self, RecordError> {
        // A panic of the Parquet reader over foreign bytes means that the file can't be used; it must not end the program.
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
