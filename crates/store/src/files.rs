//! Access to the files of a baseline, wherever they are stored, and the two encodings of a session.

use jiff::Timestamp;

use benchgate_core::record::{AcceptanceFile, BaselineFile, RecordError};

use super::{RunName, StoreError, name};

/// A change to a baseline. Each file is written completely or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Change {
    /// Path and content of each new file.
    pub add: Vec<(String, Vec<u8>)>,
    pub remove: Vec<String>,
    /// A one-line description of the change.
    pub message: String,
}

/// A set of files by path, with `/` as separator. Paths consist of [`super::folder_name`]s, so they never lead out of
/// the baseline.
pub trait Files {
    /// Lists the folders in `folder`, or else its files, sorted by name; empty if it does not exist. The empty path
    /// is the top folder.
    fn list(&self, folder: &str, folders: bool) -> Result<Vec<String>, StoreError>;
    fn folders(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        self.list(folder, true)
    }
    fn names(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        self.list(folder, false)
    }
    fn read(&self, path: &str) -> Result<Vec<u8>, StoreError>;
    /// Announces the files that will be read next, so that a remote baseline fetches them together.
    fn prefetch(&self, _paths: &[String]) -> Result<(), StoreError> {
        Ok(())
    }
    /// Applies a change. Fails if a new file exists already, even if another process has just created it.
    fn apply(&mut self, change: &Change) -> Result<(), StoreError>;
    /// A description of the baseline's location for messages.
    fn place(&self) -> String;
    /// Number of bytes fetched from a remote so far; `None` for local files.
    fn fetched(&self) -> Option<u64> {
        None
    }
    /// The encoding in which sessions are written here.
    fn encoding(&self) -> Encoding {
        Encoding::Json
    }
    /// The periods by which a folder's sessions are listed, oldest first, so that a gate needs to list only
    /// the newest ones. If listing everything costs one request, there is one period.
    fn periods(&self, _folder: &str) -> Result<Vec<String>, StoreError> {
        Ok(vec![String::new()])
    }
    /// The periods that contain the newest sessions at `now`, oldest first. These periods are
    /// months; the list is empty if there is only one period. The last month ends long after `now`,
    /// so that differences between clocks don't matter.
    fn recent_periods(&self, _now: Timestamp) -> Vec<String> {
        Vec::new()
    }
    /// The period in which a session is listed.
    fn period_of(&self, _name: &RunName) -> String {
        String::new()
    }
    /// Lists the files of one period of `folder`, sorted by name.
    fn names_in(&self, folder: &str, _period: &str) -> Result<Vec<String>, StoreError> {
        self.names(folder)
    }
    /// Lists the acceptances in `folder`, sorted by name.
    fn acceptances(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        Ok(self.names(folder)?.into_iter().filter(|file| name::is_acceptance(file)).collect())
    }
}

/// The encoding of a session. Acceptances are always JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// JSON, for git, where people read the differences.
    Json,
    /// Parquet, for object stores, where query engines read the columns.
    Parquet,
}

impl Encoding {
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Parquet => "parquet",
        }
    }

    /// Decodes and checks a session.
    ///
    /// # Errors
    /// The bytes are not a complete, consistent and unchanged session of a known version.
    pub fn read(self, bytes: &[u8]) -> Result<BaselineFile, RecordError> {
        match self {
            Self::Json => BaselineFile::from_slice(bytes),
            Self::Parquet => BaselineFile::from_parquet(bytes),
        }
    }

    /// Encodes an acceptance. For query engines, the JSON document is a single line.
    pub fn write_acceptance(self, acceptance: &AcceptanceFile) -> Vec<u8> {
        match self {
            Self::Json => acceptance.to_json(),
            Self::Parquet => acceptance.to_json_line(),
        }
    }

    /// Encodes a session.
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
