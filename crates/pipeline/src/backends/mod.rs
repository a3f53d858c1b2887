//! Runs the same models on other backends for context. Their results are not judged and can't fail a run.
//!
//! They run after everything that is judged, one process at a time, on the same processors. Each round runs
//! one process of every experiment, so that slow changes of the machine affect all rows alike. The result of
//! each process is on disk before the next one starts.

mod process;
mod request;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use benchgate_config::{Backend, BackendTest, Model};
use benchgate_core::model::{DeviceKind, Event, Outcome, Stage, device_driver};
use benchgate_core::record::{BackendRecord, OutcomeRecord};

use super::PipelineError;
use super::host::Host;
use super::journal::Journal;
use super::plan::{PlannedBenchmark, SideInput};

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

/// All selected experiments, in the order of the configuration: first by model, then by backend, then by
/// axis.
///
/// # Errors
/// The requested axes select no experiment.
pub(crate) fn experiments<'a>(
    plan: &[PlannedBenchmark<'a>],
    backends: &'a [Backend],
    axes: &Axes,
) -> Result<Vec<Experiment<'a>>, PipelineError> {
    let mut places: Vec<(&Model, String, Vec<String>)> = Vec::new();
    for planned in plan {
        let (device, name) = (torch_device(&planned.target.device), planned.name().as_str().to_owned());
        let known = places.iter_mut().find(|(model, on, _)| is_same(model, planned.model) && *on == device);
        match known {
            Some((.., benchmarks)) => benchmarks.push(name),
            None => places.push((planned.model, device, vec![name])),
        }
    }
    let mut all = Vec::new();
    for (model, device, benchmarks) in &places {
        for backend in backends {
            if backend.models.is_empty() || backend.models.contains(&model.name) {
                multiply(model, device, benchmarks, backend, &mut all);
            }
        }
    }
    let any = !all.is_empty();
    all.retain(|experiment| axes.selects(experiment));
    if any && all.is_empty() && !axes.is_empty() && !axes.name_iree() {
        return Err(PipelineError::Selection("no experiment of the suite matches --axis".to_owned()));
    }
    Ok(all)
}

/// Returns whether two models are the same for torch. A suite may export one module in several ways.
fn is_same(a: &Model, b: &Model) -> bool {
    a.source == b.source && a.preset == b.preset && a.options == b.options && a.dtype == b.dtype
}

fn multiply<'a>(
    model: &'a Model,
    device: &str,
    benchmarks: &[String],
    backend: &'a Backend,
    all: &mut Vec<Experiment<'a>>,
) {
    fn or_own<T: Clone>(values: &[T]) -> Vec<Option<T>> {
        if values.is_empty() { vec![None] } else { values.iter().cloned().map(Some).collect() }
    }
    for test in &backend.tests {
        for batch_size in or_own(&backend.batch_sizes) {
            for dtype in or_own(&backend.dtypes) {
                for matmul_precision in or_own(&backend.matmul_precisions) {
                    all.push(Experiment {
                        model,
                        backend,
                        benchmarks: benchmarks.to_vec(),
                        device: device.to_owned(),
                        test: *test,
                        batch_size,
                        dtype: dtype.clone(),
                        matmul_precision,
                        inputs: Vec::new(),
                    });
                }
            }
        }
    }
}

/// The name that torch gives to a target's device.
fn torch_device(device: &str) -> String {
    DeviceKind::from_uri(device).facts().torch.unwrap_or_else(|| device_driver(device)).to_owned()
}

/// An experiment: a model on a backend, with a value for each axis. `None` stands for the model's own value.
#[derive(Debug, Clone)]
pub(crate) struct Experiment<'a> {
    model: &'a Model,
    backend: &'a Backend,
    /// Names of the benchmarks with the same model and device.
    benchmarks: Vec<String>,
    /// `cpu`, `cuda`, or the name of a device that torch does not support.
    device: String,
    test: BackendTest,
    batch_size: Option<u32>,
    dtype: Option<String>,
    matmul_precision: Option<String>,
    /// Input files of the compiled module, once they are known.
    pub(crate) inputs: Vec<PathBuf>,
}

impl Experiment<'_> {
    /// The name of the model whose inputs the experiment uses.
    pub(crate) fn model_name(&self) -> &str {
        &self.model.name
    }

    /// The experiment's axes as one word, for folder names: `inductor-cpu-eval-f32`.
    fn slug(&self) -> String {
        let mut slug = format!("{}-{}-{}", self.backend.kind, self.device, self.test.into_str());
        let more =
            [self.batch_size.map(|n| format!("batch{n}")), self.dtype.clone(), self.matmul_precision.clone()];
        for part in more.into_iter().flatten() {
            slug.push('-');
            slug.push_str(&part);
        }
        slug
    }
}

impl fmt::Display for Experiment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.model.name, self.slug())
    }
}

/// The axes that experiments have.
const NAMES: [&str; 5] = ["backend", "test", "batch-size", "dtype", "matmul-precision"];

/// The name of an axis's value if the configuration leaves it to the model.
const UNSET: &str = "default";

/// The requested values of some axes. If an axis has several values, experiments with any of them are
/// selected; an axis that is not named does not restrict the selection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Axes(BTreeMap<String, Vec<String>>);

impl Axes {
    /// Parses `NAME=VALUE` arguments.
    pub fn new(texts: &[String]) -> Result<Self, String> {
        let mut axes: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for text in texts {
            let Some((name, value)) = text.split_once('=').filter(|(_, value)| !value.is_empty()) else {
                return Err(format!("expected NAME=VALUE, found `{text}`"));
            };
            if !NAMES.contains(&name) {
                return Err(format!("there is no axis `{name}`; the axes are {}", NAMES.join(", ")));
            }
            axes.entry(name.to_owned()).or_default().push(value.to_owned());
        }
        Ok(Self(axes))
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the only requested backend is IREE, which is always measured.
    fn name_iree(&self) -> bool {
        self.0.get("backend").is_some_and(|wanted| wanted.iter().any(|name| name == "iree"))
    }

    fn selects(&self, experiment: &Experiment<'_>) -> bool {
        self.0.iter().all(|(name, wanted)| {
            let value = value(experiment, name).unwrap_or_else(|| UNSET.to_owned());
            wanted.contains(&value)
        })
    }
}

fn value(experiment: &Experiment<'_>, axis: &str) -> Option<String> {
    match axis {
        "backend" => Some(experiment.backend.kind.into_str().to_owned()),
        "test" => Some(experiment.test.into_str().to_owned()),
        "batch-size" => experiment.batch_size.map(|size| size.to_string()),
        "dtype" => experiment.dtype.clone(),
        _ => experiment.matmul_precision.clone(),
    }
}
