//! `benchgate compare`.

use crate::exit_code::ExitCode;

use super::{CliError, Terminal};

/// Compare two results and judge the difference
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_args: &Args, _terminal: &Terminal) -> Result<ExitCode, CliError> {
    Err(CliError::Internal { message: "not written yet".into() })
}
