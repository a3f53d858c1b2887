//! The results that a command reads, with the same syntax for `compare`, `explain` and `report`.

use clap::builder::TypedValueParser;

use crate::ingest::Format;
use crate::model::name_their_sides;

use super::inputs::{self, LoadedRun};
use super::rendering::RunFileArgs;
use super::select::{NameArgs, SelectArgs};
use super::{CliError, choices};

/// Options of every command that reads results.
#[derive(Debug, Clone, clap::Args)]
pub struct SourceArgs {
    #[command(flatten)]
    run: RunFileArgs,
    #[command(flatten)]
    pub names: NameArgs,
    /// Format of the results; detected from the content by default
    #[arg(long, value_name = "FORMAT", value_parser = format_parser())]
    pub format_in: Option<Format>,
}

impl SourceArgs {
    /// The results that the user named, or else the one of `--run`.
    pub fn or_run(&self, named: &[String]) -> Vec<String> {
        if named.is_empty() { vec![self.run.run.to_string_lossy().into_owned()] } else { named.to_vec() }
    }
}

/// The two results that a command compares.
#[derive(Debug, Clone, clap::Args)]
pub struct PairArgs {
    /// The result to compare with: PATH, PATH#base, PATH#head, a folder, a quoted glob, or - for stdin. A run.json
    /// with both sides needs no second file
    #[arg(value_name = "BASE", conflicts_with = "run")]
    base_file: Option<String>,
    /// The result to judge
    #[arg(value_name = "HEAD")]
    head_file: Option<String>,
    /// A file or quoted glob of the base side; if there are several files, each is one session
    #[arg(
        long = "base-file",
        value_name = "FILE",
        requires = "head",
        conflicts_with_all = ["base_file", "head_file", "run"]
    )]
    base: Vec<String>,
    /// A file or quoted glob of the head side
    #[arg(long = "head-file", value_name = "FILE", requires = "base")]
    head: Vec<String>,
    #[command(flatten)]
    pub source: SourceArgs,
}

impl PairArgs {
    /// The results that are given as positional arguments.
    pub fn named(&self) -> impl Iterator<Item = &String> {
        self.base_file.iter().chain(&self.head_file)
    }

    /// Reads both sides.
    pub fn load(&self, select: &SelectArgs) -> Result<(LoadedRun, LoadedRun), CliError> {
        let (base, head) = if self.base.is_empty() {
            (self.source.or_run(self.base_file.as_slice()), self.head_file.as_slice().to_vec())
        } else {
            (self.base.clone(), self.head.clone())
        };
        if let (Some(base), Some(head)) = (&self.base_file, &self.head_file)
            && name_their_sides(head, base)
        {
            return Err(CliError::usage(format!("{base} was given as the base, and {head} as the head"))
                .hint("swap the arguments; if the order is intended, use `--base-file` and `--head-file`"));
        }
        let format = self.source.format_in;
        if select.splits_one() && head.is_empty() {
            let loaded = inputs::load_side(&inputs::expand(&base)?, format)?;
            return Ok((loaded.clone(), loaded));
        }
        inputs::load_pair(&base, &head, format)
    }
}

/// Parses a format that benchgate can read.
pub fn format_parser() -> impl TypedValueParser<Value = Format> {
    choices::described(Format::ALL, |format| format.into_str(), |format| Some(format.description()))
}
