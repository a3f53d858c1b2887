//! `benchgate run`.

use crate::exit_code::ExitCode;

use super::{CliError, Terminal};

/// Export, compile, verify and benchmark a suite, and write run.json
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_args: &Args, _terminal: &Terminal) -> Result<ExitCode, CliError> {
    Err(CliError::Internal { message: "not written yet".into() })
}
