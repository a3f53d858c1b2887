//! Digests and commits as hexadecimal digits.

use std::fmt::Write;

/// Lowercase hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Whether a text consists of lowercase hexadecimal digits.
pub fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a text is a SHA-256 as [`hex`] writes it.
pub fn is_sha256(text: &str) -> bool {
    text.len() == 64 && is_hex(text)
}

/// Whether a text is the hash of a commit, SHA-1 or SHA-256, or an abbreviation of one.
pub fn is_commit(text: &str) -> bool {
    (7..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
