//! Bytes of a known format to a run: one entry for all readers.

use crate::model::{Origin, Run};

use super::error::{Fault, LineFault, line_of};
use super::text::utf8;
use super::{Format, IngestError, google_benchmark};

/// Reads one file of one format. `label` is how the caller names it; errors and the run carry it.
///
/// # Errors
/// When the bytes break the format's rules, or hold no result at all.
pub fn read(bytes: &[u8], format: Format, label: &str) -> Result<Run, IngestError> {
    let text = utf8(bytes, label)?;
    let at_line = |fault: Fault| IngestError::Malformed {
        label: label.to_owned(),
        format,
        line: line_of(text.as_bytes(), fault.at),
        what: fault.what.into_owned(),
    };
    let on_line = |fault: LineFault| IngestError::Malformed {
        label: label.to_owned(),
        format,
        line: fault.line,
        what: fault.what.into_owned(),
    };
    let mut run = match format {
        Format::GoogleBenchmarkJson => google_benchmark::read_json(text).map_err(at_line)?,
        Format::GoogleBenchmarkCsv => google_benchmark::read_csv(text).map_err(on_line)?,
        Format::GoogleBenchmarkConsole => google_benchmark::read_console(text).map_err(on_line)?,
    };
    if run.benchmarks.is_empty() {
        return Err(IngestError::NoResults { label: label.to_owned(), format });
    }
    run.origin = Origin { format: format.as_str().to_owned(), label: label.to_owned() };
    Ok(run)
}

/// Reads one file of whatever format its content shows.
///
/// # Errors
/// When no format claims the content, and as [`read`].
pub fn read_detected(bytes: &[u8], label: &str) -> Result<Run, IngestError> {
    let format =
        Format::detect(bytes).ok_or_else(|| IngestError::Unrecognised { label: label.to_owned() })?;
    read(bytes, format, label)
}
