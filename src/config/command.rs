//! Programs that measure themselves, or that are timed as a whole: the benchmarks of any project.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::ingest::Format;

/// A command whose processes are measured.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandSpec {
    /// Identifies the command on both sides. It is also the name of the benchmark where the command is timed as a whole.
    pub name: String,
    pub run: CommandLine,
    /// Run once for each side before anything is measured.
    pub setup: Option<CommandLine>,
    /// Run before each measured process, and not timed.
    pub prepare: Option<CommandLine>,
    /// Processes of each side that run before the measured ones and count for nothing.
    pub warmup: u32,
    /// Working folder; relative to the side's sources.
    pub folder: PathBuf,
    pub reading: OutputReading,
    /// What it runs on, as the runtime of IREE names it: `local-task`, `cuda://0`.
    pub device: String,
    /// Variables in addition to those that every tool inherits.
    pub env: BTreeMap<String, String>,
    pub timeout: Duration,
}

/// A program with its arguments, or a line for a shell.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CommandLine {
    /// The program and its arguments.
    Words(Vec<String>),
    /// What `sh -c` executes.
    Shell(String),
}

/// How the output of a command becomes benchmarks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputReading {
    /// In the format that the output shows; a command whose output shows none is timed as a whole.
    Detected,
    Format(Format),
    /// Whole processes are timed, whatever they print.
    Whole,
}

impl CommandLine {
    /// Stands for the file that the command writes its results to.
    pub const OUTPUT: &'static str = "{output}";

    /// Stands for the tool's own pattern of the benchmarks that are still to be measured.
    pub const FILTER: &'static str = "{filter}";

    /// The words that may name what it reads: all of them, split as a shell does, without those that it redirects to.
    pub fn words_read(&self) -> Vec<String> {
        match self {
            Self::Words(words) => words.clone(),
            // A text that a shell would refuse names no file.
            Self::Shell(text) => {
                const OPERATORS: [char; 8] = [';', '&', '|', '(', ')', '<', '`', '\n'];
                let mut parts = text.split('>');
                let mut read = parts.next().unwrap_or_default().to_owned();
                for part in parts {
                    let ends = |c: char| c.is_whitespace() || OPERATORS.contains(&c);
                    let target = part.trim_start();
                    read.push_str(&target[target.find(ends).unwrap_or(target.len())..]);
                }
                shlex::split(&read.replace(OPERATORS, " ")).unwrap_or_default()
            }
        }
    }

    pub fn names(&self, placeholder: &str) -> bool {
        match self {
            Self::Words(words) => words.iter().any(|word| word.contains(placeholder)),
            Self::Shell(text) => text.contains(placeholder),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_reads_the_files_that_it_names_and_not_those_that_it_writes() {
        let line = CommandLine::Shell("cd x && sh ./a.sh>out.json 2> log; cat < in | (./b)".to_owned());
        let words = ["cd", "x", "sh", "./a.sh", "2", "cat", "in", "./b"];
        assert_eq!(line.words_read(), words);
        assert!(CommandLine::Shell("sh 'open".to_owned()).words_read().is_empty());
    }
}
