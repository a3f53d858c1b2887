//! Patterns of names that the shell left to benchgate.

use std::path::{Path, PathBuf};

use super::CliError;

/// Whether a name is a pattern.
pub fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}

/// The files below the pattern's fixed folders that match it or, if it matches none, the folders that do.
///
/// # Errors
/// A pattern that can't be read.
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
    // `**` may go deeper than the pattern has parts; links are not followed, so it ends.
    let depth = if pattern.contains("**") { usize::MAX } else { parts.len() - fixed };
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    walk(&root, depth, &mut |path, is_folder| {
        if let Some(text) = path.to_str()
            && matcher.is_match(text)
        {
            if is_folder { &mut folders } else { &mut files }.push(text.to_owned());
        }
    });
    let mut found = if files.is_empty() { folders } else { files };
    found.sort();
    Ok(found)
}

/// Calls `visit` with every file and folder at most `depth` levels below `folder`, and whether it is a folder.
fn walk(folder: &Path, depth: usize, visit: &mut impl FnMut(&Path, bool)) {
    let listed = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    // A folder that can't be listed has no matches; the caller says when nothing matched.
    let Ok(entries) = std::fs::read_dir(listed) else { return };
    for entry in entries.flatten() {
        let path = folder.join(entry.file_name());
        let Ok(kind) = entry.file_type() else { continue };
        visit(&path, kind.is_dir());
        if kind.is_dir() && depth > 1 {
            walk(&path, depth - 1, visit);
        }
    }
}
