//! Finds errors that tools print, because some tools exit with code 0 despite an error. If `iree-compile`
//! can't read a transform library, for example, it prints an error but still writes a module, which was
//! compiled without the library.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;

use benchgate_core::model::without_colors;
use benchgate_host::process::{Exit, Finished};

use super::PipelineError;

/// Words that begin less severe messages, which may quote an error.
const MILDER: [&str; 4] = ["warning:", "note:", "remark:", "debug:"];

/// Returns whether a line reports an error. This is `error: …` at the beginning, after a location
/// (`a.mlir:5:8: error: …`, `loc("x"): error: …`), or after a program's name (`ld.lld: error: …`), or the
/// runtime's status of a failed call (`file.c:12: NOT_FOUND; …`). The word "error" elsewhere, in a warning or
/// in a dump, does not count.
pub(super) fn is_error(line: &str) -> bool {
    let line = without_colors(line);
    let line = line.trim();
    has_status(line) || is_diagnostic(line)
}

fn is_diagnostic(line: &str) -> bool {
    // Case differs by tool; ASCII lowercasing keeps byte positions.
    let lower = line.to_ascii_lowercase();
    let Some(at) = lower.find("error:") else { return false };
    let before = &lower[..at];
    let before = before.strip_suffix("fatal ").or(before.strip_suffix("llvm ")).unwrap_or(before);
    if MILDER.iter().any(|milder| before.contains(milder)) {
        return false;
    }
    let Some(place) = before.strip_suffix(": ") else { return before.is_empty() };
    let is_line = place.rsplit_once(':').is_some_and(|(_, number)| is_number(number));
    is_line || is_named_location(place) || !place.contains(char::is_whitespace)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_named_location(place: &str) -> bool {
    place.starts_with("loc(") && place.ends_with(')')
}

/// Words in errors that are caused by the machine or by a missing file, even if the error names a location in
/// the program.
const OF_THE_MACHINE: [&str; 16] = [
    "out of memory",
    "cannot allocate",
    "bad_alloc",
    "no space left",
    "too many open files",
    "resource temporarily unavailable",
    "no such file",
    "permission denied",
    "to open",
    "cannot open",
    "could not open",
    // Linking is done by another program, whose own error is not reported.
    "to link",
    "linking failed",
    "linker",
    "killed",
    "terminated",
];

/// Returns whether an error is about a location in the program: `a.mlir:5:8: error: …` or `loc("x"): error:
/// …`. Tools without such locations, such as a linker, write none or line 0. An error in another file, such
/// as a tuning spec, does not count.
fn is_about_program(line: &str, program: &Path) -> bool {
    let lower = line.to_ascii_lowercase();
    let Some((place, message)) = lower.split_once(": error:") else { return false };
    let mut numbers = place.rsplit(':').map_while(|part| is_number(part).then_some(part));
    let is_place = numbers.next().is_some() && numbers.next().is_some_and(|line| line != "0");
    let is_place = is_place && line.starts_with(&*program.to_string_lossy());
    let is_place = is_place || (is_named_location(place) && place != "loc(unknown)");
    is_place && !OF_THE_MACHINE.iter().any(|words| message.contains(words))
}

/// Returns whether the compiler ended by itself and every error in its log is about the program. Only such a
/// failure is repaired by changing the program. A crash, a timeout or a lack of memory could turn out
/// differently another time.
pub(super) fn is_rejection(finished: &Finished, log: &Path, program: &Path) -> Result<bool, PipelineError> {
    if !matches!(finished.exit, Exit::Code(_)) || finished.ended_from_outside().is_some() {
        return Ok(false);
    }
    let mut found = 0_usize;
    let other = first_line(log, |line| {
        let is_about_program = is_about_program(line, program);
        found += usize::from(is_about_program);
        !is_about_program && is_error(line)
    })?;
    Ok(found > 0 && other.is_none())
}

/// Returns whether a line contains the status of a failed call, such as
/// `c/runtime/src/iree/io/file_handle.c:373: NOT_FOUND; failed to open …`.
fn has_status(line: &str) -> bool {
    let Some((place, rest)) = line.split_once(": ") else { return false };
    let Some((file, number)) = place.rsplit_once(':') else { return false };
    let is_source = [".c", ".cc", ".cpp", ".h"].iter().any(|ending| file.ends_with(ending));
    let status = rest.split_once(';').map_or("", |(status, _)| status);
    let is_status = status.len() > 1 && status.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    is_source && is_status && number.parse::<u32>().is_ok()
}

/// The first error in a tool's log. The captured tail of stderr is not enough, because a tool may dump a long
/// program after an error.
pub(super) fn in_log(log: &Path) -> Result<Option<String>, PipelineError> {
    first_line(log, is_error)
}

/// The first wanted line of a log, without color codes. If the log was truncated before such a line, returns
/// a message that says so.
fn first_line(log: &Path, mut is_wanted: impl FnMut(&str) -> bool) -> Result<Option<String>, PipelineError> {
    let file = match fs::File::open(log) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(PipelineError::io("open", log)(error)),
    };
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = reader.read_until(b'\n', &mut line).map_err(PipelineError::io("read", log))?;
        if length == 0 {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&line);
        let text = without_colors(&text);
        if is_wanted(text.trim()) {
            return Ok(Some(text.trim().to_owned()));
        }
        if text.starts_with(benchgate_host::process::LOG_CUT) {
            return Ok(Some("its output was truncated and may contain an error".to_owned()));
        }
    }
}

/// The first error in the log of a tool that failed. If the log can't be read, only its tail is used.
pub(super) fn first_error(log: &Path) -> Option<String> {
    let found = in_log(log).unwrap_or_default()?;
    is_error(&found).then_some(found)
}

/// The error that a tool printed although its exit code reports success.
pub(super) fn despite_success(finished: &Finished, log: &Path) -> Result<Option<String>, PipelineError> {
    if finished.exit == Exit::Success { in_log(log) } else { Ok(None) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_known_by_their_place_in_the_line() {
        for line in [
            "error: bad",
            "  Error: bad",
            "fatal error: bad",
            "LLVM ERROR: out of memory",
            "missing.mlir:0:0: error: failed to open transform file: cannot open input file",
            "my folder/a.mlir:5:8: error: Failed to load transform library module: missing.mlir",
            "<unknown>:0: error: bad",
            "loc(\"a\"(\"b c\")): error: bad",
            "loc(fused[\"a\", \"b\"]): error: bad",
            "ld.lld: error: undefined symbol: x",
            "\u{1b}[31merror:\u{1b}[0m bad",
            "c/runtime/src/iree/io/file_handle.c:373: NOT_FOUND; failed to open file 'x'",
        ] {
            assert!(is_error(line), "{line}");
        }
    }

    #[test]
    fn the_word_error_in_prose_is_no_error() {
        for line in [
            "a.mlir:1:1: warning: this error: is tolerated",
            "warning: error: is a word",
            "a.mlir:5:8: note: error: called from",
            "remark: 0 errors, the last error: none",
            "    %error: tensor<4xf32>",
            "the error: it was small",
            "result[0]: hal.buffer_view",
            "***WARNING*** ASLR is enabled, the results may have unreproducible noise in them.",
            "DEVICE_LOCAL:       256B peak /       256B allocated",
            "",
        ] {
            assert!(!is_error(line), "{line}");
        }
    }

    #[test]
    fn only_errors_about_a_place_in_the_program_reject_it() {
        let program = Path::new("my folder/a.mlir");
        for line in [
            "my folder/a.mlir:1:1: error: no such op",
            "my folder/a.mlir:12:8: error: failed to legalize operation",
            "loc(\"a\"(\"b c\")): error: bad",
        ] {
            assert!(is_about_program(line, program), "{line}");
        }
        for line in [
            "error: bad",
            "LLVM ERROR: out of memory",
            "<unknown>:0: error: linking failed",
            "my folder/a.mlir:0:0: error: failed to open transform file: cannot open input file",
            "my folder/a.mlir:5:8: error: std::bad_alloc",
            "my folder/a.mlir:5:8: error: failed to open parameters: NOT_FOUND",
            "my folder/a.mlir:5:8: error: failed to link executable and generate target dylib",
            "my folder/a.mlir:5: error: no column",
            "my folder/spec.mlir:5:8: error: no such op",
            "ld.lld: error: undefined symbol: x",
        ] {
            assert!(!is_about_program(line, program), "{line}");
        }
    }

    #[test]
    fn an_error_before_a_long_dump_is_found_and_a_log_that_was_cut_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("a.log");
        let dump = "    %1 = arith.constant\n".repeat(10_000);
        fs::write(&log, format!("a.mlir:1:1: error: bad\n{dump}")).unwrap();
        assert_eq!(in_log(&log).unwrap().as_deref(), Some("a.mlir:1:1: error: bad"));
        fs::write(&log, format!("{dump}{}", benchgate_host::process::LOG_CUT)).unwrap();
        assert!(in_log(&log).unwrap().is_some());
        fs::write(&log, dump).unwrap();
        assert_eq!(in_log(&log).unwrap(), None);
    }
}
