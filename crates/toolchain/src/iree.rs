//! The IREE tools of a pin: installed if needed, and always verified.
//!
//! Finds and identifies the tools of a local build or install tree, which is never changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use benchgate_config::{Pin, ToolSource};
use benchgate_core::model::{Event, Progress, Stage, Toolchain, digest_of};
use benchgate_host::files;
use benchgate_host::process::Cancel;

use super::install::{
    COMPILER_FOLDER, Installed, RUNTIME_FOLDER, ToolPlace, blocking, compare_commits, compiler_commit,
    runtime_commit,
};
use super::manifest::{Look, Scope, ToolManifest, digest_of_files};
use super::pin::pin_tools;
use super::pip::{Pip, Wheel, requirement, tool_arguments, write_requirements};
use super::{Lock, LockedTools, ToolchainError, fetch, python_env};

/// Time limit for installing two wheels of 100 MB over a slow connection.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// The parts of the tools, each in its own folder: both wheels contain a folder `iree`, and pip would replace
/// one by the other.
const PARTS: [&str; 2] = ["compiler", "runtime"];

/// The wheels of a pin, fully resolved.
struct Wanted {
    what: String,
    wheels: [Wheel; 2],
    /// URLs of the wheels; empty if the index is used.
    urls: Vec<String>,
    source: &'static str,
}

impl Wanted {
    fn from_pin(pin: &Pin, lock: &Lock) -> Result<Self, ToolchainError> {
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

    /// The digest of the wheels: tools from equal wheels are equal, whatever their source.
    fn digest(&self) -> String {
        let parts = self.wheels.iter().flat_map(|wheel| [wheel.file.as_str(), wheel.sha256.as_str()]);
        digest_of(["iree-1"].into_iter().chain(parts))[..32].to_owned()
    }
}

/// Returns the tools of a pin, and installs them first if necessary. Uses no network if they are installed.
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
        let installed = tools(pin, &resolved(lock, root), progress, cancel).await?;
        let note = "a local build, verified";
        let took = started.elapsed();
        progress.on(Event::StepFinished { stage: Stage::Toolchain, what: &what, note, took });
        return Ok(installed);
    }
    let wanted = Wanted::from_pin(pin, lock)?;
    let place = ToolPlace::new(cache, "tools", &wanted.digest());
    let note = if place.is_installed() { "verified" } else { "installed" };
    progress.on(Event::StepStarted { stage: Stage::Toolchain, what: &wanted.what });
    if !place.is_installed() {
        place.install(stage(&wanted, Some(pin), &place, cache, cancel), progress, cancel).await?;
    }
    let installed = check(pin, &wanted, &place).await?;
    files::mark_used(&place.root);
    let took = started.elapsed();
    progress.on(Event::StepFinished { stage: Stage::Toolchain, what: &wanted.what, note, took });
    Ok(installed)
}

/// Returns the tools of a release that is not pinned yet, and installs them first if necessary. The tools are
/// pinned to the commit that both the compiler and the runtime report. The release is added to `lock`, but
/// the lock file is not written.
///
/// # Errors
/// The errors of [`ensure`], or the compiler and the runtime have different commits.
pub async fn release(
    version: &str,
    lock: &mut Lock,
    cache: &Path,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Pin, ToolchainError> {
    let pin = |commit: String| Pin { version: version.to_owned(), commit, source: ToolSource::Pypi };
    if let Some(known) = lock.iree.iter().find(|known| known.version == version) {
        return Ok(pin(known.commit.clone()));
    }
    let mut found = Lock { file: lock.file.clone(), ..Lock::default() };
    found.put_tools(pin_tools(&pin(String::new()), cache, progress, cancel).await?);
    let wanted = Wanted::from_pin(&pin(String::new()), &found)?;
    let place = ToolPlace::new(cache, "tools", &wanted.digest());
    if !place.is_installed() {
        progress.on(Event::Note(&format!("installing {}", wanted.what)));
        place.install(stage(&wanted, None, &place, cache, cancel), progress, cancel).await?;
    }
    let root = place.root.clone();
    let manifest = blocking(&place.root, move || ToolManifest::read(&root)).await?;
    let commit = manifest.and_then(|manifest| manifest.compiler_commit).unwrap_or_default();
    for tools in found.iree {
        lock.put_tools(LockedTools { commit: commit.clone(), ..tools });
    }
    Ok(pin(commit))
}

/// Like [`ensure`], but does not install anything.
pub async fn verify(
    pin: &Pin,
    lock: &Lock,
    cache: &Path,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Installed, ToolchainError> {
    if let ToolSource::Path(root) = &pin.source {
        return tools(pin, &resolved(lock, root), progress, cancel).await;
    }
    let wanted = Wanted::from_pin(pin, lock)?;
    let place = ToolPlace::new(cache, "tools", &wanted.digest());
    if !place.is_installed() {
        return Err(ToolchainError::NotInstalled { what: wanted.what });
    }
    check(pin, &wanted, &place).await
}

/// Resolves a relative path against the folder of the configuration and its lock.
fn resolved(lock: &Lock, path: &Path) -> PathBuf {
    lock.file.parent().map_or_else(|| path.to_owned(), |folder| folder.join(path))
}

/// Hashes the installed files and compares the commits of the tools with the pin.
async fn check(pin: &Pin, wanted: &Wanted, place: &ToolPlace) -> Result<Installed, ToolchainError> {
    let root = place.root.clone();
    let look = move || {
        let manifest = ToolManifest::read(&root)?
            .ok_or_else(|| ToolchainError::MissingTool { tool: "a manifest".into(), root: root.clone() })?;
        manifest.check(&root, Look::Closely, Scope::Binaries)?;
        manifest.check_records(&root)?;
        Ok::<_, ToolchainError>(manifest)
    };
    let manifest = blocking(&place.root, look).await?;
    let compiler_commit = manifest.compiler_commit.unwrap_or_default();
    let runtime_commit = manifest.runtime_commit.unwrap_or_default();
    compare_commits(&pin.commit, &place.root, &compiler_commit, &runtime_commit)?;
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

/// Fills the staged tree and checks that it matches the pin. Without a pin, the parts must have the same
/// commit.
async fn stage(
    wanted: &Wanted,
    pinned: Option<&Pin>,
    place: &ToolPlace,
    cache: &Path,
    cancel: &Cancel,
) -> Result<(), ToolchainError> {
    let python = python_env::with_pip(cache, cancel).await?;
    let pip = Pip::of(python.executable, place.work(), INSTALL_TIMEOUT);
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
    let commit = pinned.map_or(&compiler_commit, |pin| &pin.commit);
    compare_commits(commit, &tree, &compiler_commit, &runtime_commit)?;
    let what = wanted.what.clone();
    blocking(&place.root, move || {
        let mut manifest = ToolManifest::take(&tree, what, Scope::Binaries)?;
        manifest.compiler_commit = Some(compiler_commit);
        manifest.runtime_commit = Some(runtime_commit);
        manifest.write(&tree)
    })
    .await
}

/// Quotes a path in a requirements file, where a space would end it.
fn quoted_path(path: &Path) -> String {
    path.display().to_string().replace(' ', "\\ ")
}

/// Folders that may contain the programs: the top of the tree, and the folders of an install tree or a CMake
/// build tree.
const FOLDERS: &[&str] = &["", "bin", "tools", "install/bin"];

/// The tools below `root`, with the commits that they report. A tree may change at any time, so it is
/// inspected on each call, and its digest covers the content.
pub(super) async fn tools(
    pin: &Pin,
    root: &Path,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Installed, ToolchainError> {
    let iree_compile = find(root, "iree-compile", COMPILER_FOLDER)?;
    let iree_run_module = find(root, "iree-run-module", RUNTIME_FOLDER)?;
    let iree_benchmark_module = find(root, "iree-benchmark-module", RUNTIME_FOLDER)?;
    let iree_dump_module = find(root, "iree-dump-module", RUNTIME_FOLDER)?;
    let compiler = compiler_commit(&iree_compile, cancel).await?;
    let runtime = match version_file(&iree_run_module, root) {
        Some(file) => runtime_commit(&file)?,
        None if iree_compile.parent() == iree_run_module.parent() => {
            progress.on(Event::Warning(&format!(
                "the runtime in {} does not name its commit; because it is next to the compiler, \
                 both are assumed to be of the same build",
                root.display()
            )));
            compiler.clone()
        }
        None => {
            return Err(ToolchainError::MissingTool {
                tool: "the runtime's version.py, which names its commit".to_owned(),
                root: root.to_owned(),
            });
        }
    };
    compare_commits(&pin.commit, root, &compiler, &runtime)?;
    let mut files = libraries(&iree_compile);
    files.extend(
        [&iree_compile, &iree_run_module, &iree_benchmark_module, &iree_dump_module].map(Clone::clone),
    );
    let digest = blocking(root, move || digest_of_files(&files)).await?;
    let identity = Toolchain {
        version: pin.version.clone(),
        compiler_commit: compiler,
        runtime_commit: runtime,
        source: "path".to_owned(),
    };
    Ok(Installed {
        identity,
        root: root.to_owned(),
        digest,
        iree_compile,
        iree_run_module,
        iree_benchmark_module,
        iree_dump_module,
    })
}

/// Finds a program of a tree. Programs inside the Python packages are preferred, because the `bin` folder of
/// an environment contains launchers that start Python before the program.
fn find(root: &Path, tool: &str, inside: &str) -> Result<PathBuf, ToolchainError> {
    let packages = site_packages(root).into_iter().chain([root.to_owned()]).map(|folder| folder.join(inside));
    let folders = packages.chain(FOLDERS.iter().map(|folder| root.join(folder)));
    let found = folders.map(|folder| folder.join(tool)).find(|path| path.is_file());
    let found = found.and_then(|path| std::path::absolute(path).ok());
    found.ok_or_else(|| ToolchainError::MissingTool { tool: tool.to_owned(), root: root.to_owned() })
}

/// The package folders of a Python environment.
fn site_packages(root: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(root.join("lib")) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path().join("site-packages"))
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    found
}

fn version_file(iree_run_module: &Path, root: &Path) -> Option<PathBuf> {
    let sibling = iree_run_module.with_file_name("version.py");
    let built = root.join("runtime/bindings/python/iree/_runtime_libs/version.py");
    [sibling, built].into_iter().find(|path| path.is_file())
}

/// The compiler's shared libraries, which are next to it or in the neighboring `lib` folder.
fn libraries(iree_compile: &Path) -> Vec<PathBuf> {
    let folder = iree_compile.parent().unwrap_or(Path::new("."));
    let mut found = Vec::new();
    for place in [folder.to_owned(), folder.join("../lib")] {
        let Ok(entries) = fs::read_dir(place) else { continue };
        found.extend(entries.flatten().map(|entry| entry.path()).filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            path.is_file() && name.starts_with("libIREECompiler.so")
        }));
    }
    found.sort();
    found
}
