//! Telling formats apart by content: the first decisive key of JSON, the first decisive line of text.

use super::error::Fault;
use super::json_scan::Scanner;
use super::text::lines;
use super::{Format, google_benchmark};

/// Enough to meet a decisive key or line in every format, and little enough to cost nothing.
const WINDOW: usize = 64 * 1024;

/// The format of these bytes; `None` where no format claims them. Reads at most the first 64 KiB.
pub fn detect(bytes: &[u8]) -> Option<Format> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let window = &bytes[..bytes.len().min(WINDOW)];
    // A character cut at the window's end, or a bad byte later on, is the reader's to report.
    let text = match std::str::from_utf8(window) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&window[..error.valid_up_to()]).ok()?,
    };
    match text.trim_start().as_bytes().first()? {
        b'{' => object(text).unwrap_or(None),
        _ => lines(text).find_map(|line| decisive_line(line.text)),
    }
}

/// The format whose mark this line is.
fn decisive_line(line: &str) -> Option<Format> {
    let line = google_benchmark::without_colours(line);
    if line.starts_with(google_benchmark::CSV_HEADER) {
        Some(Format::GoogleBenchmarkCsv)
    } else if google_benchmark::is_console_header(&line) {
        Some(Format::GoogleBenchmarkConsole)
    } else {
        None
    }
}

/// The first key of the outermost object that only one format has.
fn object(text: &str) -> Result<Option<Format>, Fault> {
    let mut json = Scanner::new(text);
    json.begin_object()?;
    let mut first = true;
    while let Some(key) = json.next_key(&mut first)? {
        match key.as_ref() {
            "context" => return Ok(Some(Format::GoogleBenchmarkJson)),
            "benchmarks" => return benchmarks(&mut json),
            _ => json.skip()?,
        }
    }
    Ok(None)
}

/// `benchmarks` is a key of several formats; their entries differ.
fn benchmarks(json: &mut Scanner<'_>) -> Result<Option<Format>, Fault> {
    json.begin_array()?;
    if !json.next_item(&mut true)? {
        return Ok(None);
    }
    json.begin_object()?;
    let mut first = true;
    while let Some(key) = json.next_key(&mut first)? {
        if matches!(key.as_ref(), "run_name" | "run_type" | "iterations" | "real_time" | "family_index") {
            return Ok(Some(Format::GoogleBenchmarkJson));
        }
        json.skip()?;
    }
    Ok(None)
}
