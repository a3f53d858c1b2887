//! Access to the files of a baseline, wherever they are stored.

use super::StoreError;

/// A change to a baseline, applied completely or not at all.
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
}
