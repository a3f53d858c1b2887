use super::*;

#[test]
fn only_tracked_changes_make_a_repository_dirty() {
    let (fixture, _) = forked();
    assert!(!fixture.open().is_dirty().unwrap());
    fixture.put("run.json", "{}");
    assert!(!fixture.open().is_dirty().unwrap());
    fixture.put("benchgate.toml", "changed");
    assert!(fixture.open().is_dirty().unwrap());
}

#[test]
fn no_setting_hides_a_change_of_tracked_files() {
    use git2::{IndexEntryExtendedFlag, IndexEntryFlag};
    let (fixture, _) = forked();
    let skip = (IndexEntryFlag::EXTENDED.bits(), IndexEntryExtendedFlag::SKIP_WORKTREE.bits());
    for (flags, extended) in [(IndexEntryFlag::VALID.bits(), 0), skip] {
        fixture.put("benchgate.toml", "");
        let mut index = fixture.inner.index().unwrap();
        index.add_path(Path::new("benchgate.toml")).unwrap();
        let mut entry = index.get_path(Path::new("benchgate.toml"), 0).unwrap();
        entry.flags |= flags;
        entry.flags_extended |= extended;
        index.add(&entry).unwrap();
        index.write().unwrap();
        fixture.commit();
        assert!(!fixture.open().is_dirty().unwrap());
        fixture.put("benchgate.toml", "changed");
        assert!(fixture.open().is_dirty().unwrap(), "{flags:x} {extended:x}");
    }
    // A sparse checkout leaves files out.
    fs::remove_file(fixture.path("benchgate.toml")).unwrap();
    assert!(!fixture.open().is_dirty().unwrap());
}

#[test]
fn a_submodule_at_another_commit_or_with_edited_files_makes_a_repository_dirty() {
    let home = home_with_lfs();
    let top = home.path().join("top");
    fs::create_dir_all(top.join("lib")).unwrap();
    let library = top.join("lib");
    git(home.path(), &library, &["init", "-q"]);
    fs::write(library.join("a.txt"), "fast").unwrap();
    git(home.path(), &library, &["add", "-A"]);
    git(home.path(), &library, &["commit", "-qm", "fast"]);
    git(home.path(), &top, &["init", "-q"]);
    let settings = "[submodule \"lib\"]\n\tpath = lib\n\turl = ../lib\n\tignore = all\n";
    fs::write(top.join(".gitmodules"), settings).unwrap();
    git(home.path(), &top, &["add", "-A", "-f"]);
    git(home.path(), &top, &["commit", "-qm", "with a submodule"]);
    let open = || Repository::open(&top).unwrap();
    assert!(!open().is_dirty().unwrap());
    fs::write(library.join("a.txt"), "slow").unwrap();
    assert!(open().is_dirty().unwrap());
    assert_eq!(open().moved_submodules().unwrap(), []);
    git(home.path(), &library, &["commit", "-qam", "slow"]);
    assert!(open().is_dirty().unwrap());
    let moved = open().moved_submodules().unwrap();
    let [moved] = moved.as_slice() else { panic!("{moved:?}") };
    assert_eq!(moved.path, Path::new("lib"));
    let head = open().head().unwrap().commit;
    assert_eq!(open().submodule_commit(&head, &moved.path).unwrap().as_ref(), Some(&moved.named));
    assert_ne!(moved.named, moved.found);
}

#[test]
fn a_file_that_is_neither_tracked_nor_ignored_is_untracked() {
    let (fixture, _) = forked();
    fixture.put("benchgate.toml", "x");
    fixture.put(".gitignore", "ignored");
    for file in ["new", "ignored"] {
        fixture.put(file, "");
    }
    let files = ["benchgate.toml", "new", "ignored", "missing", "../outside"].map(|file| fixture.path(file));
    let found = fixture.open().untracked_among(files).unwrap();
    assert_eq!(found, BTreeSet::from([PathBuf::from("new")]));
}
