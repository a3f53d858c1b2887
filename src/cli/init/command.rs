//! `benchgate init --command`: writes a suite for one program of the repository.

use std::path::PathBuf;

use crate::config::{self, CommandLine};
use crate::exit_code::ExitCode;
use crate::git;

use super::super::stored::likely_base;
use super::templates::store;
use super::{CliError, IGNORED, InitArgs, Terminal, existing, has_remote, suite_name, write};

/// Writes the configuration, and a .gitignore unless there is one.
pub(super) fn run(args: &InitArgs, command: &str, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let file = args.folder.join("benchgate.toml");
    let text = suite(&suite_name(args)?, &args.build_command, command, has_remote(&args.folder));
    // Invalid commands are reported before anything is written.
    config::parse(&text, &file).map_err(|problems| CliError::usage(format!("failed to {problems}")))?;
    let root = git::Repository::open(&existing(&args.folder)).map(|repository| repository.root().to_owned());
    let ignore = root.unwrap_or_else(|_| args.folder.clone()).join(".gitignore");
    let keeps_ignore = std::fs::symlink_metadata(&ignore).is_ok();
    let mut files: Vec<(PathBuf, Vec<u8>)> = vec![(file, text.into_bytes())];
    if !keeps_ignore {
        files.push((ignore, IGNORED.into()));
    }
    write(&files, terminal)?;
    if keeps_ignore {
        terminal.say(&format!("\nAdd to .gitignore:\n\n{IGNORED}"));
    }
    let base = git::Repository::open(&existing(&args.folder)).map_or("HEAD", |at| likely_base(&at));
    terminal.say(&format!(
        "\nNext:\n  benchgate run                       check that the command works here\n  {:<34}  measure what a {} \
         changed\n\nThe base is built from its own configuration, so commit this file to the base first.\n",
        format!("benchgate gate --base {base}"),
        if base == "HEAD" { "later edit" } else { "branch" },
    ));
    Ok(ExitCode::Pass)
}

fn suite(name: &str, build: &[String], run: &str, has_branch: bool) -> String {
    let store = store(has_branch);
    let build = match build {
        [] => "# Commands that build the program; {build} is an empty folder of each side.\n# build = [\"cmake -B {build}\", \"cmake --build {build}\"]\n"
            .to_owned(),
        lines => format!("build = {lines:?}\n"),
    };
    let filter = if run.contains(CommandLine::FILTER) {
        ""
    } else {
        "# With {filter} in it, later processes run only the undecided benchmarks.\n"
    };
    format!(
        "# What is measured and what counts as a regression: docs/commands.md and docs/configuration.md.\n\n[suite]\n\
         name = {name:?}\n\n[[command]]\nname = \"bench\"\n{build}{filter}run = {run:?}\n\n[store]\n{store}"
    )
}
