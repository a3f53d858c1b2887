//! One experiment: a model on a backend, with a value for each axis.

use std::fmt;
use std::path::PathBuf;

use crate::config::{Backend, BackendTest, Model};

/// One row: a model on a backend, with a value for each axis. `None` means the model's own.
#[derive(Debug, Clone)]
pub(in crate::pipeline) struct Experiment<'a> {
    pub(super) model: &'a Model,
    pub(super) backend: &'a Backend,
    /// Names of the benchmarks of the same model on the same device.
    pub(super) benchmarks: Vec<String>,
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

    /// The experiment's axes, as one word for folders: `inductor-cpu-eval-f32`.
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
