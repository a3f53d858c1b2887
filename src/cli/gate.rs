//! `benchgate gate`.

use crate::exit_code::ExitCode;

use super::{CliError, Terminal};

/// Measure both sides, compare and judge
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_args: &Args, _terminal: &Terminal) -> Result<ExitCode, CliError> {
    Err(CliError::Internal { message: "not written yet".into() })
}
