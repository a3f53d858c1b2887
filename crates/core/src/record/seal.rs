//! The hash in a file over everything else in it. It finds damage and hand edits; it is not a signature.

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::model::hex;

use super::RecordError;
use super::error::wrong;

/// Gives a file with a `sha256` field its seal.
macro_rules! sealed {
    ($file:ident) => {
        impl $file {
            /// Writes the hash of the content into the content.
            pub fn seal(&mut self) {
                self.sha256 = self.content_hash();
            }

            fn content_hash(&self) -> String {
                super::seal::content_hash(&Self { sha256: String::new(), ..self.clone() })
            }

            /// Rejects a file whose content does not match its hash.
            fn check_seal(&self) -> Result<(), RecordError> {
                super::seal::check(&self.sha256, &self.content_hash())
            }
        }
    };
}
pub(super) use sealed;

/// Hashes the written bytes, so that a large file is never in memory as text.
struct HashWriter(Sha256);

impl std::io::Write for HashWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Over the content and not the bytes: another line ending is not an edit.
pub(super) fn content_hash(content: &impl Serialize) -> String {
    let mut hash = HashWriter(Sha256::new());
    // Only a map whose keys are not text can't be written, and no record has one.
    let written = serde_json::to_writer(&mut hash, content);
    debug_assert!(written.is_ok(), "{written:?}");
    hex(&hash.0.finalize())
}

pub(super) fn check(stated: &str, found: &str) -> Result<(), RecordError> {
    if stated == found {
        return Ok(());
    }
    let what =
        format!("the content has hash {found}, not {stated}: it was damaged or edited after it was written");
    Err(wrong("sha256", what))
}
