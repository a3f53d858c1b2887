//! Measures a bundle on a machine without Python, a compiler, a shell or a network.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::real_tools;

/// The root folder of another system. It contains only the binary, the bundle, and the shared libraries of
/// the binary and of the bundle's tools.
struct Root(tempfile::TempDir);

impl Root {
    fn new(bundle: &Path) -> Self {
        let root = Self(tempfile::tempdir().unwrap());
        for folder in ["proc", "sys", "dev", "tmp"] {
            std::fs::create_dir(root.path(folder)).unwrap();
        }
        let benchgate = Path::new(env!("CARGO_BIN_EXE_benchgate"));
        root.copy(benchgate, "benchgate");
        root.copy(bundle, "suite.bundle");
        let mut libraries = libraries(benchgate);
        for (_, content) in
            crate::bundle::entries(bundle).iter().filter(|(name, _)| name.starts_with("tools/"))
        {
            let tool = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(tool.path(), content).unwrap();
            libraries.extend(self::libraries(tool.path()));
        }
        for library in libraries {
            root.copy(&library, library.to_str().unwrap().trim_start_matches('/'));
        }
        root
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn copy(&self, from: &Path, name: &str) {
        let to = self.path(name);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(from, to).unwrap();
    }

    /// Runs the binary with this root. The process has separate user, mount and network namespaces, so
    /// nothing stays mounted after it ends.
    fn run(&self, args: &[&str]) -> Output {
        let enter = "for name in proc sys dev; do mount --rbind /$name \"$0/$name\"; done\n\
                     exec chroot \"$0\" /benchgate \"$@\"";
        Command::new("unshare")
            .args(["--map-root-user", "--mount", "--net", "sh", "-euc", enter])
            .arg(self.0.path())
            .args(args)
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .output()
            .unwrap()
    }
}

/// The shared libraries of a program, and its loader.
fn libraries(program: &Path) -> Vec<PathBuf> {
    let output = Command::new("ldd").arg(program).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect()
}

#[test]
#[ignore = "downloads IREE from the Python package index"]
fn a_bundle_is_measured_where_there_is_nothing_else() {
    let world = real_tools::quickstart_mlp("profile = \"always\"\n");
    let compile = ["run", "--until", "compile", "--bundle", "suite.bundle", "--format", "json"];
    let packed = world.finish(real_tools::command(&world, &compile)).expect_code(0);
    let packed: Value = serde_json::from_str(&packed.stdout).unwrap();
    let root = Root::new(&world.work().join("suite.bundle"));
    drop(world);
    let sha256 = packed["sha256"].as_str().unwrap();
    let args = ["run", "--from", "verify", "--bundle", "suite.bundle", "--bundle-sha256", sha256];
    let measured = root.run(&[&args[..], &["--cache-dir", "cache", "--run", "run.json"]].concat());
    assert_eq!(measured.status.code(), Some(0), "{}", String::from_utf8_lossy(&measured.stderr));
    let run: Value = serde_json::from_slice(&std::fs::read(root.path("run.json")).unwrap()).unwrap();
    assert_eq!(run["bundle"]["sha256"], sha256);
    let benchmark = &run["sides"][0]["benchmarks"][0];
    assert_eq!(benchmark["outcome"]["status"], "ok", "{benchmark:#}");
    assert_eq!(benchmark["verification"]["code"], "PASS", "{benchmark:#}");
    assert_eq!(benchmark["processes"].as_array().unwrap().len(), 2);
    assert_eq!(benchmark["profile"]["processes"], 2, "{benchmark:#}");
}
