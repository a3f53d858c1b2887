//! `benchgate man` and `benchgate completions`.

use std::path::PathBuf;

use clap::CommandFactory;

use crate::exit_code::ExitCode;

use super::{Cli, CliError, Terminal};

/// Print the manual page, or write one for every command
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  benchgate man > benchgate.1           read it with man ./benchgate.1
  benchgate man --output-dir ./man1     a page for every command")]
pub struct ManArgs {
    /// Folder for the output files; they are benchgate.1, benchgate-gate.1 and so on
    #[arg(long, value_name = "FOLDER")]
    output_dir: Option<PathBuf>,
}

pub fn run(args: &ManArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    match &args.output_dir {
        Some(folder) => std::fs::create_dir_all(folder)
            .and_then(|()| clap_mangen::generate_to(Cli::command(), folder))
            .map_err(|source| failed(&folder.display().to_string(), &source))?,
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command())
                .render(&mut page)
                .map_err(|source| failed("memory", &source))?;
            terminal.print(&String::from_utf8_lossy(&page));
        }
    }
    Ok(ExitCode::Pass)
}

fn failed(place: &str, source: &std::io::Error) -> CliError {
    CliError::failed(format!("failed to write the manual into {place}: {source}"))
        .hint("name a folder that can be written with --output-dir")
}

/// Print shell completions
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  benchgate completions bash > /etc/bash_completion.d/benchgate")]
pub struct CompletionsArgs {
    /// The shell to complete for
    shell: clap_complete::Shell,
}

pub fn completions(args: &CompletionsArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "benchgate", &mut script);
    terminal.print(&String::from_utf8_lossy(&script));
    Ok(ExitCode::Pass)
}
