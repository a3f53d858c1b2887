//! `benchgate.lock`: the resolved pins. Written by a machine, reviewed by people.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::ToolchainError;
use super::wheel::{Name, Wheel};

/// Everything that was locked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lock {
    /// File from which it was or would have been read.
    pub file: PathBuf,
    /// By version.
    pub iree: Vec<LockedTools>,
    /// By name, platform and Python.
    pub python: Vec<LockedPython>,
}

/// One IREE version: its wheels for every kind of machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LockedTools {
    pub version: String,
    /// The commit that the pin named; the installation verifies it.
    pub commit: String,
    pub wheels: Vec<Wheel>,
}

/// One Python environment on one kind of machine under one Python: every wheel of its closure.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LockedPython {
    pub name: String,
    /// For example `linux-x86_64`.
    pub platform: String,
    /// For example `3.11`.
    pub python: String,
    /// Digest of the requirements that were resolved, so that stale ones are noticed.
    pub requirements_sha256: String,
    pub wheels: Vec<Wheel>,
}

/// The kind of machine benchgate runs on, as the lock names it.
pub(super) fn platform() -> String {
    format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH)
}

impl Lock {
    /// Inserts the resolved entry in place of an earlier one.
    pub fn put_tools(&mut self, tools: LockedTools) {
        self.iree.retain(|known| known.version != tools.version);
        self.iree.push(tools);
        self.iree.sort();
    }

    /// As [`Lock::put_tools`]. Environments of that name with other requirements are stale and are removed.
    pub fn put_python(&mut self, env: LockedPython) {
        self.python.retain(|known| {
            known.name != env.name
                || (known.requirements_sha256 == env.requirements_sha256
                    && (&known.platform, &known.python) != (&env.platform, &env.python))
        });
        self.python.push(env);
        self.python.sort();
    }

    /// Refuses another commit for wheels that are locked already: they were built from one.
    ///
    /// # Errors
    /// The same version is locked with the same wheels as another commit.
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

    /// The compiler's and the runtime's wheel of a version for this machine.
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

    /// The locked environments of a name for this machine, newest Python first.
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
            // Every Python of another environment would be a long list without use.
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

/// The 11 of `3.11`.
fn minor(python: &str) -> Option<u32> {
    python.split('.').nth(1)?.parse().ok()
}

fn listed(found: impl Iterator<Item = String>, nothing: &str) -> String {
    let all: Vec<String> = found.collect();
    if all.is_empty() { nothing.to_owned() } else { all.join(", ") }
}
