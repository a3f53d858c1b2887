//! Files that the processes of a command leave in its build folder. A later process finds them there, so what it computes can
//! depend on an earlier one: a cache that base has as well, or a result that head does not compute again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::model::{Lint, LintCode, excerpt};

use super::PreparedCommand;
use super::guard::walk;
use crate::pipeline::PipelineError;

/// Characters of a name in a finding.
const LONGEST_NAME: usize = 80;

impl PreparedCommand {
    /// Everything below its build folder.
    pub(super) fn built_files(&self) -> Result<BTreeSet<PathBuf>, PipelineError> {
        let mut found = BTreeMap::new();
        if let Some(folder) = self.build_folder() {
            walk(folder, &mut found).map_err(PipelineError::io("look at", folder))?;
        }
        Ok(found.into_keys().collect())
    }

    /// What its processes added to its build folder: files, and folders as a whole. Digits are left out of the names, because
    /// they number processes.
    fn leftovers(&self) -> Result<BTreeSet<String>, PipelineError> {
        let (Some(folder), Some(before)) = (self.build_folder(), self.built.get()) else {
            return Ok(BTreeSet::new());
        };
        let now = self.built_files()?;
        let is_new = |path: &Path| !before.contains(path);
        let added =
            now.iter().filter(|path| is_new(path) && path.parent().is_none_or(|parent| !is_new(parent)));
        let name = |path: &PathBuf| {
            let path = path.strip_prefix(folder).unwrap_or(path).to_string_lossy();
            path.chars().filter(|c| !c.is_ascii_digit()).collect()
        };
        Ok(added.map(name).collect())
    }
}

/// The finding about files that head's processes leave to later ones, and base's don't.
pub(super) fn lint(base: &PreparedCommand, head: &PreparedCommand) -> Result<Option<Lint>, PipelineError> {
    let of_base = base.leftovers()?;
    let of_head = head.leftovers()?;
    Ok(of_head.difference(&of_base).next().map(|name| {
        let detail = format!(
            "head's processes leave `{}` in {{build}}, where later ones find it, and base's don't",
            excerpt(name, LONGEST_NAME)
        );
        Lint::new(LintCode::WorkloadChanged, detail)
    }))
}
