//! Finds and identifies the tools of a local build or install tree, which is never changed.

use std::fs;
use std::path::{Path, PathBuf};

use super::ToolchainError;
use super::installed::{
    COMPILER_FOLDER, Installed, RUNTIME_FOLDER, blocking, compare_commits, compiler_commit, runtime_commit,
};
use super::manifest::digest_of_files;
use crate::config::Pin;
use crate::model::{Event, Progress, Toolchain};
use crate::process::Cancel;

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
