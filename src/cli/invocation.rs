//! This invocation: its day, and its words for a shell.

use crate::process::shell_word;

/// Waivers end with a day, and the day is that of the machine that judges.
pub fn today() -> String {
    jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date().to_string()
}

/// The command as it was given, quoted for a shell.
pub fn command_line() -> String {
    let words = std::env::args().skip(1).map(shell_word);
    std::iter::once("benchgate".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}
