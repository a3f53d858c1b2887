//! Detects changes that the processes of a command make in its build folder. Later processes find these
//! changes, so their work can depend on earlier processes. That is harmless for a cache that base has too,
//! but a head that reuses results instead of computing them again would look faster.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use benchgate_core::model::{Lint, LintCode, excerpt};
use benchgate_host::files::Stamp;

use super::super::PipelineError;
use super::PreparedCommand;

/// Maximum number of characters of a name in a finding.
pub(crate) const LONGEST_NAME: usize = 80;

impl PreparedCommand {
    /// The stamps of everything below the command's build folder.
    pub(super) fn built_files(&self) -> Result<BTreeMap<PathBuf, Stamp>, PipelineError> {
        let mut found = BTreeMap::new();
        if let Some(folder) = self.build_folder() {
            walk(folder, &mut found).map_err(PipelineError::io("look at", folder))?;
        }
        Ok(found)
    }

    /// The entries of the build folder that the command's processes added, changed or removed, each with a
    /// verb for the message. A new folder is listed without its content. In a folder of compiled Python code,
    /// files that Python did not write are listed by their extension, because caches name their files freely.
    fn leftovers(&self) -> Result<BTreeMap<String, &'static str>, PipelineError> {
        let (Some(folder), Some(before)) = (self.build_folder(), self.built.get()) else {
            return Ok(BTreeMap::new());
        };
        let now = self.built_files()?;
        let is_in_both = |path: &Path| before.contains_key(path) && now.contains_key(path);
        let is_unchanged = |path: &Path| is_in_both(path) && before.get(path) == now.get(path);
        let is_first = |path: &Path| path.parent().is_none_or(is_in_both) || is_in_python_cache(path);
        let is_pythons = |path: &Path| compiled_from(path).is_some_and(|source| is_unchanged(&source));
        let added = now.keys().filter(|path| !before.contains_key(*path)).map(|path| (path, "leave"));
        let removed = before.keys().filter(|path| !now.contains_key(*path)).map(|path| (path, "remove"));
        // Folders are left out, because their stamps only change with their entries.
        let changed = now.iter().filter(|(path, stamp)| {
            let is_folder = path.is_dir() && !path.is_symlink();
            before.get(*path).is_some_and(|before| before != *stamp) && !is_folder
        });
        let changed = changed.map(|(path, _)| (path, "change"));
        let entries = added.chain(removed).chain(changed);
        let entries = entries.filter(|(path, _)| is_first(path) && !is_pythons(path));
        Ok(entries
            .map(|(path, verb)| {
                let kind = path.extension().filter(|_| is_in_python_cache(path));
                let shown = kind.map(|kind| path.with_file_name("*").with_extension(kind));
                let shown = shown.as_ref().unwrap_or(path);
                (without_digits(shown.strip_prefix(folder).unwrap_or(shown)), verb)
            })
            .collect())
    }
}

/// Folders of compiled Python code.
pub(super) const PYTHON_CACHE: &str = "__pycache__";

fn is_in_python_cache(path: &Path) -> bool {
    path.parent().is_some_and(|folder| folder.ends_with(PYTHON_CACHE))
}

/// The source file from which Python compiles a file. Python checks that the two match before it uses the
/// compiled one, so to Python the file contains no result of an earlier process. A program that reads such a
/// file itself is not detected.
pub(crate) fn compiled_from(path: &Path) -> Option<PathBuf> {
    let is_compiled = is_in_python_cache(path) && path.extension().is_some_and(|kind| kind == "pyc");
    let name = path.file_name().filter(|_| is_compiled)?.to_str()?;
    let (module, _) = name.split_once('.')?;
    Some(path.parent()?.with_file_name(format!("{module}.py")))
}

/// A path without digits, because the names of such files often contain process IDs.
pub(super) fn without_digits(path: &Path) -> String {
    path.to_string_lossy().chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// The finding about files that head's processes leave for later ones and base's processes don't.
pub(super) fn lint(base: &PreparedCommand, head: &PreparedCommand) -> Result<Option<Lint>, PipelineError> {
    let of_base = base.leftovers()?;
    let mut of_head = head.leftovers()?;
    of_head.retain(|name, _| !of_base.contains_key(name));
    Ok(of_head.first_key_value().map(|(name, verb)| {
        let name = excerpt(name, LONGEST_NAME);
        let detail = format!(
            "head's processes {verb} `{name}` in {{build}}, where later processes find it; base's don't"
        );
        Lint::new(LintCode::WorkloadChanged, detail)
    }))
}

/// Folders of the base that must not change while code of the head runs. Base's own processes may write to
/// them.
#[derive(Debug, Clone, Default)]
pub(crate) struct GuardedFolders(Vec<PathBuf>);

impl GuardedFolders {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn add(&mut self, folder: &Path) {
        self.0.push(folder.to_owned());
    }

    /// Records the state of all files and folders.
    pub(crate) fn look(&self) -> Result<GuardedFiles<'_>, PipelineError> {
        let mut stamps = BTreeMap::new();
        for folder in &self.0 {
            walk(folder, &mut stamps).map_err(PipelineError::io("look at", folder))?;
        }
        Ok(GuardedFiles { folders: self, stamps })
    }
}

/// The state of the folders before code of the head ran: the sources and builds of base's commands. A base that head's
/// code slowed down would hide a slower head.
#[derive(Debug)]
#[must_use]
pub(crate) struct GuardedFiles<'a> {
    folders: &'a GuardedFolders,
    stamps: BTreeMap<PathBuf, Stamp>,
}

impl GuardedFiles<'_> {
    /// Fails if anything was written, added, removed or renamed since.
    pub(crate) fn check(self) -> Result<(), PipelineError> {
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

    /// Fails if a file that existed was written, removed or replaced since. Base's exporter may add files, such as compiled
    /// modules of Python.
    pub(crate) fn check_existing(self) -> Result<(), PipelineError> {
        let now = self.folders.look()?.stamps;
        let is_changed =
            |(path, before): &(&PathBuf, &Stamp)| now.get(*path) != Some(before) && !path.is_dir();
        match self.stamps.iter().find(is_changed) {
            Some((path, _)) => Err(PipelineError::Changed(path.clone())),
            None => Ok(()),
        }
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
