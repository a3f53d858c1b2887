//! A tool's output: its log, the part kept in memory, and the tail for error messages. Each has a size limit.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::ProcessError;

/// Maximum number of bytes of stdout kept in memory. The JSON of a thousand repetitions has less than a
/// megabyte.
pub(super) const CAPTURE_LIMIT: usize = 64 << 20;
/// Maximum number of bytes that one run adds to its log, so that a tool can't fill the disk.
const LOG_LIMIT: u64 = 64 << 20;
/// The last line of a log that was truncated.
pub const LOG_CUT: &str = "[the rest was dropped: the log reached its limit]";
/// Maximum number of bytes of stderr kept for messages.
const TAIL_LIMIT: usize = 16 << 10;

/// A log file with a size limit, to which output is appended.
pub(super) struct Log {
    file: Option<File>,
    path: PathBuf,
    left: u64,
}

impl Log {
    /// Opens the log and creates its folder. Without a path, all output is discarded.
    pub(super) fn open(path: Option<&Path>) -> Result<Self, ProcessError> {
        let open = |path: &Path| {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            OpenOptions::new().create(true).append(true).open(path)
        };
        let file = path
            .map(|path| open(path).map_err(|source| ProcessError::Log { path: path.to_owned(), source }))
            .transpose()?;
        Ok(Self { file, path: path.map(Path::to_owned).unwrap_or_default(), left: LOG_LIMIT })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), ProcessError> {
        self.append(bytes).map_err(|source| ProcessError::Log { path: self.path.clone(), source })
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        if self.left == 0 {
            return Ok(());
        }
        let take = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
        let (kept, rest) = bytes.split_at(take);
        file.write_all(kept)?;
        self.left -= kept.len() as u64;
        if !rest.is_empty() {
            self.left = 0;
            file.write_all(format!("\n{LOG_CUT}\n").as_bytes())?;
        }
        Ok(())
    }
}

/// The first bytes of a stream, up to a limit.
#[derive(Default)]
pub(super) struct OutputHead {
    pub(super) bytes: Vec<u8>,
    pub(super) truncated: bool,
}

impl OutputHead {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let take = bytes.len().min(CAPTURE_LIMIT - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..take]);
        self.truncated |= take < bytes.len();
    }
}

/// The last bytes of a stream.
#[derive(Default)]
pub(super) struct Tail {
    bytes: Vec<u8>,
}

impl Tail {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL_LIMIT)..]);
        // The buffer is cut only at twice the limit, so that a tool that prints byte by byte does not shift
        // it every time.
        if self.bytes.len() > 2 * TAIL_LIMIT {
            self.bytes.drain(..self.bytes.len() - TAIL_LIMIT);
        }
    }

    pub(super) fn into_text(self) -> String {
        let from = self.bytes.len().saturating_sub(TAIL_LIMIT);
        String::from_utf8_lossy(&self.bytes[from..]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_keeps_the_end() {
        let mut tail = Tail::default();
        for number in 0..100_000 {
            tail.push(format!("{number}\n").as_bytes());
        }
        let text = tail.into_text();
        assert!(text.ends_with("99999\n"));
        assert_eq!(text.len(), TAIL_LIMIT);
    }

    #[test]
    fn a_log_says_where_it_was_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logs/a.log");
        let mut log = Log::open(Some(&path)).unwrap();
        log.left = 4;
        log.write(b"abc").unwrap();
        log.write(b"defg").unwrap();
        log.write(b"hij").unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        assert_eq!(text, "abcd\n[the rest was dropped: the log reached its limit]\n");
    }
}
