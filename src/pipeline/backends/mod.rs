//! Runs the same models on other backends for context. Their results are not judged and can't fail a run.
//!
//! They run after everything that is judged, one process at a time, on the same processors. Each round runs
//! one process of every experiment, so that slow changes of the machine affect all rows alike. The result of
//! each process is on disk before the next one starts.

mod plan;
mod process;
mod request;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::Instant;

use crate::model::{Event, Outcome, Stage};
use crate::record::{BackendRecord, OutcomeRecord};

use super::PipelineError;
use super::host::Host;
use super::journal::Journal;
use super::plan::SideInput;

pub use plan::Axes;
pub(super) use plan::{Experiment, experiments};
pub use process::BackendsSource;
use process::Kept;
use request::BackendProcess;
pub(super) use request::{BackendInterpreters, interpreters, needed};
pub use request::{CollectKind, DumpKind, Extras};

/// The experiments of a run and the interpreters that run them.
pub(super) struct Experiments<'a, 'b> {
    pub(super) host: &'a Host<'b>,
    pub(super) lead: &'a SideInput,
    pub(super) experiments: &'a [Experiment<'a>],
    pub(super) interpreters: &'a BackendInterpreters,
    pub(super) extras: &'a Extras,
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
        let of_each = |experiment: &Experiment<'_>| {
            experiment.backend.processes as usize + self.extras.of_compiler(experiment).len()
        };
        host.progress.on(Event::StageStarted { stage, steps: experiments.iter().map(of_each).sum() });
        // The compilers' caches are shared by an experiment's processes and removed after the run, so that
        // the first process of each experiment compiles.
        let caches = host.scratch()?;
        let process = |at: usize, number: u32, compiler_dump: Option<DumpKind>| BackendProcess {
            host,
            lead: self.lead,
            experiment: &experiments[at],
            number,
            compiler_cache: caches.path().join(at.to_string()),
            extras: self.extras,
            compiler_dump,
        };
        let mut kept: Vec<Vec<Kept>> = vec![Vec::new(); experiments.len()];
        let most = experiments.iter().map(|experiment| experiment.backend.processes).max().unwrap_or(0);
        for number in 0..most {
            for ((at, experiment), done) in experiments.iter().enumerate().zip(&mut kept) {
                if number >= experiment.backend.processes || done.iter().any(|kept| !kept.outcome().is_ok()) {
                    continue;
                }
                let what = format!("{experiment} process {}", number + 1);
                done.push(self.step(&what, &process(at, number, None), journal).await?);
            }
        }
        for ((at, experiment), done) in experiments.iter().enumerate().zip(&kept) {
            if done.iter().any(|kept| !kept.outcome().is_ok()) {
                continue;
            }
            for kind in self.extras.of_compiler(experiment) {
                let what = format!("{experiment} {kind}");
                let ended = self.step(&what, &process(at, 0, Some(kind)), journal).await?;
                if !ended.outcome().is_ok() {
                    let why = format!("no {kind} of {experiment}: {}", ended.note());
                    host.progress.on(Event::Warning(&why));
                }
            }
        }
        host.progress.on(Event::StageFinished { stage });
        let records = experiments.iter().zip(kept).map(|(experiment, kept)| {
            self.extras.join_profiles(experiment, kept.len())?;
            Ok(record(experiment, kept, relative_to))
        });
        records.collect()
    }

    async fn step(
        &self,
        what: &str,
        process: &BackendProcess<'_, '_>,
        journal: &Journal,
    ) -> Result<Kept, PipelineError> {
        let (stage, progress) = (Stage::Benchmark, self.host.progress);
        progress.on(Event::StepStarted { stage, what });
        let started = Instant::now();
        let ended = process::once(process, self.interpreters, journal).await?;
        let (note, took) = (&ended.note(), started.elapsed());
        progress.on(Event::StepFinished { stage, what, note, took });
        Ok(ended)
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
        benchmarks: experiment.benchmarks.clone(),
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
