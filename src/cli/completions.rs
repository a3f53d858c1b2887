//! `benchgate completions`.

use clap::CommandFactory;

use crate::exit_code::ExitCode;

use super::{Cli, CliError, Terminal};

/// Print shell completions
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  benchgate completions bash > /etc/bash_completion.d/benchgate")]
pub struct CompletionsArgs {
    /// The shell to complete for
    shell: clap_complete::Shell,
}

pub fn run(args: &CompletionsArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "benchgate", &mut script);
    terminal.print(&String::from_utf8_lossy(&script));
    Ok(ExitCode::Pass)
}
