//! Where the files of a baseline lie, seen from the rest of the store.

use super::StoreError;

/// One step from one state of a baseline to the next: whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Change {
    /// Path and content of every new file.
    pub add: Vec<(String, Vec<u8>)>,
    pub remove: Vec<String>,
    /// What it is for, one line.
    pub message: String,
}

/// A set of files by path, `/` between the parts. Paths are made of [`super::folder_name`]s, so they never
/// lead out.
pub trait Files {
    /// Names of the folders in `folder`, sorted; none where it is absent. The empty path is the top.
    fn folders(&self, folder: &str) -> Result<Vec<String>, StoreError>;
    /// Names of the files in `folder`, sorted; none where it is absent.
    fn names(&self, folder: &str) -> Result<Vec<String>, StoreError>;
    /// The content of one file.
    fn read(&self, path: &str) -> Result<Vec<u8>, StoreError>;
    /// Says which files will be read next, so that what is far away comes in one journey.
    fn announce(&self, _paths: &[String]) -> Result<(), StoreError> {
        Ok(())
    }
    /// Makes a change. A name that is taken is refused, also by a writer that was faster.
    fn apply(&mut self, change: &Change) -> Result<(), StoreError>;
    /// How a person would name the place.
    fn place(&self) -> String;
    /// Bytes that were brought from far away so far; `None` where everything is near.
    fn fetched(&self) -> Option<u64> {
        None
    }
}
