//! Writes all result files. A file appears complete or not at all, with the permissions that the umask allows. Devices,
//! pipes and open descriptors can't be replaced, so they are written to directly.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::unistd::AccessFlags;

use super::scratch::is_own;

/// Prefix of files that are being written.
const PREFIX: &str = ".benchgate-";

/// The kernel's limit for following links.
const MAX_LINKS: usize = 40;

/// A file that is being written.
#[derive(Debug)]
pub struct FileDraft {
    to: To,
}

#[derive(Debug)]
enum To {
    /// The draft replaces `path` once it is complete. Its lock shows that its writer is alive.
    Replace { file: tempfile::NamedTempFile, path: PathBuf },
    /// The draft is written to `path` directly. The file is opened by the first write and stays open, because
    /// the reader of a pipe would take closing it as the end.
    Through { path: PathBuf, file: Option<File> },
}

/// Writes a file completely or not at all, even if the power fails.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut draft = FileDraft::open(path)?;
    draft.write_all(content)?;
    draft.commit()
}

/// Writes one of many files completely or not at all. A symbolic link is replaced, not followed. The file is
/// not synced, so a power failure may lose it.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = named_file(folder_of(path))?;
    file.write_all(content)?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

impl FileDraft {
    /// Opens a draft of the file at `path`. If `path` is a symbolic link, its target is written.
    ///
    /// # Errors
    /// `path` is a folder or can't be written.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = follow(path)?;
        let found = fs::metadata(&path);
        let to = match found {
            Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(found) if !found.is_file() || is_open_descriptor(&path) => {
                nix::unistd::access(&path, AccessFlags::W_OK)?;
                To::Through { path, file: None }
            }
            _ => To::Replace { file: named_file(folder_of(&path))?, path },
        };
        Ok(Self { to })
    }

    /// Replaces the file at `path` with this draft.
    ///
    /// # Errors
    /// The draft can't be synced or renamed; the previous file is unchanged.
    pub fn commit(self) -> io::Result<()> {
        match self.to {
            To::Through { file, .. } => file.map_or(Ok(()), |mut file| file.flush()),
            To::Replace { file, path } => {
                file.as_file().sync_all()?;
                file.persist(path).map(drop).map_err(|error| error.error)
            }
        }
    }

    /// Commits a file that must not exist yet.
    ///
    /// # Errors
    /// Commits like [`FileDraft::commit`], but returns `AlreadyExists` if the file exists.
    pub fn commit_new(self) -> io::Result<()> {
        match self.to {
            To::Through { .. } => Err(io::ErrorKind::AlreadyExists.into()),
            To::Replace { file, path } => {
                file.as_file().sync_all()?;
                file.persist_noclobber(&path).map_err(|error| error.error)?;
                // The folder is synced too, so that the name survives a power failure.
                File::open(folder_of(&path))?.sync_all()
            }
        }
    }
}

impl Write for FileDraft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            To::Replace { file, .. } => file.write(bytes),
            To::Through { path, file } => match file {
                Some(file) => file.write(bytes),
                // The file is opened for appending, because `/dev/stdout` may be a file that
                // already contains part of our output.
                None => file.insert(OpenOptions::new().append(true).open(path)?).write(bytes),
            },
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            To::Replace { file, .. } => file.flush(),
            To::Through { file, .. } => file.as_mut().map_or(Ok(()), File::flush),
        }
    }
}

/// Removes unfinished files that dead processes of this user left in the folder of `output`. Files that can't
/// be removed are left to the next run.
pub fn sweep_drafts(output: &Path) {
    let Ok(path) = follow(output) else { return };
    let Ok(entries) = fs::read_dir(folder_of(&path)) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) || !is_own(&path, fs::Metadata::is_file) {
            continue;
        }
        // The file is opened for writing, because some network file systems refuse an exclusive
        // lock otherwise.
        let Ok(file) = OpenOptions::new().write(true).open(&path) else { continue };
        if file.try_lock().is_ok() {
            drop(fs::remove_file(&path));
        }
    }
}

/// The parent folder of a path.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Resolves symbolic links, even if the target does not exist yet. Links to open descriptors are not
/// resolved.
fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        if is_open_descriptor(&path) {
            return Ok(path);
        }
        match fs::read_link(&path) {
            Ok(target) => path = folder_of(&path).join(target),
            // The path is not a link, or does not exist.
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::from_raw_os_error(nix::libc::ELOOP))
}

/// Returns whether a path such as `/dev/stdout`, `/dev/fd/3` or `/proc/self/fd/3` names an open descriptor.
fn is_open_descriptor(path: &Path) -> bool {
    path.starts_with("/proc")
        || path.starts_with("/dev/fd")
        || ["/dev/stdout", "/dev/stderr"].iter().any(|name| path == Path::new(name))
}

/// Creates a file with normal permissions, and locks it so that no clean-up removes it.
fn named_file(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    loop {
        let mut builder = tempfile::Builder::new();
        // Temporary files are private by default; request normal permissions, which the umask restricts.
        builder.prefix(PREFIX).permissions(Permissions::from_mode(0o666));
        let file = builder.tempfile_in(folder)?;
        // A clean-up may have removed the file before it was locked. If the file system doesn't support
        // locks, no clean-up can lock it either, and it is safe.
        let is_taken = matches!(file.as_file().try_lock(), Err(TryLockError::WouldBlock));
        if !is_taken && file.path().exists() {
            return Ok(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt, symlink};

    use super::*;

    #[test]
    fn a_regular_file_is_replaced_with_the_rights_that_the_umask_leaves() {
        let folder = tempfile::tempdir().unwrap();
        let (path, plain) = (folder.path().join("run.json"), folder.path().join("plain"));
        File::create(&plain).unwrap();
        write(&path, b"old").unwrap();
        write(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&path), mode(&plain));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left over");
    }

    #[test]
    fn devices_and_pipes_are_written_to_and_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).unwrap()
        });
        write(&pipe, b"through").unwrap();
        assert_eq!(reader.join().unwrap(), "through");
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
        write(Path::new("/dev/null"), b"gone").unwrap();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        assert!(write(folder.path(), b"").is_err());
    }

    #[test]
    fn a_link_is_kept_even_if_its_target_does_not_exist_yet() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("there")).unwrap();
        let (link, target) = (folder.path().join("link"), folder.path().join("there/file"));
        symlink("there/file", &link).unwrap();
        for content in ["first", "second"] {
            write(&link, content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&target).unwrap(), content);
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        }
        let circle = folder.path().join("circle");
        symlink(&circle, &circle).unwrap();
        assert!(write(&circle, b"").is_err());
    }

    #[test]
    fn an_open_descriptor_is_appended_to_and_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("redirected");
        let mut open = File::create(&path).unwrap();
        open.write_all(b"printed, ").unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&open);
        write(Path::new(&format!("/proc/self/fd/{number}")), b"written").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "printed, written");
    }

    #[test]
    fn the_unfinished_file_of_a_dead_process_is_removed_and_that_of_a_live_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("run.json");
        let left = folder.path().join(".benchgate-abc123");
        fs::write(&left, "half").unwrap();
        let mut draft = FileDraft::open(&output).unwrap();
        sweep_drafts(&output);
        assert!(!left.exists());
        draft.write_all(b"whole").unwrap();
        draft.commit().unwrap();
        assert_eq!(fs::read(&output).unwrap(), b"whole");
    }
}
