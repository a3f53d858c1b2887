//! One process to run, and its request.

use std::path::PathBuf;
use std::time::Duration;

use crate::config::ModelSource;

use super::super::PipelineError;
use super::super::export::typed;
use super::super::host::Host;
use super::super::plan::SideInput;
use super::Experiment;
use super::extras::{CollectKind, DumpKind, Extras};

/// Number of repetitions of another backend if the configuration does not set it. Backends are only context
/// and decide no verdict, so a fixed number that is easy to compare is enough.
const REPETITIONS: u32 = 8;
const MIN_TIME: Duration = Duration::from_millis(40);
const WARMUP: Duration = Duration::from_millis(20);

pub(super) struct BackendProcess<'a, 'b> {
    pub(super) host: &'a Host<'b>,
    pub(super) lead: &'a SideInput,
    pub(super) experiment: &'a Experiment<'a>,
    pub(super) number: u32,
    /// The compiler's cache, shared only by the processes of one experiment.
    pub(super) compiler_cache: PathBuf,
    pub(super) extras: &'a Extras,
    /// The dump to collect during compilation, in which case nothing is measured.
    pub(super) compiler_dump: Option<DumpKind>,
}

impl BackendProcess<'_, '_> {
    /// The request without its folders, which differ between processes.
    pub(super) fn request(&self) -> Result<serde_json::Value, PipelineError> {
        let (experiment, measure) = (self.experiment, &self.lead.config.measure);
        let model = experiment.model;
        let sources = &self.lead.side.sources;
        let (source, symbol) = match &model.source {
            ModelSource::Python { file, symbol } => {
                (sources.join(file).to_string_lossy().into_owned(), Some(symbol))
            }
            ModelSource::Zoo(key) => (format!("zoo:{key}"), None),
            ModelSource::Torchbench { name, .. } => (format!("torchbench:{name}"), None),
            ModelSource::Mlir(path) | ModelSource::Onnx(path) | ModelSource::Pt2(path) => {
                (sources.join(path).to_string_lossy().into_owned(), None)
            }
        };
        let torchbench = match &model.source {
            // The path is made absolute, because the process is started in another folder.
            ModelSource::Torchbench { checkout, .. } => Some(
                std::path::absolute(&checkout.folder).map_err(PipelineError::io("find", &checkout.folder))?,
            ),
            _ => None,
        };
        let options = model.options.iter().map(|(name, value)| (name.clone(), typed(value)));
        let backend = experiment.backend;
        Ok(serde_json::json!({
            "source": source,
            "symbol": symbol,
            "torchbench": torchbench,
            "folder": sources,
            "path": self.lead.config.python.path.iter().map(|path| sources.join(path)).collect::<Vec<_>>(),
            "backend": backend.kind.into_str(),
            "device": experiment.device,
            "test": experiment.test.into_str(),
            "preset": model.preset,
            "options": options.collect::<serde_json::Map<_, _>>(),
            "inputs": experiment.inputs,
            "batch-size": experiment.batch_size,
            "dtype": experiment.dtype.as_ref().or(model.dtype.as_ref()),
            "matmul-precision": experiment.matmul_precision,
            "seed": 0,
            "measure": self.compiler_dump.is_none(),
            // Only the first process verifies, because the program is the same in every process.
            "verify": self.number == 0 && self.compiler_dump.is_none(),
            "warmup-seconds": measure.warmup.unwrap_or(WARMUP).as_secs_f64(),
            "repetitions": backend.repetitions.or(measure.repetitions).unwrap_or(REPETITIONS),
            "iterations": backend.iterations.or(measure.iterations),
            "min-time-seconds": measure.min_time.unwrap_or(MIN_TIME).as_secs_f64(),
            "label": model.name,
            "dump": words(self.dumps()),
            "collect": words(self.collected()),
        }))
    }

    pub(super) fn dumps(&self) -> Vec<DumpKind> {
        self.compiler_dump.map_or_else(|| self.extras.measured(), |kind| vec![kind])
    }

    fn collected(&self) -> Vec<CollectKind> {
        if self.compiler_dump.is_some() { Vec::new() } else { self.extras.collect.clone() }
    }

    /// The folder for this process's dumps: one for each measured process, and a single one for the
    /// compiler's output, which is equal in all processes.
    pub(super) fn dump_folder(&self) -> PathBuf {
        let folder = self.extras.folder_of(self.experiment);
        if self.compiler_dump.is_some() { folder } else { folder.join(self.number.to_string()) }
    }
}

fn words<T: Into<&'static str>>(kinds: Vec<T>) -> Vec<&'static str> {
    kinds.into_iter().map(Into::into).collect()
}
