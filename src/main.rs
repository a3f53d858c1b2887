//! The program's entry point. Everything else is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    benchgate::cli::main(std::env::args_os()).into()
}
