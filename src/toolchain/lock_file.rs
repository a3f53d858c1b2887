//! Reads and writes a lock as a file next to the configuration. It is TOML with a line per wheel, sorted, so that
//! a review shows what changed.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use toml_span::Value;

use crate::files;
use crate::model::is_sha256;

use super::ToolchainError;
use super::lock::{Lock, LockedPython, LockedTools};
use super::wheel::{Name, Wheel, is_plain_version};

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
