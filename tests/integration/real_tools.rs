//! Suites that are measured with the real IREE. The tests are ignored by default, because they download IREE;
//! `.ci/run torch` runs them.

use std::path::Path;
use std::process::Command;

use crate::harness::World;

/// The model `mlp` of examples/quickstart with one IREE release, and more lines for `[measure]`.
pub fn quickstart_mlp(measure: &str) -> World {
    let world = World::new();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/quickstart");
    let data = ["mlp.input0.npy", "mlp.output0.npy", "mlp.irpa"].map(|name| format!("data/{name}"));
    for name in data.iter().map(String::as_str).chain(["models/mlp.mlir", "benchgate.lock"]) {
        world.write(name, std::fs::read(from.join(name)).unwrap());
    }
    let toml = format!(
        "[suite]\nname = \"real\"\n\n\
         [toolchain]\nversion = \"3.13.0\"\ncommit = \"89ece87b89852100c0a4ac3d515e14842d090967\"\n\n\
         [side.head]\n\n\
         [[model]]\nname = \"mlp\"\nsource = \"models/mlp.mlir\"\ninputs = [\"data/mlp.input0.npy\"]\n\
         expected = [\"data/mlp.output0.npy\"]\nparameters = [\"model=data/mlp.irpa\"]\n\n\
         [[target]]\nname = \"cpu\"\nbackend = \"llvm-cpu\"\ndevice = \"local-sync\"\n\n\
         [measure]\nprocesses = 2\n{measure}"
    );
    world.write("benchgate.toml", toml);
    world
}

/// The binary with a cache that all of these tests share. It is in cargo's build folder, so that tools and
/// PyTorch are installed once per checkout. pip gets the variables that it needs to reach a package index.
pub fn command(world: &World, args: &[&str]) -> Command {
    let mut command = world.command(args);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    command.env("BENCHGATE_CACHE", root.join("target/benchgate-cache"));
    let for_pip = |name: &str| name.starts_with("PIP_") || name.starts_with("SSL_");
    command.envs(std::env::vars_os().filter(|(name, _)| for_pip(&name.to_string_lossy())));
    command
}
