//! How many benchmarks a result may have, in any format.

use super::IngestError;

/// Benchmarks of one result, over its sides. The rows of each take 14 KB while they are compared, so a result of a
/// million would need more memory than most machines have.
pub const MOST_BENCHMARKS: usize = 20_000;

/// Whether a reader keeps one more benchmark. It keeps one too many and leaves out the rest, so that [`check`] sees it
/// and memory stays bounded.
pub(super) fn has_room(kept: usize) -> bool {
    kept <= MOST_BENCHMARKS
}

/// Refuses a result of more benchmarks.
pub(super) fn check(benchmarks: usize, label: &str) -> Result<(), IngestError> {
    if benchmarks <= MOST_BENCHMARKS {
        return Ok(());
    }
    Err(IngestError::TooManyBenchmarks { label: label.to_owned(), limit: MOST_BENCHMARKS })
}
