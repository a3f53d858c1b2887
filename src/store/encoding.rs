//! The two ways a place writes a session.

use crate::record::{AcceptanceFile, BaselineFile, RecordError};

/// How a place writes a session. Acceptances are JSON everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// For git: people read the difference.
    Json,
    /// For object stores: query engines read the columns.
    Parquet,
}

impl Encoding {
    /// The end of a file's name.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Parquet => "parquet",
        }
    }

    /// Reads and checks a session.
    ///
    /// # Errors
    /// Bytes that are not a whole, consistent and unchanged session of a known version.
    pub fn read(self, bytes: &[u8]) -> Result<BaselineFile, RecordError> {
        match self {
            Self::Json => BaselineFile::from_slice(bytes),
            Self::Parquet => BaselineFile::from_parquet(bytes),
        }
    }

    /// The bytes of an acceptance. Query engines read a JSON document a line.
    pub fn write_acceptance(self, acceptance: &AcceptanceFile) -> Vec<u8> {
        match self {
            Self::Json => acceptance.to_json(),
            Self::Parquet => acceptance.to_json_line(),
        }
    }

    /// The bytes of a session.
    ///
    /// # Errors
    /// The session has more values than one file can hold.
    pub fn write(self, session: &BaselineFile) -> Result<Vec<u8>, RecordError> {
        match self {
            Self::Json => Ok(session.to_json()),
            Self::Parquet => session.to_parquet(),
        }
    }
}
