//! Reads results, which may be untrusted: only regular files, and only up to a size limit.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::files;
use crate::ingest;
use crate::ingest::{FileContent, Format};
use crate::model::Run;
use crate::record::MOST_RESULT_BYTES;

use super::CliError;

const SMALLER: &str = "split the suite, or measure fewer repetitions";

/// Reads the whole content of a result.
///
/// # Errors
/// A file that can't be read, is not a regular file, or is too large.
pub fn file(path: &Path) -> Result<Vec<u8>, CliError> {
    files::read_bounded(path, MOST_RESULT_BYTES).map_err(|error| {
        CliError::input(format!("failed to read {}: {error}", path.display())).maybe_hint(
            match error.kind() {
                io::ErrorKind::FileTooLarge => Some(SMALLER),
                io::ErrorKind::NotFound if path.ends_with("run.json") => {
                    Some("`benchgate run` and `benchgate gate` write this file; or name another result")
                }
                io::ErrorKind::Other => Some("name one regular file"),
                _ => None,
            },
        )
    })
}

/// The size from which a result is read in pieces, if its format allows it.
const LARGE: u64 = 1 << 20;

/// Reads a large result of another tool in pieces. Returns `None` if [`file`] has to read it, or to report
/// its problem.
pub fn in_pieces(path: &Path) -> Option<Run> {
    let (file, length) = files::open_bounded(path, MOST_RESULT_BYTES).ok()?;
    if length < LARGE {
        return None;
    }
    ingest::read_in_pieces(file.take(MOST_RESULT_BYTES), &path.to_string_lossy())
}

/// Reads the whole content of stdin.
pub fn stdin() -> Result<Vec<u8>, CliError> {
    let failed = |what: &dyn std::fmt::Display, hint: Option<&str>| {
        CliError::input(format!("failed to read -: {what}")).maybe_hint(hint)
    };
    let mut bytes = Vec::new();
    // Reading one byte more than allowed shows whether the input is too long.
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

// The rest of this file finds the results in a folder that is given instead of a file.

/// The maximum number of files. With more files, the path is probably wrong.
const MOST_FILES: usize = 10_000;
/// The maximum depth of folders below the given one.
const DEEPEST: usize = 16;

/// The regular files below a folder that may be results, in a stable order. Links are not followed, because a
/// folder that someone else packed must not lead to files outside it.
///
/// # Errors
/// A folder that can't be listed, has no files, or has too many.
pub fn results(folder: &Path) -> Result<Vec<String>, CliError> {
    let mut found = Vec::new();
    let real = folder.canonicalize().map_err(|error| failed(folder, &error.to_string()))?;
    collect(folder, &real, DEEPEST, &mut found)?;
    found.sort();
    let is_sample =
        |path: &&PathBuf| ["sample.json", "estimates.json"].iter().any(|name| path.ends_with(name));
    // A saved baseline of criterion is read if the user named its own folder.
    let is_criterion = found.iter().any(|path| is_sample(&path))
        && !found.iter().filter(is_sample).any(|path| path.parent() == Some(folder));
    let kept: Vec<String> = found
        .iter()
        .filter(|path| !(is_criterion && is_left_by_criterion(path)))
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    if kept.is_empty() {
        return Err(failed(folder, "it has no files"));
    }
    Ok(kept)
}

/// Collects the files below `folder`. `root` is the real path of the folder that the user named. Links to
/// something inside it, such as `latest`, are ignored, because they would name a result twice.
fn collect(folder: &Path, root: &Path, deepest: usize, found: &mut Vec<PathBuf>) -> Result<(), CliError> {
    if deepest == 0 {
        return Err(failed(folder, "folders are nested too deeply"));
    }
    let entries = std::fs::read_dir(folder).map_err(|error| failed(folder, &error.to_string()))?;
    for entry in entries {
        let (entry, kind) = entry
            .and_then(|entry| entry.file_type().map(|kind| (entry, kind)))
            .map_err(|error| failed(folder, &error.to_string()))?;
        if kind.is_dir() {
            collect(&entry.path(), root, deepest - 1, found)?;
        } else if kind.is_file() || !entry.path().exists() {
            // A broken link stands for a result that is gone; reading it later reports the error.
            found.push(entry.path());
        } else if !kind.is_symlink()
            || !entry.path().canonicalize().is_ok_and(|target| target.starts_with(root))
        {
            let what =
                if kind.is_symlink() { "a link out of the folder" } else { "neither a file nor a folder" };
            return Err(failed(&entry.path(), &format!("it is {what}, so a result in it would be missed")));
        }
        if found.len() > MOST_FILES {
            return Err(failed(folder, &format!("it has more than {MOST_FILES} files")));
        }
    }
    Ok(())
}

/// Names a criterion result as in the `benchmark.json` next to it, because otherwise only the folders contain
/// the name. Samples must agree with the `estimates.json` next to them.
///
/// # Errors
/// A `benchmark.json` or `estimates.json` that can't be read.
pub fn named_by_criterion(mut run: Run, format: Format, path: &Path) -> Result<Run, CliError> {
    let estimates = path.with_file_name("estimates.json");
    if format == Format::CriterionSample && path.ends_with("sample.json") && estimates.is_file() {
        ingest::check_criterion(&mut run, &file(&estimates)?)
            .map_err(|why| CliError::input(format!("failed to read {}: {why}", estimates.display())))?;
    }
    let stated = path.with_file_name("benchmark.json");
    if !matches!(format, Format::CriterionSample | Format::CriterionEstimates) || !stated.is_file() {
        return Ok(run);
    }
    ingest::describe_criterion(&mut run, &file(&stated)?)
        .map_err(|why| CliError::input(format!("failed to read {}: {why}", stated.display())))?;
    Ok(run)
}

/// Returns true for files of criterion that repeat or describe a result. It keeps two states of each
/// benchmark, of which `new` is the latest, and writes each state twice: `sample.json` has the samples behind
/// `estimates.json`. `benchmark.json` and `tukey.json` describe them, and `report` has the plots.
fn is_left_by_criterion(path: &Path) -> bool {
    let Some(folder) = path.parent() else { return false };
    let name = path.file_name().and_then(|name| name.to_str());
    if matches!(name, Some("benchmark.json" | "tukey.json")) {
        return ["sample.json", "estimates.json"].into_iter().any(|name| folder.join(name).is_file());
    }
    if folder.ends_with("report") {
        return path.extension().is_some_and(|kind| kind == "html" || kind == "svg");
    }
    if !matches!(name, Some("sample.json" | "estimates.json")) {
        return false;
    }
    let summarized = name == Some("estimates.json") && folder.join("sample.json").is_file();
    let newer = |name: &str| folder.with_file_name("new").join(name).is_file();
    let older = !folder.ends_with("new") && ["sample.json", "estimates.json"].into_iter().any(newer);
    summarized || older
}

fn failed(folder: &Path, why: &str) -> CliError {
    CliError::input(format!("failed to find results in {}: {why}", folder.display()))
        .hint("name the files, or a quoted glob that matches them")
}

/// Returns true if an unrecognized file of a folder could be a result that can't be read. `extensions` are
/// the file extensions of all results of this side.
pub fn may_be_result(path: &Path, content: FileContent, extensions: &HashSet<Option<&OsStr>>) -> bool {
    // The extension before the last one, as in `2.json.zip` or `2.json.part`.
    let inner = path.file_stem().map(Path::new).and_then(Path::extension);
    let named = extensions.contains(&path.extension());
    match content {
        FileContent::Compressed => true,
        FileContent::Archive => named || inner.is_some() && extensions.contains(&inner) || is_zip(path),
        // An interrupted process leaves files like these.
        FileContent::Empty | FileContent::Utf16 | FileContent::BrokenJson => named,
        FileContent::Binary => named || inner.is_some() && extensions.contains(&inner),
        // A log of a command that failed has no results, and no format recognizes it.
        FileContent::Html | FileContent::Text => named,
        _ => false,
    }
}

fn is_zip(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("zip"))
}
