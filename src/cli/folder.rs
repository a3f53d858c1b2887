//! A folder given where a file is expected: the results below it.

use std::path::{Path, PathBuf};

use crate::ingest::{self, Format};
use crate::model::{BenchmarkName, Run};

use super::{CliError, reading};

/// More files than this are a mistake in the path.
const MOST_FILES: usize = 10_000;
/// Levels of folders below the one that was named.
const DEEPEST: usize = 16;

/// The regular files below a folder that may be results, in a stable order. Links are not followed: a folder
/// that someone else packed must not name files outside it.
///
/// # Errors
/// A folder that can't be listed, has no files, or has too many.
pub fn results(folder: &Path) -> Result<Vec<String>, CliError> {
    let mut found = Vec::new();
    collect(folder, DEEPEST, &mut found)?;
    found.sort();
    let kept: Vec<String> = found
        .iter()
        .filter(|path| !is_left_by_criterion(path))
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    if kept.is_empty() {
        return Err(failed(folder, "it has no files"));
    }
    Ok(kept)
}

fn collect(folder: &Path, deepest: usize, found: &mut Vec<PathBuf>) -> Result<(), CliError> {
    if deepest == 0 {
        return Err(failed(folder, "folders are nested too deeply"));
    }
    let entries = std::fs::read_dir(folder).map_err(|error| failed(folder, &error.to_string()))?;
    for entry in entries {
        let (entry, kind) = entry
            .and_then(|entry| entry.file_type().map(|kind| (entry, kind)))
            .map_err(|error| failed(folder, &error.to_string()))?;
        if kind.is_dir() {
            collect(&entry.path(), deepest - 1, found)?;
        } else if kind.is_file() || !entry.path().exists() {
            // A link to nothing stands for a result that is gone; reading it says so.
            found.push(entry.path());
        }
        if found.len() > MOST_FILES {
            return Err(failed(folder, &format!("it has more than {MOST_FILES} files")));
        }
    }
    Ok(())
}

/// Gives a result of criterion the name that `benchmark.json` next to it states; elsewhere only the folders have it.
/// Samples must agree with the `estimates.json` next to them.
///
/// # Errors
/// A `benchmark.json` or `estimates.json` that can't be read.
pub fn named_by_criterion(mut run: Run, format: Format, path: &Path) -> Result<Run, CliError> {
    let estimates = path.with_file_name("estimates.json");
    if format == Format::CriterionSample && path.ends_with("sample.json") && estimates.is_file() {
        ingest::check_criterion(&mut run, &reading::file(&estimates)?)
            .map_err(|why| CliError::input(format!("failed to read {}: {why}", estimates.display())))?;
    }
    let stated = path.with_file_name("benchmark.json");
    if !matches!(format, Format::CriterionSample | Format::CriterionEstimates) || !stated.is_file() {
        return Ok(run);
    }
    let name = ingest::criterion_name(&reading::file(&stated)?)
        .map_err(|why| CliError::input(format!("failed to read {}: {why}", stated.display())))?;
    for benchmark in &mut run.benchmarks {
        benchmark.rename(BenchmarkName::new(&name));
    }
    Ok(run)
}

/// criterion keeps two states of each benchmark and writes each twice: `new` is the latest, and `sample.json` has the
/// samples behind `estimates.json`. `benchmark.json` and `tukey.json` describe them.
fn is_left_by_criterion(path: &Path) -> bool {
    let Some(folder) = path.parent() else { return false };
    let name = path.file_name().and_then(|name| name.to_str());
    if matches!(name, Some("benchmark.json" | "tukey.json")) {
        return folder.join("estimates.json").is_file();
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
