//! Manipulations by head of every source file that a configuration names.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::suite_commands::{CONFIG, Change};
use super::{FAIL_ON, Greens};
use crate::pull_request::{commit, repository};
use crate::suite::npy;

type Edit = fn(&Path);

/// Edits of a file that keep or lose its content.
const EDITS: [(&str, Edit); 4] = [
    ("another content", |path| {
        let mut content = fs::read(path).unwrap();
        content.extend(b"\n: other\n");
        fs::write(path, content).unwrap();
    }),
    ("a link to another file", |path| {
        let other = path.with_extension("other");
        fs::copy(path, &other).unwrap();
        fs::remove_file(path).unwrap();
        symlink(other.file_name().unwrap(), path).unwrap();
    }),
    ("no file", |path| fs::remove_file(path).unwrap()),
    ("an executable file", |path| fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap()),
];

/// Restores the original file.
fn restore(path: &Path, content: &[u8]) {
    let _ = fs::remove_file(path);
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
}

#[test]
fn no_file_that_a_command_names_changes_unseen() {
    let script = ". ./lib.sh\n: prepares\n";
    let files = [
        ("prepare.sh", script),
        ("lib.sh", ": shared\n"),
        ("setup.sh", ". ./make.sh\n: sets up\n"),
        ("make.sh", ": makes data\n"),
        ("data.txt", "7\n"),
    ];
    let config = CONFIG.replace(
        "run = \"sh {build}/bench\"",
        "run = \"sh {build}/bench --data=data.txt\"\nprepare = \"sh prepare.sh\"\nsetup = \"sh -c 'sh setup.sh; true'\"",
    );
    let change = Change::empty();
    for (name, content) in files {
        restore(&change.0.write(name, content), content.as_bytes());
    }
    change.begin("rows", &config);
    let codes = ["workload-changed", "script-changed"];
    let outcome = change.strictly();
    assert!(!codes.iter().any(|code| outcome.stdout.contains(code)), "{}", outcome.said());
    let mut greens = Greens::default();
    for (name, content) in files {
        for (edit, apply) in EDITS {
            let case = format!("{name}: {edit}");
            let path = change.0.work().join(name);
            apply(&path);
            let outcome = change.strictly();
            // If a line fails, no finding is needed.
            let fails = outcome.code != Some(11);
            let shown = codes.iter().any(|code| outcome.stdout.contains(code));
            assert!(fails || shown, "{case}: {}", outcome.said());
            greens.check(&case, &outcome);
            restore(&path, content.as_bytes());
        }
    }
    greens.none(20);
}

#[test]
fn no_file_that_a_model_names_makes_a_slow_or_wrong_head_green() {
    let (suite, repository) = repository();
    repository.set_head("refs/heads/main").unwrap();
    let files = [
        ("data/x.npy", npy(&[1.0, 2.0, 3.0])),
        ("data/y.npy", npy(&[1.0, 2.0, 3.0])),
        ("flags.txt", b"--other".to_vec()),
        ("lib/libruntime.so", b"// fake other=1".to_vec()),
    ];
    for (name, content) in &files {
        restore(&suite.world.write(name, content), content);
    }
    let toml = suite.world.read("benchgate.toml");
    let target = "backend = \"llvm-cpu\"";
    assert!(toml.contains(target) && toml.contains("\"3xf32=1\""), "{toml}");
    let named = format!("{target}\nflags = [\"@flags.txt\"]\nenv = {{ LD_LIBRARY_PATH = \"lib\" }}");
    let toml = toml.replacen(target, &named, 1).replace("\"3xf32=1\"", "\"data/x.npy\"");
    suite.world.write("benchgate.toml", toml);
    commit(&repository, "files");
    let main = repository.head().unwrap().peel_to_commit().unwrap();
    repository.branch("change", &main, true).unwrap();
    repository.set_head("refs/heads/change").unwrap();
    commit(&repository, "nothing yet");
    let gate = || suite.world.run(["gate", "--base", "main", "--fail-on", FAIL_ON]);
    gate().expect_no_failure();
    let mut greens = Greens::default();
    for (name, content) in &files {
        for (at, (edit, apply)) in EDITS.iter().enumerate() {
            let directives = if at % 2 == 0 { &["latency-us=3000"] } else { &["output=1.5,3,4.5"] };
            suite.source("a", directives);
            let path = suite.world.work().join(name);
            apply(&path);
            greens.check(&format!("{name}: {edit}"), &gate());
            restore(&path, content);
        }
    }
    greens.none(16);
}
