//! Tools and modules that are replaced before the gate, between the checks and the measuring, or while
//! measuring.

use std::path::{Path, PathBuf};

use super::{FAIL_ON, Greens, Sides};
use crate::harness::{Outcome, install_script};

/// Head is 30 % slower, and its program tries to hide this.
const SLOW: &str = "latency-us=1300";

fn slower(sides: &Sides, directives: &[&str]) {
    sides.head(&[&[SLOW], directives].concat());
}

/// Installs a fake benchmark tool outside the suite's tools. It measures a fast module instead of the given
/// one.
fn liar(sides: &Sides) -> PathBuf {
    let folder = sides.world.locks().join("liar");
    std::fs::create_dir(&folder).unwrap();
    let quick = folder.join("quick.vmfb");
    std::fs::write(&quick, "// fake latency-us=1000\n").unwrap();
    std::fs::create_dir(folder.join("real")).unwrap();
    let real = folder.join("real/iree-benchmark-module");
    crate::harness::install_program(&sides.world.work().join("tools/iree-benchmark-module"), &real);
    let script = folder.join("iree-benchmark-module");
    install_script(
        &script,
        &format!(
            "#!/bin/sh\ntouch {ran}\nfor word; do shift\n  case $word in --module=*) word=--module={quick};; esac\n  \
             set -- \"$@\" \"$word\"\ndone\nexec {real} \"$@\"\n",
            ran = ran(&folder).display(),
            quick = quick.display(),
            real = real.display()
        ),
    );
    script
}

/// The file that the fake tool creates when it is started.
fn ran(folder: &Path) -> PathBuf {
    folder.join("ran")
}

fn modules(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            modules(&path, found);
        } else if path.file_name().is_some_and(|name| name == "module.vmfb") {
            found.push(path);
        }
    }
}

/// A command that applies `sed` to every module in the cache.
fn edit_modules(sides: &Sides, edit: &str) -> String {
    format!("find {} -name module.vmfb -exec sed -i {edit} {{}} +", sides.world.cache().display())
}

#[test]
fn no_tool_or_module_that_is_exchanged_while_it_is_used_is_green() {
    let mut greens = Greens::default();
    let control = Sides::new();
    slower(&control, &[]);
    control.gate().expect_code(10);
    for (case, directive) in [
        ("the benchmark tool between verifying and measuring", "run-shell"),
        ("the benchmark tool while measuring", "shell"),
    ] {
        let sides = Sides::new();
        let tool = sides.world.work().join("tools/iree-benchmark-module");
        let script = liar(&sides);
        slower(
            &sides,
            &[&format!("{directive}=cp {0} {1}.new && mv {1}.new {1}", script.display(), tool.display())],
        );
        let outcome = sides.gate();
        greens.check(case, &outcome);
        assert_eq!(outcome.code, Some(20), "{case}: {}{}", outcome.stdout, outcome.stderr);
    }
    for (case, directive, edit) in [
        ("base's module between verifying and measuring", "run-shell", "s/latency-us.1000/latency-us=1300/"),
        ("head's module between verifying and measuring", "run-shell", "s/latency-us.1300/latency-us=1000/"),
        ("base's module while measuring", "shell", "s/latency-us.1000/latency-us=1300/"),
        ("head's module while measuring", "shell", "s/latency-us.1300/latency-us=1000/"),
    ] {
        let sides = Sides::new();
        slower(&sides, &[&format!("{directive}={}", edit_modules(&sides, edit))]);
        let outcome = sides.gate();
        greens.check(case, &outcome);
        assert_eq!(outcome.code, Some(20), "{case}: {}{}", outcome.stdout, outcome.stderr);
        // The next run does not reuse anything that was measured with the fake tool.
        slower(&sides, &["revision=3"]);
        greens.check(&format!("{case}, then a run without it"), &sides.gate());
    }
    greens.none(10);
}

#[test]
fn no_module_that_was_changed_in_the_cache_is_green() {
    let mut greens = Greens::default();
    for edit in ["1300", "1000"] {
        let sides = Sides::new();
        slower(&sides, &[]);
        sides.gate().expect_code(10);
        let mut found = Vec::new();
        modules(&sides.world.cache(), &mut found);
        assert_eq!(found.len(), 2);
        for module in found {
            let text = std::fs::read_to_string(&module).unwrap();
            // Both modules get the same speed, either slow or fast.
            std::fs::write(
                &module,
                text.replace("=1300", &format!("={edit}")).replace("=1000", &format!("={edit}")),
            )
            .unwrap();
        }
        greens.check(&format!("both modules take {edit}"), &sides.gate());
    }
    greens.none(2);
}

#[test]
fn no_other_tool_on_the_path_is_started() {
    let sides = Sides::new();
    slower(&sides, &[]);
    let script = liar(&sides);
    let folder = script.parent().unwrap();
    for tool in ["iree-compile", "iree-run-module"] {
        install_script(&folder.join(tool), &format!("#!/bin/sh\ntouch {}\n", ran(folder).display()));
    }
    let mut command = sides.world.command(["gate", "--fail-on", FAIL_ON]);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [folder.to_owned()].into_iter().chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(folders).unwrap());
    let outcome: Outcome = sides.world.finish(command);
    outcome.expect_code(10);
    assert!(!ran(folder).exists());
}
