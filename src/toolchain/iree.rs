//! The IREE tools of a pin: installed if need be, verified always.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::hash::digest_of;
use super::install::{Place, Turn};
use super::manifest::{Look, Manifest, Scope, digest_of_files};
use super::pip::{Pip, write_requirements};
use super::wheel::{Name, Wheel};
use super::{Lock, ToolchainError, fetch, interpreter, local};
use crate::config::{Pin, ToolSource};
use crate::model::{Event, Progress, Stage, Toolchain};
use crate::process::{self, Cancel, Command, Exit};

/// Two wheels of 100 MB over a slow line.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// The compiler loads a library of 300 MB before it prints its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(120);

/// The two wheels are unpacked apart: both bring a folder `iree`, and pip would replace one by the other.
const PARTS: [&str; 2] = ["compiler", "runtime"];

/// Where the wheels keep the programs themselves.
pub(super) const COMPILER_FOLDER: &str = "iree/compiler/_mlir_libs";
pub(super) const RUNTIME_FOLDER: &str = "iree/_runtime_libs";

/// Tools that may be used: their commits equal the pin's, and their files are those that were locked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    pub identity: Toolchain,
    pub root: PathBuf,
    /// Of the content. Equal digests are equal tools.
    pub digest: String,
    pub iree_compile: PathBuf,
    pub iree_run_module: PathBuf,
    pub iree_benchmark_module: PathBuf,
    pub iree_dump_module: PathBuf,
}

impl Installed {
    /// The reader of profiles, which older versions did not bring.
    pub fn iree_profile(&self) -> Option<PathBuf> {
        Some(self.iree_benchmark_module.with_file_name("iree-profile")).filter(|path| path.is_file())
    }

    /// Runtime tools that travelled without their compiler, which names them: `iree-run-module` and
    /// `iree-benchmark-module`. Whoever carried them says of which commits they are.
    ///
    /// # Errors
    /// Those are not the pin's, or a tool can't be read.
    pub async fn runtime_alone(
        pin: &Pin,
        identity: Toolchain,
        root: &Path,
        [iree_run_module, iree_benchmark_module]: [PathBuf; 2],
    ) -> Result<Self, ToolchainError> {
        compare_commits(pin, root, &identity.compiler_commit, &identity.runtime_commit)?;
        let files = [iree_run_module.clone(), iree_benchmark_module.clone()];
        let digest = blocking(root, move || digest_of_files(&files)).await?;
        Ok(Self {
            identity,
            root: root.to_owned(),
            digest,
            // They are not there, and whoever starts them is told so.
            iree_compile: iree_run_module.with_file_name("iree-compile"),
            iree_dump_module: iree_run_module.with_file_name("iree-dump-module"),
            iree_run_module,
            iree_benchmark_module,
        })
    }
}

/// What a pin asks for, fully resolved.
struct Wanted {
    what: String,
    wheels: [Wheel; 2],
    /// Where to fetch them; empty to ask the index.
    urls: Vec<String>,
    source: &'static str,
}

impl Wanted {
    fn of(pin: &Pin, lock: &Lock) -> Result<Self, ToolchainError> {
        let what = format!("IREE {}", pin.version);
        match &pin.source {
            ToolSource::Url { compiler, runtime } => {
                let wheel = |(url, sha256): &(String, String)| {
                    let file = fetch::file_name(url).ok_or_else(|| ToolchainError::Download {
                        url: url.clone(),
                        detail: "the URL does not end in the name of a wheel".to_owned(),
                    })?;
                    Ok::<_, ToolchainError>(Wheel { file, sha256: sha256.to_ascii_lowercase() })
                };
                let wheels = [wheel(compiler)?, wheel(runtime)?];
                Ok(Self { what, wheels, urls: vec![compiler.0.clone(), runtime.0.clone()], source: "url" })
            }
            ToolSource::Pypi | ToolSource::Path(_) => {
                let wheels = lock.tools(&pin.version, &pin.commit)?;
                Ok(Self { what, wheels, urls: Vec::new(), source: "pypi" })
            }
        }
    }

    /// Names the content: the same wheels are the same tools, whatever the source.
    fn digest(&self) -> String {
        let parts = self.wheels.iter().flat_map(|wheel| [wheel.file.as_str(), wheel.sha256.as_str()]);
        digest_of(["iree-1"].into_iter().chain(parts))[..32].to_owned()
    }
}

/// The tools of a pin, installing them first where they are not. Warm, it touches no network.
///
/// # Errors
/// See [`ToolchainError`]: anything short of verified tools is one.
pub async fn ensure(
    pin: &Pin,
    lock: &Lock,
    cache: &Path,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Installed, ToolchainError> {
    let started = Instant::now();
    if let ToolSource::Path(root) = &pin.source {
        let what = format!("IREE {}", pin.version);
        progress.on(Event::StepStarted { stage: Stage::Toolchain, what: &what });
        let installed = local::tools(pin, &beside(lock, root), progress, cancel).await?;
        let note = "a local build, verified";
        let took = started.elapsed();
        progress.on(Event::StepFinished { stage: Stage::Toolchain, what: &what, note, took });
        return Ok(installed);
    }
    let wanted = Wanted::of(pin, lock)?;
    let place = Place::new(cache, "tools", &wanted.digest());
    let note = if place.is_installed() { "verified" } else { "installed" };
    progress.on(Event::StepStarted { stage: Stage::Toolchain, what: &wanted.what });
    if !place.is_installed() {
        install(&wanted, pin, &place, cache, progress, cancel).await?;
    }
    let installed = check(pin, &wanted, &place).await?;
    let took = started.elapsed();
    progress.on(Event::StepFinished { stage: Stage::Toolchain, what: &wanted.what, note, took });
    Ok(installed)
}

/// As [`ensure`], but what is not installed stays so.
///
/// # Errors
/// As [`ensure`].
pub async fn verify(
    pin: &Pin,
    lock: &Lock,
    cache: &Path,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Installed, ToolchainError> {
    if let ToolSource::Path(root) = &pin.source {
        return local::tools(pin, &beside(lock, root), progress, cancel).await;
    }
    let wanted = Wanted::of(pin, lock)?;
    let place = Place::new(cache, "tools", &wanted.digest());
    if !place.is_installed() {
        return Err(ToolchainError::NotInstalled { what: wanted.what });
    }
    check(pin, &wanted, &place).await
}

/// A relative path starts at the configuration, which the lock lies beside.
fn beside(lock: &Lock, path: &Path) -> PathBuf {
    lock.file.parent().map_or_else(|| path.to_owned(), |folder| folder.join(path))
}

/// Hashes what is installed and compares its commits with the pin.
async fn check(pin: &Pin, wanted: &Wanted, place: &Place) -> Result<Installed, ToolchainError> {
    let root = place.root.clone();
    let look = move || {
        let manifest = Manifest::read(&root)?
            .ok_or_else(|| ToolchainError::MissingTool { tool: "a manifest".into(), root: root.clone() })?;
        manifest.check(&root, Look::Closely)?;
        Ok::<_, ToolchainError>(manifest)
    };
    let manifest = blocking(&place.root, look).await?;
    let compiler_commit = manifest.compiler_commit.unwrap_or_default();
    let runtime_commit = manifest.runtime_commit.unwrap_or_default();
    compare_commits(pin, &place.root, &compiler_commit, &runtime_commit)?;
    let identity = Toolchain {
        version: pin.version.clone(),
        compiler_commit,
        runtime_commit,
        source: wanted.source.to_owned(),
    };
    let [compiler, runtime] = PARTS.map(|part| place.root.join(part));
    let (compiler, runtime) = (compiler.join(COMPILER_FOLDER), runtime.join(RUNTIME_FOLDER));
    Ok(Installed {
        identity,
        digest: wanted.digest(),
        iree_compile: compiler.join("iree-compile"),
        iree_run_module: runtime.join("iree-run-module"),
        iree_benchmark_module: runtime.join("iree-benchmark-module"),
        iree_dump_module: runtime.join("iree-dump-module"),
        root: place.root.clone(),
    })
}

async fn install(
    wanted: &Wanted,
    pin: &Pin,
    place: &Place,
    cache: &Path,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<(), ToolchainError> {
    let turn = place.take_turn(progress, cancel).await?;
    if place.is_installed() {
        // The one we waited for did it.
        return Ok(());
    }
    let done = stage(wanted, pin, place, &turn, cache, cancel).await;
    match done {
        Ok(()) => place.commit(turn),
        Err(error) => {
            place.abandon(&error);
            Err(error)
        }
    }
}

/// Fills the staged tree and proves that it is what the pin says.
async fn stage(
    wanted: &Wanted,
    pin: &Pin,
    place: &Place,
    turn: &Turn,
    cache: &Path,
    cancel: &Cancel,
) -> Result<(), ToolchainError> {
    place.begin(turn)?;
    let python = interpreter::with_pip(cache, cancel).await?;
    let pip =
        Pip { python: python.executable, pip: None, work: place.work().to_owned(), timeout: INSTALL_TIMEOUT };
    let tree = place.tree();
    let [compiler, runtime] = PARTS.map(|part| tree.join(part));
    for (index, (wheel, target)) in wanted.wheels.iter().zip([&compiler, &runtime]).enumerate() {
        let line = match wanted.urls.get(index) {
            Some(url) => {
                let path = fetch::wheel(url, &wheel.sha256, place.work(), cancel).await?;
                format!("{} --hash=sha256:{}", quoted_path(&path), wheel.sha256)
            }
            None => requirement(wheel)?,
        };
        let requirements = place.work().join("requirements.txt");
        write_requirements(&requirements, &[line])?;
        pip.run(&wanted.what, tool_arguments(wheel, target, &requirements), cancel).await?;
    }
    let (compiler, runtime) = (compiler.join(COMPILER_FOLDER), runtime.join(RUNTIME_FOLDER));
    for (folder, tool) in [
        (&compiler, "iree-compile"),
        (&runtime, "iree-run-module"),
        (&runtime, "iree-benchmark-module"),
        (&runtime, "iree-dump-module"),
    ] {
        if !folder.join(tool).is_file() {
            return Err(ToolchainError::MissingTool { tool: tool.to_owned(), root: tree });
        }
    }
    let compiler_commit = compiler_commit(&compiler.join("iree-compile"), cancel).await?;
    let runtime_commit = runtime_commit(&runtime.join("version.py"))?;
    compare_commits(pin, &tree, &compiler_commit, &runtime_commit)?;
    let what = wanted.what.clone();
    blocking(&place.root, move || {
        let mut manifest = Manifest::take(&tree, what, Scope::Binaries)?;
        manifest.compiler_commit = Some(compiler_commit);
        manifest.runtime_commit = Some(runtime_commit);
        manifest.write(&tree)
    })
    .await
}

fn requirement(wheel: &Wheel) -> Result<String, ToolchainError> {
    let name = Name::parse(&wheel.file)
        .ok_or_else(|| ToolchainError::MissingTool { tool: wheel.file.clone(), root: PathBuf::new() })?;
    Ok(format!("{} --hash=sha256:{}", name.requirement(), wheel.sha256))
}

/// A path in a requirements file, where a blank would end it.
fn quoted_path(path: &Path) -> String {
    path.display().to_string().replace(' ', "\\ ")
}

/// pip's arguments for one wheel of the tools. They need no Python, so the same wheel serves every
/// machine of its kind, whichever Python runs pip.
fn tool_arguments(wheel: &Wheel, target: &Path, requirements: &Path) -> Vec<std::ffi::OsString> {
    let mut arguments: Vec<std::ffi::OsString> =
        ["install", "--no-deps", "--no-compile", "--require-hashes"].map(Into::into).into();
    if let Some(name) = Name::parse(&wheel.file) {
        arguments.extend(name.selecting_arguments().into_iter().map(Into::into));
    }
    arguments.extend(["--target".into(), target.into(), "--requirement".into(), requirements.into()]);
    arguments
}

/// Runs slow file work off the runtime's threads.
pub(super) async fn blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> Result<T, ToolchainError> + Send + 'static,
) -> Result<T, ToolchainError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(panic) => Err(ToolchainError::io("hash", path)(std::io::Error::other(panic))),
    }
}

pub(super) fn compare_commits(
    pin: &Pin,
    root: &Path,
    compiler: &str,
    runtime: &str,
) -> Result<(), ToolchainError> {
    for (tool, found) in [("compiler", compiler), ("runtime", runtime)] {
        if found != pin.commit {
            return Err(ToolchainError::WrongCommit {
                tool,
                root: root.to_owned(),
                expected: pin.commit.clone(),
                found: if found.is_empty() { "none".to_owned() } else { found.to_owned() },
            });
        }
    }
    Ok(())
}

/// The commit that `iree-compile --version` prints.
pub(super) async fn compiler_commit(iree_compile: &Path, cancel: &Cancel) -> Result<String, ToolchainError> {
    let command = Command::new(iree_compile, VERSION_TIMEOUT).arg("--version").capture_stdout();
    let finished = process::run(&command, cancel).await?;
    match finished.exit {
        Exit::Success => {
            Ok(parse_compiler_commit(&String::from_utf8_lossy(&finished.stdout)).unwrap_or_default())
        }
        Exit::Interrupted => Err(ToolchainError::Interrupted),
        exit => {
            let detail = finished.stderr_tail.lines().next_back().unwrap_or("it said nothing").to_owned();
            Err(ToolchainError::Tool { program: iree_compile.to_owned(), exit, detail })
        }
    }
}

/// From `  IREE compiler version 3.13.0rc20261016 @ 89ece87b…`.
fn parse_compiler_commit(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.contains("IREE compiler version"))?;
    commit_at_start(line.split_once('@')?.1.trim_start())
}

/// The commit that the runtime's own version file names.
pub(super) fn runtime_commit(version_py: &Path) -> Result<String, ToolchainError> {
    let text = fs::read_to_string(version_py).map_err(ToolchainError::io("read", version_py))?;
    Ok(parse_runtime_commit(&text).unwrap_or_default())
}

/// From `REVISIONS = {"IREE": "89ece87b…"}`.
fn parse_runtime_commit(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("REVISIONS"))?;
    let value = line.split_once("\"IREE\"").or_else(|| line.split_once("'IREE'"))?.1;
    commit_at_start(value.trim_start_matches([':', ' ', '"', '\'']))
}

/// The 40 hexadecimal digits a text starts with.
fn commit_at_start(text: &str) -> Option<String> {
    let commit = text.get(..40)?;
    commit.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| commit.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "89ece87b89852100c0a4ac3d515e14842d090967";

    #[test]
    fn commits_are_read_where_the_tools_print_them() {
        let printed = format!(
            "IREE (https://iree.dev):\n  IREE compiler version 3.13.0rc20261016 @ {COMMIT}\n  LLVM version 24.0.0git\n"
        );
        assert_eq!(parse_compiler_commit(&printed).as_deref(), Some(COMMIT));
        let file = format!("VERSION = \"3.13.0rc20261016\"\nREVISIONS = {{\"IREE\": \"{COMMIT}\"}}\n");
        assert_eq!(parse_runtime_commit(&file).as_deref(), Some(COMMIT));
        assert_eq!(parse_compiler_commit("IREE compiler version 3.13 @ (unknown)"), None);
        assert_eq!(parse_runtime_commit("REVISIONS = {}"), None);
    }
}
