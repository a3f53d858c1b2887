//! Detects changes that the processes of a command make in its build folder. Later processes find these
//! changes, so their work can depend on earlier processes. That is harmless for a cache that base has too,
//! but a head that reuses results instead of computing them again would look faster.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::files::Stamp;
use crate::model::{Lint, LintCode, excerpt};

use super::PreparedCommand;
use super::guard::walk;
use crate::pipeline::PipelineError;

/// Maximum number of characters of a name in a finding.
pub(super) const LONGEST_NAME: usize = 80;

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
    /// verb for the message. A new folder is listed without its content.
    fn leftovers(&self) -> Result<BTreeMap<String, &'static str>, PipelineError> {
        let (Some(folder), Some(before)) = (self.build_folder(), self.built.get()) else {
            return Ok(BTreeMap::new());
        };
        let now = self.built_files()?;
        let is_in_both = |path: &Path| before.contains_key(path) && now.contains_key(path);
        let is_first = |path: &Path| path.parent().is_none_or(is_in_both);
        let added = now.keys().filter(|path| !before.contains_key(*path)).map(|path| (path, "leave"));
        let removed = before.keys().filter(|path| !now.contains_key(*path)).map(|path| (path, "remove"));
        // Folders are left out, because their stamps only change with their entries.
        let changed = now.iter().filter(|(path, stamp)| {
            before.get(*path).is_some_and(|before| before != *stamp) && !path.is_dir()
        });
        let changed = changed.map(|(path, _)| (path, "change"));
        let entries = added.chain(removed).chain(changed).filter(|(path, _)| is_first(path));
        Ok(entries
            .map(|(path, verb)| (without_digits(path.strip_prefix(folder).unwrap_or(path)), verb))
            .collect())
    }
}

/// A path without digits, because the names of such files often contain process numbers.
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
            "head's processes {verb} `{name}` in {{build}}, where later ones find it, but base's don't"
        );
        Lint::new(LintCode::WorkloadChanged, detail)
    }))
}
