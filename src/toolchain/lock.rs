//! `benchgate.lock`: the resolved pins. The file is written by benchgate and reviewed by people.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::ToolchainError;
use super::wheel::{Name, Wheel};

/// The content of a lock file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lock {
    /// The file from which the lock was read, or to which it will be written.
    pub file: PathBuf,
    /// The IREE tools, sorted by version.
    pub iree: Vec<LockedTools>,
    /// The Python environments, sorted by name, platform and Python version.
    pub python: Vec<LockedPython>,
}

/// One IREE version, with its wheels for every platform.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LockedTools {
    pub version: String,
    /// The commit of the pin, which the installation verifies.
    pub commit: String,
    pub wheels: Vec<Wheel>,
}

/// One Python environment for one platform and Python version, with the wheels of all its dependencies.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LockedPython {
    pub name: String,
    /// The platform, for example `linux-x86_64`.
    pub platform: String,
    /// The Python version, for example `3.11`.
    pub python: String,
    /// Digest of the requirements that were resolved, so that a stale entry is noticed.
    pub requirements_sha256: String,
    pub wheels: Vec<Wheel>,
}

/// The platform on which benchgate runs, as the lock names it.
pub(super) fn platform() -> String {
    format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH)
}

impl Lock {
    /// Inserts a resolved entry, replacing an earlier one for the same version.
    pub fn put_tools(&mut self, tools: LockedTools) {
        self.iree.retain(|known| known.version != tools.version);
        self.iree.push(tools);
        self.iree.sort();
    }

    /// Inserts a resolved environment, replacing an earlier one. Environments of the same name with other
    /// requirements are stale and are removed.
    pub fn put_python(&mut self, env: LockedPython) {
        self.python.retain(|known| {
            known.name != env.name
                || (known.requirements_sha256 == env.requirements_sha256
                    && (&known.platform, &known.python) != (&env.platform, &env.python))
        });
        self.python.push(env);
        self.python.sort();
    }

    /// Rejects a different commit for wheels that are already locked, because a wheel is built from a single
    /// commit.
    ///
    /// # Errors These wheels of this version are locked with a different commit.
    pub fn check_commit(&self, tools: &LockedTools) -> Result<(), ToolchainError> {
        let same = |known: &&LockedTools| known.version == tools.version && known.wheels == tools.wheels;
        match self.iree.iter().find(same) {
            Some(known) if known.commit != tools.commit => {
                Err(self.other_commit(known, &tools.version, &tools.commit))
            }
            _ => Ok(()),
        }
    }

    fn other_commit(&self, known: &LockedTools, version: &str, pinned: &str) -> ToolchainError {
        ToolchainError::OtherCommit {
            version: version.to_owned(),
            pinned: pinned.to_owned(),
            locked: known.commit.clone(),
            lock: self.file.clone(),
        }
    }

    /// The wheels of the compiler and the runtime of a version, for this machine.
    pub(super) fn tools(&self, version: &str, commit: &str) -> Result<[Wheel; 2], ToolchainError> {
        let missing = |what: String| {
            let found = self.iree.iter().map(|known| format!("{} ({})", known.version, known.commit));
            ToolchainError::NotLocked {
                what,
                found: listed(found, "nothing locked"),
                lock: self.file.clone(),
            }
        };
        let known = self
            .iree
            .iter()
            .find(|known| known.version == version)
            .ok_or_else(|| missing(format!("IREE {version} of commit {commit}")))?;
        if known.commit != commit {
            return Err(self.other_commit(known, version, commit));
        }
        let pick = |project: &str| {
            let fits = |wheel: &&Wheel| {
                Name::parse(&wheel.file).is_some_and(|name| {
                    name.project == project && name.version == version && name.runs_on(std::env::consts::ARCH)
                })
            };
            let what = || missing(format!("a wheel of {project} {version} for {}", platform()));
            known.wheels.iter().find(fits).cloned().ok_or_else(what)
        };
        Ok([pick("iree_base_compiler")?, pick("iree_base_runtime")?])
    }

    /// The locked environments with this name for this machine, newest Python first.
    pub(super) fn python(
        &self,
        name: &str,
        requirements_sha256: &str,
        pythons: Option<&[&str]>,
    ) -> Result<Vec<&LockedPython>, ToolchainError> {
        let mut fitting: Vec<&LockedPython> = self
            .python
            .iter()
            .filter(|env| {
                env.name == name
                    && env.platform == platform()
                    && env.requirements_sha256 == requirements_sha256
                    && pythons.is_none_or(|pythons| pythons.contains(&env.python.as_str()))
            })
            .collect();
        fitting.sort_by_key(|env| std::cmp::Reverse(minor(&env.python)));
        if fitting.is_empty() {
            // Lists only this environment's Python versions, because other environments' versions would not
            // help.
            let found: BTreeSet<String> = self
                .python
                .iter()
                .map(|env| {
                    let stale = if env.requirements_sha256 == requirements_sha256 {
                        ""
                    } else {
                        ", other requirements"
                    };
                    if env.name == name {
                        format!("{} ({}, Python {}{stale})", env.name, env.platform, env.python)
                    } else {
                        env.name.clone()
                    }
                })
                .collect();
            return Err(ToolchainError::NotLocked {
                what: match pythons {
                    Some(pythons) => {
                        let pythons = pythons.join(", ");
                        format!("the Python environment {name} for Python {pythons}, {}", platform())
                    }
                    None => format!("the Python environment {name} for {}", platform()),
                },
                found: listed(found.into_iter(), "no Python environment locked"),
                lock: self.file.clone(),
            });
        }
        Ok(fitting)
    }
}

/// The minor version of a Python version: 11 for `3.11`.
fn minor(python: &str) -> Option<u32> {
    python.split('.').nth(1)?.parse().ok()
}

fn listed(found: impl Iterator<Item = String>, nothing: &str) -> String {
    let all: Vec<String> = found.collect();
    if all.is_empty() { nothing.to_owned() } else { all.join(", ") }
}
