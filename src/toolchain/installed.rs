//! Tools that were verified against a pin, however they were installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::ToolchainError;
use super::manifest::digest_of_files;
use crate::config::Pin;
use crate::model::Toolchain;
use crate::process::{self, Cancel, Command, Exit, Finished};

/// Time limit for `--version`, which is long because the compiler first loads a library of 300 MB.
const VERSION_TIMEOUT: Duration = Duration::from_secs(120);

/// Folder of the tools in the compiler's wheel.
pub(super) const COMPILER_FOLDER: &str = "iree/compiler/_mlir_libs";
pub(super) const RUNTIME_FOLDER: &str = "iree/_runtime_libs";

/// Verified tools: their commits equal the pin's, and their files match the lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    pub identity: Toolchain,
    pub root: PathBuf,
    /// Digest of the content. Tools with equal digests are identical.
    pub digest: String,
    pub iree_compile: PathBuf,
    pub iree_run_module: PathBuf,
    pub iree_benchmark_module: PathBuf,
    pub iree_dump_module: PathBuf,
}

impl Installed {
    /// The program that reads profiles. `None` for older versions, which don't have it.
    pub fn iree_profile(&self) -> Option<PathBuf> {
        self.runtime_tool("iree-profile")
    }

    /// The tool that times captured calls. `None` for older versions, which don't have it.
    pub fn iree_benchmark_replay(&self) -> Option<PathBuf> {
        self.runtime_tool("iree-benchmark-replay")
    }

    fn runtime_tool(&self, name: &str) -> Option<PathBuf> {
        Some(self.iree_benchmark_module.with_file_name(name)).filter(|path| path.is_file())
    }

    /// Verifies the runtime tools of a bundle (`iree-run-module` and `iree-benchmark-module`), which contains
    /// no compiler. The bundle states their commits.
    ///
    /// # Errors
    /// The commits differ from the pin's, or a tool can't be read.
    pub async fn runtime_alone(
        pin: &Pin,
        identity: Toolchain,
        root: &Path,
        [iree_run_module, iree_benchmark_module]: [PathBuf; 2],
    ) -> Result<Self, ToolchainError> {
        compare_commits(&pin.commit, root, &identity.compiler_commit, &identity.runtime_commit)?;
        let files = [iree_run_module.clone(), iree_benchmark_module.clone()];
        let digest = blocking(root, move || digest_of_files(&files)).await?;
        Ok(Self {
            identity,
            root: root.to_owned(),
            digest,
            // A bundle need not contain these two tools; starting a missing one reports an error.
            iree_compile: iree_run_module.with_file_name("iree-compile"),
            iree_dump_module: iree_run_module.with_file_name("iree-dump-module"),
            iree_run_module,
            iree_benchmark_module,
        })
    }
}

/// Runs slow file operations outside the runtime's threads.
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
    expected: &str,
    root: &Path,
    compiler: &str,
    runtime: &str,
) -> Result<(), ToolchainError> {
    for (tool, found) in [("compiler", compiler), ("runtime", runtime)] {
        // The commit is empty if the tool does not report one.
        if found.is_empty() || found != expected {
            return Err(ToolchainError::WrongCommit {
                tool,
                root: root.to_owned(),
                expected: if expected.is_empty() { "one".to_owned() } else { expected.to_owned() },
                found: if found.is_empty() { "none".to_owned() } else { found.to_owned() },
            });
        }
    }
    Ok(())
}

/// The compiler's commit, as printed by `iree-compile --version`.
pub(super) async fn compiler_commit(iree_compile: &Path, cancel: &Cancel) -> Result<String, ToolchainError> {
    let command = Command::new(iree_compile, VERSION_TIMEOUT).arg("--version").capture_stdout();
    let finished = succeeded(&command, cancel).await?;
    Ok(parse_compiler_commit(&String::from_utf8_lossy(&finished.stdout)).unwrap_or_default())
}

/// Runs a program, and returns an error if it fails.
pub(super) async fn succeeded(command: &Command, cancel: &Cancel) -> Result<Finished, ToolchainError> {
    let finished = process::run(command, cancel).await?;
    match finished.exit {
        Exit::Success => Ok(finished),
        Exit::Interrupted => Err(ToolchainError::Interrupted),
        exit => {
            let detail = finished.stderr_tail.lines().next_back().unwrap_or("no message").to_owned();
            Err(ToolchainError::Tool { program: command.program.clone(), exit, detail })
        }
    }
}

/// The commit, from a line like `  IREE compiler version 3.13.0rc20261016 @ 89ece87b…`.
fn parse_compiler_commit(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.contains("IREE compiler version"))?;
    commit_at_start(line.split_once('@')?.1.trim_start())
}

/// The commit in the runtime's own version file.
pub(super) fn runtime_commit(version_py: &Path) -> Result<String, ToolchainError> {
    let text = fs::read_to_string(version_py).map_err(ToolchainError::io("read", version_py))?;
    Ok(parse_runtime_commit(&text).unwrap_or_default())
}

/// The commit, from a line like `REVISIONS = {"IREE": "89ece87b…"}`.
fn parse_runtime_commit(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("REVISIONS"))?;
    let value = line.split_once("\"IREE\"").or_else(|| line.split_once("'IREE'"))?.1;
    commit_at_start(value.trim_start_matches([':', ' ', '"', '\'']))
}

/// The 40 hexadecimal digits with which a text starts.
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
