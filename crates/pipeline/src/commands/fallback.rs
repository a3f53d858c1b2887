//! Detects a head whose build failed although it ended with success, because a script went on with another program: an
//! older one would be measured.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use benchgate_core::model::{Lint, LintCode};

use crate::host::Host;

use super::observed::{ObservedProcess, other_work, shown, written};
use super::others_sources::is_program;
use super::{Line, PreparedCommand};

/// The finding that head's build, `setup` or `prepare` states an error that base's doesn't.
pub(super) fn new_errors(base: &PreparedCommand, head: &PreparedCommand) -> Option<Lint> {
    let errors = |side: &PreparedCommand| -> BTreeSet<(Line, String)> {
        side.errors.lock().unwrap_or_else(PoisonError::into_inner).clone()
    };
    let of_base = errors(base);
    let (line, error) = errors(head).into_iter().find(|error| !of_base.contains(error))?;
    let detail = format!("head's `{line}` ended with success, but its log says `{error}`");
    Some(Lint::new(LintCode::ReportedProblem, detail))
}

/// The finding that head's processes run a program that base's commit contains too, and none that head's build makes, as base's
/// processes do.
pub(super) async fn older_program(
    host: &Host<'_>,
    (base, of_base): (&PreparedCommand, &ObservedProcess),
    (head, of_head): (&PreparedCommand, &ObservedProcess),
) -> Option<Lint> {
    let programs = |observed: &ObservedProcess| -> Vec<PathBuf> {
        observed.opened.used.iter().filter(|path| is_program(path)).cloned().collect()
    };
    let is_made = |side: &PreparedCommand, path: &Path| written(path).is_some_and(|at| side.was_building(at));
    let content = async |path: &Path| host.digests.readable(path).await;
    // Whether base's build makes it, by content.
    let mut of_bases = BTreeMap::new();
    for path in programs(of_base) {
        *of_bases.entry(content(&path).await).or_insert(false) |= is_made(base, &path);
    }
    if !of_bases.values().any(|is_made| *is_made) {
        return None;
    }
    let size = |path: &Path| path.metadata().ok().filter(Metadata::is_file).map(|found| found.len());
    let in_both = |path: &PathBuf| {
        let name = head.name_in_sources(host, path)?;
        let at_base = base.sources[0].join(&name);
        let is_committed = !is_made(base, &at_base) && !is_made(head, path);
        (is_committed && size(&at_base).is_some() && size(&at_base) == size(path))
            .then(|| (name, path.clone(), at_base))
    };
    let used_by_head = head.build_files.iter().flat_map(|files| &files.used).chain(&of_head.opened.used);
    let committed: Vec<(String, PathBuf, PathBuf)> = used_by_head.filter_map(in_both).collect();
    let mut older = None;
    for program in programs(of_head) {
        let found = content(&program).await;
        let mut copied = None;
        for (name, path, at_base) in committed.iter().filter(|(_, path, _)| size(path) == size(&program)) {
            if found == content(path).await && found == content(at_base).await {
                copied.get_or_insert(name);
            }
        }
        match (copied, of_bases.get(&found)) {
            (_, Some(true)) => return None,
            (None, _) if is_made(head, &program) => return None,
            (Some(name), None) => {
                older.get_or_insert(name);
            }
            _ => {}
        }
    }
    let name = shown(older?);
    other_work(format!(
        "head's processes run `{name}`, which base's commit contains too, and nothing that head's build makes"
    ))
}
