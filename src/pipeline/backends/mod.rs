//! The same models on other backends, for context: never judged, and never a reason to fail a run.
//!
//! They run after everything that is judged, one process at a time, on the same processors, in rounds over
//! all experiments, so that an hour's drift reaches every row alike. Each finished process is on disk before
//! the next one starts.

mod axes;
mod environment;
mod package;
mod plan;
mod process;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::model::{Event, Outcome, Stage};
use crate::record::{BackendRecord, OutcomeRecord};

use super::PipelineError;
use super::host::Host;
use super::journal::Journal;
use super::plan::SideInput;

pub use axes::Axes;
pub(super) use environment::{BackendInterpreters, interpreters, needed};
pub use package::BackendsSource;
pub(super) use plan::{Experiment, experiments};
use process::{BackendProcess, Kept};

/// What a person may want to look at afterwards, and where it goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dumps {
    /// `profile`, `trace`, `dynamo-counters`, `xla-metrics`.
    pub what: Vec<String>,
    pub folder: PathBuf,
}

/// The experiments of a run, and what runs them.
pub(super) struct Experiments<'a, 'b> {
    pub(super) host: &'a Host<'b>,
    pub(super) lead: &'a SideInput,
    pub(super) experiments: &'a [Experiment<'a>],
    pub(super) interpreters: &'a BackendInterpreters,
    pub(super) dumps: &'a Dumps,
}

impl Experiments<'_, '_> {
    /// Runs every experiment and returns a record for each, in the order of the plan.
    pub(super) async fn run(
        &self,
        journal: &Journal,
        relative_to: &Path,
    ) -> Result<Vec<BackendRecord>, PipelineError> {
        let Self { host, experiments, .. } = *self;
        if experiments.is_empty() {
            return Ok(Vec::new());
        }
        let stage = Stage::Benchmark;
        let steps = experiments.iter().map(|experiment| experiment.backend.processes as usize).sum();
        host.progress.on(Event::StageStarted { stage, steps });
        // The compilers' own caches live as long as the run: the first process of an experiment compiles.
        let caches = host.scratch()?;
        let mut kept: Vec<Vec<Kept>> = vec![Vec::new(); experiments.len()];
        let most = experiments.iter().map(|experiment| experiment.backend.processes).max().unwrap_or(0);
        for number in 0..most {
            for ((at, experiment), done) in experiments.iter().enumerate().zip(&mut kept) {
                if number >= experiment.backend.processes || done.iter().any(|kept| !kept.outcome().is_ok()) {
                    continue;
                }
                let what = format!("{experiment} process {}", number + 1);
                host.progress.on(Event::StepStarted { stage, what: &what });
                let started = Instant::now();
                let process = BackendProcess {
                    host,
                    lead: self.lead,
                    experiment,
                    number,
                    compiler_cache: caches.path().join(at.to_string()),
                    dumps: self.dumps,
                };
                let one = process::once(&process, self.interpreters, journal).await?;
                let (note, took) = (&one.note(), started.elapsed());
                host.progress.on(Event::StepFinished { stage, what: &what, note, took });
                done.push(one);
            }
        }
        host.progress.on(Event::StageFinished { stage });
        let records = experiments.iter().zip(kept).map(|(experiment, kept)| {
            process::join_profiles(experiment, self.dumps, kept.len())?;
            Ok(record(experiment, kept, relative_to))
        });
        records.collect()
    }
}

fn record(experiment: &Experiment<'_>, kept: Vec<Kept>, relative_to: &Path) -> BackendRecord {
    let outcome = kept.iter().map(Kept::outcome).find(|outcome| !outcome.is_ok()).unwrap_or(Outcome::Ok);
    let verification = kept.iter().find_map(|kept| kept.verification.clone());
    let versions = kept.iter().map(|kept| kept.versions.clone()).next().unwrap_or_default();
    let mut processes: Vec<_> = kept.into_iter().filter_map(|kept| kept.process).collect();
    for process in &mut processes {
        if let Some(log) = &mut process.log {
            let path = Path::new(log.as_str());
            *log = path.strip_prefix(relative_to).unwrap_or(path).to_string_lossy().into_owned();
        }
    }
    BackendRecord {
        model: experiment.model.name.clone(),
        benchmarks: experiment.beside.clone(),
        backend: experiment.backend.kind.into_str().to_owned(),
        device: experiment.device.clone(),
        test: experiment.test.into_str().to_owned(),
        batch_size: experiment.batch_size,
        dtype: experiment.dtype.clone(),
        matmul_precision: experiment.matmul_precision.clone(),
        outcome: OutcomeRecord::from(&outcome),
        verification,
        versions,
        processes,
    }
}
