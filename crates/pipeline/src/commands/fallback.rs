//! Detects a head whose build failed although it ended with success, because a script went on with another program: an
//! older one would be measured.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use benchgate_core::model::{Lint, LintCode};

use crate::host::Host;

use super::observed::{ObservedProcess, other_work, shown, written};
use super::{Line, PreparedCommand};

/// The finding that head's build, `setup` or `prepare` states an error that base's doesn't.
pub(super) fn new_errors(base: &PreparedCommand, head: &PreparedCommand) -> Option<Lint> {
    let errors = |side: &PreparedCommand| -> BTreeMap<(Line, String), String> {
        side.errors.lock().unwrap_or_else(PoisonError::into_inner).clone()
    };
    let of_base = errors(base);
    let mut of_head = errors(head).into_iter();
    let ((line, _), error) = of_head.find(|(key, _)| !of_base.contains_key(key))?;
    let detail = format!("head's `{line}` ended with success, but its log says `{error}`");
    Some(Lint::new(LintCode::ReportedProblem, detail))
}

/// The finding that head's processes use a file that base's commit contains too, and nothing that head's build makes, although
/// base's processes use what its build makes.
pub(super) async fn older_program(
    host: &Host<'_>,
    (base, of_base): (&PreparedCommand, &ObservedProcess),
    (head, of_head): (&PreparedCommand, &ObservedProcess),
) -> Option<Lint> {
    let is_made = |side: &PreparedCommand, path: &Path| written(path).is_some_and(|at| side.was_building(at));
    let size = |path: &Path| path.metadata().ok().filter(Metadata::is_file).map(|found| found.len());
    let content = async |path: &Path| host.digests.readable(path).await;
    // Whether base's build makes it, by content.
    let mut of_bases = BTreeMap::new();
    for path in &of_base.opened.used {
        *of_bases.entry(content(path).await).or_insert(false) |= is_made(base, path);
    }
    if !of_bases.values().any(|is_made| *is_made) {
        return None;
    }
    // A script may change the times of the file in head's tree, or move it.
    let at_base = |path: &PathBuf| {
        let name = head.name_in_sources(host, path)?;
        let at_base = base.sources[0].join(&name);
        let size = size(&at_base).filter(|_| !is_made(base, &at_base))?;
        Some((size, (name, at_base)))
    };
    let used_by_head = head.build_files.iter().flat_map(|files| files.used.iter().chain(&files.removed));
    let mut committed: BTreeMap<u64, BTreeSet<(String, PathBuf)>> = BTreeMap::new();
    for (size, file) in used_by_head.chain(&of_head.opened.used).filter_map(at_base) {
        committed.entry(size).or_default().insert(file);
    }
    let mut older = None;
    for path in &of_head.opened.used {
        let found = content(path).await;
        let mut copied = None;
        for (name, at_base) in size(path).and_then(|size| committed.get(&size)).into_iter().flatten() {
            if found == content(at_base).await {
                copied.get_or_insert(name);
            }
        }
        match (copied, of_bases.get(&found)) {
            (_, Some(true)) => return None,
            (None, _) if is_made(head, path) => return None,
            (Some(name), None) => {
                older.get_or_insert(name);
            }
            _ => {}
        }
    }
    let name = shown(older?);
    other_work(format!(
        "head's processes use `{name}`, which base's commit contains too, and nothing that head's build makes"
    ))
}
