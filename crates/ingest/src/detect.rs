//! Distinguishes formats by content: the first decisive key of JSON, or the first decisive line of text.
//! Content that no reader recognizes is described, so that the error can say what to do.

use serde::de::IgnoredAny;

use benchgate_core::model::{is_in, name_words, without_colors, words};

use super::json_scan::Scanner;
use super::logs::{crash, is_status};
use super::text::lines;
use super::{
    BoxedFault, Format, IngestError, benchfmt, cargo_bench, compile_benchmark, compiled_code, conv_library,
    google_benchmark, iree_tools, latency_csv,
};

/// Number of bytes examined: enough to contain a decisive key or line in every format, and few enough to be
/// read quickly.
const WINDOW: usize = 64 * 1024;

/// Returns the format of these bytes; `None` if no format matches. Reads at most the first 64 KiB.
pub fn detect(bytes: &[u8]) -> Option<Format> {
    if compiled_code::is_code(bytes) {
        return Some(Format::CompiledCode);
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let window = &bytes[..bytes.len().min(WINDOW)];
    // Only the valid beginning is used: the window may cut a character, and the reader reports invalid bytes
    // further on.
    let text = match std::str::from_utf8(window) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&window[..error.valid_up_to()]).ok()?,
    };
    match text.trim_start().as_bytes().first()? {
        // A line of text may also begin with a bracket: `[fwd:40] igemm …`.
        b'{' => match object(text) {
            Ok(Some(format)) => Some(format),
            _ => bencher(text).unwrap_or(false).then_some(Format::BencherJson),
        },
        b'[' if array(text, &JMH).unwrap_or(false) => Some(Format::JmhJson),
        _ => lines(text).find_map(|line| decisive_line(line.text)),
    }
}

/// Returns the format that this line identifies.
fn decisive_line(line: &str) -> Option<Format> {
    let line = without_colors(line);
    Some(match line.as_ref() {
        line if line.starts_with(google_benchmark::CSV_HEADER) => Format::GoogleBenchmarkCsv,
        line if google_benchmark::is_console_header(line) => Format::GoogleBenchmarkConsole,
        line if iree_tools::is_exec(line) || is_status(line) => Format::IreeRunModule,
        line if conv_library::is_result(line) => Format::ConvLibrary,
        line if compile_benchmark::is_header(line) => Format::CompileBenchmarkMarkdown,
        line if benchfmt::is_result(line) => Format::Benchfmt,
        line if cargo_bench::is_result(line) => Format::CargoBench,
        line if latency_csv::is_row(line) => Format::LatencyCsv,
        _ => return None,
    })
}

/// Maximum number of positions in a text at which JSON is looked for.
const MOST_STARTS: usize = 256;

/// Returns the first line of another format in a text of this format, with its number and format: a reader skips such
/// a line, so the verdict would rest on a part of the results.
pub(super) fn other_format(text: &str, format: Format) -> Option<(u64, Format)> {
    let mut starts = 0;
    lines(text).find_map(|line| {
        let found = match line.text.trim_start().as_bytes() {
            [b'{'] | [b'{', b'"', ..] if starts < MOST_STARTS => {
                starts += 1;
                let at = line.text.as_ptr() as usize - text.as_ptr() as usize;
                let end = text.floor_char_boundary(text.len().min(at + WINDOW));
                object(text.get(at..end)?).ok().flatten()
            }
            _ => decisive_line(line.text),
        };
        let found = found.filter(|found| *found != format)?;
        let is_certain = match found {
            // A status is the message of a failed call, which each reader handles itself.
            Format::IreeRunModule => iree_tools::is_exec(line.text),
            // A line of a log may contain the words of a header.
            Format::LatencyCsv => latency_csv::is_dated_row(line.text),
            _ => true,
        };
        is_certain.then_some((line.number, found))
    })
}

const JMH: [&str; 3] = ["mode", "primaryMetric", "jmhVersion"];

/// Returns whether the bytes are github-action-benchmark's list, which does not state which direction is
/// better.
fn is_custom_list(bytes: &[u8]) -> bool {
    let window = &bytes[..bytes.len().min(WINDOW)];
    let text = String::from_utf8_lossy(window);
    text.trim_start().starts_with('[') && array(&text, &["unit"]).unwrap_or(false)
}

/// Returns whether the first entry of an array has one of these keys.
fn array(text: &str, marks: &[&str]) -> Result<bool, BoxedFault> {
    let mut json = Scanner::new(text);
    json.begin_array()?;
    if !json.next_item(&mut true)? {
        return Ok(false);
    }
    Ok(keys(&mut json, marks)?.is_some())
}

/// Returns whether the first entry of an object is a benchmark of Bencher's format: measures that are objects
/// with a value.
fn bencher(text: &str) -> Result<bool, BoxedFault> {
    let mut json = Scanner::new(text);
    for _ in 0..2 {
        json.begin_object()?;
        if json.next_key(&mut true)?.is_none() {
            return Ok(false);
        }
    }
    Ok(keys(&mut json, &["value"])?.is_some())
}

/// Returns the first key of an object that is one of `wanted`, skipping the others.
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

/// Returns the format identified by the first key of the outermost object that only one format has.
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
            "devices" => Format::NvbenchJson,
            "env_name" | "result_columns" => Format::AsvJson,
            "experiment" => Format::ResultsJsonl,
            // The compile benchmark names its model as text; the torchbench runner describes it as an object.
            "model" if json.peek()? == b'{' => Format::ResultsJsonl,
            "Action" => Format::GoTestJson,
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

/// Several formats have the key `benchmarks`; the keys of its entries differ.
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

/// Several formats have the key `results`, too.
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

/// Returns the error for bytes that [`detect`] does not recognize.
pub fn unrecognised(bytes: &[u8], label: &str) -> IngestError {
    IngestError::Unrecognised { label: label.to_owned(), content: content(bytes) }
}

/// First bytes of compressed files that can't be read: xz, lzma, lzip, bzip2, lz4, compress, 7-Zip and RAR.
const COMPRESSED: [&[u8]; 8] = [
    b"\xfd7zXZ\0",
    b"\x5d\0\0",
    b"LZIP",
    b"BZh",
    b"\x04\x22\x4d\x18",
    b"\x1f\x9d",
    b"7z\xbc\xaf\x27\x1c",
    b"Rar!\x1a",
];

/// First bytes of ZIP archives. Programs, arrays and models may also be ZIP archives.
const ARCHIVE: &[u8] = b"PK\x03\x04";

/// Returns the kind of content that no format recognizes.
pub fn content(bytes: &[u8]) -> FileContent {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii();
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        FileContent::Utf16
    } else if text.is_empty() {
        FileContent::Empty
    } else if COMPRESSED.iter().any(|start| bytes.starts_with(start)) {
        FileContent::Compressed
    } else if bytes.starts_with(ARCHIVE) {
        FileContent::Archive
    } else if bytes.contains(&0) {
        FileContent::Binary
    } else if text.starts_with(b"<") {
        FileContent::Html
    } else if is_custom_list(bytes) {
        FileContent::Directionless
    } else if matches!(text[0], b'{' | b'[') {
        let dot_net =
            bytes.windows(16).any(|window| window == b"BenchmarkDotNet\"" || window == b"BenchmarkDotNetV");
        let mut values = serde_json::Deserializer::from_slice(text).into_iter::<IgnoredAny>();
        match values.find_map(Result::err) {
            _ if dot_net => FileContent::BenchmarkDotNet,
            Some(error) if error.is_eof() => FileContent::CutJson,
            // A line of a log may begin with a time or a level in brackets.
            Some(_) if text[0] == b'[' && text.get(1).is_some_and(u8::is_ascii_alphanumeric) => {
                FileContent::Text
            }
            Some(_) => FileContent::BrokenJson,
            None => FileContent::Json,
        }
    } else if std::str::from_utf8(bytes).is_ok_and(|text| crash(text, true).is_some()) {
        FileContent::FailedCommand
    } else {
        FileContent::Text
    }
}

/// Returns the words with which a program that measures itself states the time of an operation or a rate: `us/op`,
/// `requests/s`, `ms per token`, `qps`. Rates of bytes are missing, because programs with a fixed amount of work log them.
pub fn time_of_an_operation(text: &str) -> Option<&str> {
    const UNITS: &str = "s sec secs second ms msec us usec µs μs ns nsec";
    const OPERATIONS: &str = "op ops iter iters iteration iterations it call calls request requests req reqs token tokens tok t \
        image images sample samples query queries inference inferences item items frame frames event events loop loops \
        transaction transactions dhrystones";
    const RATES: &str = "qps rps iops";
    /// Headings of the tables of pytest-benchmark, hyperfine, divan, wrk, Catch2, benchdnn, STREAM and `openssl speed`,
    /// and the most important line of k6.
    const HEADINGS: [&str; 9] = [
        "Name (time in",
        "Time (mean ± ",
        "│ slowest",
        "Latency Distribution",
        "est run time",
        "Output template: perf,",
        "Best Rate MB/s",
        "bytes per second processed",
        "http_req_duration",
    ];
    let are = |one: &str, two: &str| {
        is_in(UNITS, one) && is_in(OPERATIONS, two) || is_in(OPERATIONS, one) && is_in(UNITS, two)
    };
    let states_time = |word: &&str| {
        let lower = word.to_lowercase();
        lower.split_once('/').map_or(is_in(RATES, &lower), |(one, other)| are(one, other))
    };
    let parts = text.split(|c: char| !(c.is_alphanumeric() || c == '/' || c == '_' || c == '.'));
    let mut parts = parts
        .map(|word| word.trim_end_matches('.').trim_start_matches(|c: char| c.is_ascii_digit() || c == '.'));
    // `0.12 ms per token`, `Samples per second: 1200`
    let per = || {
        text.lines().find_map(|line| {
            let (before, after) = line.split_once(" per ")?;
            let is_letter = |c: char| !c.is_alphanumeric();
            let (one, other) = (before.rsplit(is_letter).next()?, after.split(is_letter).next()?);
            let is_number =
                |word: Option<&str>| word.is_some_and(|word| word.contains(|c: char| c.is_ascii_digit()));
            let is_stated = is_number(before.split_whitespace().nth_back(1))
                || is_number(after.split_whitespace().nth(1));
            let (one, other) = (one.to_lowercase(), other.to_lowercase());
            // `events: 1000 (99.9 per sec.)`
            let is_rate = is_number(before.split_whitespace().last()) && is_in(UNITS, &other);
            (is_rate || is_stated && are(&one, &other)).then(|| line.trim())
        })
    };
    // `Throughput: 800 FPS`, `latency average = 1.2 ms`, `tps = 1200`; but not `Throughput: 512 MB/s` or `latency: 4 cycles`
    let labelled = || {
        text.lines().find_map(|line| {
            let (name, value) = line.split_once([':', '='])?;
            let mut said = value.split_whitespace();
            let is_number = said.next()?.starts_with(|c: char| c.is_ascii_digit());
            let unit = said.next().unwrap_or_default().to_lowercase();
            let is_timed = is_in(UNITS, &unit) || is_in("fps qps tps", &unit);
            let name = name_words(name);
            let named = |known: &str| words(&name).iter().any(|word| is_in(known, word));
            let is_measured = named("tps") || is_timed && named("throughput latency");
            let is_computed = named("simulated modeled predicted estimated expected static target limit");
            (is_number && is_measured && !is_computed).then(|| line.trim())
        })
    };
    // BenchmarkDotNet
    let of_table =
        || text.lines().find(|line| ["| Method", "| Mean "].iter().all(|column| line.contains(column)));
    let named = || HEADINGS.into_iter().find(|known| text.contains(known));
    // tinybench, vitest
    let both =
        || ["\"latency\":", "\"throughput\":"].iter().all(|key| text.contains(key)).then_some("latency");
    parts.find(states_time).or_else(per).or_else(labelled).or_else(of_table).or_else(named).or_else(both)
}

/// The kind of a file that is not a result, as far as its bytes show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
pub enum FileContent {
    #[strum(to_string = "it is empty")]
    Empty,
    #[strum(to_string = "it is UTF-16 text")]
    Utf16,
    #[strum(to_string = "it is compressed with an unsupported method")]
    Compressed,
    #[strum(to_string = "it is a zip archive")]
    Archive,
    #[strum(to_string = "it is binary data")]
    Binary,
    #[strum(to_string = "it is a web page")]
    Html,
    #[strum(to_string = "a list of names, values and units does not state whether less or more is better")]
    Directionless,
    #[strum(to_string = "it is BenchmarkDotNet's JSON, which is not supported")]
    BenchmarkDotNet,
    #[strum(to_string = "it is JSON that ends in the middle")]
    CutJson,
    #[strum(to_string = "it begins like JSON, but is not valid JSON")]
    BrokenJson,
    #[strum(to_string = "it is JSON, but not from a known benchmark tool")]
    Json,
    #[strum(to_string = "it is the log of a command that failed")]
    FailedCommand,
    #[strum(to_string = "none of its lines is a result of a known benchmark tool")]
    Text,
}

impl FileContent {
    /// Returns advice on how to get a result from such a file.
    pub const fn hint(self) -> &'static str {
        match self {
            Self::Empty => "the benchmark printed nothing: look at its exit status and its log",
            Self::Utf16 => {
                "PowerShell's `>` writes UTF-16: have the tool write the file, or pipe to `Out-File -Encoding utf8`"
            }
            Self::Compressed | Self::Archive => {
                "decompress it first; gzip and Zstandard are read as they are"
            }
            Self::Binary => "pass the JSON, CSV or text file that the benchmark tool wrote",
            Self::BrokenJson => {
                "remove comments and trailing commas; `--format-in NAME` names the format of other text"
            }
            Self::CutJson => "let the tool finish and write the file again",
            Self::FailedCommand => "run the benchmark again; a process without results can't be skipped",
            Self::Html => "download the raw file, not the page that shows it",
            Self::Directionless => {
                "choose: `--format-in custom-smaller-is-better` or `--format-in custom-bigger-is-better`"
            }
            Self::BenchmarkDotNet | Self::Json | Self::Text => {
                "convert it to `{\"NAME\": {\"latency\": {\"value\": NANOSECONDS}}}`; docs/formats.md lists the other formats, of which \
                 `--format-in` chooses one"
            }
        }
    }
}
