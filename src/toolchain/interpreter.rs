//! Finds the Python interpreters of this machine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::ToolchainError;
use crate::process::{self, Cancel, Command, Exit};

/// Names to look for; the interpreter that the user has selected comes first.
const NAMES: &[&str] =
    &["python3", "python3.14", "python3.13", "python3.12", "python3.11", "python3.10", "python"];

/// The oldest minor version of Python 3 that the wheels of IREE and torch support.
const OLDEST: u32 = 10;

/// Time limit for the script below. Python usually starts in a fraction of a second, but a home folder on a
/// network can make it much slower.
const PATIENCE: Duration = Duration::from_secs(60);

/// A script that prints facts about a Python interpreter. It also prints the folder of pip, because
/// another Python may have to run this pip, which all versions of pip support.
const QUESTION: &str = "\
import json, os, sys
def has(name):
    import importlib.util
    return importlib.util.find_spec(name) is not None
pip = None
if has('pip'):
    import pip as p
    pip = os.path.dirname(os.path.abspath(p.__file__))
print(json.dumps({'major': sys.version_info[0], 'minor': sys.version_info[1],
                  'executable': sys.executable, 'pip': pip, 'venv': has('venv'), 'ensurepip': has('ensurepip')}))";

/// A Python interpreter that was found.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Interpreter {
    major: u32,
    minor: u32,
    pub(super) executable: PathBuf,
    /// The folder of its pip package, which Python can run as a program.
    pub(super) pip: Option<PathBuf>,
    venv: bool,
    ensurepip: bool,
}

impl Interpreter {
    /// The version without its patch number, for example `3.11`.
    pub(super) fn version(&self) -> String {
        format!("{}.{}", self.major, self.minor)
    }

    fn is_recent(&self) -> bool {
        self.major == 3 && self.minor >= OLDEST
    }
}

/// Versions of the Python interpreters that can be used here, in order of preference. Used by `doctor`.
///
/// # Errors
/// The search was interrupted.
pub async fn pythons(cancel: &Cancel) -> Result<Vec<String>, ToolchainError> {
    Ok(all(cancel).await?.iter().map(Interpreter::version).collect())
}

/// Every supported Python interpreter that can be found, in order of preference, with each version once.
pub(super) async fn all(cancel: &Cancel) -> Result<Vec<Interpreter>, ToolchainError> {
    let mut usable: Vec<Interpreter> = Vec::new();
    for name in NAMES {
        if let Some(found) = ask(Path::new(name), cancel).await?
            && found.is_recent()
            && !usable.iter().any(|known| known.version() == found.version())
        {
            usable.push(found);
        }
    }
    Ok(usable)
}

/// The first Python that can install wheels. If a Python comes without pip but can install it (as those of uv
/// and of some distributions), an environment with pip is created below `cache`.
pub(super) async fn with_pip(cache: &Path, cancel: &Cancel) -> Result<Interpreter, ToolchainError> {
    let mut seen = Vec::new();
    let mut could = None;
    for name in NAMES {
        let Some(found) = ask(Path::new(name), cancel).await? else { continue };
        if found.is_recent() && found.pip.is_some() {
            return Ok(found);
        }
        let lack = if found.is_recent() { "without pip" } else { "too old" };
        seen.push(format!("{} ({}, {lack})", found.executable.display(), found.version()));
        if found.is_recent() && found.venv && found.ensurepip {
            could = could.or(Some(found));
        }
    }
    if let Some(bare) = could
        && let Some(found) = bootstrapped(&bare, cache, cancel).await?
    {
        return Ok(found);
    }
    let found = if seen.is_empty() {
        "there is no python3 in PATH".to_owned()
    } else {
        format!("found {}", seen.join(", "))
    };
    Err(ToolchainError::NoPython { found })
}

async fn bootstrapped(
    bare: &Interpreter,
    cache: &Path,
    cancel: &Cancel,
) -> Result<Option<Interpreter>, ToolchainError> {
    let folder = cache.join("python").join(format!("pip-{}", bare.version()));
    let python = folder.join("bin/python");
    if let Some(found) = ask(&python, cancel).await?
        && found.pip.is_some()
    {
        return Ok(Some(found));
    }
    // `--clear` removes the remains of a killed attempt. Two simultaneous attempts create the same files.
    let make = Command::new(&bare.executable, PATIENCE * 5).args(["-m", "venv", "--clear"]).arg(&folder);
    process::run(&make, cancel).await?;
    Ok(ask(&python, cancel).await?.filter(|found| found.pip.is_some()))
}

/// A Python of this version that can create an environment.
pub(super) async fn of_version(
    version: &str,
    cancel: &Cancel,
) -> Result<Option<Interpreter>, ToolchainError> {
    for name in [format!("python{version}"), "python3".to_owned(), "python".to_owned()] {
        if let Some(found) = ask(Path::new(&name), cancel).await?
            && found.version() == version
            && found.venv
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Asks a program for its facts. `None` if it doesn't exist or is not a Python, for example a shim for a
/// version that is not installed.
async fn ask(program: &Path, cancel: &Cancel) -> Result<Option<Interpreter>, ToolchainError> {
    let command = Command::new(program, PATIENCE).args(["-c", QUESTION]).capture_stdout();
    match process::run(&command, cancel).await {
        Ok(finished) if finished.exit == Exit::Interrupted => Err(ToolchainError::Interrupted),
        Ok(finished) => Ok(serde_json::from_slice(&finished.stdout).ok()),
        // A program that can't be started is not a usable Python.
        Err(_) => Ok(None),
    }
}
