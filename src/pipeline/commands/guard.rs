//! Detects changes that head's code makes to the sources or builds of base's commands. A base that was slowed
//! down would hide a slower head.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::files::Stamp;

use super::super::PipelineError;

/// Folders of the base that must not change while code of the head runs. Base's own processes may write to
/// them.
#[derive(Debug, Clone, Default)]
pub(in crate::pipeline) struct GuardedFolders(Vec<PathBuf>);

impl GuardedFolders {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(in crate::pipeline) fn add(&mut self, folder: &Path) {
        self.0.push(folder.to_owned());
    }

    /// Records the state of all files and folders.
    pub(in crate::pipeline) fn look(&self) -> Result<GuardedFiles<'_>, PipelineError> {
        let mut stamps = BTreeMap::new();
        for folder in &self.0 {
            walk(folder, &mut stamps).map_err(PipelineError::io("look at", folder))?;
        }
        Ok(GuardedFiles { folders: self, stamps })
    }
}

/// The state of the folders before code of the head ran.
#[derive(Debug)]
#[must_use]
pub(in crate::pipeline) struct GuardedFiles<'a> {
    folders: &'a GuardedFolders,
    stamps: BTreeMap<PathBuf, Stamp>,
}

impl GuardedFiles<'_> {
    /// Fails if anything was written, added, removed or renamed since.
    pub(in crate::pipeline) fn check(self) -> Result<(), PipelineError> {
        let now = self.folders.look()?.stamps;
        if now == self.stamps {
            return Ok(());
        }
        // A folder's stamp only changes with its entries, which are compared themselves.
        let differs = |path: &&PathBuf| now.get(*path) != self.stamps.get(*path);
        let changed = self.stamps.keys().chain(now.keys()).filter(differs);
        let changed = changed.max_by_key(|path| path.components().count()).cloned().unwrap_or_default();
        Err(PipelineError::Changed(changed))
    }
}

/// Collects the stamps of everything below a folder. Links are not followed.
pub(super) fn walk(folder: &Path, stamps: &mut BTreeMap<PathBuf, Stamp>) -> std::io::Result<()> {
    stamps.insert(folder.to_owned(), Stamp::now(folder)?);
    for item in fs::read_dir(folder)? {
        let item = item?;
        if item.file_type()?.is_dir() {
            walk(&item.path(), stamps)?;
        } else {
            stamps.insert(item.path(), Stamp::in_metadata(&item.metadata()?));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_done_in_a_guarded_folder_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("a")).unwrap();
        fs::write(at("a/file"), "1").unwrap();
        fs::write(at("other"), "1").unwrap();
        std::os::unix::fs::symlink("file", at("a/link")).unwrap();
        let mut guarded = GuardedFolders::default();
        guarded.add(folder.path());
        guarded.look().unwrap().check().unwrap();
        let changes: [&dyn Fn(); 5] = [
            &|| fs::write(at("a/file"), "2").unwrap(),
            &|| fs::write(at("a/new"), "").unwrap(),
            &|| fs::remove_file(at("a/new")).unwrap(),
            &|| fs::rename(at("other"), at("a/file")).unwrap(),
            &|| {
                fs::remove_file(at("a/link")).unwrap();
                std::os::unix::fs::symlink("new", at("a/link")).unwrap();
            },
        ];
        for (case, change) in changes.iter().enumerate() {
            let before = guarded.look().unwrap();
            change();
            assert!(matches!(before.check(), Err(PipelineError::Changed(_))), "case {case}");
        }
    }
}
