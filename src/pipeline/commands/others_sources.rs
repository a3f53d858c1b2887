//! Detects a base that runs head's code, for example a package that was installed with `pip install -e .`, or a
//! library that both builds install in one place. Both sides are then equally fast, and a slower head looks equal.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::git::Repository;
use crate::model::{Lint, LintCode, excerpt};
use crate::pipeline::host::Host;
use crate::pipeline::trace::file_state;

use super::PreparedCommand;
use super::leftovers::{LONGEST_NAME, compiled_from};
use super::observed::ObservedProcess;

/// The finding that base's process read a file that git tracks in head's working tree and that differs in
/// base's checkout. Other files in the working tree, such as those of a virtual environment, are tools that
/// both sides share.
pub(super) async fn read_by_base(
    host: &Host<'_>,
    (base, observed): (&PreparedCommand, &ObservedProcess),
    head: &PreparedCommand,
) -> Option<Lint> {
    // Sides that are two folders of one tree have no checkout, and may share files on purpose.
    if !base.is_checked_out {
        return None;
    }
    let is_bases = |path: &Path| base.sources.iter().any(|sources| path.starts_with(sources));
    let mut names = BTreeSet::new();
    for path in observed.read.iter().filter(|path| !is_bases(path)) {
        // Python reads the compiled file of an unchanged source.
        let source = compiled_from(path).unwrap_or_else(|| path.clone());
        names.extend(head.name_in_sources(host, &source));
    }
    if names.is_empty() {
        return None;
    }
    let tracked = match Repository::open(&head.sources[1]).and_then(|repository| repository.tracked()) {
        Ok(tracked) => tracked,
        Err(error) => {
            let why =
                format!("it is unknown whether base's processes read head's sources: failed to {error}");
            return Some(Lint::new(LintCode::Unobserved, why));
        }
    };
    for name in names.iter().filter(|name| tracked.contains(&head.sources[1].join(name))) {
        let [of_base, of_head] = [base, head].map(|side| side.sources[0].join(name));
        if file_state(&of_base, &host.digests).await != file_state(&of_head, &host.digests).await {
            let detail = format!(
                "base's processes read head's `{}`, which differs from base's, so both sides may run head's code",
                excerpt(name, LONGEST_NAME)
            );
            return Some(Lint::new(LintCode::WorkloadChanged, detail));
        }
    }
    None
}

/// The finding that base's process read a file that head's build or `setup` wrote, or that head's processes wrote
/// and don't use: such a file can only change base's speed. A file that both sides read, or that base's
/// process writes too, may be a cache that honest programs share, such as that of a GPU's driver.
pub(super) fn made_by_head(
    (base, observed): (&PreparedCommand, &ObservedProcess),
    of_head: &ObservedProcess,
    head: &[PreparedCommand],
) -> Option<Lint> {
    let is_any =
        |at: SystemTime, of: fn(&PreparedCommand, SystemTime) -> bool| head.iter().any(|it| of(it, at));
    let made = |(path, at): (&PathBuf, &SystemTime)| {
        let is_shared = || of_head.read.contains(path) || observed.rewritten.contains(path);
        let by = if is_any(*at, PreparedCommand::was_prepared) {
            "head's build or setup wrote, so both sides may run head's code"
        } else if is_any(*at, PreparedCommand::was_running) && !base.was_running(*at) && !is_shared() {
            "head's processes wrote and don't use, so head may change base's speed"
        } else {
            return None;
        };
        let name = path.is_file().then(|| excerpt(&path.to_string_lossy(), LONGEST_NAME))?;
        Some(Lint::new(LintCode::WorkloadChanged, format!("base's processes read `{name}`, which {by}")))
    };
    observed.recent.iter().find_map(made)
}
