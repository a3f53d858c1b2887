//! Tests with real repositories, which the tests create.

mod worktree;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::process::{self, Cancel};

use super::{Checkout, GitError, Notice, Repository, fetch_advice};

/// A repository with its own identity, independent of the user's configuration.
struct Fixture {
    folder: TempDir,
    inner: git2::Repository,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = git2::RepositoryInitOptions::new();
        options.initial_head("main");
        let inner = git2::Repository::init_opts(folder.path(), &options).unwrap();
        Self { folder, inner }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Commits the working tree onto HEAD.
    fn commit(&self) -> String {
        let mut index = self.inner.index().unwrap();
        index.add_all(["*"], git2::IndexAddOption::FORCE, None).unwrap();
        index.update_all(["*"], None).unwrap();
        index.write().unwrap();
        let tree = index.write_tree().unwrap();
        let parents: Vec<_> =
            self.inner.head().ok().map(|head| head.peel_to_commit().unwrap()).into_iter().collect();
        self.commit_tree(tree, &parents.iter().collect::<Vec<_>>(), Some("HEAD"))
    }

    fn commit_tree(&self, tree: git2::Oid, parents: &[&git2::Commit<'_>], update: Option<&str>) -> String {
        let who = git2::Signature::new("t", "t@example.org", &git2::Time::new(0, 0)).unwrap();
        let tree = self.inner.find_tree(tree).unwrap();
        self.inner.commit(update, &who, &who, "m", &tree, parents).unwrap().to_string()
    }

    fn branch(&self, name: &str) {
        let head = self.inner.head().unwrap().peel_to_commit().unwrap();
        self.inner.branch(name, &head, true).unwrap();
    }

    fn switch(&self, name: &str) {
        self.inner.set_head(&format!("refs/heads/{name}")).unwrap();
        self.inner.checkout_head(Some(git2::build::CheckoutBuilder::new().force())).unwrap();
    }

    fn open(&self) -> Repository {
        Repository::open(self.folder.path()).unwrap()
    }
}

/// A repository with the history main: a — b, feature: a — c, with feature checked out, and the commit a.
fn forked() -> (Fixture, String) {
    let fixture = Fixture::new();
    fixture.put("benchgate.toml", "base");
    let a = fixture.commit();
    fixture.branch("feature");
    fixture.put("benchgate.toml", "later");
    fixture.commit();
    fixture.switch("feature");
    fixture.put("benchgate.toml", "head");
    fixture.commit();
    (fixture, a)
}

#[test]
fn the_merge_base_is_the_commit_where_the_branches_diverged() {
    let (fixture, a) = forked();
    let repository = fixture.open();
    assert_eq!(repository.merge_base("main").unwrap(), a);
    assert_eq!(repository.head().unwrap().branch.as_deref(), Some("feature"));
}

#[test]
fn a_detached_head_has_a_merge_base_too() {
    let (fixture, a) = forked();
    let head = fixture.inner.head().unwrap().peel_to_commit().unwrap().id();
    fixture.inner.set_head_detached(head).unwrap();
    let repository = fixture.open();
    assert_eq!(repository.head().unwrap().branch, None);
    assert_eq!(repository.head().unwrap().commit, head.to_string());
    assert_eq!(repository.merge_base("main").unwrap(), a);
}

#[test]
fn a_branch_that_exists_only_on_origin_is_found_by_its_short_name() {
    let (fixture, a) = forked();
    let main = fixture.inner.find_branch("main", git2::BranchType::Local).unwrap();
    let id = main.get().target().unwrap();
    fixture.inner.reference("refs/remotes/origin/release", id, true, "t").unwrap();
    assert_eq!(fixture.open().merge_base("release").unwrap(), a);
    assert_eq!(fixture.open().merge_base("origin/release").unwrap(), a);
}

#[test]
fn the_error_for_an_unknown_ref_names_the_fetch_command() {
    let (fixture, _) = forked();
    let error = fixture.open().resolve("trunk").unwrap_err();
    assert!(error.to_string().contains("there is no remote `origin`"), "{error}");
    fixture.inner.remote("origin", "https://example.com/suite").unwrap();
    let error = fixture.open().resolve("trunk").unwrap_err();
    assert!(matches!(error, GitError::UnknownReference { .. }));
    assert!(error.to_string().contains("`git fetch origin trunk:refs/remotes/origin/trunk`"), "{error}");
    assert_eq!(fetch_advice("HEAD"), "commit something first");
    let error = fixture.open().resolve("0123456789abcdef0123456789abcdef01234567").unwrap_err();
    assert!(error.to_string().contains("`git fetch origin 0123456789abcdef"), "{error}");
    // The advice contains no name that a shell would require to be quoted.
    let error = fixture.open().resolve("x; rm -rf $HOME").unwrap_err();
    assert!(!error.to_string().contains("git fetch"), "{error}");
}

#[test]
fn unrelated_histories_and_shallow_clones_have_different_errors() {
    let (fixture, _) = forked();
    let tree = fixture.inner.head().unwrap().peel_to_tree().unwrap().id();
    fixture.commit_tree(tree, &[], Some("refs/heads/other"));
    let error = fixture.open().merge_base("other").unwrap_err();
    assert!(matches!(error, GitError::NoCommonAncestor(_)), "{error}");
    // The file `shallow` lists the commits whose parents are missing.
    let main = fixture.open().resolve("main").unwrap();
    let head = fixture.open().head().unwrap().commit;
    fs::write(fixture.path(".git/shallow"), format!("{main}\n{head}\n")).unwrap();
    let error = fixture.open().merge_base("other").unwrap_err();
    assert!(matches!(error, GitError::Shallow(_)), "{error}");
    assert!(error.to_string().contains("git fetch --unshallow origin"), "{error}");
    assert!(matches!(fixture.open().merge_base("main").unwrap_err(), GitError::Shallow(_)));
}

#[test]
fn a_missing_repository_and_a_missing_commit_have_different_errors() {
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(Repository::open(empty.path()).unwrap_err(), GitError::NotARepository(_)));
    let fixture = Fixture::new();
    assert!(matches!(fixture.open().head().unwrap_err(), GitError::NoCommit));
    let bare = tempfile::tempdir().unwrap();
    git2::Repository::init_bare(bare.path()).unwrap();
    assert!(matches!(Repository::open(bare.path()).unwrap_err(), GitError::Bare(_)));
}

#[test]
fn a_folder_that_only_looks_like_a_repository_is_a_folder_of_the_one_around_it() {
    let (fixture, _) = forked();
    let own = git2::Repository::init_bare(fixture.path("suite")).unwrap();
    own.config().unwrap().set_bool("core.bare", false).unwrap();
    own.config().unwrap().set_str("core.worktree", "..").unwrap();
    fixture.put("suite/benchgate.toml", "x");
    let repository = Repository::open(&fixture.path("suite")).unwrap();
    assert_eq!(repository.head().unwrap(), fixture.open().head().unwrap());
}

#[test]
fn a_submodule_knows_the_repository_around_it() {
    let (fixture, _) = forked();
    let inner = git2::Repository::init(fixture.path("suite")).unwrap();
    assert_eq!(Repository::open(&fixture.path("suite")).unwrap().superproject().unwrap(), None);
    fixture.put("suite/file", "x");
    let mut index = inner.index().unwrap();
    index.add_path(Path::new("file")).unwrap();
    let tree = inner.find_tree(index.write_tree().unwrap()).unwrap();
    let who = git2::Signature::new("t", "t@example.org", &git2::Time::new(0, 0)).unwrap();
    inner.commit(Some("HEAD"), &who, &who, "m", &tree, &[]).unwrap();
    let mut index = fixture.inner.index().unwrap();
    index.add_path(Path::new("suite")).unwrap();
    index.write().unwrap();
    let outer = Repository::open(&fixture.path("suite")).unwrap().superproject().unwrap();
    assert_eq!(outer, Some(fixture.open().root().to_owned()));
    assert_eq!(fixture.open().superproject().unwrap(), None);
}

#[test]
fn the_error_for_another_users_repository_says_how_to_trust_it() {
    let (fixture, _) = forked();
    fixture.put("suites/benchgate.toml", "x");
    let other_user = Some(65534);
    let owned = [fixture.path(""), fixture.path(".git")];
    if owned.iter().any(|path| std::os::unix::fs::chown(path, other_user, other_user).is_err()) {
        // Only root can change the owner of a folder.
        return;
    }
    match Repository::open(&fixture.path("suites")) {
        Err(error @ GitError::OtherOwner(_)) => {
            let root = fs::canonicalize(fixture.folder.path()).unwrap();
            let command = format!("safe.directory {}`", root.display());
            assert!(error.to_string().ends_with(&command), "{error}");
        }
        // This user's git configuration trusts every folder.
        Ok(_) => {}
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_path_is_made_relative_to_the_root() {
    let (fixture, _) = forked();
    fixture.put("suites/a/benchgate.toml", "x");
    let repository = Repository::open(&fixture.path("suites/a")).unwrap();
    let path = fixture.path("suites/a/../a/benchgate.toml");
    assert_eq!(repository.relative(&path).unwrap(), Path::new("suites/a/benchgate.toml"));
    // The link is kept in the path, because other commits may not have it.
    symlink("a", fixture.path("suites/b")).unwrap();
    let through_a_link = fixture.path("suites/b/benchgate.toml");
    assert_eq!(repository.relative(&through_a_link).unwrap(), Path::new("suites/b/benchgate.toml"));
    let elsewhere = tempfile::NamedTempFile::new().unwrap();
    assert!(matches!(repository.relative(elsewhere.path()).unwrap_err(), GitError::Outside { .. }));
}

#[test]
fn a_file_is_read_as_it_was_at_a_commit() {
    let (fixture, a) = forked();
    fixture.put("dir/file", "x");
    symlink("file", fixture.path("dir/link")).unwrap();
    let head = fixture.commit();
    let repository = fixture.open();
    let read = |commit: &str, path: &str| repository.read_file(commit, Path::new(path));
    assert_eq!(read(&a, "benchgate.toml").unwrap().unwrap(), b"base");
    assert_eq!(read(&head, "dir/file").unwrap().unwrap(), b"x");
    assert_eq!(read(&a, "dir/file").unwrap(), None);
    assert!(matches!(read(&head, "dir").unwrap_err(), GitError::NotAFile { .. }));
    assert!(matches!(read(&head, "dir/link").unwrap_err(), GitError::NotAFile { .. }));
}

/// Runs git with its default configuration only.
fn run(command: &process::Command) -> Result<process::Finished, process::ProcessError> {
    let cancel = Cancel::default();
    let command = command.clone().env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    process::block_on(process::run(&command, &cancel))
}

fn checkout(fixture: &Fixture, commit: &str, into: &Path) -> Result<Checkout, GitError> {
    fixture.open().checkout(commit, into, &run)
}

#[test]
fn a_commit_is_checked_out_without_write_bits_and_removed_with_its_holder() {
    let (fixture, _) = forked();
    fixture.put("models/m.mlir", "m\r\n");
    fixture.put("run.sh", "#!/bin/sh\n");
    fs::set_permissions(fixture.path("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("models/m.mlir", fixture.path("link")).unwrap();
    let head = fixture.commit();
    let cache = tempfile::tempdir().unwrap();
    let found = checkout(&fixture, &head, cache.path()).unwrap();
    assert_eq!((found.commit.as_str(), found.notices.as_slice()), (head.as_str(), [].as_slice()));
    let file = found.folder.join("models/m.mlir");
    assert_eq!(fs::read(&file).unwrap(), b"m\r\n");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o222, 0);
    let script = fs::metadata(found.folder.join("run.sh")).unwrap();
    assert_eq!(script.permissions().mode() & 0o111, 0o111);
    assert_eq!(fs::read(found.folder.join("link")).unwrap(), b"m\r\n");
    let other = found.clone();
    drop(found);
    assert!(file.is_file());
    drop(other);
    assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 0);
}

#[test]
fn a_second_checkout_does_not_have_what_was_written_into_the_first() {
    let (fixture, a) = forked();
    let cache = tempfile::tempdir().unwrap();
    let first = checkout(&fixture, &a, cache.path()).unwrap();
    fs::remove_file(first.folder.join("benchgate.toml")).unwrap();
    fs::write(first.folder.join("benchgate.toml"), "evil").unwrap();
    let second = checkout(&fixture, &a, cache.path()).unwrap();
    assert_eq!(fs::read(second.folder.join("benchgate.toml")).unwrap(), b"base");
}

#[test]
fn links_out_of_the_tree_lead_to_where_they_do_from_the_working_tree() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("data"), "outside").unwrap();
    let fixture = Fixture::new();
    fixture.put("a/b/c/file", "base");
    symlink(outside.path().join("data"), fixture.path("absolute")).unwrap();
    let name = outside.path().file_name().unwrap().to_str().unwrap();
    symlink(format!("../../{name}/data"), fixture.path("a/up")).unwrap();
    // This absolute link leads into the working tree, which has head's version of the file.
    symlink(fixture.open().root().join("a/b/c/file"), fixture.path("own")).unwrap();
    // Each link alone stays inside by its text; together they lead out.
    symlink("../..", fixture.path("a/b/top")).unwrap();
    symlink("b/top/..", fixture.path("a/through")).unwrap();
    symlink("b/c/file", fixture.path("a/fine")).unwrap();
    let commit = fixture.commit();
    fixture.put("a/b/c/file", "head");
    let cache = tempfile::tempdir().unwrap();
    let found = checkout(&fixture, &commit, cache.path()).unwrap();
    assert_eq!(found.notices, [Notice::EscapingLink("a/through".into())]);
    for (link, content) in [("absolute", "outside"), ("a/up", "outside"), ("own", "base"), ("a/fine", "base")]
    {
        assert_eq!(fs::read_to_string(found.folder.join(link)).unwrap(), content, "{link}");
    }
}

#[test]
fn submodules_and_lfs_pointers_that_the_working_tree_lacks_too_are_reported() {
    let fixture = Fixture::new();
    fixture.put("big.npy", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n");
    let commit = with_submodule(&fixture);
    let cache = tempfile::tempdir().unwrap();
    let found = checkout(&fixture, &commit, cache.path()).unwrap();
    assert_eq!(
        found.notices,
        [Notice::Submodule("third_party".into()), Notice::LfsPointer("big.npy".into())]
    );
    assert!(found.folder.join("third_party").is_dir());
    // If the working tree has the content, base must have it too.
    fixture.put("big.npy", "content");
    let error = checkout(&fixture, &commit, cache.path()).unwrap_err();
    assert!(matches!(&error, GitError::LfsContent { path, .. } if path == Path::new("big.npy")), "{error}");
}

#[test]
fn a_submodule_whose_commit_is_not_here_is_an_error_that_names_it() {
    let fixture = Fixture::new();
    fixture.put("a", "a");
    let commit = with_submodule(&fixture);
    git2::Repository::init(fixture.path("third_party")).unwrap();
    let cache = tempfile::tempdir().unwrap();
    let error = checkout(&fixture, &commit, cache.path()).unwrap_err();
    assert!(
        matches!(&error, GitError::SubmoduleCommit { path, .. } if path == Path::new("third_party")),
        "{error}"
    );
}

/// Commits the working tree together with a submodule in `third_party`, whose commit exists only in this
/// repository.
fn with_submodule(fixture: &Fixture) -> String {
    let commit = git2::Oid::from_str(&fixture.commit()).unwrap();
    let parent = fixture.inner.find_commit(commit).unwrap();
    let mut tree = fixture.inner.treebuilder(Some(&parent.tree().unwrap())).unwrap();
    tree.insert("third_party", commit, 0o160_000).unwrap();
    fixture.commit_tree(tree.write().unwrap(), &[&parent], None)
}

/// A home folder whose git has a fake git-lfs, which stores its files in this folder.
fn home_with_lfs() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    let at = home.path().display();
    fs::create_dir(home.path().join("objects")).unwrap();
    let script = format!(
        "set -e\ncd {at}/objects\nif [ $1 = smudge ]; then\n  cat $(sed -n 's/^oid sha256://p')\nelse\n  \
         cat >new.$$; sum=$(sha256sum <new.$$ | cut -c1-64); size=$(wc -c <new.$$); mv new.$$ $sum\n  \
         printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%s\\nsize %s\\n' $sum $size\nfi\n"
    );
    fs::write(home.path().join("lfs"), script).unwrap();
    let config = format!(
        "[filter \"lfs\"]\nsmudge = sh {at}/lfs smudge\nclean = sh {at}/lfs clean\nrequired = true\n\
         [user]\nname = t\nemail = t@example.org\n[init]\ndefaultBranch = main\n[protocol \"file\"]\nallow = always\n"
    );
    fs::write(home.path().join(".gitconfig"), config).unwrap();
    home
}

fn git(home: &Path, folder: &Path, arguments: &[&str]) {
    let mut command = std::process::Command::new("git");
    command.args(arguments).current_dir(folder).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    let output = command.env("HOME", home).env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Every file and link below a folder except git's own: its content or target, and whether it is executable.
fn contents(folder: &Path) -> BTreeMap<PathBuf, (bool, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(at) = pending.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let name = path.strip_prefix(folder).unwrap().to_owned();
            if name.file_name().unwrap() == ".git" {
                continue;
            }
            if metadata.is_dir() {
                found.insert(name, (true, b"folder".to_vec()));
                pending.push(path);
            } else if metadata.is_symlink() {
                let target = fs::read_link(&path).unwrap();
                found.insert(name, (false, target.as_os_str().as_encoded_bytes().to_vec()));
            } else {
                let is_executable = metadata.permissions().mode() & 0o111 != 0;
                found.insert(name, (is_executable, fs::read(&path).unwrap()));
            }
        }
    }
    found
}

#[test]
fn a_checkout_has_file_by_file_what_a_fresh_clone_has() {
    let home = home_with_lfs();
    let all = tempfile::tempdir().unwrap();
    let path = |name: &str| all.path().join(name);
    let put = |name: &str, content: &[u8]| {
        fs::create_dir_all(path(name).parent().unwrap()).unwrap();
        fs::write(path(name), content).unwrap();
    };
    for name in ["inner", "middle", "outer"] {
        fs::create_dir(path(name)).unwrap();
        git(home.path(), &path(name), &["init", "--quiet"]);
        put(&format!("{name}/.gitattributes"), b"*.npy filter=lfs -text\n*.crlf text eol=crlf\n");
        put(&format!("{name}/weights/{name}.npy"), &[7; 3000]);
        put(&format!("{name}/lines.crlf"), b"a\nb\n");
    }
    git(home.path(), &path("middle"), &["add", "--all"]);
    git(home.path(), &path("inner"), &["add", "--all"]);
    git(home.path(), &path("inner"), &["commit", "--quiet", "--message=inner"]);
    let submodule = |outer: &str, name: &str| {
        let url = path(name).display().to_string();
        git(home.path(), &path(outer), &["submodule", "--quiet", "add", &url, &format!("deps/{name}")]);
    };
    submodule("middle", "inner");
    git(home.path(), &path("middle"), &["commit", "--quiet", "--message=middle"]);
    put("outer/.gitattributes", b"*.npy filter=lfs -text\n*.crlf text eol=crlf\nid.txt ident\nutf16.txt text working-tree-encoding=UTF-16LE\nraw.txt -text\n");
    put("outer/models/.gitattributes", b"lf.crlf text eol=lf\n");
    put("outer/models/lf.crlf", b"a\nb\n");
    put("outer/models/m.mlir", b"m\n");
    put("outer/raw.txt", b"a\r\nb\n");
    put("outer/id.txt", b"$Id$\n");
    put("outer/utf16.txt", b"h\0\xe9\0\n\0");
    put("outer/run.sh", b"#!/bin/sh\n");
    fs::set_permissions(path("outer/run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("../models/m.mlir", path("outer/weights/link")).unwrap();
    symlink("models", path("outer/folder")).unwrap();
    symlink("nowhere", path("outer/dangling")).unwrap();
    git(home.path(), &path("outer"), &["add", "--all"]);
    submodule("outer", "middle");
    git(home.path(), &path("outer"), &["commit", "--quiet", "--message=base"]);
    git(home.path(), &path("outer"), &["submodule", "--quiet", "update", "--init", "--recursive"]);
    git(home.path(), all.path(), &["clone", "--quiet", "--recurse-submodules", "outer", "clone"]);
    let repository = Repository::open(&path("outer")).unwrap();
    let base = repository.head().unwrap().commit;
    // Head no longer has these files, and has moved the submodule.
    git(home.path(), &path("outer"), &["mv", "deps/middle", "moved"]);
    git(
        home.path(),
        &path("outer"),
        &["rm", "--quiet", "-r", "weights", "models", "lines.crlf", ".gitattributes"],
    );
    git(home.path(), &path("outer"), &["commit", "--quiet", "--message=head"]);
    let run = |command: &process::Command| {
        let command = command.clone().env("HOME", home.path()).env("GIT_CONFIG_NOSYSTEM", "1");
        process::block_on(process::run(&command, &Cancel::default()))
    };
    let cache = tempfile::tempdir().unwrap();
    let found = repository.checkout(&base, cache.path(), &run).unwrap();
    assert_eq!(found.notices, []);
    let (expected, found) = (contents(&path("clone")), contents(&found.folder));
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    assert_eq!(found, expected);
    for (name, content) in [
        ("weights/outer.npy", &[7_u8; 3000][..]),
        ("deps/middle/deps/inner/weights/inner.npy", &[7; 3000]),
        ("lines.crlf", b"a\r\nb\r\n"),
        ("deps/middle/lines.crlf", b"a\r\nb\r\n"),
    ] {
        assert_eq!(found[Path::new(name)].1, content, "{name}");
    }
}

/// Writes a tree that git itself would refuse to create.
fn crafted(fixture: &Fixture, entries: &[(&str, &[u8], git2::Oid)]) -> String {
    let mut bytes = Vec::new();
    for (mode, name, id) in entries {
        bytes.extend(mode.as_bytes());
        bytes.push(b' ');
        bytes.extend(*name);
        bytes.push(0);
        bytes.extend(id.as_bytes());
    }
    let tree = fixture.inner.odb().unwrap().write(git2::ObjectType::Tree, &bytes).unwrap();
    let who = "t <t@example.org> 0 +0000";
    let commit = format!("tree {tree}\nauthor {who}\ncommitter {who}\n\nm\n");
    fixture.inner.odb().unwrap().write(git2::ObjectType::Commit, commit.as_bytes()).unwrap().to_string()
}

#[test]
fn a_crafted_tree_writes_nothing_outside() {
    let fixture = Fixture::new();
    let blob = fixture.inner.blob(b"evil").unwrap();
    let outside = tempfile::tempdir().unwrap();
    let link = fixture.inner.blob(outside.path().to_str().unwrap().as_bytes()).unwrap();
    let mut inner = fixture.inner.treebuilder(None).unwrap();
    inner.insert("file", blob, 0o100_644).unwrap();
    let inner = inner.write().unwrap();
    for entries in [
        vec![("100644", b"..".as_slice(), blob)],
        vec![("40000", b"..", inner)],
        vec![("100644", b"a/../../evil", blob)],
        vec![("40000", b".git", inner)],
        // A link and a folder with one name.
        vec![("120000", b"x", link), ("40000", b"x", inner)],
    ] {
        let commit = crafted(&fixture, &entries);
        let cache = tempfile::tempdir().unwrap();
        let into = cache.path().join("into");
        let result = checkout(&fixture, &commit, &into);
        assert!(result.is_err(), "{result:?}");
        assert!(!cache.path().join("evil").exists() && !cache.path().join("file").exists());
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
        // No partial checkout remains.
        let left = fs::read_dir(&into).map_or(0, Iterator::count);
        assert_eq!(left, 0);
    }
}

#[test]
fn a_missing_object_and_a_broken_repository_have_different_errors() {
    let (fixture, a) = forked();
    let tree = fixture.inner.find_commit(git2::Oid::from_str(&a).unwrap()).unwrap().tree().unwrap();
    let id = tree.get_name("benchgate.toml").unwrap().id().to_string();
    fs::remove_file(fixture.path(&format!(".git/objects/{}/{}", &id[..2], &id[2..]))).unwrap();
    let cache = tempfile::tempdir().unwrap();
    let error = checkout(&fixture, &a, cache.path()).unwrap_err();
    assert!(matches!(&error, GitError::Checkout { why, .. } if why.contains("benchgate.toml")), "{error}");
}

#[test]
fn a_commit_is_an_ancestor_of_itself_and_its_descendants_but_not_of_other_branches() {
    let (fixture, a) = forked();
    let repository = fixture.open();
    let (feature, main) = (repository.resolve("feature").unwrap(), repository.resolve("main").unwrap());
    let ancestry = repository.ancestry("feature").unwrap();
    assert_eq!(ancestry.contains(&main), Some(false));
    assert_eq!(ancestry.contains(&a), Some(true));
    assert_eq!(ancestry.contains(&feature), Some(true));
    assert_eq!(ancestry.contains("0123456789abcdef0123456789abcdef01234567"), Some(false));
    assert_eq!(ancestry.contains("no commit"), Some(false));
}

#[test]
fn ancestry_is_unknown_beyond_the_end_of_a_shallow_clone() {
    let (fixture, a) = forked();
    let feature = fixture.open().resolve("feature").unwrap();
    fs::write(fixture.path(".git/shallow"), format!("{feature}\n")).unwrap();
    let repository = fixture.open();
    let ancestry = repository.ancestry("feature").unwrap();
    assert_eq!(ancestry.contains(&feature), Some(true));
    assert_eq!(ancestry.contains("0123456789abcdef0123456789abcdef01234567"), None);
    assert_ne!(ancestry.contains(&a), Some(false));
}
