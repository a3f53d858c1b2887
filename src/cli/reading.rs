//! Reads results, which anyone may have written: regular files only, and never more than a bound.

use std::io::{self, Read};
use std::path::Path;

use crate::files;
use crate::ingest;
use crate::model::Run;
use crate::record::MOST_RESULT_BYTES;

use super::CliError;

const SMALLER: &str = "split the suite, or measure fewer repetitions";

/// The whole content of a result.
///
/// # Errors
/// A file that can't be read, is not a regular file, or is too large.
pub fn file(path: &Path) -> Result<Vec<u8>, CliError> {
    files::read_bounded(path, MOST_RESULT_BYTES).map_err(|error| {
        CliError::input(format!("failed to read {}: {error}", path.display())).maybe_hint(
            match error.kind() {
                io::ErrorKind::FileTooLarge => Some(SMALLER),
                io::ErrorKind::NotFound if path.ends_with("run.json") => {
                    Some("`benchgate run` and `benchgate gate` write it; or name another result")
                }
                io::ErrorKind::Other => Some("name a file; `-` reads a pipe if the command reads stdin"),
                _ => None,
            },
        )
    })
}

/// From this size on a result is read in pieces where its format allows it.
const LARGE: u64 = 1 << 20;

/// A large foreign result, read in pieces. `None` if [`file`] has to read it or to report its problem.
pub fn in_pieces(path: &Path) -> Option<Run> {
    let (file, length) = files::open_bounded(path, MOST_RESULT_BYTES).ok()?;
    if length < LARGE {
        return None;
    }
    ingest::read_in_pieces(file.take(MOST_RESULT_BYTES), &path.to_string_lossy())
}

/// The whole content of stdin.
pub fn stdin() -> Result<Vec<u8>, CliError> {
    let failed = |what: &dyn std::fmt::Display, hint: Option<&str>| {
        CliError::input(format!("failed to read -: {what}")).maybe_hint(hint)
    };
    let mut bytes = Vec::new();
    // One byte more than allowed distinguishes a result of that size from a longer one.
    io::stdin()
        .lock()
        .take(MOST_RESULT_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| failed(&error, None))?;
    if bytes.len() as u64 > MOST_RESULT_BYTES {
        let what = format!("it is too large (the limit is {} MiB)", MOST_RESULT_BYTES >> 20);
        return Err(failed(&what, Some(SMALLER)));
    }
    Ok(bytes)
}
