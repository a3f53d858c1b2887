//! Access to the files of a baseline, wherever they are stored, and the two ways of writing a session.

use jiff::Timestamp;

use crate::record::{AcceptanceFile, BaselineFile, RecordError};

use super::{RunName, StoreError, name};

/// A change to a baseline. Each file is written completely or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Change {
    /// Path and content of every new file.
    pub add: Vec<(String, Vec<u8>)>,
    pub remove: Vec<String>,
    /// One line that describes the change.
    pub message: String,
}

/// A set of files by path, with `/` as separator. Paths consist of [`super::folder_name`]s, so they never lead out of
/// the baseline.
pub trait Files {
    /// Sorted names of the folders in `folder`; empty if it does not exist. The empty path is the top folder.
    fn folders(&self, folder: &str) -> Result<Vec<String>, StoreError>;
    /// Sorted names of the files in `folder`; empty if it does not exist.
    fn names(&self, folder: &str) -> Result<Vec<String>, StoreError>;
    fn read(&self, path: &str) -> Result<Vec<u8>, StoreError>;
    /// Announces the files that will be read next, so that a remote baseline fetches them together.
    fn prefetch(&self, _paths: &[String]) -> Result<(), StoreError> {
        Ok(())
    }
    /// Applies a change. Fails if a name exists already, also if another writer has just created it.
    fn apply(&mut self, change: &Change) -> Result<(), StoreError>;
    /// A description of the place for messages.
    fn place(&self) -> String;
    /// Bytes fetched from a remote so far; `None` for local files.
    fn fetched(&self) -> Option<u64> {
        None
    }
    /// How sessions are written here.
    fn encoding(&self) -> Encoding {
        Encoding::Json
    }
    /// The periods that a folder's sessions are listed by, oldest first, so that a gate lists the newest ones only. A place
    /// where listing everything costs one request has one period.
    fn periods(&self, _folder: &str) -> Result<Vec<String>, StoreError> {
        Ok(vec![String::new()])
    }
    /// The periods in which the newest sessions are at `now`, oldest first: months, and none if there is one period.
    /// The last period ends so long after `now` that differences between clocks don't matter.
    fn recent_periods(&self, _now: Timestamp) -> Vec<String> {
        Vec::new()
    }
    /// The period that lists a session.
    fn period_of(&self, _name: &RunName) -> String {
        String::new()
    }
    /// Sorted names of the files that a period of `folder` lists.
    fn names_in(&self, folder: &str, _period: &str) -> Result<Vec<String>, StoreError> {
        self.names(folder)
    }
    /// Sorted names of the acceptances in `folder`.
    fn acceptances(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        Ok(self.names(folder)?.into_iter().filter(|file| name::is_acceptance(file)).collect())
    }
}

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
