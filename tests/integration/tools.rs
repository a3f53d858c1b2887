//! Pins, locks, installs and verifies small wheels from a folder, which pip uses like any index.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::harness::{Outcome, World};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
const OTHER: &str = "ffffffffffffffffffffffffffffffffffffffff";

/// A suite whose tools come from two wheels that contain shell scripts.
struct Suite {
    world: World,
}

impl Suite {
    /// Creates wheels whose compiler prints `compiler`, and whose runtime names `runtime`.
    fn new(compiler: &str, runtime: &str) -> Self {
        let suite = Self { world: World::new() };
        let script = format!(
            "#!/bin/sh\nsleep \"${{FAKE_SLEEP:-0}}\"\necho '  IREE compiler version 9.9.9 @ {compiler}'\n"
        );
        suite.wheel("iree_base_compiler", &[("iree/compiler/_mlir_libs/iree-compile", &script)]);
        let version = format!("REVISIONS = {{\"IREE\": \"{runtime}\"}}\n");
        suite.wheel(
            "iree_base_runtime",
            &[
                ("iree/_runtime_libs/iree-run-module", "#!/bin/sh\n"),
                ("iree/_runtime_libs/iree-benchmark-module", "#!/bin/sh\n"),
                ("iree/_runtime_libs/iree-dump-module", "#!/bin/sh\n"),
                ("iree/_runtime_libs/version.py", &version),
            ],
        );
        suite.configure("");
        suite
    }

    fn configure(&self, source: &str) {
        self.world.write("m.mlir", "module {}");
        self.world.write(
            "benchgate.toml",
            format!(
                "[suite]\nname = \"fake\"\n[toolchain]\nversion = \"9.9.9\"\ncommit = \"{COMMIT}\"\n{source}\n\
                 [[model]]\nname = \"m\"\nsource = \"m.mlir\"\n[[target]]\nname = \"cpu\"\nbackend = \"llvm-cpu\"\n"
            ),
        );
    }

    fn wheels(&self) -> PathBuf {
        self.world.work().join("wheels")
    }

    fn wheel_path(&self, project: &str) -> PathBuf {
        let tag = format!("cp311-cp311-manylinux_2_28_{}", std::env::consts::ARCH);
        self.wheels().join(format!("{project}-9.9.9-{tag}.whl"))
    }

    fn wheel(&self, project: &str, files: &[(&str, &str)]) {
        self.wheel_at(&self.wheel_path(project), "", files);
    }

    /// Creates a pure Python wheel `project-version` with additional metadata.
    fn package(&self, name: &str, more: &str) {
        let (project, _) = name.rsplit_once('-').unwrap();
        let file = self.wheels().join(format!("{name}-py3-none-any.whl"));
        self.wheel_at(&file, more, &[(&format!("{project}/__init__.py"), "")]);
    }

    fn wheel_at(&self, path: &Path, more: &str, files: &[(&str, &str)]) {
        let mut parts = path.file_name().unwrap().to_str().unwrap().split('-');
        let (project, version) = (parts.next().unwrap(), parts.next().unwrap());
        let info = format!("{project}-{version}.dist-info");
        let name = project.replace('_', "-");
        let metadata = format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{more}");
        let mut all = vec![
            (format!("{info}/METADATA"), metadata),
            (format!("{info}/WHEEL"), "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: x\n".to_owned()),
        ];
        all.extend(files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())));
        let lines =
            all.iter().map(|(name, text)| format!("{name},sha256={},{}\n", recorded(text), text.len()));
        all.push((format!("{info}/RECORD"), lines.chain([format!("{info}/RECORD,,\n")]).collect()));
        std::fs::create_dir_all(self.wheels()).unwrap();
        std::fs::write(path, zip(&all)).unwrap();
    }

    /// Writes the lock that `pin` would write, without calling pip.
    fn lock(&self) {
        let wheel = |project: &str| {
            let path = self.wheel_path(project);
            let file = path.file_name().unwrap().to_str().unwrap().to_owned();
            format!("  {{ file = \"{file}\", sha256 = \"{}\" }},\n", sha256(&path))
        };
        let wheels = wheel("iree_base_compiler") + &wheel("iree_base_runtime");
        let text = format!("[[iree]]\nversion = \"9.9.9\"\ncommit = \"{COMMIT}\"\nwheels = [\n{wheels}]\n");
        self.world.write("benchgate.lock", format!("format = 1\n{text}"));
    }

    fn command(&self, what: &str) -> std::process::Command {
        let mut command = self.world.command(["tools", what]);
        command.env("PIP_NO_INDEX", "1").env("PIP_FIND_LINKS", self.wheels()).env("PATH", self.one_python());
        command
    }

    /// A folder with only one of the machine's Python interpreters, so that environments are resolved only
    /// once.
    fn one_python(&self) -> PathBuf {
        let folder = self.world.work().join("bin");
        if !folder.exists() {
            let program = "import sys; print(getattr(sys, '_base_executable', sys.executable))";
            let found = std::process::Command::new("python3").args(["-c", program]).output().unwrap();
            std::fs::create_dir(&folder).unwrap();
            let python = String::from_utf8(found.stdout).unwrap();
            std::os::unix::fs::symlink(python.trim(), folder.join("python3")).unwrap();
        }
        folder
    }

    fn tools(&self, what: &str) -> Outcome {
        self.world.finish(self.command(what))
    }

    fn succeed(&self, what: &str) -> Outcome {
        let outcome = self.tools(what);
        assert_eq!(outcome.code, Some(0), "{what}: {}", outcome.stderr);
        outcome
    }

    /// Runs the command and expects exit code 20 and a message with these words.
    fn refuse(&self, what: &str, words: &[&str]) {
        let outcome = self.tools(what);
        assert_eq!(outcome.code, Some(20), "{}", outcome.stderr);
        for word in words {
            assert!(outcome.stderr.contains(word), "{word:?} is missing:\n{}", outcome.stderr);
        }
        assert!(outcome.stderr.contains("hint"), "{}", outcome.stderr);
    }

    fn installed(&self) -> PathBuf {
        let tools = self.world.cache().join("benchgate/tools");
        let mut trees = Vec::new();
        for entry in std::fs::read_dir(tools).unwrap() {
            let path = entry.unwrap().path();
            assert!(
                path.extension().is_none_or(|extension| extension != "part"),
                "{} is left",
                path.display()
            );
            if path.is_dir() {
                trees.push(path);
            }
        }
        let [tree] = trees.as_slice() else { panic!("{trees:?}") };
        tree.clone()
    }
}

/// An uncompressed archive whose files are executable.
fn zip(files: &[(String, String)]) -> Vec<u8> {
    let (mut body, mut directory) = (Vec::new(), Vec::new());
    for (name, text) in files {
        let offset = u32::try_from(body.len()).unwrap();
        let (crc, size) = (crc32(text.as_bytes()), u32::try_from(text.len()).unwrap());
        let mut common = Vec::new();
        for field in [20u16, 0, 0, 0, 0x21] {
            common.extend(field.to_le_bytes());
        }
        for field in [crc, size, size] {
            common.extend(field.to_le_bytes());
        }
        common.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
        common.extend(0u16.to_le_bytes());
        body.extend(b"PK\x03\x04");
        body.extend(&common);
        body.extend(name.as_bytes());
        body.extend(text.as_bytes());
        // The entry claims to be made by Unix, so that the mode in the upper half of the attributes applies.
        directory.extend(b"PK\x01\x02\x14\x03");
        directory.extend(&common);
        directory.extend([0; 6]);
        directory.extend((0o100_755_u32 << 16).to_le_bytes());
        directory.extend(offset.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let start = u32::try_from(body.len()).unwrap();
    let count = u16::try_from(files.len()).unwrap();
    body.extend(&directory);
    body.extend(b"PK\x05\x06\0\0\0\0");
    body.extend([count.to_le_bytes(), count.to_le_bytes()].concat());
    body.extend(u32::try_from(directory.len()).unwrap().to_le_bytes());
    body.extend(start.to_le_bytes());
    body.extend([0, 0]);
    body
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
    })
}

#[test]
fn what_is_pinned_is_installed_verified_and_listed() {
    let suite = Suite::new(COMMIT, COMMIT);
    suite.refuse(
        "install",
        &["find IREE 9.9.9 of commit 0123", "which does not exist yet", "benchgate tools pin"],
    );
    suite.succeed("pin");
    let lock = suite.world.read("benchgate.lock");
    assert!(lock.contains(&format!("commit = \"{COMMIT}\"")), "{lock}");
    assert_eq!(lock.matches("sha256 = ").count(), 2, "{lock}");
    suite.refuse("verify", &["it is not installed"]);
    suite.succeed("install");
    let listed = suite.succeed("list").stdout;
    assert!(listed.contains(&format!("IREE 9.9.9 ({COMMIT})")), "{listed}");

    // If the tools are installed, neither an index nor Python is needed.
    let mut warm = suite.world.command(["tools", "install"]);
    warm.env("PATH", "/nowhere");
    let outcome = suite.world.finish(warm);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);

    let tool = suite.installed().join("runtime/iree/_runtime_libs/iree-run-module");
    std::fs::write(&tool, "#!/bin/true\n").unwrap();
    for what in ["verify", "install"] {
        suite.refuse(what, &["iree-run-module: expected sha256", "remove its folder"]);
    }
    // Changing the file's line in the manifest of the cache does not help.
    let manifest = suite.installed().join("benchgate-manifest.json");
    let mut listed: serde_json::Value = serde_json::from_slice(&std::fs::read(&manifest).unwrap()).unwrap();
    for entry in listed["files"].as_array_mut().unwrap() {
        if suite.installed().join(entry["path"].as_str().unwrap()) == tool {
            entry["sha256"] = sha256(&tool).into();
        }
    }
    std::fs::write(&manifest, listed.to_string()).unwrap();
    suite.refuse("verify", &["iree-run-module: expected sha256", "of the wheel's record"]);
    std::fs::remove_dir_all(suite.installed()).unwrap();
    suite.succeed("install");
}

#[test]
fn the_packages_of_a_suites_models_are_locked_for_the_versions_of_its_environment_and_laid_over_it() {
    let suite = Suite::new(COMMIT, COMMIT);
    for line in include_str!("../../crates/toolchain/requirements/torch.in").lines() {
        if let Some((project, version)) = line.split_once("==") {
            let version = version.split(';').next().unwrap();
            suite.package(&format!("{}-{version}", project.replace('-', "_")), "");
        }
    }
    suite.package("einops-1.0", "Requires-Dist: numpy\nRequires-Dist: small-part\n");
    suite.package("small_part-2.0", "");
    suite.package("old_times-1.0", "Requires-Dist: numpy<2\n");
    suite.package("Of_Model-1.0", "");
    suite.package("half_there-1.0", "Requires-Dist: nowhere-either\n");
    let configure = |requirements: &str| {
        suite.configure("");
        suite.world.write("bench/torchbenchmark/models/net/__init__.py", "");
        suite.world.write(
            "bench/torchbenchmark/models/net/requirements.txt",
            "half-there\nof-model\nnowhere-to-be-found\n# x\n",
        );
        let toml = suite.world.read("benchgate.toml");
        suite.world.write(
            "benchgate.toml",
            format!(
                "{toml}[torchbench]\npath = \"bench\"\n[[model]]\nname = \"net\"\nsource = \"torchbench:net\"\n\
                 [python]\nrequirements = [\"{requirements}\"]\n"
            ),
        );
    };
    configure("einops==1.0");
    let said = suite.succeed("pin").stderr;
    for left_out in ["`half-there`", "`nowhere-to-be-found`"] {
        assert!(said.contains(left_out), "{said}");
    }
    let lock = suite.world.read("benchgate.lock");
    let (_, added) = lock.split_once("name = \"torch+suite\"").unwrap();
    let added: Vec<&str> =
        added.split("[[").next().unwrap().lines().filter(|line| line.contains(".whl")).collect();
    let names: Vec<&str> = added.iter().map(|line| line.split('"').nth(1).unwrap()).collect();
    assert_eq!(
        names,
        ["Of_Model-1.0-py3-none-any.whl", "einops-1.0-py3-none-any.whl", "small_part-2.0-py3-none-any.whl"],
        "numpy is in the environment"
    );
    suite.succeed("install");
    let trees = suite.succeed("list").stdout;
    assert!(trees.contains("with torch+suite:"), "{trees}");

    // The age of an installation is the time since its last use. Listing or verifying it is not a use.
    let cache = suite.world.cache();
    let trees = |kind: &str| {
        let entries = std::fs::read_dir(cache.join("benchgate").join(kind)).unwrap();
        entries
            .filter(|entry| entry.as_ref().unwrap().path().join("benchgate-manifest.json").exists())
            .count()
    };
    let clean = || suite.world.run(["clean"]).expect_code(0);
    assert_eq!((trees("tools"), trees("python")), (1, 2));
    crate::leftovers::age(&cache, 40);
    suite.succeed("install");
    clean();
    assert_eq!((trees("tools"), trees("python")), (1, 2));
    crate::leftovers::age(&cache, 40);
    suite.succeed("verify");
    suite.succeed("list");
    suite.world.run(["doctor"]);
    clean();
    assert_eq!((trees("tools"), trees("python")), (0, 0));

    // Other requirements need another lock. Requirements that can't be resolved or that don't match the lock
    // are reported.
    configure("einops>=1.0");
    suite.refuse(
        "install",
        &["the Python environment torch+suite", "other requirements", "benchgate tools pin"],
    );
    configure("old-times");
    let outcome = suite.tools("pin");
    assert_eq!(outcome.code, Some(20), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("conflict"), "{}", outcome.stderr);
}

#[test]
fn installed_tools_that_other_users_can_change_are_refused() {
    let suite = Suite::new(COMMIT, COMMIT);
    suite.succeed("pin");
    suite.succeed("install");
    let set_mode = |path: &Path, mode: u32| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(path, mode).unwrap();
    };
    let folder = suite.installed().join("runtime/iree/_runtime_libs");
    for path in [folder.join("iree-run-module"), folder, suite.installed()] {
        set_mode(&path, 0o757);
        suite.refuse("verify", &["every user can write to it"]);
        set_mode(&path, 0o755);
        suite.succeed("verify");
    }
}

#[test]
fn a_release_of_another_commit_is_refused_when_it_is_pinned_and_pin_looks_the_right_one_up() {
    let suite = Suite::new(OTHER, OTHER);
    suite.refuse("pin", &["pin IREE 9.9.9", &format!("from commit {OTHER}"), COMMIT, "tools pin VERSION"]);
    assert!(!suite.world.work().join("benchgate.lock").exists());
    let toml = suite.world.read("benchgate.toml");
    suite.world.write("benchgate.toml", toml.replace("\"9.9.9\"", "\"9.9.8\""));
    let mut command = suite.command("pin");
    command.arg("9.9.9");
    let outcome = suite.world.finish(command);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(suite.world.read("benchgate.toml"), toml.replace(COMMIT, OTHER));
    assert!(suite.world.read("benchgate.lock").contains(OTHER));
    suite.succeed("install");
}

#[test]
fn a_commit_that_is_not_the_pin_s_is_refused_and_not_kept() {
    for (compiler, runtime, tool) in [(OTHER, COMMIT, "compiler"), (COMMIT, OTHER, "runtime")] {
        let suite = Suite::new(compiler, runtime);
        suite.lock();
        suite.refuse(
            "install",
            &[&format!("verify the {tool}"), &format!("expected commit {COMMIT}, found {OTHER}")],
        );
        suite.refuse("verify", &["it is not installed"]);
    }
}

#[test]
fn a_pin_whose_commit_was_mistyped_does_not_replace_the_lock_s() {
    let suite = Suite::new(COMMIT, COMMIT);
    suite.lock();
    let toml = suite.world.read("benchgate.toml");
    suite.world.write("benchgate.toml", toml.replace(COMMIT, OTHER));
    let locked = suite.world.read("benchgate.lock");
    for command in ["install", "pin"] {
        let said = format!("it names commit {OTHER}, but");
        suite.refuse(command, &[&said, &format!("has commit {COMMIT}"), "correct the pin's commit"]);
    }
    assert_eq!(suite.world.read("benchgate.lock"), locked);
}

#[test]
fn a_wheel_that_is_not_the_locked_one_is_refused() {
    let suite = Suite::new(COMMIT, COMMIT);
    suite.lock();
    suite.wheel("iree_base_runtime", &[("iree/_runtime_libs/iree-run-module", "evil")]);
    suite.refuse("install", &["verify IREE 9.9.9: expected sha256", "find out why"]);
}

#[test]
fn a_wheel_without_the_tool_names_it() {
    let suite = Suite::new(COMMIT, COMMIT);
    suite.wheel("iree_base_compiler", &[("iree/compiler/readme", "empty")]);
    suite.lock();
    suite.refuse("install", &["find iree-compile in"]);
}

#[test]
fn a_cold_cache_without_a_network_says_so() {
    let suite = Suite::new(COMMIT, COMMIT);
    suite.lock();
    let mut cold = suite.world.command(["tools", "install"]);
    // Nothing listens on the discard port.
    cold.env("PIP_INDEX_URL", "http://127.0.0.1:9/simple");
    let outcome = suite.world.finish(cold);
    assert_eq!(outcome.code, Some(20), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("no index could be reached"), "{}", outcome.stderr);
}

#[test]
fn two_installations_at_once_do_the_work_once() {
    let suite = Suite::new(COMMIT, COMMIT);
    suite.lock();
    let start = || suite.command("install").stderr(Stdio::piped()).spawn().unwrap();
    let both = [start(), start()].map(|child| child.wait_with_output().unwrap());
    let mut said = String::new();
    for output in &both {
        assert!(output.status.success());
        said.push_str(&String::from_utf8_lossy(&output.stderr));
    }
    assert!(said.contains("the same tools are already being installed or downloaded"), "{said}");
    suite.installed();
}

#[test]
fn a_killed_installation_is_taken_up_again() {
    let suite = Suite::new(COMMIT, COMMIT);
    suite.lock();
    let mut child = suite.command("install").stderr(Stdio::null()).spawn().unwrap();
    let tools = suite.world.cache().join("benchgate/tools");
    let staged = |tools: &Path| {
        let entries = std::fs::read_dir(tools).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).find(|path| path.join("tree/compiler").exists())
    };
    let until = Instant::now() + Duration::from_secs(60);
    while staged(&tools).is_none() {
        assert!(Instant::now() < until && child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(staged(&tools).is_some());
    suite.succeed("install");
    suite.installed();
}

/// Serves the files of one folder over HTTP until the test ends.
fn serve(folder: PathBuf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let length = stream.read(&mut request).unwrap();
            let text = String::from_utf8_lossy(&request[..length]);
            let name = text.split(' ').nth(1).unwrap().trim_start_matches('/').to_owned();
            let (status, body) = match std::fs::read(folder.join(name)) {
                Ok(body) => ("200 OK", body),
                Err(_) => ("404 Not Found", Vec::new()),
            };
            let head =
                format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            stream.write_all(&[head.as_bytes(), &body].concat()).unwrap();
        }
    });
    address
}

/// The digest of a text in the form that a wheel's record uses: URL-safe base64 without padding.
fn recorded(text: &str) -> String {
    use sha2::{Digest, Sha256};
    let letters: Vec<char> = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(['-', '_']).collect();
    let digest = Sha256::digest(text);
    let bits: String = digest.iter().map(|byte| format!("{byte:08b}")).collect();
    let letter = |at: usize| {
        let six = bits.get(at..(at + 6).min(bits.len())).unwrap();
        letters[usize::from_str_radix(&format!("{six:0<6}"), 2).unwrap()]
    };
    (0..bits.len()).step_by(6).map(letter).collect()
}

fn sha256(path: &Path) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(std::fs::read(path).unwrap()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn wheels_by_address_need_no_lock_and_are_held_to_their_hash() {
    let suite = Suite::new(COMMIT, COMMIT);
    let address = serve(suite.wheels());
    let source = |part: &str, sha256: &str, query: &str| {
        let path = suite.wheel_path(&format!("iree_base_{part}"));
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        format!("{part} = {{ url = \"{address}/{name}{query}\", sha256 = \"{sha256}\" }}\n")
    };
    let [compiler, runtime] =
        ["compiler", "runtime"].map(|part| sha256(&suite.wheel_path(&format!("iree_base_{part}"))));

    suite.configure(&(source("compiler", &compiler, "") + &source("runtime", &"0".repeat(64), "")));
    suite.refuse(
        "install",
        &["iree_base_runtime-9.9.9", &format!("expected sha256 {}, found {runtime}", "0".repeat(64))],
    );

    suite.configure(&(source("compiler", &compiler, "?token=secret") + &source("runtime", &runtime, "#x")));
    let outcome = suite.tools("install");
    assert_eq!(outcome.code, Some(20));
    assert!(
        outcome.stderr.contains("the server answers 404") && !outcome.stderr.contains("secret"),
        "{}",
        outcome.stderr
    );

    suite.configure(&(source("compiler", &compiler, "") + &source("runtime", &runtime, "")));
    suite.succeed("install");
    suite.succeed("verify");
}

#[test]
fn a_local_tree_is_used_where_it_lies() {
    let suite = Suite::new(COMMIT, COMMIT);
    let script = format!("#!/bin/sh\necho 'IREE compiler version 9.9.9 @ {COMMIT}'\n");
    for tool in ["iree-compile", "iree-run-module", "iree-benchmark-module", "iree-dump-module"] {
        // Creates the folder.
        let path = suite.world.write(&format!("build/tools/{tool}"), "");
        crate::harness::install_script(&path, &script);
    }
    suite.configure("path = \"build\"");
    let said = suite.succeed("install").stderr;
    assert!(said.contains("does not name its commit"), "{said}");
    std::fs::remove_file(suite.world.work().join("build/tools/iree-dump-module")).unwrap();
    suite.refuse("verify", &["find iree-dump-module in"]);
}

#[test]
#[ignore = "downloads 200 MB from the Python package index"]
fn the_quickstart_s_tools_are_what_its_lock_says() {
    let world = World::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/quickstart/benchgate.toml");
    let mut install = world.command(["tools", "install", "--config", examples.to_str().unwrap()]);
    for (name, value) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PIP_")) {
        install.env(name, value);
    }
    let outcome = world.finish(install);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    for version in [
        "3.9.0 (1a6681936a78138f7ae2b0fd9309d28dfe01ac5b)",
        "3.13.0 (89ece87b89852100c0a4ac3d515e14842d090967)",
    ] {
        assert!(outcome.stdout.contains(version), "{}", outcome.stdout);
    }
}
