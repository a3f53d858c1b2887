//! Glob patterns that the shell did not expand.

use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use super::CliError;

/// Returns true if a name is a glob pattern.
pub fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}

/// The files that match a pattern or, if there are none, the folders that do. The search starts at the
/// pattern's last folder without a wildcard.
///
/// # Errors
/// An invalid pattern.
pub fn matches(pattern: &str) -> Result<Vec<String>, CliError> {
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
    // A folder that can't be listed has no matches, and the caller reports if there are none at all.
    for entry in WalkDir::new(listed).min_depth(1).max_depth(depth).into_iter().flatten() {
        let path = entry.path().strip_prefix(prefix).unwrap_or(entry.path());
        if let Some(text) = path.to_str()
            && matcher.is_match(text)
        {
            if entry.file_type().is_dir() { &mut folders } else { &mut files }.push(text.to_owned());
        }
    }
    let mut found = if files.is_empty() { folders } else { files };
    found.sort();
    Ok(found)
}
