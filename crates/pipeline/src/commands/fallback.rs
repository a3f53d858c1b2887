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
    // Files of other sizes need not be hashed.
    let by_size = |paths: &mut dyn Iterator<Item = &PathBuf>| {
        let mut found: BTreeMap<u64, Vec<PathBuf>> = BTreeMap::new();
        for (size, path) in paths.filter_map(|path| Some((size(path)?, path))) {
            found.entry(size).or_default().push(path.clone());
        }
        found
    };
    let used_by_base = || of_base.opened.used.iter();
    let made_by_base = by_size(&mut used_by_base().filter(|path| is_made(base, path)));
    if made_by_base.is_empty() {
        return None;
    }
    let run_by_base = by_size(&mut used_by_base());
    // A script may change the times of the file in head's tree, or move it.
    let at_base = |path: &PathBuf| {
        let at_base = base.sources[0].join(head.name_in_sources(host, path)?);
        (at_base.is_file() && !is_made(base, &at_base)).then_some(at_base)
    };
    let used_by_head = head.build_files.iter().flat_map(|files| files.used.iter().chain(&files.removed));
    let committed: BTreeSet<PathBuf> = used_by_head.chain(&of_head.opened.used).filter_map(at_base).collect();
    let committed = by_size(&mut committed.iter());
    let content = async |path: &Path| host.digests.readable(path).await;
    let among = async |files: &BTreeMap<u64, Vec<PathBuf>>, path: &Path| {
        for file in size(path).and_then(|size| files.get(&size)).into_iter().flatten() {
            let [one, other] = [content(file).await, content(path).await];
            if one.is_some() && one == other {
                return Some(file.clone());
            }
        }
        None
    };
    let mut older = None;
    for path in &of_head.opened.used {
        if among(&made_by_base, path).await.is_some() {
            return None;
        }
        match among(&committed, path).await {
            None if is_made(head, path) => return None,
            Some(file) if among(&run_by_base, path).await.is_none() => {
                older.get_or_insert(file);
            }
            _ => {}
        }
    }
    let older = older?;
    let name = older.strip_prefix(&base.sources[0]).unwrap_or(&older).to_string_lossy();
    let name = shown(&name);
    other_work(format!(
        "head's processes use `{name}`, which base's commit contains too, and nothing that head's build makes"
    ))
}
