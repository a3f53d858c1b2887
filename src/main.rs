//! The thin binary: parse, run, exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    benchgate::cli::main(std::env::args_os()).into()
}
