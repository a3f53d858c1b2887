//! Converts bytes of a known format to a run: the common entry point to all readers.

use std::borrow::Cow;
use std::io::Read;

use benchgate_core::model::{
    Better, Lint, LintCode, Origin, Outcome, RENAMED_FROM, Run, SideName, Stage, excerpt,
};
use benchgate_core::record::{MOST_RESULT_BYTES, RunFile};

use super::build::{MOST_BENCHMARKS, fail};
use super::detect::other_format;
use super::logs::{crash, problems};
use super::text::{cut_line, utf8};
use super::{
    FaultAt, Format, IngestError, LineFault, asv, benchfmt, build, cargo_bench, compile_benchmark,
    compiled_code, conv_library, custom, detect, document, google_benchmark, hyperfine, iree_tools, jmh,
    latency_csv, line_of, nvbench, pytest_benchmark, torchbench,
};

/// Number of bytes from which a file's format is detected.
const HEAD: u64 = 256 << 10;
/// Maximum length of a fault's description, in characters.
const LONGEST: usize = 400;

/// Reads one file of one format. `label` is the caller's name for the file, which appears in errors and in
/// the run. Rejects a file without a result, and a run.json with two sides.
pub fn read(bytes: &[u8], format: Format, label: &str) -> Result<Run, IngestError> {
    let no_results = || IngestError::NoResults { label: label.to_owned(), format };
    let text = || utf8(bytes, label);
    let read = match format {
        Format::RunJson => {
            let mut sides = read_run_json(bytes, label)?;
            let (_, run) = sides.pop().ok_or_else(no_results)?;
            build::check(run.benchmarks.len(), label)?;
            if sides.is_empty() {
                return Ok(run);
            }
            let sides = "both base and head".to_owned();
            return Err(IngestError::SeveralSides { label: label.to_owned(), sides });
        }
        Format::GoogleBenchmarkJson => {
            let text = text()?;
            google_benchmark::read_json(text).map_err(|fault| of_line(text, *fault))
        }
        Format::GoogleBenchmarkCsv => google_benchmark::read_csv(text()?),
        Format::GoogleBenchmarkConsole => google_benchmark::read_console(text()?),
        Format::IreeRunModule => iree_tools::read_run_module(text()?),
        Format::LatencyCsv => latency_csv::read(text()?),
        Format::ResultsJsonl => torchbench::read(text()?),
        Format::CompileBenchmarkJson => compile_benchmark::read_json(text()?),
        Format::CompileBenchmarkMarkdown => compile_benchmark::read_markdown(text()?),
        Format::ConvLibrary => conv_library::read(text()?),
        Format::HyperfineJson => hyperfine::read(text()?),
        Format::PytestBenchmarkJson => pytest_benchmark::read(text()?),
        Format::NvbenchJson => nvbench::read(text()?),
        Format::CriterionEstimates => cargo_bench::read_estimates(text()?, label),
        Format::CriterionSample => cargo_bench::read_sample(text()?, label),
        Format::Benchfmt => benchfmt::read(text()?),
        Format::JmhJson => jmh::read(text()?),
        Format::AsvJson => asv::read(text()?),
        Format::GoTestJson => benchfmt::read_go_test(text()?),
        Format::CargoBench => cargo_bench::read(text()?),
        Format::CustomSmallerIsBetter => custom::read(text()?, Better::Lower),
        Format::CustomBiggerIsBetter => custom::read(text()?, Better::Higher),
        Format::BencherJson => custom::read_bencher(text()?),
        Format::CompiledCode => {
            let failed = |what| IngestError::Code { label: label.to_owned(), what };
            Ok(compiled_code::read(bytes).map_err(failed)?)
        }
    };
    let malformed = |fault: LineFault| IngestError::Malformed {
        label: label.to_owned(),
        format,
        line: fault.line,
        // A message may quote the file.
        what: excerpt(&fault.what, LONGEST),
    };
    let mut run = read.map_err(malformed)?;
    if run.benchmarks.is_empty() {
        return Err(no_results());
    }
    build::check(run.benchmarks.len(), label)?;
    if document::is_read(format) {
        let text = text()?;
        run.lints.extend(document::findings(text).map_err(|fault| malformed(of_line(text, *fault)))?);
    }
    if format == Format::IreeRunModule && !text()?.ends_with('\n') {
        // A number without its last digits is a number too.
        run.lints.push(cut_line());
    }
    if (is_log(format) || matches!(format, Format::LatencyCsv | Format::CompileBenchmarkMarkdown))
        && let Some((line, other)) = other_format(text()?, format)
    {
        let what = format!("a line has the format {other}: write each tool's results to a separate file");
        return Err(IngestError::Malformed { label: label.to_owned(), format, line, what });
    }
    for benchmark in &mut run.benchmarks {
        // Only a configuration may rename a benchmark. A file could otherwise have a benchmark that it leaves
        // out paired with a faster one.
        benchmark.labels.remove(RENAMED_FROM);
        let is_empty = benchmark.metrics.is_empty() && benchmark.verification.is_none();
        if is_empty && benchmark.outcome == Outcome::Ok && benchmark.lints.is_empty() {
            fail(benchmark, Stage::Benchmark, "nothing was measured");
        }
    }
    if (is_log(format) || format == Format::CompileBenchmarkMarkdown)
        && run.lints.iter().all(|lint| lint.code != LintCode::TruncatedInput)
    {
        // The reader of transcripts assigns errors to functions itself.
        run.lints.extend(crash(text()?, format != Format::IreeRunModule));
    }
    if is_log(format) || format == Format::CompileBenchmarkMarkdown {
        run.lints.extend(problems(text()?));
    }
    run.origin = Origin::new(format.into(), label);
    Ok(run)
}

/// Returns a fault with the line in which it was found.
fn of_line(text: &str, fault: FaultAt) -> LineFault {
    LineFault { line: line_of(text.as_bytes(), fault.at), what: fault.what }
}

/// Returns whether a format is the output of a running program, which may end with a crash message.
fn is_log(format: Format) -> bool {
    matches!(
        format,
        Format::GoogleBenchmarkConsole
            | Format::GoogleBenchmarkCsv
            | Format::IreeRunModule
            | Format::ConvLibrary
            | Format::Benchfmt
            | Format::CargoBench
    )
}

/// Reads a large file without holding all of it in memory. Returns `None` if its format is not read in
/// pieces, or if it has a fault: [`read`] then finds the same fault and names its line.
pub fn read_in_pieces(mut source: impl Read, label: &str) -> Option<Run> {
    let mut head = Vec::with_capacity(2 * HEAD as usize);
    source.by_ref().take(HEAD).read_to_end(&mut head).ok()?;
    let format = detect(&head)?;
    if format != Format::GoogleBenchmarkJson {
        return None;
    }
    let mut run = google_benchmark::read_pieces(head, &mut source)?;
    run.origin = Origin::new(format.into(), label);
    (!run.benchmarks.is_empty() && run.benchmarks.len() <= MOST_BENCHMARKS).then_some(run)
}

/// Reads like [`read`], in the format that the content shows.
pub fn read_detected(bytes: &[u8], label: &str) -> Result<Run, IngestError> {
    read(bytes, detected(bytes, label)?, label)
}

/// Reads every side of one file: benchgate's own files name their sides, and foreign files have one without a
/// name.
pub fn read_sides(
    bytes: &[u8],
    format: Format,
    label: &str,
) -> Result<Vec<(Option<SideName>, Run)>, IngestError> {
    if format != Format::RunJson {
        return Ok(vec![(None, read(bytes, format, label)?)]);
    }
    let sides = read_run_json(bytes, label)?;
    build::check(sides.iter().map(|(_, run)| run.benchmarks.len()).sum(), label)?;
    Ok(sides.into_iter().map(|(side, run)| (Some(side), run)).collect())
}

fn detected(bytes: &[u8], label: &str) -> Result<Format, IngestError> {
    detect(bytes).ok_or_else(|| detect::unrecognised(bytes, label))
}

const GZIP: &[u8] = b"\x1f\x8b";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";

/// Decompressed size that is allowed whatever the compressed size.
const FREE: u64 = 16 << 20;
/// Compression ratio up to which larger results are allowed: twenty thousand rows of one benchmark compress
/// by a factor of 60.
const RATIO: u64 = 200;

/// Returns the bytes, decompressed if they are a gzip or Zstandard stream, which its first bytes show. Archives can come
/// from pull requests, so the decompressed size is limited.
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

/// Returns every side of a run.json, base first.
fn read_run_json(bytes: &[u8], label: &str) -> Result<Vec<(SideName, Run)>, IngestError> {
    let file = RunFile::from_slice(bytes)
        .map_err(|error| IngestError::Record { label: label.to_owned(), what: error.to_string() })?;
    let mut sides = file.runs(label);
    if !file.complete {
        for (_, run) in &mut sides {
            let detail = "the run was interrupted before everything planned was measured";
            run.lints.push(Lint::new(LintCode::TruncatedInput, detail));
        }
    }
    Ok(sides)
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
