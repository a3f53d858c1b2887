//! Output to the user on stdout and stderr, with colors.

use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit_code::ExitCode;
use crate::report::{fitted, harmless};

use super::{CliError, ColorWhen, Global};

/// The streams for results, progress and errors.
#[derive(Debug)]
pub struct Terminal {
    pub color: anstream::ColorChoice,
    pub quiet: bool,
    /// True if stderr is a terminal that a person watches, so that progress may move.
    pub interactive: bool,
    /// True if a result could not be printed, for example because stdout is a file on a full disk.
    lost: AtomicBool,
}

/// Returns true in CI: every CI service sets `CI`.
pub fn is_ci() -> bool {
    std::env::var_os("CI").is_some()
}

impl Terminal {
    pub fn new(global: &Global) -> Self {
        let color = match global.color {
            ColorWhen::Auto => anstream::ColorChoice::Auto,
            ColorWhen::Always => anstream::ColorChoice::Always,
            ColorWhen::Never => anstream::ColorChoice::Never,
        };
        let ci = is_ci();
        let interactive = std::io::stderr().is_terminal() && !ci;
        Self { color, quiet: global.quiet, interactive, lost: AtomicBool::new(false) }
    }

    /// Returns true if stdout may have colors.
    pub fn colors_stdout(&self) -> bool {
        match self.color {
            anstream::ColorChoice::Auto => {
                anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never
            }
            choice => choice != anstream::ColorChoice::Never,
        }
    }

    /// The width of the terminal; without a terminal, `COLUMNS`, or else 80.
    pub fn width(&self) -> u16 {
        let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let shown = terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| width.0);
        shown.or(asked).unwrap_or(80).clamp(40, 500)
    }

    /// Prints the result of a command without control characters. On a terminal, lines that are too wide are
    /// wrapped.
    pub fn say(&self, text: &str) {
        let said = harmless(text);
        let shown = terminal_size::terminal_size_of(std::io::stdout());
        self.print(&shown.map_or(said.clone(), |(width, _)| fitted(&said, usize::from(width.0))));
    }

    /// Prints a result. If the reader closes the pipe, as `head` does, the output ends silently.
    pub fn print(&self, text: &str) {
        let written = if has_codes(text) {
            let mut out = anstream::AutoStream::new(std::io::stdout(), self.color);
            out.write_all(text.as_bytes()).and_then(|()| out.flush())
        } else {
            let mut out = std::io::stdout().lock();
            out.write_all(text.as_bytes()).and_then(|()| out.flush())
        };
        match written {
            Ok(()) => {}
            // A reader that closes the pipe has read enough.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            Err(error) => {
                self.lost.store(true, Ordering::Relaxed);
                self.error(&CliError::failed(format!("failed to write to stdout: {error}")));
            }
        }
    }

    /// The exit code of a command that ended with `code`: an error instead of 0 if its result could not be
    /// printed.
    pub fn finish(&self, code: ExitCode) -> ExitCode {
        if code == ExitCode::Pass && self.lost.load(Ordering::Relaxed) { ExitCode::Error } else { code }
    }

    /// Prints a progress line.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            self.eprint("", &format!("{text}\n"));
        }
    }

    /// Prints a warning, even with `--quiet`.
    pub fn warn(&self, text: &str) {
        let bold_yellow = anstyle::Style::new().bold().fg_color(Some(anstyle::AnsiColor::Yellow.into()));
        self.eprint(&format!("{bold_yellow}warning{bold_yellow:#}"), &format!("warning: {text}\n"));
    }

    /// Prints an error with its hint.
    pub fn error(&self, error: &CliError) {
        let bold_red = anstyle::Style::new().bold().fg_color(Some(anstyle::AnsiColor::Red.into()));
        let cyan = anstyle::Style::new().fg_color(Some(anstyle::AnsiColor::Cyan.into()));
        self.eprint(&format!("{bold_red}error{bold_red:#}"), &format!("error: {error}\n"));
        if let Some(hint) = error.help() {
            self.eprint(&format!("{cyan}hint{cyan:#}"), &format!("hint: {hint}\n"));
        }
    }

    /// Prints a text that begins with a label. The label is colored after wrapping, because color codes have
    /// no width. Control characters are removed, because messages quote files and names that may be
    /// untrusted.
    fn eprint(&self, label: &str, text: &str) {
        let said = fitted_to_stderr(harmless(text));
        let plain = anstream::adapter::strip_str(label).to_string();
        let mut err = anstream::AutoStream::new(std::io::stderr(), self.color);
        drop(err.write_all(format!("{label}{}", &said[plain.len()..]).as_bytes()));
    }
}

/// Wraps lines that are too wide for the terminal that shows stderr, if there is one.
pub fn fitted_to_stderr(text: String) -> String {
    match terminal_size::terminal_size_of(std::io::stderr()) {
        Some((width, _)) => fitted(&text, usize::from(width.0)),
        None => text,
    }
}

/// Returns true if a text contains characters that a terminal could interpret, so that `anstream` has to
/// filter it. Large reports usually contain none, and this check is fast.
fn has_codes(text: &str) -> bool {
    let obeyed = |byte: u8| (byte < b' ' && !byte.is_ascii_whitespace()) || byte == 0x7f;
    // Without an early exit, the compiler can compare many bytes of a block at a time.
    text.as_bytes().chunks(4096).any(|block| block.iter().fold(false, |any, byte| any | obeyed(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_control_characters_that_are_no_space_are_codes() {
        assert!(!has_codes("a row\tand → another\r\n"));
        assert!(["\u{1b}[31m", "bell\u{7}", "\u{7f}"].into_iter().all(has_codes));
    }
}
