//! Trees of commits: folders listed and files read.

use std::path::Path;

use git2::{ErrorClass, ErrorCode, ObjectType};

use super::{GitError, Repository};

impl Repository {
    /// Names in a folder of a commit's tree, and whether each is a folder. Empty if the folder does not exist.
    pub fn list(&self, commit: &str, folder: &str) -> Result<Vec<(String, bool)>, GitError> {
        let root = self.tree(commit)?;
        let tree = subtree(&self.inner, root, folder)
            .map_err(|error| self.object_error(&error, commit, Path::new(folder)))?;
        Ok(tree.map(|tree| listing(&tree)).unwrap_or_default())
    }

    /// The content of a file at a commit, if it exists there. `path` is relative to the root.
    pub fn read_file(&self, commit: &str, path: &Path) -> Result<Option<Vec<u8>>, GitError> {
        let tree = self.tree(commit)?;
        let entry = match tree.get_path(path) {
            Ok(entry) => entry,
            Err(error) if error.code() == ErrorCode::NotFound && error.class() == ErrorClass::Tree => {
                return Ok(None);
            }
            Err(error) => return Err(self.object_error(&error, commit, path)),
        };
        if entry.kind() != Some(ObjectType::Blob) || entry.filemode() == LINK {
            return Err(GitError::NotAFile { commit: commit.to_owned(), path: path.to_owned() });
        }
        let blob =
            self.inner.find_blob(entry.id()).map_err(|error| self.object_error(&error, commit, path))?;
        Ok(Some(blob.content().to_vec()))
    }
}

pub(super) const FOLDER: i32 = 0o040_000;
pub(super) const LINK: i32 = 0o120_000;
pub(super) const SUBMODULE: i32 = 0o160_000;

/// A folder of a tree; the empty name is the tree itself.
pub(super) fn subtree<'r>(
    repository: &'r git2::Repository,
    root: git2::Tree<'r>,
    folder: &str,
) -> Result<Option<git2::Tree<'r>>, git2::Error> {
    if folder.is_empty() {
        return Ok(Some(root));
    }
    match root.get_path(Path::new(folder)) {
        Ok(entry) if entry.kind() == Some(ObjectType::Tree) => repository.find_tree(entry.id()).map(Some),
        Ok(_) => Ok(None),
        Err(error) if error.code() == ErrorCode::NotFound && error.class() == ErrorClass::Tree => Ok(None),
        Err(error) => Err(error),
    }
}

/// Plain files and folders of a tree, and whether each is a folder. Links and submodules are left out.
pub(super) fn listing(tree: &git2::Tree<'_>) -> Vec<(String, bool)> {
    let entries = tree.iter().filter(|entry| !matches!(entry.filemode(), LINK | SUBMODULE));
    entries
        .map(|entry| (String::from_utf8_lossy(entry.name_bytes()).into_owned(), entry.filemode() == FOLDER))
        .collect()
}
