//! Glob patterns that the shell did not expand.

use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use crate::model::counted;
use crate::process::shell_word;

use super::CliError;

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
            format!("there is no folder {place}")
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
