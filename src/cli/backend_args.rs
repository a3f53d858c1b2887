//! Options for measurements in addition to IREE: other backends, repetitions, dumps, and result files to
//! append to.

use std::path::{Path, PathBuf};

use strum::VariantArray;

use crate::config::{Backend, BackendKind, Config};
use crate::ingest;
use crate::pipeline::{Axes, CollectKind, DumpKind, Extras};
use crate::record::RunFile;

use super::{CliError, Terminal, choices};

/// Other backends, and the files of a run in addition to run.json.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Other backends")]
pub struct BackendArgs {
    /// Also run the models on this backend, as a [[backend]] table does; repeatable
    #[arg(long, value_name = "NAME", value_parser = choices::named(BackendKind::VARIANTS, Into::into), conflicts_with = "half")]
    backend: Vec<BackendKind>,
    /// Select experiments by axis value; repeatable, also for several values of one axis. Axes: backend, test,
    /// batch-size, dtype, matmul-precision. `default` is the model's own value; `backend=iree` leaves out other
    /// backends
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "half")]
    axis: Vec<String>,
    /// Repetitions in each process [default: the key `repetitions` of [measure]]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    repeat: Option<u32>,
    /// Iterations of one repetition, instead of as many as fill `min-time` of [measure]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    iterations_per_run: Option<u32>,
    /// Write profiles, counters and compiler IR of the other backends; repeatable, or separated by commas
    #[arg(long, value_name = "WHAT", conflicts_with = "half", value_delimiter = ',', value_parser = choices::documented::<DumpKind>())]
    dump: Vec<DumpKind>,
    /// Folder for the files of --dump [default: dumps in the working folder]
    #[arg(long, value_name = "FOLDER", requires = "dump")]
    dump_dir: Option<PathBuf>,
    /// Also collect these counters and operator times from the other backends, into their metrics in run.json
    /// and results.jsonl; repeatable, or separated by commas
    #[arg(long, value_name = "WHAT", conflicts_with = "half", value_delimiter = ',', value_parser = choices::documented::<CollectKind>())]
    collect: Vec<CollectKind>,
    /// Append to results.jsonl, latency.csv and iree_latency.csv in this folder
    #[arg(long, value_name = "FOLDER", conflicts_with = "until")]
    append_results: Option<PathBuf>,
}

impl BackendArgs {
    /// Applies the settings that the command line overrides.
    pub fn apply(&self, config: &mut Config) {
        for kind in &self.backend {
            if !config.backends.iter().any(|known| known.kind == *kind) {
                config.backends.push(Backend::new(*kind));
            }
        }
        if self.repeat.is_some() {
            config.measure.repetitions = self.repeat;
        }
        if self.iterations_per_run.is_some() {
            config.measure.iterations = self.iterations_per_run;
        }
        for backend in &mut config.backends {
            backend.repetitions = self.repeat.or(backend.repetitions);
            backend.iterations = self.iterations_per_run.or(backend.iterations);
        }
    }

    pub fn axes(&self) -> Result<Axes, CliError> {
        Axes::new(&self.axis).map_err(|why| {
            CliError::usage(format!("failed to read --axis: {why}"))
                .hint("for example --axis test=train --axis dtype=bf16")
        })
    }

    /// The extra files that the options request. `work` is the working folder.
    pub fn extras(&self, work: &Path) -> Result<Extras, CliError> {
        let folder = self.dump_dir.clone().unwrap_or_else(|| work.join("dumps"));
        // The path must be absolute, because the processes that write there run in other folders.
        let folder = std::path::absolute(&folder).map_err(|error| {
            CliError::usage(format!("failed to find the folder {}: {error}", folder.display()))
        })?;
        Ok(Extras { dump: self.dump.clone(), folder, collect: self.collect.clone() })
    }

    /// Appends the run to the files that existing data frames and dashboards read.
    pub fn append(&self, file: &RunFile, terminal: &Terminal) -> Result<(), CliError> {
        let Some(folder) = &self.append_results else { return Ok(()) };
        let failed = |path: &Path, error: std::io::Error| {
            CliError::failed(format!("failed to append to {}: {error}", path.display()))
                .hint("the run itself is stored; name a folder that can be written to")
        };
        std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
        for appended in ingest::appended(file) {
            let path = folder.join(appended.name);
            append(&path, &appended.header, &appended.lines).map_err(|error| failed(&path, error))?;
        }
        terminal.note(&format!("appended the run to the files in {}", folder.display()));
        Ok(())
    }
}

/// Appends all lines in a single write, so that a reader or a concurrent run never sees half a line.
fn append(path: &Path, header: &str, lines: &str) -> std::io::Result<()> {
    use std::io::Write;
    if lines.is_empty() {
        return Ok(());
    }
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
    let text = if file.metadata()?.len() == 0 { format!("{header}{lines}") } else { lines.to_owned() };
    file.write_all(text.as_bytes())
}
