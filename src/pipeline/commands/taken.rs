//! Detects files outside both sides that base's processes use and that head's code removes, such as a cache of
//! tuned kernels. Base would be slow without them, which would hide a slower head.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::model::Lint;
use crate::pipeline::host::Host;

use super::PreparedCommand;
use super::observed::{ObservedProcess, other_work, shown};

/// The finding that a file which base's processes used is gone. `there` contains the files that existed after
/// base's observed process, which ran before head's.
pub(super) fn from_base(
    host: &Host<'_>,
    (base, observed): (&PreparedCommand, &ObservedProcess),
    head: &PreparedCommand,
    there: &BTreeSet<PathBuf>,
) -> Option<Lint> {
    let late = &observed.opened;
    let is_outside = |path: &Path| {
        let is_source = base.sources.iter().any(|sources| path.starts_with(sources));
        !is_source && !base.is_built(path) && !host.sources.is_own(path)
    };
    let removed = head.build_files.iter().flat_map(|files| &files.removed);
    let by_build = removed.filter(|path| late.read.contains(*path) && !path.exists());
    let by_build = by_build.map(|path| (path, "but head's build removed it"));
    let first = base.first_files.get();
    let by_itself =
        |path: &PathBuf| late.removed.contains(path) || first.is_some_and(|it| it.removed.contains(path));
    let missed =
        |path: &&PathBuf| late.read.contains(*path) && !late.found.contains_key(*path) && !by_itself(path);
    let missed = first.iter().flat_map(|first| &first.used).filter(missed);
    let missed = missed.map(|path| (path, "but later ones, after processes of head, don't find it"));
    let gone = there.iter().filter(|path| !path.exists());
    let gone = gone.map(|path| (path, "but it is gone after a process of head"));
    let mut found = by_build.chain(missed).chain(gone).filter(|(path, _)| is_outside(path));
    let (path, why) = found.next()?;
    other_work(format!("base's processes read `{}`, {why}", shown(&path.to_string_lossy())))
}
