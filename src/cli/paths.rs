//! Paths of benchgate's own folders and outputs.
//!
//! Glob patterns that the shell did not expand.

use std::io::Read;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use crate::files::{self, FileDraft};
use crate::model::{counted, shell_word};

use super::CliError;

/// A path that does not depend on the current folder. `what` describes it in messages.
pub fn absolute(what: &str, path: &Path) -> Result<PathBuf, CliError> {
    std::path::absolute(path)
        .map_err(|error| CliError::usage(format!("failed to find {what}{}: {error}", path.display())))
}

/// The cache folder: the given one, or else `$XDG_CACHE_HOME/benchgate`, or else `~/.cache/benchgate`.
pub fn cache_dir(given: Option<&Path>) -> Result<PathBuf, CliError> {
    if let Some(given) = given {
        return absolute("the cache folder ", given);
    }
    // The XDG base directory specification requires that a relative path is ignored.
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    variable("XDG_CACHE_HOME")
        .or_else(|| variable("HOME").map(|home| home.join(".cache")))
        .map(|cache| cache.join("benchgate"))
        .ok_or_else(|| {
            CliError::usage("failed to find a cache folder: neither XDG_CACHE_HOME nor HOME is set")
                .hint("name one with --cache-dir or BENCHGATE_CACHE")
        })
}

/// Removes the result at `output` that an earlier attempt left or a pull request committed, so that any
/// result found there is from this attempt. It is called when measuring begins, because a command that is
/// refused or that waits for another job must not remove the user's result. (In a job it is removed earlier, by
/// `job::leave_no_earlier_result`.) Devices and pipes are kept, and any other file is an error.
pub fn remove_output(output: &Path) -> Result<(), CliError> {
    if !is_earlier_result(output)? {
        return Ok(());
    }
    std::fs::remove_file(output).map_err(|error| {
        CliError::usage(format!("failed to remove the previous {}: {error}", output.display()))
            .hint("name another file, in a folder that can be written to")
    })
}

/// Returns true if there is an earlier result at `output`, which the new one replaces. Any other file is an
/// error.
pub fn is_earlier_result(output: &Path) -> Result<bool, CliError> {
    let Ok(found) = std::fs::symlink_metadata(output) else { return Ok(false) };
    // `/dev/stdout` is a link too, but it belongs to the system.
    let own_link = found.is_symlink() && !output.starts_with("/dev") && !output.starts_with("/proc");
    if !found.is_file() && !own_link {
        return Ok(false);
    }
    if !own_link && !is_result(output) {
        return Err(CliError::usage(format!(
            "{} exists and is not a result of benchgate, so it is not replaced",
            output.display()
        ))
        .hint("name another file, or remove this one"));
    }
    Ok(true)
}

/// Returns true if a file is empty, or begins with the name of a schema as benchgate's own files do.
pub fn is_result(file: &Path) -> bool {
    const BEGINNING: usize = 200;
    let mut beginning = Vec::new();
    let read =
        std::fs::File::open(file).and_then(|file| file.take(BEGINNING as u64).read_to_end(&mut beginning));
    read.is_ok() && (beginning.is_empty() || String::from_utf8_lossy(&beginning).contains("\"benchgate/"))
}

/// Refuses an output that the command also reads, because the input would be removed or replaced.
pub fn refuse_input_as_output<'a>(
    output: &Path,
    mut inputs: impl Iterator<Item = &'a Path>,
) -> Result<(), CliError> {
    let Ok(found) = std::fs::canonicalize(output) else { return Ok(()) };
    if !found.is_file() || !inputs.any(|input| std::fs::canonicalize(input).is_ok_and(|input| input == found))
    {
        return Ok(());
    }
    Err(CliError::usage(format!("{} is read by this command, and can't be its output", output.display()))
        .hint("name another file, outside of the folders that are read"))
}

/// Checks that the output can be written, so that the command fails before an hour of measuring and not after
/// it.
pub fn check_writable(output: &Path) -> Result<(), CliError> {
    let failed = |why: String| {
        CliError::usage(format!("failed to write {}: {why}", output.display()))
            .hint("name a file in a folder that exists and can be written to")
    };
    if output.is_dir() {
        return Err(failed("it is a folder".to_owned()));
    }
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.exists() {
        return Err(failed(format!("the folder `{}` does not exist", folder.display())));
    }
    files::sweep_drafts(output);
    // Only the kind is shown, because the full error names a temporary file that means nothing to the user.
    FileDraft::open(output)
        .map(drop)
        .map_err(|error| failed(format!("its folder can't be written to: {}", error.kind())))
}

/// Returns true if a name is a glob pattern.
pub fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}

/// The files that match a pattern or, if no file matches or the pattern ends with a slash, the matching
/// folders. The search starts at the pattern's last folder without a wildcard.
///
/// # Errors
/// An invalid pattern; no match; files and folders that match one pattern, because the results in the folders
/// would be lost.
pub fn matches(pattern: &str) -> Result<Vec<String>, CliError> {
    let (given, pattern) = (pattern, pattern.trim_end_matches('/'));
    let glob = globset::GlobBuilder::new(pattern).literal_separator(true).build().map_err(|error| {
        CliError::usage(format!("failed to read the pattern {pattern}: {}", error.kind()))
    })?;
    let matcher = glob.compile_matcher();
    let parts: Vec<&str> = pattern.split('/').collect();
    let fixed = parts.iter().take_while(|part| !is_glob(part)).count().min(parts.len() - 1);
    let root = match parts[..fixed].join("/") {
        folder if folder.is_empty() && pattern.starts_with('/') => PathBuf::from("/"),
        folder => PathBuf::from(folder),
    };
    // `**` matches any number of folders. The search still ends, because links are not followed.
    let depth = if pattern.contains("**") { usize::MAX } else { parts.len() - fixed };
    // Paths below the current folder are returned without a leading `./`.
    let (listed, prefix) =
        if root.as_os_str().is_empty() { (Path::new("."), ".") } else { (root.as_path(), "") };
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    // A folder that can't be listed has no matches.
    for entry in WalkDir::new(listed).min_depth(1).max_depth(depth).into_iter().flatten() {
        let path = entry.path().strip_prefix(prefix).unwrap_or(entry.path());
        if let Some(text) = path.to_str()
            && matcher.is_match(text)
        {
            if entry.file_type().is_dir() { &mut folders } else { &mut files }.push(text.to_owned());
        }
    }
    let only_folders = given.len() > pattern.len();
    // A folder that matches `**` is not left out if files in it match too.
    let is_left_out = |folder: &String| {
        let has_entries = std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
        has_entries && !files.iter().any(|file| Path::new(file).starts_with(folder))
    };
    if !files.is_empty() && !only_folders && folders.iter().any(is_left_out) {
        let (of_files, of_folders) = (counted(files.len(), "file"), counted(folders.len(), "folder"));
        return Err(CliError::usage(format!("{given} matches {of_files} and {of_folders}")).hint(format!(
            "match only one kind: `{}` selects the folders, and a pattern with the file extension selects the files",
            shell_word(format!("{given}/"))
        )));
    }
    let mut found = if only_folders || files.is_empty() { folders } else { files };
    if found.is_empty() {
        let place = listed.display();
        let hint = if !listed.is_dir() {
            format!("the folder `{place}` does not exist")
        } else if depth == 1 {
            format!("no name in the folder {place} matches `{}`", parts[fixed])
        } else {
            format!("no path below the folder {place} matches `{}`", parts[fixed..].join("/"))
        };
        let what = if only_folders { "folder" } else { "file" };
        return Err(CliError::input(format!("failed to find a {what} that matches {given}")).hint(hint));
    }
    found.sort();
    Ok(found)
}
