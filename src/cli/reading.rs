//! Reads results, which anyone may have written: regular files only, and never more than a bound.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use super::CliError;

/// Bytes of a result. 5,000 benchmarks with every sample take a tenth of it.
pub const MOST_BYTES: u64 = 512 << 20;

/// The whole content of a result.
///
/// # Errors
/// A file that can't be read, is not a regular file, or is too large.
pub fn file(path: &Path) -> Result<Vec<u8>, CliError> {
    let failed = |what: &dyn std::fmt::Display| CliError::Input {
        message: format!("failed to read {}: {what}", path.display()),
        hint: None,
    };
    // Before opening it, because opening a pipe waits for its writer.
    let found = fs::metadata(path).map_err(|error| failed(&error))?;
    if !found.is_file() {
        let what = if found.is_dir() { "it is a folder" } else { "it is not a regular file" };
        return Err(CliError::Input {
            message: format!("failed to read {}: {what}", path.display()),
            hint: Some("name a file; where the command reads stdin, `-` takes a pipe".to_owned()),
        });
    }
    let label = path.display().to_string();
    if found.len() > MOST_BYTES {
        return Err(too_large(&label, found.len()));
    }
    let file = File::open(path).map_err(|error| failed(&error))?;
    bounded(file, found.len(), &label)
}

/// The whole content of stdin.
///
/// # Errors
/// As [`file`].
pub fn stdin() -> Result<Vec<u8>, CliError> {
    bounded(io::stdin().lock(), 0, "-")
}

fn bounded(source: impl Read, size: u64, label: &str) -> Result<Vec<u8>, CliError> {
    let mut bytes = Vec::with_capacity(usize::try_from(size.min(MOST_BYTES)).unwrap_or_default() + 1);
    // One byte more than allowed tells a file of the limit from a longer one.
    source.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| CliError::Input {
        message: format!("failed to read {label}: {error}"),
        hint: None,
    })?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(too_large(label, bytes.len() as u64));
    }
    Ok(bytes)
}

fn too_large(label: &str, bytes: u64) -> CliError {
    CliError::Input {
        message: format!(
            "failed to read {label}: it is too large ({} MiB or more; the limit is {} MiB)",
            bytes >> 20,
            MOST_BYTES >> 20
        ),
        hint: Some("split the suite, or measure fewer repetitions".to_owned()),
    }
}
