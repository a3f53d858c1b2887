//! Reads untrusted files: regular files only, and never more than a bound.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// The whole content of a regular file of at most `most` bytes.
///
/// # Errors
/// The file can't be read, is not a regular file, or is larger.
pub fn read_bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let (file, length) = open_bounded(path, most)?;
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default() + 1);
    // Reads one byte more than allowed to detect a file that is longer or grows meanwhile.
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(too_large(bytes.len() as u64, most));
    }
    Ok(bytes)
}

/// A regular file of at most `most` bytes, opened, and its length. A pipe would wait for its writer, and a device such as
/// `/dev/zero` never ends.
///
/// # Errors
/// The file can't be opened, is not a regular file, or is larger.
pub fn open_bounded(path: &Path, most: u64) -> io::Result<(File, u64)> {
    // Before opening it, because opening a pipe already waits.
    let found = fs::metadata(path)?;
    if !found.is_file() {
        let what = if found.is_dir() { "it is a folder" } else { "it is not a regular file" };
        return Err(io::Error::other(what));
    }
    if found.len() > most {
        return Err(too_large(found.len(), most));
    }
    Ok((File::open(path)?, found.len()))
}

fn too_large(bytes: u64, most: u64) -> io::Error {
    io::Error::new(
        io::ErrorKind::FileTooLarge,
        format!("it is too large ({} or more; the limit is {})", size(bytes), size(most)),
    )
}

fn size(bytes: u64) -> String {
    match bytes {
        1_048_576.. => format!("{} MiB", bytes >> 20),
        _ => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_within_the_bound_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, b"12345678").unwrap();
        assert_eq!(read_bounded(&path, 8).unwrap(), b"12345678");
        assert_eq!(read_bounded(&path, 7).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read_bounded(&folder.path().join("b"), 7).unwrap_err().kind(), io::ErrorKind::NotFound);
        for other in [folder.path(), Path::new("/dev/zero")] {
            assert!(read_bounded(other, 8).is_err(), "{}", other.display());
        }
    }
}
