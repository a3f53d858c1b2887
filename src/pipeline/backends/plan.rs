//! Which experiments a suite has: models × devices × the axes of each backend.

use crate::config::{Backend, Model};
use crate::model::{DeviceKind, device_driver};

use super::super::PipelineError;
use super::super::plan::PlannedBenchmark;
use super::{Axes, Experiment};

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

/// A model that a suite exports in several ways is one module for torch.
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

/// torch's name of the device that a target runs on; torch calls AMD's devices `cuda` too.
fn torch_device(device: &str) -> String {
    match DeviceKind::from_uri(device) {
        DeviceKind::Cpu => "cpu",
        DeviceKind::Cuda | DeviceKind::Hip => "cuda",
        _ => device_driver(device),
    }
    .to_owned()
}
