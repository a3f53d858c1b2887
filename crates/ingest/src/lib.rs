#![doc = include_str!("../README.md")]
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod asv;
mod benchfmt;
mod build;
mod cargo_bench;
mod compile_benchmark;
mod compiled_code;
mod compressed;
mod conv_library;
mod criterion;
mod custom;
mod detect;
mod error;
mod export;
mod facts;
mod format;
mod go_test;
mod google_benchmark;
mod hyperfine;
mod iree_profile;
mod iree_replay;
mod iree_run_module;
mod jmh;
mod join;
mod json;
mod json_scan;
mod latency_csv;
mod nvbench;
mod pytest_benchmark;
mod read;
mod run_json;
mod stated;
mod text;
mod torchbench;

pub use build::MOST_BENCHMARKS;
pub use compiled_code::{CompiledCode, Executable, Unassembled, executables, unnumbered};
pub use compressed::decompressed;
pub use criterion::{check_criterion, describe_criterion};
pub use detect::{FileContent, content, detect, unrecognised};
pub use error::IngestError;
pub use export::{Appended, ExportFormat, ExportedRun, appended, export, format_that_keeps};
pub use format::Format;
pub use iree_profile::kernels;
pub use iree_replay::{CapturedExecutable, captured_executables};
pub use join::{Joiner, join};
pub use read::{read, read_detected, read_in_pieces, read_sides};
