//! L5: the command line, with one file per command. Only this layer reads the environment, the clock and the
//! terminal, and only this layer prints.

/// A hint with the URL of a documentation page, because an installed benchgate has no `docs` folder.
macro_rules! docs {
    ($page:literal, $what:literal) => {
        concat!("see ", env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/", $page, " for ", $what)
    };
}

mod action;
mod action_inputs;
mod alert;
mod baseline;
mod baseline_accept;
mod baseline_show;
mod beside;
mod bisect;
mod bundle_args;
mod choices;
mod clean;
mod compare;
mod convert;
mod doctor;
mod error;
mod explain;
mod gate;
mod guesses;
mod import;
mod init;
mod inputs;
mod limits;
mod noise;
mod numbered;
mod pair;
mod paths;
mod plan;
mod policy_args;
mod posting;
mod progress;
mod provenance;
mod publish;
mod reading;
mod rendering;
mod report;
mod reporting;
mod result_args;
mod run;
mod run_args;
mod runtime;
mod select;
mod session;
mod site;
mod store_args;
mod stored;
mod terminal;
mod tools;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{CommandFactory, Parser, Subcommand};

use crate::exit_code::ExitCode;

pub use error::{CliError, ErrorKind};
pub use inputs::complete_run;
pub use provenance::{Commits, TrustedInputs, judge};
pub use terminal::Terminal;

/// The performance gate for ML compilers.
///
/// Takes models through export, compile, verify and benchmark with IREE tools pinned by commit, compares the result
/// with a base using a test that bounds false positives, and reports the verdict as an exit code.
#[derive(Debug, Parser)]
#[command(name = "benchgate", version, propagate_version = true, after_help = EXAMPLES)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: CliCommand,
}

const EXAMPLES: &str = "\
Examples:
  benchgate gate -c examples/quickstart/benchgate.toml   measure and judge
  benchgate compare base.json head.json                  judge two results
  benchgate run                                          measure, write run.json

Exit codes: 0 pass, 2 usage or config, 10 regressed, 11 inconclusive,
12 missing, 13 diverged, 20 error, 21 input unreadable,
22 store or GitHub failed, 130 interrupted.";

/// Options every command takes.
#[derive(Debug, Clone, clap::Args)]
pub struct Global {
    /// When to use colors; NO_COLOR and a pipe switch them off
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = "Global options")]
    pub color: ColorWhen,
    /// Print results and errors only
    #[arg(long, short, global = true, help_heading = "Global options")]
    pub quiet: bool,
}

/// When to use colors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ColorWhen {
    Auto,
    Always,
    Never,
}

/// The commands, one file each.
#[derive(Debug, Subcommand)]
pub enum CliCommand {
    Tools(tools::ToolsArgs),
    Run(run::RunArgs),
    Compare(Box<compare::CompareArgs>),
    Gate(Box<gate::GateArgs>),
    Pair(Box<pair::CommandPairArgs>),
    Plan(plan::PlanArgs),
    Merge(plan::MergeArgs),
    Publish(Box<publish::PublishArgs>),
    Action(action::ActionArgs),
    Baseline(baseline::BaselineArgs),
    Limits(limits::LimitsArgs),
    Noise(noise::NoiseArgs),
    Bisect(Box<bisect::BisectArgs>),
    Convert(convert::ConvertArgs),
    Report(report::ReportArgs),
    Site(site::SiteArgs),
    Alert(alert::AlertArgs),
    Init(init::InitArgs),
    Import(import::ImportArgs),
    Explain(Box<explain::ExplainArgs>),
    Doctor(doctor::DoctorArgs),
    Clean(clean::CleanArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// Parses the arguments, runs the command, and returns its exit code.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    runtime::take_secrets();
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            let failed = error.use_stderr();
            // If even this can't be printed, there is no other place to report it.
            drop(error.print());
            return if failed { ExitCode::Usage } else { ExitCode::Pass };
        }
    };
    let terminal = Terminal::new(&cli.global);
    let result = match &cli.command {
        CliCommand::Tools(args) => tools::run(args, &terminal),
        CliCommand::Run(args) => run::run(args, &terminal),
        CliCommand::Compare(args) => compare::run(args, &terminal),
        CliCommand::Gate(args) => gate::run(args, &terminal),
        CliCommand::Pair(args) => pair::run(args, &terminal),
        CliCommand::Plan(args) => plan::run(args, &terminal),
        CliCommand::Merge(args) => plan::merge(args, &terminal),
        CliCommand::Publish(args) => publish::run(args, &terminal),
        CliCommand::Action(args) => action::run(args, &terminal),
        CliCommand::Baseline(args) => baseline::run(args, &terminal),
        CliCommand::Limits(args) => limits::run(args, &terminal),
        CliCommand::Noise(args) => noise::run(args, &terminal),
        CliCommand::Bisect(args) => bisect::run(args, &terminal),
        CliCommand::Convert(args) => convert::run(args, &terminal),
        CliCommand::Report(args) => report::run(args, &terminal),
        CliCommand::Alert(args) => alert::run(args, &terminal),
        CliCommand::Site(args) => site::run(args, &terminal),
        CliCommand::Init(args) => init::run(args, &terminal),
        CliCommand::Import(args) => import::run(args, &terminal),
        CliCommand::Explain(args) => explain::run(args, &terminal),
        CliCommand::Doctor(args) => doctor::run(args, &terminal),
        CliCommand::Clean(args) => clean::run(args, &terminal),
        CliCommand::Completions(args) => completions(args, &terminal),
        CliCommand::Man(args) => manual(args, &terminal),
    };
    match result {
        Ok(code) => terminal.finish(code),
        Err(error) => {
            terminal.error(&error);
            error.exit_code()
        }
    }
}

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

fn manual(args: &ManArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    match &args.output_dir {
        Some(folder) => std::fs::create_dir_all(folder)
            .and_then(|()| clap_mangen::generate_to(Cli::command(), folder))
            .map_err(|source| no_manual(&folder.display().to_string(), &source))?,
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command())
                .render(&mut page)
                .map_err(|source| no_manual("memory", &source))?;
            terminal.print(&String::from_utf8_lossy(&page));
        }
    }
    Ok(ExitCode::Pass)
}

fn no_manual(place: &str, source: &std::io::Error) -> CliError {
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

fn completions(args: &CompletionsArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "benchgate", &mut script);
    terminal.print(&String::from_utf8_lossy(&script));
    Ok(ExitCode::Pass)
}
