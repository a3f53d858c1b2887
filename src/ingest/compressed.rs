//! Results as CI keeps them: gzip and Zstandard, by their first bytes. Archives come from pull requests too, so
//! what a small file may grow to is bounded.

use std::borrow::Cow;
use std::io::Read;

use super::IngestError;

const GZIP: &[u8] = b"\x1f\x8b";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";

/// What any file may grow to.
const FREE: u64 = 16 << 20;
/// Beyond that, how many times its own size: twenty thousand rows of one benchmark compress 60 times.
const RATIO: u64 = 200;
/// And never more than this.
const LARGEST: u64 = 2 << 30;

/// The bytes themselves, or decompressed where they are a gzip or Zstandard stream.
pub fn decompressed<'a>(bytes: &'a [u8], label: &str) -> Result<Cow<'a, [u8]>, IngestError> {
    let failed = |what: String| IngestError::Compressed { label: label.to_owned(), what };
    let limit = (bytes.len() as u64).saturating_mul(RATIO).clamp(FREE, LARGEST);
    let mut out = Vec::new();
    let read = if bytes.starts_with(GZIP) {
        flate2::read::MultiGzDecoder::new(bytes).take(limit + 1).read_to_end(&mut out)
    } else if bytes.starts_with(ZSTD) {
        ruzstd::decoding::StreamingDecoder::new(bytes)
            .map_err(|error| std::io::Error::other(error.to_string()))
            .and_then(|decoder| decoder.take(limit + 1).read_to_end(&mut out))
    } else {
        return Ok(Cow::Borrowed(bytes));
    };
    read.map_err(|error| failed(format!("it can't be decompressed: {error}")))?;
    if out.len() as u64 > limit {
        return Err(failed(format!("it decompresses to more than {} MiB", limit >> 20)));
    }
    Ok(Cow::Owned(out))
}
