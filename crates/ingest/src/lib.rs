#![doc = include_str!("../README.md")]
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod asv;
mod benchfmt;
mod beside;
mod build;
mod build_log;
mod cargo_bench;
mod compile_benchmark;
mod compiled_code;
mod conv_library;
mod custom;
mod detect;
mod document;
mod export;
mod facts;
mod format;
mod google_benchmark;
mod hyperfine;
mod iree_tools;
mod jmh;
mod join;
mod json;
mod json_scan;
mod latency_csv;
mod logs;
mod nvbench;
mod pytest_benchmark;
mod read;
mod text;
mod torchbench;
mod values;
mod varying;

use std::borrow::Cow;

pub use beside::beside;
pub use build::MOST_BENCHMARKS;
pub use build_log::build_errors;
pub use cargo_bench::{check_criterion, describe_criterion};
pub use compiled_code::{CompiledCode, Executable, Unassembled, executables, unnumbered};
pub use detect::{FileContent, content, detect, time_of_an_operation, unrecognised};
pub use export::{Appended, ExportFormat, ExportedRun, appended, export, format_that_keeps};
pub use format::Format;
pub use google_benchmark::metric_name;
pub use iree_tools::{CapturedExecutable, captured_executables, kernels};
pub use join::{Joiner, join, labels_of_processes};
pub use logs::logged_problems;
pub use read::{decompressed, read, read_detected, read_in_pieces, read_sides};

/// An input that can't be used. Findings about single rows are lints of the run instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IngestError {
    /// The bytes break the rules of their format.
    #[error("read {label} as {format}, line {line}: {what}")]
    Malformed {
        /// The input as the caller named it: a path, or `-`.
        label: String,
        format: Format,
        /// Counted from 1.
        line: u64,
        what: String,
    },
    /// The bytes are not UTF-8.
    #[error("read {label}, line {line}: not valid UTF-8")]
    NotUtf8 { label: String, line: u64 },
    /// A gzip or Zstandard stream is broken or too large.
    #[error("read {label}: {what}")]
    Compressed { label: String, what: String },
    /// No format recognizes the content.
    #[error("recognize the format of {label}: {content}")]
    Unrecognised { label: String, content: FileContent },
    /// The input is well-formed but has no result: comparing it would pass without checking anything.
    #[error("find a result in {label} (read as {format})")]
    NoResults { label: String, format: Format },
    /// There are more benchmarks than most machines have memory to compare.
    #[error("read {label}: it has more than {limit} benchmarks")]
    TooManyBenchmarks { label: String, limit: usize },
    /// benchgate's own file contains several sides, but the caller wanted one.
    #[error("choose a side of {label}: it has {sides}")]
    SeveralSides { label: String, sides: String },
    /// Compiled code is broken, or of a kind that can't be read.
    #[error("read the code in {label}: {what}")]
    Code { label: String, what: String },
    /// benchgate's own file can't be read.
    #[error("read {label}: {what}")]
    Record { label: String, what: String },
}

/// A fault at a byte offset, for which the label and the line are not known yet. The fault is boxed, because
/// it is part of the result of every small parsing step.
type BoxedFault = Box<FaultAt>;

#[derive(Debug)]
struct FaultAt {
    /// Byte offset into the text.
    pub at: usize,
    pub what: Cow<'static, str>,
}

fn fault(at: usize, what: impl Into<Cow<'static, str>>) -> BoxedFault {
    Box::new(FaultAt { at, what: what.into() })
}

/// A fault on a line, from readers that work line by line.
#[derive(Debug)]
struct LineFault {
    /// Counted from 1.
    pub line: u64,
    pub what: Cow<'static, str>,
}

fn line_fault(line: u64, what: impl Into<Cow<'static, str>>) -> LineFault {
    LineFault { line, what: what.into() }
}

/// Returns the number, counted from 1, of the line that contains byte `at`.
fn line_of(bytes: &[u8], at: usize) -> u64 {
    let before = bytes.get(..at).unwrap_or(bytes);
    1 + before.iter().filter(|&&byte| byte == b'\n').count() as u64
}
