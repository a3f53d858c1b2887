//! SHA-256 of a file.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

use benchgate_core::model::hex;

/// SHA-256 of a file's content, read in pieces.
pub fn sha256_of(path: &Path) -> io::Result<String> {
    sha256_unless(path, || false)
}

/// Hashes a file, and gives up between two pieces with [`ErrorKind::Interrupted`] as soon as `stopped` returns true: a
/// file, especially a sparse one, may take too long.
pub fn sha256_unless(path: &Path, stopped: impl Fn() -> bool) -> io::Result<String> {
    const PIECE: usize = 1 << 20;
    let (mut file, mut hash, mut piece) = (File::open(path)?, Sha256::new(), vec![0; PIECE]);
    loop {
        if stopped() {
            return Err(ErrorKind::Interrupted.into());
        }
        match file.read(&mut piece) {
            Ok(0) => return Ok(hex(&hash.finalize())),
            Ok(read) => hash.update(&piece[..read]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
