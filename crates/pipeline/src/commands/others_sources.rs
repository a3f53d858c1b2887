//! Detects a base that runs head's code, for example a package that was installed with `pip install -e .`, or a
//! library that both builds install in one place. Both sides are then equally fast, and a slower head looks equal.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::host::Host;
use crate::trace::file_state;
use benchgate_core::model::{Lint, LintCode, excerpt};
use benchgate_host::git::Repository;
use benchgate_host::process::Opened;

use super::PreparedCommand;
use super::leftovers::{LONGEST_NAME, compiled_from};
use super::observed::ObservedProcess;

/// Files that base's processes, build or `setup` used, and a word for which of them.
pub(super) type UsedByBase<'a> = (&'static str, &'a Opened);

/// The finding that base read a file that git tracks in head's working tree and that differs in base's checkout. Other files
/// in the working tree, such as those of a virtual environment, are tools that both sides share.
pub(super) async fn read_by_base(
    host: &Host<'_>,
    (base, (what, opened)): (&PreparedCommand, UsedByBase<'_>),
    head: &PreparedCommand,
) -> Option<Lint> {
    // Sides that are two folders of one tree have no checkout, and may share files on purpose.
    if !base.is_checked_out {
        return None;
    }
    let is_bases = |path: &Path| base.sources.iter().any(|sources| path.starts_with(sources));
    let mut names = BTreeSet::new();
    for path in opened.read.iter().filter(|path| !is_bases(path)) {
        // Python reads the compiled file of an unchanged source.
        let source = compiled_from(path).unwrap_or_else(|| path.clone());
        names.extend(head.name_in_sources(host, &source));
    }
    let repository = Repository::open(&head.sources[1]);
    // Base's checkout has a repository of its own, which only shares the objects.
    let is_heads = |repository: &Repository| opened.used.contains(&repository.git_folder().join("HEAD"));
    if repository.as_ref().is_ok_and(is_heads) {
        let detail = format!("base's {what} read head's repository, so both sides may run head's code");
        return Some(Lint::new(LintCode::WorkloadChanged, detail));
    }
    if names.is_empty() {
        return None;
    }
    let tracked = match repository.and_then(|repository| repository.tracked()) {
        Ok(tracked) => tracked,
        Err(error) => {
            let why = format!("it is unknown whether base's {what} read head's sources: failed to {error}");
            return Some(Lint::new(LintCode::Unobserved, why));
        }
    };
    for name in names.iter().filter(|name| tracked.contains(&head.sources[1].join(name))) {
        let [of_base, of_head] = [base, head].map(|side| side.sources[0].join(name));
        if file_state(&of_base, &host.digests).await != file_state(&of_head, &host.digests).await {
            let detail = format!(
                "base's {what} read head's `{}`, which differs from base's, so both sides may run head's code",
                excerpt(name, LONGEST_NAME)
            );
            return Some(Lint::new(LintCode::WorkloadChanged, detail));
        }
    }
    untracked_code(host, (base, (what, opened)), head, &tracked).await
}

/// The finding that base used code in head's working tree that git does not track, such as a library that
/// `pip install -e .` compiled. It is unknown whether a tool that both sides share was unpacked there, or head's
/// code was built there before benchgate began. Builds leave their files beside the sources or in folders
/// with a few names; elsewhere, the code is only pointed out.
async fn untracked_code(
    host: &Host<'_>,
    (base, (what, opened)): (&PreparedCommand, UsedByBase<'_>),
    head: &PreparedCommand,
    tracked: &BTreeSet<PathBuf>,
) -> Option<Lint> {
    let mut elsewhere = None;
    for path in &opened.used {
        let Some(name) = head.name_in_sources(host, path) else { continue };
        let file = head.sources[1].join(&name);
        let is_tools = file.ancestors().take_while(|it| *it != head.sources[1]).any(holds_tools);
        // A submodule is tracked as a folder.
        if file.ancestors().any(|it| tracked.contains(it)) || is_tools || !is_code(path) && !is_object(path) {
            continue;
        }
        let of_base = file_state(&base.sources[0].join(&name), &host.digests).await;
        if of_base == file_state(path, &host.digests).await {
            continue;
        }
        let is_beside = tracked.iter().any(|tracked| tracked.parent() == file.parent());
        let is_build = Path::new(&name).iter().any(is_name_of_build);
        let shown = excerpt(&name, LONGEST_NAME);
        if is_beside || is_build {
            let detail = format!(
                "base's {what} used head's `{shown}`, which git does not track, so both sides may run head's \
                 code"
            );
            return Some(Lint::new(LintCode::WorkloadChanged, detail));
        }
        elsewhere.get_or_insert(shown);
    }
    elsewhere.map(|name| {
        let detail = format!(
            "both sides may run `{name}` of head's working tree, which git does not track: it must not be built from \
             head's sources"
        );
        Lint::new(LintCode::ScriptChanged, detail)
    })
}

/// Returns whether a package manager fills the folder: Python's, conda's or npm's.
pub(crate) fn holds_tools(folder: &Path) -> bool {
    folder.ends_with("node_modules") || ["pyvenv.cfg", "conda-meta"].iter().any(|it| folder.join(it).exists())
}

fn is_name_of_build(part: &OsStr) -> bool {
    let part = part.to_string_lossy();
    ["_build", "_skbuild", "dist", "out", "target"].contains(&part.as_ref())
        || ["build", "cmake-build", "bazel-"].iter().any(|start| part.starts_with(start))
}

/// Returns whether a compiler made a file for a linker.
fn is_object(path: &Path) -> bool {
    path.extension().is_some_and(|kind| ["a", "o", "rlib", "rmeta"].iter().any(|it| kind == *it))
}

/// Returns whether a file is a program, a library or a module of Python.
pub(super) fn is_code(path: &Path) -> bool {
    path.extension().is_some_and(|kind| ["py", "pyc"].iter().any(|it| kind == *it)) || is_program(path)
}

/// Returns whether a file is a program or a library, and not a module of an interpreter.
pub(super) fn is_program(path: &Path) -> bool {
    let mut start = [0; 4];
    let is_read = File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok();
    let runs = path.metadata().is_ok_and(|found| found.permissions().mode() & 0o111 != 0);
    is_read && start == *b"\x7fELF" || runs || path.extension().is_some_and(|kind| kind == "so")
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
        let is_shared = || of_head.opened.read.contains(path) || observed.rewritten.contains(path);
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
