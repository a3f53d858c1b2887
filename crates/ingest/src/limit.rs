//! How many benchmarks a result may have in any format, and how many values where each takes several times its own
//! size in memory.

use super::IngestError;
use super::error::{LineFault, line_fault};

/// Benchmarks of one result, over its sides. The rows of each take 14 KB while they are compared, so a result of a
/// million would need more memory than most machines have.
pub const MOST_BENCHMARKS: usize = 20_000;

/// Whether a reader may keep another benchmark. It keeps one too many and leaves out the rest, so that [`check`]
/// detects it and memory stays bounded.
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

/// Values of a document that is read whole. Each takes 16 to 32 bytes in memory, and two in a file.
const MOST_VALUES: usize = 8 << 20;
/// Runs of a result in which each is a process. They take half a kilobyte each while they are compared.
const MOST_RUNS: usize = 1 << 18;

/// Refuses a document of more values before it is read.
pub(super) fn check_values(text: &str) -> Result<(), LineFault> {
    let values = text.bytes().filter(|byte| *byte == b',').count();
    at_most(values, MOST_VALUES, "values")
}

/// Refuses a result of more runs.
pub(super) fn check_runs(runs: usize) -> Result<(), LineFault> {
    at_most(runs, MOST_RUNS, "runs")
}

fn at_most(found: usize, most: usize, what: &str) -> Result<(), LineFault> {
    if found <= most { Ok(()) } else { Err(line_fault(1, format!("it has more than {most} {what}"))) }
}
