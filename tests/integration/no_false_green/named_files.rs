//! Every file of the sources that a configuration names × what a head can do to it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::Greens;
use super::suite_commands::{CONFIG, Change};

type Edit = fn(&Path);

/// Changes of a file that keep or lose its content.
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

/// The file as it was.
fn restore(path: &Path, content: &[u8]) {
    let _ = fs::remove_file(path);
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
}

#[test]
fn no_file_that_a_command_names_changes_unseen() {
    let script = ". ./lib.sh\n: prepares\n";
    let files =
        [("prepare.sh", script), ("lib.sh", ": shared\n"), ("setup.sh", ": sets up\n"), ("data.txt", "7\n")];
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
            // Where a line fails, no finding is needed.
            let fails = outcome.code != Some(11);
            let shown = codes.iter().any(|code| outcome.stdout.contains(code));
            assert!(fails || shown, "{case}: {}", outcome.said());
            greens.check(&case, &outcome);
            restore(&path, content.as_bytes());
        }
    }
    greens.none(16);
}
