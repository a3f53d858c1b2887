//! SHA-256 of a file.

use std::fs::File;
use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::model::hex;

/// SHA-256 of a file's content, read in pieces.
pub fn sha256_of(path: &Path) -> io::Result<String> {
    struct HashingWriter(Sha256);
    impl io::Write for HashingWriter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    const PIECE: usize = 1 << 20;
    let mut hash = HashingWriter(Sha256::new());
    io::copy(&mut io::BufReader::with_capacity(PIECE, File::open(path)?), &mut hash)?;
    Ok(hex(&hash.0.finalize()))
}
