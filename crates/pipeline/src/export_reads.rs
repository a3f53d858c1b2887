//! Finds exports that read files that only one of the sides has: the sides then don't differ by their commits alone.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use benchgate_core::model::{Lint, LintCode, SideName, excerpt};
use benchgate_host::git::{GitError, Repository};

use super::candidates::PreparedSide;
use super::commands::{LONGEST_NAME, holds_tools};
use super::host::Host;
use super::trace::{clean, file_state};

/// Adds the findings about the files that the exports of both sides read.
pub(super) async fn note(host: &Host<'_>, sides: &mut [PreparedSide<'_>]) {
    let [first, second] = sides else { return };
    let (base, head) = if first.input.name == SideName::Base { (first, second) } else { (second, first) };
    note_heads_files(host, base, head).await;
    note_local_files(host, base, head);
}

/// Finds exports of base that read a file that git tracks in head's working tree and that differs in base's
/// checkout, for example by an absolute path: they may run head's code.
async fn note_heads_files(host: &Host<'_>, base: &mut PreparedSide<'_>, head: &PreparedSide<'_>) {
    let Some(checkout) = &base.input.checkout else { return };
    let tree = Repository::open(&head.input.side.sources);
    let tree = tree.and_then(|repository| Ok((repository.tracked()?, repository)));
    for prepared in &mut base.benchmarks {
        let sources = &prepared.planned.side.side.sources;
        let source = prepared.source.as_ref();
        let read =
            source.iter().flat_map(|source| source.read.iter().chain(source.observed.iter().flatten()));
        let read: Vec<PathBuf> = read.map(|name| clean(&sources.join(name))).collect();
        if read.is_empty() {
            continue;
        }
        let lint = match &tree {
            Ok((tracked, repository)) => {
                let found = read_of_head(host, &read, &checkout.folder, (repository.root(), tracked)).await;
                let Some(name) = found else { continue };
                let name = excerpt(&name, LONGEST_NAME);
                let detail = format!(
                    "base's export read head's `{name}`, which differs from base's, so both sides may run head's code"
                );
                Lint::new(LintCode::WorkloadChanged, detail)
            }
            Err(error) => {
                let why =
                    format!("it is unknown whether base's export read head's sources: failed to {error}");
                Lint::new(LintCode::Unobserved, why)
            }
        };
        prepared.lints.push(lint);
    }
}

/// The first of the files that is tracked in head's working tree and differs in base's checkout.
async fn read_of_head(
    host: &Host<'_>,
    read: &[PathBuf],
    checkout: &Path,
    (root, tracked): (&Path, &BTreeSet<PathBuf>),
) -> Option<String> {
    // A link of head's may lead to a file that both sides have.
    let places = read.iter().flat_map(|path| [Some(path.clone()), path.canonicalize().ok()]).flatten();
    for path in places.filter(|path| !host.sources.is_own(path)) {
        let Ok(name) = path.strip_prefix(root) else { continue };
        // A submodule is tracked as a folder.
        if !path.ancestors().any(|it| tracked.contains(it)) {
            continue;
        }
        let [of_base, of_head] = [checkout.join(name), path.clone()];
        if file_state(&of_base, &host.digests).await != file_state(&of_head, &host.digests).await {
            return Some(name.to_string_lossy().into_owned());
        }
    }
    None
}

/// Finds exports of head that read a file that no commit contains, such as a memo or local settings that an earlier run left,
/// or that lack one that the working tree should have. Base's checkout has the files of its commit.
fn note_local_files(host: &Host<'_>, base: &PreparedSide<'_>, head: &mut PreparedSide<'_>) {
    if base.input.checkout.is_none() {
        return;
    }
    let of_base = &base.benchmarks;
    for prepared in &mut head.benchmarks {
        let Some(partner) = of_base.iter().find(|it| it.name() == prepared.name()) else { continue };
        let (Some(read_by_base), Some(read_by_head)) = (&partner.source, &prepared.source) else { continue };
        let folders = [partner, prepared].map(|side| side.planned.side.side.sources.as_path());
        let (by_base, by_head) = match (&read_by_base.observed, &read_by_head.observed) {
            (Some(by_base), Some(by_head)) => (by_base.as_slice(), by_head.as_slice()),
            (Some(_), None) if !read_by_head.read.is_empty() => {
                let detail = "head's export can't be observed, but base's can";
                prepared.lints.push(Lint::new(LintCode::WorkloadChanged, detail));
                continue;
            }
            _ => Default::default(),
        };
        let sought: BTreeSet<&str> = read_by_base.read.iter().chain(by_base).map(String::as_str).collect();
        let is_absent = |name: &String| read_by_head.absent.contains(name);
        let read = read_by_head.read.iter().chain(by_head);
        let names: Vec<_> = read.map(|name| (name.as_str(), !is_absent(name))).collect();
        let lint = match local_file(folders, &names, &sought, |path| host.sources.is_own(path)) {
            Ok(None) => continue,
            Ok(Some(what)) => Lint::new(LintCode::WorkloadChanged, format!("head's export {what}")),
            Err(error) => {
                let why =
                    format!("it is unknown whether head's export read untracked files: failed to {error}");
                Lint::new(LintCode::Unobserved, why)
            }
        };
        prepared.lints.push(lint);
    }
}

/// Returns whether a file of a clone is one of git or of an installed package.
fn is_of_tools(path: &Path, clone: &Path) -> bool {
    let is_named = |name: &str| {
        // `_version.py` is what setuptools-scm writes when a package is installed.
        matches!(name, ".git" | "__pycache__" | "_version.py")
            || name.ends_with(".egg-info")
            || name.ends_with(".dist-info")
    };
    let mut folders = path.ancestors().skip(1).take_while(|folder| *folder != clone);
    let inside = path.strip_prefix(clone).unwrap_or(path);
    inside.iter().any(|name| is_named(&name.to_string_lossy())) || folders.any(holds_tools)
}

/// Describes the first file by which head's export does not depend on its commit alone. `names` are the files that it read or
/// looked for, and whether they existed, and `sought` those of base's export.
fn local_file(
    [of_base, of_head]: [&Path; 2],
    names: &[(&str, bool)],
    sought: &BTreeSet<&str>,
    is_own: impl Fn(&Path) -> bool,
) -> Result<Option<String>, GitError> {
    let repository = Repository::open(of_head)?;
    let tracked = repository.tracked()?;
    for &(name, is_there) in names {
        let [at_base, at_head] = [of_base, of_head].map(|sources| clean(&sources.join(name)));
        let shown = excerpt(name, LONGEST_NAME);
        // A submodule is tracked as a folder.
        let is_tracked = at_head.ancestors().any(|it| tracked.contains(it));
        let is_inside = at_head.starts_with(repository.root());
        let what = match (is_there && at_head.is_file(), is_inside) {
            (true, true) if !is_tracked && !is_own(&at_head) && !is_of_tools(&at_head, repository.root()) => {
                // An absolute path can lead both sides to one file.
                if sought.iter().any(|sought| clean(&of_base.join(sought)) == at_head) {
                    continue;
                }
                let is_new = !repository.untracked_among([at_head.clone()])?.is_empty();
                // A new file that is not committed yet belongs to the change, unless base's export looks for it too.
                let is_local = !is_new || sought.contains(name);
                is_local.then(|| {
                    format!(
                        "read `{shown}`, which no commit contains; commit it, or move it out of the clone"
                    )
                })
            }
            (true, false) if sought.contains(name) && !at_base.exists() && !is_own(&at_head) => {
                Some(format!("read `{shown}`, a file above the clone, which base's looks for in vain"))
            }
            (false, true) if is_tracked && !at_head.exists() && at_base.is_file() => {
                Some(format!("looks in vain for `{shown}`, which git tracks"))
            }
            _ => None,
        };
        if what.is_some() {
            return Ok(what);
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A clone in a folder, and a checkout of its only commit elsewhere.
    struct World(tempfile::TempDir);

    impl World {
        fn new() -> Self {
            let world = Self(tempfile::tempdir().unwrap());
            for folder in ["clone", "cache/base"] {
                world.write(&format!("{folder}/model.py"), "");
                world.write(&format!("{folder}/weights.bin"), "");
            }
            world.write("clone/.gitignore", "*.memo\nignored.py\nvenv\n");
            let repository = git2::Repository::init(world.path("clone")).unwrap();
            let mut index = repository.index().unwrap();
            index.add_all(["*"], git2::IndexAddOption::DEFAULT, None).unwrap();
            index.write().unwrap();
            let tree = repository.find_tree(index.write_tree().unwrap()).unwrap();
            let who = git2::Signature::now("t", "t@example.org").unwrap();
            repository.commit(Some("HEAD"), &who, &who, "m", &tree, &[]).unwrap();
            world
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(name)
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn found(&self, read_by_head: &[&str], read_by_base: &[&str]) -> Option<String> {
            let folders = [self.path("cache/base"), self.path("clone")];
            let sought = read_by_base.iter().copied().collect();
            let names: Vec<_> = read_by_head.iter().map(|name| (*name, true)).collect();
            local_file([&folders[0], &folders[1]], &names, &sought, |_| false).unwrap()
        }
    }

    #[test]
    fn a_file_that_only_heads_export_finds_is_named() {
        let world = World::new();
        let all = ["model.py", "weights.bin", "w.memo", "ignored.py", "new.py", "../settings.json"];
        assert_eq!(world.found(&all, &all), None, "neither side has any other file");
        for (name, why) in [
            ("w.memo", "read `w.memo`, which no commit contains; commit it, or move it out of the clone"),
            (
                "ignored.py",
                "read `ignored.py`, which no commit contains; commit it, or move it out of the clone",
            ),
            ("new.py", "read `new.py`, which no commit contains; commit it, or move it out of the clone"),
            (
                "../settings.json",
                "read `../settings.json`, a file above the clone, which base's looks for in vain",
            ),
        ] {
            world.write(&format!("clone/{name}"), "");
            assert_eq!(world.found(&all, &all).as_deref(), Some(why));
            fs::remove_file(world.path(&format!("clone/{name}"))).unwrap();
        }
        // An earlier export of base left one as well.
        world.write("clone/w.memo", "");
        world.write("cache/base/w.memo", "");
        assert!(world.found(&all, &all).is_some());
        assert!(world.found(&["w.memo"], &[]).is_some());
    }

    #[test]
    fn a_file_that_heads_export_made_itself_is_no_memo() {
        let world = World::new();
        world.write("clone/w.memo", "");
        let folders = [world.path("cache/base"), world.path("clone")];
        let sought = BTreeSet::from(["w.memo"]);
        let found = |is_there| {
            local_file([&folders[0], &folders[1]], &[("w.memo", is_there)], &sought, |_| false).unwrap()
        };
        assert!(found(true).is_some() && found(false).is_none());
    }

    #[test]
    fn a_file_that_the_working_tree_lacks_is_named() {
        let world = World::new();
        fs::remove_file(world.path("clone/weights.bin")).unwrap();
        let why = "looks in vain for `weights.bin`, which git tracks";
        assert_eq!(world.found(&["model.py", "weights.bin"], &["model.py"]).as_deref(), Some(why));
    }

    #[test]
    fn files_of_the_change_of_both_sides_or_of_installed_packages_are_none_of_one_side() {
        let world = World::new();
        for name in ["new.py", "a.egg-info/entry_points.txt", "venv/pyvenv.cfg", "venv/lib/a.py", "data.memo"]
        {
            world.write(&format!("clone/{name}"), "");
        }
        let packages = ["a.egg-info/entry_points.txt", "venv/lib/a.py", ".git/HEAD"];
        assert_eq!(world.found(&packages, &packages), None);
        assert_eq!(world.found(&["new.py"], &["model.py"]), None, "it is part of the change");
        assert_eq!(world.found(&["data.memo"], &["../../clone/data.memo"]), None, "both read this file");
        assert_eq!(world.found(&["../settings.json"], &[]), None);
    }
}
