//! The person's side: what goes to stdout, what to stderr, and with which colours.

use std::io::{IsTerminal, Write};

use super::{CliError, ColorWhen, Global};

/// Where results, progress and errors are printed.
#[derive(Debug)]
pub struct Terminal {
    pub color: anstream::ColorChoice,
    pub quiet: bool,
    /// A person watches stderr, so progress may move.
    pub interactive: bool,
}

impl Terminal {
    pub fn new(global: &Global) -> Self {
        let color = match global.color {
            ColorWhen::Auto => anstream::ColorChoice::Auto,
            ColorWhen::Always => anstream::ColorChoice::Always,
            ColorWhen::Never => anstream::ColorChoice::Never,
        };
        let ci = std::env::var_os("CI").is_some();
        Self { color, quiet: global.quiet, interactive: std::io::stderr().is_terminal() && !ci }
    }

    /// Prints a result. A closed pipe (`| head`) ends output quietly.
    pub fn print(&self, text: &str) {
        let mut out = anstream::AutoStream::new(std::io::stdout(), self.color);
        // A reader that went away is not our failure.
        drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
    }

    /// Prints a line about what is going on.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            self.eprint(&format!("{text}\n"));
        }
    }

    /// Prints an error with its hint.
    pub fn error(&self, error: &CliError) {
        let bold_red = anstyle::Style::new().bold().fg_color(Some(anstyle::AnsiColor::Red.into()));
        let cyan = anstyle::Style::new().fg_color(Some(anstyle::AnsiColor::Cyan.into()));
        let mut text = format!("{bold_red}error{bold_red:#}: {error}\n");
        if let Some(hint) = error.hint() {
            text.push_str(&format!("{cyan}hint{cyan:#}: {hint}\n"));
        }
        self.eprint(&text);
    }

    fn eprint(&self, text: &str) {
        let mut err = anstream::AutoStream::new(std::io::stderr(), self.color);
        drop(err.write_all(text.as_bytes()));
    }
}
