//! Truncated, damaged and malicious input leads to an error that names the file and the line, or to a
//! finding, but never to a panic, a hang, or a number that is not in the file.

use std::collections::HashMap;
use std::path::Path;
use std::sync::LazyLock;

use benchgate::ingest::{self, Format, IngestError};
use benchgate::model::{Consequence, Outcome, Run, Series};
use proptest::prelude::*;

use super::fixture_path;
use super::fixtures::readable_fixtures;

/// The smallest readable fixture of every format, with its content.
fn smallest_of_each_format() -> Vec<(Format, String, Vec<u8>)> {
    static FILES: LazyLock<Vec<(Format, String, Vec<u8>)>> = LazyLock::new(find_smallest);
    FILES.clone()
}

fn find_smallest() -> Vec<(Format, String, Vec<u8>)> {
    let mut smallest: HashMap<Format, (String, Vec<u8>)> = HashMap::new();
    for (name, run) in readable_fixtures() {
        let format = run.origin.format.parse::<Format>().unwrap();
        let bytes = std::fs::read(fixture_path(&name)).unwrap();
        let known = smallest.get(&format);
        if known.is_none_or(|(_, known)| bytes.len() < known.len()) {
            smallest.insert(format, (name, bytes));
        }
    }
    let mut all: Vec<_> = smallest.into_iter().map(|(format, (name, bytes))| (format, name, bytes)).collect();
    all.sort();
    // Four formats have no fixture here: run.json, the two for lists of values, whose content does not show
    // the direction, and compiled code, which is not text (`ingest::compiled_code`).
    assert_eq!(all.len(), Format::ALL.len() - 4, "a format without a fixture");
    all
}

/// Every latency by benchmark, except those that a finding excludes from judgment.
fn trusted_latencies(run: &Run) -> Vec<(String, f64)> {
    let mut all = Vec::new();
    for benchmark in run.benchmarks.iter().filter(|benchmark| benchmark.outcome.is_ok()) {
        if benchmark.lints.iter().any(|lint| lint.code.consequence() > Consequence::Note) {
            continue;
        }
        let name = benchmark.name.to_string();
        match benchmark.metric("latency").map(|latency| &latency.series) {
            Some(Series::Processes(processes)) => {
                let samples = processes.iter().flat_map(|process| &process.samples);
                all.extend(samples.map(|sample| (name.clone(), *sample)));
            }
            Some(Series::Summaries(summaries)) => {
                all.extend(summaries.iter().filter_map(|summary| Some((name.clone(), summary.mean?))));
            }
            _ => {}
        }
    }
    all
}

fn assert_sound(run: &Run) {
    for benchmark in &run.benchmarks {
        if matches!(benchmark.outcome, Outcome::Failed { .. }) {
            assert!(benchmark.metrics.is_empty(), "{}: a failed row kept a number", benchmark.name);
        }
    }
    for (name, latency) in trusted_latencies(run) {
        assert!(latency.is_finite() && latency > 0.0, "{name}: {latency}");
    }
}

/// Checks that an error names the file and, if its content is at fault, the line.
fn assert_explained(error: &IngestError, lines: u64) {
    let text = error.to_string();
    assert!(text.contains("hostile"), "{text}");
    if let IngestError::Malformed { line, .. } | IngestError::NotUtf8 { line, .. } = error {
        assert!((1..=lines).contains(line), "{text}: of {lines} lines");
    }
}

fn lines(bytes: &[u8]) -> u64 {
    1 + bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

#[test]
fn a_file_cut_at_any_byte_never_shows_a_number_that_was_not_in_it() {
    for (format, name, bytes) in smallest_of_each_format() {
        let whole = trusted_latencies(&ingest::read(&bytes, format, "whole").unwrap());
        for cut in 0..bytes.len() {
            match ingest::read(&bytes[..cut], format, "hostile") {
                Ok(run) => {
                    for latency in trusted_latencies(&run) {
                        assert!(whole.contains(&latency), "{name} cut at {cut}: {latency:?}");
                    }
                }
                Err(error) => assert_explained(&error, lines(&bytes[..cut])),
            }
        }
    }
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_change_nothing() {
    for (format, name, bytes) in smallest_of_each_format() {
        let plain = ingest::read(&bytes, format, "x").unwrap();
        let marked = [&b"\xef\xbb\xbf"[..], &bytes[..]].concat();
        assert_eq!(ingest::detect(&marked), Some(format), "{name}");
        assert_eq!(ingest::read(&marked, format, "x").unwrap(), plain, "{name}");
        let windows = String::from_utf8(bytes).unwrap().replace('\n', "\r\n");
        assert_eq!(ingest::detect(windows.as_bytes()), Some(format), "{name}");
        assert_eq!(ingest::read(windows.as_bytes(), format, "x").unwrap(), plain, "{name}");
    }
}

#[test]
fn bytes_that_are_not_utf8_are_an_error_with_their_line() {
    for (format, name, bytes) in smallest_of_each_format() {
        let mut bad = bytes.clone();
        let at = bad
            .iter()
            .position(|byte| *byte == b'\n')
            .map_or(bad.len() - 1, |at| (at + 2).min(bad.len() - 1));
        bad[at] = 0xff;
        let error = ingest::read(&bad, format, "hostile").unwrap_err();
        let line = lines(&bad[..at]);
        assert_eq!(error, IngestError::NotUtf8 { label: "hostile".to_owned(), line }, "{name}");
    }
}

#[test]
fn nesting_without_end_is_an_error_and_no_crash() {
    for opener in ["[", "{\"a\":", "{\"benchmarks\":[{\"a\":", "[{\"a\":", "{\"results\":["] {
        let deep = opener.repeat(50_000);
        for format in Format::ALL {
            if let Err(error) = ingest::read(deep.as_bytes(), *format, "hostile") {
                assert_explained(&error, 1);
            }
        }
        ingest::detect(deep.as_bytes());
    }
}

#[test]
fn numbers_at_the_edge_of_f64_are_findings_and_never_latencies() {
    for (format, _, bytes) in smallest_of_each_format() {
        let text = String::from_utf8(bytes).unwrap();
        for edge in
            ["1e308", "-1", "-1e308", "0", "0.0", "-0.0", "1e-320", "1e400", "NaN", "nan", "Infinity", "inf"]
        {
            // Each number of the file is changed in turn. A digit in a name only renames a benchmark.
            let numbers = number_spans(&text);
            let step = 1 + numbers.len() / 20;
            for (start, end) in numbers.into_iter().step_by(step) {
                let changed = format!("{}{edge}{}", &text[..start], &text[end..]);
                match ingest::read(changed.as_bytes(), format, "hostile") {
                    Ok(run) => assert_sound(&run),
                    Err(error) => assert_explained(&error, lines(changed.as_bytes())),
                }
            }
        }
    }
}

fn number_spans(text: &str) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let mut spans = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at].is_ascii_digit() {
            let start = at;
            while at < bytes.len() && (bytes[at].is_ascii_digit() || bytes[at] == b'.') {
                at += 1;
            }
            spans.push((start, at));
        } else {
            at += 1;
        }
    }
    spans
}

#[test]
fn a_name_of_ten_megabytes_is_read_or_refused_in_no_time() {
    let long = "n".repeat(10 << 20);
    let json = format!(
        "{{\"context\": {{}}, \"benchmarks\": [{{\"name\": \"{long}\", \"real_time\": 1, \"time_unit\": \"ns\"}}]}}"
    );
    let run = ingest::read(json.as_bytes(), Format::GoogleBenchmarkJson, "hostile").unwrap();
    assert_eq!(run.benchmarks[0].name.as_str().len(), long.len());
    for (format, text) in [
        (
            Format::GoogleBenchmarkCsv,
            format!("name,iterations,real_time,cpu_time,time_unit\n\"{long}\",1,1,1,ns\n"),
        ),
        (Format::GoogleBenchmarkConsole, format!("Benchmark Time CPU Iterations\n{long} 1 ns 1 ns 1\n")),
        (Format::LatencyCsv, format!("2025-01-01T00:00:00,{long},cpu,1\n")),
        (Format::IreeRunModule, format!("EXEC @{long}\n[SUCCESS] all\n")),
        (Format::Benchfmt, format!("BenchmarkN{long} 1 1 ns/op\n")),
    ] {
        let run = ingest::read(text.as_bytes(), format, "hostile").unwrap();
        assert!(run.benchmarks[0].name.as_str().len() >= long.len());
        ingest::detect(text.as_bytes());
    }
}

#[test]
fn a_hundred_thousand_rows_of_one_name_take_no_more_than_a_moment() {
    let row = "2025-01-01T00:00:00,m,cpu,1.5\n";
    let run = ingest::read(row.repeat(100_000).as_bytes(), Format::LatencyCsv, "hostile").unwrap();
    assert_eq!(run.benchmarks.len(), 1);
    let row = "{\"model\":{\"model_name\":\"m\"},\"experiment\":{},\"metrics\":{\"total_time\":[1,1,1,1]}}\n";
    let run = ingest::read(row.repeat(20_000).as_bytes(), Format::ResultsJsonl, "hostile").unwrap();
    assert_eq!(run.benchmarks.len(), 1);
}

#[test]
fn values_that_would_take_many_times_their_size_in_memory_are_refused() {
    let hyperfine = |times: usize| {
        let times = "1,".repeat(times);
        format!(r#"{{"results": [{{"command": "a", "mean": 1, "times": [{}1]}}]}}"#, times)
    };
    let read = |text: &str| ingest::read(text.as_bytes(), Format::HyperfineJson, "hostile");
    assert!(read(&hyperfine(1_000)).is_ok());
    for text in [hyperfine(1 << 18), hyperfine(9 << 20)] {
        assert!(matches!(read(&text), Err(IngestError::Malformed { .. })), "{} bytes", text.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Chunks are removed, doubled, or swapped with those of another format, and single bytes are changed.
    #[test]
    fn mangled_files_are_read_soundly_or_refused_with_a_line(
        which in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0usize..40, 0u8..5, any::<u8>()), 1..6),
    ) {
        let files = smallest_of_each_format();
        let (format, _, bytes) = &files[which.index(files.len())];
        let mut bytes = bytes.clone();
        for (at, length, kind, byte) in edits {
            if bytes.is_empty() {
                break;
            }
            let start = at.index(bytes.len());
            let end = (start + length).min(bytes.len());
            match kind {
                0 => drop(bytes.drain(start..end)),
                1 => {
                    let chunk = bytes[start..end].to_vec();
                    bytes.splice(start..start, chunk);
                }
                2 => bytes[start] = byte,
                3 => bytes.insert(start, byte),
                _ => bytes[start] = b"\"{}[],:\n|- .0"[usize::from(byte) % 13],
            }
        }
        match ingest::read(&bytes, *format, "hostile") {
            Ok(run) => assert_sound(&run),
            Err(error) => assert_explained(&error, lines(&bytes)),
        }
        ingest::detect(&bytes);
    }
}

#[test]
fn a_name_that_many_rows_share_is_bounded() {
    let long = "m".repeat(100_000);
    for (format, text) in [
        (Format::Benchfmt, format!("pkg: {long}\nBenchmarkA 1 1 ns/op\n")),
        (
            Format::CompileBenchmarkMarkdown,
            format!(
                "| Model | Backend | Mean Latency (ms) |\n|-|-|-|\n| {long} | eager | 1 |\n| | jit | 1 |\n"
            ),
        ),
        (
            Format::CompileBenchmarkJson,
            format!("{{\"model\": \"{long}\", \"results\": [{{\"backend\": \"jit\", \"mean_ms\": 1}}]}}"),
        ),
        (Format::NvbenchJson, format!("{{\"benchmarks\": [{{\"name\": \"{long}\", \"states\": [{{}}]}}]}}")),
    ] {
        let error = ingest::read(text.as_bytes(), format, "hostile").unwrap_err();
        assert!(error.to_string().contains("many rows share"), "{error}");
    }
}

#[test]
fn a_message_quotes_no_escape_sequence_and_no_novel() {
    let key = format!("\\u001b[31m{}", "x".repeat(1 << 20));
    let text = format!("{{\"benchmarks\": [{{\"{key}\": 1, \"{key}\": 2}}]}}");
    let error =
        ingest::read(text.as_bytes(), Format::GoogleBenchmarkJson, "hostile").unwrap_err().to_string();
    assert!(error.len() < 2000 && !error.contains('\u{1b}'), "{error}");
}

#[test]
fn what_fuzzing_found_worth_keeping_is_read_soundly() {
    for format in Format::ALL {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("fuzz/corpus")
            .join(format.to_string().replace('-', "_"));
        let mut count = 0;
        for file in std::fs::read_dir(&folder).unwrap() {
            let bytes = std::fs::read(file.unwrap().path()).unwrap();
            match ingest::read_sides(&bytes, *format, "hostile") {
                Ok(sides) if *format != Format::RunJson => {
                    sides.iter().for_each(|(_, run)| assert_sound(run))
                }
                Ok(_) => {}
                Err(error) => assert_explained(&error, lines(&bytes)),
            }
            count += 1;
        }
        assert!(count > 5, "{format} has no corpus");
    }
}
