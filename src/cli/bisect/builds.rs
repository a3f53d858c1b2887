//! Tools built from commits of another repository, by the user's own command.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::config::{Pin, ToolSource};
use crate::model::{hex, short_commit};
use crate::process::{self, Command, Exit};

use super::super::{CliError, Terminal, runtime};

/// Time limit of one build. A compiler that includes MLIR takes about an hour on a small machine.
const TIMEOUT: Duration = Duration::from_secs(4 * 3600);

pub struct Builds {
    command: String,
    repository: PathBuf,
    /// The folder for builds of this repository with this command.
    folder: PathBuf,
}

impl Builds {
    pub fn new(command: &str, repository: &Path, cache: &Path) -> Self {
        let mut key = Sha256::new();
        for part in [command.as_bytes(), repository.as_os_str().as_encoded_bytes()] {
            key.update(part);
            key.update([0]);
        }
        let key = hex(&key.finalize()[..16]);
        Self {
            command: command.to_owned(),
            repository: repository.to_owned(),
            folder: cache.join("builds").join(key),
        }
    }

    /// Builds a commit unless it was built before, and returns a pin of the result.
    pub fn pin(&self, commit: &str, terminal: &Terminal) -> Result<Pin, Unusable> {
        let tree = self.folder.join(commit);
        // This file is written after the command has succeeded, so an interrupted build is repeated.
        let done = self.folder.join(format!("{commit}.done"));
        if !done.is_file() {
            terminal.note(&format!("building {commit}"));
            self.build(commit, &tree)?;
            std::fs::write(&done, "").map_err(|error| failed(&done, &error))?;
        }
        let version = format!("0+{}", short_commit(commit));
        Ok(Pin { version, commit: commit.to_owned(), source: ToolSource::Path(tree) })
    }

    fn build(&self, commit: &str, tree: &Path) -> Result<(), Unusable> {
        if tree.exists() {
            std::fs::remove_dir_all(tree).map_err(|error| failed(tree, &error))?;
        }
        std::fs::create_dir_all(tree).map_err(|error| failed(tree, &error))?;
        let log = self.folder.join(format!("{commit}.log"));
        let command = Command::new("/bin/sh", TIMEOUT)
            .args(["-c", &self.command])
            .cwd(&self.repository)
            .env("BENCHGATE_COMMIT", commit)
            .env("BENCHGATE_REPOSITORY", &self.repository)
            .env("BENCHGATE_TREE", tree)
            .log(&log);
        let finished = runtime::block_on(async |cancel| {
            process::run(&command, &cancel)
                .await
                .map_err(|error| CliError::failed(format!("failed to {error}")))
        })?;
        match finished.exit {
            Exit::Success => Ok(()),
            Exit::Interrupted => Err(Unusable::Stop(CliError::interrupted())),
            exit => Err(Unusable::Skipped(format!("the build {exit} (log: {})", log.display()))),
        }
    }
}

fn failed(path: &Path, error: &std::io::Error) -> Unusable {
    Unusable::Stop(CliError::failed(format!("failed to write {}: {error}", path.display())))
}

/// Reasons why a candidate can't become a side of a pair.
pub enum Unusable {
    /// The candidate can't be measured; the search continues without it.
    Skipped(String),
    /// The search can't continue.
    Stop(CliError),
}

impl<E: Into<CliError>> From<E> for Unusable {
    fn from(error: E) -> Self {
        Self::Stop(error.into())
    }
}
