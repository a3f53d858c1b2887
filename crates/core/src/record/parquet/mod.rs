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
mod write;

use parquet::errors::ParquetError;

use super::{BaselineFile, RecordError};

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
        write::file(self)
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
