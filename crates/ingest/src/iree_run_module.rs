//! Transcripts of iree-run-module: `EXEC @main`, result lines, and `[SUCCESS]` or `[FAILED]`. Transcripts
//! contain no times, but show whether a function ran and whether its outputs were the expected ones.

use benchgate_core::model::{
    Benchmark, JUDGED_BY, JUDGED_BY_OUTPUTS, OutputCheck, Run, Stage, Verification, VerifyCode,
};

use super::build::{ByName, fail};
use super::error::{LineFault, line_fault};
use super::text::lines;

/// Returns whether this line begins a function's transcript.
pub(super) fn is_exec(line: &str) -> bool {
    line.strip_prefix("EXEC @").is_some_and(|name| !name.trim().is_empty())
}

/// The function of the last `EXEC` line, as far as it was read.
struct Function {
    name: String,
    outputs: Vec<OutputCheck>,
    /// The values of each output; empty until they are read.
    printed: Vec<String>,
    success: bool,
    failures: Vec<String>,
    error: Option<String>,
}

/// Reads a log with any number of transcripts.
pub(super) fn read(text: &str) -> Result<Run, LineFault> {
    let mut benchmarks = ByName::default();
    let mut current: Option<Function> = None;
    for line in lines(text) {
        let text = line.text.trim_end();
        if let Some(name) = text.strip_prefix("EXEC @") {
            if let Some(done) = current.take() {
                benchmarks.push(done.finish());
            }
            let name = name.trim().to_owned();
            current = Some(Function {
                name,
                outputs: Vec::new(),
                printed: Vec::new(),
                success: false,
                failures: Vec::new(),
                error: None,
            });
            continue;
        }
        let Some(function) = &mut current else {
            if is_status(text) {
                benchmarks.push(failed_before_exec(text, line.number)?);
            }
            continue;
        };
        if let Some(index) = result_index(text) {
            function.outputs.push(OutputCheck {
                index,
                code: VerifyCode::VerifierSkipped,
                divergence: None,
                why: None,
            });
            // A host scalar is printed on the result line itself.
            let own = text.split_once("]:").map_or("", |(_, value)| value.trim());
            function.printed.push(if own.contains('=') { own.to_owned() } else { String::new() });
        } else if let Some(values) =
            function.printed.last_mut().filter(|it| text.contains('=') && (it.is_empty() || is_value(text)))
        {
            // A text with a second value can't be compared.
            if !values.is_empty() {
                values.push('\n');
            }
            values.push_str(text);
        } else if text.starts_with("[SUCCESS]") {
            function.success = true;
        } else if let Some(why) = text.strip_prefix("[FAILED]") {
            function.failures.push(why.trim().to_owned());
        } else if function.error.is_none() && is_status(text) {
            function.error = Some(text.trim().to_owned());
        }
    }
    if let Some(done) = current {
        benchmarks.push(done.finish());
    }
    Ok(Run { benchmarks: benchmarks.finish(), ..Run::default() })
}

/// Returns a failed benchmark. If the tool can't load the module or find the function, it prints only a
/// status.
fn failed_before_exec(status: &str, line: u64) -> Result<Benchmark, LineFault> {
    let name = status.split_once("function '").and_then(|(_, rest)| rest.split_once('\''));
    let Some((name, _)) = name.filter(|(name, _)| !name.is_empty()) else {
        return Err(line_fault(line, format!("the tool failed before it ran a function: {}", status.trim())));
    };
    let mut benchmark = Benchmark::new(name);
    fail(&mut benchmark, Stage::Benchmark, status.trim());
    Ok(benchmark)
}

/// Returns the index in `result[0]: hal.buffer_view`.
fn result_index(line: &str) -> Option<usize> {
    line.strip_prefix("result[")?.split_once("]:")?.0.parse().ok()
}

/// Returns whether a line begins like a printed value: `4x8xf32=[…`.
fn is_value(line: &str) -> bool {
    let Some((shape, _)) = line.split_once('=') else { return false };
    let mut parts = shape.rsplit('x');
    let is_type = parts.next().is_some_and(|kind| {
        kind.starts_with(|first: char| first.is_ascii_lowercase())
            && kind.chars().all(|letter| letter.is_ascii_alphanumeric())
    });
    is_type && parts.all(|size| size.parse::<u64>().is_ok())
}

/// Returns whether a line is an IREE status: `FILE.c:12: INVALID_ARGUMENT; message …`.
pub(super) fn is_status(line: &str) -> bool {
    const CODES: [&str; 15] = [
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
    ];
    line.split_once(": ").is_some_and(|(place, rest)| {
        place.contains(".c")
            && CODES.iter().any(|code| rest.strip_prefix(code).is_some_and(|r| r.starts_with(';')))
    })
}

impl Function {
    fn finish(self) -> Benchmark {
        let mut benchmark = Benchmark::new(&self.name);
        benchmark.labels.insert("function".to_owned(), self.name.clone());
        if let Some(error) = self.error {
            fail(&mut benchmark, Stage::Benchmark, error);
            return benchmark;
        }
        // Outputs are compared by their numbers, not in the order in which they are printed.
        let mut results: Vec<(OutputCheck, String)> = self.outputs.into_iter().zip(self.printed).collect();
        results.sort_by_key(|(output, _)| output.index);
        let (mut outputs, printed): (Vec<_>, Vec<_>) = results.into_iter().unzip();
        let (code, why) = if let Some(first) = self.failures.first() {
            // The tool prints the outputs that differ in place of the result lines.
            for failure in &self.failures {
                if let Some(index) = result_index(failure) {
                    let why = Some(failure.clone());
                    outputs.push(OutputCheck { index, code: VerifyCode::Fail, divergence: None, why });
                }
            }
            (VerifyCode::Fail, Some(first.clone()))
        } else if self.success {
            outputs.iter_mut().for_each(|output| output.code = VerifyCode::Pass);
            (VerifyCode::Pass, None)
        } else if outputs.is_empty() {
            // The transcript ends after EXEC: the tool crashed or the file is cut off.
            fail(&mut benchmark, Stage::Benchmark, "the transcript ends without a result");
            return benchmark;
        } else {
            (VerifyCode::VerifierSkipped, Some("no expected output was given".to_owned()))
        };
        if code == VerifyCode::Pass {
            benchmark.labels.insert(JUDGED_BY.to_owned(), JUDGED_BY_OUTPUTS.to_owned());
        }
        benchmark.printed = printed;
        benchmark.verification = Some(Verification { outputs, ..Verification::bare(code, why) });
        benchmark
    }
}
