//! Decompresses gzip and Zstandard results, which are recognized by their first bytes. Archives can come from
//! pull requests, so the decompressed size is limited.

use std::borrow::Cow;
use std::io::Read;

use benchgate_core::record::MOST_RESULT_BYTES;

use super::IngestError;

const GZIP: &[u8] = b"\x1f\x8b";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";

/// Decompressed size that is allowed whatever the compressed size.
const FREE: u64 = 16 << 20;
/// Compression ratio up to which larger results are allowed: twenty thousand rows of one benchmark compress
/// by a factor of 60.
const RATIO: u64 = 200;

/// Returns the bytes, decompressed if they are a gzip or Zstandard stream.
pub fn decompressed<'a>(bytes: &'a [u8], label: &str) -> Result<Cow<'a, [u8]>, IngestError> {
    let failed = |what: String| IngestError::Compressed { label: label.to_owned(), what };
    let limit = most_decompressed(bytes.len() as u64);
    let mut out = Vec::new();
    let read = if bytes.starts_with(GZIP) {
        flate2::read::MultiGzDecoder::new(bytes).take(limit + 1).read_to_end(&mut out)
    } else if bytes.starts_with(ZSTD) || skippable(bytes).is_some() {
        frames(bytes, limit, &mut out)
    } else {
        return Ok(Cow::Borrowed(bytes));
    };
    read.map_err(|error| failed(format!("it can't be decompressed: {error}")))?;
    if out.len() as u64 > limit {
        return Err(failed(format!("it decompresses to more than {} MiB", limit >> 20)));
    }
    Ok(Cow::Owned(out))
}

/// Appends all frames of a Zstandard file, up to one byte more than the limit. Concatenated files count as
/// one file.
fn frames(mut rest: &[u8], limit: u64, out: &mut Vec<u8>) -> std::io::Result<usize> {
    while !rest.is_empty() && out.len() as u64 <= limit {
        if let Some(after) = skippable(rest) {
            rest = after;
            continue;
        }
        let decoder = ruzstd::decoding::StreamingDecoder::new(&mut rest)
            .map_err(|error| std::io::Error::other(error.to_string()))?;
        decoder.take(limit + 1 - out.len() as u64).read_to_end(out)?;
    }
    Ok(out.len())
}

/// Returns the bytes after a frame without data (RFC 8878, 3.1.2), if the input begins with one.
fn skippable(bytes: &[u8]) -> Option<&[u8]> {
    let ([0x50..=0x5f, 0x2a, 0x4d, 0x18], rest) = bytes.split_first_chunk::<4>()? else { return None };
    let (size, rest) = rest.split_first_chunk::<4>()?;
    rest.get(usize::try_from(u32::from_le_bytes(*size)).ok()?..)
}

/// Returns the allowed decompressed size of a file of this size: at most the limit for an uncompressed file.
fn most_decompressed(compressed: u64) -> u64 {
    compressed.saturating_mul(RATIO).clamp(FREE, MOST_RESULT_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compressed_file_grows_to_no_more_than_any_file_may_have() {
        assert_eq!(most_decompressed(10), FREE);
        assert_eq!(most_decompressed(10 << 20), MOST_RESULT_BYTES);
        assert_eq!(most_decompressed(u64::MAX), MOST_RESULT_BYTES);
    }
}
