//! Where benchgate keeps things.

use std::path::{Path, PathBuf};

use super::CliError;

/// The cache folder: as given, else `$XDG_CACHE_HOME/benchgate`, else `~/.cache/benchgate`.
pub fn cache_dir(given: Option<&Path>) -> Result<PathBuf, CliError> {
    if let Some(given) = given {
        return std::path::absolute(given).map_err(|error| CliError::Usage {
            message: format!("failed to find the cache folder {}: {error}", given.display()),
            hint: None,
        });
    }
    // The base directory specification: a relative path in the variable is to be ignored.
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .map(|cache| cache.join("benchgate"))
        .ok_or_else(|| CliError::Usage {
            message: "failed to find a cache folder: neither XDG_CACHE_HOME nor HOME is set".to_owned(),
            hint: Some("name one with --cache-dir or BENCHGATE_CACHE".to_owned()),
        })
}
