//! Writes a site to a folder. Unchanged files are not written again, so that a nightly update only writes its
//! changes. Files that the site no longer has are removed, but only if the site wrote them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::files;
use crate::model::hex;

/// The name of the file that lists all files of the site.
const MANIFEST: &str = "benchgate-site.json";
const SCHEMA: &str = "benchgate/site/v1";

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    schema: String,
    /// The SHA-256 of each file, by path.
    files: BTreeMap<String, String>,
}

/// Errors. Each message completes "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error("{action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("write a site to {}: it has files but no {MANIFEST}", .0.display())]
    Foreign(PathBuf),
    #[error("read {}: {why}", path.display())]
    Manifest { path: PathBuf, why: String },
}

/// A site that is being written.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    old: Manifest,
    new: Manifest,
    pub written: usize,
    pub unchanged: usize,
    pub removed: usize,
}

impl Folder {
    /// Opens a folder that is absent, empty, or contains a site.
    ///
    /// # Errors
    /// A folder with other content, or one that can't be read.
    pub fn open(root: &Path) -> Result<Self, FolderError> {
        let path = root.join(MANIFEST);
        let old = match fs::read(&path) {
            Ok(bytes) => {
                let unreadable = |why: String| FolderError::Manifest { path: path.clone(), why };
                let manifest: Manifest =
                    serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
                if manifest.schema != SCHEMA {
                    return Err(unreadable(format!("expected {SCHEMA}, found {:?}", manifest.schema)));
                }
                manifest
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let foreign = fs::read_dir(root).is_ok_and(|mut entries| entries.next().is_some());
                if foreign {
                    return Err(FolderError::Foreign(root.to_owned()));
                }
                Manifest::default()
            }
            Err(source) => return Err(FolderError::Io { action: "read", path, source }),
        };
        let new = Manifest { schema: SCHEMA.to_owned(), files: BTreeMap::new() };
        Ok(Self { root: root.to_owned(), old, new, written: 0, unchanged: 0, removed: 0 })
    }

    /// Writes one file, unless it already has this content.
    pub fn write(&mut self, path: &str, content: &[u8]) -> Result<(), FolderError> {
        let digest = hex(&Sha256::digest(content));
        let file = self.root.join(path);
        // Checking the size detects truncated or edited files without reading hundreds of megabytes again.
        let same = self.old.files.get(path) == Some(&digest)
            && fs::symlink_metadata(&file)
                .is_ok_and(|found| found.is_file() && found.len() == content.len() as u64);
        if same {
            self.unchanged += 1;
        } else {
            let io = |source| FolderError::Io { action: "write", path: file.clone(), source };
            fs::create_dir_all(file.parent().unwrap_or(&self.root)).map_err(io)?;
            // Syncing thousands of files would be slow, and a site that a power failure damaged can be
            // written again.
            files::replace(&file, content).map_err(io)?;
            self.written += 1;
        }
        self.new.files.insert(path.to_owned(), digest);
        Ok(())
    }

    /// Removes files that the site no longer has, and writes the list of its files.
    pub fn finish(&mut self) -> Result<(), FolderError> {
        let gone: BTreeSet<String> =
            self.old.files.keys().filter(|path| !self.new.files.contains_key(*path)).cloned().collect();
        for path in gone.iter().filter(|path| is_inside(path)) {
            let file = self.root.join(path);
            let removed = files::if_exists(fs::remove_file(&file)).map_err(|source| FolderError::Io {
                action: "remove",
                path: file,
                source,
            })?;
            self.removed += usize::from(removed.is_some());
        }
        // Unfinished files of a killed run must not be published.
        let folders: BTreeSet<_> =
            self.new.files.keys().filter_map(|path| Path::new(path).parent()).collect();
        for folder in folders {
            files::sweep_drafts(&self.root.join(folder).join(MANIFEST));
        }
        let path = self.root.join(MANIFEST);
        let bytes = serde_json::to_vec_pretty(&self.new).unwrap_or_default();
        files::write(&path, &bytes).map_err(|source| FolderError::Io { action: "write", path, source })
    }
}

/// Returns true for a plain path below the site. The manifest may have been edited, so other paths are not
/// removed.
fn is_inside(path: &str) -> bool {
    let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    !path.contains('\\') && path.split('/').all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(root: &Path, files: &[(&str, &str)]) -> (usize, usize, usize) {
        let mut folder = Folder::open(root).unwrap();
        for (path, content) in files {
            folder.write(path, content.as_bytes()).unwrap();
        }
        folder.finish().unwrap();
        (folder.written, folder.unchanged, folder.removed)
    }

    #[test]
    fn only_what_changed_is_written_and_only_what_was_written_is_removed() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(site(root.path(), &[("index.html", "a"), ("b/x.html", "x")]), (2, 0, 0));
        let time = |path: &str| fs::metadata(root.path().join(path)).unwrap().modified().unwrap();
        let before = time("index.html");
        fs::write(root.path().join("CNAME"), "example.org").unwrap();
        assert_eq!(site(root.path(), &[("index.html", "a"), ("b/y.html", "y")]), (1, 1, 1));
        assert_eq!(time("index.html"), before);
        assert!(!root.path().join("b/x.html").exists());
        assert!(root.path().join("CNAME").exists());
        // A truncated file is written again.
        fs::write(root.path().join("index.html"), "").unwrap();
        assert_eq!(site(root.path(), &[("index.html", "a"), ("b/y.html", "y")]), (1, 1, 0));
        assert_eq!(fs::read_to_string(root.path().join("index.html")).unwrap(), "a");
    }

    #[test]
    fn a_folder_of_something_else_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("thesis.tex"), "x").unwrap();
        assert!(matches!(Folder::open(root.path()), Err(FolderError::Foreign(_))));
        fs::write(root.path().join(MANIFEST), "{}").unwrap();
        assert!(matches!(Folder::open(root.path()), Err(FolderError::Manifest { .. })));
    }

    #[test]
    fn an_edited_manifest_removes_nothing_outside() {
        let outer = tempfile::tempdir().unwrap();
        let (root, outside) = (outer.path().join("site"), outer.path().join("keep"));
        fs::write(&outside, "x").unwrap();
        fs::create_dir(&root).unwrap();
        let manifest = serde_json::json!({ "schema": SCHEMA, "files": { "../keep": "0", outside.to_str().unwrap(): "0" } });
        fs::write(root.join(MANIFEST), manifest.to_string()).unwrap();
        assert_eq!(site(&root, &[("index.html", "a")]), (1, 0, 0));
        assert!(outside.exists());
    }
}
