//! Configurations on disk: the files that they name, and files that are not configurations.

use std::path::{Path, PathBuf};

use super::tests::MINIMAL;
use super::{Problem, load};

fn suite_on_disk(extra: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("benchgate.toml");
    std::fs::write(&file, format!("{extra}{MINIMAL}")).unwrap();
    (folder, file)
}

fn problems_of(path: &Path) -> Vec<Problem> {
    match load(path) {
        Ok(_) => Vec::new(),
        Err(super::ConfigError::Invalid(problems)) => problems.problems,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_missing_model_file_is_reported_where_it_is_named() {
    let (folder, file) = suite_on_disk("");
    let problems = problems_of(&file);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!((problems[0].line, problems[0].column), (9, 11));
    assert_eq!(problems[0].message, "a.mlir: no such file (source of model `a`)");
    std::fs::write(folder.path().join("a.mlir"), "").unwrap();
    assert_eq!(problems_of(&file), []);
}

#[test]
fn a_file_missing_on_one_side_names_the_side() {
    let (folder, file) = suite_on_disk("");
    let text = std::fs::read_to_string(&file).unwrap() + "[side.base]\nsources = \"old\"\n";
    std::fs::write(&file, text).unwrap();
    std::fs::write(folder.path().join("a.mlir"), "").unwrap();
    assert_eq!(problems_of(&file)[0].message, "old: no such folder (sources of side base)");
    std::fs::create_dir(folder.path().join("old")).unwrap();
    assert_eq!(problems_of(&file)[0].message, "old/a.mlir: no such file (source of model `a`, side base)");
}

#[test]
fn a_link_out_of_the_repository_is_refused() {
    let outside = tempfile::NamedTempFile::new().unwrap();
    let (folder, file) = suite_on_disk("");
    std::os::unix::fs::symlink(outside.path(), folder.path().join("a.mlir")).unwrap();
    assert!(problems_of(&file)[0].message.contains("lies outside the repository"));
}

#[test]
fn a_policy_file_is_read_and_its_problems_carry_its_name() {
    let (folder, file) = suite_on_disk("policy = \"policy.toml\"\n");
    std::fs::write(folder.path().join("a.mlir"), "").unwrap();
    assert!(problems_of(&file)[0].message.contains("policy.toml: no such file"));
    let policy = folder.path().join("policy.toml");
    std::fs::write(&policy, "[gate]\nalpha = 0.05\n").unwrap();
    assert_eq!(load(&file).unwrap().policy.alpha, 0.05);
    assert_eq!(super::load_policy(&file).unwrap().policy.alpha, 0.05);
    std::fs::write(&policy, "[measure]\nseed = 2\n").unwrap();
    let problems = problems_of(&file);
    assert!(problems[0].file.ends_with("policy.toml"));
    assert!(problems[0].message.contains("unknown key `measure`"), "{problems:?}");
}

#[test]
fn the_policy_of_a_base_is_read_whatever_else_its_file_holds() {
    let (_folder, file) = suite_on_disk("");
    std::fs::write(&file, "[gate]\nalpha = 0.02\n[future]\nkey = 1\n[measure]\nmax-blocks = 6\n").unwrap();
    let part = super::load_policy(&file).unwrap();
    assert_eq!(part.policy.alpha, 0.02);
    assert_eq!(part.policy.sequential.max_blocks, 6);
    std::fs::write(&file, "[gate]\nalpah = 0.02\n").unwrap();
    assert!(super::load_policy(&file).is_err());
}

#[test]
fn bytes_that_are_not_text_are_refused_with_their_place() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), b"[suite]\n\xff").unwrap();
    let error = load(file.path()).unwrap_err();
    assert!(error.to_string().ends_with("it is not UTF-8 text (first at byte 8)"), "{error}");
}

#[test]
fn an_endless_file_is_refused() {
    let error = load(Path::new("/dev/zero")).unwrap_err();
    assert!(error.to_string().contains("not a regular file"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let large = folder.path().join("benchgate.toml");
    std::fs::File::create(&large).unwrap().set_len(3 << 30).unwrap();
    let error = load(&large).unwrap_err();
    assert!(error.to_string().contains("too large"), "{error}");
}
