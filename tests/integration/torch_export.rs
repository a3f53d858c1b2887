//! The real exporter: torch, torch-mlir and IREE, from Python source to a verdict. Ignored in the plain
//! run, because it installs several gigabytes; `.ci/run torch` runs it.

use std::path::{Path, PathBuf};

use crate::harness::{Outcome, World};

/// Tools and torch are installed once a checkout, beside what cargo builds.
fn shared_cache() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("target/benchgate-cache")
}

/// A copy of the example, so that nothing is written into the source tree.
fn example() -> World {
    let world = World::new();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/torch");
    for name in ["benchgate.toml", "benchgate.lock", "models.py"] {
        world.write(name, std::fs::read(from.join(name)).unwrap());
    }
    world
}

fn run(world: &World, args: &[&str]) -> Outcome {
    let mut command = world.command(args);
    command.env("BENCHGATE_CACHE", shared_cache());
    // pip may need to know the certificates and the index of the machine.
    for (name, value) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("PIP_") || text.starts_with("SSL_") {
            command.env(&name, value);
        }
    }
    world.finish(command)
}

#[test]
#[ignore = "installs PyTorch (6 GB)"]
fn torch_models_go_from_source_to_a_verdict_and_a_crash_is_one_models_failure() {
    let world = example();
    // Whether data tiling pays is the example's question; here any measured verdict will do.
    let outcome = run(&world, &["gate", "--max-blocks", "2"]);
    assert!(matches!(outcome.code, Some(0 | 10)), "{outcome:?}");
    assert_eq!(outcome.stderr.matches(": PASS").count(), 4, "two models, two sides: {}", outcome.stderr);

    let again = run(&world, &["run", "--side", "head"]);
    assert_eq!(again.code, Some(0), "{again:?}");
    for stage in ["export", "compile"] {
        let cached =
            again.stderr.lines().filter(|l| l.contains(&format!("] {stage} ")) && l.contains("cached"));
        assert_eq!(cached.count(), 2, "nothing is made twice: {}", again.stderr);
    }

    // A model that takes the interpreter down fails alone; the ones after it get a new one.
    let models = world.read("models.py");
    world.write(
        "models.py",
        format!(
            "{models}\n\ndef make_crash():\n    import os, signal\n    os.kill(os.getpid(), signal.SIGSEGV)\n"
        ),
    );
    let toml = world.read("benchgate.toml");
    let crash = "[[model]]\nname = \"crash\"\nsource = \"models.py:make_crash\"\n\n";
    let at = toml.find("[[model]]").unwrap();
    world.write("benchgate.toml", format!("{}{crash}{}", &toml[..at], &toml[at..]));
    let crashed = run(&world, &["run", "--side", "head"]);
    assert_eq!(crashed.code, Some(20), "{crashed:?}");
    let said = crashed.said();
    assert!(said.contains("crash/cpu/main: failed: export: construct: the exporter"), "{said}");
    assert!(said.contains("SIGSEGV"), "{said}");
    assert_eq!(said.matches("ok, PASS").count(), 2, "{said}");
}
