//! Identifies a folder by the content of its files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::PipelineError;
use super::cache::{Digests, KeyBuilder};

/// Maximum number of files, which is more than a folder of sources or of bitcode has. Hashing a home folder
/// by mistake would take hours, and a link to a parent folder would never end.
const MOST_FILES: usize = 50_000;
const DEEPEST: usize = 48;

/// The reason why a folder can't be identified by its content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {why}", path = path.display())]
pub(super) struct TreeError {
    path: PathBuf,
    why: String,
}

/// Every file below a folder, by its relative path. Links are followed, because a tool would read their
/// targets. A folder for which `skip` returns true is listed by name, without a path, and not entered.
pub(super) fn files(
    folder: &Path,
    skip: &dyn Fn(&Path) -> bool,
) -> Result<BTreeMap<String, Option<PathBuf>>, TreeError> {
    let mut found = BTreeMap::new();
    walk(folder, "", 0, skip, &mut found)?;
    Ok(found)
}

fn walk(
    folder: &Path,
    prefix: &str,
    depth: usize,
    skip: &dyn Fn(&Path) -> bool,
    found: &mut BTreeMap<String, Option<PathBuf>>,
) -> Result<(), TreeError> {
    let wrong = |why: String| TreeError { path: folder.to_owned(), why };
    if depth > DEEPEST {
        return Err(wrong("folders are nested too deeply, or a link leads to its own parent".to_owned()));
    }
    for item in fs::read_dir(folder).map_err(|error| wrong(error.to_string()))? {
        let item = item.map_err(|error| wrong(error.to_string()))?;
        let path = item.path();
        // A name that is not valid UTF-8 is escaped, so that it stays distinct.
        let name = format!("{prefix}{}", item.file_name().as_encoded_bytes().escape_ascii());
        if path.is_dir() {
            if skip(&path) {
                found.insert(name, None);
            } else {
                walk(&path, &format!("{name}/"), depth + 1, skip, found)?;
            }
        } else if path.is_file() {
            found.insert(name, Some(path));
        } else {
            // A dangling link or a socket exists but has no content.
            found.insert(name, None);
        }
        if found.len() > MOST_FILES {
            return Err(wrong(format!("the folder has more than {MOST_FILES} files")));
        }
    }
    Ok(())
}

/// Adds the names and contents of files to a key.
pub(super) async fn add(
    mut key: KeyBuilder,
    files: &BTreeMap<String, Option<PathBuf>>,
    digests: &Digests,
) -> Result<KeyBuilder, PipelineError> {
    for (name, path) in files {
        key = key.text("file", name);
        key = match path {
            Some(path) => key.text("is", &digests.sha256(path).await?),
            None => key.text("is", "not read"),
        };
    }
    Ok(key.bytes("files", &files.len().to_le_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_their_own_parent_are_an_error_and_not_an_endless_walk() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["again", "and-again"] {
            std::os::unix::fs::symlink(folder.path(), folder.path().join(name)).unwrap();
        }
        assert!(files(folder.path(), &|_| false).is_err());
    }

    #[test]
    fn a_skipped_folder_and_a_dangling_link_are_still_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/deep")).unwrap();
        fs::create_dir_all(folder.path().join("skipped")).unwrap();
        fs::write(folder.path().join("a/deep/x"), "1").unwrap();
        std::os::unix::fs::symlink("/nowhere", folder.path().join("dangling")).unwrap();
        let found = files(folder.path(), &|path| path.ends_with("skipped")).unwrap();
        let names: Vec<(&str, bool)> =
            found.iter().map(|(name, path)| (name.as_str(), path.is_some())).collect();
        assert_eq!(names, [("a/deep/x", true), ("dangling", false), ("skipped", false)]);
    }
}
