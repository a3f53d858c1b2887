//! Enumerates the experiments of a suite: models × devices × the axes of each backend.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use crate::config::{Backend, BackendTest, Model};
use crate::model::{DeviceKind, device_driver};

use super::super::PipelineError;
use super::super::plan::PlannedBenchmark;

/// All selected experiments, in the order of the configuration: first by model, then by backend, then by
/// axis.
///
/// # Errors
/// The requested axes select no experiment.
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
pub(in crate::pipeline) struct Experiment<'a> {
    pub(super) model: &'a Model,
    pub(super) backend: &'a Backend,
    /// Names of the benchmarks with the same model and device.
    pub(super) benchmarks: Vec<String>,
    /// `cpu`, `cuda`, or the name of a device that torch does not support.
    pub(super) device: String,
    pub(super) test: BackendTest,
    pub(super) batch_size: Option<u32>,
    pub(super) dtype: Option<String>,
    pub(super) matmul_precision: Option<String>,
    /// Input files of the compiled module, once they are known.
    pub(in crate::pipeline) inputs: Vec<PathBuf>,
}

impl Experiment<'_> {
    /// The name of the model whose inputs the experiment uses.
    pub(in crate::pipeline) fn model_name(&self) -> &str {
        &self.model.name
    }

    /// The experiment's axes as one word, for folder names: `inductor-cpu-eval-f32`.
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

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the only requested backend is IREE, which is always measured.
    fn name_iree(&self) -> bool {
        self.0.get("backend").is_some_and(|wanted| wanted.iter().any(|name| name == "iree"))
    }

    pub(super) fn selects(&self, experiment: &Experiment<'_>) -> bool {
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
