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

    pub fn names(&self, placeholder: &str) -> bool {
        match self {
            Self::Words(words) => words.iter().any(|word| word.contains(placeholder)),
            Self::Shell(text) => text.contains(placeholder),
        }
    }
}
