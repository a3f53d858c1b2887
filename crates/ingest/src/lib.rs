#![doc = include_str!("../README.md")]
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod asv;
mod benchfmt;
mod build;
mod cargo_bench;
mod compile_benchmark;
mod compiled_code;
mod conv_library;
mod criterion;
mod custom;
mod detect;
mod document;
mod error;
mod export;
mod facts;
mod format;
mod google_benchmark;
mod hyperfine;
mod iree_jsonl;
mod iree_run_module;
mod jmh;
mod join;
mod json;
mod json_scan;
mod latency_csv;
mod nvbench;
mod pytest_benchmark;
mod read;
mod stated;
mod text;
mod torchbench;

pub use build::MOST_BENCHMARKS;
pub use compiled_code::{CompiledCode, Executable, Unassembled, executables, unnumbered};
pub use criterion::{check_criterion, describe_criterion};
pub use detect::{FileContent, content, detect, unrecognised};
pub use error::IngestError;
pub use export::{Appended, ExportFormat, ExportedRun, appended, export, format_that_keeps};
pub use format::Format;
pub use iree_jsonl::{CapturedExecutable, captured_executables, kernels};
pub use join::{Joiner, join};
pub use read::{decompressed, read, read_detected, read_in_pieces, read_sides};
pub use text::logged_problems;
