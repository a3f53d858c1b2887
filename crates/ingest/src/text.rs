//! Bytes to text: UTF-8 checked once, the byte-order mark taken off, lines numbered; and the lines that a crash leaves.

use super::IngestError;
use super::error::line_of;

/// The whole input as text without a byte-order mark.
pub(super) fn utf8<'a>(bytes: &'a [u8], label: &str) -> Result<&'a str, IngestError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    std::str::from_utf8(bytes).map_err(|error| IngestError::NotUtf8 {
        label: label.to_owned(),
        line: line_of(bytes, error.valid_up_to()),
    })
}

/// One line, without its line ending.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    /// Counted from 1.
    pub number: u64,
    pub text: &'a str,
    /// False for a last line without its newline: its end may be missing.
    pub terminated: bool,
}

/// The lines of a text, `\n` or `\r\n`.
pub(super) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    text.split_inclusive('\n').zip(1u64..).map(|(raw, number)| {
        let terminated = raw.ends_with('\n');
        let text = raw.strip_suffix('\n').unwrap_or(raw);
        Line { number, text: text.strip_suffix('\r').unwrap_or(text), terminated }
    })
}

/// How lines begin that runtimes and shells print of a program that crashed.
const CRASH_STARTS: [&str; 14] = [
    "terminate called ",
    "terminating due to ",
    "libc++abi: ",
    "double free or corruption",
    "free(): ",
    "malloc(): ",
    "munmap_chunk(): ",
    "corrupted size vs. prev_size",
    "*** stack smashing detected",
    "*** buffer overflow detected",
    "fatal error: ",
    "Fatal Python error: ",
    "Traceback (most recent call last)",
    "PLEASE submit a bug report to ",
];

/// Parts of lines that the runtimes of C, C++ and Rust and sanitizers print of a crash.
const CRASH_PARTS: [&str; 6] = [
    "(core dumped)",
    "Sanitizer: ",
    "Sanitizer:DEADLYSIGNAL",
    ": runtime error: ",
    " panicked at ",
    " Check failed: ",
];

/// The names of the signals that end a program, as a shell prints them.
const SIGNALS: [&str; 9] = [
    "Segmentation fault",
    "Aborted",
    "Killed",
    "Bus error",
    "Illegal instruction",
    "Floating point exception",
    "Trace/breakpoint trap",
    "Terminated",
    "Bad system call",
];

/// Those that zsh, which writes them in small letters, calls by other names.
const ZSH_SIGNALS: [&str; 3] = ["abort", "trace trap", "illegal hardware instruction"];

/// The first line that reports a crash of the program that wrote a log.
pub(super) fn crash(text: &str) -> Option<&str> {
    // Rows of results are most of a large file.
    let is_row = |line: &&str| line.starts_with('"') || line.starts_with("Benchmark");
    lines(text).map(|line| line.text.trim()).filter(|line| !is_row(line)).find(|line| is_crash(line))
}

fn is_crash(line: &str) -> bool {
    // `Killed`, `Killed: 9`, `Killed          ./bench`, `run.sh: line 3:  4711 Killed   ./bench`; not `Killed 3 workers`.
    let number = |rest: &str| rest.strip_prefix(": ").is_some_and(|n| n.parse::<u8>().is_ok());
    let ended_by = |signal: &&str| match line.split_once(*signal) {
        Some(("", rest)) => rest.is_empty() || rest.starts_with("  ") || number(rest),
        Some((before, _)) => before.contains(": line ") && before.ends_with(' '),
        None => false,
    };
    let zsh_ended = |said: &str| {
        ZSH_SIGNALS.iter().any(|signal| said.starts_with(signal))
            || SIGNALS.iter().any(|signal| said.starts_with(&signal.to_lowercase()))
    };
    SIGNALS.iter().any(ended_by)
        || line.strip_prefix("zsh: ").is_some_and(zsh_ended)
        || CRASH_STARTS.iter().any(|start| line.starts_with(start))
        || CRASH_PARTS.iter().any(|part| line.contains(part))
        || (line.contains("Assertion ") && line.ends_with("failed."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_a_crash_leaves_are_found() {
        for line in [
            "Segmentation fault",
            "Segmentation fault (core dumped)",
            "run.sh: line 3:  4711 Killed                  ./bench",
            "Aborted",
            "Killed: 9",
            "Terminated              ./bench",
            "zsh: segmentation fault  ./bench",
            "terminate called after throwing an instance of 'std::bad_alloc'",
            "==4711==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000010",
            "bench: bench.cc:12: int main(): Assertion `n > 0' failed.",
            "thread 'main' panicked at src/main.rs:2:5:",
        ] {
            assert_eq!(crash(&format!("BM_a 1 ns 1 ns 1\n{line}\n")), Some(line));
        }
        for line in [
            "BM_Aborted 1 ns 1 ns 1",
            "0 jobs were Killed",
            "Killed: 0 jobs",
            "Aborted 0 of 10 requests",
            "zsh: command not found: foo",
            "Running ./bench",
            "PASS",
            "ok  a/b 1.2s",
        ] {
            assert_eq!(crash(line), None, "{line}");
        }
    }
}
