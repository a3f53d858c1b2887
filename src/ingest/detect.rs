//! Telling formats apart by content: the first decisive key of JSON, the first decisive line of text.

use super::error::BoxedFault;
use super::json_scan::Scanner;
use super::text::lines;
use super::{
    Format, benchfmt, compile_benchmark, conv_library, google_benchmark, iree_run_module, latency_csv,
};

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
        // A line of text may begin with a bracket as well: `[fwd:40] igemm …`.
        b'{' => object(text).unwrap_or(None),
        b'[' if array(text).unwrap_or(false) => Some(Format::JmhJson),
        _ => lines(text).find_map(|line| decisive_line(line.text)),
    }
}

/// The format whose mark this line is.
fn decisive_line(line: &str) -> Option<Format> {
    let line = google_benchmark::without_colours(line);
    Some(match line.as_ref() {
        line if line.starts_with(google_benchmark::CSV_HEADER) => Format::GoogleBenchmarkCsv,
        line if google_benchmark::is_console_header(line) => Format::GoogleBenchmarkConsole,
        line if iree_run_module::is_exec(line) || iree_run_module::is_status(line) => Format::IreeRunModule,
        line if conv_library::is_result(line) => Format::ConvLibrary,
        line if compile_benchmark::is_header(line) => Format::CompileBenchmarkMarkdown,
        line if benchfmt::is_result(line) => Format::Benchfmt,
        line if latency_csv::is_row(line) => Format::LatencyCsv,
        _ => return None,
    })
}

/// Whether the first entry of an array is JMH's.
fn array(text: &str) -> Result<bool, BoxedFault> {
    let mut json = Scanner::new(text);
    json.begin_array()?;
    if !json.next_item(&mut true)? {
        return Ok(false);
    }
    let keys = keys(&mut json, &["mode", "primaryMetric", "jmhVersion"])?;
    Ok(keys.is_some())
}

/// The first key of an object that is one of `wanted`; the others are passed over.
fn keys<'w>(json: &mut Scanner<'_>, wanted: &[&'w str]) -> Result<Option<&'w str>, BoxedFault> {
    json.begin_object()?;
    let mut first = true;
    while let Some(key) = json.next_key(&mut first)? {
        if let Some(found) = wanted.iter().find(|wanted| **wanted == key) {
            return Ok(Some(found));
        }
        json.skip()?;
    }
    Ok(None)
}

/// The first key of the outermost object that only one format has.
fn object(text: &str) -> Result<Option<Format>, BoxedFault> {
    let mut json = Scanner::new(text);
    json.begin_object()?;
    let mut first = true;
    while let Some(key) = json.next_key(&mut first)? {
        let format = match key.as_ref() {
            "schema" if json.peek()? == b'"' => {
                if json.string()?.starts_with("benchgate/run/") {
                    return Ok(Some(Format::RunJson));
                }
                continue;
            }
            "context" => Format::GoogleBenchmarkJson,
            "machine_info" | "commit_info" => Format::PytestBenchmarkJson,
            "devices" | "meta" => Format::NvbenchJson,
            "env_name" | "result_columns" => Format::AsvJson,
            "experiment" => Format::ResultsJsonl,
            // The compile benchmark names its model, the torchbench runner describes it.
            "model" if json.peek()? == b'{' => Format::ResultsJsonl,
            "std_dev" | "median_abs_dev" => Format::CriterionEstimates,
            "sampling_mode" | "iters" => Format::CriterionSample,
            "benchmarks" => return first_entry(&mut json, &BENCHMARKS),
            "results" => return first_entry(&mut json, &RESULTS),
            _ => {
                json.skip()?;
                continue;
            }
        };
        return Ok(Some(format));
    }
    Ok(None)
}

/// `benchmarks` is a key of several formats; what their entries hold differs.
const BENCHMARKS: [(&str, Format); 8] = [
    ("run_name", Format::GoogleBenchmarkJson),
    ("run_type", Format::GoogleBenchmarkJson),
    ("iterations", Format::GoogleBenchmarkJson),
    ("real_time", Format::GoogleBenchmarkJson),
    ("family_index", Format::GoogleBenchmarkJson),
    ("fullname", Format::PytestBenchmarkJson),
    ("stats", Format::PytestBenchmarkJson),
    ("states", Format::NvbenchJson),
];

/// And so is `results`.
const RESULTS: [(&str, Format); 2] =
    [("command", Format::HyperfineJson), ("backend", Format::CompileBenchmarkJson)];

fn first_entry(json: &mut Scanner<'_>, marks: &[(&str, Format)]) -> Result<Option<Format>, BoxedFault> {
    json.begin_array()?;
    if !json.next_item(&mut true)? {
        return Ok(None);
    }
    let wanted: Vec<&str> = marks.iter().map(|(key, _)| *key).collect();
    let found = keys(json, &wanted)?;
    Ok(marks.iter().find(|(key, _)| Some(*key) == found).map(|(_, format)| *format))
}
