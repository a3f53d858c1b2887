//! Paths of benchgate's own folders and outputs.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::files::{self, FileDraft};

use super::CliError;

/// The cache folder: the given one, or else `$XDG_CACHE_HOME/benchgate`, or else `~/.cache/benchgate`.
pub fn cache_dir(given: Option<&Path>) -> Result<PathBuf, CliError> {
    if let Some(given) = given {
        return std::path::absolute(given).map_err(|error| {
            CliError::usage(format!("failed to find the cache folder {}: {error}", given.display()))
        });
    }
    // The XDG base directory specification requires that a relative path is ignored.
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
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
        return Err(failed(format!("there is no folder {}", folder.display())));
    }
    files::sweep_drafts(output);
    // Only the kind is shown, because the full error names a temporary file that means nothing to the user.
    FileDraft::open(output)
        .map(drop)
        .map_err(|error| failed(format!("its folder can't be written to: {}", error.kind())))
}
