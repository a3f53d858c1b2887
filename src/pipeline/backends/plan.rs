//! Which experiments a suite has: models × devices × the axes of each backend.

use std::fmt;
use std::path::PathBuf;

use crate::config::{Backend, BackendTest, Model};
use crate::model::{DeviceKind, device_driver};

use super::super::PipelineError;
use super::super::plan::PlannedBenchmark;
use super::Axes;

/// One row: a model on a backend, with a value for each axis. `None` is the model's own.
#[derive(Debug, Clone)]
pub(in crate::pipeline) struct Experiment<'a> {
    pub(super) model: &'a Model,
    pub(super) backend: &'a Backend,
    /// Names of the benchmarks of the same model on the same device.
    pub(super) beside: Vec<String>,
    /// `cpu` or `cuda`, or the name of a device that torch does not have.
    pub(super) device: String,
    pub(super) test: BackendTest,
    pub(super) batch_size: Option<u32>,
    pub(super) dtype: Option<String>,
    pub(super) matmul_precision: Option<String>,
    /// The inputs of the compiled module, once they are known.
    pub(in crate::pipeline) inputs: Vec<PathBuf>,
}

impl Experiment<'_> {
    /// The model whose inputs it shares.
    pub(in crate::pipeline) fn model_name(&self) -> &str {
        &self.model.name
    }

    /// What differs from its neighbours, as one word for folders: `inductor-cpu-eval-f32`.
    pub(super) fn slug(&self) -> String {
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

/// Every selected experiment, in the order of the configuration: models, then backends, then axes.
///
/// # Errors
/// Axes that select nothing, as a filter that does.
pub(in crate::pipeline) fn experiments<'a>(
    plan: &[PlannedBenchmark<'a>],
    backends: &'a [Backend],
    axes: &Axes,
) -> Result<Vec<Experiment<'a>>, PipelineError> {
    let mut places: Vec<(&Model, String, Vec<String>)> = Vec::new();
    for planned in plan {
        let (device, name) = (torch_device(&planned.target.device), planned.name().as_str().to_owned());
        let known = places.iter_mut().find(|(model, on, _)| is_same(model, planned.model) && *on == device);
        match known {
            Some((.., beside)) => beside.push(name),
            None => places.push((planned.model, device, vec![name])),
        }
    }
    let mut all = Vec::new();
    for (model, device, beside) in &places {
        for backend in backends {
            if backend.models.is_empty() || backend.models.contains(&model.name) {
                multiply(model, device, beside, backend, &mut all);
            }
        }
    }
    let any = !all.is_empty();
    all.retain(|experiment| axes.selects(experiment));
    if any && all.is_empty() && !axes.is_empty() {
        return Err(PipelineError::Selection("no experiment of the suite matches --axis".to_owned()));
    }
    Ok(all)
}

/// A model that a suite exports in several ways is one module for torch.
fn is_same(a: &Model, b: &Model) -> bool {
    a.source == b.source && a.preset == b.preset && a.options == b.options && a.dtype == b.dtype
}

fn multiply<'a>(
    model: &'a Model,
    device: &str,
    beside: &[String],
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
                        beside: beside.to_vec(),
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

/// torch's name of the device that a target runs on; torch calls AMD's devices `cuda` too.
fn torch_device(device: &str) -> String {
    match DeviceKind::from_uri(device) {
        DeviceKind::Cpu => "cpu",
        DeviceKind::Cuda | DeviceKind::Hip => "cuda",
        _ => device_driver(device),
    }
    .to_owned()
}
