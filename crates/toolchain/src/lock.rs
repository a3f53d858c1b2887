//! `benchgate.lock`: the resolved pins. The file is written by benchgate and reviewed by people.
//!
//! Reads and writes a lock as a file next to the configuration. It is TOML with a line per wheel, sorted, so that
//! a review shows what changed.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use toml_span::Value;

use benchgate_core::model::is_sha256;
use benchgate_host::files;

use super::ToolchainError;
use super::pip::{Name, Wheel, is_plain_version};

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
                found: self.listed(found, "nothing locked"),
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
                found: self.listed(found.into_iter(), "no Python environment locked"),
                lock: self.file.clone(),
            });
        }
        Ok(fitting)
    }

    /// Describes what the lock has instead of the entry that is missing.
    fn listed(&self, found: impl Iterator<Item = String>, nothing: &str) -> String {
        let all: Vec<String> = found.collect();
        match all.as_slice() {
            [] if self.iree.is_empty() && self.python.is_empty() && !self.file.exists() => {
                "does not exist yet".to_owned()
            }
            [] => format!("has {nothing}"),
            _ => format!("has {}", all.join(", ")),
        }
    }
}

/// The minor version of a Python version: 11 for `3.11`.
fn minor(python: &str) -> Option<u32> {
    python.split('.').nth(1)?.parse().ok()
}

/// Maximum size of a lock, which has a line for each wheel and platform.
const MOST_BYTES: u64 = 16 << 20;

/// Name of the lock file, which is next to benchgate.toml.
pub const LOCK_FILE: &str = "benchgate.lock";

/// The format that this benchgate writes. A newer format is rejected.
const FORMAT: i64 = 1;

const HEADER: &str = "\
# Written by `benchgate tools pin`; don't edit. Review it like code: these files are executed.
";

impl Lock {
    /// Reads the lock of a configuration file. If the lock file does not exist, the lock is empty.
    ///
    /// # Errors
    /// The file exists and can't be read, or is not a lock file.
    pub fn read_for(config: &Path) -> Result<Self, ToolchainError> {
        Self::read(&Self::path_for(config))
    }

    /// The path of the lock file of a configuration file.
    pub fn path_for(config: &Path) -> PathBuf {
        config.with_file_name(LOCK_FILE)
    }

    /// Reads a lock file. If it does not exist, the lock is empty.
    ///
    /// # Errors
    /// The file exists and can't be read, or is not a lock file.
    pub fn read(file: &Path) -> Result<Self, ToolchainError> {
        let read = files::read_bounded(file, MOST_BYTES)
            .and_then(|bytes| String::from_utf8(bytes).map_err(std::io::Error::other));
        let text = match read {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => {
                return Err(ToolchainError::Lock { path: file.to_owned(), problem: error.to_string() });
            }
        };
        let mut lock =
            parse(&text).map_err(|problem| ToolchainError::Lock { path: file.to_owned(), problem })?;
        lock.file = file.to_owned();
        Ok(lock)
    }

    /// Writes the lock to its file, completely or not at all.
    pub fn write(&self) -> Result<(), ToolchainError> {
        files::sweep_drafts(&self.file);
        let text = render(self);
        files::write(&self.file, text.as_bytes()).map_err(ToolchainError::io("write", &self.file))
    }
}

fn render(lock: &Lock) -> String {
    let mut text = format!("{HEADER}format = {FORMAT}\n");
    // Here and below, errors are ignored because writing to a String can't fail.
    for tools in &lock.iree {
        let LockedTools { version, commit, wheels } = tools;
        let _ = write!(text, "\n[[iree]]\nversion = \"{version}\"\ncommit = \"{commit}\"\n");
        render_wheels(&mut text, wheels);
    }
    for env in &lock.python {
        let LockedPython { name, platform, python, requirements_sha256, wheels } = env;
        let _ = write!(
            text,
            "\n[[python]]\nname = \"{name}\"\nplatform = \"{platform}\"\npython = \"{python}\"\n\
             requirements-sha256 = \"{requirements_sha256}\"\n"
        );
        render_wheels(&mut text, wheels);
    }
    text
}

fn render_wheels(text: &mut String, wheels: &[Wheel]) {
    text.push_str("wheels = [\n");
    let mut sorted: Vec<&Wheel> = wheels.iter().collect();
    sorted.sort();
    for wheel in sorted {
        let _ = writeln!(text, "  {{ file = \"{}\", sha256 = \"{}\" }},", wheel.file, wheel.sha256);
    }
    text.push_str("]\n");
}

/// Parses a lock. A pull request's lock is untrusted input, so the format of every string is checked.
fn parse(text: &str) -> Result<Lock, String> {
    let document = toml_span::parse(text).map_err(|error| error.to_string())?;
    if text.trim().is_empty() {
        return Ok(Lock::default());
    }
    match document.pointer("/format").and_then(Value::as_integer) {
        Some(FORMAT) => {}
        Some(newer) if newer > FORMAT => {
            return Err(format!(
                "it has format {newer}, but this benchgate knows only {FORMAT}; update benchgate"
            ));
        }
        _ => return Err(format!("it lacks `format = {FORMAT}`")),
    }
    let iree = entries(&document, "iree")
        .map(|entry| {
            Ok(LockedTools {
                version: string(entry, "version", is_plain_version)?,
                commit: string(entry, "commit", is_plain_version)?,
                wheels: wheels(entry)?,
            })
        })
        .collect::<Result<_, String>>()?;
    let python = entries(&document, "python")
        .map(|entry| {
            Ok(LockedPython {
                name: string(entry, "name", is_plain_version)?,
                platform: string(entry, "platform", |text| is_plain_version(&text.replace('-', "_")))?,
                python: string(entry, "python", is_plain_version)?,
                requirements_sha256: string(entry, "requirements-sha256", is_sha256)?,
                wheels: wheels(entry)?,
            })
        })
        .collect::<Result<_, String>>()?;
    Ok(Lock { iree, python, ..Lock::default() })
}

fn entries<'a, 'de>(table: &'a Value<'de>, key: &str) -> impl Iterator<Item = &'a Value<'de>> {
    table.pointer(&format!("/{key}")).and_then(Value::as_array).into_iter().flatten()
}

fn string(table: &Value<'_>, key: &str, fits: impl Fn(&str) -> bool) -> Result<String, String> {
    let value = table.pointer(&format!("/{key}")).and_then(Value::as_str);
    let value = value.ok_or_else(|| format!("an entry lacks `{key}`"))?;
    if fits(value) { Ok(value.to_owned()) } else { Err(format!("`{key} = {value:?}` is not usable")) }
}

fn wheels(entry: &Value<'_>) -> Result<Vec<Wheel>, String> {
    entries(entry, "wheels")
        .map(|wheel| {
            Ok(Wheel {
                file: string(wheel, "file", |file| Name::parse(file).is_some())?,
                sha256: string(wheel, "sha256", is_sha256)?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock() -> Lock {
        let wheel = |file: &str| Wheel { file: file.into(), sha256: "0".repeat(64) };
        let mut lock = Lock::default();
        lock.put_tools(LockedTools {
            version: "3.13.0".into(),
            commit: "89ece87b89852100c0a4ac3d515e14842d090967".into(),
            wheels: vec![
                wheel("iree_base_compiler-3.13.0-cp311-cp311-manylinux_2_28_x86_64.whl"),
                wheel("iree_base_runtime-3.13.0-cp311-cp311-manylinux_2_28_x86_64.whl"),
            ],
        });
        lock.put_python(LockedPython {
            name: "torch-mlir".into(),
            platform: "linux-x86_64".into(),
            python: "3.11".into(),
            requirements_sha256: "a".repeat(64),
            wheels: vec![wheel("torch-2.15.0-cp311-cp311-manylinux_2_28_x86_64.whl")],
        });
        lock
    }

    #[test]
    fn a_lock_reads_as_it_was_written() {
        let lock = lock();
        assert_eq!(parse(&render(&lock)), Ok(lock));
        assert_eq!(parse(""), Ok(Lock::default()));
    }

    #[test]
    fn a_newer_or_damaged_lock_is_refused() {
        let text = render(&lock());
        for (from, to, problem) in [
            ("format = 1", "format = 2", "update benchgate"),
            ("format = 1", "", "lacks `format"),
            ("sha256 = \"0", "sha256 = \"z", "`sha256 = "),
            ("file = \"torch", "file = \"../torch", "`file = "),
            ("commit = ", "kommit = ", "lacks `commit`"),
            ("wheels = [", "wheels = {", ""),
        ] {
            let error = parse(&text.replace(from, to)).unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
        assert!(parse(&text[..text.len() / 2]).is_err());
    }

    #[test]
    fn putting_replaces_what_was_known_of_the_same() {
        let mut lock = lock();
        let mut newer = lock.iree[0].clone();
        newer.commit = "f".repeat(40);
        lock.put_tools(newer.clone());
        assert_eq!(lock.iree, [newer]);
        let mut other = lock.python[0].clone();
        other.python = "3.12".into();
        lock.put_python(other.clone());
        assert_eq!(lock.python.len(), 2);
        other.requirements_sha256 = "b".repeat(64);
        lock.put_python(other);
        assert_eq!(lock.python.len(), 1, "environments of other requirements are stale");
    }
}
